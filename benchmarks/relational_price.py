"""The price of `relational` beside a BART, by length, width, names and threads, in one command.

    python benchmarks/relational_price.py --rounds 3 --out relational-price
    python benchmarks/relational_price.py --works memory --tokens 6400 --out relational-price-memory
    python benchmarks/relational_price.py --sides streams BART --lengths 35 --names 1,2,5,10

Models have random weights, 4 + 3 layers, 4 heads, an FFN of 4 times the width, no dropout, and a
vocabulary of as many names as their sources have. Each source has every name at least once, and
half of what else it says are names. A batch has about `--tokens` tokens of sources, and answers of
20.

- `learned`, `relational`, `streams`: models of this package with that encoding.
- BART: `BartForConditionalGeneration` of the same sizes.

A training step is forward, backward and AdamW; generation, greedy or with 3 beams, writes 20 tokens
with a cache. Sides take turns; a ratio is the median, over the rounds, of two processor times in
one round. Memory is the most that a process of its own held, less what it held before the work,
with one thread; with few tokens it is too little to be told from what libraries hold.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from hf_alpha.cli.options import integers
from measure import clocked_in_turns, finish, in_own_process, parser_of, ratios, table
from steps import (
    BART,
    LEARNED,
    RELATIONAL,
    ROOM,
    STREAMS,
    WORKS,
    Size,
    draw_batch,
    make_model,
    most_held,
    prepare,
)

MEMORY = "memory"
SIDES = (LEARNED, RELATIONAL, STREAMS, BART)
COLUMNS = ((RELATIONAL, BART), (LEARNED, BART), (STREAMS, BART), (RELATIONAL, LEARNED))


def size_of(length: int, width: int, tokens: int) -> Size:
    """Sizes of models and work, for sources of a length."""
    batch = max(tokens // length, 1)
    return Size(width, 4, 3, 4, 4 * width, batch=batch, length=length, target=20)


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All times, an entry for each setting."""
    works = [work for work in WORKS if work in args.works]
    settings = product(works, args.threads, args.widths, args.lengths, args.names)
    for work, threads, width, length, names in settings:
        if names + ROOM > length:
            continue
        torch.set_num_threads(threads)
        size = size_of(length, width, args.tokens)
        batch = draw_batch(size, names)
        models = {side: make_model(size, side, names) for side in args.sides}
        steps = {side: prepare(x, side, work, batch, size.target) for side, x in models.items()}
        wall, processor = clocked_in_turns(steps, args.rounds)
        row = {"work": work, "threads": threads, "width": width, "length": length, "names": names}
        yield row | {"seconds": wall, "processor": processor}
        print(*row.values(), file=sys.stderr, flush=True)


def measure_memory(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Megabytes of each side, an entry for each setting."""
    for work, width, length in product(("training", "greedy"), args.widths, args.lengths):
        row = {"work": work, "width": width, "length": length, "names": args.memory_names}
        if args.memory_names + ROOM > length:
            continue
        place = (args.tokens, *row.values())
        held = {side: in_own_process(megabytes_of, *place, side) for side in args.sides}
        yield row | {"megabytes": held}
        print("memory:", *row.values(), file=sys.stderr, flush=True)


def megabytes_of(tokens: int, work: str, width: int, length: int, names: int, side: str) -> float:
    """Megabytes of a kind of work, in this process, which has done nothing else."""
    torch.set_num_threads(1)
    size = size_of(length, width, tokens)
    model = make_model(size, side, names)
    # What libraries load at first use is none of the work's.
    little = draw_batch(replace(size, batch=1, length=1, target=1), 1)
    prepare(model, side, work, little, new_tokens=1)()
    model.zero_grad()
    return most_held(prepare(model, side, work, draw_batch(size, names), size.target))


def write(args: argparse.Namespace, data: dict[str, Any]) -> str:
    """Everything that is printed."""
    parts = [
        f"4 + 3 layers, 4 heads, FFN 4 d, float32; about {args.tokens} tokens of sources in a "
        f"batch, 20 of an answer; {args.rounds} rounds, processor time"
    ]
    pairs = [pair for pair in COLUMNS if {*pair} <= {*args.sides}]
    for work in args.works:
        if work == MEMORY:
            parts.append(write_memory(args, data["memory"]))
            continue
        lines = []
        for row in (row for row in data["times"] if row["work"] == work):
            times = row["processor"]
            cells = [f"{statistics.median(ratios(times[a], times[b])):.2f}" for a, b in pairs]
            fastest = f"{1e3 * statistics.median(row['seconds'][BART]):.1f}"
            place = (str(row[key]) for key in ("width", "length", "names", "threads"))
            lines.append([*place, *cells, fastest])
        columns = ("d", "tokens", "names", "threads", *(f"{a} / {b}" for a, b in pairs))
        parts.append(f"{WORKS[work]}\n\n{table((*columns, 'BART: ms'), lines)}")
    return "\n\n".join(parts)


def write_memory(args: argparse.Namespace, rows: list[dict[str, Any]]) -> str:
    """The table of megabytes."""
    lines = []
    for row in rows:
        held = row["megabytes"]
        cells = [f"{held[side]:,.0f} ({held[side] / held[BART]:.2f})" for side in args.sides]
        lines.append([WORKS[row["work"]], str(row["width"]), str(row["length"]), *cells])
    columns = ("work", "d", "tokens", *(f"{side}: MB" for side in args.sides))
    return f"Memory, {args.memory_names} names; by BART's\n\n{table(columns, lines)}"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("--works", nargs="+", choices=(*WORKS, MEMORY), default=[*WORKS, MEMORY], help="(all)")
    usual = [LEARNED, RELATIONAL, BART]
    add("--sides", nargs="+", choices=SIDES, default=usual, help=f"beside BART ({' '.join(usual)})")
    add("--lengths", type=integers, default=[35, 100, 400, 1024], help="(35,100,400,1024)")
    add("--widths", type=integers, default=[64, 256], help="(64,256)")
    add("--names", type=integers, default=[1, 10, 50], help="(1,10,50)")
    add("--threads", type=integers, default=[1, 2], help="(1,2)")
    add("--memory-names", type=int, default=10, help="names where memory is measured (10)")
    add("--tokens", type=int, default=800, help="tokens of sources in a batch (800)")
    add("--rounds", type=int, default=5, help="(5)")
    args = parser.parse_args(argv)
    args.sides = [side for side in SIDES if side in (BART, *args.sides)]
    return args


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    data = {
        "settings": vars(args),
        "times": list(measure(args)),
        "memory": list(measure_memory(args)) if MEMORY in args.works else [],
    }
    finish(write(args, data), data, args.out, argv)


if __name__ == "__main__":
    main()
