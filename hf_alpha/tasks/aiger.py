"""The only module that talks to py-aiger and py-aiger-sat; both are imported when first needed.

Which model and which core the solver finds depends on Python's string hashing (py-aiger iterates
over sets), so results are repeatable only under a fixed PYTHONHASHSEED.
"""

import atexit
import threading
from collections.abc import Sequence
from typing import Any

MAX_INLINE_TOKENS = 200
"""Longer formulas are solved in a worker process that can be killed when time is up."""


class MissingSolverError(ImportError):
    """py-aiger-sat is not installed."""


class SolverCrashError(RuntimeError):
    """The solver gave up for a reason of its own: memory, or the death of its process."""


def _import() -> tuple[Any, Any]:
    try:
        import aiger
        import aiger_sat
    except ImportError as error:
        raise MissingSolverError(
            "this needs py-aiger-sat and python-sat: pip install 'py-aiger-sat>=3.0.7' "
            "'python-sat>=1.8.dev0'"
        ) from error
    return aiger, aiger_sat


def build(tokens: Sequence[str], negate: bool = False) -> Any:
    """Return the aiger.BoolExpr of canonical prefix tokens.

    Equal subformulas become one node and every node is hashed when it is made: hashes are cached
    below it, and neither hashing nor comparing a deep circuit descends into it.
    """
    aiger, _ = _import()
    false, node = aiger.aig.ConstFalse(), aiger.aig.Input
    known: dict[Any, Any] = {}

    def remember(key: Any, gate: Any) -> Any:
        hash(gate)
        return known.setdefault(key, gate)

    def invert(gate: Any) -> Any:
        key = (id(gate),)
        return known[key] if key in known else remember(key, ~gate)

    def both(left: Any, right: Any) -> Any:
        key = (id(left), id(right))
        return known[key] if key in known else remember(key, left & right)

    def either(left: Any, right: Any) -> Any:
        return invert(both(invert(left), invert(right)))

    names: dict[str, Any] = {}
    stack: list[Any] = []
    for token in reversed(tokens):
        if token == "!":
            stack.append(invert(stack.pop()))
        elif token == "&":
            stack.append(both(stack.pop(), stack.pop()))
        elif token == "|":
            stack.append(either(stack.pop(), stack.pop()))
        elif token in ("=", "^"):
            left, right = stack.pop(), stack.pop()
            same = either(both(left, right), both(invert(left), invert(right)))
            stack.append(same if token == "=" else invert(same))
        elif token in ("0", "1"):
            stack.append(false if token == "0" else invert(false))
        else:
            stack.append(names.setdefault(token, node(token)))
    root = invert(stack[0]) if negate else stack[0]
    circuit = aiger.aig.AIG(inputs=frozenset(names), node_map={"formula": root})
    return aiger.BoolExpr(circuit)


def is_satisfiable(tokens: Sequence[str]) -> bool:
    """Decide satisfiability."""
    _, aiger_sat = _import()
    return bool(aiger_sat.is_sat(build(tokens)))


def reduced_model(tokens: Sequence[str]) -> dict[str, bool] | None:
    """Return the papers' target: a model, reduced to an unsat core of the negated formula.

    None if the formula is unsatisfiable, {} if it is a tautology.
    """
    _, aiger_sat = _import()
    model = aiger_sat.solve(build(tokens))
    if model is None:
        return None
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(build(tokens, negate=True))
    if solver.is_sat(assumptions=model):
        raise AssertionError(f"py-aiger-sat gave {model}, which is no model of {tokens}")
    return {name: bool(value) for name, value in solver.get_unsat_core().items()}


def implies(tokens: Sequence[str], assignment: dict[str, bool], timeout: float) -> bool:
    """Decide whether every completion of a partial assignment satisfies the formula.

    Args:
        tokens: canonical prefix tokens.
        assignment: values of symbols of the formula, and of no others.
        timeout: seconds; formulas of up to `MAX_INLINE_TOKENS` tokens are solved without a limit.

    Raises:
        TimeoutError: if the time is up.
        SolverCrashError: if the solver fails.
        MissingSolverError: if py-aiger-sat is not installed.
    """
    _import()
    if len(tokens) <= MAX_INLINE_TOKENS:
        return _implies(tokens, assignment)
    from pebble import ProcessExpired

    future = _workers().schedule(_implies, args=(tuple(tokens), assignment), timeout=timeout)
    try:
        return bool(future.result())
    except (ProcessExpired, MemoryError, RecursionError) as error:
        raise SolverCrashError(f"the solver failed on {len(tokens)} tokens: {error!r}") from error


def _implies(tokens: Sequence[str], assignment: dict[str, bool]) -> bool:
    _, aiger_sat = _import()
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(build(tokens, negate=True))
    return not solver.is_sat(assumptions=assignment)


_pool: Any = None
_pool_lock = threading.Lock()


def _workers() -> Any:
    """Return the pool of one killable worker process, started on the first call."""
    global _pool
    with _pool_lock:
        if _pool is None or not _pool.active:
            import multiprocessing

            from pebble import ProcessPool

            _pool = ProcessPool(max_workers=1, context=multiprocessing.get_context("spawn"))
            atexit.register(_pool.stop)
        return _pool
