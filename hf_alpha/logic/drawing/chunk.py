"""Chunks: numbers of problems of one size, each drawn from a seed of its own into a file.

Processes divide a list of chunks beforehand: each makes every n-th of them. It makes no difference
to the files how many processes there are, where, or which of them end.
"""

import logging
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from hf_alpha.data.keys import KEY_BYTES, key_in, split_of
from hf_alpha.io.folders import replacing
from hf_alpha.modeling.choices import refuse
from hf_alpha.tasks import DrawnTask

logger = logging.getLogger(__name__)

_PATIENCE = 20
"""A grid cell is given up after so many draws in a row, times the rows wanted, without a row."""
_HARD_ARE_RARE = 10
"""Among the problems that are drawn, so many times rarer are those kept where hard ones are asked
for, for each unit of hardness: limits on draws are as much wider."""

_MAX_DRAWS = 4096
_MIN_DRAWS = 64
_EXHAUSTED_BELOW = 0.02
"""A size of which a round's draws were new less often than this has run out of problems."""

Make: TypeAlias = Callable[[list["Chunk"]], list[pa.Table]]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """One unit of work: `draws` problems of one size, or a grid cell.

    Attributes:
        equivalence: what may differ between problems that count as one; "" for their texts.
        seed: of the chunk's own random generator, unique within a run; also the file's name.
        size: number of tokens of every problem.
        constant_priority: weight of the leaves 0 and 1 against a symbol's 1.
        exactly: every problem has all `num_symbols` symbols.
        single: every problem has at most one of the symbols.
        max_rows: stop when so many different problems are found; 0 for no such limit.
        hard: least share of hard problems. Where there is a limit, the others get no more of it
            than is left; where there is none, they are kept at the rate of the hard ones.
        hardness: what counts as hard, see `DrawnTask.is_hard`.
        walk: so many more draws start from each hard problem that was drawn: each varies one part
            of the last hard one (`DrawnTask.vary`).
        excluded: keys of problems that are not wanted.
    """

    task: DrawnTask
    targets: str
    equivalence: str
    seed: str
    size: int = 0
    num_symbols: int = 0
    constant_priority: float = 0.0
    draws: int = 0
    exactly: bool = False
    single: bool = False
    split: str | None = None
    max_rows: int = 0
    hard: float = 0.0
    hardness: int = 1
    walk: int = 0
    excluded: frozenset[bytes] = frozenset()

    @property
    def is_feasible(self) -> bool:
        """Whether there can be a problem."""
        count = 1 if self.single else self.num_symbols
        return self.task.is_feasible(self.size, count, self.exactly, self.constant_priority)

    def path(self, folder: Path) -> Path:
        """Return the file of its rows."""
        return folder / f"{self.seed.replace('/', '-')}.parquet"


def check_sizes(sizes: tuple[int, int]) -> tuple[int, int]:
    """Return the smallest and the largest size; raise a ValueError unless they are from 1 on."""
    pair = isinstance(sizes, list | tuple) and len(sizes) == 2
    if not pair or not 1 <= sizes[0] <= sizes[1]:
        raise ValueError(f"sizes must be (smallest, largest) from 1 on, got {sizes!r}")
    return sizes


def chunk_schema(task: DrawnTask) -> pa.Schema:
    """Return the columns of a chunk: those of a dataset, and the problem's key.

    The task's `facts` may be missing in a row, the others not.
    """
    text, number = pa.string(), pa.int32()
    columns = {"problem": text, "answer": text, "num_symbols": number, "size": number}
    facts = dict.fromkeys(task.facts, number)
    return pa.schema({**columns, **facts, "key": pa.binary(KEY_BYTES)})


@dataclass
class Maker:
    """Makes chunks, by several processes, and returns their rows.

    Attributes:
        folder: of the files.
        num_workers: processes on this machine.
        shard: (k, n) makes the k-th of n shares alone, k from 1 on; others make the rest.
        num_made: files made here, so far.
        num_missing: files that are not there, of the chunks asked for last.
    """

    folder: Path
    num_workers: int = 1
    progress: bool = False
    shard: tuple[int, int] = (1, 1)
    num_made: int = 0
    num_missing: int = 0

    def __post_init__(self) -> None:
        number, count = self.shard
        refuse(self.num_workers < 1, f"num_workers must be at least 1, got {self.num_workers}")
        refuse(
            not 1 <= number <= count,
            f"shard must be one of 1/{count} to {count}/{count}, got {number}/{count}",
        )

    def __call__(self, chunks: Sequence[Chunk]) -> list[pa.Table]:
        """Make chunks and return their rows.

        A process that dies costs time, and nothing else: its chunks are made by this one.

        Raises:
            MissingChunks: others have not made theirs yet.
        """
        number, count = self.shard
        own = [one for one in chunks[number - 1 :: count] if not one.path(self.folder).exists()]
        self._make_all(own)
        self.num_made += len(own)
        self.num_missing = sum(not one.path(self.folder).exists() for one in chunks)
        if self.num_missing:
            raise MissingChunks
        return [pq.read_table(one.path(self.folder)) for one in chunks]

    def _make_all(self, chunks: Sequence[Chunk]) -> None:
        own, *others = (chunks[first :: self.num_workers] for first in range(self.num_workers))
        context = get_context("forkserver")
        context.set_forkserver_preload([__name__])  # imported once, not in every process
        helpers = [
            context.Process(target=_help, args=(share, self.folder)) for share in others if share
        ]
        try:
            for helper in helpers:
                helper.start()
            _make_files(tqdm(own, unit="chunk", disable=not self.progress), self.folder)
            for helper in helpers:
                helper.join()
            if dead := [helper for helper in helpers if helper.exitcode]:
                logger.warning("%d worker process(es) died (out of memory?)", len(dead))
            _make_files(chunks, self.folder)
        finally:
            for helper in helpers:
                if helper.pid is not None:
                    helper.terminate()
                    helper.join()


class MissingChunks(Exception):
    """Not all chunks are there, and those that are missing are for others to make."""


def _help(chunks: Sequence[Chunk], folder: Path) -> None:
    """Work as long as the process that started this one lives."""
    parent = parent_process()
    assert parent is not None
    with suppress(KeyboardInterrupt, FileNotFoundError):  # the parent says what is the matter
        _make_files(takewhile(lambda _: parent.is_alive(), chunks), folder)


def _make_files(chunks: Iterable[Chunk], folder: Path) -> None:
    """Make the chunks that are not there."""
    for chunk in chunks:
        path = chunk.path(folder)
        if not path.exists():
            rows = list(rows_of(chunk))
            write_table(pa.Table.from_pylist(rows, schema=chunk_schema(chunk.task)), path)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a parquet file in one step."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def try_one(chunks: Iterable[Chunk]) -> None:
    """Draw and answer one problem: what cannot be is refused before any work is done.

    Raises:
        ValueError: there is no problem in any chunk.
        ImportError: the targets need something that is not installed.
        NotImplementedError: walks are asked for, and the task has none.
    """
    chunk = next((chunk for chunk in chunks if chunk.is_feasible), None)
    if chunk is None:
        raise ValueError("there is no problem with these settings: choose other sizes or symbols")
    draws = _Draws(chunk)
    draws.found_hard(draws.next())
    chunk.task.target_of(draws.last_hard, chunk.targets)
    if chunk.walk:
        draws.next()


def room_for_easy(hard: float, total: int) -> int:
    """Say how many of `total` problems need not be hard."""
    return total - math.ceil(round(hard * total, 6))  # rounded: 0.07 * 100 is a little more than 7


def rarity(hard: float, hardness: int) -> int:
    """Say how many times more draws a limit allows where this share has to be hard."""
    return _HARD_ARE_RARE**hardness if hard else 1


def rows_of(chunk: Chunk) -> Iterator[dict[str, Any]]:
    """Draw a chunk's problems; columns are those of `chunk_schema`."""
    task = chunk.task
    if not chunk.is_feasible:
        return
    draws = _Draws(chunk)
    keys = set(chunk.excluded)
    num_rows = num_easy = num_unlucky = 0
    patience = _PATIENCE * chunk.max_rows * rarity(chunk.hard, chunk.hardness)
    for _ in range(chunk.draws):
        if chunk.max_rows and (num_rows == chunk.max_rows or num_unlucky == patience):
            return
        num_unlucky += 1
        is_full = num_easy >= room_for_easy(chunk.hard, chunk.max_rows or num_rows + 1)
        tokens = draws.next()
        key = key_in(task, tokens, chunk.equivalence)
        if key in keys or (chunk.split and split_of(key) != chunk.split):
            continue
        is_hard = bool(chunk.hard) and task.is_hard(tokens, chunk.hardness)
        if is_full and not is_hard:
            continue
        keys.add(key)
        answer = task.target_of(tokens, chunk.targets)
        if answer is not None:
            num_rows, num_unlucky = num_rows + 1, 0
            num_easy += not is_hard
            if is_hard:
                draws.found_hard(tokens)
            yield {**_row(chunk, tokens, answer), "key": key}


class _Draws:
    """The problems that a chunk tries: drawn, or steps of walks from hard ones."""

    def __init__(self, chunk: Chunk):
        self.chunk, self.rng = chunk, random.Random(chunk.seed)
        self.symbols = chunk.task.default_symbols(chunk.num_symbols)
        self.steps_left, self.is_walking = 0, False
        self.last_hard: Sequence[str] = ()

    def next(self) -> list[str]:
        """Return the next problem's tokens."""
        chunk, rng = self.chunk, self.rng
        self.is_walking = self.steps_left > 0
        if self.is_walking:
            self.steps_left -= 1
            return chunk.task.vary(rng, self.last_hard, self.symbols, chunk.constant_priority)
        leaves = [rng.choice(self.symbols)] if chunk.single else self.symbols
        return chunk.task.draw(rng, chunk.size, leaves, chunk.exactly, chunk.constant_priority)

    def found_hard(self, tokens: Sequence[str]) -> None:
        """Go on from a hard problem, that `next` returned last and that has an answer."""
        self.last_hard = tokens
        if not self.is_walking:
            self.steps_left = self.chunk.walk


def _row(chunk: Chunk, tokens: Sequence[str], answer: str) -> dict[str, Any]:
    """Return the columns of a dataset for a problem."""
    task, default = chunk.task, next(iter(chunk.task.targets))
    return {
        "problem": task.write(tokens),
        "answer": answer,
        "num_symbols": len(task.symbols_in(tokens)),
        "size": chunk.size,
        **task.facts_of(tokens, answer if chunk.targets == default else None),
    }


class Rounds:
    """Rows of several sizes, without duplicates, gathered in rounds of chunks.

    Which chunks a round has depends on nothing but the chunks before it.

    Args:
        pattern: a chunk that all chunks are like, except for size, draws and the end of the seed.
        sizes: smallest and largest number of tokens.
        alpha: a size gets no more than its even share of the rows, and this share of them.
        keys: of problems that there are already.
    """

    def __init__(
        self,
        pattern: Chunk,
        num_samples: int,
        sizes: tuple[int, int],
        alpha: float,
        keys: Iterable[bytes] = (),
    ):
        smallest, largest = check_sizes(sizes)
        self.sizes = range(smallest, largest + 1)
        even = math.ceil(num_samples / len(self.sizes))
        rare = rarity(pattern.hard, pattern.hardness)
        self.num_samples = num_samples
        self.limit = max(even, int(num_samples * (1 / len(self.sizes) + alpha)))
        self.pattern = replace(pattern, draws=min(_MAX_DRAWS, max(_MIN_DRAWS, even) * rare))
        self.exhausted_below = _EXHAUSTED_BELOW / rare
        self.tables: dict[int, list[pa.Table]] = {size: [] for size in self.sizes}
        self.counts = dict.fromkeys(self.sizes, 0)
        self.easy = dict.fromkeys(self.sizes, 0)
        self.rates = dict.fromkeys(self.sizes, 1.0)
        self.keys = set(keys)

    def fill(self, make: Make) -> pa.Table:
        """Make rounds of chunks until every size is full or out of problems; return the rows."""
        while chunks := self.next_round():
            before = dict(self.counts)
            for chunk, part in zip(chunks, make(chunks), strict=True):
                self._accept(chunk.size, part)
            for size, count in Counter(chunk.size for chunk in chunks).items():
                new = self.counts[size] - before[size]
                self.rates[size] = new / (count * self.pattern.draws)
        quotas = self._quotas()
        parts = [
            pa.concat_tables(parts).slice(0, quotas[size])
            for size, parts in self.tables.items()
            if parts
        ]
        return pa.concat_tables([chunk_schema(self.pattern.task).empty_table(), *parts])

    def next_round(self) -> list[Chunk]:
        """Return the chunks that are needed if draws are new as often as in the round before."""
        quotas = self._quotas()
        chunks = []
        for size in self.sizes:
            if not self._is_exhausted(size):
                missing = max(0, quotas[size] - self.counts[size])
                first = len(self.tables[size])
                count = math.ceil(missing / (self.pattern.draws * self.rates[size]))
                chunks += [
                    replace(self.pattern, size=size, seed=f"{self.pattern.seed}/{size}/{number}")
                    for number in range(first, first + count)
                ]
        return chunks

    def _is_exhausted(self, size: int) -> bool:
        return self.rates[size] < self.exhausted_below

    def _quotas(self) -> dict[int, int]:
        """Return size -> samples: even shares; the other sizes get what a size cannot hold."""
        room = {
            size: min(self.limit, self.counts[size]) if self._is_exhausted(size) else self.limit
            for size in self.sizes
        }
        quotas, samples_left = {}, self.num_samples
        for rank, size in enumerate(sorted(self.sizes, key=lambda size: (room[size], size))):
            quotas[size] = min(room[size], samples_left // (len(self.sizes) - rank))
            samples_left -= quotas[size]
        return quotas

    def _accept(self, size: int, part: pa.Table) -> None:
        """Keep the rows whose key is new, and of those that are not hard as many as may be."""
        task, hard, hardness = self.pattern.task, self.pattern.hard, self.pattern.hardness
        num_rows, are_new = self.counts[size], []
        for key, problem in zip(
            *(part[name].to_pylist() for name in ("key", "problem")), strict=True
        ):
            is_new = key not in self.keys
            if is_new and hard and not task.is_hard(task.parse(problem), hardness):
                is_new = self.easy[size] < room_for_easy(hard, num_rows + 1)
                self.easy[size] += is_new
            num_rows += is_new
            are_new.append(is_new)
            self.keys.add(key)
        self.tables[size].append(part.filter(pa.array(are_new, pa.bool_())))
        self.counts[size] = num_rows
