"""Measures against values computed by hand, and what always holds between them."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.names_benchmark.questions import Kind
from hf_alpha.names_benchmark.scores import OUTCOMES, Asked, by_question, outcomes, score

TWO = ("seen", "misleading")


def table(*questions, kinds=TWO):
    """Answers of questions: of each kind a text, whose letters are answers; capitals are right."""
    return [
        Asked("s", number, Kind(kind), i, None if a == "-" else a, a.isupper())
        for number, rows in enumerate(questions)
        for kind, row in zip(kinds, rows, strict=True)
        for i, a in enumerate(row)
    ]


def test_by_hand():
    """Two questions, each with two namings of two kinds; `X`, `Y` are right answers, `w` wrong."""
    scores = score(table(("XY", "wX"), ("w-", "Xw")))
    assert (scores.questions, scores.namings) == (2, 4)
    seen, misleading = scores.kinds[Kind.SEEN], scores.kinds[Kind.MISLEADING]
    assert seen.right.mean == 2 / 4  # X Y | w -
    assert seen.changed.mean == 2 / 2  # Y from X, nothing from w
    assert seen.broken.mean == 0 and seen.mended.mean == 0
    assert seen.missing == 1 / 4
    assert misleading.right.mean == 2 / 4  # w X | X w
    assert misleading.changed.mean == 2 / 4  # w from X | X from w
    assert misleading.broken.mean == 1 / 4
    assert misleading.mended.mean == 1 / 4
    every = scores.all_kinds
    assert every.right.mean == 4 / 8 and every.changed.mean == pytest.approx(4 / 6)
    assert every.broken.mean == pytest.approx(1 / 6) == every.mended.mean
    # 3 different answers of 4, and 3 of 4 with "none" as one: 1 - 2/3 each
    assert scores.covariance.mean == pytest.approx(1 / 3)
    assert (scores.constant.mean, scores.always.mean, scores.ever.mean) == (0, 0, 1)


def test_question_by_question():
    first, second = by_question(table(("XX", "wY"), ("w-", "Xw")))
    same = {"suite": "s", "namings": 3}
    assert first == {**same, "question": 0, "right": True, "changed": 2, "broken": 1, "mended": 0,
                     "missing": 0}  # fmt: skip
    assert second == {**same, "question": 1, "right": False, "changed": 2, "broken": 0,
                      "mended": 1, "missing": 1}  # fmt: skip


def test_equal_averages_hide_changes():
    """The critique of averages: half of all answers are right with either kind."""
    scores = score(table(("X", "w"), ("w", "X")))
    assert scores.kinds[Kind.SEEN].right == scores.kinds[Kind.MISLEADING].right
    assert scores.kinds[Kind.MISLEADING].changed.mean == 1
    assert scores.kinds[Kind.SEEN].changed is None  # there is nothing beside the reference
    assert scores.always.mean == 0 and scores.covariance.mean == 0


two = st.text("XYwv-", min_size=2, max_size=2)
answers = st.lists(st.tuples(two, two), min_size=1, max_size=6)


@given(answers)
def test_what_always_holds(questions):
    asked = table(*questions)
    scores = score(asked)
    reference = sum(one.right for one in asked if one.is_reference) / len(questions)
    other = scores.kinds[Kind.MISLEADING]
    assert math.isclose(
        other.right.mean - reference, other.mended.mean - other.broken.mean, abs_tol=1e-9
    )
    shares = outcomes(asked)
    assert tuple(shares) == OUTCOMES and math.isclose(sum(shares.values()), 1)
    every = scores.all_kinds
    assert math.isclose(shares["broken"], every.broken.mean, abs_tol=1e-9)
    assert math.isclose(shares["mended"], every.mended.mean, abs_tol=1e-9)
    same = shares["same, right"] + shares["same, wrong"]
    assert math.isclose(1 - same, every.changed.mean, abs_tol=1e-9)
    assert scores.always.mean <= scores.kinds[Kind.SEEN].right.mean + 1e-9
    assert scores.always.mean <= other.right.mean + 1e-9
    assert scores.constant.mean <= scores.covariance.mean + 1e-9
    rows = by_question(asked)
    assert math.isclose(sum(row["changed"] for row in rows), every.changed.mean * 3 * len(rows))
    for share in (other.right, other.changed, scores.covariance):
        assert share.low - 1e-9 <= share.high


def test_intervals_are_over_questions():
    """Many namings of one question do not make it many questions; quantiles of a binomial."""
    assert score(table(*[("X", "X")] * 9)).always.low == 1
    one = score(table(*[("X" * 50, "X" * 50), ("w" * 50, "w" * 50)]))
    assert (one.kinds[Kind.SEEN].right.low, one.kinds[Kind.SEEN].right.high) == (0, 1)
    half = score(table(*[("X", "X"), ("w", "w")] * 50)).kinds[Kind.SEEN].right
    assert half.mean == 0.5 and abs(half.low - 0.40) < 0.02 and abs(half.high - 0.60) < 0.02
    assert half == score(table(*[("X", "X"), ("w", "w")] * 50)).kinds[Kind.SEEN].right


def test_outcomes():
    counts = Counter(
        {name: value for name, value in outcomes(table(("XY", "wX"))).items() if value}
    )
    assert counts == {"changed, still right": 1 / 3, "broken": 1 / 3, "same, right": 1 / 3}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ([], "no questions"),
        (table(("X", "X")) * 2, "asked twice"),
        (table(("X",), kinds=("unseen",)), "not asked with names seen"),
        ([*table(("X", "X")), Asked("s", 1, Kind.SEEN, 0, "X", True)], "in the ways of"),
    ],
)
def test_refused(asked, why):
    with pytest.raises(ValueError, match=why):
        score(asked)
