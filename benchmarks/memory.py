"""Memory of `streams`: training and generation by number of symbols.

    python benchmarks/memory.py --out streams-memory
    python benchmarks/memory.py --work generation --symbols 200 --length 200 --new-tokens 200 \
        --batch 1 --out streams-memory-200

Each figure is from a process of its own: the most memory that it ever held, less what it held
before the work began, when model and libraries were loaded (on a GPU, the allocator's peak). The
ratio is to k times the figure of one stream.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence

import torch

from growth import draw_sample
from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from measure import add_model, add_out, finish, held, in_own_process, table

WORKS = ("training", "generation")


def work(args: argparse.Namespace, kind: str, symbols: int) -> dict[str, float]:
    """Do the work in this process; megabytes of the work, and of the whole process."""
    sizes = {"layers": args.layers, "attention_heads": args.heads, "ffn_dim": args.ffn}
    config = AlphaConfig(
        encoder_position="tree",
        symbol_classes={"proposition": symbols},
        d_model=args.d_model,
        **{f"{side}_{k}": v for side in ("encoder", "decoder") for k, v in sizes.items()},
    )
    model = AlphaForConditionalGeneration(config).to(args.device)
    model.generation_config.max_length = None
    sample = draw_sample(config, symbols, args.length)
    batch = {name: x.repeat(args.batch, 1).to(args.device) for name, x in sample.items()}

    def run() -> None:
        if kind == "training":
            labels = torch.full((args.batch, args.new_tokens), 5, device=args.device)
            model.train()(**batch, labels=labels).loss.backward()
            return
        tokens = {"min_new_tokens": args.new_tokens, "max_new_tokens": args.new_tokens}
        with torch.inference_mode():
            model.eval().generate(**batch, **tokens, num_beams=args.beams, do_sample=False)

    return most_held(run, args.device)


def most_held(run: Callable[[], object], device: str) -> dict[str, float]:
    """Megabytes of what is run, and of the whole process; on a GPU all that is allocated there."""
    before = held()
    run()
    if device.startswith("cuda"):
        peak = torch.cuda.max_memory_allocated(device) / 1e6
        return {"work": peak, "process": peak}
    peak = held("VmHWM")
    return {"work": peak - before, "process": peak}


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--work", choices=WORKS, nargs="+", default=list(WORKS))
    add("--symbols", type=int, nargs="+", default=[1, 2, 5, 10])
    add("--length", type=int, default=36, help="tokens of the input (36)")
    add("--new-tokens", type=int, default=31, help="tokens of the answer (31)")
    add("--batch", type=int, default=64, help="samples (64)")
    add("--beams", type=int, default=3)
    add("--child", nargs=2, help=argparse.SUPPRESS)
    add_model(parser)
    add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.child:
        print(json.dumps(work(args, args.child[0], int(args.child[1]))))
        return
    command_line = list(sys.argv[1:] if argv is None else argv)
    lines, rows = [], []
    for kind in args.work:
        one = None
        for symbols in args.symbols:
            megabytes = in_own_process(__file__, [*command_line, "--child", kind, str(symbols)])
            one = megabytes["work"] / symbols if one is None else one
            ratio = megabytes["work"] / (symbols * one)
            lines.append([kind, str(symbols), f"{megabytes['work']:,.0f}", f"{ratio:.2f}",
                          f"{megabytes['process']:,.0f}"])  # fmt: skip
            rows.append({"work": kind, "symbols": symbols, **megabytes})
    text = (
        f"batch {args.batch}, {args.length} tokens, answers of {args.new_tokens}, {args.beams} "
        f"beams; d {args.d_model}, {args.layers} + {args.layers} layers, {args.heads} "
        f"heads, FFN {args.ffn}\n\n"
    )
    columns = ["work", "symbols k", "MB of the work", "by k times the first", "MB of the process"]
    finish(text + table(columns, lines), {"settings": vars(args), "rows": rows}, args.out, argv,
           args.device)  # fmt: skip


if __name__ == "__main__":
    main()
