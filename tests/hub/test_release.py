import json
from pathlib import Path

import own_process
import pytest
import torch
from strategies import make_model

from hf_alpha.hub.card import describe_training
from hf_alpha.hub.release import refresh, release
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE, read_recipe, write_recipe
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.train import TRAINER_STATE


def test_release_holds_what_is_shared_and_no_more(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    model = make_model()
    model.config.use_cache = False  # as Trainer leaves it
    model.save_pretrained(run)
    build_tokenizer("propositional", 5).save_pretrained(run)
    (run / "checkpoint-5").mkdir()
    (run / "training_args.bin").write_bytes(b"pickle")
    with pytest.raises(FileNotFoundError, match="no finished run"):
        release(run, out)
    assert not out.exists()
    log = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]
    (run / TRAINER_STATE).write_text(json.dumps({"log_history": log}))
    recipe = read_recipe("propositional/debug", ["training.max_steps=2"])
    write_recipe(recipe, run / RECIPE_FILE)
    release(run, out)
    loaded, _ = load_checkpoint(out)
    assert torch.equal(loaded.model.shared.weight, model.model.shared.weight)
    assert loaded.generation_config.max_length == 129
    assert loaded.generation_config.use_cache
    names = {path.name for path in out.iterdir()}
    assert names.isdisjoint({"checkpoint-5", "training_args.bin", TRAINER_STATE})
    assert json.loads((out / "training_log.json").read_text()) == log
    assert read_recipe(out / RECIPE_FILE) == recipe
    with pytest.raises(FileExistsError):
        release(run, Path(out))


def test_a_recipe_with_a_secret_is_not_released(tmp_path):
    """An older version has written it."""
    recipe = read_recipe("propositional/debug")
    write_recipe(recipe, tmp_path / RECIPE_FILE)
    with (tmp_path / RECIPE_FILE).open("a") as file:
        file.write(f"  run_name: hf_{34 * 'x'}\n")
    (tmp_path / TRAINER_STATE).write_text("{}")
    for shared in (
        lambda: release(tmp_path, tmp_path / "out"),
        lambda: describe_training(tmp_path),
    ):
        with pytest.raises(ValueError, match=r"recipe\.yaml: .* is a secret"):
            shared()
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_is_released_with_the_recipe_of_its_run(tmp_path):
    run = tmp_path / "run"
    for step, folder in ((1, run / "checkpoint-1"), (2, run / "checkpoint-2")):
        make_model(seed=step).save_pretrained(folder)
        build_tokenizer("propositional", 5).save_pretrained(folder)
        log = [{"step": n + 1, "loss": 1.0} for n in range(step)]
        (folder / TRAINER_STATE).write_text(json.dumps({"log_history": log}))
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        release(run / "checkpoint-1", tmp_path / "out")
    write_recipe(read_recipe("propositional/debug", []), run / RECIPE_FILE)
    release(run / "checkpoint-1", tmp_path / "out")
    (model, _), (chosen, _) = (
        load_checkpoint(folder) for folder in (tmp_path / "out", run / "checkpoint-1")
    )
    assert torch.equal(model.model.shared.weight, chosen.model.shared.weight)
    assert json.loads((tmp_path / "out" / "training_log.json").read_text()) == [
        {"step": 1, "loss": 1.0}
    ]
    assert read_recipe(tmp_path / "out" / RECIPE_FILE) == read_recipe("propositional/debug", [])


LIMITED = """
import resource, signal
from hf_alpha.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
main()
"""


@pytest.mark.slow
def test_a_full_disk_leaves_a_released_model_as_it_was(tmp_path):
    folder = tmp_path / "model"
    make_model().save_pretrained(folder)
    build_tokenizer("propositional", 5).save_pretrained(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = own_process.run("-c", LIMITED, "release", folder)
    assert done.returncode == 2 and "too large" in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]
    (folder / "modeling_alpha.py").write_text("# old")
    refresh(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
