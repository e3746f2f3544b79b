"""Checks of values that users give; importing them is cheap."""

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

TIME_LIMIT = 2.0
"""Seconds for a class's pattern and a text; a page takes a thousandth of one. Some patterns, such
as `(a|aa)+c`, would take years."""


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise a ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; not {value!r}")


def check_list(name: str, value: Any, items: str = "strings") -> None:
    """Refuse a string where a list is asked for: it would be read letter by letter."""
    if isinstance(value, str):
        raise ValueError(f"`{name}` is the string {_begin(value)!r}: give a list of {items}")


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


def too_slow(place: str, pattern: str | None, text: str) -> ValueError:
    """Say that a pattern takes too long for a text."""
    return ValueError(
        f"{place}: the pattern {pattern!r} takes more than {TIME_LIMIT:g} seconds for the text "
        f"{_begin(text)!r}: leave one way to match a word; (a|aa)+ has many, and tries them all"
    )


def _begin(text: str) -> str:
    return str(text) if len(text) <= 60 else f"{text[:60]}..."


def token_digest(tokenizer: Any, size: int | None = None) -> str:
    """What tells the vocabulary of a tokenizer from others: its size, and a digest of its tokens.

    Symbols do not count, nor does what is added later: ids from `size` on.

    Args:
        tokenizer: any of Transformers.
        size: of the vocabulary, by default as it is.
    """
    size = len(tokenizer) if size is None else size
    symbols = set(getattr(tokenizer, "symbol_ids", ()))
    ids = ((i, token) for token, i in tokenizer.get_vocab().items() if i not in symbols)
    tokens = json.dumps(sorted(pair for pair in ids if pair[0] < size))
    return f"{size}:{hashlib.sha256(tokens.encode()).hexdigest()[:16]}"


def has_tokens(tokenizer: Any, digest: str) -> bool:
    """Whether a tokenizer has the tokens that `token_digest` gave a digest of."""
    size = digest.partition(":")[0]
    return size.isdecimal() and token_digest(tokenizer, int(size)) == digest
