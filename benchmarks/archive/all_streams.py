"""Streams of a sample's own symbols against all streams of the vocabulary: training, generation.

    python benchmarks/archive/all_streams.py --work training --out streams-training
    python benchmarks/archive/all_streams.py --work generation --out streams-generation-5
    python benchmarks/archive/all_streams.py --work generation --symbols 10 --out streams-generation-10

The peer (benchmarks/peers/all_streams.py) is the same model with the same weights as the papers'
public code runs it: each sample has a stream for every symbol of the vocabulary, folded into the
batch, and batches are in random order. Ours takes the same samples, in batches of as many, as the
package's own sampler makes them; of the batches that it makes of `--pool` times as many samples,
those at even distances in the order of their cost are timed. A third side is ours with `nn.Linear`
in place of `BlockLinear`: the peer's time by its time is what fewer streams and the rest of ours
save, its time by ours what oneDNN saves, which depends on the processor. Before anything is timed,
all must give the same logits. Processor time stands beside the time on the clock.

Samples are LTL formulas with their answers, drawn as training data is (sizes uniform, as many
symbols as they happen to have), or with `--exactly` only those that have every symbol of the
vocabulary, where no stream can be saved. Weights are random, which changes no time. Training is
forward, backward and AdamW over all samples; generation is a beam search with a fixed number of
new tokens.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from transformers.utils import logging

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.data.collate import AlphaCollator, BucketSampler, tokenize
from hf_alpha.data.rows import load
from hf_alpha.logic.drawing.generate import generate

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what benchmarks share
from measure import add_model, add_out, clocked_in_turns, finish, ratios, table, three
from peers.all_streams import AllStreams, without_onednn

Batch = dict[str, torch.Tensor]
OURS, PEER = "streams of the input", "streams of the vocabulary"
PLAIN = f"{OURS}, F.linear for oneDNN"


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
    """All sides, with the same random weights."""
    tokenizer = build_tokenizer("ltl", args.symbols)
    sizes = {"layers": args.layers, "attention_heads": args.heads, "ffn_dim": args.ffn}
    config = AlphaConfig.for_tokenizer(
        tokenizer,
        d_model=args.d_model,
        **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()},
    )
    torch.manual_seed(args.seed)
    ours = AlphaForConditionalGeneration(config)
    plain = without_onednn(AlphaForConditionalGeneration(config))
    models = {OURS: ours, PLAIN: plain, PEER: AllStreams(config)}
    for model in models.values():
        model.load_state_dict(ours.state_dict())
        model.to(args.device).eval()
        model.generation_config.max_length = None
    return models


def check(models: dict[str, AlphaForConditionalGeneration], batch: Batch) -> float:
    """Largest difference to the peer's logits; all have to compute the same."""
    with torch.no_grad():
        *ours, peer = (model(**batch).logits for model in models.values())
    for logits in ours:
        torch.testing.assert_close(logits, peer, atol=1e-3, rtol=1e-4)
    return max(float((logits - peer).abs().max()) for logits in ours)


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
    batches[PLAIN] = batches[OURS]
    keys = [keys[i] for i in ours]
    difference = check(models, batches[PEER][0])
    if args.work == "training":
        sides = {side: training(model, batches[side]) for side, model in models.items()}
    else:
        sides = {
            side: generation(model, batches[side], args.beams, args.new_tokens)
            for side, model in models.items()
        }
    seconds, processor = clocked_in_turns(sides, args.rounds, args.device)
    data = {
        "settings": vars(args),
        "seconds": seconds,
        "processor_seconds": processor,
        "ratios": ratios(seconds[PEER], seconds[OURS]),
        "difference": difference,
        "keys": keys,
    }
    return show(data, args), data


def show(data: dict[str, Any], args: argparse.Namespace) -> str:
    """What was measured, for people."""
    keys, seconds, processor = data["keys"], data["seconds"], data["processor_seconds"]
    generates = args.work == "generation"
    per, unit = (len(keys), "ms/sample") if generates else (args.batches, "ms/step")
    lines = []
    for side in seconds:
        cells = [three([1e3 * s / per for s in times[side]], 1) for times in (seconds, processor)]
        for times in (seconds, processor):
            speedups = ratios(times[PEER], times[side])
            cells.append("" if side == PEER else three(speedups, 2, "x"))
        lines.append([side, *cells])
    mean_symbols, mean_length = np.mean(keys, axis=0)
    columns = ["side", unit, f"processor, {unit}", "the peer takes", "likewise, processor"]
    return (
        f"{args.work}, {len(keys)} LTL formulas in batches of {args.batch}: {mean_symbols:.2f} "
        f"of {args.symbols} symbols and {mean_length:.1f} tokens on average"
        + (f"; {args.beams} beams, {args.new_tokens} new tokens" if generates else "")
        + f"\nd {args.d_model}, {args.layers} + {args.layers} layers, {args.heads} heads, "
        f"FFN {args.ffn}; largest difference of logits {data['difference']:.1e}\n\n"
        + table(columns, lines)
        + f"\n\nThe peer takes {three(data['ratios'], 2, 'x')} as long."
    )


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
