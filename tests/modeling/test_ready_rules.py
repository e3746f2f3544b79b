"""Every ready-made rule on real texts: renamed, they mean the same, by running or parsing them."""

import contextlib
import graphlib
import heapq
import io
import json
import re
import sqlite3
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pygments.lexers import get_lexer_by_name

from hf_alpha.modeling.ready_rules import READY_RULES
from hf_alpha.testing import FRESH, check_rule

TESTS = Path(__file__).parents[1]
REACTIONS = [
    line.split(" ")[0]
    for line in (TESTS / "data_files/uspto_mit/test.txt").read_text().splitlines()
]


def program(module: Any, call: str) -> str:
    """A file of the standard library that prints what it makes of something."""
    return f"{Path(module.__file__).read_text()}\nprint({call})\n"


PROGRAMS = [
    program(textwrap, "wrap('to be or not to be that is', 9), dedent('  a\\n   b')"),
    program(heapq, "nsmallest(3, [5, 2, 8, 1]), [*merge([1, 4], [2, 3])]"),
    program(graphlib, "[*TopologicalSorter({1: [2, 3], 2: [3], 4: []}).static_order()]"),
]
SQL = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, boss INTEGER REFERENCES people(id));
CREATE TABLE orders (id INTEGER, buyer INTEGER, total REAL);
CREATE INDEX by_buyer ON orders(buyer);
INSERT INTO people (id, name, boss) VALUES (1, 'Ann', NULL), (2, 'name', 1), (3, 'Cy', 1);
INSERT INTO orders VALUES (10, 1, 2.5), (11, 2, 7), (12, 2, 1), (13, 3, 4);
WITH spent(who, amount) AS (SELECT buyer, sum(total) FROM orders GROUP BY buyer)
SELECT p.name, s.amount, b.name AS above FROM people AS p JOIN spent AS s ON s.who = p.id
LEFT JOIN people AS b ON b.id = p.boss WHERE amount > 2 ORDER BY s.amount DESC, above;
"""
LISTS = "/* of the heap */ static int up(struct heap *h, int i) { return h->size > i ? i / 2 : 0; }"


def printed(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "", "exec", dont_inherit=True), {"__name__": "run"})
    return out.getvalue()


def rows(script: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        *first, query = filter(str.strip, script.split(";"))
        database.executescript(";".join(first))
        return database.execute(query).fetchall()


def content(text: str) -> Any:
    """JSON without what its keys are called, there and in its strings."""
    keys = {*re.findall(r'"([^"\\]*)"\s*:', text)}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return [plain(inner) for inner in value.values()]
        if isinstance(value, list):
            return [*map(plain, value)]
        return "" if value in keys else value

    return plain(json.loads(text))


def tokens(text: str) -> list[Any]:
    """Kinds of a language's tokens, and those that are no names."""
    found = get_lexer_by_name("c").get_tokens(text)
    return [(kind, "" if "Name" in str(kind) else token) for kind, token in found]


def molecules(text: str) -> list[str]:
    chem = pytest.importorskip("rdkit.Chem")

    def unmapped(side: str) -> str:
        molecule = chem.MolFromSmiles(side)
        for atom in molecule.GetAtoms():
            atom.SetAtomMapNum(0)
        return chem.MolToSmiles(molecule)

    return [unmapped(side) for side in text.split(">>")]


class Case(NamedTuple):
    rule: dict[str, Any]
    texts: Sequence[str]
    meaning: Callable[[str], Any]
    """What a text means: the same if it is renamed."""
    least: int
    """Names that there are, or more."""
    names: Sequence[str] = FRESH


SETTINGS = (TESTS / "golden" / "reports.json").read_text()
CASES = [
    Case({"rule": "python"}, PROGRAMS, printed, 150),
    Case({"rule": "python", "attributes": True}, PROGRAMS[2:], printed, 50),
    Case({"rule": "sql"}, [SQL], rows, 14),
    Case({"rule": "json"}, [SETTINGS], content, 10),
    Case({"rule": "json", "scopes": True}, [SETTINGS], content, 20),
    Case({"rule": "identifier"}, [SQL, LISTS], re.compile(r"\W+").findall, 50),
    Case({"rule": "identifier", "language": "c"}, [LISTS], tokens, 5),
    Case(
        {"rule": "number"}, [SQL], re.compile("[^0-9.]+").findall, 10,
        [f"{n}.25" for n in range(100, 400)],
    ),
    Case({"rule": "smiles"}, REACTIONS, molecules, 80, [f"%{n}" for n in range(50, 99)]),
    Case({"rule": "atom_maps"}, REACTIONS, molecules, 450, [*map(str, range(1000, 1200))]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, case.rule.values())))
def test_real_texts_mean_the_same_under_other_names(case: Case) -> None:
    """And nothing is captured, what was renamed has the same ids, and time is linear."""
    meanings = {text: case.meaning(text) for text in case.texts}

    def same(text: str, other: str) -> bool:
        return case.meaning(other) == meanings[text]

    found = check_rule(case.rule, case.texts, same, case.names, rounds=1)
    assert found.names >= case.least


def test_every_rule_is_checked() -> None:
    """Those of languages with programs, which compilers run; no text alone has tools."""
    checked = {case.rule["rule"] for case in CASES}
    assert checked == READY_RULES.keys() - {"tools"}
