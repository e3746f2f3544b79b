"""Which ids of a vocabulary are symbols, and of which class.

Symbols may lie anywhere: behind the base tokens, or in the middle of another model's vocabulary.
Everything is computed from the ranges; no table of the vocabulary's size is stored.
"""

from copy import deepcopy
from functools import reduce
from typing import Any

import torch

from .choices import refuse

# A larger vocabulary is almost surely a typing error: its logits would fit in no memory.
MAX_VOCABULARY = 2**24

Ranges = dict[str, list[list[int]]]
ClassRows = dict[str, list[int]]
MOST_MADE = 64
_made: "dict[tuple[int, str, str], SymbolVocabulary]" = {}


def vocabulary_of(
    size: int, ranges: Ranges, class_rows: ClassRows | None = None
) -> "SymbolVocabulary":
    """Returns a vocabulary, arguments as there; of equal ones it is made once."""
    if torch.compiler.is_compiling():
        return SymbolVocabulary(size, ranges, class_rows)
    key = size, repr(ranges), repr(class_rows)
    if (kept := _made.get(key)) is None:
        if len(_made) >= MOST_MADE:
            _made.clear()
        # Of copies: a configuration may be changed in place, and is another one then.
        kept = _made[key] = SymbolVocabulary(size, deepcopy(ranges), deepcopy(class_rows))
    return kept


class SymbolVocabulary:
    """Ids of base tokens and symbols.

    Args:
        size: ids in all, V.
        ranges: symbol class -> half-open id ranges `[start, stop]`; no id is in two of them.
        class_rows: class -> its rows, in a table that has a row for each base token at its id, as
            the table of another model has; where there are too few, they come again. Without it,
            base tokens have the first rows of a table, in the order of their ids, and classes
            follow.

    Attributes:
        spans: (start, stop, number of the class) of each range, in the order of ids. Classes are
            numbered from 1 on, in the order of `ranges`; 0 stands for base tokens.
    """

    def __init__(self, size: int, ranges: Ranges, class_rows: ClassRows | None = None):
        self.size = size
        self.ranges = ranges
        self.class_rows = class_rows
        # Pairs are not taken apart here: whether they are pairs, `check` says.
        self.spans = sorted(
            (*pair, number)
            for number, pairs in enumerate(ranges.values(), start=1)
            for pair in pairs
        )

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Half-open ranges of symbols of any class, as long as they go."""
        runs: list[tuple[int, int]] = []
        for start, stop, _ in self.spans:
            begin = runs.pop()[0] if runs and runs[-1][1] == start else start
            runs.append((begin, stop))
        return runs

    @property
    def in_turn(self) -> bool:
        """Whether a class has several rows of another model's table, for symbols in turn."""
        return any(len(rows) > 1 for rows in (self.class_rows or {}).values())

    @property
    def num_symbols(self) -> int:
        """Symbols of all classes."""
        return sum(stop - start for start, stop, _ in self.spans)

    @property
    def num_base_tokens(self) -> int:
        """Ids that are no symbols."""
        return self.size - self.num_symbols

    @property
    def num_base_rows(self) -> int:
        """How many rows of a table come before those of classes, if any do."""
        return self.num_base_tokens if self.class_rows is None else self.size

    @property
    def pieces(self) -> list[tuple[int, int, bool]]:
        """Half-open ranges that cover all ids in order, and whether each is one of symbols."""
        pieces, end = [], 0
        for start, stop in [*self.runs, (self.size, self.size)]:
            pieces += [(end, start, False), (start, stop, True)]
            end = stop
        return [piece for piece in pieces if piece[0] < piece[1]]

    @property
    def base_ids(self) -> list[int]:
        """The base tokens' ids, in order."""
        return [i for start, stop, named in self.pieces if not named for i in range(start, stop)]

    def class_of(self, token: int) -> str | None:
        """Name of a symbol's class; None for other ids."""
        names = list(self.ranges)
        numbers = (number for start, stop, number in self.spans if start <= token < stop)
        return next((names[number - 1] for number in numbers), None)

    def classes(self, ids: torch.Tensor) -> torch.Tensor:
        """Number of each id's class, 0 for base tokens; of the shape of `ids`."""
        classes = torch.zeros_like(ids)
        for start, stop, number in self.spans:
            classes = torch.where((ids >= start) & (ids < stop), number, classes)
        return classes

    def is_symbol(self, ids: torch.Tensor) -> torch.Tensor:
        """Whether each id is a symbol; of the shape of `ids`."""
        inside = [(ids >= start) & (ids < stop) for start, stop in self.runs]
        return reduce(torch.logical_or, inside) if inside else torch.zeros_like(ids).bool()

    def symbols_before(self, ids: torch.Tensor) -> torch.Tensor:
        """How many symbols have a smaller id: of a symbol, its index among all of them."""
        before = [(ids - start).clamp(0, stop - start) for start, stop in self.runs]
        return reduce(torch.add, before) if before else torch.zeros_like(ids)

    def symbol_ids(self, indices: torch.Tensor) -> torch.Tensor:
        """Id of each symbol from its index among all of them; of the shape of `indices`."""
        ids, before = indices, 0
        for start, stop in self.runs:
            ids = torch.where(indices >= before, indices + (start - before), ids)
            before += stop - start
        return ids

    def symbol_index(self, ids: torch.Tensor) -> torch.Tensor:
        """Index of each symbol among all of them, of other ids the number of symbols."""
        return torch.where(self.is_symbol(ids), self.symbols_before(ids), self.num_symbols)

    def symbol_numbers(self, ids: torch.Tensor) -> torch.Tensor:
        """Number of each symbol among all of them, from 1 on; of other ids 0."""
        return torch.where(self.is_symbol(ids), self.symbols_before(ids) + 1, 0)

    def rows(self, ids: torch.Tensor, per_class: int, nth: int | torch.Tensor = 0) -> torch.Tensor:
        """Row of each token where base tokens have a row each, and classes a few.

        Args:
            ids: of any shape; the rows are of the same.
            per_class: how many rows a class has, without `class_rows`.
            nth: which of them a symbol gets; or for each id, with `class_rows`.
        """
        if self.class_rows is None:
            assert isinstance(nth, int)
            return self._rows_behind(ids, per_class, nth)
        found, names = ids, list(self.ranges)
        for start, stop, number in self.spans:
            rows = self.class_rows[names[number - 1]]
            if isinstance(nth, int) or len(rows) == 1:
                row: Any = rows[nth if isinstance(nth, int) else 0]
            else:
                row = torch.tensor(rows, device=ids.device)[nth % len(rows)]
            found = torch.where((ids >= start) & (ids < stop), row, found)
        return found

    def _rows_behind(self, ids: torch.Tensor, per_class: int, nth: int) -> torch.Tensor:
        """Returns the rows of `rows` in a table where those of classes follow the base tokens'."""
        first = self.num_base_tokens
        if self.runs == [(first, self.size)]:  # as ids do: there are steps up, and few of them
            rows, last = ids.clamp(max=first), first
            for start, _, number in self.spans:
                row = first + per_class * (number - 1) + nth
                rows = rows if row == last else rows.add(ids >= start, alpha=row - last)
                last = row
            return rows
        rows, before = ids, 0
        for start, stop, number in self.spans:
            row = first + per_class * (number - 1) + nth
            before += stop - start
            behind = torch.where(ids < stop, row, ids - before)
            rows = torch.where(ids < start, rows, behind)
        return rows

    def join(self, base: torch.Tensor, symbols: torch.Tensor, dim: int) -> torch.Tensor:
        """Merge the entries of base tokens and of symbols into one tensor, ordered by id.

        Args:
            base: with one entry for each base token along `dim`, in the order of their ids; with
                `class_rows`, those of base tokens lie at their ids, and others are left out.
            symbols: with one entry for each symbol, in the order of their ids.
        """
        if self.class_rows is None and self.runs == [(self.num_base_tokens, self.size)]:
            return torch.cat((base, symbols), dim)  # with no split, gradients are not copied
        sizes = [stop - start for start, stop, _ in self.pieces]
        if self.class_rows is None:
            sizes = [
                0 if piece[2] else size for piece, size in zip(self.pieces, sizes, strict=True)
            ]
        # Split, not narrowed: gradients are put together at once.
        bases = base.split(_within(sizes, base.shape[dim]), dim)
        symbol_parts = iter(symbols.split([stop - start for start, stop in self.runs], dim))
        pieces = zip(self.pieces, bases, strict=False)
        return torch.cat([next(symbol_parts) if piece[2] else part for piece, part in pieces], dim)

    def check(self, counts: dict[str, int]) -> None:
        """Check that ranges and the number of symbols of each class fit each other.

        Raises:
            ValueError: naming what does not fit.
        """
        of_ranges, of_counts = sorted(self.ranges), sorted(counts)
        message = f"symbol_ranges has classes {of_ranges}, symbol_classes has {of_counts}"
        refuse(of_ranges != of_counts, message)
        for name, ranges in self.ranges.items():
            _check_class(name, ranges, counts[name])
        end = 0
        for start, stop, _ in self.spans:
            refuse(start < end, f"symbol_ranges {self.ranges} overlap at id {start}")
            end = stop
        message = f"symbol_ranges {self.ranges} leave the {self.size} ids of vocab_size"
        refuse(end > self.size, message)
        check_size(self.size)

    def check_special(self, token: int | None) -> None:
        """Raise a ValueError for a special token that is no base token; None is accepted."""
        base = [(start, stop) for start, stop, named in self.pieces if not named]
        if token is not None and not any(start <= token < stop for start, stop in base):
            ranges = ", ".join(f"{start} to {stop - 1}" for start, stop in base)
            raise ValueError(f"special token {token} is no base token: those are the ids {ranges}")


def _within(sizes: list[int], total: int) -> list[int]:
    """Sizes of parts, cut off where they leave a tensor of so many, and what is left of it."""
    cut = []
    for size in sizes:
        cut.append(min(size, total))
        total -= cut[-1]
    return [*cut, total]


def check_size(size: int) -> None:
    """Raise a ValueError for a vocabulary too large to work with."""
    message = f"a vocabulary of {size} ids is larger than {MAX_VOCABULARY}"
    refuse(size > MAX_VOCABULARY, message)


def _check_class(name: str, ranges: list[list[int]], count: int) -> None:
    listed = f"symbol_ranges[{name!r}] = {ranges}"
    refuse(count < 1, f"symbol class {name!r} has no symbols")
    refuse(
        any(len(pair) != 2 or not 0 <= pair[0] < pair[1] for pair in ranges),
        f"{listed} must list [start, stop] with 0 <= start < stop",
    )
    members = sum(stop - start for start, stop in ranges)
    refuse(members != count, f"{listed} holds {members} ids, symbol_classes says {count}")
