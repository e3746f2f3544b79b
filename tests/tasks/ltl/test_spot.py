"""Spot in its process: known cases, our reading of Spot's syntax, crashes, and its absence."""

import os
import signal
import sys
import threading
import unicodedata
from collections.abc import Callable
from itertools import chain, pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.tasks.ltl import spot
from hf_alpha.tasks.ltl.grammar import LTL, LTL_WITHOUT_OR

try:
    import spot as library
except ImportError:
    library = None

needs_spot = pytest.mark.skipif(
    not hasattr(library, "twa_word"), reason="needs Spot: pip install 'hf_alpha[ltl]'"
)
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


def spots_reading(formula) -> list[str]:
    """Canonical tokens of a Spot formula whose derived operators Spot itself rewrites."""
    signs = {"Not": "!", "And": "&", "Or": "|", "ff": "0", "tt": "1", "strong_X": "X"}
    tokens: list[str] = []
    stack = [library.unabbreviate(formula, "FGRWM^ei")]
    while stack:
        part = stack.pop()
        if part._is(library.op_ap):
            tokens.append(part.ap_name())
            continue
        sign = signs.get(part.kindstr(), part.kindstr())
        tokens += [sign] * max(1, part.size() - 1)
        stack += reversed(list(part))
    return tokens


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
            pair = (stack.pop(), stack.pop())
            make = getattr(build, kind)
            stack.append(make(list(pair)) if kind in ("And", "Or") else make(*pair))
    return build.And(stack)


@needs_spot
@pytest.mark.parametrize("parentheses", [False, True])
@pytest.mark.parametrize("syntax", ["spot", "spin", "utf8"])
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_what_spot_writes_is_read_as_spot_means_it(data, syntax: str, parentheses: bool):
    names = NAMES + SPOT_ONLY_QUOTES * (syntax != "spin")
    formula = data.draw(spot_formulas(names))
    tokens = parse(formula.to_str(syntax, parentheses))
    assert spot.are_equivalent(tokens, spots_reading(formula))
    ours = library.formula(LTL.format(tokens, "infix"))
    assert spot.are_equivalent(spots_reading(ours), tokens)


SIGNS = "!~&|\\/^+*-<>=()[]:;,@#$%?'"
LETTERS = "FGUXVRWMYOHSabTtEe"
WORDS = {"true", "True", "TRUE", "trUe", "false", "False", "FALSE", "fAlse", "xor", "<-->", "X[!]"}
NOT_OURS = {"\u0304", "\u0305", "X[!]"}  # a line over an operand negates it: here, a part of a name


@needs_spot
def test_every_spelling_of_spot_is_read():
    """All signs of Unicode, and rows of up to three of ASCII's: what Spot takes, we take."""
    characters = [chr(i) for i in range(0x80, sys.maxunicode + 1)]
    characters = [x for x in characters if unicodedata.category(x)[0] in "SPM"]
    rows = ("".join(row) for length in (1, 2, 3) for row in product(SIGNS, repeat=length))
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
            if sign not in NOT_OURS:
                assert built(parse(text)) == built(spots_reading(formula)), text
    assert {"⟶", "◯", "⬜", "∩", "Ⓧ", "-->", "<->", "trUe", "V", *NOT_OURS} <= taken


def built(tokens: list[str]):
    """The formula of canonical tokens as Spot simplifies it."""
    return library.simplify(spot.spot_worker._formula(tokens))


@needs_spot
def test_precedence_and_side_are_spots():
    operators = ["U", "W", "R", "M", "V", "&", "*", "|", "+", "^", "->", "<->", "-->", "<-->"]
    for first in operators:
        for second in operators:
            text = f"! aa {first} X bb {second} FG cc"
            reading = spots_reading(library.formula(text))
            assert spot.are_equivalent(parse(text), reading), text


@needs_spot
@given(st.data())
@settings(deadline=None)
def test_models_read_the_same_without_or(data):
    text = data.draw(spot_formulas(NAMES)).to_str()
    tokens = LTL_WITHOUT_OR.parse(text, "infix")
    assert spot.are_equivalent(tokens, LTL.parse(text, "infix"))
    assert "|" not in tokens and ("!", "!") not in set(pairwise(tokens))


@needs_spot
def test_patterns_are_read_as_by_spot():
    assert len(PATTERNS) == 55
    for text in PATTERNS:
        reading = spots_reading(library.formula(text))
        assert spot.are_equivalent(LTL.parse(text), reading), text
        assert LTL.parse(text) == parse(text) == parse(LTL.format(parse(text), "infix"))
        found = spot.find_trace(reading)
        assert found is not None
        assert spot.holds(parse(text), *found), text


@needs_spot
@pytest.mark.parametrize(
    ("formula", "steps", "loop", "expected"),
    [
        ("a U b", ["a", "& ! a b", "1"], 2, True),
        ("a U b", ["a", "! b", "1"], 2, False),
        ("a U b", ["a"], 0, False),
        ("G(request -> F grant)", ["request", "grant"], 0, True),
        ("G(request -> F grant)", ["grant", "request", "1"], 1, False),
        ("G(request -> F grant)", ["! request"], 0, True),
        ("X X X a", ["1", "a"], 0, True),
        ("X X X a", ["1", "1", "a"], 1, False),
        ("GFa & GF!a", ["| a b"], 0, False),
        ("GFa & GF!a", ["& a b", "& ! a ! ! b"], 0, True),
        ("1", ["1"], 0, True),
        ("0", ["1"], 0, False),
        ("0", ["& a ! a", "1"], 1, True),  # no words at all
        ("a", ["& a q"], 0, True),
        ('"Grant" U F1', ["Grant", "F1", "0"], 2, True),
        ('"Grant" U F1', ["Grant", "F1", "1"], 2, True),
        ("b & X !b", ["b", "0", "b"], 0, True),
    ],
)
def test_every_word_of_a_trace(formula: str, steps: list[str], loop: int, expected: bool):
    cut = [step.split() for step in steps]
    for reference in (False, True):
        assert spot.holds(parse(formula), cut, loop, reference=reference) is expected


@needs_spot
def test_traces_that_are_found_satisfy():
    assert spot.find_trace(parse("a & X !b & X X a U b")) is not None
    assert spot.find_trace(parse("G(a & !b & c)")) == ([["&", "a", "&", "!", "b", "c"]], 0)
    assert spot.find_trace(parse("true")) == ([["1"]], 0)
    for text in ("a & X !a & X X G !a", "GFa & GF!a & GF(a & b)", "F(request & X !request)"):
        for options in (spot.FAST, None):
            found = spot.find_trace(parse(text), options=options)
            assert found is not None
            assert spot.holds(parse(text), *found, reference=True)
    assert spot.find_trace(parse("Fa & G!a")) is None


@needs_spot
def test_satisfiability_and_equivalence():
    assert spot.is_satisfiable(parse("GFa & GF!a"))
    assert not spot.is_satisfiable(parse("GFa & FG!a"))
    assert spot.are_equivalent(parse("a W b"), parse("(a U b) | Ga"))
    assert not spot.are_equivalent(parse("a W b"), parse("a U b"))


@needs_spot
def test_what_takes_too_long_or_too_much_leaves_spot_usable():
    with pytest.raises(TimeoutError, match=r"more than 0\.5 s"):
        spot.find_trace(parse(HARD), timeout=0.5, options=None)
    with pytest.raises(spot.SolverCrashError, match="30001 tokens"):  # Spot's recursion
        spot.is_satisfiable(["X", "U", "a"] * 10_000 + ["b"])
    assert not spot.holds(["!"] * 10_001 + ["a"], [["!"] * 10_000 + ["a"]], 0)
    assert spot.holds(["X"] * 200 + ["a"], [["1"]] * 200 + [["a"]], 200)


@needs_spot
def test_a_killed_process_costs_one_answer():
    assert spot.is_satisfiable(["a"])
    threading.Timer(0.3, os.kill, (spot._process._process.pid, signal.SIGKILL)).start()
    with pytest.raises(spot.SolverCrashError, match="exit code -9"):
        spot.holds(["!", *parse(HARD)], [["1"]], 0, reference=True)
    assert spot.is_satisfiable(["a"])


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
    asked = [formula.split() for formula in formulas]
    once = [spot.find_trace(formula, options=None) for formula in asked]
    spot._tracer.stop()
    assert [spot.find_trace(formula, options=None) for formula in asked[::-1]] == once[::-1]
    assert all(spot.holds(f, *trace) for f, trace in zip(asked, once, strict=True))


def without_spot(folder: Path) -> None:
    (folder / "spot.py").write_text("raise ImportError('no such module here')")


def with_another_spot(folder: Path) -> None:
    (folder / "spot.py").write_text("formula = 'a tool for single points of truth'")


@pytest.mark.parametrize("prepare", [without_spot, with_another_spot])
def test_missing_spot_says_what_to_install(
    prepare: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    prepare(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spot._process.stop()
    with pytest.raises(spot.MissingSolverError, match=r"pip install 'hf_alpha\[ltl\]'"):
        spot.holds(["a"], [["a"]], 0)
    spot._process.stop()
