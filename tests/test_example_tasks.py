"""The scripts of examples/tasks make right pairs, in the form that their recipes expect."""

import gzip
import json
import random
import re
import sqlite3
import sys
from contextlib import closing
from fractions import Fraction
from functools import cache
from itertools import chain, pairwise, permutations, product
from pathlib import Path

import pytest

from hf_alpha.data.keys import problem_keys, rows_seen
from hf_alpha.data.pairs import evaluation_rows, read_pairs
from hf_alpha.recipe import read_recipe
from hf_alpha.tasks.text.molecules import canonical

SCRIPTS = Path(__file__).parents[1] / "examples" / "tasks"
sys.path.append(str(SCRIPTS))  # as for a script there


@pytest.fixture
def run(monkeypatch):
    """Runs a script, which draws a few hundred pairs of training in place of 20,000."""

    def run(script, *arguments):
        code = (SCRIPTS / script).read_text().replace("20_000", "300")
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        exec(compile(code, script, "exec"), {"__name__": "__main__"})

    return run


def rows_of(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def names_in(task, folder):
    """Read the test as a user's recipe does: how many names each source has."""
    recipe = read_recipe(f"text/{task}")
    solved = recipe.configured_task
    dataset = read_pairs(recipe.data, str(folder / "test.jsonl"), solved.finder, "test")
    return [row["num_symbols"] for row in evaluation_rows(dataset, solved)]


def test_inlined_functions_compute_the_same(run, tmp_path):
    run("inline.py", tmp_path)
    rows = rows_of(tmp_path / "test.jsonl")
    rng = random.Random(0)
    for row in rows:
        order, _, source = row["source"].partition("\n")
        variable = order.removeprefix("inline ")
        assert re.search(rf"\b{variable}\b", source)
        assert not re.search(rf"\b{variable}\b", row["target"])
        values = [[Fraction(rng.randint(1, 99), 7) for _ in range(9)] for _ in range(5)]
        pairs = zip(computed(source, values), computed(row["target"], values), strict=True)
        assert all(before in (None, after) for before, after in pairs)  # None: it divides by zero
    assert names_in("inline", tmp_path) == sorted(list(range(4, 10)) * 60)
    data, finder = (found := read_recipe("text/inline")).data, found.configured_task.finder
    places = {name: str(tmp_path / f"{name}.jsonl") for name in ("train", "test")}
    train, test = (read_pairs(data, place, finder, name) for name, place in places.items())
    assert not rows_seen(test["problem"], finder, problem_keys(train["problem"], finder))


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


def test_normal_forms_mean_the_same(run, tmp_path):
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
        cases = [holds(tokens, at + 5, values | {tokens[at + 2]: v}, world) for v in (0, 1)]
        return (all if head == "!" else any)(value for value, _ in cases), cases[0][1]
    if head == "(":
        left, middle = holds(tokens, at + 1, values, world)
        right, end = holds(tokens, middle + 1, values, world)
        return (left and right if tokens[middle] == "&" else left or right), end + 1
    end = tokens.index(")", at) + 1
    things = tuple(values.get(name, 0) for name in tokens[at + 2 : end - 1 : 2])
    return random.Random(f"{world} {head} {things}").random() < 0.5, end


def write_stories(folder, *stories):
    """Files as CLUTRR has them: people with genders, facts from each to the next, a target."""
    rows = []
    for people, facts, target, text in stories:
        names = [person.split(":")[0] for person in people.split(",")]
        edges = [[person, person + 1] for person in range(len(facts))]
        asked = {"query": [names[0], names[-1]], "target": target, "story": text}
        told = {"genders": people, "story_edges": edges, "edge_types": facts}
        rows.append(json.dumps(asked | told) + "\n")
    for part in ("train", "test"):
        with gzip.open(folder / f"k23_{part}.jsonl.gz", "wt") as file:
            file.writelines(rows)


@pytest.mark.parametrize("words", [[], ["stories"]])
def test_kinship_asks_for_the_relation_of_two_people(words, run, tmp_path):
    people, text = "Ann:female,Bob:male,Cleo:female", "[Ann]'s son, [Bob], met his sister [Cleo]."
    write_stories(tmp_path, (people, ["son", "sister"], "daughter", text))
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


def test_kinship_asks_about_all_pairs_that_training_tells_about(run, tmp_path):
    """Of Bob and Dora no story tells; the test's questions stay as they are."""
    people = "Ann:female,Bob:male,Cleo:female,Dora:female"
    write_stories(
        tmp_path,
        ("Eve:female,Finn:male,Gina:female", ["son", "sister"], "daughter", ""),
        (people, ["son", "sister", "daughter"], "granddaughter", ""),
    )
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


def test_kinship_of_families_has_pairs_that_no_story_of_training_has(run, tmp_path):
    """What two facts tell leads by the pairs that are told, step by step, to the right answer."""
    people = "Eve:female,Finn:male,Gina:female"
    write_stories(tmp_path, (people, ["son", "sister"], "daughter", ""))
    run("kinship.py", tmp_path, tmp_path, "families", "60")
    rows = {part: rows_of(tmp_path / f"{part}.jsonl") for part in ("train", "test", "families")}
    assert [len(part) for part in rows.values()] == [120, 1, 900]
    import kinship

    stories = [{"edge_types": ["son", "sister"]}]
    turns = [kinship.pairs_held_out(stories, turn) for turn in range(kinship.TURNS)]
    assert sorted([("son", "sister"), *chain(*turns)]) == [*kinship.answers()]
    told = kinship.teller(turns[0])
    assert len(told.forbidden) == 25 and not told.forbidden & told.told.keys()
    for row in rows["train"][60:] + rows["families"]:
        way, relations = way_between(row)
        assert not {*pairwise(way)} & {*told.forbidden}
        assert row["relation"] in read_by(told, tuple(relations))
    assert {len(way_between(row)[1]) for row in rows["families"]} == {*range(2, 11)}


def way_between(row):
    """All relations of a row in their order, and those between the two people of its question."""
    facts = re.findall(r"the (\S+) of (\S+) is (\S+) \.", row["told"])
    known = {one: (relation, two) for relation, one, two in facts}
    (at,) = known.keys() - {two for _, two in known.values()}
    people, way = [at], []
    while at in known:
        relation, at = known[at]
        people.append(at)
        way.append(relation)
    first, last = map(people.index, row["people"].split())
    return way, way[first:last]


@cache
def read_by(teller, relations):
    """What relations one after the other may be, by pairs that tell one."""
    if len(relations) == 1:
        return {*relations}
    halves = ((relations[:cut], relations[cut:]) for cut in range(1, len(relations)))
    pairs = (product(*(read_by(teller, part) for part in half)) for half in halves)
    return {teller.told[pair] for found in pairs for pair in found if pair in teller.told}


def test_sql_runs_on_tables_of_the_schema(run, tmp_path):
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


def test_sequents_are_proved(run, tmp_path, monkeypatch):
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


def numbers(row: dict[str, str]) -> int:
    return len(set(re.findall(r":(\d+)\]", row["source"])))


@pytest.mark.parametrize("maps", [[], ["--maps"]])
def test_reactions_are_the_same_molecules_however_they_are_numbered(run, tmp_path, maps):
    pytest.importorskip("rdkit")
    run("reactions.py", SCRIPTS.parents[1] / "tests" / "data_files" / "uspto_mit", tmp_path, *maps)
    names = ("train", "validation", "test", "permuted", "random")
    train, validation, *tests = (rows_of(tmp_path / f"{name}.jsonl") for name in names)
    assert len({row["source"] for row in (*train, *validation, *tests[0])}) > 25
    unnumbered = re.compile(r":\d+(?=\])")
    for rows in zip(*tests, strict=True):
        for side in ("source", "target"):
            same, permuted, redrawn = (row[side] for row in rows)
            assert (":" in same) == bool(maps)
            assert canonical(redrawn) == canonical(same)
            same, permuted = (unnumbered.sub("", text) for text in (same, permuted))
            assert canonical(permuted) == canonical(same)
    assert any(test["source"] != other["source"] for test, other in zip(*tests[::2], strict=True))
    if maps:
        fewer, more = (
            [numbers(row) for row in rows] for rows in (train, rows_of(tmp_path / "more.jsonl"))
        )
        assert more and max(fewer) <= 40 < min(more)


def test_conjunctions_are_longer_problems_with_right_answers(tmp_path):
    import conjunctions

    rows = [{"problem": text, "answer": ""} for text in ("U a & b X c", "X ! a", "! & a X b")]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "longer"
    conjunctions.main(tmp_path, out, rows=4)
    made = rows_of(out / "train.jsonl")
    assert len({row["problem"] for row in made}) == 4
    for row in made:
        assert conjunctions.TASK.check(row["problem"], row["answer"]).is_correct
        assert 36 <= len(conjunctions.TASK.parse(row["problem"])) <= 126


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("anf_steps.py --ask gone a", "error: no checkpoint folder 'gone'"),
        ("anf_steps.py --ask", "error: the following arguments are required: model, term"),
        ("anf.py out --operations 0", "error: argument --operations: 0 is not at least 1"),
        ("conjunctions.py gone out", "error: no file or folder gone; "),
        ("inline.py out 33", "error: argument largest: 33 is not 4 to 32"),
        ("kinship.py gone out", "error: .* 'gone/k23_train.jsonl.gz'"),
        ("reactions.py gone out", "error: .* 'gone/test.txt'"),
        ("sql.py", "error: the following arguments are required: folder"),
    ],
)
def test_what_a_user_can_mend_is_said_in_one_line(
    command, told, run, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        run(*command.split())
    assert re.search(told, capsys.readouterr().err.splitlines()[-1])
    assert not [*tmp_path.iterdir()]
