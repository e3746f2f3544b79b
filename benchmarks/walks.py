"""LTL pairs that need witnesses of three steps and more: drawn, and found by walks (`walk`).

    python benchmarks/walks.py --rounds 3 --out walks

Both sides keep hard formulas only and compute their answers. One draws formula after formula, as
`generate(..., hard=1, hardness=2)` does; the other one tries 100 more from each hard one
that was drawn, each with one part of the last hard one drawn anew. Rates are pairs a second. The
sides take turns, and each round has formulas of its own.

The second table is a check of the pairs: how many steps their witnesses have, in %. A walk is right
if it finds as many of each kind as drawing does, in the long run.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import measure
from hf_alpha.logic.drawing.chunk import Chunk, rows_of
from hf_alpha.logic.ltl import LTLTask

CELLS = ((3, 25), (10, 35), (3, 100), (10, 100))
"""Symbols and tokens."""
WALKS = {"drawn": 0, "walks of 100": 100}


class Side:
    """One way to find hard pairs of a cell; a round is a chunk of formulas that it tries.

    Attributes:
        lengths: of the witnesses that each round found.
    """

    def __init__(self, symbols: int, size: int, walk: int, draws: int):
        self.chunk = Chunk(
            task=LTLTask(),
            targets="equivariant",
            equivalence="",
            seed="",
            size=size,
            num_symbols=symbols,
            constant_priority=1.0,
            draws=draws,
            hard=1.0,
            hardness=2,
            walk=walk,
        )
        self.lengths: list[list[int]] = []

    def run(self) -> None:
        """Do a round."""
        chunk = self.chunk
        seed = f"{chunk.num_symbols}/{chunk.size}/{len(self.lengths)}"
        self.lengths.append([row["witness_length"] for row in rows_of(replace(chunk, seed=seed))])

    def rates(self, seconds: Sequence[float]) -> list[float]:
        """Pairs a second of each round, without the first, which was not timed."""
        return [len(found) / time for found, time in zip(self.lengths[1:], seconds, strict=True)]

    def kinds(self) -> list[str]:
        """How many pairs, in %, have witnesses of 3, 4 and 5 steps, and how many there are."""
        steps = Counter(itertools.chain.from_iterable(self.lengths))
        shares = [f"{100 * steps[number] / steps.total():.1f}" for number in (3, 4, 5)]
        return [*shares, f"{steps.total():,}"]


def main(argv: Sequence[str] | None = None) -> None:
    """Find hard pairs in both ways, cell by cell."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of both sides (3)")
    parser.add_argument("--draws", type=int, default=4096, help="formulas that a side tries (4096)")
    options = parser.parse_args(argv)
    speeds, kinds, rates = [], [], {}
    for symbols, size in CELLS:
        cell = f"{symbols} symbols, {size} tokens"
        sides = {name: Side(symbols, size, walk, options.draws) for name, walk in WALKS.items()}
        seconds = measure.in_turns({name: sides[name].run for name in sides}, options.rounds)
        rates[cell] = {name: sides[name].rates(seconds[name]) for name in sides}
        drawn, walked = rates[cell].values()
        ratios = measure.ratios(walked, drawn)
        speeds.append(
            [cell, measure.three(drawn, 0), measure.three(walked, 0), measure.three(ratios, 1)]
        )
        kinds += [[cell, name, *side.kinds()] for name, side in sides.items()]
    tables = (
        measure.table(["pairs a second", *WALKS, "ratio"], speeds),
        measure.table(["steps, %", "side", "3", "4", "5", "pairs"], kinds, words=["side"]),
    )
    measure.finish("\n\n".join(tables), {"pairs per second": rates}, options.out, argv)


if __name__ == "__main__":
    main()
