"""Models that tables measure: what they are trained from, trained once, and what that took."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Any, Literal

from hf_alpha.convert import convert_checkpoint
from hf_alpha.data.files import SETTINGS
from hf_alpha.data.keys import SPLITS
from hf_alpha.io.folders import lock_folder, write_text
from hf_alpha.io.records import read_json
from hf_alpha.logic.drawing.generate import generate
from hf_alpha.recipe import RECIPE_FILE, Recipe, differences, leaves, read_recipe
from hf_alpha.train import TRAINER_STATE, AlphaTrainer, train

from .renamed import rename_training_data
from .sizes import Size

CLOCK = "session_runtime"
"""Seconds since this start of a run, in each of its logs."""
STARTED = "session_start"
"""When this start of the run began, in each of its logs: seconds of the wall clock."""
PLACES = ("data.path", "data.num_workers", "checkpoint", "training.output_dir")
"""Keys of a recipe that say where something is done, not what."""
SAID_ONCE = {
    "data.source": '"source"',
    "data.target": '"target"',
    "data.drop_bad": "false",
    "data.streaming": "false",
    "data.max_answer_samples": "64",
    "tokenizer": '"words"',
    "ignore_whitespace": "false",
}
"""What recipes for formulas said once, without effect: files of results hold it."""
SIDES = ("encoder", "decoder")
CONVERSIONS: Mapping[str, Callable[[Path, Path], object]] = {
    "streams": partial(convert_checkpoint, actual="a", placeholder="b"),
    **{
        f"streams, aggregated attention in {' and '.join(sides)}": partial(
            convert_checkpoint, actual="a", placeholder="b", add_aggregated_attention=sides
        )
        for sides in (SIDES, SIDES[:1])
    },
}
"""What a conversion is called -> converts one folder to another."""


@dataclass(frozen=True)
class Model:
    """A trained model. Tables that name equal models share them.

    Attributes:
        name: of its folder; different models of a size have different names.
        recipe: a shipped recipe, without the suffix of the size.
        changes: to the recipe.
        data: what it is trained on: all of the data, `renamed` or `reduced`.
        share: of the size's steps.
        start: the model that it goes on from; None for random weights.
        conversion: how that one is converted before, a key of `CONVERSIONS`.
    """

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    data: Literal["normal", "renamed", "reduced"] = "normal"
    share: float = 1.0
    start: "Model | None" = None
    conversion: str = ""

    def folder(self, seed: int, runs: Path) -> Path:
        """Where it is trained."""
        return runs / "models" / f"{self.name}-{seed}"

    def is_trained(self, seed: int, runs: Path) -> bool:
        """Whether its training has ended."""
        return (self.folder(seed, runs) / TRAINER_STATE).is_file()  # written last

    def recipe_at(self, size: Size, seed: int, runs: Path) -> Recipe:
        """The whole recipe. The last step counts, as for all models of the papers' tables."""
        recipe = size.recipe(self.recipe, self.changes)
        steps = size.steps.get(recipe.task, recipe.training["max_steps"]) * self.share
        if self.data == "reduced":
            steps *= size.reduced_steps
        training = {
            **recipe.training,
            "seed": seed,
            "max_steps": max(1, round(steps)),
            "output_dir": str(self.folder(seed, runs)),
            "load_best_model_at_end": False,
        }
        data = _data(recipe, self.data, size).model_copy(update={"validation": None})
        changes: dict[str, Any] = {"training": training, "data": data}
        if self.start is not None:
            start = str(self._start(seed, runs))
            changes |= {"checkpoint": start, "model": {}, "num_symbols": None}
        return recipe.model_copy(update=changes)

    def settings(self, size: Size, seed: int) -> dict[str, str]:
        """What makes the model what it is, without any place."""
        values = {
            key: value
            for key, value in leaves(self.recipe_at(size, seed, Path()).settings())
            if key not in PLACES and value not in ("null", '""')
        }
        values = {**SAID_ONCE, **values, "data": self.data}
        if self.start is not None:
            before = {f"start.{k}": v for k, v in self.start.settings(size, seed).items()}
            values |= {**before, "conversion": self.conversion}
        return values

    def train(self, size: Size, seed: int, runs: Path, say: Callable[[str], object]) -> Path:
        """Train it, with what it starts from and its data, unless that is done.

        Returns:
            Its folder.

        Raises:
            ValueError: another process trains it now, or a folder of the model, of what it starts
                from or of its data was made with other settings.
        """
        recipe, out = self.recipe_at(size, seed, runs), self.folder(seed, runs)
        with lock_folder(out):
            _check_settings(out, recipe)
            self._convert(size, seed, runs, say)
            if not self.is_trained(seed, runs):
                say(f"{out.name}: {recipe.training['max_steps']:,} steps")
                if self.data == "renamed":
                    _make_renamed(size.recipe(self.recipe, self.changes), recipe)
            train_once(recipe, out)
        return out

    def hours(self, size: Size) -> float:
        """An estimate of the hours of training, without what it starts from; 0 if not known."""
        recipe = self.recipe_at(size, 0, Path())
        encoding = "streams" if self.conversion else recipe.model.get("symbol_encoding", "")
        pace = size.pace.get(encoding, size.pace.get(""))
        return recipe.training["max_steps"] / pace / 3600 if pace else 0.0

    def _convert(self, size: Size, seed: int, runs: Path, say: Callable[[str], object]) -> None:
        """Make the folder that it goes on from, unless that is done."""
        if self.start is None:
            return
        start, out = self._start(seed, runs), self.folder(seed, runs)
        record = start.with_name(f"{start.name}.json")
        settings = {**self.start.settings(size, seed), "conversion": self.conversion}
        if start.is_dir() or (out / RECIPE_FILE).is_file():
            old = read_json(record) if record.is_file() else {}
            if listing := _changed(old, settings):
                raise ValueError(
                    f"{start} was converted from a model of other settings: {listing}; name "
                    f"another --runs, or remove that folder, {out} and {_reports(out)}"
                )
        vanilla = self.start.train(size, seed, runs, say)
        if not start.is_dir():
            write_text(record, json.dumps(settings, indent=1) + "\n")  # first: none is without it
            CONVERSIONS[self.conversion](vanilla, start)

    def _start(self, seed: int, runs: Path) -> Path:
        return self.folder(seed, runs).with_name(f"{self.name}-{seed}-start")


class _ClockedTrainer(AlphaTrainer):
    """Says in each log how long this start of the run has taken: a run may have several."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._began, self._started = time(), monotonic()

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        clock = {STARTED: self._began, CLOCK: monotonic() - self._started}
        super().log({**logs, **clock}, *args, **kwargs)


def train_once(recipe: Recipe, out: Path) -> Path:
    """Train a model into its folder, or go on with it, unless it is done; returns the folder.

    Raises:
        RecipeError: the folder holds a model of other settings.
    """
    changes = _changes(out, recipe)
    if changes or not (out / TRAINER_STATE).is_file():  # written last
        train(recipe, allow_changes=not changes, make_trainer=_ClockedTrainer)
    return out


def training_of(folder: Path) -> dict[str, float]:
    """What the training of a model took: `steps`, `batch_size` and `hours`.

    The hours are those of all starts of the run, without what a killed start did behind its last
    checkpoint.
    """
    state, recipe = (
        read_json(folder / TRAINER_STATE, "log_history"),
        read_recipe(folder / RECIPE_FILE),
    )
    seconds, before, start = 0.0, 0.0, None
    for entry in (entry for entry in state["log_history"] if CLOCK in entry):
        now = entry[CLOCK]
        goes_on = entry.get(STARTED) == start and now >= before
        seconds += now - before if goes_on else now
        before, start = now, entry.get(STARTED)
    arguments = recipe.training
    batch = arguments.get("per_device_train_batch_size", 8)
    return {
        "steps": state["global_step"],
        "batch_size": batch * arguments.get("gradient_accumulation_steps", 1),
        "hours": round(seconds / 3600, 4),
    }


def _check_settings(folder: Path, recipe: Recipe) -> None:
    if changes := _changes(folder, recipe):
        listing = ", ".join(f"{key}: {old} -> {new}" for key, (old, new) in changes.items())
        raise ValueError(
            f"{folder} holds a model of other settings: {listing}; name another --runs, or remove "
            f"that folder and {_reports(folder)}"
        )


def _changes(folder: Path, recipe: Recipe) -> dict[str, tuple[str, str]]:
    """Settings of the run in a folder, if there is one, that are others now; not its places."""
    file = folder / RECIPE_FILE
    changes = differences(read_recipe(file), recipe) if file.is_file() else {}
    return {key: values for key, values in changes.items() if key not in PLACES}


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What differs, in words."""
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return ", ".join(f"{key}: {old.get(key)} -> {new.get(key)}" for key in keys)


def _reports(folder: Path) -> Path:
    """Where the reports of a model are, of all tests."""
    return folder.parents[1] / "reports" / "*" / folder.name


def _data(recipe: Recipe, kind: str, size: Size) -> Any:
    data: Any = recipe.data
    if kind == "renamed":
        return data.model_copy(update={"path": f"{data.path}-renamed", "generate": {}})
    if kind == "reduced":
        rows = SPLITS["train"] * data.generate["num_samples"]
        return data.model_copy(update={"max_train_samples": round(size.reduced * rows)})
    return data


def _make_renamed(normal: Recipe, renamed: Recipe) -> None:
    """Make the renamed copy of the data, if it is not there.

    Raises:
        ValueError: it is there, and was made from other data.
    """
    path, copy = Path(generated(normal)), Path(renamed.data.path)
    if not copy.is_dir():
        rename_training_data(path, copy, normal.task)
    old, new = (read_json(folder / SETTINGS, "settings")["settings"] for folder in (copy, path))
    if listing := _changed({k: v for k, v in old.items() if not k.startswith("perturb")}, new):
        raise ValueError(
            f"{copy} is a copy of data of other settings: {listing}; remove that folder"
        )


def generated(recipe: Recipe) -> str:
    """The folder of a recipe's data, generated if it is not there."""
    data = recipe.data
    generate(recipe.task, data.path, num_workers=data.num_workers, **data.generate)
    return data.path


__all__ = ["CONVERSIONS", "Model", "generated", "train_once", "training_of"]
