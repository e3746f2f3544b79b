"""Geometric encoders: a training step against a BERT of the same size.

    python benchmarks/geometric.py --threads 1 --out geometric

For texts of several lengths, and for several numbers of segments, as a share of the number of
tokens. All batches have the same number of tokens; segments are drawn at random, 1 to 4 tokens
long, and come on top. The sides:

- BERT: `BertModel` of Transformers, which sees tokens only.
- `none`: this package's encoder, which ignores segments.
- `graph`, `two_layer_rotary`: with relations in attention.
- `gated graph`, `gated rotary`: the same as a conversion of a BERT makes it, with two attentions.

A training step is forward, backward and AdamW; the loss is the mean square of the last states.
Sides take turns in one process; times and ratios are printed as minimum / median / maximum over
the rounds.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
from transformers import BertConfig, BertModel, PreTrainedModel

from hf_alpha.cli.options import integers
from hf_alpha.modeling.configuration_geometric import GeometricConfig
from hf_alpha.modeling.modeling_geometric import GeometricModel
from measure import finish, in_turns, parser_of, ratios, table, three

BERT = "BERT"
GATED = {"gated": True, "absolute_positions": True}
SIDES: dict[str, dict[str, Any]] = {
    "none": {"relation_attention": "none"},
    "graph": {"relation_attention": "graph"},
    "two_layer_rotary": {"relation_attention": "two_layer_rotary"},
    "gated graph": {"relation_attention": "graph", **GATED},
    "gated rotary": {"relation_attention": "two_layer_rotary", **GATED},
}
LABELS = ["compound", "date", "name"]
LONGEST = 4  # tokens of a segment


def make_model(args: argparse.Namespace, side: str, length: int) -> PreTrainedModel:
    """A model with random weights, in training."""
    sizes = {
        "vocab_size": args.vocabulary,
        "hidden_size": args.hidden,
        "num_hidden_layers": args.layers,
        "num_attention_heads": args.heads,
        "intermediate_size": 4 * args.hidden,
        "max_position_embeddings": length,
        "hidden_dropout_prob": args.dropout,
        "attention_probs_dropout_prob": args.dropout,
    }
    torch.manual_seed(0)
    if side == BERT:
        return BertModel(BertConfig(**sizes)).to(args.device).train()
    config = GeometricConfig(**sizes, segment_labels=LABELS, **SIDES[side])
    return GeometricModel(config).to(args.device).train()


def make_batch(args: argparse.Namespace, length: int, share: int) -> dict[str, torch.Tensor]:
    """Tokens, and as many segments as `share` per cent of them."""
    generator = torch.Generator().manual_seed(0)
    rows, count = max(args.tokens // length, 1), length * share // 100

    def draw(least: int, most: int, *shape: int) -> torch.Tensor:
        return torch.randint(least, most, shape, generator=generator)

    batch = {"input_ids": draw(0, args.vocabulary, rows, length)}
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    if count:
        starts = draw(0, length - LONGEST, rows, count)
        batch["segment_ids"] = draw(1, 1 + len(LABELS), rows, count)
        batch["segment_starts"] = starts
        batch["segment_ends"] = starts + draw(0, LONGEST, rows, count)
    return {name: tensor.to(args.device) for name, tensor in batch.items()}


def training_step(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> Callable[[], None]:
    """Forward, backward and AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)

    def step() -> None:
        optimizer.zero_grad()
        model(**batch).last_hidden_state.square().mean().backward()
        optimizer.step()

    return step


def measure(args: argparse.Namespace, length: int) -> dict[str, list[float]]:
    """Seconds of each side, `graph, 25 %` say, in each round."""
    plain = make_batch(args, length, 0)
    steps = {BERT: training_step(make_model(args, BERT, length), plain)}
    for side in SIDES:
        model = make_model(args, side, length)
        for share in args.shares:
            if share and side == "none":
                continue  # there is nothing to do for it
            batch = make_batch(args, length, share)
            steps[f"{side}, {share} %"] = training_step(model, batch)
    return in_turns(steps, args.rounds, args.device)


def lines_of(times: dict[str, list[float]]) -> list[list[str]]:
    """A line for each side: seconds, and the ratio to BERT's."""
    return [
        [side, three(seconds, 3), "" if side == BERT else three(ratios(seconds, times[BERT]))]
        for side, seconds in times.items()
    ]


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    parser.add_argument("--lengths", type=integers, default=[128, 512], help="(128,512)")
    parser.add_argument("--shares", type=integers, default=[0, 25, 100], help="(0,25,100)")
    for name, size in {
        "tokens": 2048, "vocabulary": 8000, "hidden": 256, "layers": 4, "heads": 4, "rounds": 5,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=size, help=f"({size})")
    parser.add_argument("--dropout", type=float, default=0.1, help="(0.1)")
    parser.add_argument("--threads", type=int, help="CPU threads of torch")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    return parser


def main(argv: list[str] | None = None) -> None:
    args = make_parser().parse_args(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    times_by_length = {length: measure(args, length) for length in args.lengths}
    parts = [
        f"# Geometric encoders: a training step\n\n{args.layers} layers of width {args.hidden}, "
        f"{args.heads} heads, {args.tokens} tokens a batch, {args.rounds} rounds.\n"
    ]
    for length, times in times_by_length.items():
        columns = [f"{length} tokens a text", "seconds", "by BERT's"]
        parts.append(table(columns, lines_of(times)) + "\n")
    data = {f"{length}": times for length, times in times_by_length.items()}
    finish("\n".join(parts), data, args.out, argv, args.device)


if __name__ == "__main__":
    main()
