"""Cascades: rules in order, each applied to the words and to all segments found before it."""

from collections.abc import Mapping, Sequence

from hf_alpha.transduction.automaton import Atoms, RuleAutomaton
from hf_alpha.transduction.gamma import Found, leftmost_longest
from hf_alpha.transduction.options import Options
from hf_alpha.transduction.parser import RuleParser
from hf_alpha.transduction.rules import Rule
from hf_alpha.transduction.units import unit_finder


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
        atoms = Atoms(options.lowercase)
        known = list(lexicon_labels)
        self._rules: list[tuple[RuleAutomaton, int]] = []
        for number, rule in enumerate(rules, start=1):
            parser = RuleParser(
                rule, number, atoms, lambda text: pattern(text).findall(text), known
            )
            self._rules.append((parser.compile(), label_ids[rule.label]))
            known.append(rule.label)
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
        edges = [[(self._mask_of_word(word), at)] for at, word in enumerate(words, start=1)]
        masks = [edge[0][0] for edge in edges]  # what can begin at each unit
        self._add(segments, edges, masks)
        found = set(segments)
        for rule, label in self._rules:
            new = self._matches(rule, label, edges, masks)
            self._add([segment for segment in new if segment not in found], edges, masks)
            found.update(new)
        return sorted(found)

    def _matches(
        self,
        rule: RuleAutomaton,
        label: int,
        edges: Sequence[Sequence[tuple[int, int]]],
        masks: Sequence[int],
    ) -> list[Found]:
        starts = [at for at, mask in enumerate(masks) if mask & rule.first]
        ends = [(start, rule.ends(edges, start, self._max_units)) for start in starts]
        matches = [(start, end, label) for start, found in ends for end in found]
        return leftmost_longest(matches) if self._longest and matches else matches

    def _add(
        self, segments: Sequence[Found], edges: list[list[tuple[int, int]]], masks: list[int]
    ) -> None:
        """Let later rules see segments."""
        for start, end, label in segments:
            if mask := self._mask_of_label[label]:
                edges[start].append((mask, end + 1))
                masks[start] |= mask


__all__ = ["Cascade"]
