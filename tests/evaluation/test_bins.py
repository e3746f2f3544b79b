"""Ranges that share a column hold all numbers, in order, and about as many samples each."""

from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
from hypothesis import given

from hf_alpha.evaluation.bins import Bins


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
    assert Bins.of(range(20)).ranges == tuple((n, n) for n in range(20))
