"""Compiled rules, and how they run over the words and segments of a text."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import NamedTuple

import regex  # type: ignore[import-untyped]

from hf_alpha.modeling.names_in_text import TIME_LIMIT, too_slow


class Conditions:
    """The conditions that rules set on a word or a segment. Each is a number, from 1 on.

    A word, or a segment, has a mask: the bits `1 << number` of the conditions that it meets.

    Args:
        lowercase: words in rules are found in upper and lower case.
    """

    ANY = 1

    def __init__(self, lowercase: bool) -> None:
        self._lowercase = lowercase
        self._words: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._regexes: dict[str, tuple[int, regex.Pattern[str]]] = {}
        self._masks: dict[str, int] = {}

    def _next(self) -> int:
        return 2 + len(self._words) + len(self._labels) + len(self._regexes)

    def word(self, text: str) -> int:
        text = unicodedata.normalize("NFC", text)  # as the words of texts are
        return self._words.setdefault(text.lower() if self._lowercase else text, self._next())

    def label(self, label: str) -> int:
        return self._labels.setdefault(label, self._next())

    def regex(self, source: str) -> int:
        if source not in self._regexes:
            source_nfc = unicodedata.normalize("NFC", source)
            re.compile(source_nfc)  # it says where an error is
            self._regexes[source] = self._next(), regex.compile(source_nfc)
        return self._regexes[source][0]

    def mask_of_word(self, word: str) -> int:
        """Return the mask of a word in normal form C; the last 100,000 are remembered.

        Raises:
            ValueError: an expression takes longer for it than `TIME_LIMIT`.
        """
        if (mask := self._masks.get(word)) is None:
            if len(self._masks) >= 100_000:
                self._masks.clear()
            atom = self._words.get(word.lower() if self._lowercase else word, self.ANY)
            mask = 1 << self.ANY | 1 << atom
            for source, (number, pattern) in self._regexes.items():
                try:
                    mask |= bool(pattern.fullmatch(word, timeout=TIME_LIMIT)) << number
                except TimeoutError:
                    raise too_slow("a rule for segments", source, word) from None
            self._masks[word] = mask
        return mask

    def mask_of_label(self, label: str) -> int:
        """Return the mask of a segment; 0 if no rule asks for its label."""
        return 1 << self._labels[label] if label in self._labels else 0


class RuleAutomaton(NamedTuple):
    """A compiled rule.

    Attributes:
        arcs: of each state the masks that lead on and the states they lead to.
        final: of each state whether the rule has matched.
        start: the first state.
        first: the mask of all that a match can begin with.
    """

    arcs: list[list[tuple[int, int]]]
    final: list[bool]
    start: int
    first: int

    def ends(self, edges: Sequence[Sequence[tuple[int, int]]], start: int, most: int) -> list[int]:
        """Return the last units of all matches that begin at a unit.

        Args:
            edges: of each unit the words and segments that begin there: mask, and the unit after.
            start: the unit.
            most: units in the longest match.
        """
        reached: dict[int, set[int]] = {start: {self.start}}
        ends: list[int] = []
        limit = min(start + most, len(edges))
        for at in range(start, limit + 1):
            if (states := reached.pop(at, None)) is not None:
                if at > start and any(self.final[state] for state in states):
                    ends.append(at - 1)
                if at < limit:
                    self._advance(edges[at], states, reached)
            if not reached:
                break
        return ends

    def _advance(
        self,
        edges: Sequence[tuple[int, int]],
        states: Collection[int],
        reached: dict[int, set[int]],
    ) -> None:
        arcs = [arc for state in states for arc in self.arcs[state]]
        for mask, after in edges:
            if to := {state for condition, state in arcs if condition & mask}:
                reached.setdefault(after, set()).update(to)


__all__ = ["Conditions", "RuleAutomaton"]
