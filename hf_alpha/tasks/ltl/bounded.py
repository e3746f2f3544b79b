"""Witnesses of LTL formulas of any length by bounded search: lassos of k steps, k growing, by SAT.

The search (`bounded_worker`) runs in a process of its own, so that a limit of time holds. It often
refutes a formula that has no witness; where it does not, only an automaton can (`spot`).
`witness` finds data's targets: the same traces up to `MAX_STEPS`, within limits that give the same
result on every machine.
"""

from collections.abc import Sequence
from pathlib import Path

from hf_alpha.tasks.solver_process import TIMEOUT, SolverProcess

from . import bounded_worker
from .trace import Trace, cube_step
from .witness import generalised

MAX_WORK = 5_000_000
"""Literals of a word times tokens of a formula, up to which some are left out: some seconds."""


class OpenError(Exception):
    """No lasso of the steps that were allowed satisfies a formula, which proves nothing."""


def find_trace(
    tokens: Sequence[str],
    symbols: Sequence[str],
    timeout: float = TIMEOUT,
    max_steps: int | None = None,
) -> Trace | None:
    """Return a symbolic trace with as few steps as possible all of whose words satisfy a formula.

    Among those it has the shortest loop, then few literals: the fewest that the three-valued
    evaluation proves where the shape is small (`witness.shortest_witness` says when), else as many
    of which none can be left out. Beyond `MAX_WORK` it has all literals.

    Args:
        tokens: as solvers read them (`grammar.LTL_OF_SOLVERS`), canonical ones among them.
        symbols: the formula's symbols by first occurrence.
        timeout: seconds, not counting the start of the process nor the choice of literals.
        max_steps: longest lasso that is looked for; by default there is no limit.

    Returns:
        None if it is proved that no word satisfies the formula.

    Raises:
        OpenError: no lasso of at most `max_steps` satisfies it, but it is not refuted either.
        TimeoutError: if the time is up.
        SolverCrashError: if the solver fails.
        MissingSolverError: if python-sat is not installed.
    """
    lasso = _process.call("search", timeout, tokens, max_steps)
    if lasso is None:
        raise OpenError(f"no lasso of at most {max_steps} steps satisfies the formula")
    if lasso is False:
        return None
    word, loop = lasso
    truths = list(map(set, word))
    if len(word) * len(symbols) * len(tokens) > MAX_WORK:
        steps = (cube_step([(symbol, symbol in step) for symbol in symbols]) for step in truths)
        return Trace(tuple(steps), loop)
    return generalised(tokens, symbols, truths, loop)


def is_refuted(tokens: Sequence[str], timeout: float = TIMEOUT) -> bool:
    """Whether bounded search proves that no word satisfies a formula; False if it finds a word.

    Errors are those of `find_trace`; without a limit of time it may go on for ever.
    """
    return _process.call("search", timeout, tokens, None) is False


_process = SolverProcess(Path(bounded_worker.__file__))
