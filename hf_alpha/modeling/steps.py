"""Optimiser steps, counted: for what changes once per step, and not once per micro-batch."""

from typing import Any
from weakref import WeakSet

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class StepCounter:
    """Counts the optimiser steps on a model.

    The caller reports each step right after it: [`AlphaTrainer`]'s callback, or a training loop, by
    `model.advance_step()`. A plain PyTorch loop need not: a hook sees its optimisers, if they hold
    parameters of the model; what the hook has seen of a step that is reported does not count again.
    Where an optimiser holds other tensors (DeepSpeed, the first FSDP), only the report can tell.

    Args:
        model: whose parameters tell which optimisers concern it.
    """

    def __init__(self, model: torch.nn.Module):
        self.model = model
        self.count = 0
        self._seen_by_hook = False

    def advance(self) -> None:
        """Count a step that is done."""
        self.count += 1
        self._seen_by_hook = False

    def watch(self) -> None:
        """Let the hook see steps from now on; for training forwards of models that need them."""
        _watched.add(self)
        if not _hooks:
            _hooks.append(register_optimizer_step_post_hook(_after_step))

    @torch.compiler.disable
    def settle(self) -> int:
        """Count the step that the hook has seen since the last call, if any; returns the count."""
        if self._seen_by_hook:
            self.count += 1
            self._seen_by_hook = False
        return self.count

    def note(self, weight_ids: set[int]) -> None:
        """Record that an optimiser with these parameters, given by `id`, has done a step."""
        self._seen_by_hook |= any(
            id(weight) in weight_ids for weight in self.model.parameters() if weight.requires_grad
        )


_watched: WeakSet[StepCounter] = WeakSet()
_hooks: list[Any] = []  # one at most: this is for all models of the process


def _after_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    # Fused optimisers leave a step out by themselves where a gradient scaler found an overflow.
    overflow = getattr(optimizer, "found_inf", None)
    if overflow is not None and overflow.item():
        return
    weight_ids = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
    for counter in list(_watched):
        counter.note(weight_ids)
