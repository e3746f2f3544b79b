"""The price of `relational` beside a BART, by length, width, names and threads, in one command.

    python benchmarks/relational_price.py --rounds 3 --out relational-price
    python benchmarks/relational_price.py --works memory --tokens 6400 --out relational-price-memory

Models have 4 + 3 layers, 4 heads, an FFN of 4 times the width, and are those of
benchmarks/relational.py, which says what the sides and the kinds of work are. A batch has about
`--tokens` tokens of sources. One more side, `matrices`, is `relational` with its relations as
matrices of scores, whatever their size: what it was before they became part of the heads' own
products. Sides take turns; a ratio is the median, over the rounds, of two processor times in one
round. Memory is measured with one thread, each figure in a process of its own; with few tokens it
is too little to be told from what libraries hold.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest.mock import patch

import torch

import relational
from hf_alpha.cli.options import integers
from hf_alpha.modeling.relations import Relations
from measure import add_out, clocked_in_turns, finish, in_own_process, ratios, table
from relational import BART, LEARNED, RELATIONAL, WORKS, Size
from streams import Step

MATRICES = "matrices"
MEMORY = "memory"
SIDES = (LEARNED, RELATIONAL, MATRICES, BART)
COLUMNS = ((RELATIONAL, BART), (LEARNED, BART), (RELATIONAL, LEARNED), (MATRICES, BART))


@contextmanager
def only_matrices() -> Iterator[None]:
    """Relations are matrices of scores here, however many scores there are."""
    with patch.object(Relations, "prefers_slots", False):
        yield


def size_of(length: int, width: int, tokens: int) -> Size:
    """Sizes of models and work, for sources of a length."""
    batch = max(tokens // length, 1)
    return Size(width, 4, 3, 4, 4 * width, batch=batch, length=length, target=20)


def step_of(size: Size, side: str, work: str, names: int) -> Step:
    """One training step or one generation by a side."""
    kind = RELATIONAL if side == MATRICES else side
    batch = relational.draw_batch(size, names)
    model = relational.make_model(size, kind, names)
    step = relational.prepare(model, kind, work, batch, size.target)
    if side != MATRICES:
        return step

    def with_matrices() -> None:
        with only_matrices():
            step()

    return with_matrices


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All measurements, an entry for each setting."""
    works = [work for work in WORKS if work in args.works]
    settings = product(works, args.threads, args.widths, args.lengths, args.names)
    for work, threads, width, length, names in settings:
        if names + relational.ROOM > length:
            continue
        torch.set_num_threads(threads)
        size = size_of(length, width, args.tokens)
        steps = {side: step_of(size, side, work, names) for side in SIDES}
        wall, processor = clocked_in_turns(steps, args.rounds)
        row = {"work": work, "threads": threads, "width": width, "length": length, "names": names}
        yield row | {"seconds": wall, "processor": processor}
        print(*row.values(), file=sys.stderr, flush=True)


def measure_memory(args: argparse.Namespace, argv: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Megabytes of each side, an entry for each setting."""
    for work, width, length in product(("training", "greedy"), args.widths, args.lengths):
        row = {"work": work, "width": width, "length": length, "names": args.memory_names}
        if args.memory_names + relational.ROOM > length:
            continue
        child = [json.dumps([*row.values(), side]) for side in SIDES]
        megabytes = [in_own_process(__file__, [*argv, "--child", text]) for text in child]
        yield row | {"megabytes": dict(zip(SIDES, megabytes, strict=True))}
        print("memory:", *row.values(), file=sys.stderr, flush=True)


def megabytes_of(
    args: argparse.Namespace, work: str, width: int, length: int, names: int, side: str
) -> float:
    """Megabytes of a kind of work, in this process, which has done nothing else."""
    torch.set_num_threads(1)
    relational_args = relational.parse([])
    relational_args.sizes = size_of(length, width, args.tokens)
    if side != MATRICES:
        return relational.measure_memory(relational_args, side, work, names)
    with only_matrices():
        return relational.measure_memory(relational_args, RELATIONAL, work, names)


def write(args: argparse.Namespace, data: dict[str, Any]) -> str:
    """Everything that is printed."""
    parts = [
        f"4 + 3 layers, 4 heads, FFN 4 d, float32; about {args.tokens} tokens of sources in a "
        f"batch, 20 of an answer; {args.rounds} rounds, processor time"
    ]
    for work in args.works:
        if work == MEMORY:
            parts.append(write_memory(args, data["memory"]))
            continue
        lines = []
        for row in (row for row in data["times"] if row["work"] == work):
            times = row["processor"]
            cells = [f"{statistics.median(ratios(times[a], times[b])):.2f}" for a, b in COLUMNS]
            fastest = f"{1e3 * statistics.median(row['seconds'][BART]):.1f}"
            place = (str(row[key]) for key in ("width", "length", "names", "threads"))
            lines.append([*place, *cells, fastest])
        columns = ("d", "tokens", "names", "threads", *(f"{a} / {b}" for a, b in COLUMNS))
        parts.append(f"{WORKS[work]}\n\n{table((*columns, 'BART: ms'), lines)}")
    return "\n\n".join(parts)


def write_memory(args: argparse.Namespace, rows: list[dict[str, Any]]) -> str:
    """The table of megabytes."""
    lines = []
    for row in rows:
        held = row["megabytes"]
        cells = [f"{held[side]:,.0f} ({held[side] / held[BART]:.2f})" for side in SIDES]
        lines.append([WORKS[row["work"]], str(row["width"]), str(row["length"]), *cells])
    columns = ("work", "d", "tokens", *(f"{side}: MB" for side in SIDES))
    return f"Memory, {args.memory_names} names; by BART's\n\n{table(columns, lines)}"


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--works", nargs="+", choices=(*WORKS, MEMORY), default=[*WORKS, MEMORY], help="(all)")
    add("--lengths", type=integers, default=[35, 100, 400, 1024], help="(35,100,400,1024)")
    add("--widths", type=integers, default=[64, 256], help="(64,256)")
    add("--names", type=integers, default=[1, 10, 50], help="(1,10,50)")
    add("--threads", type=integers, default=[1, 2], help="(1,2)")
    add("--memory-names", type=int, default=10, help="names where memory is measured (10)")
    add("--tokens", type=int, default=800, help="tokens of sources in a batch (800)")
    add("--rounds", type=int, default=5, help="(5)")
    add("--child", help=argparse.SUPPRESS)
    add_out(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    args = parse(argv)
    if args.child:
        print(json.dumps(megabytes_of(args, *json.loads(args.child))))
        return
    command_line = list(sys.argv[1:] if argv is None else argv)
    data = {
        "settings": vars(args),
        "times": list(measure(args)),
        "memory": list(measure_memory(args, command_line)) if MEMORY in args.works else [],
    }
    finish(write(args, data), data, args.out, argv)


if __name__ == "__main__":
    main()
