import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ltl import needs_spot, satisfies

from hf_alpha.logic.ltl import spot
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.ltl.lasso import counterexample, decide, is_contradictory, shape
from hf_alpha.logic.ltl.trace import Trace, read_trace
from hf_alpha.tasks import get_task

TASK = get_task("ltl")
SYMBOLS = "abc"
SEEDS = st.integers(0, 2**32)


def draw_formula(rng: random.Random, size: int) -> list[str]:
    return TASK.draw(rng, size, SYMBOLS, constant_priority=1.0)


def draw_trace(rng: random.Random) -> Trace:
    """Cubes, and now and then a disjunction."""
    steps = []
    for _ in range(rng.randint(1, 4)):
        cube = [name if rng.random() < 0.5 else f"!{name}" for name in SYMBOLS]
        kept = [literal for literal in cube if rng.random() < 0.7] or ["1"]
        step = "&" * (len(kept) - 1) + "".join(kept)
        steps.append(tuple(f"|{step}&{rng.choice(cube)}b" if rng.random() < 0.1 else step))
    return Trace(tuple(steps), rng.randrange(len(steps)))


@given(SEEDS, st.integers(1, 20), st.integers(1, 5), st.data())
def test_the_packed_evaluation_is_the_textbook_one(seed, size, steps, data):
    """32 random words at once, each of which the reference evaluates on its own."""
    rng = random.Random(seed)
    loop = data.draw(st.integers(0, steps - 1))
    tokens, words = draw_formula(rng, size), shape(steps, loop, 32)
    tables = {name: rng.getrandbits(32 * steps) for name in SYMBOLS}
    leaves = {name: (table, table) for name, table in tables.items()}
    must, may = words.evaluate(tokens, leaves)
    assert must == may
    for word in range(32):
        letters = [
            {name for name in SYMBOLS if tables[name] >> (position * 32 + word) & 1}
            for position in range(steps)
        ]
        assert bool(words.first(must) >> word & 1) == satisfies(tokens, letters, loop)


@given(SEEDS, st.integers(1, 25))
def test_unknown_values_are_never_decided_against_a_word(seed, size):
    """What must hold holds, and what may not hold does not, in every word of a partial one."""
    rng = random.Random(seed)
    tokens, steps = draw_formula(rng, size), rng.randint(1, 2)
    loop = rng.randrange(steps)
    known = {name: (rng.getrandbits(steps), rng.getrandbits(steps)) for name in SYMBOLS}
    leaves = {name: (value & ~open_, value | open_) for name, (value, open_) in known.items()}
    must, may = (table & 1 for table in shape(steps, loop, 1).evaluate(tokens, leaves))
    assert must <= may
    for filling in range(1 << 3 * steps):
        free = {name: filling >> i * steps for i, name in enumerate(SYMBOLS)}
        values = {
            name: (value & ~open_) | (free[name] & open_) for name, (value, open_) in known.items()
        }
        letters = [{n for n in SYMBOLS if values[n] >> position & 1} for position in range(steps)]
        assert must <= satisfies(tokens, letters, loop) <= may


@pytest.mark.parametrize(
    ("formula", "trace", "verdict"),
    [
        ("G F a", "{a;!a}", True),
        ("G a", "{1}", False),
        ("a | !a", "{1}", None),  # true, but not step by step
        ("(a | !a) & X X X X c", "b;{b;c}", None),  # which the words do not refute
        ("G(a -> X a)", "{1}", False),  # needs a word that changes from one round to the next
        ("X X b", "a;&ab;{c}", False),
        ("(1 U c) & (X b & (a U c))", "a;&ab;{c}", True),
        ("a", "{|ab}", None),
        ("a | b", "{|&ab&a!b}", True),  # the step says a
        ("G (a -> b)", "{|&ab&!ab}", True),
        ("F x", "{a}", False),
    ],
)
def test_examples(formula, trace, verdict):
    assert decide(LTL.parse(formula, "infix"), read_trace(trace)) is verdict


def test_a_counterexample_goes_round_once_where_that_is_enough():
    assert counterexample(LTL.parse("X b", "infix"), read_trace("a;{1}")) == read_trace("!b;{!b}")


@needs_spot
@given(SEEDS, st.integers(1, 25))
def test_what_is_decided_is_what_spot_says(seed, size):
    rng = random.Random(seed)
    tokens, trace = draw_formula(rng, size), draw_trace(rng)
    if any(map(is_contradictory, trace.steps)):
        return
    assert decide(tokens, trace) in (None, spot.holds(tokens, trace))


def test_contradictory_steps():
    many = [f"s{i}" for i in range(20)]
    steps = {"&a!a": True, "0": True, "|a!a": False, "1": False}
    for step, expected in {
        **{tuple(text): x for text, x in steps.items()},
        ("|",) * 19 + tuple(many): False,  # beyond tables, by SAT
        ("&",) * 19 + tuple(many): False,
    }.items():
        assert is_contradictory(step) is expected


def test_work_is_limited():
    formula = ["X"] * 50_000 + ["a"]
    assert decide(formula, read_trace("a;" * 200 + "{a}")) is None
    assert decide(formula, read_trace("{a}")) is True
    assert decide(["!"] * 50_000 + ["a"], read_trace("{a}")) is True
    # Not much of a table, but `until` goes over it once for each step.
    assert decide(["U", "a", "b"], read_trace("a;" * 20_000 + "{b}")) is None
    assert decide(["U", "a", "b"], read_trace("a;" * 1_000 + "{b}")) is True
