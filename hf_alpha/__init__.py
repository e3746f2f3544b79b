"""hf_alpha: Transformers models for problems in which some tokens are only names.

The public names are those of `__init__.pyi`; each, like the modules, is imported when it is first
used. Importing the package alone is cheap: neither torch nor Transformers is loaded.
"""

import ast
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hf_alpha import wings
from hf_alpha.auto import register_when_imported
from hf_alpha.processes import NOT_CONNECTED, is_left_alone
from hf_alpha.wings import optional

__version__ = "1.0.3"

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_MODULES = {
    alias.name: str(node.module)
    for node in _STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""Public name -> its module."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        with optional():
            value = globals()[name] = getattr(import_module(_MODULES[name]), name)
        return value
    if name in wings.NAMES:
        return wings.moved(name, __name__, wings.NAMES[name])
    if find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


register_when_imported()
if is_left_alone():  # here, because each would train a model of its own and say nothing
    warnings.warn(NOT_CONNECTED, stacklevel=2)

__all__ = ["__version__", *_MODULES]
