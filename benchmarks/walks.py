"""LTL pairs that need witnesses of three steps and more: drawn, and found by walks (`--walk`).

    python benchmarks/walks.py --rounds 3 --out walks

Both sides keep hard formulas only and compute their answers. One draws formula after formula, as
`hf-alpha generate-data --hard 1 --hardness 2` does; the other one tries 100 more from each hard one
that was drawn, each with one part of the last hard one drawn anew. Rates are pairs a second. The
sides take turns, and each round has formulas of its own.

The second table is a check of the pairs: how many steps their witnesses have, in %. A walk is right
if it finds as many of each kind as drawing does, in the long run.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow.parquet as pq

import measure
from hf_alpha.data.chunk import Chunk, run_chunk
from hf_alpha.tasks.ltl import LTLTask

CELLS = ((3, 25), (10, 35), (3, 100), (10, 100))
"""Symbols and tokens."""
WALKS = {"drawn": 0, "walks of 100": 100}


def main(argv: Sequence[str] | None = None) -> None:
    """Find hard pairs in both ways, cell by cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="of both sides (3)")
    parser.add_argument("--draws", type=int, default=4096, help="formulas that a side tries (4096)")
    measure.add_out(parser)
    options = parser.parse_args(argv)
    speeds, kinds, rates = [], [], {}
    for symbols, size in CELLS:
        found: dict[str, list[list[int]]] = {side: [] for side in WALKS}
        chunk = Chunk(
            "",
            LTLTask(),
            "equivariant",
            "",
            size,
            symbols,
            1.0,
            options.draws,
            hard=1.0,
            hardness=2,
        )

        def find(
            side: str, chunk: Chunk = chunk, found: dict[str, list[list[int]]] = found
        ) -> None:
            """Add the lengths of the witnesses that one side finds in a round."""
            seed = f"{chunk.num_symbols}/{chunk.size}/{len(found[side])}"
            with tempfile.TemporaryDirectory() as folder:
                path = run_chunk(replace(chunk, name=side, seed=seed, walk=WALKS[side]), folder)
                found[side].append(pq.read_table(path)["witness_length"].to_pylist())

        seconds = measure.in_turns(
            {side: lambda side=side: find(side) for side in WALKS}, options.rounds
        )
        pairs_per_second = {
            side: [
                len(lengths) / s for lengths, s in zip(found[side][1:], seconds[side], strict=True)
            ]
            for side in WALKS
        }
        cell = f"{symbols} symbols, {size} tokens"
        ratios = measure.ratios(*reversed(pairs_per_second.values()))
        rows = [measure.three(pairs_per_second[side], 0) for side in WALKS]
        speeds.append([cell, *rows, measure.three(ratios, 1)])
        for side in WALKS:
            steps = Counter(min(length, 5) for lengths in found[side] for length in lengths)
            shares = [f"{100 * steps[number] / steps.total():.1f}" for number in (3, 4, 5)]
            kinds.append([cell, side, *shares, f"{steps.total():,}"])
        rates[cell] = pairs_per_second
    text = "\n\n".join(
        (
            measure.table(["pairs a second", *WALKS, "ratio"], speeds),
            measure.table(["steps, %", "side", "3", "4", "5", "pairs"], kinds, words=["side"]),
        )
    )
    measure.finish(text, {"pairs per second": rates}, options.out, argv)


if __name__ == "__main__":
    main()
