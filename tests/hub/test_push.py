import json
import os
import re
import shutil
from pathlib import Path

import own_process
import pytest
from commands import hf_alpha
from datasets import load_dataset
from geometrics import small_model
from hosts import make_host
from small_tokenizers import byte_level, word_piece
from strategies import make_model
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_alpha.checkpoints.code_links import CODE, LINK, code_files
from hf_alpha.hub.push import model_files, pictures
from hf_alpha.hub.release import release
from hf_alpha.loading import load_parts
from hf_alpha.logic.drawing.generate import generate
from hf_alpha.modeling.tokenization_geometric import GeometricTokenizer
from hf_alpha.recipe import RECIPE_FILE, read_recipe, write_recipe
from hf_alpha.resources import released_models
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import TRAINER_STATE
from hf_alpha.transduction import Lexicon, Transducer


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model folder as training leaves it."""
    folder = tmp_path / "trained"
    make_model().save_pretrained(folder)
    build_tokenizer("propositional", 5).save_pretrained(folder)
    card = "# Card\n![rates](heatmap.png) <img src='pictures/one.svg'> [log](.env)"
    (folder / "README.md").write_text(f"---\nlicense: apache-2.0\n---\n{card}\n")
    write_recipe(read_recipe("propositional/debug"), folder / "recipe.yaml")
    for name in (*OWN, *PICTURES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"state")
    return folder


OWN = (
    *("optimizer.pt", "rng_state.pth", "training_args.bin", "trainer_state.json", ".env", ".netrc"),
    *("checkpoint-5/optimizer.pt", "checkpoint-5/model.safetensors", "runs/Jan01/events.out"),
    *("id.pickle", "wandb/run/config.yaml", "evaluation/records.jsonl", "evaluation-x/report.txt"),
    *("test.jsonl", "data/test.parquet", "my_code.py", "model.safetensors.bak", "private.png"),
    *("pictures/private.png", ".git/config", "model_of_mine.safetensors"),
)
PICTURES = ("heatmap.png", "pictures/one.svg")


def test_a_model_folder_is_shared_without_its_training_state(hub, folder):
    done = hf_alpha("push", folder, "me/shared")
    assert done.code == 0, done.err
    assert done.out.strip() == f"{hub.url}/me/shared"
    local = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    shared = hub.files("me/shared")
    assert shared == {name: local[name].read_bytes() for name in local.keys() - {*OWN}}
    assert {"README.md", "config.json", "vocab.json", "modeling_alpha.py", *PICTURES} <= {*shared}
    listed, _, left_out = done.err.partition("left out, as no part of a model: ")
    said = re.findall(r"^ +([\d,]+)  (.+)$", listed, re.MULTILINE)
    assert said == [(f"{len(shared[name]):,}", name) for name in sorted(shared)]
    assert left_out.split()[-1] == "wandb/" and {*left_out.strip().split(", ")} == {
        name if name.startswith("pictures/") else f"{top}{slash}"
        for top, slash, name in ((*name.partition("/")[:2], name) for name in OWN)
    }
    AutoTokenizer.from_pretrained("me/shared")
    assert AutoModelForSeq2SeqLM.from_pretrained("me/shared").config.vocab_size == 15

    (folder / "README.md").write_text("# Another card\n")
    assert hf_alpha("push", folder, "me/shared").code == 0
    assert hub.files("me/shared")["README.md"] == b"# Another card\n"


def test_how_a_card_is_written_is_said_where_a_command_writes_one(folder, tmp_path):
    (folder / "README.md").unlink()
    said = hf_alpha("push", folder, "me/x", "--dry-run").err
    assert f"no card, README.md: `hf-alpha evaluate {folder} --card` writes" in said
    plain = tmp_path / "plain"
    make_host("gpt2", vocab_size=len(byte_level())).save_pretrained(plain)
    byte_level().save_pretrained(plain)
    said = hf_alpha("push", plain, "me/x", "--dry-run").err
    assert said.endswith("there is no card, README.md: write one by hand\n")


def test_code_that_is_linked_is_shared_as_files(hub, folder, tmp_path):
    """A folder of the checkout; and plain copies, in which a link leads nowhere."""
    released = released_models()["copying-streams-small"]
    assert (released / LINK).is_symlink()
    assert hf_alpha("push", released, "me/released").code == 0
    shared = hub.files("me/released")
    assert {n for n in shared if n.endswith(".py")} == code_files(released, own=True)
    for name in code_files(released):
        assert shared[name] == (CODE / Path(name).name).read_bytes(), name

    copy = shutil.copytree(released, tmp_path / "copy", symlinks=True)
    link = folder / "attention.py"
    link.unlink()
    link.symlink_to("../../absent/attention.py")
    for broken in (folder, copy):
        error = hf_alpha("push", broken, "me/broken").error
        assert ".py is a link that leads nowhere" in error
        assert "me/broken" not in hub.repos
        assert hf_alpha("release", broken).code == 0  # as the message says
        assert hf_alpha("push", broken, "me/mended").code == 0


@pytest.mark.parametrize("name", ["recipe.yaml", "model.safetensors", "attention.py", "vocab.json",
                                  "pictures", "additional_chat_templates"])  # fmt: skip
def test_links_to_anything_but_the_code_are_not_followed(hub, folder, tmp_path, name):
    """What they lead to was uploaded."""
    outside = tmp_path / "outside"
    outside.mkdir()
    if (folder / name).exists():
        (folder / name).rename(outside / name)
    else:
        (outside / name).mkdir()
        (outside / name / "a.jinja").touch()
    (folder / name).symlink_to(outside / name)
    (folder / "unused").symlink_to("/etc/passwd")
    error = hf_alpha("push", folder, "me/nothing").error
    assert f"{folder / name}" in error and f" is a link to {outside / name}" in error
    assert not hub.repos


def test_a_link_to_data_is_not_followed(hub, tmp_path):
    generate("propositional", tmp_path / "set", 60, sizes=(1, 6), num_symbols=3, progress=False)
    (tmp_path / "set" / "data").rename(tmp_path / "data")
    (tmp_path / "set" / "data").symlink_to(tmp_path / "data")
    assert f"is a link to {tmp_path / 'data'}" in hf_alpha("push", tmp_path / "set", "me/it").error


@pytest.mark.parametrize("name", ["README.md", "recipe.yaml", "config.json"])
def test_secrets_are_not_shared(hub, folder, name):
    token, text = f"hf_{34 * 'x'}", (folder / name).read_text()
    more = {"config.json": text.replace("{", f'{{"seen": "{token}",', 1)}
    (folder / name).write_text(more.get(name, f"{text}  note: {token}\n"))
    error = hf_alpha("push", folder, "me/nothing").error
    assert ("has a token of the Hub in it" in error) == (name != "recipe.yaml")
    assert f"{folder / name}" in error and token not in error and not hub.repos


def test_a_dataset_folder_is_shared(hub, tmp_path):
    generate("propositional", tmp_path, 60, sizes=(1, 6), num_symbols=3, progress=False)
    for name in (".env", "notes.csv", "data/.train.parquet", "data/mine.pickle"):
        (tmp_path / name).touch()
    done = hf_alpha("push", tmp_path, "me/formulas", "--private")
    assert done.code == 0, done.err
    assert done.out.strip() == f"{hub.url}/datasets/me/formulas"
    data = {f"data/{split}-00000-of-00001.parquet" for split in ("train", "validation", "test")}
    shared = hub.files("me/formulas", "dataset")
    assert shared.keys() == {"README.md", "generation.json", *data}
    assert ": .env, data/.train.parquet, data/mine.pickle, notes.csv\n" in done.err
    ours, theirs = load_dataset(str(tmp_path)), load_dataset("me/formulas")
    assert {name: split.to_dict() for name, split in theirs.items()} == {
        name: split.to_dict() for name, split in ours.items()
    }


def test_what_does_not_load_is_not_shared(hub, folder, tmp_path):
    def error(path: Path, repository: str = "me/nothing") -> str:
        return hf_alpha("push", path, repository).error

    assert "neither a model (config.json) nor a dataset" in error(tmp_path)
    assert "does not exist" in error(tmp_path / "absent")
    assert "Repo id" in error(folder, "a/b/c")

    build_tokenizer("propositional", 4).save_pretrained(folder)
    assert "model and tokenizer disagree" in error(folder)
    (folder / "tokenizer_config.json").unlink()
    (folder / "vocab.json").unlink()
    assert error(folder)

    (tmp_path / "set" / "data").mkdir(parents=True)
    (tmp_path / "set" / "data" / "train.parquet").write_bytes(b"PAR1 broken PAR1")
    assert hf_alpha("push", tmp_path / "set", "me/nothing").code == 2
    assert not hub.repos


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_one_line(folder):
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DOWNLOAD_TIMEOUT": "1"}
    command = ["-m", "hf_alpha", "push", folder, "me/shared"]
    done = own_process.run(*command, env={**os.environ, **nowhere})
    assert done.returncode == 2
    assert "error: http://127.0.0.1:9/api/repos/create cannot be reached: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unfinished_dataset_is_not_shared(hub, tmp_path):
    generate("propositional", tmp_path, 60, sizes=(1, 6), num_symbols=3, progress=False)
    (tmp_path / "generation.json").unlink()
    (tmp_path / ".parts").mkdir()
    assert "holds an unfinished run" in hf_alpha("push", tmp_path, "me/formulas").error
    assert not hub.repos


def written(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("folder", released_models().values(), ids=lambda folder: folder.name)
def test_all_of_a_released_model_is_shared(folder):
    _, tokenizer = load_parts(folder, answers=False)
    assert written(folder) <= model_files(folder, tokenizer)


def test_all_that_a_release_writes_is_shared(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    make_model().save_pretrained(run, max_shard_size="20kB")
    assert (run / "model.safetensors.index.json").is_file()
    build_tokenizer("propositional", 5).save_pretrained(run)
    (run / TRAINER_STATE).write_text(json.dumps({"log_history": [{"step": 1, "loss": 2.0}]}))
    write_recipe(read_recipe("propositional/debug"), run / RECIPE_FILE)
    release(run, out)
    for folder in (run, out):
        shared = model_files(folder, load_parts(folder)[1])
        assert written(folder) - {TRAINER_STATE} <= shared and TRAINER_STATE not in shared


def test_all_that_a_tokenizer_writes_is_shared(tmp_path):
    transducer = Transducer.compile(Lexicon.from_entries([("alice sees", "seen")]))
    tokenizer = GeometricTokenizer.from_tokenizer(word_piece(), transducer)
    tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": "{{ tools }}"}
    small_model(vocab_size=len(tokenizer), segment_labels=transducer.labels).save_pretrained(
        tmp_path
    )
    tokenizer.save_pretrained(tmp_path)
    files = written(tmp_path)
    assert {"lexicon.tsv", "transducer.json", "additional_chat_templates/tool_use.jinja"} <= files
    assert files <= model_files(tmp_path, AutoTokenizer.from_pretrained(tmp_path))


def test_pictures_are_those_that_the_card_shows(tmp_path):
    shown = [
        "![a](a.png)",
        "[b](./b%20c.PDF 'title')",
        '<img width=3 src="d/e.svg">',
        "![](<f.jpg>)",
    ]
    hidden = ["![](../x.png)", "![](/etc/x.png)", "[](.env)", "![](.x.png)", "[data](test.jsonl)",
              "![](d/../../x.png)", "![](a)", "b.png"]  # fmt: skip
    (tmp_path / "README.md").write_text("\n".join([*shown, *hidden]))
    assert {*pictures(tmp_path)} == {"a.png", "b c.PDF", "d/e.svg", "f.jpg"}
    (tmp_path / "README.md").unlink()
    assert not {*pictures(tmp_path)}
