"""Heatmaps: a rate, or the mean edit distance, by number of symbols and length, as pictures."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hf_alpha.evaluation.pictures import take_literally
from hf_alpha.evaluation.report import EDIT_DISTANCE, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

Region = tuple[tuple[int, int], tuple[int, int]]
"""((fewest, most symbols), (shortest, longest)) of the problems of training."""
COLORS = ("#d73027", "#fc8d59", "#fee090", "#8fd3c8", "#2f9ee0")
"""From red over yellow to blue: like red to green, but told apart by the colour-blind too."""

OUTSIDE_GRAY = (0.85, 0.85, 0.85)
NAMES = {
    "correct": "correct answers",
    "exact": "exact answers",
    "top_n": "top-N correct",
    EDIT_DISTANCE: "mean edit distance (tokens)",
}
SMALLEST, LARGEST = 0.35, 0.94
"""Side of the box in a cell with next to no samples, and with many; that of the cell is 1."""


@dataclass(frozen=True)
class Cell:
    """One cell: a number of symbols and a length.

    Attributes:
        num_symbols: the row.
        size: the column.
        rate: between 0 and 1; for `edit_distance` the mean number of tokens.
        outside: all of them are outside the model's vocabulary.
    """

    num_symbols: int
    size: int
    rate: float
    count: int
    outside: bool


@dataclass(frozen=True)
class Heatmap:
    """A rate of one model by number of symbols and length.

    Attributes:
        metric: which rate, by its name in `Rates.rate`.
        training_region: ((fewest, most symbols), (shortest, longest)) of the training data, or
            None.
    """

    model: str
    metric: str
    overall: float
    cells: tuple[Cell, ...]
    training_region: Region | None = None

    @classmethod
    def of(
        cls, report: Report, metric: str = "correct", training_region: Region | None = None
    ) -> "Heatmap":
        """Take a heatmap from a report.

        Raises:
            ValueError: there is no such rate, or it was not measured.
        """
        if metric == EDIT_DISTANCE and report.overall.edit_distance is None:
            raise ValueError(f"the report of {report.model} has no edit distances: draw a rate")
        cells = tuple(
            Cell(symbols, size, rates.rate(metric), rates.count, rates.is_outside)
            for (symbols, size), rates in report.by_cell.items()
        )
        return cls(report.model, metric, report.overall.rate(metric), cells, training_region)


def draw(heatmaps: Sequence[Heatmap], path: str | os.PathLike[str]) -> Path:
    """Draw heatmaps as one picture, whose ending (.png, .svg, .pdf) chooses the format.

    Raises:
        ValueError: see `make_figure`.
    """
    figure, path = make_figure(heatmaps), Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def make_figure(heatmaps: Sequence[Heatmap]) -> "Figure":
    """Make a picture of heatmaps, a panel for each, with one scale for all.

    Colour shows the rate, blue being good: from 0 to 1, or for edit distances from 0 to the worst
    of a cell within the vocabulary, at least 1. Where there are few samples, the coloured square
    does not fill its cell: its area shows their number, up to half of the median of all cells.
    Cells without samples are white, cells outside a model's vocabulary hatched grey. A dashed frame
    marks the training data.

    Raises:
        ValueError: nothing to draw, or edit distances beside rates.
    """
    cells = [cell for heatmap in heatmaps for cell in heatmap.cells]
    if not cells:
        raise ValueError("no cells to draw: the report has no samples")
    distances = _are_distances(heatmaps)
    rates = [cell.rate for cell in cells if distances and not cell.outside]
    colors = _colors(max([1.0, *rates]), reverse=distances)
    full_count = max(1, sorted(cell.count for cell in cells)[len(cells) // 2] // 2)
    rows = _span([cell.num_symbols for cell in cells])
    sizes = _span([cell.size for cell in cells])
    # About 0.13 inches a column of a panel, and no more than 16 inches in all.
    width, height = max(3.4, 0.13 * len(sizes)), max(1.6, 0.24 * len(rows))
    columns = max(1, min(len(heatmaps), int(16 / (width + 0.4))))
    lines = -(-len(heatmaps) // columns)

    from matplotlib.figure import Figure

    inches = (width + 0.5) * columns + 1.3
    figure = Figure(figsize=(inches, (height + 0.75) * lines + 0.55), layout="constrained")
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axis, heatmap in zip(axes.flat, heatmaps, strict=False):
        _draw_panel(axis, heatmap, rows, sizes, colors, full_count)
    for axis in axes.flat[len(heatmaps) :]:
        axis.set_visible(False)
    _label(figure, axes, heatmaps, colors)
    figure.supxlabel(_notes(heatmaps, full_count), fontsize=8, color="0.3")
    take_literally(figure)
    return figure


def _span(values: Sequence[int]) -> range:
    return range(min(values), max(values) + 1)


def _are_distances(panels: Sequence[Heatmap]) -> bool:
    kinds = {panel.metric == EDIT_DISTANCE for panel in panels}
    if len(kinds) > 1:
        raise ValueError("edit distances and rates have no scale in common: draw two pictures")
    return kinds.pop()


def _colors(largest: float, reverse: bool) -> "ScalarMappable":
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colors = LinearSegmentedColormap.from_list("rate", COLORS[::-1] if reverse else COLORS)
    return ScalarMappable(Normalize(0, largest, clip=True), colors)


def _draw_panel(
    axis: "Axes",
    heatmap: Heatmap,
    rows: range,
    sizes: range,
    colors: "ScalarMappable",
    full_count: int,
) -> None:
    from matplotlib.collections import PatchCollection

    axis.set_xlim(sizes.start - 0.5, sizes.stop - 0.5)
    axis.set_ylim(rows.start - 0.5, rows.stop - 0.5)
    cells = [cell for cell in heatmap.cells if not cell.outside]
    boxes = [_box(cell, _side(cell.count, full_count)) for cell in cells]
    shades = colors.to_rgba(np.array([cell.rate for cell in cells]))
    axis.add_collection(PatchCollection(boxes, facecolors=shades, lw=0))
    for cell in heatmap.cells:
        if cell.outside:
            axis.add_patch(_box(cell, 1.0, fc=OUTSIDE_GRAY, hatch="////", lw=0, ec="0.6"))
    if heatmap.training_region is not None:
        _outline(axis, heatmap.training_region)
    distances = heatmap.metric == EDIT_DISTANCE
    overall = f"{heatmap.overall:.2f}" if distances else f"{100 * heatmap.overall:.1f} %"
    axis.set_title(f"{heatmap.model}: {overall} overall", fontsize=10)
    axis.set_yticks(list(rows) if len(rows) <= 12 else list(rows)[::2])
    axis.locator_params(axis="x", integer=True, min_n_ticks=1)
    axis.tick_params(labelsize=8)


def _side(count: int, full_count: int) -> float:
    """Return the side of the box of a cell with `count` samples, as a share of the cell's."""
    return max(SMALLEST, LARGEST * math.sqrt(min(1.0, count / full_count)))


def _box(cell: Cell, side: float, **style: Any) -> "Rectangle":
    """Return a box in the middle of a cell."""
    from matplotlib.patches import Rectangle

    corner = (cell.size - side / 2, cell.num_symbols - side / 2)
    return Rectangle(corner, side, side, **style)


def _outline(axis: "Axes", region: Region) -> None:
    """Draw the box of the training data, as far as it lies within the picture."""
    from matplotlib.patches import Rectangle

    (fewest, most), (shortest, longest) = region
    edges = [*axis.get_xlim(), *axis.get_ylim()]
    left, right = max(shortest - 0.5, edges[0]), min(longest + 0.5, edges[1])
    bottom, top = max(fewest - 0.5, edges[2]), min(most + 0.5, edges[3])
    box = ((left, bottom), right - left, top - bottom)
    # White dashes on a black line are seen on any colour.
    axis.add_patch(Rectangle(*box, fill=False, ec="black", lw=2.4, clip_on=False))
    axis.add_patch(Rectangle(*box, fill=False, ec="white", lw=1.4, ls=(0, (3, 2)), clip_on=False))


def _label(
    figure: "Figure", axes: np.ndarray, panels: Sequence[Heatmap], colors: "ScalarMappable"
) -> None:
    from matplotlib.ticker import PercentFormatter

    metrics = {NAMES.get(panel.metric, panel.metric) for panel in panels}
    numbers = None if panels[0].metric == EDIT_DISTANCE else PercentFormatter(1)
    bar = figure.colorbar(colors, ax=axes, fraction=0.04, pad=0.02, format=numbers)
    bar.set_label(", ".join(sorted(metrics)), fontsize=9)
    bar.ax.tick_params(labelsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("number of symbols", fontsize=9)
    for axis in axes.flat[: len(panels)][-axes.shape[1] :]:  # nothing is drawn below these
        axis.set_xlabel("length of the problem (tokens)", fontsize=9)
        axis.tick_params(labelbottom=True)


def _notes(panels: Sequence[Heatmap], full_count: int) -> str:
    """Return what a picture's colours do not say."""
    few = [f"small square: fewer than {full_count} samples"] if full_count > 1 else []
    notes = [*few, "white: no samples"]
    if any(cell.outside for panel in panels for cell in panel.cells):
        empty = " (an empty answer)" if panels[0].metric == EDIT_DISTANCE else ""
        notes.append(f"hatched: outside the vocabulary{empty}")
    if any(panel.training_region for panel in panels):
        notes.append("dashed frame: training data")
    return "; ".join(notes)
