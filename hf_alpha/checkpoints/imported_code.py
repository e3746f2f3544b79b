"""Import what a name of code stands for: `package.module:name`.

Only for names that the user wrote, or allowed; `hf_alpha.trust` says which.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hf_alpha.modeling.names_in_text import NameFinder


def import_object(path: str, what: str, form: str, here: bool = True) -> Any:
    """Import a class or function by `package.module:name`.

    Worker processes get Python's path with the current folder, if it is searched.

    Args:
        path: what to import.
        what: it is for, at the beginning of a message.
        form: how a path is written, such as `package.module:Class`.
        here: its module is looked for in the current folder too, as by `python -m`. Not for names
            that a folder of others gives, even one that is trusted: there they might mean whatever
            lies beside it.

    Raises:
        ValueError: the path has another form, or there is no such module or name.
        ImportError: its module cannot be imported because another one is missing.
    """
    module, _, name = path.partition(":")
    if not (module and name):
        raise ValueError(f"{what} {path!r}: write {form}")
    if here:
        _search_here(module)
    try:
        value: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ImportError(f"{what} {path!r}: {module} cannot be imported: {error}") from error
        places = f"in {os.getcwd()} or " * here + "on Python's path: install it, or set PYTHONPATH"
        raise ValueError(f"{what} {path!r}: there is no module {error.name!r} {places}") from error
    for part in name.split("."):
        if not hasattr(value, part):
            raise ValueError(
                f"{what} {path!r}: {module} has no {form.partition(':')[2].lower()} {name!r}"
            )
        value = getattr(value, part)
    return value


def module_source(path: str) -> str:
    """Return the code of the module of `package.module:name`; "" where it cannot be found."""
    module = path.partition(":")[0]
    _search_here(module)
    with suppress(ImportError, ValueError, OSError):
        spec = find_spec(module)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).read_text(encoding="utf-8", errors="replace")
    return ""


def import_functions(finder: NameFinder, here: bool = True) -> None:
    """Import the functions by which names are found, and set them in the finder.

    Args:
        finder: with rules that the user wrote, or allowed.
        here: see `import_object`.

    Raises:
        ValueError: there is no such function.
        ImportError: its module cannot be imported because another one is missing.
    """
    for name, rule in finder.rules.items():
        if rule.function is not None and name not in finder.functions:
            role = f"symbols: {name!r}: the function"
            function = import_object(rule.function, role, "package.module:function", here)
            if not callable(function):
                raise ValueError(
                    f"{role} {rule.function!r} is {function!r}, which cannot be called"
                )
            finder.functions[name] = function


def _search_here(module: str) -> None:
    """Let Python look in the current folder too, last, for a module that is not loaded yet."""
    if module not in sys.modules and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
