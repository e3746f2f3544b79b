"""Subformulas and where they end, by slow ways to find them; formulas as people wrote them."""

import random

from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.logic.formulas import MAX_ROWS, subformula_ends, subformulas
from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import get_task

TASK = get_task("ltl")
GRAMMAR = TASK.grammar
FORMULAS = st.recursive(
    st.sampled_from([["a"], ["b"], ["1"]]),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("!XFG"), inner).map(lambda parts: [parts[0], *parts[1]]),
        st.tuples(st.sampled_from(["&", "|", "->", "<->", "U", "R", "W"]), inner, inner).map(
            lambda parts: [parts[0], *parts[1], *parts[2]]
        ),
    ),
    max_leaves=12,
)


@given(FORMULAS)
def test_a_subformula_ends_where_no_operand_is_missing(tokens):
    for start, end in enumerate(subformula_ends(GRAMMAR, tokens)):
        missing, position = 1, start
        while missing:
            missing += GRAMMAR.arities.get(tokens[position], 0) - 1
            position += 1
        assert position == end


@given(FORMULAS)
def test_what_is_written_is_read_as_it_was(tokens):
    """With derived operators, which the grammar itself rewrites."""
    infix = GRAMMAR.as_written().format(tokens, "infix")
    assert GRAMMAR.read(infix) == tokens


def slow_subformulas(tokens: list[str]) -> set[tuple[str, ...]]:
    """Every slice that is a formula, slices by trying them all."""
    slices = set()
    for start in range(len(tokens)):
        for end in range(start + 1, len(tokens) + 1):
            try:
                LTL.format(tokens[start:end])
            except FormulaError:
                continue
            slices.add(tuple(tokens[start:end]))
            break
    return slices - {("0",), ("1",)}


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_every_subformula_is_there_once_and_the_whole_is_last(seed, size):
    tokens = TASK.draw(random.Random(seed), size, "abc", constant_priority=1.0)
    rows = subformulas(LTL, tokens)
    slices = [tuple(canonical) for _, canonical in rows]
    assert set(slices) == slow_subformulas(tokens) | {tuple(tokens)}
    assert len(slices) == len(set(slices)) and slices[-1] == tuple(tokens)
    assert [len(x) for x in slices] == sorted(map(len, slices))
    for label, canonical in rows:
        assert LTL.parse(label, "infix") == canonical


def test_operators_stay_as_they_were_written():
    written = LTL.read("G(request -> F grant) & request")
    labels, formulas = zip(*subformulas(LTL, written), strict=True)
    assert labels == (
        "request", "grant", "F grant", "request -> F grant", "G (request -> F grant)",
        "G (request -> F grant) & request",
    )  # fmt: skip
    assert formulas[2] == ["U", "1", "grant"]


def test_long_formulas_have_the_rows_nearest_to_the_whole():
    rows = subformulas(LTL, ["X"] * 2_000 + ["a"])
    assert len(rows) == MAX_ROWS
    assert [len(tokens) for _, tokens in rows] == list(range(2_002 - MAX_ROWS, 2_002))
