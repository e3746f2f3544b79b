"""One run of a comparison: a recipe with one encoding, one seed and one learning rate."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from hf_alpha.folders import read_json, write_text
from hf_alpha.recipe import RECIPE_FILE, Recipe, differences, read_recipe
from hf_alpha.train import TRAINER_STATE, train

from .clock import CLOCK, ClockedTrainer, ProcessorClock

ENCODINGS: Mapping[str, Mapping[str, Any]] = {
    "learned": {"symbol_encoding": "learned"},
    "renaming": {"symbol_encoding": "learned", "symbol_renaming": "random"},
    "canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    "dual_part": {"symbol_encoding": "dual_part"},
    "streams": {"symbol_encoding": "streams"},
    "relational": {"symbol_encoding": "relational"},
}
"""What a comparison calls an encoding -> settings of the model."""
SECONDS_FILE = "seconds.txt"
ALONE = {"save_strategy": "no", "eval_strategy": "no", "load_best_model_at_end": False}
"""Settings of training without evaluations and checkpoints on the way."""
STILL = 0.8
"""A loss stands still if that of the last quarter is not below so much of the second quarter's."""
LEARNING_RATE = 5e-5
"""That of Transformers, where a recipe has none."""
Say: TypeAlias = Callable[[str], object]


@dataclass(frozen=True)
class Run:
    """A model that was trained, and what that took.

    Attributes:
        encoding: what the comparison calls it.
        seed: of training.
        folder: where the model is.
        learning_rate: the highest one.
        steps: of the optimiser.
        seconds: of the processor, in those steps alone.
        losses: of training, as logged: each is a mean since the one before.
        eval_loss: the last one on held-out rows; None if there is none.
    """

    encoding: str
    seed: int
    folder: Path
    learning_rate: float
    steps: int
    seconds: float
    losses: tuple[float, ...]
    eval_loss: float | None

    @classmethod
    def of(cls, encoding: str, recipe: Recipe) -> "Run":
        """Read what a finished run of a recipe has written."""
        folder = Path(recipe.training["output_dir"])
        state = read_json(folder / TRAINER_STATE)
        log = state["log_history"]
        clock = state.get("stateful_callbacks", {}).get(CLOCK, {})
        losses = [row["loss"] for row in log if "loss" in row]
        mean = [row["train_loss"] for row in log if "train_loss" in row]
        evaluated = [row["eval_loss"] for row in log if "eval_loss" in row]
        return cls(
            encoding, recipe.seed, folder, learning_rate_of(recipe), state["global_step"],
            clock.get("seconds", math.nan), tuple(losses or mean[-1:]),
            evaluated[-1] if evaluated else None,
        )  # fmt: skip

    @property
    def loss(self) -> float:
        """The last loss of training."""
        return self.losses[-1] if self.losses else math.nan

    @property
    def standstill(self) -> tuple[float, float] | None:
        """Mean losses of the second and the last quarter, if the one is not well below the other.

        None if it is, or if there are too few losses to tell.
        """
        quarter = len(self.losses) // 4
        if quarter < 2:  # one loss is noise
            return None
        before, last = fmean(self.losses[quarter : 2 * quarter]), fmean(self.losses[-quarter:])
        return (before, last) if last > STILL * before else None


@dataclass(frozen=True)
class Runner:
    """How runs of a comparison are trained; all of them share their data.

    Attributes:
        examples: the data, which was read once.
        seconds: of the processor for each run; None for the recipe's steps.
        say: is told what is done.
        progress: show loss and time left while a model is trained.
    """

    examples: Any
    seconds: float | None
    say: Say
    progress: bool

    def train(self, recipe: Recipe, encoding: str) -> Run:
        """Train a recipe, unless an earlier start has; then say what that took.

        Raises:
            ValueError: the folder holds a model of other settings.
        """
        folder = Path(recipe.training["output_dir"])
        if self.seconds is not None and _is_trained(folder, recipe, self.seconds):
            return Run.of(encoding, recipe)
        make_trainer = partial(
            ClockedTrainer,
            clock=ProcessorClock(self.seconds),
            label=folder.name,
            progress=self.progress,
        )
        train(recipe, say=self.say, make_trainer=make_trainer, examples=self.examples)
        run = Run.of(encoding, recipe)
        if self.seconds is not None:
            write_text(folder / SECONDS_FILE, f"{self.seconds}\n")
        self.say(
            f"{folder.name}: {run.steps:,} steps, {run.seconds:.0f} s of processor time, "
            f"loss {run.loss:.4g}"
        )
        return run


def _is_trained(folder: Path, recipe: Recipe, seconds: float) -> bool:
    """Whether a folder has a model of this recipe that was trained for so long.

    Raises:
        ValueError: it has a model of other settings.
    """
    if not (folder / TRAINER_STATE).is_file():
        return False
    time_file, recipe_file = folder / SECONDS_FILE, folder / RECIPE_FILE
    same_time = time_file.is_file() and time_file.read_text(encoding="utf-8") == f"{seconds}\n"
    if not same_time or differences(read_recipe(recipe_file), recipe):
        raise ValueError(
            f"{folder} holds a model that was trained with other settings, or for another time: "
            "choose another folder, or remove that one"
        )
    return True


def with_encoding(recipe: Recipe, name: str, folder: Path, **training: Any) -> Recipe:
    """Return a recipe with another encoding, output folder and other settings of training."""
    model_settings = {
        key: value
        for key, value in recipe.model.items()
        if key not in ("symbol_encoding", "symbol_renaming")
    }
    changes = {
        "model": {**model_settings, **ENCODINGS[name]},
        "training": {**recipe.training, **training, "output_dir": str(folder)},
    }
    return recipe.model_copy(update=changes, deep=True)


def learning_rate_of(recipe: Recipe) -> float:
    """Return the learning rate of a recipe."""
    return float(recipe.training.get("learning_rate", LEARNING_RATE))


__all__ = [
    "ALONE",
    "ENCODINGS",
    "Run",
    "Runner",
    "Say",
    "learning_rate_of",
    "with_encoding",
]
