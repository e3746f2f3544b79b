"""Training from a recipe: a YAML file that says what is trained, on which data, and how."""

import dataclasses
import difflib
import inspect
import json
import logging
import re
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow.compute as pc
import torch
import yaml
from datasets import Dataset
from huggingface_hub.errors import StrictDataclassError
from torch.utils.data import Sampler
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hf_alpha.build_tokenizer import NUM_SYMBOLS, build_tokenizer
from hf_alpha.data.bucket import BucketSampler
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.generate import generate
from hf_alpha.data.read import load
from hf_alpha.data.stream import DrawnProblems
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.resources import resource_path
from hf_alpha.tasks import get_task

logger = logging.getLogger(__name__)

TrainingData: TypeAlias = Dataset | DrawnProblems

TRAINER_STATE = "trainer_state.json"
RECIPE_FILE = "recipe.yaml"
LABEL_SMOOTHING = (
    "label_smoothing_factor spreads over columns that a sample cannot use; "
    "set label_smoothing in the model's configuration instead"
)
# What a recipe may not say because it follows from something else.
FROM_TOKENIZER = ("vocab_size", "num_base_tokens", "symbol_classes", "symbol_ranges")
FROM_RECIPE = ("task", "out_dir", "num_workers", "tokenizer", "split")
KINDS = {
    bool: "true or false",
    dict: "a mapping",
    float: "a number",
    int: "a whole number",
    str: "text",
}


class RecipeError(ValueError):
    """A recipe that cannot be read or run; the message names the key and the way out."""


@dataclass
class DataSettings:
    """Where the data lies, and how it is generated if it is not there yet; or how it is drawn.

    Attributes:
        path: folder of a dataset; made by `generate` when absent.
        generate: arguments of [`hf_alpha.data.generate.generate`].
        draw: arguments of [`hf_alpha.data.stream.DrawnProblems`], in place of a folder: problems
            are drawn when they are needed, those for validation from other seeds.
        max_train_samples: use only the first so many (the papers' `reduced`: 80,000).
        max_eval_samples: validation samples for the loss during training.
        num_workers: processes that generate and tokenise.
    """

    path: str | None = None
    generate: dict[str, Any] = field(default_factory=dict)
    draw: dict[str, Any] = field(default_factory=dict)
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
    content = _parse_yaml(file.read_text(), str(file))
    if not isinstance(content, dict):
        raise RecipeError(f"{file}: a recipe is a mapping of keys to values")
    for override in overrides or []:
        _override(content, override)
    return parse_recipe(content, str(file))


def parse_recipe(content: dict[str, Any], where: str = "recipe") -> Recipe:
    """Check a recipe's keys and kinds of values; see [`read_recipe`]."""
    _check_keys(content, _names(Recipe), where)
    for key in ("task", "data", "training"):
        if key not in content:
            raise RecipeError(f"{where}: the key {key!r} is missing")
    _check_kinds(content, Recipe, where)
    data, training, model = content["data"], content["training"], content.get("model", {})
    _check_keys(data, _names(DataSettings), f"{where}: data")
    _check_kinds(data, DataSettings, f"{where}: data")
    _check_source(data, f"{where}: data")
    _check_keys(training, _names(Seq2SeqTrainingArguments), f"{where}: training")
    _check_kinds(training, Seq2SeqTrainingArguments, f"{where}: training")
    if "output_dir" not in training:
        raise RecipeError(f"{where}: training: the key 'output_dir' is missing")
    for key in FROM_TOKENIZER:
        if key in model:
            raise RecipeError(
                f"{where}: model: {key!r} follows from the key 'num_symbols'; drop it"
            )
    _check_keys(model, _names(AlphaConfig), f"{where}: model")
    if model and content.get("checkpoint") is not None:
        raise RecipeError(f"{where}: give either 'checkpoint' or 'model', not both")
    return Recipe(**{**content, "data": DataSettings(**data)})


def _check_source(data: dict[str, Any], where: str) -> None:
    """Check that data comes from one place, and the arguments of what makes it."""
    if data.get("path") is None and not data.get("draw"):
        raise RecipeError(f"{where}: the key 'path' is missing, or 'draw' in its place")
    if data.get("draw") and (data.get("path") is not None or data.get("generate")):
        raise RecipeError(f"{where}: give either 'draw' or 'path' with 'generate', not both")
    for key, maker in (("generate", generate), ("draw", DrawnProblems)):
        arguments = set(inspect.signature(maker).parameters) - set(FROM_RECIPE)
        _check_keys(data.get(key, {}), arguments, f"{where}: {key}")


def _names(settings: type) -> set[str]:
    return {entry.name for entry in dataclasses.fields(settings)}


def _check_keys(given: dict[str, Any], allowed: set[str], where: str) -> None:
    for key in given:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), sorted(allowed), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(allowed))}"
            raise RecipeError(f"{where}: unknown key {key!r}; {hint}")


def _check_kinds(given: dict[str, Any], settings: type, where: str) -> None:
    """Check values against annotations made of plain types; the rest is left to the classes."""
    hints = get_type_hints(settings)
    for key, value in given.items():
        kinds = _plain_kinds(hints[key])
        accepted = (*kinds, int) if float in kinds else kinds
        if kinds and not isinstance(value, accepted):
            names = " or ".join(KINDS[kind] for kind in kinds if kind in KINDS)
            raise RecipeError(f"{where}: {key!r} must be {names}, not {value!r}")


def _plain_kinds(hint: Any) -> tuple[type, ...]:
    """What `isinstance` has to see for an annotation; empty where that is not so simple."""
    parts = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = {dict if dataclasses.is_dataclass(part) else get_origin(part) or part for part in parts}
    if not kinds <= {*KINDS, types.NoneType}:
        return ()
    return tuple(sorted(kinds, key=lambda kind: kind.__name__))


def _override(content: dict[str, Any], override: str) -> None:
    """Apply one `a.b=value`; the value is read as YAML."""
    path, sign, text = override.partition("=")
    keys = path.removeprefix("--").split(".")
    if not sign or not all(keys):
        raise RecipeError(
            f"override {override!r}: write it as key=value, e.g. training.max_steps=10"
        )
    for parent in keys[:-1]:
        content = content.setdefault(parent, {})
        if not isinstance(content, dict):
            raise RecipeError(f"override {override!r}: {parent!r} is not a mapping")
    content[keys[-1]] = _parse_yaml(text, f"override {override!r}")


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number and `no` as text, as YAML 1.2 has it and everybody means it."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(true|True|false|False)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _parse_yaml(text: str, where: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise RecipeError(f"{where}: not valid YAML: {error}") from error


class AlphaTrainer(Seq2SeqTrainer):
    """Seq2SeqTrainer whose batches are alike in number of symbols and length.

    Raises:
        ValueError: `label_smoothing_factor` is set: the Trainer's own smoothing would spread over
            columns that a sample cannot use.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.args.label_smoothing_factor:
            raise ValueError(LABEL_SMOOTHING)
        self.add_callback(_KeepInStep())

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        dataset = train_dataset if train_dataset is not None else self.train_dataset
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return BucketSampler(bucket_keys(dataset), self._train_batch_size, seed=seed)


class _KeepInStep(TrainerCallback):
    """Tells the sampler which epoch it is, and the model that a step is done."""

    def on_epoch_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        train_dataloader: Any = None,
        **kwargs: Any,
    ) -> None:
        # accelerate does not reach a sampler behind two other batch samplers, as there are when
        # several processes resume in the middle of an epoch.
        batches = train_dataloader.batch_sampler
        while hasattr(batches, "batch_sampler"):
            batches = batches.batch_sampler
        batches.sampler.set_epoch(int(state.epoch or 0))

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: Any = None,
        **kwargs: Any,
    ) -> None:
        # What is evaluated now is what is saved now, in every process.
        model.advance_step()


def bucket_keys(dataset: TrainingData) -> np.ndarray:
    """(number of symbols, input length) of each tokenised row: (N, 2)."""
    if isinstance(dataset, DrawnProblems):
        return dataset.keys
    table = dataset.with_format("arrow")[:]
    columns = (pc.list_value_length(table[name]) for name in ("stream_ids", "input_ids"))
    return np.stack([column.to_numpy() for column in columns], axis=1)


def prepare_data(recipe: Recipe, tokenizer: AlphaTokenizer) -> tuple[TrainingData, TrainingData]:
    """Training and validation data of a recipe, generated first if need be, tokenised.

    Raises:
        RecipeError: the data cannot be made or read as the recipe says.
    """
    settings = recipe.data
    if settings.draw:
        return _draw_data(recipe, tokenizer)
    assert settings.path is not None
    with _named("data"):
        if settings.generate:
            # Returns at once where the same data has been made, refuses where other data has.
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


def _draw_data(recipe: Recipe, tokenizer: AlphaTokenizer) -> tuple[DrawnProblems, DrawnProblems]:
    settings = recipe.data
    few = {**settings.draw, "num_samples": settings.max_eval_samples}
    with _named("data: draw"):
        train = DrawnProblems(recipe.task, tokenizer, **settings.draw)
        valid = DrawnProblems(recipe.task, tokenizer, split="validation", **few)
    train.keys = train.keys[: settings.max_train_samples]
    return train, valid


def prepare_model(recipe: Recipe) -> tuple[AlphaForConditionalGeneration, AlphaTokenizer]:
    """The model to train and its tokenizer: new ones, or the checkpoint's.

    Raises:
        RecipeError: a setting of the model has a wrong kind or value.
    """
    if recipe.checkpoint is not None:
        return load_checkpoint(recipe.checkpoint)
    tokenizer = build_tokenizer(recipe.task, recipe.num_symbols or NUM_SYMBOLS)
    with _named("model"):
        config = AlphaConfig(
            num_base_tokens=tokenizer.num_base_tokens,
            symbol_classes=dict(tokenizer.symbol_classes),
            **{"symbol_seed": recipe.training.get("seed", 42), **recipe.model},
        )
    return AlphaForConditionalGeneration(config), tokenizer


def prepare_arguments(recipe: Recipe) -> Seq2SeqTrainingArguments:
    """The arguments of training, with defaults that suit the machine.

    Raises:
        RecipeError: a setting of training has a wrong kind or value.
    """
    defaults = {
        "dataloader_pin_memory": torch.cuda.is_available(),
        # Without it, processes that torchrun starts on a CPU would not know of each other.
        "use_cpu": not torch.accelerator.is_available(),
        "ddp_find_unused_parameters": False,
    }
    if recipe.training.get("label_smoothing_factor"):
        raise RecipeError(f"training: {LABEL_SMOOTHING}")
    with _named("training"):
        return Seq2SeqTrainingArguments(**{**defaults, **recipe.training})


@contextmanager
def _named(section: str) -> Iterator[None]:
    """Say which section of the recipe a setting that is refused stands in."""
    try:
        yield
    except (ValueError, TypeError, FileNotFoundError, StrictDataclassError) as error:
        raise RecipeError(f"{section}: {error}") from error


def train(recipe: Recipe, resume: bool = True) -> AlphaTrainer:
    """Train as the recipe says; resume from the last checkpoint in `output_dir` if there is one.

    The finished model, its tokenizer and their code end up in `output_dir`. A resumed run reaches
    the same weights as one that was never stopped, to the bit, on the same machine and with the
    same number of processes. n processes see the batches of one process with n times the gradient
    accumulation steps, except that they fill up the last ones of an epoch with its first samples.

    Raises:
        RecipeError: the recipe does not fit its data, or `output_dir` holds a checkpoint and
            `resume` is not set.
    """
    arguments = prepare_arguments(recipe)
    last = last_checkpoint(arguments.output_dir)
    if last is not None and not resume:
        raise RecipeError(
            f"{arguments.output_dir} holds a checkpoint already: resume it, or choose another "
            "training.output_dir"
        )
    set_seed(arguments.seed)  # for the weights of a new model
    model, tokenizer = prepare_model(recipe)
    # One process makes the data, the others wait and read it.
    with arguments.main_process_first(desc="data"):
        train_data, valid_data = prepare_data(recipe, tokenizer)
    finished = None if last is None else _finished_state(last, arguments)
    if last is not None and finished is not None:
        model, tokenizer = load_checkpoint(last)
    trainer = AlphaTrainer(
        model=model,
        args=arguments,
        train_dataset=train_data,
        eval_dataset=valid_data,
        data_collator=AlphaCollator(tokenizer),
        processing_class=tokenizer,
    )
    if finished is not None:
        trainer.state = finished
    else:
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    trainer.save_model()
    trainer.save_state()
    if trainer.is_world_process_zero():
        write_recipe(recipe, Path(arguments.output_dir) / RECIPE_FILE)
    return trainer


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe, overrides included, so that `hf-alpha train` can read it again."""
    content = {key: value for key, value in dataclasses.asdict(recipe).items() if value}
    data = content["data"].items()
    content["data"] = {key: value for key, value in data if value not in (None, {})}
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def last_checkpoint(output_dir: str | Path) -> Path | None:
    """The newest complete checkpoint of a run; one cut off while it was written is passed over."""
    folders = Path(output_dir).glob(f"{PREFIX_CHECKPOINT_DIR}-*")
    numbered = [(int(f.name.rpartition("-")[2]), f) for f in folders if f.name[-1].isdigit()]
    for _, folder in sorted(numbered, reverse=True):
        try:
            json.loads((folder / TRAINER_STATE).read_text())  # the Trainer writes it last
        except (OSError, ValueError):
            logger.warning("%s is incomplete and passed over", folder)
        else:
            return folder
    return None


def _finished_state(checkpoint: Path, arguments: Seq2SeqTrainingArguments) -> TrainerState | None:
    """The state of a run that has nothing left to do: the Trainer would do one more step."""
    state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE))
    if arguments.max_steps > 0:
        return state if state.global_step >= arguments.max_steps else None
    return state if (state.epoch or 0) >= arguments.num_train_epochs else None


__all__ = [
    "RECIPE_FILE",
    "AlphaTrainer",
    "Recipe",
    "RecipeError",
    "last_checkpoint",
    "parse_recipe",
    "prepare_arguments",
    "prepare_data",
    "prepare_model",
    "read_recipe",
    "train",
    "write_recipe",
]
