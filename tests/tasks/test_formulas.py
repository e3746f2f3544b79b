"""Where subformulas end, against a parser that counts; and formulas as people wrote them."""

from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.tasks import get_task
from hf_alpha.tasks.formulas import as_written, subformula_ends

GRAMMAR = get_task("ltl").grammar
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
    infix = as_written(GRAMMAR).format(tokens, "infix")
    assert GRAMMAR.read(infix) == tokens
