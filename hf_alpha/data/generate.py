"""Generate datasets of problems with their answers.

The work is cut into numbered chunks. A chunk draws a fixed number of formulas of one size from a
seed of its own, derived from (seed, size, number), and is written as one parquet file; how many
chunks a size needs depends on nothing but what earlier chunks contain. The dataset is therefore
the same for any number of workers, and a run that was killed continues with the chunks it has.

Formulas that are equal up to renaming count as one. The hash of the canonical form decides which
split a formula is in, whatever the seed, the settings or the dataset: no training set overlaps any
test set made here, the heatmap grid included.
"""

import hashlib
import json
import logging
import math
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from hf_alpha.tasks import PropositionalTask, Task, get_task
from hf_alpha.tasks.base import default_symbols
from hf_alpha.tasks.sampling import FormulaSampler
from hf_alpha.tasks.truth_table import MAX_VARIABLES

logger = logging.getLogger(__name__)

SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
SCHEMA = pa.schema(
    [
        ("problem", pa.string()),
        ("answer", pa.string()),
        ("num_symbols", pa.int32()),
        ("size", pa.int32()),
    ]
)
PARTS = ".parts"
SETTINGS = "generation.json"
GENERATOR_VERSION = 1

_PART_SCHEMA = SCHEMA.append(pa.field("key", pa.binary(16)))
_MAX_DRAWS = 4096
_MIN_DRAWS = 64
_PATIENCE = 20
"""A grid cell is given up after so many draws in a row, times the rows wanted, without a row."""
_EXHAUSTED_BELOW = 0.02
"""A size of which a round's draws were new less often than this has run out of formulas."""

Executor = Callable[[Sequence["Chunk"]], Iterable[pa.Table]]


@dataclass(frozen=True)
class Chunk:
    """One unit of work: `draws` formulas of one size, or a grid cell.

    Attributes:
        name: file name of the result, unique within a run.
        seed: seed of the chunk's own random generator.
        size: number of tokens of every formula.
        num_symbols: symbols to draw from.
        draws: how many formulas to draw.
        exactly: every formula has all `num_symbols` symbols.
        split: keep only formulas of this split.
        wanted: stop when so many different formulas are found; 0 for no such limit.
    """

    name: str
    task: str
    targets: str
    seed: str
    size: int
    num_symbols: int
    constant_priority: float
    draws: int
    exactly: bool = False
    split: str | None = None
    wanted: int = 0


def generate(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_samples: int,
    sizes: tuple[int, int] = (1, 35),
    num_symbols: int = 5,
    alpha: float = 0.095,
    seed: int = 0,
    targets: str = "equivariant",
    num_workers: int = 1,
    constant_priority: float = 0.0,
    progress: bool = True,
) -> dict[str, int]:
    """Generate a dataset of satisfiable formulas that `datasets.load_dataset(out_dir)` loads.

    Sizes are uniform: each of the m sizes has a quota of `num_samples / m` formulas that differ up
    to renaming. Small sizes run out of them; the other sizes then take over in equal parts, but
    none gets more than the share 1/m + alpha of `num_samples` (0 is strictly uniform, 1 free).
    What the limits leave over is missing from the dataset, with a warning.

    Args:
        task: a task or its name.
        out_dir: folder to make; a run with the same settings that was killed there continues.
        num_samples: formulas in all splits together, before 80/10/10 splitting.
        sizes: smallest and largest number of tokens.
        num_symbols: formulas are drawn over so many symbols and contain as many as they happen to.
        alpha: how far the distribution of sizes may depart from uniform, see above.
        seed: the dataset is a function of the settings above and the seed.
        targets: how answers are computed, one of the task's `targets`.
        num_workers: processes; no influence on the result.
        constant_priority: weight of the leaves 0 and 1 against a symbol's 1.
        progress: show a progress bar.

    Returns:
        The number of rows of each split that has any.

    Raises:
        ValueError: for impossible settings, or if `out_dir` holds a run with other settings.
    """
    task = _task(task)
    settings = {
        "kind": "samples",
        "version": GENERATOR_VERSION,
        "task": task.name,
        "num_samples": num_samples,
        "sizes": list(sizes),
        "num_symbols": num_symbols,
        "alpha": alpha,
        "seed": seed,
        "targets": targets,
        "constant_priority": constant_priority,
    }
    _check_targets(task, targets, num_symbols)
    _check_samples(settings)
    run = _Run(Path(out_dir), settings, num_workers)
    if run.counts is not None:
        return run.counts
    plan = _Plan(settings)
    with run.executor() as execute, tqdm(total=num_samples, disable=not progress) as bar:
        plan.fill(execute, lambda total: bar.update(total - bar.n))
    if plan.total < num_samples:
        logger.warning(
            "%d of %d samples are missing: sizes %d-%d over %d symbol(s) have run out of different "
            "formulas within alpha=%g; raise alpha, num_symbols or the largest size",
            *(num_samples - plan.total, num_samples, *sizes, num_symbols, alpha),
        )
    return run.finish(plan.table(), tuple(SPLITS))


def generate_grid(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_symbols: Iterable[int] = range(0, 11),
    sizes: Iterable[int] = range(1, 51),
    per_cell: int = 100,
    seed: int = 0,
    targets: str = "equivariant",
    num_workers: int = 1,
    progress: bool = True,
) -> dict[str, int]:
    """Generate the test set of a heatmap.

    Up to `per_cell` formulas for each number of distinct symbols and each size, both exact. All
    come from the test split, so none is in a training set made by `generate`, up to renaming.
    Cells that cannot exist stay empty (k symbols need 2k - 1 tokens), small ones hold what there
    is. The cells without symbols are made of constants. The symbols of a cell are the first ones
    of the vocabulary.

    Args, returns and errors are those of `generate`; the one split is "test".
    """
    task = _task(task)
    num_symbols, sizes = sorted(set(num_symbols)), sorted(set(sizes))
    _check_targets(task, targets, max(num_symbols))
    settings = {
        "kind": "grid",
        "version": GENERATOR_VERSION,
        "task": task.name,
        "num_symbols": num_symbols,
        "sizes": sizes,
        "per_cell": per_cell,
        "seed": seed,
        "targets": targets,
    }
    run = _Run(Path(out_dir), settings, num_workers)
    if run.counts is not None:
        return run.counts
    cells = [(k, size) for k in num_symbols for size in sizes if 2 * k - 1 <= size]
    chunks = [
        Chunk(
            name=f"cell-{k:03d}-{size:05d}",
            task=task.name,
            targets=targets,
            seed=f"grid/{seed}/{k}/{size}",
            size=size,
            num_symbols=k,
            constant_priority=0.0 if k else 1.0,
            draws=200 * per_cell,
            exactly=True,
            split="test",
            wanted=per_cell,
        )
        for k, size in cells
    ]
    with run.executor() as execute:
        parts = list(tqdm(execute(chunks), total=len(chunks), unit="cell", disable=not progress))
    return run.finish(pa.concat_tables([_PART_SCHEMA.empty_table(), *parts]), ("test",))


def split_of(key: bytes) -> str:
    """Return the split that a formula with this key (see `key_of`) belongs to."""
    position = int.from_bytes(key[:8], "big") / 2**64
    for split, share in SPLITS.items():
        if position < share:
            return split
        position -= share
    return split


def key_of(canonical: str) -> bytes:
    """Return the 16-byte hash of a canonical form: equal up to renaming, equal keys."""
    return hashlib.blake2b(canonical.encode(), digest_size=16).digest()


def run_chunk(chunk: Chunk, folder: str) -> str:
    """Do one chunk and write its file under `folder`, atomically; return the file's path."""
    path = Path(folder, f"{chunk.name}.parquet")
    if not path.exists():
        rows = [dict(zip(_PART_SCHEMA.names, row, strict=True)) for row in _rows(chunk)]
        _write_table(pa.Table.from_pylist(rows, schema=_PART_SCHEMA), path)
    return str(path)


def _rows(chunk: Chunk) -> Iterator[tuple[str, str, int, int, bytes]]:
    """Draw a chunk's formulas: problem, answer, number of symbols, size, key."""
    task = get_task(chunk.task)
    assert isinstance(task, PropositionalTask)
    symbols = tuple(default_symbols(chunk.num_symbols))
    sampler = FormulaSampler(symbols, chunk.constant_priority)
    if not sampler.is_feasible(chunk.size, max(1, chunk.num_symbols) if chunk.exactly else 1):
        return
    draw = sampler.sample_exactly if chunk.exactly else sampler.sample
    rng = random.Random(chunk.seed)
    seen: set[bytes] = set()
    kept = unlucky = 0
    for _ in range(chunk.draws):
        if chunk.wanted and (kept == chunk.wanted or unlucky == _PATIENCE * chunk.wanted):
            return
        unlucky += 1
        tokens = draw(rng, chunk.size)
        key = key_of(task.canonical_form(tokens))
        if key in seen or (chunk.split and split_of(key) != chunk.split):
            continue
        seen.add(key)
        answer = task.target_of(tokens, chunk.targets)
        if answer is not None:
            kept, unlucky = kept + 1, 0
            yield task.write(tokens), answer, len(task.symbols_in(tokens)), chunk.size, key


class _Plan:
    """Decide which chunks are needed, from nothing but the chunks before them."""

    def __init__(self, settings: dict[str, Any]):
        smallest, largest = settings["sizes"]
        self.settings = settings
        self.sizes = range(smallest, largest + 1)
        self.wanted: int = settings["num_samples"]
        even = math.ceil(self.wanted / len(self.sizes))
        self.limit = max(even, int(self.wanted * (1 / len(self.sizes) + settings["alpha"])))
        self.draws = min(_MAX_DRAWS, max(_MIN_DRAWS, even))
        self.tables: dict[int, list[pa.Table]] = {size: [] for size in self.sizes}
        self.found = dict.fromkeys(self.sizes, 0)
        self.chunks = dict.fromkeys(self.sizes, 0)
        self.rates = dict.fromkeys(self.sizes, 1.0)
        self.keys: set[bytes] = set()

    def fill(self, execute: Executor, report: Callable[[int], object]) -> None:
        """Run rounds of chunks until every size is full or has run out of formulas."""
        while chunks := self._next_round():
            before = dict(self.found)
            for chunk, part in zip(chunks, execute(chunks), strict=True):
                self._accept(chunk.size, part)
                report(self.total)
            for size, count in Counter(chunk.size for chunk in chunks).items():
                self.rates[size] = (self.found[size] - before[size]) / (count * self.draws)

    @property
    def total(self) -> int:
        """How many rows the dataset would have now."""
        quotas = self._quotas()
        return sum(min(self.found[size], quotas[size]) for size in self.sizes)

    def table(self) -> pa.Table:
        """Return the rows, each size cut to its quota."""
        quotas = self._quotas()
        tables = [_PART_SCHEMA.empty_table()]
        for size, parts in self.tables.items():
            if parts:
                tables.append(pa.concat_tables(parts).slice(0, quotas[size]))
        return pa.concat_tables(tables)

    def _exhausted(self, size: int) -> bool:
        return self.rates[size] < _EXHAUSTED_BELOW

    def _quotas(self) -> dict[int, int]:
        """Share the samples out evenly; the other sizes get what a size cannot hold."""
        room = {
            size: min(self.limit, self.found[size]) if self._exhausted(size) else self.limit
            for size in self.sizes
        }
        quotas, left = {}, self.wanted
        for rank, size in enumerate(sorted(self.sizes, key=lambda size: (room[size], size))):
            quotas[size] = min(room[size], left // (len(self.sizes) - rank))
            left -= quotas[size]
        return quotas

    def _next_round(self) -> list[Chunk]:
        quotas = self._quotas()
        chunks = []
        for size in self.sizes:
            if not self._exhausted(size):
                missing = max(0, quotas[size] - self.found[size])
                count = math.ceil(missing / (self.draws * self.rates[size]))
                chunks += [self._chunk(size) for _ in range(count)]
        return chunks

    def _chunk(self, size: int) -> Chunk:
        number = self.chunks[size]
        self.chunks[size] += 1
        settings = self.settings
        return Chunk(
            name=f"size-{size:05d}-{number:06d}",
            task=settings["task"],
            targets=settings["targets"],
            seed=f"samples/{settings['seed']}/{size}/{number}",
            size=size,
            num_symbols=settings["num_symbols"],
            constant_priority=settings["constant_priority"],
            draws=self.draws,
        )

    def _accept(self, size: int, part: pa.Table) -> None:
        """Keep the rows whose key is new."""
        fresh = []
        for key in part["key"].to_pylist():
            fresh.append(key not in self.keys)
            self.keys.add(key)
        part = part.filter(pa.array(fresh, pa.bool_()))
        self.tables[size].append(part)
        self.found[size] += len(part)


class _Run:
    """A folder in which a run with given settings is made, continued or found finished."""

    def __init__(self, folder: Path, settings: dict[str, Any], num_workers: int):
        if num_workers < 1:
            raise ValueError(f"num_workers must be at least 1, got {num_workers}")
        self.folder, self.settings, self.num_workers = folder, settings, num_workers
        self.parts = folder / PARTS
        self.counts: dict[str, int] | None = None
        finished, started = folder / SETTINGS, self.parts / SETTINGS
        if finished.exists():
            record = json.loads(finished.read_text())
            self._compare(record["settings"])
            self.counts = record["rows"]
        elif started.exists():
            self._compare(json.loads(started.read_text()))
        elif folder.exists() and any(path.name != PARTS for path in folder.iterdir()):
            raise ValueError(f"{folder} is not empty and holds no generated data: choose another")
        else:
            self.parts.mkdir(parents=True, exist_ok=True)
            _write_text(json.dumps(settings, indent=2) + "\n", started)

    def _compare(self, other: dict[str, Any]) -> None:
        names = [n for n in {**other, **self.settings} if other.get(n) != self.settings.get(n)]
        if names:
            differences = ", ".join(
                f"{name} is {other.get(name)!r} there and {self.settings.get(name)!r} here"
                for name in names
            )
            raise ValueError(
                f"{self.folder} holds a run with other settings: {differences}; "
                "choose another folder, or delete that one"
            )

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """Give a function from chunks to their tables, in the order of the chunks."""
        work = partial(run_chunk, folder=str(self.parts))
        if self.num_workers == 1:
            yield lambda chunks: (pq.read_table(work(chunk)) for chunk in chunks)
            return
        pool = ProcessPoolExecutor(self.num_workers, mp_context=get_context("spawn"))
        try:
            yield lambda chunks: map(pq.read_table, pool.map(work, chunks))
        finally:
            pool.shutdown(cancel_futures=True)

    def finish(self, table: pa.Table, splits: Sequence[str]) -> dict[str, int]:
        """Write one file a split, the card and the record; the parts are then deleted.

        An empty split gets no file, because `datasets` cannot load one.
        """
        if not len(table):
            raise ValueError("there is no satisfiable formula with these settings")
        keys = table["key"].to_pylist()
        # Keys are hashes: their order is a shuffle that depends on nothing else.
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows: dict[str, list[int]] = {split: [] for split in splits}
        for index in order:
            rows[split_of(keys[index])].append(index)
        rows = {split: indices for split, indices in rows.items() if indices}
        (self.folder / "data").mkdir(exist_ok=True)
        for split, indices in rows.items():
            part = table.select(SCHEMA.names).take(pa.array(indices, pa.int64()))
            _write_table(part, self.folder / "data" / f"{split}-00000-of-00001.parquet")
        counts = {split: len(indices) for split, indices in rows.items()}
        _write_text(dataset_card(self.settings, counts, table), self.folder / "README.md")
        record = {"settings": self.settings, "rows": counts}
        _write_text(json.dumps(record, indent=2) + "\n", self.folder / SETTINGS)
        shutil.rmtree(self.parts)
        return counts


def dataset_card(settings: Mapping[str, Any], counts: Mapping[str, int], table: pa.Table) -> str:
    """Write the README.md that the Hub shows.

    It names no data files, `load_dataset` finds them: if it did, `datasets` 5.2 would take two
    local folders of the same name for the same data and serve the first from its cache.
    """
    listed = "\n".join(f"| {name} | `{json.dumps(value)}` |" for name, value in settings.items())
    rows = "\n".join(f"| {split} | {count:,} |" for split, count in counts.items())
    symbols = Counter(table["num_symbols"].to_pylist())
    by_symbols = "\n".join(f"| {k} | {symbols[k]:,} |" for k in sorted(symbols))
    kind = _KINDS[settings["kind"]]
    return f"""---
pretty_name: {settings["task"]} ({settings["kind"]})
tags:
- hf_alpha
- logic
---
# {settings["task"].capitalize()} logic: formulas and assignments

{kind} Made by `hf_alpha` (`hf-alpha generate-data`).

`problem` is a satisfiable formula in prefix notation (`!` not, `&` and, `|` or, `=` iff, `^` xor),
`answer` a partial assignment all of whose completions satisfy it (`a1b0`; empty for a tautology),
`num_symbols` the number of distinct symbols in the formula and `size` its number of tokens.

**Targets: {settings["targets"]}.** {_TARGETS[settings["targets"]]}

Formulas are different up to renaming of their symbols. The hash of a formula's canonical form
(symbols renamed in order of first occurrence) decides its split, so splits do not overlap up to
renaming, in this and in every other dataset made this way.

| split | rows |
|---|---|
{rows}

| distinct symbols | rows |
|---|---|
{by_symbols}

## Settings
| setting | value |
|---|---|
{listed}
"""


_KINDS = {
    "samples": "Training, validation and test data, as uniform over sizes as `alpha` demands.",
    "grid": "Test data for a heatmap: up to `per_cell` formulas for each number of distinct "
    "symbols and each size.",
}
_TARGETS = {
    "equivariant": "The answer with the fewest literals; among those, the one whose symbols occur "
    "first in the formula, then true before false; written in order of first occurrence. Renaming "
    "a formula renames its answer.",
    "papers": "A model found by py-aiger-sat, reduced to an unsat core of the negated formula, "
    "written in order of first occurrence. It depends on how the symbols are spelt.",
}


def _task(task: str | Task) -> Task:
    task = get_task(task) if isinstance(task, str) else task
    if not isinstance(task, PropositionalTask):
        raise ValueError(f"task {task.name!r} cannot be generated yet: choose 'propositional'")
    return task


def _check_targets(task: Task, targets: str, num_symbols: int) -> None:
    if targets not in task.targets:
        raise ValueError(f"unknown targets {targets!r}: choose one of {', '.join(task.targets)}")
    if targets == "equivariant" and num_symbols > MAX_VARIABLES:
        raise ValueError(
            f"targets 'equivariant' take at most {MAX_VARIABLES} symbols, got {num_symbols}: "
            "use targets 'papers'"
        )


def _check_samples(settings: Mapping[str, Any]) -> None:
    smallest, largest = settings["sizes"]
    if not 1 <= smallest <= largest:
        raise ValueError(f"sizes must be (smallest, largest) from 1 on, got {smallest, largest}")
    if settings["num_samples"] < 1:
        raise ValueError(f"num_samples must be at least 1, got {settings['num_samples']}")
    if not 0 <= settings["alpha"] <= 1:
        raise ValueError(f"alpha must be between 0 and 1, got {settings['alpha']}")
    # Refuses what cannot be drawn from, before any work is done.
    FormulaSampler(tuple(default_symbols(settings["num_symbols"])), settings["constant_priority"])


def _write_table(table: pa.Table, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, temporary)
    os.replace(temporary, path)


def _write_text(text: str, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    os.replace(temporary, path)
