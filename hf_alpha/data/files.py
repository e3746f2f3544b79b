"""Read files of rows, and say where those that are damaged are so."""

import codecs
import csv
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from datasets import (
    Dataset,
    DatasetDict,
    Features,
    IterableDataset,
    IterableDatasetDict,
    Value,
    load_dataset,
    load_dataset_builder,
)
from datasets.exceptions import DatasetGenerationError
from pandas import read_csv

from hf_alpha.io.inside import check_links, inside
from hf_alpha.io.records import DEEPEST, parse_json, texts_in
from hf_alpha.io.yaml_files import read_yaml
from hf_alpha.modeling.choices import refuse

from .formats import (
    BINARY,
    MARKS,
    TEXT_FILES,
    codec_of,
    kind_of,
    open_bytes,
    open_text,
    unknown_kind,
)

AnyDataset: TypeAlias = Dataset | IterableDataset

SETTINGS = "generation.json"
"""The record of a generated dataset's settings, in its folder."""
PARTS = ".parts"
"""What is made of an unfinished dataset, in its folder."""

# What lies beside the files of a dataset and holds no rows.
_DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "config.json", SETTINGS}
_DATE = re.compile(r'"\d{4}-\d\d-\d\d')
_ESCAPED = re.compile(r"\\.")
BLOCK_ROWS = 1000
SEPARATORS = {"csv": ",;\t|", "tsv": "\t"}
"""Kind of table -> what may stand between cells: a semicolon in Excel's CSV, for numbers as 0,5."""
LONGEST_CELL = 2**31 - 1
"""Characters of a cell; the module csv would refuse those beyond 131,072, which pandas reads."""
DAMAGED = (ValueError, OSError, EOFError, zlib.error)
"""What readers of files raise that are not what their names say."""
NO_TYPE = (ValueError, TypeError, OverflowError)
"""What Arrow raises for values of several kinds."""
_TOLD = re.compile(r'"?sep=([^\r\n])"?[\r\n]*', re.IGNORECASE)
_BRACKET = re.compile(r"[][{}]")
CARDS = ("README.md", ".huggingface.yaml")
"""What says which files a dataset has, if something does."""
OPTIONS = {"data.source": "--source", "data.target": "--target"}
"""Key of a recipe -> the option of commands that says the same."""


def check_whole(folder: Path) -> None:
    """Raise a ValueError for a folder in which data is still being made."""
    unfinished = (folder / PARTS).exists() and not (folder / SETTINGS).exists()
    refuse(unfinished, f"{folder} holds an unfinished run: start the same generation again")


def read_files(
    path: Path,
    columns: Mapping[str, str],
    streaming: bool = False,
    encoding: str | None = None,
    lines: str | None = None,
    others: bool = False,
) -> DatasetDict | IterableDatasetDict:
    """Read all splits of files of one kind of `FILES`, or else of plain text.

    Args:
        columns: those that are read of *.csv and *.tsv files, whose cells are texts; with the key
            of a recipe that names each, as for `check_columns`. Others of JSON whose cells are of
            several kinds are left out.
        lines: the column of the lines of plain texts; without it, they are an error.
        others: streamed rows of *.csv and *.tsv have their other columns too.

    Raises:
        ValueError: a file cannot be read, or is empty; the message names the file and the line.
    """
    below = [path] if path.is_file() else _files_below(path)
    files = [file for file in below if _kind_of(file) is not None]
    texts = [file for file in below if lines and kind_of(file) == "text"]
    if texts and not files:
        places = [escape(str(file)) for file in texts]
        codec = codec_of(texts[0], encoding)
        rows = read_named(load_dataset, texts[0], "text", data_files=places, encoding=codec)
        return rows.rename_columns({"text": lines})
    _check_kinds(path, files, TEXT_FILES if lines else ())
    kind = _kind_of(files[0])
    options = {**_options(kind, columns, encoding), "streaming": streaming}
    separators, by_python = set[str](), codecs.lookup(encoding or "utf-8").name in MARKS
    try:
        if kind in ("csv", "tsv"):
            for file in files:
                separators.add(check_header(file, columns, encoding))
                by_python |= len(separators) > 1 or bool(_told_separator(file, encoding))
                if kind == "tsv":  # of a CSV, commas and lines in a cell are as good as others
                    read_named(_check_quotes, file, file, encoding)
            options["sep"] = min(separators)
        splits = splits_of_folder(path, files) if path.is_dir() else {"train": [path]}
        if streaming and kind not in BINARY:
            return _streamed(splits, columns, encoding, others)
        # Of Zstandard, what `datasets` reads with ends in silence where a file is cut off.
        by_python |= any(file.suffix.lower() == ".zst" for file in files)
        # A list, so that every file is looked through.
        by_python |= kind == "json" and any([_look_through(file, encoding) for file in files])
        if by_python and kind not in BINARY:
            return _read_by_python(splits, columns, encoding)
        if path.is_dir():
            return read_named(load_dataset, path, str(path), **options)
        builder = "csv" if kind == "tsv" else kind
        return read_named(load_dataset, path, builder, data_files=escape(str(path)), **options)
    except DAMAGED as error:
        faults = (_fault(file, encoding) for file in files if kind not in BINARY)
        if fault := next(filter(None, faults), None):
            raise ValueError(fault) from error
        if kind != "json" or not isinstance(error.__cause__, DatasetGenerationError):
            raise
        # A column that is empty for long, which `datasets` then takes to be so in all rows.
        return _read_by_python(splits, columns, encoding)


def _files_below(path: Path) -> list[Path]:
    """Return the files of a folder but hidden ones, which `datasets` never reads."""
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and not any(part.startswith((".", "__")) for part in file.relative_to(path).parts)
    )


def _kind_of(path: Path) -> str | None:
    """Return the kind of a file of rows; None for any other file."""
    kind = kind_of(path) if path.is_file() and path.name not in _DESCRIPTIONS else None
    return None if kind == "text" else kind


def _check_kinds(path: Path, files: Sequence[Path], others: Sequence[str]) -> None:
    """Refuse a file of no kind that is read, and a folder with no such file or several kinds."""
    kinds = sorted({kind for file in files if (kind := _kind_of(file)) is not None})
    if len(kinds) == 1:
        return
    if kinds:
        fault = f"holds files of several kinds ({', '.join(kinds)})"
    else:
        fault = "is of no kind" if path.is_file() else "holds no file"
    raise unknown_kind(path, fault, others)


def _options(kind: str | None, columns: Iterable[str], encoding: str | None) -> dict[str, Any]:
    """Return the options of the builder of a kind of files."""
    options: dict[str, Any] = {}
    if kind in ("csv", "tsv"):  # cells are texts as they stand: no numbers, no missing values
        options = {"features": Features(dict.fromkeys(columns, Value("string")))}
        options |= {"keep_default_na": False, "index_col": False}
    if encoding is not None and kind not in BINARY:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(
                f"there is no encoding {encoding!r}: give one such as latin-1, cp1252 or utf-16"
            ) from None
        options["encoding"] = encoding
    return options


def read_named(reader: Callable[..., Any], path: Path, *args: Any, **kwargs: Any) -> Any:
    """Call a reader of `datasets`, which raises ValueError with the path of a damaged file."""
    try:
        return reader(*args, **kwargs)
    except Exception as error:
        cause = error.__cause__ or error
        reason = " ".join(str(cause).split()) or "it is empty"
        raise ValueError(f"{path} cannot be read: {reason}") from error


def splits_of_folder(path: Path, files: Sequence[Path]) -> dict[str, list[Path]]:
    """Say of which split each file of a folder is, by `datasets`' rules for their names.

    A README.md whose header names the files has the last word.

    Raises:
        OutsideError: it names files elsewhere.
        ValueError: where some names say a split (`train`, `test`), others say none: `datasets`
            would leave these out.
    """
    has_names = check_card(path)
    builder = read_named(load_dataset_builder, path, str(path))
    data_files = (builder.config.data_files or {}).items()
    splits = {f"{split}": [Path(file) for file in paths] for split, paths in data_files}
    in_splits = {file.resolve() for paths in splits.values() for file in paths}
    strays = [file for file in files if file.resolve() not in in_splits]
    if strays and not has_names:
        firsts = ", ".join(f"{paths[0].name} ({split})" for split, paths in splits.items() if paths)
        raise ValueError(
            f"{path}: it is not clear of which split {strays[0].name} is: names of other files say "
            f"one, {firsts}. Rename it, or name one file"
        )
    return splits


def check_card(folder: Path) -> bool:
    """Refuse files elsewhere that the card of a dataset names; return whether it names any.

    `datasets` would read them, or ask for them with the user's token.

    Args:
        folder: of the dataset, or of its card in the Hub's cache.

    Raises:
        OutsideError: a path out of the folder or repository, or an address.
    """
    headers = [_header(folder / card) for card in CARDS]
    configs = [
        config
        for header in headers
        for config in header.get("configs") or ()
        if isinstance(config, dict)
    ]
    if not configs:
        return False
    for name in texts_in([[config.get(key) for key in ("data_files", "data_dir")]
                          for config in configs]):  # fmt: skip
        # A colon makes an address for fsspec: hf://, file:, zip://a::b.
        inside(folder, f"/{name}" if ":" in name else name)
        if any(part.startswith(".") for part in Path(name).parts):  # perhaps of a pattern
            check_links(folder, hidden=True)
    return any("data_files" in config for config in configs)


def _header(card: Path) -> dict[str, Any]:
    """Return the header of a card, which is all of a YAML file; empty where there is none."""
    header = (read_yaml(card) if card.is_file() else None) or {}
    if not isinstance(header, dict):
        raise ValueError(f"{card}: its header is no mapping: write keys and values")
    return header


def _streamed(
    splits: dict[str, list[Path]], columns: Mapping[str, str], encoding: str | None, others: bool
) -> IterableDatasetDict:
    """Read rows when they are asked for; `datasets` would not say which file is damaged."""
    how = {"columns": columns, "encoding": encoding, "others": others}
    return IterableDatasetDict({
        split: IterableDataset.from_generator(_rows, gen_kwargs={"files": files, **how})
        for split, files in splits.items()
    })  # fmt: skip


def _read_by_python(
    splits: dict[str, list[Path]], columns: Mapping[str, str], encoding: str | None
) -> DatasetDict:
    """Read rows by Python, for which a text is a text; `datasets` takes 2010-05-01 for a date.

    Args:
        columns: those that are used; others of JSON are left out where Arrow has no type for their
            cells.
    """
    datasets = DatasetDict()
    for split, files in splits.items():
        rows = list(_rows(files, columns, encoding))
        names = dict.fromkeys(name for row in rows for name in row)
        table = {name: [row.get(name) for row in rows] for name in names}
        try:
            datasets[split] = Dataset.from_dict(table)
        except NO_TYPE:
            for name in names:
                try:
                    Dataset.from_dict({name: table[name]})
                except NO_TYPE as error:
                    if name in columns:
                        raise ValueError(_odd_cell(files, name, encoding) or error) from error
                    del table[name]
            datasets[split] = Dataset.from_dict(table)
    return datasets


def _odd_cell(files: list[Path], column: str, encoding: str | None) -> str | None:
    """Say where a column of JSON holds another kind of value than before."""
    first, known = "", type(None)
    for path in files:
        for place, row in _rows_of_json(path, encoding):
            value = row.get(column)
            if value is None or type(value) is known:
                continue
            if known is not type(None):
                told = f"{path}, {place}: the column {column!r} holds {value!r:.40}, and {first}"
                return f"{told}: give values of one kind"
            first, known = f"{value!r:.40} before ({path.name}, {place})", type(value)
    return None


def _rows(
    files: list[Path], columns: Mapping[str, str], encoding: str | None, others: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the rows of files: of tables these columns, or with others, as of JSON."""
    for path in files:
        try:
            if _kind_of(path) == "json":
                yield from (row for _, row in _rows_of_json(path, encoding))
            else:
                yield from _rows_of_table(path, columns, encoding, others)
        except DAMAGED as error:
            reason = f"{path} cannot be read: {' '.join(str(error).split())}"
            raise ValueError(_fault(path, encoding) or reason) from error


def _rows_of_table(
    path: Path, columns: Mapping[str, str], encoding: str | None, others: bool
) -> Iterator[dict[str, str]]:
    """Yield rows as `datasets` reads them."""
    options = _options(_kind_of(path), columns, encoding)
    options |= {"sep": check_header(path, columns, encoding), "dtype": str, "chunksize": BLOCK_ROWS}
    options |= {"encoding": codec_of(path, encoding)}
    options |= {"skiprows": len(_told_separator(path, encoding))}  # a line
    del options["features"]
    with open_bytes(path) as file, read_csv(file, **options) as blocks:
        for block in blocks:
            yield from (block if others else block[list(columns)]).to_dict("records")


def _rows_of_json(path: Path, encoding: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and row of a file that is an array, or has an object in each line."""
    with open_text(path, encoding) as lines:
        for number, line in enumerate(lines, start=1):
            if line.lstrip().startswith("["):
                rows = _mappings(parse_json(line + lines.read(), "it", once=True), "it")
                yield from ((f"row {place}", row) for place, row in enumerate(rows, start=1))
            elif line.strip():
                place = f"line {number}"
                (row,) = _mappings([parse_json(line, place, once=True)], place)
                yield place, row


def _mappings(rows: list[Any], place: str) -> list[dict[str, Any]]:
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"{place} holds {row!r:.40} in place of a row: write an object")
    return rows


def _look_through(path: Path, encoding: str | None) -> bool:
    """Return whether Python has to read a JSON file; refuse one that is nested deeply.

    `datasets` takes texts that begin like dates for dates, and of a row of an array that has a key
    twice the last value. Depth would end Arrow's process.

    Raises:
        UnicodeDecodeError: the file is in another encoding, which JSON's reader would let through.
        ValueError: lists and mappings are nested more than `DEEPEST` deep.
    """
    by_python, depth, in_text, end, last = False, 0, False, "", ""
    with open_text(path, encoding, newline="") as text:
        while block := text.read(1 << 20):
            is_array = not last and block.lstrip("\ufeff \t\r\n").startswith("[")
            by_python = by_python or is_array or _DATE.search(last + block) is not None
            last = (last + block)[-len('"2010-05-01') :]
            plain = _ESCAPED.sub("", end + block)
            end = "\\" if plain.endswith("\\") else ""
            for number, line in enumerate(plain.split("\n")):
                parts = line.split('"')
                in_text = in_text and number == 0  # no text of JSON goes over a line's end
                for bracket in _BRACKET.findall("".join(parts[in_text::2])):
                    depth += 1 if bracket in "[{" else -1
                    if depth > DEEPEST:
                        raise ValueError(
                            f"{path}: lists and mappings are nested more than {DEEPEST} deep"
                        )
                in_text ^= len(parts) % 2 == 0
    return by_python


def _told_separator(path: Path, encoding: str | None) -> str:
    """Return the separator that a first line `sep=;` tells Excel; "" where there is none."""
    with open_text(path, encoding, newline="") as text:
        told = _TOLD.fullmatch(text.readline(9))
    return "" if told is None else told[1]


def check_header(path: Path, columns: Mapping[str, str], encoding: str | None) -> str:
    """Return the separator of a CSV or TSV file: the first by which its header has the columns.

    Raises:
        ValueError: it lacks columns (see `check_columns`), or its first row has more cells.
    """
    csv.field_size_limit(LONGEST_CELL)
    wanted: set[str | None] = {*columns} or {None}  # of no columns, the most cells decide
    found: tuple[list[str], list[str], str] = ([], [], "")
    try:
        told = _told_separator(path, encoding)
        for sign in told or SEPARATORS[_kind_of(path) or ""]:
            with open_text(path, encoding, newline="") as text:
                lines = islice(csv.reader(text, delimiter=sign), len(told), None)
                rows = filter(None, lines)  # no empty lines
                cells = next(rows, [])
                if (has_all := wanted <= {*cells}) or len(cells) > len(found[0]):
                    found = cells, next(rows, []), sign
            if has_all:
                break
    except (*DAMAGED, csv.Error) as error:
        raise ValueError(_fault(path, encoding) or f"{path} cannot be read: {error}") from error
    header, first, separator = found
    refuse(not header, f"{path} holds no row: it is empty")
    check_columns(path, header, columns)
    if len(first) > len(header):  # pandas would leave out the rest without a word
        raise ValueError(
            f"{path}: the header has {len(header)} cells, the first row {len(first)}: put a text "
            "with a separator in double quotes"
        )
    return separator


def _check_quotes(path: Path, encoding: str | None) -> None:
    """Refuse a cell of a TSV with tabs and line ends: a quote that is text has swallowed rows."""
    with open_text(path, encoding, newline="") as text:
        rows, before = csv.reader(text, delimiter="\t"), 0
        for row in rows:
            if any("\t" in cell and "\n" in cell for cell in row):
                raise ValueError(
                    f"line {before + 1}: a double quote begins a cell that goes on to line "
                    f"{rows.line_num}: if it is text, write it twice, and put the cell in quotes"
                )
            before = rows.line_num


def _fault(path: Path, encoding: str | None) -> str | None:
    """Say at which line and byte a file cannot be read, which `datasets` leaves out."""
    try:
        return _faulty_line(path, encoding)
    except DAMAGED as error:  # it is not compressed, or cut off
        return f"{path} cannot be read: {error}"


def _faulty_line(path: Path, encoding: str | None) -> str | None:
    json_lines = _kind_of(path) == "json"
    filled, offset, codec = 0, 0, codec_of(path, encoding)
    with open_bytes(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                text = line.decode(codec)
            except UnicodeDecodeError as error:
                if encoding is not None and "\n".encode(encoding) != b"\n":
                    return None
                utf_16 = number == 1 and line[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
                return (
                    f"{path}, line {number}: byte 0x{line[error.start]:02x} at "
                    f"{offset + error.start} of the file is no {error.encoding.upper()}: say how "
                    f"the file is encoded, such as `encoding: {'utf-16' if utf_16 else 'latin-1'}`"
                )
            if json_lines and text.lstrip().startswith("[") and not filled:
                json_lines = False
            if json_lines and text.strip():
                try:
                    parse_json(text, f"{path}, line {number}")
                except ValueError as error:
                    return f"{error}: give an object in each line"
            filled += bool(text.strip())
            offset += len(line)
    if filled <= (_kind_of(path) in ("csv", "tsv")):  # there, the first line is the header
        return f"{path} holds no row: it is empty"
    return None


def check_rows(rows: AnyDataset, path: str | os.PathLike[str], columns: Mapping[str, str]) -> None:
    """Refuse a dataset without rows, or without some columns; see `check_columns`."""
    names = column_names(rows)
    if names:
        check_columns(path, names, columns)
    if not names or (isinstance(rows, Dataset) and not len(rows)):
        raise ValueError(f"{path} holds no row")


def column_names(rows: AnyDataset) -> list[str]:
    """Return a dataset's columns; a stream's are those of its first row, none if it is empty."""
    names = rows.column_names
    return list(next(iter(rows.take(1)), ())) if names is None else list(names)


def check_columns(place: object, present: Sequence[str], columns: Mapping[str, str]) -> None:
    """Refuse rows that lack columns, or have one of them twice.

    Args:
        columns: those that they must have; with the key of a recipe, or the option of a command,
            that names each, which is empty where the name is fixed.

    Raises:
        ValueError: saying which columns are missing, which ones are there, and what to write; or
            which one is there twice.
    """
    twice = [column for column in columns if list(present).count(column) > 1]
    missing = [column for column in columns if column not in present]
    refuse(
        twice,
        f"{place} has the column {''.join(twice[:1])!r} more than once: rename all but the one "
        "to be read",
    )
    keys = [columns[column] for column in missing if columns[column]]
    ways = [f"`{key}`" + " in the recipe" * (not key.startswith("--")) for key in keys]
    ways += [f"`{OPTIONS[key]}` of a command" for key in keys if key in OPTIONS]
    refuse(
        missing,
        f"{place} has no column {', '.join(map(repr, missing))}: it has "
        f"{', '.join(map(repr, present)) or 'none'}; "
        + (f"say which one it is by {' or '.join(ways)}, or " if ways else "")
        + "rename it in the data",
    )


def check_text(value: object, column: str, place: str, way_out: str = "") -> None:
    """Raise a ValueError for a cell that is no text, or empty, with the place of its row."""
    if not isinstance(value, str) or not value.strip():
        content = "nothing" if value is None or value == "" else repr(value)
        kind = "" if content == "nothing" or isinstance(value, str) else ", which is no text"
        raise ValueError(
            f"{place}: the column {column!r} holds {content}{kind}: give a text in each "
            f"row{way_out}"
        )
