"""The reader of rows: of files, folders and datasets of the Hub, with their splits and columns."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from datasets import Dataset, DatasetDict, IterableDataset, load_dataset, load_from_disk
from huggingface_hub import hf_hub_download
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import EntryNotFoundError

from hf_alpha.folders import OutsideError, inside, may_be_on_hub, read_json, similar_names

from .cache import CacheFullError, filling_cache
from .dataset_card import PARTS, SETTINGS
from .files import (
    CARDS,
    FILES,
    check_card,
    check_columns,
    files_below,
    kind_of,
    read_files,
    read_named,
)

AnyDataset: TypeAlias = Dataset | IterableDataset
Where: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A file, a folder or a dataset of the Hub; or a mapping with `path`, and `config` and `split`."""


class TextFiles(NamedTuple):
    """How plain text, which has no columns, is read."""

    suffixes: tuple[str, ...]
    read: Callable[[Sequence[Path]], DatasetDict]


def read_dataset(
    place: Where,
    columns: Mapping[str, str],
    *,
    split: str | None = None,
    preferred_split: str | None = None,
    **options: Any,
) -> AnyDataset:
    """Read a dataset that has some columns.

    Args:
        place: a file, a folder or a dataset of the Hub, as for `read_splits`.
        columns: those that the rows must have; with the key of a recipe that names each, which is
            empty where the name is fixed.
        split: which split; may be left out if there is only one, or `place` names one.
        preferred_split: taken where none is named and the data has it.
        **options: of `read_splits`.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: it cannot be read, is empty, lacks a column or the split, or leaves the choice
            of a split open.
    """
    parts = _parts(place)
    data = read_splits(parts, columns, **options)
    rows = choose_split(data, split or parts.get("split"), parts["path"], preferred_split)
    check_rows(rows, parts["path"], columns)
    return rows


def read_splits(
    place: Where,
    columns: Mapping[str, str],
    *,
    streaming: bool = False,
    encoding: str | None = None,
    texts: TextFiles | None = None,
    read_file: Callable[[str], Iterable[Mapping[str, Any]]] | None = None,
) -> Any:
    """Read all splits: a mapping of them, or a dataset that has none.

    Args:
        place: a file (*.jsonl, *.json, *.csv, *.tsv, *.parquet, and the first four with .gz), a
            folder of such files of one kind, a folder of `save_to_disk`, or the name of a dataset
            on the Hub (`owner/name`).
        columns: as for `read_dataset`.
        streaming: read rows when they are asked for.
        encoding: of text files, by default UTF-8; a byte order mark does not matter.
        texts: how plain text is read; without it, it is an error.
        read_file: reads the rows of a file that has another format than these.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: it cannot be read, or is empty; the message names the file and the line.
    """
    parts = _parts(place)
    path, config = Path(parts["path"]), parts.get("config")
    if read_file is not None:
        return Dataset.from_list(list(read_file(str(path))))
    if not path.exists():
        return _read_from_hub(str(parts["path"]), config, streaming)
    if config is not None:
        raise ValueError(f"{path} is no dataset of the Hub: it has no configuration {config!r}")
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        _check_saved(path)
        data = read_named(load_from_disk, path, str(path))
        return _streamed(data) if streaming else data
    if (path / PARTS).exists() and not (path / SETTINGS).exists():
        raise ValueError(f"{path} holds an unfinished run: start the same generation again")
    files = [path] if path.is_file() else files_below(path)
    tables = [file for file in files if kind_of(file) is not None]
    text_files = [file for file in files if texts is not None and file.suffix in texts.suffixes]
    if texts is not None and text_files and not tables:
        return texts.read(text_files)
    _check_kinds(path, tables, texts)
    return read_files(path, tables, columns, streaming, encoding)


def _check_saved(path: Path) -> None:
    """Refuse files elsewhere that a folder of `save_to_disk` names.

    Raises:
        OutsideError: there is such a file.
    """
    splits = path / "dataset_dict.json"
    names = read_json(splits, "splits")["splits"] if splits.is_file() else ["."]
    for part in [inside(path, name) for name in names]:
        if (state := part / "state.json").is_file():
            for file in read_json(state, "_data_files")["_data_files"]:
                inside(part, file["filename"], path)


def path_of(place: Where) -> str:
    """Return the path or Hub name in a recipe's entry for rows."""
    return str(_parts(place)["path"])


def _parts(place: Where) -> Mapping[str, Any]:
    return {"path": place} if isinstance(place, str | os.PathLike) else place


def choose_split(
    data: Any, split: str | None, path: str | os.PathLike[str], preferred: str | None = None
) -> Any:
    """Return one of several splits, the only one by default; a dataset without splits as it is.

    Args:
        data: what was read.
        split: the one asked for.
        path: where it was read, for errors.
        preferred: taken where none is asked for and the data has it.

    Raises:
        ValueError: the split is not there, or not given where there are several.
    """
    if not isinstance(data, dict):
        return data
    if split is None and len(data) == 1:
        return next(iter(data.values()))
    if split is None and preferred in data:
        split = preferred
    if split is None or split not in data:
        problem = "choose a split of" if split is None else f"no split {split!r} in"
        raise ValueError(f"{problem} {path}: it has {', '.join(data)}")
    return data[split]


def column_names(rows: AnyDataset) -> list[str]:
    """Return a dataset's columns; a stream's are those of its first row, none if it is empty."""
    names = rows.column_names
    return list(next(iter(rows.take(1)), ())) if names is None else list(names)


def check_rows(rows: AnyDataset, path: str | os.PathLike[str], columns: Mapping[str, str]) -> None:
    """Refuse a dataset without rows, or without some columns; see `check_columns`."""
    names = column_names(rows)
    if names:
        check_columns(path, names, columns)
    if not names or (isinstance(rows, Dataset) and not len(rows)):
        raise ValueError(f"{path} holds no row")


def _read_from_hub(name: str, config: str | None, streaming: bool) -> Any:
    """Load all splits of a dataset of the Hub; the name may be that of a missing file."""
    if not may_be_on_hub(name):
        raise FileNotFoundError(
            f"no file or folder {name}{similar_names(Path(name))}; a dataset of the Hub is named "
            "owner/name (with no folder of that owner here), and formulas are made by `hf-alpha "
            "generate-data`"
        )
    try:
        for card in CARDS:
            with suppress(EntryNotFoundError):
                check_card(Path(hf_hub_download(name, card, repo_type="dataset")).parent)
        with filling_cache():
            return load_dataset(name, config, streaming=streaming)
    except (CacheFullError, OutsideError):
        raise
    except Exception as error:
        raise FileNotFoundError(
            f"{name} is neither a file or folder here nor a dataset that the Hub at {ENDPOINT} "
            f"gives: {error}"
        ) from error


def _streamed(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: split.to_iterable_dataset() for name, split in data.items()}
    return data.to_iterable_dataset()


def _check_kinds(path: Path, files: Sequence[Path], texts: TextFiles | None) -> None:
    """Refuse a file of no kind that is read, and a folder with no such file or several kinds."""
    kinds = sorted({kind for file in files if (kind := kind_of(file)) is not None})
    if len(kinds) == 1:
        return
    if kinds:
        fault = f"holds files of several kinds ({', '.join(kinds)})"
    else:
        fault = "is of no kind" if path.is_file() else "holds no file"
    suffixes = [*FILES, *filter(None, texts.suffixes if texts else ())]
    advice = "; plain text has no columns: make it a .tsv" if path.suffix == ".txt" else ""
    raise ValueError(
        f"{path} {fault} that rows are read from: give one of {', '.join(suffixes)}{advice}"
    )


__all__ = [
    "AnyDataset",
    "TextFiles",
    "Where",
    "check_rows",
    "choose_split",
    "column_names",
    "path_of",
    "read_dataset",
    "read_splits",
]
