"""What a table is made of: rows, what is measured of each, and its Markdown."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from .models import Model
from .results import Results
from .sizes import Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPERS = Path(__file__).with_name("papers.yaml")
NONE = "-"  # not measured, or outside the vocabulary


def percent(value: float) -> str:
    """Write a rate as the papers do."""
    return f"{100 * value:.1f}"


def number(value: float) -> str:
    """Write a count."""
    return f"{value:,.0f}"


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        name: in files and options, such as `ltl-streams-renamed`; begins with the task.
        task: what is solved.
        cells: what stands before the numbers, one for each of the table's `heads`.
        model: what is trained; None for a row without a model, which is measured once.
        released: folder of the released model that is measured in place of a trained one.
    """

    name: str
    task: str
    cells: tuple[str, ...]
    model: Model | None = None
    released: Path | None = None

    def seeds(self, requested: Sequence[int]) -> Sequence[int]:
        """The seeds of it that are measured, of those asked for."""
        return requested if self.model is not None else (0,)


@dataclass(frozen=True)
class Column:
    """A column of measured numbers.

    Attributes:
        title: its head.
        key: of the measured numbers; a row that lacks it, or has null there, gets a dash.
        show: writes a number.
    """

    title: str
    key: str
    show: Callable[[float], str] = percent

    def cell(self, row: Row, results: Results) -> str:
        """The mean over the seeds; with several also half the distance of the extremes."""
        values = results.values(row.name, self.key)
        if not values:
            return NONE
        text = self.show(fmean(values))
        half = (max(values) - min(values)) / 2
        return text if len(values) == 1 else f"{text} ± {self.show(half)}"


@dataclass(frozen=True)
class Block:
    """Columns that stand in one Markdown table, one for each task.

    Attributes:
        title: above it.
        columns: of measured numbers.
        paper: key of `papers.yaml` whose numbers stand beside them; "" for none.

    A task of which no row has any of these numbers has no such table.
    """

    title: str
    columns: tuple[Column, ...]
    paper: str = ""

    def has_numbers(self, rows: Sequence[Row], results: Results) -> bool:
        """Whether any of these rows has any of these numbers."""
        return any(results.values(row.name, c.key) for row in rows for c in self.columns)


class Table(ABC):
    """A table of a paper, measured again. The package's docstring says how to write one.

    Attributes:
        name: what `python -m benchmarks.studies` takes.
        title: above it in the document.
        summary: one line, with the place in the paper.
        heads: of the cells that name a row.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    heads: ClassVar[tuple[str, ...]] = ("model",)

    @abstractmethod
    def rows(self, size: Size) -> list[Row]:
        """All rows, in the order of the table; the tasks one after the other."""

    @abstractmethod
    def tested(self, size: Size) -> dict[str, Any]:
        """Settings of the test: a row measured with others is refused."""

    @abstractmethod
    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        """Measure a row.

        Args:
            row: which.
            folder: of its trained model; None without one.
            size: at which size.
            runs: a folder for problems and reports, of this size.

        Returns:
            Key -> number, between 0 and 1 for rates; None for what cannot be measured. Lists of
            numbers for pictures.
        """

    @abstractmethod
    def blocks(self, size: Size) -> tuple[Block, ...]:
        """The Markdown tables."""

    @abstractmethod
    def text(self, size: Size) -> str:
        """What is measured, in plain words: a paragraph above the tables."""

    def findings(self, results: Results, size: Size) -> list[str]:
        """Sentences that say what the numbers say, made from them; none by default."""
        return []

    def pictures(self, results: Results, size: Size) -> "dict[str, Figure]":
        """Name -> picture, made from the numbers; none by default."""
        return {}

    def render(self, results: Results, size: Size) -> str:
        """The Markdown tables of the rows that have been measured."""
        rows = [row for row in self.rows(size) if row.name in results.rows]
        tasks = dict.fromkeys(row.task for row in rows)
        parts = []
        for task in tasks:
            own = [row for row in rows if row.task == task]
            for block in self.blocks(size):
                if block.has_numbers(own, results):
                    title = f"**{TASKS.get(task, task)}: {block.title}**"
                    parts.append(f"{title}\n\n{self._markdown(block, own, results)}")
        return "\n\n".join(parts)

    def _markdown(self, block: Block, rows: Sequence[Row], results: Results) -> str:
        paper = papers().get(block.paper, {"columns": [], "rows": {}})
        lines = [
            [
                *row.cells,
                *(column.cell(row, results) for column in block.columns),
                *(_printed(x) for x in paper["rows"].get(row.name, [None] * len(paper["columns"]))),
                *_effort(row, results),
            ]
            for row in rows
        ]
        heads = [column.title for column in block.columns]
        heads += [f"paper: {name}" for name in paper["columns"]]
        return markdown([*self.heads, *heads, "hours", "seeds"], lines, len(self.heads))


def _effort(row: Row, results: Results) -> tuple[str, str]:
    """Hours of training, the mean over the seeds, and the number of seeds."""
    if row.model is None:
        return NONE, NONE
    entries = results.rows[row.name].values()
    return f"{fmean(entry['training']['hours'] for entry in entries):.2f}", str(len(entries))


def ranked(
    rows: Sequence[Row], results: Results, key: str, seeds: int = 1
) -> list[tuple[Row, float]]:
    """The rows that have a number, with its mean, the largest first; none if a model lacks seeds.

    Sentences that name the best want `SEVERAL` seeds: one or two say little about which row is
    better.
    """
    row_values = [(row, values) for row in rows if (values := results.values(row.name, key))]
    if any(row.model is not None and len(values) < seeds for row, values in row_values):
        return []
    means = [(row, fmean(values)) for row, values in row_values if len(values) >= seeds]
    return sorted(means, key=lambda pair: -pair[1])


SEVERAL = 3
TASKS = {"propositional": "Propositional logic", "ltl": "LTL", "copying": "Copying"}


@cache
def papers() -> dict[str, Any]:
    """What papers report: table -> `source`, `size`, `columns` and `rows`."""
    content: dict[str, Any] = yaml.safe_load(PAPERS.read_text(encoding="utf-8"))
    return content


def _printed(value: Any) -> str:
    return "" if value is None else str(value)


def markdown(heads: Sequence[str], lines: Sequence[Sequence[str]], words: int = 1) -> str:
    """Write a Markdown table; the first `words` columns are words, on the left."""
    rule = ["---" if place < words else "---:" for place in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *lines))


__all__ = [
    "SEVERAL",
    "TASKS",
    "Block",
    "Column",
    "Row",
    "Table",
    "markdown",
    "number",
    "papers",
    "percent",
    "ranked",
]
