"""Terms in infix notation, with spaces between all tokens, and brackets around inner operations.

`a & ( b | c )` is `("&", "a", ("|", "b", "c"))`. A name is a string.
"""

from collections.abc import Collection
from typing import TypeAlias

Term: TypeAlias = "str | tuple[str, Term] | tuple[str, Term, Term]"


def read_term(text: str, operators: Collection[str], prefix: str = "") -> Term:
    """Read a term.

    Args:
        text: the term.
        operators: with two operands.
        prefix: the operator with one operand, if there is one.

    Raises:
        ValueError: the text is no such term.
    """
    signs = {*operators, prefix, "(", ")"}
    open_parts: list[list[Term]] = [[]]
    for token in text.split():
        if token == "(":
            open_parts.append([])
        elif token == ")":
            if len(open_parts) == 1:
                raise ValueError(f"no term: {text!r} has a bracket too many")
            inner = _operation(open_parts.pop(), operators, prefix, signs, text)
            open_parts[-1].append(inner)
        else:
            open_parts[-1].append(token)
    if len(open_parts) > 1:
        raise ValueError(f"no term: {text!r} lacks a closing bracket")
    return _operation(open_parts[0], operators, prefix, signs, text)


def _operation(
    parts: list[Term], operators: Collection[str], prefix: str, signs: Collection[str], text: str
) -> Term:
    """Return the one term that the parts between two brackets are."""
    operands: list[Term] = []
    for part in reversed(parts):
        if prefix and part == prefix and operands:
            operands[-1] = (prefix, operands[-1])
        else:
            operands.append(part)
    operands.reverse()
    if len(operands) == 1 and operands[0] not in signs:
        return operands[0]
    if len(operands) == 3:
        left, operator, right = operands
        is_one = isinstance(operator, str) and operator in operators
        if is_one and left not in signs and right not in signs:
            return str(operator), left, right
    raise ValueError(f"no term: {text!r} has {len(operands)} parts where an operation should be")


def write_term(term: Term, inner: bool = False) -> str:
    """Write a term; `inner` is whether it stands in another one."""
    if isinstance(term, str):
        return term
    if len(term) == 2:
        return f"{term[0]} {write_term(term[1], True)}"
    operator, left, right = term
    text = f"{write_term(left, True)} {operator} {write_term(right, True)}"
    return f"( {text} )" if inner else text


def names_in(term: Term) -> list[str]:
    """Return the different names of a term, in order of first occurrence."""
    names: dict[str, None] = {}
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            names[part] = None
        else:
            waiting += reversed(part[1:])
    return list(names)


__all__ = ["Term", "names_in", "read_term", "write_term"]
