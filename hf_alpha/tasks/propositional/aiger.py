"""The only module that talks to py-aiger and py-aiger-sat, in a process of their own.

Which model and which core the solver finds depends on Python's string hashing (py-aiger iterates
over sets), so the process has a fixed PYTHONHASHSEED: equal formulas get equal results.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_alpha.tasks.solver_process import (
    TIMEOUT,
    MissingSolverError,
    SolverCrashError,
    SolverProcess,
)

from . import aiger_worker

__all__ = [
    "TIMEOUT",
    "MissingSolverError",
    "SolverCrashError",
    "build",
    "implies",
    "is_satisfiable",
    "reduced_model",
]


def is_satisfiable(tokens: Sequence[str], timeout: float = TIMEOUT) -> bool:
    """Decide satisfiability; `implies` describes arguments and errors."""
    return bool(_process.call("is_satisfiable", timeout, tokens))


def reduced_model(tokens: Sequence[str], timeout: float = TIMEOUT) -> dict[str, bool] | None:
    """Return the papers' target: a model, reduced to an unsat core of the negated formula.

    None if the formula is unsatisfiable, {} if it is a tautology; `implies` describes arguments
    and errors.
    """
    model: dict[str, bool] | None = _process.call("reduced_model", timeout, tokens)
    return model


def implies(tokens: Sequence[str], assignment: dict[str, bool], timeout: float = TIMEOUT) -> bool:
    """Decide whether every completion of a partial assignment satisfies the formula.

    Args:
        tokens: canonical prefix tokens.
        assignment: values of symbols of the formula, and of no others.
        timeout: seconds, not counting the start of the solver's process.

    Raises:
        TimeoutError: if the time is up.
        SolverCrashError: if the solver fails.
        MissingSolverError: if py-aiger-sat is not installed.
    """
    return bool(_process.call("implies", timeout, tokens, assignment))


def build(tokens: Sequence[str], negate: bool = False) -> Any:
    """Return the aiger.BoolExpr of canonical prefix tokens, in the calling process.

    Raises:
        MissingSolverError: if py-aiger-sat is not installed.
    """
    try:
        return aiger_worker.build(tokens, negate)
    except ImportError as error:
        raise MissingSolverError(str(error)) from error


_process = SolverProcess(Path(aiger_worker.__file__))
