"""Who can be asked on the page: what is answered, and what under other names, within limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from hf_alpha.answer.solving import MODEL, Solution, solve
from hf_alpha.io.plain_text import printable
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.grammar import check_unicode
from hf_alpha.modeling.spans import parts, without_spelling
from hf_alpha.names.given_names import classes_by_row, mark_names, read_names
from hf_alpha.processes import choose_device
from hf_alpha.recipe import recipe_for
from hf_alpha.resources import released_model
from hf_alpha.tasks import Problem, Task, get_task
from hf_alpha.tasks.registry import built_in_tasks

MAX_CHARACTERS = 4_000
"""Characters of a problem."""
MAX_TOKENS = 500
"""Tokens of a problem, once its operators are rewritten."""
MAX_ANSWERS = 10
"""Answers to a problem: as many as there are beams."""


@dataclass(frozen=True)
class Renamed:
    """A problem, and the same one with other names.

    Attributes:
        before: what the problem got as it was given.
        after: what it got with other names; None if it cannot be read.
        names: name -> other name.
        same: both answers are the same but for the names; None if one of them is missing.
    """

    before: Solution
    after: Solution | None = None
    names: dict[str, str] = field(default_factory=dict)
    same: bool | None = None


@dataclass(frozen=True)
class Choice:
    """A model, and behind it the task's solver, or that solver alone. Not for several threads.

    Attributes:
        place: folder or Hub name of the model; None of a solver.
    """

    name: str
    task: Task
    place: str | None = None
    device: str = "auto"

    @cached_property
    def loaded(self) -> tuple[Any, Any]:
        """Model and tokenizer."""
        model, tokenizer = load_checkpoint(str(self.place))
        return model.to(choose_device(self.device)), tokenizer

    @property
    def names_by_row(self) -> list[str]:
        """The classes whose names are given with each problem."""
        return classes_by_row(self.task)

    def solve(self, problem: str, answers: int = 1, names: str = "") -> Solution:
        """Answer a problem; whatever is wrong with it is the solution's error.

        Args:
            answers: how many; a solver gives one, and there is none to what is unsatisfiable.
            names: of the problem, `zoe,max` or `person=zoe,max`, where no rule finds them.
        """
        try:
            if names.strip():
                (problem,) = mark_names([problem], read_names([names], self.task), self.task)
            elif self.names_by_row and problem.strip():
                raise ValueError(
                    f"the names of {', '.join(self.names_by_row)} are given with each text: write "
                    "those of this one, with commas between, below Names"
                )
            _check_size(self.task, problem)
        except ValueError as error:
            return Solution(printable(problem[:MAX_CHARACTERS]), error=str(error))
        model = {} if self.place is None else {"model": self.loaded, "top_n": answers}
        solution = solve(problem, task=self.task, **model or {"method": "solver"})
        if solution.found_by == MODEL:
            solution.found_by = self.name
        if solution.unsatisfiable:
            solution.answers = []
        return solution

    def rename(self, problem: str, answers: int = 1, names: str = "") -> Renamed:
        """Answer a problem, and the same one with other names."""
        before = self.solve(problem, answers, names)
        if before.read is None:
            return Renamed(before)
        try:
            others = other_names(self.task, before.read)
        except ValueError as error:
            return Renamed(before, Solution(problem, error=str(error)))
        # Names of a text change places, so that those that were given are names in the other one.
        text = renamed_text(self.task, before.read, before.read, others)
        after = self.solve(text, answers, names)
        if before.answers and after.answers:
            (old, _), (new, _) = before.answers[0], after.answers[0]
            texts = [renamed_text(self.task, before.read, old, others), new]
            if finder := getattr(self.task, "finder", None):  # spellings of bindings do not count
                texts = [without_spelling(text, finder.find(text, {})) for text in texts]
            same = len({" ".join(text.split()) for text in texts}) == 1
            return Renamed(before, after, others, same)
        proved = before.unsatisfiable and after.unsatisfiable
        return Renamed(before, after, others, True if proved else None)


def page_choices(
    places: Sequence[str] = (), task: str | None = None, device: str = "auto"
) -> dict[str, Choice]:
    """Return who can be asked on a page, by name: models, and the solvers of their tasks.

    Args:
        places: folders or Hub names; by default the released model of each task that has one.
        task: of these models, where nothing beside them says it.

    Raises:
        FileNotFoundError: there is no such model.
        ValueError: a model does not answer with text, or two have the same name.
    """
    if not places:
        tasks = sorted(map(get_task, built_in_tasks()), key=lambda task: task.grammar is None)
        places = [str(released_model(one.released_model)) for one in tasks if one.released_model]
    choices: dict[str, Choice] = {}
    for place in places:
        name = place.rstrip("/").rsplit("/", 1)[-1]
        if name in choices:
            raise ValueError(f"two models are called {name!r}: rename a folder")
        choices[name] = Choice(name, recipe_for(place, task).configured_task, place, device)
        assert choices[name].loaded  # what is wrong with a model is said before the page opens
    for decided in {choice.task.name: choice.task for choice in choices.values()}.values():
        if decided.decides:
            choices[f"{decided.name}-solver"] = Choice(f"{decided.name}-solver", decided)
    return choices


def _check_size(task: Task, problem: str) -> None:
    """Refuse a problem that is empty, too long for the page, or none of the task."""
    check_unicode(problem)
    if not problem.strip():
        raise ValueError("the problem is empty: write one, or take an example")
    reading = task.read(problem)
    num_tokens = max(len(reading.tokens), len(reading.written))
    for size, limit, unit in (
        (len(problem), MAX_CHARACTERS, "characters"),
        (num_tokens, MAX_TOKENS, "tokens"),
    ):
        if size > limit:
            raise ValueError(
                f"the problem has {size:,} {unit}, and this page takes {limit:,}: longer ones are "
                "for hf-alpha solve"
            )


def other_names(task: Task, problem: Problem) -> dict[str, str]:
    """Return what each name of a problem is called instead.

    Names of a formula become numbers of names that it lacks. Names of a text change places with
    others of their class, as only the text's rules know what may be a name.

    Raises:
        ValueError: a text has no two names of one class.
    """
    if task.grammar is not None:
        free = (name for i in count(1) if (name := f"name{i}") not in problem.symbols)
        return dict(zip(problem.symbols, free, strict=False))
    classes: dict[str, dict[str, None]] = {}
    for symbol in problem.symbols:  # bindings may be spelled alike
        classes.setdefault(getattr(symbol, "symbol_class", ""), {})[str(symbol)] = None
    names: dict[str, str] = {}
    for first, *others in classes.values():
        if twice := names.keys() & {first, *others}:
            raise ValueError(f"the name {min(twice)!r} is one of two classes")
        names |= zip([first, *others], [*others, first], strict=True)
    if all(name == other for name, other in names.items()):
        raise ValueError("there are no two names of one class that could change places")
    return names


def renamed_text(task: Task, problem: Problem, text: str, names: Mapping[str, str]) -> str:
    """Return a problem, its operators as they were written, or an answer with other names.

    Args:
        problem: the problem, whose names are names in an answer too.
        text: what to rename: the problem itself, or an answer.
        names: name -> other name.
    """
    if task.grammar is not None and text is problem:
        tokens = [names.get(token, token) for token in problem.written]
        return task.grammar.as_written().format(tokens, "infix")
    finder = getattr(task, "finder", None)
    if finder is None:
        return task.rename(text, names)
    classes = {str(symbol): symbol.symbol_class for symbol in problem.symbols}  # type: ignore[attr-defined]
    written = ""
    for part, span in parts(text, finder.find(text, classes)):
        name = "" if span is None else text[span.start : span.stop]
        written += part + names.get(name, name)
    return written
