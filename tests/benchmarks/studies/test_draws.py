from pathlib import Path

import pytest
from tiny_studies import TINY

from benchmarks.studies.draws import Draws
from benchmarks.studies.run import reproduce


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "measure"),
    [("copying-neighboring_points", "edit_distance"), ("propositional-normal", "correct")],
)
def test_ten_draws_of_each_kind_of_random_parts(tmp_path, monkeypatch, row, measure):
    monkeypatch.chdir(tmp_path)
    table = Draws()
    names = [row.name for row in table.rows(TINY)]
    assert len(names) == 9 and row in names
    results = reproduce(table, TINY, [0], [row], Path("runs"), Path("out"), lambda _: None)
    (found,) = results.measured(row)
    low, mean, high, median = (
        found[f"{measure} {key}"] for key in ("minimum", "mean", "maximum", "median_rule")
    )
    assert low <= mean <= high and low <= median <= high and found[f"{measure} deviation"] >= 0
    assert ("edit_distance mean" in found) == row.startswith("copying")
    (reports,) = Path("runs/tiny/reports/draws").iterdir()
    assert len(list(reports.glob("draw-*"))) == 10
    settings = results.rows[row][0]["settings"]
    assert settings["model.random_method"] == f'"{row.partition("-")[2]}"'
