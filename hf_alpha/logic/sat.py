"""Boolean formulas beyond truth tables: circuits as clauses for python-sat.

Gates are Tseitin's, shared where their inputs are equal, and none is made where an input is a
constant. A literal is a number, its negation the number with the other sign; 1 is *true*.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hf_alpha.wings import optional

from .cores import Clock
from .formulas import fold

MAX_CONFLICTS = 100_000
"""A limit that, unlike one of time, gives the same answer on every machine. Some seconds."""
FEW_CONFLICTS = 1_000
"""Some milliseconds, after which a solver with a limit of time looks at the clock."""


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
        """Return a new variable."""
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
        gate = self._known.get(key)
        if gate is None:
            x, y = key
            gate = self._known[key] = self.variable()
            self.clauses += [[-gate, x], [-gate, y], [gate, -x, -y]]
        return gate

    def xor(self, x: int, y: int) -> int:
        """Return x ^ y."""
        sign = 1 if (x < 0) == (y < 0) else -1
        x, y = sorted((abs(x), abs(y)))
        if x == y:
            return -sign
        if x == 1:
            return -sign * y
        gate = self._known.get((x, y, 0))
        if gate is None:
            gate = self._known[x, y, 0] = self.variable()
            self.clauses += [[-gate, x, y], [-gate, -x, -y], [gate, -x, y], [gate, x, -y]]
        return sign * gate

    def formula(self, tokens: Sequence[str], leaves: Mapping[str, int]) -> int:
        """Return the literal of a propositional formula; symbols not in `leaves` get variables."""
        literals = {"0": -1, "1": 1, **leaves}

        def leaf(token: str) -> int:
            if token not in literals:
                literals[token] = self.variable()
            return literals[token]

        operators: dict[str, Callable[..., int]] = {
            "!": lambda x: -x,
            "&": self.and_,
            "|": self.or_,
            "^": self.xor,
            "=": lambda x, y: -self.xor(x, y),
        }
        return fold(tokens, operators, leaf)


class ClauseSolver:
    """A solver of python-sat that knows clauses, and gives up.

    Args:
        solver: of python-sat.
        limit: conflicts for each question (Minisat keeps the limit; Glucose may go some thousand
            beyond), or a clock: a solver that is asked, or has met `FEW_CONFLICTS`, looks at it,
            and goes on while there is time.
    """

    def __init__(self, solver: Any, limit: int | Clock):
        self._solver, self._limit = solver, limit

    def model(self, assumptions: Sequence[int] = ()) -> set[int] | None:
        """Return the literals of a model, None if there is none.

        Raises:
            GaveUpError: if that takes too many conflicts, or the time is up.
        """
        return set(self._solver.get_model()) if self._solve(assumptions) else None

    def core(self, assumptions: Sequence[int]) -> set[int] | None:
        """Return assumptions that cannot hold together, None if all can; errors as above."""
        return None if self._solve(assumptions) else set(self._solver.get_core() or ())

    def _solve(self, assumptions: Sequence[int]) -> bool:
        limit = self._limit
        clock = limit if isinstance(limit, Clock) else None
        while clock is None or clock.left:
            self._solver.conf_budget(limit if clock is None else FEW_CONFLICTS)
            satisfiable: bool | None = self._solver.solve_limited(assumptions=assumptions)
            if satisfiable is not None:
                return satisfiable
            if clock is None:
                break
        raise GaveUpError


@contextmanager
def solver(
    clauses: Sequence[Sequence[int]], limit: int | Clock = MAX_CONFLICTS, name: str = "minisat22"
) -> Iterator[ClauseSolver]:
    """Give a solver for all these clauses, by python-sat's name; see `ClauseSolver`."""
    with optional():
        from pysat.solvers import Solver as PySatSolver

    with PySatSolver(name, bootstrap_with=clauses) as pysat_solver:
        yield ClauseSolver(pysat_solver, limit)


def implies(
    tokens: Sequence[str], assignment: Mapping[str, bool], limit: int | Clock = FEW_CONFLICTS
) -> bool | None:
    """Decide whether every completion of a partial assignment satisfies a formula.

    Args:
        tokens: canonical prefix tokens.
        assignment: values of symbols, also of some that the formula lacks.
        limit: of the solver, beyond which the answer is None.
    """
    circuit = Circuit(0)
    root = circuit.formula(tokens, {name: 1 if x else -1 for name, x in assignment.items()})
    if abs(root) == 1:
        return root == 1
    with solver(circuit.clauses, limit) as query:
        try:
            return query.model([-root]) is None
        except GaveUpError:
            return None


def is_satisfiable(tokens: Sequence[str], limit: int | Clock = FEW_CONFLICTS) -> bool | None:
    """Decide whether a formula can hold; `implies` describes arguments and result."""
    implied = implies(["!", *tokens], {}, limit)
    return None if implied is None else not implied


def prime_implicant(
    tokens: Sequence[str], symbols: Sequence[str], limit: int | Clock = MAX_CONFLICTS
) -> dict[str, bool] | None:
    """Return a partial assignment that implies a formula, and of which nothing can be left out.

    It starts from the solver's model, keeps what proves that the formula cannot be false, and
    leaves out one value after another from the last symbol to the first. Which one it is, is a
    function of the formula's structure, as the solver sees numbers only. Where the limit is a
    clock, and the time is up before each value was tried, the others stay.

    Args:
        tokens: canonical prefix tokens.
        symbols: the formula's symbols by first occurrence.

    Returns:
        None if the formula is unsatisfiable.

    Raises:
        GaveUpError: the limit is reached, and nothing is known.
    """
    circuit = Circuit(len(symbols))
    variables = {symbol: number for number, symbol in enumerate(symbols, start=2)}
    root = circuit.formula(tokens, variables)
    with solver(circuit.clauses, limit) as query:
        model = query.model([root])
        if model is None:
            return None
        model_literals = [x if x in model else -x for x in variables.values()]
        core = set(model_literals)
        try:
            core = query.core([-root, *model_literals]) or set()
            for literal in reversed(model_literals):
                if literal in core:
                    candidates = [x for x in model_literals if x in core and x != literal]
                    core = query.core([-root, *candidates]) or core
        except GaveUpError:
            if not isinstance(limit, Clock):
                raise
    literals = zip(variables.items(), model_literals, strict=True)
    return {symbol: literal == x for (symbol, x), literal in literals if literal in core}
