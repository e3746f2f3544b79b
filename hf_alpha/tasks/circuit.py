"""Boolean circuits as clauses for python-sat.

Gates are Tseitin's, shared where their inputs are equal, and none is made where an input is a
constant. A literal is a number, its negation the number with the other sign; 1 is *true*.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .decision import Clock

MAX_CONFLICTS = 100_000
"""A limit that, unlike one of time, gives the same answer on every machine. Some seconds."""


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


class ClauseSolver:
    """A solver that knows the clauses of a circuit."""

    def __init__(self, solver: Any, conflicts: int, clock: Clock | None):
        self._solver, self._conflicts, self._clock = solver, conflicts, clock

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
        while self._clock is None or self._clock.left:
            self._solver.conf_budget(self._conflicts)
            satisfiable: bool | None = self._solver.solve_limited(assumptions=assumptions)
            if satisfiable is not None:
                return satisfiable
            if self._clock is None:
                break
        raise GaveUpError


@contextmanager
def solver(
    clauses: Sequence[Sequence[int]],
    conflicts: int = MAX_CONFLICTS,
    name: str = "minisat22",
    clock: Clock | None = None,
) -> Iterator[ClauseSolver]:
    """Give a solver for clauses.

    Args:
        clauses: all of them.
        conflicts: limit for each question. Minisat keeps it; Glucose may go some thousand beyond.
        name: what python-sat calls the solver.
        clock: a solver that is asked, or has met so many conflicts, looks at it, and goes on while
            there is time.
    """
    from pysat.solvers import Solver as PySatSolver

    with PySatSolver(name, bootstrap_with=clauses) as pysat_solver:
        yield ClauseSolver(pysat_solver, conflicts, clock)
