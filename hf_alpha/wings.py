"""The parts that the package can do without: where the rest finds them, when it needs them.

Nothing else in the core names them, but the table of models (`auto`) and the declaration of the
public names (`__init__.pyi`), whose classes are imported when they are used, and commands.
"""

from importlib import import_module
from typing import Any

from hf_alpha.environment import optional


def segments() -> Any:
    """Return what puts a transducer on top of a tokenizer: `hf_alpha.transduction.segments`.

    Raises:
        ImportError: it was left out.
    """
    return _part("hf_alpha.transduction.segments")


def _part(module: str) -> Any:
    with optional():
        return import_module(module)
