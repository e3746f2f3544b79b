"""Bounded search by trying all words, and against Spot; what both decide in turns."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ltl import needs_spot, satisfies

from hf_alpha.logic.ltl import bounded_worker, decide, lasso, spot, witness
from hf_alpha.logic.ltl.grammar import LTL, LTL_OF_SOLVERS
from hf_alpha.logic.ltl.trace import read_trace, write_trace
from hf_alpha.tasks import get_task
from hf_alpha.tasks.solver_process import SolverProcess

TASK = get_task("ltl")
SEEDS = st.integers(0, 2**32)
BINARY = ["&", "|", "^", "->", "<-", "<->", "U", "W", "R", "M"]


def infix(rng: random.Random, size: int, names: str) -> str:
    """A formula over every operator that infix has."""
    if size <= 1:
        return rng.choice([*names, *names, "0", "1"])
    if rng.random() < 0.4:
        return f"{rng.choice('!XFG')} ({infix(rng, size - 1, names)})"
    left = rng.randint(1, max(1, size - 2))
    sides = infix(rng, left, names), infix(rng, size - 1 - left, names)
    return f"({sides[0]}) {rng.choice(BINARY)} ({sides[1]})"


def draw(rng: random.Random, size: int, names: str) -> list[str]:
    """Half the formulas are drawn as those of data, half have all operators."""
    if rng.random() < 0.5:
        return TASK.draw(rng, size, names, constant_priority=1.0)
    return LTL.parse(infix(rng, size, names), "infix")


def find(tokens):
    return decide.find_trace(tokens, TASK.symbols_in(tokens))


def satisfying_shape(tokens, symbols: list[str], most: int) -> tuple[int, int] | None:
    """The first shape of which some word satisfies a formula, by trying all words."""
    letters = [
        {s for s, true in zip(symbols, values, strict=True) if true}
        for values in itertools.product([False, True], repeat=len(symbols))
    ]
    for steps, loop in witness._SHAPES:
        words = itertools.product(letters, repeat=steps if steps <= most else 0)
        if any(word and satisfies(tokens, word, loop) for word in words):
            return steps, loop
    return None


@given(SEEDS, st.integers(1, 14))
def test_it_finds_the_first_shape_that_trying_all_words_finds(seed, size):
    tokens = draw(random.Random(seed), size, "ab")
    word = bounded_worker.search(tokens, 3)
    shape = satisfying_shape(tokens, TASK.symbols_in(tokens), 3)
    assert (len(word[0]), word[1]) == shape if isinstance(word, tuple) else shape is None
    if isinstance(word, tuple):
        assert satisfies(tokens, list(map(set, word[0])), word[1])
        assert lasso.decide(tokens, find(tokens)) is True


@given(SEEDS, st.integers(1, 30), st.sampled_from(["ab", "abcde", "abcdefghijkl"]))
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
    trace = find(LTL.parse(formula, "infix"))
    if isinstance(expected, int):
        assert (len(trace.steps), trace.loop) == (expected, 0)
    else:
        assert trace == (expected and read_trace(expected))


def test_what_is_not_refuted_stays_open_and_ends_with_the_time():
    """A promise that is never kept: no number of steps refutes that it may be kept later."""
    tokens = LTL.parse("a U b & G !b", "infix")
    assert bounded_worker.search(tokens, 4) is None
    with pytest.raises(TimeoutError):
        decide.find_trace(tokens, ["a", "b"], timeout=0.2)
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
    assert lasso.decide(tokens, find(tokens)) is True
    assert write_trace(find(["!"] * 10_000 + ["a"])) == "{a}"


def test_a_large_formula_is_answered_with_all_literals():
    names = [f"n{number}" for number in range(1_500)]
    problem = TASK.read(" & ".join(f"({a} | {b})" for a, b in itertools.pairwise(names)))
    decision = TASK.decide(problem)
    assert {*names} <= {*decision.answer.split()}
    assert TASK.check(problem, decision.answer).is_correct


@needs_spot
def test_decisions_agree_with_spot():
    rng = random.Random(0)
    for _ in range(200):
        tokens = draw(rng, rng.randrange(1, 26), "abcd")
        problem = TASK.read(LTL.format(tokens, "infix"))
        decision = TASK.decide(problem)
        assert decision.unsatisfiable is not spot.is_satisfiable(problem.tokens)
        assert decision.unsatisfiable is (decision.answer is None)
        if decision.core:
            assert TASK.decide(" & ".join(f"({part})" for part in decision.core)).unsatisfiable
        elif not decision.unsatisfiable:
            assert TASK.check(problem, decision.answer).is_correct


@needs_spot
@pytest.mark.parametrize(
    ("problem", "core"),
    [
        ("G(a <-> X !a) & F(a & X a) & b & G c", ("G (a <-> X !a)", "F (a & X a)")),
        ("(a U b) & G !b & G(a -> F b)", ("a U b", "G !b")),
        ("(a U b) & G(b <-> a) & G !b & F c", ("a U b", "G !b")),
    ],
)
def test_nothing_of_a_core_can_be_left_out(problem, core):
    """Spot refutes the parts: bounded search, which may refute the whole, never ends with them."""
    assert TASK.decide(problem).core == core


@needs_spot
@pytest.mark.parametrize("operator", ["<->", "^"])
def test_chains_that_double_with_each_operator_are_solved(operator):
    names = [f"n{number}" for number in range(24)]
    chain, back = (f" {operator} ".join(row) for row in (names, names[::-1]))
    problem = TASK.read(chain)
    decision = TASK.decide(problem)
    assert TASK.check(problem, decision.answer, solver="lasso").is_correct
    assert TASK.check(problem, decision.answer, solver="spot").is_correct
    assert TASK.has_answer(problem) and problem.symbols == tuple(names)
    for changed in range(3):  # equal values are an even number of changes away from a right answer
        answer = " & ".join("!" * (place < changed) + name for place, name in enumerate(names))
        is_right = changed % 2 == (operator == "^")
        assert TASK.check(problem, f"{{{answer}}}").is_correct is is_right
        assert TASK.explain(problem, f"{{{answer}}}").rows[-1].cells == (is_right,)
    assert TASK.decide(f"G ({chain}) & F !({back}) & c").core == (f"G ({chain})", f"F !({back})")


FRAGILE = f"""
import os, runpy, signal, time

real = runpy.run_path({bounded_worker.__file__!r})
prepare = real["prepare"]

def search(tokens, *rest):
    if "dies" in tokens:
        os.kill(os.getpid(), signal.SIGKILL)
    if "hangs" in tokens:
        time.sleep(60)
    return real["search"](tokens, *rest)

SERVED = {{"search": search}}
"""


@pytest.fixture
def fragile(tmp_path, monkeypatch):
    """Bounded search, and processes of it, that some names kill or hang."""
    worker = tmp_path / "worker.py"
    worker.write_text(FRAGILE)
    processes = [SolverProcess(worker) for _ in range(2)]
    monkeypatch.setattr(decide, "_idle", [*processes])
    yield
    for process in processes:
        process.stop()


@needs_spot
def test_a_killed_solver_costs_its_turn_alone(fragile, monkeypatch):
    """The other one decides; without either, the reasons are told."""
    assert TASK.decide("F dies & G !dies").by == "Spot"
    decision = TASK.decide("F dies & F !dies")
    assert decision.by == "Spot" and TASK.check("F dies & F !dies", decision.answer).is_correct
    for name in decide.SOLVERS.keys() - {decide.BOUNDED}:
        monkeypatch.delitem(decide.SOLVERS, name)
    assert "(exit code -9)" in TASK.decide("F dies & F !dies").reason


@needs_spot
def test_a_worker_that_hangs_or_dies_costs_the_formula_it_was_at(fragile, monkeypatch):
    """Of many, all others are decided as one at a time, in their order."""
    monkeypatch.setattr(decide, "FIRST_TURN", 0.3)
    easy = ["F a & F !a", "a & !a", "b", "a & X !a", "F a & G !a"]
    for name in decide.SOLVERS.keys() - {decide.BOUNDED}:
        monkeypatch.delitem(decide.SOLVERS, name)
    texts = [*easy, "F dies & F !dies", *easy, "F hangs & F !hangs", "F dies & F !dies", *easy]
    found = TASK.decide_all([TASK.read(text) for text in texts], 1.0)
    alone = [TASK.decide(text, 1.0) for text in easy]
    assert [next(found) for _ in easy] == alone
    died, *rest = found
    assert "(exit code -9)" in died.reason and rest[:5] == rest[7:] == alone
    assert rest[5].reason == "no solver was done within 1 s" and rest[6] == died


def counter(count: int) -> str:
    """A counter of so many bits counts to its end: a trace has 2 ** count steps."""
    bits = [f"b{number}" for number in range(count)]
    formula = " & ".join(f"!{bit}" for bit in bits) + f" & F ({' & '.join(bits)})"
    for number, bit in enumerate(bits):
        formula += f" & G (X {bit} <-> ({bit} ^ ({' & '.join(['true', *bits[:number]])})))"
    return formula


@needs_spot
def test_no_process_ends_over_what_only_spot_refutes():
    """The first turn of bounded search ends by its steps."""
    list(TASK.decide_all([TASK.read("F a & F !a")] * 2))
    (process,) = decide._idle[-1:]
    first = process._process.pid
    decisions = list(TASK.decide_all([TASK.read("(a U b) & G !b & c")] * 2))
    assert [one.core for one in decisions] == [("a U b", "G !b")] * 2
    assert process._process is not None and process._process.pid == first


def test_the_limit_of_time_is_kept(monkeypatch):
    """Also for a part: one that is not refuted in time is left out of no core."""
    assert TASK.decide(counter(14), 0.2).reason == "no solver was done within 0.2 s"
    monkeypatch.setattr(decide, "PART_TIME", 0.1)
    assert TASK.decide(f"x & {counter(14)} & !x").core == ("x", "!x")


@needs_spot
def test_many_are_decided_like_one_at_a_time(monkeypatch):
    """In their order; one that takes long has the turns of all solvers, and costs no other one."""
    texts = ["F a", "a & !a", counter(14), "G a", "F a & G !a", *["X a", "a U b"] * 50]
    problems = [TASK.read(text) for text in texts]
    alone = [TASK.decide(problem, 0.2) for problem in problems]
    assert alone[2].reason == "no solver was done within 0.2 s"
    assert [*TASK.decide_all(problems, 0.2)] == alone
    one, two = TASK.decide_all(problems[3:], 0.2), TASK.decide_all(problems[3:7], 0.2)
    assert [*zip(one, two, strict=False)] == [(each, each) for each in alone[3:7]]  # at once
    one.close()
    assert len(decide._idle) == 3  # of both iterators, and of questions about parts
    assert [*TASK.decide_all(problems[:2])] == alone[:2] and not [*TASK.decide_all([])]
    monkeypatch.setattr(decide, "FIRST_TURN", 1e-3)
    assert [each.by for each in TASK.decide_all(problems[:2])] == ["bounded search"] * 2


@needs_spot
@given(SEEDS, st.integers(1, 25))
def test_solvers_know_the_operators_that_others_rewrite(seed, size):
    """What they are given means the same as the canonical tokens, and they find the same."""
    rng = random.Random(seed)
    operators = sorted(token for token, arity in LTL.arities.items() if arity)
    tokens, missing = [], 1
    while len(tokens) < size and missing:
        tokens.append(rng.choice([*operators, *"ab"]))
        missing += LTL.arities.get(tokens[-1], 0) - 1
    tokens += rng.choices("ab01", k=missing)
    problem = TASK.read(" ".join(tokens), "prefix")
    for_solvers, canonical = LTL_OF_SOLVERS.rewritten(tokens), list(problem.tokens)
    assert len(for_solvers) <= 5 * len(tokens)
    assert bounded_worker.search(for_solvers, 4) == bounded_worker.search(canonical, 4)
    trace = read_trace(TASK.random_answer(problem, rng))
    assert lasso.decide(for_solvers, trace) is lasso.decide(canonical, trace)
    for pair in ([for_solvers, canonical], [canonical, for_solvers]):
        assert not spot.is_satisfiable(["&", *pair[0], "!", *pair[1]])
