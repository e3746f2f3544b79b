from pathlib import Path

from reproduce.tiny import TINY

from hf_alpha.reproduce.run import reproduce
from hf_alpha.reproduce.top_n import COUNTS, TopN


def test_more_answers_are_right_among_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = "propositional-relational-normal"
    results = reproduce(TopN(), TINY, [0], [row], Path("runs"), Path("out"), lambda _: None)
    (found,) = results.measured(row)
    assert found["top 1"] == found["correct 1"]
    rates = [found[f"top {count}"] for count in COUNTS]
    assert all(found[f"top {count}"] >= found[f"correct {count}"] for count in COUNTS)
    assert 0 < rates[-1] <= 1, "of 25 answers of any model to small formulas some are right"
    assert "| relational |" in TopN().render(results, TINY)
