"""The only module that talks to Spot, in a process of its own.

Spot (Duret-Lutz et al., "From Spot 2.0 to Spot 2.10", CAV 2022) is a library for automata over
infinite words. The extra `hf_alpha[ltl]` installs its Python module. Formulas are prefix tokens
over `! & | X U <-> ^ W M 0 1` and names; names may be anything.
"""

from collections.abc import Sequence
from pathlib import Path

from hf_alpha.tasks.solver_process import TIMEOUT, SolverProcess

from . import spot_worker
from .trace import Trace

FAST = spot_worker.FAST


def holds(
    tokens: Sequence[str], trace: Trace, timeout: float = TIMEOUT, reference: bool = False
) -> bool:
    """Decide whether every word of a symbolic trace satisfies a formula.

    That is whether no word of the trace is in the automaton of the formula's negation; a trace
    with a contradictory step has no words and satisfies everything.

    Args:
        tokens: canonical prefix tokens.
        trace: its steps may be any Boolean formulas.
        timeout: seconds, not counting the start of Spot's process.
        reference: use Spot's default translation, which can take minutes, for comparison.

    Raises:
        TimeoutError: if the time is up.
        SolverCrashError: if Spot fails, as it does where it would need more than 32 acceptance
            sets.
        MissingSolverError: if Spot is not installed.
    """
    return bool(_process.call("holds", timeout, tokens, trace.steps, trace.loop, reference))


def find_trace(
    tokens: Sequence[str], timeout: float = TIMEOUT, options: Sequence[str] | None = FAST
) -> Trace | None:
    """Return a symbolic trace that satisfies a formula: an accepting run as a word, simplified.

    This is how the targets of DeepLTL's data were made (Hahn et al. 2021, Section 4), there with
    Spot's default translation. Which trace it is depends on how the names are spelt, and on
    nothing else. `holds` describes errors.

    Args:
        tokens: canonical prefix tokens.
        timeout: seconds, not counting the start of Spot's process.
        options: of Spot's translation; None for its default.

    Returns:
        Steps that are conjunctions of literals; None if the formula is unsatisfiable.
    """
    run = _tracer.call("find_trace", timeout, tokens, list(options or ()))
    return None if run is None else Trace(tuple(map(tuple, run[0])), run[1])


def is_satisfiable(tokens: Sequence[str], timeout: float = TIMEOUT) -> bool:
    """Decide satisfiability; `holds` describes arguments and errors."""
    return bool(_process.call("is_satisfiable", timeout, tokens))


_process = SolverProcess(Path(spot_worker.__file__))
# Spot orders formulas by when they were first made: asked in reverse order, its default translation
# gave another trace for 78 of 4,000 random formulas.
_tracer = SolverProcess(Path(spot_worker.__file__), fresh=True)
