"""Open files, folders and Hub datasets of pairs, and say where those that are damaged are so."""

import codecs
import csv
import gzip
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

from datasets import (
    Dataset,
    DatasetDict,
    Features,
    IterableDataset,
    IterableDatasetDict,
    Value,
    load_dataset,
    load_from_disk,
)

from .read import files_below, load_from_hub, read_named, splits_of_folder

# What lies beside the files of a dataset and holds no rows.
_DESCRIPTIONS = {"dataset_info.json", "dataset_infos.json", "config.json"}
_DATE = re.compile(r'"\d{4}-\d\d-\d\d')
FILES = {
    ".csv": "csv", ".tsv": "tsv", ".json": "json", ".jsonl": "json", ".parquet": "parquet",
}  # fmt: skip


def load_files(
    where: str | os.PathLike[str],
    wanted: Mapping[str, str],
    config: str | None,
    streaming: bool,
    encoding: str | None,
) -> Any:
    """Read all splits of a file, a folder or a dataset of the Hub; `read_pairs` has the arguments.

    Args:
        wanted: the columns that are read of *.csv and *.tsv files, whose cells are texts; with
            the key of a recipe that names each, as for `missing_columns`.

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


def _read_files(
    path: Path, wanted: Mapping[str, str], streaming: bool, encoding: str | None
) -> Any:
    files = [path] if path.is_file() else [file for file in files_below(path) if _kind(file)]
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
        if kind in ("csv", "tsv"):
            for file in files:
                _check_header(file, wanted, encoding)
        splits = splits_of_folder(path, files) if path.is_dir() else {"train": [path]}
        # A list, so that the encoding of every file is checked.
        if kind == "json" and (streaming or any([_has_date(file, encoding) for file in files])):
            return _read_json(splits, encoding, streaming)
        if path.is_dir():
            return read_named(load_dataset, path, str(path), **options)
        builder = "csv" if kind == "tsv" else kind
        return read_named(load_dataset, path, builder, data_files=escape(str(path)), **options)
    except ValueError as error:
        faults = (_fault(file, encoding) for file in files if kind != "parquet")
        if fault := next(filter(None, faults), None):
            raise ValueError(fault) from error
        raise


def _read_json(
    splits: dict[str, list[Path]], encoding: str | None, streaming: bool
) -> DatasetDict | IterableDatasetDict:
    """Read JSON by Python, for which a text is a text; `datasets` takes 2010-05-01 for a date."""
    told: dict[str, dict[str, Any]] = {
        split: {"files": files, "encoding": encoding} for split, files in splits.items()
    }
    if streaming:
        streams = {split: IterableDataset.from_generator(_rows, gen_kwargs=kwargs)
                   for split, kwargs in told.items()}  # fmt: skip
        return IterableDatasetDict(streams)
    read = DatasetDict()
    for split, kwargs in told.items():
        rows = list(_rows(**kwargs))
        columns = dict.fromkeys(name for row in rows for name in row)
        read[split] = Dataset.from_dict({name: [row.get(name) for row in rows] for name in columns})
    return read


def _rows(files: list[Path], encoding: str | None) -> Iterator[dict[str, Any]]:
    """The rows of JSON files, each an array or an object in each line."""
    for path in files:
        with _opened(path) as file:
            lines = io.TextIOWrapper(file, encoding=encoding or "utf-8-sig", newline="\n")
            for number, line in enumerate(lines, start=1):
                if line.lstrip().startswith("["):
                    yield from json.loads(line + lines.read())
                elif line.strip():
                    try:
                        yield json.loads(line)
                    except json.JSONDecodeError as error:
                        raise ValueError(f"{path}, line {number} is no JSON: {error}") from error


def _has_date(path: Path, encoding: str | None) -> bool:
    """Whether a text of a JSON file begins like a date.

    Raises:
        UnicodeDecodeError: the file is in another encoding, which JSON's reader would let through.
    """
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")()
    found, end = False, ""
    with _opened(path) as file:
        while block := file.read(1 << 20):
            text = end + decoder.decode(block)
            found = found or _DATE.search(text) is not None
            end = text[-len('"2010-05-01') :]
        decoder.decode(b"", final=True)
    return found


def _options(kind: str, wanted: Mapping[str, str], encoding: str | None) -> dict[str, Any]:
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


def _check_header(path: Path, wanted: Mapping[str, str], encoding: str | None) -> None:
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding=encoding or "utf-8-sig", newline="")
        rows = csv.reader(text, delimiter="\t" if _kind(path) == "tsv" else ",")
        try:
            header, first = next(rows, []), next(rows, [])
        except csv.Error as error:
            raise ValueError(f"{path}, line {rows.line_num} cannot be read: {error}") from error
    if missing := [column for column in wanted if column not in header]:
        raise ValueError(missing_columns(path, missing, header, wanted))
    if len(first) > len(header):  # pandas would leave out the rest without a word
        raise ValueError(
            f"{path}: the header has {len(header)} cells, the first row {len(first)}: put a text "
            "with a separator in double quotes"
        )


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
    where: str | os.PathLike[str],
    missing: Sequence[str],
    has: Sequence[str],
    keys: Mapping[str, str],
) -> str:
    """Say which columns are missing, which ones are there, and what to write.

    Args:
        keys: column -> the key of a recipe that names it; empty where the name is fixed.
    """
    named = ", ".join(f"`{keys[column]}`" for column in missing if keys[column])
    return (
        f"{where} has no column {', '.join(map(repr, missing))}: it has "
        f"{', '.join(map(repr, has)) or 'none'}; "
        + (f"say which one it is by {named} in the recipe, or " if named else "")
        + "rename it in the data"
    )


__all__ = ["FILES", "load_files", "missing_columns"]
