"""How many rows of each size a dataset takes, and which chunks it needs for them."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from .chunk import Chunk, Make, chunk_schema, rarity, room_for_easy

_MAX_DRAWS = 4096
_MIN_DRAWS = 64
_EXHAUSTED_BELOW = 0.02
"""A size of which a round's draws were new less often than this has run out of problems."""


class Sample:
    """Rows of several sizes, without duplicates, gathered in rounds of chunks.

    Which chunks a round has depends on nothing but the chunks before it.

    Args:
        pattern: a chunk that all chunks are like, except for size, draws and the end of the seed.
        num_samples: rows.
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
        self.sizes = range(sizes[0], sizes[1] + 1)
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


__all__ = ["Sample"]
