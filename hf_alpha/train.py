"""Training as a recipe says: data, model, trainer, and runs that resume where they stopped."""

import dataclasses
import json
import logging
import math
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc
import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from datasets import Dataset, IterableDataset
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch.utils.data import Sampler, SequentialSampler
from transformers import (
    CONFIG_MAPPING,
    PreTrainedConfig,
    PreTrainedModel,
    PrinterCallback,
    ProgressCallback,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    Trainer,
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
from hf_alpha.data.own import OwnPairs, own_rows
from hf_alpha.data.read import load
from hf_alpha.environment import TRACKERS, install_command
from hf_alpha.evaluation.evaluate import answer_limit, evaluate
from hf_alpha.finite import PATIENCE, FiniteSteps, NotFiniteError, is_finite
from hf_alpha.folders import alone, read_json
from hf_alpha.generation import fit_tokenizer, raise_limit, room_for
from hf_alpha.loading import (
    CheckpointError,
    auto_class,
    check_segments,
    load_checkpoint,
    load_for,
    load_parts,
)
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.objectives import Objective
from hf_alpha.objectives.base import check_positions, reads_segments
from hf_alpha.objectives.evaluate import validating
from hf_alpha.objectives.names import find_names
from hf_alpha.objectives.optimizers import optimizer_of
from hf_alpha.objectives.rows import first
from hf_alpha.objectives.tokenizers import make_tokenizer, with_transducer
from hf_alpha.progress import TrainingProgress, without_bars
from hf_alpha.recipe import (
    DEFAULT_MODEL_TYPE,
    RECIPE_FILE,
    Recipe,
    RecipeError,
    differences,
    named_code,
    read_recipe,
    rules_of,
    write_recipe,
)
from hf_alpha.settings import settings_of
from hf_alpha.tasks import Task, get_task
from hf_alpha.trust import remember_recipe

logger = logging.getLogger(__name__)

TrainingData: TypeAlias = Dataset | IterableDataset | DrawnProblems

TRAINER_STATE = "trainer_state.json"
SHUFFLED = 10_000
"""Rows of a stream that are shuffled at a time."""
TRIED = 5
"""Targets about which a check of the user's own is asked before training."""
LOSSES = "losses"
"""Where `trainer_state.json` has the sums of losses since the last log."""
DAMAGED = (RuntimeError, EOFError, ValueError, TypeError, LookupError, AttributeError)
"""What readers of a state raise that is cut off, or that holds something else."""
SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")
NOTE = r"^# until step (\d+): ([^=]+)=(.*)$"
LABEL_SMOOTHING = (
    "label_smoothing_factor spreads over columns that a sample cannot use; "
    "set label_smoothing in the model's configuration instead"
)


class _Runs(Trainer):
    """What all trainers here share: batches alike in size, progress, and whole checkpoints.

    A step whose loss or norm of gradients is not finite is left out; see `hf_alpha.finite`.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.finite_steps = FiniteSteps()
        self._losses: list[torch.Tensor] = []  # of the step so far, one for each micro-batch
        self._first_counted = 0  # the first step whose loss the mean over the run has
        # Without an accelerator, PyTorch would warn in every run.
        self.args.dataloader_pin_memory &= torch.accelerator.is_available()
        self.add_callback(_KeepInStep(self.accelerator))
        self.add_callback(_KeepLosses(self))
        for kind in (ProgressCallback, PrinterCallback):  # a notebook has another one, which stays
            if self.pop_callback(kind) is not None:
                self.add_callback(TrainingProgress())

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As in the base class; the loss is kept for the end of the step."""
        loss = super().training_step(*args, **kwargs)
        self._losses.append(loss)
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """As in the base class: asked once in each step, when all its gradients are there."""
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)
        loss = float(self._of_all(torch.stack(self._losses).sum()).mean())
        self._losses.clear()
        self._check_step(model, loss, None if norm is None else float(norm))
        return norm

    def _check_step(self, model: Any, loss: float, norm: float | None) -> None:
        """Leave a step out whose numbers are not finite; too many in a row end the training."""
        scaler, step = self.accelerator.scaler, self.state.global_step + 1
        overflow = norm is not None and math.isfinite(loss) and not math.isfinite(norm)
        if overflow and scaler is not None and scaler.get_scale() > 1:
            self.finite_steps.losses += 1
            return  # with fp16: the scaler leaves it out, and its scale falls
        if self.finite_steps.add(step, loss, norm):
            return
        if self.finite_steps.in_a_row == PATIENCE:
            raise self._not_finite(
                f"training is stopped at step {step}: in {PATIENCE} steps in a row, loss or norm "
                f"of gradients was not finite ({loss} and {norm})"
            )
        logger.warning("step %d is left out: loss %s, norm of gradients %s", step, loss, norm)
        if scaler is None:  # which leaves it out itself, and must see the gradients
            model.zero_grad()

    def check_end(self) -> None:
        """Refuse a model that is not finite.

        Raises:
            NotFiniteError: it is not, or it is not known, since the last steps were left out.
        """
        if self.finite_steps.in_a_row:
            raise self._not_finite("in the last steps, loss or norm of gradients was not finite")
        if not self._is_finite():
            raise self._not_finite("training has led to weights that are not finite")

    def _not_finite(self, what: str) -> NotFiniteError:
        good = last_checkpoint(self.args.output_dir, self.finite_steps.proved)
        last = last_checkpoint(self.args.output_dir)
        ahead = "a smaller training.learning_rate and another training.output_dir"
        if good is None:
            way = f"there is no good checkpoint: begin again with {ahead}"
        else:
            way = (
                f"the last good checkpoint is {good}: 'checkpoint: {good}' in a recipe goes on "
                f"from its weights, with {ahead}"
            )
        led = "" if last == good else f" ({last} was saved behind it, and leads here again)"
        return NotFiniteError(f"{what}; no model is written; {way}{led}")

    def _of_all(self, number: torch.Tensor) -> torch.Tensor:
        """A number of each process: (processes,)."""
        return self.accelerator.gather(number.reshape(1))

    def _is_finite(self) -> bool:
        """Whether the weights are, those in other processes too."""
        mine = torch.tensor(is_finite(self.model), device=self.args.device)
        return bool(self._of_all(mine).all())

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """As in the base class; but a loss that is not known is none, and the mean is of all steps.

        The Trainer takes a loss that is not finite for the mean of the others, or for 0.
        """
        if "loss" in logs:
            logs["loss"] = logs["loss"] if self.finite_steps.losses else math.nan
            self.finite_steps.losses = 0
        if "train_loss" in logs:
            steps = self.state.global_step - self._first_counted
            logs["train_loss"] = self._total_loss_scalar / max(steps, 1)
        super().log(logs, *args, **kwargs)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        folder = Path(self.args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}")
        if self.finite_steps.in_a_row or not self._is_finite():
            logger.warning("%s is not written: the numbers are not finite", folder)
            return
        self.state.stateful_callbacks[LOSSES] = self._losses_since_log()
        with _written(folder):
            super()._save_checkpoint(*args, **kwargs)

    def _losses_since_log(self) -> dict[str, Any]:
        """What the next log and the mean of a resumed run need: sums, one of each process."""
        return {
            "since_log": self._of_all(self._tr_loss).tolist(),
            "total": self._total_loss_scalar,
            "last_logged": self._globalstep_last_logged,
            "first_counted": self._first_counted,
        }

    def go_on_counting(self) -> None:
        """Take up the sums of losses of a checkpoint; one without them begins to count anew."""
        self._first_counted = self.state.global_step
        self.finite_steps.proved = self.state.global_step - 1
        kept = self.state.stateful_callbacks.get(LOSSES)
        if kept is None:
            return
        sums = kept["since_log"]
        same = len(sums) == self.args.world_size
        self._tr_loss += sums[self.args.process_index] if same else math.fsum(sums) / len(sums)
        self._total_loss_scalar = kept["total"]
        self._globalstep_last_logged = kept["last_logged"]
        self._first_counted = kept["first_counted"]

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with _readable(checkpoint, "the optimiser's state"):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_scaler(self, checkpoint: str | None) -> None:
        if self.accelerator.scaler is None:  # it is of a run with fp16, or of somebody else
            return
        with _readable(checkpoint, "the state of the scaler"):
            super()._load_scaler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with _readable(checkpoint, "the state of random numbers"):
            super()._load_rng_state(checkpoint)

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        dataset = train_dataset if train_dataset is not None else self.train_dataset
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return BucketSampler(bucket_keys(dataset), self._train_batch_size, seed=seed)

    def _get_eval_sampler(self, eval_dataset: Dataset) -> Sampler | None:
        """In order: metrics compare outputs with rows. The base class may sort them by length."""
        return SequentialSampler(eval_dataset) if self.args.world_size <= 1 else None


class ObjectiveTrainer(_Runs):
    """Trainer for objectives that do not answer; gradients are accumulated as each model needs it.

    A loss is divided by the number of micro-batches, unless the model's forward has a parameter
    `num_items_in_batch`. The base class believes that any `**kwargs` would take it.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        forward = self.accelerator.unwrap_model(self.model).forward
        self.model_accepts_loss_kwargs &= "num_items_in_batch" in signature(forward).parameters


class AlphaTrainer(_Runs, Seq2SeqTrainer):
    """Seq2SeqTrainer whose batches are alike in number of symbols and length.

    What it shows of its progress is `hf_alpha.progress`'s.

    Attributes:
        answer_rates: gives rates of the model's answers, such as `correct`, which then stand
            beside the validation loss (`metric_for_best_model: correct`); None for none.

    Raises:
        ValueError: `label_smoothing_factor` is set: the Trainer's own smoothing would spread over
            columns that a sample cannot use.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.answer_rates: Callable[[Any], dict[str, float]] | None = None
        if self.args.label_smoothing_factor:
            raise ValueError(LABEL_SMOOTHING)

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """As in the base class; with `answer_rates`, problems are answered too."""
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        if self.answer_rates is not None:
            rates = self.answer_rates(self.accelerator.unwrap_model(self.model))
            output.metrics.update({f"{metric_key_prefix}_{key}": x for key, x in rates.items()})
        return output


@dataclass
class AnswerRates:
    """Answers a few problems, and says how many answers are right, and how far they are off.

    Attributes:
        task: checks answers.
        tokenizer: that of the model.
        rows: the problems, as evaluation takes them.
    """

    task: Task
    tokenizer: AnyTokenizer
    rows: list[dict[str, Any]]

    @cached_property
    def limit(self) -> int:
        """How long an answer may be, in tokens."""
        return answer_limit(self.task, self.tokenizer, self.rows)

    def __call__(self, model: Any) -> dict[str, float]:
        """Return `correct`, between 0 and 1, and `edit_distance` where the task has one."""
        if not self.rows:
            return {}
        found = evaluate(
            model, self.tokenizer, self.task, self.rows, max_new_tokens=self.limit, progress=False
        ).overall
        distance = {} if found.edit_distance is None else {"edit_distance": found.edit_distance}
        return {"correct": found.correct, **distance}


@contextmanager
def _readable(checkpoint: str | None, what: str) -> Iterator[None]:
    """Say which part of a checkpoint is damaged."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (*DAMAGED, UnpicklingError) as error:
        said = " ".join(str(error).split()) or "it is empty"
        raise CheckpointError(
            f"{checkpoint}: {what} cannot be read: {said}; without this "
            "folder the run goes on from the checkpoint before, or begins again where there is none"
        ) from error


@contextmanager
def _written(folder: Path) -> Iterator[None]:
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


class _KeepInStep(TrainerCallback):
    """Tells sampler and collator which epoch it is, and the model that a step is done."""

    def __init__(self, accelerator: Accelerator):
        self.accelerator = accelerator
        self._scale_before = 0.0

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
        if hasattr(train_dataloader.collate_fn, "epoch"):
            train_dataloader.collate_fn.epoch = int(state.epoch or 0)
        if isinstance(batches.sampler, BucketSampler):  # a stream has none
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
        if hasattr(model, "advance_step") and not self._step_was_skipped():
            model.advance_step()

    def on_pre_optimizer_step(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._scale_before = self._loss_scale()

    def _step_was_skipped(self) -> bool:
        """Whether the gradients have overflowed, with fp16: the scale of the loss has then fallen.

        accelerate knows of DeepSpeed's steps, and not of those that a fused optimiser leaves out.
        """
        fallen = self._loss_scale() < self._scale_before
        return fallen or self.accelerator.optimizer_step_was_skipped

    def _loss_scale(self) -> float:
        scaler = self.accelerator.scaler
        return 0.0 if scaler is None else scaler.get_scale()


class _KeepLosses(TrainerCallback):
    """Has a run that is resumed log what it would have logged: the Trainer starts its sums anew."""

    def __init__(self, trainer: _Runs):
        self.trainer = trainer

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self.trainer.go_on_counting()


def bucket_keys(dataset: TrainingData) -> np.ndarray:
    """(number of symbols, input length) of each tokenised row: (N, 2); without symbols (N, 1)."""
    if isinstance(dataset, DrawnProblems):
        return dataset.keys
    table = dataset.with_format("arrow")[:]
    names = [name for name in ("stream_ids", "input_ids") if name in table.column_names]
    columns = (pc.list_value_length(table[name]) for name in names)
    return np.stack([column.to_numpy() for column in columns], axis=1)


def _longest_answer(dataset: TrainingData) -> int:
    """Tokens of the longest answer; 0 where that is not known, as of a stream."""
    if not isinstance(dataset, Dataset):
        return 0
    lengths = pc.list_value_length(dataset.with_format("arrow")[:]["labels"])
    return pc.max(lengths).as_py() or 0


def prepare_data(
    recipe: Recipe, tokenizer: AnyTokenizer, own: OwnPairs | None = None
) -> tuple[TrainingData, TrainingData | None]:
    """Training and validation data of a recipe, generated first if need be, tokenised.

    Args:
        recipe: the recipe.
        tokenizer: that of the model.
        own: the user's own pairs, if the recipe names some; see `own_pairs`.

    Raises:
        RecipeError: the data cannot be made or read as the recipe says.
    """
    if own is not None:
        return _own_data(recipe, tokenizer, own)
    train = _training_data(recipe, tokenizer)  # generates both splits
    return train, _validation_data(recipe, tokenizer)


def own_pairs(recipe: Recipe, say: Callable[[str], object] = print) -> OwnPairs | None:
    """The user's own pairs, read as the recipe says; None if it names none.

    Raises:
        RecipeError: they cannot be read, or used.
    """
    if recipe.data.train is None:
        return None
    task: Any = recipe.solved
    finder = getattr(task, "finder", None)
    if finder is None:
        raise RecipeError("the key 'symbols' is missing: say which words are names")
    with _named("data"):
        pairs = OwnPairs(
            recipe.data,
            finder,
            recipe.training.get("seed", 42),
            say,
            same=task.same,
            has_check=task.has_check,
        )
    if pairs.validation is None and recipe.training.get("eval_strategy", "no") != "no":
        raise RecipeError(
            "training: eval_strategy needs data.validation: give a share of the pairs (0.05) or a "
            "file, or set eval_strategy to 'no'"
        )
    with _named("check"):
        _try_check(task, pairs, say)
    with _named("measures"):
        _try_measures(task, pairs)
    return pairs


def _try_check(task: Any, pairs: OwnPairs, say: Callable[[str], object]) -> None:
    """Ask the user's own check, if there is one, about targets: before hours of training."""
    if not task.has_check:
        return
    task.forget_checks()
    for row, pair in enumerate(own_rows(pairs.train, task, TRIED)):
        place = f"{task.own_check}, training pair {row} with its target as the answer"
        try:
            verdict = task.ask(pair["problem"], pair["answer"], pair["answer"])
        except (TimeoutError, RuntimeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from error
        if not verdict.is_correct:
            say(f"check: {place}: {verdict}")


def _try_measures(task: Any, pairs: OwnPairs) -> None:
    """Ask the user's own measures, if there are some, about targets: before hours of training."""
    if not task.own_measures:
        return
    targets = [pair["answer"] for pair in own_rows(pairs.train, task, TRIED)]
    task.measured(targets, targets)


def _own_data(
    recipe: Recipe, tokenizer: AnyTokenizer, own: OwnPairs
) -> tuple[TrainingData, TrainingData | None]:
    settings = recipe.data
    with _named("data"):
        own.look(tokenizer)
        rows = own.train
        if isinstance(rows, IterableDataset):
            rows = rows.shuffle(seed=recipe.training.get("seed", 42), buffer_size=SHUFFLED)
        train = _tokenized(rows, settings.max_train_samples, tokenizer, recipe)
        if own.validation is None:
            return train, None
        return train, _tokenized(own.validation, settings.max_eval_samples, tokenizer, recipe)


def _training_data(recipe: Recipe, tokenizer: AnyTokenizer) -> TrainingData:
    settings = recipe.data
    if settings.draw:
        with _named("data: draw"):
            drawn = DrawnProblems(recipe.task, tokenizer, **settings.draw)
        drawn.keys = drawn.keys[: settings.max_train_samples]
        return drawn
    assert settings.path is not None
    with _named("data"):
        rows = _generated(recipe, settings.path, settings.generate, "train")
        return _tokenized(rows, settings.max_train_samples, tokenizer, recipe)


def _validation_data(recipe: Recipe, tokenizer: AnyTokenizer) -> TrainingData:
    settings = recipe.data
    most = settings.max_eval_samples
    if isinstance(other := settings.validation, dict) and other:
        with _named("data: validation"):
            rows = _generated(recipe, other["path"], other.get("generate", {}), "validation")
            return _tokenized(rows, most, tokenizer, recipe)
    if settings.draw:
        few = {**settings.draw, "num_samples": most}
        with _named("data: draw"):
            return DrawnProblems(recipe.task, tokenizer, split="validation", **few)
    assert settings.path is not None
    with _named("data"):
        return _tokenized(load(settings.path, "validation"), most, tokenizer, recipe)


def _generated(recipe: Recipe, path: str, generation: dict[str, Any], split: str) -> Dataset:
    """A split of a dataset, which is generated first if the recipe says how.

    That returns at once where the same data has been made, and refuses where other data has.
    """
    if generation:
        generate(get_task(recipe.task), path, num_workers=recipe.data.num_workers, **generation)
    return load(path, split)


def _tokenized(rows: Any, most: int | None, tokenizer: AnyTokenizer, recipe: Recipe) -> Any:
    if isinstance(rows, IterableDataset):
        few = rows if most is None else rows.take(most)
    else:
        few = rows if most is None else rows.select(range(min(most, len(rows))))
    return tokenize(few, tokenizer, recipe.data.num_workers)


def prepare_model(
    recipe: Recipe, own: OwnPairs | None = None, say: Callable[[str], object] = print
) -> tuple[PreTrainedModel, AnyTokenizer]:
    """The model to train and its tokenizer: new ones, or the checkpoint's.

    Args:
        recipe: the recipe.
        own: the user's own pairs, from which a new tokenizer is made; that of a checkpoint finds
            names as the recipe says, and gets as many symbols as they need.
        say: is told how many symbols a checkpoint gets.

    Raises:
        RecipeError: a setting of the model has a wrong kind or value, or the checkpoint's symbols
            do not fit the recipe's.
    """
    if recipe.checkpoint is not None:
        model, loaded = load_checkpoint(recipe.checkpoint)
        fit_tokenizer(loaded, model)
        if own is not None and isinstance(loaded, TextTokenizer):
            with _named("symbols"):
                _fit_symbols(model, loaded, own, say)
        return model, loaded
    if own is None:
        tokenizer: AnyTokenizer = build_tokenizer(recipe.task, recipe.num_symbols or NUM_SYMBOLS)
    else:
        with _named("tokenizer"):
            tokenizer = TextTokenizer.from_texts(own.texts, own.finder.rules, recipe.tokenizer)
            tokenizer.extend_symbols(own.lacking(tokenizer.symbol_classes))
    with _named("model"):
        config = config_for(
            tokenizer, {"symbol_seed": recipe.training.get("seed", 42), **recipe.model}
        )
    if own is not None and config.learns_names:
        tokenizer.name_symbols(own.texts)
    model = auto_class(config).from_config(config)
    fit_tokenizer(tokenizer, model)
    return model, tokenizer


def _fit_symbols(
    model: PreTrainedModel, tokenizer: TextTokenizer, own: OwnPairs, say: Callable[[str], object]
) -> None:
    """Have a checkpoint find names by the recipe's rules, with symbols for all of a row.

    Raises:
        ValueError: classes or symbols do not fit, or there are too few, and none can be added.
    """
    if tokenizer.symbols_are_words:
        own.check_symbols(tokenizer)
        return
    tokenizer.use_rules(own.finder.rules)
    if model.config.learns_names:
        tokenizer.name_symbols(own.texts)
    lacking = own.lacking(tokenizer.symbol_classes, training=True)
    more = {name: count for name, count in lacking.items() if count}
    if not more:
        return
    said = ", ".join(
        f"{name} has {count}, and {more[name]} more are needed"
        for name, count in tokenizer.symbol_classes.items()
        if name in more
    )
    if reason := model.config.encoding.no_extension:
        raise ValueError(
            f"too few symbols in the checkpoint: {said}; {reason}, or one of Transformers again "
            "with more --symbols"
        )
    model.extend_symbols(more)
    tokenizer.extend_symbols(more)
    say(f"symbols of the checkpoint: {said}; they are added")


def _complete_rules(recipe: Recipe, say: Callable[[str], object]) -> Recipe:
    """A recipe for own pairs, with what its checkpoint says of names.

    Those are the rules, where the recipe has none; or what the only class is called.
    """
    if recipe.data.train is None or len(recipe.symbols) > 1 or recipe.checkpoint is None:
        return recipe
    _, tokenizer = load_parts(recipe.checkpoint, answers=recipe.aim is None)
    if recipe.symbols:
        return _with_class_of(tokenizer, recipe, say)
    if recipe.aim is not None and not isinstance(tokenizer, TextTokenizer):
        return recipe
    texts = isinstance(tokenizer, TextTokenizer)
    rules = rules_of(tokenizer, recipe.checkpoint) if texts else {}
    rules = {name: {k: v for k, v in rule.items() if k != "count"} for name, rule in rules.items()}
    if not rules or not all(rules.values()):
        raise RecipeError(
            f"the key 'symbols' is missing: say which words are names; {recipe.checkpoint} does "
            "not say it either"
        )
    return dataclasses.replace(recipe, symbols=rules)


def _with_class_of(tokenizer: Any, recipe: Recipe, say: Callable[[str], object]) -> Recipe:
    """A recipe with one class, called as the only one of a tokenizer: both are all names."""
    classes = list(tokenizer.finder.rules) if isinstance(tokenizer, TextTokenizer) else []
    ((ours, rule),) = recipe.symbols.items()
    if len(classes) != 1 or classes == [ours]:
        return recipe
    say(f"symbols: {ours!r} is the class {classes[0]!r} of {recipe.checkpoint}")
    return dataclasses.replace(recipe, symbols={classes[0]: rule})


def config_for(tokenizer: Any, settings: Mapping[str, Any]) -> PreTrainedConfig:
    """The configuration of a new model for a tokenizer.

    Args:
        tokenizer: the vocabulary comes from it; see the configuration's `for_tokenizer`. Models of
            Transformers itself get its size and special tokens.
        settings: fields of the configuration, and its `model_type`.

    Raises:
        ValueError: a setting has a wrong kind or value.
    """
    chosen = dict(settings)
    config_class = CONFIG_MAPPING[chosen.pop("model_type", DEFAULT_MODEL_TYPE)]
    if hasattr(config_class, "for_tokenizer"):
        return config_class.for_tokenizer(tokenizer, **chosen)
    special = {name: getattr(tokenizer, name) for name in SPECIAL_IDS}
    return config_class(vocab_size=len(tokenizer), **{**special, **chosen})


def prepare_arguments(recipe: Recipe) -> Seq2SeqTrainingArguments:
    """The arguments of training, with defaults that suit the machine.

    Raises:
        RecipeError: a setting of training has a wrong kind or value.
    """
    defaults: dict[str, Any] = {
        # Without it, processes that torchrun starts on a CPU would not know of each other.
        "use_cpu": not torch.accelerator.is_available(),
        # Heads leave some weights of a body without gradients.
        "ddp_find_unused_parameters": recipe.aim is not None,
    }
    if recipe.data.streaming:  # else several processes would get parts of one batch
        defaults["accelerator_config"] = {"dispatch_batches": False}
    if recipe.training.get("label_smoothing_factor") and recipe.aim is None:
        raise RecipeError(f"training: {LABEL_SMOOTHING}")
    with _named("training"):
        if recipe.aim is not None:
            recipe.aim.check_training(recipe.training)
        arguments = Seq2SeqTrainingArguments(**{**defaults, **recipe.training})
    if recipe.aim is not None:
        arguments.remove_unused_columns = False  # collators take what else there is
    with _named("training: report_to"):
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

    def on_epoch_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """In the middle of an epoch nothing is due; at its end, what is due goes into the save."""
        if self.interrupted:
            is_whole = float(state.epoch or 0).is_integer()
            control.should_log &= is_whole
            control.should_evaluate &= is_whole
            control.should_save = is_whole


def train(
    recipe: Recipe,
    resume: bool = True,
    allow_changes: bool = False,
    say: Callable[[str], object] = print,
    make_trainer: type[AlphaTrainer] = AlphaTrainer,
) -> Any:
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
        say: is told where a run resumes, or that it has ended, and about the user's own data.
        make_trainer: the class that trains models that answer.

    Returns:
        The trainer, with the trained model.

    Raises:
        RecipeError: the recipe does not fit its data, or the run in `output_dir`, or there is one
            and `resume` is not set.
        CheckpointError: the checkpoint to resume is damaged.
        NotFiniteError: loss or gradients were not finite in `PATIENCE` steps in a row, or are not
            at the end; no model is written.
        Interrupted: Ctrl-C; there is a checkpoint of the last step.
        ValueError: another process trains in `output_dir`.
    """
    arguments = prepare_arguments(recipe)
    with _claimed(arguments):
        return _train(recipe, arguments, resume, allow_changes, say, make_trainer)


@contextmanager
def _claimed(arguments: TrainingArguments) -> Iterator[None]:
    """Keep other runs out of the output folder; the first process does it for all of a run."""
    out = Path(arguments.output_dir)
    if out.exists() and not out.is_dir():
        raise RecipeError(f"training: output_dir {out} is a file: name a folder")
    with alone(out) if arguments.process_index == 0 else nullcontext():
        yield


def _train(
    recipe: Recipe,
    arguments: Seq2SeqTrainingArguments,
    resume: bool,
    allow_changes: bool,
    say: Callable[[str], object],
    make_trainer: type[AlphaTrainer],
) -> _Runs:
    """Train in a folder that is this run's."""
    own_code = named_code(recipe).values()  # before a checkpoint adds to it
    tell = say if arguments.process_index == 0 else lambda _: None
    recipe = _complete_rules(recipe, tell)
    out, start = Path(arguments.output_dir), _starting_point(arguments, resume)
    notes = [] if start is None else _notes(recipe, out, _state(start).global_step, allow_changes)
    finished = start is not None and _is_finished(_state(start), arguments)
    set_seed(arguments.seed)  # for the weights of a new model
    at_end = _final_weights(arguments, start) if start is not None and finished else None
    # One process makes the data, the others wait and read it.
    with arguments.main_process_first(desc="data"):
        if recipe.aim is None:
            work = _prepare_answers(recipe, at_end, tell)
        else:
            work = _prepare_objective(recipe, at_end, start, tell)
    stop = _StopOnInterrupt()
    kind = make_trainer if recipe.aim is None else ObjectiveTrainer
    trainer = kind(args=arguments, callbacks=[stop], **work.given)
    if recipe.optimizer:
        with _named("optimizer"):
            trainer.optimizer_cls_and_kwargs = optimizer_of(recipe.optimizer, arguments)
    if isinstance(trainer, AlphaTrainer):
        trainer.answer_rates = work.answer_rates
    if trainer.is_world_process_zero() and not (finished and (out / RECIPE_FILE).is_file()):
        write_recipe(recipe, out / RECIPE_FILE, notes)
    if trainer.is_world_process_zero():
        remember_recipe(out / RECIPE_FILE, own_code)
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


@dataclass
class _Work:
    """What a run needs: all that a trainer is given, and what says how many answers are right."""

    given: dict[str, Any]
    answer_rates: AnswerRates | None = None


def _prepare_answers(recipe: Recipe, finished: Path | None, say: Callable[[str], object]) -> _Work:
    """The work of a model that answers; of a finished run, with its own model."""
    task = recipe.solved
    own = own_pairs(recipe, say)
    model, tokenizer = load_checkpoint(finished) if finished else prepare_model(recipe, own, say)
    task.prepare(tokenizer)
    train_data, valid_data = prepare_data(recipe, tokenizer, own)
    raise_limit(model, 0 if own is None else room_for(_longest_answer(train_data)))
    rates = None
    if own is not None and own.validation is not None:
        few = own_rows(own.validation, task, recipe.data.max_answer_samples)
        rates = AnswerRates(task, tokenizer, few)
    return _Work(
        {
            "model": model,
            "train_dataset": train_data,
            "eval_dataset": valid_data,
            "data_collator": AlphaCollator(
                tokenizer, for_decoder=not model.config.is_encoder_decoder
            ),
            "processing_class": tokenizer,
        },
        rates,
    )


def _prepare_objective(
    recipe: Recipe, finished: Path | None, start: Path | None, say: Callable[[str], object]
) -> _Work:
    """The work of an objective that does not answer; of a finished run, with its own model."""
    aim, seed = recipe.aim, recipe.training.get("seed", 42)
    assert aim is not None
    finder = find_names(recipe.symbols)
    with _named("data"):
        train, validation = aim.read_both(recipe.data, seed, finder)
    if validation is None and recipe.training.get("eval_strategy", "no") != "no":
        raise RecipeError("training: eval_strategy needs data.validation: a share, or rows")
    with _named("data"):
        parts = [train] if validation is None else [train, validation]
        labels = aim.config_settings(parts, recipe.data)
    train = first(train, recipe.data.max_train_samples)
    if finished:
        model, tokenizer = load_checkpoint(finished, answers=False)
    else:
        model, tokenizer = _objective_model(recipe, aim, train, labels, finder, start, say)
    if finder is not None and isinstance(tokenizer, TextTokenizer):
        tokenizer.finder.take_functions(finder)
    with _named("objective"):
        check_positions(model, aim.max_length)
    _say_segments(model, tokenizer, say)
    with _named("data"):
        made = aim.features(train, recipe.data, tokenizer, model.config, seed=seed)
        say(f"training: {aim.summary(train, made, recipe.data, finder)}")
        given: dict[str, Any] = {"train_dataset": made}
        if validation is not None:
            given |= validating(aim, validation, recipe.data, model, tokenizer, seed)
    given |= {"data_collator": aim.collator(tokenizer, model, seed), "processing_class": tokenizer}
    return _Work({"model": model, **given})


def _objective_model(
    recipe: Recipe,
    aim: Objective,
    rows: Dataset,
    labels: dict[str, Any],
    finder: Any,
    start: Path | None,
    say: Callable[[str], object],
) -> tuple[PreTrainedModel, Any]:
    """A new model with its tokenizer, or a checkpoint's, with a head for the objective."""
    if recipe.checkpoint is not None:
        with _named("checkpoint"):
            model, tokenizer, new = load_for(
                recipe.checkpoint, aim.auto, {**recipe.model, **labels}, aim.trains
            )
            _use_rules(tokenizer, recipe)
        tokenizer = _transducing(tokenizer, recipe)
        with _named("checkpoint"):
            check_segments(model.config, tokenizer, recipe.checkpoint)
        if new:
            say(f"{recipe.checkpoint}: {len(new)} weights are new: {', '.join(new[:4])}")
        return model, tokenizer
    with _named("tokenizer"):
        if start is not None:  # a WordPiece made again of the same texts may have other ids
            _, tokenizer = load_parts(start, answers=False)
        else:
            texts = aim.texts(rows, recipe.data, finder)
            tokenizer = make_tokenizer(recipe.tokenizer, texts, recipe.symbols)
    if start is None:
        tokenizer = _transducing(tokenizer, recipe)
    with _named("model"):
        settings = {**recipe.model, **labels}
        if recipe.symbols and "symbol_seed" in settings_of(CONFIG_MAPPING[settings["model_type"]]):
            settings = {"symbol_seed": recipe.training.get("seed", 42), **settings}
        config = config_for(tokenizer, settings)
    if start is None and recipe.symbols and getattr(config, "learns_names", True):
        tokenizer.name_symbols(texts)
    return aim.auto.from_config(config), tokenizer


def _transducing(tokenizer: Any, recipe: Recipe) -> Any:
    """A tokenizer with the recipe's transducer, if it names one."""
    with _named("transducer"):
        return with_transducer(tokenizer, recipe.transducer) if recipe.transducer else tokenizer


def _say_segments(model: PreTrainedModel, tokenizer: Any, say: Callable[[str], object]) -> None:
    """Say what becomes of the segments that a tokenizer finds."""
    if not hasattr(tokenizer, "segment_labels"):
        return
    labels, kind = tokenizer.segment_labels, model.config.model_type
    if not reads_segments(model):
        say(f"segments: a {kind!r} model takes none: those of the transducer are left out")
        return
    shown = ", ".join(labels[:5]) + ", ..." * (len(labels) > 5)
    say(f"segments: {len(labels):,} labels: {shown}")


def _use_rules(tokenizer: Any, recipe: Recipe) -> None:
    """Have a checkpoint's tokenizer find names by the recipe's rules."""
    if recipe.symbols and not isinstance(tokenizer, TextTokenizer):
        raise ValueError(f"{recipe.checkpoint} has no symbols: leave out the key 'symbols'")
    if isinstance(tokenizer, TextTokenizer) and not tokenizer.symbols_are_words:
        tokenizer.use_rules(recipe.symbols)


def _run(
    trainer: _Runs, start: Path | None, stop: _StopOnInterrupt, say: Callable[[str], object]
) -> None:
    """Train from the beginning, or from a checkpoint whose weights fit."""
    out = trainer.args.output_dir
    if start is not None:
        saved, theirs = load_checkpoint(start, answers=isinstance(trainer, AlphaTrainer))
        _check_shapes(trainer.model, saved, start)
        _check_vocabulary(trainer.processing_class, theirs, start)
        say(f"{out}: resuming from {start}, step {_state(start).global_step}")
    try:
        with stop.listening(alone=trainer.args.world_size == 1):
            trainer.train(resume_from_checkpoint=None if start is None else str(start))
    except KeyError as error:
        if "metric_for_best_model" not in str(error):
            raise
        raise RecipeError(f"training: {error.args[0]}") from error
    trainer.check_end()
    if stop.interrupted and not _is_finished(trainer.state, trainer.args):
        step = trainer.state.global_step
        raise Interrupted(
            f"stopped at step {step}, which {out}/{PREFIX_CHECKPOINT_DIR}-{step} holds: the same "
            "command goes on from there"
        )


def _check_shapes(model: PreTrainedModel, saved: PreTrainedModel, where: Path) -> None:
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


def _check_vocabulary(ours: Any, theirs: Any, where: Path) -> None:
    """Check that a vocabulary made from data is still that of the run."""
    if isinstance(ours, TextTokenizer) and ours.settings() != theirs.settings():
        raise RecipeError(
            f"{where} has another vocabulary: the data has changed since that run began; choose "
            "another training.output_dir, or bring back the data"
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


def _starting_point(arguments: Seq2SeqTrainingArguments, resume: bool) -> Path | None:
    """The run's last checkpoint; the run itself where it is finished and has none any more.

    Raises:
        RecipeError: the folder holds a run that cannot or may not be resumed.
    """
    out = Path(arguments.output_dir)
    start = last_checkpoint(out)
    if start is not None and _ended_behind(out, start, arguments):
        start = out  # its last checkpoint is gone: with save_total_limit, only the best one stays
    if start is None and (out / TRAINER_STATE).is_file():
        start = out
        if not _is_finished(_state(out), arguments):
            raise RecipeError(
                f"{out} holds a trained model and no checkpoint to resume: choose another "
                f"training.output_dir; 'checkpoint: {out}' in a recipe goes on from its weights"
            )
    if start is not None and not resume:
        raise RecipeError(
            f"{out} holds a checkpoint already: resume it, or choose another training.output_dir"
        )
    return start


def _ended_behind(out: Path, start: Path, arguments: Seq2SeqTrainingArguments) -> bool:
    """Whether the folder has the model of a finished run, of a later step than a checkpoint."""
    if not _holds_model(out):
        return False
    state = _state(out)
    return _is_finished(state, arguments) and state.global_step > _state(start).global_step


def _state(folder: Path) -> TrainerState:
    read_json(folder / TRAINER_STATE)  # names the file if it is damaged
    return TrainerState.load_from_json(str(folder / TRAINER_STATE))


def _has_model(out: Path, state: TrainerState) -> bool:
    """Whether the model of this state has been written behind its last checkpoint."""
    return _holds_model(out) and _state(out).global_step == state.global_step


def _holds_model(out: Path) -> bool:
    """Whether a run has written its model, and the state that belongs to it, beside checkpoints."""
    return (out / TRAINER_STATE).is_file() and any(out.glob("*.safetensors"))


def _final_weights(arguments: Seq2SeqTrainingArguments, start: Path) -> Path:
    """The folder with the weights of a finished run: its own, or the checkpoint they come from.

    Raises:
        CheckpointError: the best checkpoint was to be loaded at the end, and is gone.
    """
    out, state = Path(arguments.output_dir), _state(start)
    if _has_model(out, state):
        return out
    if not arguments.load_best_model_at_end or state.best_model_checkpoint is None:
        return start
    best = out / Path(state.best_model_checkpoint).name
    if not best.is_dir():
        raise CheckpointError(f"{best}, the best checkpoint of the finished run, is missing")
    return best


def last_checkpoint(output_dir: str | Path, until: float = math.inf) -> Path | None:
    """The newest complete checkpoint of a run; one cut off while it was written is passed over.

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
