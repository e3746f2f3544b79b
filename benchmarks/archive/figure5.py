"""Time to make an LTL pair and to check a trace, by length and number of symbols: Spot and ours.

    python benchmarks/archive/figure5.py --out figure5
    python benchmarks/archive/figure5.py --lengths 10,20 --symbols 1,5 --formulas 2 --limit 0.5

Figure 5 of the first paper (2410.17161) with absolute times: there, checking slows down by orders
of magnitude as formulas get longer and have more symbols. For each cell a few satisfiable formulas
of exactly that length are drawn over that many symbols; Spot makes a trace of each by its default
translation, as DeepLTL does, and checks ours by its default containment check, ours are made and
checked by the package. A call of Spot that takes longer than the limit is ended and counts as the
limit, so that the true means of Spot are above those that are shown. A fraction of a millisecond of
each is the way to its process and back.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_alpha.logic.formula_task import _read
from hf_alpha.logic.ltl import LTLTask, spot_worker
from hf_alpha.logic.ltl.trace import read_trace
from hf_alpha.tasks.solver_process import SolverProcess

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASK = LTLTask()
SOLVER = SolverProcess(Path(spot_worker.__file__))
WORKS = {"generation": "to make a pair", "check": "to check a trace"}
SIDES = {"Spot": "Spot, default", "ours": "ours"}
REPEATS = 5


def spot_seconds(limit: float, name: str, *arguments: Any) -> tuple[float, bool]:
    """Seconds of one call, and whether it was ended."""
    SOLVER.call("is_satisfiable", 10.0, ["1"])  # starts a process where there is none
    start = time.perf_counter()
    try:
        SOLVER.call(name, limit, *arguments)
    except TimeoutError:
        return limit, True
    return time.perf_counter() - start, False


def our_seconds(work: Any) -> float:
    """The median of a few times: ten microseconds are soon doubled by something else."""
    times = []
    for _ in range(REPEATS):
        _read.cache_clear()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure_cell(symbols: int, length: int, options: argparse.Namespace) -> dict[str, Any]:
    rng = random.Random(f"{symbols} {length}")
    names = TASK.default_symbols(symbols)
    seconds: dict[str, dict[str, list[float]]] = {
        work: {side: [] for side in SIDES} for work in WORKS
    }
    num_stopped = num_formulas = 0
    while num_formulas < options.formulas:
        tokens = TASK.draw(rng, length, names, constant_priority=1.0)
        answer = TASK.target_of(tokens)
        if answer is None:
            continue
        num_formulas += 1
        problem, trace = TASK.write(tokens), read_trace(answer)
        assert trace is not None
        steps = [list(step) for step in trace.steps]
        for work, call in (
            ("generation", ("find_trace", tokens, [])),
            ("check", ("holds", tokens, steps, trace.loop, True)),
        ):
            spot_time, stopped = spot_seconds(options.limit, *call)
            seconds[work]["Spot"].append(spot_time)
            num_stopped += stopped
        seconds["generation"]["ours"].append(our_seconds(lambda f=tokens: TASK.target_of(f)))
        seconds["check"]["ours"].append(
            our_seconds(lambda p=problem, a=answer: TASK.check(p, a, solver="lasso"))
        )
    return {"symbols": symbols, "length": length, "ended": num_stopped, "seconds": seconds}


def mean(cell: dict[str, Any], work: str, side: str) -> float:
    return statistics.fmean(cell["seconds"][work][side])


def show(cells: Sequence[dict[str, Any]], options: argparse.Namespace) -> str:
    rows = []
    for cell in cells:
        row = [str(cell["symbols"]), str(cell["length"])]
        for work in WORKS:
            theirs, ours = (mean(cell, work, side) for side in SIDES)
            row += [f"{1e3 * theirs:,.1f}", f"{1e3 * ours:,.3f}", f"{theirs / ours:,.0f}x"]
        rows.append([*row, str(cell["ended"])])
    columns = ["symbols", "length"]
    for work in WORKS:
        columns += [f"{work}: Spot, ms", "ours, ms", "ratio"]
    return (
        f"Means over {options.formulas} formulas a cell; calls of Spot that took more than "
        f"{options.limit:g} s were ended and count as that.\n\n"
        + measure.table([*columns, "ended"], rows)
    )


def make_figure(cells: Sequence[dict[str, Any]], options: argparse.Namespace) -> "Figure":
    """The picture: a panel for each kind of work, a colour for each number of symbols."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    counts = options.symbols
    shades = colormaps["viridis_r"]
    colors = {k: shades(0.15 + 0.85 * i / max(1, len(counts) - 1)) for i, k in enumerate(counts)}
    styles = {"Spot": {"ls": "-", "marker": "o"}, "ours": {"ls": "--", "marker": "s"}}
    for axes, (work, title) in zip(panels, WORKS.items(), strict=True):
        for count in counts:
            row = [cell for cell in cells if cell["symbols"] == count]
            lengths = [cell["length"] for cell in row]
            for side, style in styles.items():
                means = [mean(cell, work, side) for cell in row]
                axes.plot(lengths, means, color=colors[count], markersize=4, **style)
        axes.axhline(options.limit, color="0.6", lw=0.8, ls=":")
        axes.set(yscale="log", title=f"Time {title}", xlabel="formula length (tokens)")
        axes.set_xticks(options.lengths)
        axes.grid(which="major", color="0.9")
    panels[0].set_ylabel("mean seconds")
    panels[0].annotate("limit of a call of Spot", (options.lengths[0], options.limit),
                       xytext=(0, 3), textcoords="offset points", color="0.4", size=8)  # fmt: skip
    handles = [Line2D([], [], color="0.3", label=SIDES[side], **style) for side, style in
               styles.items()]  # fmt: skip
    handles += [
        Line2D([], [], color=colors[k], lw=3, label=f"{k} symbol{'s' * (k > 1)}") for k in counts
    ]
    figure.legend(handles=handles, loc="outside right center", frameon=False)
    return figure


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", type=numbers, default=[10, 20, 30, 40, 50])
    parser.add_argument("--symbols", type=numbers, default=[1, 3, 5, 7, 10])
    parser.add_argument("--formulas", type=int, default=20, help="in a cell")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds for a call of Spot")
    measure.add_out(parser)
    options = parser.parse_args(arguments)
    cells = [
        measure_cell(symbols, length, options)
        for symbols in options.symbols
        for length in options.lengths
    ]
    measure.finish(show(cells, options), cells, options.out, arguments)
    if options.out is not None:
        path = (measure.RESULTS / options.out).with_suffix(".png")
        make_figure(cells, options).savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1:])
