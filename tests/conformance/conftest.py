"""Transformers' own test suite, from the source distribution of the version that is installed.

The wheel has no tests, so pip fetches the source distribution, once, and its tests are kept in
`~/.cache/hf_alpha`. Nothing of it is copied into this repository.
Its package `tests` is imported as `transformers_tests`, beside which this folder's tests lie.
"""

import importlib.util
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

PACKAGE = "transformers_tests"
# What the shared tests import and the distribution lacks: nothing of it is used here.
STAND_INS = {
    "__init__.py": "",
    "utils/__init__.py": "",
    "utils/test_configuration_utils.py": "config_common_kwargs = {}\n",
    "exporters/__init__.py": "",
    "exporters/test_export.py": "class ExportTesterMixin:\n    pass\n",
    "fixtures/sample_text.txt": "",
    "generation/__init__.py": "",
    "generation/test_utils.py": "class GenerationTesterMixin:\n    pass\n",
}
# Marks of tests that need hardware or kernels, which these tests do not have.
MARKS = ("accelerate_tests", "flash_attn_test", "flash_attn_3_test", "flash_attn_4_test")
MARKS += ("torch_compile_test", "generate", "training_test", "run_first")


def source_distribution() -> Path:
    """Folder of the tests of the source distribution, fetched if it is not there yet.

    Raises:
        OSError: the package index cannot be reached.
    """
    cache = Path.home() / ".cache" / "hf_alpha"
    folder = cache / f"transformers-{transformers.__version__}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    requirement = f"transformers=={transformers.__version__}"
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", "transformers", "--dest", scratch, requirement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"pip could not fetch the source of {requirement}:\n{done.stderr}")
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as content:
            tests = (part for part in content if part.name.startswith(f"{folder.name}/tests/"))
            content.extractall(scratch, tests, filter="data")
        if not folder.is_dir():  # another process may have been faster
            Path(scratch, folder.name).rename(folder)
    return folder


def import_shared_tests() -> None:
    """Make the shared tests importable as `transformers_tests`."""
    tests = source_distribution() / "tests"
    for name, text in STAND_INS.items():
        path = tests / name
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text() != text:  # another process may be reading it
            path.write_text(text)
    spec = importlib.util.spec_from_file_location(
        PACKAGE, tests / "__init__.py", submodule_search_locations=[str(tests)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def pytest_configure(config):
    # Messages of comparisons are written where they hold, too: values take a minute in all.
    torch.nn.Parameter.__repr__ = object.__repr__
    for mark in MARKS:
        config.addinivalue_line("markers", f"{mark}: used in the tests of Transformers")
    try:
        import_shared_tests()
    except OSError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave comparisons in float16 to the slow run: it is slow here, and bfloat16 stays."""
    for item in items:
        if "_fp16_" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def weights_alone() -> Iterator[None]:
    """Models and configurations are saved without their code, which takes longer to copy."""
    with pytest.MonkeyPatch.context() as patch:
        for shared in (PreTrainedModel, PreTrainedConfig):
            for kind in subclasses(shared):
                if kind._auto_class is not None:
                    patch.setattr(kind, "_auto_class", None)
        yield


def subclasses(kind: type) -> Iterator[type]:
    """All subclasses of a class."""
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)
