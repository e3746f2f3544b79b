"""What all who answer problems have in common, and those that need no torch."""

import random
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Task, Verdict
from hf_alpha.tasks.checking import Answer, check_answer
from hf_alpha.tasks.decision import Decision


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
        scores: answers have their log-probability as `score`.
    """

    num_beams: int | None = None
    length_penalty: float = 1.0
    max_new_tokens: int | None = None
    top_n: int = 1
    batch_size: int = 64
    grammar: bool = False
    scores: bool = False

    def __post_init__(self) -> None:
        if self.top_n < 1:
            raise ValueError(f"top_n is {self.top_n}: give 1 or more")


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
        read_as: the problem in infix, if the answerer rewrote operators of it while reading.
        notes: why the answers may be wrong.
        seconds: that it took, checks included; of a batch, its share.
    """

    answers: tuple[Answer, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    reason: str | None = None
    detail: str | None = None
    outside: bool = False
    unsatisfiable: bool = False
    core: tuple[str, ...] = ()
    by: str | None = None
    read_as: str | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether nobody need be asked any more: an answer is verified, or proved not to exist."""
        return self.unsatisfiable or any(verdict.is_correct for verdict in self.verdicts)


Replies = Generator[dict[int, Reply], None, None]
"""Number of a problem -> reply, batch by batch."""


class Answerer:
    """Whoever answers problems."""

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
        return {"seed": self.seed, "top_n": self.top_n}

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
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
        decisions = task.decide_all(list(problems.values()), self.timeout)
        for (index, problem), decision in zip(problems.items(), decisions, strict=True):
            yield {index: self._reply(task, problem, decision)}

    def _reply(self, task: Task, problem: str, decision: Decision) -> Reply:
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
