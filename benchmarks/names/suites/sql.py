"""Which query answers a question about tables?"""

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any, ClassVar

from benchmarks.names.questions import FIRST_SLOT, SLOT, Pool, Question, Suite, slot

DATABASES = 5
VALUES = range(1, 10)
"""Each column has each of these numbers once, so that every order by a column is the only one."""
STEPS = 100_000
"""Steps of SQLite's machine for a query, after which it counts as wrong."""
LONGEST = 2000
QUOTED = re.compile(rf"[\"`]({SLOT.pattern})[\"`]")
COMPARISONS = {"is more than": ">", "is less than": "<", "is": "="}
ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)


class Sql(Suite):
    """Two tables of `difficulty` + 1 columns; an answer is right if it gives the same rows.

    Queries run in SQLite on five databases in memory, with numbers in random order. They may read
    these and do nothing else: no function, no other statement, no file.
    """

    name: ClassVar[str] = "sql"
    title: ClassVar[str] = "text to SQL over an unseen schema"
    instructions: ClassVar[str] = (
        "Write a query in SQL for a question about tables. All columns hold numbers. Answer with "
        "the query alone, in one line, as in SELECT x FROM t WHERE y > 3; names of tables and "
        "columns are written as they are, without quotes."
    )
    pools: ClassVar[Mapping[str, Pool]] = {
        "table": Pool.of(
            "city person book ship", "river planet garden train", "row key first last"
        ),
        "column": Pool.of(
            "size age price weight height year speed depth width score level rate",
            "length cost volume power wage mass heat area time force pay rank",
            "count total max min sum number value name column field query average",
        ),
    }
    hardest: ClassVar[int] = 5

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw two tables and a question about one of them; from 2 on rows may be ordered."""
        width = difficulty + 1
        schema = {slot(t): [slot(2 + t * width + i) for i in range(width)] for t in (0, 1)}
        shown = [f"Table {table}: {', '.join(columns)}." for table, columns in schema.items()]
        table, columns = rng.choice(list(schema.items()))
        wanted, tested = rng.sample(columns, 2)
        words, sign = rng.choice(list(COMPARISONS.items()))
        number = rng.randint(3, 7)
        text = f"Give the {wanted} of each {table} whose {tested} {words} {number}"
        query = f"SELECT {wanted} FROM {table} WHERE {tested} {sign} {number}"
        if difficulty > 1 and rng.random() < 0.5:
            order = rng.choice(columns)
            text, query = f"{text}, ordered by {order}", f"{query} ORDER BY {order}"
        rng.shuffle(shown)
        text = "\n".join([*shown, f"Question: {text}."])
        classes = ("table",) * 2 + ("column",) * 2 * width
        return Question(text, query, classes, (tuple(map(tuple, schema.items())), rng.random()))

    def read(self, text: str) -> str | None:
        """Return a query with single spaces; None if it does not begin with SELECT."""
        query = QUOTED.sub(r"\1", " ".join(text.strip(" ;").split()))
        return query if query[:7].upper() == "SELECT " and len(query) <= LONGEST else None

    def is_right(self, question: Question, answer: str) -> bool:
        """Run the query and the target on the same databases, and compare what they give."""
        schema, seed = question.facts
        rng = random.Random(f"{seed}")
        is_ordered = " ORDER BY " in question.target
        for _ in range(DATABASES):
            with closing(_database(schema, rng)) as database:
                try:
                    rows = database.execute(_plain(answer)).fetchall()
                except (sqlite3.Error, sqlite3.Warning):
                    return False
                expected = database.execute(_plain(question.target)).fetchall()
            if Counter(rows) != Counter(expected) or (is_ordered and rows != expected):
                return False
        return True


def _database(schema: Any, rng: random.Random) -> sqlite3.Connection:
    """Make a database of numbers in random order; queries may only read it, and not for long."""
    database = sqlite3.connect(":memory:")
    for table, columns in schema:
        names = ", ".join(_plain(column) for column in columns)
        database.execute(f"CREATE TABLE {_plain(table)} ({names})")
        places = ", ".join("?" * len(columns))
        rows = zip(*(rng.sample(VALUES, len(VALUES)) for _ in columns), strict=True)
        database.executemany(f"INSERT INTO {_plain(table)} VALUES ({places})", rows)
    database.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY
    )
    database.set_progress_handler(lambda: 1, STEPS)
    return database


def _plain(query: str) -> str:
    """Write slots as identifiers."""
    return SLOT.sub(lambda match: f"name_{ord(match[0]) - FIRST_SLOT}", query)
