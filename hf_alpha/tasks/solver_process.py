"""Run a solver in a process of its own: a formula that hangs or kills it costs only its answer.

The process is this file, run as a script with the solver's worker file as its argument. It imports
nothing else of this package and nothing of the caller's, so that it starts in a moment, writes a
line when it is ready, and then reads one request and writes one reply a line, as JSON. It starts
with the first call and ends with the caller. Of many formulas it gets the next ones while it is at
one, so that neither side waits for the other.

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
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

TIMEOUT = 10.0
"""Seconds that a call may take unless told otherwise."""
GRACE = 1.0
"""Seconds that the caller waits beyond a call's limit: the process has ended by then, or hangs."""
AHEAD = 64
"""Requests that the process has at most, of many."""
START = 60.0
"""Seconds within which the process has to be ready: time for a busy machine to import a solver."""


class MissingSolverError(ImportError):
    """The solver is not installed."""


class SolverCrashError(RuntimeError):
    """The solver gave up for a reason of its own: memory, or the death of its process."""


class SolverProcess:
    """The caller's end: start the process, ask it, stop it when it fails.

    Args:
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
        self._unsent, self._unread = b"", b""

    def call(self, name: str, timeout: float, tokens: Sequence[str], *arguments: Any) -> Any:
        """Have the process run one of the worker's functions on a formula.

        Args:
            timeout: seconds, not counting the start of the process; where it neither answers nor
                ends, the caller waits for `GRACE` more.
            tokens: the function's first argument.

        Raises:
            TimeoutError: if the time is up.
            SolverCrashError: if the solver fails.
            MissingSolverError: if it is not installed.
        """
        (result,) = self.calls(name, timeout, [tokens], *arguments)
        return result()

    def calls(
        self, name: str, timeout: float, formulas: Iterable[Sequence[str]], *arguments: Any
    ) -> Generator[Callable[[], Any], None, None]:
        """Have the process run a function on formulas; nobody else is served until the last one.

        Args:
            timeout: seconds for each, as of `call`.
            formulas: the function's first argument, of each.

        Yields:
            For each formula what returns the result, or raises what `call` does.
        """
        seconds = min(max(timeout, 1e-3), 1e6)
        rest, asked = iter(formulas), deque[tuple[Sequence[str], bytes]]()
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self.stop()
            try:
                while True:
                    if len(asked) <= AHEAD // 2:
                        for tokens in islice(rest, AHEAD - len(asked)):
                            line = json.dumps([name, seconds, list(tokens), *arguments])
                            asked.append((tokens, f"{line}\n".encode()))
                            self._unsent += asked[-1][1]
                    if not asked:
                        break
                    reply = self._answer(seconds, [request for _, request in asked])
                    yield partial(self._result, timeout, asked.popleft()[0], *reply)
            finally:
                if asked:  # an interrupt: the replies would be taken for the next call's
                    self.stop()

    def _answer(self, seconds: float, requests: Sequence[bytes]) -> tuple[str, Any]:
        """Return the kind and value of the next reply; a new process gets all `requests` again."""
        try:
            if self._process is None:
                self._start()
                self._unsent = b"".join(requests)
            kind, value = json.loads(self._exchange(seconds + GRACE))
            return kind, value
        except SolverCrashError as error:
            return "failed", str(error)
        except (OSError, ValueError) as error:  # a TimeoutError among them
            code = self.stop()
            if isinstance(error, TimeoutError) or code == -signal.SIGALRM:
                return "late", None
            return "failed", f"its process ended (exit code {code})"

    def _result(self, timeout: float, tokens: Sequence[str], kind: str, value: Any) -> Any:
        """Return a result, or raise what went wrong."""
        if kind == "late":
            raise TimeoutError(f"the {self.what} took more than {timeout:g} s")
        if kind == "missing":
            from hf_alpha.wings import how_to_install  # not in the worker

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
        self._unsent, self._unread = b"", b""
        if process is None:
            return None
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)  # its fork too
        process.communicate()
        return process.returncode

    def _start(self) -> None:
        """Have a new process that is ready."""
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
        self._unsent = b""
        try:
            self._exchange(START)
        except TimeoutError:
            self.stop()
            raise SolverCrashError(f"the {self.what} was not ready within {START:g} s") from None

    def _exchange(self, seconds: float) -> bytes:
        """Write what is not sent, and read a line, all that is there if the process ends.

        It waits by itself, without a thread that counts the seconds: to start one takes longer than
        most requests.

        Raises:
            TimeoutError: that took longer.
            OSError: the process ended.
        """
        process = self._process
        assert process is not None and process.stdin and process.stdout
        end, pipes = time.monotonic() + seconds, select.poll()
        pipes.register(process.stdout, select.POLLIN)
        if self._unsent:
            pipes.register(process.stdin, select.POLLOUT)
        while b"\n" not in self._unread:
            ready = [pipe for pipe, _ in pipes.poll(1e3 * max(end - time.monotonic(), 0))]
            if not ready:
                raise TimeoutError
            if process.stdin.fileno() in ready:
                try:
                    self._unsent = self._unsent[os.write(process.stdin.fileno(), self._unsent) :]
                except BrokenPipeError:  # what it had answered before it ended is still to be read
                    self._unsent = b""
                if not self._unsent:
                    pipes.unregister(process.stdin)
            if process.stdout.fileno() in ready:
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    break
                self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line


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
