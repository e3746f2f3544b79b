"""Questions under several namings: of tools, of whole calls, and of what a function returns.

All renaming and spelling is the package's.
"""

import ast
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import bfcl
from hf_alpha import CanonicalNames
from hf_alpha.alias.certificate import Table, renamed
from hf_alpha.alias.chat import CanonicalRequest
from hf_alpha.modeling.chat_names import tool_names, write_data
from hf_alpha.modeling.host_words import LETTERS
from hf_alpha.modeling.words import like_a_word
from measure import lines_of

FILES = "live_multiple", "multiple"
"""Of BFCL: tools that users gave, and others when these are at an end."""
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
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


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
class Naming:
    """A request under other names.

    Attributes:
        body: of the request, in OpenAI's form.
        table: name -> how it is called there.
        request: which spelled it, if that is canonical spelling.
    """

    body: Mapping[str, Any]
    table: Mapping[str, str]
    request: CanonicalRequest | None = None

    def asked(self, right: str, back: Callable[..., str]) -> Asked:
        """Ask freely, where this would be right; `back` takes an answer and this naming."""
        return Asked(self.body, [right], partial(back, naming=self))

    def text_back(self, answer: str) -> str:
        """Write a text of the model in own names, if the package gives them back."""
        if self.request is None:
            return answer
        written = self.request.back({"choices": [{"text": answer}]})
        return str(written["choices"][0]["text"])


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


def namings(
    rule: Mapping[str, Any], body: dict[str, Any], renamings: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, Naming], bool]:
    """Return the request under each naming, and whether its canonical spelling is always the same.

    Canonical spelling is in words of each kind.
    """
    ((kind, _),) = rule.items()
    names, made = CanonicalNames(rule), dict[str, Naming]()
    for condition, table in renamings.items():
        pairs: Table = {(kind, name): new for name, new in table.items()}
        made[condition] = Naming(renamed(names, body, pairs), table)
    sent = {json.dumps(CanonicalRequest(names, dict(each.body)).body) for each in made.values()}
    for condition, words in WORDS.items():
        request = CanonicalRequest(CanonicalNames(rule, words=words), body)
        table = {str(name): word for word, name in request.table.items() if name != word}
        made[condition] = Naming(request.body, table, request)
    return made, len(sent) == 1


# -- tools and calls ------------------------------------------------------------------------------


def described(data: Path, longest: int) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield questions with 3 to 5 tools, one for each right tool, and the call that is right."""
    seen = set[tuple[Any, ...]]()
    for file in FILES:
        rows = [*bfcl.questions(data / "bfcl", file)]
        random.Random(0).shuffle(rows)
        for row, (right, *_) in rows:
            tools = row["function"]
            names = tuple(tool["name"] for tool in tools)
            are_described = all(tool.get("description") for tool in tools)
            is_one = len(row["question"]) == 1 and len(row["question"][0]) == 1
            if not (3 <= len({*names}) == len(names) <= 5 and are_described and is_one):
                continue
            if (names, *right) not in seen and len(json.dumps(tools)) <= longest:
                seen.add((names, *right))
                yield row, tools, right


def choice(data: Path) -> Iterator[Question]:
    """Yield questions for the tool that answers a request."""
    rule = {"tool": {"rule": "tools"}}
    for row, tools, right in described(data, 10_000):
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
        made, alike = namings(rule, body, tables(row["id"], names))
        asked = {}
        for condition, naming in made.items():
            called = [tool["function"]["name"] for tool in naming.body["tools"]]
            back = partial(name_back, back=dict(zip(called, names, strict=True)))
            asked[condition] = Asked({"messages": naming.body["messages"]}, called, back)
        yield Question(row["id"], asked, partial(right.__contains__), alike)


def name_back(answer: str, back: Mapping[str, str]) -> str:
    """Return the own name of the first tool that an answer names; the answer if there is none."""
    listed = "|".join(map(re.escape, sorted(back, key=len, reverse=True)))
    found = re.search(rf"(?<![\w.])(?:{listed})(?!\w)", answer)
    return back[found[0]] if found else answer


def calls(data: Path) -> Iterator[Question]:
    """Yield questions for the call that answers a request."""
    rule = {"tool": {"rule": "tools"}}
    for row, tools, right in described(data, 2_500):
        schemas = bfcl.as_json_schema(tools)
        schemas = [{"type": "function", "function": schema} for schema in schemas]
        body = {"messages": row["question"][0], "tools": schemas}
        functions = [tool["name"] for tool in tools]
        others = [n for n in dict.fromkeys(n for n, _ in tool_names(tools)) if n not in functions]
        groups = [
            [name for name in some if like_a_word(name) is like]
            for some in (functions, others)
            for like in (False, True)
        ]
        made, alike = namings(rule, body, tables(row["id"], *groups))
        ((name, values),) = right.items()
        best = {"name": name, "arguments": as_given(values)}
        asked = {
            condition: naming.asked(
                json.dumps(write_data(best, partial(in_words, table=naming.table))), call_back
            )
            for condition, naming in made.items()
        }
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


def call_back(answer: str, naming: Naming) -> str:
    """Return the first call of an answer in own names, as JSON; its text where it has none."""
    start = answer.find("{")
    try:
        call, _ = json.JSONDecoder().raw_decode(answer, max(start, 0))
        name, arguments = call["name"], call.get("arguments", {})
    except (ValueError, KeyError, TypeError, AttributeError):
        return answer.strip()
    if naming.request is not None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {"content": None, "tool_calls": [{"function": function}]}
        back = naming.request.back({"choices": [{"message": message}]})
        function = back["choices"][0]["message"]["tool_calls"][0]["function"]
        name, arguments = function["name"], json.loads(function["arguments"])
    else:
        own = partial(in_words, table=inverse(naming.table))
        name, arguments = write_data([name, arguments], own)
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


# -- Python ---------------------------------------------------------------------------------------


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
        made, alike = namings(rule, {"prompt": text}, tables(row["id"], inner, ["f"]))
        right = f" {row['output']}\n"
        asked = {condition: naming.asked(right, value_back) for condition, naming in made.items()}
        yield Question(row["id"], asked, partial(is_literal, right=row["output"]), alike)


def value_back(answer: str, naming: Naming) -> str:
    """Return a value in own names."""
    return naming.text_back(answer).strip()


def is_literal(answer: str, right: str) -> bool:
    """Whether two texts are the same value of Python."""
    try:
        return repr(ast.literal_eval(answer)) == repr(ast.literal_eval(right))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return answer == right
