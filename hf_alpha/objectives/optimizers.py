"""Optimisers by name, beside those that Transformers knows (`training.optim`).

Adam and LAMB are as Apex's FusedAdam and FusedLAMB take their steps, which BERT's recipes name.
Other packages differ in what matters at the first steps and for small weights: whether moments are
corrected for their start at zero, the norm of the gradient, a limit to the norm of a weight, and
which weights have a rate of their own.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

import torch
from torch.optim import Optimizer

from hf_alpha.wings import optional


class FusedAdam(Optimizer):
    """Adam with decoupled weight decay, with or without bias correction.

    Args:
        betas: of the means of the gradient and of its square.
        eps: added to the square root of the latter.
        weight_decay: times a weight, it is a part of the update.
        bias_correction: divide both means by 1 - beta ** step. Without, as BERT was fine-tuned, the
            first steps are longer: 3.2 times at the usual betas.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        bias_correction: bool = True,
    ):
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**settings, "bias_correction": bias_correction})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes a step; returns the loss, if there is a closure that computes it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        divisor = self._gradient_divisor()
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for weight in group["params"]:
                if weight.grad is not None:
                    update = self._update(weight, weight.grad / divisor, group)
                    weight.sub_(update * (group["lr"] * self._ratio(weight, update, group)))
        return loss

    def _gradient_divisor(self) -> torch.Tensor | float:
        """Returns what all gradients are divided by."""
        return 1.0

    def _ratio(
        self, weight: torch.Tensor, update: torch.Tensor, group: dict[str, Any]
    ) -> torch.Tensor | float:
        """Returns what the learning rate of a weight is multiplied by."""
        return 1.0

    def _update(
        self, weight: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> torch.Tensor:
        """Takes a gradient into the means; returns what is subtracted, for a rate of 1."""
        state = self.state[weight]
        if not state:
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        corrections = (1.0, 1.0)
        if group["bias_correction"]:
            corrections = (1 - beta1 ** group["step"], 1 - beta2 ** group["step"])
        denominator = (square.sqrt() / math.sqrt(corrections[1])).add_(group["eps"])
        return (mean / corrections[0] / denominator).add_(weight, alpha=group["weight_decay"])


class FusedLamb(FusedAdam):
    """LAMB (You et al. 2020) as FusedLAMB has it: the optimiser of NVIDIA's BERT.

    The update is that of Adam, its length that of the weight: the rate of each weight is multiplied
    by |weight| / |update|, where neither is 0. Weights that do not decay (biases, norms) keep the
    plain rate. Norms are those of whole tensors: a weight that lies in pieces on several devices
    would have another ratio.

    Args:
        params, lr, betas, eps, weight_decay, bias_correction: see [`FusedAdam`].
        max_grad_norm: the gradient of all weights together is cut to this norm; 0 leaves it. The
            Trainer's own clipping, `training.max_grad_norm`, comes before.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        bias_correction: bool = True,
        max_grad_norm: float = 1.0,
    ):
        self.max_grad_norm = max_grad_norm
        super().__init__(params, lr, betas, eps, weight_decay, bias_correction)

    def _gradient_divisor(self) -> torch.Tensor | float:
        weights = [weight for group in self.param_groups for weight in group["params"]]
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        if not (self.max_grad_norm and gradients):
            return 1.0
        return (torch.nn.utils.get_total_norm(gradients) / self.max_grad_norm).clamp(min=1.0)

    def _ratio(
        self, weight: torch.Tensor, update: torch.Tensor, group: dict[str, Any]
    ) -> torch.Tensor | float:
        if not group["weight_decay"]:
            return 1.0
        ratio = weight.norm() / update.norm()
        return torch.where(ratio.isfinite() & (ratio > 0), ratio, 1.0)


PACKAGE = "pytorch_optimizer"
FUSED: dict[str, type] = {"fused_adam": FusedAdam, "fused_lamb": FusedLamb}
"""Optimisers of this package; all others are those of `PACKAGE`."""


def optimizer_of(choice: str | Mapping[str, Any], training: Any) -> tuple[type, dict[str, Any]]:
    """Return an optimiser's class and arguments, as a Trainer takes them.

    Learning rate, betas and epsilon are those of `training`; which weights decay is up to the
    Trainer.

    Args:
        choice: a name of `FUSED`, or one that the package pytorch_optimizer knows, such as lamb; or
            a mapping with `name` and more arguments of that optimiser.

    Raises:
        ValueError: there is no such optimiser, or it does not take an argument.
        ImportError: the package is not installed.
    """
    extra_arguments = {"name": choice} if isinstance(choice, str) else dict(choice)
    name: Any = extra_arguments.pop("name", None)
    optimizer_class: Any = FUSED.get(name) or _of_package(name)
    arguments = {
        "lr": training.learning_rate,
        "betas": (training.adam_beta1, training.adam_beta2),
        "eps": training.adam_epsilon,
        **extra_arguments,
    }
    parameters = signature(optimizer_class).parameters
    if unknown := [key for key in extra_arguments if key not in parameters]:
        raise ValueError(f"the optimiser {name!r} takes no {unknown[0]!r}: {', '.join(parameters)}")
    return optimizer_class, {key: value for key, value in arguments.items() if key in parameters}


def _of_package(name: Any) -> Any:
    with optional():
        from pytorch_optimizer import load_optimizer
    try:
        return load_optimizer(name)
    except (AttributeError, NotImplementedError) as error:
        raise ValueError(
            f"no optimiser {name!r} in {PACKAGE}, nor among {', '.join(FUSED)}"
        ) from error
