"""Read datasets of problems and answers, whichever way they are stored."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from datasets import (
    Dataset,
    DatasetDict,
    IterableDatasetDict,
    load_dataset,
    load_dataset_builder,
    load_from_disk,
)
from huggingface_hub import metadata_load
from huggingface_hub.constants import ENDPOINT

from hf_alpha.folders import may_be_on_hub, similar_names
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Task, get_task
from hf_alpha.tasks.base import EQUIVALENCES

from .cache import CacheFullError, filling_cache
from .keys import key_in, keys_of
from .run_folder import PARTS, SETTINGS

TABLES = {".parquet": "parquet", ".jsonl": "json"}
_SPLIT_NAMES = {"val": "validation", "valid": "validation", "dev": "validation"}


def load(
    path: str | os.PathLike[str],
    split: str | None = None,
    task: str | Task | None = None,
    preferred_split: str | None = None,
) -> Dataset:
    """Read a dataset with the columns `problem` and `answer`.

    Args:
        path: a folder made by `generate` or `save_to_disk`, a folder of parquet or two-line text
            files, one such file, or the name of a dataset on the Hub (`owner/name`). Two-line files
            (`*.txt`) are DeepLTL's: a formula in one line, its answer in the next. A `*.jsonl` file
            has an object with `problem` and `answer` in each line.
        split: which split; may be left out if there is only one.
        task: if given, columns `num_symbols` and `size` are computed where they are missing.
        preferred_split: taken where `split` is left out and the data has it.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if it cannot be read, is empty, lacks a column or the split, has something else
            than text in one, or leaves the choice of a split open.
    """
    data = _load(path)
    return _checked(choose_split(data, split, path, preferred_split), task, path)


def load_splits(path: str | os.PathLike[str], task: str | Task | None = None) -> DatasetDict:
    """Read all splits of a dataset; `load` describes arguments and errors.

    What has no split is called "train".
    """
    data = _load(path)
    splits = data if isinstance(data, DatasetDict) else {"train": data}
    return DatasetDict({name: _checked(split, task, path) for name, split in splits.items()})


def training_problems(path: str | os.PathLike[str]) -> list[str]:
    """Return what a model has seen of a dataset: the problems of all splits but "test".

    Errors are those of `load`.
    """
    splits = load_splits(path)
    return [problem for name in splits if name != "test" for problem in splits[name]["problem"]]


def leave_out(dataset: Dataset, problems: Iterable[str], task: Task) -> Dataset:
    """Leave out the rows whose problem is equivalent to one of `problems`; see `Task.canonical`.

    Of a task that is not `held_out`, those whose texts are equal.

    Raises:
        FormulaError: a problem cannot be read.
        ValueError: no row is left.
    """
    equivalence = EQUIVALENCES[0] if task.held_out else ""
    known = keys_of(task, problems, equivalence)
    kept = [
        row
        for row, problem in enumerate(dataset["problem"])
        if key_in(task, task.parse(problem), equivalence) not in known
    ]
    if not kept:
        raise ValueError("each row of the data is equivalent to a problem that is to be left out")
    return dataset.select(kept)


def read_two_line_file(path: str | os.PathLike[str]) -> Dataset:
    """Read `formula` and `answer` from alternate lines; an empty answer is an empty line.

    Raises:
        ValueError: if a formula is empty or has no answer, or it is no text; the message names the
            file and the line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error}") from error
    if not lines[-1]:
        lines.pop()  # behind the last line's end
    if len(lines) % 2 and lines and not lines[-1].strip():
        lines.pop()
    if len(lines) % 2:
        raise ValueError(f"{path}, line {len(lines)}: the file ends after a formula, no answer")
    problems = [line.strip() for line in lines[::2]]
    if "" in problems:
        line = 2 * problems.index("") + 1
        raise ValueError(f"{path}, line {line}: empty where a formula is expected")
    return Dataset.from_dict({"problem": problems, "answer": [x.strip() for x in lines[1::2]]})


def _load(path: str | os.PathLike[str]) -> Dataset | DatasetDict:
    where = Path(path)
    if not where.exists():
        return load_from_hub(str(path))
    return _load_file(where) if where.is_file() else _load_folder(where)


def load_from_hub(
    name: str, config: str | None = None, streaming: bool = False
) -> DatasetDict | IterableDatasetDict:
    """Load all splits of a dataset of the Hub.

    Raises:
        FileNotFoundError: the Hub gives none, or the name is that of a file that is not there.
    """
    if not may_be_on_hub(name):
        raise FileNotFoundError(
            f"no file or folder {name}{similar_names(Path(name))}; a dataset of the Hub is named "
            "owner/name (with no folder of that owner here), and formulas are made by `hf-alpha "
            "generate-data`"
        )
    try:
        with filling_cache():
            return load_dataset(name, config, streaming=streaming)
    except CacheFullError:
        raise
    except Exception as error:
        raise FileNotFoundError(
            f"{name} is neither a file or folder here nor a dataset that the Hub at {ENDPOINT} "
            f"gives: {error}"
        ) from error


def _load_file(path: Path) -> DatasetDict:
    if path.suffix in TABLES:
        return read_named(load_dataset, path, TABLES[path.suffix], data_files=str(path))
    if path.suffix not in ("", ".txt"):
        raise ValueError(
            f"{path} is of no kind that is read: *.parquet, *.jsonl, or two-line text as *.txt"
        )
    return DatasetDict({_split_name(path): read_two_line_file(path)})


def _load_folder(path: Path) -> Dataset | DatasetDict:
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        return read_named(load_from_disk, path, str(path))
    if (path / PARTS).exists() and not (path / SETTINGS).exists():
        raise ValueError(f"{path} holds an unfinished run: start the same generation again")
    if tables := [file for file in files_below(path) if file.suffix == ".parquet"]:
        splits_of_folder(path, tables)
        return read_named(load_dataset, path, str(path))
    files = sorted(path.glob("*.txt"))
    if files:
        return DatasetDict({_split_name(file): read_two_line_file(file) for file in files})
    raise ValueError(
        f"{path} holds no dataset: expected save_to_disk's files, parquet files or two-line "
        "files (train.txt, val.txt, test.txt)"
    )


def files_below(path: Path) -> list[Path]:
    """The files of a folder, without those that `datasets` never reads: hidden ones."""
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and not any(part.startswith((".", "__")) for part in file.relative_to(path).parts)
    )


def splits_of_folder(path: Path, files: Sequence[Path]) -> dict[str, list[Path]]:
    """Say of which split each file of a folder is, by `datasets`' rules for their names.

    A README.md whose header names the files has the last word.

    Raises:
        ValueError: where some names say a split (`train`, `test`), others say none: `datasets`
            would leave these out.
    """
    builder = read_named(load_dataset_builder, path, str(path))
    named = (builder.config.data_files or {}).items()
    splits = {f"{split}": [Path(file) for file in found] for split, found in named}
    taken = {file.resolve() for found in splits.values() for file in found}
    left = [file for file in files if file.resolve() not in taken]
    if left and not _header_names_files(path / "README.md"):
        said = ", ".join(f"{file.name} ({split})" for split in splits for file in splits[split][:1])
        raise ValueError(
            f"{path}: it is not clear of which split {left[0].name} is: names of other files say "
            f"one, {said}. Rename it, or name one file"
        )
    return splits


def _header_names_files(readme: Path) -> bool:
    header = (metadata_load(readme) if readme.is_file() else None) or {}
    return any("data_files" in config for config in header.get("configs", []))


def read_named(reader: Callable[..., Any], path: Path, *args: Any, **kwargs: Any) -> Any:
    """Call a reader of `datasets`, which raises ValueError with the path of a damaged file."""
    try:
        with filling_cache():
            return reader(*args, **kwargs)
    except CacheFullError:
        raise
    except Exception as error:
        cause = error.__cause__ or error
        said = " ".join(str(cause).split()) or "it is empty"
        raise ValueError(f"{path} cannot be read: {said}") from error


def _split_name(path: Path) -> str:
    return _SPLIT_NAMES.get(path.stem, path.stem)


def choose_split(
    data: Any, split: str | None, path: str | os.PathLike[str], preferred: str | None = None
) -> Any:
    """Return a split of a `DatasetDict`, the only one by default; a dataset as it is.

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


def _checked(dataset: Dataset, task: str | Task | None, path: str | os.PathLike[str]) -> Dataset:
    missing = [column for column in ("problem", "answer") if column not in dataset.column_names]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}: it has {', '.join(dataset.column_names)}"
        )
    if not len(dataset):
        raise ValueError(f"{path} holds no problem")
    for column in ("problem", "answer"):
        kind = dataset.features[column]
        if getattr(kind, "dtype", None) not in ("string", "large_string"):
            raise ValueError(f"{path}: the column {column!r} holds no text, but {kind}")
        if dataset.data.column(column).null_count:
            row = list(dataset[column]).index(None)
            raise ValueError(f"{path}, row {row}: the column {column!r} holds nothing")
    if task is None or {"num_symbols", "size"} <= set(dataset.column_names):
        return dataset
    return _with_counts(dataset, get_task(task), path)


def _with_counts(dataset: Dataset, task: Task, path: str | os.PathLike[str]) -> Dataset:
    columns: dict[str, list[int]] = {"num_symbols": [], "size": []}
    for row, problem in enumerate(dataset["problem"]):
        try:
            tokens = task.parse(problem)
        except FormulaError as error:
            raise ValueError(f"{path}, row {row}: {error}") from error
        columns["num_symbols"].append(len(task.symbols_in(tokens)))
        columns["size"].append(len(tokens))
    for name, values in columns.items():
        if name not in dataset.column_names:
            dataset = dataset.add_column(name, values)
    return dataset
