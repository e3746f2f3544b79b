"""Generate datasets of problems with their answers.

The work is cut into chunks. A chunk draws a fixed number of problems of one size from a seed of its
own, derived from (seed, size, number), and is written as one parquet file; how many chunks a size
needs depends on nothing but what earlier chunks contain. The dataset is therefore the same for any
number of processes, and a run that was killed continues with the chunks it has. Further processes,
on this machine or on others with the same disk, take part when they are started in the same way.

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
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hf_alpha.data.keys import key_in
from hf_alpha.modeling.choices import check_known, refuse
from hf_alpha.tasks import DrawnTask, Task, drawn_task, name_of
from hf_alpha.tasks.base import EQUIVALENCES

from .chunk import Chunk, Make, Rounds, check_sizes, rarity
from .dataset_folder import make_dataset

logger = logging.getLogger(__name__)

GENERATOR_VERSION = 2


def generate(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_samples: int,
    sizes: tuple[int, int] | None = None,
    num_symbols: int = 5,
    *,
    alpha: float | None = None,
    seed: int = 0,
    targets: str | None = None,
    constant_priority: float | None = None,
    few_symbols: int = 0,
    many_symbols: int = 0,
    up_to_symbols: int = 0,
    hard: float = 0.0,
    hardness: int = 1,
    walk: int = 0,
    equivalence: str = EQUIVALENCES[0],
    num_workers: int = 1,
    progress: bool = True,
) -> dict[str, int]:
    """Generate a dataset of problems with answers that `datasets.load_dataset(out_dir)` loads.

    Sizes are uniform: each of the m sizes has a quota of `num_samples / m` problems that differ up
    to `equivalence`. Small sizes run out of them; the other sizes then take over in equal parts,
    but none gets more than the share 1/m + alpha of `num_samples` (0 is strictly uniform, 1 free).
    What the limits leave over is missing from the dataset, with a warning.

    Where an argument is None, it is what the papers have.

    Args:
        task: a task, or what `get_task` finds one by.
        out_dir: folder to make. A run with the same settings that was killed there continues; one
            that is at work there, on this machine or on another one, shares the work.
        num_samples: problems in all splits together, before 80/10/10 splitting.
        sizes: smallest and largest number of tokens.
        num_symbols: problems are drawn over so many symbols and contain as many as they happen to.
        alpha: how far the distribution of sizes may depart from uniform, see above.
        seed: the dataset is a function of the settings and the seed.
        targets: how answers are computed, one of the task's `targets`; by default the first.
        constant_priority: weight of the leaves 0 and 1 against a symbol's 1.
        few_symbols: up to so many more rows of the training split, with one symbol or none, of
            which training data has few. The papers take them from another dataset (2601.23169,
            Appendix F); here they are drawn, as uniform over the sizes from 1 to the largest one
            as there are problems. Those without symbols need constants.
        many_symbols: up to so many more rows of the training split, with more than `num_symbols`
            symbols and up to `up_to_symbols`, spread evenly over these numbers and the sizes. A
            share of 1 % of them keeps a model right beyond `num_symbols` (docs/results.md).
        up_to_symbols: see `many_symbols`.
        hard: least share of hard problems (`Task.is_hard`), of each size; one without any has no
            rows. Both kinds are distributed as they are without it: hard ones are kept as they are
            drawn, of the others only a part is.
        hardness: what counts as hard, from 1 to the task's `hardest`. An LTL formula is hard if its
            shortest witness has more steps than that.
        walk: so many more problems are tried after each hard one that was drawn: each is the last
            hard one with one part drawn anew. Where hard ones are rare this finds them much faster,
            and in the long run it finds each as often; those of one walk are alike
            (docs/performance.md).
        equivalence: what may differ between problems that count as one and so are in one split:
            "commuting" (names, and the order of operands of commutative operators), or "renaming"
            (names only, as in the papers and in data made by version 1); see `Task.canonical`.
            Without influence on a task that is not `held_out`.
        num_workers: processes; no influence on the result.

    Returns:
        The number of rows of each split that has any.

    Raises:
        ValueError: for impossible settings, or if `out_dir` holds something else, such as a run
            with other settings.
        ImportError: if the targets need something that is not installed.
    """
    task = drawn_task(task)
    smallest, largest = check_sizes(task.sizes if sizes is None else sizes)
    alpha = task.alpha if alpha is None else alpha
    constants = task.constant_priority if constant_priority is None else constant_priority
    more = {"few_symbols": few_symbols, "many_symbols": many_symbols, "walk": walk}
    _check_numbers(num_samples, num_symbols, up_to_symbols, alpha, hard, **more)
    pattern, recorded = _pattern(
        task, "samples", seed, targets, hard, hardness, equivalence,
        num_symbols=num_symbols, constant_priority=constants, walk=walk,
    )  # fmt: skip
    recorded |= {
        "num_samples": num_samples,
        "sizes": [smallest, largest],
        "num_symbols": num_symbols,
        "alpha": alpha,
        "constant_priority": constants,
        **_given(up_to_symbols=up_to_symbols, **more),
    }
    rounds = Rounds(pattern, num_samples, (smallest, largest), alpha)
    split = "train" if task.held_out else None
    numbers = range(num_symbols + 1, up_to_symbols + 1)
    many_pattern = replace(pattern, seed=f"many/{seed}", exactly=True, split=split, hard=0.0)
    few_pattern = replace(pattern, seed=f"few/{seed}", single=True, split="train", hard=0.0)

    def draw(make: Make) -> pa.Table:
        tables = [rounds.fill(make)]
        lack = f"sizes {smallest}-{largest} have run out of different problems"
        _warn_if_fewer(tables, num_samples, f"num_samples: {lack} within alpha = {alpha:g}")
        if few_symbols:
            keys = tables[0]["key"].to_pylist()
            tables.append(Rounds(few_pattern, few_symbols, (1, largest), 1.0, keys).fill(make))
        many = make(_many_symbols(many_pattern, numbers, rounds.sizes, many_symbols))
        _warn_if_fewer(many, many_symbols, f"many_symbols: {lack} in the training split")
        return pa.concat_tables([*tables, *many])

    return make_dataset(Path(out_dir), recorded, rounds.next_round(), draw, num_workers, progress)


def generate_grid(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_symbols: Iterable[int] = range(0, 11),
    sizes: Iterable[int] = range(1, 51),
    per_cell: int = 100,
    seed: int = 0,
    targets: str | None = None,
    num_workers: int = 1,
    hard: float = 0.0,
    hardness: int = 1,
    equivalence: str = EQUIVALENCES[0],
    exclude: Iterable[str] = (),
    progress: bool = True,
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
        seed: the grid is a function of the settings and the seed.
        targets: how answers are computed, one of the task's `targets`; by default the first.
        hard: share of a cell that is for hard problems: where there are not so many, the cell holds
            fewer problems, not more others.
        hardness: what counts as hard, as for `generate`.
        equivalence: what may differ between problems that count as one, as for `generate`.
        exclude: further problems that no problem of the grid may be equivalent to: the training
            data of a model whose splits were made in another way (`read.training_problems`).

    Returns:
        The number of rows of the one split, "test".

    Raises:
        FormulaError: a problem in `exclude` cannot be read.
        ValueError, ImportError: as for `generate`.
    """
    task = drawn_task(task)
    pattern, recorded = _pattern(
        task, "grid", seed, targets, hard, hardness, equivalence,
        draws=200 * per_cell * rarity(hard, hardness), exactly=True, max_rows=per_cell,
        split="test" if task.held_out else None,
    )  # fmt: skip
    excluded = {key_in(task, task.parse(text), pattern.equivalence) for text in exclude}
    digest = hashlib.blake2b(b"".join(sorted(excluded)), digest_size=8).hexdigest()
    numbers, lengths = sorted(set(num_symbols)), sorted(set(sizes))
    recorded |= {
        "num_symbols": numbers,
        "sizes": lengths,
        "per_cell": per_cell,
        **_given(exclude=excluded and {"problems": len(excluded), "digest": digest}),
    }
    pattern = replace(pattern, excluded=frozenset(excluded))
    cells = [
        replace(cell, constant_priority=task.constant_priority if cell.num_symbols else 1.0)
        for cell in _cells(pattern, numbers, lengths)
    ]
    cells = [cell for cell in cells if cell.is_feasible]

    def draw(make: Make) -> pa.Table:
        return pa.concat_tables(make(cells))

    return make_dataset(Path(out_dir), recorded, cells, draw, num_workers, progress, "test")


def _check_numbers(
    num_samples: int, num_symbols: int, up_to_symbols: int, alpha: float, hard: float, **more: int
) -> None:
    refuse(num_samples < 1, f"num_samples must be at least 1, got {num_samples}")
    for name, value in more.items():
        refuse(value < 0, f"{name} must be at least 0, got {value}")
    many, walk = more["many_symbols"], more["walk"]
    refuse(
        (many or up_to_symbols) and not (many and up_to_symbols > num_symbols),
        f"many_symbols = {many} and up_to_symbols = {up_to_symbols} go together: so "
        f"many rows, with more than num_symbols = {num_symbols} symbols and up to so many",
    )
    refuse(
        walk and not hard, f"walk = {walk} needs hard, the share of problems that it starts from"
    )
    refuse(not 0 <= alpha <= 1, f"alpha must be between 0 and 1, got {alpha}")


def _pattern(
    task: DrawnTask,
    kind: str,
    seed: int,
    targets: str | None,
    hard: float,
    hardness: int,
    equivalence: str,
    **others: Any,
) -> tuple[Chunk, dict[str, Any]]:
    """Check what all data has; return a pattern of its chunks, and what is recorded of it."""
    check_known("equivalence", equivalence, EQUIVALENCES)
    check_known("targets", targets, task.targets)
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
    targets = targets or next(iter(task.targets))
    equivalence = equivalence if task.held_out else ""
    pattern = Chunk(
        task=task, targets=targets, hard=hard, hardness=hardness, equivalence=equivalence,
        seed=f"{kind}/{seed}", **others,
    )  # fmt: skip
    of_hard = _given(hard=hard, hardness=hardness if hardness > 1 else 0)
    recorded = {"version": GENERATOR_VERSION, "task": name_of(task), "seed": seed}
    recorded |= {"kind": kind, "targets": targets, **of_hard, **_given(equivalence=equivalence)}
    return pattern, recorded


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


def _many_symbols(
    pattern: Chunk, numbers: Iterable[int], sizes: Iterable[int], num_samples: int
) -> list[Chunk]:
    """Return cells among which so many rows are spread evenly."""
    cells = [cell for cell in _cells(pattern, numbers, sizes) if cell.is_feasible]
    share, remainder = divmod(num_samples, max(1, len(cells)))
    cells = [
        replace(cell, draws=200 * (share + 1), max_rows=share + (number < remainder))
        for number, cell in enumerate(cells)
    ]
    return [cell for cell in cells if cell.max_rows]


def _warn_if_fewer(tables: list[pa.Table], wanted: int, what: str) -> None:
    missing = wanted - sum(map(len, tables))
    if missing > 0:
        logger.warning("%d of %d rows are missing of %s", missing, wanted, what)
