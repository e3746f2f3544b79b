"""`hf-alpha solve`: a model or a solver answers; answers are checked."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, tee
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hf_alpha.answer.solving import TIMEOUT, Settings, Solution
from hf_alpha.answer.solving import solve as solve_all
from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli.common import Given, say, stream_inputs
from hf_alpha.cli.looking import look_at_rows
from hf_alpha.cli.options import (
    TASKS,
    Device,
    grouped,
    may_trust,
    refuse_options,
)
from hf_alpha.io.folders import replacing
from hf_alpha.io.records import Records
from hf_alpha.names.given_names import mark_names, read_names
from hf_alpha.tasks import Task, get_task

if TYPE_CHECKING:
    from hf_alpha.recipe import Recipe


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
class ModelAnswers:
    """How a model answers."""

    PANEL: ClassVar[str] = "A model's answers"
    top: Annotated[
        int | None, typer.Option(min=1, help="Print the N best answers; 1 by default.")
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Longest answer in tokens; by default what the model says."),
    ] = None
    grammar: Annotated[
        bool,
        typer.Option("--grammar", help="Have a model write nothing that is no answer of the task."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Output:
    """How answers are written for programs."""

    PANEL: ClassVar[str] = "For programs"
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each formula, one a line.")
    ] = False
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write these objects into a file (*.jsonl) as they are found; or all rows of "
            "--file with their answers, as *.csv or *.tsv, once all are there."
        ),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier start left the file of --out.")
    ] = False


@grouped
@may_trust("model")
def solve(
    command: typer.Context,
    formulas: Annotated[
        list[str] | None, typer.Argument(help="Prefix or infix; standard input if there are none.")
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="File with a formula in each line (*.txt, or no such end); or with rows like "
            "those of your data: *.csv, *.tsv, *.json, *.jsonl, *.parquet, *.arrow; in JSON also "
            "strings, of several lines too. Of formulas, lines that begin with # are comments.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(help="Column of its rows; by default the model's recipe.yaml says it."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Folder or Hub name; by default the released one of the task."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"What is solved: {TASKS}, or package.module:Class of your own; by default what "
            "the model's recipe.yaml or tokenizer says; without a model, the operators of the "
            "first formula say it."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="model, solver (logic alone), or auto: both, the solver first, unless you say "
            "what only a model can do (--model, --top)."
        ),
    ] = "auto",
    timeout: Annotated[
        float, typer.Option(help="Seconds that solvers have for a formula.")
    ] = TIMEOUT,
    names: Annotated[
        list[str] | None,
        typer.Option(
            help="Texts, where a rule reads names from a column: those of your texts, zoe,max, or "
            "person=zoe,max, once for each class."
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Say why an answer is right or wrong: a table of subformulas, or your check's "
            "words.",
        ),
    ] = False,
    device: Device = "auto",
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
    if file is None:
        refuse_options(command, ["source"], "is a column of --file, and none is given")
    if output.out is None:
        refuse_options(command, ["resume"], "goes on with the file of --out, and none is named")
    elif output.out.suffix.lower() not in (ends := (*LINES, *TABLES)) and not output.out.is_dir():
        raise ValueError(f"--out writes {', '.join(ends)}: give {output.out} one of these ends")
    if output.json_lines or output.out is not None:
        refuse_options(command, ["explain"], "is for people, --json and --out are for programs")
    if model is not None:
        checkpoint_place(model)
    if file is not None:
        look_at_rows(file, source, model)
    settings = Settings(
        task=task, model=model, method=method, timeout=timeout, device=device,
        top_n=answers.top or 1, grammar=answers.grammar, max_new_tokens=answers.max_tokens,
        scores=output.json_lines or output.out is not None,
    )  # fmt: skip
    recipe = None
    if model is not None:
        from hf_alpha.recipe import recipe_for

        recipe = recipe_for(model, task)
    stream = stream_inputs(formulas, file, "formula", RowTexts(recipe, file, source))
    named_task = recipe.configured_task if recipe else get_task(task) if task else None
    if named_task is None or named_task.grammar is not None:  # of formulas, not of texts
        stream = (one for one in stream if one.row or not one.text.lstrip().startswith("#"))
    if (first := next(stream, None)) is None:
        raise ValueError("no formula: the input has nothing but comments")
    chosen_task = settings.task_of(first.text) if recipe is None else recipe.configured_task
    settings = replace(settings, task=chosen_task)
    given: Iterator[Given] = chain([first], stream)
    if names:
        given = _marked([*given], read_names(names, chosen_task), chosen_task)
    if output.out is not None:
        statuses = _write(given, settings, output.out, output.resume)
    else:
        statuses = Counter()
        for solution in _solved(given, settings):
            statuses[solution.status] += 1
            for note in solution.notes:
                say(f"note: {note}", err=True)
            if output.json_lines:
                say(json.dumps(solution.record()))
            else:
                _show(chosen_task, solution, explain, says_who=method != "model")
    fine = {"solved", "unsatisfiable"} | ({"answered"} if chosen_task.grammar is None else set())
    if not statuses.keys() <= fine:
        raise typer.Exit(1)


def _marked(given: list[Given], names: dict[str, list[str]], task: Task) -> Iterator[Given]:
    """Mark names in texts."""
    marked = mark_names([text for text, _ in given], names, task)
    return (one._replace(text=text) for one, text in zip(given, marked, strict=True))


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
    kind = "texts" if getattr(settings.task, "grammar", None) is None else "formulas"
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


@dataclass(frozen=True)
class RowTexts:
    """Gives the problem of a row, with the names that its columns list."""

    recipe: "Recipe | None"
    file: Path | None
    source: str | None

    def __call__(self, row: Mapping[str, Any], number: int) -> str:
        from hf_alpha.data.rows import problem_of

        return problem_of(row, self._column, self._finder, str(self.file), number)

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are read, see `RowReader`."""
        from hf_alpha.data.rows import RowReader

        reader = RowReader(str(self.file), self._column, self._column, self._finder)
        return {**reader.columns, self._column: "--source"}

    @property
    def encoding(self) -> str | None:
        """That of the model's own data."""
        return self.recipe.data.encoding if self.recipe is not None else None

    @property
    def read_file(self) -> Callable[[str], Iterable[Mapping[str, Any]]] | None:
        """What reads the format of the model's own data."""
        from hf_alpha.data.formats import reader_of

        return reader_of(self.recipe.data.format) if self.recipe is not None else None

    @property
    def _column(self) -> str:
        is_users = self.recipe is not None and self.recipe.has_user_data
        return self.source or (self.recipe.data.source if self.recipe and is_users else PROBLEM)

    @property
    def _finder(self) -> Any:
        return getattr(self.recipe and self.recipe.configured_task, "finder", None)


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
        say(task.answer_line(task.label(verdict), answer))
        if not answer.ended:
            say(
                "  note: that answer is cut off: --max-tokens sets more",
                err=True,
            )
        if explain and solution.read is not None:
            say(indent(task.explain(solution.read, answer).text(), "    "))
    if says_who and solution.status in ("solved", "unsatisfiable"):
        say(f"  {'found by':<10} {solution.found_by}, {solution.seconds:.3f} s")
