"""What is seen of training: a bar in a terminal, a line for each log elsewhere."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import has_length
from transformers.utils import logging

SHORT = {"learning_rate": "lr"}
SILENT = ("epoch", "grad_norm", "total_flos", "_runtime", "_per_second", "num_input_tokens_seen")
"""Ends of the names of numbers that are logged and not shown: `trainer_state.json` has them."""


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep Transformers from showing a bar for the one file that is loaded or saved."""
    were_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_enabled:
            logging.enable_progress_bar()


class TrainingProgress(TrainerCallback):
    """Shows loss, learning rate, results of evaluations, speed and the time that is left.

    In a terminal that is a bar, with a line above it for each evaluation. Elsewhere, and with
    `disable_tqdm`, it is a line for each log on standard output. Only the first process shows it.

    Args:
        label: what the run is called, in front of all that is shown.
    """

    unit = "step"

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._bar: tqdm | None = None
        self._batches: tqdm | None = None
        self._numbers: dict[str, str] = {}
        self._start, self._first_step, self._first = time.monotonic(), 0, 0

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        # A resumed run is timed from where it goes on.
        self._start, self._first_step = time.monotonic(), state.global_step
        self._first = self.position(state)
        self._numbers = {}
        if state.is_world_process_zero and shows_bars(args):
            self._bar = tqdm(
                desc=self._label or None, total=self.total(state), initial=self.position(state),
                unit=self.unit, dynamic_ncols=True,
            )  # fmt: skip

    def total(self, state: TrainerState) -> int:
        """Return how long the run is, in units: by default optimiser steps."""
        return state.max_steps

    def position(self, state: TrainerState) -> int:
        """Return how much of that is done."""
        return state.global_step

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if self._bar is not None:
            self._bar.update(self.position(state) - self._bar.n)

    def on_prediction_step(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        eval_dataloader: Any = None,
        **kwargs: Any,
    ) -> None:
        if not state.is_world_process_zero or not shows_bars(args):
            return
        if self._batches is None:
            self._batches = tqdm(
                total=len(eval_dataloader) if has_length(eval_dataloader) else None,
                desc="evaluation",
                leave=False,
                dynamic_ncols=True,
            )
        self._batches.update()

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if self._batches is not None:
            self._batches.close()
            self._batches = None

    on_predict = on_evaluate

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not state.is_world_process_zero or logs is None:
            return
        numbers = shown(logs)
        if "train_loss" in logs:  # the last one, about the run as a whole
            self._write([self._summary(state)])
        elif self._bar is None:
            speed = self._speed(state) if "loss" in logs else []
            self._write([*self._place(state), *_words(numbers), *speed])
        else:
            self._numbers |= numbers
            self._bar.set_postfix(self._numbers)
            if "loss" not in logs:
                self._write([*self._place(state), *_words(numbers)])

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _write(self, words: list[str]) -> None:
        tqdm.write("  ".join(words))  # above the bar, if there is one
        sys.stdout.flush()  # a log file is read while it grows

    def _place(self, state: TrainerState) -> list[str]:
        label = [self._label] if self._label else []
        place = f"{self.unit} {self.position(state)}/{self.total(state)}"
        return [*label, *([place] if state.max_steps else [])]

    def _done(self, state: TrainerState) -> tuple[float, int]:
        """Return seconds, with those of evaluations and checkpoints, and this process's steps."""
        return time.monotonic() - self._start, state.global_step - self._first_step

    def _speed(self, state: TrainerState) -> list[str]:
        seconds, steps = self._done(state)
        if not steps or not seconds:
            return []
        done = self.position(state) - self._first
        remaining = (self.total(state) - self.position(state)) * seconds / max(done, 1)
        return [
            f"{_digits(steps / seconds, 3)} steps/s",
            f"eta {tqdm.format_interval(remaining)}",
        ]

    def _summary(self, state: TrainerState) -> str:
        seconds, steps = self._done(state)
        label = f"{self._label}: " if self._label else ""
        return f"{label}trained {steps} steps in {tqdm.format_interval(seconds)}"


def shows_bars(args: TrainingArguments) -> bool:
    """Return whether there is a terminal for a bar, and nobody who does not want one."""
    return not args.disable_tqdm and sys.stdout.isatty() and sys.stderr.isatty()


def shown(logs: Mapping[str, Any]) -> dict[str, str]:
    """Return what is shown of a log: short name -> number in four digits."""
    return {
        SHORT.get(name, name): _text(name, value)
        for name, value in logs.items()
        if not name.endswith(SILENT)
    }


def _text(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if name == "learning_rate" else _digits(value, 4)


def _digits(value: float, digits: int) -> str:
    """Return a number with so many digits, zeros at its end included."""
    return f"{value:#.{digits}g}".rstrip(".")


def _words(numbers: Mapping[str, str]) -> list[str]:
    return [f"{name} {number}" for name, number in numbers.items()]


__all__ = ["TrainingProgress", "without_bars"]
