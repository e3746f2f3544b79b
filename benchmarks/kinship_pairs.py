"""Does a model know kinship, or the pairs of relations that its training has?

    python benchmarks/kinship_pairs.py --data FOLDER_OF_CLUTRR --out kinship-pairs
    python benchmarks/kinship_pairs.py --data FOLDER_OF_CLUTRR --runs RUNS --seeds 0,1,2 \
        --out kinship-pairs-in-turns

Families are drawn (examples/tasks/family_trees.py). Two facts, "the R of Ann is Bob . the S of Bob
is Cleo .", are asked about if in all these families Cleo has the same relation to Ann, one of those
that the model knows; where Cleo can be Ann, somebody else is meant. Every pair is asked in both
orders of its facts. Pairs are those that CLUTRR's training tells as a story of two facts, those
that stories about families tell (examples/tasks/kinship.py), and those that are held out: no story
of either has the two facts one after the other.

With `--runs`, small models are trained, in which all pairs that CLUTRR does not tell are held out,
a quarter of them in each of four turns: by the recipe folnet/kinship-small, on stories of two and
three facts, as many of CLUTRR's training as about families. A run that was killed goes on where it
stopped, and finished ones are not run again.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import measure
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import read_recipe
from runs import train_once

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
from family_trees import Pair, answers
from kinship import TURNS, convert, pairs_held_out, teller

MODEL = measure.ROOT / "model_cards" / "kinship-folnet"


TOLD = "CLUTRR's training tells them"
FAMILIES = "stories about families tell them"
HELD_OUT = "held out"
LONGEST, ORDERS = 3, 2
"""Facts of stories that small models are trained on, and copies of CLUTRR's."""


def groups(
    pairs: Mapping[Pair, str], training: Sequence[Mapping[str, Any]], turn: int = 0
) -> dict[str, list[Pair]]:
    """The pairs by what training has of them."""
    stories = {tuple(row["edge_types"]) for row in training}
    held_out = pairs_held_out(training, turn)
    found: dict[str, list[Pair]] = {TOLD: [], FAMILIES: [], HELD_OUT: []}
    for pair in pairs:
        found[TOLD if pair in stories else HELD_OUT if pair in held_out else FAMILIES].append(pair)
    return found


@torch.no_grad()
def asked(pairs: Sequence[Pair], folder: Path) -> dict[Pair, list[str]]:
    """What a model says of pairs, in both orders of their facts."""
    model, tokenizer = load_checkpoint(folder, answers=False)
    model.eval()
    texts = [
        " ".join(facts)
        for first, second in pairs
        for facts in both_orders(f"the {first} of Ann is Bob .", f"the {second} of Bob is Cleo .")
    ]
    batch = tokenizer(texts, ["Ann Cleo"] * len(texts), return_tensors="pt", padding=True)
    labels = model(**batch).logits.argmax(-1).view(-1, 2).tolist()
    said = [[model.config.id2label[label] for label in orders] for orders in labels]
    return dict(zip(pairs, said, strict=True))


def both_orders(one: str, two: str) -> Iterator[tuple[str, str]]:
    """Two facts, and the other way round."""
    yield one, two
    yield two, one


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Right answers of each group, and what is said of pairs where that is wrong."""
    lines, wrong = [], []
    for name, rows in results.items():
        right = [said == row["answer"] for row in rows for said in row["said"]]
        lines.append([name, str(len(rows)), f"{100 * sum(right) / len(right):.1f}"])
        for row in rows:
            if {*row["said"]} != {row["answer"]}:
                wrong.append([*row["pair"], row["answer"], ", ".join(Counter(row["said"]))])
    heads = ["pairs of relations", "pairs", "right, %"]
    more = ["somebody's", "has as", "who is their", "the model says"]
    return "\n\n".join([
        measure.table(heads, lines), "Not right in both orders:",
        measure.table(more, wrong, words=more),
    ])  # fmt: skip


def train(data: Path, runs: Path, turn: int, seed: int, steps: int) -> Path:
    """Train a small model without the pairs of a turn, unless that is done; return its folder."""
    training = measure.lines_of(data / "k23_train.jsonl.gz")
    folder, out = runs / f"without-{turn}", runs / f"{turn}-{seed}"
    if not (folder / "train.jsonl").exists():
        families = teller(pairs_held_out(training, turn))
        convert(training, folder / "train.jsonl", ["pairs"], ORDERS, families, LONGEST)
    changes = {
        "data.train": folder / "train.jsonl",
        "data.test": folder / "train.jsonl",  # is not asked: pairs are
        "data.validation": 0.01,
        "training.max_steps": steps,
        "training.seed": seed,
        "training.output_dir": out,
        "training.eval_strategy": "no",
    }
    return train_once(
        read_recipe("folnet/kinship-small", [f"{key}={value}" for key, value in changes.items()]),
        out,
    )


def answered(
    pairs: Mapping[Pair, str], training: Sequence[Mapping[str, Any]], folder: Path, turn: int = 0
) -> dict[str, list[dict[str, Any]]]:
    """What a model says of each group of pairs."""
    results = {}
    for name, chosen in groups(pairs, training, turn).items():
        said = asked(chosen, folder)
        results[name] = [
            {"pair": pair, "answer": pairs[pair], "said": said[pair]} for pair in chosen
        ]
    return results


def rates(rows: Mapping[int, Mapping[int, Mapping[str, Any]]]) -> dict[str, list[float]]:
    """Right answers of each group in %, of each seed, over all turns.

    Args:
        rows: seed -> turn -> group -> pairs.
    """
    shares: dict[str, list[float]] = {}
    for turns in rows.values():
        for group in (TOLD, FAMILIES, HELD_OUT):
            right = [
                said == row["answer"]
                for found in turns.values()
                for row in found[group]
                for said in row["said"]
            ]
            shares.setdefault(group, []).append(100 * sum(right) / len(right))
    return shares


def in_turns(args: argparse.Namespace, pairs: Mapping[Pair, str], training: Any) -> Any:
    """Train and ask the small models; return the table and its numbers."""
    rows: dict[int, dict[int, Any]] = {}
    for seed in map(int, args.seeds.split(",")):
        for turn in map(int, args.turns.split(",")):
            folder = train(args.data, args.runs, turn, seed, args.steps)
            rows.setdefault(seed, {})[turn] = answered(pairs, training, folder, turn)
            found = rates({seed: {turn: rows[seed][turn]}})
            print(f"seed {seed}, turn {turn}: {found}", file=sys.stderr, flush=True)
    lines = []
    for group, shares in rates(rows).items():
        counts = {len(found[group]) for turns in rows.values() for found in turns.values()}
        number = " or ".join(map(str, sorted(counts)))
        by_turn = [
            f"{rates({seed: {turn: found}})[group][0]:.1f}"
            for seed, turns in rows.items()
            for turn, found in turns.items()
        ]
        cells = [measure.mean_and_spread(shares), ", ".join(by_turn), str(len(shares))]
        lines.append([group, number, *cells])
    heads = ["pairs of relations", "of a turn", "right, %", "of each training, %", "seeds"]
    asked_of = {
        f"seed {seed}": {f"turn {turn}": found for turn, found in turns.items()}
        for seed, turns in rows.items()
    }
    data = {"rates": rates(rows), "steps": args.steps, "rows": asked_of}
    return measure.table(heads, lines), data


def main(argv: Sequence[str] | None = None) -> None:
    """Ask and print."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("--data", type=Path, default=Path("data/clutrr"), help="CLUTRR's files")
    parser.add_argument("--model", type=Path, default=MODEL, help="a model that tells classes")
    parser.add_argument("--runs", type=Path, help="train small models there, in place of --model")
    parser.add_argument("--seeds", default="0", help="of small models (0)")
    turns = ",".join(map(str, range(TURNS)))
    parser.add_argument("--turns", default=turns, help=f"of small models ({turns})")
    parser.add_argument("--steps", type=int, default=3200, help="of small models (3200)")
    args = parser.parse_args(argv)
    pairs = answers()
    training = measure.lines_of(args.data / "k234_train.jsonl.gz")
    if args.runs is not None:
        text, data = in_turns(args, pairs, training)
    else:
        data = answered(pairs, training, args.model)
        text = table(data)
    measure.finish(text, data, args.out, argv)


if __name__ == "__main__":
    main()
