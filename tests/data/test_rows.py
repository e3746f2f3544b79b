"""All who read rows read them alike: problems of a task, pairs, and the rows of an objective."""

import json
from pathlib import Path

import pytest
from datasets import Dataset

from hf_alpha.data.rows import load
from hf_alpha.folders import OutsideError
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.objectives.rows import read_rows
from hf_alpha.recipe import Data

FINDER = NameFinder({"name": "[a-z]"})
SETTINGS = Data(train="", source="problem", target="answer")
READERS = {
    "problems": load,
    "pairs": lambda path: load(path, finder=FINDER),
    "objective": lambda path: read_rows(SETTINGS, str(path), ["problem", "answer"], "train"),
}
ROWS = [{"problem": "&ab", "answer": "a1"}, {"problem": "|ab", "answer": "b1"}]
LINES = "\n".join(map(json.dumps, ROWS))


def store(folder: Path) -> list[Path]:
    """The same rows in all ways that have columns."""
    rows = Dataset.from_list(ROWS)
    rows.save_to_disk(str(folder / "disk"))
    for end in ("csv", "json", "parquet"):
        (folder / end).mkdir()
        getattr(rows, f"to_{end}")(str(folder / end / f"train.{end}"))
    for path in ("csv/README.md", "parquet/generation.json"):  # these hold no rows
        (folder / path).write_text("{}")
    (folder / "rows.jsonl").write_text(LINES)
    (folder / "rows.json").write_text(json.dumps(ROWS))
    (folder / "rows.tsv").write_text("problem\tanswer\n&ab\ta1\n|ab\tb1\n")
    files = [*folder.glob("rows.*"), *folder.glob("*/train.*")]
    return [*files, *(folder / name for name in ("disk", "csv", "json", "parquet"))]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_all_read_all_that_has_columns(tmp_path, reader):
    for place in store(tmp_path):
        assert reader(place).to_list() == ROWS, place


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
}


def write(path: Path, content: str | dict | None) -> None:
    if isinstance(content, dict):
        path.mkdir()
        for name, inner in content.items():
            write(path / name, inner)
    elif content is not None:
        path.write_text(content)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("name", WRONG)
def test_all_say_the_same_of_what_cannot_be_read(tmp_path, name, reader):
    content, message = WRONG[name]
    write(tmp_path / name, content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        reader(tmp_path / name)


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


def written(names: object, file: str, folder: Path) -> Path:
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
    folder, private = written(NAMES[name], file, tmp_path / "theirs"), tmp_path / "private.csv"
    private.write_text("problem,answer\n&xy,x1y1\n")
    if name == "linked":
        (folder / "linked.csv").symlink_to(private)
    for reader in READERS.values():
        with pytest.raises(OutsideError, match="outside of"):
            reader(folder)


@pytest.mark.parametrize("file", ["README.md", ".huggingface.yaml"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "linked"])
def test_a_card_on_the_hub_names_none_elsewhere(tmp_path, hub, file, name):
    folder = written(NAMES[name], file, tmp_path / "theirs")
    hub.append("dataset", "me/theirs", {f.name: f.read_bytes() for f in folder.iterdir()})
    with pytest.raises(OutsideError, match="outside of"):
        load("me/theirs")


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
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "dataset_dict.json").write_text('{"splits": ["../private"]}')
    with pytest.raises(OutsideError, match=r"names '\.\./private"):
        load(tmp_path / "both")
