"""The examples run as they are, in a process and a folder of their own, with a few steps only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STEPS = "3"


def cells(notebook: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    found = json.loads(notebook.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", ["own_task.py", "own_task.ipynb"])
def test_example(name, tmp_path):
    file = EXAMPLES / name
    if file.suffix == ".ipynb":
        file = tmp_path / "notebook.py"
        file.write_text("\n\n".join(cells(EXAMPLES / name)), encoding="utf-8")
    environment = {**os.environ, "OWN_TASK_STEPS": STEPS, "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, str(file)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    rates = [line for line in lines if "% right" in line]
    assert [int(line.split()[0]) for line in rates] == list(range(3, 12))
    assert any(line.startswith("alpha-covariance 1.0000 over ") for line in lines)
    assert (tmp_path / "curves.png").is_file() == (name == "own_task.ipynb")


def test_the_example_is_short_and_the_notebook_is_the_same():
    """The notebook has every line of the example, in the same order."""
    example = (EXAMPLES / "own_task.py").read_text(encoding="utf-8")
    assert len(example.splitlines()) < 40
    lines = iter("\n".join(cells(EXAMPLES / "own_task.ipynb")).splitlines())
    code = example.split('"""\n', maxsplit=1)[1].splitlines()
    assert [line for line in code if line not in lines] == []
