"""Compiled rules, and how they run in order over the words and segments of a text."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import regex  # type: ignore[import-untyped]

from hf_alpha.modeling.choices import TIME_LIMIT, too_slow
from hf_alpha.transduction.gamma import Match, leftmost_longest
from hf_alpha.transduction.units import Options

REMEMBERED = 100_000
"""Words whose masks are remembered."""


class Conditions:
    """The conditions that rules set on a word or a segment. Each is a number, from 1 on.

    A word, or a segment, has a mask: the bits `1 << number` of the conditions that it meets.

    Args:
        lowercase: words in rules are found in upper and lower case.
    """

    ANY = 1

    def __init__(self, lowercase: bool) -> None:
        self._lowercase = lowercase
        self._numbers: dict[tuple[str, str], int] = {}  # of a kind and its word, label or source
        self._patterns: dict[str, regex.Pattern[str]] = {}
        self._masks: dict[str, int] = {}

    def _number(self, kind: str, text: str) -> int:
        return self._numbers.setdefault((kind, text), 2 + len(self._numbers))

    def _form(self, word: str) -> str:
        return word.lower() if self._lowercase else word

    def word(self, text: str) -> int:
        return self._number("word", self._form(unicodedata.normalize("NFC", text)))

    def label(self, label: str) -> int:
        return self._number("label", label)

    def regex(self, source: str) -> int:
        source_nfc = unicodedata.normalize("NFC", source)  # as the words of texts are
        re.compile(source_nfc)  # it says where an error is
        self._patterns.setdefault(source, regex.compile(source_nfc))
        return self._number("regex", source)

    def mask_of_word(self, word: str) -> int:
        """Return the mask of a word in normal form C.

        Raises:
            ValueError: an expression takes longer for it than `TIME_LIMIT`.
        """
        if (mask := self._masks.get(word)) is None:
            if len(self._masks) >= REMEMBERED:
                self._masks.clear()
            atom = self._numbers.get(("word", self._form(word)), self.ANY)
            mask = 1 << self.ANY | 1 << atom
            for source, pattern in self._patterns.items():
                try:
                    matches = bool(pattern.fullmatch(word, timeout=TIME_LIMIT))
                except TimeoutError:
                    raise too_slow("a rule for segments", source, word) from None
                mask |= matches << self._numbers["regex", source]
            self._masks[word] = mask
        return mask

    def mask_of_label(self, label: str) -> int:
        """Return the mask of a segment; 0 if no rule asks for its label."""
        number = self._numbers.get(("label", label))
        return 0 if number is None else 1 << number


class RuleAutomaton(NamedTuple):
    """A compiled rule.

    Attributes:
        arcs: of each state the masks that lead on and the states they lead to.
        final: of each state whether the rule has matched.
    """

    arcs: list[list[tuple[int, int]]]
    final: list[bool]
    start: int

    @property
    def first(self) -> int:
        """The mask of all that a match can begin with."""
        return reduce(or_, (mask for mask, _ in self.arcs[self.start]), 0)

    def ends(self, edges: Sequence[Sequence[tuple[int, int]]], start: int, most: int) -> list[int]:
        """Return the last units of all matches that begin at a unit.

        Args:
            edges: of each unit the words and segments that begin there: mask, and the unit after.
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


class Lattice:
    """The words and segments of a text, as edges between its units.

    Args:
        masks: of each word; see `Conditions`.

    Attributes:
        edges: of each unit what begins there: its mask, and the unit after it.
        masks: of each unit the bits of all that begins there.
        begins: the bits of all masks.
    """

    def __init__(self, masks: list[int]) -> None:
        self.edges = [[(mask, after)] for after, mask in enumerate(masks, start=1)]
        self.masks = masks
        self.begins = reduce(or_, masks, 0)

    def add(self, segments: Iterable[Match], mask_of_label: Mapping[int, int]) -> None:
        """Add segments that a rule can ask for."""
        for start, end, label in segments:
            if mask := mask_of_label[label]:
                self.edges[start].append((mask, end + 1))
                self.masks[start] |= mask
                self.begins |= mask


class Cascade:
    """Rules in order, each applied to the words and to all segments found before it.

    Args:
        rules: compiled, each with the number of its label.
        atoms: the conditions of all of them.
    """

    def __init__(
        self,
        rules: Iterable[tuple[RuleAutomaton, int]],
        atoms: Conditions,
        labels: Sequence[str],
        options: Options,
    ) -> None:
        self._rules = [(rule, rule.first, label) for rule, label in rules]
        self._mask_of_word = atoms.mask_of_word
        self._mask_of_label = {n: atoms.mask_of_label(label) for n, label in enumerate(labels)}
        self._longest = options.match == "longest"
        self._max_units = options.max_units

    def find(self, words: Sequence[str], segments: list[Match]) -> list[Match]:
        """Return the segments and those that the rules find, sorted, each once.

        Args:
            words: the units as the text writes them.
            segments: what the lexicon found, sorted.
        """
        if not self._rules:
            return segments
        lattice = Lattice([self._mask_of_word(word) for word in words])
        lattice.add(segments, self._mask_of_label)
        all_segments = set(segments)
        for rule, first, label in self._rules:
            if not first & lattice.begins:  # true for most rules in most sentences
                continue
            matches = [
                (start, end, label)
                for start, mask in enumerate(lattice.masks)
                if mask & first
                for end in rule.ends(lattice.edges, start, self._max_units)
            ]
            if self._longest:
                matches = leftmost_longest(matches)
            new = [match for match in matches if match not in all_segments]
            lattice.add(new, self._mask_of_label)
            all_segments.update(new)
        return sorted(all_segments)
