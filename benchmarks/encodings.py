"""Every encoding and renaming on one task: the same data, steps and test, several seeds.

    python benchmarks/encodings.py --out encodings              # train what is missing, evaluate
    python benchmarks/encodings.py --only dual_part,streams --seeds 0
    python benchmarks/encodings.py --only '' --beside encodings,encodings-relational  # no training

Models see at most 3 symbols and 15 tokens in training (`full_vocabulary` 8 symbols) and are tested
on formulas with 1 to 8 symbols, the same ones for all, every answer checked. Each starts from the
recipe propositional/NAME-small, with `--steps` steps and the learning rate schedule cut to them.
Converted models start from `learned` of the same seed and are trained for
`--tuning-steps` more. A run that was killed goes on where it stopped.

It made the figures of docs/results.md, with converted models, AdaCos and the spread over draws.
The papers' table of encodings and data is made by `python -m benchmarks.studies encodings`.

Cells are means over the seeds; +- is half the distance between the largest and the smallest. With
`--draws N`, the last table has the spread of `dual_part` over N draws of the random parts.
`--beside` puts rows of earlier results, on the same formulas, into table and picture.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure
from hf_alpha.answer.models import Model
from hf_alpha.cli.options import integers
from hf_alpha.convert import convert_checkpoint
from hf_alpha.evaluation.compare import compare, draw_problems
from hf_alpha.evaluation.report import Report
from hf_alpha.generation import extend_vocabulary
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks import get_task
from runs import train_once
from studies.spread import sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRAINED = 3  # symbols at most, in training


@dataclass(frozen=True)
class Entry:
    """A row of the table: the recipe it starts from, and changes to it."""

    label: str
    recipe: str
    changes: tuple[str, ...] = ()


ENTRIES = {
    "learned": Entry("vanilla", "learned"),
    "full_vocabulary": Entry("full vocabulary", "full_vocabulary"),
    "alpha_renaming": Entry("alpha-renaming", "alpha_renaming"),
    "canonical": Entry("canonical", "canonical"),
    "dual_part": Entry("dual_part", "dual_part"),
    "dual_part_adacos": Entry("dual_part, AdaCos", "dual_part", ("model.adacos=true",)),
    "streams": Entry("streams", "streams"),
    # As for the others, the last step counts.
    "relational": Entry(
        "relational",
        "relational",
        ("data.validation={}", "training.load_best_model_at_end=false"),
    ),
    "converted": Entry("vanilla to streams", "converted"),
    "relational-converted": Entry("vanilla to relational", "relational-converted"),
    "dual_part-converted": Entry("vanilla to dual_part", "dual_part-converted"),
}
CONVERTED = ("converted", "relational-converted", "dual_part-converted")
NONE = "-"  # outside the vocabulary


# -- training -------------------------------------------------------------------------------------


def train(name: str, seed: int, args: argparse.Namespace) -> None:
    """Train one model, or go on with it, as its recipe says but for the steps."""
    out, entry = args.runs / f"{name}-{seed}", ENTRIES[name]
    changes = [*entry.changes, *args.change]
    changes += [f"training.seed={seed}", f"training.output_dir={out}"]
    if name in CONVERTED:
        start = convert(name, args.runs / f"learned-{seed}", args.runs / f"{name}-{seed}-start")
        changes = [change for change in changes if not change.startswith("model.")]
        changes += [f"checkpoint={start}", f"training.max_steps={args.tuning_steps}"]
    else:
        changes.append(f"training.max_steps={args.steps}")
    recipe = read_recipe(f"{args.task}/{entry.recipe}-small", changes)
    if recipe.data.path:
        recipe.data.generate["equivalence"] = args.equivalence
    train_once(recipe, out)


def convert(name: str, vanilla: Path, out: Path) -> Path:
    """Convert a trained vanilla model, once."""
    if not (out / "config.json").is_file():
        if name == "converted":
            sides = ("encoder", "decoder")
            convert_checkpoint(
                vanilla, out, actual="a", placeholder="b", add_aggregated_attention=sides
            )
        elif name == "relational-converted":
            convert_checkpoint(vanilla, out, "relational")
        else:
            convert_checkpoint(vanilla, out, "dual_part")
    return out


# -- testing --------------------------------------------------------------------------------------


def test(labels: Mapping[str, str], seed: int, args: argparse.Namespace) -> dict[str, Report]:
    """Evaluate the models of one seed, all on the same formulas: name -> what its row is called."""
    entrants = []
    for name, label in labels.items():
        model, tokenizer = load_checkpoint(args.runs / f"{name}-{seed}")
        entrants.append(Model(label, model, tokenizer))
    _, reports = compare(
        entrants,
        get_task(args.task),
        problems(args),
        args.runs / f"evaluation-{seed}",
        covariance=args.covariance,
    )
    return {report.model: report for report in reports}


def problems(args: argparse.Namespace, seed: int = 0) -> list[dict[str, Any]]:
    """The formulas that all models are tested on; with another seed, others."""
    return draw_problems(
        get_task(args.task),
        args.runs / f"problems-{seed}",
        integers(args.symbols),
        integers(args.sizes),
        args.samples,
        seed,
        equivalence=args.equivalence,
    )


def spread(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Share of right answers of `dual_part` by draw: of each number of symbols, and of all."""
    model, tokenizer = load_checkpoint(args.runs / f"dual_part-{seed}")
    extend_vocabulary(model, tokenizer, max(integers(args.symbols)))
    tested = problems(args)
    test_problems = {row["problem"] for row in tested}
    # The rule chooses by other formulas, with names of the whole vocabulary like those of the test.
    others = problems(args, seed=1)
    folder = args.runs / f"draws-{seed}"
    result = sensitivity(
        model,
        tokenizer,
        args.task,
        tested,
        [row for row in others if row["problem"] not in test_problems],
        seeds=range(args.draws),
        folder=folder,
    )["correct"]
    chosen = next(d for d, v in result.values.items() if v == result.median_rule)
    reports = [Report.load(folder / f"draw-{draw}") for draw in range(args.draws)]
    rates = [[*by_symbols(report), report.overall.correct] for report in reports]
    return {"rates": rates, "median_rule": chosen}


def by_symbols(report: Report) -> list[float]:
    """Share of right answers for each number of symbols."""
    return [rates.correct for _, rates in sorted(report.by_num_symbols.items())]


# -- tables and picture ---------------------------------------------------------------------------


def summarise(seeds: Mapping[int, Mapping[str, Report]], labels: Sequence[str]) -> dict[str, Any]:
    """Rates of all seeds, as numbers."""
    reports_of = {label: [r[label] for r in seeds.values() if label in r] for label in labels}
    random_reports = reports_of[labels[-1]]
    reports_of[labels[-1]] = random_reports[:1]  # of all seeds the same formulas
    return {
        label: {
            "correct": [[*by_symbols(report), report.overall.correct] for report in reports],
            "exact": [report.overall.exact for report in reports],
            "covariance": [_covariance(report) for report in reports],
            "outside": [
                k for k, rates in sorted(reports[0].by_num_symbols.items()) if rates.is_outside
            ],
        }
        for label, reports in reports_of.items()
    }


def saved(result: str) -> dict[str, Any]:
    """The rows of an earlier result, as `summarise` made them."""
    data = measure.kept(result)
    if data is None:
        raise SystemExit(f"the store has no result {result!r}")
    return dict(data["models"])


def merged(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows of several results on the same formulas, those of random answers once and last."""
    chance = [{label: row for label, row in part.items() if _is_random(label)} for part in parts]
    if any(rows != chance[0] for rows in chance):
        raise SystemExit("the results are of other formulas: random answers are right elsewhere")
    names = [label for part in parts for label in part if not _is_random(label)]
    if len(names) > len(set(names)):
        raise SystemExit("two of the results have a row of the same name")
    rows = {label: row for part in parts for label, row in part.items()}
    return {label: row for label, row in rows.items() if not _is_random(label)} | chance[0]


def _is_random(label: str) -> bool:
    return label.startswith("random ")


def _covariance(report: Report) -> float | None:
    return None if report.alpha_covariance is None else report.alpha_covariance.mean


def accuracy_table(summary: Mapping[str, Any], symbols: Sequence[int]) -> str:
    """Correct answers by number of symbols, in per cent."""
    columns = [
        "correct, %; symbols:",
        *map(str, symbols),
        "all",
        "exact",
        "alpha-covariance",
        "seeds",
    ]
    lines = []
    for label, row in summary.items():
        cells = [
            NONE if k in row["outside"] else measure.share_and_spread(values)
            for k, values in zip([*symbols, None], zip(*row["correct"], strict=True), strict=True)
        ]
        measured = [value for value in row["covariance"] if value is not None]
        covariance = measure.share_and_spread(measured) if measured else NONE
        lines.append(
            [
                label,
                *cells,
                measure.share_and_spread(row["exact"]),
                covariance,
                str(len(row["exact"])),
            ]
        )
    return measure.table(columns, lines)


def draws_table(results: Mapping[int, Mapping[str, Any]], symbols: Sequence[int]) -> str:
    """Spread over draws of the random parts, in per cent."""
    lines = []
    for seed, data in results.items():
        columns = [[100 * value for value in column] for column in zip(*data["rates"], strict=True)]
        kinds = {
            "minimum": min,
            "mean": statistics.fmean,
            "maximum": max,
            "deviation": statistics.stdev,
            "median rule": lambda column, chosen=data["median_rule"]: column[chosen],
        }
        lines += [
            [f"seed {seed}: {kind}", *(f"{of(column):.1f}" for column in columns)]
            for kind, of in kinds.items()
        ]
    return measure.table(["dual_part, correct, %; symbols:", *map(str, symbols), "all"], lines)


def make_figure(summary: Mapping[str, Any], symbols: Sequence[int]) -> "Figure":
    """Correct answers against number of symbols, a line for each model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(symbols[0] - 0.2, TRAINED + 0.5, color="0.94", zorder=0)
    axes.text(symbols[0] - 0.1, 2, "symbols seen in training", color="0.45", fontsize=9)
    for number, (label, row) in enumerate(summary.items()):
        _line(axes, symbols, number, label, row)
    axes.set(xlabel="symbols in the formula", ylabel="correct answers, %", ylim=(0, 102))
    axes.set_xlim(symbols[0] - 0.2, symbols[-1] + 0.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def _line(
    axes: "Axes", symbols: Sequence[int], number: int, label: str, row: Mapping[str, Any]
) -> None:
    columns = list(zip(*row["correct"], strict=True))[:-1]  # the last is that of all formulas
    shown = [
        (k, [100 * value for value in values])
        for k, values in zip(symbols, columns, strict=True)
        if k not in row["outside"]
    ]
    x = [k for k, _ in shown]
    marker = "osD^v<PX*>dh"[number % 12]
    style: dict[str, Any] = {"color": f"C{number}", "marker": marker}
    if _is_random(label):
        style = {"color": "black", "linestyle": ":"}
    axes.plot(x, [statistics.fmean(v) for _, v in shown], label=label, markersize=5, **style)
    low, high = [min(v) for _, v in shown], [max(v) for _, v in shown]
    axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)


# -- the command ----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--task", default="propositional", help="(propositional)")
    add("--only", default=",".join(ENTRIES), help=f"of {','.join(ENTRIES)}")
    add("--seeds", default="0,1", help="seeds of weights and batches (0,1)")
    add("--once", default="", help="of these models the first seed only")
    add("--beside", default="", help="earlier results whose rows are shown as well")
    add("--steps", type=int, default=6000, help="training steps (6000)")
    add("--tuning-steps", type=int, default=2000, help="of converted models, beside (2000)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--equivalence", default="renaming", help="what splits count as one (renaming)")
    add("--symbols", default="1-8", help="in the test (1-8)")
    add("--sizes", default="1-15", help="in the test (1-15)")
    add("--samples", type=int, default=200, help="formulas for each number of symbols (200)")
    add("--covariance", type=int, default=10, help="of these, for alpha-covariance (10)")
    add("--draws", type=int, default=10, help="of random parts; 0 for none (10)")
    add("--runs", type=Path, default=Path("runs/comparison"), help="where models and reports are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def compared(names: Sequence[str], args: argparse.Namespace) -> dict[str, Any]:
    """Train what is missing, and test: the rows of these models."""
    seeds, once = integers(args.seeds), args.once.split(",")
    plan = {
        seed: [name for name in names if seed == seeds[0] or name not in once] for seed in seeds
    }
    for seed, chosen in plan.items():
        for name in chosen:
            train(name, seed, args)
    reports = {
        seed: test({name: ENTRIES[name].label for name in chosen}, seed, args)
        for seed, chosen in plan.items()
    }
    labels = [*(ENTRIES[name].label for name in names), get_task(args.task).random_name]
    return summarise(reports, labels)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    args = parse(argv)
    names, beside = ([*filter(None, x.split(","))] for x in (args.only, args.beside))
    symbols = integers(args.symbols)
    if unknown := set(names) - set(ENTRIES):
        raise SystemExit(f"{sorted(unknown)[0]!r} is none of {', '.join(ENTRIES)}")
    if not names and not beside:
        raise SystemExit("--only and --beside name nothing")
    parts = [saved(result) for result in beside]
    summary = merged([*parts, compared(names, args)] if names else parts)
    data: dict[str, Any] = {"models": summary}
    text = accuracy_table(summary, symbols)
    if args.draws and "dual_part" in names:
        data["draws"] = {seed: spread(seed, args) for seed in integers(args.seeds)}
        text += "\n\n" + draws_table(data["draws"], symbols)
    if args.out:
        path = measure.picture(args.out)
        path.parent.mkdir(parents=True, exist_ok=True)
        make_figure(summary, symbols).savefig(path)
    measure.finish(text, data, args.out, argv)


if __name__ == "__main__":
    main()
