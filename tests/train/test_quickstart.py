"""The tour, in a few steps, and what it says in the end."""

from pathlib import Path

import pytest
from commands import hf_alpha
from pictures import is_picture

from hf_alpha.evaluation.report import Record, Report
from hf_alpha.recipe import read_recipe
from hf_alpha.train.quickstart import ENCODINGS, NAMES, closing


@pytest.mark.slow
def test_the_tour_shows_more_names_than_training_has(tmp_path: Path):
    done = hf_alpha("quickstart", "--output", tmp_path / "tour", "--steps", 2, "--samples", 2)
    assert done.code == 0, done.err
    folder = tmp_path / "tour"
    table = (folder / "table.txt").read_text()
    assert table.strip() in done.out
    header = next(line for line in table.splitlines() if "symbols:" in line).split()
    assert header[2:] == [*map(str, NAMES), "all"]
    for name in (*ENCODINGS, "copy of the input"):
        assert f" {name} " in table
    assert is_picture(folder / "curves.png") and "For example swap " in done.out
    # What is left there is a recipe to start from.
    assert read_recipe(folder / "swap.yaml").data.train == str(folder / "train.jsonl")
    assert (folder / "train.jsonl").is_file()
    *_, shown, more, renamed, _, last = done.out.splitlines()
    assert shown == "Shown:   training had at most 6 names in a problem, the test has more."
    assert more.startswith("         Right answers with more: relational ")
    assert "relational 100 %" in renamed
    assert last == f"         hf-alpha train {folder / 'swap.yaml'}"
    assert not done.err.strip()


def test_only_problems_with_more_names_than_training_count():
    records = [
        Record(index, "x", "y", names, 3, ("y",), (verdict,))
        for index, (names, verdict) in enumerate(
            [(3, "wrong"), (4, "correct"), (5, "exact"), (6, "wrong"), (9, "wrong")]
        )
    ]
    shown, more, renamed = closing([Report("ours", {}, records)], 3).splitlines()
    assert "at most 3 names" in shown
    assert more.strip() == "Right answers with more: ours 50 %."
    assert renamed.strip() == "Same answer when names are renamed: not measured."
