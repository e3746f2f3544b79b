"""`hf-alpha solve`: a model answers, and a solver checks."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_alpha.cli.common import check_places, quiet_bars, read_inputs, say
from hf_alpha.cli.options import Beams, Device, ModelsTask, by_class, may_trust
from hf_alpha.tasks.registry import DEFAULT_TASK

if TYPE_CHECKING:
    from hf_alpha.solve import Solution
    from hf_alpha.tasks import Task


TRIED = 10  # answers among which solve looks for a correct one
PROBLEM = "problem"  # column of data that is generated


@may_trust("model")
def solve(
    formulas: Annotated[
        list[str] | None, typer.Argument(help="Prefix or infix; standard input if there are none.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File with a formula in each line; or *.jsonl, for texts of several lines: in "
            "each line a string, or a row like those of your data."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Folder or Hub name; by default the released one of the task."),
    ] = None,
    task: ModelsTask = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Print the N best answers; 1 by default.")
    ] = None,
    first_correct: Annotated[
        bool,
        typer.Option(
            "--first-correct",
            help="Print the first of the N best answers (--top, 10 by default, of as many beams) "
            "that is correct, or else the best.",
        ),
    ] = False,
    beams: Beams = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens in an answer; by default the model's own limit."),
    ] = None,
    notation: Annotated[
        str | None, typer.Option(help="prefix, compact or infix; detected by default.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            help="Texts, where a rule reads names from a column: those of your texts, zoe,max, or "
            "person=zoe,max, once for each class."
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Solve formulas, and check every answer with a solver; or have a model answer your texts.

    hf-alpha solve 'request & !grant' '|a&bc'

    Models always answer. Where no answer is right and the solver proves that the formula has none,
    it says unsatisfiable in place of them.

    Formulas that begin with - come after --: hf-alpha solve --top 2 -- '->ab'
    """
    solved, column = _task_of(task, model)
    problems = read_inputs(formulas, file, "formula", _reader(solved, column, file))
    if notation is not None and solved.grammar is None:
        raise ValueError(f"--notation: problems of task {solved.name!r} have one notation only")
    if first_correct and not solved.has_check:
        raise ValueError(f"--first-correct: task {solved.name!r} has no check of answers")
    if names:
        problems = _with_names(problems, names, solved)
    faults = _faults(solved.name, problems, notation)
    readable = [problem for problem, fault in zip(problems, faults, strict=True) if fault is None]
    top = top or (TRIED if first_correct else 1)
    settings = {
        "top": top,
        "first_correct": first_correct,
        "num_beams": beams,
        "max_new_tokens": max_new_tokens,
        "notation": notation,
    }
    solutions = _solutions(readable, model, solved, device, settings)
    unsolved = 0
    for problem, fault in zip(problems, faults, strict=True):
        solution = next(solutions) if fault is None else None
        answered = solution is not None and bool(solution.answers) and not solved.has_check
        unsolved += solution is None or not (solution.solved or answered)
        say(problem)
        if solution is not None and solution.read_as is not None:
            say(f"  {'read as':<10} {solution.read_as}")
        if error := fault if solution is None else solution.error:
            say(f"  error: {error}", err=True)
        if solution is None:
            continue
        if solution.unsatisfiable:
            say("  unsatisfiable")
            continue
        for answer, verdict in solution.answers:
            label = verdict.value if solved.has_check else "answer"
            say(solved.answer_line(label, answer))
            if not answer.ended:
                say("  note: that answer is cut off: raise --max-new-tokens", err=True)
    if unsolved:
        raise typer.Exit(1)


def _task_of(task: str | None, model: str | None) -> tuple["Task", str]:
    """The task that is asked for, or that of the model, and the column of its data's problems."""
    if model is not None:
        check_places(model)
        quiet_bars()
        from hf_alpha.recipe import OwnRecipe, recipe_for

        recipe = recipe_for(model, task)
        return recipe.solved, recipe.data.source if isinstance(recipe, OwnRecipe) else PROBLEM
    from hf_alpha.tasks import get_task

    return get_task(task or DEFAULT_TASK), PROBLEM


def _reader(solved: "Task", column: str, file: Path | None) -> Callable[[dict[str, Any], int], str]:
    """What gives the problem of a row, with the names that its columns list."""

    def read(row: dict[str, Any], number: int) -> str:
        from hf_alpha.data.pairs import problem_of

        if (finder := getattr(solved, "finder", None)) is not None:
            return problem_of(row, column, finder, str(file), number)
        if not isinstance(text := row.get(column), str):
            raise ValueError(f"{file}, row {number}: the column {column!r} holds no text")
        return text

    return read


def _with_names(texts: list[str], names: list[str], solved: "Task") -> list[str]:
    """Mark names in texts, as the column of a rule does for a row.

    Raises:
        ValueError: the task finds no names by rules, it is not clear of which class names are, or
            one stands in no text.
    """
    finder = getattr(solved, "finder", None)
    if finder is None or not finder.rules:
        raise ValueError(f"--names is for texts with rules for names: {solved.name!r} has none")
    by_row = [name for name, rule in finder.rules.items() if rule.by_row]
    classes = by_row or list(finder.rules)
    listed: dict[str, list[str]] = {}
    for option in names:
        for kind, said in by_class(option).items():
            if kind not in finder.rules and (kind or len(classes) > 1):
                known = ", ".join(finder.rules)
                raise ValueError(
                    f"--names {option}: write {classes[0]}=..., with one of the classes {known}"
                )
            some = filter(None, map(str.strip, said.split(",")))
            listed.setdefault(kind or classes[0], []).extend(some)
    marked = [finder.mark(text, listed) for text in texts]
    found = {text[start:stop] for text in marked for start, stop, _ in text.spans}
    if absent := [name for some in listed.values() for name in some if name not in found]:
        raise ValueError(f"--names: {absent[0]!r} stands in no text, or not as a whole word")
    return marked


def _faults(task: str, problems: list[str], notation: str | None) -> list[str | None]:
    """What is wrong with the syntax of each formula; found without importing torch.

    A task that is unknown, or has no grammar, finds no fault here.
    """
    from hf_alpha.modeling.grammar import FormulaError, Grammar
    from hf_alpha.resources import resource_path

    data = None
    with contextlib.suppress(FileNotFoundError):
        path = resource_path("tokenizer", task, "tokenizer_config.json")
        data = json.loads(path.read_text(encoding="utf-8"))["grammar"]
    faults: list[str | None] = [None] * len(problems)
    if data is not None:
        grammar = Grammar.from_dict(data)
        for index, problem in enumerate(problems):
            try:
                grammar.parse(problem, notation)
            except FormulaError as error:
                faults[index] = str(error)
    return faults


def _solutions(
    problems: list[str],
    model: str | None,
    solved: "Task",
    device: str,
    settings: dict[str, Any],
) -> "Iterator[Solution]":
    """Load a model, at the first problem, and solve; `settings` are arguments of `solve`."""
    quiet_bars()
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.processes import choose_device
    from hf_alpha.resources import resource_path
    from hf_alpha.solve import solve as run
    from hf_alpha.tasks import name_of

    work_on = choose_device(device)
    if model is None and solved.released_model is None:
        raise ValueError(f"no model of task {name_of(solved)!r} is released: name one with --model")
    where = model or resource_path("model_cards", f"{solved.released_model}")
    loaded, tokenizer = load_checkpoint(where)
    yield from run(loaded.to(work_on), tokenizer, solved, problems, **settings)


__all__ = ["solve"]
