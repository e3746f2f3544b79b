"""Solve problems by a model, by a solver or by both, and check every answer.

Problems are taken from a stream in windows, so that memory stays constant, a model answers in
batches, and answers come in the order of the input. Torch is loaded once a model is asked.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, overload

from hf_alpha.modeling.choices import check_known
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
BATCH_SIZE = 64
BATCH_TOKENS = 64 * 256
"""Tokens of a batch with its padding: long problems make smaller batches."""
MODEL = "model"
"""What a model without a folder is called."""


class Line(str):
    """A problem that stands in a line of a file.

    Attributes:
        place: where, for errors.
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
        problem: as it was given.
        answers: best first, in the problem's own names, each with its verdict; `answer.ended` says
            whether it is whole.
        error: why there is no answer.
        read_as: the problem in infix, if operators of it were rewritten while reading.
        unsatisfiable: it is proved that no answer is right; asked only if none of these is.
        core: parts of an unsatisfiable problem that contradict one another already; empty where
            there is nothing to choose from.
        found_by: the model or solver that found the first answer, or the proof.
        seconds: that it took, checks included; of a batch, its share.
        notes: why the model's answers may be wrong: words that it does not know, more names than
            training had.
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
                {"answer": str(text), "verdict": str(verdict), "ended": text.ended}
                for text, verdict in self.answers
            ],
            "core": list(self.core),
            "found_by": self.found_by,
            "seconds": round(self.seconds, 6),
            "names": None if self.read is None else list(map(str, self.read.symbols)),
            "tokens": None if self.read is None or self.read.too_long else len(self.read.tokens),
            "error": self.error,
            "notes": self.notes,
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
    """
    chosen = Settings(**settings)
    if isinstance(problems, str):
        return next(_solutions([problems], chosen))
    return _solutions(problems, chosen)


@dataclass(frozen=True)
class Settings:
    """How problems are solved.

    Attributes:
        task: a task or its name; by default that of the model. Without either, the first
            one with a solver that can read the first problem.
        model: a folder, a Hub name, or a pair of a model and its tokenizer; by default the released
            one of the task.
        method: "model"; "solver", which is the task's own (`Task.decide`); or "auto": both, the
            solver first, which is faster, unless something is said that only a model can do.
        timeout: seconds of solvers for a problem.
        top: answers of a solution. A search has at least as many beams.
        first_correct: a solution has one answer, the first correct one of `top`, or else the best;
            those behind it are not checked.
        num_beams: by default the papers'.
        max_new_tokens: limit of an answer's length; by default the model's own.
        grammar: a model can write nothing that is no answer of the task (`Task.answer_mask`).
        notation: of the texts; detected by default.
        device: on which a model is put that is loaded here: `auto`, `cpu`, `cuda:1`.
        batch_size: problems that a model answers at once.
    """

    task: str | Task | None = None
    model: "str | Path | tuple[Any, Any] | None" = None
    method: str = "auto"
    timeout: float = TIMEOUT
    top: int = 1
    first_correct: bool = False
    num_beams: int | None = None
    max_new_tokens: int | None = None
    grammar: bool = False
    notation: str | None = None
    device: str = "auto"
    batch_size: int = BATCH_SIZE

    def __post_init__(self) -> None:
        check_known("method", self.method, METHODS)
        if not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout:g}: give seconds, more than 0")
        if self.top < 1:
            raise ValueError(f"top is {self.top}: give 1 or more")
        if self.method == "solver" and self.asks_model:
            raise ValueError(
                "the method 'solver' asks no model: leave out what is meant for one, or take 'auto'"
            )

    @property
    def asks_model(self) -> bool:
        """Whether something is said that only a model can do."""
        return (
            self.model is not None
            or self.top > 1
            or self.first_correct
            or self.grammar
            or any(value is not None for value in (self.num_beams, self.max_new_tokens))
        )

    def task_of(self, problem: str) -> Task:
        """Return the task, where need be that of a problem."""
        if isinstance(self.model, tuple) and self.task is None:
            raise ValueError("say by `task` which task the model is for")
        if self.model is not None and not isinstance(self.model, tuple):
            from hf_alpha.recipe import recipe_for

            if not isinstance(self.task, Task):
                return recipe_for(str(self.model), self.task).solved
        return get_task(self.task or _task_that_reads(problem, self.notation))

    def finders(self, task: Task) -> "list[Finder]":
        """Return who is asked, one after the other.

        Raises:
            ValueError: the task has no solver, or no model, and that is what was asked for.
        """
        if self.method == "solver" and not task.decides:
            raise ValueError(f"task {name_of(task)!r} has no solver: name a model")
        has_model = self.model is not None or task.released_model is not None
        if not has_model and (self.method == "model" or not task.decides):
            raise ValueError(
                f"no model of task {name_of(task)!r} is released: name one with --model"
            )
        if self.method == "model" or not task.decides:
            return [AskedModel(task, self), Refutation(task)]
        if self.method == "solver":
            return [AskedSolver(task, self)]
        if self.asks_model:
            return [AskedModel(task, self), AskedSolver(task, self)]
        return [AskedSolver(task, self), *[AskedModel(task, self)] * has_model]


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
    finders = settings.finders(task)
    stream = chain(readable, stream)
    while window := list(islice(stream, WINDOW)):
        solutions = [_opened(task, text, settings.notation) for text in window]
        undecided = [solution for solution in solutions if solution.read is not None]
        for finder in finders:
            finder.solve(undecided)
            undecided = [one for one in undecided if not one.solved and not one.unsatisfiable]
        yield from solutions


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


class Finder(Protocol):
    """Who looks for answers."""

    def solve(self, solutions: Sequence[Solution]) -> None:
        """Fill in what is found; every one of these has been read."""


class AskedSolver:
    """The task's own solver."""

    def __init__(self, task: Task, settings: Settings):
        self._task, self._settings = task, settings

    def solve(self, solutions: Sequence[Solution]) -> None:
        """Have each problem decided within the limit of time."""
        for solution in solutions:
            start = time.perf_counter()
            self._solve(solution)
            solution.seconds += time.perf_counter() - start

    def _solve(self, solution: Solution) -> None:
        task, problem = self._task, solution.read
        assert problem is not None
        if solution.read_as is None:
            solution.read_as = _read_as(task.grammar, problem)
        decision = task.decide(problem, self._settings.timeout)
        if decision.unsatisfiable:
            solution.unsatisfiable, solution.core = True, decision.core
        elif decision.answer is None:
            solution.error = decision.reason
            return
        else:
            answer = Answer(decision.answer)
            verdict = check_answer(task, problem, answer, timeout=self._settings.timeout)
            if not verdict.is_correct:
                solution.error = f"the answer of {decision.by}, {answer!r}, is {verdict}"
                return
            room = 1 if self._settings.first_correct else self._settings.top
            solution.answers = [(answer, verdict), *solution.answers][:room]
        solution.found_by, solution.error = decision.by, None


class Refutation:
    """Whatever proves, after the model's answers, that none is right."""

    def __init__(self, task: Task):
        self._task = task

    def solve(self, solutions: Sequence[Solution]) -> None:
        """Ask the task whether problems that were answered have an answer."""
        for solution in solutions:
            problem = solution.read
            if solution.error is None and problem is not None:
                solution.unsatisfiable = self._task.has_answer(problem) is False


class AskedModel:
    """A model, and the task's check of its answers."""

    def __init__(self, task: Task, settings: Settings):
        self._task, self._settings = task, settings
        model = settings.model or task.released_model
        self._name = MODEL if isinstance(model, tuple) else str(model).rstrip("/").split("/")[-1]

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """Model and tokenizer."""
        from hf_alpha.loading import load_checkpoint
        from hf_alpha.processes import choose_device
        from hf_alpha.progress import without_bars
        from hf_alpha.resources import released_model

        model = self._settings.model
        if not isinstance(model, tuple):
            device = choose_device(self._settings.device)
            folder = model or released_model(self._task.released_model)
            with without_bars():
                loaded, tokenizer = load_checkpoint(folder)
            model = loaded.to(device), tokenizer
        self._task.prepare(model[1])
        return model

    @cached_property
    def _training(self) -> Any:
        """What training has left beside a model that was named; None where there is nothing."""
        from hf_alpha.first_look import TrainingFacts

        model = self._settings.model
        if model is None or isinstance(model, tuple) or not hasattr(self._task, "finder"):
            return None
        return TrainingFacts.beside(str(model))

    def _notes(self, tokenizer: Any, problem: Problem) -> Iterator[str]:
        from hf_alpha.first_look import listed, unknown_words

        if self._training is not None:
            yield from self._training.notes(problem, self._task.finder)  # type: ignore[attr-defined]
        (words,) = unknown_words(tokenizer, [problem])
        if words:
            yield f"unknown to the model, and no name by its rules: {listed(words)}"

    def solve(self, solutions: Sequence[Solution]) -> None:
        """Answer in batches of problems of like length, and check the answers."""
        if not solutions:
            return
        for solution, answers, seconds in self._answered(solutions):
            start = time.perf_counter()
            problem, task = solution.read, self._task
            assert problem is not None
            pairs = ((answer, check_answer(task, problem, answer)) for answer in answers)
            first = self._settings.first_correct
            solution.answers = _first_correct(pairs) if first else list(pairs)
            solution.seconds += seconds + time.perf_counter() - start
            solution.error, solution.found_by = None, self._name

    def _answered(
        self, solutions: Sequence[Solution]
    ) -> Iterator[tuple[Solution, list[Answer], float]]:
        """Give, batch by batch, solutions with the model's answers and seconds for each."""
        from hf_alpha.generation import (
            answer_batches,
            beam_search,
            extend_vocabulary,
            own_limit,
            plan_batches,
            search_settings,
        )

        (model, tokenizer), settings = self._loaded, self._settings
        problems = [solution.read for solution in solutions if solution.read is not None]
        extend_vocabulary(model, tokenizer, self._task.needed_symbols(problems))
        num_beams = max(settings.num_beams or self._task.num_beams, settings.top)
        max_new_tokens = settings.max_new_tokens or own_limit(model)
        search = search_settings(num_beams, 1.0, max_new_tokens, settings.top)
        if settings.grammar:
            search["logits_processor"] = [self._by_grammar(model, tokenizer)]
        encodings = [self._encoded(solution, max_new_tokens) for solution in solutions]
        sizes = [len(encoding["input_ids"]) if encoding else 0 for encoding in encodings]
        batches = _within(plan_batches(encodings, settings.batch_size), sizes, BATCH_TOKENS)
        answer = beam_search(model, tokenizer, encodings, search)
        start = time.perf_counter()
        for batch, answers in answer_batches(model, batches, answer, "", progress=False):
            seconds = (time.perf_counter() - start) / len(batch)
            for index, own in zip(batch, answers, strict=True):
                yield solutions[index], own, seconds
            start = time.perf_counter()

    def _by_grammar(self, model: Any, tokenizer: Any) -> Any:
        """Return what keeps a model to the grammar of answers.

        Raises:
            ValueError: the task has none, or the model is a decoder alone.
        """
        from hf_alpha.generation import MaskedTokens

        mask = self._task.answer_mask(tokenizer)
        if mask is None or not model.config.is_encoder_decoder:
            what = "this task" if mask is None else "answers of a decoder alone"
            raise ValueError(f"there is no grammar of answers for {what}: leave out `grammar`")
        return MaskedTokens(mask)

    def _encoded(self, solution: Solution, max_new_tokens: int) -> Any:
        """Encode a problem; None, and an error, if the model cannot take it."""
        from hf_alpha.generation import InputTooLong, answer_room, encode_problem

        model, tokenizer = self._loaded
        problem = solution.read
        assert problem is not None
        if solution.read_as is None:
            solution.read_as = _read_as(getattr(tokenizer, "grammar", None), problem)
        try:
            encoding = encode_problem(tokenizer, problem)
            if encoding is None:
                raise FormulaError(_too_many_names(model, tokenizer))
            solution.notes = list(self._notes(tokenizer, problem))
            answer_room(model.config, len(encoding["input_ids"]), max_new_tokens, "the problem")
        except (FormulaError, InputTooLong) as error:
            solution.error = str(error) if solution.error is None else f"{solution.error}; {error}"
            return None
        return encoding


def _within(
    batches: Iterable[list[int]], sizes: Sequence[int], most_tokens: int
) -> list[list[int]]:
    """Split batches that have, with padding, more tokens; a problem alone may have more."""
    split = []
    for batch in batches:
        part: list[int] = []
        for index in batch:
            longest = max(sizes[one] for one in [*part, index])
            if part and longest * (len(part) + 1) > most_tokens:
                split.append(part)
                part = []
            part.append(index)
        split.append(part)
    return split


def _first_correct(judged: Iterable[tuple[Answer, Verdict]]) -> list[tuple[Answer, Verdict]]:
    """Return the first correct answer, or else the best one; none if there are none."""
    best: list[tuple[Answer, Verdict]] = []
    for answer, verdict in judged:
        if verdict.is_correct:
            return [(answer, verdict)]
        best = best or [(answer, verdict)]
    return best


def _too_many_names(model: Any, tokenizer: Any) -> str:
    num_symbols = sum(tokenizer.symbol_classes.values())
    if model.config.encoding.no_extension:
        advice = (
            "convert it to 'streams' or 'relational' (hf-alpha convert), which take any number"
            if model.config.is_encoder_decoder
            else "train one with more (num_symbols)"
        )
        return f"more names than the {num_symbols} symbols that this model was trained on; {advice}"
    return (
        f"more names than {num_symbols} symbols: call extend_symbols on the model and the tokenizer"
    )


def _read_as(grammar: Grammar | None, problem: Problem) -> str | None:
    """Return a problem in infix as a grammar reads it, if that rewrites its operators."""
    if not grammar or problem.too_long or grammar.derived.keys().isdisjoint(problem.written):
        return None
    grammar = Grammar.from_dict(grammar.to_dict())  # a checkpoint's may be of an older version
    try:
        return grammar.format(grammar.rewritten([*problem.written]), "infix")
    except FormulaError:  # it is too long
        return None


__all__ = ["METHODS", "TIMEOUT", "Line", "Settings", "Solution", "solve"]
