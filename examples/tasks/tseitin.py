"""Make pairs for Tseitin's transformation: clauses that say what a formula says.

    python examples/tasks/tseitin.py data/tseitin

`a1 & ~ ( b2 | c3 )` becomes clauses of literals, with a new name for each operation: here
`~ d4 | b2 | c3 ; d4 | ~ b2 ; d4 | ~ c3 ; ~ e5 | a1 ; ...`, and at the end the literal that stands
for the whole. `tseitin_check` says which answers are right.
"""

import random
from collections.abc import Sequence

from pair_files import (
    Row,
    draw_term,
    files_of_operations,
    main_of_operations,
    spread,
    write_term,
)
from tseitin_check import OPERATORS

from hf_alpha.tasks.text.anf import Term

MOST_OPERATIONS = 5
NEGATED = 0.3
"""Share of the operands that are negated."""

Literal = tuple[str, bool]
"""A name, and whether it is negated."""


def draw(rng: random.Random, pool: Sequence[str], names: int, operations: int) -> Row:
    """Draw a pair.

    Args:
        rng: the random numbers.
        pool: names of the source and new ones.
        names: different ones of the source, at most one more than there are operations.
        operations: of the source, without negations.
    """
    chosen = rng.sample(pool, names + operations)
    leaves = spread(rng, chosen[:names], operations + 1)
    formula = _negated(rng, draw_term(rng, leaves, OPERATORS))
    return {
        "source": write_term(formula),
        "target": clauses_of(formula, chosen[names:]),
        "names": names,
        "operations": operations,
    }


def _negated(rng: random.Random, formula: Term) -> Term:
    """Negate some parts of a formula."""
    if not isinstance(formula, str):
        operator, *operands = formula
        left, right = (_negated(rng, operand) for operand in operands)
        formula = (operator, left, right)
    return ("~", formula) if rng.random() < NEGATED else formula


def clauses_of(formula: Term, names: Sequence[str]) -> str:
    """Write Tseitin's clauses of a formula, inner operations first and left before right ones.

    Args:
        formula: of `&`, `|` and `~`.
        names: new ones, one for each operation.
    """
    unused, clauses = iter(names), list[str]()

    def name(part: Term) -> Literal:
        if isinstance(part, str):
            return part, False
        if part[0] == "~":
            inner, is_negated = name(part[1])
            return inner, not is_negated
        operator, *operands = part
        left, right = map(name, operands)
        gate = next(unused)
        clauses.extend(_gate(gate, left, right, is_or=operator == "|"))
        return gate, False

    result = name(formula)
    return " ; ".join([*clauses, _clause(result)])


def _gate(gate: str, left: Literal, right: Literal, is_or: bool) -> list[str]:
    """Write the clauses that say that a name is the conjunction, or disjunction, of two sides."""
    # A disjunction is false exactly if both sides are: the same clauses, all literals negated.
    sides = [(name, negated != is_or) for name, negated in (left, right)]
    whole = (gate, is_or)
    return [
        *(_clause(_not(whole), side) for side in sides),
        _clause(whole, *map(_not, sides)),
    ]


def _not(literal: Literal) -> Literal:
    name, negated = literal
    return name, not negated


def _clause(*literals: Literal) -> str:
    return " | ".join(f"~ {name}" if negated else name for name, negated in literals)


FILES = files_of_operations(draw, MOST_OPERATIONS)
SEEN, UNSEEN = FILES.seen, FILES.unseen

if __name__ == "__main__":
    main_of_operations(draw, MOST_OPERATIONS)
