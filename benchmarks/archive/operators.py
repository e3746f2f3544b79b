"""Operators, width of the binary branch and position scheme of FOLNet, on kinship (2023, Table 3).

    python benchmarks/archive/operators.py --data data/clutrr --seeds 0,1,2 --steps 1000 --out operators

The rows of Table 3 that say something about the network itself, each trained from scratch on
CLUTRR's facts (see benchmarks/clutrr.py, `--facts`) in place of GLUE, for the same number of steps.
People are words like all others. Widths of the binary branch are the paper's by the number of
heads: it has 12, these models 4. The BERT has one layer more, which gives it as many parameters as
the FOLNet with all operators. A run that was killed goes on where it stopped.

Cells are accuracies in %, means over the seeds; +- is half the distance between the largest and
the smallest. Stories with more facts than training has are in the column `longer`.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hf_alpha.recipe import read_recipe

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from clutrr import file_name, redraw_names, test
from runs import train_once

HEADS, PAPER_HEADS = 4, 12
CHANGES = (
    "training.per_device_train_batch_size=32",
    "training.learning_rate=1e-3",
    "training.train_sampling_strategy=group_by_length",
    "training.disable_tqdm=true",
    "training.save_strategy=steps",
    "training.save_steps=500",
    "training.eval_strategy=no",
    "training.logging_steps=250",
    "model.initializer_range=0.1",
)


@dataclass(frozen=True)
class Row:
    """A row of Table 3.

    Attributes:
        number: of its line in the paper.
        operators: letters of the unary and the binary ones; "" for BERT.
        positions: a position scheme.
        paper_width: of the paper's binary branch, D2.
        paper: average over GLUE, %.
    """

    number: int
    operators: str
    positions: str
    paper_width: int
    paper: float

    @property
    def width(self) -> int:
        """Width of the binary branch."""
        return round(self.paper_width * HEADS / PAPER_HEADS)

    @property
    def recipe(self) -> str:
        """Its recipe among those of training/folnet."""
        return "clutrr-small" if self.operators else "clutrr-bert-small"

    @property
    def changes(self) -> tuple[str, ...]:
        """What differs from the recipe."""
        if not self.operators:
            return ()
        unary, binary = self.operators.split(".")
        return (
            f"model.unary_operators={unary}",
            f"model.binary_operators={binary}",
            f"model.position_scheme={self.positions}",
            f"model.binary_hidden_size={self.width}",
            f"model.binary_intermediate_size={4 * self.width}",
            *(("model.max_position_embeddings=192",) if self.positions == "absolute" else ()),
        )


ROWS = (
    Row(2, "", "absolute", 0, 82.7),
    Row(3, "j.a", "absolute", 12, 84.0),
    Row(4, "j.a", "relative", 12, 84.7),
    Row(5, "j.a", "shaw", 12, 84.7),
    Row(6, "jm.ap", "relative", 12, 85.4),
    Row(7, "j.a", "relative", 16, 84.6),
    Row(8, "j.a", "relative", 32, 84.9),
    Row(9, "j.a", "relative", 64, 85.1),
    Row(10, "j.at", "relative", 64, 86.2),
    Row(11, "j.atp", "relative", 64, 86.7),
    Row(12, "jm.atp", "relative", 64, 87.3),
    Row(13, "jmc.atp", "relative", 64, 87.7),
    Row(14, "jmc.atp", "relative", 12, 85.6),
)
"""Without BERT's own figures (line 1) and the other loss of pretraining (line 15)."""


def accuracies(row: Row, seed: int, args: argparse.Namespace, data: Path) -> dict[str, float]:
    """Train a row's model, unless it is done, and return its right answers in %."""
    out = args.runs / f"{row.number}-{seed}"
    changes = [
        f"data.train={data / file_name(args.split, 'train')}",
        f"data.test={data / file_name(args.split, 'test')}",
        f"training.max_steps={args.steps}",
        f"training.seed={seed}",
        f"training.output_dir={out}",
        *CHANGES,
        *row.changes,
    ]
    scores = test(train_once(read_recipe(f"folnet/{row.recipe}", changes), out))
    most = int(args.split[-1])
    right: dict[str, list[float]] = {"as in training": [], "longer": []}
    for facts, metrics in scores.metrics.items():
        if facts.isdigit():
            group = "as in training" if int(facts) <= most else "longer"
            right[group].append(100 * metrics["accuracy"])
    means = {group: sum(each) / len(each) for group, each in right.items()}
    return means | {"all": 100 * scores.metrics["all"]["accuracy"]}


def write(results: dict[int, list[dict[str, float]]]) -> str:
    """The table of what is measured."""
    lines = []
    for row in ROWS:
        if seeds := results.get(row.number):
            cells = [measure.mean_and_spread([each[key] for each in seeds]) for key in seeds[0]]
            name = f"FOLNet: {row.operators}" if row.operators else "BERT"
            width = str(row.width) if row.operators else "-"
            lines.append([str(row.number), name, row.positions, width, *cells,
                          f"{row.paper}", str(len(seeds))])  # fmt: skip
    heads = ["line", "model", "positions", "D2", "as in training", "longer", "all"]
    return measure.table([*heads, "paper: GLUE", "seeds"], lines, words=["model", "positions"])


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data/clutrr"), help="folder of CLUTRR's files")
    add("--split", default="k234", choices=("k23", "k234"), help="(k234)")
    add("--seeds", default="0", help="(0)")
    add("--steps", type=int, default=1000, help="of each model (1000)")
    add("--runs", type=Path, default=Path("runs/operators"), help="where models are")
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Train, test and print; each seed of all rows before the next."""
    args = parse(argv)
    data = args.runs / "facts"
    redraw_names(args.data, args.split, 4, data, facts=True)
    results: dict[int, list[dict[str, float]]] = {}
    for seed in map(int, args.seeds.split(",")):
        for row in ROWS:
            results.setdefault(row.number, []).append(accuracies(row, seed, args, data))
    measure.finish(write(results), {"accuracy": results}, args.out, argv)


if __name__ == "__main__":
    main()
