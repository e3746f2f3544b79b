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

import hashlib
import json
import logging
import math
import os
import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_all_start_methods, get_context, parent_process
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from hf_alpha.folders import locked, read_json, remove_leftovers, replacing, write_text
from hf_alpha.tasks import Task, get_task
from hf_alpha.tasks.base import EQUIVALENCES

logger = logging.getLogger(__name__)

SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
PARTS = ".parts"
KEY_BYTES = 16
SETTINGS = "generation.json"
GENERATOR_VERSION = 2

_MAX_DRAWS = 4096
_MIN_DRAWS = 64
_PATIENCE = 20
"""A grid cell is given up after so many draws in a row, times the rows wanted, without a row."""
_EXHAUSTED_BELOW = 0.02
"""A size of which a round's draws were new less often than this has run out of problems."""
_HARD_ARE_RARE = 10
"""Among the problems that are drawn, so many times rarer are those kept where hard ones are asked
for: limits on draws are as much wider."""
_MAX_DEATHS = 3
"""So many deaths of workers in a row without a chunk done end the run."""

Executor = Callable[[Sequence["Chunk"]], Iterable[pa.Table]]


class WorkersDiedError(RuntimeError, ChildProcessError):
    """Worker processes died again and again; the message says what to do."""


@dataclass(frozen=True)
class Chunk:
    """One unit of work: `draws` problems of one size, or a grid cell.

    Attributes:
        name: file name of the result, unique within a run.
        task: what to draw.
        targets: how answers are computed.
        seed: seed of the chunk's own random generator.
        size: number of tokens of every problem.
        num_symbols: symbols to draw from.
        constant_priority: weight of the leaves 0 and 1 against a symbol's 1.
        draws: how many problems to draw.
        number: of the chunk, among those of its size.
        exactly: every problem has all `num_symbols` symbols.
        single: every problem has at most one of the symbols.
        split: keep only problems of this split.
        wanted: stop when so many different problems are found; 0 for no such limit.
        hard: least share of hard problems. Where there is a limit, the others get no more of it
            than is left; where there is none, they are kept at the rate of the hard ones.
        equivalence: what may differ between problems that count as one; "" for their texts.
        excluded: file with the keys of problems that are not wanted, named by its content; "" for
            none.
    """

    name: str
    task: Task
    targets: str
    seed: str
    size: int
    num_symbols: int
    constant_priority: float
    draws: int
    number: int = 0
    exactly: bool = False
    single: bool = False
    split: str | None = None
    wanted: int = 0
    hard: float = 0.0
    equivalence: str = ""
    excluded: str = ""


def generate(
    task: str | Task,
    out_dir: str | os.PathLike[str],
    num_samples: int,
    sizes: tuple[int, int] | None = None,
    num_symbols: int = 5,
    alpha: float | None = None,
    seed: int = 0,
    targets: str | None = None,
    num_workers: int = 1,
    constant_priority: float | None = None,
    few_symbols: int = 0,
    hard: float = 0.0,
    equivalence: str = EQUIVALENCES[0],
    shard: tuple[int, int] | None = None,
    progress: bool = True,
) -> dict[str, int]:
    """Generate a dataset of problems with answers that `datasets.load_dataset(out_dir)` loads.

    Sizes are uniform: each of the m sizes has a quota of `num_samples / m` problems that differ up
    to `equivalence`. Small sizes run out of them; the other sizes then take over in equal parts,
    but none gets more than the share 1/m + alpha of `num_samples` (0 is strictly uniform, 1 free).
    What the limits leave over is missing from the dataset, with a warning.

    Where an argument is None, it is what the papers have for the task.

    Args:
        task: a task or its name.
        out_dir: folder to make; a run with the same settings that was killed there continues.
        num_samples: problems in all splits together, before 80/10/10 splitting.
        sizes: smallest and largest number of tokens.
        num_symbols: problems are drawn over so many symbols and contain as many as they happen to.
        alpha: how far the distribution of sizes may depart from uniform, see above.
        seed: the dataset is a function of the settings above and the seed.
        targets: how answers are computed, one of the task's `targets`.
        num_workers: processes; no influence on the result.
        constant_priority: weight of the leaves 0 and 1 against a symbol's 1.
        few_symbols: up to so many more rows of the training split, with one symbol or none, of
            which training data has few. The papers take them from another dataset (2601.23169,
            Appendix F); here they are drawn, as uniform over the sizes from 1 to the largest one
            as there are problems. Those without symbols need constants.
        hard: least share of hard problems (`Task.is_hard`; LTL: no single step, repeated, is an
            answer), of each size; one without any has no rows. Both kinds are distributed as they
            are without it: hard ones are kept as they are drawn, of the others only a part is.
        equivalence: what may differ between problems that count as one and so are in one split:
            "commuting" (names, and the order of operands of commutative operators), or "renaming"
            (names only, as in the papers and in data made by version 1); see `Task.canonical`.
            Without influence on a task that is not `held_out`.
        shard: (i, n), from (1, n) to (n, n): do a share of the work and make no dataset. All
            shards share `out_dir`, on a disk that the machines have in common or copied together
            from several, and may run at any time. When all have ended, the call without `shard`
            makes the dataset, which is the same as without any.
        progress: show a progress bar.

    Returns:
        The number of rows of each split that has any; nothing for a shard.

    Raises:
        ValueError: for impossible settings, if `out_dir` holds a run with other settings or in
            another number of shards, if some of its shards have not ended, or if another process
            on this machine is at work there (shards may be, together).
        ImportError: if the targets need something that is not installed.
        WorkersDiedError: if worker processes keep dying; what is done is kept.
    """
    task = get_task(task) if isinstance(task, str) else task
    _check_equivalence(equivalence)
    sizes = task.sizes if sizes is None else sizes
    alpha = task.alpha if alpha is None else alpha
    constants = task.constant_priority if constant_priority is None else constant_priority
    settings: dict[str, Any] = {
        "kind": "samples",
        "version": GENERATOR_VERSION,
        "task": task.name,
        "num_samples": num_samples,
        "sizes": list(sizes),
        "num_symbols": num_symbols,
        "alpha": alpha,
        "seed": seed,
        "targets": _choose_targets(task, targets),
        "constant_priority": constants,
    }
    if few_symbols:
        settings["few_symbols"] = few_symbols
    if hard:
        settings["hard"] = hard
    if task.held_out:
        settings["equivalence"] = equivalence
    _check_samples(settings)
    _check_hard(task, hard)
    with _started(Path(out_dir), task, settings, num_workers, shard) as run:
        return run.counts if run.counts is not None else _make_samples(run, shard, progress)


def _make_samples(run: "_Run", shard: tuple[int, int] | None, progress: bool) -> dict[str, int]:
    """Do the work of `generate`."""
    settings, plan = run.settings, _Plan(run.task, run.settings, shard)
    num_samples, few_symbols = settings["num_samples"], settings.get("few_symbols", 0)
    with (
        run.executor() as execute,
        tqdm(total=num_samples + few_symbols, disable=not progress) as bar,
    ):
        plan.fill(execute, lambda total: bar.update(total - bar.n))
        if plan.total < num_samples and shard is None:
            logger.warning(
                "%d of %d samples are missing: sizes %d-%d over %d symbol(s) have run out of "
                "different problems within alpha=%g; raise alpha, num_symbols or the largest size",
                *(num_samples - plan.total, num_samples, *settings["sizes"]),
                *(settings["num_symbols"], settings["alpha"]),
            )
        tables = [plan.table()]
        if few_symbols:
            few = plan.of_few_symbols()
            few.fill(execute, lambda total: bar.update(plan.total + total - bar.n))
            tables.append(few.table())
    return run.finish(pa.concat_tables(tables)) if shard is None else run.end_shard()


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
    the cells without symbols are made of them. The symbols of a cell are the first ones of the
    vocabulary. With `hard` this share of a cell is for hard problems: where there are not so many,
    the cell holds fewer problems, not more others.

    Args, returns and errors are those of `generate`; the one split is "test". `exclude` are further
    problems that no problem of the grid may be equivalent to: the training data of a model whose
    splits were made in another way (`read.training_problems`).
    """
    task = get_task(task) if isinstance(task, str) else task
    _check_equivalence(equivalence)
    num_symbols, sizes = sorted(set(num_symbols)), sorted(set(sizes))
    settings: dict[str, Any] = {
        "kind": "grid",
        "version": GENERATOR_VERSION,
        "task": task.name,
        "num_symbols": num_symbols,
        "sizes": sizes,
        "per_cell": per_cell,
        "seed": seed,
        "targets": _choose_targets(task, targets),
    }
    if hard:
        settings["hard"] = hard
    if task.held_out:
        settings["equivalence"] = equivalence
    excluded = sorted(keys_of(task, exclude, settings.get("equivalence", "")))
    if excluded:
        digest = hashlib.blake2b(b"".join(excluded), digest_size=8).hexdigest()
        settings["exclude"] = {"problems": len(excluded), "digest": digest}
    _check_hard(task, hard)
    cells = [(k, size, task.constant_priority if k else 1.0) for k in num_symbols for size in sizes]
    cells = [(k, size, c) for k, size, c in cells if task.is_feasible(size, k, True, c)]
    chunks = [
        Chunk(
            name=f"cell-{k:03d}-{size:05d}",
            task=task,
            targets=settings["targets"],
            seed=f"grid/{seed}/{k}/{size}",
            size=size,
            num_symbols=k,
            constant_priority=constants,
            draws=200 * per_cell * _rarity(hard),
            exactly=True,
            split="test" if task.held_out else None,
            wanted=per_cell,
            hard=hard,
            equivalence=settings.get("equivalence", ""),
        )
        for k, size, constants in cells
    ]
    if shard is not None:
        chunks = chunks[shard[0] - 1 :: shard[1]]
    with _started(Path(out_dir), task, settings, num_workers, shard) as run:
        if run.counts is not None:
            return run.counts
        return _make_grid(run, _without(excluded, chunks, run), progress)


def _without(keys: list[bytes], chunks: list[Chunk], run: "_Run") -> list[Chunk]:
    """Have chunks keep clear of problems, whose keys are written to a file for all processes."""
    if not keys:
        return chunks
    path = run.parts / f"excluded-{run.settings['exclude']['digest']}"
    with replacing(path) as temporary:
        temporary.write_bytes(b"".join(keys))
    return [replace(chunk, excluded=str(path)) for chunk in chunks]


def _make_grid(run: "_Run", chunks: list[Chunk], progress: bool) -> dict[str, int]:
    """Do the work of `generate_grid`."""
    with run.executor() as execute:
        parts = list(tqdm(execute(chunks), total=len(chunks), unit="cell", disable=not progress))
    if run.record is not None:
        return run.end_shard()
    return run.finish(pa.concat_tables([_part_schema(run.task).empty_table(), *parts]), "test")


def split_of(key: bytes) -> str:
    """Return the split that a problem with this key (see `key_of`) belongs to."""
    position = int.from_bytes(key[:8], "big") / 2**64
    for split, share in SPLITS.items():
        if position < share:
            return split
        position -= share
    return split


def key_of(canonical: str) -> bytes:
    """Return the 16-byte hash of a canonical form: equivalent problems, equal keys."""
    return hashlib.blake2b(canonical.encode(), digest_size=KEY_BYTES).digest()


def key_in(task: Task, tokens: Sequence[str], equivalence: str) -> bytes:
    """Return the key of a problem; without an equivalence that of its text."""
    return key_of(task.canonical_form(tokens, equivalence) if equivalence else task.write(tokens))


def keys_of(task: Task, problems: Iterable[str], equivalence: str) -> set[bytes]:
    """Return the keys of problems.

    Raises:
        FormulaError: one of them cannot be read.
    """
    return {key_in(task, task.parse(problem), equivalence) for problem in problems}


@lru_cache(maxsize=1)
def _read_keys(path: str) -> frozenset[bytes]:
    found = Path(path).read_bytes() if path else b""
    return frozenset(found[i : i + KEY_BYTES] for i in range(0, len(found), KEY_BYTES))


def schema_of(task: Task) -> pa.Schema:
    """Return the columns of a dataset; `facts` may be missing in a row, the others not."""
    text, number = pa.string(), pa.int32()
    columns = {"problem": text, "answer": text, "num_symbols": number, "size": number}
    return pa.schema({**columns, **dict.fromkeys(task.facts, number)})


def _part_schema(task: Task) -> pa.Schema:
    return schema_of(task).append(pa.field("key", pa.binary(KEY_BYTES)))


def run_chunk(chunk: Chunk, folder: str) -> str:
    """Do one chunk and write its file under `folder`, atomically; return the file's path."""
    path = Path(folder, f"{chunk.name}.parquet")
    if not path.exists():
        rows = list(_rows(chunk))
        _write_table(pa.Table.from_pylist(rows, schema=_part_schema(chunk.task)), path)
    return str(path)


def _rows(chunk: Chunk) -> Iterator[dict[str, Any]]:
    """Draw a chunk's problems; columns are those of `_part_schema`."""
    task, size, constants = chunk.task, chunk.size, chunk.constant_priority
    symbols = task.default_symbols(chunk.num_symbols)
    num_symbols = 1 if chunk.single else chunk.num_symbols
    if not task.is_feasible(size, num_symbols, chunk.exactly, constants):
        return
    default = chunk.targets == next(iter(task.targets))
    rng = random.Random(chunk.seed)
    seen = set(_read_keys(chunk.excluded))
    kept = easy = unlucky = 0
    patience = _PATIENCE * chunk.wanted * _rarity(chunk.hard)
    for _ in range(chunk.draws):
        if chunk.wanted and (kept == chunk.wanted or unlucky == patience):
            return
        unlucky += 1
        full = easy >= _room_for_easy(chunk.hard, chunk.wanted or kept + 1)
        leaves = [rng.choice(symbols)] if chunk.single else symbols
        tokens = task.draw(rng, size, leaves, chunk.exactly, constants)
        key = key_in(task, tokens, chunk.equivalence)
        if key in seen or (chunk.split and split_of(key) != chunk.split):
            continue
        hard = bool(chunk.hard) and task.is_hard(tokens)
        if full and not hard:
            continue
        seen.add(key)
        answer = task.target_of(tokens, chunk.targets)
        if answer is not None:
            kept, unlucky = kept + 1, 0
            easy += not hard
            yield {
                "problem": task.write(tokens),
                "answer": answer,
                "num_symbols": len(task.symbols_in(tokens)),
                "size": size,
                **task.facts_of(tokens, answer if default else None),
                "key": key,
            }


class _Plan:
    """Decide which chunks are needed, from nothing but the chunks before them.

    A shard has only every n-th chunk of a round, and takes it that the others are like its own of
    the same size, or of the nearest size of which it has any.

    Args:
        task: what to draw.
        settings: as they are recorded.
        shard: which chunks to make; None for all.
        few: draw problems of at most one symbol for the training split.
        keys: of the problems that there are already.
    """

    def __init__(
        self,
        task: Task,
        settings: Mapping[str, Any],
        shard: tuple[int, int] | None = None,
        few: bool = False,
        keys: Iterable[bytes] = (),
    ):
        smallest, largest = settings["sizes"]
        self.task, self.settings, self.shard, self.few = task, settings, shard, few
        self.sizes = range(smallest, largest + 1)
        self.wanted: int = settings["num_samples"]
        even = math.ceil(self.wanted / len(self.sizes))
        self.limit = max(even, int(self.wanted * (1 / len(self.sizes) + settings["alpha"])))
        self.hard: float = 0.0 if few else settings.get("hard", 0.0)
        rarity = _rarity(self.hard)
        self.draws = min(_MAX_DRAWS, max(_MIN_DRAWS, even) * rarity)
        self.exhausted_below = _EXHAUSTED_BELOW / rarity
        self.tables: dict[int, list[pa.Table]] = {size: [] for size in self.sizes}
        self.found = dict.fromkeys(self.sizes, 0)
        self.easy = dict.fromkeys(self.sizes, 0)
        self.chunks = dict.fromkeys(self.sizes, 0)
        self.rates = dict.fromkeys(self.sizes, 1.0)
        self.keys = set(keys)

    def of_few_symbols(self) -> "_Plan":
        """Return the plan for the rows that `few_symbols` asks for."""
        rows = self.table()
        sizes, count = [1, self.sizes[-1]], self.settings["few_symbols"]
        settings = {**self.settings, "sizes": sizes, "num_samples": count, "alpha": 1.0}
        return _Plan(self.task, settings, self.shard, few=True, keys=rows["key"].to_pylist())

    def fill(self, execute: Executor, report: Callable[[int], object]) -> None:
        """Run rounds of chunks until every size is full or has run out of problems."""
        while chunks := self._next_round():
            before = dict(self.found)
            made = [chunk for chunk in chunks if self._is_own(chunk)]
            for chunk, part in zip(made, execute(made), strict=True):
                self._accept(chunk.size, part)
                report(self.total)
            own = Counter(chunk.size for chunk in made)
            for size, count in own.items():
                self.rates[size] = (self.found[size] - before[size]) / (count * self.draws)
            if self.shard is not None:
                self._guess(Counter(chunk.size for chunk in chunks), own)
                report(self.total)

    def _is_own(self, chunk: Chunk) -> bool:
        if self.shard is None:
            return True
        number, count = self.shard
        return (chunk.size + chunk.number) % count == number - 1

    def _guess(self, planned: Mapping[int, int], own: Mapping[int, int]) -> None:
        """Count what other shards are to find in a round; `own` chunks are a part of it.

        Without any the rates stay as they are.
        """
        for size, count in planned.items():
            if own and size not in own:
                self.rates[size] = self.rates[min(own, key=lambda other: abs(other - size))]
            if not self._exhausted(size):
                others = count - own.get(size, 0)
                self.found[size] += round(others * self.draws * self.rates[size])

    @property
    def total(self) -> int:
        """How many rows the dataset would have now."""
        quotas = self._quotas()
        return sum(min(self.found[size], quotas[size]) for size in self.sizes)

    def table(self) -> pa.Table:
        """Return the rows, each size cut to its quota."""
        quotas = self._quotas()
        tables = [_part_schema(self.task).empty_table()]
        for size, parts in self.tables.items():
            if parts:
                tables.append(pa.concat_tables(parts).slice(0, quotas[size]))
        return pa.concat_tables(tables)

    def _exhausted(self, size: int) -> bool:
        return self.rates[size] < self.exhausted_below

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
            name=f"{'few' if self.few else 'size'}-{size:05d}-{number:06d}",
            task=self.task,
            targets=settings["targets"],
            seed=f"{'few' if self.few else 'samples'}/{settings['seed']}/{size}/{number}",
            size=size,
            num_symbols=settings["num_symbols"],
            constant_priority=settings["constant_priority"],
            draws=self.draws,
            number=number,
            single=self.few,
            split="train" if self.few else None,
            hard=self.hard,
            equivalence=settings.get("equivalence", ""),
        )

    def _accept(self, size: int, part: pa.Table) -> None:
        """Keep the rows whose key is new, and of those that are not hard as many as may be."""
        task, kept, fresh = self.task, self.found[size], []
        for key, problem in zip(
            *(part[name].to_pylist() for name in ("key", "problem")), strict=True
        ):
            new = key not in self.keys
            if new and self.hard and not task.is_hard(task.parse(problem)):
                new = self.easy[size] < _room_for_easy(self.hard, kept + 1)
                self.easy[size] += new
            kept += new
            fresh.append(new)
            self.keys.add(key)
        self.tables[size].append(part.filter(pa.array(fresh, pa.bool_())))
        self.found[size] = kept


@contextmanager
def _started(folder: Path, *arguments: Any) -> Iterator["_Run"]:
    """Give a run that has its folder to itself, or shares it with other shards.

    Args:
        arguments: the others of `_Run`.
    """
    shard = arguments[-1]
    with locked(folder, shared=shard is not None) as mine:
        if not mine and not (folder / SETTINGS).exists():
            raise ValueError(
                f"another process makes data in {folder}: wait until it has ended, or choose "
                "another folder"
            )
        run = _Run(folder, *arguments)
        if mine and run.counts is not None:
            run.clean()
        yield run


class _Run:
    """A folder in which a run with given settings is made, continued or found finished.

    Each shard has a record there from its start, which says whether it has ended.
    """

    def __init__(
        self,
        folder: Path,
        task: Task,
        settings: dict[str, Any],
        num_workers: int,
        shard: tuple[int, int] | None = None,
    ):
        if num_workers < 1:
            raise ValueError(f"num_workers must be at least 1, got {num_workers}")
        if shard is not None and shard[1] < 1:
            raise ValueError(f"there are no {shard[1]} shards: write 1/4 to 4/4 for four")
        if shard is not None and not 1 <= shard[0] <= shard[1]:
            raise ValueError(
                f"there is no shard {shard[0]}/{shard[1]}: they are counted from 1/{shard[1]} to "
                f"{shard[1]}/{shard[1]}, with SLURM --array=1-{shard[1]}"
            )
        self.folder, self.task = folder, task
        self.settings, self.num_workers = settings, num_workers
        self.parts = folder / PARTS
        self.counts: dict[str, int] | None = None
        finished, started = folder / SETTINGS, self.parts / SETTINGS
        if finished.exists():
            record = read_json(finished, "settings", "rows")
            self._compare(record["settings"])
            self.counts = record["rows"]
        elif started.exists():
            self._compare(read_json(started))
        elif folder.exists() and any(path.name != PARTS for path in folder.iterdir()):
            raise ValueError(f"{folder} is not empty and holds no generated data: choose another")
        else:
            _try_target(task, settings)
            self.parts.mkdir(parents=True, exist_ok=True)
            write_text(started, json.dumps(settings, indent=2) + "\n")
        if self.counts is None:
            self.record = self._check_shards(shard)

    def _check_shards(self, shard: tuple[int, int] | None) -> Path | None:
        """Start a shard's record; without a shard make sure that those there are have ended."""
        ended: dict[int, bool] = {}
        counts = {shard[1]} if shard else set()
        for path in self.parts.glob("shard-*.json"):
            number, count = map(int, re.findall(r"\d+", path.name))
            other = read_json(path, "settings", "ended")
            self._compare(other["settings"])
            counts.add(count)
            ended[number] = other["ended"]
        if len(counts) > 1:
            raise ValueError(
                f"{self.folder} is made in {min(counts)} shards, and in {max(counts)} too: choose "
                f"one number, or delete {self.parts}/shard-*.json (what is made stays)"
            )
        if shard is None:
            missing = [n for n in range(1, max(counts, default=0) + 1) if not ended.get(n)]
            if missing:
                raise ValueError(
                    f"{len(missing)} of {max(counts)} shards of {self.folder} have not ended: "
                    f"{', '.join(map(str, missing))}; wait for them, or start them (again), here "
                    f"if you like, with --shard {missing[0]}/{max(counts)}"
                )
            return None
        record = self.parts / f"shard-{shard[0]}-of-{shard[1]}.json"
        self._write_shard(record, ended.get(shard[0], False))
        return record

    def _write_shard(self, record: Path, ended: bool) -> None:
        write_text(record, json.dumps({"settings": self.settings, "ended": ended}, indent=2) + "\n")

    def end_shard(self) -> dict[str, int]:
        """Record that the shard has ended."""
        assert self.record is not None
        self._write_shard(self.record, True)
        return {}

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
        pool = self._pool()

        def execute(chunks: Sequence[Chunk]) -> Iterator[pa.Table]:
            nonlocal pool
            done = deaths = 0
            finished = self._chunks_done()
            while done < len(chunks):
                try:
                    for path in pool.map(work, chunks[done:]):
                        yield pq.read_table(path)
                        done += 1
                except BrokenProcessPool:
                    before, finished = finished, self._chunks_done()
                    deaths = 1 if finished > before else deaths + 1
                    if deaths >= _MAX_DEATHS:
                        raise WorkersDiedError(
                            f"worker processes died {deaths} times in a row without finishing a "
                            f"chunk (out of memory?); what is done is kept in {self.folder}: start "
                            "again, with fewer workers"
                        ) from None
                    logger.warning(
                        "a worker process died; a new one goes on, %d of %d chunks are done",
                        *(done, len(chunks)),
                    )
                    pool.shutdown(cancel_futures=True)
                    pool = self._pool()

        try:
            yield execute
        finally:
            pool.shutdown(cancel_futures=True)

    def _pool(self) -> ProcessPoolExecutor:
        method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
        context = get_context(method)
        if method == "forkserver":  # imports this module once, not in every worker
            context.set_forkserver_preload([__name__])
        return ProcessPoolExecutor(self.num_workers, context, initializer=_end_with_parent)

    def _chunks_done(self) -> int:
        return len(list(self.parts.glob("*.parquet")))

    def finish(self, table: pa.Table, only: str | None = None) -> dict[str, int]:
        """Write one file a split, the card and the record; the parts are then deleted.

        Keys decide about splits, unless there is `only` one. An empty split gets no file, because
        `datasets` cannot load one.
        """
        if not len(table):
            raise ValueError("there is no problem with an answer with these settings")
        keys = table["key"].to_pylist()
        # Keys are hashes: their order is a shuffle that depends on nothing else.
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows: dict[str, list[int]] = {split: [] for split in SPLITS}
        for index in order:
            rows[only or split_of(keys[index])].append(index)
        rows = {split: indices for split, indices in rows.items() if indices}
        (self.folder / "data").mkdir(exist_ok=True)
        for split, indices in rows.items():
            part = table.drop_columns("key").take(pa.array(indices, pa.int64()))
            _write_table(part, self.folder / "data" / f"{split}-00000-of-00001.parquet")
        counts = {split: len(indices) for split, indices in rows.items()}
        write_records(
            self.folder, self.task, self.settings, counts, table["num_symbols"].to_pylist()
        )
        self.clean()
        return counts

    def clean(self) -> None:
        """Remove what a finished dataset needs no more, and what runs killed on the way left."""
        shutil.rmtree(self.parts, ignore_errors=True)
        for folder in (self.folder, self.folder / "data"):
            remove_leftovers(folder)


def write_records(
    folder: Path,
    task: Task,
    settings: Mapping[str, Any],
    counts: Mapping[str, int],
    num_symbols: Iterable[int],
) -> None:
    """Write what says how a dataset was made; `dataset_card` describes the arguments."""
    card = dataset_card(task, settings, counts, num_symbols)
    write_text(folder / "README.md", card)
    record = {"settings": settings, "rows": counts}
    write_text(folder / SETTINGS, json.dumps(record, indent=2) + "\n")


def dataset_card(
    task: Task, settings: Mapping[str, Any], counts: Mapping[str, int], num_symbols: Iterable[int]
) -> str:
    """Write the README.md that the Hub shows.

    It names no data files, `load_dataset` finds them: if it did, `datasets` 5.2 would take two
    local folders of the same name for the same data and serve the first from its cache.

    Args:
        task: of the problems.
        settings: how they were made; data that is known by its task only has no others.
        counts: split -> number of rows.
        num_symbols: number of distinct symbols of each row.
    """
    listed = "\n".join(f"| {name} | `{json.dumps(value)}` |" for name, value in settings.items())
    rows = "\n".join(f"| {split} | {count:,} |" for split, count in counts.items())
    symbols = Counter(num_symbols)
    by_symbols = "\n".join(f"| {k} | {symbols[k]:,} |" for k in sorted(symbols))
    about = "\n\n".join(_about(task, settings))
    return f"""---
pretty_name: {task.name} ({settings.get("perturbation", settings.get("kind"))})
tags:
- hf_alpha
- logic
---
# {task.name}: problems and answers

{about}

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


def _about(task: Task, settings: Mapping[str, Any]) -> Iterator[str]:
    """Say what the data is, a paragraph at a time."""
    if "kind" in settings:
        few = _FEW if settings.get("few_symbols") else ""
        yield f"{_KINDS[settings['kind']]}{few} Made by `hf_alpha` (`hf-alpha generate-data`)."
    if "perturbation" in settings:
        splits = ", ".join(settings["perturbed_splits"])
        text = _PERTURBATIONS[settings["perturbation"]]
        yield f"**Perturbed ({splits}): {settings['perturbation']}.** {text}"
    yield f"{task.data}, {_COLUMNS}."
    if "targets" in settings:
        yield f"**Targets: {settings['targets']}.** {task.targets[settings['targets']]}"
    if settings.get("hard"):
        yield f"**Hard: at least {settings['hard']:.0%}, where there are so many.** {task.hard}"
    if "kind" in settings:
        yield _HELD_OUT[settings.get("equivalence", "renaming")] if task.held_out else _NOT_HELD_OUT


_KINDS = {
    "samples": "Training, validation and test data, as uniform over sizes as `alpha` demands.",
    "grid": "Test data for a heatmap: up to `per_cell` problems for each number of distinct "
    "symbols and each size.",
}
_PERTURBATIONS = {
    "renamed": "The symbols of a problem and its answer are renamed so that their order of first "
    "occurrence in the answer, and then in the problem, is always the same (2410.17161, Section "
    "5.2.1; 2601.23169, Section 5.3).",
    "reduced": "Only the first rows are left (2601.23169, Section 5.3).",
}
_COLUMNS = (
    "`num_symbols` the number of distinct symbols in the problem, `size` its number of tokens"
)
_FEW = (
    " The training data has up to `few_symbols` more rows with one symbol or none, of every size "
    "from 1 to the largest (2601.23169, Appendix F)."
)
_SPLITS = (
    "decides its split, so splits do not overlap in this sense, in this and in every other dataset "
    "made with the same `equivalence`."
)
_HELD_OUT = {
    "commuting": "Problems are different up to renaming of their symbols and the order of operands "
    "of commutative operators. The hash of a problem's canonical form (operands sorted, then "
    f"symbols renamed in order of first occurrence) {_SPLITS}",
    "renaming": "Problems are different up to renaming of their symbols. The hash of a problem's "
    f"canonical form (symbols renamed in order of first occurrence) {_SPLITS} Of two problems that "
    "differ in the order of operands only, one may be in the training data and one in the test.",
}
_NOT_HELD_OUT = (
    "Problems are different as texts. There are too few for test data that is not in training data "
    "up to renaming."
)


def _choose_targets(task: Task, targets: str | None) -> str:
    if targets is None:
        return next(iter(task.targets))
    if targets not in task.targets:
        raise ValueError(f"unknown targets {targets!r}: choose one of {', '.join(task.targets)}")
    return targets


def _check_samples(settings: Mapping[str, Any]) -> None:
    smallest, largest = settings["sizes"]
    if not 1 <= smallest <= largest:
        raise ValueError(f"sizes must be (smallest, largest) from 1 on, got {smallest, largest}")
    if settings["num_samples"] < 1:
        raise ValueError(f"num_samples must be at least 1, got {settings['num_samples']}")
    if settings.get("few_symbols", 0) < 0:
        raise ValueError(f"few_symbols must be at least 0, got {settings['few_symbols']}")
    if not 0 <= settings["alpha"] <= 1:
        raise ValueError(f"alpha must be between 0 and 1, got {settings['alpha']}")


def _check_equivalence(equivalence: str) -> None:
    if equivalence not in EQUIVALENCES:
        raise ValueError(
            f"unknown equivalence {equivalence!r}: choose one of {', '.join(EQUIVALENCES)}"
        )


def _check_hard(task: Task, hard: float) -> None:
    if not 0 <= hard <= 1:
        raise ValueError(f"hard is a share and must be between 0 and 1, got {hard}")
    if hard and not task.hard:
        raise ValueError(f"task {task.name!r} knows no hard problems: leave out hard = {hard}")


def _room_for_easy(hard: float, total: int) -> int:
    """Say how many of `total` problems need not be hard."""
    return total - math.ceil(round(hard * total, 6))  # rounded: 0.07 * 100 is a little more than 7


def _rarity(hard: float) -> int:
    return _HARD_ARE_RARE if hard else 1


def _try_target(task: Task, settings: Mapping[str, Any]) -> None:
    """Compute one answer: what cannot be drawn or answered is refused before any work is done.

    The problem has as many of the symbols as fit, and is else as small as can be.
    """
    smallest, largest = min(settings["sizes"]), max(settings["sizes"])
    most = settings["num_symbols"]
    most = most if isinstance(most, int) else max(most)
    constants = settings.get("constant_priority", task.constant_priority)
    for count in range(most, min(most, 1) - 1, -1):
        weight = constants if count or "constant_priority" in settings else 1.0
        for size in range(smallest, largest + 1):
            if task.is_feasible(size, count, True, weight):
                names = task.default_symbols(count)
                tokens = task.draw(random.Random(0), size, names, True, weight)
                task.target_of(tokens, settings["targets"])
                return
    raise ValueError(
        f"task {task.name!r} has no problem of size {smallest} to {largest} over {most} symbol(s)"
    )


def _end_with_parent() -> None:
    """Make this worker end when its run is killed; it would wait for work forever."""

    def wait() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _write_table(table: pa.Table, path: Path) -> None:
    with replacing(path) as temporary:
        pq.write_table(table, temporary)
