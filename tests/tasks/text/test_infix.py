"""Terms in infix notation are read as they are written."""

import pytest
from hf_alpha.tasks.text.infix import names_in, read_term, write_term
from hypothesis import given
from hypothesis import strategies as st

terms = st.recursive(
    st.sampled_from(["a1", "b2", "c3"]),
    lambda inner: (
        st.tuples(st.just("~"), inner) | st.tuples(st.sampled_from(["&", "|"]), inner, inner)
    ),
)


@given(terms)
def test_a_term_is_read_as_it_is_written(term):
    text = write_term(term)
    assert read_term(text, "&|", "~") == term
    assert names_in(term) == list(dict.fromkeys(word for word in text.split() if word[0] in "abc"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a &",
        "& a",
        "a b",
        "( a",
        "a )",
        "a & b & c",
        "a + b",
        "~",
        "a ~ b",
        "( )",
        "a & ~",
        "& & a",
    ],
)
def test_what_is_no_term_is_an_error(text):
    with pytest.raises(ValueError, match="no term"):
        read_term(text, "&|", "~")
