"""The only module that talks to py-aiger and py-aiger-sat.

The solver runs in a process of its own, so that a formula which takes it too long, or kills it,
costs one answer and not the run. That process is this file, run as a script: it imports nothing
else of this package and nothing of the caller's, and reads one request and writes one reply a
line, as JSON. It starts with the first call and ends with the caller.

Which model and which core the solver finds depends on Python's string hashing (py-aiger iterates
over sets), so the process has a fixed PYTHONHASHSEED: equal formulas get equal results.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

TIMEOUT = 10.0
"""Seconds that a call may take unless told otherwise."""


class MissingSolverError(ImportError):
    """py-aiger-sat is not installed."""


class SolverCrashError(RuntimeError):
    """The solver gave up for a reason of its own: memory, or the death of its process."""


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


def _import() -> tuple[Any, Any]:
    try:
        import aiger
        import aiger_sat
    except ImportError as error:
        raise MissingSolverError(
            "this needs py-aiger-sat and python-sat: pip install 'py-aiger-sat>=3.0.7' "
            f"'python-sat>=1.8.dev0' ({error})"
        ) from error
    return aiger, aiger_sat


class _SolverProcess:
    """The caller's end: start the process, ask it, stop it when it fails."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def call(self, name: str, timeout: float, tokens: Sequence[str], *arguments: Any) -> Any:
        """Have the process run a function of `_SERVED`; errors are those of `implies`."""
        seconds = min(max(timeout, 1e-3), 1e8)
        request = json.dumps([name, seconds, list(tokens), *arguments])
        with self._lock:
            try:
                kind, value = self._ask(request)
            except (OSError, ValueError) as error:
                code = self.stop()
                if code == -signal.SIGALRM:
                    raise TimeoutError(f"the solver took more than {timeout:g} s") from None
                raise SolverCrashError(
                    f"the solver's process failed on {len(tokens)} tokens (exit code {code})"
                ) from error
            except (
                BaseException
            ):  # an interrupt: the reply would be taken for that of the next call
                self.stop()
                raise
        if kind == "missing":
            raise MissingSolverError(value)
        if kind == "failed":
            raise SolverCrashError(f"the solver failed on {len(tokens)} tokens: {value}")
        return value

    def stop(self) -> int | None:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        process.communicate()
        return process.returncode

    def _ask(self, request: str) -> tuple[str, Any]:
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        if self._process is None:
            self._process = subprocess.Popen(
                # Without -P, `import aiger` would find this file.
                [sys.executable, "-P", os.path.abspath(__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONHASHSEED": "0"},
                text=True,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(request + "\n")
        stdin.flush()
        kind, value = json.loads(stdout.readline())
        return kind, value


def _is_satisfiable(tokens: Sequence[str]) -> bool:
    _, aiger_sat = _import()
    return bool(aiger_sat.is_sat(build(tokens)))


def _reduced_model(tokens: Sequence[str]) -> dict[str, bool] | None:
    _, aiger_sat = _import()
    model = aiger_sat.solve(build(tokens))
    if model is None:
        return None
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(build(tokens, negate=True))
    if solver.is_sat(assumptions=model):
        raise AssertionError(f"py-aiger-sat gave {model}, which is no model of {tokens}")
    return {name: bool(value) for name, value in solver.get_unsat_core().items()}


def _implies(tokens: Sequence[str], assignment: dict[str, bool]) -> bool:
    _, aiger_sat = _import()
    solver = aiger_sat.SolverWrapper()
    solver.add_expr(build(tokens, negate=True))
    return not solver.is_sat(assumptions=assignment)


_SERVED: dict[str, Callable[..., Any]] = {
    "is_satisfiable": _is_satisfiable,
    "reduced_model": _reduced_model,
    "implies": _implies,
}


def _serve() -> None:
    """The solver's end: answer requests until there are no more.

    When a request's time is up, the alarm ends the process, whatever it is doing then and even if
    the caller is gone.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller to handle
    for request in sys.stdin:
        name, seconds, *arguments = json.loads(request)
        reply: tuple[str, Any]
        try:
            _import()  # before the clock starts
            signal.setitimer(signal.ITIMER_REAL, seconds)
            reply = "done", _SERVED[name](*arguments)
        except MissingSolverError as error:
            reply = "missing", str(error)
        except Exception as error:
            reply = "failed", f"{type(error).__name__}: {error}"[:1000]
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), flush=True)


_process = _SolverProcess()


def _forget_process() -> None:
    """Leave the solver's process to the parent: a fork cannot share it."""
    global _process
    _process = _SolverProcess()


if __name__ == "__main__":
    _serve()
else:
    os.register_at_fork(after_in_child=_forget_process)
    atexit.register(lambda: _process.stop())
