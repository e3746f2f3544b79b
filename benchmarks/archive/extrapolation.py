"""What keeps the right answers with more names than training had, while training goes on?

    python benchmarks/archive/extrapolation.py --task ltl --encodings relational,streams --out extrapolation

One recipe, TASK/ENCODING-small, at most 3 names in training, and changes of it: dropout, no and
much weight decay, 1 % more training formulas that have 4 to 8 names. Every checkpoint answers the
same new formulas with 1 to 8 names, and every answer is checked. As neighbouring checkpoints
differ, rows have means over the checkpoints of the second half of training, and what the last one
and the mean of their weights reach. Runs that are finished are not trained again. The result
`extrapolation-gates` was measured with `START = 0.5` in hf_alpha/modeling/relations.py.
"""

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers.utils import SAFE_WEIGHTS_NAME

from hf_alpha.answer.models import Model
from hf_alpha.cli.options import integers
from hf_alpha.data.keys import SPLITS
from hf_alpha.evaluation.compare import compare, draw_problems
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks import get_task

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from checkpoints import checkpoints, rates
from runs import check_names, train_once

TRAINED, TESTED = 3, 8  # names at most
MIXED = "more names"
VARIANTS: dict[str, tuple[str, ...]] = {
    "recipe": (),
    "dropout": ("model.dropout=0.1",),
    "no decay": ("training.weight_decay=0",),
    "much decay": ("training.weight_decay=1",),
    MIXED: (f"num_symbols={TESTED}",),
}


def train(encoding: str, variant: str, seed: int, args: argparse.Namespace) -> Path:
    """Train one run, or go on with it; all its checkpoints stay."""
    out = args.runs / f"{encoding}-{variant.replace(' ', '-')}-{seed}"
    changes = [
        *args.change,
        "data.validation={}",
        "training.load_best_model_at_end=false",
        f"training.save_steps={args.every}",
        f"training.eval_steps={args.steps}",
        "training.save_total_limit=null",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *VARIANTS[variant],
    ]
    recipe = read_recipe(f"{args.task}/{encoding}-small", changes)
    if variant == MIXED:
        data = recipe.data.generate
        rows = round(args.share * SPLITS["train"] * data["num_samples"])
        recipe.data.path = f"{recipe.data.path}-up-to-{TESTED}"
        data |= {"many_symbols": rows, "up_to_symbols": TESTED}
    return train_once(recipe, out)


def averaged(folders: Sequence[Path]) -> Model:
    """A model with the mean of the weights of several checkpoints."""
    model, tokenizer = load_checkpoint(folders[-1])
    weights = [load_file(folder / SAFE_WEIGHTS_NAME) for folder in folders]
    means = {name: torch.stack([w[name] for w in weights]).mean(0) for name in weights[0]}
    model.load_state_dict(means, strict=False)  # tied weights are saved once
    return Model(f"mean of {len(folders)}", model, tokenizer)


def test(run: Path, args: argparse.Namespace) -> dict[str, list[float]]:
    """Share of right answers for each number of names: of each checkpoint, and of mean weights."""
    folders = checkpoints(run)
    late = [folder for step, folder in folders.items() if 2 * step >= args.steps]
    entrants = [
        *(Model(f"step {step}", *load_checkpoint(f)) for step, f in folders.items()),
        averaged(late),
    ]
    task = get_task(args.task)
    symbols, sizes = integers(args.symbols), integers(args.sizes)
    rows = draw_problems(task, args.runs / "problems", symbols, sizes, args.samples)
    out = args.runs / "evaluation" / run.name
    _, reports = compare(entrants, task, rows, out, covariance=0)
    return {e.name: rates(report) for e, report in zip(entrants, reports, strict=False)}


def summary(tested: Mapping[str, Sequence[float]], args: argparse.Namespace) -> dict[str, Any]:
    """The rows of the table that one run gives."""
    steps = {int(name.split()[1]): shares for name, shares in tested.items() if "step" in name}
    late = [shares for step, shares in steps.items() if 2 * step >= args.steps]
    return {
        "late": [statistics.fmean(column) for column in zip(*late, strict=True)],
        "all": [statistics.fmean(shares) for shares in steps.values()],
        "last": statistics.fmean(steps[max(steps)]),
        "mean of weights": statistics.fmean(tested[next(n for n in tested if "mean" in n)]),
    }


def _table(data: Mapping[str, Mapping[str, Any]], symbols: Sequence[int]) -> str:
    columns = ["correct, %; symbols:", *map(str, symbols), "all", "last", "mean of weights", "runs"]
    lines = []
    for name, seeds in data.items():
        rows = [seed["summary"] for seed in seeds.values()]
        late = [statistics.fmean(column) for column in zip(*(r["late"] for r in rows), strict=True)]
        alone = [statistics.fmean(row["late"]) for row in rows]
        cells = [f"{100 * share:.1f}" for share in late]
        ends = [[row[key] for row in rows] for key in ("last", "mean of weights")]
        cells += map(measure.share_and_spread, [alone, *ends])
        lines.append([name, *cells, str(len(rows))])
    return measure.table(columns, lines)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--task", default="ltl", help="(ltl)")
    add("--encodings", default="relational,streams", help="(relational,streams)")
    add("--variants", default=",".join(VARIANTS), help=f"of {', '.join(VARIANTS)}")
    add("--seeds", default="0,1", help="seeds of weights and batches (0,1)")
    add("--steps", type=int, default=3000, help="training steps (3000)")
    add("--every", type=int, default=500, help="steps between checkpoints (500)")
    add("--share", type=float, default=0.01, help="of more formulas, with more names (0.01)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="of every recipe")
    add("--symbols", default=f"1-{TESTED}", help=f"in the test (1-{TESTED})")
    add("--sizes", default="1-15", help="in the test (1-15)")
    add("--samples", type=int, default=100, help="problems for each number of names (100)")
    add("--runs", type=Path, default=Path("runs/extrapolation"), help="where models are")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    check_names(parser, "variants", args.variants, VARIANTS)
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print."""
    args = parse(argv)
    data: dict[str, dict[str, Any]] = {}
    for encoding in args.encodings.split(","):
        for variant in args.variants.split(","):
            for seed in integers(args.seeds):
                shares = test(train(encoding, variant, seed, args), args)
                entry = {"summary": summary(shares, args), "checkpoints": shares}
                data.setdefault(f"{encoding}, {variant}", {})[str(seed)] = entry
    measure.finish(_table(data, integers(args.symbols)), data, args.out, argv)


if __name__ == "__main__":
    main()
