"""Which answers the checks beside the pairs of `examples/tasks` take for right."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.tasks import extract_check, tseitin_check
from hf_alpha.tasks.text.anf import names_in, read_term

SOURCE = """extract a + b
def f(a, b):
    x = (a + b) * a
    y = x - b
    return (a + b) * y"""
RIGHT = """def f(a, b):
    new = a + b
    x = new * a
    y = x - b
    return new * y"""


def changed(*changes):
    answer = RIGHT
    for old, new in changes:
        assert old in answer
        answer = answer.replace(old, new)
    return answer


@pytest.mark.parametrize(
    "answer", [RIGHT, changed(("new", "t1")), changed(("new * a", "(new*a)")), RIGHT + "\n"]
)
def test_expressions_that_got_a_variable(answer):
    assert extract_check.check(SOURCE, answer) is True


@pytest.mark.parametrize(
    "answer",
    [
        SOURCE.partition("\n")[2],
        changed(("new", "x")),  # of the source
        changed(("new", "f")),
        changed(("new * y", "(a + b) * y")),  # stands there still
        changed(("new = a + b", "new = b + a")),
        changed(("    new = a + b\n", ""), ("    return", "    new = a + b\n    return")),
        changed(("    new = a + b\n", ""), ("new", "a")),
        changed(("x - b", "x + b")),
        changed(("return new * y", "return y * new")),  # the same number, but it was not asked for
        changed(("a + b\n", "a + b\n    more = a\n")),
        changed(("f(a, b)", "f(b, a)")),
        changed(("f(a", "g(a")),
        changed(("    return new * y", "    return")),
        changed(("a + b\n", "a + b\n    a = b\n")),
        "import os",
        "def f(a, b):\n    return eval('a')",
        "def f(",
        "x = " + "(" * 5000,
    ],
)
def test_wrong_variables(answer):
    assert extract_check.check(SOURCE, answer) is False


def test_a_variable_is_set_where_the_expression_has_its_value():
    """An operand that is set again stands for another number behind that."""
    source = "extract a + b\ndef f(a, b):\n    c = a + b\n    a = c * c\n    return a + b + c"
    answer = "def f(a, b):\n    new = a + b\n    c = new\n    a = c * c\n    return new + c"
    assert extract_check.check(source, answer) is False
    late = source.replace("c = a + b", "c = b")
    assert extract_check.check(
        late, "def f(a, b):\n    c = b\n    a = c * c\n    n = a + b\n    return n + c"
    )
    early = "def f(a, b):\n    n = a + b\n    c = b\n    a = c * c\n    return n + c"
    assert extract_check.check(late, early) is False


@pytest.mark.parametrize("source", ["a", SOURCE.replace("a + b\n", "a +\n"), "extract a\nx = a"])
def test_sources_are_an_order_and_a_function(source):
    with pytest.raises(ValueError, match="is no 'extract' with an expression"):
        extract_check.check(source, RIGHT)


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
        value(formula, values := dict(zip(old, bits, strict=True)))
        == any(
            holds(values | dict(zip(new, more, strict=True)))
            for more in product((False, True), repeat=len(new))
        )
        for bits in product((False, True), repeat=len(old))
    )


literals = st.sampled_from(["a", "b", "c", "p", "q", "~ a", "~ b", "~ c", "~ p", "~ q"])
answers = st.lists(st.lists(literals, min_size=1, max_size=3), min_size=1, max_size=6)


@given(
    st.sampled_from(["a & ~ b", "a | ( b & c )", "~ ( a | a )", "a | ~ a", "a & ~ a", "b"]), answers
)
def test_any_clauses_are_judged_as_by_a_table(source, clauses):
    answer = " ; ".join(" | ".join(clause) for clause in clauses)
    assert tseitin_check.check(source, answer) is says_the_same(source, answer)


@pytest.mark.parametrize("answer", ["", ";", "a | ; b", "a b", "~ ~ a", "( a )", "a & b", "~"])
def test_what_is_no_clause_is_wrong(answer):
    assert tseitin_check.check("a & b", answer) is False
