"""Solve problems by a model, by a solver or by both, and check every answer.

Problems are taken from a stream in windows, so that memory stays constant, a model answers in
batches, and answers come in the order of the input. Torch is loaded once a model is asked.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, overload

from hf_alpha.answer.base import (
    DEFAULT_SEARCH,
    Answerer,
    Refutation,
    Replies,
    Reply,
    Search,
    Solver,
)
from hf_alpha.modeling.choices import check_known, refuse
from hf_alpha.modeling.grammar import FormulaError, Grammar
from hf_alpha.tasks import Problem, Task, Verdict, get_task, name_of
from hf_alpha.tasks.checking import Answer, check_answer
from hf_alpha.tasks.registry import DEFAULT_TASK, built_in_tasks

if TYPE_CHECKING:
    from pathlib import Path

METHODS = ("auto", "model", "solver")
TIMEOUT = 10.0
"""Seconds that solvers have for a problem."""
WINDOW = 512
"""Problems that are read ahead; a model's batches are made of them."""
MODEL = "model"
"""What a model without a folder is called."""


class Line(str):
    """A problem that stands in a line of a file.

    Attributes:
        error: why it cannot be read from there, if it cannot.
    """

    place: str
    error: str | None

    def __new__(cls, text: str, place: str, error: str | None = None) -> "Line":
        self = super().__new__(cls, text)
        self.place, self.error = place, error
        return self


@dataclass
class Solution:
    """A problem and what is made of it.

    Attributes:
        answers: best first, in the problem's own names, each with its verdict; `answer.ended` says
            whether it is whole.
        read_as: the problem in infix, if operators of it were rewritten while reading.
        unsatisfiable: it is proved that no answer is right; asked only if none of these is.
        core: parts of an unsatisfiable problem that contradict one another already; empty where
            there is nothing to choose from.
        found_by: the model or solver that found the first answer, or the proof.
        seconds: that it took, checks included; of a batch, its share.
        notes: why the model's answers may be wrong: words that it does not know, more names than
            training had.
        row: what stands beside the problem in a file of rows, the problem included.
        read: what the problem was read as; None if it cannot be read.
    """

    problem: str
    answers: list[tuple[Answer, Verdict]] = field(default_factory=list)
    error: str | None = None
    read_as: str | None = None
    unsatisfiable: bool = False
    core: tuple[str, ...] = ()
    found_by: str | None = None
    seconds: float = field(default=0.0, compare=False)
    notes: list[str] = field(default_factory=list)
    row: dict[str, Any] | None = None
    read: Problem | None = field(default=None, compare=False, repr=False)

    @property
    def solved(self) -> bool:
        """Whether one of the answers is correct."""
        return any(verdict.is_correct for _, verdict in self.answers)

    @property
    def status(self) -> str:
        """What is known.

        `solved`; `unsatisfiable`; `answered`, if nothing could judge the answer; `unknown`; or
        `error` for what cannot be read.
        """
        if self.read is None:
            return "error"
        if self.unsatisfiable:
            return "unsatisfiable"
        if self.solved:
            return "solved"
        return "answered" if self.best[1] is Verdict.undecided else "unknown"

    @property
    def best(self) -> tuple[Answer, Verdict] | tuple[None, None]:
        """The first correct answer, or else the first one, with its verdict."""
        if self.unsatisfiable or not self.answers:
            return None, None
        return next((pair for pair in self.answers if pair[1].is_correct), self.answers[0])

    def take(self, reply: Reply) -> None:
        """Take up what a chain of answerers made of the problem."""
        self.answers = list(zip(reply.answers, reply.verdicts, strict=True))
        self.error, self.found_by, self.read_as = reply.reason, reply.by, reply.read_as
        self.unsatisfiable, self.core = reply.unsatisfiable, reply.core
        self.notes, self.seconds = list(reply.notes), reply.seconds

    def record(self) -> dict[str, Any]:
        """Return what a program reads; docs/solve.schema.json describes it."""
        answer, verdict = self.best
        return {
            "problem": str(self.problem),
            "status": self.status,
            "read_as": self.read_as,
            "answer": None if answer is None else str(answer),
            "verdict": None if verdict is None else str(verdict),
            "answers": [
                {
                    "answer": str(text),
                    "verdict": str(verdict),
                    "ended": text.ended,
                    "score": None if text.score is None else round(text.score, 6),
                }
                for text, verdict in self.answers
            ],
            "core": list(self.core),
            "found_by": self.found_by,
            "seconds": round(self.seconds, 6),
            "names": None if self.read is None else list(map(str, self.read.symbols)),
            "tokens": None if self.read is None or self.read.too_long else len(self.read.tokens),
            "error": self.error,
            "notes": self.notes,
            "row": self.row,
        }


@overload
def solve(problems: str, **settings: Any) -> Solution: ...
@overload
def solve(problems: Iterable[str], **settings: Any) -> Iterator[Solution]: ...
def solve(problems: str | Iterable[str], **settings: Any) -> Solution | Iterator[Solution]:
    """Solve a problem, or many: `solve("G(a -> F b)")`.

    The result has the first verified answer, a proof that there is none, or neither. A problem that
    cannot be read, or is too long for the model, is a solution with an error.

    Args:
        problems: a text, or texts; or what the task has read already.
        **settings: those of `Settings`, all of them by name: `task`, `model`, `method`, `timeout`
            and what a model is asked for.

    Returns:
        A solution; of several problems an iterator, which reads on as it is asked.

    Raises:
        ValueError: settings contradict one another; for several problems, once the first solution
            is asked for.
        FileNotFoundError, CheckpointError: the model cannot be loaded.

    Examples:
        >>> solve("(rain -> wet) & rain").answers
        [('rain 1 wet 1', <Verdict.correct: 'correct'>)]
    """
    chosen = Settings(**settings)
    if isinstance(problems, str):
        return next(_solutions([problems], chosen))
    return _solutions(problems, chosen)


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


@dataclass(frozen=True, kw_only=True)
class Settings(Search):
    """How problems are solved: whom is asked, and how a model looks for answers.

    Attributes:
        task: a task or its name; by default that of the model. Without either, the first
            one with a solver that can read the first problem.
        model: a folder, a Hub name, or a pair of a model and its tokenizer; by default the released
            one of the task.
        method: "model"; "solver", which is the task's own (`Task.decide`); or "auto": both, the
            solver first, which is faster, unless something is said that only a model can do.
        timeout: seconds of solvers for a problem.
        notation: of the texts; detected by default.
        device: on which a model is put that is loaded here: `auto`, `cpu`, `cuda:1`.
    """

    task: str | Task | None = None
    model: "str | Path | tuple[Any, Any] | None" = None
    method: str = "auto"
    timeout: float = TIMEOUT
    notation: str | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known("method", self.method, METHODS)
        refuse(
            not self.timeout > 0,
            f"timeout is {self.timeout:g}: give seconds, more than 0",
        )
        refuse(
            self.method == "solver" and self.asks_model,
            "the method 'solver' asks no model: leave out what is meant for one, or take 'auto'",
        )

    @property
    def asks_model(self) -> bool:
        """Whether something is said that only a model can do."""
        chosen = {key for key, value in vars(DEFAULT_SEARCH).items() if getattr(self, key) != value}
        return self.model is not None or bool(chosen - {"batch_size", "scores"})

    def task_of(self, problem: str) -> Task:
        """Return the task, where need be that of a problem."""
        if isinstance(self.model, tuple) and self.task is None:
            raise ValueError("say by `task` which task the model is for")
        if self.model is not None and not isinstance(self.model, tuple):
            from hf_alpha.recipe import recipe_for

            if not isinstance(self.task, Task):
                return recipe_for(str(self.model), self.task).configured_task
        return get_task(self.task or _task_that_reads(problem, self.notation))

    def chain(self, task: Task) -> Chain:
        """Return those who are asked, one behind the other; a model is loaded once it is asked.

        Raises:
            ValueError: the task has no solver, or no model, and that is what was asked for.
        """
        has_model = self.model is not None or task.released_model is not None
        if self.method == "solver" and not task.decides:
            raise ValueError(f"task {name_of(task)!r} has no solver: name a model")
        if not has_model and (self.method == "model" or not task.decides):
            raise ValueError(
                f"no model of task {name_of(task)!r} is released: name one with --model"
            )
        model, solver = cache(lambda: self._loaded(task)), lambda: Solver(self.timeout)
        links: list[Callable[[], Answerer]]
        if self.method == "model" or not task.decides:
            links = [model, Refutation]
        elif self.method == "solver":
            links = [solver]
        else:
            links = [model, solver] if self.asks_model else [solver, *[model] * has_model]
        return Chain(self.method, links, self.top_n)

    def _loaded(self, task: Task) -> Answerer:
        """Load the model."""
        from hf_alpha.answer.models import Model
        from hf_alpha.io.progress import without_bars
        from hf_alpha.loading import load_answering
        from hf_alpha.names.first_look import TrainingFacts
        from hf_alpha.processes import choose_device
        from hf_alpha.resources import released_model

        name, training = MODEL, None
        if isinstance(self.model, tuple):
            model, tokenizer = self.model
        else:
            place = self.model or released_model(task.released_model)
            name = str(self.model or task.released_model).rstrip("/").split("/")[-1]
            device = choose_device(self.device)
            with without_bars():
                model, tokenizer = load_answering(place)
            model = model.to(device)
            if self.model is not None and hasattr(task, "finder"):
                training = TrainingFacts.beside(str(self.model))
        return Model(name, model, tokenizer, self, training)


def _task_that_reads(problem: str, notation: str | None) -> Task:
    """Return the task that can read a formula; if none can, the one that reads most of it."""
    furthest: tuple[int, Task] | None = None
    for name in sorted(built_in_tasks(), key=lambda name: name != DEFAULT_TASK):
        task = get_task(name)
        if not task.decides:
            continue
        try:
            task.read(problem, notation)
        except FormulaError as error:
            if furthest is None or error.position > furthest[0]:
                furthest = error.position, task
        else:
            return task
    assert furthest is not None
    return furthest[1]


def _solutions(problems: Iterable[str], settings: Settings) -> Iterator[Solution]:
    stream = iter(problems)
    readable = []
    for text in stream:
        readable.append(text)
        if not isinstance(text, Line) or text.error is None:
            break
    if not readable:
        return
    task = settings.task_of(readable[-1])
    answerer = settings.chain(task)
    stream = chain(readable, stream)
    while window := list(islice(stream, WINDOW)):
        solutions = [_opened(task, text, settings.notation) for text in window]
        yield from ask(answerer, task, solutions)


def ask(answerer: Answerer, task: Task, solutions: Sequence[Solution]) -> Iterator[Solution]:
    """Ask about all that can be read; yield each solution once it and those before are whole."""
    problems = {index: one.read for index, one in enumerate(solutions) if one.read is not None}
    waiting, done = set(problems), 0
    for replies in answerer.answer(task, problems):
        for index, reply in replies.items():
            solutions[index].take(reply)
        waiting.difference_update(replies)
        while done < len(solutions) and done not in waiting:
            yield solutions[done]
            done += 1
    yield from solutions[done:]


def _opened(task: Task, text: str, notation: str | None) -> Solution:
    """Read a problem."""
    line = text if isinstance(text, Line) else None
    if line is not None and line.error is not None:
        return Solution(str(line), error=line.error)
    given = text.given if isinstance(text, Problem) else str(text)
    try:
        return Solution(given, read=task.read(text if line is None else given, notation))
    except FormulaError as error:
        return Solution(given, error=str(error) if line is None else f"{line.place}: {error}")
