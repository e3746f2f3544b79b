import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ltl import needs_spot
from reference.propositional import pigeons

from hf_alpha.logic.ltl import spot
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Verdict, base, get_task
from hf_alpha.tasks.solver_process import MissingSolverError

TASK = get_task("ltl")
SYMBOLS = tuple("abcde")
FORMULAS = st.builds(
    lambda seed, size: TASK.sample(random.Random(seed), size, SYMBOLS, 1.0),
    st.integers(0, 2**32),
    st.integers(1, 30),
)


@given(FORMULAS, st.permutations(SYMBOLS))
def test_equivariant_targets_move_with_the_names(problem, permuted):
    renaming = dict(zip(SYMBOLS, permuted, strict=True))
    renamed, target = TASK.rename(problem, renaming), TASK.target(problem)
    assert TASK.canonical(renamed) == TASK.canonical(problem)
    moved = None if target is None else TASK.rename(target, renaming)
    assert TASK.target(renamed) == moved
    if target is not None:
        assert TASK.check(problem, target, target) == Verdict.exact
        assert TASK.check(problem, target, solver="lasso") == Verdict.correct
        tokens = TASK.parse(problem)
        assert TASK.facts_of(tokens) == TASK.facts_of(tokens, target)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("&ab;{!a}", "exact"),
        ("&ba;{!a}", "exact"),
        ("a & b; cycle{!a}", "exact"),
        ("& b a ; { ! a }", "exact"),
        ("&ab;&!ac;{!a}", "correct"),
        ("&ab;{&!a!zebra}", "malformed"),
        ("& a b ; { & ! a zebra }", "correct"),
        ("&a|ba;{!a}", "wrong"),
        ("{&ab}", "wrong"),
        ("a;{!a}", "wrong"),
        ("&ab;{0}", "malformed"),
        ("&ab;{&!aa}", "malformed"),
        ("&a!a;{a}", "malformed"),
        ("&ab;!a", "malformed"),
        ("Xa;{!a}", "malformed"),
        ("", "malformed"),
    ],
)
def test_verdicts(answer, verdict):
    assert TASK.check("& & a b X ! a", answer, "&ab;{!a}") == verdict


@needs_spot
def test_spot_decides_what_stays_open():
    assert TASK.has_answer("a & X !b & G(!a & b)") is False
    assert TASK.has_answer("GFa & GF!a") is True
    assert TASK.check("|a!a", "{1}", solver="lasso") == Verdict.undecided
    assert TASK.check("|a!a", "{1}") == Verdict.correct
    assert TASK.check("|ab", "{|ba}") == Verdict.correct
    assert TASK.check("a", "{|ab}") == Verdict.wrong


def test_a_contradiction_among_many_symbols_is_seen():
    names = [f"s{i}" for i in range(20)]
    wide = " ".join(["|"] * 19 + names)
    none = " ".join(["&"] * 20 + [f"! {name}" for name in names])
    problem = " ".join(["&"] * 19 + [f"X {name}" for name in names])
    assert TASK.check(problem, f"{{ & {wide} {none} 1 }}") == Verdict.malformed


@given(FORMULAS, st.text(alphabet="abcdexyz01!&|;{}UX \n<>", max_size=20) | st.text(max_size=10))
def test_every_string_gets_a_verdict(problem, answer):
    assert TASK.check(problem, answer, TASK.target(problem), solver="lasso") in Verdict


def test_bad_arguments():
    with pytest.raises(FormulaError):
        TASK.check("& a", "{a}")
    for argument, message in {"solver": "auto, lasso", "notation": "prefix, com"}.items():
        with pytest.raises(ValueError, match=f"unknown {argument} 'z3': choose one of {message}"):
            TASK.check("a", "{a}", **{argument: "z3"})
    with pytest.raises(ValueError, match="unknown targets 'papers': choose one of equivariant, d"):
        TASK.target("a", "papers")
    assert not {*"FGRMUVWX"} & {*TASK.default_symbols(60)}, "no name is an operator"


@needs_spot
@given(FORMULAS)
def test_the_papers_targets_solve_and_are_never_shorter(problem):
    ours, papers = TASK.target(problem), TASK.target(problem, "deepltl")
    assert (ours is None) == (papers is None)
    if ours is not None and papers is not None:
        for answer in (ours, papers):
            assert TASK.check(problem, answer, solver="spot") == Verdict.correct
        steps = [TASK.facts_of([], answer)["witness_length"] for answer in (ours, papers)]
        assert steps[0] <= steps[1]


@pytest.fixture
def no_spot(tmp_path, monkeypatch):
    """Spot's process cannot import Spot."""
    (tmp_path / "spot.py").write_text("raise ImportError('no Spot here', name='spot')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    base.WARNED.clear()
    processes = (spot._process, spot._tracer)
    for process in processes:
        process.stop()
    yield
    for process in processes:
        process.stop()


def test_without_spot_only_spots_part_is_missing(no_spot, caplog):
    assert TASK.has_answer("&a!a") is None
    assert TASK.target("GFa") == "{a}"
    assert TASK.check("a", "{a}") == Verdict.correct
    assert not caplog.records
    for _ in range(2):
        assert TASK.check("|a!a", "{1}") == Verdict.undecided
    (warning,) = caplog.records
    assert "pip install 'hf_alpha[ltl]'" in warning.getMessage()
    with pytest.raises(MissingSolverError, match=r"pip install 'hf_alpha\[ltl\]'"):
        TASK.target("a", "deepltl")


@pytest.mark.parametrize(("holes", "verdict"), [(3, "malformed"), (5, "malformed"),
                                                (11, "undecided")])  # fmt: skip
def test_a_step_that_no_valuation_makes_true_is_no_answer(holes, verdict):
    """If it were one, any formula would hold: by table, by SAT, and where that gives up."""
    assert TASK.check("&ab", f"{{ {pigeons(holes)} }}") == verdict
    assert TASK.check("&ab", f"& a b ; {{ {pigeons(holes)} }}", "&ab;{1}") == verdict
