import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.ltl import satisfies

from hf_alpha.tasks import get_task
from hf_alpha.tasks.ltl import bounded, bounded_worker, spot, witness
from hf_alpha.tasks.ltl.grammar import LTL
from hf_alpha.tasks.ltl.lasso import decide
from hf_alpha.tasks.ltl.trace import read_trace, write_trace

TASK = get_task("ltl")
SEEDS = st.integers(0, 2**32)
needs_spot = pytest.mark.skipif(not spot.is_installed(), reason="needs Spot")

BINARY = ["&", "|", "^", "->", "<-", "<->", "U", "W", "R", "M"]


def infix(rng: random.Random, size: int, names: str) -> str:
    """A formula over every operator that infix has."""
    if size <= 1:
        return rng.choice([*names, *names, "0", "1"])
    if rng.random() < 0.4:
        return f"{rng.choice('!XFG')} ({infix(rng, size - 1, names)})"
    left = rng.randint(1, max(1, size - 2))
    return (
        f"({infix(rng, left, names)}) {rng.choice(BINARY)} ({infix(rng, size - 1 - left, names)})"
    )


def draw(rng: random.Random, size: int, names: str) -> list[str]:
    """Half the formulas are drawn as those of data, half have all operators."""
    if rng.random() < 0.5:
        return TASK.draw(rng, size, names, constant_priority=1.0)
    return LTL.parse(infix(rng, size, names), "infix")


def find(tokens, max_steps=None):
    return bounded.find_trace(tokens, TASK.symbols_in(tokens), max_steps=max_steps)


def shapes(most: int) -> list[tuple[int, int]]:
    return [(steps, loop) for steps in range(1, most + 1) for loop in reversed(range(steps))]


def satisfying_shape(tokens, symbols: list[str], most: int) -> tuple[int, int] | None:
    """The first shape of which some word satisfies a formula, by trying all words."""
    letters = [
        {s for s, true in zip(symbols, values, strict=True) if true}
        for values in product([False, True], repeat=len(symbols))
    ]
    for steps, loop in shapes(most):
        if any(satisfies(tokens, word, loop) for word in product(letters, repeat=steps)):
            return steps, loop
    return None


@given(SEEDS, st.integers(1, 14))
@settings(max_examples=150, deadline=None)
def test_it_finds_the_first_shape_that_trying_all_words_finds(seed, size):
    tokens = draw(random.Random(seed), size, "ab")
    symbols = TASK.symbols_in(tokens)
    found = bounded_worker.search(tokens, 3)
    shape = satisfying_shape(tokens, symbols, 3)
    assert (len(found[0]), found[1]) == shape if isinstance(found, tuple) else shape is None
    if isinstance(found, tuple):
        assert satisfies(tokens, list(map(set, found[0])), found[1])
        assert decide(tokens, find(tokens)) is True


def disagreement(tokens) -> str | None:
    """What Spot and the checks of traces say against the search; None if they agree."""
    try:
        trace = find(tokens, max_steps=8)
    except bounded.OpenError:
        return "no lasso of 8 steps" if spot.is_satisfiable(tokens) else None
    if trace is None:
        return "refuted, but satisfiable" if spot.is_satisfiable(tokens) else None
    return None if spot.holds(tokens, trace.steps, trace.loop) else write_trace(trace)


@needs_spot
def test_spot_agrees():
    rng = random.Random(0)
    formulas = [draw(rng, rng.randint(1, 25), "abcd") for _ in range(300)]
    assert [(tokens, said) for tokens in formulas if (said := disagreement(tokens))] == []


@needs_spot
@pytest.mark.slow
def test_spot_agrees_on_100_000_formulas():
    rng, undecided, refuted = random.Random(1), 0, 0
    for _ in range(100_000):
        tokens = draw(rng, rng.randint(1, 20), "abcde"[: rng.randint(1, 5)])
        try:
            assert (said := disagreement(tokens)) is None, (tokens, said)
        except (TimeoutError, spot.SolverCrashError):  # Spot's: of the search there are none
            undecided += 1
        refuted += bounded_worker.search(tokens, 8) is False
    print(f"0 differences; {refuted} refuted, Spot failed on {undecided}")
    assert undecided < 100


@given(SEEDS, st.integers(1, 30), st.sampled_from(["ab", "abcde", "abcdefghijkl"]))
@settings(max_examples=60, deadline=None)
def test_a_witness_is_as_good_as_the_targets_of_data(seed, size, names):
    """The same trace where tables choose the literals, and always one of the same shape."""
    tokens = draw(random.Random(seed), size, names)
    symbols = TASK.symbols_in(tokens)
    target = witness.shortest_witness(tokens, symbols)
    if target is None:
        return
    trace = find(tokens)
    assert (len(trace.steps), trace.loop) == (len(target.steps), target.loop)
    if len(trace.steps) * len(symbols) <= witness._TABLE_CUBES:
        assert trace == target


COUNTER = "!a & !b & !c & G(X a <-> !a) & G(X b <-> (b ^ a)) & G(X c <-> (c ^ (a & b)))"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("1", "{1}"),
        ("G F a & G F !a", "{a;!a}"),
        ("F a & G(a -> X G !a)", "a;{!a}"),
        ("a & X a & X X a & X X X a & X X X X a & X X X X X !a", "a;a;a;a;a;{!a}"),
        (COUNTER, 8),
        ("0", None),
        ("G F a & F G !a", None),
        (f"{COUNTER} & X X X X X X !(b & c)", None),  # refuted by the first steps
    ],
)
def test_examples(formula, expected):
    trace = find(LTL.parse(formula, "infix"), max_steps=10)
    if isinstance(expected, int):
        assert (len(trace.steps), trace.loop) == (expected, 0)
    else:
        assert trace == (expected and read_trace(expected))


def test_what_is_not_refuted_stays_open_and_ends_with_the_time():
    """A promise that is never kept: no number of steps refutes that it may be kept later."""
    tokens = LTL.parse("a U b & G !b", "infix")
    with pytest.raises(bounded.OpenError, match="at most 4 steps"):
        find(tokens, max_steps=4)
    with pytest.raises(TimeoutError):
        bounded.find_trace(tokens, ["a", "b"], timeout=0.2)
    assert write_trace(find(["a"])) == "{a}", "the next question has a process of its own"


def test_formulas_of_thousands_of_tokens():
    """Far beyond what a translation to an automaton takes."""
    rng = random.Random(3)
    names = [f"p{i}" for i in range(20)]
    tokens = [*["X"] * 5, rng.choice(names)]
    while len(tokens) < 2000:  # the sampler's tables are made for shorter ones
        tokens = ["&", *LTL.parse(infix(rng, 30, names), "infix"), *tokens]
        if bounded_worker.search(tokens, 8) in (False, None):
            tokens = ["|", "p0", *tokens]
    assert decide(tokens, find(tokens)) is True
    deep = find(["!"] * 10_000 + ["a"])
    assert write_trace(deep) == "{a}"


def test_a_word_that_is_no_witness_is_refused():
    with pytest.raises(ValueError, match="no lasso of 1 steps that returns to step 0"):
        witness.generalised(["&", "a", "X", "!", "a"], ["a"], [{"a"}], 0)
