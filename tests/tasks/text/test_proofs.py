"""Rules that lead from a fact to a goal: which answers are right."""

import random
from itertools import product

import pytest

from hf_alpha.tasks.text.proofs import UNSEEN, check, draw

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


def test_one_way_only():
    """A name is left of one rule at most, and the way goes on behind some goals."""
    goes_on = 0
    for seed, steps in product(range(30), range(1, 5)):
        row = draw(random.Random(seed), UNSEEN, 12, steps)
        *rules, _fact, goal = row["source"].removesuffix(" .").split(" . ")
        lefts = [rule.split()[0] for rule in rules]
        assert len(set(lefts)) == len(lefts)
        goes_on += goal.split()[-1] in lefts
        assert check(row["source"], row["target"]) is True
        assert row["target"].count("->") == steps
    assert 20 < goes_on < 120
