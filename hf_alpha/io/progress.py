"""What is seen of training: a bar in a terminal, a line for each log elsewhere."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm
from transformers import ProgressCallback, TrainingArguments
from transformers.utils import logging

from .plain_text import counted

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


class TrainingProgress(ProgressCallback):
    """Shows loss, learning rate, results of evaluations, speed and the time that is left.

    In a terminal that is a bar, with a line above it for each evaluation. Elsewhere, and with
    `disable_tqdm`, it is a line for each log on standard output. Only the first process shows it.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.training_bar = tqdm(
            total=state.max_steps, initial=state.global_step, unit="step", dynamic_ncols=True,
            disable=not (state.is_world_process_zero and shows_bars(args)),
        )  # fmt: skip
        self.current_step = state.global_step
        # A resumed run is timed from where it goes on.
        self._start, self._first_step = time.monotonic(), state.global_step
        self._numbers: dict[str, str] = {}

    def on_prediction_step(self, args: Any, *others: Any, **kwargs: Any) -> None:
        if shows_bars(args):
            super().on_prediction_step(args, *others, **kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero or logs is None:
            return
        # With evaluations and checkpoints, of this process's steps.
        seconds, steps = time.monotonic() - self._start, state.global_step - self._first_step
        if "train_loss" in logs:  # the last one, about the run as a whole
            _write(f"trained {counted(steps, 'step')} in {tqdm.format_interval(seconds)}")
            return
        numbers, has_bar = shown(logs), not getattr(self.training_bar, "disable", True)
        if has_bar:
            self._numbers |= numbers
            self.training_bar.set_postfix(self._numbers)
        if not has_bar or "loss" not in logs:
            words = [f"step {state.global_step}/{state.max_steps}"] * (state.max_steps > 0)
            words += map(" ".join, numbers.items())
            if "loss" in logs and steps and seconds:
                remaining = (state.max_steps - state.global_step) * seconds / steps
                eta = tqdm.format_interval(remaining)
                words += [f"{_digits(steps / seconds, 3)} steps/s", f"eta {eta}"]
            _write(*words)


def _write(*words: str) -> None:
    tqdm.write("  ".join(words))  # above the bar, if there is one
    sys.stdout.flush()  # a log file is read while it grows


def shows_bars(args: TrainingArguments) -> bool:
    """Return whether there is a terminal for a bar, and nobody who does not want one."""
    return not args.disable_tqdm and sys.stdout.isatty() and sys.stderr.isatty()


def shown(logs: Mapping[str, Any]) -> dict[str, str]:
    """Return what is shown of a log: short name -> number in four digits."""
    numbers = {
        name.replace("learning_rate", "lr"): _digits(value, 4)
        if isinstance(value, float)
        else value
        for name, value in logs.items()
        if not name.endswith(SILENT)
    }
    if "learning_rate" in logs:
        numbers["lr"] = f"{logs['learning_rate']:.1e}"
    return {name: str(number) for name, number in numbers.items()}


def _digits(value: float, digits: int) -> str:
    """Return a number with so many digits, zeros at its end included."""
    return f"{value:#.{digits}g}".rstrip(".")
