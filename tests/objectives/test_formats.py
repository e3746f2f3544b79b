import gzip
import json

import pytest

from hf_alpha.objectives.formats import read_format


def test_benchmarks_files_are_read_as_they_were_given_out(tmp_path):
    clutrr = {
        "story": "[Ann]'s son [Ben] left.", "query": ["Ann", "Ben"], "target": "son",
        "task_name": "task_1.10", "genders": "Ann:female,Ben:male",
    }  # fmt: skip
    folio = {"premises": ["All cats purr.", "Tom is a cat."], "conclusion": "Tom purrs."}
    files = {
        "clutrr": json.dumps(clutrr),
        "folio": "\n".join(json.dumps({**folio, "label": x}) for x in ("Uncertain", "True")),
        "mrpc": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\t"A\tB "b" c\r\n',
        "cola": 'gj04\t0\t*\tHe "said so.\n',
        "sst2": "a gob\t0\n",
    }
    found = {}
    for name, text in files.items():
        with gzip.open(tmp_path / f"{name}.gz", "wt", encoding="utf-8", newline="") as file:
            file.write(text)
        found[name] = read_format(name, str(tmp_path / f"{name}.gz"))
    assert found["clutrr"] == [{
        "source": "Ann's son Ben left.", "pair": "Ann Ben", "target": "son", "k": 10,
        "people": ["Ann", "Ben"], "women": ["Ann"], "men": ["Ben"],
    }]  # fmt: skip
    assert [row["target"] for row in found["folio"]] == ["Unknown", "True"]
    assert found["folio"][0]["source"] == "All cats purr. Tom is a cat."
    assert found["mrpc"] == [{"source": '"A', "pair": 'B "b" c', "target": "1"}]
    assert found["cola"] == [{"source": 'He "said so.', "target": "0"}]
    assert found["sst2"] == [{"source": "a gob", "target": "0"}]


def test_files_of_another_format_are_named_by_line(tmp_path):
    file = tmp_path / "rows.tsv"
    file.write_text("one\ttwo\tthree\n")
    with pytest.raises(ValueError, match=r"rows\.tsv, line 1: 3 cells, 4 are expected"):
        read_format("cola", str(file))
    with pytest.raises(ValueError, match=r"rows\.tsv, line 1 is no JSON"):
        read_format("folio", str(file))
    file.write_text('{"premises": []}\n')
    with pytest.raises(ValueError, match="is not of the format 'folio': there is no 'label'"):
        read_format("folio", str(file))
    with pytest.raises(FileNotFoundError, match="no file nowhere to read as 'cola'"):
        read_format("cola", "nowhere")
