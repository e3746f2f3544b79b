"""Training step and embedding preparation of `dual_part`, against `learned` in the same run.

    python benchmarks/archive/dual_part.py --threads 1 --out dual-part  # d 128, 8 layers, FFN 1024 (LTL's)
    python benchmarks/archive/dual_part.py --small --threads 1
    python benchmarks/archive/dual_part.py --device cuda

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
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from transformers import PreTrainedModel

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.modeling.random_numbers import RANDOM_METHODS

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
import measure
from streams import Sizes, alpha_model, draw_batch, training_step

TRAINING, PREPARATION = "training step", "preparation"
LEARNED, DUAL_PART, RENAMED, INFERENCE = "learned", "dual_part", "renamed", "inference"
VANILLA = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
COLUMNS = ("side", "ms", "ratio to learned")
Step = Callable[[], object]
Times = dict[str, list[float]]  # side -> seconds of each round


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
    inner, versions = model.model, itertools.count()

    def step() -> None:
        inner.train(training)
        if training and inner.symbol_draws is not None:
            inner.symbol_draws.advance(next(versions))  # as if the optimiser had moved the weights
        inner.embedding_table()

    return step


def repeated(step: Step, repeats: int) -> Step:
    """A step that takes long enough to be timed."""

    def steps() -> None:
        for _ in range(repeats):
            step()

    return steps


def run(args: argparse.Namespace) -> tuple[str, dict[str, Times]]:
    """What is measured, and the seconds of both kinds of work."""
    sizes = model_sizes(args)
    models = make_models(args, sizes, args.symbols)
    tokenizer = build_tokenizer("propositional", args.symbols)
    drawn = draw_batch(tokenizer, args.used_symbols, sizes.formula, sizes.batch, args.seed)
    batch = {name: value.to(args.device) for name, value in drawn.items()}
    steps = {side: training_step(model, batch) for side, model in models.items()}
    prepare = {
        side: preparation(model, training=True) for side, model in models.items() if side != RENAMED
    }
    dual = next(side for side in models if side.startswith(DUAL_PART))
    prepare[f"{INFERENCE}, {dual}"] = preparation(models[dual], training=False)
    few = 50 * args.repeats
    return describe(args, sizes, models), {
        TRAINING: times(steps, args.rounds, args.repeats, args.device),
        PREPARATION: times(prepare, max(args.rounds, 5), few, args.device),
    }


def times(sides: dict[str, Step], rounds: int, repeats: int, device: str) -> Times:
    """Seconds of one step of each side in each round, of which each takes `repeats` steps."""
    seconds_by_side = measure.in_turns(
        {s: repeated(f, repeats) for s, f in sides.items()}, rounds, device
    )
    return {
        side: [second / repeats for second in seconds] for side, seconds in seconds_by_side.items()
    }


def table(sides: Times) -> str:
    """Milliseconds and ratios to `learned`."""
    learned = sides[LEARNED]
    lines = [
        [
            side,
            measure.three([1e3 * second for second in seconds], 3),
            "1" if side == LEARNED else measure.three(measure.ratios(seconds, learned), 3),
        ]
        for side, seconds in sides.items()
    ]
    return measure.table(COLUMNS, lines)


def describe(args: argparse.Namespace, sizes: Sizes, models: dict[str, PreTrainedModel]) -> str:
    """Sizes of the models and of their work."""
    counts = ", ".join(f"{side} {model.num_parameters():,}" for side, model in models.items())
    dual = next(model for side, model in models.items() if side.startswith(DUAL_PART))
    return (
        f"d {sizes.d_model} (random part {dual.config.random_dim}), {sizes.layers} + "
        f"{sizes.layers} layers, {sizes.heads} heads, FFN {sizes.ffn}, float32; batch "
        f"{sizes.batch}, formulas of {sizes.formula} tokens, {args.symbols} symbols; "
        f"{args.rounds} rounds\nparameters: {counts}"
    )


def model_sizes(args: argparse.Namespace) -> Sizes:
    """Sizes of all models."""
    preset = (64, 3, 4, 256) if args.small else (128, 8, 8, 1024)
    sizes = (args.d_model, args.layers, args.heads, args.ffn)
    chosen = [own or usual for own, usual in zip(sizes, preset, strict=True)]
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
    measure.add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    head, times_of_works = run(args)
    tables = [f"{work.capitalize()}\n\n{table(sides)}" for work, sides in times_of_works.items()]
    settings = {name: str(value) for name, value in vars(args).items()}
    data = {"settings": settings, "seconds": times_of_works}
    measure.finish("\n\n".join([head, *tables]), data, args.out, argv, args.device)


if __name__ == "__main__":
    main()
