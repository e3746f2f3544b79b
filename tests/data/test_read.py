import json

import pytest
from datasets import Dataset, DatasetDict

from hf_alpha.data.generate import generate
from hf_alpha.data.rows import described, load, load_splits, training_problems
from hf_alpha.tasks import get_task
from hf_alpha.tasks.ltl import LTLTask

ROWS = {"problem": ["&ab", "|a!a"], "answer": ["a1b1", ""]}


def test_all_ways_to_store_give_the_same_rows(tmp_path):
    dataset = Dataset.from_dict(ROWS)
    dataset.save_to_disk(str(tmp_path / "disk"))
    DatasetDict({"train": dataset}).save_to_disk(str(tmp_path / "dict"))
    (tmp_path / "folder").mkdir()
    dataset.to_parquet(str(tmp_path / "folder" / "train.parquet"))
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "train.txt").write_text("&ab\na1b1\n|a!a\n\n")
    places = ["disk", "dict", "folder", "folder/train.parquet", "lines", "lines/train.txt"]
    for place in places:
        assert load(tmp_path / place).to_dict() == ROWS, place
        assert load(tmp_path / place, preferred_split="test").to_dict() == ROWS, place
        counted = described(get_task("propositional"), load(tmp_path / place))
        assert [(row["num_symbols"], row["size"]) for row in counted] == [(2, 3), (1, 4)]


def test_generated_data(tmp_path):
    counts = generate("propositional", tmp_path / "data", 300, sizes=(1, 9), progress=False)
    for split, count in counts.items():
        dataset = load(tmp_path / "data", split)
        assert dataset.column_names == ["problem", "answer", "num_symbols", "size"]
        assert len(dataset) == count
    with pytest.raises(ValueError, match=r"choose a split of .*train, validation, test"):
        load(tmp_path / "data")
    for preferred, split in (("test", None), ("test", "train")):
        found = load(tmp_path / "data", split, preferred_split=preferred)
        assert found.to_dict() == load(tmp_path / "data", split or preferred).to_dict()
    with pytest.raises(ValueError, match=r"choose a split of .*train, validation, test"):
        load(tmp_path / "data", preferred_split="dev")
    with pytest.raises(ValueError, match=r"no split 'dev' in .*train, validation, test"):
        load(tmp_path / "data", "dev")


def test_two_line_folders_name_their_splits(tmp_path):
    for name in ("train", "val", "test"):
        (tmp_path / f"{name}.txt").write_text("&aXb\na;b;{1}\r\n")
    row = {"problem": "&aXb", "answer": "a;b;{1}"}
    assert load(tmp_path, "validation")[0] == row
    counted = {**row, "num_symbols": 2, "size": 4}
    assert described(LTLTask(), load(tmp_path, "validation")) == [{**counted, "witness_length": 1}]
    splits = load_splits(tmp_path)
    assert {name: list(rows) for name, rows in splits.items()} == {
        name: [row] for name in ("test", "train", "validation")
    }


def test_errors_name_the_place(tmp_path):
    odd, empty, wrong = (tmp_path / name for name in ("odd.txt", "empty.txt", "wrong.txt"))
    odd.write_text("a\na1\nb\n")
    with pytest.raises(ValueError, match=r"odd.txt, line 3: the file ends after a formula"):
        load(odd)
    odd.write_text("a\na1\n|ab\n\n", encoding="utf-8-sig")
    assert load(odd)["answer"] == ["a1", ""] and load(odd)["problem"][0] == "a"
    empty.write_text("a\na1\n\nb1\n")
    with pytest.raises(ValueError, match=r"empty.txt, line 3: empty"):
        load(empty)
    wrong.write_text("a\na1\n&a\nb1\n")
    assert len(load(wrong)) == 2
    with pytest.raises(ValueError, match=r"wrong.txt, row 1: "):
        described(get_task("propositional"), load(wrong), str(wrong))
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match=r"bare holds no file that rows are read from: .*\.txt"):
        load(tmp_path / "bare")
    (tmp_path / "half" / ".parts").mkdir(parents=True)
    with pytest.raises(ValueError, match="unfinished run"):
        load(tmp_path / "half")
    Dataset.from_dict({"text": ["a"]}).to_parquet(str(tmp_path / "other.parquet"))
    with pytest.raises(ValueError, match="has no column 'problem', 'answer': it has 'text'"):
        load(tmp_path / "other.parquet")


def test_files_of_other_kinds_are_not_taken_for_two_lines(tmp_path):
    lines = [
        json.dumps(dict(zip(ROWS, row, strict=True))) for row in zip(*ROWS.values(), strict=True)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    assert load(tmp_path / "rows.jsonl").to_dict() == ROWS
    (tmp_path / "rows.csv").write_text("problem,answer\n&ab,a1b1\n|a!a,\n")
    assert load(tmp_path / "rows.csv").to_dict() == ROWS
    (tmp_path / "rows.xml").write_text("&ab\na1b1\n")
    with pytest.raises(ValueError, match=r"rows\.xml is of no kind that rows are read from: .*csv"):
        load(tmp_path / "rows.xml")


def test_damaged_and_empty_files_are_named(tmp_path):
    contents = {
        "empty.txt": b"", "no.txt": b"\xff\xfe", "empty.jsonl": b"", "no.jsonl": b'{"problem',
        "empty.parquet": b"", "no.parquet": b"PAR1 no PAR1",
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "train.parquet").write_bytes(b"PAR1 no PAR1")
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "dataset_dict.json").write_text("[]")
    for name in [*contents, "folder", "disk"]:
        with pytest.raises(
            ValueError,
            match=rf"{name}(/dataset_dict\.json is damaged: it|(, line 1)?:?) "
            r"(cannot be read: .|holds no|is no|byte)",
        ):
            load(tmp_path / name)
    Dataset.from_dict({"problem": ["a", None], "answer": ["", ""]}).to_parquet(
        tmp_path / "1.parquet"
    )
    with pytest.raises(ValueError, match=r"1.parquet, row 1: the column 'problem' holds nothing"):
        load(tmp_path / "1.parquet")
    Dataset.from_dict({"problem": ["a"], "answer": [1]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(
        ValueError, match=r"2.parquet, row 0: the column 'answer' holds 1, which is no text"
    ):
        load(tmp_path / "2.parquet")


def test_problems_of_training_are_those_of_its_splits_but_test(tmp_path):
    splits = {"train": ["| ! grant request"], "validation": ["=&aba"], "test": ["=a&bc"]}
    DatasetDict(
        {n: Dataset.from_dict({"problem": p, "answer": [""]}) for n, p in splits.items()}
    ).save_to_disk(str(tmp_path))
    assert sorted(training_problems(tmp_path)) == ["=&aba", "| ! grant request"]
