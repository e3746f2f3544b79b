"""Training step and embedding preparation of `dual_part`, against `learned` in the same run.

    python benchmarks/dual_part.py --threads 1    # d 128, 8 layers, 8 heads, FFN 1024 (LTL's)
    python benchmarks/dual_part.py --small --threads 1 --markdown --json dual_part.json
    python benchmarks/dual_part.py --device cuda

On satisfiable propositional formulas of one size and their real answers, with the same weights'
sizes on all sides; they are random and do not change the time. The sides:

- `learned`: the vanilla model, one trained vector per symbol.
- `dual_part`: hypercube vertices, drawn anew in each step; the other methods beside it on demand.
- `renamed`: `learned` with `symbol_renaming="random"` (on demand).

A training step is forward, backward and AdamW. Preparation is the table of embedding rows as it is
used, gradients recorded: from the weights alone for `learned`, with the draw of a new optimiser
step for `dual_part`, and, as `inference`, with the draw that is kept. Sides take turns (A B A B
...), each first in every other round; a ratio is that of the two times in one round. Times and
ratios are printed as minimum / median / maximum.
"""

import argparse
import itertools
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
import transformers
from transformers import PreTrainedModel

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.modeling.draws import RANDOM_METHODS

sys.path.append(str(Path(__file__).resolve().parent))
from streams import Row, Sizes, alpha_model, draw_batch, training_step

TRAINING, PREPARATION = "training step", "preparation"
LEARNED, DUAL_PART, RENAMED, INFERENCE = "learned", "dual_part", "renamed", "inference"
VANILLA = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
COLUMNS = ("side", "ms", "ratio to learned")
Step = Callable[[], object]


def make_models(args: argparse.Namespace, sizes: Sizes, symbols: int) -> dict[str, PreTrainedModel]:
    """All sides, by name, `learned` first."""
    tokenizer = build_tokenizer("propositional", symbols)
    settings: dict[str, dict[str, object]] = {LEARNED: {"symbol_encoding": LEARNED}}
    for method in args.methods:
        settings[f"{DUAL_PART}, {method}"] = {
            "symbol_encoding": DUAL_PART,
            "random_method": method,
            "random_dim": args.random_dim,
        }
    if args.renamed:
        settings[RENAMED] = {"symbol_encoding": LEARNED, "symbol_renaming": "random"}
    models = {}
    for side, own in settings.items():
        torch.manual_seed(args.seed)
        models[side] = alpha_model(sizes, tokenizer, **VANILLA, **own).to(args.device)
    return models


def preparation(model: PreTrainedModel, training: bool) -> Step:
    """Make the table of rows, with a new draw in training."""
    shared, versions = model.model.shared, itertools.count()

    def step() -> None:
        shared.train(training)
        if training and shared.draws is not None:
            shared.draws.advance(next(versions))  # as if the optimiser had moved the weights
        shared.rows()

    return step


def measure(
    work: str, sides: dict[str, Step], samples: int, rounds: int, repeats: int, device: str
) -> list[Row]:
    """Time all sides in turns, `repeats` calls at a time."""
    for step in sides.values():
        for _ in range(3):
            step()
    rows = {side: Row(work, 0, side, samples, []) for side in sides}
    for number in range(rounds):
        order = list(sides) if number % 2 == 0 else list(reversed(sides))
        for side in order:
            _synchronise(device)
            start = time.perf_counter()
            for _ in range(repeats):
                sides[side]()
            _synchronise(device)
            rows[side].seconds.append((time.perf_counter() - start) / repeats)
    return list(rows.values())


def _synchronise(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def run(args: argparse.Namespace) -> list[Row]:
    """All measurements."""
    sizes = model_sizes(args)
    models = make_models(args, sizes, args.symbols)
    print(describe(args, sizes, models), flush=True)
    tokenizer = build_tokenizer("propositional", args.symbols)
    drawn = draw_batch(tokenizer, args.used_symbols, sizes.formula, sizes.batch, args.seed)
    batch = {name: value.to(args.device) for name, value in drawn.items()}
    steps = {side: training_step(model, batch) for side, model in models.items()}
    rows = measure(TRAINING, steps, sizes.batch, args.rounds, args.repeats, args.device)
    prepare = {
        side: preparation(model, training=True) for side, model in models.items() if side != RENAMED
    }
    dual = next(side for side in models if side.startswith(DUAL_PART))
    prepare[f"{INFERENCE}, {dual}"] = preparation(models[dual], training=False)
    few = max(args.rounds, 5)
    return rows + measure(PREPARATION, prepare, 1, few, 50 * args.repeats, args.device)


def ratios(row: Row, other: Row) -> list[float]:
    """One side's time by another's, round by round."""
    return [one / two for one, two in zip(row.seconds, other.seconds, strict=True)]


def table(rows: Sequence[Row], work: str) -> list[list[str]]:
    """Cells of one table."""
    chosen = [row for row in rows if row.work == work]
    learned = next(row for row in chosen if row.side == LEARNED)
    return [
        [
            row.side,
            _three([1e3 * seconds for seconds in row.seconds]),
            _three(ratios(row, learned)) if row is not learned else "1",
        ]
        for row in chosen
    ]


def _three(values: Sequence[float]) -> str:
    """Minimum, median and maximum."""
    found = (min(values), statistics.median(values), max(values))
    return " / ".join(f"{value:.3f}" for value in found)


def write(lines: list[list[str]], markdown: bool) -> str:
    """Cells as a Markdown table, or in columns of even width."""
    if markdown:
        cells = [list(COLUMNS), ["---", "---:", "---:"], *lines]
        return "\n".join("| " + " | ".join(line) + " |" for line in cells)
    widths = [max(map(len, column)) for column in zip(COLUMNS, *lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in (list(COLUMNS), *lines)
    )


def describe(args: argparse.Namespace, sizes: Sizes, models: dict[str, PreTrainedModel]) -> str:
    """What was measured, on what."""
    cuda = args.device.startswith("cuda")
    machine = torch.cuda.get_device_name(args.device) if cuda else platform.machine()
    counts = ", ".join(f"{side} {model.num_parameters():,}" for side, model in models.items())
    dual = next(model for side, model in models.items() if side.startswith(DUAL_PART))
    return (
        f"{args.device} ({machine}), {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, float32; {args.rounds} rounds\n"
        f"d {sizes.d_model} (random part {dual.config.random_dim}), {sizes.layers} + "
        f"{sizes.layers} layers, {sizes.heads} heads, FFN {sizes.ffn}; batch {sizes.batch}, "
        f"formulas of {sizes.formula} tokens, {args.symbols} symbols\n"
        f"parameters: {counts}"
    )


def model_sizes(args: argparse.Namespace) -> Sizes:
    """Sizes of all models."""
    preset = (64, 3, 4, 256) if args.small else (128, 8, 8, 1024)
    given = (args.d_model, args.layers, args.heads, args.ffn)
    chosen = [own or usual for own, usual in zip(given, preset, strict=True)]
    return Sizes(*chosen, formula=args.size, new_tokens=0, batch=args.batch)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", default="cpu", help="cpu or cuda")
    add("--threads", type=int, help="CPU threads of torch")
    add("--small", action="store_true", help="d 64, 3 layers, 4 heads, FFN 256")
    for name in ("--d-model", "--layers", "--heads", "--ffn"):
        add(name, type=int, help="instead of the preset's")
    add("--random-dim", type=int, default=0, help="width of the random part (the model's default)")
    add(
        "--methods", nargs="+", default=["hypercube_vertices"], choices=RANDOM_METHODS,
        metavar="METHOD", help=f"of drawing (hypercube_vertices): {', '.join(RANDOM_METHODS)}",
    )  # fmt: skip
    add("--renamed", action="store_true", help="`learned` with random renaming, too")
    add("--symbols", type=int, default=10, help="symbols of the vocabulary (10)")
    add("--used-symbols", type=int, default=5, help="symbols in each formula (5)")
    add("--size", type=int, default=35, help="tokens of a formula (35)")
    add("--batch", type=int, default=64, help="samples in a batch (64)")
    add("--rounds", type=int, default=15, help="rounds (15)")
    add("--repeats", type=int, default=1, help="training steps of a side in each round (1)")
    add("--seed", type=int, default=0)
    add("--json", type=Path, metavar="OUT", help="write all times there")
    add("--markdown", action="store_true", help="print Markdown tables")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    rows = run(args)
    for work in (TRAINING, PREPARATION):
        print(f"\n{work.capitalize()}\n{write(table(rows, work), args.markdown)}")
    if args.json:
        settings = {name: str(value) for name, value in vars(args).items()}
        data = {"settings": settings, "rows": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
