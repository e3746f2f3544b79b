"""What the studies share: runs that are trained once, options that name some of many, stories."""

import argparse
import gzip
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from studies.models import train_once


def check_names(
    parser: argparse.ArgumentParser, option: str, names: str, known_names: Collection[str]
) -> None:
    """End with an error if an option, names with commas between them, has one that is unknown."""
    if unknown := set(names.split(",")) - set(known_names):
        parser.error(f"--{option}: {sorted(unknown)[0]!r} is none of {', '.join(known_names)}")


def clutrr_stories(data: Path, split: str, part: str) -> list[dict[str, Any]]:
    """The stories of a part of CLUTRR (`train`, `test`), of a split (`k23`, `k234`)."""
    with gzip.open(data / f"{split}_{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


__all__ = ["check_names", "clutrr_stories", "train_once"]
