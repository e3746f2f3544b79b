"""Processes of their own for tests: Python as it is started anew, but for what takes long.

Each is forked from a process that has imported torch and other large packages, and neither this
package nor one of Hugging Face: those are imported anew, with the environment that the test gives.
Where this has other variables that are read but once (`READ_AT_START`), as PYTHONPATH and
PYTHONHASHSEED are, or -I bars those there are, the process becomes a new interpreter instead. It
need not for OMP_NUM_THREADS: torch is told.

Not as in a new interpreter: the large modules are in `sys.modules` and have read variables of their
own (TORCH_LOGS, say); numpy has the threads that it has in the process of the tests; the hash seed
is one for all; `sys.flags` and `sys.orig_argv` are those of the server. Tests of these, and of what
an import costs or needs, start `sys.executable` themselves.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

LARGE = ("torch._dynamo", "torch.distributed.tensor", "pyarrow.parquet", "pandas",
         "scipy.optimize", "sklearn.metrics")  # fmt: skip
READ_AT_START = ("PYTHON", "OMP_", "MKL_", "OPENBLAS_", "LD_", "LC_", "LANG")
"""How the variables begin that a process cannot be told of later."""
NOT_TOLD = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Of these, what is as in the process of the tests: containers often set it."""
LONGEST_START = 120
"""Seconds: the first process waits for the large packages."""


class Process:
    """A running `python ARGUMENTS`; what it writes is kept in files.

    It leads a session of its own, which is killed when nothing holds this object any more.

    Args:
        arguments: those of the interpreter: `-I` at first, if at all, then `-c CODE`, `-m MODULE`
            or a script, and what these get.
        env: all environment variables; by default those of this process.
        cwd: by default the folder of this process.
        output: a file, by its number, that gets all it writes; by default it is kept here.

    Raises:
        RuntimeError: also by methods: it or its server died before it could say how it ended.
    """

    def __init__(
        self,
        *arguments: object,
        env: dict[str, str] | None = None,
        cwd: str | Path | None = None,
        output: int | None = None,
    ):
        self.arguments = [str(argument) for argument in arguments]
        self.returncode: int | None = None
        self._outputs = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        # Of packets: the number of the process and its exit code may wait there together.
        self._watcher, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told = [self.arguments, dict(os.environ if env is None else env), str(cwd or Path.cwd())]
        with theirs, tempfile.TemporaryFile("w+") as request:  # longer than a packet may be
            json.dump(told, request)
            request.flush()
            outputs = [file.fileno() if output is None else output for file in self._outputs]
            files = [*outputs, theirs.fileno(), request.fileno()]
            socket.send_fds(_server(), [b"fork"], files)
        self.pid = self._received(LONGEST_START)

    def _received(self, timeout: float) -> int:
        self._watcher.settimeout(timeout)
        packet = self._watcher.recv(20)
        if not packet:
            raise RuntimeError(f"the process or its server died:\n{self.stderr}")
        return int(packet)

    @property
    def stdout(self) -> str:
        """What it has written so far."""
        return self._written(0)

    @property
    def stderr(self) -> str:
        """What it has written so far."""
        return self._written(1)

    def _written(self, which: int) -> str:
        file = self._outputs[which].fileno()
        # The last character may be half written.
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def poll(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        if self.returncode is None:
            with contextlib.suppress(BlockingIOError):
                self.returncode = self._received(0)
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        """Its exit code. A process that takes longer is killed with all of its session.

        Raises:
            TimeoutError: it was killed, after `timeout` seconds.
        """
        if self.returncode is None:
            try:
                self.returncode = self._received(timeout)
            except TimeoutError:
                self.kill()
                raise TimeoutError(f"killed after {timeout} s:\n{self.stderr}") from None
        return self.returncode

    def kill(self) -> None:
        """End it and all of its session, and wait for that."""
        if self.poll() is None:
            self._watcher.shutdown(socket.SHUT_WR)
            self.returncode = self._received(30)

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


def run(*arguments: object, timeout: float = 120, **more) -> subprocess.CompletedProcess[str]:
    """Wait for `python ARGUMENTS`, as `Process` has them; a process that takes longer is killed."""
    process = Process(*arguments, **more)
    code = process.wait(timeout)
    return subprocess.CompletedProcess(process.arguments, code, process.stdout, process.stderr)


def run_in_two(
    script: str | Path, *arguments: object, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Wait for a script that torchrun starts in two processes of one thread each."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
                "--run-path", "--start-method=fork"]  # fmt: skip
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return run(*torchrun, script, *arguments, env=env, timeout=timeout)


@cache
def _server() -> socket.socket:
    """Where processes are asked for; the server ends with the last who can ask."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        fds = [theirs.fileno()]
        server = subprocess.Popen(command, pass_fds=fds, start_new_session=True)  # not for Ctrl-C
    atexit.register(_end, ours, server)
    return ours


def _end(requests: socket.socket, server: subprocess.Popen) -> None:
    requests.close()
    try:
        server.wait(timeout=10)
    except subprocess.TimeoutExpired:
        server.kill()


def _serve(requests: socket.socket) -> list[str]:
    """Fork a process for each request; returns there only, with its arguments."""
    for name in LARGE:
        __import__(name)
    gc.collect()
    gc.freeze()  # else each fork would copy and count through all of it, at its end at the latest
    while True:
        told, files, *_ = socket.recv_fds(requests, 16, 4)
        with contextlib.suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not told:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            *outputs, client, request = files
            _watch(socket.socket(fileno=client))
            with os.fdopen(request) as file:
                file.seek(0)
                return _entered(outputs, *json.load(file))
        for file in files:
            os.close(file)


def _watch(client: socket.socket) -> None:
    """Fork again, and return in one process; the other kills it or tells how it ends."""
    if not (pid := os.fork()):
        os.setsid()
        client.close()
        return
    client.send(str(pid).encode())
    ended = os.pidfd_open(pid)
    ready, *_ = select.select([ended, client], [], [])
    if ended not in ready:  # the client wants no more of it, or is no more
        for kill in (os.killpg, os.kill):  # it may not have its session yet
            with contextlib.suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        client.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _entered(outputs: list[int], arguments: list[str], env: dict[str, str], cwd: str) -> list[str]:
    """Take the files, variables and folder of a request; returns its arguments."""
    for file, number in zip(outputs, (1, 2), strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    here = _read_at_start(os.environ)
    there = _read_at_start(env, isolated=arguments[0] == "-I")
    threads = there.pop("OMP_NUM_THREADS", None)
    if threads:
        here.pop("OMP_NUM_THREADS", None)
    if here != there:
        os.execve(sys.executable, [sys.executable, *arguments], env)
    os.environ.clear()
    os.environ.update(env)
    if threads:
        sys.modules["torch"].set_num_threads(int(threads))
    sys.modules["numpy"].random.seed()  # Python's own is seeded by each fork
    return arguments


def _read_at_start(env: Mapping[str, str], isolated: bool = False) -> dict[str, str]:
    """The variables that an interpreter and libraries read once; -I is to read none of Python's."""
    names = READ_AT_START[1:] if isolated else READ_AT_START
    return {k: v for k, v in env.items() if k.startswith(names) and k not in NOT_TOLD}


def _become(arguments: list[str]) -> None:
    """Do what `python ARGUMENTS` does."""
    isolated = arguments[0] == "-I"
    kind, *rest = arguments[isolated:]
    sys.modules["__main__"] = main = ModuleType("__main__")
    if kind not in ("-c", "-m"):
        sys.argv = [kind, *rest]
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")
        return
    if not isolated:
        sys.path.insert(0, "" if kind == "-c" else os.getcwd())
    what, *rest = rest
    sys.argv = [kind, *rest]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), vars(main))


if __name__ == "__main__":
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
