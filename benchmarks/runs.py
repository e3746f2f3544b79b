"""What the studies share: runs that are trained once, and options that name some of many."""

import argparse
from collections.abc import Collection
from pathlib import Path

from hf_alpha.recipe import RECIPE_FILE, Recipe, read_recipe
from hf_alpha.train import TRAINER_STATE, train


def train_once(recipe: Recipe, out: Path) -> Path:
    """Train a model into its folder, or go on with it, unless it is done; returns the folder."""
    done = (out / TRAINER_STATE).is_file()  # written last
    if not done or read_recipe(out / RECIPE_FILE) != recipe:
        train(recipe)
    return out


def check_names(
    parser: argparse.ArgumentParser, option: str, said: str, known: Collection[str]
) -> None:
    """End with an error if an option, names with commas between them, has one that is unknown."""
    if unknown := set(said.split(",")) - set(known):
        parser.error(f"--{option}: {sorted(unknown)[0]!r} is none of {', '.join(known)}")
