"""What solvers alone make of an LTL formula: bounded search, and Spot for what has no witness.

Bounded search looks for lassos of k steps, k growing, by SAT, in a process of its own. It often
refutes a formula that has no witness; where it does not, only an automaton can.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import tee
from pathlib import Path
from typing import Any, TypeVar

from hf_alpha.logic.cores import Clock, small_core
from hf_alpha.tasks.decision import Decision
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
from .witness import generalised, single_step

MAX_WORK = 5_000_000
"""Literals of a word times tokens of a formula, up to which some are left out: some seconds."""
FIRST_TURN, FIRST_STEPS = 0.5, 16
"""Seconds of a solver's first turn, and steps of bounded search's. Nearly all formulas that bounded
search decides take less; each round that follows is four times as long, and starts again."""
PART_TURN, PART_TIME = 0.05, 2.0
"""Seconds of the first turn, and of all, for a question about a part of a formula."""

Solver = Callable[[Sequence[str], Sequence[str], float], Trace | None]
Result = TypeVar("Result")

_idle: list[SolverProcess] = []
"""Processes of bounded search, each of which is used by one iterator at a time."""


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
    return single_step(tokens, symbols) or _trace(tokens, symbols, _lasso(tokens, timeout, None))


def _search(
    formulas: Iterable[Sequence[str]], seconds: float, steps: int | None
) -> Iterator[Callable[[], Any]]:
    """Have bounded search look for lassos of at most so many steps; see `SolverProcess.calls`."""
    process = _idle.pop() if _idle else SolverProcess(Path(bounded_worker.__file__))
    results = process.calls("search", seconds, formulas, steps)
    try:
        yield from results
    finally:
        results.close()
        _idle.append(process)


def _lasso(tokens: Sequence[str], seconds: float, steps: int | None) -> Any:
    """Return what bounded search finds for a formula."""
    (result,) = _search([tokens], seconds, steps)
    return _decisive(result())


def _decisive(lasso: Any) -> Any:
    """Return what bounded search found; raise a TimeoutError if it had too few steps."""
    if lasso is None:
        raise TimeoutError
    return lasso


def _trace(tokens: Sequence[str], symbols: Sequence[str], lasso: Any) -> Trace | None:
    """Return the trace of a lasso that bounded search found; None if it has refuted the formula."""
    if lasso is False:
        return None
    word, loop = lasso
    truths = list(map(set, word))
    if len(word) * len(symbols) * len(tokens) > MAX_WORK:
        steps = (cube_step([(symbol, symbol in step) for symbol in symbols]) for step in truths)
        return Trace(tuple(steps), loop)
    return generalised(tokens, symbols, truths, loop)


def _by_spot(options: Sequence[str] | None) -> Solver:
    return lambda tokens, _, seconds: spot.find_trace(tokens, seconds, options)


BOUNDED = "bounded search"
SOLVERS: dict[str, Solver] = {
    BOUNDED: find_trace,
    "Spot": _by_spot(spot.FAST),
    "Spot's default translation": _by_spot(None),
}
"""In the order of their turns. The first finds traces, and never ends for some formulas that have
none; Spot refutes these. Its default translation simplifies more, which sometimes pays."""
REFUTERS: dict[str, Callable[[Sequence[str], float, int | None], bool]] = {
    BOUNDED: lambda *question: _lasso(*question) is False,
    "Spot": lambda tokens, seconds, _: not spot.is_satisfiable(tokens, seconds),
}
"""Of parts. That bounded search refutes the whole says nothing of what it can do for a part."""


class UndecidedError(Exception):
    """No solver decided."""


def decide(problem: Problem, seconds: float) -> Decision:
    """Find a trace, or prove that there is none; solvers take turns.

    Args:
        seconds: for all of it, but for the choice of a trace's literals.
    """
    return next(decide_all([problem], seconds))


def decide_all(problems: Sequence[Problem], seconds: float) -> Iterator[Decision]:
    """Yield what `decide` says of formulas.

    Bounded search gets their first turns ahead: it is at the next formulas while what it found of
    one is looked at.
    """
    looked_at, ahead = tee((problem, _at_sight(problem)) for problem in problems)
    asked = (for_solvers(problem) for problem, decision in ahead if decision is None)
    turns = _search(asked, min(FIRST_TURN, seconds), FIRST_STEPS)
    if len(problems) == 1:
        turns = iter([*turns])  # so that its process is free for the questions that follow
    for problem, decision in looked_at:
        if decision is None:
            searched = next(turns)  # before the clock starts
            decision = _decided(problem, Clock(seconds), searched)
        yield decision


def _at_sight(problem: Problem) -> Decision | None:
    """Find a trace of one step, as most formulas have; no solver is asked."""
    trace = single_step(for_solvers(problem), problem.symbols)
    return None if trace is None else Decision(BOUNDED, write_trace(trace))


def _decided(problem: Problem, clock: Clock, searched: Callable[[], Any]) -> Decision:
    """Decide; `searched` returns or raises what came of bounded search's first turn."""
    tokens, symbols = for_solvers(problem), problem.symbols

    def ask(by: str, seconds: float, steps: int | None) -> Trace | None:
        if by != BOUNDED or steps is None:
            return SOLVERS[by](tokens, symbols, seconds)
        try:
            lasso = searched()
        except TimeoutError:
            clock.count(min(FIRST_TURN, clock.seconds))
            raise
        return _trace(tokens, symbols, _decisive(lasso))

    try:
        by, trace = _in_turns({by: partial(ask, by) for by in SOLVERS}, clock, FIRST_TURN)
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
        return _in_turns(asks, Clock(min(PART_TIME, clock.left)), PART_TURN)[1]
    except UndecidedError:
        return False


def _in_turns(
    asks: Mapping[str, Callable[[float, int | None], Result]], clock: Clock, turn: float
) -> tuple[str, Result]:
    """Return the first result, and whose it is.

    Args:
        asks: solver -> what asks it, within so many seconds; bounded search, for so many steps.
        clock: of all of it.
        turn: seconds of each solver's first turn; those that follow are four times as long.
    """
    failures: dict[str, str] = {}
    steps: int | None = FIRST_STEPS
    while clock.left and len(failures) < len(asks):
        for by, ask in asks.items():
            if by in failures or not (left := clock.left):
                continue
            try:
                return by, ask(min(turn, left), steps)
            except TimeoutError:
                continue
            except (MissingSolverError, SolverCrashError) as error:
                failures[by] = str(error)
        turn, steps = turn * 4, None
    reasons = [*dict.fromkeys(failures.values())]
    if len(failures) < len(asks):
        reasons.append(f"no solver was done within {clock.seconds:g} s")
    raise UndecidedError("; ".join(reasons))
