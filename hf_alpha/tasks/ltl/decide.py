"""What solvers alone make of an LTL formula: bounded search, and Spot for what has no witness."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from hf_alpha.tasks.decision import Clock, Decision, small_core
from hf_alpha.tasks.problem import Problem
from hf_alpha.tasks.solver_process import MissingSolverError, SolverCrashError

from . import bounded, spot
from .grammar import LTL_OF_SOLVERS, for_solvers
from .trace import Trace, write_trace

FIRST_TURN = 0.5
"""Seconds of a solver's first turn. Nearly all formulas that bounded search decides take less; each
round that follows is four times as long, and starts again."""
PART_TURN, PART_TIME = 0.05, 2.0
"""Seconds of the first turn, and of all, for a question about a part of a formula."""

Solver = Callable[[Sequence[str], Sequence[str], float], Trace | None]
Result = TypeVar("Result")


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
REFUTERS: dict[str, Callable[[Sequence[str], float], bool]] = {
    BOUNDED: bounded.is_refuted,
    "Spot": lambda tokens, seconds: not spot.is_satisfiable(tokens, seconds),
}
"""Of parts. That bounded search refutes the whole says nothing of what it can do for a part."""


class UndecidedError(Exception):
    """No solver decided."""


def decide(problem: Problem, seconds: float) -> Decision:
    """Find a trace, or prove that there is none; solvers take turns.

    Args:
        problem: a formula.
        seconds: for all of it, but for the choice of a trace's literals.
    """
    clock, tokens = Clock(seconds), for_solvers(problem)
    asks = {by: partial(solver, tokens, problem.symbols) for by, solver in SOLVERS.items()}
    try:
        by, trace = _in_turns(asks, seconds, FIRST_TURN)
    except UndecidedError as error:
        return Decision(", ".join(SOLVERS), reason=str(error))
    if trace is not None:
        return Decision(by, write_trace(trace))
    core = small_core(problem.written, LTL_OF_SOLVERS, partial(_refutes, clock), clock)
    return Decision(by, unsatisfiable=True, core=core)


def _refutes(clock: Clock, tokens: Sequence[str]) -> bool:
    """Whether a solver proves that a part has no trace."""
    asks = {by: partial(refuter, tokens) for by, refuter in REFUTERS.items()}
    try:
        return _in_turns(asks, min(PART_TIME, clock.left), PART_TURN)[1]
    except UndecidedError:
        return False


def _in_turns(
    asks: Mapping[str, Callable[[float], Result]], seconds: float, turn: float
) -> tuple[str, Result]:
    """Return the first result, and whose it is.

    Args:
        asks: solver -> what asks it, within so many seconds.
        seconds: for all of it.
        turn: seconds of each solver's first turn; those that follow are four times as long.

    Raises:
        UndecidedError: there is none; the message says why.
    """
    clock = Clock(seconds)
    failures: dict[str, str] = {}
    while clock.left and len(failures) < len(asks):
        for by, ask in asks.items():
            if by in failures or not (left := clock.left):
                continue
            try:
                return by, ask(min(turn, left))
            except TimeoutError:
                continue
            except (MissingSolverError, SolverCrashError) as error:
                failures[by] = str(error)
        turn *= 4
    reasons = [*dict.fromkeys(failures.values())]
    if len(failures) < len(asks):
        reasons.append(f"no solver was done within {seconds:g} s")
    raise UndecidedError("; ".join(reasons))
