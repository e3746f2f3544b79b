"""A chunk: a number of problems of one size, drawn from a seed of its own into a parquet file."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hf_alpha.folders import replacing
from hf_alpha.tasks import DrawnTask, Task

from .keys import KEY_BYTES, key_in, read_keys, split_of

_PATIENCE = 20
"""A grid cell is given up after so many draws in a row, times the rows wanted, without a row."""
_HARD_ARE_RARE = 10
"""Among the problems that are drawn, so many times rarer are those kept where hard ones are asked
for, for each unit of hardness: limits on draws are as much wider."""


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
        max_rows: stop when so many different problems are found; 0 for no such limit.
        hard: least share of hard problems. Where there is a limit, the others get no more of it
            than is left; where there is none, they are kept at the rate of the hard ones.
        hardness: what counts as hard, see `DrawnTask.is_hard`.
        walk: so many more draws start from each hard problem that was drawn: each varies one part
            of the last hard one (`DrawnTask.vary`).
        equivalence: what may differ between problems that count as one; "" for their texts.
        excluded: file with the keys of problems that are not wanted, named by its content; "" for
            none.
    """

    name: str
    task: DrawnTask
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
    max_rows: int = 0
    hard: float = 0.0
    hardness: int = 1
    walk: int = 0
    equivalence: str = ""
    excluded: str = ""


def schema_of(task: Task) -> pa.Schema:
    """Return the columns of a dataset; `facts` may be missing in a row, the others not."""
    text, number = pa.string(), pa.int32()
    columns = {"problem": text, "answer": text, "num_symbols": number, "size": number}
    return pa.schema({**columns, **dict.fromkeys(task.facts, number)})


def chunk_schema(task: Task) -> pa.Schema:
    """Return the columns of a chunk: those of a dataset, and the problem's key."""
    return schema_of(task).append(pa.field("key", pa.binary(KEY_BYTES)))


def run_chunk(chunk: Chunk, folder: str) -> str:
    """Do one chunk and write its file under `folder`, atomically; return the file's path."""
    path = Path(folder, f"{chunk.name}.parquet")
    if not path.exists():
        rows = list(_rows(chunk))
        write_table(pa.Table.from_pylist(rows, schema=chunk_schema(chunk.task)), path)
    return str(path)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a parquet file in one step."""
    with replacing(path) as temporary:
        pq.write_table(table, temporary)


def room_for_easy(hard: float, total: int) -> int:
    """Say how many of `total` problems need not be hard."""
    return total - math.ceil(round(hard * total, 6))  # rounded: 0.07 * 100 is a little more than 7


def rarity(hard: float, hardness: int) -> int:
    """Say how many times more draws a limit allows where this share has to be hard."""
    return _HARD_ARE_RARE**hardness if hard else 1


def _rows(chunk: Chunk) -> Iterator[dict[str, Any]]:
    """Draw a chunk's problems; columns are those of `chunk_schema`."""
    task = chunk.task
    num_symbols = 1 if chunk.single else chunk.num_symbols
    if not task.is_feasible(chunk.size, num_symbols, chunk.exactly, chunk.constant_priority):
        return
    draws = _Draws(chunk)
    keys = set(read_keys(chunk.excluded))
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


__all__ = [
    "Chunk",
    "chunk_schema",
    "rarity",
    "room_for_easy",
    "run_chunk",
    "schema_of",
    "write_table",
]
