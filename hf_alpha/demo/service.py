"""What page and API ask: a problem of limited size, its answers, and those to another spelling."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from hf_alpha.demo.renaming import renamed_problem, renamed_text
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.grammar import check_unicode
from hf_alpha.plain_text import printable
from hf_alpha.processes import choose_device
from hf_alpha.recipe import recipe_for
from hf_alpha.resources import released_models
from hf_alpha.solving import MODEL, Solution, solve
from hf_alpha.tasks import Problem, Task, Verdict, get_task
from hf_alpha.tasks.checking import Answer
from hf_alpha.tasks.explanation import Explanation
from hf_alpha.tasks.registry import built_in_tasks

MAX_CHARACTERS = 4_000
"""Characters of a problem."""
MAX_TOKENS = 500
"""Tokens of a problem, once its operators are rewritten."""
MAX_ANSWERS = 10
"""Answers to a problem: as many as there are beams."""


@dataclass(frozen=True)
class Shown:
    """An answer with its verdict, and why.

    Attributes:
        text: in the problem's own names.
        verdict: None where the task has no check.
        explanation: of the verdict.
        ended: whether it is whole; else the limit of its length has cut it off.
    """

    text: str
    verdict: Verdict | None
    explanation: Explanation
    ended: bool = True

    @property
    def label(self) -> str:
        """The verdict, or that there is none."""
        return "answer" if self.verdict is None else self.verdict.value


@dataclass(frozen=True)
class Reply:
    """What a problem got.

    Attributes:
        asked: name of who was asked first.
        solution: what is known of the problem.
        answers: those of the solution, as they are shown; none if it is unsatisfiable.
    """

    asked: str
    solution: Solution
    answers: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Renamed:
    """A problem, and the same one with other names.

    Attributes:
        before: the answer to the problem as it was given.
        after: the answer to the problem with other names.
        names: name -> other name.
        same: both answers are the same but for the names; None if one of them is missing.
    """

    before: Reply
    after: Reply
    names: dict[str, str]
    same: bool | None


@dataclass(frozen=True)
class Choice:
    """Who can be asked.

    Attributes:
        name: on the page.
        task: what is solved.
    """

    name: str
    task: Task


@dataclass(frozen=True)
class Solver(Choice):
    """The task's own solver, and no model."""

    def settings(self, answers: int, device: str) -> dict[str, Any]:
        """Return what `solve` is told; a solver gives one answer, however many are asked for."""
        return {"task": self.task, "method": "solver"}


@dataclass(frozen=True)
class Model(Choice):
    """A model; where it has no right answer, the task's solver is asked, if there is one.

    Attributes:
        place: folder or Hub name.
    """

    place: str

    @cached_property
    def loaded(self) -> tuple[Any, Any]:
        """Model and tokenizer."""
        return load_checkpoint(self.place)

    def settings(self, answers: int, device: str) -> dict[str, Any]:
        """Return what `solve` is told."""
        model, tokenizer = self.loaded
        return {"task": self.task, "model": (model.to(choose_device(device)), tokenizer),
                "top": answers}  # fmt: skip


@dataclass(frozen=True)
class Service:
    """Answers problems, one at a time.

    Attributes:
        models: of which the first of a task is its default.
        device: as `choose_device` takes it.
    """

    models: Sequence[Model]
    device: str = "auto"
    _lock: Lock = field(default_factory=Lock, repr=False)

    @cached_property
    def choices(self) -> list[Model | Solver]:
        """The models, and the solvers of their tasks that have one."""
        tasks = {model.task.name: model.task for model in self.models}
        solvers = [Solver(f"{name}-solver", task) for name, task in tasks.items() if task.decides]
        return [*self.models, *solvers]

    def tasks(self) -> list[str]:
        """Return the names of the tasks, in the order of their models."""
        return list(dict.fromkeys(choice.task.name for choice in self.choices))

    def names(self, task: str) -> list[str]:
        """Return the names of those who can be asked about a task."""
        return [choice.name for choice in self.choices if choice.task.name == task]

    def choice(self, name: str) -> Model | Solver:
        """Return a model or solver by its name.

        Raises:
            ValueError: there is none.
        """
        found = next((choice for choice in self.choices if choice.name == name), None)
        if found is None:
            names = ", ".join(choice.name for choice in self.choices)
            raise ValueError(f"there is no model {name!r}: choose one of {names}")
        return found

    def solve(self, problem: str, asked: str, answers: int = 1) -> Reply:
        """Answer a problem; whatever is wrong with it is the solution's error.

        Args:
            problem: a text.
            asked: name of a model or solver.
            answers: how many, at most `MAX_ANSWERS`.
        """
        try:
            if not isinstance(problem, str):
                raise ValueError("the problem is no text")
            choice = self.choice(asked)
            if type(answers) is not int or not 1 <= answers <= MAX_ANSWERS:
                raise ValueError(f"ask for 1 to {MAX_ANSWERS} answers, not {answers}")
            reading = _read(choice.task, problem)
        except ValueError as error:
            return Reply(
                asked, Solution(printable(f"{problem}"[:MAX_CHARACTERS]), error=str(error))
            )
        with self._lock:
            (solution,) = solve([reading], **choice.settings(answers, self.device))
            if solution.found_by == MODEL:
                solution.found_by = choice.name
            pairs = () if solution.unsatisfiable else solution.answers
            return Reply(asked, solution, tuple(_shown(choice.task, reading, *x) for x in pairs))

    def rename(self, problem: str, asked: str, seed: int | None = None) -> Renamed:
        """Answer a problem, and the same one with other names.

        Args:
            problem: a text.
            asked: name of a model or solver.
            seed: of the names; None for others each time.
        """
        before = self.solve(problem, asked)
        if before.solution.read is None:
            return Renamed(before, before, {}, None)
        task, reading = self.choice(asked).task, before.solution.read
        try:
            text, names = renamed_problem(task, reading, random.Random(seed))
        except ValueError as error:
            refused = Reply(asked, Solution(problem, error=str(error)))
            return Renamed(before, refused, {}, None)
        after = self.solve(text, asked)
        if not before.answers or not after.answers:
            proved = before.solution.unsatisfiable and after.solution.unsatisfiable
            return Renamed(before, after, names, True if proved else None)
        expected = renamed_text(task, reading, before.answers[0].text, names)
        same = expected.split() == after.answers[0].text.split()
        return Renamed(before, after, names, same)


def page_models(places: Sequence[str] = (), task: str | None = None) -> list[Model]:
    """Return the models that a page offers: those named, or those released of tasks with one.

    Args:
        places: folders or Hub names.
        task: of these models, where nothing beside them says it.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: a model does not answer with text, or two have the same name.
    """
    if not places:
        return _released()
    named = [Model(_name(place), recipe_for(place, task).solved, place) for place in places]
    if twice := [one.name for one in named if [x.name for x in named].count(one.name) > 1]:
        raise ValueError(f"two models are called {twice[0]!r}: rename a folder")
    for one in named:
        assert one.loaded  # what is wrong with a model is said before the page opens
    return named


def _released() -> list[Model]:
    found, folders = [], released_models()
    for name in sorted(built_in_tasks(), key=lambda name: get_task(name).grammar is None):
        task = get_task(name)
        if task.released_model is None:
            continue
        names = [x for x in folders if x.startswith(f"{name}-")]
        names.sort(key=lambda x: x != task.released_model)
        found += [Model(x, task, str(folders[x])) for x in names]
    return found


def _name(place: str) -> str:
    return place.rstrip("/").rsplit("/", 1)[-1]


def _read(task: Task, problem: str) -> Problem:
    """Read a problem of limited size.

    Raises:
        ValueError: it is empty, too long, or no problem of the task.
    """
    check_unicode(problem)
    if not problem.strip():
        raise ValueError("the problem is empty: write one, or take an example")
    if len(problem) > MAX_CHARACTERS:
        raise ValueError(
            f"the problem has {len(problem):,} characters, and this page takes {MAX_CHARACTERS:,}: "
            "longer ones are for hf-alpha solve"
        )
    reading = task.read(problem)
    if max(len(reading.tokens), len(reading.written)) > MAX_TOKENS:
        raise ValueError(
            f"the problem has {len(reading.tokens):,} tokens, and this page takes {MAX_TOKENS:,}: "
            "longer ones are for hf-alpha solve"
        )
    return reading


def _shown(task: Task, problem: Problem, answer: Answer, verdict: Verdict) -> Shown:
    return Shown(
        answer or task.empty_answer,
        verdict if task.has_check else None,
        task.explain(problem, answer) if task.has_check else Explanation(()),
        answer.ended,
    )


__all__ = [
    "MAX_ANSWERS", "MAX_CHARACTERS", "Choice", "Model", "Renamed", "Reply", "Service", "Shown",
    "Solver", "page_models",
]  # fmt: skip
