"""The arguments of training, from a recipe."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    Seq2SeqTrainingArguments,
)
from transformers.integrations import get_reporting_integration_callbacks

from hf_alpha.environment import TRACKERS, install_command
from hf_alpha.recipe import (
    Pairs,
    Recipe,
    RecipeError,
    RowsRecipe,
)

LABEL_SMOOTHING = (
    "label_smoothing_factor spreads over columns that a sample cannot use; "
    "set label_smoothing in the model's configuration instead"
)


def prepare_arguments(recipe: Recipe) -> Seq2SeqTrainingArguments:
    """The arguments of training, with defaults that suit the machine.

    Raises:
        RecipeError: a setting of training has a wrong kind or value.
    """
    aim = recipe.aim if isinstance(recipe, RowsRecipe) else None
    defaults: dict[str, Any] = {
        # Without it, processes that torchrun starts on a CPU would not know of each other.
        "use_cpu": not torch.accelerator.is_available(),
        # Heads leave some weights of a body without gradients.
        "ddp_find_unused_parameters": aim is not None,
    }
    if (
        isinstance(recipe.data, Pairs) and recipe.data.streaming
    ):  # else several processes would get parts of one batch
        defaults["accelerator_config"] = {"dispatch_batches": False}
    if recipe.training.get("label_smoothing_factor") and aim is None:
        raise RecipeError(f"training: {LABEL_SMOOTHING}")
    with section("training"):
        if aim is not None:
            aim.check_training(recipe.training)
        arguments = Seq2SeqTrainingArguments(**{**defaults, **recipe.training})
    if aim is not None:
        arguments.remove_unused_columns = False  # collators take what else there is
    with section("training: report_to"):
        _check_trackers(arguments.report_to)
    return arguments


def _check_trackers(names: list[str]) -> None:
    """Raise an error for a tracker that is unknown or not installed; it says what to install."""
    for name, tracker in zip(names, get_reporting_integration_callbacks(names), strict=True):
        try:
            tracker()
        except RuntimeError as error:  # for others, Transformers says what they want
            if name not in TRACKERS:
                raise
            raise RuntimeError(f"{name} is not installed: {install_command(name)}") from error


@contextmanager
def section(section: str) -> Iterator[None]:
    """Say which section of the recipe a setting that is refused stands in."""
    try:
        yield
    except (ValueError, TypeError, OSError, RuntimeError, StrictDataclassError) as error:
        raise RecipeError(f"{section}: {error}") from error


__all__ = ["LABEL_SMOOTHING", "prepare_arguments", "section"]
