"""Boolean circuits as clauses for python-sat, and propositional formulas beyond truth tables.

Gates are Tseitin's, shared where their inputs are equal, and none is made where an input is a
constant. A literal is a number, its negation the number with the other sign; 1 is *true*.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

MAX_CONFLICTS = 100_000
"""A limit that, unlike one of time, gives the same answer on every machine. Some seconds."""
FEW_CONFLICTS = 1_000
"""Some milliseconds, enough for what is drawn at random; what is harder goes to a solver that can
be stopped."""


class GaveUpError(Exception):
    """The solver met too many conflicts."""


class Circuit:
    """Gates over variables 2, 3, ... as clauses that define them.

    Args:
        inputs: number of variables that no gate defines.
    """

    def __init__(self, inputs: int):
        self.clauses: list[list[int]] = [[1]]
        self._variables = 1 + inputs
        self._known: dict[tuple[int, ...], int] = {}

    def variable(self) -> int:
        """Return a variable that is new."""
        self._variables += 1
        return self._variables

    def or_(self, x: int, y: int) -> int:
        """Return x | y."""
        return -self.and_(-x, -y)

    def and_(self, x: int, y: int) -> int:
        """Return x & y."""
        if x == -1 or y == -1 or x == -y:
            return -1
        if x == 1 or x == y:
            return y
        if y == 1:
            return x
        key = (x, y) if x < y else (y, x)
        known = self._known.get(key)
        if known is None:
            x, y = key
            known = self._known[key] = self.variable()
            self.clauses += [[-known, x], [-known, y], [known, -x, -y]]
        return known

    def xor(self, x: int, y: int) -> int:
        """Return x ^ y."""
        sign = 1 if (x < 0) == (y < 0) else -1
        x, y = sorted((abs(x), abs(y)))
        if x == y:
            return -sign
        if x == 1:
            return -sign * y
        known = self._known.get((x, y, 0))
        if known is None:
            known = self._known[x, y, 0] = self.variable()
            self.clauses += [[-known, x, y], [-known, -x, -y], [known, -x, y], [known, x, -y]]
        return sign * known


class Solver:
    """A solver that knows the clauses of a circuit."""

    def __init__(self, solver: Any, conflicts: int):
        self._solver, self._conflicts = solver, conflicts

    def model(self, assumptions: Sequence[int] = ()) -> set[int] | None:
        """Return the literals of a model, None if there is none.

        Raises:
            GaveUpError: if that takes too many conflicts.
        """
        return set(self._solver.get_model()) if self._solve(assumptions) else None

    def core(self, assumptions: Sequence[int]) -> set[int] | None:
        """Return assumptions that cannot hold together, None if all can; errors as above."""
        return None if self._solve(assumptions) else set(self._solver.get_core() or ())

    def _solve(self, assumptions: Sequence[int]) -> bool:
        self._solver.conf_budget(self._conflicts)
        found: bool | None = self._solver.solve_limited(assumptions=assumptions)
        if found is None:
            raise GaveUpError
        return found


@contextmanager
def solver(
    clauses: Sequence[Sequence[int]], conflicts: int = MAX_CONFLICTS, name: str = "minisat22"
) -> Iterator[Solver]:
    """Give a solver for clauses.

    Args:
        clauses: all of them.
        conflicts: limit for each question. Minisat keeps it; Glucose may go some thousand beyond.
        name: what python-sat calls the solver.
    """
    from pysat.solvers import Solver as PySatSolver

    with PySatSolver(name, bootstrap_with=clauses) as found:
        yield Solver(found, conflicts)


def is_satisfiable(tokens: Sequence[str], conflicts: int = FEW_CONFLICTS) -> bool | None:
    """Decide whether a propositional formula can hold; None beyond so many conflicts.

    Args:
        tokens: canonical prefix tokens.
        conflicts: of the solver.
    """
    implied = implies(["!", *tokens], {}, conflicts)
    return None if implied is None else not implied


def implies(
    tokens: Sequence[str], given: Mapping[str, bool], conflicts: int = FEW_CONFLICTS
) -> bool | None:
    """Decide whether every completion of a partial assignment satisfies a formula.

    Args:
        tokens: canonical prefix tokens.
        given: values of symbols, also of some that the formula lacks.
        conflicts: of the solver, beyond which the answer is None.
    """
    circuit, leaves = Circuit(0), {name: 1 if value else -1 for name, value in given.items()}
    root = _encode(circuit, tokens, leaves)
    if abs(root) == 1:
        return root == 1
    with solver(circuit.clauses, conflicts) as asked:
        try:
            return asked.model([-root]) is None
        except GaveUpError:
            return None


def prime_implicant(tokens: Sequence[str], symbols: Sequence[str]) -> dict[str, bool] | None:
    """Return a partial assignment that implies a formula, and of which nothing can be left out.

    It starts from the solver's model, keeps what proves that the formula cannot be false, and
    leaves out one value after another from the last symbol to the first. Which one it is, is a
    function of the formula's structure, as the solver sees numbers only.

    Args:
        tokens: canonical prefix tokens.
        symbols: the formula's symbols by first occurrence.

    Returns:
        None if the formula is unsatisfiable, or a question meets more than `MAX_CONFLICTS`.
    """
    circuit = Circuit(len(symbols))
    variables = {symbol: number for number, symbol in enumerate(symbols, start=2)}
    root = _encode(circuit, tokens, dict(variables))
    with solver(circuit.clauses) as asked:
        try:
            model = asked.model([root])
            if model is None:
                return None
            kept = [x if x in model else -x for x in variables.values()]
            core = asked.core([-root, *kept]) or set()
            for literal in reversed(kept):
                if literal in core:
                    rest = [x for x in kept if x in core and x != literal]
                    core = asked.core([-root, *rest]) or core
        except GaveUpError:
            return None
    literals = zip(variables.items(), kept, strict=True)
    return {symbol: literal == x for (symbol, x), literal in literals if literal in core}


def _encode(circuit: Circuit, tokens: Sequence[str], leaves: dict[str, int]) -> int:
    """Return the literal of a formula; symbols without one get new variables."""
    leaves |= {"0": -1, "1": 1}
    stack: list[int] = []
    for token in reversed(tokens):
        if token in leaves:
            stack.append(leaves[token])
        elif token == "!":
            stack.append(-stack.pop())
        elif token == "&":
            stack.append(circuit.and_(stack.pop(), stack.pop()))
        elif token == "|":
            stack.append(circuit.or_(stack.pop(), stack.pop()))
        elif token == "^":
            stack.append(circuit.xor(stack.pop(), stack.pop()))
        elif token == "=":
            stack.append(-circuit.xor(stack.pop(), stack.pop()))
        else:
            leaves[token] = circuit.variable()
            stack.append(leaves[token])
    return stack[0]
