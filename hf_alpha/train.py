"""Training from a recipe: a YAML file that says what is trained, on which data, and how."""

import contextlib
import dataclasses
import difflib
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import yaml
from datasets import Dataset
from torch.utils.data import Sampler
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from hf_alpha.build_tokenizer import NUM_SYMBOLS, build_tokenizer
from hf_alpha.data.bucket import BucketSampler
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.generate import generate
from hf_alpha.data.read import load
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.resources import resource_path
from hf_alpha.tasks import get_task

logger = logging.getLogger(__name__)


class RecipeError(ValueError):
    """A recipe that cannot be read; the message names the key and the way out."""


@dataclass
class DataSettings:
    """Where the data lies, and how it is generated if it is not there yet.

    Attributes:
        path: folder of a dataset; made by `generate` when absent.
        generate: arguments of [`hf_alpha.data.generate.generate`].
        max_train_samples: use only the first so many (the papers' `reduced`: 80,000).
        max_eval_samples: validation samples for the loss during training.
        num_workers: processes that generate and tokenise.
    """

    path: str
    generate: dict[str, Any] = field(default_factory=dict)
    max_train_samples: int | None = None
    max_eval_samples: int = 2000
    num_workers: int = 1


@dataclass
class Recipe:
    """One trained model.

    Attributes:
        task: name of the task.
        data: see [`DataSettings`].
        training: fields of `Seq2SeqTrainingArguments`; `output_dir` is required.
        num_symbols: symbols of each class in the vocabulary; by default the tokenizer's 10.
        model: fields of [`AlphaConfig`] for a new model; vocabulary fields come from the tokenizer.
        checkpoint: folder or Hub name of a model to go on from instead.
    """

    task: str
    data: DataSettings
    training: dict[str, Any]
    num_symbols: int | None = None
    model: dict[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None


def read_recipe(path: str | Path, overrides: list[str] | None = None) -> Recipe:
    """Read a recipe and apply overrides such as `training.max_steps=10`.

    `path` is a file, or the name of a shipped recipe such as `propositional/debug`.

    Raises:
        RecipeError: no such recipe, an unknown key, or a value of the wrong kind.
    """
    file = Path(path)
    if not file.is_file():
        name = f"{path}" if str(path).endswith(".yaml") else f"{path}.yaml"
        try:
            file = resource_path("training", *Path(name).parts)
        except FileNotFoundError as error:
            raise RecipeError(f"no recipe {str(path)!r}: {error}") from error
    try:
        content = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise RecipeError(f"{file}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise RecipeError(f"{file}: a recipe is a mapping of keys to values")
    for override in overrides or []:
        _override(content, override)
    return parse_recipe(content, str(file))


def parse_recipe(content: dict[str, Any], where: str = "recipe") -> Recipe:
    """Check a recipe's keys; see [`read_recipe`]."""
    _check_keys(content, _names(Recipe), where)
    for key in ("task", "data", "training"):
        if key not in content:
            raise RecipeError(f"{where}: the key {key!r} is missing")
    for key in ("data", "training", "model"):
        if not isinstance(content.get(key, {}), dict):
            raise RecipeError(f"{where}: {key!r} must be a mapping of keys to values")
    _check_keys(content["data"], _names(DataSettings), f"{where}: data")
    _check_keys(content["training"], _names(Seq2SeqTrainingArguments), f"{where}: training")
    allowed = _names(AlphaConfig) - {"vocab_size", "num_base_tokens", "symbol_classes"}
    _check_keys(content.get("model", {}), allowed, f"{where}: model")
    if "path" not in content["data"]:
        raise RecipeError(f"{where}: data: the key 'path' is missing")
    if "output_dir" not in content["training"]:
        raise RecipeError(f"{where}: training: the key 'output_dir' is missing")
    return Recipe(**{**content, "data": DataSettings(**content["data"])})


def _names(settings: type) -> set[str]:
    return {entry.name for entry in dataclasses.fields(settings)}


def _check_keys(given: dict[str, Any], allowed: set[str], where: str) -> None:
    for key in given:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(allowed))}"
            raise RecipeError(f"{where}: unknown key {key!r}; {hint}")


def _override(content: dict[str, Any], override: str) -> None:
    """Apply one `a.b=value`; the value is read as YAML."""
    path, sign, text = override.partition("=")
    if not sign or not path:
        raise RecipeError(
            f"override {override!r}: write it as key=value, e.g. training.max_steps=10"
        )
    *parents, last = path.removeprefix("--").split(".")
    for parent in parents:
        content = content.setdefault(parent, {})
        if not isinstance(content, dict):
            raise RecipeError(f"override {override!r}: {parent!r} is not a mapping")
    value = yaml.safe_load(text)
    if isinstance(value, str):
        # YAML 1.1 takes 1e-3 for a string.
        with contextlib.suppress(ValueError):
            value = float(value)
    content[last] = value


class AlphaTrainer(Seq2SeqTrainer):
    """Seq2SeqTrainer whose batches are alike in number of symbols and length."""

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        dataset = train_dataset if train_dataset is not None else self.train_dataset
        return BucketSampler(
            bucket_keys(dataset), self._train_batch_size, seed=self.args.data_seed or self.args.seed
        )


def bucket_keys(dataset: Dataset) -> np.ndarray:
    """(number of symbols, input length) of each tokenised row: (N, 2)."""
    table = dataset.with_format("arrow")[:]
    columns = (pc.list_value_length(table[name]) for name in ("stream_ids", "input_ids"))
    return np.stack([column.to_numpy() for column in columns], axis=1)


def prepare_data(recipe: Recipe, tokenizer: AlphaTokenizer) -> tuple[Dataset, Dataset]:
    """Training and validation data of a recipe, generated first if need be, tokenised."""
    settings = recipe.data
    if not Path(settings.path).exists() or settings.generate:
        generate(
            get_task(recipe.task), settings.path, num_workers=settings.num_workers,
            **settings.generate,
        )  # fmt: skip
    train, valid = load(settings.path, "train"), load(settings.path, "validation")
    if settings.max_train_samples is not None:
        train = train.select(range(min(settings.max_train_samples, len(train))))
    valid = valid.select(range(min(settings.max_eval_samples, len(valid))))
    return (
        tokenize(train, tokenizer, settings.num_workers),
        tokenize(valid, tokenizer, settings.num_workers),
    )


def prepare_model(recipe: Recipe) -> tuple[AlphaForConditionalGeneration, AlphaTokenizer]:
    """The model to train and its tokenizer: new ones, or the checkpoint's."""
    if recipe.checkpoint is not None:
        if recipe.model:
            raise RecipeError("a recipe has either `checkpoint` or `model`, not both")
        return load_checkpoint(recipe.checkpoint)
    tokenizer = build_tokenizer(recipe.task, recipe.num_symbols or NUM_SYMBOLS)
    config = AlphaConfig(
        num_base_tokens=tokenizer.num_base_tokens,
        symbol_classes=dict(tokenizer.symbol_classes),
        **recipe.model,
    )
    return AlphaForConditionalGeneration(config), tokenizer


def train(recipe: Recipe, resume: bool = True) -> AlphaTrainer:
    """Train as the recipe says; resume from the last checkpoint in `output_dir` if there is one.

    The finished model, its tokenizer and their code end up in `output_dir`.
    """
    arguments = Seq2SeqTrainingArguments(**{"remove_unused_columns": True, **recipe.training})
    model, tokenizer = prepare_model(recipe)
    # One process makes the data, the others wait and read it.
    with arguments.main_process_first(desc="data"):
        train_data, valid_data = prepare_data(recipe, tokenizer)
    trainer = AlphaTrainer(
        model=model,
        args=arguments,
        train_dataset=train_data,
        eval_dataset=valid_data,
        data_collator=AlphaCollator(tokenizer),
        processing_class=tokenizer,
    )
    last = (
        get_last_checkpoint(arguments.output_dir) if Path(arguments.output_dir).is_dir() else None
    )
    if last is not None and not resume:
        raise RecipeError(
            f"{arguments.output_dir} holds a checkpoint already: resume it, or choose another "
            "training.output_dir"
        )
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model()
    trainer.save_state()
    return trainer


__all__ = ["AlphaTrainer", "Recipe", "RecipeError", "parse_recipe", "read_recipe", "train"]
