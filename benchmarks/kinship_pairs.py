"""Does a model know kinship, or the pairs of relations that its training has?

    python benchmarks/kinship_pairs.py --data FOLDER_OF_CLUTRR --out kinship-pairs

Families are drawn (examples/tasks/family_trees.py). Two facts, "the R of Ann is Bob . the S of Bob
is Cleo .", are asked about if in all these families Cleo has the same relation to Ann, one of those
that the model knows; where Cleo can be Ann, somebody else is meant. Every pair is asked in both
orders of its facts. Pairs are those that CLUTRR's training tells as a story of two facts, those
that stories about families tell (examples/tasks/kinship.py), and those that are held out: no story
of either has the two facts one after the other.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import measure
from clutrr import file_name, read_stories
from hf_alpha.loading import load_checkpoint

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
from family_trees import Pair, answers
from kinship import pairs_held_out

MODEL = measure.ROOT / "model_cards" / "kinship-folnet"


TOLD = "CLUTRR's training tells them"
FAMILIES = "stories about families tell them"
HELD_OUT = "held out"


def groups(
    pairs: Mapping[Pair, str], training: Sequence[Mapping[str, Any]]
) -> dict[str, list[Pair]]:
    """The pairs by what training has of them."""
    stories = {tuple(row["edge_types"]) for row in training}
    held_out = pairs_held_out(training)
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


def main(argv: Sequence[str] | None = None) -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("data/clutrr"), help="CLUTRR's files")
    parser.add_argument("--model", type=Path, default=MODEL, help="a model that tells classes")
    measure.add_out(parser)
    args = parser.parse_args(argv)
    pairs = answers()
    training = read_stories(args.data / file_name("k234", "train"))
    results = {}
    for name, chosen in groups(pairs, training).items():
        said = asked(chosen, args.model)
        results[name] = [
            {"pair": pair, "answer": pairs[pair], "said": said[pair]} for pair in chosen
        ]
    measure.finish(table(results), results, args.out, argv)


if __name__ == "__main__":
    main()
