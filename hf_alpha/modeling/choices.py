"""Checks of values that users give; importing them is cheap."""

import math
from collections.abc import Collection, Iterable, Mapping


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; not {value!r}")


def check_known(kind: str, value: str | None, choices: Collection[str]) -> None:
    """Raise a ValueError for a value that is none of the choices; None stands for a default."""
    if value is not None and value not in choices:
        raise ValueError(f"unknown {kind} {value!r}: choose one of {', '.join(choices)}")


def check_unique(name: str, values: list[str]) -> None:
    """Raise a ValueError if two values are the same."""
    if len(set(values)) < len(values):
        raise ValueError(f"{name}: one is given twice: {values}")


def check_activation(name: str, activation: str) -> None:
    """Raise a ValueError for an activation that Transformers does not know."""
    from transformers.activations import ACT2FN

    if activation not in ACT2FN:
        raise ValueError(f"{name} {activation!r} is unknown")


def check_numbers(
    config: object,
    smallest: Mapping[str, int],
    shares: Iterable[str],
    positive: Iterable[str],
) -> None:
    """Raise a ValueError for a setting outside its range; None stands for a default elsewhere.

    Args:
        smallest: name -> smallest value.
        shares: names of those in [0, 1).
        positive: names of those that are finite and above 0.
    """
    for name, least in smallest.items():
        if (value := getattr(config, name)) is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    for name in shares:
        if (value := getattr(config, name)) is not None and not 0.0 <= value < 1.0:
            raise ValueError(f"{name} must lie in [0, 1), not {value}")
    for name in positive:
        if (value := getattr(config, name)) is not None and not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be finite and above 0, not {value}")


def refuse(fault: object, message: str) -> None:
    """Raise a ValueError with this message if there is a fault: a condition that holds."""
    if fault:
        raise ValueError(message)
