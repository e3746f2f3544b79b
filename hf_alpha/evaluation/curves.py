"""Curves: a rate of several models by number of symbols, in one picture."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hf_alpha.evaluation.pictures import COLORS, take_literally
from hf_alpha.evaluation.report import EDIT_DISTANCE, Bins, Report, names_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "os^Dv<>"
BASELINE = "0.6"


def draw_curves(
    reports: Sequence[Report],
    path: str | os.PathLike[str],
    *,
    metric: str = "correct",
    trained: tuple[int, int] | None = None,
    baseline: Report | None = None,
    title: str | None = None,
    caption: str | None = None,
    spread: Mapping[str, Sequence[Report]] | None = None,
    most_points: int | None = None,
) -> Path:
    """Draw a curve for each report.

    A number of symbols that is outside a model's vocabulary has no point.

    Args:
        path: the picture; its ending (.png, .svg, .pdf) chooses the format.
        metric: which rate, by its name in `Rates.rate`.
        trained: fewest and most symbols of the training data, which are shaded.
        baseline: of answers that need no model, drawn in grey.
        spread: model -> reports of its runs, whose lowest and highest rates bound a band.
        most_points: where there are more numbers of symbols, ranges of them share a point.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axis = figure.subplots()
    if trained is not None:
        _shade(axis, *trained)
    bins = names_bins(reports, most_points)
    for index, report in enumerate(reports):
        color = COLORS[index % len(COLORS)]
        axis.plot(
            *_points(report, metric, bins), label=report.model, color=color,
            marker=MARKERS[index % len(MARKERS)], ms=5, lw=1.8,
        )  # fmt: skip
        _draw_band(axis, (spread or {}).get(report.model, ()), metric, bins, color)
    if baseline is not None:
        axis.plot(
            *_points(baseline, metric, bins), label=baseline.model, color=BASELINE, ls="--", lw=1.5
        )
    _label(axis, metric)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    if title:
        figure.suptitle(title, fontsize=11)
    if caption:
        axis.set_title(caption, fontsize=8.5, color="0.3")
    take_literally(figure)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _shade(axis: "Axes", smallest: int, largest: int) -> None:
    """Shade the numbers of symbols of the training data."""
    axis.axvspan(smallest - 0.5, largest + 0.5, color="0.93", zorder=0)
    axis.text(
        (smallest + largest) / 2, 0.06, "in training", color="0.45", fontsize=9, ha="center",
        transform=axis.get_xaxis_transform(),
    )  # fmt: skip


def _label(axis: "Axes", metric: str) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axis.set_xlabel("different names in the input")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylim(bottom=0)
    if metric == EDIT_DISTANCE:
        axis.set_ylabel("mean edit distance (tokens)")
    else:
        axis.set_ylabel(f"{metric} answers")
        axis.set_ylim(-0.02, 1.02)
        axis.yaxis.set_major_formatter(PercentFormatter(1))
    axis.grid(axis="y", color="0.9")
    axis.spines[["top", "right"]].set_visible(False)


def _draw_band(
    axis: "Axes", reports: Sequence[Report], metric: str, bins: Bins, color: str
) -> None:
    """Shade what lies between the lowest and the highest rate of several runs."""
    if len(reports) < 2:
        return
    places = _points(reports[0], metric, bins)[0]
    rates = [_points(report, metric, bins)[1] for report in reports]
    lowest, highest = map(min, *rates), map(max, *rates)
    axis.fill_between(places, list(lowest), list(highest), color=color, alpha=0.15, lw=0)


def _points(report: Report, metric: str, bins: Bins) -> tuple[list[float], list[float]]:
    """Return the middle of each range of numbers of symbols, and the rate there."""
    middles = {first: (first + last) / 2 for first, last in bins.ranges}
    rates = {
        middles[first]: rates.rate(metric)
        for first, rates in report.by_names(bins).items()
        if not rates.is_outside
    }
    return list(rates), list(rates.values())
