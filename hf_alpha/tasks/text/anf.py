"""A task for texts whose answers need new names: A-normal form, each operation bound to a name.

`a1 & ( b2 | c3 )` is answered by `let d4 = b2 | c3 ; let e5 = a1 & d4 ; e5`, or with any other
names that the source lacks. `check` says which answers are right.
"""

import random
from collections.abc import Sequence

from .infix import Term, draw_term, names_in, read_term, write_term
from .pair_files import PairFiles, Row, letter_names, spread

OPERATORS = ("&", "|", "^")
MOST_OPERATIONS = 7
WORDS = {"let", "=", "(", ")", *OPERATORS}
"""What is no name, whatever names are like."""


def draw(rng: random.Random, pool: Sequence[str], names: int, operations: int) -> Row:
    """Draw a pair.

    Args:
        rng: the random numbers.
        pool: names of the source and new ones.
        names: different ones of the source, at most one more than there are operations.
        operations: of the source.
    """
    chosen = rng.sample(pool, names + operations)
    leaves = spread(rng, chosen[:names], operations + 1)
    term = draw_term(rng, leaves, OPERATORS)
    return {
        "source": write_term(term),
        "target": normal_form(term, chosen[names:]),
        "names": names,
        "operations": operations,
    }


def normal_form(term: Term, names: Sequence[str]) -> str:
    """Write the A-normal form of a term, inner operations first and left ones before right ones.

    Args:
        term: with two operands to each operator.
        names: new ones, one for each operation.
    """
    unused, statements = iter(names), list[str]()

    def bind(part: Term) -> str:
        if isinstance(part, str):
            return part
        operator, *operands = part
        left, right = map(bind, operands)
        statements.append(f"let {(name := next(unused))} = {left} {operator} {right}")
        return name

    result = bind(term)
    return " ; ".join([*statements, result])


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


SEEN, UNSEEN = letter_names(26)
FILES = PairFiles(
    draw,
    SEEN,
    UNSEEN,
    train=[(names, size) for size in range(1, MOST_OPERATIONS + 1)
           for names in range(2, min(4, size + 1) + 1)],
    test=[(names, MOST_OPERATIONS) for names in range(2, MOST_OPERATIONS + 2)],
)  # fmt: skip

__all__ = ["FILES", "OPERATORS", "check", "draw", "normal_form"]

if __name__ == "__main__":
    FILES.main()
