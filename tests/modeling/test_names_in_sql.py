"""Names of SQL, checked by what they are for: texts are renamed and run."""

import gzip
import json
import re
from collections import Counter
from typing import Any

import pytest
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
EVERYWHERE = [
    "SELECT t.name, (SELECT count(*) FROM orders AS t WHERE t.\"user\" = 1) FROM users AS T;",
    "SELECT a.n FROM (SELECT t.name AS n, id FROM users t) a JOIN orders AS t ON t.\"user\" = a.ID",
    "SELECT users.* FROM users WHERE EXISTS (SELECT 1 FROM orders users WHERE users.id = users.id)",
    "SELECT name FROM users WHERE id IN (SELECT id FROM orders WHERE users.name <> name)",
    "SELECT t.a FROM (SELECT id AS a FROM users) AS t UNION SELECT t.a FROM (SELECT 9 AS a) AS t",
    "WITH big AS (SELECT * FROM users WHERE size > 3), small(x) AS (SELECT id FROM big) "
    "SELECT big.name, small.x FROM big, small WHERE big.id = small.x ORDER BY small.X",
    "WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT n FROM c",
    "SELECT id, SUM(size) OVER w AS s FROM users WINDOW w AS (PARTITION BY day ORDER BY id)",
    "SELECT size, count(*) AS size FROM users GROUP BY size HAVING count(*) > 0 ORDER BY 1",
    "SELECT rowid FROM users",
    "SELECT CAST(name AS TEXT), lower(name), 'name' FROM users WHERE name <> 'users'",
    "UPDATE users SET size = size + 1 WHERE id = (SELECT max(id) FROM users); SELECT * FROM users",
    "DELETE FROM users WHERE NOT EXISTS (SELECT 1 FROM orders AS o WHERE o.\"user\" = users.id); "
    "SELECT * FROM users",
    "INSERT INTO users (id, name) VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET name = "
    "excluded.name || users.name; SELECT name FROM users",
    "CREATE VIEW v(a, b) AS SELECT name, size FROM users; SELECT v.a FROM v WHERE b = 4",
    "CREATE VIEW names AS SELECT name AS n FROM users; SELECT names.n FROM names",
    "CREATE INDEX i ON users (name, size DESC); DROP INDEX i; SELECT name FROM users",
    "ALTER TABLE users ADD x INT; ALTER TABLE users RENAME COLUMN x TO y; SELECT y FROM users",
    "SELECT o.name FROM users AS u LEFT JOIN orders AS o USING (id) ORDER BY u.id",
    "SELECT * FROM users AS a NATURAL JOIN (SELECT id FROM orders) AS b",
    "SELECT CASE WHEN size > 3 THEN name END AS e FROM users ORDER BY e, id",
    "SELECT count(*) FILTER (WHERE size > 3) FROM users",
]  # fmt: skip
SCRIPTS = {
    "sqlite": [
        # triggers
        "CREATE TRIGGER tr AFTER UPDATE OF name, size ON users FOR EACH ROW WHEN new.size > "
        "old.size BEGIN INSERT INTO orders (id, name) VALUES (new.id, old.name); "
        "UPDATE users SET day = CASE WHEN rowid = new.rowid THEN 0 ELSE new.day END; END; "
        "UPDATE users SET size = 9; SELECT * FROM orders, users",
        "CREATE TABLE new (old INT); INSERT INTO new VALUES (3); CREATE TRIGGER tr BEFORE INSERT "
        "ON new BEGIN UPDATE new SET old = new.old; END; INSERT INTO new VALUES (4); "
        "SELECT new.old FROM new",
        # what SQLite has
        "SELECT column1 FROM (VALUES (1), (2))",
        "WITH v AS (VALUES (1, 2)) SELECT column2 FROM v",
        "SELECT _rowid_, oid, users.rowid FROM users ORDER BY rowid",
        "SELECT count(*) FROM sqlite_master",
        "SELECT name, sql FROM sqlite_master",
        "SELECT name FROM pragma_table_info('users')",
        "PRAGMA table_info(users)",
        "PRAGMA foreign_keys = ON; SELECT foreign_keys FROM (SELECT 1 AS foreign_keys)",
        "SELECT key, value, users.name FROM json_each('{\"size\": 3}'), users ORDER BY users.id",
        "SELECT main.users.name, users.name FROM main.users",
        "CREATE TABLE k (a INT PRIMARY KEY, b MYTYPE) WITHOUT ROWID; INSERT INTO k VALUES (1, 2); "
        "SELECT a, b FROM k",
        "CREATE TABLE s (a INT CHECK (a > 0), b TEXT COLLATE nocase, CONSTRAINT c UNIQUE (a, b)) "
        "STRICT; INSERT INTO s VALUES (1, 'A'); SELECT a FROM s WHERE b = 'a'",
        "SAVEPOINT s; RELEASE s; SELECT s.id FROM users AS s",
        "VACUUM; SELECT VACUUM FROM (SELECT 1 AS VACUUM)",
        # words in double quotes that are no columns
        "SELECT name FROM users WHERE name = \"name\" OR name = \"b\"",
        "SELECT \"name\", \"b\" FROM users WHERE name IN (\"users\", \"c\") ORDER BY \"id\"",
        "SELECT \"users\" FROM users; INSERT INTO orders (name) VALUES (\"size\"); "
        "SELECT name FROM orders",
        # ways to quote
        "SELECT id AS 'xy', [name], `size` FROM [users] ORDER BY \"xy\"",
        "SELECT \"max(size)\" FROM (SELECT max(size) FROM users)",
        "INSERT INTO users (id) VALUES (8) RETURNING rowid, id; SELECT id FROM users",
        "REPLACE INTO users (id, name) SELECT id, name FROM orders; SELECT * FROM users",
        "UPDATE users SET name = o.name FROM orders o WHERE o.id = users.id; SELECT * FROM users",
        "CREATE TABLE copy AS SELECT name AS n FROM users; SELECT n FROM copy",
    ],
    "duckdb": [
        "SELECT u.p.x, p.y FROM (SELECT {'x': 1, 'y': 2} AS p, 4 AS x) AS u",
        "CREATE TABLE s (p STRUCT(x INT, y INT)); INSERT INTO s VALUES ({'x': 1, 'y': 2}); "
        "SELECT p.x, s.p.y, p['x'] FROM s",
        "CREATE TABLE s (p STRUCT(x INT, y INT)); INSERT INTO s VALUES (ROW(1, 2)); "
        "SELECT p.x, s.p.y FROM s",
        "SELECT struct_pack(a := size).a FROM users ORDER BY ALL",
        "SELECT struct_extract({'size': 3}, 'size'), size FROM users ORDER BY ALL",
        "SELECT v.a, b FROM (VALUES (1, 2)) AS v(a, b)",
        "SELECT col0 FROM (VALUES (1), (2))",
        "SELECT col1 FROM (VALUES (1, 2)) AS v",
        "SELECT unnest, range FROM unnest([1, 2]), range(2) ORDER BY ALL",
        "SELECT u.x FROM unnest([1, 2]) AS u(x) ORDER BY x",
        "SELECT table_name FROM information_schema.tables WHERE table_name = 'users'",
        "SELECT count(*) FROM duckdb_tables()",
        "SELECT * EXCLUDE (name) FROM users ORDER BY ALL",
        "SELECT * REPLACE (size + 1 AS size) FROM users ORDER BY ALL",
        "SELECT list_transform([1, 2], lambda x: x + size) FROM users ORDER BY ALL",
        "SELECT \"max(size)\" FROM (SELECT max(size) FROM users)",
        "SELECT \"count_star()\" FROM (SELECT count(*) FROM users)",
        "CREATE MACRO twice(a) AS a * 2; SELECT twice(size) FROM users ORDER BY ALL",
        "FROM users SELECT name ORDER BY id",
        "SELECT date_trunc('day', DATE '2020-02-02'), day FROM users ORDER BY ALL",
        "SELECT datediff('day', DATE '2020-02-02', DATE '2020-02-03'), day FROM users ORDER BY ALL",
        "PIVOT users ON day USING sum(size) GROUP BY name ORDER BY ALL",
        "SELECT main.users.name FROM main.users ORDER BY ALL",
        "SELECT memory.main.users.name FROM memory.main.users ORDER BY ALL",
        "CREATE SCHEMA s; CREATE TABLE s.t (a INT); INSERT INTO s.t VALUES (1); "
        "SELECT s.t.a FROM s.t",
        "CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE t (m mood); SELECT m::mood FROM t",
        "CREATE SEQUENCE sq; SELECT nextval('sq'), id FROM users ORDER BY ALL",
        "INSERT INTO users (id, name) VALUES (1, 'c') ON CONFLICT DO NOTHING RETURNING name",
        "SELECT t FROM users AS t ORDER BY ALL LIMIT 0",
        "SELECT u.name AS n, n || 'x' FROM users u WHERE n <> '' ORDER BY ALL",
        "SELECT size FROM users QUALIFY row_number() OVER (PARTITION BY size ORDER BY id) = 1 "
        "ORDER BY ALL",
        "SELECT j.size FROM (SELECT '{\"size\": 7}'::JSON AS j), users ORDER BY ALL",
    ],
}  # fmt: skip
MARKED = {
    None: [
        "SELECT @@version, @x FROM «t» WHERE «b» = %s AND «c» = %(x)s AND «d» = :x AND «e» = ?",
        "SELECT 5 % «s», «a» %«s» FROM «t» LIMIT %s",
        "SELECT «Users».«a» FROM «users» WHERE \"«Users»\".«b» = \"«Users»\".«a»",
        "SELECT DATEDIFF(day, «a», 3), MAX(«month») FROM «t» WHERE «day» = 3",
        "CREATE TABLE «t» («a» INT);\nShow the a of each t.",
        "CREATE TABLE «t» («a» INT);\nHow many of «t» have an «A»? All that x has.",
        "see a; SELECT a FROM «t»",
        "CREATE TABLE t (a INT) WEIRD OPTION 3",
        "SELECT «t».«a» FROM «u» AS «t» WHERE «t».«b» =",
    ],
    "sqlite": [
        "SELECT «a» AS '«x y»', `«b c»` FROM [«t u»] ORDER BY \"«x y»\"",
        "select «a»1.«b» from «t» «a»1 where «a»1.\"«c»\" = \"d\" and [«f»] = 1 order by \"«b»\"",
        "WITH «t» AS (SELECT * FROM «t») SELECT «t».«a» FROM «t»",  # which table is not sure
        "SELECT «t».«a» FROM «x» AS «t», (SELECT 1 AS «t») AS «u»1 WHERE «t» = 1",
        "WITH «a»1 AS (SELECT * FROM «b»), «b» AS (SELECT 1 AS «x») SELECT «a»1.«x» FROM «a»1",
        "SELECT «t»1.«a», (SELECT «t»2.«a» FROM «u» AS «t»2), «T»1.«b» FROM «t» AS «T»1",
        "DROP TRIGGER «tr»; DROP VIEW «v»; ANALYZE «t»; VACUUM; REINDEX; END; SAVEPOINT s",
        "SELECT «a» FROM t; EXPLAIN SELECT b, c FROM t",
    ],
    "duckdb": [
        "SELECT {'f': 1}.f, «s».g, «s»['h'], struct_pack(«k» := 1).«k», h FROM «t»",
        "SELECT * FROM read_csv('x.csv') WHERE a = 1; SELECT «t».«b» FROM «t»",
        "CREATE MACRO twice(a) AS a * 2; SELECT twice(«b») FROM «t»",
        "SELECT «a»: 1, «b»: «x» FROM «t»",
    ],
    "bigquery": [
        "SELECT «t»1.«a» FROM `«x-1».«d».«t»` AS «t»1, `«d».t_*` WHERE _TABLE_SUFFIX = '1'",
        "SELECT `«t».«a»`, «t».«s».f, STRUCT(1 AS «g»).«g» FROM «d».«t»",
        "SELECT «e».key, «e».value.x FROM `«d».«t»` AS «t»1, UNNEST(«t»1.«arr») AS «e»",
        "SELECT * FROM `p.d.INFORMATION_SCHEMA.TABLES` WHERE table_name = 't'",
        "SELECT DATE_TRUNC(«date», MONTH), EXTRACT(YEAR FROM «date») AS «year» FROM «t»",
        "SELECT «Users».«a» FROM «d».«users» WHERE «users».«A» = 1",
    ],
    "postgres": [
        "INSERT INTO «t» («a») VALUES ($1) RETURNING old.«a», new.«a», ctid",
        "SELECT count(«t»), «t».«a» FROM «u» AS «t» FOR UPDATE OF «t»",
        "SELECT max FROM (SELECT max(«a») FROM «t») AS «s»1",
        "SELECT «x»1.a FROM json_to_recordset('[]') AS «x»1(a int)",
        "SELECT «a»1.attname FROM pg_attribute AS «a»1, users AS «u»1",
        "SELECT public.«users».«a», «b»::mood FROM public.«users», «app».«users» «u»1",
        "CREATE FUNCTION f(a int) RETURNS int AS $$ SELECT users.b $$ LANGUAGE sql; "
        "SELECT «c», b FROM users",
        "SELECT nextval('s'), 't'::regclass, «c» FROM t, s",
        "SELECT «b», \"«C»\", «c» FROM «t» WHERE \"d\" = D",
        "SELECT «l»1.«a» FROM «t», LATERAL (SELECT «t».«x» AS «a») AS «l»1",
        "CREATE TRIGGER «tr» AFTER INSERT ON «t» FOR EACH ROW EXECUTE FUNCTION f()",
    ],
    "mysql": [
        "CREATE TRIGGER «tr» BEFORE UPDATE ON «t» FOR EACH ROW INSERT INTO «l» VALUES (NEW.«c»)",
        "INSERT INTO «t» («a») VALUES (DEFAULT) ON DUPLICATE KEY UPDATE «a» = VALUES(«a»)",
        "SELECT `«a»`.`«b c»` FROM `«db»`.`«a»` WHERE «x» = \"a\" LIMIT %s",
        "SELECT a FROM t; DESCRIBE t",
    ],
    "tsql": [
        "UPDATE «t» SET «a» = 1 OUTPUT deleted.«a», inserted.«a» FROM [dbo].[«t»] WHERE «b» = @p",
        "SELECT «a» FROM t; EXEC sp_help 't'",
    ],
    "oracle": ["SELECT LEVEL, ROWNUM, «a» FROM «t» CONNECT BY PRIOR «b» = «c»"],
    "snowflake": ["SELECT «v»:a.b::string, $1 FROM «t»"],
}  # fmt: skip


def marked(text: str, language: str | None) -> str:
    written, end = "", 0
    for start, stop, binding in sql_names(text, language):
        number = binding.rpartition(" ")[2].replace("0", "")
        written, end = f"{written}{text[end:start]}«{text[start:stop]}»{number}", stop
    return written + text[end:]


@pytest.mark.parametrize("language", MARKED)
def test_what_is_a_name(language):
    for text in MARKED[language]:
        assert marked(re.sub(r"«(.*?)»[0-9]*", r"\1", text), language) == text


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
    texts = EVERYWHERE + (SCRIPTS[engine] if language else [])
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
