"""Why an answer is right or wrong: a table of what holds where, and sentences."""

from dataclasses import dataclass

from hf_alpha.io.plain_text import printable

MAX_LABEL = 60
"""Letters of a subformula in a table that is drawn; of longer ones the middle is left out."""

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
        return "\n".join([*map(printable, self.notes), *self.table()])

    def table(self) -> list[str]:
        """Return the lines of the table, with `|` before its loop; none where there is none."""
        if not self.rows:
            return []
        table = [("", self.columns)]
        table += [
            (printable(_short(row.label)), tuple(_SIGNS[cell] for cell in row.cells))
            for row in self.rows
        ]
        first = max(len(label) for label, _ in table)
        widths = [len(column) for column in self.columns]
        lines = []
        for label, cells in table:
            marks = ["|" if column == self.loop else " " for column in range(len(cells))]
            parts = (f" {m} {c:>{w}}" for m, c, w in zip(marks, cells, widths, strict=True))
            lines.append((label.ljust(first) + "".join(parts)).rstrip())
        return lines


def _short(label: str) -> str:
    if len(label) <= MAX_LABEL:
        return label
    half = (MAX_LABEL - 3) // 2
    return f"{label[:half]} … {label[-half:]}"
