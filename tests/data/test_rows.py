"""One reader of rows: problems of a task, pairs of texts, and the rows of an objective."""

import json
import sys
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict, IterableDataset
from row_files import write

from hf_alpha.checkpoints.imported_code import import_functions
from hf_alpha.data.rows import load, problems, training_problems
from hf_alpha.io.inside import OutsideError
from hf_alpha.logic.drawing.generate import generate
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.objectives.rows import read_rows
from hf_alpha.recipe import Data

FINDER = NameFinder({"variable": {"pattern": "[a-z][0-9]*"}})
SETTINGS = Data(train="", source="problem", target="answer")
READERS = {
    "problems": load,
    "pairs": lambda path: load(path, finder=FINDER),
    "objective": lambda path: read_rows(SETTINGS, str(path), ["problem", "answer"], "train"),
}
ROWS = [{"problem": "&ab", "answer": "a1"}, {"problem": "|ab", "answer": "b1"}]
LINES = "\n".join(map(json.dumps, ROWS))
PAIRS = [
    {"source": "add x , y2", "target": 'y2 + "x"', "more": 1.5},
    {"source": "NA", "target": "007", "more": None},
    {"source": "größe é\nx", "target": "null", "more": 2.0},
]
FOUND = {"problem": [r["source"] for r in PAIRS], "answer": [r["target"] for r in PAIRS]}


def pairs(place, source="source", target="target", finder=FINDER, **options):
    return load(place, source=source, target=target, finder=finder, **options)


PACKED = [f"{end}.{packed}" for end in ("csv", "tsv", "json", "jsonl") for packed in ("gz", "zst")]
ENDS = ("csv", "tsv", "json", "jsonl", "parquet", "arrow", *PACKED)


def store(folder: Path, rows: list[dict], ends=ENDS) -> list[Path]:
    """The same rows in all ways that have columns."""
    places = [write(folder / f"a.{end}", rows) for end in ends]
    for end in ("csv", "json", "parquet", "jsonl.zst"):
        (folder / end).mkdir()
        write(folder / end / f"train.{end}", rows)
        places.append(folder / end)
    for path in ("csv/README.md", "parquet/generation.json"):  # these hold no rows
        (folder / path).write_text("{}")
    Dataset.from_list(rows).save_to_disk(str(folder / "disk"))
    DatasetDict({"train": Dataset.from_list(rows)}).save_to_disk(str(folder / "dict"))
    return [*places, folder / "disk", folder / "dict"]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_all_read_all_that_has_columns(tmp_path, reader):
    for place in store(tmp_path, ROWS, ENDS[:1]):
        assert reader(place).to_list() == ROWS, place


@pytest.mark.parametrize("streaming", [False, True])
def test_texts_are_read_as_they_stand(tmp_path, streaming):
    """No numbers, no missing values; of their columns alone, in any encoding."""
    places = [(place, None) for place in store(tmp_path, PAIRS)]
    places.append((write(tmp_path / "a[1].jsonl", PAIRS), None))
    for end in ("csv", "jsonl", "tsv"):  # with a byte order mark
        marked = write(tmp_path / f"bom.{end}", PAIRS, "utf-8-sig")
        places += [(marked, None), (marked, "UTF-8")]
    for encoding in ("latin-1", "utf-16"):
        for end in (".csv", ".tsv", ".jsonl"):
            places.append((write(tmp_path / f"{encoding}{end}", PAIRS, encoding), encoding))
    for place, encoding in places:
        found = pairs(place, streaming=streaming, encoding=encoding)
        assert isinstance(found, IterableDataset) == streaming
        assert Dataset.from_list(list(found)).to_dict() == FOUND, place


WRONG = {
    "nowhere.csv": (None, "no file or folder .*nowhere.csv"),
    "empty.csv": ("", "empty.csv holds no row: it is empty"),
    "broken.jsonl": (f'{LINES}\n{{"problem', "broken.jsonl, line 3 is no JSON"),
    "damaged.parquet": ("PAR1", "damaged.parquet cannot be read: "),
    "sheet.xlsx": ("", "sheet.xlsx is of no kind that rows are read from: give one of .csv, .tsv"),
    "bare": ({}, "bare holds no file that rows are read from: give one of .csv, .tsv"),
    "mixed": ({"a.csv": "", "b.jsonl": ""}, r"mixed holds files of several kinds \(csv, json\)"),
    "half": ({".parts": {}}, "half holds an unfinished run: start the same generation again"),
    "two": ({"train.jsonl": LINES, "test.jsonl": LINES, "more.jsonl": LINES}, "not clear of which"),
    "disk": ({"dataset_dict.json": "[]"}, r"disk/dataset_dict\.json is damaged: it holds no"),
}


def lay(path: Path, content: str | dict | None) -> None:
    if isinstance(content, dict):
        path.mkdir()
        for name, inner in content.items():
            lay(path / name, inner)
    elif content is not None:
        path.write_text(content)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("name", WRONG)
def test_all_say_the_same_of_what_cannot_be_read(tmp_path, name, reader):
    content, message = WRONG[name]
    lay(tmp_path / name, content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        reader(tmp_path / name)


def test_splits_of_generated_data(tmp_path):
    counts = generate("propositional", tmp_path / "data", 300, sizes=(1, 9), progress=False)
    splits = {split: load(tmp_path / "data", split) for split in counts}
    for split, rows in splits.items():
        assert rows.column_names == ["problem", "answer", "num_symbols", "size"]
        assert len(rows) == counts[split]
    assert load(tmp_path / "data", preferred_split="test").to_dict() == splits["test"].to_dict()
    place = {"path": tmp_path / "data", "split": "train"}
    assert load(place, preferred_split="test").to_dict() == splits["train"].to_dict()
    for options in ({}, {"preferred_split": "dev"}):
        with pytest.raises(ValueError, match=r"choose a split of .*: it has train, validation, te"):
            load(tmp_path / "data", **options)
    with pytest.raises(ValueError, match=r"no split 'dev' in .*: it has train, validation, test"):
        load(tmp_path / "data", "dev")
    known = [*splits["train"]["problem"], *splits["validation"]["problem"]]
    assert sorted(training_problems(tmp_path / "data")) == sorted(known)


def test_an_answer_may_be_empty_where_it_is_a_tasks(tmp_path):
    place = write(tmp_path / "a.csv", [{"problem": "|a!a", "answer": "", "names": "x"}])
    assert load(place).to_dict() == {"problem": ["|a!a"], "answer": [""]}
    with pytest.raises(ValueError, match="row 0: the column 'answer' holds nothing"):
        load(place, finder=FINDER)


def test_columns(tmp_path):
    place = write(tmp_path / "a.csv", [{"answer": "q", "problem": "r", "source": "s"}])
    found = pairs(place, source="answer", target="problem")
    assert found.to_dict() == {"problem": ["q"], "answer": ["r"]}
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        place = write(tmp_path / name, [{"src": "x", "target": "y", "names": "x"}])
        for streaming in (False, True):
            with pytest.raises(
                ValueError,
                match=r"a\..* no column 'source': it has 'src', 'target', 'names'; say which one "
                r"it is by `data\.source` in the recipe or `--source` of a command, or rename it "
                r"in the data$",
            ):
                pairs(place, streaming=streaming)
        other = NameFinder({"a": {"column": "spans"}})
        with pytest.raises(
            ValueError, match=r"a\..* no column 'spans': it has 'src'.* by `symbols\.a\.column` in"
        ):
            pairs(place, source="src", finder=other)
        with pytest.raises(ValueError, match=r"no column 'problem', 'answer': .*; rename it in"):
            load(place)


def test_a_dataset_of_the_hub(hub, tmp_path, monkeypatch):
    for config in ("small", "large"):
        Dataset.from_list([{"q": f"{config} x", "a": "x"}]).push_to_hub("me/pairs", config)
    place = {"path": "me/pairs", "config": "large"}
    found = pairs(place, source="q", target="a")
    assert found.to_dict() == {"problem": ["large x"], "answer": ["x"]}
    with pytest.raises(FileNotFoundError, match="me/nothing is neither a file or folder here nor"):
        pairs("me/nothing")
    monkeypatch.chdir(tmp_path.parent)
    for name in ("nowhere", "err/nope.jsonl", f"{tmp_path.name}/nope"):
        with pytest.raises(FileNotFoundError, match=f"no file or folder {name}; a dataset of the"):
            pairs(name)
    place = write(tmp_path / "a.jsonl", PAIRS)
    with pytest.raises(ValueError, match=r"a.jsonl is no dataset of the Hub: .* 'large'"):
        pairs({"path": place, "config": "large"})


def names_of(dataset) -> list[list[tuple[str, str]]]:
    texts = problems(next(iter(dataset.with_format(None).iter(100))))
    assert all(type(text) is MarkedText for text in texts)
    return [[(text[s.start : s.stop], s.symbol_class) for s in text.spans] for text in texts]


@pytest.mark.parametrize("streaming", [False, True])
def test_names_by_a_column(tmp_path, streaming):
    finder = NameFinder({"person": {"column": "who"}, "number": "[0-9]+"})
    source = "Ann met Bob 2 times: Annex"
    both = [("Ann", "person"), ("Bob", "person"), ("2", "number")]
    for end, listed, found in [
        (".jsonl", (["Bob", "Ann"], []), both),
        (".parquet", ([[8, 11], [0, 3]], []), both),
        (".csv", ("Ann met", ""), [("Ann met", "person"), ("2", "number")]),
        (".csv", ('["Bob", "Ann"]', "[]"), both),
        (".tsv", ("[[8, 11], [0, 3]]", "{}"), both),
        (".csv", ('{"person": ["Ann", "Bob"]}', ""), both),
    ]:
        rows = [{"source": source, "target": "Bob", "who": who} for who in listed]
        place = write(tmp_path / f"a{end}", rows)
        dataset = pairs(place, finder=finder, streaming=streaming)
        assert names_of(dataset) == [found, [("2", "number")]]
        assert list(next(iter(dataset))) == ["problem", "answer", "names"]
    assert problems({"problem": ["x"]}) == ["x"]


@pytest.mark.parametrize("streaming", [False, True])
def test_names_of_several_classes_in_one_column(tmp_path, streaming):
    """A row lists classes that it has, and its names or their places."""
    finder = NameFinder(
        {"person": {"column": "who"}, "number": "[0-9]+", "city": {"column": "who"}}
    )
    source = "Ann met Bob 2 times in Rome"
    listed = [{"person": ["Bob", "Ann"], "city": [[23, 27]]}, {"person": ["Ann"]}, {}, {"city": []}]
    rows = [{"source": source, "target": "Bob", "who": who} for who in listed]
    for end in ("jsonl", "json", "parquet"):
        found = names_of(
            pairs(write(tmp_path / f"a.{end}", rows), finder=finder, streaming=streaming)
        )
        ann, bob, two = ("Ann", "person"), ("Bob", "person"), ("2", "number")
        assert found == [[ann, bob, two, ("Rome", "city")], [ann, two], [two], [two]]


@pytest.mark.parametrize(
    ("who", "message"),
    [
        ({"persons": ["Ann"]}, "lists names of the class 'persons': it is the column of person"),
        ({"person": ["Nina"]}, "has the name 'Nina', which is no word"),
        ({"person": 5}, "holds 5: give a list of names"),
        (5, "holds 5: give a list of names, a list of their"),
        (None, "holds nothing: give a list of names"),
        ([1, 2], r"holds \[1, 2\]: give a list"),
        ([[0, 1, 2]], "give a list"),
        (["Nina"], "has the name 'Nina', which is no word of the source 'Ann met Bob'"),
        (["An"], "has the name 'An', which is no word"),
        ([[0, 30]], "is empty, overlaps another one or lies outside the text of 11 characters"),
        ([""], "an empty name|holds"),
    ],
)
def test_columns_without_names_are_refused(who, message, tmp_path):
    finder = NameFinder({"person": {"column": "who"}})
    first = {"person": ["Ann"]} if isinstance(who, dict) else ["Ann"]
    rows = [{"source": "Ann met Bob", "target": "Bob", "who": w} for w in (first, who)]
    with pytest.raises(ValueError, match=f"a.jsonl, row 1: .*({message})"):
        pairs(write(tmp_path / "a.jsonl", rows), finder=finder)


FUNCTIONS = """
def calls(text):
    if text == "boom":
        raise RuntimeError("no formula")
    return [(i - 1, i) for i, c in enumerate(text) if c == "("]

number = 3
"""


def test_names_by_a_function(tmp_path, monkeypatch):
    (tmp_path / "own_functions.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)  # as for a user who starts the command beside the module
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_functions", raising=False)
    rules = {"function": {"function": "own_functions:calls"}, "variable": "[x-z]"}
    place = write(tmp_path / "a.jsonl", [{"source": "f(g(x))", "target": "x"}])
    finder = NameFinder(rules)
    with pytest.raises(ValueError, match="'own_functions:calls', which is not imported"):
        pairs(place, finder=finder)  # others may have named it
    import_functions(finder)
    found = pairs(place, finder=finder)
    assert names_of(found) == [[("f", "function"), ("g", "function"), ("x", "variable")]]
    place = write(tmp_path / "b.jsonl", [{"source": "boom", "target": "x"}])
    with pytest.raises(ValueError, match=r"b.jsonl, row 0: RuntimeError: no formula"):
        pairs(place, finder=finder)
    for path, message in [
        ("own_functions:call", "the function 'own_functions:call': own_functions has no"),
        ("own_functions:number", "'own_functions:number' is 3, which cannot be called"),
        ("nowhere_at_all:f", "there is no module 'nowhere_at_all' in .* or on Python's path"),
        ("calls", "the function 'calls': write package.module:function"),
    ]:
        with pytest.raises(ValueError, match=message):
            import_functions(NameFinder({"function": {"function": path}}))


NAMES = {
    "absolute": "{}/private.csv",
    "above": "../private.csv",
    "above, deeper": ["train.csv", {"split": "test", "path": ["data/../../private.csv"]}],
    "address": "https://hub.example/private.csv",
    "of the Hub": [{"split": "train", "path": "hf://datasets/me/private/train.csv"}],
    "address without slashes": "file:{}/private.csv",
    "in an archive": "zip://train.csv::{}/private.zip",
    "linked": "linked.csv",
}


def card(names: object, folder: Path, key: str = "data_files") -> str:
    config = {"config_name": "default", key: names}
    return json.dumps({"configs": [config]}).replace("{}", str(folder))


def with_card(names: object, file: str, folder: Path) -> Path:
    """A folder with a row, whose card names other files, as `file`."""
    folder.mkdir()
    (folder / "train.csv").write_text("problem,answer\n&ab,a1\n")
    header = card(names, folder.parent)
    (folder / file).write_text(f"---\n{header}\n---\n" if file.endswith("md") else header)
    return folder


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", ["README.md", ".huggingface.yaml"])
def test_files_that_a_card_names_are_not_elsewhere(tmp_path, file, name):
    """`datasets` takes any file and address: one's own, and those of the Hub by one's own token."""
    folder, private = with_card(NAMES[name], file, tmp_path / "theirs"), tmp_path / "private.csv"
    private.write_text("problem,answer\n&xy,x1y1\n")
    if name == "linked":
        (folder / "linked.csv").symlink_to(private)
    for reader in READERS.values():
        with pytest.raises(OutsideError, match="outside of"):
            reader(folder)


@pytest.mark.parametrize("file", ["README.md", ".huggingface.yaml"])
def test_a_card_on_the_hub_names_none_elsewhere(tmp_path, hub, file):
    for number, name in enumerate([name for name in NAMES if name != "linked"]):
        folder = with_card(NAMES[name], file, tmp_path / f"{number}")
        files = {f.name: f.read_bytes() for f in folder.iterdir()}
        hub.append("dataset", f"me/theirs-{number}", files)
        with pytest.raises(OutsideError, match="outside of"):
            load(f"me/theirs-{number}")


def test_a_card_names_files_of_its_folder(tmp_path, hub):
    (tmp_path / "parts").mkdir()
    for name in ("a", "b"):
        (tmp_path / "parts" / f"{name}.csv").write_text("problem,answer\n&ab,a1\n")
    (tmp_path / "README.md").write_text(f"---\n{card('parts/a.*', tmp_path)}\n---\n")
    assert len(load(tmp_path)) == 1
    files = {f"{f.relative_to(tmp_path)}": f.read_bytes() for f in tmp_path.rglob("*.*")}
    hub.append("dataset", "me/parts", files)
    assert len(load("me/parts")) == 1
    (tmp_path / "README.md").write_text(f"---\n{card('..', tmp_path, 'data_dir')}\n---\n")
    with pytest.raises(OutsideError, match=r"names '\.\.', which lies outside"):
        load(tmp_path)


def test_a_saved_dataset_holds_its_files(tmp_path):
    for folder in ("private", "theirs"):
        Dataset.from_list(ROWS).save_to_disk(str(tmp_path / folder))
    state = tmp_path / "theirs" / "state.json"
    content = json.loads(state.read_text())
    name = content["_data_files"][0]["filename"]
    state.write_text(state.read_text().replace(name, f"../private/{name}"))
    with pytest.raises(OutsideError, match=r"names '\.\./private"):
        load(tmp_path / "theirs")
    lay(tmp_path / "both", {"dataset_dict.json": '{"splits": ["../private"]}'})
    with pytest.raises(OutsideError, match=r"names '\.\./private"):
        load(tmp_path / "both")
