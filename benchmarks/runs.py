"""What the studies share: runs that are trained once, and options that name some of many."""

import argparse
from collections.abc import Collection

from studies.models import train_once


def check_names(
    parser: argparse.ArgumentParser, option: str, names: str, known_names: Collection[str]
) -> None:
    """End with an error if an option, names with commas between them, has one that is unknown."""
    if unknown := set(names.split(",")) - set(known_names):
        parser.error(f"--{option}: {sorted(unknown)[0]!r} is none of {', '.join(known_names)}")


__all__ = ["check_names", "train_once"]
