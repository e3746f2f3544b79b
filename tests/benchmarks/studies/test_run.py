from dataclasses import replace
from pathlib import Path

import pytest
from commands import study
from tiny_studies import TINY

from benchmarks.studies import FOLDER, store
from benchmarks.studies.encodings import Encodings
from benchmarks.studies.results import Results
from benchmarks.studies.run import reproduce
from benchmarks.studies.sizes import SIZES
from benchmarks.studies.tables import TABLES

ROWS = "propositional-learned-renamed,propositional-relational-reduced,propositional-random"


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """A folder in which three rows of a tiny table have been measured, by the command."""
    folder = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setitem(SIZES, "tiny", TINY)
        run = study("studies", "encodings", "--size", "tiny", "--seeds", "3", "--only", ROWS)
        assert run.code == 0, run.err
        listed = study("studies", "--size", "tiny", "--seeds", "3").out
    assert "encodings" in listed and "3 of 42 done" in listed and " h of training missing" in listed
    return folder


@pytest.fixture(autouse=True)
def there(done, monkeypatch):
    monkeypatch.chdir(done)


def rows_of() -> dict:
    rows = Results.of(FOLDER, "encodings", "tiny").rows
    return {row: {str(seed): entry for seed, entry in seeds.items()} for row, seeds in rows.items()}


def test_rows_have_numbers_and_how_they_were_made(done):
    text = (FOLDER / store.CELLS).read_text()
    assert str(done) not in text, "no place of this machine"
    rows = rows_of()
    assert sorted(rows) == sorted(ROWS.split(","))
    assert list(rows["propositional-random"]) == ["0"], "has no model, and so no seeds"
    entry = rows["propositional-relational-reduced"]["3"]
    assert entry["training"]["steps"] == 2 and entry["training"]["batch_size"] == 8
    assert 0 <= entry["training"]["hours"] < 0.1  # rounded to 0.4 s
    assert entry["settings"]["data.max_train_samples"] == "24"  # a tenth of 0.8 * 300
    assert entry["settings"]["training.seed"] == "3"
    assert entry["command"].endswith(
        "encodings --size tiny --seeds 3 --only propositional-relational-reduced"
    )
    assert {"hardware", "date", "versions"} <= entry.keys()


def test_what_is_measured(done):
    rows = rows_of()
    learned = rows["propositional-learned-renamed"]["3"]["measured"]
    relational = rows["propositional-relational-reduced"]["3"]["measured"]
    chance = rows["propositional-random"]["0"]["measured"]
    assert learned["correct 4"] is None and relational["correct 4"] is not None
    assert relational["correct more names"] == relational["correct 4"]
    assert relational["covariance 3"] == 1 and relational["covariance samples 3"] == 2
    assert learned["samples"] == relational["samples"] == chance["samples"] == TINY.samples
    assert learned["samples 3"] == relational["samples 3"] == chance["samples 3"] == 3
    assert "covariance 3" not in chance


def test_what_is_done_is_not_done_again(done):
    weights = "runs/reproduce/tiny/models/propositional-learned-renamed-3/model.safetensors"
    before = Path(weights).stat().st_mtime_ns
    file = FOLDER / store.CELLS
    text, said = file.read_text(), []
    reproduce(
        Encodings(), TINY, [3], ROWS.split(","), Path("runs/reproduce"), file.parent, said.append
    )
    assert said == [] and file.read_text() == text
    # A row that was lost is measured again, and its model is not trained again.
    lost = rows_of()["propositional-learned-renamed"]["3"]
    lines = text.splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "propositional-learned-renamed" not in line))
    reproduce(
        Encodings(), TINY, [3], ROWS.split(","), Path("runs/reproduce"), file.parent, said.append
    )
    assert said == ["encodings, 1 of 1: propositional-learned-renamed, seed 3"]
    found = rows_of()["propositional-learned-renamed"]["3"]
    assert {**found, "date": ""} == {**lost, "date": ""}
    assert Path(weights).stat().st_mtime_ns == before
    file.write_text(text)


def test_other_settings_are_refused_by_name(done):
    before = rows_of()
    for other, named in (
        (replace(TINY, per_names=5), "per_names: 3 -> 5"),
        (replace(TINY, steps={"propositional": 4}), "training.max_steps: 2 -> 4"),
    ):
        match = f"other settings: {named}; name another --out.*tiny/reports/"
        with pytest.raises(ValueError, match=match):
            reproduce(
                Encodings(),
                other,
                [3],
                ["propositional-learned-*"],
                Path("runs/reproduce"),
                FOLDER,
            )
    assert rows_of() == before


def test_the_command_names_what_there_is():
    assert "choose one of encodings" in study("studies", "encoding").error
    assert "choose one of cpu, full" in study("studies", "--size", "huge").error
    wrong = study("studies", "encodings", "--only", "ltl-stream")
    assert "no row is called 'ltl-stream'" in wrong.error and "ltl-streams-normal" in wrong.error
    listed = f"\n{study('studies').out}"
    assert [name for name in TABLES if f"\n{name} " not in listed] == []


MEASURED = {
    "propositional-relational": ("cost", {"ms 1", "ms 2", "ms 3", "ms 4"}),
    "propositional-t5": ("covariance", {"correct", "parameters", "covariance 1"}),
    "propositional-gpt2": ("covariance", {"correct", "parameters", "covariance 1"}),
    "copying-neighboring_points": ("draws", {"edit_distance minimum", "edit_distance maximum"}),
    "propositional-normal": ("draws", {"correct mean", "correct median_rule", "correct deviation"}),
    "copying-learned": ("copying", {"samples all", "distance as in training"}),
    "copying-random": ("copying", {"samples all", "distance as in training"}),
    "copying-dual_part-none": ("normalization", {"correct by names", "columns", "distance"}),
    "propositional-relational-fn-adacos": ("normalization", {"correct by names", "scale"}),
}
"""Row -> its table, and what is measured, among else."""


@pytest.mark.slow
@pytest.mark.parametrize("row", MEASURED)
def test_rows_of_other_tables_are_measured(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, keys = MEASURED[row]
    places = (Path("runs"), Path("out"), lambda _: None)
    (found,) = reproduce(TABLES[table], TINY, [0], [row], *places).measured(row)
    assert keys <= found.keys() and all(found[key] >= 0 for key in keys)
