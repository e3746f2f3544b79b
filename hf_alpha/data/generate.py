"""Generate datasets of problems with their answers.

The work is cut into numbered chunks. A chunk draws a fixed number of problems of one size from a
seed of its own, derived from (seed, size, number), and is written as one parquet file; how many
chunks a size needs depends on nothing but what earlier chunks contain. The dataset is therefore
the same for any number of workers, and a run that was killed continues with the chunks it has. So
does a run of which a worker was killed.

Machines share the work in the same way: a shard makes chunks ahead, and the run that comes after
the shards finds them done. Shards do not know of each other. Each estimates from its own chunks how
many there will have to be; what is missing in the end the last run makes, and what was made in vain
it leaves out. The dataset is the same for any number of shards, and without any.

Problems that are equal up to renaming and the order of operands of commutative operators count as
one. The hash of the canonical form decides which split a problem is in, whatever the seed, the
other settings or the dataset: no training set overlaps any test set made by the same
`equivalence`, the heatmap grid included. Tasks with too few problems for that (`held_out`) have
problems count as one only where their texts are equal, and tests that may be in training data.
"""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm.auto import tqdm

from hf_alpha.folders import replacing
from hf_alpha.tasks import DrawnTask, Task, drawn_task
from hf_alpha.tasks.base import EQUIVALENCES

from .chunk import Chunk, chunk_schema, rarity
from .keys import keys_of
from .plan import SamplingPlan
from .run_folder import RunFolder, run_folder
from .settings import GenerationSettings, GridSettings, SampleSettings
from .workers import Executor, executor

logger = logging.getLogger(__name__)


def generate(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_samples: int,
    sizes: tuple[int, int] | None = None,
    num_symbols: int = 5,
    *,
    num_workers: int = 1,
    shard: tuple[int, int] | None = None,
    progress: bool = True,
    **settings: Any,
) -> dict[str, int]:
    """Generate a dataset of problems with answers that `datasets.load_dataset(out_dir)` loads.

    Sizes are uniform: each of the m sizes has a quota of `num_samples / m` problems that differ up
    to `equivalence`. Small sizes run out of them; the other sizes then take over in equal parts,
    but none gets more than the share 1/m + alpha of `num_samples` (0 is strictly uniform, 1 free).
    What the limits leave over is missing from the dataset, with a warning.

    Args:
        task: a task, or what `get_task` finds one by.
        out_dir: folder to make; a run with the same settings that was killed there continues.
        num_samples: problems in all splits together, before 80/10/10 splitting.
        sizes: smallest and largest number of tokens; by default the papers'.
        num_symbols: problems are drawn over so many symbols and contain as many as they happen to.
        num_workers: processes; no influence on the result.
        shard: (i, n), from (1, n) to (n, n): do a share of the work and make no dataset. All
            shards share `out_dir`, on a disk that the machines have in common or copied together
            from several, and may run at any time. When all have ended, the call without `shard`
            makes the dataset, which is the same as without any.
        progress: show a progress bar.
        **settings: further ones of `sample_settings`.

    Returns:
        The number of rows of each split that has any; nothing for a shard.

    Raises:
        TypeError: there is no such setting.
        ValueError: for impossible settings, if `out_dir` holds a run with other settings or in
            another number of shards, if some of its shards have not ended, or if another process
            on this machine is at work there (shards may be, together).
        ImportError: if the targets need something that is not installed.
        WorkersDiedError: if worker processes keep dying; what is done is kept.
    """
    samples = sample_settings(drawn_task(task), num_samples, sizes, num_symbols, **settings)

    def make(_: RunFolder, execute: Executor) -> pa.Table:
        return _sample(samples, shard, execute, progress)

    return _made(Path(out_dir), samples, shard, num_workers, make)


def sample_settings(
    task: DrawnTask,
    num_samples: int,
    sizes: tuple[int, int] | None = None,
    num_symbols: int = 5,
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
) -> SampleSettings:
    """Return the settings of a dataset: where an argument is None, what the papers have.

    Args:
        task: what is solved.
        num_samples: problems in all splits together, before 80/10/10 splitting.
        sizes: smallest and largest number of tokens.
        num_symbols: problems are drawn over so many symbols and contain as many as they happen to.
        alpha: how far the distribution of sizes may depart from uniform, see `generate`.
        seed: the dataset is a function of the settings and the seed.
        targets: how answers are computed, one of the task's `targets`.
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
    """
    constants = task.constant_priority if constant_priority is None else constant_priority
    smallest, largest = task.sizes if sizes is None else sizes
    return SampleSettings(
        task=task, num_samples=num_samples, sizes=(smallest, largest), num_symbols=num_symbols,
        alpha=task.alpha if alpha is None else alpha, seed=seed,
        targets=_targets(task, targets),
        constant_priority=constants, few_symbols=few_symbols, many_symbols=many_symbols,
        up_to_symbols=up_to_symbols, hard=hard, hardness=hardness, walk=walk,
        equivalence=equivalence,
    )  # fmt: skip


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
    shard: tuple[int, int] | None = None,
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
        out_dir: folder to make; a run with the same settings that was killed there continues.
        num_symbols: numbers of distinct symbols, one column of cells for each.
        sizes: numbers of tokens, one row of cells for each.
        per_cell: problems in a cell.
        seed: the grid is a function of the settings and the seed.
        targets: how answers are computed, one of the task's `targets`; by default the first.
        hard: share of a cell that is for hard problems: where there are not so many, the cell holds
            fewer problems, not more others.
        hardness: what counts as hard, as for `sample_settings`.
        equivalence: what may differ between problems that count as one, as for `sample_settings`.
        exclude: further problems that no problem of the grid may be equivalent to: the training
            data of a model whose splits were made in another way (`read.training_problems`).
        num_workers, shard, progress: as for `generate`.

    Returns:
        The number of rows of the one split, "test"; nothing for a shard.

    Raises:
        FormulaError: a problem in `exclude` cannot be read.
        ValueError, ImportError, WorkersDiedError: as for `generate`.
    """
    task = drawn_task(task)
    settings = GridSettings(
        task=task, num_symbols=tuple(sorted(set(num_symbols))), sizes=tuple(sorted(set(sizes))),
        per_cell=per_cell, seed=seed, targets=_targets(task, targets),
        hard=hard, hardness=hardness, equivalence=equivalence,
    )  # fmt: skip
    excluded = tuple(sorted(keys_of(task, exclude, settings.counted_as_one)))
    settings = replace(settings, excluded=excluded)

    def make(run: RunFolder, execute: Executor) -> pa.Table:
        chunks = _share(_cells(settings, _write_excluded(settings, run)), shard)
        bar = tqdm(execute(chunks), total=len(chunks), unit="cell", disable=not progress)
        return pa.concat_tables([chunk_schema(settings.task).empty_table(), *bar])

    return _made(Path(out_dir), settings, shard, num_workers, make, "test")


def _made(
    folder: Path,
    settings: GenerationSettings,
    shard: tuple[int, int] | None,
    num_workers: int,
    make: Callable[[RunFolder, Executor], pa.Table],
    split: str | None = None,
) -> dict[str, int]:
    """Make a dataset, or a shard's work, unless it is there; returns the rows of each split.

    Args:
        folder: where.
        settings: of the data.
        shard: see `generate`.
        num_workers: likewise.
        make: does the work.
        split: the only one; None for several.
    """
    if num_workers < 1:
        raise ValueError(f"num_workers must be at least 1, got {num_workers}")
    with run_folder(folder, settings, shard) as run:
        if run.counts is not None:
            return run.counts
        with executor(run.parts, num_workers) as execute:
            table = make(run, execute)
        return run.finish(table, split) if shard is None else run.end_shard()


def _share(chunks: list[Chunk], shard: tuple[int, int] | None) -> list[Chunk]:
    """Return a shard's chunks; all without one."""
    return chunks if shard is None else chunks[shard[0] - 1 :: shard[1]]


def _sample(
    settings: SampleSettings, shard: tuple[int, int] | None, execute: Executor, progress: bool
) -> pa.Table:
    """Do the work of `generate`: all rows of the dataset, or a shard's."""
    plan = SamplingPlan(settings, shard)
    total = settings.num_samples + settings.few_symbols + settings.many_symbols
    with tqdm(total=total, disable=not progress) as bar:
        plan.fill(execute, lambda total: bar.update(total - bar.n))
        if plan.total < settings.num_samples and shard is None:
            logger.warning(
                "%d of %d samples are missing: sizes %d-%d over %d symbol(s) have run out of "
                "different problems within alpha=%g; raise alpha, num_symbols or the largest size",
                *(settings.num_samples - plan.total, settings.num_samples, *settings.sizes),
                *(settings.num_symbols, settings.alpha),
            )
        tables = [plan.table()]
        if settings.few_symbols:
            few = plan.of_few_symbols()
            few.fill(execute, lambda total: bar.update(plan.total + total - bar.n))
            tables.append(few.table())
        many = 0
        for part in execute(_many(settings, shard)):
            tables.append(part)
            many += len(part)
            bar.update(len(part))
        if many < settings.many_symbols and shard is None:
            logger.warning(
                "%d of %d samples of many_symbols are missing: sizes %d-%d have no more different "
                "problems with %d to %d symbols in the training split",
                *(settings.many_symbols - many, settings.many_symbols, *settings.sizes),
                *(settings.num_symbols + 1, settings.up_to_symbols),
            )
    return pa.concat_tables(tables)


def _many(settings: SampleSettings, shard: tuple[int, int] | None) -> list[Chunk]:
    """Return a chunk for each cell of `many_symbols`, or those of a shard."""
    task, (smallest, largest) = settings.task, settings.sizes
    cells = [
        (count, size)
        for count in range(settings.num_symbols + 1, settings.up_to_symbols + 1)
        for size in range(smallest, largest + 1)
        if task.is_feasible(size, count, True, settings.constant_priority)
    ]
    share, remainder = divmod(settings.many_symbols, max(1, len(cells)))
    chunks = [
        Chunk(
            name=f"many-{count:03d}-{size:05d}",
            task=task,
            targets=settings.targets,
            seed=f"many/{settings.seed}/{count}/{size}",
            size=size,
            num_symbols=count,
            constant_priority=settings.constant_priority,
            draws=200 * (share + 1),
            exactly=True,
            split="train" if task.held_out else None,
            max_rows=share + (number < remainder),
            equivalence=settings.counted_as_one,
        )
        for number, (count, size) in enumerate(cells)
        if share + (number < remainder)
    ]
    return _share(chunks, shard)


def _cells(settings: GridSettings, excluded: str) -> list[Chunk]:
    """Return the cells that can exist; `excluded` is the file of keys that are kept out."""
    task = settings.task
    cells = [
        (count, size, settings.constants_for(count))
        for count in settings.num_symbols
        for size in settings.sizes
    ]
    return [
        Chunk(
            name=f"cell-{count:03d}-{size:05d}",
            task=task,
            targets=settings.targets,
            seed=f"grid/{settings.seed}/{count}/{size}",
            size=size,
            num_symbols=count,
            constant_priority=constants,
            draws=200 * settings.per_cell * rarity(settings.hard, settings.hardness),
            exactly=True,
            split="test" if task.held_out else None,
            max_rows=settings.per_cell,
            hard=settings.hard,
            hardness=settings.hardness,
            equivalence=settings.counted_as_one,
            excluded=excluded,
        )
        for count, size, constants in cells
        if task.is_feasible(size, count, True, constants)
    ]


def _write_excluded(settings: GridSettings, run: RunFolder) -> str:
    """Write the keys that are kept out to a file for all processes; return its path, "" if none."""
    if not settings.excluded:
        return ""
    path = run.parts / f"excluded-{settings.digest}"
    with replacing(path) as temporary:
        temporary.write_bytes(b"".join(settings.excluded))
    return str(path)


def _targets(task: DrawnTask, targets: str | None) -> str:
    """Return how answers are computed: as `targets` says, or the task's first way."""
    return next(iter(task.targets)) if targets is None else targets


__all__ = ["generate", "generate_grid", "sample_settings"]
