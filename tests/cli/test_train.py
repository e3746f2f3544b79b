import json
import os
import signal

import pytest
import torch
from commands import hf_alpha
from hosts import make_host
from small_tokenizers import byte_level
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_alpha.tasks.text.swapping import swapping_pairs
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


def test_a_plain_model_is_trained_as_it_is_and_stays_plain(tmp_path):
    """It goes on from where it stopped, is evaluated by its rules, and asked."""
    tokenizer = byte_level(end=True)
    host = make_host("t5", vocab_size=len(tokenizer), eos_token_id=0)
    host.save_pretrained(tmp_path / "host")
    tokenizer.save_pretrained(tmp_path / "host")
    rows = "".join(json.dumps(row) + "\n" for row in swapping_pairs(12))
    (tmp_path / "rows.jsonl").write_text(rows)
    out = tmp_path / "plain"
    command = ["train", "text/swap", f"data.train={tmp_path / 'rows.jsonl'}", "data.test=null",
               "data.validation=null", "model=null", f"checkpoint={tmp_path / 'host'}",
               f"training.output_dir={out}", "training.save_strategy=steps",
               "training.save_steps=1"]  # fmt: skip
    done = hf_alpha(*command, "training.max_steps=1")
    assert done.code == 0, done.err
    assert f"names stay as they are: {tmp_path / 'host'} is a plain model; " in done.out
    done = hf_alpha(*command, "training.max_steps=2", "--allow-changes")
    assert done.code == 0 and "resuming from" in done.out, done.err
    trained, own = (AutoTokenizer.from_pretrained(place) for place in (out, tmp_path / "host"))
    text = "swap x y : F x"
    assert type(trained) is type(own) and trained(text) == own(text)
    ids = own(text, return_tensors="pt")["input_ids"]
    model = AutoModelForSeq2SeqLM.from_pretrained(out)
    before = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "host")
    assert not torch.equal(*(m(ids, labels=ids).logits for m in (model, before)))
    report = tmp_path / "report"
    done = hf_alpha("evaluate", out, "--data", tmp_path / "rows.jsonl", "--covariance", 0,
                    "--renamed", 1, "--out", report)  # fmt: skip
    assert "? 12 of 12 rows are renamings of training's: rows 0, 1, 2, ..." in done.out, done.err
    assert "plain: 0.0 % (0.0 to " in done.out and "of 12 answers changed" in done.out
    answer = json.loads((report / "plain" / "records.jsonl").read_text().splitlines()[0])
    asked = hf_alpha("solve", "--model", out, "--json", answer["problem"])
    told = json.loads(asked.out)["answer"].strip()
    assert told.startswith(answer["answers"][0])  # which ends with the longest target


def test_a_plain_model_without_names_is_trained_on_pairs_without_names(tmp_path):
    tokenizer = byte_level(end=True)
    host = make_host("t5", vocab_size=len(tokenizer), eos_token_id=0)
    host.save_pretrained(tmp_path / "host")
    tokenizer.save_pretrained(tmp_path / "host")
    (tmp_path / "rows.jsonl").write_text('{"source": "alice", "target": "bob"}\n' * 4)
    (tmp_path / "own.yaml").write_text(
        f"task: text\ndata: {{train: {tmp_path / 'rows.jsonl'}}}\ncheckpoint: {tmp_path / 'host'}\n"
        f"training: {{max_steps: 1, output_dir: {tmp_path / 'out'}}}\n"
    )
    done = hf_alpha("train", tmp_path / "own.yaml")
    assert done.code == 0 and (tmp_path / "out" / "model.safetensors").is_file(), done.err
