import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.ltl.trace import (
    Trace,
    cube_step,
    read_cube,
    read_trace,
    same_trace,
    trace_tokens,
    write_trace,
)
from hf_alpha.modeling.grammar import FormulaError

NAMES = st.sampled_from(["a", "b", "c", "d"])
LONG = st.sampled_from(
    ["request", "grant_1", "Frame", "Goal", "cycle", "UX", "p.q", "größe", '"a b"', '"};{"', '"1"']
)


def steps(names):
    leaves = st.one_of(names.map(lambda name: (name,)), st.sampled_from([("0",), ("1",)]))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda x: ("!", *x)),
            st.tuples(st.sampled_from("&|"), inner, inner).map(lambda x: (x[0], *x[1], *x[2])),
        ),
        max_leaves=4,
    )


@st.composite
def traces(draw, names=NAMES):
    drawn = draw(st.lists(steps(names), min_size=1, max_size=4))
    return Trace(tuple(drawn), draw(st.integers(0, len(drawn) - 1)))


@given(traces(), st.sampled_from([None, "compact", "prefix", "infix"]))
def test_what_is_written_is_read(trace, notation):
    text = write_trace(trace, notation)
    assert read_trace(text, notation) == trace
    assert same_trace(read_trace(text), trace)


@given(traces(LONG), st.sampled_from([None, "prefix", "infix"]))
def test_long_names_survive(trace, notation):
    assert read_trace(write_trace(trace, notation), notation) == trace


def test_examples():
    trace = Trace((("a",), ("&", "a", "b"), ("b",)), 2)
    for text in (
        "a;&ab;{b}",
        " a ; & a b ; { b } ",
        "a; a & b; cycle{b}",
        "a; a && b; cycle {b}",
        "a;a&b;{b}",
    ):
        assert read_trace(text) == trace, text
    assert write_trace(trace) == "a;&ab;{b}" == "".join(trace_tokens(trace))
    assert write_trace(trace, "infix") == "a; a & b; cycle{b}"
    assert read_trace("{a;!b}") == Trace((("a",), ("!", "b")), 0)
    for text in ("{ab}", "{Uab}"):
        assert read_trace(text, "compact") is None and read_trace(text) is not None
    with pytest.raises(FormulaError, match="'request' is too long"):
        write_trace(read_trace("{request}"), "compact")
    with pytest.raises(ValueError, match="unknown notation 'spin'"):
        read_trace("{a}", "spin")
    with pytest.raises(ValueError, match="unknown notation 'spin'"):
        write_trace(trace, "spin")


@pytest.mark.parametrize(
    "text",
    ["", " ", "a", "a;b", "{}", "a;{}", "a{b}", "{a", "a}", "{a}b", "{a};", "{a}{b}", "{{a}}",
     ";{a}", "a;;{b}", "{a;}", "{;a}", "a;{b;;c}", "{Xa}", "{&a}", "{a b}", "{&ab;a & b}",
     "cycle", "a;cycle", "{#}", "}{", "{a}\x00", "{F a}"],
)  # fmt: skip
def test_what_is_no_trace(text):
    assert read_trace(text) is None


def test_operands_may_be_exchanged_and_nothing_else():
    trace = read_trace("&a|bc;{!d}")
    assert same_trace(trace, read_trace("&|cba;{!d}"))
    for other in ("&a|bc;!d;{!d}", "{&a|bc;!d}", "&b|ac;{!d}", "&a&bc;{!d}", "|a|bc;{!d}"):
        assert not same_trace(trace, read_trace(other)), other
    assert not same_trace(read_trace("{&a&bc}"), read_trace("{&&abc}"))
    left = Trace((tuple("&" * 5000 + "a" * 5001),), 0)
    assert same_trace(left, Trace((tuple("&a" * 5000 + "a"),), 0))


@given(st.dictionaries(NAMES, st.booleans()))
def test_cubes(cube):
    step = cube_step(list(cube.items()))
    assert read_cube(step) == cube
    assert LTL.format(list(step), "compact") == "".join(step)


@pytest.mark.parametrize("text", ["|ab", "0", "&a!a", "!&ab", "!!a", "&a0", "!1"])
def test_what_is_no_cube(text):
    assert read_cube(tuple(text)) is None
