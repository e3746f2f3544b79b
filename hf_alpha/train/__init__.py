"""Training: a run and its arguments, its trainers, models and checkpoints."""

from hf_alpha.loading import config_for
from hf_alpha.objectives.answer import prepare_data

from .checkpoints import TRAINER_STATE, last_checkpoint
from .models import prepare_model
from .run import prepare_arguments, train
from .trainers import AlphaTrainer, Interrupted, NotFiniteError, ObjectiveTrainer

__all__ = [
    "TRAINER_STATE", "AlphaTrainer", "Interrupted", "NotFiniteError", "ObjectiveTrainer",
    "config_for", "last_checkpoint", "prepare_arguments", "prepare_data", "prepare_model",
    "train",
]  # fmt: skip
