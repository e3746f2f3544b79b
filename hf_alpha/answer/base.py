"""What all who answer problems have in common, and those that need no torch."""

import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hf_alpha.modeling.grammar import FormulaError, Grammar
from hf_alpha.tasks import Problem, Task, Verdict
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


@dataclass(frozen=True)
class Chain(Answerer):
    """Answerers behind one another: each is asked about what those before it have not settled.

    Its replies are checked, and have what all who were asked made of a problem.

    Attributes:
        links: what loads each of them, once it is asked.
        top_n: answers that are kept, the last ones found and checked first.
    """

    name: str
    links: Sequence[Callable[[], Answerer]]
    top_n: int = 1

    def settings(self, task: Task) -> dict[str, Any]:
        links = [link().settings(task) for link in self.links]
        return {"links": links, "top_n": self.top_n}

    def answer(self, task: Task, problems: Mapping[int, str]) -> Replies:
        """Answer each problem once it is settled, and those that stay open at the end."""
        unsettled = {index: Reply() for index in problems}
        for link in self.links:
            if not unsettled:
                return
            answerer, asked = link(), {index: problems[index] for index in unsettled}
            answerer.extend(task, list(asked.values()))
            start = time.perf_counter()
            for replies in answerer.answer(task, asked):
                share = (time.perf_counter() - start) / max(len(replies), 1)
                for index, reply in replies.items():
                    start = time.perf_counter() - share
                    known = self._joined(task, asked[index], unsettled[index], reply, answerer)
                    known["seconds"] = unsettled[index].seconds + time.perf_counter() - start
                    unsettled[index] = replace(unsettled[index], **known)
                yield {
                    index: unsettled.pop(index) for index in replies if unsettled[index].is_settled
                }
                start = time.perf_counter()
        yield unsettled

    def _joined(
        self, task: Task, problem: str, before: Reply, reply: Reply, answerer: Answerer
    ) -> dict[str, Any]:
        """Return what is new about a problem once one more answerer has replied."""
        # The tokenizer of a model may be older than the task, and rewrite less.
        grammar = getattr(getattr(answerer, "tokenizer", task), "grammar", None)
        known: dict[str, Any] = {"read_as": before.read_as or _read_as(grammar, problem)}
        if not (reply.answers or reply.unsatisfiable):
            reasons = filter(None, [before.reason, reply.detail or reply.reason])
            return known | {"reason": "; ".join(reasons) or None, "outside": reply.outside}
        known |= {"reason": None, "outside": False, "by": reply.by or before.by}
        if reply.unsatisfiable:
            return known | {"unsatisfiable": True, "core": reply.core}
        found = reply.verdicts or [check_answer(task, problem, each) for each in reply.answers]
        checked = [*zip(reply.answers, found, strict=True)]
        checked += zip(before.answers, before.verdicts, strict=True)
        answers, verdicts = zip(*checked[: self.top_n], strict=True)
        notes = (*before.notes, *answerer.notes(task, problem))
        return known | {"answers": answers, "verdicts": verdicts, "notes": notes}


def _read_as(grammar: Grammar | None, problem: str) -> str | None:
    """Return a problem in infix as a grammar reads it, if that rewrites its operators."""
    if not (grammar and isinstance(problem, Problem)) or problem.too_long:
        return None
    if grammar.derived.keys().isdisjoint(problem.written):
        return None
    grammar = Grammar.from_dict(grammar.to_dict())  # a checkpoint's may be of an older version
    try:
        return grammar.format(grammar.rewritten([*problem.written]), "infix")
    except FormulaError:  # it is too long
        return None
