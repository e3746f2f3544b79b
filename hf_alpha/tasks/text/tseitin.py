"""A task for texts whose answers need new names: clauses that say what a formula says.

`a1 & ~ ( b2 | c3 )` becomes clauses of literals, with a new name for each operation, as Tseitin's
transformation gives them: here `~ d4 | b2 | c3 ; d4 | ~ b2 ; d4 | ~ c3 ; ~ e5 | a1 ; ...`, and at
the end the literal that stands for the whole. `check` asks a SAT solver which answers are right.
"""

import random
from collections.abc import Sequence

from hf_alpha.tasks.circuit import Circuit, GaveUpError, solver

from .infix import Term, draw_term, names_in, read_term, write_term
from .pair_files import PairFiles, Row, letter_names, spread

OPERATORS = ("&", "|")
MOST_OPERATIONS = 5
NEGATED = 0.3
"""Share of the operands that are negated."""
WORDS = {"~", "(", ")", *OPERATORS}
"""What is no name, whatever names are like."""

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


def check(source: str, answer: str, target: str | None = None) -> bool | None:
    """Return whether an answer's clauses say of the source's names what the source says.

    They do if, for all values of these names, the source is true if and only if the answer's other
    names have values with which all clauses are true. So the two are satisfiable alike. None if
    the solver gives up.

    Raises:
        ValueError: the source is no formula.
    """
    formula = read_term(source, OPERATORS, "~")
    number_of = {name: number for number, name in enumerate(names_in(formula), start=2)}
    old = list(number_of.values())
    clauses = _read_clauses(answer, number_of)
    if clauses is None:
        return False
    circuit = Circuit(len(number_of))
    whole = _literal(circuit, formula, number_of)
    try:
        with solver([*circuit.clauses, *clauses]) as both:
            if both.model([-whole]) is not None:
                return False
        return _covers(circuit, whole, clauses, old)
    except GaveUpError:
        return None


def _read_clauses(answer: str, number_of: dict[str, int]) -> list[list[int]] | None:
    """Return the clauses as numbers, None if there are none; new names get numbers."""
    clauses = []
    for text in answer.split(";"):
        clause = []
        for literal in text.split(" | "):
            *sign, name = literal.split() or [""]
            if not name or name in WORDS or sign not in ([], ["~"]):
                return None
            number = number_of.setdefault(name, len(number_of) + 2)
            clause.append(-number if sign else number)
        clauses.append(clause)
    return clauses


def _literal(circuit: Circuit, formula: Term, number_of: dict[str, int]) -> int:
    """Return the literal that stands for a formula in a circuit."""
    if isinstance(formula, str):
        return number_of[formula]
    operator, *operands = formula
    one, *others = (_literal(circuit, operand, number_of) for operand in operands)
    if operator == "~":
        return -one
    return circuit.and_(one, *others) if operator == "&" else circuit.or_(one, *others)


def _covers(circuit: Circuit, whole: int, clauses: list[list[int]], old: list[int]) -> bool:
    """Return whether new names have values for all values of the old ones that make `whole` true.

    Each answer of the solver settles all values of the old names for which the same values of the
    new ones do; the circuit grows by a gate that says that these do not.
    """
    with solver([[1], *clauses]) as clause_solver:
        circuit.clauses.append([whole])
        while True:
            with solver(circuit.clauses) as rest:
                point = rest.model()
            if point is None:
                return True
            values = [number if number in point else -number for number in old]
            model = clause_solver.model(values)
            if model is None:
                return False
            settled = 1
            for clause in clauses:
                if not any(literal in model for literal in clause if abs(literal) not in old):
                    side = -1
                    for literal in clause:
                        if abs(literal) in old:
                            side = circuit.or_(side, literal)
                    settled = circuit.and_(settled, side)
            circuit.clauses.append([-settled])


SEEN, UNSEEN = letter_names(26)
FILES = PairFiles(
    draw,
    SEEN,
    UNSEEN,
    train=[(names, size) for size in range(1, MOST_OPERATIONS + 1)
           for names in range(2, min(4, size + 1) + 1)],
    test=[(names, MOST_OPERATIONS) for names in range(2, MOST_OPERATIONS + 2)],
)  # fmt: skip

__all__ = ["FILES", "OPERATORS", "check", "clauses_of", "draw"]

if __name__ == "__main__":
    FILES.main()
