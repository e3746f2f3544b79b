"""An evaluation in the store: its table, and what was answered by names and tokens."""

import json
import shlex

import pytest
from scripts import load, store

EVALUATIONS = load("evaluations")
TABLE = "%  symbols:  1  2\ncorrect  m  50.0  100.0"


def test_an_evaluation_is_kept_with_its_command(tmp_path):
    out, kept = tmp_path / "small", tmp_path / "store"
    rate = {"exact": 0.0, "edit_distance": 0.5}
    report = {
        "overall": rate,
        "by_num_symbols": [{"num_symbols": 1, "count": 4, **rate}],
        "by_cell": [
            {"num_symbols": 1, "size": 3, "count": 3, "exact": 1 / 3, "correct": 2 / 3},
            {"num_symbols": 1, "size": 5, "count": 1, "exact": 1.0},
        ],
    }
    script = tmp_path / "evaluate.py"
    script.write_text(
        "import pathlib, sys\n"
        "out = pathlib.Path(sys.argv[2])\n"
        "(out / 'm').mkdir(parents=True)\n"
        f"(out / 'table.txt').write_text({TABLE + chr(10)!r})\n"
        f"(out / 'm' / 'report.json').write_text({json.dumps(report)!r})\n"
    )
    command = shlex.join(["python", str(script), "--out", str(out)])
    EVALUATIONS.main(["small", command, "--store", str(kept)])
    found = store.read("evaluations/small", kept)
    assert found["command"] == command and found["text"] == TABLE
    assert found["data"] == {
        "models": {"m": {"1": {"3": [2, 3], "5": [1, 1]}}},
        "edit_distance": {"m": {"1": 0.5}},
    }
    assert "date" in found["conditions"]


def test_a_command_without_a_place_is_refused(capsys):
    with pytest.raises(SystemExit):
        EVALUATIONS.main(["small", "hf-alpha evaluate"])
    assert "has no --out" in capsys.readouterr().err
