"""Units of a text: words, or characters."""

import re
import unicodedata
from collections.abc import Callable, Sequence

import regex  # type: ignore[import-untyped]

UNITS = ("words", "characters")
ASCII_WORD = re.compile(r"\w+|[^\w\s]", re.ASCII)
# `regex` takes marks (accents, vowel signs) for word characters, as `re` does not.
ANY_WORD = regex.compile(r"\w+|\S\p{M}*")
CHARACTER = regex.compile(r"\S\p{M}*")


def unit_finder(unit: str) -> Callable[[str], "re.Pattern[str] | regex.Pattern[str]"]:
    """Return a function from a text to the regular expression that finds the units in it.

    Args:
        unit: `words`: runs of letters, digits, accents and underscores are words, and every other
            character that is no white space is one, much as BERT's tokenizers split texts: `don't`
            is three words, `E.U.` four. `characters`: each character that is no white space. Marks
            that follow a character, such as accents, belong to it.

    Raises:
        ValueError: the unit is neither.
    """
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r}: choose words or characters")
    if unit == "characters":
        return lambda text: CHARACTER
    return lambda text: ASCII_WORD if text.isascii() else ANY_WORD  # the former is twice as fast


def composed(units: Sequence[str], text: str) -> Sequence[str]:
    """Return the units of a text in Unicode's normal form C, in which units are compared."""
    return units if text.isascii() else [unicodedata.normalize("NFC", unit) for unit in units]


__all__ = ["composed", "unit_finder"]
