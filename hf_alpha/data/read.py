"""Read datasets of problems and answers, whichever way they are stored."""

import os
from collections.abc import Sequence
from pathlib import Path

from datasets import Dataset, DatasetDict

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Task, get_task

from .rows import TextFiles, check_rows, choose_split, read_splits

COLUMNS = {"problem": "", "answer": ""}
_SPLIT_NAMES = {"val": "validation", "valid": "validation", "dev": "validation"}


def load(
    path: str | os.PathLike[str],
    split: str | None = None,
    task: str | Task | None = None,
    preferred_split: str | None = None,
) -> Dataset:
    """Read a dataset with the columns `problem` and `answer`.

    Args:
        path: a folder made by `generate`, or whatever `read_splits` reads. Two-line files
            (`*.txt`) are DeepLTL's: a formula in one line, its answer in the next.
        split: which split; may be left out if there is only one.
        task: if given, columns `num_symbols` and `size` are computed where they are missing.
        preferred_split: taken where `split` is left out and the data has it.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if it cannot be read, is empty, lacks a column or the split, has something else
            than text in one, or leaves the choice of a split open.
    """
    data = read_splits(path, COLUMNS, texts=TWO_LINES)
    return _checked(choose_split(data, split, path, preferred_split), task, path)


def load_splits(path: str | os.PathLike[str], task: str | Task | None = None) -> DatasetDict:
    """Read all splits of a dataset; `load` describes arguments and errors.

    What has no split is called "train".
    """
    data = read_splits(path, COLUMNS, texts=TWO_LINES)
    splits = data if isinstance(data, DatasetDict) else {"train": data}
    return DatasetDict({name: _checked(split, task, path) for name, split in splits.items()})


def training_problems(path: str | os.PathLike[str]) -> list[str]:
    """Return what a model has seen of a dataset: the problems of all splits but "test".

    Errors are those of `load`.
    """
    splits = load_splits(path)
    return [problem for name in splits if name != "test" for problem in splits[name]["problem"]]


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


def _two_line_files(files: Sequence[Path]) -> DatasetDict:
    """Return a dataset with a split for each file, named as the file."""
    return DatasetDict({
        _SPLIT_NAMES.get(file.stem, file.stem): read_two_line_file(file) for file in files
    })  # fmt: skip


TWO_LINES = TextFiles(("", ".txt"), _two_line_files)


def _checked(dataset: Dataset, task: str | Task | None, path: str | os.PathLike[str]) -> Dataset:
    check_rows(dataset, path, COLUMNS)
    for column in COLUMNS:
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
