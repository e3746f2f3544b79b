"""Training data whose names tell where they stand (2410.17161, Section 5.2.1; 2601.23169, 5.3).

It shows how much a model depends on names: it is trained on renamed data and tested on data as it
was.
"""

import json
import os
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_alpha.data.files import SETTINGS
from hf_alpha.data.rows import load_splits
from hf_alpha.io.folders import new_folder, write_text
from hf_alpha.io.records import read_json
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Task, get_task
from hf_alpha.tasks.base import words_of


def rename_training_data(
    in_dir: str | os.PathLike[str], out_dir: str | os.PathLike[str], task: str | Task
) -> None:
    """Make a copy of generated data in which the rows of the training split are `renamed`.

    Raises:
        FileExistsError: if `out_dir` exists.
        ValueError: a problem cannot be read.
    """
    solved = get_task(task)
    with new_folder(Path(out_dir)) as unfinished:
        data = load_splits(in_dir)
        data["train"] = renamed(data["train"], solved)
        (unfinished / "data").mkdir()
        for split, rows in data.items():
            rows.to_parquet(str(unfinished / "data" / f"{split}-00000-of-00001.parquet"))
        record = read_json(Path(in_dir) / SETTINGS, "settings", "rows")
        record["settings"]["perturbation"] = "renamed"
        write_text(unfinished / SETTINGS, json.dumps(record, indent=2) + "\n")


def renamed(dataset: Dataset, task: Task) -> Dataset:
    """Rename symbols so that their order of first occurrence in the answer is always the same.

    Each row's problem and answer are renamed by its `renaming`; other columns stay.

    Raises:
        FormulaError: if a problem cannot be read; the message names the row.
    """

    def rename(row: dict[str, Any], index: int) -> dict[str, str]:
        try:
            mapping = renaming(task, row["problem"], row["answer"])
        except FormulaError as error:
            raise FormulaError(f"row {index}: {error}", error.position) from error
        return {name: task.rename(row[name], mapping) for name in ("problem", "answer")}

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


__all__ = ["rename_training_data", "renamed", "renaming"]
