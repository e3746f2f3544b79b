"""Optimiser steps, told from the weights: what changes once per step, and not per micro-batch."""

from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_STEPS = "_alpha_optimizer_steps"  # attribute of the weights that are watched


def _count_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if hasattr(weight, _STEPS):
                setattr(weight, _STEPS, getattr(weight, _STEPS) + 1)


# Fused optimisers, the Trainer's default, move the weights without counting up their version.
register_optimizer_step_post_hook(_count_step)


def weight_version(model: torch.nn.Module) -> int:
    """A number that is larger after each optimiser step on the model's trainable parameters.

    Other changes of them in place count too. All of them are looked at, because adapters leave most
    parameters as they are.
    """
    return sum(_version(weight) for weight in model.parameters() if weight.requires_grad)


def _version(weight: torch.Tensor) -> int:
    if weight.is_inference():
        return 0  # it cannot be trained
    if not hasattr(weight, _STEPS):
        setattr(weight, _STEPS, 0)
    return weight._version + getattr(weight, _STEPS)


class StepWatch:
    """Tells whether the weights have moved since they were last seen."""

    def __init__(self) -> None:
        self._seen: int | None = None

    def see(self, version: int) -> None:
        """Remember a `weight_version`; the micro-batches of one optimiser step see the same."""
        self._seen = version

    def has_passed(self, version: int) -> bool:
        """Whether a step lies between the version last seen, if there is one, and this one."""
        return self._seen is not None and self._seen != version


__all__ = ["StepWatch", "weight_version"]
