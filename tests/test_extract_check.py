"""Expressions that get a variable: which answers are right."""

import pytest
from hf_alpha.tasks.text.extract import check

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
def test_right_answers(answer):
    assert check(SOURCE, answer) is True


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
def test_wrong_answers(answer):
    assert check(SOURCE, answer) is False


def test_a_variable_is_set_where_the_expression_has_its_value():
    """An operand that is set again stands for another number behind that."""
    source = "extract a + b\ndef f(a, b):\n    c = a + b\n    a = c * c\n    return a + b + c"
    answer = "def f(a, b):\n    new = a + b\n    c = new\n    a = c * c\n    return new + c"
    assert check(source, answer) is False
    late = source.replace("c = a + b", "c = b")
    assert check(late, "def f(a, b):\n    c = b\n    a = c * c\n    n = a + b\n    return n + c")
    early = "def f(a, b):\n    n = a + b\n    c = b\n    a = c * c\n    return n + c"
    assert check(late, early) is False


@pytest.mark.parametrize("source", ["a", SOURCE.replace("a + b\n", "a +\n"), "extract a\nx = a"])
def test_sources_are_an_order_and_a_function(source):
    with pytest.raises(ValueError, match="is no 'extract' with an expression"):
        check(source, RIGHT)
