"""Encodings side by side: the same recipe trained with each, for the same steps or time."""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from torch.optim.lr_scheduler import LambdaLR
from tqdm import tqdm
from transformers import TrainerCallback

from hf_alpha.evaluation.compare import EvaluatedModel, compare
from hf_alpha.evaluation.curves import draw_curves
from hf_alpha.evaluation.report import Report
from hf_alpha.folders import alone_in, write_text
from hf_alpha.loading import load_checkpoint
from hf_alpha.processes import choose_device
from hf_alpha.progress import TrainingProgress
from hf_alpha.recipe import RECIPE_FILE, Recipe, differences, read_recipe
from hf_alpha.train import TRAINER_STATE, AlphaTrainer, train

ENCODINGS: Mapping[str, Mapping[str, Any]] = {
    "learned": {"symbol_encoding": "learned"},
    "renaming": {"symbol_encoding": "learned", "symbol_renaming": "random"},
    "canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    "dual_part": {"symbol_encoding": "dual_part"},
    "streams": {"symbol_encoding": "streams"},
    "relational": {"symbol_encoding": "relational"},
}
"""What a comparison calls an encoding -> settings of the model."""
CURVES_FILE = "curves.png"
SECONDS_FILE = "seconds.txt"
ALONE = {"save_strategy": "no", "eval_strategy": "no", "load_best_model_at_end": False}
Say: TypeAlias = Callable[[str], object]
WARM_UP = 0.05
"""Share of the time in which the learning rate grows, where training is limited by time."""


@alone_in("out")
def compare_encodings(
    recipe: Recipe,
    encodings: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    seconds: float | None = None,
    trained: tuple[int, int] | None = None,
    covariance: int = 0,
    title: str | None = None,
    caption: str | None = None,
    say: Say = print,
    **settings: Any,
) -> tuple[str, list[Report]]:
    """Train a recipe once with each encoding, and evaluate all models on the same problems.

    `out` gets a folder for each model, the curves by number of names, and `evaluation` with the
    table, the reports and the picture by length. What an earlier start has trained there is not
    trained again.

    Args:
        recipe: what to train; its `symbol_encoding`, `symbol_renaming` and `output_dir` are
            replaced.
        encodings: keys of `ENCODINGS`.
        rows: what to test on, as evaluation takes them.
        out: a folder.
        seconds: train each for so long, with a learning rate that falls to zero until then; None
            for the recipe's steps.
        trained: fewest and most names of the training data, for the picture.
        covariance: problems for each number of names whose alpha-covariance is measured.
        title: above the curves.
        caption: below them.
        say: is told what is done.
        **settings: of `compare`.

    Returns:
        The table and the reports, that of the baseline last.

    Raises:
        ValueError: there is no such encoding, the recipe goes on from a checkpoint, or `out` has
            models of other settings, or another process writes there.
    """
    _check(recipe, encodings)
    models = []
    for name in encodings:
        encoded = with_encoding(recipe, name, out / name, timed=seconds is not None)
        look = say if name == encodings[0] else _silent  # the data is looked at once
        _train(encoded, name, seconds, look, say)
        model, tokenizer = load_checkpoint(out / name)
        models.append(EvaluatedModel(name, model.eval().to(choose_device()), tokenizer))
    table, reports = compare(
        models, recipe.solved, rows, out / "evaluation", covariance=covariance, **settings
    )
    *of_models, baseline = reports
    draw_curves(
        of_models, out / CURVES_FILE, metric=recipe.solved.measure, trained=trained,
        baseline=baseline, title=title, caption=caption,
    )  # fmt: skip
    return table, reports


def _check(recipe: Recipe, encodings: Sequence[str]) -> None:
    """Refuse what cannot be compared.

    Raises:
        ValueError: there is no such encoding, one is given twice, or the recipe goes on from a
            checkpoint.
    """
    if recipe.checkpoint is not None:
        raise ValueError(
            "models are compared from scratch: leave out 'checkpoint'. Of trained models, hf-alpha "
            "evaluate MODEL MODEL --out DIR makes the table"
        )
    if len(set(encodings)) < len(encodings):
        raise ValueError(f"an encoding is given twice: {', '.join(encodings)}")
    if unknown := [name for name in encodings if name not in ENCODINGS]:
        raise ValueError(f"no encoding {unknown[0]!r}: choose from {', '.join(ENCODINGS)}")


def _train(recipe: Recipe, name: str, seconds: float | None, look: Say, say: Say) -> None:
    """Train a recipe with one encoding, unless an earlier start has.

    Args:
        recipe: with the encoding and its folder.
        name: what the encoding is called.
        seconds: for how long; None for the recipe's steps.
        look: is told what training says of the data.
        say: is told how long it took.
    """
    folder = Path(recipe.training["output_dir"])
    if seconds is not None and _is_trained(folder, recipe, seconds):
        return
    start = time.monotonic()
    make_trainer = AlphaTrainer if seconds is None else _timed(seconds, name)
    trainer = train(recipe, say=look, make_trainer=make_trainer)
    steps, took = trainer.state.global_step, time.monotonic() - start
    say(f"{name}: {steps:,} steps, {took:.0f} s with data and saving")
    if seconds is not None:
        write_text(folder / SECONDS_FILE, f"{seconds}\n")


def _silent(_: str) -> None:
    """Say nothing."""


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


def with_encoding(recipe: Recipe, name: str, folder: Path, timed: bool = False) -> Recipe:
    """Return a recipe with another encoding and output folder.

    With `timed`, nothing but training takes time: no evaluations and checkpoints on the way.
    """
    model_settings = {
        key: value
        for key, value in recipe.model.items()
        if key not in ("symbol_encoding", "symbol_renaming")
    }
    changes = {
        "model": {**model_settings, **ENCODINGS[name]},
        "training": {**recipe.training, **(ALONE if timed else {}), "output_dir": str(folder)},
    }
    return recipe.model_copy(update=changes, deep=True)


def _timed(seconds: float, name: str) -> type[AlphaTrainer]:
    """Return a trainer that stops after so many seconds; its learning rate falls with the time."""

    class TimedTrainer(AlphaTrainer):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            self.args.max_steps = sys.maxsize  # time ends the training, not the recipe's steps
            self.clock = _Clock(seconds, name)
            self.remove_callback(TrainingProgress)  # which counts steps, and knows their number
            self.add_callback(self.clock)

        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
            optimizer = self.optimizer if optimizer is None else optimizer
            self.lr_scheduler = LambdaLR(optimizer, lambda _: _schedule(self.clock.share))
            return self.lr_scheduler

    return TimedTrainer


class _Clock(TrainerCallback):
    """Stops training when its time is up; a bar shows the time on a terminal."""

    def __init__(self, seconds: float, name: str):
        self.seconds, self.name = seconds, name
        self.start: float | None = None
        self.shown = 0  # seconds that the bar shows

    @property
    def share(self) -> float:
        """Return how much of the time is over, from 0 to 1."""
        return 0.0 if self.start is None else (time.monotonic() - self.start) / self.seconds

    def on_train_begin(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
        self.start = time.monotonic()
        self.bar = tqdm(
            total=round(self.seconds), desc=self.name, unit="s", leave=False, disable=None
        )

    def on_step_end(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
        control.should_training_stop |= self.share >= 1
        passed = int(min(self.share, 1.0) * self.seconds)
        self.bar.update(passed - self.shown)
        self.shown = passed

    def on_train_end(self, args, state, control, **kwargs):  # type: ignore[no-untyped-def]
        self.bar.close()


def _schedule(share: float) -> float:
    """Return the factor of the learning rate: up, then down along a cosine."""
    if share < WARM_UP:
        return (share + 0.1 * WARM_UP) / (1.1 * WARM_UP)
    return 0.5 * (1 + math.cos(math.pi * min((share - WARM_UP) / (1 - WARM_UP), 1.0)))


__all__ = ["ENCODINGS", "compare_encodings", "with_encoding"]
