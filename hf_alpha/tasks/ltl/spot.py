"""The only module that talks to Spot, in a process of its own.

Spot (Duret-Lutz et al., "From Spot 2.0 to Spot 2.10", CAV 2022) is a library for automata over
infinite words. The extra `hf_alpha[ltl]` installs its Python module. Formulas are prefix tokens
over `! & | X U <-> ^ W M 0 1` and names; names may be anything.
"""

from collections.abc import Sequence
from pathlib import Path

from hf_alpha.tasks.solver_process import (
    TIMEOUT,
    MissingSolverError,
    SolverCrashError,
    SolverProcess,
)

from . import spot_worker

__all__ = [
    "FAST",
    "TIMEOUT",
    "MissingSolverError",
    "SolverCrashError",
    "are_equivalent",
    "find_trace",
    "holds",
    "is_installed",
    "is_satisfiable",
    "require",
]

FAST = spot_worker.FAST


def require() -> None:
    """Start Spot's process.

    Raises:
        MissingSolverError: if Spot is not installed; the message says what to install.
    """
    _process.call("is_satisfiable", TIMEOUT, ["1"])


def is_installed() -> bool:
    """Say whether Spot is there."""
    try:
        require()
    except MissingSolverError:
        return False
    return True


def holds(
    tokens: Sequence[str],
    steps: Sequence[Sequence[str]],
    loop: int,
    timeout: float = TIMEOUT,
    reference: bool = False,
) -> bool:
    """Decide whether every word of a symbolic trace satisfies a formula.

    That is whether no word of the trace is in the automaton of the formula's negation; a trace
    with a contradictory step has no words and satisfies everything.

    Args:
        tokens: canonical prefix tokens.
        steps: a Boolean formula for each step, as canonical prefix tokens.
        loop: index of the first step that is repeated.
        timeout: seconds, not counting the start of Spot's process.
        reference: use Spot's default translation, which can take minutes, for comparison.

    Raises:
        TimeoutError: if the time is up.
        SolverCrashError: if Spot fails, as it does where it would need more than 32 acceptance
            sets.
        MissingSolverError: if Spot is not installed.
    """
    return bool(_process.call("holds", timeout, tokens, list(map(list, steps)), loop, reference))


def find_trace(
    tokens: Sequence[str], timeout: float = TIMEOUT, options: Sequence[str] | None = FAST
) -> tuple[list[list[str]], int] | None:
    """Return a symbolic trace that satisfies a formula: an accepting run as a word, simplified.

    This is how the targets of DeepLTL's data were made (Hahn et al. 2021, Section 4), there with
    Spot's default translation. Which trace it is depends on how the names are spelt, and on
    nothing else. `holds` describes errors.

    Args:
        tokens: canonical prefix tokens.
        timeout: seconds, not counting the start of Spot's process.
        options: of Spot's translation; None for its default.

    Returns:
        Steps, each a conjunction of literals as canonical prefix tokens, and the index of the
        first one that is repeated; None if the formula is unsatisfiable.
    """
    trace = _tracer.call("find_trace", timeout, tokens, list(options or ()))
    return None if trace is None else (trace[0], trace[1])


def is_satisfiable(tokens: Sequence[str], timeout: float = TIMEOUT) -> bool:
    """Decide satisfiability; `holds` describes arguments and errors."""
    return bool(_process.call("is_satisfiable", timeout, tokens))


def are_equivalent(left: Sequence[str], right: Sequence[str], timeout: float = TIMEOUT) -> bool:
    """Decide whether the same words satisfy two formulas; `holds` describes the errors."""
    return bool(_process.call("are_equivalent", timeout, left, list(right)))


_process = SolverProcess(Path(spot_worker.__file__))
# Spot orders formulas by when they were first made: asked in reverse order, its default translation
# gave another trace for 78 of 4,000 random formulas.
_tracer = SolverProcess(Path(spot_worker.__file__), fresh=True)
