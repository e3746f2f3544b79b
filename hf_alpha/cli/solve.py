"""`hf-alpha solve`: a model or a solver answers, and every answer is checked."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_alpha.cli.common import check_places, quiet_bars, say, stream_inputs
from hf_alpha.cli.options import TASKS, Beams, Device, by_class, may_trust
from hf_alpha.folders import Records
from hf_alpha.solving import TIMEOUT, Line, Settings, Solution
from hf_alpha.solving import solve as solve_all
from hf_alpha.tasks import Task

if TYPE_CHECKING:
    from hf_alpha.recipe import Recipe


MODELS, PROGRAMS = "A model's answers", "For programs"
"""Panels of the help."""
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
SolvedTask = Annotated[
    str | None,
    typer.Option(
        "--task",
        help=f"What is solved: {TASKS}, or package.module:Class of your own; by default what the "
        "model's recipe.yaml or tokenizer says; without a model, the operators of the first "
        "formula say it.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=MODELS, help="Print the N best answers; 1 by default."),
]
FirstCorrect = Annotated[
    bool,
    typer.Option(
        "--first-correct",
        rich_help_panel=MODELS,
        help="Print the first of the N best answers (--top, 10 by default, of as many beams) "
        "that is correct, or else the best.",
    ),
]
MaxNewTokens = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=MODELS, help="Tokens in an answer; by default the model's own limit."
    ),
]
ByGrammar = Annotated[
    bool,
    typer.Option(
        "--grammar",
        rich_help_panel=MODELS,
        help="Have a model write nothing that is no answer of the task.",
    ),
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


Method = Annotated[
    str,
    typer.Option(
        help="model, solver (logic alone), or auto: both, the solver first, unless you say what "
        "only a model can do (--model, --top, --first-correct, --beams, --max-new-tokens)."
    ),
]
Timeout = Annotated[float, typer.Option(help="Seconds that solvers have for a formula.")]
Json = Annotated[
    bool,
    typer.Option(
        "--json", rich_help_panel=PROGRAMS, help="Print a JSON object for each formula, one a line."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=PROGRAMS,
        help="Write these objects into a file (*.jsonl) as they are found.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        rich_help_panel=PROGRAMS,
        help="Go on where an earlier start left the file of --out.",
    ),
]


@may_trust("model")
def solve(
    formulas: Formulas = None,
    file: File = None,
    model: Model = None,
    task: SolvedTask = None,
    method: Method = "auto",
    timeout: Timeout = TIMEOUT,
    top: Top = None,
    first_correct: FirstCorrect = False,
    beams: Beams = None,
    max_new_tokens: MaxNewTokens = None,
    grammar: ByGrammar = False,
    notation: Notation = None,
    names: Names = None,
    explain: Explain = False,
    json_lines: Json = False,
    out: Out = None,
    resume: Resume = False,
    device: Device = "auto",
) -> None:
    """Solve formulas, and check every answer with a solver; or have a model answer your texts.

    hf-alpha solve 'request & !grant' '|a&bc'

    Where no answer is right and a solver proves that the formula has none, it says unsatisfiable in
    place of them; where the time is up, unknown. The exit code is 0 if each formula is solved or
    proved to have no answer, else 1.

    Formulas that begin with - come after --: hf-alpha solve --top 2 -- '->ab'
    """
    if resume and out is None:
        raise ValueError("--resume goes with --out, the file that it goes on with")
    if explain and (json_lines or out is not None):
        raise ValueError("--explain is for people, --json and --out are for programs")
    if model is not None:
        check_places(model)
    settings = Settings(
        task=task,
        model=model,
        method=method,
        timeout=timeout,
        top_n=top or (BEST if first_correct else 1),
        first_correct=first_correct,
        num_beams=beams,
        max_new_tokens=max_new_tokens,
        grammar=grammar,
        notation=notation,
        device=device,
    )
    recipe = None if model is None else _recipe_of(model, task)
    stream = stream_inputs(formulas, file, "formula", _reader(recipe, file))
    first = next(stream)
    solved_task = settings.task_of(first) if recipe is None else recipe.solved
    settings = replace(settings, task=solved_task)
    _check_fit(solved_task, settings)
    texts: Iterator[str] = chain([first], stream)
    if names:
        texts = iter(_with_names(list(texts), names, solved_task))
    if out is not None:
        statuses = _write(texts, settings, out, resume)
    else:
        statuses = Counter()
        for solution in solve_all(texts, **vars(settings)):
            statuses[solution.status] += 1
            for note in solution.notes:
                say(f"note: {note}", err=True)
            if json_lines:
                say(json.dumps(solution.record()))
            else:
                _show(solved_task, solution, explain, says_who=method != "model")
    fine = {"solved", "unsatisfiable"} | (set() if solved_task.has_check else {"answered"})
    if not statuses.keys() <= fine:
        raise typer.Exit(1)


def _write(texts: Iterator[str], settings: Settings, out: Path, resume: bool) -> Counter[str]:
    """Write answers into a file, with a progress bar on a terminal.

    Raises:
        FileExistsError: the file is there and is not to be gone on with.
    """
    from tqdm import tqdm

    if out.is_file() and not resume:
        raise FileExistsError(f"{out} is there already: --resume goes on with it")
    statuses = Counter[str]()
    with Records(out) as records:
        rest = _unanswered(texts, records, statuses)
        solutions = solve_all(rest, **vars(settings))
        for solution in tqdm(solutions, "solving", initial=statuses.total(), disable=None):
            records.add(solution.record())
            statuses[solution.status] += 1
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    say(f"{statuses.total():,} formulas: {counts}; written to {out}")
    return statuses


def _unanswered(texts: Iterator[str], records: Records, statuses: Counter[str]) -> Iterator[str]:
    """Return the problems that have no answer yet, and count the others by status.

    Half a line at the end is taken off, if it begins as the answer to the next problem does.

    Raises:
        ValueError: the answers are to other problems, or the file is not of this command; it stays
            as it is.
    """
    number = 0
    for number, record in enumerate(records, start=1):
        answered, text = record.get("problem"), next(texts, None)
        if not isinstance(answered, str) or not isinstance(record.get("status"), str):
            raise ValueError(f"{records.path}, line {number}: no answer of this command")
        if text is None or str(text) != answered:
            given = "ends" if text is None else f"has {str(text)[:80]!r}"
            raise ValueError(
                f"{records.path}, line {number} answers {answered[:80]!r}, but the input {given} "
                "there: resume with the input that it was begun with"
            )
        statuses[record["status"]] += 1
    if records.torn:
        text = next(texts, None)
        start = json.dumps({"problem": str(text)}).encode().removesuffix(b"}")
        if text is None or not (records.torn.startswith(start) or start.startswith(records.torn)):
            raise ValueError(f"{records.path}, line {number + 1}: no answer of this command")
        texts = chain([text], texts)
    records.mend()
    return texts


def _check_fit(task: Task, settings: Settings) -> None:
    """Refuse options that have no sense for a task."""
    if settings.notation is not None and task.grammar is None:
        raise ValueError(f"--notation: problems of task {task.name!r} have one notation only")
    if settings.first_correct and not task.has_check:
        raise ValueError(f"--first-correct: task {task.name!r} has no check of answers")


def _recipe_of(model: str, task: str | None) -> "Recipe":
    quiet_bars()
    from hf_alpha.recipe import recipe_for

    return recipe_for(model, task)


def _reader(recipe: "Recipe | None", file: Path | None) -> Callable[[dict[str, Any], int], str]:
    """Return what gives the problem of a row, with the names that its columns list."""

    def read(row: dict[str, Any], number: int) -> str:
        from hf_alpha.data.rows import problem_of

        column = recipe.data.source if recipe and recipe.has_own_data else PROBLEM
        finder = getattr(recipe and recipe.solved, "finder", None)
        return problem_of(row, column, finder, str(file), number)

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
    broken = [text for text in texts if isinstance(text, Line) and text.error is not None]
    marked = [text if text in broken else finder.mark(text, names_of) for text in texts]
    present = {text[start:stop] for text in marked for start, stop, _ in getattr(text, "spans", ())}
    if absent := [name for names in names_of.values() for name in names if name not in present]:
        raise ValueError(f"--names: {absent[0]!r} stands in no text, or not as a whole word")
    return marked


def _show(task: Task, solution: Solution, explain: bool, says_who: bool) -> None:
    """Print a solution."""
    say(solution.problem)
    if solution.read_as is not None:
        say(f"  {'read as':<10} {solution.read_as}")
    if solution.error:
        say(f"  error: {solution.error}", err=True)
    if solution.unsatisfiable:
        say("  unsatisfiable")
        for part in solution.core:
            say(f"  {'because' if part is solution.core[0] else 'and':<10} {part}")
    elif not solution.answers and solution.status == "unknown" and says_who:
        say("  unknown")
    for answer, verdict in [] if solution.unsatisfiable else solution.answers:
        say(task.answer_line(verdict.value if task.has_check else "answer", answer))
        if not answer.ended:
            say("  note: that answer is cut off: raise --max-new-tokens", err=True)
        if explain and solution.read is not None:
            say(indent(task.explain(solution.read, answer).text(), "    "))
    if says_who and solution.status in ("solved", "unsatisfiable"):
        say(f"  {'found by':<10} {solution.found_by}, {solution.seconds:.3f} s")


__all__ = ["solve"]
