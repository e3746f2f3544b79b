"""Why an answer is right or wrong: a table of what holds where, and sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from hf_alpha.modeling.grammar import Grammar
from hf_alpha.plain_text import printable

from .formulas import as_written, subformula_ends

MAX_ROWS = 100
"""Subformulas of a table, those nearest to the whole formula."""
MAX_COLUMNS = 40
"""Columns of a table; a longer trace gets none."""
MAX_LABEL = 60
"""Letters of a subformula in a table that is drawn; of longer ones the middle is left out."""
MAX_TOKENS = 10_000
"""Tokens of a formula of which a table is made."""

Cell = bool | None
_SIGNS: dict[Cell, str] = {True: "1", False: "0", None: "?"}


@dataclass(frozen=True)
class TableRow:
    """What a subformula is in each column: true, false, or (None) open.

    Attributes:
        cells: as many as the table has columns.
    """

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Explanation:
    """Why an answer is right or wrong.

    Attributes:
        notes: sentences; the first says what the table shows.
        columns: headings of the table, such as the steps of a trace.
        rows: subformulas, the whole formula last.
        loop: index of the first column that is repeated, with all behind it; None if none is.
    """

    notes: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[TableRow, ...] = ()
    loop: int | None = None

    def text(self) -> str:
        """Return it for a terminal: the notes, then the table with `|` before its loop."""
        lines = [printable(note) for note in self.notes]
        if not self.rows:
            return "\n".join(lines)
        table = [("", self.columns)]
        table += [
            (printable(_short(row.label)), tuple(_SIGNS[cell] for cell in row.cells))
            for row in self.rows
        ]
        first = max(len(label) for label, _ in table)
        widths = [len(column) for column in self.columns]
        for label, cells in table:
            marks = ["|" if column == self.loop else " " for column in range(len(cells))]
            parts = (f" {m} {c:>{w}}" for m, c, w in zip(marks, cells, widths, strict=True))
            lines.append((label.ljust(first) + "".join(parts)).rstrip())
        return "\n".join(lines)


def subformulas(grammar: Grammar, written: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the distinct subformulas of a formula, with operators as they were written.

    Args:
        written: its prefix tokens, derived operators among them.

    Returns:
        At most `MAX_ROWS`, those nearest to the whole: each as infix for people and as the
        grammar's tokens. Short ones come first, of the same length in order of occurrence; the
        whole is last. Constants are left out.
    """
    ends = subformula_ends(grammar, written)
    starts: dict[tuple[str, ...], int] = {}
    level = [0]
    while level and len(starts) < MAX_ROWS:
        following = []
        for start in level:
            token = written[start]
            if len(starts) < MAX_ROWS and token not in grammar.constants:
                tokens = tuple(written[start : ends[start]])
                starts[tokens] = min(start, starts.get(tokens, start))
            operand = start + 1
            while operand < ends[start]:
                following.append(operand)
                operand = ends[operand]
        level = following
    starts.setdefault(tuple(written), 0)  # a constant alone
    ordered = sorted(starts, key=lambda tokens: (len(tokens), starts[tokens]))
    writer = as_written(grammar)
    return [(writer.format([*tokens], "infix"), grammar.rewritten([*tokens])) for tokens in ordered]


def _short(label: str) -> str:
    if len(label) <= MAX_LABEL:
        return label
    half = (MAX_LABEL - 3) // 2
    return f"{label[:half]} … {label[-half:]}"
