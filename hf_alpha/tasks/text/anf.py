"""A check of A-normal forms: each operation of a term is bound to a name that the source lacks.

`a1 & ( b2 | c3 )` is answered by `let d4 = b2 | c3 ; let e5 = a1 & d4 ; e5`, or with any other
new names. `examples/tasks/anf.py` draws such pairs.
"""

from .infix import Term, names_in, read_term

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


__all__ = ["OPERATORS", "check"]
