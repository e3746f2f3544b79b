"""How `streams` grows: time, arithmetic and memory traffic by number of symbols and length.

    python benchmarks/growth.py --out streams-growth

One sample with so many symbols and tokens: encoding it, and one step of a beam search with 3 beams
that has as many tokens behind it. On paper: floating-point operations (two for each product of a
multiplication and addition), and the bytes that have to move at least once: weights, cached keys
and values, and in the encoder each block's input, output, keys and values. Measured: the time, and
what both figures come to by the second.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from measure import add_model, add_out, finish, table, three, timed

BYTES = 4  # of a float32


@dataclass
class Cost:
    """What has to be done at least."""

    flops: float
    bytes: float


def encoder_cost(config: AlphaConfig, streams: int, length: int) -> Cost:
    """Cost of encoding one sample (EP EA)."""
    d, f, tokens = config.d_model, config.encoder_ffn_dim, streams * length
    own = 4 * tokens * d * d + 2 * tokens * length * d
    aggregated = 2 * tokens * d * d + 2 * length * d * d + 2 * tokens * length * d
    products = config.encoder_layers * (own + aggregated + 2 * tokens * d * f)
    numbers_moved = 3 * 2 * tokens * d + 2 * tokens * d + 2 * length * d
    weights = 8 * d * d + 2 * d * f
    return Cost(2 * products, BYTES * config.encoder_layers * (numbers_moved + weights))


def step_cost(config: AlphaConfig, streams: int, length: int, past: int, beams: int) -> Cost:
    """Cost of one cached step of a beam search (DP DA CP)."""
    d, f = config.d_model, config.decoder_ffn_dim
    rows = beams * streams
    projections = (4 + 2 + 2) * rows * d * d + 2 * beams * d * d
    attention = 2 * rows * d * (2 * past + length)
    products = config.decoder_layers * (projections + attention + 2 * rows * d * f)
    cached = 2 * d * (rows * past + beams * past + streams * length)
    weights = 10 * d * d + 2 * d * f
    return Cost(2 * products, BYTES * config.decoder_layers * (cached + weights))


def draw_sample(config: AlphaConfig, symbols: int, length: int) -> dict[str, torch.Tensor]:
    """Token ids in which the symbols come first; what they say does not change the cost."""
    base = config.num_base_tokens
    ids = torch.full((1, length), 5)
    ids[0, :symbols] = torch.arange(base, base + symbols)[:length]
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "tree_paths": torch.arange(1, length + 1)[None],
        "stream_ids": torch.arange(base, base + symbols)[None],
    }


def measure(
    model: AlphaForConditionalGeneration, symbols: int, length: int, beams: int, rounds: int
) -> dict[str, list[float]]:
    """Seconds of encoding and of one step behind `length` tokens."""
    batch = draw_sample(model.config, symbols, length)
    batch = {name: x.to(model.device) for name, x in batch.items()}
    device, side = str(model.device), model.config.get_text_config(decoder=True)
    ids = torch.full((beams, 1), 5, device=model.device)
    with torch.inference_mode():
        encoded = model.get_encoder()(**batch)
        inputs = {"encoder_outputs": encoded, "attention_mask": batch["attention_mask"]}
        cache = EncoderDecoderCache(DynamicCache(config=side), DynamicCache(config=side))
        long = ids.expand(-1, length)
        model(**inputs, decoder_input_ids=long, past_key_values=cache)

        def step() -> None:
            model(**inputs, decoder_input_ids=ids, past_key_values=cache)
            cache.self_attention_cache.crop(-1)

        work = {"encoding": lambda: model.get_encoder()(**batch), "step": step}
        for run in work.values():
            run()
        return {name: [timed(run, device) for _ in range(rounds)] for name, run in work.items()}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--symbols", type=int, nargs="+", default=[1, 2, 5, 10, 20, 50, 100, 200])
    add("--lengths", type=int, nargs="+", default=[20, 50, 100, 200, 400])
    add("--beams", type=int, default=3)
    add("--rounds", type=int, default=3)
    add_model(parser)
    add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    sizes = {"layers": args.layers, "attention_heads": args.heads, "ffn_dim": args.ffn}
    config = AlphaConfig(
        encoder_position="tree",
        symbol_classes={"proposition": max(args.symbols)},
        d_model=args.d_model,
        **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()},
    )
    torch.manual_seed(0)
    model = AlphaForConditionalGeneration(config).to(args.device).eval()
    lines, rows = [], []
    for symbols in args.symbols:
        for length in args.lengths:
            if length < symbols:
                continue
            seconds = measure(model, symbols, length, args.beams, args.rounds)
            costs = {
                "encoding": encoder_cost(config, symbols, length),
                "step": step_cost(config, symbols, length, length, args.beams),
            }
            cells = [str(symbols), str(length)]
            for work, cost in costs.items():
                best = min(seconds[work])
                cells += [f"{cost.flops / 1e9:,.3f}", f"{cost.bytes / 1e6:,.1f}"]
                cells += [three([1e3 * s for s in seconds[work]], 1)]
                cells += [f"{cost.flops / best / 1e9:,.0f}", f"{cost.bytes / best / 1e9:,.1f}"]
            lines.append(cells)
            rows.append({"symbols": symbols, "length": length, "seconds": seconds})
    columns = ["symbols", "tokens"]
    for work in ("encoding", f"step of {args.beams} beams"):
        columns += [f"{work}: GFLOP", "MB", "ms", "GFLOP/s", "GB/s"]
    finish(table(columns, lines), {"settings": vars(args), "rows": rows}, args.out, argv,
           args.device)  # fmt: skip


if __name__ == "__main__":
    main()
