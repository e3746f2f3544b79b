"""Units of a text: words, or characters."""

import re
from collections.abc import Callable

import regex  # type: ignore[import-untyped]

UNITS = ("words", "characters")
WORDS = r"\w+|[^\w\s]"
ASCII_WORD = re.compile(WORDS, re.ASCII)
ANY_WORD = regex.compile(WORDS)  # unlike `re`, it takes accents and vowel signs for word characters
CHARACTER = regex.compile(r"\S")


def unit_finder(unit: str) -> Callable[[str], "re.Pattern[str] | regex.Pattern[str]"]:
    """Return a function from a text to the regular expression that finds the units in it.

    Args:
        unit: `words`: runs of letters, digits, accents and underscores are words, and every other
            character that is no white space is one, much as BERT's tokenizers split texts: `don't`
            is three words, `E.U.` four. `characters`: each character that is no white space.

    Raises:
        ValueError: the unit is neither.
    """
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r}: choose words or characters")
    if unit == "characters":
        return lambda text: CHARACTER
    return lambda text: ASCII_WORD if text.isascii() else ANY_WORD  # the former is twice as fast


__all__ = ["unit_finder"]
