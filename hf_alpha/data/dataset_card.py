"""What is written beside a dataset: a card that the Hub shows, and a record of its settings."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCard, DatasetCardData

from hf_alpha.folders import write_text
from hf_alpha.tasks import DrawnTask

SETTINGS = "generation.json"
"""The record of a dataset's settings, in its folder."""
PARTS = ".parts"
"""What is made of an unfinished dataset, in its folder."""
TEMPLATE_FILE = Path(__file__).with_name("dataset_card.md.jinja")


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
    card = DatasetCard.from_template(
        DatasetCardData(
            pretty_name=f"{task.name} ({settings['kind']})", tags=["hf_alpha", "logic"]
        ),
        template_path=str(TEMPLATE_FILE),
        task=task,
        settings=settings,
        counts=counts,
        num_symbols=sorted(Counter(num_symbols).items()),
        listed=[(name, f"`{json.dumps(value)}`") for name, value in settings.items()],
    )
    write_text(folder / "README.md", str(card))
    record = {"settings": settings, "rows": counts}
    write_text(folder / SETTINGS, json.dumps(record, indent=2) + "\n")


__all__ = ["PARTS", "SETTINGS", "write_records"]
