"""Time and memory of a retrofit against its bare backbone, by number of names.

    python benchmarks/retrofit.py --threads 1 --out retrofit              # T5-small's sizes
    python benchmarks/retrofit.py --host bart --threads 1 --out retrofit-bart   # BART-base's
    python benchmarks/retrofit.py --host llama --threads 1 --out retrofit-llama  # a decoder alone
    python benchmarks/retrofit.py --host llama --sides relational --works greedy --target 1 \
        --batch 1 --rounds 0 --names 4,100 --length 1024,4096,16384 --out retrofit-tokens

The backbone has random weights and a vocabulary of its family's size; decoders alone, `llama` and
`gpt2`, have width 256 and 8,000 tokens, and read a source and its answer as one sequence. Every
sample holds all names of its batch; what else it says is drawn at random, and so are the weights:
neither changes the time. The sides:

- backbone: the model of Transformers, alone; a name is a token like any other.
- `streams`: one row of the backbone's batch for each name; `aggregated`: with blocks of aggregated
  attention behind all layers of encoder and decoder.
- `relational`, `dual_part`, `first_occurrence`: one pass, whatever the number of names.

A training step is forward, backward and AdamW, without dropout. Generation, greedy or with 3 beams,
has a dynamic cache and a fixed number of new tokens; with one, it is a prefill. Sides take turns in
one process; a ratio is that of two times of one round, on a CPU of processor time, and of `streams`
it is also divided by the number of names. Times and ratios are printed as minimum / median /
maximum over the rounds. Memory is measured in a process of its own for each figure, as in
relational_price.py.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BartConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedConfig,
    T5Config,
)

from hf_alpha.cli.options import integers
from hf_alpha.modeling.checks import IGNORE
from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_retrofit import RetrofitForConditionalGeneration
from hf_alpha.modeling.modeling_retrofit_decoder import RetrofitForCausalLM
from hf_alpha.modeling.symbol_encodings import encoding_class
from hf_alpha.modeling.symbols import first_occurrence
from measure import clocked_in_turns, finish, in_own_process, parser_of, ratios, table, three
from steps import BEAMS, WORKS, Batch, Step, generation, most_held, training_step

BACKBONE = "backbone"
SIDES: dict[str, dict[str, Any]] = {
    "streams": {"symbol_encoding": "streams"},
    "aggregated": {
        "symbol_encoding": "streams",
        "aggregated_attention": ["encoder", "decoder"],
    },
    "relational": {"symbol_encoding": "relational"},
    "dual_part": {"symbol_encoding": "dual_part"},
    "first_occurrence": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
}
BASE = 1000  # first of the base tokens that are drawn: special ones come before
SMALL = {"vocab_size": 8000, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
HOSTS: dict[str, PreTrainedConfig] = {
    "t5": T5Config(dropout_rate=0.0, decoder_start_token_id=0),
    "bart": BartConfig(
        encoder_layers=6, decoder_layers=6, d_model=768, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
        encoder_attention_heads=12, decoder_attention_heads=12, dropout=0.0,
        forced_eos_token_id=None,
    ),
    "llama": LlamaConfig(
        **SMALL, hidden_size=256, intermediate_size=704, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=1 << 15,
    ),
    "gpt2": GPT2Config(
        **SMALL, n_embd=256, n_layer=6, n_head=4, n_positions=512, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0,
    ),
    "tiny": T5Config(
        d_model=32, d_kv=8, num_layers=1, num_heads=2, d_ff=32, vocab_size=1100, dropout_rate=0.0,
        decoder_start_token_id=0,
    ),
}  # fmt: skip


def make_model(args: argparse.Namespace, side: str) -> Any:
    """A side, with random weights; names have the last ids of the backbone's vocabulary."""
    torch.manual_seed(0)
    host, most = HOSTS[args.host], max(args.names)
    pair = host.is_encoder_decoder
    if side == BACKBONE:
        return (AutoModelForSeq2SeqLM if pair else AutoModelForCausalLM).from_config(host)
    settings, end = SIDES[side], host.vocab_size
    free = end - most
    num_rows = encoding_class(settings["symbol_encoding"]).rows_per_class or 0
    config = RetrofitConfig(
        backbone_config=host,
        num_base_tokens=free,
        symbol_classes={"name": most},
        class_rows={"name": list(range(free, free + num_rows))},
        **settings,
    )
    return (RetrofitForConditionalGeneration if pair else RetrofitForCausalLM)(config)


def draw_batch(args: argparse.Namespace, names: int, seed: int = 0) -> Batch:
    """Sources in which every name stands at least once, and answers; half of the rest is names."""
    generator = torch.Generator().manual_seed(seed)
    first = HOSTS[args.host].vocab_size - max(args.names)

    def draw(start: int, stop: int, columns: int) -> torch.Tensor:
        return torch.randint(start, stop, (args.batch, columns), generator=generator)

    def tokens(columns: int) -> torch.Tensor:
        base_tokens = draw(BASE, first, columns)
        return torch.where(
            draw(0, 2, columns) > 0, draw(first, first + names, columns), base_tokens
        )

    listed = torch.arange(first, first + names).expand(args.batch, -1)
    ids = torch.cat((listed, tokens(args.length - names)), dim=1)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "stream_ids": first_occurrence(ids, ids >= first),
        "labels": tokens(args.target),
    }


def one_sequence(batch: Batch) -> Batch:
    """What a decoder alone reads: sources and answers as one, without a loss in the source."""
    ids, labels = batch["input_ids"], batch["labels"]
    whole = torch.cat((ids, labels), dim=1)
    return {
        **batch,
        "input_ids": whole,
        "attention_mask": torch.ones_like(whole),
        "labels": torch.cat((torch.full_like(ids, IGNORE), labels), dim=1),
    }


def prepare(args: argparse.Namespace, side: str, work: str, names: int, model: Any = None) -> Step:
    """One training step or one generation of a side; without a model, of a new one."""
    model = make_model(args, side).to(args.device) if model is None else model
    batch = {key: value.to(args.device) for key, value in draw_batch(args, names).items()}
    if side == BACKBONE:
        del batch["stream_ids"]
    if work == "training" and not HOSTS[args.host].is_encoder_decoder:
        batch = one_sequence(batch)
    if work == "training":
        return training_step(model, batch)
    return generation(model, batch, BEAMS if work == "beams" else 1, args.target)


def measure_memory(settings: dict[str, Any], side: str, work: str, names: int) -> float:
    """Megabytes of a kind of work, in this process, which has done nothing else."""
    args = argparse.Namespace(**settings)
    if args.threads:
        torch.set_num_threads(args.threads)
    model = make_model(args, side).to(args.device)
    # What libraries load at first use is none of the work's.
    smallest = {"batch": 1, "length": max(args.names), "target": 1}
    prepare(argparse.Namespace(**{**settings, **smallest}), side, work, 1, model)()
    model.zero_grad()
    return most_held(prepare(args, side, work, names, model), args.device)


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """All measurements, an entry for each kind of work, number of tokens and of names."""
    rows = []
    for work, length, names in product(args.works, args.length, args.names):
        row: dict[str, Any] = {"work": work, "length": length, "names": names}
        sized = argparse.Namespace(**{**vars(args), "length": length})
        if args.rounds:
            steps = {side: prepare(sized, side, work, names) for side in (BACKBONE, *args.sides)}
            wall, processor = clocked_in_turns(steps, args.rounds, args.device)
            row["seconds"] = processor if args.device == "cpu" else wall
            del steps
        if not args.no_memory:
            row["megabytes"] = {
                side: in_own_process(measure_memory, vars(sized), side, work, names)
                for side in (BACKBONE, *args.sides)
            }
        rows.append(row)
        print(f"{WORKS[work]}, {length} tokens, {names} names: done", file=sys.stderr, flush=True)
    return rows


def time_table(rows: Sequence[dict[str, Any]], sides: Sequence[str]) -> str:
    """Ratios to the backbone; of streams, each name counts."""
    lines = []
    for row in rows:
        cells = []
        for side in sides:
            quotients = ratios(row["seconds"][side], row["seconds"][BACKBONE])
            cells.append(three(quotients))
            if "streams" in SIDES[side].values():
                cells.append(three([value / row["names"] for value in quotients]))
        milliseconds = [1e3 * x for x in row["seconds"][BACKBONE]]
        place = (WORKS[row["work"]], str(row["length"]), str(row["names"]))
        lines.append([*place, *cells, three(milliseconds, 0)])
    columns = []
    for side in sides:
        columns.append(f"{side} / {BACKBONE}")
        if "streams" in SIDES[side].values():
            columns.append("by name")
    return table(("work", "tokens", "names", *columns, f"{BACKBONE}: ms"), lines)


def memory_table(rows: Sequence[dict[str, Any]], sides: Sequence[str]) -> str:
    """Megabytes of each side, and in brackets by those of the backbone."""
    lines = []
    for row in rows:
        megabytes = row["megabytes"]
        cells = [
            f"{megabytes[side]:,.0f} ({megabytes[side] / megabytes[BACKBONE]:.2f})"
            for side in sides
        ]
        place = (WORKS[row["work"]], str(row["length"]), str(row["names"]))
        lines.append([*place, f"{megabytes[BACKBONE]:,.0f}", *cells])
    columns = ("work", "tokens", "names", BACKBONE, *sides)
    return table((*columns[:3], *(f"{side}: MB" for side in columns[3:])), lines)


def write(args: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> str:
    """Everything that is printed."""
    host = make_model(args, BACKBONE)
    head = (
        f"{args.host}: {host.num_parameters():,} parameters, {HOSTS[args.host].vocab_size:,} "
        f"tokens, float32; batch {args.batch}, {args.target} tokens of an answer; "
        f"{args.rounds} rounds on {args.device}"
    )
    parts = [head]
    if args.rounds:
        parts.append(time_table(rows, args.sides))
    if not args.no_memory:
        parts.append(f"Memory of the work; by the {BACKBONE}\n\n{memory_table(rows, args.sides)}")
    return "\n\n".join(parts)


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("--host", choices=HOSTS, default="t5", help="the backbone (t5)")
    add("--names", type=integers, default=[1, 2, 5, 10], help="in the input (1,2,5,10)")
    add("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    add("--works", nargs="+", choices=WORKS, default=list(WORKS))
    add("--batch", type=int, default=4, help="samples (4)")
    add("--length", type=integers, default=[32], help="tokens of a source (32)")
    add("--target", type=int, default=16, help="tokens of an answer (16)")
    add("--no-memory", action="store_true", help="measure times only")
    add("--rounds", type=int, default=3, help="0 measures memory only (3)")
    add("--device", default="cpu", help="cpu or cuda")
    add("--threads", type=int, help="CPU threads of torch")
    args = parser.parse_args(argv)
    if not HOSTS[args.host].is_encoder_decoder and "aggregated" in args.sides:
        args.sides = [side for side in args.sides if side != "aggregated"]  # joins streams
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    rows = run(args)
    data = {"settings": vars(args), "rows": rows}
    finish(write(args, rows), data, args.out, argv, args.device)


if __name__ == "__main__":
    main()
