import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.tasks import get_task
from hf_alpha.tasks.ltl import bounded, bounded_worker, decide, lasso, spot
from hf_alpha.tasks.ltl.grammar import LTL, LTL_OF_SOLVERS
from hf_alpha.tasks.ltl.trace import read_trace

TASK = get_task("ltl")


@pytest.mark.parametrize("seed", range(3))
def test_decisions_agree_with_spot(seed):
    rng = random.Random(seed)
    for _ in range(60):
        problem = TASK.read(TASK.sample(rng, rng.randrange(1, 26), TASK.default_symbols(3), 1.0))
        decision = TASK.decide(problem)
        assert decision.unsatisfiable is not spot.is_satisfiable(problem.tokens)
        if decision.unsatisfiable:
            assert decision.answer is None
            if decision.core:
                assert TASK.decide(" & ".join(f"({part})" for part in decision.core)).unsatisfiable
        else:
            assert TASK.check(problem, decision.answer).is_correct


def test_spot_refutes_what_bounded_search_never_does():
    decision = TASK.decide("G(a <-> X !a) & F(a & X a) & b & G c")
    assert decision.unsatisfiable
    assert decision.core == ("G (a <-> X !a)", "F (a & X a)")
    endless = TASK.decide("G(!a | X !a) & G(a | X a) & G F(a & X a)")
    assert endless.unsatisfiable


@pytest.mark.parametrize(
    ("problem", "core"),
    [
        ("(a U b) & G !b & G(a -> F b)", ("a U b", "G !b")),
        ("(a U b) & G(b <-> a) & G !b & F c", ("a U b", "G !b")),
    ],
)
def test_nothing_of_a_core_can_be_left_out(problem, core):
    """Spot refutes the parts: bounded search, which refutes the whole, never ends with them."""
    assert TASK.decide(problem).core == core


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


def test_a_killed_solver_costs_its_turn_alone(monkeypatch):
    """The other one decides; without either, the reasons are said."""

    def killed(*_):
        raise decide.SolverCrashError("killed")

    monkeypatch.setattr(bounded, "find_trace", killed)
    assert TASK.decide("F a & G !a").by == "Spot"
    found = TASK.decide("F a")
    assert found.by == "Spot" and TASK.check("F a", found.answer).is_correct
    monkeypatch.setattr(spot, "find_trace", killed)
    assert TASK.decide("F a").reason == "killed"


def counter(count: int) -> str:
    """A counter of so many bits counts to its end: a trace has 2 ** count steps."""
    bits = [f"b{number}" for number in range(count)]
    formula = " & ".join(f"!{bit}" for bit in bits) + f" & F ({' & '.join(bits)})"
    for number, bit in enumerate(bits):
        formula += f" & G (X {bit} <-> ({bit} ^ ({' & '.join(['true', *bits[:number]])})))"
    return formula


def test_the_limit_of_time_is_kept():
    assert TASK.decide(counter(14), 0.2).reason == "no solver was done within 0.2 s"


def test_a_part_that_is_not_refuted_in_time_is_left_out_of_no_core(monkeypatch):
    monkeypatch.setattr(decide, "PART_TIME", 0.1)
    assert TASK.decide(f"x & {counter(14)} & !x").core == ("x", "!x")


@given(st.integers(0, 2**32), st.integers(1, 25))
@settings(max_examples=100, deadline=None)
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
    assert spot.are_equivalent(for_solvers, canonical)


def test_a_large_formula_is_answered_with_all_literals():
    names = [f"n{number}" for number in range(1_500)]
    problem = TASK.read(" & ".join(f"({a} | {b})" for a, b in itertools.pairwise(names)))
    decision = TASK.decide(problem)
    assert all(name in decision.answer.split() for name in names)
    assert TASK.check(problem, decision.answer).is_correct
