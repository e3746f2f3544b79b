"""A-normal forms of more operations than training had: in one answer, and step by step.

    python benchmarks/normal_forms.py --out normal-forms
    python benchmarks/normal_forms.py --only step --seeds 0,1,2 --out normal-forms-seeds
    python benchmarks/normal_forms.py --only step --operations 16 --rows 60000 \\
        --steps 1500 --out normal-forms-16

Ways: `whole` (text/anf: a decoder), `encoder` (the same answers of an encoder-decoder, of the size
of `step`), `tail` (`whole` with 1 % of terms of 1.5 times the operations) and `step`
(text/anf_steps: an answer binds operations where they stand, and what is left is asked again). All
are trained on as many rows for as many steps. Cells are right forms in %, of terms with 2 to 9
names that training lacks. A run that was killed goes on where it stopped.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks.text.anf import check
from runs import check_names, train_once

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
import anf
import anf_steps
from pair_files import PairFiles, Size, letter_names

WAYS = ("whole", "encoder", "tail", "step")
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256}
MOST_NAMES = 9
"""Of a term that is tested, or one more than training had operations."""


def further(operations: int) -> tuple[int, ...]:
    """What is tested where training had at most so many operations."""
    return operations, operations + 1, operations + operations // 2, 2 * operations


def write(way: str, operations: int, rows: int, tests: int, folder: Path) -> None:
    """Write the pairs of training, and terms to test with, unless they are there."""
    if (folder / "new-names.jsonl").exists():
        return
    seen, unseen = letter_names(4 * operations + 1)
    sizes = [(names, size) for size in range(1, operations + 1) for names in range(2, size + 2)]
    tested_names = range(2, min(MOST_NAMES, operations + 1) + 1)
    if way == "tail":
        longer = [(names, operations * 3 // 2) for names in tested_names]
        sizes = sizes * (99 * len(longer) // len(sizes)) + longer
    tested: list[Size] = [(names, size) for size in further(operations) for names in tested_names]
    draw = anf_steps.draw if way == "step" else anf.draw
    PairFiles(draw, seen, unseen, sizes, tested).save(folder, rows, -(-tests // len(tested_names)))


def trained(way: str, seed: int, args: argparse.Namespace) -> Path:
    """The folder of a model, which is trained unless that is done."""
    data = args.runs / f"{way}-{args.operations}"
    out = args.runs / f"{way}-{args.operations}-{seed}"
    write(way, args.operations, args.rows, args.tests, data)
    changes: dict[str, Any] = {
        "data.train": data / "train.jsonl",
        "data.validation": 0.01,
        "data.test": data / "test.jsonl",
        "symbols.name.count": 6 * args.operations,
        "training.max_steps": args.steps,
        "training.seed": seed,
        "training.output_dir": out,
        "training.eval_strategy": "no",
        "training.train_sampling_strategy": "group_by_length",
        "training.disable_tqdm": "true",
    }
    if way == "encoder":
        changes |= {"model.is_encoder_decoder": "true", "model.d_model": 64}
        changes |= {"model.encoder_attention_heads": 4}
        changes |= {f"model.{key}": value for key, value in SIZES.items()}
    name = "text/anf_steps" if way == "step" else "text/anf"
    return train_once(read_recipe(name, [f"{key}={value}" for key, value in changes.items()]), out)


def right(way: str, folder: Path, args: argparse.Namespace) -> dict[str, list[int]]:
    """Number of operations -> whether the form of each term is right."""
    file = args.runs / f"whole-{args.operations}" / "new-names.jsonl"
    write("whole", args.operations, args.rows, args.tests, file.parent)
    rows = [json.loads(line) for line in file.open(encoding="utf-8")]
    terms = [row["source"] for row in rows]
    ask = anf_steps.asking(folder)
    forms = anf_steps.normal_forms(ask, terms) if way == "step" else ask(terms)
    found: dict[str, list[int]] = {}
    for row, form in zip(rows, forms, strict=True):
        found.setdefault(str(row["operations"]), []).append(int(check(row["source"], form)))
    return found


def measured(way: str, seed: int, args: argparse.Namespace) -> dict[str, list[int]]:
    """What a model of a way has right, found once."""
    folder = trained(way, seed, args)
    file = folder / "right.json"
    if not file.exists():
        file.write_text(json.dumps(right(way, folder, args)), encoding="utf-8")
    found: dict[str, list[int]] = json.loads(file.read_text(encoding="utf-8"))
    shares = {size: 100 * sum(marks) / len(marks) for size, marks in found.items()}
    print(way, seed, shares, file=sys.stderr, flush=True)
    return found


def table(results: Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]) -> str:
    """A line for each way: right forms by number of operations, all seeds."""
    sizes = [size for seeds in results.values() for size in next(iter(seeds.values()))]
    heads = ["operations", *dict.fromkeys(sizes), "seeds"]
    lines = []
    for way, seeds in results.items():
        shares = [[sum(found[size]) / len(found[size]) for found in seeds.values()]
                  for size in heads[1:-1]]  # fmt: skip
        lines.append([way, *map(measure.share_and_spread, shares), str(len(seeds))])
    return measure.table(heads, lines)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = measure.parser_of(__doc__)
    add = parser.add_argument
    add("--only", default=",".join(WAYS), help="of these")
    add("--operations", type=int, default=8, help="most of training (8)")
    add("--steps", type=int, default=1000, help="of training (1000)")
    add("--rows", type=int, default=20_000, help="of training (20000)")
    add("--tests", type=int, default=100, help="terms of each size, at least (100)")
    add("--seeds", default="0", help="with commas (0)")
    add("--runs", type=Path, default=Path("runs/normal-forms"), help="where models go")
    args = parser.parse_args(argv)
    check_names(parser, "only", args.only, WAYS)
    return args


def main() -> None:
    """Train, ask and print."""
    args = parse()
    results = {
        way: {seed: measured(way, int(seed), args) for seed in args.seeds.split(",")}
        for way in args.only.split(",")
    }
    measure.finish(table(results), results, args.out)


if __name__ == "__main__":
    measure.run(main)
