"""Imports point one way, what travels to the Hub stands alone, and importing stays cheap."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from public_names import public_names

import hf_alpha
from hf_alpha import wings

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hf_alpha"

# A part may import those of the lines above: modeling <- tasks <- data <- {convert, ...} <- cli.
LAYERS = [
    {"processes", "resources", "wings"},
    {"auto", "environment", "io", "modeling"},
    {"checkpoints"},
    {"trust"},
    {"names", "testing"},
    {"alias", "tasks", "loading", "transduction"},
    {"generation"},
    {"canonical", "data"},
    {"logic", "objectives"},
    {"convert", "recipe"},
    {"answer", "folnet", "geometric"},
    {"evaluation"},
    {"train"},
    {"hub"},
    {"demo", "serve"},
    {"cli"},
    {"__main__"},
]
HUB_MAY_IMPORT = {
    "torch",
    "transformers",
    "tokenizers",
    "huggingface_hub",
    "regex",  # Transformers needs it
    "jinja2",  # PyTorch needs it
}
HEAVY = [
    "datasets",
    "pandas",
    "pyarrow",
    "pydantic",
    "matplotlib",
    "aiger",
    "pysat",
    "spot",
    "typer",
    "gradio",
    "starlette",
    "uvicorn",
    "ahocorasick",
    "pynini",
]

ROOT_MODULE = PACKAGE / "__init__.py"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MODELING = sorted((PACKAGE / "modeling").rglob("*.py"))


def name_of(path: Path) -> str:
    """hf_alpha/tasks/base.py -> hf_alpha.tasks.base."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute module name of every import, nested ones and `from x import y` too."""
    package = name_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            # `from hf_alpha import tasks` names a part after the import, not before it.
            names = [alias.name for alias in node.names] if module == "hf_alpha" else []
            yield from ((node.lineno, f"{module}.{name}") for name in names or [""])


def part_of(module: str) -> str | None:
    """The part of hf_alpha that a module belongs to; None for the rest of the world.

    The public names of the package root come from parts everywhere: they are for users.
    """
    top, name, *_ = [*module.rstrip(".").split("."), ""]
    return name if top == "hf_alpha" else None


def layer_of(part: str) -> int:
    for layer, parts in enumerate(LAYERS):
        if part in parts:
            return layer
    raise AssertionError(f"hf_alpha.{part} has no place in the order of imports: give it one")


@pytest.mark.parametrize("path", [p for p in SOURCES if p != ROOT_MODULE], ids=name_of)
def test_imports_point_one_way(path: Path):
    own = part_of(name_of(path))
    for line, module in imported_modules(path):
        other = part_of(module)
        if other not in (None, own):
            assert layer_of(other) < layer_of(own), (
                f"{path}:{line}: {own} may not import {other}; see the order in CONTRIBUTING.md"
            )


@pytest.mark.parametrize("path", MODELING, ids=name_of)
def test_modeling_stands_alone(path: Path):
    """`save_pretrained` copies the closure of sibling imports, found by a regular expression."""
    siblings = {file.stem for file in MODELING}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            tops = {alias.name.split(".")[0] for alias in node.names}
            assert tops <= HUB_MAY_IMPORT | sys.stdlib_module_names, f"{path}:{node.lineno}"
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            top = (node.module or "").split(".")[0]
            assert top in HUB_MAY_IMPORT | sys.stdlib_module_names, f"{path}:{node.lineno}: {top}"
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1 and node.module in siblings, (
                f"{path}:{node.lineno}: only `from .file import Name` reaches the Hub"
            )


def test_tasks_stand_alone():
    """A task imports what all share and its own folder; a solver's worker no file of ours."""
    places = [PACKAGE / "tasks", PACKAGE / "logic"]
    folders = {path.parent.name for place in places for path in place.glob("*/__init__.py")}
    for path in (path for place in places for path in place.rglob("*.py")):
        for line, module in imported_modules(path):
            other = [*module.split("."), "", ""][2]
            own = path.parent.name == other
            if module.startswith(("hf_alpha.tasks", "hf_alpha.logic")) and other in folders:
                assert own, f"{path}:{line}: {other} is another task, or one that is named here"
            assert not (path.stem.endswith("_worker") and module.startswith("hf_alpha")), path


def test_modeling_is_one_flat_folder():
    folders = [path for path in (PACKAGE / "modeling").iterdir() if path.is_dir()]
    assert [path.name for path in folders if path.name != "__pycache__"] == []
    assert {path.parent for path in MODELING} == {PACKAGE / "modeling"}


def test_relative_imports_are_not_quoted():
    """The copier's regular expression does not know a docstring from code."""
    for path in MODELING:
        lines = {
            node.lineno
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.level
        }
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if line.strip().startswith(("from .", "import .")):
                assert number in lines, f"{path}:{number} quotes an import"


def test_nothing_imports_a_data_folder():
    """Only hf_alpha is a package, and one folder of benchmarks, which is not installed."""
    folders = {"tokenizer", "training", "model_cards", "tests", "benchmarks", "docs"}
    for path in SOURCES:
        for line, module in imported_modules(path):
            assert module.split(".")[0] not in folders, f"{path}:{line}: {module}"
    for folder in folders:
        assert not (ROOT / folder / "__init__.py").exists(), f"{folder}/ looks like a package"


def run_alone(script: str) -> str:
    """The last line that a script prints in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1]


def test_import_loads_nothing_that_is_large():
    """Public names bring what they need; a model class nothing that is optional or slow."""
    loaded = "[name for name in {} if name in sys.modules]"
    alone, model = loaded.format(["torch", "transformers", *HEAVY]), loaded.format(HEAVY)
    told = (
        f"import sys, hf_alpha; first = {alone}; hf_alpha.AlphaForCausalLM; print(first + {model})"
    )
    assert run_alone(told) == "[]"


def test_public_names_are_declared_once():
    """In the stub, for type checkers too."""
    typed = hf_alpha._MODULES
    assert len(typed) <= 32 and sorted([*typed, "__version__"]) == sorted(hf_alpha.__all__)
    parts = {name_of(path).split(".")[1] for path in SOURCES if path != ROOT_MODULE}
    assert not parts & typed.keys(), "a module of this name would hide it"
    assert dir(hf_alpha) == sorted(hf_alpha.__all__)
    for name in hf_alpha.__all__:
        value = getattr(hf_alpha, name)
        assert name == "__version__" or value.__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'AlphaModell'"):
        hf_alpha.AlphaModell  # noqa: B018


def test_names_of_wings_are_found_where_they_were():
    for name, module in wings.NAMES.items():
        with pytest.warns(FutureWarning, match=f"{name} is in {module} now: hf_alpha will go"):
            assert getattr(hf_alpha, name) is getattr(import_module(module), name)


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *ROOT.glob("training/*.md")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_import_public_names_and_call_them_as_they_take_it(path: Path):
    """Of the package itself, or of the module that they name, where `_` begins what is its own."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
    nodes = [node for block in blocks for node in ast.walk(ast.parse(block))]
    known = {f"hf_alpha.{name}": value for name, value in public_names().items()}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hf_alpha"):
            module = import_module(node.module)
            names = {alias.name for alias in node.names}
            assert names <= vars(module).keys() | set(hf_alpha.__all__)
            assert not any(name.startswith("_") for name in names), node.module
            known |= {
                alias.asname or alias.name: getattr(module, alias.name) for alias in node.names
            }
    for node in nodes:
        called = known.get(ast.unparse(node.func)) if isinstance(node, ast.Call) else None
        if callable(called):
            options = {word.arg: word for word in node.keywords if word.arg}
            places = [place for place in node.args if not isinstance(place, ast.Starred)]
            signature(called).bind_partial(*places, **options)


def test_one_module_generates():
    """Searches, batches and decoding are those of `generation.py`, whichever tool asks.

    The proof of a conversion (proof.py) calls the model's own `generate`, which it is about.
    """
    callers = {
        path.name
        for path in sorted(set(SOURCES) - set(MODELING))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "generate"
    }
    assert callers == {"generation.py", "proof.py"}


def test_only_models_and_conversions_name_a_model_class():
    """Tools go by `model_type` through the Auto classes."""
    named = re.compile(r"\bAlpha(ForConditionalGeneration|Model|Config)\b")
    for path in SOURCES:
        part = path.relative_to(PACKAGE).parts[0]
        if part not in ("modeling", "convert", "__init__.py", "auto.py"):
            assert not named.search(path.read_text()), path


def test_help_loads_neither_transformers_nor_torch():
    script = (
        "import sys, hf_alpha.cli\n"
        "sys.argv[1:] = ['--help']\n"
        "try: hf_alpha.cli.main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    assert run_alone(script) == "set()"
