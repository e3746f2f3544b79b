"""Gamma-spaces: a text's units, and the labelled segments over them; and their drawings, as SVG."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple
from xml.sax.saxutils import escape

CHARACTER = 8.5  # pixels of a character of a monospaced font of 14 pixels
UNIT_HEIGHT, LANE_HEIGHT, MARGIN = 44, 30, 10
COLOURS = ["#cfe3f7", "#fbe0c3", "#d5ecd0", "#f6d3d6", "#e2d8f0", "#f7efb5", "#d9e0e4", "#c9ebe7"]
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Segment(NamedTuple):
    """A labelled part of a text, from its first to its last unit, counted from 0."""

    start: int
    label: str
    end: int


Match = tuple[int, int, int]
"""First unit, last unit and label number of a segment; they sort as the segments of a text do."""


def leftmost_longest(segments: Iterable[Match]) -> list[Match]:
    """Choose segments from the left, each time the longest one, all labels of the same span."""
    chosen: list[Match] = []
    last = (-1, -1)
    for segment in sorted(segments, key=lambda s: (s[0], -s[1], s[2])):
        if segment[:2] == last or segment[0] > last[1]:
            chosen.append(segment)
            last = segment[:2]
    return chosen


@dataclass(frozen=True)
class GammaSpace:
    """The gamma-space of a text (Roche, 2023, Section 2.1).

    Printed as in the paper, units first and counted from 1: `{(1, fire, 1), (2, hose, 2),
    (1, COMPOUND, 2)}`.

    Attributes:
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


def draw(words: Sequence[str], segments: Sequence[tuple[int, str, int]], title: str) -> str:
    """Return an SVG file: the words in a row, numbered, and above them the segments.

    A segment stands above all that it overlaps and that are not longer; each label has a colour.

    Args:
        segments: first word, label, last word.
        title: for those who cannot see the picture.
    """
    widths = _column_widths(words, segments)
    lefts = list(accumulate(widths, initial=float(MARGIN)))
    lanes = _lanes(segments)
    ground: float = MARGIN + LANE_HEIGHT * max(lanes, default=0)
    order = list(dict.fromkeys(label for _, label, _ in segments))
    parts = []
    for (start, label, end), lane in zip(segments, lanes, strict=True):
        left, right = lefts[start] + 2, lefts[end + 1] - 2
        colour = COLOURS[order.index(label) % len(COLOURS)]
        parts.append(_box(left, ground - LANE_HEIGHT * lane, right - left, colour))
        middle = ground - LANE_HEIGHT * lane + 18
        parts.append(_text((left + right) / 2, middle, label, 'font-weight="bold"'))
    for at, word in enumerate(words):
        middle = (lefts[at] + lefts[at + 1]) / 2
        parts.append(_text(middle, ground + 18, word))
        parts.append(_text(middle, ground + 36, f"{at + 1}", 'font-size="11" fill="#666"'))
    return _file(lefts[-1] + MARGIN, ground + UNIT_HEIGHT + MARGIN, title, parts)


def _column_widths(words: Sequence[str], segments: Sequence[tuple[int, str, int]]) -> list[float]:
    """Return widths in which the words, and the labels over them, have room."""
    widths = [_width(word) + 14 for word in words]
    for start, label, end in sorted(segments, key=lambda s: s[2] - s[0]):
        missing = _width(label) + 16 - sum(widths[start : end + 1])
        for at in range(start, end + 1):
            widths[at] += max(missing, 0) / (end + 1 - start)
    return widths


def _lanes(segments: Sequence[tuple[int, str, int]]) -> list[int]:
    """Return how far up each segment is, from 1."""
    lanes: dict[int, int] = {}
    for index in sorted(range(len(segments)), key=lambda i: segments[i][2] - segments[i][0]):
        start, _, end = segments[index]
        below = [
            lane
            for other, lane in lanes.items()
            if segments[other][0] <= end and segments[other][2] >= start
        ]
        lanes[index] = 1 + max(below, default=0)
    return [lanes[index] for index in range(len(segments))]


def _width(text: str) -> float:
    wide = [2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text]
    return CHARACTER * sum(wide)


def _box(left: float, top: float, width: float, colour: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{LANE_HEIGHT - 4}" '
        f'rx="4" fill="{colour}" stroke="#888"/>'
    )


def _text(middle: float, base: float, text: str, style: str = "") -> str:
    return f'<text x="{middle:.1f}" y="{base:.1f}" {style}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(NOT_IN_XML.sub("\ufffd", text))


def _file(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="monospace" font-size="14" text-anchor="middle">',
        f"<title>{_escaped(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
