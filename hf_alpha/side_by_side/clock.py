"""Training that is timed by the processor: what steps cost, and runs that end after so long."""

import math
import sys
import time
from typing import Any

from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from hf_alpha.progress import TrainingProgress
from hf_alpha.train import AlphaTrainer

WARM_UP = 0.05
"""Share of the time in which the learning rate grows, where training is limited by time."""
CLOCK = "clock"
"""Where `trainer_state.json` has the seconds of training."""


class ProcessorClock(TrainerCallback):
    """Counts the processor time of optimiser steps: forward, backward, and the step itself.

    Data, evaluations and checkpoints do not count, nor does what else the machine does. With an
    accelerator it is the time of the process that drives it.

    Args:
        limit: seconds after which training stops; None for no limit.
    """

    def __init__(self, limit: float | None = None):
        self.limit = limit
        self.seconds = self._start = 0.0

    @property
    def share(self) -> float:
        """How much of the time is over, from 0 on."""
        return self.seconds / self.limit if self.limit else 0.0

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self.seconds = state.stateful_callbacks.get(CLOCK, {}).get("seconds", 0.0)

    def on_step_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self._start = time.process_time()

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        self.seconds += time.process_time() - self._start
        state.stateful_callbacks[CLOCK] = {"seconds": self.seconds}
        control.should_training_stop |= self.share >= 1


class TimedProgress(TrainingProgress):
    """Shows how much of the time is over, in place of steps."""

    unit = "s"

    def __init__(self, label: str, clock: ProcessorClock):
        super().__init__(label)
        self._clock = clock

    def total(self, state: TrainerState) -> int:
        return round(self._clock.limit or 0)

    def position(self, state: TrainerState) -> int:
        return min(int(self._clock.seconds), self.total(state))


class ClockedTrainer(AlphaTrainer):
    """A trainer that counts processor time, which may limit a run.

    The learning rate then falls to zero until the time is up.

    Args:
        clock: counts, and has the limit; without one the recipe's steps and schedule hold.
        label: what the run is called where progress is shown.
        progress: show it.
    """

    def __init__(
        self, *args: Any, clock: ProcessorClock, label: str, progress: bool, **kwargs: Any
    ):
        super().__init__(*args, **kwargs)
        self.clock = clock
        self.add_callback(clock)
        if clock.limit:
            self.args.max_steps = sys.maxsize  # time ends the training, not the recipe's steps
        if self.pop_callback(TrainingProgress) is not None and progress:
            kind = TimedProgress(label, clock) if clock.limit else TrainingProgress(label)
            self.add_callback(kind)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Return the recipe's scheduler, or one of the time."""
        if not self.clock.limit:
            return super().create_scheduler(num_training_steps, optimizer)
        optimizer = self.optimizer if optimizer is None else optimizer
        self.lr_scheduler = LambdaLR(optimizer, lambda _: _schedule(self.clock.share))
        return self.lr_scheduler


def _schedule(share: float) -> float:
    """Return the factor of the learning rate: up, then down along a cosine."""
    if share < WARM_UP:
        return (share + 0.1 * WARM_UP) / (1.1 * WARM_UP)
    return 0.5 * (1 + math.cos(math.pi * min((share - WARM_UP) / (1 - WARM_UP), 1.0)))


__all__ = ["CLOCK", "ClockedTrainer", "ProcessorClock"]
