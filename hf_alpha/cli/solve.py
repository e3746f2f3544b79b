"""`hf-alpha solve`: a model answers, and a solver checks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_alpha.cli.common import check_places, quiet_bars, read_inputs, say
from hf_alpha.cli.options import Beams, Device, ModelsTask, by_class, may_trust
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Problem, Task, get_task, name_of
from hf_alpha.tasks.registry import DEFAULT_TASK

if TYPE_CHECKING:
    from hf_alpha.solve import Solution


BEST = 10
"""Answers among which a correct one is looked for."""
PROBLEM = "problem"
"""Column of data that is generated."""

Formulas = Annotated[
    list[str] | None, typer.Argument(help="Prefix or infix; standard input if there are none.")
]
File = Annotated[
    Path | None,
    typer.Option(
        help="File with a formula in each line; or *.jsonl, for texts of several lines: in "
        "each line a string, or a row like those of your data."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(help="Folder or Hub name; by default the released one of the task."),
]
Top = Annotated[int | None, typer.Option(min=1, help="Print the N best answers; 1 by default.")]
FirstCorrect = Annotated[
    bool,
    typer.Option(
        "--first-correct",
        help="Print the first of the N best answers (--top, 10 by default, of as many beams) "
        "that is correct, or else the best.",
    ),
]
MaxNewTokens = Annotated[
    int | None,
    typer.Option(min=1, help="Tokens in an answer; by default the model's own limit."),
]
Notation = Annotated[
    str | None, typer.Option(help="prefix, compact or infix; detected by default.")
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        help="Texts, where a rule reads names from a column: those of your texts, zoe,max, or "
        "person=zoe,max, once for each class."
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Say why an answer is right or wrong: a table of subformulas, or your check's words.",
    ),
]


@may_trust("model")
def solve(
    formulas: Formulas = None,
    file: File = None,
    model: Model = None,
    task: ModelsTask = None,
    top: Top = None,
    first_correct: FirstCorrect = False,
    beams: Beams = None,
    max_new_tokens: MaxNewTokens = None,
    notation: Notation = None,
    names: Names = None,
    explain: Explain = False,
    device: Device = "auto",
) -> None:
    """Solve formulas, and check every answer with a solver; or have a model answer your texts.

    hf-alpha solve 'request & !grant' '|a&bc'

    Models always answer. Where no answer is right and the solver proves that the formula has none,
    it says unsatisfiable in place of them.

    Formulas that begin with - come after --: hf-alpha solve --top 2 -- '->ab'
    """
    solved_task, column = _task_of(task, model)
    texts = read_inputs(formulas, file, "formula", _reader(solved_task, column, file))
    if notation is not None and solved_task.grammar is None:
        raise ValueError(
            f"--notation: problems of task {solved_task.name!r} have one notation only"
        )
    if first_correct and not solved_task.has_check:
        raise ValueError(f"--first-correct: task {solved_task.name!r} has no check of answers")
    if names:
        texts = _with_names(texts, names, solved_task)
    readings = [_read(solved_task, text, notation) for text in texts]
    problems = [reading for reading in readings if isinstance(reading, Problem)]
    settings = {
        "top": top or (BEST if first_correct else 1),
        "first_correct": first_correct,
        "num_beams": beams,
        "max_new_tokens": max_new_tokens,
    }
    solutions = _solutions(problems, model, solved_task, device, settings)
    unsolved = 0
    notes_of = _notes(solved_task, model)
    for text, reading in zip(texts, readings, strict=True):
        if isinstance(reading, Problem):
            for note in notes_of(reading):
                say(f"note: {note}", err=True)
            unsolved += not _show(solved_task, reading, next(solutions), explain)
        else:
            say(text)
            say(f"  error: {reading}", err=True)
            unsolved += 1
    if unsolved:
        raise typer.Exit(1)


def _task_of(name: str | None, model: str | None) -> tuple[Task, str]:
    """Return the task of this name, or that of the model, and the column of its data's problems."""
    if model is None:
        return get_task(name or DEFAULT_TASK), PROBLEM
    check_places(model)
    quiet_bars()
    from hf_alpha.recipe import OwnRecipe, recipe_for

    recipe = recipe_for(model, name)
    return recipe.solved, recipe.data.source if isinstance(recipe, OwnRecipe) else PROBLEM


def _notes(task: Task, model: str | None) -> Callable[[str], list[str]]:
    """Return what says how the names of a text differ from those that a model was trained on."""
    finder = getattr(task, "finder", None)
    if model is None or finder is None:
        return lambda _: []
    from hf_alpha.data.unlike_training import TrainingFacts

    facts = TrainingFacts.beside(model)
    return lambda text: [] if facts is None else facts.notes(text, finder)


def _reader(task: Task, column: str, file: Path | None) -> Callable[[dict[str, Any], int], str]:
    """Return what gives the problem of a row, with the names that its columns list."""

    def read(row: dict[str, Any], number: int) -> str:
        from hf_alpha.data.pairs import problem_of

        if (finder := getattr(task, "finder", None)) is not None:
            return problem_of(row, column, finder, str(file), number)
        if not isinstance(text := row.get(column), str):
            raise ValueError(f"{file}, row {number}: the column {column!r} holds no text")
        return text

    return read


def _with_names(texts: list[str], options: list[str], task: Task) -> list[str]:
    """Mark names in texts, as the column of a rule does for a row.

    Raises:
        ValueError: the task finds no names by rules, it is not clear of which class names are, or
            one stands in no text.
    """
    finder = getattr(task, "finder", None)
    if finder is None or not finder.rules:
        raise ValueError(f"--names is for texts with rules for names: {task.name!r} has none")
    by_row = [name for name, rule in finder.rules.items() if rule.by_row]
    classes = by_row or list(finder.rules)
    names_of: dict[str, list[str]] = {}
    for option in options:
        for kind, listed in by_class(option).items():
            if kind not in finder.rules and (kind or len(classes) > 1):
                rules = ", ".join(finder.rules)
                raise ValueError(
                    f"--names {option}: write {classes[0]}=..., with one of the classes {rules}"
                )
            names = filter(None, map(str.strip, listed.split(",")))
            names_of.setdefault(kind or classes[0], []).extend(names)
    marked = [finder.mark(text, names_of) for text in texts]
    present = {text[start:stop] for text in marked for start, stop, _ in text.spans}
    if absent := [name for names in names_of.values() for name in names if name not in present]:
        raise ValueError(f"--names: {absent[0]!r} stands in no text, or not as a whole word")
    return marked


def _read(task: Task, text: str, notation: str | None) -> Problem | FormulaError:
    """Return the problem that a text is, or why it is none; torch is not loaded for it."""
    try:
        return task.read(text, notation)
    except FormulaError as error:
        return error


def _solutions(
    problems: list[Problem],
    model: str | None,
    task: Task,
    device: str,
    settings: dict[str, Any],
) -> "Iterator[Solution]":
    """Load a model, at the first problem, and solve; `settings` are arguments of `solve`."""
    quiet_bars()
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.processes import choose_device
    from hf_alpha.resources import resource_path
    from hf_alpha.solve import solve as run

    accelerator = choose_device(device)
    if model is None and task.released_model is None:
        raise ValueError(f"no model of task {name_of(task)!r} is released: name one with --model")
    folder = model or resource_path("model_cards", f"{task.released_model}")
    trained_model, tokenizer = load_checkpoint(folder)
    yield from run(trained_model.to(accelerator), tokenizer, task, problems, **settings)


def _show(task: Task, problem: Problem, solution: "Solution", explain: bool) -> bool:
    """Print a solution, and return whether the problem is solved, or answered if none checks."""
    say(solution.problem)
    if solution.read_as is not None:
        say(f"  {'read as':<10} {solution.read_as}")
    if solution.error:
        say(f"  error: {solution.error}", err=True)
    if solution.unsatisfiable:
        say("  unsatisfiable")
        return False
    for answer, verdict in solution.answers:
        say(task.answer_line(verdict.value if task.has_check else "answer", answer))
        if not answer.ended:
            say("  note: that answer is cut off: raise --max-new-tokens", err=True)
        if explain:
            say(indent(task.explain(problem, answer).text(), "    "))
    return solution.solved if task.has_check else bool(solution.answers)


__all__ = ["solve"]
