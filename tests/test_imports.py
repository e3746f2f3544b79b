"""Imports point one way, what travels to the Hub stands alone, and importing stays cheap."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hf_alpha"

# A part may import those to its left: modeling <- tasks <- data <- {convert, ...} <- cli.
LAYERS = [
    {"modeling", "resources", "folders"},
    {"code_links"},
    {"tasks", "loading"},
    {"build_tokenizer"},
    {"data"},
    {"convert", "evaluation", "train"},
    {"card", "push", "quickstart", "release", "solve"},
    {"cli"},
]
HUB_MAY_IMPORT = {"torch", "transformers", "tokenizers", "huggingface_hub"}
HEAVY = ["datasets", "pandas", "pyarrow", "matplotlib", "aiger", "pysat", "spot", "typer"]

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

    The package root and its public names count as modeling: the root imports nothing else.
    """
    top, name, *_ = [*module.rstrip(".").split("."), ""]
    if top != "hf_alpha":
        return None
    return (
        name
        if name in {name_of(path).split(".")[1] for path in SOURCES if path != ROOT_MODULE}
        else "modeling"
    )


def layer_of(part: str) -> int:
    for layer, parts in enumerate(LAYERS):
        if part in parts:
            return layer
    raise AssertionError(f"hf_alpha.{part} has no place in the order of imports: give it one")


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
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
    """Only hf_alpha is a package."""
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


def test_import_loads_no_optional_or_slow_package():
    script = (
        "import sys, json, hf_alpha; "
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    assert json.loads(run_alone(script)) == []


def test_help_loads_neither_transformers_nor_torch():
    script = (
        "import sys, hf_alpha_cli\n"
        "sys.argv[1:] = ['--help']\n"
        "try: hf_alpha_cli.main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "print({'hf_alpha', 'torch', 'transformers'} & set(sys.modules))"
    )
    assert run_alone(script) == "set()"


@pytest.mark.parametrize("first", ["hf_alpha", "transformers"])
def test_importing_registers_the_auto_classes(first: str):
    second = "transformers" if first == "hf_alpha" else "hf_alpha"
    script = (
        f"import {first}, {second}\n"
        "from hf_alpha import AlphaConfig\n"
        "from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM\n"
        "config = AutoConfig.for_model('alpha', num_base_tokens=9, symbol_classes={'p': 2},\n"
        "    d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,\n"
        "    decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8)\n"
        "assert type(config) is AlphaConfig\n"
        "models = [auto.from_config(config) for auto in (AutoModel, AutoModelForSeq2SeqLM)]\n"
        "print(*(type(model).__name__ for model in models))"
    )
    assert run_alone(script) == "AlphaModel AlphaForConditionalGeneration"
