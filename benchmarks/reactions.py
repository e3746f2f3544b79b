"""Which remedy does a trained model of chemistry need? Ring digits of SMILES are only names.

    pip download --no-deps -d FOLDER annalog==1.0.6 && pip install rdkit
    python benchmarks/reactions.py FOLDER --data data/uspto_mit --seeds 0,1,2 --out reactions

ANNalog (4M weights, MIT), an encoder-decoder, learns to write the product of a reaction of
USPTO-MIT, which has valid.txt (training) and test.txt. Tests have ring digits as RDKit writes them,
or the same molecules with permuted digits. The remedies are those of `real_models.py`:

- plain: reactions as RDKit writes them. random: digits permuted, row by row.
- canonical: the model of plain; digits are written by first occurrence, and back in the answer.
  (What RDKit writes has its digits in this order, so training is the same.)
- averaged: the model of random, asked with three permutations; the answer that most give.
- relational, streams, dual_part: converted by `hf_alpha.get_symbol_model`.

An answer is right if it is the same molecule. Reactions whose product has a digit that the
reactants lack are left out: `relational` and `streams` of an encoder-decoder write none.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, MarianMTModel

import hf_alpha
import measure
from annalog import annalog, tokens
from real_models import DEVICE, DRAWS, Pair, finish, minutes_of, options, results_of, tune

DIGITS = "123456789"
ROWS, LONGEST = 32, 96  # reactions of a step; tokens of a side
TRAINING, TESTS = 9_000, 300
TESTED = "digits of RDKit", "permuted"
SPELLINGS = {
    "plain": {"plain": "right", "canonical": "spelled"},
    "random": {"random": "right", "averaged": "vote"},
}
"""Models that are asked in more than one way: rows of the table -> what is in them."""


# -- reactions ------------------------------------------------------------------------------------


def cleaned(side: str) -> str | None:
    """Return molecules without atom maps, as RDKit writes them; None if it cannot read them."""
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    written = []
    for text in side.split("."):
        molecule = Chem.MolFromSmiles(text)
        if molecule is None:
            return None
        for atom in molecule.GetAtoms():
            atom.SetAtomMapNum(0)
        written.append(Chem.MolToSmiles(molecule))
    return ".".join(sorted(written))


def reactions(file: Path, words: frozenset[str], count: int, seed: int) -> list[Pair]:
    """Return so many reactions, in an order drawn by the seed."""
    lines = file.read_text(encoding="utf-8").split("\n")
    random.Random(seed).shuffle(lines)
    found: list[Pair] = []
    for line in lines:
        left, _, right = line.split(" ")[0].partition(">>")
        source, target = cleaned(left), cleaned(right)
        if not source or not target or target in source.split("."):
            continue
        read, written = tokens(source), tokens(target)
        fits = max(len(read), len(written)) <= LONGEST and {*read, *written} <= words
        if fits and {*written} & {*DIGITS} <= {*read}:
            found.append((source, target))
        if len(found) == count:
            return found
    raise ValueError(f"{file} has {len(found)} reactions that fit, not {count}")


@cache
def reaction_pairs(data: Path, words: frozenset[str]) -> tuple[list[Pair], list[Pair]]:
    """Return reactions to train and to test with, read once."""
    return (
        reactions(data / "valid.txt", words, TRAINING, seed=0),
        reactions(data / "test.txt", words, TESTS, seed=1),
    )


def digits_to(pair: Pair, digits: Sequence[str]) -> Pair:
    """Write 1 as the first of nine digits, and so on."""
    table = dict(zip(DIGITS, digits, strict=True))
    source, target = ("".join(table.get(each, each) for each in tokens(text)) for text in pair)
    return source, target


def permuted(pair: Pair, seed: int) -> Pair:
    """Permute the digits of a reaction."""
    return digits_to(pair, random.Random(seed).sample(DIGITS, len(DIGITS)))


def in_order(pair: Pair) -> Pair:
    """Write digits by first occurrence: what canonical spelling makes of a reaction."""
    order = [*dict.fromkeys(each for each in tokens(pair[0]) if each in {*DIGITS})]
    order += [digit for digit in DIGITS if digit not in order]
    return digits_to(pair, [DIGITS[order.index(digit)] for digit in DIGITS])


# -- training and tests ---------------------------------------------------------------------------


def spaced(smiles: str) -> str:
    """Write spaces between tokens, so that each name is a word."""
    return " ".join(tokens(smiles))


class Learner:
    """A model, its tokenizer, and how reactions become batches and answers."""

    def __init__(self, name: str, host: Path):
        self.model: Any = MarianMTModel.from_pretrained(host)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(host)
        self.converted = name not in SPELLINGS
        if self.converted:
            rule = {"pattern": "[1-9]", "count": 12}
            config = hf_alpha.SymbolConfig(name, symbols={"ring": rule})
            self.model, self.tokenizer = hf_alpha.get_symbol_model(
                self.model, self.tokenizer, config
            )

    def batch(self, pairs: Sequence[Pair]) -> Any:
        """Return a batch of reactions with labels."""
        sources, targets = ([spaced(text) for text in side] for side in zip(*pairs, strict=True))
        rows = self.tokenizer(sources, text_target=targets, return_tensors="pt", padding=True)
        labels = rows["labels"][:, 1:]  # behind <sos>, with which the decoder begins by itself
        rows["labels"] = labels.masked_fill(labels == self.model.config.pad_token_id, -100)
        return rows.to(DEVICE)

    @torch.no_grad()
    def loss(self, pairs: Sequence[Pair]) -> float:
        """Return the mean loss of a token of the products, in nats."""
        total = count = 0.0
        for start in range(0, len(pairs), 50):
            rows = self.batch(pairs[start : start + 50])
            known = int((rows["labels"] != -100).sum())
            total += self.model(**rows).loss.item() * known
            count += known
        return total / count

    @torch.no_grad()
    def answers(self, pairs: Sequence[Pair]) -> list[str | None]:
        """Return the products that greedy search writes, as RDKit writes them."""
        found = []
        for start in range(0, len(pairs), 50):
            rows = self.batch(pairs[start : start + 50])
            rows.pop("labels")
            ids = self.model.generate(**rows, max_length=100, num_beams=1, do_sample=False)
            names = {"names": rows.names} if self.converted else {}
            found += self.tokenizer.batch_decode(ids, skip_special_tokens=True, **names)
        return [cleaned(text.replace(" ", "")) for text in found]


def tests(learner: Learner, name: str, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return right answers and the loss; spelled canonically, and by vote, where this is asked."""
    expected = [cleaned(target) for _, target in pairs]

    def right(answers: Sequence[str | None]) -> int:
        return sum(a == b for a, b in zip(answers, expected, strict=True))

    result: dict[str, float] = {"right": right(learner.answers(pairs)), "of": len(pairs)}
    result["loss"] = learner.loss(pairs)
    if name == "plain":
        result["spelled"] = right(learner.answers([*map(in_order, pairs)]))
    if name == "random":
        draws = [
            learner.answers([permuted(pair, 1000 * draw + i) for i, pair in enumerate(pairs)])
            for draw in range(1, DRAWS + 1)
        ]
        votes = [Counter(row).most_common(1)[0][0] for row in zip(*draws, strict=True)]
        result["vote"] = right(votes)
    return result


def run(folder: Path, data: Path, name: str, steps: int, seed: int) -> dict[str, Any]:
    """Train a model and test it."""
    torch.manual_seed(seed)
    host = annalog(folder)
    learner = Learner(name, host)
    words = frozenset(AutoTokenizer.from_pretrained(host).get_vocab())
    train, test = reaction_pairs(data, words)
    rng = random.Random(seed)

    def batches() -> Iterator[Any]:
        while True:
            order = rng.sample(range(len(train)), len(train))
            for start in range(0, len(order), ROWS):
                rows = [train[i] for i in order[start : start + ROWS]]
                rows = [permuted(row, rng.random()) for row in rows] if name == "random" else rows
                yield learner.batch(rows)

    start = time.process_time()
    loss = tune(learner.model, batches(), steps, rate=5e-4, warmup=100, floor=0.05)
    minutes = (time.process_time() - start) / 60
    other = [permuted(pair, number) for number, pair in enumerate(test)]
    found = {
        kind: tests(learner, name, pairs) for kind, pairs in zip(TESTED, (test, other), strict=True)
    }
    return {"loss": loss, "minutes": minutes, "device": DEVICE, "tests": found}


def table(results: dict[str, list[Any]]) -> str:
    """Return right answers in per cent, and the loss, by remedy and steps."""
    lines = []
    for run_name, runs in results.items():
        name, steps = run_name.split()
        for shown, key in SPELLINGS.get(name, {name: "right"}).items():
            cells = [shown, steps, str(len(runs))]
            for kind in TESTED:
                found = [run["tests"][kind] for run in runs]
                share = measure.share_and_spread([test[key] / test["of"] for test in found])
                loss = sum(test["loss"] for test in found) / len(found)
                cells.append(f"{share} ({loss:.3f})" if key == "right" else share)
            lines.append([*cells, minutes_of(runs)])
    return measure.table(("remedy", "steps", "seeds", *TESTED, "minutes"), lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print the table of all that is there."""
    parser = options(__doc__.split("\n")[0], "plain,random,relational", "300")
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder of valid.txt and test.txt"
    )
    args = parser.parse_args(argv)
    if not args.table:
        annalog(args.folder)
    results = results_of(args, "reactions", partial(run, args.folder, args.data))
    finish(table(results), results, args.out, argv or sys.argv[1:])


if __name__ == "__main__":
    main()
