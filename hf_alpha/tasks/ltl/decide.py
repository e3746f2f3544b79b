"""What solvers alone make of an LTL formula: bounded search, and Spot for what has no witness.

Bounded search looks for lassos of k steps, k growing, by SAT, in a process of its own. It often
refutes a formula that has no witness; where it does not, only an automaton can.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from hf_alpha.tasks.decision import Clock, Decision, small_core
from hf_alpha.tasks.problem import Problem
from hf_alpha.tasks.solver_process import (
    TIMEOUT,
    MissingSolverError,
    SolverCrashError,
    SolverProcess,
)

from . import bounded_worker, spot
from .grammar import LTL_OF_SOLVERS, for_solvers
from .trace import Trace, cube_step, write_trace
from .witness import generalised

MAX_WORK = 5_000_000
"""Literals of a word times tokens of a formula, up to which some are left out: some seconds."""
FIRST_TURN = 0.5
"""Seconds of a solver's first turn. Nearly all formulas that bounded search decides take less; each
round that follows is four times as long, and starts again."""
PART_TURN, PART_TIME = 0.05, 2.0
"""Seconds of the first turn, and of all, for a question about a part of a formula."""

Solver = Callable[[Sequence[str], Sequence[str], float], Trace | None]
Result = TypeVar("Result")

_process = SolverProcess(Path(bounded_worker.__file__))


def find_trace(
    tokens: Sequence[str], symbols: Sequence[str], timeout: float = TIMEOUT
) -> Trace | None:
    """Return a symbolic trace with as few steps as possible all of whose words satisfy a formula.

    Among those it has the shortest loop, then few literals: the fewest that the three-valued
    evaluation proves where the shape is small (`witness.shortest_witness` says when), else as many
    of which none can be left out. Beyond `MAX_WORK` it has all literals.

    Args:
        tokens: as solvers read them (`grammar.LTL_OF_SOLVERS`), canonical ones among them.
        symbols: the formula's symbols by first occurrence.
        timeout: seconds, not counting the start of the process nor the choice of literals.

    Returns:
        None if it is proved that no word satisfies the formula.

    Raises:
        TimeoutError: if the time is up.
        SolverCrashError: if the solver fails.
        MissingSolverError: if python-sat is not installed.
    """
    lasso = _process.call("search", timeout, tokens)
    if lasso is False:
        return None
    word, loop = lasso
    truths = list(map(set, word))
    if len(word) * len(symbols) * len(tokens) > MAX_WORK:
        steps = (cube_step([(symbol, symbol in step) for symbol in symbols]) for step in truths)
        return Trace(tuple(steps), loop)
    return generalised(tokens, symbols, truths, loop)


def _by_spot(options: Sequence[str] | None) -> Solver:
    return lambda tokens, symbols, seconds: spot.find_trace(tokens, seconds, options)


BOUNDED = "bounded search"
SOLVERS: dict[str, Solver] = {
    BOUNDED: find_trace,
    "Spot": _by_spot(spot.FAST),
    "Spot's default translation": _by_spot(None),
}
"""In the order of their turns. The first finds traces, and never ends for some formulas that have
none; Spot refutes these. Its default translation simplifies more, which sometimes pays."""
REFUTERS: dict[str, Callable[[Sequence[str], float], bool]] = {
    BOUNDED: lambda tokens, seconds: _process.call("search", seconds, tokens) is False,
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
