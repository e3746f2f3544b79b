"""Processes of their own for tests: Python as it is started anew, but for what takes long.

Each is forked from a process that has imported torch and other large packages, and neither this
package nor one of Hugging Face: those are imported anew, with the environment that the test gives.
Tests of what an import costs or needs start `sys.executable` themselves.
"""

import atexit
import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

LARGE = ("torch._dynamo", "torch.distributed.tensor", "pyarrow.parquet", "pandas",
         "scipy.optimize", "sklearn.metrics")  # fmt: skip

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
            "--run-path", "--start-method=fork")  # fmt: skip
"""What begins the arguments of a script that two processes run."""


class Process:
    """A running `python ARGUMENTS`; what it writes is kept in files.

    Args:
        arguments: those of the interpreter: `-I` at first, if at all, then `-c CODE`, `-m MODULE`
            or a script, and what these get.
        env: all environment variables; by default those of this process.
        cwd: by default the folder of this process.
        output: a file, by its number, that gets all it writes; by default it is kept here.
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
        self._ended, theirs = socket.socketpair()
        told = [self.arguments, dict(os.environ if env is None else env), str(cwd or Path.cwd())]
        with theirs:
            outputs = [file.fileno() if output is None else output for file in self._outputs]
            files = [*outputs, theirs.fileno()]
            socket.send_fds(_server(), [json.dumps(told).encode()], files)
        self.pid = int(self._ended.recv(20))

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
        return os.pread(file, os.fstat(file).st_size, 0).decode()

    def poll(self) -> int | None:
        """Its exit code, negative if a signal ended it; None while it runs."""
        with contextlib.suppress(TimeoutError):
            self.wait(timeout=1e-4)
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        """Its exit code. A process that takes longer is killed."""
        if self.returncode is None:
            self._ended.settimeout(timeout)
            self.returncode = int(self._ended.recv(20))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


def run(*arguments: object, timeout: float = 120, **more) -> subprocess.CompletedProcess[str]:
    """Wait for `python ARGUMENTS`, as `Process` has them; a process that takes longer is killed."""
    process = Process(*arguments, **more)
    try:
        code = process.wait(timeout)
    except TimeoutError:
        process.send_signal(signal.SIGKILL)
        raise AssertionError(f"not ended after {timeout} s:\n{process.stderr}") from None
    return subprocess.CompletedProcess(process.arguments, code, process.stdout, process.stderr)


@cache
def _server() -> socket.socket:
    """Where processes are asked for; the server ends with the last who can ask."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        server = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    atexit.register(lambda: (ours.close(), server.wait()))
    return ours


def _serve(requests: socket.socket) -> list[str]:
    """Fork a process for each request; returns there only, with its arguments."""
    for name in LARGE:
        __import__(name)
    gc.collect()
    gc.freeze()  # else each fork would copy and count through all of it, at its end at the latest
    while True:
        told, files, *_ = socket.recv_fds(requests, 1 << 20, 3)
        with contextlib.suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not told:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            return _watched(*json.loads(told), files)
        for file in files:
            os.close(file)


def _watched(arguments: list[str], env: dict[str, str], cwd: str, files: list[int]) -> list[str]:
    """Fork again: one process becomes what is asked for, and the other tells how that one ends."""
    *outputs, ended = files
    if pid := os.fork():
        os.write(ended, str(pid).encode())
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):
            os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    for file, number in zip(outputs, (1, 2), strict=True):
        os.dup2(file, number)
        os.close(file)
    os.close(ended)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    return arguments


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
