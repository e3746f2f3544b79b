"""The folder of a Space is whole: the page starts from it alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gradio", reason="needs Gradio: pip install 'hf_alpha[demo]'")

from commands import hf_alpha

from hf_alpha.demo.service import Model
from hf_alpha.demo.space import write_space
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task

MODEL = "propositional-relational-small"


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("space") / "space"
    model = released_models()[MODEL]
    done = hf_alpha("demo", "--model", model, "--space", folder)
    assert done.code == 0, done.err
    assert done.out.endswith(f"hf upload owner/name {folder} --repo-type space\n")
    return folder


def test_what_is_in_it(space):
    assert sorted(path.name for path in space.iterdir()) == [
        "README.md", "app.py", "hf_alpha", "models", "requirements.txt",
    ]  # fmt: skip
    assert not any(path.is_symlink() for path in space.rglob("*"))
    card = (space / "README.md").read_text()
    front = dict(line.split(": ", 1) for line in card.split("---")[1].strip().split("\n"))
    assert front["sdk"] == "gradio" and front["app_file"] == "app.py" and MODEL in card
    needed = (space / "requirements.txt").read_text().splitlines()
    assert needed[0].startswith("--extra-index-url")
    names = {re.split(r"[\[<>=!~ ;]", line)[0] for line in needed[1:]}
    assert {"torch", "transformers", "python-sat", "spottl"} <= names
    assert not {"gradio", "pytest", "wandb"} & names and not any(";" in line for line in needed)


@pytest.mark.slow
def test_it_starts_alone_and_answers(space, tmp_path):
    """With the package that lies beside it, whatever else is installed."""
    script = (
        "import runpy, sys, hf_alpha\n"
        f"assert hf_alpha.__file__.startswith({str(space)!r}), hf_alpha.__file__\n"
        "import hf_alpha.demo.server as server\n"
        "start = server.serve\n"
        "def serve(service, **settings):\n"
        "    assert settings == {'host': '0.0.0.0', 'port': 7860}\n"
        "    reply = service.solve('a & !b', service.choices[0].name)\n"
        "    page = start(service, host='0.0.0.0', wait=False, say=print)\n"
        "    import urllib.request\n"
        "    address = page.local_url.replace('0.0.0.0', '127.0.0.1')\n"
        "    print(urllib.request.urlopen(address).status, reply.answers[0].label)\n"
        "    page.close()\n"
        "server.serve = serve\n"
        "runpy.run_path('app.py', run_name='__main__')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(space)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=space, env=environment, capture_output=True, text=True,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^200 (exact|correct)$", done.stdout, re.MULTILINE)


def test_code_of_ones_own_and_a_folder_that_is_there_are_refused(space, tmp_path):
    (tmp_path / "recipe.yaml").write_text(
        "task: text\ncheck: mine:check\ndata: {train: a.jsonl}\ntraining: {output_dir: runs/a}\n"
    )
    from hf_alpha.trust import trusting

    with (
        trusting(tmp_path),
        pytest.raises((ValueError, ImportError), match=r"mine"),
    ):
        write_space([Model("mine", get_task("text"), str(tmp_path))], tmp_path / "space")
    assert not (tmp_path / "space").exists()
    model = released_models()[MODEL]
    assert "exists" in hf_alpha("demo", "--model", model, "--space", space).error


def test_what_the_command_refuses():
    assert "name it with --model" in hf_alpha("demo", "--task", "ltl").error
