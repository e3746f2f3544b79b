"""What is written beside a dataset: a card that the Hub shows, and a record of its settings."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hf_alpha.folders import write_text
from hf_alpha.tasks import DrawnTask

SETTINGS = "generation.json"
"""The record of a dataset's settings, in its folder."""
PARTS = ".parts"
"""What is made of an unfinished dataset, in its folder."""


def write_records(
    folder: Path,
    task: DrawnTask,
    settings: Mapping[str, Any],
    counts: Mapping[str, int],
    num_symbols: Iterable[int],
) -> None:
    """Write what says how a dataset was made: the README.md that the Hub shows, and a record.

    The README.md names no data files, `load_dataset` finds them: if it did, `datasets` 5.2 would
    take two local folders of the same name for the same data and serve the first from its cache.

    Args:
        folder: of the dataset.
        task: of the problems.
        settings: how they were made.
        counts: split -> number of rows.
        num_symbols: number of distinct symbols of each row.
    """
    rows = _table(["split", "rows"], {name: f"{count:,}" for name, count in counts.items()})
    symbols = {k: f"{count:,}" for k, count in sorted(Counter(num_symbols).items())}
    values = {name: f"`{json.dumps(value)}`" for name, value in settings.items()}
    about = "\n\n".join(_about(task, settings))
    card = f"""---
pretty_name: {task.name} ({settings["kind"]})
tags:
- hf_alpha
- logic
---
# {task.name}: problems and answers

{about}

{rows}

{_table(["distinct symbols", "rows"], symbols)}

## Settings
{_table(["setting", "value"], values)}
"""
    write_text(folder / "README.md", card)
    record = {"settings": settings, "rows": counts}
    write_text(folder / SETTINGS, json.dumps(record, indent=2) + "\n")


def _table(head: Iterable[str], rows: Mapping[Any, str]) -> str:
    return "\n".join(f"| {a} | {b} |" for a, b in (head, ("---", "---"), *rows.items()))


def _about(task: DrawnTask, settings: Mapping[str, Any]) -> Iterator[str]:
    """Say what the data is, a paragraph at a time."""
    additions = "".join(text for key, text in _MORE.items() if key in settings)
    kind = _KINDS[settings["kind"]]
    yield f"{kind}{additions} Made by `hf_alpha` (`hf_alpha.data.generate`)."
    yield f"{task.data}, {_COLUMNS}."
    yield f"**Targets: {settings['targets']}.** {task.targets[settings['targets']]}"
    if "hard" in settings:
        hardness = f" Hardness {settings['hardness']}." if "hardness" in settings else ""
        share = f"at least {settings['hard']:.0%}, where there are so many.{hardness}"
        yield f"**Hard: {share}** {task.hard}"
    if "walk" in settings:
        yield (
            f"**Walk: {settings['walk']}.** After each hard problem that was drawn, so many more "
            "were tried, each with one part of the last hard one drawn anew. Problems of one walk "
            "are alike."
        )
    yield _HELD_OUT[settings["equivalence"]] if task.held_out else _NOT_HELD_OUT


_KINDS = {
    "samples": "Training, validation and test data, as uniform over sizes as `alpha` demands.",
    "grid": "Test data for a heatmap: up to `per_cell` problems for each number of distinct "
    "symbols and each size.",
}
_COLUMNS = (
    "`num_symbols` the number of distinct symbols in the problem, `size` its number of tokens"
)
_MORE = {
    "few_symbols": " The training data has up to `few_symbols` more rows with one symbol or none, "
    "of every size from 1 to the largest (2601.23169, Appendix F).",
    "many_symbols": " The training data has up to `many_symbols` more rows with more than "
    "`num_symbols` symbols, up to `up_to_symbols`, evenly by number and size.",
}
_SPLITS = (
    "decides its split, so splits do not overlap in this sense, in this and in every other dataset "
    "made with the same `equivalence`."
)
_HELD_OUT = {
    "commuting": "Problems are different up to renaming of their symbols and the order of operands "
    "of commutative operators. The hash of a problem's canonical form (operands sorted, then "
    f"symbols renamed in order of first occurrence) {_SPLITS}",
    "renaming": "Problems are different up to renaming of their symbols. The hash of a problem's "
    f"canonical form (symbols renamed in order of first occurrence) {_SPLITS} Of two problems that "
    "differ in the order of operands only, one may be in the training data and one in the test.",
}
_NOT_HELD_OUT = (
    "Problems are different as texts. There are too few for test data that is not in training data "
    "up to renaming."
)


__all__ = ["PARTS", "SETTINGS", "write_records"]
