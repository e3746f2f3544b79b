"""Training from a recipe: a YAML file that says what is trained, on which data, and how."""

import dataclasses
import difflib
import inspect
import json
import logging
import re
import shutil
import signal
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from safetensors import SafetensorError
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
from transformers.integrations import get_reporting_integration_callbacks
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hf_alpha.build_tokenizer import NUM_SYMBOLS, build_tokenizer
from hf_alpha.data.bucket import BucketSampler
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.drawn import DrawnProblems
from hf_alpha.data.generate import generate
from hf_alpha.data.read import load
from hf_alpha.folders import read_json, replacing
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
NOTE = r"^# until step (\d+): ([^=]+)=(.*)$"
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
        draw: arguments of [`hf_alpha.data.drawn.DrawnProblems`], in place of a folder: problems
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

    `path` is a file, or the name of a shipped recipe such as `TASK/debug`.

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
        content = _parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise RecipeError(f"{file}: no UTF-8 text: {error}") from error
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
    _check_least(content, {"num_symbols": 1}, where)
    least = {"max_train_samples": 1, "max_eval_samples": 0, "num_workers": 1}
    _check_least(data, least, f"{where}: data")
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
    _check_kinds(data.get("generate", {}), generate, f"{where}: generate")
    sizes = data.get("generate", {}).get("sizes", [1, 1])
    if not isinstance(sizes, list) or [type(size) for size in sizes] != [int, int]:
        raise RecipeError(f"{where}: generate: 'sizes' must be [smallest, largest], not {sizes!r}")


def _check_least(given: Mapping[str, Any], least: Mapping[str, int], where: str) -> None:
    for key, smallest in least.items():
        if given.get(key) is not None and given[key] < smallest:
            raise RecipeError(f"{where}: {key!r} must be at least {smallest}, not {given[key]}")


def _names(settings: type) -> set[str]:
    return {entry.name for entry in dataclasses.fields(settings)}


def _check_keys(given: dict[str, Any], allowed: set[str], where: str) -> None:
    for key in given:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), sorted(allowed), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(allowed))}"
            raise RecipeError(f"{where}: unknown key {key!r}; {hint}")


def _check_kinds(given: dict[str, Any], settings: Callable[..., Any], where: str) -> None:
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

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        folder = Path(self.args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
        with _written(folder):
            super()._save_checkpoint(*args, **kwargs)

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        dataset = train_dataset if train_dataset is not None else self.train_dataset
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return BucketSampler(bucket_keys(dataset), self._train_batch_size, seed=seed)


@contextmanager
def _written(folder: Path) -> Iterator[None]:
    """Remove a checkpoint that cannot be written, on a full disk say, and name it.

    The libraries that write have errors of their own for that.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if folder.name.startswith(PREFIX_CHECKPOINT_DIR):
            shutil.rmtree(folder, ignore_errors=True)
        raise OSError(
            f"{folder} cannot be written: {error}; the same command goes on from the last "
            "checkpoint before, if there is one"
        ) from error


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
        arguments = Seq2SeqTrainingArguments(**{**defaults, **recipe.training})
    with _named("training: report_to"):
        for tracker in get_reporting_integration_callbacks(arguments.report_to):
            tracker()  # says what is not installed
    return arguments


@contextmanager
def _named(section: str) -> Iterator[None]:
    """Say which section of the recipe a setting that is refused stands in."""
    try:
        yield
    except (ValueError, TypeError, OSError, RuntimeError, StrictDataclassError) as error:
        raise RecipeError(f"{section}: {error}") from error


class Interrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; the message says how it goes on."""


class _StopOnInterrupt(TrainerCallback):
    """Makes Ctrl-C end training with a checkpoint of the step; a second one ends it at once.

    Processes that train together would stop at different steps: there Ctrl-C does what it always
    does, and the last checkpoint counts.
    """

    def __init__(self) -> None:
        self.interrupted = False

    @contextmanager
    def listening(self, alone: bool) -> Iterator[None]:
        """Catch the signal, if this process trains alone and this thread may."""
        if not alone or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _note(self, *_: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if self.interrupted:
            control.should_save = control.should_training_stop = True


def train(
    recipe: Recipe,
    resume: bool = True,
    allow_changes: bool = False,
    say: Callable[[str], object] = print,
) -> AlphaTrainer:
    """Train as the recipe says; resume from the last checkpoint in `output_dir` if there is one.

    The finished model, its tokenizer and their code end up in `output_dir`. A resumed run reaches
    the same weights as one that was never stopped, to the bit, on the same machine and with the
    same number of processes. n processes see the batches of one process with n times the gradient
    accumulation steps, except that they fill up the last ones of an epoch with its first samples.

    `recipe.yaml` there says what is run, from the start on. Where settings were changed on the
    way, comments in it say until which step others held. A finished run stays as it is.

    Args:
        recipe: what to train.
        resume: go on with a run that is there; else it is an error.
        allow_changes: go on with other settings than those of the run so far.
        say: is told where a run resumes, or that it has ended.

    Raises:
        RecipeError: the recipe does not fit its data, or the run in `output_dir`, or there is one
            and `resume` is not set.
        CheckpointError: the checkpoint to resume is damaged.
        Interrupted: Ctrl-C; there is a checkpoint of the last step.
    """
    arguments = prepare_arguments(recipe)
    out, start = Path(arguments.output_dir), _starting_point(arguments)
    if start is not None and not resume:
        raise RecipeError(
            f"{out} holds a checkpoint already: resume it, or choose another training.output_dir"
        )
    notes = [] if start is None else _notes(recipe, out, _state(start).global_step, allow_changes)
    finished = start is not None and _is_finished(_state(start), arguments)
    set_seed(arguments.seed)  # for the weights of a new model
    model, tokenizer = load_checkpoint(start) if start and finished else prepare_model(recipe)
    # One process makes the data, the others wait and read it.
    with arguments.main_process_first(desc="data"):
        train_data, valid_data = prepare_data(recipe, tokenizer)
    stop = _StopOnInterrupt()
    trainer = AlphaTrainer(
        model=model,
        args=arguments,
        train_dataset=train_data,
        eval_dataset=valid_data,
        data_collator=AlphaCollator(tokenizer),
        processing_class=tokenizer,
        callbacks=[stop],
    )
    tell = say if trainer.is_world_process_zero() else lambda _: None
    if trainer.is_world_process_zero() and not (finished and (out / RECIPE_FILE).is_file()):
        write_recipe(recipe, out / RECIPE_FILE, notes)
    if start is not None and finished:
        trainer.state = _state(start)
        tell(f"{out} holds a finished run of {trainer.state.global_step} steps: nothing is done")
    else:
        _run(trainer, start, stop, tell)
    if not (finished and _has_model(out, trainer.state)):
        with _written(out):
            trainer.save_model()
            trainer.save_state()
    return trainer


def _run(
    trainer: AlphaTrainer, start: Path | None, stop: _StopOnInterrupt, say: Callable[[str], object]
) -> None:
    """Train from the beginning, or from a checkpoint whose weights fit."""
    out = trainer.args.output_dir
    if start is not None:
        saved, _ = load_checkpoint(start)
        _check_shapes(trainer.model, saved, start)
        say(f"{out}: resuming from {start}, step {_state(start).global_step}")
    with stop.listening(alone=trainer.args.world_size == 1):
        trainer.train(resume_from_checkpoint=None if start is None else str(start))
    if stop.interrupted and not _is_finished(trainer.state, trainer.args):
        step = trainer.state.global_step
        raise Interrupted(
            f"stopped at step {step}, which {out}/{PREFIX_CHECKPOINT_DIR}-{step} holds: the same "
            "command goes on from there"
        )


def _check_shapes(
    model: AlphaForConditionalGeneration, saved: AlphaForConditionalGeneration, where: Path
) -> None:
    ours, theirs = (
        {name: tuple(tensor.shape) for name, tensor in one.state_dict().items()}
        for one in (model, saved)
    )
    for name in {**ours, **theirs}:
        if ours.get(name) != theirs.get(name):
            raise RecipeError(
                f"{where} holds another model: tensor {name!r} is {theirs.get(name)} there and "
                f"{ours.get(name)} by the recipe; choose another training.output_dir"
            )


def _notes(recipe: Recipe, out: Path, step: int, allow_changes: bool) -> list[str]:
    """What to write on top of `recipe.yaml`: until which step other settings held.

    Args:
        step: at which the run goes on.

    Raises:
        RecipeError: the settings are not those of the run so far, and may not be.
    """
    file = out / RECIPE_FILE
    if not file.is_file():
        logger.warning("%s is missing: the settings of the run so far are not known", file)
        return []
    changes = differences(read_recipe(file), recipe)
    if changes and not allow_changes:
        named = ", ".join(f"{key}: {old} -> {new}" for key, (old, new) in changes.items())
        raise RecipeError(
            f"{out} holds a run with other settings: {named}; choose another training.output_dir, "
            "or go on with the new ones by --allow-changes"
        )
    held: dict[tuple[int, str], str] = {}
    for until, key, value in re.findall(NOTE, file.read_text(encoding="utf-8"), re.MULTILINE):
        held.setdefault((min(int(until), step), key), value)
    for key, (old, _) in changes.items():
        held.setdefault((step, key), old)
    return [f"# until step {until}: {key}={value}" for (until, key), value in held.items()]


def differences(old: Recipe, new: Recipe) -> dict[str, tuple[str, str]]:
    """Settings that are not the same: key, as in an override -> both values, `null` if not set.

    Where the run lies is none.
    """
    before, after = (dict(_leaves(dataclasses.asdict(recipe))) for recipe in (old, new))
    return {
        key: (before.get(key, "null"), after.get(key, "null"))
        for key in {**before, **after}
        if key != "training.output_dir" and before.get(key, "null") != after.get(key, "null")
    }


def _leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and their values as text."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)


def write_recipe(recipe: Recipe, path: Path, notes: Iterable[str] = ()) -> None:
    """Write a recipe, overrides included, so that `hf-alpha train` can read it again.

    Args:
        recipe: what to write.
        path: of the file; its folder is made.
        notes: comments for its first lines.
    """
    content = {key: value for key, value in dataclasses.asdict(recipe).items() if value}
    data = content["data"].items()
    content["data"] = {key: value for key, value in data if value not in (None, {})}
    lines = "".join(f"{note}\n" for note in notes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write_text(lines + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _starting_point(arguments: Seq2SeqTrainingArguments) -> Path | None:
    """The run's last checkpoint; the run itself where it is finished and has none any more."""
    out = Path(arguments.output_dir)
    if out.exists() and not out.is_dir():
        raise RecipeError(f"training: output_dir {out} is a file: name a folder")
    if (last := last_checkpoint(out)) is not None or not (out / TRAINER_STATE).is_file():
        return last
    if not _is_finished(_state(out), arguments):
        raise RecipeError(
            f"{out} holds a trained model and no checkpoint to resume: choose another "
            f"training.output_dir; 'checkpoint: {out}' in a recipe goes on from its weights"
        )
    return out


def _state(folder: Path) -> TrainerState:
    read_json(folder / TRAINER_STATE)  # names the file if it is damaged
    return TrainerState.load_from_json(str(folder / TRAINER_STATE))


def _has_model(out: Path, state: TrainerState) -> bool:
    """Whether the model of this state has been written behind its last checkpoint."""
    done = (out / TRAINER_STATE).is_file() and any(out.glob("*.safetensors"))
    return done and _state(out).global_step == state.global_step


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


def _is_finished(state: TrainerState, arguments: Seq2SeqTrainingArguments) -> bool:
    """Whether a run has nothing left to do: the Trainer would do one more step."""
    if arguments.max_steps > 0:
        return state.global_step >= arguments.max_steps
    return (state.epoch or 0) >= arguments.num_train_epochs


__all__ = [
    "RECIPE_FILE",
    "AlphaTrainer",
    "Interrupted",
    "Recipe",
    "RecipeError",
    "differences",
    "last_checkpoint",
    "parse_recipe",
    "prepare_arguments",
    "prepare_data",
    "prepare_model",
    "read_recipe",
    "train",
    "write_recipe",
]
