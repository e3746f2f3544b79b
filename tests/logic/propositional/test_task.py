import logging
import os
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.propositional import completions, pigeons, value

from hf_alpha.logic.propositional import aiger_worker
from hf_alpha.logic.propositional import task as module
from hf_alpha.logic.propositional.notation import read_assignment
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Verdict, get_task

TASK = get_task("propositional")
SYMBOLS = tuple("abcde")
FORMULAS = st.builds(
    lambda seed, size: TASK.sample(random.Random(seed), size, SYMBOLS),
    st.integers(0, 2**32),
    st.integers(1, 30),
)


@given(FORMULAS, st.permutations(SYMBOLS))
def test_equivariant_targets_move_with_the_names(problem, permuted):
    renaming = dict(zip(SYMBOLS, permuted, strict=True))
    renamed, target = TASK.rename(problem, renaming), TASK.target(problem)
    assert TASK.canonical(renamed) == TASK.canonical(problem)
    assert TASK.symbols_of(renamed) == [renaming[s] for s in TASK.symbols_of(problem)]
    moved = None if target is None else TASK.rename(target, renaming)
    assert TASK.target(renamed) == moved


def by_aiger(problem: str, answer: str) -> Verdict:
    """The verdict of py-aiger-sat, which the papers use."""
    _, aiger_sat = aiger_worker.prepare()
    solver, values = aiger_sat.SolverWrapper(), read_assignment(answer)
    solver.add_expr(aiger_worker.build(TASK.parse(problem), negate=True))
    relevant = {name: values[name] for name in TASK.symbols_of(problem) if name in values}
    return Verdict.wrong if solver.is_sat(assumptions=relevant) else Verdict.correct


@given(FORMULAS, st.integers(0, 2**32))
def test_targets_solve_and_tables_python_sat_and_py_aiger_agree(problem, seed):
    ours, papers = TASK.target(problem), TASK.target(problem, "papers")
    assert (ours is None) == (papers is None)
    assert ours is None or len(ours) <= len(papers)
    rng = random.Random(seed)
    drawn = TASK.random_answer(problem, rng)
    assert list(drawn[::2]) == TASK.symbols_of(problem)
    for answer in {ours, papers, drawn, drawn[: 2 * rng.randint(0, len(drawn) // 2)]} - {None}:
        verdict = TASK.check(problem, answer)
        assert verdict == TASK.check(problem, answer, solver="sat") == by_aiger(problem, answer)
        assert answer not in (ours, papers) or verdict == Verdict.correct


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("a1b0", "exact"),
        ("a 1 b 0", "exact"),
        ("a=1, b=0", "exact"),
        ("a=1 b=0", "exact"),
        ("a & !b", "exact"),
        ("(a) && (not b)", "exact"),
        ("b0a1", "correct"),
        ("a1b0c1", "correct"),
        ("a1b0zebra", "malformed"),
        ("a 1 zebra 0 b 0", "correct"),
        ("a1", "wrong"),
        ("", "wrong"),
        ("a0b0", "wrong"),
        ("a", "malformed"),
        ("a1b", "malformed"),
        ("1a", "malformed"),
        ("a1a1b0", "malformed"),
        ("a1b0a0", "malformed"),
        ("a & !b & a", "malformed"),
        ("a | b", "malformed"),
        ("!(a & b)", "malformed"),
        ("a & !b &", "malformed"),
        ("a=1, b=2", "malformed"),
        ("é1", "wrong"),
        ("²1", "malformed"),
        ('"a" 1 "b" 0', "exact"),
        ('a 1 "b 0', "malformed"),
        ('a 1 "c d 0', "malformed"),
        ("true 1", "malformed"),
        ("<pad>", "malformed"),
        ("\x00", "malformed"),
        ("((((", "malformed"),
    ],
)
def test_verdicts(answer, verdict):
    assert TASK.check("&a!b", answer, "a1b0") == verdict
    assert Verdict(verdict).is_correct == (verdict in ("exact", "correct"))


def test_named_notations_are_not_mixed():
    assert TASK.check("a", "a", notation="infix") == Verdict.correct
    assert TASK.check("&a!b", "a & !b", notation="prefix") == Verdict.malformed
    assert TASK.check("&a!b", "a 1 b 0", notation="compact") == Verdict.malformed
    assert TASK.check("&a!b", "a1b0", notation="prefix") == Verdict.malformed
    long = "& request ! grant"
    assert TASK.target(long) == "request 1 grant 0"
    assert TASK.check(long, "request & !grant", "request 1 grant 0") == Verdict.exact
    assert TASK.rename(long, {"request": "a", "grant": "b"}) == "& a ! b"
    assert TASK.rename("a1b0", {"a": "request"}) == "request 1 b 0"
    assert TASK.rename("a1b0", {"request": "a", "a": "b", "b": "c"}) == "b1c0"


@pytest.mark.parametrize("name", ["p.q", "größe", '"req 1"', '"a=1, b;"', '"true"', '"x\\"y"'])
def test_an_answer_with_any_name_is_read(name):
    problem = f"& {name} ! b"
    for answer in (f"{name} 1 b 0", f"{name} & !b", f"{name}=1, b=0", f"b=0 {name}=1"):
        assert TASK.check(problem, answer).is_correct, answer
    assert TASK.target(problem) == f"{name} 1 b 0"
    assert TASK.symbols_of(problem) == [name, "b"]
    renamed = {text: TASK.rename(text, {name: "c"}) for text in (problem, f"{name} 1 b 0")}
    assert list(renamed.values()) == ["& c ! b", "c 1 b 0"]
    assert TASK.rename("c 1 b 0", {"c": name}) == f"{name} 1 b 0"


ASSIGNMENTS = st.dictionaries(st.sampled_from("abcdez"), st.booleans())
WRITERS = {
    "compact": lambda pairs: "".join(f"{name}{value:d}" for name, value in pairs),
    "prefix": lambda pairs: " ".join(f"{name} {value:d}" for name, value in pairs),
    "infix": lambda pairs: " & ".join("!" * (not value) + name for name, value in pairs),
    None: lambda pairs: ", ".join(f"{name}={value:d}" for name, value in pairs),
}
WRITTEN = st.builds(
    lambda values, write: write(values.items()), ASSIGNMENTS, st.sampled_from([*WRITERS.values()])
)
ANSWERS = st.one_of(WRITTEN, st.text(), st.text("ab01!&|=^()~ ,:;é\n\t<>"), st.text("a01b"))


@given(FORMULAS, ANSWERS, st.sampled_from([*WRITERS]))
def test_any_answer_gets_a_verdict(problem, answer, notation):
    """That of all its completions; that it is malformed if it is read as nothing."""
    given = read_assignment(answer, notation)
    verdict = TASK.check(problem, answer, "a1", notation)
    if given is None or list(given.items()) == [("a", True)]:
        assert verdict == ("malformed" if given is None else "exact")
        return
    tokens, free = TASK.parse(problem), [x for x in TASK.symbols_of(problem) if x not in given]
    is_right = all(value([*tokens], way) for way in completions(given, free))
    assert verdict == ("correct" if is_right else "wrong")


@given(ASSIGNMENTS, st.sampled_from([*WRITERS]))
def test_an_answer_is_read_in_each_notation(assignment, notation):
    text = WRITERS[notation](assignment.items())
    assert read_assignment(text, notation) == assignment
    twice = WRITERS[notation]([*assignment.items(), *assignment.items()])
    assert not assignment or read_assignment(twice, notation) is None


def test_huge_answers_get_a_verdict():
    for answer in ("a1" * 10**4, "!" * 10**4, "(" * 10**4, "a & " * 10**3 + "a", "1" * 10**5):
        assert TASK.check("a", answer) == Verdict.malformed
    many = " ".join(f"s{i} 1" for i in range(10**4))
    assert TASK.check("s0", many) == Verdict.correct


def test_untrusted_answers_but_trusted_problems():
    with pytest.raises(FormulaError):
        TASK.check("&a", "a1")
    with pytest.raises(ValueError, match="unknown solver 'z3': choose one of auto"):
        TASK.check("a", "a1", solver="z3")
    with pytest.raises(ValueError, match="unknown targets 'best'"):
        TASK.target("a", "best")


@given(st.integers(0, 2**32), st.integers(60, 120))
@settings(max_examples=15)
def test_beyond_truth_tables_python_sat_agrees_with_py_aiger(seed, size):
    rng = random.Random(seed)
    names = tuple(TASK.default_symbols(25))
    problem = TASK.write(TASK.draw(rng, size, names, exactly=True))
    target, papers = TASK.target(problem), TASK.target(problem, "papers")
    assert (target is None) == (papers is None)
    renaming = dict(zip(names, rng.sample(names, len(names)), strict=True))
    moved = None if target is None else TASK.rename(target, renaming)
    assert TASK.target(TASK.rename(problem, renaming)) == moved
    for answer in {target, papers, (target or "")[:-2], TASK.random_answer(problem, rng)} - {None}:
        assert TASK.check(problem, answer) == by_aiger(problem, answer)


def test_deep_formulas():
    depth = 10_000
    chain = "&" * depth + "a" * depth + "b"
    assert TASK.target(chain) == "a1b1"
    assert TASK.target("!" * (2 * depth) + "a") == "a1"
    assert TASK.canonical("!" * depth + "z") == "!" * depth + "a"
    half = "|a&b" * depth + "c"
    twins = f"={half}{half}"
    for problem, answer in ((chain, "a1b1"), (twins, "")):
        assert TASK.check(problem, answer) == Verdict.correct
        assert TASK.check(problem, answer, solver="sat", timeout=60) == Verdict.correct
    assert sys.getrecursionlimit() <= 10_000


def parity_twice(count):
    """Say that the parity of symbols does not depend on their order: true, and hard to prove."""
    names = [f"x{i}" for i in range(count)]
    chain = ["^"] * (count - 1)
    return " ".join(["=", *chain, *names, *chain, *random.Random(0).sample(names, count)])


def test_the_time_limit_holds():
    assert TASK.check(f"! {pigeons(5)}", "", timeout=60) == Verdict.correct
    for problem in (f"! {pigeons(16)}", parity_twice(50)):
        start = time.monotonic()
        assert TASK.check(problem, "", timeout=0.3) == Verdict.timeout
        assert time.monotonic() - start < 30  # without a limit it takes hours


def test_a_target_that_takes_too_long_is_skipped(monkeypatch, caplog):
    monkeypatch.setattr(module, "TIMEOUT", 0.5)
    with caplog.at_level(logging.WARNING):
        assert TASK.target("! " + parity_twice(50), "papers") is None
    assert "no target for a formula of 200 tokens, the solver took more than 0.5 s" in caplog.text
    assert TASK.target("|ab", "papers") in ("a1", "b1")
    assert TASK.has_answer(f"! {parity_twice(50)}") is None


def test_scripts_without_a_main_guard(tmp_path):
    script = (
        "from hf_alpha.tasks import get_task\n"
        "task = get_task('propositional')\n"
        "print(task.check('|a!a', ''), task.target('|aa', 'papers'))\n"
    )
    path = tmp_path / "script.py"
    path.write_text(script)
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert (run.stdout, run.stderr) == ("correct a1\n", "")


def test_papers_targets_do_not_depend_on_the_process():
    problems = [TASK.sample(random.Random(seed), 40, "abcdefgh") for seed in range(20)]
    script = (
        "from hf_alpha.tasks import get_task\n"
        f"for problem in reversed({problems!r}):\n"
        "    print(get_task('propositional').target(problem, 'papers'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.split()[::-1] == [str(TASK.target(problem, "papers")) for problem in problems]


def test_decisions_are_right():
    rng = random.Random(1)
    for _ in range(200):
        problem = TASK.read(TASK.sample(rng, rng.randrange(1, 40), TASK.default_symbols(4), 0.3))
        decision = TASK.decide(problem)
        assert decision.by == "python-sat"
        assert decision.unsatisfiable is not TASK.has_answer(problem)
        if decision.answer is not None:
            assert TASK.check(problem, decision.answer).is_correct
    core = TASK.decide("(a->b) & (b->c) & a & !c & d & e").core
    assert core == ("a -> b", "b -> c", "a", "!c")


def test_a_part_that_is_not_refuted_in_time_is_left_out_of_no_core():
    """Without its first half the formula is hard to refute."""
    others = " ".join(f"& y{number}" for number in range(500))
    assert TASK.decide(f"& x {others} & {pigeons(9)} ! x").core == ("x", "!x")


def test_a_decision_about_many_names_keeps_what_there_was_no_time_to_leave_out():
    names = [f"n{number}" for number in range(10_000)]
    problem, start = TASK.read(" & ".join(names)), time.process_time()
    decision = TASK.decide(problem, 2)
    assert time.process_time() - start < 9  # to try each takes longer
    assert TASK.check(problem, decision.answer).is_correct


def test_a_decision_gives_up_in_time():
    decision = TASK.decide(pigeons(10), 0.1)
    assert decision.reason == "the solver was not done within 0.1 s"
    assert decision.answer is None and not decision.unsatisfiable
