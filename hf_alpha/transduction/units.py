"""The settings of a transducer, and the units of a text: words, or characters."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import regex  # type: ignore[import-untyped]

from hf_alpha.io.settings import model_of
from hf_alpha.modeling.choices import check_choice, check_numbers

UNITS = ("words", "characters")
ASCII_WORD = re.compile(r"\w+|[^\w\s]", re.ASCII)
# `regex` takes marks (accents, vowel signs) for word characters, as `re` does not.
ANY_WORD = regex.compile(r"\w+|\S\p{M}*")
CHARACTER = regex.compile(r"\S\p{M}*")
MATCHES = ("all", "longest")


@dataclass(frozen=True)
class Options:
    """The settings of a transducer; `Transducer.compile` describes them.

    Raises:
        ValueError: a value is not possible.
    """

    unit: str = "words"
    match: str = "all"
    lowercase: bool = True
    max_per_position: int = 4
    max_units: int = 16

    def __post_init__(self) -> None:
        model_of(Options).read(asdict(self), "transducer")
        check_choice("unit", self.unit, UNITS)
        check_choice("match", self.match, MATCHES)
        # The unit itself is one of those at a position.
        check_numbers(self, {"max_per_position": 2, "max_units": 1}, (), ())


def unit_finder(unit: str) -> Callable[[str], "re.Pattern[str] | regex.Pattern[str]"]:
    """Return a function from a text to the regular expression that finds the units in it.

    Args:
        unit: `words`: runs of letters, digits, accents and underscores are words, and every other
            character that is no white space is one, much as BERT's tokenizers split texts: `don't`
            is three words, `E.U.` four. `characters`: each character that is no white space. Marks
            that follow a character, such as accents, belong to it.
    """
    if unit == "characters":
        return lambda text: CHARACTER
    return lambda text: ASCII_WORD if text.isascii() else ANY_WORD  # the former is twice as fast


def composed(units: Sequence[str], text: str) -> Sequence[str]:
    """Return the units of a text in Unicode's normal form C, in which units are compared."""
    return units if text.isascii() else [unicodedata.normalize("NFC", unit) for unit in units]
