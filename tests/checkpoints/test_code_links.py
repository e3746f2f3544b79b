"""Code of the checkout's data folders: a link to hf_alpha/modeling that nothing writes through."""

import json
import os
import shutil
from pathlib import Path

import own_process
import pytest
from strategies import make_model

from hf_alpha import resources
from hf_alpha.checkpoints.code_links import CODE, LINK, code_files
from hf_alpha.hub.release import refresh, release
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import TRAINER_STATE

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    *resources.released_models().values(),
    *sorted(path for path in (ROOT / "tokenizer").iterdir() if path.is_dir()),
]


def links(folder: Path) -> dict[str, str]:
    return {path.name: os.readlink(path) for path in folder.glob("*.py") if path.is_symlink()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_folders_of_the_checkout_link_to_the_code(folder):
    assert is_linked(folder), "run: python -m hf_alpha.checkpoints.code_links"


def is_linked(folder: Path) -> bool:
    """Whether its code is that of the package, by one link."""
    files = code_files(folder, own=True)
    same = all((folder / name).read_bytes() == (CODE / name[5:]).read_bytes() for name in files)
    is_ours = os.readlink(folder / LINK) == os.path.relpath(CODE, folder)
    return same and is_ours and not contents(folder) and {*map(os.path.dirname, files)} == {LINK}


@pytest.fixture
def saved(tmp_path) -> Path:
    folder = tmp_path / "saved"
    make_model().save_pretrained(folder)
    build_tokenizer("propositional", 5).save_pretrained(folder)
    return folder


def test_code_files_are_those_that_saving_writes(saved, tmp_path):
    assert code_files(saved) == contents(saved).keys()
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "tokenizer")
    assert code_files(tmp_path / "tokenizer") == contents(tmp_path / "tokenizer").keys()


def test_saving_never_writes_through_a_link(saved):
    """Neither onto the code itself, nor through a link that leads elsewhere or nowhere."""
    before, elsewhere = contents(CODE), saved.parent / "elsewhere.py"
    elsewhere.write_text("# somebody's file")
    for path in saved.glob("*.py"):
        path.unlink()
        path.symlink_to(CODE / path.name)
    targets = {"attention.py": elsewhere, "symbols.py": saved.parent / "absent.py"}
    for name, target in targets.items():
        (saved / name).unlink()
        (saved / name).symlink_to(target)
    build_tokenizer("propositional", 5).save_pretrained(saved)
    build_tokenizer("propositional", 5).save_pretrained(saved.parent / "tokenizer")
    # Links to code of the model are still there when the tokenizer is saved.
    assert links(saved).keys() == code_files(saved) - code_files(saved.parent / "tokenizer")
    make_model().save_pretrained(saved)
    make_model().config.save_pretrained(saved)
    assert not links(saved)
    assert contents(saved) == {name: before[name] for name in code_files(saved)}
    assert contents(CODE) == before
    assert elsewhere.read_text() == "# somebody's file"
    assert not (saved.parent / "absent.py").exists()


def test_saving_leaves_other_files_alone(saved):
    """The user's own links, whatever they lead to, and code that nothing writes."""
    own = {"mine.py": CODE / "attention.py", "gone.py": saved.parent / "absent.py"}
    for name, target in own.items():
        (saved / name).symlink_to(target)
    before = {path.name for path in saved.iterdir()}
    make_model().save_pretrained(saved)
    build_tokenizer("propositional", 5).save_pretrained(saved)
    assert links(saved) == {name: str(target) for name, target in own.items()}
    assert {path.name for path in saved.iterdir()} == before


# Without the package: loads a released model by its own code, while somebody edits the code of the
# checkout, and saves it in a copy of the folder, as fine-tuning does.
FINE_TUNED = """
import sys
from pathlib import Path
sys.modules["hf_alpha"] = None  # importing it is an error
import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
folder, copy = map(Path, sys.argv[1:])
remote = {"trust_remote_code": True}
model = AutoModelForSeq2SeqLM.from_pretrained(folder, **remote)
tokenizer = AutoTokenizer.from_pretrained(folder, **remote)
with open(folder / "code" / "attention.py", "a") as code:
    code.write("# edited")
model.save_pretrained(copy)
tokenizer.save_pretrained(copy)
again = AutoModelForSeq2SeqLM.from_pretrained(copy, **remote)
batch = AutoTokenizer.from_pretrained(copy, **remote)("a b a", return_tensors="pt")
start = {"decoder_input_ids": torch.tensor([[1]])}
batch = {key: value if value.dim() > 1 else value[None] for key, value in batch.items()}
assert torch.equal(model(**batch, **start).logits, again(**batch, **start).logits)
AutoModel.from_pretrained(copy, **remote)  # the other classes are named beside it too
"""


@pytest.mark.slow  # Transformers copies and imports all code twice
def test_a_folder_of_the_checkout_is_loaded_by_its_own_code(tmp_path):
    """In a process of its own, from a checkout's folder, and saved into a plain copy of it."""
    released = resources.released_models()["copying-streams-small"]
    folders = (tmp_path / released.relative_to(ROOT), tmp_path / "runs" / "mine")
    shutil.copytree(CODE, tmp_path / "hf_alpha" / "modeling")
    for folder in folders:
        shutil.copytree(released, folder, symlinks=True)
    (folders[1] / LINK).unlink()
    shutil.copytree(CODE, folders[1] / LINK)
    before = contents(tmp_path / "hf_alpha" / "modeling")
    cache = {"HF_MODULES_CACHE": str(tmp_path / "modules")}
    done = own_process.run("-I", "-c", FINE_TUNED, *folders, env={**os.environ, **cache})
    assert done.returncode == 0, done.stderr
    before["attention.py"] += b"# edited"
    assert contents(tmp_path / "hf_alpha" / "modeling") == before
    assert not contents(folders[0]) and contents(folders[1])
    assert not contents(folders[1])["attention.py"].endswith(b"# edited")


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A checkout's folders, empty; links in them lead to the code under test."""
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "pyproject.toml").touch()
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "checkout" / "hf_alpha")
    return tmp_path / "checkout"


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["small/new", "new"])
def test_releases_link_in_the_checkout_and_copy_elsewhere(saved, checkout, name):
    (saved / TRAINER_STATE).write_text(json.dumps({"log_history": []}))
    (saved / RECIPE_FILE).write_text("task: propositional\n")
    inside, outside = checkout / "model_cards" / name, checkout / "runs" / "new"
    release(saved, inside)
    release(saved, outside)
    assert is_linked(inside) and not (outside / LINK).exists()
    assert not links(outside) and contents(outside) == contents(saved)

    # In place: code in files of before goes, weights stay.
    (inside / "renamed.py").symlink_to(os.path.relpath(CODE / "steps.py", inside))
    (inside / "attention.py").write_text("# old")
    weights = (inside / "model.safetensors").read_bytes()
    before = contents(CODE)
    refresh(inside)
    assert is_linked(inside)
    assert (inside / "model.safetensors").read_bytes() == weights
    load_checkpoint(inside)
    shutil.copytree(inside, outside.parent / "copy", symlinks=True)
    refresh(outside.parent / "copy")
    assert code_files(outside.parent / "copy") == contents(outside.parent / "copy").keys()
    assert contents(CODE) == before
