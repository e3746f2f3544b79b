"""The parts that the package can do without: where the rest finds them, when it needs them.

Nothing else in the core names them, but the table of models (`auto`), whose classes are imported
when they are used, and commands.
"""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from hf_alpha.environment import optional

TASKS = {
    "copying": "hf_alpha.logic.copying:CopyingTask",
    "ltl": "hf_alpha.logic.ltl:LTLTask",
    "propositional": "hf_alpha.logic.propositional:PropositionalTask",
}
"""Name of a task -> its class, as an entry point of another package says it."""
NAMES = {
    "FolnetConfig": "hf_alpha.folnet",
    **dict.fromkeys(
        ("GeometricConfig", "GeometricTokenizer", "to_geometric"), "hf_alpha.geometric"
    ),
    **dict.fromkeys(("Lexicon", "Rule", "Transducer"), "hf_alpha.transduction"),
}
"""Public name that was one of the package itself before 1.0 -> the wing that has it."""


def commuting() -> Any:
    """Return what sorts operands that may change places: `hf_alpha.logic.commuting`.

    Raises:
        ImportError: it was left out; this and the others here say so.
    """
    return part("hf_alpha.logic.commuting")


def generation() -> Any:
    """Return what makes datasets of drawn problems: `hf_alpha.logic.drawing.generate`."""
    return part("hf_alpha.logic.drawing.generate")


def drawn_problems() -> Any:
    """Return the dataset of problems that are drawn when they are needed, a class."""
    return part("hf_alpha.logic.drawing.drawn").DrawnProblems


def plain_tokenizer() -> Any:
    """Return the tokenizer of a model of Transformers as it is, a class."""
    return part("hf_alpha.alias.plain").PlainTokenizer


def conversion() -> Any:
    """Return what gives symbols to a model of Transformers: `hf_alpha.convert`."""
    return part("hf_alpha.convert")


def merged() -> Any:
    """Return what merges an adapter into its model, a function."""
    return part("hf_alpha.convert.merged").merged


def spelling() -> Any:
    """Return what has names spelled as words of a model: `hf_alpha.canonical`."""
    return part("hf_alpha.canonical")


def segments() -> Any:
    """Return what puts a transducer on top of a tokenizer: `hf_alpha.transduction.segments`."""
    return part("hf_alpha.transduction.segments")


def part(module: str) -> Any:
    """Return a module; of one that is not there, the error says so."""
    with optional():
        return import_module(module)


def is_here(module: str) -> bool:
    """Return whether a module of the package is in this copy of it."""
    path = Path(__file__).parents[1].joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def moved(name: str, old: str, new: str) -> Any:
    """Return what has moved from one module to another, with a warning.

    Raises:
        AttributeError: the other module has no such name either.
    """
    value = getattr(part(new), name)
    warning = f"{name} is in {new} now: {old} will go after 1.x"
    warnings.warn(warning, FutureWarning, stacklevel=3)
    return value
