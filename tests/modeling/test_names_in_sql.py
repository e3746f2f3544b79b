"""Names of SQL, checked by what they are for: texts are renamed and run."""

import gzip
import json
import re
from collections import Counter
from typing import Any

import pytest
from case_files import cases_of
from sql_texts import ENGINES, checked, spider

from hf_alpha import CanonicalNames
from hf_alpha.alias.certificate import certify
from hf_alpha.modeling.names_in_sql import sql_names
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.testing import check_rule

TABLES = """CREATE TABLE Users (id INTEGER PRIMARY KEY, name TEXT, size INT, day INT);
CREATE TABLE orders (id INT, "user" INT, name TEXT);
INSERT INTO users (id, name, size, day) VALUES (1, 'name', 3, 5), (2, 'b', 4, 6);
INSERT INTO users VALUES (3, 'users', 4, 7);
INSERT INTO Orders VALUES (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'size');
"""
SCRIPTS = cases_of("sql_scripts.txt")
MARKED = cases_of("marked_sql.txt")


def marked(text: str, language: str | None) -> str:
    written, end = "", 0
    for start, stop, binding in sql_names(text, language):
        number = binding.rpartition(" ")[2].replace("0", "")
        written, end = f"{written}{text[end:start]}«{text[start:stop]}»{number}", stop
    return written + text[end:]


@pytest.mark.parametrize("language", MARKED)
def test_what_is_a_name(language):
    dialect = None if language == "any" else language
    for text in MARKED[language]:
        assert marked(re.sub(r"«(.*?)»[0-9]*", r"\1", text), dialect) == text


def parts(text: str) -> tuple[str, str]:
    """Return a script and its last statement, a query."""
    script, _, query = text.rpartition(";")
    return script, query


def same(language: str):
    """Return whether two scripts do the same."""
    run = ENGINES[language]

    def is_same(text: str, other: str) -> bool:
        before, after = (run(*parts(each)) for each in (text, other))
        assert not isinstance(before, str), f"{before}: {text}"
        return not isinstance(after, str) and Counter(map(repr, before)) == Counter(
            map(repr, after)
        )

    return is_same


def test_scripts_do_the_same_under_other_names():
    texts = [TABLES + text for text in SCRIPTS["sqlite"]]
    found = check_rule({"rule": "sql", "language": "sqlite"}, texts, same("sqlite"), rounds=1)
    assert found.renamed == found.texts - 4 and found.names > 120


@pytest.mark.slow
@pytest.mark.parametrize("language, engine", [(None, "sqlite"), ("sqlite",) * 2, ("duckdb",) * 2])
def test_scripts_of_every_database_do_the_same_under_other_names(language, engine):
    pytest.importorskip(engine.replace("sqlite", "sqlite3"))
    rule = {"rule": "sql"} | ({} if language is None else {"language": language})
    texts = SCRIPTS["everywhere"] + (SCRIPTS[engine] if language else [])
    found = check_rule(rule, [TABLES + text for text in texts], same(engine))
    assert found.names > 180


def test_queries_as_spider_has_them_do_the_same(tmp_path):
    """The script that `docs/results-rules.md` has its table from."""
    schema = {
        "db_id": "shop",
        "table_names_original": ["Customer", "order_items", "sqlite_sequence"],
        "column_names_original": [
            [-1, "*"], [0, "ID"], [0, "Name"], [1, "customer id"], [1, "Price_(EUR)"], [2, "seq"]
        ],
        "column_types": ["text", "number", "text", "number", "number", "number"],
    }  # fmt: skip
    queries = [
        'SELECT t1.name FROM customer AS T1 JOIN order_items AS t2 ON T1.id = T2."customer id"',
        'SELECT max("Price_(EUR)") FROM order_items WHERE 3 > 2;',
        "SELECT name FROM customer WHERE name = 'beta' OR id IN (SELECT id FROM customer)",
    ]
    folder = tmp_path / "spider_dev"
    folder.mkdir()
    rows = [{"db_id": "shop", "query": query} for query in queries]
    for name, data in (("dev", rows), ("tables", [schema])):
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(data).encode()))
    for is_alone in (False, True):
        row = checked("", "sqlite", [*spider(tmp_path)], is_alone)
        assert (row.texts, row.failed) == (3, ())
        assert row.found == row.reference == 16


def test_names_of_an_answer_are_those_of_its_problem():
    """By scope and in any case, in what cannot be parsed too; they come back as they were."""
    spelled = CanonicalNames({"name": {"rule": "sql", "language": "duckdb"}}).spell(
        "CREATE TABLE Singer (Name TEXT, at STRUCT(city TEXT)); "
        "SELECT T.name FROM singer AS t WHERE EXISTS (SELECT t.at FROM SINGER AS t)"
    )
    assert spelled.text == (
        "CREATE TABLE b (c TEXT, e STRUCT(f TEXT)); "
        "SELECT g.c FROM b AS g WHERE EXISTS (SELECT h.e FROM b AS h)"
    )
    for answer, back in [
        ("SELECT c FROM b", "SELECT Name FROM Singer"),
        ("SELECT x.e.f FROM b AS x", "SELECT x.at.city FROM Singer AS x"),
        ("SELECT g.c FROM b g, (SELECT h.c FROM b h) x",
         "SELECT T.Name FROM Singer T, (SELECT t.Name FROM Singer t) x"),
        ("SELECT rowid FROM B WHERE C = b.c", "SELECT rowid FROM Singer WHERE Name = Singer.Name"),
        ("c FROM b WHERE f >", "Name FROM Singer WHERE city >"),
        ("SELECT name FROM b", "SELECT j FROM Singer"),  # a name of its own
    ]:  # fmt: skip
        assert spelled.back(answer) == back
    request = {"prompt": "SELECT T1.a FROM x AS t1 WHERE t1.b IN (SELECT t1.B FROM y AS T1)"}
    made = certify([request], CanonicalNames({"name": {"rule": "sql"}}))
    assert made.holds and made.names == 5 and len(made.renamings) > 4


def test_case_is_as_the_dialect_has_it():
    text = 'SELECT Users.a, "Users".A FROM users, "Users"'

    def names(**rule: Any) -> list[str]:
        found = NameFinder({"name": {"rule": "sql", **rule}}).find(text)
        return [span.binding.removesuffix(" 0") for span in found]

    assert names() == names(language="postgres") == ["users", "a", "Users", "a", "users", "Users"]
    assert names(language="sqlite") == ["users", "a", "users", "a", "users", "users"]
    assert names(ignore_case=False) == ["Users", "a", "Users", "A", "users", "Users"]
    in_mysql = "SELECT Users.a FROM users"
    assert [binding for *_, binding in sql_names(in_mysql, "mysql")] == [
        "Users 0",
        "a 0",
        "users 0",
    ]
    insensitive = "mysql, normalization_strategy=case_insensitive"
    assert [b for *_, b in sql_names(in_mysql, insensitive)] == ["users 0", "a 0", "users 0"]
    for rule in ({"rule": "python", "ignore_case": False}, {"rule": "sql", "ignore_case": "no"}):
        with pytest.raises(ValueError, match="'ignore_case' is"):
            NameFinder({"name": rule})
    rule = {"rule": "sql", "ignore_case": False}
    assert NameFinder({"name": rule}).to_dict() == {"name": rule}
