"""Generate datasets of problems with their answers.

The work is cut into chunks. A chunk draws a fixed number of problems of one size from a seed of its
own, derived from (seed, size, number), and is written as one parquet file; how many chunks a size
needs depends on nothing but what earlier chunks contain. The dataset is therefore the same for any
number of processes, and a run that was killed continues with the chunks it has. Further machines
take part as shards: each makes every n-th chunk of those that can be known from what is there.

Problems that are equal up to renaming and the order of operands of commutative operators count as
one. The hash of the canonical form decides which split a problem is in, whatever the seed, the
other settings or the dataset: no training set overlaps any test set made by the same
`equivalence`, the heatmap grid included. Tasks with too few problems for that (`held_out`) have
problems count as one only where their texts are equal, and tests that may be in training data.
"""

import hashlib
import logging
import os
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hf_alpha.data.files import PARTS
from hf_alpha.data.keys import key_in
from hf_alpha.modeling.choices import check_known, refuse
from hf_alpha.tasks import DrawnTask, Task, drawn_task, name_of
from hf_alpha.tasks.base import EQUIVALENCES

from .chunk import Chunk, Make, Maker, Rounds, rarity
from .dataset_folder import make_dataset

logger = logging.getLogger(__name__)

GENERATOR_VERSION = 2


@dataclass(kw_only=True)
class Drawing:
    """How problems are drawn, and which count as one.

    Args:
        seed: the dataset is a function of the settings and the seed.
        targets: how answers are computed, one of the task's `targets`; by default the first.
        hard: least share of hard problems (`Task.is_hard`), of each size; one without any has no
            rows. Both kinds are distributed as they are without it: hard ones are kept as they are
            drawn, of the others only a part is.
        hardness: what counts as hard, from 1 to the task's `hardest`. An LTL formula is hard if its
            shortest witness has more steps than that.
        equivalence: what may differ between problems that count as one and so are in one split:
            "commuting" (names, and the order of operands of commutative operators), or "renaming"
            (names only, as in the papers and in data made by version 1); see `Task.canonical`.
            Without influence on a task that is not `held_out`.
    """

    seed: int = 0
    targets: str | None = None
    hard: float = 0.0
    hardness: int = 1
    equivalence: str = EQUIVALENCES[0]

    def pattern(self, task: DrawnTask, kind: str, **others: Any) -> Chunk:
        """Return what all chunks of the data are like.

        Raises:
            ValueError: a setting is impossible for the task.
        """
        hard, hardness = self.hard, self.hardness
        check_known("equivalence", self.equivalence, EQUIVALENCES)
        check_known("targets", self.targets, task.targets)
        refuse(not 0 <= hard <= 1, f"hard is a share and must be between 0 and 1, got {hard}")
        refuse(
            hard and not task.hard,
            f"task {task.name!r} knows no hard problems: leave out hard = {hard}",
        )
        refuse(
            not 1 <= hardness <= task.hardest,
            f"hardness must be between 1 and {task.hardest} for task {task.name!r}, got {hardness}",
        )
        refuse(
            hardness > 1 and not hard,
            f"hardness = {hardness} needs hard, the share of problems that are to be so",
        )
        return Chunk(
            task=task,
            targets=self.targets or next(iter(task.targets)),
            hard=hard,
            hardness=hardness,
            equivalence=self.equivalence if task.held_out else "",
            seed=f"{kind}/{self.seed}",
            **others,
        )

    def record(self, pattern: Chunk) -> dict[str, Any]:
        """Return what is recorded of all data; see `_given`."""
        kind, _, _ = pattern.seed.partition("/")
        hardness = self.hardness if self.hardness > 1 else 0
        return {
            "seed": self.seed,
            "kind": kind,
            "targets": pattern.targets,
            **_given(hard=self.hard, hardness=hardness, equivalence=pattern.equivalence),
        }


@dataclass
class Samples(Drawing):
    """The problems of a dataset with splits; where an argument is None, it is what the papers have.

    Args:
        num_samples: problems in all splits together, before 80/10/10 splitting.
        sizes: smallest and largest number of tokens.
        num_symbols: problems are drawn over so many symbols and contain as many as they happen to.
        alpha: how far the distribution of sizes may depart from uniform, see `generate`.
        constant_priority: weight of the leaves 0 and 1 against a symbol's 1.
        few_symbols: up to so many more rows of the training split, with one symbol or none, of
            which training data has few. The papers take them from another dataset (2601.23169,
            Appendix F); here they are drawn, as uniform over the sizes from 1 to the largest one
            as there are problems. Those without symbols need constants.
        many_symbols: up to so many more rows of the training split, with more than `num_symbols`
            symbols and up to `up_to_symbols`, spread evenly over these numbers and the sizes. A
            share of 1 % of them keeps a model right beyond `num_symbols` (docs/results.md).
        up_to_symbols: see `many_symbols`.
        walk: so many more problems are tried after each hard one that was drawn: each is the last
            hard one with one part drawn anew. Where hard ones are rare this finds them much faster,
            and in the long run it finds each as often; those of one walk are alike
            (docs/performance.md).
    """

    num_samples: int
    sizes: tuple[int, int] | None = None
    num_symbols: int = 5
    _: KW_ONLY
    alpha: float | None = None
    constant_priority: float | None = None
    few_symbols: int = 0
    many_symbols: int = 0
    up_to_symbols: int = 0
    walk: int = 0

    def __post_init__(self) -> None:
        least = {"num_samples": 1, "few_symbols": 0, "many_symbols": 0, "walk": 0}
        for name, number in least.items():
            value = getattr(self, name)
            refuse(value < number, f"{name} must be at least {number}, got {value}")
        many, up_to, walk, alpha = self.many_symbols, self.up_to_symbols, self.walk, self.alpha
        refuse(
            (many or up_to) and not (many and up_to > self.num_symbols),
            f"many_symbols = {many} and up_to_symbols = {up_to} go together: so "
            f"many rows, with more than num_symbols = {self.num_symbols} symbols and up to so many",
        )
        refuse(
            walk and not self.hard,
            f"walk = {walk} needs hard, the share of problems that it starts from",
        )
        refuse(
            alpha is not None and not 0 <= alpha <= 1,
            f"alpha must be between 0 and 1, got {alpha}",
        )


def generate(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    *samples: Any,
    num_workers: int = 1,
    progress: bool = True,
    shard: tuple[int, int] = (1, 1),
    **settings: Any,
) -> dict[str, int]:
    """Generate a dataset of problems with answers that `datasets.load_dataset(out_dir)` loads.

    Sizes are uniform: each of the m sizes has a quota of `num_samples / m` problems that differ up
    to `equivalence`. Small sizes run out of them; the other sizes then take over in equal parts,
    but none gets more than the share 1/m + alpha of `num_samples` (0 is strictly uniform, 1 free).
    What the limits leave over is missing from the dataset, with a warning.

    Args:
        task: a task, or what `get_task` finds one by.
        out_dir: folder to make. A run with the same settings that was killed there continues.
        samples, settings: the arguments of [`Samples`].
        num_workers: processes; no influence on the result.
        shard: (k, n) is the k-th of n runs, from 1 on, each of which makes its share of the parts
            that are due, in the same folder; no influence on the result. Which parts there will be
            depends on the rows of those before: start all runs again until the one that finds all
            parts writes the dataset.

    Returns:
        The number of rows of each split that has any; of a shard that lacks parts of others, how
        many parts it has `made`, and how many are `missing`.

    Raises:
        TypeError: there is no such setting.
        ValueError: for impossible settings, or if `out_dir` holds something else, such as a run
            with other settings.
        ImportError: if the targets need something that is not installed.
    """
    task = drawn_task(task)
    recorded: dict[str, Any] = {"version": GENERATOR_VERSION, "task": name_of(task)}
    asked = Samples(*samples, **settings)
    sizes = task.sizes if asked.sizes is None else asked.sizes
    alpha = task.alpha if asked.alpha is None else asked.alpha
    constants, num_symbols = asked.constant_priority, asked.num_symbols
    constants = task.constant_priority if constants is None else constants
    pattern = asked.pattern(
        task, "samples", num_symbols=num_symbols, constant_priority=constants, walk=asked.walk
    )
    recorded |= asked.record(pattern)
    rounds = Rounds(pattern, asked.num_samples, sizes, alpha)
    recorded |= {
        "num_samples": asked.num_samples,
        "sizes": [*sizes],
        "num_symbols": num_symbols,
        "alpha": alpha,
        "constant_priority": constants,
        **_given(
            up_to_symbols=asked.up_to_symbols,
            few_symbols=asked.few_symbols,
            many_symbols=asked.many_symbols,
            walk=asked.walk,
        ),
    }

    def draw(make: Make) -> pa.Table:
        tables = [rounds.fill(make)]
        lack = f"sizes {sizes[0]}-{sizes[1]} have run out of different problems"
        _warn_if_fewer(tables, asked.num_samples, f"num_samples: {lack} within alpha = {alpha:g}")
        if asked.few_symbols:
            seed, keys = f"few/{asked.seed}", tables[0]["key"].to_pylist()
            few = replace(pattern, seed=seed, single=True, split="train", hard=0.0)
            tables.append(Rounds(few, asked.few_symbols, (1, sizes[1]), 1.0, keys).fill(make))
        many = make(_many_symbols(pattern, asked, rounds.sizes))
        _warn_if_fewer(many, asked.many_symbols, f"many_symbols: {lack} in the training split")
        return pa.concat_tables([*tables, *many])

    maker = Maker(Path(out_dir) / PARTS, num_workers, progress, shard)
    return make_dataset(Path(out_dir), recorded, rounds.next_round(), draw, maker)


def generate_grid(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_symbols: Iterable[int] = range(0, 11),
    sizes: Iterable[int] = range(1, 51),
    per_cell: int = 100,
    *,
    exclude: Iterable[str] = (),
    num_workers: int = 1,
    progress: bool = True,
    shard: tuple[int, int] = (1, 1),
    **drawing: Any,
) -> dict[str, int]:
    """Generate the test set of a heatmap.

    Up to `per_cell` problems for each number of distinct symbols and each size, both exact. All
    come from the test split, so none is in a training set made by `generate`, up to `equivalence`
    (except where the task is not `held_out`). Cells that cannot exist stay empty (k symbols need
    2k - 1 tokens of a formula), small ones hold what there is. Constants have the task's weight;
    cells without symbols are made of them. The symbols of a cell are the vocabulary's first ones.

    Args:
        task: a task, or what `get_task` finds one by.
        num_symbols: numbers of distinct symbols, one column of cells for each.
        sizes: numbers of tokens, one row of cells for each.
        exclude: further problems that no problem of the grid may be equivalent to: the training
            data of a model whose splits were made in another way (`read.training_problems`).
        shard: as for `generate`; one start of all is enough.
        drawing: the arguments of [`Drawing`]. Where a cell has not so many hard problems, it holds
            fewer problems, not more others.

    Returns:
        The number of rows of the one split, "test"; of a shard, see `generate`.

    Raises:
        FormulaError: a problem in `exclude` cannot be read.
        TypeError, ValueError, ImportError: as for `generate`.
    """
    task = drawn_task(task)
    recorded: dict[str, Any] = {"version": GENERATOR_VERSION, "task": name_of(task)}
    asked = Drawing(**drawing)
    pattern = asked.pattern(
        task, "grid",
        draws=200 * per_cell * rarity(asked.hard, asked.hardness), exactly=True,
        max_rows=per_cell, split="test" if task.held_out else None,
    )  # fmt: skip
    excluded = {key_in(task, task.parse(text), pattern.equivalence) for text in exclude}
    numbers, lengths = sorted(set(num_symbols)), sorted(set(sizes))
    recorded |= asked.record(pattern)
    recorded |= {"num_symbols": numbers, "sizes": lengths, "per_cell": per_cell}
    if excluded:
        digest = hashlib.blake2b(b"".join(sorted(excluded)), digest_size=8).hexdigest()
        recorded["exclude"] = {"problems": len(excluded), "digest": digest}
    chunks = [
        replace(cell, constant_priority=task.constant_priority if cell.num_symbols else 1.0)
        for cell in _cells(replace(pattern, excluded=frozenset(excluded)), numbers, lengths)
    ]
    chunks = [chunk for chunk in chunks if chunk.is_feasible]

    def draw(make: Make) -> pa.Table:
        return pa.concat_tables(make(chunks))

    maker = Maker(Path(out_dir) / PARTS, num_workers, progress, shard)
    return make_dataset(Path(out_dir), recorded, chunks, draw, maker, "test")


def _given(**settings: Any) -> dict[str, Any]:
    """Return the settings that have an effect: records of older versions lack the others."""
    return {name: value for name, value in settings.items() if value}


def _cells(pattern: Chunk, numbers: Iterable[int], sizes: Iterable[int]) -> list[Chunk]:
    """Return a chunk for each number of symbols and each size."""
    return [
        replace(pattern, seed=f"{pattern.seed}/{count}/{size}", num_symbols=count, size=size)
        for count in numbers
        for size in sizes
    ]


def _many_symbols(pattern: Chunk, asked: Samples, sizes: Iterable[int]) -> list[Chunk]:
    """Return cells of more symbols, among which the rows asked for are spread evenly."""
    split = "train" if pattern.task.held_out else None
    many = replace(pattern, seed=f"many/{asked.seed}", exactly=True, split=split, hard=0.0)
    numbers = range(asked.num_symbols + 1, asked.up_to_symbols + 1)
    cells = [cell for cell in _cells(many, numbers, sizes) if cell.is_feasible]
    share, remainder = divmod(asked.many_symbols, max(1, len(cells)))
    cells = [
        replace(cell, draws=200 * (share + 1), max_rows=share + (number < remainder))
        for number, cell in enumerate(cells)
    ]
    return [cell for cell in cells if cell.max_rows]


def _warn_if_fewer(tables: list[pa.Table], wanted: int, what: str) -> None:
    missing = wanted - sum(map(len, tables))
    if missing > 0:
        logger.warning("%d of %d rows are missing of %s", missing, wanted, what)
