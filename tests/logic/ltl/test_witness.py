import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.ltl import needs_spot, satisfies

from hf_alpha.logic.ltl import spot, witness
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.ltl.lasso import decide
from hf_alpha.logic.ltl.trace import read_cube, write_trace
from hf_alpha.tasks import get_task

TASK = get_task("ltl")
SEEDS = st.integers(0, 2**32)


def draw(seed: int, size: int, symbols: str) -> list[str]:
    return TASK.draw(random.Random(seed), size, symbols, constant_priority=1.0)


def find(tokens):
    return witness.shortest_witness(tokens, TASK.symbols_in(tokens))


@given(SEEDS, st.integers(1, 30))
def test_no_literal_can_be_left_out(seed, size):
    tokens = draw(seed, size, "abcdefg")
    trace = find(tokens)
    if trace is None:
        return
    for index, step in enumerate(trace.steps):
        cube = read_cube(step)
        for dropped in cube:
            rest = witness.cube_step([item for item in cube.items() if item[0] != dropped])
            steps = (*trace.steps[:index], rest, *trace.steps[index + 1 :])
            assert decide(tokens, witness.Trace(steps, trace.loop)) is not True


def read_once(rng: random.Random, symbols: str) -> list[str]:
    """A random formula of and, or and not in which each symbol occurs once."""
    if len(symbols) == 1:
        return rng.choice([[symbols], ["!", symbols]])
    cut = rng.randint(1, len(symbols) - 1)
    parts = read_once(rng, symbols[:cut]), read_once(rng, symbols[cut:])
    return [*rng.choice(["&", "|", "!&", "!|"]), *parts[0], *parts[1]]


def words_of(steps, symbols):
    """All words of a symbolic trace whose steps are partial assignments, one by one."""
    letters = [
        [
            {symbol for symbol, value in zip(symbols, values, strict=True) if value}
            for values in product(*([cube[s]] if s in cube else [False, True] for s in symbols))
        ]
        for cube in map(read_cube, steps)
    ]
    return product(*letters)


@pytest.mark.parametrize(("steps", "symbols"), [(1, 11), (1, 13), (2, 6), (2, 7)])
def test_witnesses_of_large_shapes_are_minimal(steps, symbols):
    """Where each symbol counts once a step, what is proved is what holds in all words."""
    rng, names = random.Random(0), "abcdefghijklm"[:symbols]
    assert steps * symbols > witness._TABLE_CUBES
    left_out = 0
    for _ in range(8):
        tokens = read_once(rng, names)
        if steps == 2:
            tokens = [*"&&aX!aX", *read_once(rng, names[1:])]
            tokens = ["&", *read_once(rng, names[1:]), *tokens]
        trace = find(tokens)
        assert len(trace.steps) == steps
        left_out += steps * symbols - sum(len(read_cube(step)) for step in trace.steps)
        assert all(satisfies(tokens, word, trace.loop) for word in words_of(trace.steps, names))
        for index, step in enumerate(trace.steps):
            for dropped in read_cube(step):
                rest = [item for item in read_cube(step).items() if item[0] != dropped]
                fewer = list(trace.steps)
                fewer[index] = witness.cube_step(rest)
                words = words_of(fewer, names)
                assert not all(satisfies(tokens, word, trace.loop) for word in words)
    assert left_out > 8


@given(SEEDS, st.integers(5, 30))
@settings(max_examples=30)
def test_tables_and_sat_find_the_same_shape(seed, size):
    tokens = draw(seed, size, "abc")
    symbols = TASK.symbols_in(tokens)
    by_table = find(tokens)
    limits = witness._TABLE_WORDS, witness._TABLE_CUBES
    try:
        witness._TABLE_WORDS = witness._TABLE_CUBES = -1
        by_sat = witness.shortest_witness(tokens, symbols)
    finally:
        witness._TABLE_WORDS, witness._TABLE_CUBES = limits
    assert (by_sat is None) == (by_table is None)
    if by_sat is not None and by_table is not None:
        assert (len(by_sat.steps), by_sat.loop) == (len(by_table.steps), by_table.loop)
        assert decide(tokens, by_sat) is decide(tokens, by_table) is True


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("1", "{1}"),
        ("0", None),
        ("a & !a", None),
        ("F a", "{a}"),
        ("a & X !a", "a;{!a}"),
        ("G F a & G F !a", "{a;!a}"),
        ("a | b", "{a}"),
        ("a | !a", "{a}"),  # {1} is not proved
        ("!a | b", "{!a}"),
        ("!b & !a", "{&!b!a}"),
        ("a & X a & X X a & X X X a & X X X X !a", "a;a;a;a;{!a}"),
        ("a & X a & X X a & X X X a & X X X X a & X X X X X !a", None),
    ],
)
def test_examples(formula, expected, monkeypatch):
    tokens = LTL.parse(formula, "infix")
    trace = find(tokens)
    assert (None if trace is None else write_trace(trace)) == expected
    monkeypatch.setattr(witness, "_TABLE_WORDS", -1)
    monkeypatch.setattr(witness, "_TABLE_CUBES", -1)
    by_sat = find(tokens)
    assert (by_sat is None) == (trace is None)
    assert by_sat is None or (len(by_sat.steps), by_sat.loop) == (len(trace.steps), trace.loop)


@needs_spot
def test_spot_agrees_on_satisfiability():
    rng = random.Random(0)
    for _ in range(100):
        tokens = TASK.draw(rng, rng.randint(1, 30), "abcde", constant_priority=1.0)
        trace = find(tokens)
        assert (trace is not None) == spot.is_satisfiable(tokens), tokens
        if trace is not None:
            assert spot.holds(tokens, trace)
