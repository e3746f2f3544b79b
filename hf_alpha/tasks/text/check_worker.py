"""Runs a user's own check, in a process of its own: see `hf_alpha.tasks.solver_process`."""

import sys
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from numbers import Real
from typing import Any


def prepare() -> None:
    """Do nothing: what a check needs is known once it is called."""


@cache
def _function(path: str) -> Any:
    module, _, name = path.partition(":")
    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def check(texts: list[str | None], path: str, folder: str) -> list[Any]:
    """Call the check with source, answer and target; its module may lie in the caller's folder.

    Returns:
        Its verdict as text, or yes or no; and its words, where it returned a pair.
    """
    if folder not in sys.path:
        sys.path.append(folder)
    with redirect_stdout(sys.stderr):  # on standard output are the replies
        verdict = _function(path)(*texts)
    words = None
    if isinstance(verdict, tuple) and len(verdict) == 2:
        verdict, words = verdict
    return [_plain(verdict), words if words is None else str(words)]


def _plain(verdict: Any) -> str | bool | None:
    if verdict is None or isinstance(verdict, bool):
        return verdict
    if isinstance(verdict, Real) or type(verdict).__name__ in ("bool_", "bool"):  # NumPy's
        return bool(verdict)
    return str(getattr(verdict, "value", verdict))


SERVED = {"check": check}
