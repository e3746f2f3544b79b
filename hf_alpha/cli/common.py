"""What several commands do: load quietly, check and read what they are given."""

import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from hf_alpha.answer.solving import Line
from hf_alpha.io.plain_text import printable
from hf_alpha.io.records import parse_json
from hf_alpha.processes import is_first

if TYPE_CHECKING:
    from hf_alpha.recipe import Recipe


@dataclass(frozen=True)
class RowTexts:
    """How rows are read, and which text each of them gives.

    Attributes:
        text_of: returns the text of a row, from the row and its number.
        columns: those that it reads -> the option that names each.
        encoding: of files; None for UTF-8.
        read_file: reads the rows of a file of another format than those of `contents_of`.
    """

    text_of: Callable[[Mapping[str, Any], int], str]
    columns: Mapping[str, str]
    encoding: str | None = None
    read_file: Callable[[str], Iterable[Mapping[str, Any]]] | None = None


class Given(NamedTuple):
    """What a command is given: a text, and the row in which it stands, if it stands in one."""

    text: str
    row: Mapping[str, Any] | None = None


def say(text: str, err: bool = False) -> None:
    """Print a text, whatever it quotes of files and models of others; `err` for standard error.

    Of several processes that do one work (accelerate), the first prints; errors are everybody's.
    """
    if err or is_first():
        typer.echo(printable(text), err=err)


def stream_inputs(
    arguments: list[str] | None,
    file: Path | None,
    name: str,
    rows: RowTexts | None = None,
) -> Iterator[Given]:
    """Give texts of arguments and of a file, or else of standard input, one by one.

    Args:
        file: as `contents_of` reads it.
        name: what errors call a text.
        rows: how they are read, where a file may have some.

    Returns:
        Texts that are not blank, and rows. Those of files are a `Line`, some with an error.

    Raises:
        ValueError: there are none, an argument is no text, or the file cannot be read.
    """
    for text in arguments or ():
        if error := _no_unicode(text):  # no terminal could print it
            raise ValueError(f"{name} {text!a} is no text in UTF-8: {error}")
    given: Iterator[Given] = map(Given, arguments or ())
    if file is not None:
        if rows is None:
            contents = contents_of(file, None)
        elif rows.read_file is not None:
            contents = _rows_of(file, rows.columns, read_file=rows.read_file)
        else:
            contents = contents_of(file, rows.columns, rows.encoding)
        filled = (_given(*pair, number, rows) for number, pair in enumerate(contents))
        given = chain(given, filled)
    elif not arguments:
        if sys.stdin.isatty():
            raise ValueError(
                f"no {name}: give one as an argument, with --file or on standard input"
            )
        given = map(Given, _lines(getattr(sys.stdin, "buffer", sys.stdin), "standard input"))
    filled = (one for one in given if one.text.strip())
    if (first := next(filled, None)) is None:
        raise ValueError(f"no {name}: the input is empty")
    return chain([first], filled)


def contents_of(
    file: Path, columns: Mapping[str, str] | None, encoding: str | None = None
) -> Iterator[tuple[Line, Any]]:
    """Give what a file holds, one by one: the rows of `hf_alpha.data`'s files, or lines of text.

    Args:
        file: *.csv, *.tsv, *.parquet or *.arrow, with rows; *.json, *.jsonl or *.ndjson, with rows
            or texts; *.txt, *.md, *.rst, or without such an end, with lines of text. All texts
            may be compressed (.gz, .zst).
        columns: those that are read of tables -> the option that names each; None where a
            command takes no rows.
        encoding: of texts, by default UTF-8.

    Returns:
        What stands there, with its place and what is wrong with it, and what it is: a text, a
        mapping, or another value of JSON.

    Raises:
        ValueError: the file is of no such kind, damaged, or lacks a column.
    """
    from hf_alpha.data.formats import TEXT_FILES, kind_of, unknown_kind

    kind = kind_of(file)
    if kind is None and file.suffix:
        raise unknown_kind(file, "is of no kind", TEXT_FILES)
    if kind == "json":
        return _of_json(file, encoding)
    if kind in ("text", None):
        return ((line, str(line)) for line in _lines_of(file, encoding))
    if columns is None:
        raise ValueError(f"{file} is a table, and this command reads lines: give it a .txt")
    return _rows_of(file, columns, encoding=encoding)


def _rows_of(file: Path, columns: Mapping[str, str], **options: Any) -> Iterator[tuple[Line, Any]]:
    from hf_alpha.data.rows import read_dataset

    rows = read_dataset(file, columns, streaming=True, others=True, **options)
    return ((Line(f"{dict(row)}", f"{file}, row {number}"), row) for number, row in enumerate(rows))


def _of_json(file: Path, encoding: str | None) -> Iterator[tuple[Line, Any]]:
    """Give the elements of an array, or what stands in each line."""
    lines = (line for line in _lines_of(file, encoding) if line.error or line.strip())
    for number, line in enumerate(lines):
        if not number and line.lstrip().startswith("["):
            content = parse_json("\n".join([line, *lines]), f"{file}", once=True)
            for row, one in enumerate(content):
                yield Line(json.dumps(one, ensure_ascii=False), f"{file}, row {row}"), one
            return
        place = f"{file}, row {number}"
        try:
            content = None if line.error else parse_json(line, place, once=True)
        except ValueError as problem:
            yield Line(line, place, str(problem)), None
        else:
            yield Line(line, place, line.error), content


def _lines_of(file: Path, encoding: str | None) -> Iterator[Line]:
    """Give the lines of a file, which may be compressed."""
    from hf_alpha.data.formats import open_bytes, open_text

    try:
        if encoding is not None:
            with open_text(file, encoding) as text:
                yield from _lines(text, str(file))
        else:
            with open_bytes(file) as stream:
                yield from _lines(stream, str(file))
    except (ValueError, OSError, EOFError, LookupError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or problem  # which does not name the file again
        raise ValueError(f"{file} cannot be read: {reason}") from problem


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


def _given(line: Line, content: Any, number: int, rows: RowTexts | None) -> Given:
    """Return the text of what a file holds, a text or a row."""
    if line.error is not None:
        return Given(line)
    row = None
    if rows is not None and isinstance(content, Mapping):
        row = content
        try:
            content = rows.text_of(row, number)
        except ValueError as problem:
            return Given(Line(line, line.place, str(problem)), row)
    if not isinstance(content, str):
        or_row = " or a row" if rows is not None else ""
        return Given(Line(line, line.place, f"{line.place}: write a string{or_row}"))
    if error := _no_unicode(content):
        return Given(Line(line, line.place, f"{line.place} is no text in UTF-8: {error}"), row)
    return Given(Line(content, line.place) if type(content) is str else content, row)


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
