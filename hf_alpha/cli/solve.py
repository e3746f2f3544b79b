"""`hf-alpha solve`: a model or a solver answers; answers are checked."""

import csv
import json
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from itertools import chain, tee
from pathlib import Path
from textwrap import indent
from typing import Any, ClassVar

import typer

from hf_alpha.answer.solving import TIMEOUT, Settings, Solution
from hf_alpha.answer.solving import solve as solve_all
from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli.common import Given, RowTexts, say, stream_inputs
from hf_alpha.cli.looking import look_at_rows
from hf_alpha.cli.options import (
    TASKS,
    Device,
    argument,
    flag,
    grouped,
    may_trust,
    option,
    refuse_options,
)
from hf_alpha.io.folders import replacing
from hf_alpha.io.records import Records
from hf_alpha.names.given_names import mark_names, read_names
from hf_alpha.tasks import get_task

PROBLEM = "problem"
"""Column of data that is generated."""
LINES = (".jsonl", ".ndjson", ".json")
"""Ends of the names of files with a line of JSON for each answer."""
TABLES = {".csv": "excel", ".tsv": "excel-tab"}
"""End of the name of a table -> what the module csv calls its kind."""
PART = ".part"
"""End of the name of the file that collects answers for a table."""
ANSWER_COLUMNS = ("answer", "status", "score", "error")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked beside the arguments, and which of its words are names."""

    PANEL: ClassVar[str] = "Files of formulas or texts"
    file: Path | None = option(
        "File with a formula in each line (*.txt, or no such end); or with rows like "
        "those of your data: *.csv, *.tsv, *.json, *.jsonl, *.parquet, *.arrow; in JSON also "
        "strings, of several lines too. Of formulas, lines that begin with # are comments.",
        exists=True,
        dir_okay=False,
    )
    source: str | None = option("Column of its rows; by default the model's recipe.yaml says it.")
    names: list[str] | None = option(
        "Texts, where a rule reads names from a column: those of your texts, zoe,max, or "
        "person=zoe,max, once for each class."
    )


@dataclass(frozen=True, kw_only=True)
class ModelAnswers:
    """How a model answers."""

    PANEL: ClassVar[str] = "A model's answers"
    top: int | None = option("Print the N best answers; 1 by default.", min=1)
    max_tokens: int | None = option(
        "Longest answer in tokens; by default what the model says.", min=1
    )
    grammar: bool = flag("--grammar", "Have a model write nothing that is no answer of the task.")


@dataclass(frozen=True, kw_only=True)
class Output:
    """How answers are written for programs."""

    PANEL: ClassVar[str] = "For programs"
    json_lines: bool = flag("--json", "Print a JSON object for each formula, one a line.")
    out: Path | None = option(
        "Write these objects into a file (*.jsonl) as they are found; or all rows of "
        "--file with their answers, as *.csv or *.tsv, once all are there."
    )
    resume: bool = flag("--resume", "Go on where an earlier start left the file of --out.")

    @property
    def is_for_programs(self) -> bool:
        """Whether no person reads it."""
        return self.json_lines or self.out is not None


@grouped
@may_trust("model")
def solve(
    command: typer.Context,
    formulas: list[str] | None = argument(
        "Prefix or infix; standard input if there are none.", None
    ),
    *,
    model: str | None = option("Folder or Hub name; by default the released one of the task."),
    task: str | None = option(
        f"What is solved: {TASKS}, or package.module:Class of your own; by default what "
        "the model's recipe.yaml or tokenizer says; without a model, the operators of the "
        "first formula say it."
    ),
    method: str = option(
        "model, solver (logic alone), or auto: both, the solver first, unless you say "
        "what only a model can do (--model, --top).",
        "auto",
    ),
    timeout: float = option("Seconds that solvers have for a formula.", TIMEOUT),
    explain: bool = flag(
        "--explain",
        "Say why an answer is right or wrong: a table of subformulas, or your check's words.",
    ),
    device: Device = "auto",
    asked: Asked,
    answers: ModelAnswers,
    output: Output,
) -> None:
    """Solve formulas, and check every answer with a solver; or have a model answer your texts.

    hf-alpha solve 'request & !grant' '|a&bc'

    Where no answer is right and a solver proves that the formula has none, it says unsatisfiable in
    place of them; where the time is up, unknown. The exit code is 0 if each formula is solved or
    proved to have no answer, and each text answered, else 1.

    Formulas that begin with - come after --: hf-alpha solve --top 2 -- '->ab'
    """
    if asked.file is None:
        refuse_options(command, ["source"], "is a column of --file, and none is given")
    if output.out is None:
        refuse_options(command, ["resume"], "goes on with the file of --out, and none is named")
    elif output.out.suffix.lower() not in (ends := (*LINES, *TABLES)) and not output.out.is_dir():
        raise ValueError(f"--out writes {', '.join(ends)}: give {output.out} one of these ends")
    if output.is_for_programs:
        refuse_options(command, ["explain"], "is for people, --json and --out are for programs")
    if model is not None:
        checkpoint_place(model)
    if asked.file is not None:
        look_at_rows(asked.file, asked.source, model)
    settings = Settings(
        task=task, model=model, method=method, timeout=timeout, device=device,
        top_n=answers.top or 1, grammar=answers.grammar, max_new_tokens=answers.max_tokens,
        scores=output.is_for_programs,
    )  # fmt: skip
    given, settings = _read(formulas, asked, task, settings)
    if output.out is not None:
        statuses = _write(given, settings, output.out, output.resume)
    else:
        statuses = _print(given, settings, explain, output.json_lines)
    fine = {"solved", "unsatisfiable"} | ({"answered"} if _is_of_texts(settings.task) else set())
    if not statuses.keys() <= fine:
        raise typer.Exit(1)


def _read(
    formulas: list[str] | None, asked: Asked, named: str | None, settings: Settings
) -> tuple[Iterator[Given], Settings]:
    """Return what is to be solved, with its names marked, and the settings with its task.

    Raises:
        ValueError: there is nothing to solve.
    """
    recipe, task = None, None if named is None else get_task(named)
    if settings.model is not None:
        from hf_alpha.recipe import recipe_for

        recipe = recipe_for(str(settings.model), named)
        task = recipe.configured_task
    rows = None
    if asked.file is not None:
        rows = _rows(asked.file, asked.source, recipe, getattr(task, "finder", None))
    stream = stream_inputs(formulas, asked.file, "formula", rows)
    if not _is_of_texts(task):
        stream = (one for one in stream if one.row or not one.text.lstrip().startswith("#"))
    if (first := next(stream, None)) is None:
        raise ValueError("no formula: the input has nothing but comments")
    task, stream = task or settings.task_of(first.text), chain([first], stream)
    if asked.names:
        given = [*stream]
        marked = mark_names([one.text for one in given], read_names(asked.names, task), task)
        stream = (one._replace(text=text) for one, text in zip(given, marked, strict=True))
    return stream, replace(settings, task=task)


def _rows(file: Path, source: str | None, recipe: Any, finder: Any) -> RowTexts:
    """Return how rows of a file are read: as those of the model's own data."""
    from hf_alpha.data.formats import reader_of
    from hf_alpha.data.rows import RowReader

    is_users = recipe is not None and recipe.has_user_data
    column = source or (recipe.data.source if is_users else PROBLEM)
    reader = RowReader(f"{file}", column, column, finder)
    columns = {**reader.columns, column: "--source"}
    if recipe is None:
        return RowTexts(reader.problem_of, columns)
    return RowTexts(reader.problem_of, columns, recipe.data.encoding, reader_of(recipe.data.format))


def _is_of_texts(task: Any) -> bool:
    """Whether a task's problems are texts; what has no task yet are formulas."""
    return task is not None and task.grammar is None


def _print(
    given: Iterator[Given], settings: Settings, explain: bool, json_lines: bool
) -> Counter[str]:
    """Print answers, for people or as JSON; return how many of each status there are."""
    statuses = Counter[str]()
    for solution in _solved(given, settings):
        statuses[solution.status] += 1
        for note in solution.notes:
            say(f"note: {note}", err=True)
        if json_lines:
            say(json.dumps(solution.record()))
        else:
            _show(settings.task, solution, explain, says_who=settings.method != "model")
    return statuses


def _solved(given: Iterator[Given], settings: Settings) -> Iterator[Solution]:
    """Solve problems; each solution has the row in which its problem stands."""
    # What is read ahead waits here, so that each solution meets its row.
    with_texts, with_rows = tee(given)
    solutions = solve_all((text for text, _ in with_texts), **vars(settings))
    for solution, (_, row) in zip(solutions, with_rows, strict=False):
        # What JSON does not know, such as a date, as text.
        solution.row = None if row is None else json.loads(json.dumps(dict(row), default=str))
        yield solution


def _write(given: Iterator[Given], settings: Settings, out: Path, resume: bool) -> Counter[str]:
    """Write answers into a file, with a progress bar on a terminal.

    A table is made of what the file `PART` beside it has collected, once all is answered.

    Raises:
        FileExistsError: the file is there and is not to be gone on with.
    """
    from tqdm import tqdm

    dialect = TABLES.get(out.suffix.lower())
    file = out if dialect is None else out.with_name(out.name + PART)
    if dialect is not None and out.is_file():
        raise FileExistsError(f"{out} is there already, and whole: choose another name")
    if file.is_file() and not resume:
        raise FileExistsError(f"{file} is there already: --resume goes on with it")
    statuses = Counter[str]()
    with Records(file) as records:
        rest = _unanswered(given, records, statuses)
        solutions = _solved(rest, settings)
        for solution in tqdm(solutions, "solving", initial=statuses.total(), disable=None):
            records.add(solution.record())
            statuses[solution.status] += 1
        if dialect is not None:
            write_answers(records, out, dialect)
            file.unlink()
    counts = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    kind = "texts" if _is_of_texts(settings.task) else "formulas"
    say(f"{statuses.total():,} {kind}: {counts}; written to {out}")
    return statuses


def _unanswered(
    given: Iterator[Given], records: Records, statuses: Counter[str]
) -> Iterator[Given]:
    """Return the problems that have no answer yet, and count the others by status.

    Half a line at the end is taken off, if it begins as the answer to the next problem does.

    Raises:
        ValueError: the answers are to other problems, or the file is not of this command; it stays
            as it is.
    """
    number = 0
    for number, record in enumerate(records, start=1):
        answered, one = record.get("problem"), next(given, None)
        if not isinstance(answered, str) or not isinstance(record.get("status"), str):
            raise ValueError(f"{records.path}, line {number}: no answer of this command")
        if one is None or str(one.text) != answered:
            there = "ends" if one is None else f"has {str(one.text)[:80]!r}"
            raise ValueError(
                f"{records.path}, line {number} answers {answered[:80]!r}, but the input {there} "
                "there: resume with the input that it was begun with"
            )
        statuses[record["status"]] += 1
    if records.torn:
        one = next(given, None)
        start = json.dumps({"problem": str(one and one.text)}).encode().removesuffix(b"}")
        if one is None or not (records.torn.startswith(start) or start.startswith(records.torn)):
            raise ValueError(f"{records.path}, line {number + 1}: no answer of this command")
        given = chain([one], given)
    records.mend()
    return given


def write_answers(records: Records, out: Path, dialect: str) -> None:
    """Write rows with the columns `ANSWER_COLUMNS` beside theirs; whole, or not at all.

    Rows are read twice, so that memory stays constant. A column that the rows have already is
    called `new_answer`, and so on.

    Args:
        records: of solutions. Problems that stand in no row have a column `problem`.
        dialect: of the module csv.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for record in records:
            beside = record["row"] or {PROBLEM: record["problem"]}
            scores = (
                one["score"] for one in record["answers"] if one["answer"] == record["answer"]
            )
            yield record | {"score": next(scores, None), "row": beside}

    columns = dict.fromkeys(column for record in rows() for column in record["row"])
    names = {name: _unused(name, columns) for name in ANSWER_COLUMNS}
    with replacing(out) as place, place.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, dialect, lineterminator="\n")
        table.writerow([*columns, *names.values()])
        for record in rows():
            cells = [record["row"].get(column) for column in columns]
            table.writerow(map(_cell, [*cells, *map(record.get, names)]))


def _unused(name: str, columns: Container[str]) -> str:
    return _unused(f"new_{name}", columns) if name in columns else name


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _show(task: Any, solution: Solution, explain: bool, says_who: bool) -> None:
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
        say(task.answer_line(task.label(verdict), answer))
        if not answer.ended:
            say("  note: that answer is cut off: --max-tokens sets more", err=True)
        if explain and solution.read is not None:
            say(indent(task.explain(solution.read, answer).text(), "    "))
    if says_who and solution.status in ("solved", "unsatisfiable"):
        say(f"  {'found by':<10} {solution.found_by}, {solution.seconds:.3f} s")
