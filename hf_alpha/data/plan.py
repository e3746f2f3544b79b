"""The plan of a dataset: which chunks it needs, and how many rows of each size it takes."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from .chunk import Chunk, chunk_schema, rarity, room_for_easy
from .settings import SampleSettings
from .workers import Executor

_MAX_DRAWS = 4096
_MIN_DRAWS = 64
_EXHAUSTED_BELOW = 0.02
"""A size of which a round's draws were new less often than this has run out of problems."""


class SamplingPlan:
    """Decide which chunks are needed, from nothing but the chunks before them.

    A shard has only every n-th chunk of a round, and takes it that the others are like its own of
    the same size, or of the nearest size of which it has any.

    Args:
        settings: of the dataset.
        shard: which chunks to make; None for all.
        few: draw problems of at most one symbol for the training split.
        keys: of the problems that there are already.
    """

    def __init__(
        self,
        settings: SampleSettings,
        shard: tuple[int, int] | None = None,
        few: bool = False,
        keys: Iterable[bytes] = (),
    ):
        smallest, largest = settings.sizes
        self.settings, self.shard, self.few = settings, shard, few
        self.sizes = range(smallest, largest + 1)
        even = math.ceil(settings.num_samples / len(self.sizes))
        share = 1 / len(self.sizes) + settings.alpha
        self.limit = max(even, int(settings.num_samples * share))
        self.hard = 0.0 if few else settings.hard
        rare = rarity(self.hard, settings.hardness)
        self.draws = min(_MAX_DRAWS, max(_MIN_DRAWS, even) * rare)
        self.exhausted_below = _EXHAUSTED_BELOW / rare
        self.tables: dict[int, list[pa.Table]] = {size: [] for size in self.sizes}
        self.counts = dict.fromkeys(self.sizes, 0)
        self.easy = dict.fromkeys(self.sizes, 0)
        self.chunks = dict.fromkeys(self.sizes, 0)
        self.rates = dict.fromkeys(self.sizes, 1.0)
        self.keys = set(keys)

    def of_few_symbols(self) -> "SamplingPlan":
        """Return the plan for the rows that `few_symbols` asks for."""
        settings = replace(
            self.settings,
            sizes=(1, self.sizes[-1]),
            num_samples=self.settings.few_symbols,
            alpha=1.0,
        )
        return SamplingPlan(settings, self.shard, few=True, keys=self.table()["key"].to_pylist())

    def fill(self, execute: Executor, report: Callable[[int], object]) -> None:
        """Run rounds of chunks until every size is full or has run out of problems."""
        while chunks := self._next_round():
            before = dict(self.counts)
            own_chunks = [chunk for chunk in chunks if self._is_own(chunk)]
            for chunk, part in zip(own_chunks, execute(own_chunks), strict=True):
                self._accept(chunk.size, part)
                report(self.total)
            own_counts = Counter(chunk.size for chunk in own_chunks)
            for size, count in own_counts.items():
                self.rates[size] = (self.counts[size] - before[size]) / (count * self.draws)
            if self.shard is not None:
                self._guess(Counter(chunk.size for chunk in chunks), own_counts)
                report(self.total)

    @property
    def total(self) -> int:
        """The number of rows that the dataset would have now."""
        quotas = self._quotas()
        return sum(min(self.counts[size], quotas[size]) for size in self.sizes)

    def table(self) -> pa.Table:
        """Return the rows, each size cut to its quota."""
        quotas = self._quotas()
        tables = [chunk_schema(self.settings.task).empty_table()]
        for size, parts in self.tables.items():
            if parts:
                tables.append(pa.concat_tables(parts).slice(0, quotas[size]))
        return pa.concat_tables(tables)

    def _is_own(self, chunk: Chunk) -> bool:
        if self.shard is None:
            return True
        number, count = self.shard
        return (chunk.size + chunk.number) % count == number - 1

    def _guess(self, planned: Mapping[int, int], own_counts: Mapping[int, int]) -> None:
        """Count what other shards are to find in a round; `own_counts` chunks are a part of it.

        Without any the rates stay as they are.
        """
        for size, count in planned.items():
            if own_counts and size not in own_counts:
                nearest_size = min(own_counts, key=lambda own_size: abs(own_size - size))
                self.rates[size] = self.rates[nearest_size]
            if not self._exhausted(size):
                elsewhere = count - own_counts.get(size, 0)
                self.counts[size] += round(elsewhere * self.draws * self.rates[size])

    def _exhausted(self, size: int) -> bool:
        return self.rates[size] < self.exhausted_below

    def _quotas(self) -> dict[int, int]:
        """Return size -> samples: even shares; the other sizes get what a size cannot hold."""
        room = {
            size: min(self.limit, self.counts[size]) if self._exhausted(size) else self.limit
            for size in self.sizes
        }
        quotas, samples_left = {}, self.settings.num_samples
        for rank, size in enumerate(sorted(self.sizes, key=lambda size: (room[size], size))):
            quotas[size] = min(room[size], samples_left // (len(self.sizes) - rank))
            samples_left -= quotas[size]
        return quotas

    def _next_round(self) -> list[Chunk]:
        quotas = self._quotas()
        chunks = []
        for size in self.sizes:
            if not self._exhausted(size):
                missing = max(0, quotas[size] - self.counts[size])
                count = math.ceil(missing / (self.draws * self.rates[size]))
                chunks += [self._chunk(size) for _ in range(count)]
        return chunks

    def _chunk(self, size: int) -> Chunk:
        number = self.chunks[size]
        self.chunks[size] += 1
        settings = self.settings
        return Chunk(
            name=f"{'few' if self.few else 'size'}-{size:05d}-{number:06d}",
            task=settings.task,
            targets=settings.targets,
            seed=f"{'few' if self.few else 'samples'}/{settings.seed}/{size}/{number}",
            size=size,
            num_symbols=settings.num_symbols,
            constant_priority=settings.constant_priority,
            draws=self.draws,
            number=number,
            single=self.few,
            split="train" if self.few else None,
            hard=self.hard,
            hardness=settings.hardness,
            walk=settings.walk,
            equivalence=settings.counted_as_one,
        )

    def _accept(self, size: int, part: pa.Table) -> None:
        """Keep the rows whose key is new, and of those that are not hard as many as may be."""
        task, hardness = self.settings.task, self.settings.hardness
        num_rows, are_new = self.counts[size], []
        for key, problem in zip(
            *(part[name].to_pylist() for name in ("key", "problem")), strict=True
        ):
            is_new = key not in self.keys
            if is_new and self.hard and not task.is_hard(task.parse(problem), hardness):
                is_new = self.easy[size] < room_for_easy(self.hard, num_rows + 1)
                self.easy[size] += is_new
            num_rows += is_new
            are_new.append(is_new)
            self.keys.add(key)
        self.tables[size].append(part.filter(pa.array(are_new, pa.bool_())))
        self.counts[size] = num_rows


__all__ = ["SamplingPlan"]
