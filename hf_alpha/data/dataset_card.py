"""What is written beside a dataset: a card that the Hub shows, and a record of its settings."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hf_alpha.folders import write_text
from hf_alpha.plain_text import code_cell, within_line
from hf_alpha.tasks import DrawnTask, Task

SETTINGS = "generation.json"


def write_records(
    folder: Path,
    task: Task,
    settings: Mapping[str, Any],
    counts: Mapping[str, int],
    num_symbols: Iterable[int],
) -> None:
    """Write what says how a dataset was made; `dataset_card` describes the arguments."""
    card = dataset_card(task, settings, counts, num_symbols)
    write_text(folder / "README.md", card)
    record = {"settings": settings, "rows": counts}
    write_text(folder / SETTINGS, json.dumps(record, indent=2) + "\n")


def dataset_card(
    task: Task, settings: Mapping[str, Any], counts: Mapping[str, int], num_symbols: Iterable[int]
) -> str:
    """Write the README.md that the Hub shows.

    It names no data files, `load_dataset` finds them: if it did, `datasets` 5.2 would take two
    local folders of the same name for the same data and serve the first from its cache.

    Args:
        task: of the problems.
        settings: how they were made; data that is known by its task only has no others.
        counts: split -> number of rows.
        num_symbols: number of distinct symbols of each row.
    """
    listed = "\n".join(  # perturbed data may bring settings that others wrote
        f"| {within_line(name)} | {code_cell(json.dumps(value))} |"
        for name, value in settings.items()
    )
    rows = "\n".join(f"| {split} | {count:,} |" for split, count in counts.items())
    symbols = Counter(num_symbols)
    by_symbols = "\n".join(f"| {k} | {symbols[k]:,} |" for k in sorted(symbols))
    about = "\n\n".join(_about(task, settings))
    return f"""---
pretty_name: {task.name} ({settings.get("perturbation", settings.get("kind"))})
tags:
- hf_alpha
- logic
---
# {task.name}: problems and answers

{about}

| split | rows |
|---|---|
{rows}

| distinct symbols | rows |
|---|---|
{by_symbols}

## Settings
| setting | value |
|---|---|
{listed}
"""


def _about(task: Task, settings: Mapping[str, Any]) -> Iterator[str]:
    """Say what the data is, a paragraph at a time."""
    if "kind" in settings:
        additions = "".join(text for key, text in _MORE.items() if settings.get(key))
        kind = _KINDS[settings["kind"]]
        yield f"{kind}{additions} Made by `hf_alpha` (`hf-alpha generate-data`)."
    if "perturbation" in settings:
        splits = ", ".join(settings["perturbed_splits"])
        kinds = settings["perturbation"]
        explanation = " ".join(_PERTURBATIONS[kind] for kind in kinds.split(", "))
        yield f"**Perturbed ({splits}): {kinds}.** {explanation}"
    yield f"{task.data}, {_COLUMNS}."
    if isinstance(task, DrawnTask):
        yield from _drawn(task, settings)
    if "kind" in settings:
        yield _HELD_OUT[settings.get("equivalence", "renaming")] if task.held_out else _NOT_HELD_OUT


def _drawn(task: DrawnTask, settings: Mapping[str, Any]) -> Iterator[str]:
    if "targets" in settings:
        yield f"**Targets: {settings['targets']}.** {task.targets[settings['targets']]}"
    if settings.get("hard"):
        hardness = f" Hardness {settings['hardness']}." if "hardness" in settings else ""
        share = f"at least {settings['hard']:.0%}, where there are so many.{hardness}"
        yield f"**Hard: {share}** {task.hard}"
    if settings.get("walk"):
        yield (
            f"**Walk: {settings['walk']}.** After each hard problem that was drawn, so many more "
            "were tried, each with one part of the last hard one drawn anew. Problems of one walk "
            "are alike."
        )


_KINDS = {
    "samples": "Training, validation and test data, as uniform over sizes as `alpha` demands.",
    "grid": "Test data for a heatmap: up to `per_cell` problems for each number of distinct "
    "symbols and each size.",
}
_PERTURBATIONS = {
    "renamed": "The symbols of a problem and its answer are renamed so that their order of first "
    "occurrence in the answer, and then in the problem, is always the same (2410.17161, Section "
    "5.2.1; 2601.23169, Section 5.3).",
    "reduced": "Only the first rows are left (2601.23169, Section 5.3).",
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


__all__ = ["SETTINGS", "dataset_card", "write_records"]
