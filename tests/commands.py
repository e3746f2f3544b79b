"""Runs commands of `hf-alpha` and of the studies in this process, as their entry points do."""

import contextlib
import io
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hf_alpha.cli import main


@dataclass
class Result:
    """What a user sees of a finished command."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """What is said about an error that the user can mend, without the box around it."""
        assert self.code == 2 and not self.out and "Traceback" not in self.err, self
        return " ".join(self.err[self.err.rfind("rror") - 1 :].replace("│", " ").split())


def hf_alpha(*arguments: object, stdin: str = "") -> Result:
    """Run `hf-alpha ARGUMENTS`, with the text as its standard input."""
    return _run(main, "hf-alpha", arguments, stdin)


def study(name: str, *arguments: object, stdin: str = "") -> Result:
    """Run `python -m benchmarks.NAME ARGUMENTS`; the name is `studies`, or `studies.grow`."""
    module = "studies.__main__" if name == "studies" else name
    return _run(import_module(f"benchmarks.{module}").main, name, arguments, stdin)


def any_command(name: str, *arguments: object, stdin: str = "") -> Result:
    """Run a command of `hf-alpha`, or of the studies if it is called so."""
    command = study if name.startswith("studies") else hf_alpha
    return command(name, *arguments, stdin=stdin)


def _run(entry: Callable[[], None], name: str, arguments: Iterable[object], stdin: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = [name, *map(str, arguments)], io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            entry()
        code: object = 0
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.argv, sys.stdin = before
    assert isinstance(code, int)
    return Result(code, out.getvalue(), err.getvalue())


def weights_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()
