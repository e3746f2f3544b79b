"""The scripts of examples/tasks make right pairs, in the form that their recipes expect."""

import gzip
import json
import random
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest

from hf_alpha.data.pairs import evaluation_rows, read_pairs, renamings
from hf_alpha.recipe import read_recipe

SCRIPTS = Path(__file__).parents[1] / "examples" / "tasks"


def run(script, *arguments):
    subprocess.run([sys.executable, SCRIPTS / script, *map(str, arguments)], check=True)


def rows_of(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def names_in(task, folder):
    """Read the test as a user's recipe does: how many names each source has."""
    recipe = read_recipe(f"text/{task}")
    solved = recipe.solved
    dataset = read_pairs(recipe.data, str(folder / "test.jsonl"), solved.finder, "test")
    return [row["num_symbols"] for row in evaluation_rows(dataset, solved)]


@pytest.mark.slow  # 20,000 functions are drawn
def test_inlined_functions_compute_the_same(tmp_path):
    run("inline.py", tmp_path)
    rows = rows_of(tmp_path / "test.jsonl")
    rng = random.Random(0)
    for row in rows:
        order, _, source = row["source"].partition("\n")
        variable = order.removeprefix("inline ")
        assert re.search(rf"\b{variable}\b", source)
        assert not re.search(rf"\b{variable}\b", row["target"])
        values = [[Fraction(rng.randint(1, 99), 7) for _ in range(9)] for _ in range(5)]
        assert computed(source, values) == computed(row["target"], values)
    assert names_in("inline", tmp_path) == sorted(list(range(4, 10)) * 60)
    data, finder = (found := read_recipe("text/inline")).data, found.solved.finder
    places = {name: str(tmp_path / f"{name}.jsonl") for name in ("train", "test")}
    train, test = (read_pairs(data, place, finder, name) for name, place in places.items())
    assert renamings(train, test["problem"], finder) == 0


def computed(text, values):
    space = {}
    exec(text, space)
    function = next(value for name, value in space.items() if name != "__builtins__")
    results = []
    for numbers in values:
        try:
            results.append(function(*numbers[: function.__code__.co_argcount]))
        except ZeroDivisionError:
            results.append(None)
    return results


def test_normal_forms_mean_the_same(tmp_path):
    run("nnf.py", tmp_path)
    for row in rows_of(tmp_path / "test.jsonl"):
        assert not re.search(r"~ [^a-z]", row["target"])
        for world in range(5):
            assert truth(row["source"], world) == truth(row["target"], world)
    assert names_in("nnf", tmp_path) == sorted(list(range(2, 13)) * 40)


def truth(text, world):
    """Whether a formula holds in one of many worlds of two things; free variables are thing 0."""
    return holds(text.split(), 0, {}, world)[0]


def holds(tokens, at, values, world):
    """Return whether the formula that begins there holds, and where it ends."""
    head = tokens[at]
    if head == "~":
        value, end = holds(tokens, at + 1, values, world)
        return not value, end
    if head in "!?":
        found = [holds(tokens, at + 5, values | {tokens[at + 2]: v}, world) for v in (0, 1)]
        return (all if head == "!" else any)(value for value, _ in found), found[0][1]
    if head == "(":
        left, middle = holds(tokens, at + 1, values, world)
        right, end = holds(tokens, middle + 1, values, world)
        return (left and right if tokens[middle] == "&" else left or right), end + 1
    end = tokens.index(")", at) + 1
    things = tuple(values.get(name, 0) for name in tokens[at + 2 : end - 1 : 2])
    return random.Random(f"{world} {head} {things}").random() < 0.5, end


@pytest.mark.parametrize("words", [[], ["stories"]])
def test_kinship_asks_for_the_relation_of_two_people(words, tmp_path):
    row = {
        "story": "[Ann]'s son, [Bob], met his sister [Cleo].",
        "query": ["Ann", "Cleo"],
        "target": "daughter",
        "genders": "Ann:female,Bob:male,Cleo:female",
        "story_edges": [[0, 1], [1, 2]],
        "edge_types": ["son", "sister"],
    }
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"k23_{part}.jsonl.gz", "wt") as file:
            file.write(json.dumps(row) + "\n")
    run("kinship.py", tmp_path, tmp_path, *words)
    (made,) = rows_of(tmp_path / "test.jsonl")
    told = made["source"].removesuffix(" who is Cleo to Ann ?")
    if words:
        assert told == "Ann's son, Bob, met his sister Cleo."
    else:
        facts = ["the son of Ann is Bob .", "the sister of Bob is Cleo ."]
        assert told in map(" ".join, permutations(facts))
    assert (made["told"], made["people"]) == (told, "Ann Cleo")
    assert (made["target"], made["relation"]) == ("Cleo is the daughter of Ann", "daughter")
    assert (made["women"], made["men"]) == (["Ann", "Cleo"], ["Bob"])
    assert names_in("kinship", tmp_path) == [3]


def test_kinship_asks_about_all_pairs_that_training_tells_about(tmp_path):
    """Of Bob and Dora no story tells; the test's questions stay as they are."""
    short = {
        "story": "",
        "query": ["Eve", "Gina"],
        "target": "daughter",
        "genders": "Eve:female,Finn:male,Gina:female",
        "story_edges": [[0, 1], [1, 2]],
        "edge_types": ["son", "sister"],
    }
    long = {
        "story": "",
        "query": ["Ann", "Dora"],
        "target": "granddaughter",
        "genders": "Ann:female,Bob:male,Cleo:female,Dora:female",
        "story_edges": [[0, 1], [1, 2], [2, 3]],
        "edge_types": ["son", "sister", "daughter"],
    }
    for part in ("train", "test"):
        with gzip.open(tmp_path / f"k23_{part}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in (short, long))
    run("kinship.py", tmp_path, tmp_path, "pairs", "100")
    asked = {row["target"] for row in rows_of(tmp_path / "train.jsonl") if row["k"] == 3}
    assert asked == {
        "Bob is the son of Ann",
        "Cleo is the sister of Bob",
        "Dora is the daughter of Cleo",
        "Cleo is the daughter of Ann",
        "Dora is the granddaughter of Ann",
    }
    tested = [row["target"] for row in rows_of(tmp_path / "test.jsonl")]
    assert tested == ["Gina is the daughter of Eve", "Dora is the granddaughter of Ann"]


def test_sql_runs_on_tables_of_the_schema(tmp_path):
    """The schema is made, and the query reads nothing that it lacks."""
    run("sql.py", tmp_path)
    rows = rows_of(tmp_path / "test.jsonl")
    training_names = {name for row in rows_of(tmp_path / "train.jsonl") for name in row["columns"]}
    for row in rows:
        schema, _, question = row["source"].partition(" | ")
        tables = dict(re.findall(r"(\w+) \( ([^)]*) \)", schema))
        assert sorted(tables) == sorted(row["tables"])
        with closing(sqlite3.connect(":memory:")) as database:
            for table, columns in tables.items():
                database.execute(f"CREATE TABLE {table} ({columns})")
            database.execute(row["target"])
        asked = {name for name in row["columns"] if re.search(rf"\b{name}\b", question)}
        assert asked and all(re.search(rf"\b{name}\b", row["target"]) for name in asked)
        assert not training_names & {*row["columns"], *row["tables"]}
    counts = names_in("sql", tmp_path)
    assert min(counts) >= 3 and max(counts) > 20


def test_sequents_are_proved(tmp_path, monkeypatch):
    run("sequents.py", tmp_path)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from sequents import check

    rows = rows_of(tmp_path / "test.jsonl")
    for row in rows:
        assert check(row["source"], row["target"]) and check(**row, answer=row["target"])
        assert not check(row["source"], f"{row['target']} )")
        assert not check(row["source"], row["target"].replace(")", "", 1) + " x")
    assert max(names_in("sequents", tmp_path)) > 20


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("( f a b )", True),
        ("( f c b )", True),  # another proof than any that the data may have
        ("( f b a )", False),
        ("( f a )", False),
        ("f", False),
        ("a", False),
        ("( a )", False),
        ("( f a b", False),
        ("( f a b ) )", False),
        ("( f a d )", False),
        ("", False),
    ],
)
def test_proofs_are_checked_step_by_step(answer, right, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from sequents import check

    assert check("f : p → q → r , a : p , b : q , c : p ⊢ r", answer) is right
