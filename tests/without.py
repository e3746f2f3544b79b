"""Leave a part of the package out in earnest: `python tests/without.py [WING]`.

Of a copy of the repository the modules of one wing are removed, and the tests that use it; of all
wings, by the name `all`. Then every other module is imported, and tests of the core run. Without a
name it is the turn of another wing each day, or of all. What follows the name is for pytest.
"""

import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from code_wings import WINGS, Package
from file_trees import copy_tree

TESTS = (
    "tasks",
    "test_auto",
    "data/test_pairs",
    "families/test_alpha_relational",
    "objectives/test_classes",
    "objectives/test_causal",
    "objectives/test_trainer",
    "convert/test_proof",
    "answer/test_pipelines",
)
"""Folders and files of tests that run: a minute of tests that go through most of the core."""
ALL = "all"
IMPORT_ALL = """
import importlib, sys
import hf_alpha
assert hf_alpha.__file__.startswith(sys.argv[1]), hf_alpha.__file__
for module in sys.argv[2:]:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print(module, error)
"""


def main() -> int:
    """Return 0 if the rest of the package is whole without the wing."""
    turns = [*WINGS, ALL]
    name = " ".join(sys.argv[1:2]) or turns[datetime.date.today().toordinal() % len(turns)]
    with tempfile.TemporaryDirectory(prefix="without-") as folder:
        return leave_out(name, Path(folder).resolve(), sys.argv[2:])


def leave_out(name: str, copy: Path, options: list[str]) -> int:
    """Leave a wing out of a copy, and return 0 if the rest of the package is whole.

    Args:
        options: for pytest.
    """
    copy_tree(copy)
    everything = Package(copy, with_tests=True)
    wings = WINGS.values() if name == ALL else [WINGS[name]]
    missing = set().union(*(everything.part(wing.modules) for wing in wings))
    failing, users = everything.failing(missing), set().union(*map(everything.tests_of, wings))
    for module in missing | users:
        everything.files[module].unlink()
    rest = sorted(m for m in everything.files if m.startswith("hf_alpha") and m not in missing)
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, str(copy), *rest],
        cwd=copy, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip
    holes = [line for line in said.splitlines() if line.split()[0] not in failing]
    print(f"without {name}: {len(missing)} of {len(missing) + len(rest)} modules are left out")
    if holes:
        print("holes in the wall:", *holes, sep="\n")
        return 1
    tests = [path for test in TESTS for path in existing(copy / "tests" / test)]
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
    return subprocess.run(pytest, cwd=copy, env=environment).returncode


def existing(test: Path) -> list[str]:
    """Return the folder or file of tests, which may have been left out."""
    return [str(path) for path in (test, test.with_suffix(".py")) if path.exists()]


if __name__ == "__main__":
    sys.exit(main())
