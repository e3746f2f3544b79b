"""What is written beside a dataset: a card that the Hub shows, and a record of its settings."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCard, DatasetCardData

from hf_alpha.folders import write_text
from hf_alpha.plain_text import code_cell, within_line
from hf_alpha.tasks import Task

SETTINGS = "generation.json"
TEMPLATE_FILE = Path(__file__).with_name("dataset_card.md.jinja")


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
    kind = settings.get("perturbation", settings.get("kind"))
    card = DatasetCard.from_template(
        DatasetCardData(pretty_name=f"{task.name} ({kind})", tags=["hf_alpha", "logic"]),
        template_path=str(TEMPLATE_FILE),
        task=task,
        settings=settings,
        counts=counts,
        num_symbols=sorted(Counter(num_symbols).items()),
        # Perturbed data may bring settings that others wrote.
        listed=[(within_line(k), code_cell(json.dumps(v))) for k, v in settings.items()],
    )
    return str(card)


__all__ = ["SETTINGS", "dataset_card", "write_records"]
