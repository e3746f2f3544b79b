"""What solvers alone make of an LTL formula: bounded search, and Spot for what has no witness."""

from collections.abc import Callable, Sequence

from hf_alpha.tasks.decision import Clock, Decision, small_core
from hf_alpha.tasks.problem import Problem
from hf_alpha.tasks.solver_process import MissingSolverError, SolverCrashError

from . import bounded, spot
from .grammar import LTL
from .trace import Trace, write_trace

FIRST_TURN = 0.5
"""Seconds of a solver's first turn. Nearly all formulas that bounded search decides take less; each
round that follows is four times as long, and starts again."""
CORE_TURN = 0.5
"""Seconds for a question about a part of a formula."""

Solver = Callable[[Sequence[str], Sequence[str], float], Trace | None]


def _by_spot(options: Sequence[str] | None) -> Solver:
    def find_trace(tokens: Sequence[str], symbols: Sequence[str], seconds: float) -> Trace | None:
        run = spot.find_trace(tokens, seconds, options)
        return None if run is None else Trace(tuple(map(tuple, run[0])), run[1])

    return find_trace


def _by_search(tokens: Sequence[str], symbols: Sequence[str], seconds: float) -> Trace | None:
    return bounded.find_trace(tokens, symbols, seconds)


BOUNDED = "bounded search"
SOLVERS: dict[str, Solver] = {
    BOUNDED: _by_search,
    "Spot": _by_spot(spot.FAST),
    "Spot's default translation": _by_spot(None),
}
"""In the order of their turns. The first finds traces, and never ends for some formulas that have
none; Spot refutes these. Its default translation simplifies more, which sometimes pays."""


def decide(problem: Problem, seconds: float) -> Decision:
    """Find a trace, or prove that there is none; solvers take turns.

    Args:
        problem: a formula.
        seconds: for all of it, but for the choice of a trace's literals.
    """
    clock, turn = Clock(seconds), FIRST_TURN
    failures: dict[str, str] = {}
    while clock.left and len(failures) < len(SOLVERS):
        for by, solver in SOLVERS.items():
            if by in failures or not (left := clock.left):
                continue
            try:
                trace = solver(problem.tokens, problem.symbols, min(turn, left))
            except TimeoutError:
                continue
            except (MissingSolverError, SolverCrashError) as error:
                failures[by] = str(error)
                continue
            if trace is None:
                return _refuted(problem, by, clock)
            return Decision(by, write_trace(trace))
        turn *= 4
    reasons = [*dict.fromkeys(failures.values())]
    if len(failures) < len(SOLVERS):
        reasons.append(f"no solver was done within {seconds:g} s")
    return Decision(", ".join(SOLVERS), reason="; ".join(reasons))


def _refuted(problem: Problem, by: str, clock: Clock) -> Decision:
    """Look for a small core with the solver that refuted the whole formula."""

    def refutes(tokens: Sequence[str]) -> bool:
        try:
            if by == BOUNDED:
                return bounded.is_refuted(tokens, min(CORE_TURN, clock.left))
            return SOLVERS[by](tokens, (), min(CORE_TURN, clock.left)) is None
        except (TimeoutError, MissingSolverError, SolverCrashError):
            return False

    core = small_core(problem.written or problem.tokens, LTL, refutes, clock)
    return Decision(by, unsatisfiable=True, core=core)
