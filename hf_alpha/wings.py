"""What the package can do without, parts and libraries: found when needed, else told by name.

Nothing else in the core names the parts, but the table of models (`auto`), whose classes are
imported when they are used, and commands.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

TASKS = {
    "copying": "hf_alpha.logic.copying:CopyingTask",
    "ltl": "hf_alpha.logic.ltl:LTLTask",
    "propositional": "hf_alpha.logic.propositional:PropositionalTask",
}
"""Name of a task -> its class, as an entry point of another package says it."""
PARTS = {
    "adapters": "hf_alpha.convert.merged:merged",  # merges one into its model
    "commuting": "hf_alpha.logic.commuting",  # sorts operands that may change places
    "conversion": "hf_alpha.convert",  # gives symbols to a model of Transformers
    "drawn problems": "hf_alpha.logic.drawing.drawn:DrawnProblems",  # when they are needed
    "generation": "hf_alpha.logic.drawing.generate",  # makes datasets of drawn problems
    "plain tokenizer": "hf_alpha.alias.plain:PlainTokenizer",  # of a model as it is
    "segments": "hf_alpha.transduction.segments",  # puts a transducer on top of a tokenizer
    "spelling": "hf_alpha.canonical",  # has names spelled as words of a model
}
"""What else the core asks for -> where it is."""
NAMES = {
    "FolnetConfig": "hf_alpha.folnet",
    **dict.fromkeys(
        ("GeometricConfig", "GeometricTokenizer", "to_geometric"), "hf_alpha.geometric"
    ),
    **dict.fromkeys(("Lexicon", "Rule", "Transducer"), "hf_alpha.transduction"),
}
"""Public name that was one of the package itself before 1.0 -> the wing that has it."""

LIBRARIES = {
    **{name: (name, "train") for name in ("datasets", "accelerate", "matplotlib", "rapidfuzz")},
    **dict.fromkeys(("pyarrow", "pandas"), ("datasets", "train")),
    "aiger": ("py-aiger", "logic"),
    "aiger_sat": ("py-aiger-sat", "logic"),
    "pysat": ("python-sat", "logic"),
    "spot": ("spottl", "ltl"),
    "rdkit": ("rdkit", "chemistry"),
    "gradio": ("gradio", "demo"),
    **{name: (name, "serve") for name in ("starlette", "uvicorn", "llguidance")},
    "lm_eval": ("lm-eval", "lm-eval"),
    "pytorch_optimizer": ("pytorch_optimizer", "optimizers"),
    "sqlglot": ("sqlglot", "sql"),
    **{
        f"tree_sitter{grammar}": (f"tree-sitter{grammar}".replace("_", "-"), "languages")
        for grammar in ("", "_javascript", "_typescript", "_go", "_java", "_c")
    },
    "ahocorasick": ("pyahocorasick", "transduction"),
    "pynini": ("pynini", "transduction"),
}
"""Module that hf_alpha can do without -> its package, and the extra that brings it."""
CORE = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
"""What `hf_alpha` itself brings, if it was not installed for names before a model alone."""
ONLY = {"ltl": " (only for Linux on x86-64, with Python before 3.14)"}
"""Extra -> where its packages can be installed, if not everywhere."""


def wing(what: str) -> Any:
    """Return what the core asks for, one of `PARTS`.

    Raises:
        ImportError: it was left out.
    """
    module, _, name = PARTS[what].partition(":")
    return getattr(part(module), name) if name else part(module)


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


def how_to_install(module: str | None) -> str | None:
    """Return which extra brings a library, with the command; None for what no extra brings.

    Args:
        module: that cannot be imported, such as `pysat.solvers`, or a part of the package itself
            that is not there.
    """
    if f"{module}".startswith("hf_alpha."):
        return f"{module} is not in this copy of hf_alpha: install all of it"
    library = f"{module}".partition(".")[0]
    if library in CORE:
        return f"{library} is not installed: pip install hf_alpha, with all that it needs"
    package, extra = LIBRARIES.get(library, ("", ""))
    where = ONLY.get(extra, "")
    return f"{package} is not installed: {install_command(extra)}{where}" if package else None


def missing_library(error: BaseException | None) -> str | None:
    """Return how to install what an import lacks, or one that led to it; None for other errors."""
    if not isinstance(error, ImportError):
        return None
    return how_to_install(error.name) or missing_library(error.__cause__)


@contextmanager
def optional() -> Iterator[None]:
    """Import within this what hf_alpha can do without.

    Raises:
        ImportError: a library is not installed; the message has the command for that.
    """
    try:
        yield
    except ImportError as error:
        message = missing_library(error)
        if message is None:
            raise
        raise ImportError(message, name=error.name) from error


def install_command(extra: str | None) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'hf_alpha[{extra}]'"
