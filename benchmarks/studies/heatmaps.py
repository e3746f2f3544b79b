"""Heatmaps (2601.23169, Figure 2): right answers by number of names and length."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hf_alpha.evaluation import Heatmap, Report
from hf_alpha.evaluation.heatmap import Cell, make_figure
from hf_alpha.evaluation.report import POOL

from . import measures
from .encodings import FULL, LOGIC, Encodings
from .results import Results
from .sizes import Size
from .table import SEVERAL, TASKS, Block, Column, Row, Table, number, percent, ranked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FACT = "witness_length"
PARTS: dict[str, Callable[[bool, bool], bool]] = {
    "in training": lambda names, length: names and length,
    "more names": lambda names, length: not names and length,
    "longer": lambda names, length: names and not length,
    "more names and longer": lambda names, length: not names and not length,
}
"""Part of the grid -> whether a problem with so many names, and of such a length, belongs to it."""


class Heatmaps(Table):
    """The models of `encodings` that were trained on all of the data, on a grid of problems."""

    name = "heatmaps"
    title = "More names and longer problems"
    summary = "correct answers by number of names and by length (2601.23169, Figure 2)"

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(row.name, row.task, row.cells[1:], row.model)
            for row in Encodings().rows(size)
            if row.model is None or row.model.data == "normal"
        ]

    def tested(self, size: Size) -> dict[str, Any]:
        return size.tested("grid", "most_names", "grid_lengths", "per_cell")

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        problems = measures.grid(row.task, size, runs)
        report = measures.answers(folder, row.task, problems, "grid", runs)
        values = measures.rates(report.overall)
        for name, belongs in PARTS.items():
            values |= _of_part(report, size, name, belongs)
        for length, group in report.by_fact(FACT, POOL).items():
            values |= measures.rates(group, f" witness {length}")
        values["cells"] = [
            [names, length, group.count, None if group.is_outside else group.correct]
            for (names, length), group in report.by_cell.items()
        ]
        return values

    def blocks(self, size: Size) -> tuple[Block, ...]:
        parts = tuple(Column(name, f"correct {name}") for name in PARTS)
        lengths = {1: "1 step", 2: "2 steps", POOL: f"{POOL} or more"}
        return (
            Block(
                "correct answers, %",
                (Column("all", "correct"), *parts, Column("exact", "exact")),
                "heatmaps",
            ),
            Block(
                "correct answers by the length of the shortest witness, %",
                tuple(
                    column
                    for k, title in lengths.items()
                    for column in (
                        Column(title, f"correct witness {k}"),
                        Column("problems", f"samples witness {k}", number),
                    )
                ),
            ),
        )

    def text(self, size: Size) -> str:
        return (
            "The models of the table above that were trained on `normal` data, not trained again. "
            f"Test problems have 0 to {size.most_names} names and 1 to {size.grid_lengths} tokens. "
            f"There are up to {size.per_cell} for each combination of the two. `in training`: at "
            f"most {size.names} names and {size.length} tokens, as in training. A problem with "
            "names outside a model's vocabulary counts as not correct. A dash means that all "
            "problems are outside it. In the pictures, a dashed frame marks the training data. "
            "With several seeds, the pictures show the mean."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for task in LOGIC:
            rows = [row for row in self.rows(size) if row.task == task and FULL not in row.name]
            parts = []
            for part in PARTS:
                if order := ranked(rows, results, f"correct {part}", SEVERAL):
                    row, best = order[0]
                    parts.append(f"`{part}` {row.cells[0]} ({percent(best)} %)")
            if parts:
                sentences.append(
                    f"{TASKS[task]}, best row of each column (without the full vocabulary): "
                    f"{', '.join(parts)}."
                )
        return sentences

    def pictures(self, results: Results, size: Size) -> "dict[str, Figure]":
        rows = [row for row in self.rows(size) if row.name in results.rows]
        tasks = dict.fromkeys(row.task for row in rows)
        return {
            task: make_figure(
                [
                    _heatmap(row, results.measured(row.name), size)
                    for row in rows
                    if row.task == task
                ]
            )
            for task in tasks
        }


def _of_part(
    report: Report, size: Size, name: str, belongs: Callable[[bool, bool], bool]
) -> dict[str, Any]:
    """Rates of the problems of a part of the grid; nothing where it has none."""
    counts: Counter[str] = Counter()
    for (names, length), group in report.by_cell.items():
        if belongs(names <= size.names, length <= size.length):
            right = round(group.correct * group.count)
            num_outside = group.count * group.is_outside
            counts.update({"samples": group.count, "right": right, "outside": num_outside})
    if not counts["samples"]:
        return {}
    share = round(counts["right"] / counts["samples"], measures.DIGITS)
    is_inside = counts["outside"] < counts["samples"]
    return {f"samples {name}": counts["samples"], f"correct {name}": share if is_inside else None}


def _heatmap(row: Row, measured: Sequence[dict[str, Any]], size: Size) -> Heatmap:
    """The mean over the seeds."""
    cells = []
    for group in zip(*(result["cells"] for result in measured), strict=True):
        names, length, count, _ = group[0]
        known_rates = [rate for *_, rate in group if rate is not None]
        cells.append(
            Cell(names, length, fmean(known_rates) if known_rates else 0.0, count, not known_rates)
        )
    overall = fmean(result["correct"] for result in measured)
    return Heatmap(
        row.cells[0], "correct", overall, tuple(cells), ((0, size.names), (1, size.length))
    )


__all__ = ["Heatmaps"]
