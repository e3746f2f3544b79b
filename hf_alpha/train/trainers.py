"""Trainers: batches alike in size, steps kept in step, whole checkpoints, Ctrl-C."""

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch
from datasets import Dataset
from torch.utils.data import Sampler, SequentialSampler
from transformers import PrinterCallback, ProgressCallback, Seq2SeqTrainer, Trainer, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from hf_alpha.evaluation.evaluate import evaluate
from hf_alpha.io.progress import TrainingProgress
from hf_alpha.io.settings import RecipeError
from hf_alpha.objectives.answer import LABEL_SMOOTHING
from hf_alpha.tasks import Task

from .checkpoints import (
    check_shapes,
    check_vocabulary,
    is_finished,
    last_checkpoint,
    readable_state,
    state_of,
    whole_checkpoint,
)
from .models import load_trained

logger = logging.getLogger(__name__)


PATIENCE = 3
"""Training stops after so many steps in a row whose loss or norm of gradients is not finite.

Each of them is left out: one bad batch changes no weight.
"""


class NotFiniteError(ValueError):
    """The numbers of a training are not finite; the message says from where it may go on."""


@dataclass
class FiniteSteps:
    """Which steps of a run had a finite loss and finite gradients.

    Attributes:
        in_a_row: how many of the last steps had not.
        proved: the last step behind which weights are known to be good, since the next step went
            well with them; -1 for none.
        losses: how many have had a finite loss since the last log.
    """

    in_a_row: int = 0
    proved: int = -1
    losses: int = 0

    def add(self, step: int, loss: float, gradient_norm: float | None) -> bool:
        """Note a step, counted from 1, and return whether it was finite.

        A loss that is NaN beside finite gradients is the mean over nothing: of a batch in which no
        token is masked, say. That is no fault of the weights.

        Args:
            gradient_norm: None where it is not known; then the loss alone says it.
        """
        self.losses += math.isfinite(loss)
        if gradient_norm is None:
            finite = math.isfinite(loss)
        else:
            finite = math.isfinite(gradient_norm) and not math.isinf(loss)
        if finite:
            self.in_a_row, self.proved = 0, step - 1
        else:
            self.in_a_row += 1
        return not self.in_a_row


class RunTrainer(Trainer):
    """What all trainers here share: batches alike in size, progress, and whole checkpoints.

    A step whose loss or norm of gradients is not finite is left out; see [`FiniteSteps`].
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.finite_steps = FiniteSteps()
        self._losses: list[torch.Tensor] = []  # of the step so far, one for each micro-batch
        self._first_counted = 0  # the first step whose loss the mean over the run has
        # Without an accelerator, PyTorch would warn in every run.
        self.args.dataloader_pin_memory &= torch.accelerator.is_available()
        for kind in (ProgressCallback, PrinterCallback):  # a notebook has another one, which stays
            if self.pop_callback(kind) is not None:
                self.add_callback(TrainingProgress())
        self.add_callback(_KeepInStep(self))

    def run(self, start: Path | None, say: Callable[[str], object]) -> None:
        """Train from the beginning, or from a checkpoint whose weights fit.

        Raises:
            RecipeError, CheckpointError, NotFiniteError, Interrupted: see `train`.
        """
        out, stop = self.args.output_dir, StopOnInterrupt()
        self.add_callback(stop)
        if start is not None:
            model, tokenizer = load_trained(start, isinstance(self, AlphaTrainer))
            check_shapes(self.model, model, start)
            check_vocabulary(self.processing_class, tokenizer, start)
            say(f"{out}: resuming from {start}, step {state_of(start).global_step}")
        try:
            with stop.listening(single_process=self.args.world_size == 1):
                self.train(resume_from_checkpoint=None if start is None else str(start))
        except KeyError as error:
            if "metric_for_best_model" not in str(error):
                raise
            raise RecipeError(f"training: {error.args[0]}") from error
        self.check_end()
        if stop.interrupted and not is_finished(self.state, self.args):
            step = self.state.global_step
            raise Interrupted(
                f"stopped at step {step}, which {out}/{PREFIX_CHECKPOINT_DIR}-{step} holds: the "
                "same command goes on from there"
            )

    @cached_property
    def _token_flops(self) -> int:
        return super().floating_point_ops({self._main_input: torch.zeros(1)})

    @property
    def _main_input(self) -> str:
        return getattr(self.model, "main_input_name", "input_ids")

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Return what the base class does, which counts all weights anew in each step."""
        main_input = inputs.get(self._main_input)
        return 0 if main_input is None else main_input.numel() * self._token_flops

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Train on a batch as the base class does, and keep the loss for the end of the step."""
        loss = super().training_step(*args, **kwargs)
        self._losses.append(loss)
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """Return the norm; check the step by it, as it is asked once, with all gradients there."""
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

    def _not_finite(self, fault: str) -> NotFiniteError:
        good = last_checkpoint(self.args.output_dir, self.finite_steps.proved)
        last = last_checkpoint(self.args.output_dir)
        ahead = "a smaller training.learning_rate and another training.output_dir"
        if good is None:
            advice = f"there is no good checkpoint: begin again with {ahead}"
        else:
            advice = (
                f"the last good checkpoint is {good}: 'checkpoint: {good}' in a recipe goes on "
                f"from its weights, with {ahead}"
            )
        led = "" if last == good else f" ({last} was saved behind it, and leads here again)"
        return NotFiniteError(f"{fault}; no model is written; {advice}{led}")

    def _of_all(self, number: torch.Tensor) -> torch.Tensor:
        """Gather a number from each process: (processes,)."""
        alone = self.args.world_size == 1  # where nothing is to be asked
        return number.reshape(1) if alone else self.accelerator.gather(number.reshape(1))

    def _is_finite(self) -> bool:
        """Whether the weights are, those in other processes too."""
        finite = all(bool(torch.isfinite(weight).all()) for weight in self.model.parameters())
        finite_here = torch.tensor(finite, device=self.args.device)
        return bool(self._of_all(finite_here).all())

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log as the base class does, without unknown losses and with the mean of all steps.

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
        with whole_checkpoint(folder):
            super()._save_checkpoint(*args, **kwargs)

    def begin_counting(self) -> None:
        """Count steps and losses from where a run begins or goes on."""
        self._first_counted = self.state.global_step
        self.finite_steps.proved = self.state.global_step - 1

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with readable_state(checkpoint, "the optimiser's state"):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_scaler(self, checkpoint: str | None) -> None:
        if self.accelerator.scaler is None:  # it is of a run with fp16, or of somebody else
            return
        with readable_state(checkpoint, "the state of the scaler"):
            super()._load_scaler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with readable_state(checkpoint, "the state of random numbers"):
            super()._load_rng_state(checkpoint)

    def _get_train_sampler(self, train_dataset: Dataset | None = None) -> Sampler | None:
        dataset = train_dataset if train_dataset is not None else self.train_dataset
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        # Rows of a step, not of a batch: however it is cut into micro-batches and processes, they
        # are the same.
        parts = self.args.gradient_accumulation_steps * self.args.world_size
        return BucketSampler(bucket_keys(dataset), self._train_batch_size * parts, seed=seed)

    def _get_eval_sampler(self, eval_dataset: Dataset) -> Sampler | None:
        """Return a sampler in order, as metrics need it: the base class may sort by length."""
        return SequentialSampler(eval_dataset) if self.args.world_size <= 1 else None


class ObjectiveTrainer(RunTrainer):
    """Trainer for objectives that do not answer; gradients are accumulated as each model needs it.

    A loss is divided by the number of micro-batches, unless the model's forward has a parameter
    `num_items_in_batch`. The base class believes that any `**kwargs` would take it.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        forward = self.accelerator.unwrap_model(self.model).forward
        self.model_accepts_loss_kwargs &= "num_items_in_batch" in signature(forward).parameters


class AlphaTrainer(RunTrainer, Seq2SeqTrainer):
    """Seq2SeqTrainer whose batches are alike in number of symbols and length.

    What it shows of its progress is `hf_alpha.io.progress`'s.

    Args:
        answered: a task and a few of its problems. Rates of the model's answers to them, such as
            `correct`, stand beside the validation loss (`metric_for_best_model: correct`).

    Raises:
        ValueError: rows of the training data are no mappings with `input_ids`.
        ValueError: `label_smoothing_factor` is set: the Trainer's own smoothing would spread over
            columns that a sample cannot use.

    Examples:
        >>> from datasets import Dataset
        >>> from transformers import Seq2SeqTrainingArguments
        >>> rows = Dataset.from_list([{**tokenizer("a & !b", text_target="a 1 b 0")}])
        >>> arguments = Seq2SeqTrainingArguments(
        ...     "runs/example", max_steps=1, report_to="none", save_strategy="no"
        ... )
        >>> AlphaTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer).train()
        trained 1 step in ...
    """

    def __init__(
        self, *args: Any, answered: tuple[Task, list[dict[str, Any]]] | None = None, **kwargs: Any
    ):
        super().__init__(*args, **kwargs)
        self._answered = answered
        if self.args.label_smoothing_factor:
            raise ValueError(LABEL_SMOOTHING)

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """Evaluate as the base class does; answer problems too, if there are some."""
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        if self._answered is not None and self._answered[1]:
            model = self.accelerator.unwrap_model(self.model)
            rates = evaluate(model, self.processing_class, *self._answered, progress=False).overall
            output.metrics[f"{metric_key_prefix}_correct"] = rates.correct
            if rates.edit_distance is not None:
                output.metrics[f"{metric_key_prefix}_edit_distance"] = rates.edit_distance
        return output


class _KeepInStep(TrainerCallback):
    """Tells sampler and collator which epoch it is, and the model that a step is done."""

    def __init__(self, trainer: RunTrainer):
        self.trainer = trainer
        self._scale_before = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer.begin_counting()

    def on_epoch_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **kwargs: Any
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
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        # What is evaluated now is what is saved now, in every process.
        if hasattr(model, "advance_step") and not self._step_was_skipped():
            model.advance_step()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._scale_before = self._loss_scale()

    def _step_was_skipped(self) -> bool:
        """Whether the gradients have overflowed, with fp16: the scale of the loss has then fallen.

        accelerate knows of DeepSpeed's steps, and not of those that a fused optimiser leaves out.
        """
        fallen = self._loss_scale() < self._scale_before
        return fallen or self.trainer.accelerator.optimizer_step_was_skipped

    def _loss_scale(self) -> float:
        scaler = self.trainer.accelerator.scaler
        return 0.0 if scaler is None else scaler.get_scale()


class BucketSampler(Sampler[int]):
    """Orders samples so that consecutive ones, a step's, have like numbers of symbols and lengths.

    Padding then costs little, and few streams run for symbols that a sample lacks. Each epoch
    shuffles the samples, sorts them within windows of many batches, and shuffles the batches; the
    order depends on seed and epoch only, so that a resumed run sees the same batches.

    Args:
        keys: what to sort by, one tuple per sample, the most expensive first.
        batch_size: samples of a step, of all its micro-batches and processes.
        window: batches sorted together; more is closer to uniform batches, and less random.
    """

    def __init__(
        self,
        keys: Sequence[Sequence[int]] | np.ndarray,
        batch_size: int,
        seed: int = 0,
        window: int = 64,
    ):
        self.keys = np.asarray(keys)
        self.batch_size = batch_size
        self.seed = seed
        self.window = window
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.keys)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng((self.seed, self.epoch))
        order = rng.permutation(len(self.keys))
        span = self.batch_size * self.window
        batches: list[np.ndarray] = []
        for start in range(0, len(order), span):
            part = order[start : start + span]
            part = part[np.lexsort(self.keys[part].T[::-1])]
            batches += np.split(part, range(self.batch_size, len(part), self.batch_size))
        # A short batch must come last, or all batches behind it would be cut askew.
        full = [batch for batch in batches if len(batch) == self.batch_size]
        short = [batch for batch in batches if len(batch) < self.batch_size]
        for index in rng.permutation(len(full)):
            yield from full[index].tolist()
        for batch in short:
            yield from batch.tolist()


def bucket_keys(dataset: Any) -> np.ndarray:
    """Return number of symbols and input length of each row: (N, 2); without symbols (N, 1).

    A dataset with an array `keys`, as of problems that are drawn, says it itself. Rows of one that
    is no `datasets.Dataset`, such as a list, are looked at one by one.

    Raises:
        ValueError: a row is no mapping with input_ids.
    """
    if isinstance(known := getattr(dataset, "keys", None), np.ndarray):
        return known
    keys = ("stream_ids", "input_ids")
    if isinstance(dataset, Dataset):
        table = dataset.with_format("arrow")[:]
        lengths = [pc.list_value_length(table[key]) for key in keys if key in table.column_names]
        return np.stack([column.to_numpy() for column in lengths], axis=1)
    lengths = []
    for index in range(len(dataset)):
        row = dataset[index]
        if not isinstance(row, Mapping) or "input_ids" not in row:
            raise ValueError(f"row {index} of the training data is no mapping with input_ids")
        lengths.append([len(row[key]) for key in keys if key in row])
    return np.array(lengths)


class Interrupted(KeyboardInterrupt):
    """Training was stopped by Ctrl-C; the message says how it goes on."""


class StopOnInterrupt(TrainerCallback):
    """Makes Ctrl-C end training with a checkpoint of the step; a second one ends it at once.

    Processes that train together would stop at different steps: there Ctrl-C does what it always
    does, and the last checkpoint counts.
    """

    def __init__(self) -> None:
        self.interrupted = False

    @contextmanager
    def listening(self, single_process: bool) -> Iterator[None]:
        """Catch the signal, if this process trains alone and this thread may."""
        if not single_process or threading.current_thread() is not threading.main_thread():
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

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.interrupted:
            control.should_save = control.should_training_stop = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put what is due at an epoch's end into the save; in its middle nothing is due."""
        if self.interrupted:
            is_whole = float(state.epoch or 0).is_integer()
            control.should_log &= is_whole
            control.should_evaluate &= is_whole
            control.should_save = is_whole
