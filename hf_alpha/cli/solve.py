"""`hf-alpha solve`: a model or a solver answers; answers are checked."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hf_alpha.answer.solving import TIMEOUT, Settings, Solution
from hf_alpha.answer.solving import solve as solve_all
from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli.common import quiet_bars, say, stream_inputs
from hf_alpha.cli.options import (
    TASKS,
    Device,
    grouped,
    may_trust,
    refuse_options,
)
from hf_alpha.io.records import Records
from hf_alpha.names.given_names import mark_names, read_names
from hf_alpha.tasks import Task, get_task

if TYPE_CHECKING:
    from hf_alpha.recipe import Recipe


PROBLEM = "problem"
"""Column of data that is generated."""


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
        typer.Option(help="Write these objects into a file (*.jsonl) as they are found."),
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
    proved to have no answer, else 1.

    Formulas that begin with - come after --: hf-alpha solve --top 2 -- '->ab'
    """
    if file is None:
        refuse_options(command, ["source"], "is a column of --file, and none is given")
    if output.out is None:
        refuse_options(command, ["resume"], "goes on with the file of --out, and none is named")
    if output.json_lines or output.out is not None:
        refuse_options(command, ["explain"], "is for people, --json and --out are for programs")
    if model is not None:
        checkpoint_place(model)
    settings = Settings(
        task=task, model=model, method=method, timeout=timeout, device=device,
        top_n=answers.top or 1, grammar=answers.grammar, max_new_tokens=answers.max_tokens,
    )  # fmt: skip
    recipe = None
    if model is not None:
        quiet_bars()
        from hf_alpha.recipe import recipe_for

        recipe = recipe_for(model, task)
    stream = stream_inputs(formulas, file, "formula", RowTexts(recipe, file, source))
    named_task = recipe.configured_task if recipe else get_task(task) if task else None
    if named_task is None or named_task.grammar is not None:  # of formulas, not of texts
        stream = (text for text in stream if not text.lstrip().startswith("#"))
    if (first := next(stream, None)) is None:
        raise ValueError("no formula: the input has nothing but comments")
    chosen_task = settings.task_of(first) if recipe is None else recipe.configured_task
    settings = replace(settings, task=chosen_task)
    texts: Iterator[str] = chain([first], stream)
    if names:
        texts = iter(mark_names(list(texts), read_names(names, chosen_task), chosen_task))
    if output.out is not None:
        statuses = _write(texts, settings, output.out, output.resume)
    else:
        statuses = Counter()
        for solution in solve_all(texts, **vars(settings)):
            statuses[solution.status] += 1
            for note in solution.notes:
                say(f"note: {note}", err=True)
            if output.json_lines:
                say(json.dumps(solution.record()))
            else:
                _show(chosen_task, solution, explain, says_who=method != "model")
    fine = {"solved", "unsatisfiable"} | (set() if chosen_task.has_check else {"answered"})
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
        say(task.answer_line(verdict.value if task.has_check else "answer", answer))
        if not answer.ended:
            say(
                "  note: that answer is cut off: --max-tokens sets more",
                err=True,
            )
        if explain and solution.read is not None:
            say(indent(task.explain(solution.read, answer).text(), "    "))
    if says_who and solution.status in ("solved", "unsatisfiable"):
        say(f"  {'found by':<10} {solution.found_by}, {solution.seconds:.3f} s")
