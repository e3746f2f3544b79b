"""A check of A-normal forms: each operation of a term is bound to a name that the source lacks.

`a1 & ( b2 | c3 )` is answered by `let d4 = b2 | c3 ; let e5 = a1 & d4 ; e5`, or with any other
new names. `examples/tasks/anf.py` draws such pairs.
"""

from collections.abc import Collection, Mapping
from typing import TypeAlias

Term: TypeAlias = "str | tuple[str, Term] | tuple[str, Term, Term]"
"""`a & ( b | c )` is `("&", "a", ("|", "b", "c"))`. A name is a string."""

OPERATORS = ("&", "|", "^")
WORDS = {"let", "=", "(", ")", *OPERATORS}
"""What is no name, whatever names are like."""


def check(source: str, answer: str, target: str | None = None) -> bool:
    """Return whether an answer is an A-normal form of its source.

    It is `let NAME = NAME OPERATOR NAME ;` for some operations, and a name. Names that are bound
    are not in the source, are bound once, and are used, and only behind their binding; and what is
    put in their place gives the source. An operation that the source has twice may be bound once.

    Raises:
        ValueError: the source is no term.
    """
    term = read_term(source, OPERATORS)
    *statements, result = (statement.split() for statement in answer.split(";"))
    values: dict[str, Term] = {name: name for name in names_in(term)}
    unused = set[str]()
    for statement in statements:
        match statement:
            case ["let", name, "=", left, operator, right] if operator in OPERATORS:
                if name in values or name in WORDS or not {left, right} <= values.keys():
                    return False
                values[name] = (operator, values[left], values[right])
                unused = (unused - {left, right}) | {name}
            case _:
                return False
    return len(result) == 1 and unused <= {result[0]} and values.get(result[0]) == term


def check_step(source: str, answer: str, target: str | None = None) -> bool:
    """Return whether an answer is its source with operations bound where they stand.

    `a1 & d4 = b2 | c3` is a step of `a1 & ( b2 | c3 )`; what is left to do is `a1 & d4`. At least
    one operation is bound, each to a name of its own that the source lacks.

    Raises:
        ValueError: the source is no term.
    """
    term = read_term(source, OPERATORS)
    try:
        bound, rest = read_step(answer)
        left = read_term(rest, OPERATORS)
    except ValueError:
        return False
    taken = {*names_in(term), *WORDS}
    return bool(bound) and bound.keys().isdisjoint(taken) and _unfold(left, bound) == term


def read_step(answer: str) -> tuple[dict[str, Term], str]:
    """Return the operations that a step binds, by their names, and the term that is left.

    Raises:
        ValueError: a name is bound twice, or to no operation.
    """
    words, bound, rest = answer.split(), dict[str, Term](), list[str]()
    while words:
        match words:
            case [name, "=", left, operator, right, *words] if name not in bound:
                bound[name] = (operator, left, right)
                rest.append(name)
            case [name, "=", *_]:
                raise ValueError(f"no step: {name} is bound twice, or to no operation")
            case [word, *words]:
                rest.append(word)
    return bound, " ".join(rest)


def _unfold(term: Term, bound: Mapping[str, Term]) -> Term:
    """Put operations in the places of their names."""
    if isinstance(term, str):
        return bound.get(term, term)
    operator, left, right = term  # type: ignore[misc]  # an operator with one operand is not read
    return operator, _unfold(left, bound), _unfold(right, bound)


def read_term(text: str, operators: Collection[str], prefix: str = "") -> Term:
    """Read a term in infix, with spaces between all tokens and brackets around inner operations.

    Args:
        operators: with two operands.
        prefix: the operator with one operand, if there is one.

    Raises:
        ValueError: the text is no such term.
    """
    tokens, signs = [*text.split(), "\n"][::-1], {*operators, prefix, ")", "\n"}

    def operand() -> Term:
        token = tokens.pop()
        if token == "(":
            return operation(")")
        if token == prefix:
            return prefix, operand()
        if token in signs:
            raise ValueError(f"no term: {text!r}: {token!r} where a name should be")
        return token

    def operation(end: str) -> Term:
        term = operand()
        if tokens[-1] in operators:
            term = (tokens.pop(), term, operand())
        if tokens.pop() != end:
            raise ValueError(f"no term: {text!r}: {end!r} is missing behind an operation")
        return term

    return operation("\n")


def names_in(term: Term) -> list[str]:
    """Return the different names of a term, in order of first occurrence."""
    if isinstance(term, str):
        return [term]
    return list(dict.fromkeys(name for part in term[1:] for name in names_in(part)))
