import json
import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.evaluation import AlphaCovariance, Rates, Record, Report, table
from hf_alpha.evaluation.covariance import CovarianceSample
from hf_alpha.evaluation.report import OUTCOMES, OUTSIDE, Bins, lengths_table
from hf_alpha.tasks import Verdict

DASH = "\N{EN DASH}"
verdicts = st.sampled_from([str(verdict) for verdict in Verdict])


@st.composite
def reports(draw):
    found = draw(st.lists(st.none() | st.lists(verdicts, min_size=2, max_size=2), max_size=30))
    records = []
    for index, given_verdicts in enumerate(found):
        records.append(
            Record(
                index,
                "&ab",
                draw(st.none() | st.just("a1b1")),
                draw(st.integers(0, 4)),
                draw(st.integers(1, 6)),
                None if given_verdicts is None else ("a1", "é\n\u2028"),
                (OUTSIDE,) if given_verdicts is None else tuple(given_verdicts),
                draw(st.none() | st.integers(0, 9)),
                {"witness_length": draw(st.none() | st.integers(1, 5))},
            )
        )
    return Report("a model", {"num_beams": 3}, records)


@settings(max_examples=30)
@given(reports())
def test_rates_add_up_in_every_grouping(report):
    for groups in (report.by_num_symbols, report.by_size, report.by_cell):
        assert sum(rates.count for rates in groups.values()) == len(report.records)
        assert list(groups) == sorted(groups)
        for name in OUTCOMES:
            total = sum(rates.outcomes[name] for rates in groups.values())
            assert total == report.overall.outcomes[name]
        for rates in groups.values():
            assert math.isclose(sum(rates.rate(name) for name in OUTCOMES if name != "exact"), 1)
            assert rates.exact <= rates.correct <= rates.top_n <= 1
    right = [r for r in report.records if r.outcome in ("exact", "correct")]
    if report.records:
        assert report.overall.correct == len(right) / len(report.records)
    known = [r for r in report.records if r.facts["witness_length"] is not None]
    by_fact, pooled = report.by_fact("witness_length"), report.by_fact("witness_length", 3)
    assert sum(rates.count for rates in by_fact.values()) == len(known)
    assert pooled.keys() <= {1, 2, 3}
    assert report.facts == (["witness_length"] if known else [])
    if known:
        assert pooled.get(3, Rates.of([])) == Rates.of(
            r for r in known if r.facts["witness_length"] >= 3
        )


@settings(max_examples=30)
@given(reports())
def test_round_trip(tmp_path_factory, report):
    report.alpha_covariance = AlphaCovariance(
        (CovarianceSample(0, 2, 20, 5, 3, 3, 3),), {1: "has a single renaming"}, 5, 7
    )
    report.warnings = ["few problems"]
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert Report.from_dict(data) == report
    folder = tmp_path_factory.mktemp("report")
    report.save(folder)
    report.save(folder)
    assert Report.load(folder) == report
    assert sorted(path.name for path in folder.iterdir()) == ["records.jsonl", "report.json"]
    assert "records" not in json.loads((folder / "report.json").read_text())


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no report\.json"):
        Report.load(tmp_path)
    with pytest.raises(ValueError, match="unknown rate 'precision'"):
        Rates.of([]).rate("precision")
    assert not Rates.of([]).is_outside
    right = record(0, 1, "exact")
    assert Rates.of([replace(right, distance=0)]).to_dict()["edit_distance"] == 0
    assert "edit_distance" not in Rates.of([right]).to_dict()


def test_reasons_for_no_answer_are_told_the_most_frequent_first():
    reports = [
        Report(name, {}, [
            replace(record(i, 1, "malformed"), answers=(), reason=reason)
            for i, reason in enumerate([*found, None])
        ])
        for name, found in (("one", []), ("two", ["too long", "late", "late"]), ("three", ["late"]))
    ]  # fmt: skip
    assert list(reports[1].reasons.items()) == [("late", 2), ("too long", 1)]
    assert table(reports).splitlines()[-2:] == [
        "no answer of two to 3 of 4 problems: 2 late, 1 too long",
        "no answer of three to 1 of 2 problems: 1 late",
    ]


def record(index: int, num_symbols: int, *found: str) -> Record:
    answers = None if found == (OUTSIDE,) else tuple("a1" for _ in found)
    return Record(index, "a", "a1", num_symbols, 1, answers, found)


def test_table():
    vanilla = Report("vanilla", {}, [
        record(0, 1, "exact", "wrong"), record(1, 1, "wrong", "correct"),
        record(2, 1, "wrong", "wrong"), record(3, 4, OUTSIDE), record(4, 4, OUTSIDE)])  # fmt: skip
    other = Report("converted", {}, [
        record(0, 1, "correct"), record(1, 1, "exact"), record(2, 1, "exact"),
        record(3, 4, "malformed"), record(4, 4, "correct")])  # fmt: skip
    other.alpha_covariance = AlphaCovariance(
        (CovarianceSample(0, 4, 24, 24, 1, 24, 24),), {}, None, 0
    )
    assert table([vanilla, other]).splitlines() == [
        "%                 symbols:       1      4    all",
        "------------------------------------------------",
        f"correct           vanilla     33.3      {DASH}   20.0",
        "                  converted  100.0   50.0   80.0",
        f"exact             vanilla     33.3      {DASH}   20.0",
        "                  converted   66.7    0.0   40.0",
        f"top_n             vanilla     66.7      {DASH}   40.0",
        "                  converted  100.0   50.0   80.0",
        "alpha_covariance  converted         100.0  100.0",
        "samples                          3      2      5",
        "alpha-covariance: 1 problem a column, all renamings of each",
    ]
    assert "correct" not in table([vanilla], metrics=["exact"])

    def measured(*symbols: int, skipped: int = 0, seed: int = 0) -> AlphaCovariance:
        samples = (CovarianceSample(i, k, 24, 12, 1, 12, 12) for i, k in enumerate(symbols))
        return AlphaCovariance(tuple(samples), dict.fromkeys(range(skipped), "outside"), 12, seed)

    vanilla.alpha_covariance = measured(1, 1, skipped=2)
    other.alpha_covariance = measured(1, 1, 4, 4)
    line = "alpha-covariance: 2 problems a column, at most 12 renamings each (seed 0)"
    assert table([vanilla, other]).endswith(f"\n{line}; vanilla skipped 2 of 4")
    assert f"alpha_covariance  vanilla    100.0      {DASH}  100.0" in table([vanilla, other])
    vanilla.alpha_covariance = measured(1, seed=3)
    assert table([vanilla, other]).splitlines()[-2:] == [
        "alpha-covariance of vanilla: 1 problem a column, at most 12 renamings each (seed 3)",
        "alpha-covariance of converted: 2 problems a column, at most 12 renamings each (seed 0)",
    ]
    other.alpha_covariance = measured(1, 1, 4)
    assert "\nalpha-covariance: 1 to 2 problems a column" in table([other])

    # Answers that no renaming can change are counted, where a report knows of them.
    assert "no name" not in table([other])
    found = [CovarianceSample(i, 1, 24, 12, 1, raw, named) for i, (raw, named) in
             enumerate([(12, 12), (1, 12), (1, 0)])]  # fmt: skip
    other.alpha_covariance = AlphaCovariance(tuple(found), {}, 12, 0)
    line = "no name in any answer: converted 1 of 3 problems"
    assert table([vanilla, other]).endswith(f"\n{line}")
    other.alpha_covariance = AlphaCovariance(tuple(found[:2]), {}, 12, 0)  # one is constant
    assert "no name" not in table([vanilla, other])


@pytest.mark.parametrize(
    ("changes", "found", "measure", "expected"),
    [
        ({}, ["exact"], "edit_distance", "correct exact"),
        ({"target": None}, ["correct", "wrong"], "correct", "correct top_n"),
        ({"distance": 1}, ["exact"], "edit_distance", "edit_distance correct"),
        ({"distance": 1}, ["exact"], "correct", "correct edit_distance"),
        ({"distance": 1}, ["correct"], "edit_distance", "edit_distance correct exact"),
    ],
)
def test_metrics_are_those_that_say_something(changes, found, measure, expected):
    report = Report("one", {}, [replace(record(0, 1, *found), **changes)])
    lines = table([report], measure=measure).splitlines()[2:]
    words = [line.split()[0] for line in lines]
    assert " ".join(words[: words.index("samples")]) == expected


def test_facts_have_a_block_of_their_own():
    found = [
        ("exact", 1),
        ("wrong", 1),
        ("correct", 2),
        ("exact", 3),
        ("wrong", 7),
        ("wrong", None),
    ]
    records = [
        Record(i, "Xa", None, 1, 2, ("",), (verdict,), None, {"witness_length": length})
        for i, (verdict, length) in enumerate(found)
    ]
    report = Report("ltl", {}, records)
    report.alpha_covariance = AlphaCovariance(
        (CovarianceSample(0, 1, 24, 24, 1, 24, 24),), {}, None, 0
    )
    rows = report.to_dict()["by_witness_length"]
    assert [(row["witness_length"], row["count"]) for row in rows] == [
        (1, 2),
        (2, 1),
        (3, 1),
        (7, 1),
    ]
    assert table([report]).splitlines()[6:] == [
        "",
        "%        witness length:     1      2    3+   all",
        "-------------------------------------------------",
        "correct  ltl              50.0  100.0  50.0  50.0",
        "samples                      2      1     2     6",
    ]


def test_rates_by_length_and_names_are_told_apart():
    """Long rows are wrong but for the most names, and the table says so."""
    records = [
        Record(0, "x", "y", names, size, ("y",), ("exact" if 10 in (size, names) else "wrong",))
        for names in (2, 3, 10)
        for size in (10, 50)
    ]
    table = lengths_table([Report("one", {}, records)], "correct", columns=2, rows=2)
    rows = [line.split() for line in table.splitlines()]
    assert rows[0] == ["correct", "tokens:", "10", "50", "all"]
    assert rows[2] == ["one", "2", "names", "100.0", "0.0", "50.0"]
    assert rows[3] == ["3-10", "names", "100.0", "50.0", "75.0"]
    for same in ({"size": 10}, {"num_symbols": 2}):
        report = Report("one", {}, [replace(record, **same) for record in records])
        assert lengths_table([report], "correct") == ""


@given(st.lists(st.integers(0, 40), min_size=1, max_size=200), st.integers(1, 8))
def test_every_number_lies_in_one_range(numbers, most):
    bins = Bins.of(numbers, most)
    assert len(bins.ranges) <= most
    ends = [end for bounds in bins.ranges for end in bounds]
    assert ends == sorted(ends) and all(a < b for (_, a), (b, _) in pairwise(bins.ranges))
    for number in numbers:
        (first,) = {a for a, b in bins.ranges if a <= number <= b}
        assert bins.first(number) == first
    counts = Counter(map(bins.first, numbers))
    assert counts.keys() == bins.labels.keys()
    if len(set(numbers)) > most:
        # A range is fuller than its share by no more than one number at each of its ends.
        largest = max(Counter(numbers).values())
        assert max(counts.values()) <= len(numbers) / most + largest


def test_few_numbers_have_a_column_each():
    assert Bins.of([3, 1, 1, 7], 3).labels == {1: "1", 3: "3", 7: "7"}
    assert Bins.of([3, 1, 1, 7], 2).labels == {1: "1", 3: "3-7"}
    assert len(Bins.of([1] * 8 + [2, 3], 3).ranges) == 3
    assert Bins.of(range(20)).ranges == tuple((n, n) for n in range(20))
