import pytest
from tiny_studies import TINY

from benchmarks.studies.top_n import COUNTS, TopN
from hf_alpha.evaluation import Report
from hf_alpha.resources import released_models


@pytest.mark.slow
def test_a_right_answer_among_more_is_found_more_often(tmp_path):
    """With a released model: what has hardly been trained finds none."""
    table = TopN()
    row = next(row for row in table.rows(TINY) if row.name == "propositional-relational-normal")
    folder = released_models()["propositional-relational-small"]
    found = table.measure(row, folder, TINY, tmp_path)
    rates = [found[f"top {count}"] for count in COUNTS]
    assert 0.5 < rates[0] == found["correct 1"] <= rates[1] <= rates[2] <= 1
    report = Report.load(tmp_path / "reports" / "grid-top-25" / folder.name)
    assert report.settings["num_beams"] == 25
    some = [any(verdict in ("exact", "correct") for verdict in r.verdicts) for r in report.records]
    assert {len(record.verdicts) for record in report.records} == {25}
    assert rates[2] == round(sum(some) / len(some), 6) > found["correct 25"] - 1e-6
