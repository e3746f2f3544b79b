import pytest
from commands import hf_alpha
from datasets import load_dataset


def test_generated_data_can_be_made_again_and_extended_nowhere(data):
    rows = load_dataset(str(data))
    assert sum(len(split) for split in rows.values()) <= 120
    assert {max(split["size"]) for split in rows.values()} == {6}
    arguments = ["--samples", 120, "--sizes", "1-6", "--symbols", 3, "--quiet"]
    again = hf_alpha("generate-data", data, *arguments)
    assert again.code == 0 and again.out.startswith(f"{data}: {len(rows['train'])} train, ")
    assert "seed is 0 there and 1 here" in (
        hf_alpha("generate-data", data, *arguments, "--seed", 1).error
    )


def test_hard_formulas(tmp_path):
    arguments = ["--task", "ltl", "--samples", 60, "--symbols", 2, "--sizes", "8-10", "--quiet"]
    done = hf_alpha("generate-data", tmp_path / "data", *arguments, "--hard", 0.5, "--workers", 2)
    assert done.code == 0, done.err
    rows = [row for rows in load_dataset(str(tmp_path / "data")).values() for row in rows]
    assert len(rows) == 60 and sum(row["witness_length"] > 1 for row in rows) >= 30


def test_a_grid_has_each_cell(tmp_path):
    folder, arguments = tmp_path / "grid", ["--grid", "--per-cell", 2, "--quiet"]
    arguments += ["--symbols", "1,3", "--sizes", "4,6"]
    half = hf_alpha("generate-data", folder, *arguments, "--shard", "2/2")
    assert half.out.startswith(f"{folder}: 1 parts made, 2 are missing; when all shards have ended")
    done = hf_alpha("generate-data", folder, *arguments, "--shard", "1/2")
    assert done.code == 0, done.err
    rows = load_dataset(str(folder))["test"]
    assert done.out == f"{folder}: {len(rows)} test\n"
    cells = list(zip(rows["num_symbols"], rows["size"], strict=True))
    assert set(cells) <= {(1, 4), (1, 6), (3, 6)} and cells.count((3, 6)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "x"], "'x' is no range of numbers: write 3, 1-8 or 1,2,5-7"),
        (["--sizes", "1,5"], "--sizes 1,5: without --grid sizes are one range"),
        (["--sizes", "0-3"], "from 1 on"),
        (["--targets", "best"], "unknown targets 'best': choose one of equivariant, papers"),
        (["--task", "chess"], "unknown task 'chess'"),
        (["--shard", "3"], "--shard 3: give the number of a share and of all, such as 3/16"),
        (["--shard", "0/4"], "shard must be one of 1/4 to 4/4, got 0/4"),
        (["--samples", "0"], "Invalid value for '--samples'"),
        (["--sample", "3"], "No such option"),
        (["--grid", "--samples", "5"], "--samples is for training data, and --grid makes test"),
        (["--per-cell", "5"], "--per-cell is for test data, which --grid makes: leave it out"),
        (["--grid", "--symbols", "9", "--sizes", "1-3"], "there is no problem with these settings"),
    ],
)
def test_data_that_cannot_be_made(tmp_path, arguments, message):
    done = hf_alpha("generate-data", tmp_path / "out", "--quiet", *arguments)
    assert message in done.error
