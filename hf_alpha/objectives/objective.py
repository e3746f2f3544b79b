"""What an objective is: what a model is trained for, from the data of a recipe to a trainer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import PreTrainedModel

from hf_alpha.data.keys import form_keys, save_keys
from hf_alpha.modeling.names_in_text import NameFinder

Collator = Callable[[Sequence[Mapping[str, Any]]], dict[str, torch.Tensor]]
Say = Callable[[str], object]


def setting(default: Any, text: str, least: int | None = None) -> Any:
    """Return a field of an objective: a setting in a recipe, with default, meaning, least value."""
    metadata = {"help": text, "least": least}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class Examples:
    """The data of a run, before there is a tokenizer.

    Attributes:
        train: the rows to train on; None where they are made when there is a tokenizer.
        validation: the rows to validate with; None where there are none.
        finder: finds the names of texts; None without names.
        texts: the texts that a new tokenizer is made from; they can be read several times.
        model_settings: fields of a model's configuration that follow from the data.
        forms: gives what each training row is up to renaming; None where nothing says it.
    """

    train: Any = None
    validation: Any = None
    finder: NameFinder | None = None
    texts: Iterable[str] = ()
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    forms: Callable[[], Iterable[str]] | None = None

    def save(self, folder: Path, checkpoint: str | None) -> None:
        """Write beside a model which rows it was trained on; for the arguments see `save_keys`."""
        if self.forms is not None:
            save_keys(folder, np.unique(form_keys(self.forms())), checkpoint)


class Objective(ABC):
    """What a model is trained for.

    `hf_alpha.train` calls the methods in the order in which they stand here, with a recipe, see
    `hf_alpha.recipe`, and its examples, see [`Examples`]. An objective keeps no state: labels are
    in the model's configuration.

    Attributes:
        answers: whether models write answers, which `hf_alpha.evaluation` checks.
        auto: the Auto class of the models; None where a model's configuration says it.
    """

    name: ClassVar[str]
    answers: ClassVar[bool] = False

    auto: Any = None

    @abstractmethod
    def check_training(self, training: Mapping[str, Any]) -> None:
        """Refuse settings of the Trainer that would do something else than they say.

        Raises:
            ValueError: naming the setting.
        """

    def examples(self, recipe: Any, say: Say) -> Any:
        """Read the data of a recipe, and hold out rows to validate with.

        By default there is none: problems are generated or drawn once there is a model.

        Raises:
            RecipeError: the data cannot be read, or not be learned.
        """
        return Examples()

    @abstractmethod
    def new_tokenizer(self, recipe: Any, examples: Any, start: Path | None) -> Any:
        """Make the tokenizer of a new model; `start` is a checkpoint at which its run goes on."""

    @abstractmethod
    def load(self, recipe: Any, examples: Any, say: Say) -> tuple[PreTrainedModel, Any]:
        """Load the checkpoint that a recipe names: the model to train, and its tokenizer.

        `say` is told what is new in the model.
        """

    def fit(self, recipe: Any, model: PreTrainedModel, tokenizer: Any, say: Say) -> None:
        """Have a model and its tokenizer fit each other, and refuse those that cannot.

        Raises:
            RecipeError: a setting does not fit the model.
        """
        return None

    @abstractmethod
    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> Collator:
        """Return a function that makes a batch of rows of the data."""

    @abstractmethod
    def datasets(
        self, recipe: Any, examples: Any, model: PreTrainedModel, tokenizer: Any, say: Say
    ) -> dict[str, Any]:
        """Return the data as a trainer takes it, and what it says of validation data.

        The keys are arguments of the trainer: `train_dataset` and `eval_dataset`, and those of
        metrics.
        """
