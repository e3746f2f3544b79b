"""Kinship by length of the story (CLUTRR, Figure 5 of FOLNet's paper), from scratch on a CPU.

    python benchmarks/clutrr.py --data data/clutrr --out clutrr           # train what is missing
    python benchmarks/clutrr.py --data data/clutrr --splits k234 --only bert,folnet --seeds 0,1

Every model is trained by its recipe training/folnet/clutrr-*-small for the same number of steps on
stories of k = 2, 3 (or 2, 3, 4) facts, and tested on k = 2 to 10. A run that was killed goes on
where it stopped, and finished ones are not run again.

Beside them stands what needs no story: the most frequent answer that training gives to the same
two people of a query. The names of training and of its test stories are the same, and so are many
pairs, so a model that keeps names can answer by heart.

Cells are accuracies in %, means over the seeds; +- is half the distance between the largest and
the smallest.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
from hf_alpha.evaluation.curves import COLORS, MARKERS
from hf_alpha.objectives.evaluate import ALL, Scores, evaluate_checkpoint
from hf_alpha.objectives.formats import read_format
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from runs import check_names, train_once

RECIPES = {
    "bert": "clutrr-bert-small",
    "folnet": "clutrr-small",
    "first_occurrence": "clutrr-names-small",
    "dual_part": "clutrr-dual_part-small",
    "streams": "clutrr-streams-small",
    "relational": "clutrr-relational-small",
}
LABELS = {
    "by_heart": "the same pair in training",
    "bert": "BERT",
    "folnet": "FOLNet",
    "first_occurrence": "FOLNet, people numbered",
    "dual_part": "FOLNet, people dual-part",
    "streams": "FOLNet, people streams",
    "relational": "FOLNet, people relational",
}
BY_HEART = "by_heart"
SPLITS = ("k23", "k234")

Cells = dict[str, list[float]]
"""Group, a number of facts or `all` -> accuracy of each seed, in %."""


def train(name: str, split: str, seed: int, args: argparse.Namespace) -> Path:
    """Train one model, or go on with it, unless it is done; returns its folder."""
    out = args.runs / f"{split}-{name}-{seed}"
    told = [
        f"data.train={args.data}/{split}_train.jsonl.gz",
        f"data.test={args.data}/{split}_test.jsonl.gz",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *args.change,
    ]
    recipe = read_recipe(f"folnet/{RECIPES[name]}", told)
    return train_once(recipe, out)


def test(folder: Path) -> Scores:
    """What a trained model answers on its test data, by number of facts."""
    recipe: Any = read_recipe(folder / RECIPE_FILE)
    scores = evaluate_checkpoint(folder, recipe.aim, recipe.data, recipe.data.test, by="k")
    scores.save(folder / "test")
    return scores


def by_heart(split: str, data: Path) -> Cells:
    """Accuracy of the most frequent answer to the same query, whatever its story says."""
    train, test = (
        read_format("clutrr", str(data / f"{split}_{part}.jsonl.gz")) for part in ("train", "test")
    )
    known: dict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        known[row["pair"]][row["target"]] += 1
    right: dict[str, list[bool]] = defaultdict(list)
    for row in sorted(test, key=lambda row: row["k"]):
        said = known[row["pair"]].most_common(1)
        right[str(row["k"])].append(bool(said) and said[0][0] == row["target"])
    right[ALL] = [answer for some in right.values() for answer in some]
    return {group: [100 * sum(some) / len(some)] for group, some in right.items()}


def accuracies(found: Sequence[Scores]) -> Cells:
    """Of one model on one split, each seed."""
    groups = found[0].metrics
    return {group: [100 * one.metrics[group]["accuracy"] for one in found] for group in groups}


def draw(results: Mapping[str, Mapping[str, Cells]], path: Path) -> None:
    """A panel for each split, a line for each model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(results), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(results), squeeze=False, sharey=True)[0]
    for panel, (split, models) in zip(panels, results.items(), strict=True):
        panel.axvspan(1.5, int(split[-1]) + 0.5, color="0.93", zorder=0)
        for name, cells in models.items():
            index = list(LABELS).index(name)
            facts = [group for group in cells if group != ALL]
            means = [sum(cells[group]) / len(cells[group]) for group in facts]
            panel.plot(
                [int(group) for group in facts], means, label=LABELS[name], ms=5, lw=1.8,
                color=COLORS[index], marker=MARKERS[index],
            )  # fmt: skip
        panel.set_title(f"trained on k = {', '.join(split[1:])} (shaded)", fontsize=10)
        panel.set_xlabel("facts in the story, k")
        panel.set_ylim(0, 100)
        panel.grid(axis="y", color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("right answers, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def tables(results: Mapping[str, Mapping[str, Cells]]) -> str:
    """A table for each split."""
    parts = []
    for split, models in results.items():
        groups = list(next(iter(models.values())))
        lines = [
            [
                LABELS[name],
                *(measure.mean_and_spread(cells[group]) for group in groups),
                f"{len(cells[ALL])}",
            ]
            for name, cells in models.items()
        ]
        heads = [f"trained on {split}; k:", *groups, "seeds"]
        parts.append(measure.table(heads, lines, words=[heads[0]]))
    return "\n\n".join(parts)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data/clutrr"), help="folder of CLUTRR's files")
    add("--splits", default=",".join(SPLITS), help=f"({','.join(SPLITS)})")
    add("--only", default=",".join(RECIPES), help=f"of {','.join(RECIPES)}")
    add("--seeds", default="0", help="seeds of weights and batches (0)")
    add("--steps", type=int, default=6000, help="of each model (6000)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--runs", type=Path, default=Path("runs/clutrr-folnet"), help="where models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    check_names(parser, "only", args.only, RECIPES)
    check_names(parser, "splits", args.splits, SPLITS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test, print and draw."""
    args = parse(argv)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    results: dict[str, dict[str, Cells]] = {}
    for split in args.splits.split(","):
        results[split] = {BY_HEART: by_heart(split, args.data)}
        for name in args.only.split(","):
            folders = [train(name, split, seed, args) for seed in seeds]
            results[split][name] = accuracies([test(folder) for folder in folders])
    if args.out:
        draw(results, (measure.RESULTS / args.out).with_suffix(".png"))
    measure.finish(tables(results), {"accuracy": results}, args.out, argv)


if __name__ == "__main__":
    main()
