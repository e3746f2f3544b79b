import json
import os
import signal

import pytest
from commands import hf_alpha

from hf_alpha.train import AlphaTrainer


def test_training_resumes_and_refuses_to(tmp_path, data):
    arguments = [
        "train",
        "propositional/debug",
        f"data.path={data}",
        "data.generate={}",
        "training.eval_strategy=no",
        "training.save_steps=2",
        "training.lr_scheduler_type=constant",
        f"training.output_dir={tmp_path}",
    ]
    assert hf_alpha(*arguments, "training.max_steps=2").code == 0
    done = hf_alpha(*arguments, "training.max_steps=4")
    assert f"{tmp_path} holds a run with other settings: training.max_steps: 2 -> 4;" in done.error
    done = hf_alpha(*arguments, "training.max_steps=4", "--allow-changes")
    assert f"{tmp_path}: resuming from {tmp_path}/checkpoint-2, step 2\n" in done.out
    state = json.loads((tmp_path / "trainer_state.json").read_text())
    assert state["global_step"] == 4
    assert [row["step"] for row in state["log_history"] if "loss" in row] == [1, 2, 3, 4]
    assert hf_alpha("solve", "--model", tmp_path, "a & b").code in (0, 1)


def test_ctrl_c_in_training_leaves_a_checkpoint_to_go_on_from(tmp_path, monkeypatch):
    command = ["train", "copying/debug", "training.eval_strategy=no", "training.save_strategy=no",
               "training.max_steps=5", f"training.output_dir={tmp_path}"]  # fmt: skip
    step = AlphaTrainer.training_step

    def stopped(trainer, *args, **kwargs):
        if trainer.state.global_step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(trainer, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(AlphaTrainer, "training_step", stopped)
        done = hf_alpha(*command)
    checkpoint = f"{tmp_path}/checkpoint-3"
    assert done.code == 130 and "Traceback" not in done.err, done.err
    assert f"stopped at step 3, which {checkpoint} holds: the same command goes on" in done.err
    assert not (tmp_path / "model.safetensors").exists()
    assert (tmp_path / "recipe.yaml").is_file()
    done = hf_alpha(*command)
    assert done.code == 0 and f"{tmp_path}: resuming from {checkpoint}, step 3\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["propositional/debug", "training.max_stepz=3"], "did you mean 'max_steps'?"),
        (["propositional/debug", "model.d_modell=3"], "did you mean 'd_model'?"),
        (["propositional/debug", "colour=red"], "unknown key 'colour'"),
        (["propositional/debug", "training.max_steps"], "write it as key=value"),
        (["propositional/debug", "model.d_model=wide"], "d_model"),
        (["propositional/nothing"], "no recipe 'propositional/nothing'"),
        (["nothing"], "training/ has: copying, folnet, geometric, ltl, propositional, text."),
        (["."], "no recipe '.'"),
        (["propositional/debug", "training.report_to=paper"], "report_to: paper is not supported"),
        (["propositional/debug", "training.report_to=swanlab"], "report_to: SwanLab"),
        (["propositional/debug", f"training.output_dir={__file__}"], "test_train.py is a file"),
        (["propositional/debug", f"data.path={__file__}"], "data: "),
    ],
)
def test_recipes_that_cannot_be_read(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in hf_alpha("train", *arguments).error
    assert not (tmp_path / "runs").exists()


def test_every_key_of_a_recipe_is_explained_and_in_the_schema():
    explained = hf_alpha("train", "--help-recipe")
    assert explained.code == 0 and explained.out.startswith("A recipe is a YAML file.\n")
    schema = json.loads(hf_alpha("train", "--recipe-schema").out)
    for key in schema["properties"]["training"]["properties"]:
        assert f"\ntraining.{key}: " in explained.out
