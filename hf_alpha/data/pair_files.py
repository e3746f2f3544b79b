"""Open files, folders and Hub datasets of pairs, and say where those that are damaged are so."""

import codecs
import csv
import gzip
import io
import json
import os
from collections.abc import Sequence
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import Any

from datasets import (
    Dataset,
    DatasetDict,
    Features,
    IterableDatasetDict,
    Value,
    load_dataset,
    load_from_disk,
)

from .read import load_from_hub, read_named, splits_of_folder

# What lies beside the files of a dataset and holds no rows.
_DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json"}
FILES = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".parquet": "parquet",
}  # fmt: skip


def load_files(
    where: str | os.PathLike[str],
    wanted: list[str],
    config: str | None,
    streaming: bool,
    encoding: str | None,
) -> Any:
    """Read all splits of a file, a folder or a dataset of the Hub; `read_pairs` has the arguments.

    Args:
        wanted: the columns that are read of *.csv and *.tsv files, whose cells are texts.

    Raises:
        FileNotFoundError: there is nothing at `where`.
        ValueError: it cannot be read, or is empty; the message names the file and the line.
    """
    path = Path(where)
    if not path.exists():
        return load_from_hub(str(where), config, streaming)
    if config is not None:
        raise ValueError(f"{path} is no dataset of the Hub: it has no configuration {config!r}")
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        data = read_named(load_from_disk, path, str(path))
        if not streaming:
            return data
        if isinstance(data, dict):
            return {name: split.to_iterable_dataset() for name, split in data.items()}
        return data.to_iterable_dataset()
    return _read_files(path, wanted, streaming, encoding)


def _read_files(path: Path, wanted: list[str], streaming: bool, encoding: str | None) -> Any:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _kind(file))
    kinds = {kind for file in files if (kind := _kind(file)) is not None}
    if len(kinds) != 1:
        found = f"holds files of several kinds ({', '.join(sorted(kinds))})" if kinds else (
            "is of no kind" if path.is_file() else "holds no file"
        )  # fmt: skip
        raise ValueError(
            f"{path} {found} that pairs are read from: give one of {', '.join(FILES)}"
            + ("; plain text has no columns: make it a .tsv" if path.suffix == ".txt" else "")
        )
    kind = kinds.pop()
    options = {**_options(kind, wanted, encoding), "streaming": streaming}
    try:
        for file in files:
            if kind in ("csv", "tsv"):
                _check_header(file, wanted, encoding)
            elif kind == "json" and encoding is None and not streaming:
                _check_utf_8(file)
        if path.is_dir():
            splits = splits_of_folder(path, files)
            data = read_named(load_dataset, path, str(path), **options)
        else:
            splits, builder = {"train": [path]}, "csv" if kind == "tsv" else kind
            data = read_named(load_dataset, path, builder, data_files=escape(str(path)), **options)
        dates = kind == "json" and any(_has_dates(split, wanted) for split in data.values())
        return _texts_of_json(splits, encoding, streaming) if dates else data
    except ValueError as error:
        faults = (_fault(file, encoding) for file in files if kind != "parquet")
        if fault := next(filter(None, faults), None):
            raise ValueError(fault) from error
        raise


def _has_dates(data: Any, wanted: Sequence[str]) -> bool:
    """Whether a column holds what JSON's reader takes for dates: texts such as 2010-05-01."""
    if data.features is None:  # a stream that has not begun
        first: dict[str, Any] = next(iter(data), {})
        return any(isinstance(first.get(name), datetime) for name in wanted)
    return any("timestamp" in repr(data.features.get(name)) for name in wanted)


def _texts_of_json(
    splits: dict[str, list[Path]], encoding: str | None, streaming: bool
) -> DatasetDict | IterableDatasetDict:
    """Read JSON by Python, for which a text is a text."""
    read = DatasetDict()
    for split, files in splits.items():
        rows = [row for file in files for row in _json_rows(file, encoding)]
        columns = {name: None for row in rows for name in row}
        read[split] = Dataset.from_dict({name: [row.get(name) for row in rows] for name in columns})
    if not streaming:
        return read
    return IterableDatasetDict({name: data.to_iterable_dataset() for name, data in read.items()})


def _json_rows(path: Path, encoding: str | None) -> list[dict[str, Any]]:
    with _opened(path) as file:
        text = file.read().decode(encoding or "utf-8-sig")
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _options(kind: str, wanted: list[str], encoding: str | None) -> dict[str, Any]:
    """Return what the builder of a kind of files is told."""
    options: dict[str, Any] = {}
    if kind in ("csv", "tsv"):  # cells are texts as they stand: no numbers, no missing values
        options = {"features": Features(dict.fromkeys(wanted, Value("string")))}
        options |= {"keep_default_na": False, "index_col": False}
        options |= {"sep": "\t"} if kind == "tsv" else {}
    if encoding is not None and kind != "parquet":
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(
                f"there is no encoding {encoding!r}: give one such as latin-1, cp1252 or utf-16"
            ) from None
        options["encoding"] = encoding
    return options


def _kind(path: Path) -> str | None:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    kind = FILES.get(suffix) if path.is_file() and path.name not in _DESCRIPTIONS else None
    return None if kind == "parquet" and path.suffix == ".gz" else kind


def _check_header(path: Path, wanted: list[str], encoding: str | None) -> None:
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding=encoding or "utf-8-sig", newline="")
        rows = csv.reader(text, delimiter="\t" if _kind(path) == "tsv" else ",")
        try:
            header, first = next(rows, []), next(rows, [])
        except csv.Error as error:
            raise ValueError(f"{path}, line {rows.line_num} cannot be read: {error}") from error
    if missing := [column for column in wanted if column not in header]:
        raise ValueError(missing_columns(path, missing, header))
    if len(first) > len(header):  # pandas would leave out the rest without a word
        raise ValueError(
            f"{path}: the header has {len(header)} cells, the first row {len(first)}: put a text "
            "with a separator in double quotes"
        )


def _check_utf_8(path: Path) -> None:
    """Raise UnicodeDecodeError, a ValueError, for what JSON's reader would let through."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _opened(path) as file:
        while block := file.read(1 << 20):
            decoder.decode(block)
        decoder.decode(b"", final=True)


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _fault(path: Path, encoding: str | None) -> str | None:
    """Say at which line and byte a file cannot be read, which `datasets` leaves out."""
    json_lines = _kind(path) == "json"
    filled, offset = 0, 0
    with _opened(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                text = line.decode(encoding or "utf-8-sig")
            except UnicodeDecodeError as error:
                if encoding is not None and "\n".encode(encoding) != b"\n":
                    return None
                return _no_text(path, number, line, offset, error)
            if json_lines and text.lstrip().startswith("[") and not filled:
                json_lines = False
            if json_lines and text.strip():
                try:
                    json.loads(text)
                except json.JSONDecodeError as error:
                    return f"{path}, line {number} is no JSON: {error}: give an object in each line"
            filled += bool(text.strip())
            offset += len(line)
    if filled <= (_kind(path) in ("csv", "tsv")):  # there, the first line is the header
        return f"{path} holds no pair: it is empty"
    return None


def _no_text(path: Path, number: int, line: bytes, offset: int, error: UnicodeDecodeError) -> str:
    utf_16 = number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return (
        f"{path}, line {number}: byte 0x{line[error.start]:02x} at {offset + error.start} of the "
        f"file is no {error.encoding.upper()}: say how the file is encoded, such as "
        f"`encoding: {'utf-16' if utf_16 else 'latin-1'}`"
    )


def missing_columns(
    where: str | os.PathLike[str], missing: Sequence[str], has: Sequence[str]
) -> str:
    """Say which columns are missing, and which ones are there."""
    return (
        f"{where} has no column {', '.join(map(repr, missing))}: it has "
        f"{', '.join(map(repr, has)) or 'none'}; say which ones are `source` and `target`"
    )


__all__ = ["FILES", "load_files", "missing_columns"]
