import itertools
import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.logic.ltl.grammar import LTL, LTL_WITHOUT_OR
from hf_alpha.logic.ltl.sampler import LtlSampler
from hf_alpha.logic.ltl.witness import shortest_witness
from hf_alpha.tasks import get_task

TASK = get_task("ltl")


def spot_size(tokens):
    """Size of a formula once Spot has built it, which removes trivial identities."""
    spot = pytest.importorskip("spot", exc_type=ImportError)
    names = {"0": "f", "1": "t", **{token: token for token in "!&XU"}}
    lbt = " ".join(names.get(token, f'"{token}"') for token in tokens)
    return len(spot.parse_prefix_ltl(lbt).f.to_str("lbt").split())


ltl_samplers = st.builds(
    lambda count, constants: LtlSampler(tuple("abcdefghij"[:count]), constants or (not count)),
    st.integers(0, 10),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)


@given(ltl_samplers, st.integers(1, 50), st.integers(0, 2**32))
def test_ltl_size_is_exact_and_spot_shrinks_nothing(sampler, size, seed):
    tokens = sampler.sample(random.Random(seed), size)
    assert len(tokens) == size == spot_size(tokens)
    assert LTL.parse(" ".join(tokens)) == LTL_WITHOUT_OR.parse(" ".join(tokens)) == tokens
    assert tokens == sampler.sample(random.Random(seed), size)


@given(ltl_samplers, st.integers(0, 20), st.integers(0, 2**32))
def test_ltl_exactly_k_symbols_even_where_every_leaf_is_needed(sampler, spare, seed):
    count = len(sampler.symbols)
    size = max(1, 2 * count - 1) + spare
    tokens = sampler.sample_exactly(random.Random(seed), size)
    assert set(sampler.symbols) <= set(tokens) and len(tokens) == size == spot_size(tokens)
    assert not sampler.is_feasible(2 * count, count + 1)


@pytest.mark.parametrize(
    ("symbols", "constants", "largest"), [("a", 1.0, 4), ("a", 0.0, 5), ("", 1.0, 6), ("ab", 0, 4)]
)
def test_every_ltl_formula_that_spot_keeps_is_drawn(symbols, constants, largest):
    sampler, rng = LtlSampler(tuple(symbols), constants), random.Random(0)
    for size in range(1, largest + 1):
        possible = set()
        for tokens in itertools.product("!&XU" + symbols + "01" * bool(constants), repeat=size):
            try:
                LTL.parse("".join(tokens), "compact")
            except ValueError:
                continue
            if spot_size(tokens) == size:
                possible.add(tokens)
        assert possible and sampler.is_feasible(size)
        assert {tuple(sampler.sample(rng, size)) for _ in range(4000)} == possible


def test_ltl_distribution_is_that_of_the_trees_that_spot_does_not_shrink():
    spot = pytest.importorskip("spot", exc_type=ImportError)
    priorities = {**dict.fromkeys(LTL_OPERATORS, 0), "false": 1, "true": 1}
    priorities |= {"not": 1, "X": 1, "U": 1, "and": 1}
    text = ",".join(f"{name}={weight}" for name, weight in priorities.items())
    options = {"tree_size": 12, "simplify": 0, "unique": False, "seed": 0}
    spots = (f.to_str("lbt") for f in spot.randltl(5, 40_000, ltl_priorities=text, **options))
    theirs = [SPOT_LEAF.sub("s", f).replace(" ", "") for f in spots]
    theirs = [f.replace("f", "0").replace("t", "1") for f in theirs if len(f) == 12]
    sampler, rng = LtlSampler(tuple("abcde"), constant_priority=1.0), random.Random(0)
    drawn = ["".join(sampler.sample(rng, 12)) for _ in range(10_000)]
    ours = [re.sub("[a-e]", "s", f) for f in drawn]
    assert len(theirs) > 10_000
    for seen in (str, lambda f: f[0], lambda f: [len(f) - sum(map(f.count, "01s"))], binary_splits):
        expected, actual = shares(map(seen, theirs)), shares(map(seen, ours))
        assert max(abs(expected[key] - actual[key]) for key in expected | actual) < 0.015
    leaves = shares(re.sub("[^a-e]", "", f) for f in drawn)
    assert all(abs(leaves[symbol] - 1 / 5) < 0.01 for symbol in "abcde")


@given(ltl_samplers, st.integers(1, 50), st.integers(0, 2**32))
def test_a_step_of_a_walk_keeps_the_size_and_spot_shrinks_nothing(sampler, size, seed):
    rng = random.Random(seed)
    tokens = start = sampler.sample(rng, size)
    for _ in range(10):
        tokens = sampler.vary(rng, tokens)
        assert len(tokens) == size == spot_size(tokens)
    assert start == sampler.sample(random.Random(seed), size)


def test_walks_from_hard_ltl_formulas_stay_as_they_are_distributed():
    """Ten steps each leave the shares as they are, and no formula is out of reach."""
    sampler, rng = LtlSampler(("a", "b"), constant_priority=1.0), random.Random(0)
    starts = [
        tokens for tokens in (sampler.sample(rng, 6) for _ in range(20_000)) if TASK.is_hard(tokens)
    ]
    ends = []
    for tokens in starts:
        for _ in range(10):
            varied = sampler.vary(rng, tokens)
            tokens = varied if TASK.is_hard(varied) else tokens
        ends.append(tokens)
    before, after = ({"".join(tokens) for tokens in side} for side in (starts, ends))
    assert len(before ^ after) < 0.02 * len(before | after)
    changed = sum(start != end for start, end in zip(starts, ends, strict=True))
    assert changed > 0.7 * len(starts)
    for seen in (itertools.chain.from_iterable, lambda side: ["".join(t[:2]) for t in side]):
        first, last = (
            Counter({key: n / len(side) for key, n in Counter(seen(side)).items()})
            for side in (starts, ends)
        )
        assert max(abs(first[key] - last[key]) for key in first | last) < 0.02


SPOT_LEAF = re.compile('"?p[0-9]+"?')
LTL_OPERATORS = ("not", "F", "G", "X", "equiv", "implies", "xor", "R", "U", "W", "M", "and", "or")


def shares(groups):
    counts = Counter(itertools.chain.from_iterable(groups))
    return Counter({key: count / counts.total() for key, count in counts.items()})


def binary_splits(tokens):
    """Left size of an until at the root; conjuncts are Spot's to order."""
    if tokens[0] != "U":
        return []
    missing = 1
    for index, token in enumerate(tokens[1:], start=1):
        missing += {"U": 1, "&": 1, "!": 0, "X": 0}.get(token, -1)
        if not missing:
            return [index]


@given(ltl_samplers, st.integers(1, 20), st.integers(0, 2**32))
def test_hard_ltl_formulas_are_those_without_a_witness_of_few_steps(sampler, size, seed):
    tokens = sampler.sample(random.Random(seed), size)
    trace = shortest_witness(tokens, list(dict.fromkeys(set(tokens) & set(sampler.symbols))))
    for hardness in range(1, 4):
        expected = trace is None or len(trace.steps) > hardness
        # Of a formula without any witness anything may be said.
        assert TASK.is_hard(tokens, hardness) == expected or trace is None


@pytest.mark.parametrize(
    ("formula", "hard"),
    [("&aX!a", True), ("&aU1!a", True), ("|aX!a", False), ("U!aa", False), ("!U1!a", False)],
)
def test_hard_ltl_formulas(formula, hard):
    assert TASK.is_hard(list(formula)) == hard
    many = [token for i in range(16) for token in ("&", f"s{i}")]  # tables take no more
    assert TASK.is_hard([*many, "!", "s0"]) and not TASK.is_hard(["&", "s16", *many, "!", "s0"])
