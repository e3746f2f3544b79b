"""Verdicts on many answers; here, so that a process that checks them need not load torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .base import Task, Verdict


class Answer(str):
    """An answer of a model.

    Attributes:
        ended: whether the model has ended it; else the limit of its length has cut it off.
    """

    ended: bool

    def __new__(cls, text: str, ended: bool = True) -> "Answer":
        self = super().__new__(cls, text)
        self.ended = ended
        return self


@dataclass(frozen=True)
class NoAnswer:
    """What stands in place of an answer where there is none, and why."""

    reason: str


Given = Sequence[str] | NoAnswer
"""Candidates, the best first, or why there is none."""


def check_answer(
    task: Task, problem: str, answer: str, target: str | None = None, **settings: Any
) -> Verdict:
    """Return the verdict on what a model wrote.

    It has to be written as the tokenizer writes answers: that a base token happens to make a
    model's output read like another notation (`a=1`) does not count for it.

    Args:
        task: what the problem is of.
        problem: as the task's `check` takes it; `answer` and `target` likewise.
        **settings: `solver` and `timeout` of that method.
    """
    notation = "prefix" if " " in answer else "compact"
    return task.check(problem, answer, target, notation=notation, **settings)


def check_answers(
    task: Task,
    solver: str,
    timeout: float,
    problems: Sequence[tuple[str, str | None]],
    answers: Sequence[Given],
) -> list[tuple[str, ...]]:
    """Return the verdicts on the answers to each problem; where there is none, that is malformed.

    Args:
        task: what the problems are.
        solver: as in the task's `check`.
        timeout: seconds for a call into a solver.
        problems: each with its target, if it has one.
        answers: to each problem.
    """
    return [
        (str(Verdict.malformed),)
        if isinstance(answers_to_problem, NoAnswer)
        else tuple(
            str(check_answer(task, problem, answer, target, solver=solver, timeout=timeout))
            for answer in answers_to_problem
        )
        for (problem, target), answers_to_problem in zip(problems, answers, strict=True)
    ]


def load(task: Task) -> None:
    """Do nothing; that a process can be told to shows that it can load the task."""


__all__ = ["Given", "NoAnswer", "check_answer", "check_answers", "load"]
