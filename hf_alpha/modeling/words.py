"""Words of texts, of all scripts, and names that are such."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]

UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\u3006\u3031-\u3035\u3099\u309a\u30fc\uff70\uff9e\uff9f"
)
"""Letters and marks of scripts that put no space between words."""
_RUN_ON = rf"[{UNSPACED}\p{{Hangul}}]"  # nor beside a word of another script: `用get_x查`
A_WORD = rf"[A-Za-z0-9_]++(?!\w)|(?=\w)(?:(?:(?!{_RUN_ON})\w)++|(?:(?={_RUN_ON})\w)++)"
"""A word: letters, digits, marks and the underscore, of scripts that run on, or of others."""
WORDS, PLAIN_WORDS = regex.compile(rf"({A_WORD})"), regex.compile(r"(\w+)")
"""Words of any text, and those of one without scripts that run on, in half of the time."""
RUNS_ON, ESCAPES = regex.compile(_RUN_ON), regex.compile(r"\\\w+")
_MOST_WORDS = 65_536


def whole_words(pattern: str) -> Any:
    r"""Compile a pattern whose matches neither begin nor end inside a word.

    Words are those of `A_WORD`. (Not `re`: its \w leaves out combining marks, and with them half of
    the world's words.)
    """
    # A look whether a sign is ASCII comes first: it takes less time than one at its script.
    behind, ahead = rf"(?<![\x00-\x7f])(?<={_RUN_ON})", rf"(?![\x00-\x7f])(?={_RUN_ON})"
    edge = rf"(?:(?<!\w)|(?!\w)|{behind}(?!{_RUN_ON})|{ahead}(?<!{_RUN_ON}))"
    return regex.compile(rf"{edge}(?:{pattern}){edge}")


def name_pattern(names: tuple[str, ...], words: bool = True) -> Any:
    """Compile a pattern of names, as whole words or anywhere, the longest first."""
    ordered = sorted(names, key=len, reverse=True)
    pattern = "|".join(regex.escape(name, special_only=True) for name in ordered)
    return whole_words(pattern) if words else regex.compile(pattern)


@lru_cache(maxsize=_MOST_WORDS)
def is_one_word(name: str) -> bool:
    """Whether a name is nothing but a word."""
    return WORDS.fullmatch(name) is not None


def inside_word(text: str, place: int) -> bool:
    """Whether the characters before and behind a place belong to the same word."""
    return 0 < place < len(text) and is_one_word(text[place - 1 : place + 1])


def like_a_word(name: str) -> bool:
    """Whether a name may be a word of a language, as `city` and `ID` may, not `get_city`."""
    return name.isalpha() and name in (name.lower(), name.upper(), name.capitalize())


class NamesByWord:
    """Names of which a text is looked through for few: those that have one of its words.

    Args:
        inside: classes whose names may stand inside words, where a text has to be looked through
            for each.
    """

    def __init__(self, inside: Collection[str] = ()):
        self._inside = inside
        self._kinds: dict[str, Any] = {}
        self._by_word: dict[str, list[str]] = {}

    def add(self, name: str, kind: str | None) -> None:
        """Add a name of a class; one that there is keeps its class."""
        if name not in self._kinds:
            self._kinds[name] = kind
            words = () if kind in self._inside else WORDS.findall(name)
            self._by_word.setdefault(max(words, key=len, default=""), []).append(name)

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def within(self, text: str) -> dict[str, Any]:
        """Return name -> class, of all names that a text has, and perhaps of more."""
        words = dict.fromkeys(["", *WORDS.findall(text)])
        return {name: self._kinds[name] for word in words for name in self._by_word.get(word, ())}
