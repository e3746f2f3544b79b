"""Which remedy does a trained model of chemistry need? Ring digits of SMILES are only names.

    pip download --no-deps -d FOLDER annalog==1.0.6 && pip install rdkit
    python benchmarks/reactions.py FOLDER --data data/uspto_mit --seeds 0,1,2 --out reactions

ANNalog (4M weights, MIT), an encoder-decoder, learns to write the product of a reaction of
USPTO-MIT, which has valid.txt (training) and test.txt. Tests have ring digits as RDKit writes them,
or the same molecules with permuted digits, or with atoms in another order ("random SMILES"); others
have 8 rings and more, as 59 reactions of training have. The remedies are those of `real_models.py`:

- plain: reactions as RDKit writes them. random: digits permuted, row by row.
- randomised: reactants with atoms in a random order, row by row, as the field does.
- canonical: the model of plain; digits are written by first occurrence, and back in the answer.
  (What RDKit writes has its digits in this order, so training is the same.)
- averaged: the model of random, asked with three permutations; the answer that most give.
- relational, streams, dual_part: converted by `hf_alpha.get_symbol_model`; digits are names.
- binding: relational, and each ring is a name (`{rule: smiles}`), with new symbols.
- with `-scratch` behind its name, a model of the same size that knows nothing: random weights.

An answer is right if it is the same molecule. Reactions whose product has a digit that the
reactants lack are left out: `relational` and `streams` of an encoder-decoder write none.

A training as the field's, for a GPU, and the same in small, which a CPU tries in minutes:

    python benchmarks/reactions.py FOLDER --data data/uspto_mit --seeds 0,1,2 --steps 40000 \
        --files train.txt,valid.txt --rows 0 --batch 128 --tests 1000 --jobs 5 --out reactions-long
    python benchmarks/reactions.py FOLDER --data data/uspto_mit --steps 3 --rows 200 --batch 8 \
        --tests 20 --width 32 --remedies plain-scratch,random-scratch,relational-scratch
"""

import random
import runpy
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, MarianMTModel

import hf_alpha
import measure
from annalog import annalog, tokens
from hf_alpha.modeling.ready_rules import ring_numbers
from real_models import DEVICE, DRAWS, Pair, finish, minutes_of, options, results_of, tune

DIGITS = "123456789"
LONGEST = 96
"""Tokens of a side."""
RINGS, BEAMS = 8, 5  # of reactants with many rings; of top 5
TESTED = "digits of RDKit", "permuted"
ORDER, MANY = "random SMILES", f"{RINGS} rings and more"
SPELLINGS = {
    "plain": {"plain": "right", "canonical": "spelled"},
    "random": {"random": "right", "averaged": "vote"},
    "binding": {"relational by binding": "right"},
}
"""Models that are asked in more than one way, or have a longer name: rows of the table -> what is
in them."""
AS_IT_IS = "plain", "random", "randomised"
RULE = {"pattern": "[1-9]", "count": 12}
CONVERSIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "binding": ("relational", {"rule": "smiles", "count": 32}, {"new_symbols": True}),
}
"""Remedy -> encoding, rule and settings, where they are not `RULE` and none."""
MEASURES = {
    f"top {BEAMS}": (TESTED[0], f"top {BEAMS}"),
    f"top {BEAMS}, permuted": (TESTED[1], f"top {BEAMS}"),
    "valid": (TESTED[0], "valid"),
    "valid, permuted": (TESTED[1], "valid"),
    "changed, permuted": (TESTED[1], "changed"),
    ORDER: (ORDER, "right"),
    f"changed, {ORDER}": (ORDER, "changed"),
    MANY: (MANY, "right"),
}
"""Column of the second table -> test, and what is counted there."""


@dataclass(frozen=True)
class Plan:
    """How much is trained and asked.

    Attributes:
        rows: reactions to train with; 0 for all.
        batch: reactions of a step.
        tests: reactions of each test; of many rings a sixth.
        width: of models that know nothing; 0 for ANNalog's.
        files: of training, in the folder of the data.
    """

    rows: int = 9_000
    batch: int = 32
    tests: int = 300
    width: int = 0
    files: str = "valid.txt"


written = runpy.run_path(str(measure.ROOT / "examples" / "tasks" / "reactions.py"))["written"]


# -- reactions ------------------------------------------------------------------------------------


def fits(source: str, target: str, words: frozenset[str]) -> bool:
    """Whether a model with these words, and without new names, can read and write a reaction."""
    read, answer = tokens(source), tokens(target)
    short = max(len(read), len(answer)) <= LONGEST
    return short and {*read, *answer} <= words and {*answer} & {*DIGITS} <= {*read}


def reactions(
    files: Sequence[Path], words: frozenset[str], count: int, seed: int, rings: int = 0
) -> list[Pair]:
    """Return so many reactions, in an order drawn by the seed, of at least so many rings.

    Args:
        count: 0 for all.
    """
    lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")]
    random.Random(seed).shuffle(lines)
    found: list[Pair] = []
    for line in lines:
        left, _, right = line.split(" ")[0].partition(">>")
        if len(ring_numbers(left)) < 2 * rings:
            continue
        source, target = written(left, False), written(right, False)
        if not source or not target or target in source.split("."):
            continue
        if fits(source, target, words):
            found.append((source, target))
        if len(found) == count:
            return found
    if not count:
        return found
    names = ", ".join(map(str, files))
    raise ValueError(f"{names}: {len(found)} reactions fit, not {count}")


@cache
def reaction_pairs(
    data: Path, words: frozenset[str], plan: Plan
) -> tuple[list[Pair], dict[str, list[Pair]]]:
    """Return reactions to train with, and of each test, read once."""
    tested = [data / "test.txt"]
    test = reactions(tested, words, plan.tests, seed=1)
    rng = random.Random(0)
    train = [data / name for name in plan.files.split(",")]
    return reactions(train, words, plan.rows, seed=0), {
        TESTED[0]: test,
        TESTED[1]: [permuted(pair, number) for number, pair in enumerate(test)],
        ORDER: [in_other_order(pair, rng, words) for pair in test],
        MANY: reactions(tested, words, -(-plan.tests // 6), seed=1, rings=RINGS),
    }


def digits_to(pair: Pair, digits: Sequence[str]) -> Pair:
    """Write 1 as the first of nine digits, and so on."""
    table = dict(zip(DIGITS, digits, strict=True))
    source, target = ("".join(table.get(each, each) for each in tokens(text)) for text in pair)
    return source, target


def permuted(pair: Pair, seed: int) -> Pair:
    """Permute the digits of a reaction."""
    return digits_to(pair, random.Random(seed).sample(DIGITS, len(DIGITS)))


def in_other_order(pair: Pair, rng: random.Random, words: frozenset[str]) -> Pair:
    """Write the atoms of reactants in a random order, which a model can read; or as they are."""
    for _ in range(20):
        if fits(source := written(pair[0], False, rng), pair[1], words):
            return source, pair[1]
    return pair


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

    def __init__(self, name: str, host: Path, width: int = 0):
        name, _, scratch = name.partition("-")
        self.model: Any = MarianMTModel.from_pretrained(host)
        if scratch:
            config = self.model.config
            if width:
                config.d_model = config.encoder_ffn_dim = config.decoder_ffn_dim = width
            self.model = MarianMTModel(config)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(host)
        self.reading: dict[str, Any] = {"return_tensors": "pt", "padding": True}
        self.decoding: dict[str, Any] = {"skip_special_tokens": True}
        self.converted = name not in AS_IT_IS
        if self.converted:
            encoding, rule, settings = CONVERSIONS.get(name, (name, RULE, {}))
            config = hf_alpha.SymbolConfig(encoding, symbols={"ring": rule}, settings=settings)
            self.model, self.tokenizer = hf_alpha.get_symbol_model(
                self.model, self.tokenizer, config
            )
            if settings:  # new symbols
                self.reading["allow_absent_symbols"], self.decoding["new_names"] = True, "t"

    def batch(self, pairs: Sequence[Pair]) -> Any:
        """Return a batch of reactions with labels."""
        sources, targets = ([spaced(text) for text in side] for side in zip(*pairs, strict=True))
        rows = self.tokenizer(sources, text_target=targets, **self.reading)
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

    def answers(self, pairs: Sequence[Pair]) -> list[str | None]:
        """Return the products that greedy search writes, as RDKit writes them."""
        return [answer for (answer,) in self.best(pairs, 1)]

    @torch.no_grad()
    def best(self, pairs: Sequence[Pair], beams: int) -> list[list[str | None]]:
        """Return the products that so many beams write, the best first; None for no molecule."""
        found: list[str] = []
        for start in range(0, len(pairs), 50):
            rows = self.batch(pairs[start : start + 50])
            rows.pop("labels")
            search = {"num_beams": beams, "num_return_sequences": beams, "do_sample": False}
            ids = self.model.generate(**rows, max_length=100, **search)
            names = {"names": rows.names} if self.converted else {}
            found += self.tokenizer.batch_decode(ids, **self.decoding, **names)
        answers = [written(text.replace(" ", ""), False) for text in found]
        return [answers[start : start + beams] for start in range(0, len(answers), beams)]


def tests(learner: Learner, name: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return right and valid answers and the loss; where asked, spelled canonically, and by vote.

    With the answers, of which `run` says how many change.
    """
    expected = [written(target, False) for _, target in pairs]

    def right(answers: Sequence[str | None]) -> int:
        return sum(a == b for a, b in zip(answers, expected, strict=True))

    answers = learner.answers(pairs)
    result = {"right": right(answers), "of": len(pairs), "loss": learner.loss(pairs)}
    result |= {"valid": len(answers) - answers.count(None), "answers": answers}
    five = zip(learner.best(pairs, BEAMS), expected, strict=True)
    result[f"top {BEAMS}"] = sum(target in beams for beams, target in five)
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


def run(folder: Path, data: Path, plan: Plan, name: str, steps: int, seed: int) -> dict[str, Any]:
    """Train a model and test it."""
    torch.manual_seed(seed)
    host = annalog(folder)
    learner = Learner(name, host, plan.width)
    words = frozenset(AutoTokenizer.from_pretrained(host).get_vocab())
    train, kinds = reaction_pairs(data, words, plan)
    name = name.partition("-")[0]
    rng = random.Random(seed)

    def batches() -> Iterator[Any]:
        while True:
            order = rng.sample(range(len(train)), len(train))
            for start in range(0, len(order), plan.batch):
                rows = [train[i] for i in order[start : start + plan.batch]]
                if name == "random":
                    rows = [permuted(row, rng.random()) for row in rows]
                if name == "randomised":
                    rows = [in_other_order(row, rng, words) for row in rows]
                yield [learner.batch(rows)]

    start = time.process_time()
    loss = tune(learner.model, batches(), steps, rate=5e-4, warmup=100, floor=0.05)
    minutes = (time.process_time() - start) / 60
    found = {kind: tests(learner, name, pairs) for kind, pairs in kinds.items()}
    answers = {kind: each.pop("answers") for kind, each in found.items()}
    for kind in (TESTED[1], ORDER):
        both = zip(answers[TESTED[0]], answers[kind], strict=True)
        found[kind]["changed"] = sum(a != b for a, b in both)
    return {"loss": loss, "minutes": minutes, "device": DEVICE, "tests": found}


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return right answers in per cent, and the loss, by remedy and steps; then what else is known.

    Runs of an earlier version have no more than the first table.
    """
    lines, more = [], []
    for run_name, runs in results.items():
        name, steps = run_name.split()
        base, sign, scratch = name.partition("-")
        rows = {
            f"{shown}{sign}{scratch}": key
            for shown, key in SPELLINGS.get(base, {base: "right"}).items()
            if all(key in run["tests"][TESTED[0]] for run in runs)  # earlier versions lack some
        }
        for shown, key in rows.items():
            cells = [shown, steps, str(len(runs))]
            for kind in TESTED:
                loss = sum(run["tests"][kind]["loss"] for run in runs) / len(runs)
                share = _share(runs, kind, key)
                cells.append(f"{share} ({loss:.3f})" if key == "right" else share)
            lines.append([*cells, minutes_of(runs)])
        if known := [run for run in runs if ORDER in run["tests"]]:
            shares = [_share(known, *place) for place in MEASURES.values()]
            more.append([next(iter(rows)), steps, str(len(known)), *shares])
    first = measure.table(("remedy", "steps", "seeds", *TESTED, "minutes"), lines)
    head = ("remedy", "steps", "seeds", *MEASURES)
    return f"{first}\n\n{measure.table(head, more)}" if more else first


def _share(runs: Sequence[Mapping[str, Any]], kind: str, key: str) -> str:
    found = [run["tests"][kind] for run in runs]
    return measure.share_and_spread([test[key] / test["of"] for test in found])


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print the table of all that is there."""
    parser = options(__doc__.split("\n")[0], "plain,random,randomised,relational,binding", "300")
    add, usual = parser.add_argument, Plan()
    add("--data", type=Path, required=True, help="the folder of valid.txt and test.txt")
    add("--files", default=usual.files, help=f"of training ({usual.files})")
    add("--rows", type=int, default=usual.rows, help=f"of training, 0: all ({usual.rows})")
    add("--batch", type=int, default=usual.batch, help=f"rows of a step ({usual.batch})")
    add("--tests", type=int, default=usual.tests, help=f"rows of a test ({usual.tests})")
    add("--width", type=int, default=0, help="of models that know nothing (ANNalog's)")
    args = parser.parse_args(argv)
    if not args.table:
        annalog(args.folder)
    plan = Plan(args.rows, args.batch, args.tests, args.width, args.files)
    kind = "reactions" if plan == usual else "-".join(["reactions", *map(str, astuple(plan))])
    results = results_of(args, kind, partial(run, args.folder, args.data, plan))
    finish(table(results), results, args.out, argv or sys.argv[1:])


if __name__ == "__main__":
    measure.run(main)
