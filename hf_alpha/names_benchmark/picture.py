"""The picture of the benchmark: right answers by kind of names, and what renamings do."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hf_alpha.evaluation.curves import COLORS, MARKERS

from .scores import OUTCOMES, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOME_COLORS = ("#1b7f5c", "#8fd0b5", "#56b4e9", "#c9c9c9", "#8f8f8f", "#d55e00")
LABELS = {"mended": "from wrong to right", "broken": "from right to wrong"}
COLUMNS = 3


def draw(
    scores: Mapping[str, Mapping[str, Scores]],
    shares: Mapping[str, Mapping[str, float]],
    path: Path,
) -> None:
    """Draw a panel for each suite, and a bar for each model.

    Args:
        scores: of each model, by suite and for `all`.
        shares: of each model, what its renamings do: `scores.outcomes`.
        path: the picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    suites = list(next(iter(scores.values())))
    suites = suites if len(suites) > 2 else suites[:1]
    columns = min(COLUMNS, len(suites))
    rows = -(-len(suites) // columns)
    bars = 0.9 + 0.32 * len(scores)
    figure = Figure(figsize=(10.5, 2.4 * rows + bars + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=[2.4 * rows + 0.6, bars])[
        :, 0
    ]
    axes = top.subplots(rows, columns, squeeze=False, sharey=True).flatten()
    for axis, suite in zip(axes, suites, strict=False):
        _kinds(axis, {name: by_suite[suite] for name, by_suite in scores.items()}, suite)
    for axis in axes[len(suites) :]:
        axis.axis("off")
    handles, labels = axes[0].get_legend_handles_labels()
    top.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    _bars(bottom.subplots(), shares)
    figure.savefig(path, dpi=150)


def _kinds(axis: "Axes", scores: Mapping[str, Scores], title: str) -> None:
    """Draw right answers by kind, with intervals; models stand side by side."""
    from matplotlib.ticker import PercentFormatter

    for index, (name, one) in enumerate(scores.items()):
        shift = 0.6 * (index - (len(scores) - 1) / 2) / max(1, len(scores))
        rights = [kind.right for kind in one.kinds.values()]
        means = [right.mean for right in rights]
        below = [max(0.0, right.mean - right.low) for right in rights]
        above = [max(0.0, right.high - right.mean) for right in rights]
        axis.errorbar(
            [place + shift for place in range(len(rights))], means, [below, above], ms=5, lw=0,
            elinewidth=1.3, marker=MARKERS[index % len(MARKERS)],
            color=COLORS[index % len(COLORS)], label=name,
        )  # fmt: skip
    kinds = list(next(iter(scores.values())).kinds)
    axis.set_xticks(range(len(kinds)), kinds, fontsize=8.5)
    axis.set_ylim(-0.04, 1.04)
    axis.yaxis.set_major_formatter(PercentFormatter(1))
    axis.set_title(f"{title}: right answers", fontsize=9.5)
    axis.grid(axis="y", color="0.9")
    axis.spines[["top", "right"]].set_visible(False)


def _bars(axis: "Axes", shares: Mapping[str, Mapping[str, float]]) -> None:
    """Draw what renamings do to the answer, a bar for each model."""
    from matplotlib.ticker import PercentFormatter

    names = list(shares)
    start = [0.0] * len(names)
    for outcome, color in zip(OUTCOMES, OUTCOME_COLORS, strict=True):
        widths = [shares[name][outcome] for name in names]
        axis.barh(names, widths, 0.7, start, color=color, label=LABELS.get(outcome, outcome))
        start = [left + width for left, width in zip(start, widths, strict=True)]
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(PercentFormatter(1))
    axis.set_title("what renaming a question does to the answer", fontsize=9.5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8.5)


__all__ = ["draw"]
