"""Clauses that say what a formula says: the solver's verdicts are those of truth tables."""

from itertools import product

import pytest
from hf_alpha.tasks.text.infix import names_in, read_term
from hf_alpha.tasks.text.tseitin import check
from hypothesis import given
from hypothesis import strategies as st


def value(formula, values):
    if isinstance(formula, str):
        return values[formula]
    sides = [value(side, values) for side in formula[1:]]
    return {"~": not sides[0], "&": all(sides), "|": any(sides)}[formula[0]]


def says_the_same(source, answer):
    """Whether all values of the source's names have some of the others: by a table."""
    formula = read_term(source, "&|", "~")
    old = names_in(formula)
    clauses = [clause.split(" | ") for clause in answer.split(" ; ")]
    names = {literal.removeprefix("~ ") for clause in clauses for literal in clause}
    new = sorted(names - {*old})

    def holds(values):
        return all(
            any(values[name.removeprefix("~ ")] != name.startswith("~") for name in clause)
            for clause in clauses
        )

    return all(
        value(formula, own := dict(zip(old, bits, strict=True)))
        == any(
            holds(own | dict(zip(new, more, strict=True)))
            for more in product((False, True), repeat=len(new))
        )
        for bits in product((False, True), repeat=len(old))
    )


literals = st.sampled_from(["a", "b", "c", "p", "q", "~ a", "~ b", "~ c", "~ p", "~ q"])
answers = st.lists(st.lists(literals, min_size=1, max_size=3), min_size=1, max_size=6)


@given(
    st.sampled_from(["a & ~ b", "a | ( b & c )", "~ ( a | a )", "a | ~ a", "a & ~ a", "b"]),
    answers,
)
def test_any_clauses_are_judged_as_by_a_table(source, clauses):
    answer = " ; ".join(" | ".join(clause) for clause in clauses)
    assert check(source, answer) is says_the_same(source, answer)


@pytest.mark.parametrize(
    "answer",
    [
        "~ p | b ; ~ p | c ; p | ~ b | ~ c ; ~ q | a | p ; q | ~ a ; q | ~ p ; q",
        "a | p ; ~ p | b ; ~ p | c",  # one direction is enough
        "a | b ; a | c",  # without new names
    ],
)
def test_right_answers(answer):
    assert says_the_same("a | ( b & c )", answer)
    assert check("a | ( b & c )", answer) is True


@pytest.mark.parametrize(
    "answer",
    [
        "~ p | b ; p | ~ b | ~ c ; ~ q | a | p ; q | ~ a ; q | ~ p ; q",  # too weak
        "a | p ; ~ p | b ; ~ p | c ; ~ p",  # too strong, and still satisfiable
        "~ b | c ; b | ~ c ; ~ a | b ; a | ~ b ; a",  # b, a name of the source, for a new one
    ],
)
def test_wrong_answers(answer):
    assert not says_the_same("a | ( b & c )", answer)
    assert check("a | ( b & c )", answer) is False


@pytest.mark.parametrize("answer", ["", ";", "a | ; b", "a b", "~ ~ a", "( a )", "a & b", "~"])
def test_what_is_no_clause_is_wrong(answer):
    assert check("a & b", answer) is False
