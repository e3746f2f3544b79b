"""The libraries of the extra `transduction`, which the package can do without."""

from importlib import import_module
from typing import Any

from hf_alpha.environment import install_command


def import_library(module: str, package: str) -> Any:
    """Import a library of the extra `transduction`.

    Raises:
        ImportError: it is not installed; the message has the command for that.
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(f"transduction needs {package}: {install_command(package)}") from None


__all__ = ["import_library"]
