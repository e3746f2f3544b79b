"""Time and memory of `relational`, against `learned`, `streams` and a BART of the same sizes.

    python benchmarks/relational.py --threads 1 --out relational  # d 64, 4 + 3 layers, FFN 256
    python benchmarks/relational.py --size paper --threads 1      # d 128, 8 + 8 layers, FFN 1024
    python benchmarks/relational.py --size large --threads 1      # up to 200 names in 400 tokens

For several numbers of names in the input. `small` has the sizes of the recipes
training/propositional/*-small.yaml, `paper` the papers' for LTL (d 128, 8 + 8 layers), `large` one
sample for the model of `small`. A source has so many tokens (`--length`), or 10 more than names
where that is more; all samples hold all names of the vocabulary. What they say is drawn at random,
and weights are random: neither changes the time. The sides:

- `learned`: the vanilla model, one trained vector for each name.
- `relational`: one stream, names as relations between positions.
- `streams`: one stream for each name, with aggregated attention, as its recipes have it; only up to
  `--streams-limit` names, since its time grows with their number.
- BART: `BartForConditionalGeneration` of the same width, layers, heads, FFN and vocabulary.

A training step is forward, backward and AdamW, without dropout and AdaCos, which would cost all
sides the same. Generation, greedy or with 3 beams, has a dynamic cache and a fixed number of new
tokens. Sides take turns in one process; a ratio is that of the two times in one round. Times and
ratios are printed as minimum / median / maximum over the rounds.

Memory is measured in a process of its own for each figure: the most that it held in the work, less
what it held before, when model and libraries were loaded and had done a little work (on a GPU, the
allocator's peak). On paper, multiply-adds are counted as benchmarks/multiply_adds.py says.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedModel

import memory
import multiply_adds
from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.cli.options import integers
from hf_alpha.modeling.symbols import first_occurrence
from measure import add_out, finish, in_turns, ratios, table, three
from streams import Batch, Step, generation, training_step, without_streams

LEARNED, RELATIONAL, STREAMS, BART = SIDES = ("learned", "relational", "streams", "BART")
BEAMS = 3
WORKS = {
    "training": "Training step",
    "greedy": "Generation, greedy",
    "beams": f"Generation, {BEAMS} beams",
}
ROOM = 10  # tokens of a source that are not needed for one of each name, at least
NO_VALUE = "-"
ON_PAPER = f"{RELATIONAL} / {LEARNED} on paper"
Times = dict[str, list[float]]  # side -> seconds of each round


@dataclass(frozen=True)
class Size:
    """Sizes of the models and of their work."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    ffn: int
    batch: int
    length: int
    target: int

    def tokens(self, names: int) -> int:
        """Tokens of a source with so many names."""
        return max(self.length, names + ROOM)

    def both_sides(self) -> dict[str, int]:
        """Settings of a configuration, named as BART's."""
        shared = {"attention_heads": self.heads, "ffn_dim": self.ffn}
        return {
            "d_model": self.d_model,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in shared.items()},
        }


@dataclass(frozen=True)
class Preset:
    """A size, and for which names, kinds of work and sides."""

    size: Size
    names: str = "1,2,5,10,50"
    sides: tuple[str, ...] = SIDES


PRESETS = {
    "small": Preset(Size(64, 4, 3, 4, 256, batch=128, length=20, target=12)),
    "paper": Preset(Size(128, 8, 8, 8, 1024, batch=64, length=36, target=16)),
    "large": Preset(
        Size(64, 4, 3, 4, 256, batch=1, length=400, target=20),
        names="1,10,50,100,200",
        sides=(LEARNED, RELATIONAL),
    ),
}

# -- data and models ------------------------------------------------------------------------------


def alpha_config(size: Size, encoding: str, names: int) -> AlphaConfig:
    """The configuration of a model of this package with a vocabulary of so many names."""
    parts = {"encoder_aggregated_attention": False, "decoder_aggregated_attention": False}
    return AlphaConfig(
        symbol_encoding=encoding,
        symbol_classes={"proposition": names},
        encoder_position="tree",
        dropout=0.0,
        adacos=False,
        logit_scale=10.0,
        **size.both_sides(),
        **({} if encoding == STREAMS else parts),
    )


def bart_config(size: Size, names: int) -> BartConfig:
    """The configuration of a BART of the same sizes."""
    config = alpha_config(size, LEARNED, names)
    return BartConfig(
        vocab_size=config.vocab_size,
        max_position_embeddings=max(size.tokens(names), size.target) + 8,
        dropout=0.0,
        pad_token_id=config.pad_token_id,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
        forced_eos_token_id=None,
        **size.both_sides(),
    )


def make_model(size: Size, side: str, names: int) -> PreTrainedModel:
    """A side, with random weights."""
    torch.manual_seed(0)
    if side == BART:
        return BartForConditionalGeneration(bart_config(size, names))
    return AlphaForConditionalGeneration(alpha_config(size, side, names))


def draw_batch(size: Size, names: int, seed: int = 0) -> Batch:
    """Sources in which every name stands at least once, and answers.

    Of what is drawn beyond that, half is names.
    """
    config = alpha_config(size, LEARNED, names)
    generator = torch.Generator().manual_seed(seed)
    first, count = config.num_base_tokens, size.batch
    listed = torch.arange(first, first + names).expand(count, -1)
    more = _draw_tokens(config, count, size.tokens(names) - names, generator)
    order = torch.rand(count, size.tokens(names), generator=generator).argsort(1)
    ids = torch.cat((listed, more), dim=1).gather(1, order)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "stream_ids": first_occurrence(ids, ids >= first),
        "tree_paths": torch.arange(1, ids.shape[1] + 1).repeat(count, 1),
        "labels": _draw_tokens(config, count, size.target, generator),
    }


def _draw_tokens(
    config: AlphaConfig, rows: int, columns: int, generator: torch.Generator
) -> torch.Tensor:
    """Base tokens but for the special ones, and names: (rows, columns)."""

    def draw(start: int, stop: int) -> torch.Tensor:
        return torch.randint(start, stop, (rows, columns), generator=generator)

    base, names = draw(3, config.num_base_tokens), draw(config.num_base_tokens, config.vocab_size)
    return torch.where(draw(0, 2) > 0, names, base)


# -- the work -------------------------------------------------------------------------------------


def prepare(model: PreTrainedModel, side: str, work: str, batch: Batch, new_tokens: int) -> Step:
    """One training step or one generation for a batch."""
    inputs = {key: value.to(model.device) for key, value in batch.items()}
    inputs = without_streams(inputs) if side == BART else inputs
    if work == "training":
        return training_step(model, inputs)
    return generation(model, inputs, BEAMS if work == "beams" else 1, new_tokens)


def measure_times(args: argparse.Namespace, work: str, names: int) -> Times:
    """Seconds of all sides; without those that are left out for so many names."""
    batch = draw_batch(args.sizes, names, args.seed)
    steps = {
        side: prepare(
            make_model(args.sizes, side, names).to(args.device),
            side,
            work,
            batch,
            args.sizes.target,
        )
        for side in sides_of(args, names)
    }
    return in_turns(steps, args.rounds, args.device)


def sides_of(args: argparse.Namespace, names: int) -> list[str]:
    """The sides that take part with so many names."""
    return [side for side in args.sides if side != STREAMS or names <= args.streams_limit]


def measure_memory(args: argparse.Namespace, side: str, work: str, names: int) -> float:
    """Megabytes of a kind of work, in this process, which has done nothing else."""
    model = make_model(args.sizes, side, names).to(args.device)
    # What libraries load at first use is none of the work's.
    little = draw_batch(replace(args.sizes, batch=1, length=1, target=1), 1, args.seed)
    prepare(model, side, work, little, new_tokens=1)()
    model.zero_grad()
    batch = draw_batch(args.sizes, names, args.seed)
    step = prepare(model, side, work, batch, args.sizes.target)
    return memory.most_held(step, args.device)["work"]


def run(args: argparse.Namespace, command_line: Sequence[str]) -> list[dict[str, Any]]:
    """All measurements, an entry for each kind of work and number of names.

    Args:
        command_line: the command line, for the processes in which memory is measured.
    """
    rows = []
    for work in args.works:
        for names in args.numbers:
            row = {"work": work, "names": names, "tokens": args.sizes.tokens(names)}
            row["seconds"] = measure_times(args, work, names)
            row["multiply_adds"] = on_paper(args, work, names)
            if not args.no_memory:
                row["megabytes"] = {
                    side: memory.in_own_process(
                        __file__, [*command_line, "--child", side, work, str(names)]
                    )
                    for side in sides_of(args, names)
                }
            rows.append(row)
            print(f"{WORKS[work]}, {names} names: done", file=sys.stderr, flush=True)
    return rows


def on_paper(args: argparse.Namespace, work: str, names: int) -> Counter[str]:
    """Multiply-adds of one sample; of a training step the forward direction."""
    size, config = args.sizes, alpha_config(args.sizes, RELATIONAL, names)
    if work == "training":
        return multiply_adds.forward(config, names, size.tokens(names), size.target)
    beams = BEAMS if work == "beams" else 1
    return multiply_adds.generation(config, names, size.tokens(names), size.target, beams)


# -- the tables -----------------------------------------------------------------------------------


def time_table(rows: Sequence[dict[str, Any]], sides: Sequence[str]) -> str:
    """Milliseconds of each side, and ratios to `learned` and to BART; beside them that on paper."""
    pairs = [(side, LEARNED) for side in sides if side != LEARNED]
    pairs += [(RELATIONAL, BART)] * ({RELATIONAL, BART} <= set(sides))
    lines = []
    for row in rows:
        seconds = row["seconds"]
        times = [[1e3 * second for second in seconds.get(side, ())] for side in sides]
        ratios_of_pairs = [
            ratios(seconds[one], seconds[two]) if one in seconds else () for one, two in pairs
        ]
        cells = [f"{paper_ratio(row):.2f}"]
        cells += [three(values) if values else NO_VALUE for values in ratios_of_pairs]
        cells += [three(values, 1) if values else NO_VALUE for values in times]
        lines.append([str(row["names"]), str(row["tokens"]), *cells])
    columns = [f"{one} / {two}" for one, two in pairs] + [f"{side}: ms" for side in sides]
    return table(("names", "tokens", ON_PAPER, *columns), lines)


def memory_table(rows: Sequence[dict[str, Any]], sides: Sequence[str]) -> str:
    """Megabytes of each side, and in brackets by those of `learned`."""
    lines = []
    for row in rows:
        megabytes, cells = row["megabytes"], []
        for side in sides:
            ratio = f" ({megabytes[side] / megabytes[LEARNED]:.2f})" if side in megabytes else ""
            cells.append(f"{megabytes[side]:,.0f}{ratio}" if side in megabytes else NO_VALUE)
        lines.append([WORKS[row["work"]], str(row["names"]), *cells])
    return table(("work", "names", *(f"{side}: MB" for side in sides)), lines)


def paper_ratio(row: dict[str, Any]) -> float:
    """Multiply-adds of `relational` by those of `learned`."""
    return row["multiply_adds"].total() / row["multiply_adds"][multiply_adds.LEARNED]


def paper_table(rows: Sequence[dict[str, Any]]) -> str:
    """Millions of multiply-adds that `learned` takes, what each part adds in %, and the ratio."""
    lines = []
    for row in rows:
        counts = row["multiply_adds"]
        learned = counts[multiply_adds.LEARNED]
        added = [f"{counts[part] / learned:.1%}" for part in multiply_adds.ADDED]
        lines.append([
            WORKS[row["work"]], str(row["names"]), str(row["tokens"]), f"{learned / 1e6:,.1f}",
            *added, f"{paper_ratio(row):.2f}",
        ])  # fmt: skip
    columns = ("work", "names", "tokens", "learned: million", *multiply_adds.ADDED)
    return table((*columns, ON_PAPER), lines)


def write(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    """Everything that is printed."""
    parts = [describe(args)]
    for work in args.works:
        chosen = [row for row in rows if row["work"] == work]
        parts.append(f"{WORKS[work]}\n\n{time_table(chosen, args.sides)}")
    if not args.no_memory:
        parts.append(f"Memory of the work; by `learned`\n\n{memory_table(rows, args.sides)}")
    paper = "On paper: multiply-adds of one sample, of a training step without the backward part"
    parts.append(f"{paper}\n\n{paper_table(rows)}")
    return "\n\n".join(parts)


def describe(args: argparse.Namespace) -> str:
    """Sizes of the models and of their work."""
    size = args.sizes
    counts = ", ".join(
        f"{side} {make_model(size, side, args.numbers[-1]).num_parameters():,}"
        for side in args.sides
    )
    return (
        f"d {size.d_model}, {size.encoder_layers} + {size.decoder_layers} layers, {size.heads} "
        f"heads, FFN {size.ffn}, float32; batch {size.batch}, {size.target} tokens of an answer; "
        f"{args.rounds} rounds on {args.device}\n"
        f"parameters with {args.numbers[-1]} names: {counts}"
    )


# -- the command ----------------------------------------------------------------------------------


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; `sizes`, `numbers` and `sides` are complete."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--size", choices=PRESETS, default="small", help="sizes of models and work (small)")
    for field in fields(Size):
        add(f"--{field.name.replace('_', '-')}", type=int, help="instead of that of --size")
    add("--names", type=integers, dest="numbers", help="in the input, such as 1,2,5-10")
    add("--sides", nargs="+", choices=SIDES, help=f"{LEARNED} always takes part")
    add("--works", nargs="+", choices=WORKS, default=list(WORKS))
    add("--streams-limit", type=int, default=10, help="most names for `streams` (10)")
    add("--no-memory", action="store_true", help="measure times only")
    add("--rounds", type=int, default=11, help="(11)")
    add("--device", default="cpu", help="cpu or cuda")
    add("--threads", type=int, help="CPU threads of torch")
    add("--seed", type=int, default=0)
    add("--child", nargs=3, help=argparse.SUPPRESS)
    add_out(parser)
    args = parser.parse_args(argv)
    preset = PRESETS[args.size]
    own = {field.name: getattr(args, field.name) for field in fields(Size)}
    own = {name: value for name, value in own.items() if value is not None}
    args.sizes = replace(preset.size, **own)
    args.numbers = args.numbers or integers(preset.names)
    args.sides = [side for side in SIDES if side in (LEARNED, *(args.sides or preset.sides))]
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.child:
        side, work, names = args.child
        print(json.dumps(measure_memory(args, side, work, int(names))))
        return
    rows = run(args, list(sys.argv[1:] if argv is None else argv))
    data = {"settings": {**vars(args), "sizes": asdict(args.sizes)}, "rows": rows}
    finish(write(args, rows), data, args.out, argv, args.device)


if __name__ == "__main__":
    main()
