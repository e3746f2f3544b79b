"""Spot in its process: known cases, our reading of Spot's syntax, crashes, and its absence."""

import os
import signal
import sys
import threading
import unicodedata
from itertools import chain, pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.ltl import needs_spot

from hf_alpha.logic.ltl import spot, spot_worker
from hf_alpha.logic.ltl.grammar import LTL, LTL_WITHOUT_OR
from hf_alpha.logic.ltl.trace import Trace
from hf_alpha.tasks.solver_process import MissingSolverError, SolverCrashError

try:
    import spot as library
except ImportError:
    library = None

PATTERNS = [
    row.split("\t")[3]
    for row in (Path(__file__).parents[2] / "data_files/dwyer.tsv").read_text().splitlines()[1:]
]
UNARY = ["Not", "X", "F", "G"]
BINARY = ["U", "R", "W", "M", "Xor", "Implies", "Equiv", "And", "Or"]
NAMES = ["grant", "Ub", "F1", "_x", "aa"]
SPOT_ONLY_QUOTES = ["Grant", "Fp0", "FalseAlarm"]  # its other syntaxes forget the quotes
HARD = "(G(F a -> F b) & G(F c -> F d) & G(F e -> F f) & G(F p -> F q) & G(F r -> F s)) U (a & b)"


def parse(text: str) -> list[str]:
    return LTL.parse(text, "infix")


def same(tokens: list[str], formula) -> bool:
    """Whether tokens mean what a formula of Spot means, which may have any of its operators."""
    return library.are_equivalent(spot_worker._formula(tokens), formula)


@st.composite
def spot_formulas(draw: st.DrawFn, names: list[str]):
    """A formula of Spot with any of its operators, by Polish notation from the right."""
    build = library.formula
    stack = []
    for _ in range(draw(st.integers(1, 10))):
        kinds = ["leaf", "leaf", *UNARY[: 4 * bool(stack)], *BINARY[: 9 * (len(stack) > 1)]]
        kind = draw(st.sampled_from(kinds))
        if kind == "leaf":
            leaf = draw(st.sampled_from([*names, "1", "0"]))
            stack.append(build(leaf) if leaf in "01" else build.ap(leaf))
        elif kind in UNARY:
            stack.append(getattr(build, kind)(stack.pop()))
        else:
            pair = [stack.pop(), stack.pop()]
            make = getattr(build, kind)
            stack.append(make(pair) if kind in ("And", "Or") else make(*pair))
    return build.And(stack)


@needs_spot
@pytest.mark.parametrize("syntax", ["spot", "spin", "utf8"])
@given(data=st.data())
def test_what_spot_writes_is_read_as_spot_means_it(data, syntax: str):
    formula = data.draw(spot_formulas(NAMES + SPOT_ONLY_QUOTES * (syntax != "spin")))
    tokens = parse(formula.to_str(syntax, data.draw(st.booleans())))
    assert same(tokens, formula)
    assert same(tokens, library.formula(LTL.format(tokens, "infix")))
    for_models = LTL_WITHOUT_OR.parse(formula.to_str(), "infix")
    assert same(for_models, formula)
    assert "|" not in for_models and ("!", "!") not in set(pairwise(for_models))


SIGNS = "!~&|\\/^+*-<>=()[]:;,@#$%?'"
LETTERS = "FGUXVRWMYOHSabTtEe"
WORDS = {"true", "True", "TRUE", "trUe", "false", "False", "FALSE", "fAlse", "xor", "<-->", "X[!]"}
NOT_OURS = {"\u0304", "\u0305", "X[!]"}  # a line over an operand negates it: here, a part of a name


@needs_spot
def test_every_spelling_of_spot_is_read():
    """All signs of Unicode, and rows of ASCII's: what Spot takes, we take."""
    characters = [chr(i) for i in range(0x80, sys.maxunicode + 1)]
    characters = [x for x in characters if unicodedata.category(x)[0] in "SPM"]
    rows = map("".join, chain(SIGNS, product(SIGNS, repeat=2), product("<-=>&|*()[]", repeat=3)))
    taken = set()
    for sign in chain(characters, rows, LETTERS, WORDS):
        for text in (f"aa{sign}bb", f"aa {sign} bb", f"{sign} bb", f"aa{sign}", sign):
            try:
                formula = library.formula(text)
            except SyntaxError:
                continue
            if formula._is(library.op_ap):  # the sign is a letter of a name
                continue
            taken.add(sign)
            assert sign in NOT_OURS or same(parse(text), formula), text
    assert {"⟶", "◯", "⬜", "∩", "Ⓧ", "-->", "<->", "trUe", "V", *NOT_OURS} <= taken


@needs_spot
def test_precedence_and_side_are_spots():
    operators = ["U", "W", "R", "M", "V", "&", "*", "|", "+", "^", "->", "<->", "-->", "<-->"]
    for first, second in product(operators, repeat=2):
        text = f"! aa {first} X bb {second} FG cc"
        assert same(parse(text), library.formula(text)), text


@needs_spot
def test_patterns_are_read_as_by_spot():
    assert len(PATTERNS) == 55
    for text in PATTERNS:
        assert same(LTL.parse(text), library.formula(text)), text
        assert LTL.parse(text) == parse(text) == parse(LTL.format(parse(text), "infix"))
        assert spot.holds(parse(text), spot.find_trace(parse(text))), text


def trace(*steps: str, loop: int = 0) -> Trace:
    return Trace(tuple(tuple(step.split()) for step in steps), loop)


@needs_spot
@pytest.mark.parametrize(
    ("formula", "steps", "loop", "expected"),
    [
        ("a U b", ["a", "& ! a b", "1"], 2, True),
        ("a U b", ["a", "! b", "1"], 2, False),
        ("G(request -> F grant)", ["request", "grant"], 0, True),
        ("G(request -> F grant)", ["grant", "request", "1"], 1, False),
        ("X X X a", ["1", "a"], 0, True),
        ("X X X a", ["1", "1", "a"], 1, False),
        ("GFa & GF!a", ["| a b"], 0, False),
        ("GFa & GF!a", ["& a b", "& ! a ! ! b"], 0, True),
        ("1", ["1"], 0, True),
        ("0", ["1"], 0, False),
        ("0", ["& a ! a", "1"], 1, True),  # no words at all
        ("a", ["& a q"], 0, True),
        ('"Grant" U F1', ["Grant", "F1", "0"], 2, True),
        ("b & X !b", ["b", "0", "b"], 0, True),
    ],
)
def test_every_word_of_a_trace(formula: str, steps: list[str], loop: int, expected: bool):
    for reference in (False, True):
        asked = trace(*steps, loop=loop)
        assert spot.holds(parse(formula), asked, reference=reference) is expected


@needs_spot
def test_traces_that_are_found_satisfy():
    assert spot.find_trace(parse("G(a & !b & c)")) == trace("& a & ! b c")
    assert spot.find_trace(parse("true")) == trace("1")
    for text in ("a & X !a & X X G !a", "GFa & GF!a & GF(a & b)", "F(request & X !request)"):
        assert spot.is_satisfiable(parse(text))
        for options in (spot.FAST, None):
            answer = spot.find_trace(parse(text), options=options)
            assert spot.holds(parse(text), answer, reference=True)
    assert spot.find_trace(parse("Fa & G!a")) is None and not spot.is_satisfiable(parse("Fa & G!a"))


@needs_spot
def test_what_takes_too_long_or_too_much_leaves_spot_usable():
    with pytest.raises(TimeoutError, match=r"more than 0\.5 s"):
        spot.find_trace(parse(HARD), timeout=0.5, options=None)
    with pytest.raises(SolverCrashError, match="30001 tokens"):  # Spot's recursion
        spot.is_satisfiable(["X", "U", "a"] * 10_000 + ["b"])
    assert not spot.holds(["!"] * 10_001 + ["a"], trace("! " * 10_000 + "a"))
    threading.Timer(0.3, os.kill, (spot._process._process.pid, signal.SIGKILL)).start()
    with pytest.raises(SolverCrashError, match="exit code -9"):
        spot.holds(["!", *parse(HARD)], trace("1"), reference=True)
    assert spot.holds(["X"] * 200 + ["a"], trace(*["1"] * 200, "a", loop=200))


@needs_spot
def test_traces_do_not_depend_on_what_came_before():
    formulas = [
        "U & X c ! X U U a b X ! a c",
        "! U c ! & X a U ! U b e X a",
        "X ! & X & b U d ! X & c a c",
        "X ! U & d c X X ! X & X e d",
        "! & U X ! c X X d ! & b ! a",
        "X & ! U b ! b ! U a X X X a",
        "& c ! X X U a X X X X X ! c",
        "U & b d & ! d ! U e X X ! b",
    ]
    tokens = [formula.split() for formula in formulas]
    once = [spot.find_trace(formula, options=None) for formula in tokens]
    spot._tracer.stop()
    assert [spot.find_trace(formula, options=None) for formula in tokens[::-1]] == once[::-1]
    assert all(map(spot.holds, tokens, once))


@pytest.mark.parametrize(
    "code", ["raise ImportError('none', name='spot')", "formula = 'another Spot'"]
)
def test_missing_spot_says_what_to_install(code: str, tmp_path: Path, monkeypatch):
    (tmp_path / "spot.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spot._process.stop()
    with pytest.raises(MissingSolverError, match=r"pip install 'hf_alpha\[ltl\]'"):
        spot.holds(["a"], trace("a"))
    spot._process.stop()
