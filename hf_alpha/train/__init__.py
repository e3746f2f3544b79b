"""Training: what runs (run), trainers, data, models, arguments and checkpoints of a run."""

from hf_alpha.objectives.answer import prepare_data

from .arguments import prepare_arguments
from .checkpoints import TRAINER_STATE, last_checkpoint
from .models import config_for, prepare_model
from .run import train
from .trainers import AlphaTrainer, Interrupted, ObjectiveTrainer

__all__ = [
    "TRAINER_STATE",
    "AlphaTrainer",
    "Interrupted",
    "ObjectiveTrainer",
    "config_for",
    "last_checkpoint",
    "prepare_arguments",
    "prepare_data",
    "prepare_model",
    "train",
]
