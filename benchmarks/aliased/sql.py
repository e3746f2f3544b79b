"""Questions for SQL behind a schema, under several namings; answers are run on drawn rows."""

import gzip
import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from aliased.questions import GREEK, Naming, Question, inverse, namings, tables

LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
KINDS = {"number": "number", "boolean": "number"}
DATABASES, FEWEST, MOST = 4, 6, 16
"""Databases for a question, and rows of a table."""


@dataclass(frozen=True)
class Schema:
    """Tables with their columns, all in lower case.

    Attributes:
        columns: table -> column -> (type, what it holds).
        keys: (table, column) -> the one that it refers to.
    """

    columns: Mapping[str, Mapping[str, tuple[str, str]]]
    keys: Mapping[tuple[str, str], tuple[str, str]]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Schema":
        """Return a schema of Spider."""
        names = [name.lower() for name in row["table_names_original"]]
        columns: dict[str, dict[str, tuple[str, str]]] = {name: {} for name in names}
        places = []
        said = zip(
            row["column_names_original"], row["column_names"], row["column_types"], strict=True
        )
        for (table, column), (_, meaning), kind in said:
            place = (names[table], column.lower())
            places.append(place)
            if table >= 0:
                columns[place[0]][place[1]] = (kind, meaning)
        return cls(columns, {places[a]: places[b] for a, b in row["foreign_keys"]})

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of tables, and of columns that are spelled otherwise."""
        columns = dict.fromkeys(name for some in self.columns.values() for name in some)
        return [*self.columns], [name for name in columns if name not in self.columns]

    def written(self, is_described: bool) -> str:
        """Write the statements that make its tables."""
        made = []
        for table, columns in self.columns.items():
            lines = []
            for number, (column, (kind, meaning)) in enumerate(columns.items(), start=1):
                end = "," if number < len(columns) else ""
                comment = f" -- {meaning}" if is_described else ""
                lines.append(f"  {column} {kind}{end}{comment}\n")
            made.append(f"CREATE TABLE {table} (\n{''.join(lines)});\n")
        return "".join(made)

    def draw(self, rng: random.Random, literals: Sequence[str]) -> sqlite3.Connection:
        """Make a database with drawn rows, in which these literals occur."""
        texts = [word for word in literals if not is_number(word)]
        numbers = [
            float(word) if "." in word else int(word) for word in literals if is_number(word)
        ]
        connection = sqlite3.connect(":memory:")
        drawn: dict[tuple[str, str], list[Any]] = {}
        for table, columns in sorted(self.columns.items(), key=lambda item: self._depth(item[0])):
            count = rng.randint(FEWEST, MOST)
            for place in ((table, column) for column in columns):
                source = drawn.get(self.keys.get(place, place))
                first = place[1] == next(iter(columns)) and place not in self.keys
                kind = KINDS.get(columns[place[1]][0], "text")
                some = (
                    [*numbers, *range(1, 9), 50, 2010] if kind == "number" else [*texts, *GREEK[:5]]
                )
                if first:  # a key
                    values = rng.sample(range(1, 30), count) if kind == "number" else None
                    values = values or [f"{rng.choice(some)}" for _ in range(count)]
                else:
                    values = [rng.choice(source or some) for _ in range(count)]
                drawn[place] = values
            kinds = ", ".join(f'"{c}" {KINDS.get(k, "text")}' for c, (k, _) in columns.items())
            connection.execute(f'CREATE TABLE "{table}" ({kinds})')
            rows = zip(*(drawn[table, column] for column in columns), strict=True)
            marks = ", ".join("?" * len(columns))
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
        return connection

    def _depth(self, table: str, left: int = 9) -> int:
        """How far a table is from one that refers to none."""
        others = {to for (of, _), (to, _) in self.keys.items() if of == table and to != table}
        return max((1 + self._depth(other, left - 1) for other in others), default=0) if left else 0


def is_number(word: str) -> bool:
    """Whether a literal is one."""
    return re.fullmatch(r"-?\d+(\.\d+)?", word) is not None


def outside_literals(query: str, write: Callable[[str], str]) -> str:
    """Write what is no literal of a query otherwise."""
    pieces = re.split(f"({LITERAL.pattern})", query)
    return "".join(p if i % 2 else write(p) for i, p in enumerate(pieces))


def in_lower_case(query: str) -> str:
    """Write SQL in lower case, but for its literals."""
    return outside_literals(query, lambda piece: re.sub(r"\s+", " ", piece.lower()))


def in_sql(query: str, table: Mapping[str, str]) -> str:
    """Write other names in SQL; literals stay."""
    return outside_literals(
        query, lambda piece: re.sub(r"\w+", lambda word: table.get(word[0], word[0]), piece)
    )


def rows_of(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]] | None:
    """Run a query; None if it cannot be run, or takes too long."""
    end = time.monotonic() + 2
    connection.set_progress_handler(lambda: int(time.monotonic() > end), 10_000)
    try:
        return connection.execute(query).fetchmany(10_000)
    except (sqlite3.Error, sqlite3.Warning):
        return None


def returns_the_same(query: str, right: str, databases: Sequence[sqlite3.Connection]) -> bool:
    """Whether a query returns what the right one does, in its order if that says one."""
    for connection in databases:
        wanted, found = rows_of(connection, right), rows_of(connection, query)
        if wanted is None or found is None:
            return False
        if " order by " not in right:
            wanted, found = sorted(wanted, key=repr), sorted(found, key=repr)
        if wanted != found:
            return False
    return True


def sql(data: Path, is_described: bool = True, most: int = 25) -> Iterator[Question]:
    """Yield questions for SQL, eight of a database one behind another."""
    folder = data / "spider_dev"
    rows, schemas = (
        json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))
        for name in ("dev", "tables")
    )
    known = {row["db_id"]: Schema.of(row) for row in schemas}
    usable = []
    for number, row in enumerate(rows):
        schema = known[row["db_id"]]
        names = [*schema.names()[0], *schema.names()[1]]
        if len(names) > most or not all(re.fullmatch(r"[a-z_]\w*", name) for name in names):
            continue
        key, right = f"{row['db_id']} {number}", in_lower_case(row["query"].rstrip("; "))
        if (databases := drawn_for(key, right, schema)) is not None:
            usable.append((key, row, right, schema, databases))
    random.Random(0).shuffle(usable)
    usable.sort(key=lambda item: str(item[1]["db_id"]))
    blocks = []
    for _, some in groupby(usable, key=lambda item: item[1]["db_id"]):
        listed = [*some]
        blocks += [listed[i : i + 8] for i in range(0, len(listed) - 7, 8)]
    random.Random(0).shuffle(blocks)
    for key, row, right, schema, databases in (item for block in blocks for item in block):
        judge = partial(returns_the_same, right=right, databases=databases)
        text = f"{schema.written(is_described)}-- {row['question'].strip()}\nSELECT"
        renamings = tables(row["db_id"], *schema.names())
        made, alike = namings({"name": {"rule": "sql"}}, {"prompt": text}, renamings)
        answer = right.removeprefix("select") + ";"
        asked = {
            condition: naming.asked(in_sql(answer, naming.table), sql_back)
            for condition, naming in made.items()
        }
        yield Question(key, asked, judge, alike)


def drawn_for(key: str, right: str, schema: Schema) -> list[sqlite3.Connection] | None:
    """Return databases; None if the right SQL returns the same on each, such as nothing."""
    literals = [word[1:-1].strip("%") for word in LITERAL.findall(right)]
    literals += re.findall(r"(?<![\w.])\d+(?:\.\d+)?\b", LITERAL.sub("", right))
    rng = random.Random(key)
    databases = [schema.draw(rng, literals) for _ in range(DATABASES)]
    returned = [rows_of(connection, right) for connection in databases]
    if any(found is None for found in returned) or len({*map(repr, returned)}) < 2:
        return None
    return databases


def sql_back(answer: str, naming: Naming) -> str:
    """Return a whole query in own names."""
    query = "SELECT" + answer.partition(";")[0].rstrip()
    if naming.request is None:
        return in_sql(query, inverse(naming.table))
    return naming.text_back(query).strip()
