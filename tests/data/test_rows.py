"""All who read rows read them alike: problems of a task, pairs, and the rows of an objective."""

import json
from pathlib import Path

import pytest
from datasets import Dataset

from hf_alpha.data.pairs import read_pairs
from hf_alpha.data.read import load
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.objectives.rows import read_rows
from hf_alpha.recipe import Data

FINDER = NameFinder({"name": "[a-z]"})
SETTINGS = Data(train="", source="problem", target="answer")
READERS = {
    "problems": load,
    "pairs": lambda path: read_pairs(path, source="problem", target="answer", finder=FINDER),
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
