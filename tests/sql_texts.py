"""The rule `sql` and real queries: `python tests/sql_texts.py DATA` prints a table.

DATA has Spider's development set (`spider_dev`) and text2sql-data (`text2sql`). Each query is
renamed at random, alone and behind the statements that make its tables, and run before and after,
in SQLite and in DuckDB, on tables of its schema with drawn rows. What is found under other names
has to be the same names.
"""

import csv
import gzip
import json
import random
import re
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from language_texts import renamed

from hf_alpha.modeling.names_in_sql import sql_names

LITERAL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"")
SECONDS = 20
"""For a query, which is left out if it takes longer."""
KINDS = {"number": "INTEGER", "boolean": "INTEGER"}
Outcome = list[tuple[Any, ...]] | str
Tables = dict[str, list[tuple[str, str]]]
"""Table -> its columns, each with a type."""


class Query(NamedTuple):
    """A query, and the statements that make and fill the tables of its schema."""

    schema: str
    text: str


class Row(NamedTuple):
    """Texts of a kind: how many were run, their names, and which were not equal when renamed.

    Of the places where a query has a name of the schema or an alias, how many were found.
    """

    kind: str
    texts: int
    names: int
    found: int
    reference: int
    failed: tuple[str, ...]


def run_in_sqlite(script: str, query: str = "") -> Outcome:
    """Return the rows of the last statement, or what kind of error there was."""
    with closing(sqlite3.connect(":memory:")) as database:
        end = time.monotonic() + SECONDS
        database.set_progress_handler(lambda: int(time.monotonic() > end), 10_000)
        try:
            database.executescript(script)
            return database.execute(query).fetchall() if query else []
        except (sqlite3.Error, sqlite3.Warning) as error:
            return type(error).__name__


def run_in_duckdb(script: str, query: str = "") -> Outcome:
    """As `run_in_sqlite` does."""
    import duckdb

    with duckdb.connect() as database:
        try:
            database.execute(script)
            return database.execute(query).fetchall() if query else []
        except duckdb.Error as error:
            return type(error).__name__


ENGINES: dict[str, Callable[..., Outcome]] = {"sqlite": run_in_sqlite, "duckdb": run_in_duckdb}


def spider(data: Path) -> Iterator[Query]:
    """Yield the queries of Spider's development set."""
    folder = data / "spider_dev"
    queries, schemas = (read(folder / f"{name}.json.gz") for name in ("dev", "tables"))
    known: dict[str, Tables] = {}
    for row in schemas:
        names = row["table_names_original"]
        tables = known[row["db_id"]] = {name: [] for name in names}
        described = zip(row["column_names_original"], row["column_types"], strict=True)
        for (table, column), kind in described:
            if table >= 0:  # not of all tables
                tables[names[table]].append((column, KINDS.get(kind, "TEXT")))
    for row in queries:
        text = row["query"].rstrip("; ")
        yield Query(drawn(known[row["db_id"]], text, rows=12), text)


def text2sql(data: Path) -> Iterator[Query]:
    """Yield the queries of text2sql-data, with placeholders for texts, and 3 for numbers."""
    for file in sorted((data / "text2sql").glob("*.json.gz")):
        tables = Tables()
        with file.with_name(file.name.replace(".json.gz", "-schema.csv")).open() as lines:
            for row in csv.DictReader(lines, skipinitialspace=True):
                if row["Table Name"] and row["Table Name"] != "-":
                    kind = "INTEGER" if row["Type"].lower().startswith("int") else "TEXT"
                    tables.setdefault(row["Table Name"], []).append((row["Field Name"], kind))
        for question in read(file):
            placeholders = "|".join(v["name"] for v in question["variables"]) or "(?!)"
            for text in question["sql"]:
                text = re.sub(rf"(?<![\"\w%])(?:{placeholders})(?![\"\w%])", "3", text.rstrip("; "))
                yield Query(drawn(tables, text, rows=3), text)


def read(file: Path) -> Any:
    return json.loads(gzip.decompress(file.read_bytes()))


def drawn(tables: Tables, query: str, rows: int) -> str:
    """Return statements that make tables, with rows that a query may find."""
    rng = random.Random(query)
    texts = [word[1:-1].strip("%") for word in LITERAL.findall(query)] + ["beta", "gamma"]
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d{1,6}\b", LITERAL.sub("", query))]
    numbers += range(1, 6)

    def value(kind: str) -> str:
        text = rng.choice(texts).replace("'", "''")
        return f"{rng.choice(numbers)}" if kind == "INTEGER" else f"'{text}'"

    statements = []
    for table, columns in tables.items():
        if not table.startswith("sqlite_"):
            listed = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns)
            values = (", ".join(value(kind) for _, kind in columns) for _ in range(rows))
            statements.append(f"CREATE TABLE {quoted(table)} ({listed});")
            filled = ", ".join(f"({row})" for row in values)
            statements.append(f"INSERT INTO {quoted(table)} VALUES {filled};")
    return "\n".join(statements)


def quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'


def checked(kind: str, engine: str, queries: Sequence[Query], is_alone: bool) -> Row:
    """Rename queries, with their schema or alone, and run them.

    Of a query alone, the schema takes on the names that the query has.
    """
    run, rng, find = ENGINES[engine], random.Random(0), partial(sql_names, language=engine)
    texts = names = found = reference = 0
    failed = []
    for schema, text in queries:
        before = run(schema, text)
        if isinstance(before, str):
            continue
        texts += 1
        if is_alone:
            other, table, _ = renamed(find, text, rng)
            made, end = "", 0
            for start, stop, binding in sql_names(schema, engine):
                made += schema[end:start] + table.get(binding, schema[start:stop])
                end = stop
            made += schema[end:]
        else:
            whole, table, _ = renamed(find, f"{schema}\n{text}", rng)
            made, _, other = whole.rpartition("\n")
        names += len(table)
        wanted = {*places_of_names(schema, text)}
        reference += len(wanted)
        found += len(wanted & {start for start, *_ in sql_names(text, engine)})
        after = run(made, other)
        if isinstance(after, str) or Counter(map(repr, after)) != Counter(map(repr, before)):
            failed.append(f"{text}\n    {other}\n    {str(before)[:200]}\n    {str(after)[:200]}")
    return Row(kind, texts, names, found, reference, tuple(failed))


def places_of_names(schema: str, query: str) -> Iterator[int]:
    """Yield where a query has a name of its schema, or an alias, and no string."""
    names = re.findall(
        r'^CREATE TABLE ("[^"]+"|\w+)|[(,] ?("[^"]+"|\w+) (?:INTEGER|TEXT)', schema, re.M
    )
    known = {name.strip('"').lower() for pair in names for name in pair}
    known |= {name.lower() for name in re.findall(r"\bAS\s+(\w+)", query, re.IGNORECASE)}
    strings = {place for match in LITERAL.finditer(query) for place in range(*match.span())}
    for match in re.finditer(r"\w+", query):
        is_call = query[match.end() :].lstrip().startswith("(")
        if match[0].lower() in known and match.start() not in strings and not is_call:
            yield match.start()


def main() -> None:
    data = Path(sys.argv[1])
    queries = {"Spider": [*spider(data)], "text2sql-data": [*text2sql(data)]}
    rows = [
        checked(f"{name}{how}, {engine}", engine, queries[name], is_alone)
        for name, engine in (
            ("Spider", "sqlite"),
            ("Spider", "duckdb"),
            ("text2sql-data", "sqlite"),
        )
        for how, is_alone in ((" behind its schema", False), ("", True))
    ]
    print("| texts | run | equal when renamed | names | of their places |")
    print("|---|---|---|---|---|")
    for kind, texts, names, found, reference, failed in rows:
        equal = texts - len(failed)
        print(f"| {kind} | {texts:,} | {equal:,} | {names:,} | {found / reference:.1%} |")
    for row in rows:
        print(*row.failed, sep="\n", end="\n" * bool(row.failed), file=sys.stderr)


if __name__ == "__main__":
    main()
