"""Gamma-spaces: a text's units, and the labelled segments over them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hf_alpha.transduction.drawing import draw


class Segment(NamedTuple):
    """A labelled part of a text, from its first to its last unit, counted from 0."""

    start: int
    label: str
    end: int


Found = tuple[int, int, int]
"""First unit, last unit and label number of a segment; they sort as the segments of a text do."""


def leftmost_longest(segments: Iterable[Found]) -> list[Found]:
    """Choose segments from the left, each time the longest one, all labels of the same span."""
    segments_found: list[Found] = []
    last = (-1, -1)
    for segment in sorted(segments, key=lambda s: (s[0], -s[1], s[2])):
        if segment[:2] == last or segment[0] > last[1]:
            segments_found.append(segment)
            last = segment[:2]
    return segments_found


@dataclass(frozen=True)
class GammaSpace:
    """The gamma-space of a text (Roche, 2023, Section 2.1).

    Printed as in the paper, units first and counted from 1: `{(1, fire, 1), (2, hose, 2),
    (1, COMPOUND, 2)}`.

    Attributes:
        text: the text.
        units: of each unit its first character and the one after its last.
        segments: sorted by start, end and the order of labels.
    """

    text: str
    units: tuple[tuple[int, int], ...]
    segments: tuple[Segment, ...]

    @property
    def words(self) -> list[str]:
        """The units as the text writes them."""
        return [self.text[start:stop] for start, stop in self.units]

    def covered(self, segment: Segment) -> str:
        """Return the part of the text that a segment is over."""
        return self.text[self.units[segment.start][0] : self.units[segment.end][1]]

    def __str__(self) -> str:
        units = (Segment(at, word, at) for at, word in enumerate(self.words))
        elements = (f"({s.start + 1}, {s.label}, {s.end + 1})" for s in (*units, *self.segments))
        return f"{{{', '.join(elements)}}}"

    def svg(self) -> str:
        """Return a drawing, an SVG file: the units in a row, numbered, the segments above them."""
        return draw(self.words, self.segments, f"{self}")

    def _repr_svg_(self) -> str:
        return self.svg()  # what notebooks show


__all__ = ["Found", "GammaSpace", "Segment", "leftmost_longest"]
