"""What a tour says in the end is what its reports say."""

from hf_alpha.evaluation.report import Record, Report
from hf_alpha.tours.closing import closing


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
