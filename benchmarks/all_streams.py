"""Streams of a sample's own symbols against all streams of the vocabulary: training, generation.

    python benchmarks/all_streams.py --work training --out streams-training
    python benchmarks/all_streams.py --work generation --out streams-generation-5
    python benchmarks/all_streams.py --work generation --symbols 10 --out streams-generation-10

The peer (benchmarks/peers/all_streams.py) is the same model with the same weights as the papers'
public code runs it: each sample has a stream for every symbol of the vocabulary, folded into the
batch, and batches are in random order. Ours takes the same samples, in batches of as many, as the
package's own sampler makes them; of the batches that it makes of `--pool` times as many samples,
those at even distances in the order of their cost are timed. Before anything is, both must give the
same logits.

Samples are LTL formulas with their answers, drawn as training data is (sizes uniform, as many
symbols as they happen to have), or with `--exactly` only those that have every symbol of the
vocabulary, where no stream can be saved. Weights are random, which changes no time. Training is
forward, backward and AdamW over all samples; generation is a beam search with a fixed number of
new tokens.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import datasets
import numpy as np
import torch
from measure import add_model, add_out, finish, in_turns, ratios, table, three
from peers.all_streams import AllStreams
from transformers.utils import logging

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.data.bucket import BucketSampler
from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.data.generate import generate
from hf_alpha.data.read import load

Batch = dict[str, torch.Tensor]
OURS, PEER = "streams of the input", "streams of the vocabulary"


def draw_rows(args: argparse.Namespace) -> list[dict[str, list[int]]]:
    """Tokenised formulas with their answers."""
    tokenizer = build_tokenizer("ltl", args.symbols)
    count = args.batch * args.batches * args.pool
    drawn = count * (10 if args.exactly else 2)
    with tempfile.TemporaryDirectory() as folder:
        generate(
            "ltl", folder, drawn, (args.smallest, args.largest), args.symbols,
            alpha=1.0, seed=args.seed, progress=False,
        )  # fmt: skip
        data = tokenize(load(folder, "train"), tokenizer)
        rows = [dict(row) for row in data]
    if args.exactly:
        rows = [row for row in rows if len(row["stream_ids"]) == args.symbols]
    if len(rows) < count:
        raise SystemExit(f"only {len(rows)} of {count} formulas: give fewer batches")
    order = np.random.default_rng(args.seed).permutation(len(rows))
    return [rows[i] for i in order[:count]]


def batches_of(
    rows: Sequence[dict[str, list[int]]], order: Sequence[int], args: argparse.Namespace
) -> list[Batch]:
    """Rows in an order, cut into batches."""
    collate = AlphaCollator(build_tokenizer("ltl", args.symbols))
    cut = [order[i : i + args.batch] for i in range(0, len(order), args.batch)]
    batches = [collate([rows[i] for i in part]) for part in cut]
    return [{name: x.to(args.device) for name, x in batch.items()} for batch in batches]


def make_models(args: argparse.Namespace) -> dict[str, AlphaForConditionalGeneration]:
    """Both sides, with the same random weights."""
    tokenizer = build_tokenizer("ltl", args.symbols)
    sizes = {"layers": args.layers, "attention_heads": args.heads, "ffn_dim": args.ffn}
    config = AlphaConfig(
        num_base_tokens=tokenizer.num_base_tokens,
        symbol_classes=dict(tokenizer.symbol_classes),
        d_model=args.d_model,
        **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()},
    )
    torch.manual_seed(args.seed)
    models = {OURS: AlphaForConditionalGeneration(config), PEER: AllStreams(config)}
    models[PEER].load_state_dict(models[OURS].state_dict())
    for model in models.values():
        model.to(args.device).eval()
        model.generation_config.max_length = None
    return models


def check(models: dict[str, AlphaForConditionalGeneration], batch: Batch) -> float:
    """Largest difference of logits; both have to compute the same."""
    with torch.no_grad():
        logits = [model(**batch).logits for model in models.values()]
    torch.testing.assert_close(*logits, atol=1e-3, rtol=1e-4)
    return float((logits[0] - logits[1]).abs().max())


def training(model: AlphaForConditionalGeneration, batches: list[Batch]) -> Callable[[], None]:
    """A pass over all batches."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def epoch() -> None:
        model.train()
        for batch in batches:
            optimiser.zero_grad()
            model(**batch).loss.backward()
            optimiser.step()

    return epoch


def generation(
    model: AlphaForConditionalGeneration, batches: list[Batch], beams: int, tokens: int
) -> Callable[[], None]:
    """Answers of the same length to all batches."""
    settings: dict[str, Any] = {"min_new_tokens": tokens, "max_new_tokens": tokens}

    def search() -> None:
        for batch in batches:
            inputs = {name: x for name, x in batch.items() if name != "labels"}
            with torch.inference_mode():
                model.generate(**inputs, num_beams=beams, do_sample=False, **settings)

    return search


def run(args: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Measure; returns a text and all times."""
    rows = draw_rows(args)
    keys = [(len(row["stream_ids"]), len(row["input_ids"])) for row in rows]
    models = make_models(args)
    order = list(BucketSampler(keys, args.batch, args.seed))
    cut = [order[i : i + args.batch] for i in range(0, len(order), args.batch)]
    cut.sort(key=lambda part: (max(keys[i][0] for i in part), max(keys[i][1] for i in part)))
    ours = [i for part in cut[args.pool // 2 :: args.pool] for i in part]
    orders = {OURS: ours, PEER: np.random.default_rng(args.seed).permutation(ours).tolist()}
    batches = {side: batches_of(rows, order, args) for side, order in orders.items()}
    keys = [keys[i] for i in ours]
    difference = check(models, batches[PEER][0])
    if args.work == "training":
        sides = {side: training(model, batches[side]) for side, model in models.items()}
    else:
        sides = {
            side: generation(model, batches[side], args.beams, args.new_tokens)
            for side, model in models.items()
        }
    seconds = in_turns(sides, args.rounds, args.device)
    per = len(keys) if args.work == "generation" else args.batches
    unit = "ms/sample" if args.work == "generation" else "ms/step"
    lines = [[side, three([1e3 * s / per for s in seconds[side]], 1)] for side in sides]
    found = ratios(seconds[PEER], seconds[OURS])
    mean_symbols, mean_length = np.mean(keys, axis=0)
    text = (
        f"{args.work}, {len(keys)} LTL formulas in batches of {args.batch}: {mean_symbols:.2f} "
        f"of {args.symbols} symbols and {mean_length:.1f} tokens on average"
        + (f"; {args.beams} beams, {args.new_tokens} new tokens" if per == len(keys) else "")
        + f"\nd {args.d_model}, {args.layers} + {args.layers} layers, {args.heads} heads, "
        f"FFN {args.ffn}; largest difference of logits {difference:.1e}\n\n"
        + table(["side", f"{unit}: min / median / max"], lines)
        + f"\n\nThe peer takes {three(found, 2, 'x')} as long."
    )
    data = {"settings": vars(args), "seconds": seconds, "ratios": found, "keys": keys}
    return text, data


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--work", choices=("training", "generation"), default="training")
    add("--symbols", type=int, default=5, help="of the vocabulary (5)")
    add("--exactly", action="store_true", help="only formulas with all of them")
    add("--smallest", type=int, default=10, help="tokens of a formula (10)")
    add("--largest", type=int, default=35, help="tokens of a formula (35)")
    add("--batch", type=int, default=64, help="samples in a batch (64)")
    add("--batches", type=int, default=8, help="batches (8)")
    add("--pool", type=int, default=8, help="times as many samples are drawn (8)")
    add("--beams", type=int, default=3)
    add("--new-tokens", type=int, default=31)
    add("--rounds", type=int, default=3)
    add("--seed", type=int, default=0)
    add_model(parser)
    add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    logging.set_verbosity_error()
    datasets.disable_progress_bars()
    if args.threads:
        torch.set_num_threads(args.threads)
    text, data = run(args)
    finish(text, data, args.out, argv, args.device)


if __name__ == "__main__":
    main()
