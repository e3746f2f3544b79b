"""Ranges of numbers that share a column of a table, or a point of a curve."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bins:
    """Ranges of whole numbers, one behind the other.

    Attributes:
        ranges: first and last number of each.
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, numbers: Iterable[int], most: int | None = None) -> "Bins":
        """Cut numbers into at most `most` ranges that hold about as many of them.

        Args:
            numbers: one of each sample, in any order.
            most: None for a range for each different number.
        """
        counts = sorted(Counter(numbers).items())
        if most is None or len(counts) <= most:
            return cls(tuple((number, number) for number, _ in counts))
        total, seen = sum(count for _, count in counts), 0
        groups: list[list[int]] = [[] for _ in range(most)]
        for number, count in counts:  # by where the middle of its samples lies among all
            groups[int(most * (seen + count / 2) / total)].append(number)
            seen += count
        return cls(tuple((group[0], group[-1]) for group in groups if group))

    def first(self, number: int) -> int:
        """Return the first number of the range that a number of the data lies in."""
        return self.ranges[bisect_right([first for first, _ in self.ranges], number) - 1][0]

    @property
    def labels(self) -> dict[int, str]:
        """First number of each range -> the range as text: `7`, or `7-12`."""
        return {
            first: f"{first}" if first == last else f"{first}-{last}" for first, last in self.ranges
        }


__all__ = ["Bins"]
