"""What several commands do: load quietly, check and read what they are given."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from hf_alpha.answer.solving import Line
from hf_alpha.io.plain_text import printable
from hf_alpha.io.records import parse_json

if TYPE_CHECKING:
    from hf_alpha.recipe import Recipe


TABLES = (".csv", ".tsv", ".parquet", ".arrow")


class TextOf(Protocol):
    """Gives the text of a row, from the row and its number; `columns` are those that it reads."""

    @property
    def columns(self) -> dict[str, str]: ...

    def __call__(self, row: dict[str, Any], number: int) -> str: ...


def say(text: str, err: bool = False) -> None:
    """Print a text, whatever it quotes of files and models of others; `err` for standard error."""
    typer.echo(printable(text), err=err)


def quiet_bars() -> None:
    """Switch off the bars of Transformers, whose import takes a second or more.

    Those of datasets stay in a terminal: a log file is no place for bars.
    """
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
        if datasets := sys.modules.get("datasets"):  # it has read its environment already
            datasets.disable_progress_bars()
    from transformers.utils import logging

    logging.disable_progress_bar()


def read_inputs(arguments: list[str] | None, file: Path | None, name: str) -> list[str]:
    """Return all that `stream_inputs` gives; a line that cannot be read is an error.

    Raises:
        ValueError: there are no texts, or one cannot be read.
    """
    texts = list(stream_inputs(arguments, file, name))
    for text in texts:
        if isinstance(text, Line) and text.error is not None:
            raise ValueError(text.error)
    return texts


def stream_inputs(
    arguments: list[str] | None,
    file: Path | None,
    name: str,
    text_of: TextOf | None = None,
) -> Iterator[str]:
    """Give texts of arguments and of the lines of a file, or else of standard input, one by one.

    Args:
        file: with a text in each line; in JSON, if it is called `*.jsonl`; or a table, `*.csv`,
            `*.tsv`, `*.parquet` or `*.arrow`, with a text in each row, if there is a `text_of`.
        name: what errors call a text.
        text_of: gives the text of a row.

    Returns:
        Texts that are not blank. Those of lines are a `Line`, some with an error.

    Raises:
        ValueError: there are none, or an argument is no text.
    """
    for text in arguments or ():
        if error := _no_unicode(text):  # no terminal could print it
            raise ValueError(f"{name} {text!a} is no text in UTF-8: {error}")
    given: Iterator[str] = iter(arguments or ())
    if file is not None:
        if text_of is not None and file.suffix in TABLES:
            given = chain(given, _rows_of(file, text_of))
        else:
            given = chain(given, _lines_of(file, text_of))
    elif not arguments:
        if sys.stdin.isatty():
            raise ValueError(
                f"no {name}: give one as an argument, with --file or on standard input"
            )
        given = _lines(getattr(sys.stdin, "buffer", sys.stdin), "standard input")
    texts = (text for text in given if text.strip())
    if (first := next(texts, None)) is None:
        raise ValueError(f"no {name}: the input is empty")
    return chain([first], texts)


def _rows_of(file: Path, text_of: TextOf) -> Iterator[str]:
    from hf_alpha.data.rows import read_dataset

    for number, row in enumerate(read_dataset(file, text_of.columns, streaming=True)):
        place = f"{file}, row {number}"
        try:
            text = text_of(row, number)
        except ValueError as problem:
            yield Line(f"{dict(row)}", place, str(problem))
        else:
            yield Line(text, place) if type(text) is str else text


def _lines_of(file: Path, text_of: TextOf | None) -> Iterator[str]:
    with file.open("rb") as stream:
        for number, line in enumerate(_lines(stream, str(file))):
            if file.suffix != ".jsonl" or line.error is not None:
                yield line
            elif line.strip():
                yield _of_json(line, f"{file}, row {number}", number, text_of)


def _lines(stream: Iterable[Any], place: str) -> Iterator[Line]:
    """Give the lines of a stream of bytes or text; only line feeds end one."""
    for number, line in enumerate(stream, start=1):
        place_of_line, error = f"{place}, line {number}", None
        text = line
        if isinstance(line, bytes):
            try:  # some editors begin a file with a mark of its encoding
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as problem:
                text = line.decode("utf-8", "backslashreplace")
                error = f"{place_of_line} is no text in UTF-8: {problem}"
        yield Line(text.rstrip("\r\n"), place_of_line, error)


def _of_json(line: Line, place: str, number: int, text_of: TextOf | None) -> str:
    """Return the text of a line in JSON, which is a string or a row."""
    try:
        content = parse_json(line, place, once=True)
    except ValueError as problem:
        return Line(line, place, str(problem))
    if isinstance(content, dict) and text_of is not None:
        try:
            content = text_of(content, number)
        except ValueError as problem:
            return Line(line, place, str(problem))
    if not isinstance(content, str):
        row = " or a row" if text_of is not None else ""
        return Line(line, place, f"{place}: write a string{row}")
    if error := _no_unicode(content):
        return Line(line, place, f"{place} is no text in UTF-8: {error}")
    return Line(content, place) if type(content) is str else content


def _no_unicode(text: str) -> str | None:
    from hf_alpha.modeling.grammar import FormulaError, check_unicode

    try:
        check_unicode(text)
    except FormulaError as error:
        return str(error)
    return None


def user_test_rows(
    recipe: "Recipe",
    data: str | None,
    split: str | None,
    source: str | None = None,
    target: str | None = None,
) -> list[dict[str, Any]]:
    """Return rows of the user's own pairs: those of `data`, or else the recipe's test.

    Args:
        source, target: their columns, by default the recipe's.
    """
    from hf_alpha.data.pairs import evaluation_rows, read_pairs

    place = test_data(recipe, data)
    task = recipe.configured_task
    finder = task.finder  # type: ignore[attr-defined]
    given = {"source": source, "target": target}
    settings = recipe.data.model_copy(update={k: name for k, name in given.items() if name})
    return evaluation_rows(read_pairs(settings, place, finder, "test", split=split), task)


def test_data(recipe: "Recipe", data: str | None) -> Any:
    """Return where test data is: `data`, or else the recipe's `data.test`."""
    from hf_alpha.checkpoints.places import may_be_on_hub

    place = data or recipe.data.test
    if place is None:
        raise ValueError(
            "name a file of pairs with --data: no recipe of the model has a data.test that was "
            "trained here or lies in the model's folder"
        )
    path = place if isinstance(place, str) else place["path"]
    if data is None and not Path(path).exists() and not may_be_on_hub(path):
        raise ValueError(
            f"the recipe's data.test, {path}, is not here (it is relative to the folder in which "
            "training was started, of a model of others to its own): name a file of pairs with "
            "--data"
        )
    return place
