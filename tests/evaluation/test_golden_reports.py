"""What `evaluate` reports and `solve` prints of a released model, random answers and a solver."""

import json
from pathlib import Path

import pytest
from commands import hf_alpha

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "model_cards" / "small" / "propositional-streams-small"
GOLDEN = ROOT / "tests" / "golden" / "reports.json"
PAIRS = [("&a!b", "a1b0"), ("|a^bc", ""), ("&&ab!c", "a1b1c0"), ("=a!b", "a0b1"), ("^a^b^cd", ""),
         ("!|ab", "a0b0"), ("&x|y!x", "x1y1"), ("1", "")]  # fmt: skip
FORMULAS = ["request & !grant", "|a&bc", "a & !a", "& a", "^a^bc"]


def reports(out: Path) -> dict:
    """Table and reports of the model beside random answers; weights and versions left aside."""
    data = out / "pairs.jsonl"
    rows = ({"problem": problem, "answer": answer} for problem, answer in PAIRS)
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = hf_alpha("evaluate", MODEL, "--data", data, "--out", out / "report", "--top-n", 2,
                    "--covariance", 1)  # fmt: skip
    assert done.code == 0, done.err
    found = {}
    for name in ("propositional-streams-small", "random-assignment"):
        report = json.loads((out / "report" / name / "report.json").read_text())
        rows = (out / "report" / name / "records.jsonl").read_text().splitlines()
        kept = ("num_beams", "num_return_sequences", "max_new_tokens", "solver", "timeout", "seed")
        report["settings"] = {k: v for k, v in report["settings"].items() if k in kept}
        found[name] = {**report, "records": [json.loads(row) for row in rows]}
    return {"table": (out / "report" / "table.txt").read_text().splitlines(), "reports": found}


def solutions(*options: str) -> list[dict]:
    """What `solve --json` prints, without the seconds."""
    done = hf_alpha("solve", "--json", "--task", "propositional", *options, *FORMULAS)
    return [{**json.loads(line), "seconds": 0} for line in done.out.splitlines()]


def all_of_it(out: Path) -> dict:
    """Everything that is frozen."""
    return {
        **reports(out),
        "solver": solutions("--method", "solver"),
        "model": solutions("--method", "model", "--model", str(MODEL), "--top", "2"),
        "both": solutions("--model", str(MODEL)),
    }


@pytest.mark.slow
def test_reports_and_solutions_stay_as_they_are(tmp_path):
    assert all_of_it(tmp_path) == json.loads(GOLDEN.read_text())
