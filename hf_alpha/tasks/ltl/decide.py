"""What solvers alone make of an LTL formula: bounded search, and Spot for what has no witness."""

from collections.abc import Sequence

from hf_alpha.tasks.decision import Clock, Decision, small_core
from hf_alpha.tasks.problem import Problem
from hf_alpha.tasks.solver_process import MissingSolverError, SolverCrashError

from . import bounded, spot
from .grammar import LTL
from .trace import write_trace

BOUNDED, SPOT = "bounded search", "Spot"
FIRST_TURN = 0.5
"""Seconds of a solver's first turn. Nearly all formulas that bounded search decides take less; each
turn that follows is four times as long, and starts again."""
CORE_TURN = 0.5
"""Seconds for a question about a part of a formula."""


def decide(problem: Problem, seconds: float) -> Decision:
    """Find a trace, or prove that there is none.

    Bounded search and Spot take turns: the former finds traces, the latter alone can refute every
    formula that has none.

    Args:
        problem: a formula.
        seconds: for all of it, but for the choice of a trace's literals.
    """
    clock, turn = Clock(seconds), FIRST_TURN
    reasons: dict[str, str] = {}
    while (left := clock.left) and len(reasons) < 2:
        if BOUNDED not in reasons:
            try:
                trace = bounded.find_trace(problem.tokens, problem.symbols, min(turn, left))
                if trace is None:
                    return _refuted(problem, BOUNDED, clock)
                return Decision(BOUNDED, write_trace(trace))
            except TimeoutError:
                pass
            except (MissingSolverError, SolverCrashError) as error:
                reasons[BOUNDED] = str(error)
        if SPOT not in reasons and (left := clock.left):
            try:
                if not spot.is_satisfiable(problem.tokens, min(turn, left)):
                    return _refuted(problem, SPOT, clock)
                reasons[SPOT] = "there is a trace, but the time was too short to find it"
            except TimeoutError:
                pass
            except (MissingSolverError, SolverCrashError) as error:
                reasons[SPOT] = str(error)
        turn *= 4
    reason = "; ".join(reasons.values()) or f"no solver was done within {seconds:g} s"
    return Decision(f"{BOUNDED} and {SPOT}", reason=reason)


def _refuted(problem: Problem, by: str, clock: Clock) -> Decision:
    """Look for a small core with the solver that refuted the whole formula."""

    def refutes(tokens: Sequence[str]) -> bool:
        seconds = min(CORE_TURN, clock.left)
        try:
            if by == BOUNDED:
                return bounded.is_refuted(tokens, seconds)
            return not spot.is_satisfiable(tokens, seconds)
        except (TimeoutError, MissingSolverError, SolverCrashError):
            return False

    core = small_core(problem.written or problem.tokens, LTL, refutes, clock)
    return Decision(by, unsatisfiable=True, core=core)
