import json
import random
import shutil

import pytest
from datasets import Dataset, DatasetDict, load_dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hf_alpha.data.generate import generate
from hf_alpha.data.perturb import perturb, reduced, renamed, renaming
from hf_alpha.data.read import load
from hf_alpha.tasks import get_task
from hf_alpha.tasks.ltl import LTLTask

TASKS = {"propositional": get_task("propositional"), "ltl": LTLTask()}
COMPACT, LONG = list("bdac"), ["request", "grant_1", "a", "idle"]


@given(
    st.sampled_from(sorted(TASKS)),
    st.permutations(range(4)),
    st.booleans(),
    st.integers(1, 20),
    st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_renaming_changes_names_only(name, order, long, size, seed):
    task, rng = TASKS[name], random.Random(seed)
    names = [(LONG if long else COMPACT)[i] for i in order]
    if not task.is_feasible(size, 4):
        return
    problem = task.sample(rng, size, names)
    answer = rng.choice([task.target(problem) or "", task.random_answer(problem, rng)])
    mapping = renaming(task, problem, answer)
    row = {"problem": problem, "answer": answer, "size": size}
    after = renamed(Dataset.from_list([row]), task)[0]
    assert after["size"] == size and after.keys() == row.keys()
    tokens = task.parse(after["problem"])
    assert task.canonical_form(tokens) == task.canonical(problem)
    assert task.check(after["problem"], after["answer"]) == task.check(problem, answer)
    first = "abcd"[: len(mapping)]
    assert sorted(mapping.values()) == list(first)
    seen = [letter for letter in dict.fromkeys(after["answer"]) if letter in first]
    assert seen == list(first[: len(seen)])
    others = [token for token in task.symbols_in(tokens) if token not in seen]
    assert others == sorted(others)
    back = {new: old for old, new in mapping.items()}
    assert task.parse(task.rename(after["problem"], back)) == task.parse(problem)
    assert "".join(task.rename(after["answer"], back).split()) == "".join(answer.split())


def test_examples():
    rows = {
        "problem": ["&cXb", "&Xz&yx", "& X grant request", "& & b a | b grant"],
        "answer": ["c;b;{1}", "{!zq}", "request ; { grant }", "{&ba}"],
    }
    after = renamed(Dataset.from_dict(rows), LTLTask()).to_dict()
    assert after["problem"] == ["&aXb", "&Xa&cd", "& X b a", "& & a b | a c"]
    assert after["answer"] == ["a;b;{1}", "{!ab}", "a ; { b }", "{&ab}"]
    assert list(renaming(TASKS["propositional"], "|b^ca", "c0a1").items()) == [
        ("c", "a"),
        ("a", "b"),
        ("b", "c"),
    ]
    words = {"problem": ["naïve grant naïve"], "answer": ["naïve grant naïve"]}
    assert renamed(Dataset.from_dict(words), "copying")[0]["answer"] == "a b a"
    with pytest.raises(ValueError, match="row 1: "):
        renamed(Dataset.from_dict({"problem": ["a", "&a"], "answer": ["a1", ""]}), "propositional")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("perturb") / "data"
    generate(LTLTask(), folder, 400, (4, 12), num_symbols=3, alpha=1.0, progress=False)
    return folder


def test_training_data_is_perturbed_and_the_rest_copied(data, tmp_path):
    before = load_dataset(str(data))
    for kind in ("renamed", "reduced"):
        counts = perturb(data, tmp_path / kind, kind, LTLTask(), num_samples=100)
        after = load_dataset(str(tmp_path / kind))
        assert after.column_names == before.column_names
        assert counts == {name: len(rows) for name, rows in after.items()}
        for split in ("validation", "test"):
            assert after[split].to_dict() == before[split].to_dict()
        record = json.loads((tmp_path / kind / "generation.json").read_text())
        assert record["rows"] == counts
        assert record["settings"]["perturbation"] == kind
        assert record["settings"]["sizes"] == [4, 12]
        card = (tmp_path / kind / "README.md").read_text()
        assert f"**Perturbed (train): {kind}.**" in card and "Targets: equivariant" in card
        if kind == "renamed":
            assert after["train"]["witness_length"] == before["train"]["witness_length"]
            assert after["train"]["problem"] != before["train"]["problem"]
        else:
            assert after["train"].to_dict() == reduced(before["train"], 100).to_dict()
    perturb(data, tmp_path / "all", "renamed", LTLTask(), splits=("train", "test"))
    assert load(tmp_path / "all", "test").to_dict() != before["test"].to_dict()


def test_recorded_settings_of_others_are_no_markup_of_the_card(data, tmp_path):
    shutil.copytree(data, tmp_path / "theirs")
    record = json.loads((data / "generation.json").read_text())
    record["settings"] |= {"a | b\n\n<script>": "` | <script>`\u202e"}
    (tmp_path / "theirs" / "generation.json").write_text(json.dumps(record))
    perturb(tmp_path / "theirs", tmp_path / "ours", "reduced", LTLTask(), num_samples=10)
    card = (tmp_path / "ours" / "README.md").read_text()
    tokens = MarkdownIt("commonmark").enable("table").parse(card)
    shown = {child.type for token in tokens for child in token.children or []}
    assert not shown & {"html_inline"} and not {token.type for token in tokens} & {"html_block"}
    cells = [token.content for token in tokens if token.type == "inline"]
    place = cells.index("a | b &lt;script&gt;")
    assert cells[place + 1 : place + 3] == [r'`` "` | <script>`\u202e" ``', "perturbation"]


def test_data_that_was_not_generated_here(tmp_path):
    (tmp_path / "lines").mkdir()
    for name in ("train", "val"):
        (tmp_path / "lines" / f"{name}.txt").write_text("&cXb\nc;b;{1}\n")
    perturb(tmp_path / "lines", tmp_path / "out", "renamed", LTLTask())
    expected = {"problem": ["&aXb"], "answer": ["a;b;{1}"], "num_symbols": [2], "size": [4]}
    assert load(tmp_path / "out", "train").to_dict() == expected
    assert load(tmp_path / "out", "validation")["problem"] == ["&cXb"]


def test_errors(data, tmp_path):
    plain = tmp_path / "plain"
    DatasetDict({"train": Dataset.from_dict({"problem": ["a"], "answer": ["a1"]})}).save_to_disk(
        str(plain)
    )
    ltl = LTLTask()
    bad = {
        "unknown perturbation 'shuffled': choose one of renamed, reduced": (data, "shuffled", {}),
        "has no split dev: it has train": (data, "renamed", {"task": ltl, "splits": ["dev"]}),
        "does not say which task": (plain, "renamed", {}),
        "between 1 and 1, the number of rows; it is 5": (
            plain,
            "reduced",
            {"task": "propositional", "num_samples": 5},
        ),
    }
    for message, (source, kind, options) in bad.items():
        with pytest.raises(ValueError, match=message):
            perturb(source, tmp_path / "out", kind, **options)
        assert {path.name for path in tmp_path.iterdir()} == {"plain"}
    with pytest.raises(FileExistsError, match="choose another folder"):
        perturb(plain, plain, "renamed", "propositional")
