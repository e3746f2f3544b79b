"""Verdicts on many answers; here, so that a process that checks them need not load torch."""

from collections.abc import Sequence

from .base import Task, Verdict
from .prompts import NoAnswer

Given = list[str] | NoAnswer
"""Candidates, the best first, or why there is none."""


def check_answers(
    task: Task,
    solver: str,
    timeout: float,
    problems: Sequence[tuple[str, str | None]],
    answers: Sequence[Given],
) -> list[tuple[str, ...]]:
    """Return the verdicts on the answers to each problem.

    Answers have to be written as the tokenizer writes them: that a base token happens to make a
    model's output read like another notation (`a=1`) does not count for it. Where there is none,
    that is malformed.

    Args:
        task: what the problems are.
        solver: as in the task's `check`.
        timeout: seconds for a call into a solver.
        problems: each with its target, if it has one.
        answers: to each problem.
    """

    def verdict(problem: str, target: str | None, answer: str) -> str:
        notation = "prefix" if " " in answer else "compact"
        return str(
            task.check(problem, answer, target, notation=notation, solver=solver, timeout=timeout)
        )

    return [
        (str(Verdict.malformed),)
        if isinstance(given, NoAnswer)
        else tuple(verdict(problem, target, answer) for answer in given)
        for (problem, target), given in zip(problems, answers, strict=True)
    ]


def load(task: Task) -> None:
    """Do nothing; that a process can be told to shows that it can load the task."""


__all__ = ["Given", "check_answers", "load"]
