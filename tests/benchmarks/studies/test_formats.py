import gzip
import json

import pytest
import yaml

from benchmarks.studies.formats import FORMATS
from hf_alpha.data.formats import FORMATS as SHARED
from hf_alpha.data.formats import read_format as read
from hf_alpha.resources import resource_path


def read_format(name: str, where: str) -> list:
    """As for `data.format: benchmarks.studies.formats:NAME` in a recipe."""
    return read(FORMATS[name], where)


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
    with pytest.raises(
        ValueError,
        match=r"is not of the format '.*:folio': there is no 'label'",
    ):
        read_format("folio", str(file))
    file.write_text("[1]\n")
    with pytest.raises(
        ValueError,
        match=r"rows\.tsv is not of the format '.*:clutrr': list ind",
    ):
        read_format("clutrr", str(file))
    with pytest.raises(FileNotFoundError, match=r"no file nowhere to read as '.*:cola'"):
        read_format("cola", "nowhere")


@pytest.mark.parametrize(
    ("text", "words", "tags"),
    [
        ("I|PRON had_ a|DET routine|ADJ _surgery|V.LVC.full", "I had a routine surgery", "OBooI"),
        ("gave_ them a_lot|DET _the_run|V.VID .", "gave them a lot the run .", "BobiIIO"),
        ("got|V-v.stative~ a|DET ~bill|N look|V~for|P", "got a bill look for", "OOOOO"),
        ("taking_time|V.LVC~away_from|P-p.Locus it", "taking time away from it", "BIBIO"),
        ("a _ | ||PUNCT _|SYM ___ b", "a _ | | _ ___ b", "OOOOOOO"),
    ],
)
def test_expressions_of_streusle_are_read(tmp_path, text, words, tags):
    (tmp_path / "s").write_text(f"reviews-1\t{text}\n")
    found = {"source": words.split(), "target": list(tags)}
    assert read_format("streusle", str(tmp_path / "s")) == [found]
    (tmp_path / "s").write_text(f"reviews-1\t{text}\n{text}\n")
    with pytest.raises(ValueError, match="s, line 2: 1 cells, 2 are expected"):
        read_format("streusle", str(tmp_path / "s"))


def test_shipped_recipes_name_formats_that_there_are():
    root = resource_path("training")
    contents = [yaml.safe_load(file.read_text()) for file in root.rglob("*.yaml")]
    names = {(content.get("data") or {}).get("format") for content in contents} - {None}
    assert {name for name in names if ":" in name} <= set(FORMATS.values())
    assert names - set(FORMATS.values()) <= set(SHARED) and FORMATS["clutrr"] in names
