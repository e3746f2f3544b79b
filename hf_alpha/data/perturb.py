"""Perturbations of training data (2410.17161, Section 5.2.1; 2601.23169, Section 5.3).

They show how much a model depends on names, and on much data: it is trained on perturbed data and
tested on data as it was.
"""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict

from hf_alpha.folders import new_folder, read_json
from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Task, get_task, name_of
from hf_alpha.tasks.base import words_of

from .cache import filling_cache
from .dataset_card import SETTINGS, write_records
from .read import load_splits

KINDS = ("renamed", "reduced")
REDUCED = 80_000
"""Rows that the papers keep of 800,000."""


def perturb(
    in_dir: str | os.PathLike[str],
    out_dir: str | os.PathLike[str],
    kind: str,
    task: str | Task | None = None,
    num_samples: int = REDUCED,
    splits: Sequence[str] = ("train",),
) -> dict[str, int]:
    """Make a perturbed copy of a dataset that `datasets.load_dataset(out_dir)` loads.

    Args:
        in_dir: a dataset in prefix notation, stored in any way that `read.load` reads.
        out_dir: folder to make.
        kind: "renamed" or "reduced", the functions below.
        task: of the dataset, or its name; by default what `generate` recorded.
        num_samples: rows that "reduced" keeps.
        splits: those that are perturbed; the others are copied.

    Returns:
        The number of rows of each split.

    Raises:
        ValueError: if the kind is unknown, a split or the task is missing, or a problem cannot be
            read.
        FileExistsError: if `out_dir` exists.
        FileNotFoundError: if there is no dataset.
    """
    check_known("perturbation", kind, KINDS)
    if task is None and not Path(in_dir).exists():
        raise FileNotFoundError(f"no dataset {in_dir} here; one of the Hub needs its task named")
    settings = _recorded_settings(Path(in_dir))
    task = _choose_task(task, settings, in_dir)
    with new_folder(Path(out_dir)) as unfinished:
        data = load_splits(in_dir, task)
        if absent := [split for split in splits if split not in data]:
            raise ValueError(f"{in_dir} has no split {', '.join(absent)}: it has {', '.join(data)}")
        for split in splits:
            try:
                rows = data[split]
                data[split] = (
                    renamed(rows, task) if kind == "renamed" else reduced(rows, num_samples)
                )
            except FormulaError as error:
                raise ValueError(f"{in_dir}, {split}: {error}") from error
        before = f"{settings['perturbation']}, " if "perturbation" in settings else ""
        settings |= {
            "task": name_of(task),
            "perturbation": before + kind,
            "perturbed_splits": list(splits),
        }
        if kind == "reduced":
            settings["perturbed_samples"] = num_samples
        return _write(data, unfinished, task, settings)


def _write(data: DatasetDict, folder: Path, task: Task, settings: dict[str, Any]) -> dict[str, int]:
    """Write one file a split, the card and the record; returns the number of rows of each."""
    (folder / "data").mkdir()
    for split, rows in data.items():
        rows.to_parquet(str(folder / "data" / f"{split}-00000-of-00001.parquet"))
    counts = {split: len(rows) for split, rows in data.items()}
    num_symbols = chain.from_iterable(rows["num_symbols"] for rows in data.values())
    write_records(folder, task, settings, counts, num_symbols)
    return counts


@filling_cache()
def renamed(dataset: Dataset, task: str | Task) -> Dataset:
    """Rename symbols so that their order of first occurrence in the answer is always the same.

    Each row's problem and answer are renamed by its `renaming`; other columns stay.

    Raises:
        FormulaError: if a problem cannot be read; the message names the row.
    """
    solved = get_task(task)

    def rename(row: dict[str, Any], index: int) -> dict[str, str]:
        try:
            mapping = renaming(solved, row["problem"], row["answer"])
        except FormulaError as error:
            raise FormulaError(f"row {index}: {error}", error.position) from error
        return {name: solved.rename(row[name], mapping) for name in ("problem", "answer")}

    return dataset.map(rename, with_indices=True, load_from_cache_file=False)


def renaming(task: Task, problem: str, answer: str) -> dict[str, str]:
    """Give the task's first names to the answer's symbols in order, then to the problem's others.

    Returns:
        Old name -> new name, in the order of the new names; no two are the same.

    Raises:
        FormulaError: if the problem cannot be read.
    """
    names = task.symbols_of(problem)
    symbols = [
        word
        for word in words_of(answer, names) or answer
        if word in names or (task.grammar and task.grammar.is_name(word))
    ]
    symbols = list(dict.fromkeys([*symbols, *names]))
    return dict(zip(symbols, task.default_symbols(len(symbols)), strict=True))


def reduced(dataset: Dataset, num_samples: int = REDUCED) -> Dataset:
    """Keep the first rows, as `max_train_samples` in a recipe does.

    Generated data is in the order of hashes, so they are like the others.

    Raises:
        ValueError: if there are fewer.
    """
    if not 1 <= num_samples <= len(dataset):
        raise ValueError(
            f"num_samples must be between 1 and {len(dataset)}, the number of rows; it is "
            f"{num_samples}"
        )
    return dataset.select(range(num_samples))


def _recorded_settings(folder: Path) -> dict[str, Any]:
    record = folder / SETTINGS
    if not record.is_file():
        return {}
    settings: dict[str, Any] = read_json(record).get("settings", {})
    return settings


def _choose_task(
    task: str | Task | None, settings: dict[str, Any], folder: str | os.PathLike[str]
) -> Task:
    if isinstance(task, Task):
        return task
    name = task or settings.get("task")
    if name is None:
        raise ValueError(f"{folder} does not say which task its problems are of: name it")
    if task is None and ":" in name:  # the data may be of others
        raise ValueError(
            f"{folder} is for {name!r}, which is code: if it is yours, name it yourself, by --task"
        )
    return get_task(name)


__all__ = ["KINDS", "perturb", "reduced", "renamed", "renaming"]
