"""Ready-made rules: what the page of them says that they take and leave, and where they work."""

import json
import re
import sys
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_tokenizers import byte_level
from transformers import AutoTokenizer

from hf_alpha import TextTokenizer
from hf_alpha.io.yaml_files import parse_yaml
from hf_alpha.modeling.name_rules import ready_rules
from hf_alpha.modeling.names_in_code import json_names, json_paths
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import keys_in, known_names

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```text\n(\{rule: .*?\})\n(.*?)\n?^```$", PAGE, re.DOTALL | re.MULTILINE)
DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def marked(text: str, rule: dict) -> str:
    """Mark names as the page does, the second binding of a spelling by ₂."""
    written, end = "", 0
    bindings: dict[str, list[str]] = {}
    for start, stop, _, binding in NameFinder({"name": rule}).find(text):
        name = text[start:stop]
        alike = bindings.setdefault(name, [])
        alike += [] if binding in alike else [binding]
        number = alike.index(binding) + 1
        sign = str(number).translate(DIGITS) if number > 1 else ""
        written, end = f"{written}{text[end:start]}«{name}»{sign}", stop
    return written + text[end:]


@pytest.mark.parametrize("rule, example", EXAMPLES)
def test_a_rule_takes_and_leaves_what_its_page_says(rule, example) -> None:
    plain = re.sub(r"«(.*?)»[₀-₉]*", r"\1", example)
    assert marked(plain, parse_yaml(rule, "rules.md")) == example


def test_every_rule_has_an_example() -> None:
    rules = {parse_yaml(rule, "")["rule"] for rule, _ in EXAMPLES}
    assert rules == ready_rules().keys() - {"tools"}  # no text alone has tools


PARTS = [
    *"xyß1 \n\t\"'`#{}[]()=:.,;\\", "def f", "f'", "lambda ", "for ", " in ", "as ", '"""',
    "class ", "    ", "import ", "SELECT ", " FROM ", '"a"', "😀", "\r\n", "e\u0301", "1.5",
]  # fmt: skip
CODE = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)
OTHER_FORMS = [
    {"rule": "identifier", "language": "c"},
    {"rule": "sql", "language": "mysql"},
    {"rule": "json", "scopes": True},
]


@example('" "', {"rule": "sql"})
@example('{" ": 1}', {"rule": "json"})
@given(CODE, st.sampled_from([*({"rule": rule} for rule in ready_rules()), *OTHER_FORMS]))
def test_every_text_has_names_in_order_and_apart(text: str, rule: dict) -> None:
    finder, end = NameFinder({"name": rule}), 0
    spans = finder.find(text)
    for start, stop, *_ in spans:
        assert end <= start < stop <= len(text) and text[start:stop].strip()
        end = stop
    known = {text[span.start : span.stop]: "name" for span in spans}
    for span in finder.find(text, known):
        assert text[span.start : span.stop].strip()


SQL, TSQL = {"rule": "sql"}, {"rule": "sql", "language": "tsql"}


@pytest.mark.parametrize(
    "rule, text, names",
    [
        (SQL, "SELECT a FROM t; SELECT f(b) FROM u", "a t b u"),
        (TSQL, "SELECT [a] FROM [t]", "a t"),
        # No whole statements: the tokens of what begins with one
        (SQL, "INSERT INTO t(a, b) VALUES (f(", "t a b"),
        (SQL, "CREATE TABLE t(a INT, (", "t a"),
        (SQL, "WITH c AS (SELECT f(a) FROM (", "c a"),
        (SQL, 'UPDATE "t" SET größe = f((', "t größe"),
        (SQL, "DELETE FROM t WHERE f(a) = (", "t a"),
        (SQL, "see a; SELECT a FROM (", ""),
        (TSQL, "SELECT [a], $1 FROM (", "a"),
        ({"rule": "identifier", "language": "javascript"}, "let x = Array(y) // z", "x y"),
        ({"rule": "number"}, "1.2.3 1 v1 .5 1.x", "1 .5"),
        ({"rule": "json"}, '{"a": "b", " ": "a"}', "a a"),
    ],
)
def test_edges(rule: dict, text: str, names: str) -> None:
    found = NameFinder({"name": rule}).find(text)
    assert [text[span.start : span.stop] for span in found] == names.split()


def test_names_of_a_problem_in_its_answer() -> None:
    def found(rule: dict, problem: str, answer: str) -> list[str]:
        finder = NameFinder({"name": rule})
        known = {problem[s.start : s.stop]: "name" for s in finder.find(problem)}
        return [answer[s.start : s.stop] for s in finder.find(answer, known)]

    python = {"rule": "python"}
    program = "def f(größe):\n    return größe.size"
    assert found(python, program, "f(größe).f + print(size, größe=1)") == ["f", "größe"]
    assert found(python, program, "return größe + f(") == ["größe", "f"]
    assert found(python, program, "def g():\n    global größe\n    size") == ["g", "größe"]
    assert found(python, program, "g = lambda y: y(größe)") == ["g", "y", "y", "größe"]
    table = "CREATE TABLE t (a INT, b INT)"
    assert found({"rule": "sql"}, table, "SELECT a FROM t AS c WHERE b = 'a'") == [*"atcb"]
    assert found({"rule": "sql"}, table, "WHERE b = 'a' AND t(") == ["b"]
    months = "SELECT month FROM t"
    assert found({"rule": "sql"}, months, "SELECT EXTRACT(month FROM t.month)") == ["t", "month"]
    assert found({"rule": "json"}, '{"city": 1}', "f(city='city', y=1)") == ["city", "city"]
    for prose in ('a 5" one: {"size": 5}', 'he said "hi: {"size": 5}', '5" {"size": 5} 6" 7"'):
        assert found({"rule": "json"}, prose, prose) == ["size"]
    chinese = '{"size": 5}里的"size"是'
    assert found({"rule": "json"}, chinese, chinese) == ["size", "size"]
    path = "SELECT orders.id FROM `shop.orders`"
    bigquery = {"rule": "sql", "language": "bigquery"}
    assert found(bigquery, path, path) == ["orders", "id", "shop", "orders"]


JSON = st.recursive(
    st.sampled_from([None, 1, "a", "id", "a id", "]}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "id", "a b", "{["]), inner, max_size=3)
    ),
)


@given(JSON, st.booleans())
def test_keys_by_path_are_those_of_a_parser(content: Any, indented: bool) -> None:
    """But keys that a string is spelled like, which may mean any of them."""
    found: list[tuple[str, str | None]] = []
    strings = set[str]()

    def walk(value: Any, path: str) -> None:
        if isinstance(value, str):
            strings.add(value)
        for key, inner in value.items() if isinstance(value, dict) else ():
            found.append((key, f"{path}/{key}"))
            walk(inner, f"{path}/{key}")
        for inner in value if isinstance(value, list) else ():
            walk(inner, path)

    walk(content, "")
    text = json.dumps(content, indent=1 if indented else None)
    names = json_paths(text)
    keys = [(text[i:j], binding) for i, j, binding in names if text[j + 1] == ":"]
    assert [key for key, _ in keys] == [key for key, _ in found]
    paths = {key: path for (_, path), key in zip(found, keys, strict=True) if key[0] not in strings}
    assert len({*paths.values()}) == len({key for key in found if key[0] not in strings})
    assert all(paths.get(key, path) == path for (_, path), key in zip(found, keys, strict=True))
    assert all(len({key for key in keys if key[0] == name}) < 2 for name in strings)


def test_keys_by_path_in_texts_and_answers() -> None:
    finder = NameFinder({"key": {"rule": "json", "scopes": True}})

    def alike(problem: str, answer: str) -> list[int]:
        """Which name of the problem each name of the answer is, by rank."""
        known = known_names(problem, finder.find(problem))
        spans = finder.find(answer, {name: kind for name, kind in known.values()})
        return [[*known].index(key) for key in keys_in(answer, spans, known)]

    two = 'Use {"a": {"id": 1}, "b": {"id": 2}}.'
    assert alike(two, '{"b": {"id": 5}}') == [2, 3]
    assert alike(two, '[{"a": [{"id": 5}]}, {"b": {"id":') == [0, 1, 2, 3]  # not written to its end
    assert alike(two, '{"id": 5}') == alike(two, "its id") == [1]  # elsewhere: the first one
    assert alike(two, 'of b: {"b": {"id": 5}}') == [2, 2, 3]
    cut = '"a": {"id": 1}}, {"id": 2}]'
    assert alike(cut, '{"a": {"id": 3}}') == [0, 1] and len(known_names(cut, finder.find(cut))) == 2
    with pytest.raises(ValueError, match="'scopes' is for the rule json: leave it out"):
        NameFinder({"name": {"rule": "number", "scopes": True}})


def test_a_tokenizer_loads_without_the_library_of_its_rule(tmp_path, monkeypatch) -> None:
    """What is missing is said when a text is read; so is a language that nobody knows."""
    rules = {"column": {"rule": "sql", "language": "mysql", "count": 3}}
    TextTokenizer.from_tokenizer(byte_level(), rules).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["symbols"] == rules
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    with pytest.raises(ImportError, match=r"SQL need sqlglot: pip install 'hf_alpha\[sql\]'"):
        tokenizer("SELECT a")
    monkeypatch.undo()
    assert tokenizer(["SELECT `a`"]).names[0] == {"<column_0>": "a"}
    nowhere = NameFinder({"name": {"rule": "identifier", "language": "parseltongue"}})
    with pytest.raises(ValueError, match="'parseltongue' of a rule is none that Pygments has"):
        nowhere.find("x")
    message = r"'language' is for the ready-made rules sql \(dialects of sqlglot\), identifier"
    with pytest.raises(ValueError, match=message):
        NameFinder({"name": {"rule": "python", "language": "3"}})
    with pytest.raises(ValueError, match="'attributes' is for the rule python: leave it out"):
        NameFinder({"name": {"rule": "json", "attributes": True}})


def test_time_is_linear_in_strings_that_are_no_keys() -> None:
    def seconds(number: int) -> float:
        text = '["key", ' * number
        start = thread_time()
        json_names(text), json_paths(text)
        return thread_time() - start

    few, many = (min(seconds(number + i) for i in (0, 1, 2)) for number in (2_000, 8_000))
    assert many < 8 * few + 0.02
