"""Right answers of short runs by what AdaCos takes over a step's positions: the mean or the sum.

    python benchmarks/archive/adacos.py --only '*-mean,*-sum' --threads 1 --out adacos
    python benchmarks/archive/adacos.py --list
    python benchmarks/archive/adacos.py --only 'ltl-dual_part-fixed' --data renamed --runs runs/renamed
        --change model.symbol_renaming=random

2410.17161 (Section 4.3) does not say which one. Runs of a few hundred steps on 60,000 problems of
at most 3 names (copying: 5), with a fixed scale of 10 beside them; with `--change`, other questions
of short runs too. A run that was killed goes on where it stopped, and what is done is not done
again; the file of results is written after each row.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from studies import encodings
from studies.copying import TASK as COPYING
from studies.models import Model
from studies.normalization import FIXED, Normalization
from studies.run import reproduce
from studies.sizes import CPU, Size
from studies.table import Row

SCALES = ("mean", "sum", FIXED)
ENCODINGS = ("dual_part", "learned", "relational")
FEW = ("training.eval_strategy=no", "training.warmup_steps=70")
SHORT = replace(
    CPU,
    name="short",
    text="Runs of a few hundred steps.",
    most_names=5,
    per_names=60,
    per_cell=3,
    copy_lengths=20,
    steps={"propositional": 700, "ltl": 700, COPYING: 400},
    changes={
        COPYING: FEW,
        **{
            task: (*FEW, "data.generate.num_samples=60000", f"data.path=runs/data/{task}-short")
            for task in encodings.LOGIC
        },
    },
)


class AdaCos(Normalization):
    """Models whose scale is adapted by the mean, by the sum, or not at all.

    Args:
        data: as in [`Model`].
        changes: to all recipes.
    """

    name = "adacos"
    title = "AdaCos by the mean or the sum"
    summary = "AdaCos by the mean or the sum over positions (2410.17161, Section 4.3)"
    heads: ClassVar[tuple[str, ...]] = ("model", "scale")

    def __init__(self, data: Any = "normal", changes: Sequence[str] = ()):
        self.data, self.changes = data, changes

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(
                f"{task}-{encoding}-{scale}",
                task,
                (encodings.ENCODINGS[encoding], scale),
                self.model(task, encoding, scale),
            )
            for encoding in ENCODINGS
            for task in ("ltl", "propositional", COPYING)
            for scale in SCALES
        ]

    def model(self, task: str, encoding: str, scale: str) -> Model:
        """The model of a task whose logits are scaled so."""
        usual = encodings.model(task, encoding, self.data)
        adacos = "false" if scale == FIXED else scale
        scaled = (f"model.adacos={adacos}", "model.logit_scale=null")
        changes = (*usual.changes, *scaled, *self.changes)
        return Model(f"{task}-{encoding}-{scale}", usual.recipe, changes, self.data)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default="", help="rows, or patterns such as '*-sum', with commas (all)")
    add("--list", action="store_true", help="print the names of the rows, and do nothing")
    add("--data", default="normal", choices=encodings.DATA, help="of training (normal)")
    add("--steps", type=int, help="of all runs (700, for copying 400)")
    add("--change", action="append", default=[], metavar="KEY=VALUE", help="to all recipes")
    add("--seeds", default="0,1,2", help="of weights and batches (0,1,2)")
    add("--runs", type=Path, default=Path("runs/adacos"), help="folder of models and of rows done")
    add("--threads", type=int, help="CPU threads of torch")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, size: Size = SHORT) -> None:
    """Measure what is missing and print the table."""
    args = parse(argv)
    table = AdaCos(args.data, args.change)
    if args.steps:
        size = replace(size, steps=dict.fromkeys(size.steps, args.steps))
    if args.list:
        print("\n".join(row.name for row in table.rows(size)))
        return
    if args.threads:
        torch.set_num_threads(args.threads)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    only = args.only.split(",") if args.only else []
    results = reproduce(table, size, seeds, only, args.runs, args.runs)
    measured = {row: results.measured(row) for row in results.rows}
    measure.finish(table.render(results, size), {"rows": measured}, args.out, argv, "cpu")


if __name__ == "__main__":
    main()
