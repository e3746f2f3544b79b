"""A check of clauses that say what a formula says, as Tseitin's transformation gives them.

`a1 & ~ ( b2 | c3 )` becomes clauses of literals, with a new name for each operation: here
`~ d4 | b2 | c3 ; d4 | ~ b2 ; d4 | ~ c3 ; ~ e5 | a1 ; ...`, and at the end the literal that stands
for the whole. A SAT solver says which answers are right. `examples/tasks/tseitin.py` draws pairs.
"""

from hf_alpha.logic.sat import Circuit, GaveUpError, solver
from hf_alpha.tasks.text.anf import Term, names_in, read_term

OPERATORS = ("&", "|")
WORDS = {"~", "(", ")", *OPERATORS}
"""What is no name, whatever names are like."""


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


__all__ = ["OPERATORS", "check"]
