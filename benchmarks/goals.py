"""Processor time beside the peers that training and generation are to be as fast as.

    python benchmarks/goals.py --out goals
    python benchmarks/goals.py --only text-small --rounds 40
    python benchmarks/goals.py --only llama-768 llama-256 --rounds 10

- `text-small` and `d-256`: our encoder-decoder, `relational` and `learned`, beside a BART of the
  same size: that of the recipe text/small, and one of d 256 with 4 + 3 layers.
- `llama-768` and `llama-256`: a Llama converted to `relational` beside the Llama itself, d 768 with
  12 layers, 32,000 tokens of a vocabulary and texts of 256, d 256 with 6 layers, 8,000 and 64.
- `train`: `hf-alpha train` on pairs with two classes of names and the model of text/small, beside
  Transformers' Seq2SeqTrainer with a BART of that size and the same batches; whole steps.

What a training step and a generation are, relational_price.py says. Sides take turns in one
process, with one thread; a ratio is the median over the rounds of two processor times of one round,
with the smallest and the largest beside it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, TrainerCallback

import retrofit
import trainings
from hf_alpha import AlphaForConditionalGeneration
from hf_alpha.train import train
from measure import clocked_in_turns, finish, parser_of, ratios, table, three
from steps import BART, LEARNED, RELATIONAL, Size, Step, draw_batch, make_model, prepare

NAMES = 5
OWN = {
    "text-small": Size(64, 2, 1, 4, 128, batch=32, length=35, target=20),
    "d-256": Size(256, 4, 3, 4, 1024, batch=22, length=35, target=20),
}
HOSTS = {"llama-768": (768, 12, 32000, 256), "llama-256": (256, 6, 8000, 64)}
"""Width, layers, vocabulary, and tokens of a text."""
ANSWER = 16  # tokens of it, of a host's
Sides = Mapping[str, Step]


def own_sides(size: Size, work: str) -> Sides:
    """One training step or generation of our models and of a BART, with positions of text/small."""
    batch = draw_batch(size, NAMES)
    del batch["tree_paths"]
    sides = {}
    for side in (RELATIONAL, LEARNED, BART):
        model = make_model(size, side, NAMES)
        if side != BART:
            model.config.encoder_position = "rope"
            torch.manual_seed(0)
            model = AlphaForConditionalGeneration(model.config)
        sides[side] = prepare(model, side, work, batch, size.target)
    return sides


def host_sides(width: int, layers: int, vocabulary: int, tokens: int, work: str) -> Sides:
    """The same of a converted Llama and of itself; a prefill is a generation of one token."""
    host = LlamaConfig(
        **{**retrofit.SMALL, "vocab_size": vocabulary}, hidden_size=width,
        intermediate_size=width * 11 // 4, num_hidden_layers=layers,
        num_attention_heads=max(width // 64, 1), max_position_embeddings=2 * tokens,
    )  # fmt: skip
    retrofit.HOSTS["goal"] = host
    answer = 1 if work == "prefill" else ANSWER
    options = f"--host llama --names {NAMES} --batch 1 --target {answer}"
    args = retrofit.parse(options.split())
    args.host = "goal"
    args.length = tokens - ANSWER
    kind = "greedy" if work == "prefill" else work
    sides = (RELATIONAL, retrofit.BACKBONE)
    return {side: retrofit.prepare(args, side, kind, NAMES) for side in sides}


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All measurements, with the processor's seconds of each side; the peer comes last."""
    tasks: list[tuple[str, str, Callable[..., Sides]]] = [
        (name, work, partial(own_sides, size))
        for name, size in OWN.items()
        for work in ("training", "greedy", "beams")
    ]
    tasks += [
        (name, work, partial(host_sides, *size))
        for name, size in HOSTS.items()
        for work in ("training", "prefill", "greedy", "beams")
    ]
    for name, work, make in tasks:
        if name in args.only and work in args.works:
            _, seconds = clocked_in_turns(make(work), args.rounds)
            yield {"what": name, "work": work, "seconds": seconds}
    if "train" in args.only:
        yield {"what": "train", "work": "whole step", "seconds": measure_runs(args)}


def measure_runs(args: argparse.Namespace) -> dict[str, list[float]]:
    """The processor's seconds of the steps of whole runs, by side."""
    seconds: dict[str, list[float]] = {side: [] for side in trainings.SIDES}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.runs):
            for side in list(seconds) if number % 2 == 0 else list(reversed(seconds)):
                clock = Clock()
                recipe = trainings.swap(Path(folder), f"{side} {number}", args.steps, "cpu")
                make = partial(clocked, trainings.SIDES[side], clock)
                train(recipe, say=lambda _: None, make_trainer=make)
                seconds[side].append(clock.seconds / (args.steps - 1))
    return seconds


class Clock(TrainerCallback):
    """The processor's seconds from the end of the first step to that of the last one."""

    seconds = 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 1:
            self.seconds -= time.process_time()
        elif state.global_step == state.max_steps:
            self.seconds += time.process_time()


def clocked(make: Callable[..., Any], clock: Clock, *args: Any, **options: Any) -> Any:
    """A trainer that is watched by a clock."""
    trainer = make(*args, **options)
    trainer.add_callback(clock)
    return trainer


def write(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    """The table: a line for each side but the peer."""
    lines = []
    for row in rows:
        *sides, peer = row["seconds"]
        theirs = row["seconds"][peer]
        lines += [
            [row["what"], row["work"], side, peer, three(ratios(row["seconds"][side], theirs)),
             three([1e3 * second for second in theirs], 1)]
            for side in sides
        ]  # fmt: skip
    words = ("work", "side", "peer")
    columns = ("what", *words, "processor time by the peer's", "peer: ms")
    head = f"{args.rounds} rounds, one thread, {NAMES} names; {args.runs} runs, {args.steps} steps"
    return f"{head}\n\n{table(columns, lines, words)}"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of(__doc__)
    works = ("training", "prefill", "greedy", "beams")
    whats = (*OWN, *HOSTS, "train")
    add = parser.add_argument
    add("--only", nargs="+", choices=whats, default=list(whats), metavar="WHAT", help="(all)")
    add("--works", nargs="+", choices=works, default=list(works), help="(all)")
    add("--rounds", type=int, default=20, help="(20)")
    add("--runs", type=int, default=4, help="of `hf-alpha train` and of its peer (4)")
    add("--steps", type=int, default=150, help="of a run (150)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    torch.set_num_threads(1)
    rows = list(measure(args))
    finish(write(args, rows), {"settings": vars(args), "rows": rows}, args.out, argv)


if __name__ == "__main__":
    main()
