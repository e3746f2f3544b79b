"""The examples run as they are, in a folder of their own, with a few steps only."""

import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOK = EXAMPLES / "own_task.ipynb"


def cells(notebook: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    found = json.loads(notebook.read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    return ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]


def filled(text: str) -> list[str]:
    """The lines with something on them."""
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["rename", "new_names", "kinship", "segments"])
def test_an_example_prints_what_is_saved(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out == (EXAMPLES / "output" / f"{name}.txt").read_text(
        encoding="utf-8"
    )


def test_the_gallery_names_each_script():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    scripts = sorted(EXAMPLES.glob("*.py"))
    assert len(scripts) == 6
    for script in scripts:
        assert f"]({script.name})" in text and f"](output/{script.stem}.txt)" in text
        assert (EXAMPLES / "output" / f"{script.stem}.txt").stat().st_size
        assert len(script.read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OWN_TASK_STEPS", "3")
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join(cells(NOTEBOOK)), encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    rates = [line for line in lines if "% right" in line]
    assert [int(line.split()[0]) for line in rates] == list(range(3, 12))
    assert any(line.startswith("alpha-covariance 1.0000 over ") for line in lines)
    assert (tmp_path / "curves.png").is_file()


def test_a_model_of_transformers_gets_names(tmp_path, monkeypatch, capsys):
    """A renaming of a text is answered by a renaming of its answer, by any weights."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETROFIT_STEPS", "2")
    script = EXAMPLES / "retrofit.py"
    runpy.run_path(str(script), run_name="__main__")
    one, two = capsys.readouterr().out.splitlines()[-2:]
    renaming = str.maketrans({"x": "k9", "y": "m", "F": "G", "G": "Q3"})
    assert one.translate(renaming) == two
    saved = {file.name for file in (tmp_path / "runs" / "retrofit").iterdir()}
    assert {"model.safetensors", "tokenizer.json", "modeling_retrofit.py"} <= saved
    assert len(script.read_text(encoding="utf-8").splitlines()) < 40


def test_the_script_is_short_and_what_the_notebook_begins_with():
    """So that it runs as well as the notebook."""
    text = (EXAMPLES / "own_task.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    docstring, *code = filled(text)
    assert docstring.endswith('"""')
    assert filled("\n".join(cells(NOTEBOOK)))[: len(code)] == code
