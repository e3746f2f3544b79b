"""What all who answer problems have in common, and those that need no torch."""

import random
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Task, Verdict
from hf_alpha.tasks.checking import Answer, check_answer


@dataclass(frozen=True, kw_only=True)
class Search:
    """How a model looks for answers.

    Attributes:
        num_beams: number of beams, by default the task's, and at least `top_n`: top-N accuracy is
            that of a search with N beams (2601.23169, Appendix I).
        length_penalty: beams are ranked by log-probability / length ** length_penalty.
        max_new_tokens: limit of an answer's length; by default what `Answerer.ready` finds, else
            the model's own.
        top_n: answers to each problem, best first.
        batch_size: problems in a batch; without influence on the answers.
        grammar: a model can write nothing that is no answer of the task (`Task.answer_mask`).
    """

    num_beams: int | None = None
    length_penalty: float = 1.0
    max_new_tokens: int | None = None
    top_n: int = 1
    batch_size: int = 64
    grammar: bool = False

    def __post_init__(self) -> None:
        if self.top_n < 1:
            raise ValueError(f"top_n is {self.top_n}: give 1 or more")

    def arguments(self, task: Task, limit: int | None = None) -> dict[str, Any]:
        """Return arguments of `generate`; `limit` is that of answers where none is given."""
        from hf_alpha.generation import MAX_NEW_TOKENS, search_settings

        beams = max(self.num_beams or task.num_beams, self.top_n)
        max_new_tokens = self.max_new_tokens or limit or MAX_NEW_TOKENS
        return search_settings(beams, self.length_penalty, max_new_tokens, self.top_n)


DEFAULT_SEARCH = Search()


@dataclass(frozen=True)
class Reply:
    """What an answerer makes of a problem: answers, a proof that there is none, or a reason.

    Attributes:
        answers: best first, in the problem's own names.
        verdicts: of the answers, where the answerer has checked them.
        reason: why there is no answer, in words that many problems may share.
        detail: the same for this problem alone.
        outside: the problem is outside of the answerer's vocabulary.
        unsatisfiable: it is proved that no answer is right.
        core: parts of the problem that contradict one another already.
        by: who found it.
    """

    answers: tuple[Answer, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    reason: str | None = None
    detail: str | None = None
    outside: bool = False
    unsatisfiable: bool = False
    core: tuple[str, ...] = ()
    by: str | None = None


Replies = Generator[dict[int, Reply], None, None]
"""Number of a problem -> reply, batch by batch."""


class Answerer:
    """Whoever answers problems.

    Attributes:
        name: what its row of a table is called.
    """

    name: str

    def extend(self, task: Task, problems: Sequence[str]) -> None:
        """Take up as many names as problems have, where that needs no training."""

    def ready(self, task: Task, pairs: Sequence[tuple[str, str | None]]) -> "Answerer":
        """Look at problems and targets that are to be measured: warn, and set a limit of length.

        Raises:
            ValueError: it cannot read them.
        """
        return self

    def settings(self, task: Task) -> dict[str, Any]:
        """Return what answers depend on, for JSON: a run that resumes needs the same."""
        return {}

    def notes(self, task: Task, problem: str) -> list[str]:
        """Return why answers to a problem may be wrong."""
        return []

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
        """Answer problems, each with a number of its own, batch by batch, in any order."""
        raise NotImplementedError


@dataclass(frozen=True)
class Random(Answerer):
    """Random answers: what a model has to beat.

    Attributes:
        seed: of the answers; that to a problem depends on its number too.
        top_n: answers to each problem, drawn one after the other.
    """

    name: str
    seed: int = 0
    top_n: int = 1

    def settings(self, task: Task) -> dict[str, Any]:
        """Return the seed and the number of answers."""
        return {"seed": self.seed, "top_n": self.top_n}

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
        """Draw answers."""
        for index, problem in problems.items():
            rng = random.Random(f"{self.seed} {index}")
            answers = [Answer(task.random_answer(problem, rng)) for _ in range(self.top_n)]
            yield {index: Reply(tuple(answers))}


@dataclass(frozen=True)
class Solver(Answerer):
    """The task's own solver, without any model.

    Attributes:
        timeout: seconds for a problem.
    """

    timeout: float = 10.0
    name: str = field(default="solver", init=False)

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
        """Have each problem decided, and check what is found."""
        for index, problem in problems.items():
            yield {index: self._decided(task, problem)}

    def _decided(self, task: Task, problem: str) -> Reply:
        decision = task.decide(problem, self.timeout)
        if decision.unsatisfiable:
            return Reply(unsatisfiable=True, core=decision.core, by=decision.by)
        if decision.answer is None:
            return Reply(reason=decision.reason)
        answer = Answer(decision.answer)
        verdict = check_answer(task, problem, answer, timeout=self.timeout)
        if not verdict.is_correct:
            return Reply(reason=f"the answer of {decision.by}, {answer!r}, is {verdict}")
        return Reply((answer,), (verdict,), by=decision.by)


@dataclass(frozen=True)
class Refutation(Answerer):
    """Whatever proves that no answer is right; it gives none itself."""

    name: str = field(default="refutation", init=False)

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
        """Reply where there is a proof."""
        for index, problem in problems.items():
            with suppress(FormulaError):  # it is too long
                if task.has_answer(problem) is False:
                    yield {index: Reply(unsatisfiable=True)}


__all__ = [
    "DEFAULT_SEARCH",
    "Answerer",
    "Random",
    "Refutation",
    "Replies",
    "Reply",
    "Search",
    "Solver",
]
