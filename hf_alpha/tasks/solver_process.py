"""Run a solver in a process of its own: a formula that hangs or kills it costs only its answer.

The process is this file, run as a script with the solver's worker file as its argument. It imports
nothing else of this package and nothing of the caller's, so that it starts in a moment, writes a
line when it is ready, and then reads one request and writes one reply a line, as JSON. It starts
with the first call and ends with the caller.

The limit on a call's time holds on both sides: an alarm ends the process, and a caller that hears
nothing for a second more (the process may be stopped, or starved) ends it too.

A worker file has `prepare()`, which imports the solver or raises an ImportError that says what to
install, and `SERVED`, a table of functions by name; their arguments and results are JSON.
"""

import atexit
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

TIMEOUT = 10.0
"""Seconds that a call may take unless told otherwise."""
GRACE = 1.0
"""Seconds that the caller waits beyond a call's limit: the process has ended by then, or hangs."""
START = 60.0
"""Seconds within which the process has to be ready: time for a busy machine to import a solver."""


class MissingSolverError(ImportError):
    """The solver is not installed."""


class SolverCrashError(RuntimeError):
    """The solver gave up for a reason of its own: memory, or the death of its process."""


class SolverProcess:
    """The caller's end: start the process, ask it, stop it when it fails.

    Args:
        worker: the worker file.
        fresh: answer each request in a fork of the newly started process, for solvers whose
            results depend on what they were asked before. It takes a millisecond or two more.

    Attributes:
        what: it runs, for errors.
    """

    what: ClassVar[str] = "solver"

    def __init__(self, worker: Path, fresh: bool = False) -> None:
        self._arguments = [str(worker), *["fresh"] * fresh]
        self._forget()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.stop)

    def _forget(self) -> None:
        """Leave the process to the parent: a fork cannot share it."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, name: str, timeout: float, tokens: Sequence[str], *arguments: Any) -> Any:
        """Have the process run one of the worker's functions on a formula.

        Args:
            name: of the function.
            timeout: seconds, not counting the start of the process; where it neither answers nor
                ends, the caller waits for `GRACE` more.
            tokens: the function's first argument.
            arguments: its other ones.

        Raises:
            TimeoutError: if the time is up.
            SolverCrashError: if the solver fails.
            MissingSolverError: if it is not installed.
        """
        seconds = min(max(timeout, 1e-3), 1e6)
        request = json.dumps([name, seconds, list(tokens), *arguments])
        with self._lock:
            try:
                self._start()
                kind, value = json.loads(self._exchange(f"{request}\n".encode(), seconds + GRACE))
            except (OSError, ValueError) as error:  # a TimeoutError among them
                code = self.stop()
                if isinstance(error, TimeoutError) or code == -signal.SIGALRM:
                    raise TimeoutError(f"the {self.what} took more than {timeout:g} s") from None
                kind, value = "failed", f"its process ended (exit code {code})"
            except BaseException:  # an interrupt: the reply would be taken for the next call's
                self.stop()
                raise
        if kind == "missing":
            from hf_alpha.environment import how_to_install  # not in the worker

            module, reason = value
            command = how_to_install(module)
            raise MissingSolverError(f"{command} ({reason})" if command else reason)
        if kind == "failed":
            raise SolverCrashError(f"the {self.what} failed on {self._shown(tokens)}: {value}")
        return value

    def _shown(self, tokens: Sequence[str]) -> str:
        """Return what an error shows of a function's first argument: how many tokens it has."""
        return f"{len(tokens)} tokens"

    def stop(self) -> int | None:
        """End the process, if there is one, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)  # its fork too
        process.communicate()
        return process.returncode

    def _start(self) -> None:
        """Have a process that is ready; a new one if there is none."""
        if self._process is not None and self._process.poll() is not None:
            self.stop()
        if self._process is not None:
            return
        self._process = subprocess.Popen(
            # Without -P, imports would find the files and folders beside this one first.
            [sys.executable, "-P", os.path.abspath(__file__), *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            process_group=0,
        )
        assert self._process.stdin
        os.set_blocking(self._process.stdin.fileno(), False)
        try:
            self._exchange(b"", START)
        except TimeoutError:
            self.stop()
            raise SolverCrashError(f"the {self.what} was not ready within {START:g} s") from None

    def _exchange(self, request: bytes, seconds: float) -> bytes:
        """Write a request and read a line, all that is there if the process ends.

        It waits by itself, without a thread that counts the seconds: to start one takes longer than
        most requests.

        Raises:
            TimeoutError: that took longer.
            OSError: the process ended.
        """
        process = self._process
        assert process is not None and process.stdin and process.stdout
        end, reply, pipes = time.monotonic() + seconds, b"", select.poll()
        pipes.register(process.stdout, select.POLLIN)
        if request:
            pipes.register(process.stdin, select.POLLOUT)
        while not reply.endswith(b"\n"):
            ready = [pipe for pipe, _ in pipes.poll(1e3 * max(end - time.monotonic(), 0))]
            if not ready:
                raise TimeoutError
            if process.stdin.fileno() in ready:
                request = request[os.write(process.stdin.fileno(), request) :]
                if not request:
                    pipes.unregister(process.stdin)
            if process.stdout.fileno() in ready:
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    break
                reply += part
        return reply


def _serve(prepare: Callable[[], Any], served: dict[str, Callable[..., Any]], fresh: bool) -> None:
    """The solver's end: answer requests until there are no more.

    When a request's time is up, the alarm ends the process, whatever it is doing then and even if
    the caller is gone.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller to handle
    with suppress(ImportError):
        prepare()  # before the clock of the first request starts
    print("ready", flush=True)
    for request in sys.stdin:
        name, seconds, *arguments = json.loads(request)
        try:
            prepare()
        except ImportError as error:
            print(json.dumps(["missing", [error.name, str(error)]]), flush=True)
            continue
        if fresh and (fork := os.fork()):
            _end_like(os.waitpid(fork, 0)[1])
            continue
        print(json.dumps(_reply(served[name], seconds, arguments)), flush=True)
        if fresh:
            os._exit(0)


def _reply(run: Callable[..., Any], seconds: float, arguments: list[Any]) -> tuple[str, Any]:
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return "done", run(*arguments)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"[:1000]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end_like(status: int) -> None:
    """End this process by the signal or exit code that ended a fork; return if it ended well."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        os.kill(os.getpid(), -code)
    if code:
        os._exit(code)


if __name__ == "__main__":
    _worker = runpy.run_path(sys.argv[1])
    _serve(_worker["prepare"], _worker["SERVED"], fresh=sys.argv[2:] == ["fresh"])
