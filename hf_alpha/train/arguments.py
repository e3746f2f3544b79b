"""The arguments of training, from a recipe."""

from typing import Any

import torch
from transformers import Seq2SeqTrainingArguments
from transformers.integrations import get_reporting_integration_callbacks

from hf_alpha.environment import TRACKERS, install_command
from hf_alpha.recipe import Recipe
from hf_alpha.settings import section


def prepare_arguments(recipe: Recipe) -> Seq2SeqTrainingArguments:
    """Return the arguments of training, with defaults that suit the machine.

    Raises:
        RecipeError: a setting of training has a wrong kind or value.
    """
    objective = recipe.aim
    defaults: dict[str, Any] = {
        # Without it, processes that torchrun starts on a CPU would not know of each other.
        "use_cpu": not torch.accelerator.is_available(),
        # Heads leave some weights of a body without gradients.
        "ddp_find_unused_parameters": not objective.answers,
    }
    if recipe.data.streaming:  # else processes would get parts of one batch
        defaults["accelerator_config"] = {"dispatch_batches": False}
    with section("training"):
        objective.check_training(recipe.training)
        arguments = Seq2SeqTrainingArguments(**{**defaults, **recipe.training})
    if not objective.answers:
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


__all__ = ["prepare_arguments"]
