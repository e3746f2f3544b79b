"""Optimisers by name, beside those that Transformers knows (`training.optim`)."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from hf_alpha.environment import install_command

from .lamb import FusedAdam, FusedLamb

PACKAGE = "pytorch_optimizer"
OWN: dict[str, type] = {"fused_adam": FusedAdam, "fused_lamb": FusedLamb}
"""Optimisers of this package; all others are those of `PACKAGE`."""


def optimizer_of(choice: str | Mapping[str, Any], training: Any) -> tuple[type, dict[str, Any]]:
    """Return an optimiser's class and arguments, as a Trainer takes them.

    Learning rate, betas and epsilon are those of `training`; which weights decay is up to the
    Trainer.

    Args:
        choice: a name of `OWN`, or one that the package pytorch_optimizer knows, such as lamb; or
            a mapping with `name` and more arguments of that optimiser.
        training: the `TrainingArguments`.

    Raises:
        ValueError: there is no such optimiser, or it does not take an argument.
        ImportError: the package is not installed.
    """
    extra_arguments = {"name": choice} if isinstance(choice, str) else dict(choice)
    name: Any = extra_arguments.pop("name", None)
    optimizer_class: Any = OWN.get(name) or _of_package(name)
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
    try:
        from pytorch_optimizer import load_optimizer
    except ImportError:
        raise ImportError(
            f"{PACKAGE}, which has the optimiser {name!r}, is not installed: "
            f"{install_command(PACKAGE)}"
        ) from None
    try:
        return load_optimizer(name)
    except (AttributeError, NotImplementedError) as error:
        raise ValueError(
            f"no optimiser {name!r} in {PACKAGE}, nor among {', '.join(OWN)}"
        ) from error


__all__ = ["optimizer_of"]
