"""Cascades: rules in order, each applied to the words and to all segments found before it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from hf_alpha.transduction.automaton import Conditions, RuleAutomaton
from hf_alpha.transduction.gamma import Found, leftmost_longest
from hf_alpha.transduction.options import Options
from hf_alpha.transduction.parser import RuleParser
from hf_alpha.transduction.rules import Rule
from hf_alpha.transduction.units import unit_finder


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

    def add(self, segments: Iterable[Found], mask_of_label: Mapping[int, int]) -> None:
        """Add segments that a rule can ask for."""
        for start, end, label in segments:
            if mask := mask_of_label[label]:
                self.edges[start].append((mask, end + 1))
                self.masks[start] |= mask
                self.begins |= mask


class Cascade:
    """Rules compiled for one transducer.

    Args:
        rules: in the order in which they are applied.
        label_ids: label -> its number, of the lexicon's labels and the rules'.
        lexicon_labels: the labels of the lexicon.
        options: the transducer's.

    Raises:
        ValueError: a rule cannot be compiled; the message says which, and where.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        label_ids: Mapping[str, int],
        lexicon_labels: Sequence[str],
        options: Options,
    ) -> None:
        pattern = unit_finder(options.unit)
        atoms = Conditions(options.lowercase)
        labels = list(lexicon_labels)
        self._rules: list[tuple[RuleAutomaton, int]] = []
        for number, rule in enumerate(rules, start=1):
            parser = RuleParser(
                rule,
                number,
                atoms,
                lambda text: pattern(text).findall(text),
                labels,
                options.max_units,
            )
            self._rules.append((parser.compile(), label_ids[rule.label]))
            labels.append(rule.label)
        self._mask_of_word = atoms.mask_of_word
        self._mask_of_label = {n: atoms.mask_of_label(label) for label, n in label_ids.items()}
        self._longest = options.match == "longest"
        self._max_units = options.max_units

    def find(self, words: Sequence[str], segments: list[Found]) -> list[Found]:
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
        for rule, label in self._rules:
            if rule.first & lattice.begins:  # false for most rules in most sentences
                matches = self._matches(rule, label, lattice)
                lattice.add(
                    [match for match in matches if match not in all_segments], self._mask_of_label
                )
                all_segments.update(matches)
        return sorted(all_segments)

    def _matches(self, rule: RuleAutomaton, label: int, lattice: Lattice) -> list[Found]:
        matches = [
            (start, end, label)
            for start, mask in enumerate(lattice.masks)
            if mask & rule.first
            for end in rule.ends(lattice.edges, start, self._max_units)
        ]
        return leftmost_longest(matches) if self._longest else matches


__all__ = ["Cascade"]
