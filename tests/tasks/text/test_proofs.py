"""Rules that lead from a fact to a goal: which answers are right."""

import pytest

from hf_alpha.tasks.text.proofs import check

SOURCE = "a -> b . c -> d . b -> c . b -> d . d -> a . fact : a . goal : d ."


@pytest.mark.parametrize("answer", ["a -> b ; b -> d", "a -> b ; b -> c ; c -> d", "a -> b;b -> d"])
def test_every_way_is_right(answer):
    assert check(SOURCE, answer) is True


@pytest.mark.parametrize(
    "answer",
    [
        "", "a -> d", "a -> b", "b -> d", "b -> d ; a -> b", "a -> b ; c -> d", "a -> b ; b -> d ;",
        "a -> b ; b -> d ; d -> a", "a -> b b -> d", "d -> b ; b -> a", "a b ; b d",
    ],
)  # fmt: skip
def test_wrong_answers(answer):
    assert check(SOURCE, answer) is False


@pytest.mark.parametrize("source", ["", "a -> b", "a -> b . fact : a .", SOURCE + " c"])
def test_sources_end_with_a_fact_and_a_goal(source):
    with pytest.raises(ValueError, match=r"fact : a1|goal : b2"):
        check(source, "a -> b")
