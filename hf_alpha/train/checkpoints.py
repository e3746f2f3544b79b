"""Checkpoints of a run: where it goes on, whether it has ended, and that what is read is whole."""

import logging
import math
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import PreTrainedModel, Seq2SeqTrainingArguments, TrainerState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hf_alpha.io.progress import without_bars
from hf_alpha.io.records import read_json
from hf_alpha.loading import CheckpointError
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.recipe import RECIPE_FILE, Recipe, RecipeError, differences, read_recipe

logger = logging.getLogger(__name__)

TRAINER_STATE = "trainer_state.json"
DAMAGED = (RuntimeError, EOFError, ValueError, TypeError, LookupError, AttributeError)
"""What readers of a state raise that is cut off, or that holds something else."""
NOTE = r"^# until step (\d+): ([^=]+)=(.*)$"


@contextmanager
def readable_state(checkpoint: str | None, content: str) -> Iterator[None]:
    """Say which part of a checkpoint is damaged."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (*DAMAGED, UnpicklingError) as error:
        reason = " ".join(str(error).split()) or "it is empty"
        raise CheckpointError(
            f"{checkpoint}: {content} cannot be read: {reason}; without this "
            "folder the run goes on from the checkpoint before, or begins again where there is none"
        ) from error


@contextmanager
def whole_checkpoint(folder: Path) -> Iterator[None]:
    """Remove a checkpoint that cannot be written, on a full disk say, and name it.

    The libraries that write have errors of their own for that, and bars, which are not shown.
    """
    try:
        with without_bars():
            yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if folder.name.startswith(PREFIX_CHECKPOINT_DIR):
            shutil.rmtree(folder, ignore_errors=True)
        raise OSError(
            f"{folder} cannot be written: {error}; the same command goes on from the last "
            "checkpoint before, if there is one"
        ) from error


def check_shapes(model: PreTrainedModel, saved: PreTrainedModel, place: Path) -> None:
    """Check that a checkpoint's weights fit the model of the recipe.

    Raises:
        RecipeError: naming the first tensor that has another shape, or is in one of them only.
    """
    recipe_shapes, saved_shapes = (
        {name: tuple(tensor.shape) for name, tensor in one.state_dict().items()}
        for one in (model, saved)
    )
    for name in {**recipe_shapes, **saved_shapes}:
        if recipe_shapes.get(name) != saved_shapes.get(name):
            raise RecipeError(
                f"{place} holds another model: tensor {name!r} is {saved_shapes.get(name)} there "
                f"and {recipe_shapes.get(name)} by the recipe; choose another training.output_dir"
            )


def check_vocabulary(tokenizer: Any, saved_tokenizer: Any, place: Path) -> None:
    """Check that a vocabulary made from data is still that of the run."""
    if isinstance(tokenizer, TextTokenizer) and tokenizer.settings() != saved_tokenizer.settings():
        raise RecipeError(
            f"{place} has another vocabulary: the data has changed since that run began; choose "
            "another training.output_dir, or bring back the data"
        )


def notes_of_changes(recipe: Recipe, out: Path, step: int, allow_changes: bool) -> list[str]:
    """Return notes for the top of `recipe.yaml`: until which step other settings held.

    Args:
        step: at which the run goes on.

    Raises:
        RecipeError: the settings are not those of the run so far, and may not be.
    """
    file = out / RECIPE_FILE
    if not file.is_file():
        logger.warning("%s is missing: the settings of the run so far are not known", file)
        return []
    changes = differences(read_recipe(file, within=out), recipe)
    if changes and not allow_changes:
        listing = ", ".join(f"{key}: {old} -> {new}" for key, (old, new) in changes.items())
        raise RecipeError(
            f"{out} holds a run with other settings: {listing}; choose another "
            "training.output_dir, or go on with the new ones by --allow-changes"
        )
    earlier_values: dict[tuple[int, str], str] = {}
    for until, key, value in re.findall(NOTE, file.read_text(encoding="utf-8"), re.MULTILINE):
        earlier_values.setdefault((min(int(until), step), key), value)
    for key, (old, _) in changes.items():
        earlier_values.setdefault((step, key), old)
    return [
        f"# until step {until}: {key}={value}" for (until, key), value in earlier_values.items()
    ]


def starting_point(arguments: Seq2SeqTrainingArguments) -> Path | None:
    """Return a run's last checkpoint; the run itself if it is finished and has none.

    Raises:
        RecipeError: the folder holds a run that cannot be resumed.
    """
    out = Path(arguments.output_dir)
    start = last_checkpoint(out)
    if start is not None and _ended_behind(out, start, arguments):
        start = out  # its last checkpoint is gone: with save_total_limit, only the best one stays
    if start is None and (out / TRAINER_STATE).is_file():
        start = out
        if not is_finished(state_of(out), arguments):
            raise RecipeError(
                f"{out} holds a trained model and no checkpoint to resume: choose another "
                f"training.output_dir; 'checkpoint: {out}' in a recipe goes on from its weights"
            )
    return start


def _ended_behind(out: Path, start: Path, arguments: Seq2SeqTrainingArguments) -> bool:
    """Whether the folder has the model of a finished run, of a later step than a checkpoint."""
    if not _holds_model(out):
        return False
    state = state_of(out)
    return is_finished(state, arguments) and state.global_step > state_of(start).global_step


def state_of(folder: Path) -> TrainerState:
    """Return the trainer's state in a checkpoint or a finished run.

    Raises:
        ValueError: the file is damaged.
    """
    read_json(folder / TRAINER_STATE)  # names the file if it is damaged
    return TrainerState.load_from_json(str(folder / TRAINER_STATE))


def has_model(out: Path, state: TrainerState) -> bool:
    """Whether the model of this state has been written behind its last checkpoint."""
    return _holds_model(out) and state_of(out).global_step == state.global_step


def _holds_model(out: Path) -> bool:
    """Whether a run has written its model, and the state that belongs to it, beside checkpoints."""
    return (out / TRAINER_STATE).is_file() and any(out.glob("*.safetensors"))


def final_weights(arguments: Seq2SeqTrainingArguments, start: Path) -> Path:
    """Return the folder with a finished run's weights: its own, or a checkpoint's.

    Raises:
        CheckpointError: the best checkpoint was to be loaded at the end, and is gone.
    """
    out, state = Path(arguments.output_dir), state_of(start)
    if has_model(out, state):
        return out
    if not arguments.load_best_model_at_end or state.best_model_checkpoint is None:
        return start
    best = out / Path(state.best_model_checkpoint).name
    if not best.is_dir():
        raise CheckpointError(f"{best}, the best checkpoint of the finished run, is missing")
    return best


def last_checkpoint(output_dir: str | Path, until: float = math.inf) -> Path | None:
    """Return the newest complete checkpoint of a run; one that was cut off is passed over.

    Args:
        output_dir: the run's folder.
        until: those of later steps are passed over too.
    """
    folders = Path(output_dir).glob(f"{PREFIX_CHECKPOINT_DIR}-*")
    numbered = [(int(f.name.rpartition("-")[2]), f) for f in folders if f.name[-1].isdigit()]
    for step, folder in sorted(numbered, reverse=True):
        if step > until:
            continue
        try:
            read_json(folder / TRAINER_STATE)  # the Trainer writes it last
        except (OSError, ValueError):
            logger.warning("%s is incomplete and passed over", folder)
        else:
            return folder
    return None


def is_finished(state: TrainerState, arguments: Seq2SeqTrainingArguments) -> bool:
    """Whether a run has nothing left to do: the Trainer would do one more step."""
    if arguments.max_steps > 0:
        return state.global_step >= arguments.max_steps
    return (state.epoch or 0) >= arguments.num_train_epochs
