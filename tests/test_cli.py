import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import own_process
import pytest
import torch
import typer.main
from commands import hf_alpha
from datasets import load_dataset
from hosts import make_host
from huggingface_hub import upload_folder
from pictures import shows_reports
from small_tokenizers import unigram
from strategies import make_model
from transformers import BertConfig, BertForSequenceClassification

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.cli import app, integers, row_names
from hf_alpha.loading import load_checkpoint
from hf_alpha.tasks.text.swapping import swapping_pairs

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "samples"
    arguments = ["--samples", 120, "--sizes", "1-6", "--symbols", 3, "--constants", 0.1, "--quiet"]
    done = hf_alpha("generate-data", folder, *arguments)
    assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="module")
def vanilla(tmp_path_factory, data) -> Path:
    """A `learned` model of three symbols, trained for two steps."""
    folder = tmp_path_factory.mktemp("vanilla") / "vanilla"
    done = hf_alpha(
        "train",
        "propositional/debug",
        f"data.path={data}",
        "data.generate={}",
        "num_symbols=3",
        "model.symbol_encoding=learned",
        "model.encoder_aggregated_attention=false",
        "model.decoder_aggregated_attention=false",
        "training.max_steps=2",
        "training.eval_strategy=no",
        f"training.output_dir={folder}",
    )
    assert done.code == 0, done.err
    assert f"the trained model is in {folder}" in done.out
    return folder


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", [3]),
        ("1-4", [1, 2, 3, 4]),
        (" 5-7,1, 2 ", [1, 2, 5, 6, 7]),
        ("2-3,3-4", [2, 3, 4]),
        ("0", [0]),
    ],
)
def test_integers(text, numbers):
    assert integers(text) == numbers


def test_shards_and_hard_formulas(tmp_path):
    shared = ["generate-data", tmp_path / "data", "--task", "ltl", "--samples", 60, "--symbols", 2,
              "--sizes", "8-10", "--hard", 0.5, "--quiet"]  # fmt: skip
    for shard in ("2/2", "1/2"):
        assert f"shard {shard} has ended" in hf_alpha(*shared, "--shard", shard).out
    assert hf_alpha(*shared).code == 0
    rows = [row for rows in load_dataset(str(tmp_path / "data")).values() for row in rows]
    assert len(rows) == 60 and sum(row["witness_length"] > 1 for row in rows) >= 30
    assert "write 3/16 for the third" in hf_alpha(*shared, "--shard", "half").error
    assert "counted from 1/4 to 4/4" in hf_alpha(
        "generate-data", tmp_path / "x", "--shard", "0/4"
    ).error  # fmt: skip


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-2-3", "1,,2", "1.5", "4-2", "1 2"])
def test_what_is_no_integers(text):
    with pytest.raises(ValueError, match=re.escape(text.strip() or "''")):
        integers(text)


def test_row_names_differ():
    assert row_names(["runs/small/", "me/large"]) == ["small", "large"]
    assert row_names(["runs/one/model", "runs/two/model"]) == ["runs/one/model", "runs/two/model"]
    with pytest.raises(ValueError, match="given twice"):
        row_names(["a", "a"])


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_everything_within_80_columns(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = hf_alpha(*([command] if command else []), "--help")
    assert done.code == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", done.out)
    assert max(map(len, text.splitlines())) <= 80
    if command is None:
        words = set(COMMANDS)
        assert words == {
            *("generate-data", "train", "convert", "evaluate", "solve", "release", "push"),
            *("perturb", "quickstart", "env", "info", "compare", "zero-shot", "convert-folnet"),
            *("transduce", "convert-geometric", "reproduce"),
        }
    else:
        words = {max(parameter.opts, key=len) for parameter in COMMANDS[command].params}
        assert all(getattr(parameter, "help", "") for parameter in COMMANDS[command].params)
    assert all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)


def test_short_option_for_help_and_the_version():
    assert hf_alpha("-h").out == hf_alpha("--help").out
    assert hf_alpha("solve", "-h").out == hf_alpha("solve", "--help").out
    assert hf_alpha("--version").out == f"hf_alpha {metadata.version('hf_alpha')}\n"


def test_python_m_runs_the_command_line():
    command = [sys.executable, "-m", "hf_alpha", "solve", "a & "]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == "a & \n" and "error: " in done.stderr


def test_bash_completes_commands_and_options():
    """The script that --show-completion prints, in a bash that it is read by."""
    script = """
        eval "$(hf-alpha --show-completion)"
        last() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hf_alpha_completion hf-alpha; }
        last hf-alpha qui; echo "${COMPREPLY[@]}"
        last hf-alpha evaluate --tr; echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.stdout == "quickstart\n--trained-symbols --trained-size\n", done.stderr


def test_versions_for_a_bug_report():
    done = hf_alpha("env")
    assert done.code == 0, done.err
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert lines["Python"].startswith(f"{platform.python_version()} ")
    assert lines["torch"].startswith(f"{torch.__version__} (") and "cpu" in lines["devices"]
    extras = {"spottl": "'hf_alpha[ltl]'", "trackio": "'hf_alpha[trackio]'", "peft": "peft"}
    for package in ("hf_alpha", "transformers", "datasets", "huggingface_hub", *extras):
        try:
            assert lines[package] == metadata.version(package)
        except metadata.PackageNotFoundError:
            assert lines[package] == f"not installed (pip install {extras[package]})"
    for private in (str(Path.home()), sys.prefix, platform.node()):
        assert private not in done.out


def test_generated_data_can_be_made_again_and_extended_nowhere(data):
    rows = load_dataset(str(data))
    assert sum(len(split) for split in rows.values()) <= 120
    assert {max(split["size"]) for split in rows.values()} == {6}
    arguments = ["--samples", 120, "--sizes", "1-6", "--symbols", 3, "--constants", 0.1, "--quiet"]
    again = hf_alpha("generate-data", data, *arguments)
    assert again.code == 0 and again.out.startswith(f"{data}: {len(rows['train'])} train, ")
    assert "seed is 0 there and 1 here" in (
        hf_alpha("generate-data", data, *arguments, "--seed", 1).error
    )


def test_a_grid_has_each_cell(tmp_path):
    folder, arguments = tmp_path / "grid", ["--grid", "--per-cell", 2, "--quiet"]
    done = hf_alpha("generate-data", folder, *arguments, "--symbols", "1,3", "--sizes", "4,6")
    assert done.code == 0, done.err
    rows = load_dataset(str(folder))["test"]
    assert done.out == f"{folder}: {len(rows)} test\n"
    cells = list(zip(rows["num_symbols"], rows["size"], strict=True))
    assert set(cells) <= {(1, 4), (1, 6), (3, 6)} and cells.count((3, 6)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "x"], "'x' is no range of numbers: write 3, 1-8 or 1,2,5-7"),
        (["--sizes", "1,5"], "--sizes 1,5: without --grid sizes are one range"),
        (["--sizes", "0-3"], "from 1 on"),
        (["--alpha", "2"], "alpha must be between 0 and 1"),
        (["--targets", "best"], "unknown targets 'best': choose one of equivariant, papers"),
        (["--task", "chess"], "unknown task 'chess'"),
        (["--samples", "0"], "Invalid value for '--samples'"),
        (["--sample", "3"], "No such option"),
        (
            ["--grid", "--symbols", "9", "--sizes", "1-3"],
            "no problem with an answer with these settings",
        ),
    ],
)
def test_data_that_cannot_be_made(tmp_path, arguments, message):
    done = hf_alpha("generate-data", tmp_path / "out", "--quiet", *arguments)
    assert message in done.error


def test_the_other_tasks_have_data_too(tmp_path):
    out, quiet = tmp_path / "ltl", ["--samples", 60, "--symbols", 2, "--quiet"]
    done = hf_alpha("generate-data", out, "--task", "ltl", *quiet, "--few-symbols", 5)
    assert done.code == 0, done.err
    rows = load_dataset(str(out))["train"]
    assert {"witness_length"} < set(rows.column_names) and max(rows["size"]) <= 35
    out, quiet = tmp_path / "copying", ["--per-cell", 2, "--quiet"]
    done = hf_alpha("generate-data", out, "--task", "copying", "--grid", "--symbols", "1-3",
                    "--sizes", "3-5", *quiet)  # fmt: skip
    assert done.code == 0, done.err
    rows = load_dataset(str(out))["test"]
    assert rows["problem"] == rows["answer"]


def test_perturbed_data(tmp_path, data):
    out = tmp_path / "renamed"
    done = hf_alpha("perturb", data, out, "--kind", "renamed")
    assert done.code == 0 and done.out.startswith(f"{out}: "), done.err
    assert set(load_dataset(str(out))) == set(load_dataset(str(data)))
    done = hf_alpha("perturb", data, out, "--kind", "reduced", "--samples", 5)
    assert f"{out} exists" in done.error
    assert "no dataset nowhere" in hf_alpha("perturb", "nowhere", out, "--kind", "renamed").error
    assert "'upside': choose one of" in hf_alpha("perturb", data, out, "--kind", "upside").error


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
    done = hf_alpha(*arguments, "training.max_steps=6", "--fresh")
    assert f"{tmp_path} holds a checkpoint already" in done.error
    assert hf_alpha("solve", "--model", tmp_path, "a & b").code in (0, 1)


def test_ctrl_c_in_training_leaves_a_checkpoint_to_go_on_from(tmp_path, data):
    command = ["-m", "hf_alpha.cli", "train", "propositional/debug",
               f"data.path={data}", "data.generate={}", "training.eval_strategy=no",
               "training.save_strategy=no", "training.max_steps=400", "training.disable_tqdm=true",
               "training.logging_steps=1", "training.lr_scheduler_type=constant"]  # fmt: skip
    whole, out = tmp_path / "whole", tmp_path / "stopped"

    def run(folder: Path, *more: str) -> own_process.Process:
        return own_process.Process(*command, f"training.output_dir={folder}", *more)

    process, deadline = run(out), time.monotonic() + 120
    while "  loss " not in process.stdout:
        assert process.poll() is None and time.monotonic() < deadline, process.stderr
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code, error = process.wait(), process.stderr
    assert code == 130 and "Traceback" not in error, error
    found = re.search(r"stopped at step (\d+), which (.*) holds: the same command goes on", error)
    assert found and 0 < int(found[1]) < 400 and Path(found[2]) == out / f"checkpoint-{found[1]}"
    assert not (out / "model.safetensors").exists()
    assert (out / "recipe.yaml").is_file()

    end = [f"training.max_steps={int(found[1]) + 5}"]
    process, other = run(out, *end, "--allow-changes"), run(whole, *end)
    assert process.wait() == other.wait() == 0, process.stderr + other.stderr
    assert f"{out}: resuming from {found[2]}, step {found[1]}\n" in process.stdout
    assert weights_of(out) == weights_of(whole)


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
        (["propositional/debug", f"training.output_dir={__file__}"], "test_cli.py is a file"),
        (["propositional/debug", f"data.path={__file__}"], "data: "),
    ],
)
def test_recipes_that_cannot_be_read(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in hf_alpha("train", *arguments).error
    assert not (tmp_path / "runs").exists()


def test_every_key_of_a_recipe_is_explained_and_in_the_schema():
    explained = hf_alpha("train", "--help-recipe")
    assert explained.code == 0 and explained.out.startswith("A recipe is a YAML file\n")
    schema = json.loads(hf_alpha("train", "--recipe-schema").out)
    for key in schema["properties"]["training"]["properties"]:
        assert f"\ntraining.{key}: " in explained.out


def test_convert_evaluate_solve(tmp_path, vanilla, data):
    converted, out = tmp_path / "converted", tmp_path / "report"
    done = hf_alpha("convert", vanilla, converted, "--add-aggregated-attention", "encoder, decoder")
    assert done.code == 0, done.err
    assert "identical to the vanilla model's" in done.out
    assert json.loads((converted / "config.json").read_text())["decoder_aggregated_attention"]

    arguments = ["evaluate", vanilla, converted, "--out", out, "--quiet", "--symbols", "2-4",
                 "--sizes", "3-8", "--samples", 2, "--beams", 2, "--top-n", 2, "--covariance", 1,
                 "--trained-symbols", 3, "--trained-size", 6]  # fmt: skip
    done = hf_alpha(*arguments)
    assert done.code == 0 and done.err == ""
    assert "vanilla" in done.out and "converted" in done.out and "random assignment" in done.out
    assert "\N{EN DASH}" in done.out
    assert shows_reports(out, ["vanilla", "converted"], tmp_path / "again.png")
    heatmap = json.loads((out / "vanilla" / "heatmap.json").read_text())
    assert "[[0, 3], [1, 6]]" in json.dumps(heatmap)

    # Stopped before the second report was there: the first is not made again.
    written = (out / "vanilla" / "records.jsonl").stat().st_mtime_ns
    shutil.rmtree(out / "converted")
    assert hf_alpha(*arguments).out == done.out
    assert (out / "vanilla" / "records.jsonl").stat().st_mtime_ns == written
    assert "choose another folder" in hf_alpha(*arguments, "--top-n", 1).error

    dual = tmp_path / "dual"
    done = hf_alpha("convert", vanilla, dual, "--to", "dual_part", "--random-dim", 9, "--seed", 3)
    assert done.code == 0, done.err
    assert "It has to be trained" in done.out
    config = json.loads((dual / "config.json").read_text())
    assert (config["symbol_encoding"], config["random_dim"]) == ("dual_part", 9)
    assert config["symbol_seed"] == 3 and (dual / "random_numbers.py").is_file()
    again = ["evaluate", dual, "--out", tmp_path / "dual report", *arguments[5:]]
    assert hf_alpha(*again).code == 0
    error = hf_alpha("convert", vanilla, dual, "--to", "x").error
    assert "choose streams, relational or dual_part" in error

    relational = tmp_path / "relational"
    done = hf_alpha("convert", vanilla, relational, "--to", "relational", "--actual", "b")
    assert done.code == 0, done.err
    assert "without symbols, and with b only, all states are identical" in done.out
    assert "It has to be trained" in done.out and (relational / "relations.py").is_file()
    done = hf_alpha("convert", vanilla, tmp_path / "mean", "--to", "relational")
    assert done.code == 0 and "without symbols all states are identical" in done.out
    again = ["evaluate", relational, "--out", tmp_path / "relational report", *arguments[5:]]
    assert hf_alpha(*again).code == 0
    again = hf_alpha("convert", relational, tmp_path / "again", "--to", "relational")
    assert "'relational' already" in again.error and not (tmp_path / "again").exists()

    done = hf_alpha("solve", "--model", converted, "--top", 2, "p & q & r & s & t")
    assert done.code in (0, 1) and len(done.out.splitlines()) == 3


def test_evaluate_on_given_data(tmp_path, vanilla, data):
    (tmp_path / "pairs.txt").write_text("&ab\na1b1\n|a!c\na1\n1\n\n&a&b&cd\na1b1c1d1\n")
    shared = ["evaluate", vanilla, "--quiet", "--beams", 1, "--covariance", 2]
    one = [*shared, "--out", tmp_path / "one", "--data", tmp_path / "pairs.txt"]
    done = hf_alpha(*one, "--renamings", "3", "--batch-size", 2, "--workers", 1, "--timeout", 5,
                    "--device", "cpu")  # fmt: skip
    assert done.code == 0, done.err
    assert re.search(r"symbols: +0 +2 +4 +all\n", done.out)
    line = "alpha-covariance: 2 problems a column, "
    assert f"{line}at most 3 renamings each (seed 0); vanilla skipped 1 of 3\n" in done.out
    settings = json.loads((tmp_path / "one" / "vanilla" / "report.json").read_text())["settings"]
    assert settings["timeout"] == 5
    # A finished report stays, alpha-covariance is measured as it is asked for now.
    done = hf_alpha(*one, "--timeout", 5, "--renamings", "all")
    assert f"{line}all renamings of each; vanilla skipped 1 of 3\n" in done.out
    load_dataset(str(data))["test"].to_parquet(str(tmp_path / "some.parquet"))
    for name in ("some.parquet", "missing.parquet"):
        done = hf_alpha(*shared, "--out", tmp_path / name[:4], "--data", tmp_path / name,
                        "--covariance", 0)  # fmt: skip
        assert done.code == (0 if name == "some.parquet" else 2), done.err
    done = hf_alpha(*shared, "--out", tmp_path / "two", "--data", data, "--covariance", 0)
    assert done.code == 0 and "alpha_covariance" not in done.out
    assert "no split 'dev'" in (
        hf_alpha(*shared, "--out", tmp_path / "x", "--data", data, "--split", "dev").error
    )
    assert "no file or folder" in (
        hf_alpha(*shared, "--out", tmp_path / "x", "--data", "nothing/at/all").error
    )


def test_evaluate_leaves_out_training_data(tmp_path, vanilla):
    (tmp_path / "test.txt").write_text("&ab\na1b1\n|a!c\na1\n^ab\na1b0\n")
    (tmp_path / "train.txt").write_text("|!xy\ny1\n")
    shared = ["evaluate", vanilla, "--quiet", "--beams", 1, "--covariance", 0,
              "--exclude", tmp_path / "train.txt"]  # fmt: skip
    done = hf_alpha(*shared, "--out", tmp_path / "one", "--data", tmp_path / "test.txt")
    assert done.code == 0 and re.search(r"samples +2 +2\n", done.out), done.err
    drawn = ["--symbols", 2, "--sizes", "3-4", "--samples", 50]
    done = hf_alpha(*shared, "--out", tmp_path / "two", *drawn)
    settings = json.loads((tmp_path / "two/problems/generation.json").read_text())["settings"]
    assert done.code == 0 and settings["exclude"]["problems"] == 1
    assert "--exclude is for test data" in (
        hf_alpha("generate-data", tmp_path / "three", *shared[-2:]).error
    )


def test_evaluate_without_symbols(tmp_path, vanilla):
    (tmp_path / "pairs.txt").write_text("1\n\n|10\n\n")
    done = hf_alpha("evaluate", vanilla, "--out", tmp_path / "out", "--quiet", "--beams", 1,
                    "--data", tmp_path / "pairs.txt", "--split", "pairs")  # fmt: skip
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--trained-symbols", "3"], "--trained-size outline a region together"),
        (["--data", "somewhere", "--hard", "0.5"], "--hard is for formulas that are drawn"),
        (["--symbols", "three"], "'three' is no range of numbers"),
        (["--task", "chess"], "unknown task 'chess'"),
        (["--beams", "0"], "Invalid value for '--beams'"),
        (["--renamings", "1"], "--renamings 1: write a number from 2 on, or all"),
        (["--device", "abacus"], "no device 'abacus' here: choose auto or cpu"),
        (["--device", "cuda:99"], "no device 'cuda:99' here: choose auto or cpu"),
        (["--generation", "{}"], "--generation is for models that are asked: add --few-shot or"),
        (["--few-shot", "--served", "some-model"], "--served is for a service: name it with"),
        (["--key-from", "KEY"], "--key-from is for a service: name it with --address"),
        (["--parallel", "4"], "--parallel is for a service: name it with --address"),
    ],
)
def test_evaluations_that_cannot_be_run(tmp_path, vanilla, arguments, message):
    done = hf_alpha("evaluate", vanilla, "--out", tmp_path / "out", "--quiet", *arguments)
    assert message in done.error


@pytest.mark.parametrize("option", [("--address", "http://127.0.0.1:1/v1"), ("--few-shot",)])
def test_models_that_do_not_answer_are_not_asked(tmp_path, option):
    BertForSequenceClassification(BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8,
    )).save_pretrained(tmp_path)  # fmt: skip
    done = hf_alpha("evaluate", tmp_path, "--out", tmp_path / "out", *option)
    assert f"does not write answers: leave out {option[0]}" in done.error


@pytest.fixture
def t5(tmp_path) -> Path:
    """A small T5 in a folder, with a tokenizer as T5's."""
    tokenizer = unigram(end=True)
    host = make_host("t5", vocab_size=len(tokenizer), eos_token_id=2)
    host.generation_config.encoder_no_repeat_ngram_size = 3
    host.save_pretrained(tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    return tmp_path / "t5"


def test_a_model_of_transformers_from_conversion_to_answers(tmp_path, t5, monkeypatch):
    for command in (["info"], ["evaluate"], ["solve", "x y", "--model"]):
        assert "hf-alpha convert" in hf_alpha(*command, t5).error
    out, run = tmp_path / "out", tmp_path / "run"
    blocks = ["--add-aggregated-attention", "decoder"]
    done = hf_alpha("convert", t5, out, "--symbols", "v=4,f=5", "--actual", "v=x y,f=z",
                    "--placeholder", "v=alice", *blocks)  # fmt: skip
    assert done.code == 0, done.err
    first, proved, following = done.out.splitlines()
    assert first.startswith(f"{out}: a 't5' model with 'streams' symbols (4 of class v, 5 of")
    assert "5 rows added" in first and "logits are identical" in proved  # and one for `<join>`
    assert f"hf-alpha train my-task.yaml checkpoint={out}; only <v_0>, <v_1>, ..., <f_" in following
    assert done.err == ""
    config = json.loads((out / "config.json").read_text())
    assert config["aggregated_attention"] == ["decoder"] and len(config["class_rows"]["v"]) == 2

    rows = "".join(json.dumps(row) + "\n" for row in swapping_pairs(40))
    (tmp_path / "train.jsonl").write_text(rows)
    recipe = {
        "extends": "text/small",
        "data": {"train": str(tmp_path / "train.jsonl")},
        "symbols": {"v": "[a-z]", "f": "[A-Z]"},
        "training": {"output_dir": str(run)},
    }
    (tmp_path / "my.yaml").write_text(json.dumps(recipe))
    # Without a recipe, its tokenizer says that it is for texts.
    assert "  answer " in hf_alpha("solve", "--model", out, "swap x y : F x y").out
    monkeypatch.chdir(tmp_path)
    done = hf_alpha("evaluate", "out", "--data", "train.jsonl", "--covariance", 0, "--samples", 3)
    assert done.code == 0 and re.search(r"samples +3 +3\n", done.out), done.err
    # Only a training run gets reports beside its model.
    assert done.out.endswith(f"are in {Path('runs/evaluation-train-3/out')}\n")
    assert (tmp_path / "runs/evaluation-train-3/out/table.txt").is_file()
    error = hf_alpha("evaluate", "out", "--data", "train.jsonl", "--symbols", "7-9").error
    assert "no row of the data has as many symbols" in error
    short = ["training.max_steps=1", "training.eval_strategy=no", "training.save_strategy=no",
             "training.load_best_model_at_end=false"]  # fmt: skip
    done = hf_alpha("train", tmp_path / "my.yaml", f"checkpoint={out}", *short)
    assert done.code == 0, done.err
    evaluated = ["evaluate", run, "--data", tmp_path / "train.jsonl", "--quiet", "--card"]
    done = hf_alpha(*evaluated, "--covariance", 1)
    assert done.code == 0 and re.search(r"alpha_covariance  run( +100\.0)+\n", done.out), done.err
    card = (run / "README.md").read_text()
    assert "a `t5` of Transformers with a layer for names" in card and "license:" not in card
    assert "Problems that are drawn" not in card and "checks" not in card
    said = hf_alpha("info", run).out
    assert "alpha-retrofit, an encoder-decoder around a 't5' of Transformers" in said
    assert "4 v" in said and "t5, width 16" in said and "extend_symbols({" in said
    done = hf_alpha("solve", "--model", run, "swap x y : F x y")
    assert done.code == 0 and "answer" in done.out
    assert hf_alpha("release", run, tmp_path / "shared").code == 0
    generation = json.loads((tmp_path / "shared" / "generation_config.json").read_text())
    assert generation["encoder_no_repeat_ngram_size"] == 3  # the host's own
    assert "evaluate" in hf_alpha("compare", tmp_path / "my.yaml", f"checkpoint={out}",
                                  "--data", tmp_path / "train.jsonl").error  # fmt: skip


def test_a_model_of_the_hub_is_converted_and_shared(hub, t5, tmp_path):
    hub.append("model", "me/t5", {})
    upload_folder(repo_id="me/t5", folder_path=t5)
    done = hf_alpha("convert", "me/t5", tmp_path / "out", "--symbols", 4)
    assert done.code == 0, done.err
    assert hf_alpha("push", tmp_path / "out", "me/converted").code == 0
    files = {"config.json", "tokenizer.json", "modeling_retrofit.py", "tokenization_text.py"}
    assert files <= set(hub.files("me/converted"))
    assert load_checkpoint("me/converted")[0].config.symbol_classes == {"name": 4}


def test_ways_to_convert_a_model_of_transformers(tmp_path, t5):
    def config_of(name: str, *options: object) -> dict[str, Any]:
        done = hf_alpha("convert", t5, tmp_path / name, *options)
        assert done.code == 0, done.err
        return json.loads((tmp_path / name / "config.json").read_text())

    dual = config_of("dual", "--to", "dual_part", "--random-dim", 8, "--seed", 3, "--symbols", 64)
    assert (dual["symbol_encoding"], dual["random_dim"], dual["symbol_seed"]) == ("dual_part", 8, 3)
    assert dual["symbol_classes"] == {"name": 64}
    assert config_of("relational", "--to", "relational")["symbol_encoding"] == "relational"
    learned = config_of("learned", "--to", "learned", "--renaming", "first_occurrence")
    assert learned["symbol_renaming"] == "first_occurrence"
    tokens = config_of("tokens", "--symbol-tokens", "x y z", "--actual", "x", "--placeholder", "y")
    assert tokens["class_rows"] == {"name": [10, 11]} and tokens["symbol_classes"] == {"name": 3}
    two = ["--names", "v=[a-z]", "--names", "f=[A-Z]=?"]
    assert config_of("two", *two)["symbol_classes"] == {"v": 32, "f": 32}
    rules = json.loads((tmp_path / "two" / "tokenizer_config.json").read_text())["symbols"]
    assert rules["f"] == {"pattern": "[A-Z]=?", "count": 32}
    assert "variable='[a-z]+'" in hf_alpha("convert", "--help").out  # brackets are no markup
    assert config_of("one", "--names", "[a-z]{1,3}")["symbol_classes"] == {"name": 32}
    # What a name has learned goes on, where each has a vector.
    done = hf_alpha("convert", tmp_path / "learned", tmp_path / "streams", "--actual", "<name_0>")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "wild"], "'wild'"),
        (["--symbols", "many"], "--symbols many: write 32, or name=32,number=16"),
        (["--symbols", "a=3", "--names", "b=[x]"], "--names is for b, --symbols for a: name the"),
        (["--symbols", "a=3,b=4", "--names", "[x]"], "--names is for no class, --symbols for a, b"),
        (["--symbols", "3", "--symbol-tokens", "x"], "leave out --symbols and --names"),
        (["--symbol-tokens", "bartholomew"], "the tokenizer makes"),
        (["--actual", "x", "--placeholder", "x"], "actual and placeholder of class 'name' are the"),
        (["--symbols", "a=1,b=1", "--actual", "x"], "say which class tokens are for"),
        (["--renaming", "wild"], "symbol_renaming must be one of none, random"),
        (["--names", "[a"], "the pattern '[a'"),
        (["--add-aggregated-attention", "middle"], "encoder or decoder, not 'middle'"),
    ],
)
def test_models_of_transformers_that_cannot_be_converted(tmp_path, t5, options, message):
    error = hf_alpha("convert", t5, tmp_path / "out", *options).error
    assert message in error and not (tmp_path / "out").exists()


def weights_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_conversions_that_cannot_be_made(tmp_path, vanilla):
    def error(*arguments: object) -> str:
        return hf_alpha("convert", *arguments).error

    out = tmp_path / "out"
    assert "'q' is no symbol; this model has a b c" in error(vanilla, out, "--actual", "q")
    assert "'q' is no symbol" in error(vanilla, out, "--to", "relational", "--actual", "q")
    assert "the same symbol" in error(vanilla, out, "--actual", "b")
    make_model(encoder_position="rope").save_pretrained(tmp_path / "invariant")
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "invariant")
    for options in ([], ["--actual", "q"], ["--to", "relational", "--actual", "q"]):
        assert "'streams' already" in error(tmp_path / "invariant", out, *options)
    assert "not 'middle'" in error(vanilla, out, "--add-aggregated-attention", "middle")
    assert "holds the model itself" in error(vanilla, vanilla / ".." / vanilla.name)
    assert "no checkpoint folder" in error(tmp_path / "absent", out)
    assert "--symbols is for models without" in error(vanilla, out, "--symbols", "3")
    assert "--renaming is for models of Transformers" in error(vanilla, out, "--renaming", "random")
    (tmp_path / "file").write_text("")
    assert f"file {tmp_path / 'file'} exists: remove it" in error(vanilla, tmp_path / "file")
    shutil.copytree(vanilla, tmp_path / "trained")
    trained = weights_of(tmp_path / "trained")
    for kind in ("streams", "relational", "dual_part"):
        assert "exists: remove it" in error(vanilla, tmp_path / "trained", "--to", kind)
    assert weights_of(tmp_path / "trained") == trained
    assert not out.exists()

    make_model(symbol_encoding="learned").save_pretrained(tmp_path / "odd")
    build_tokenizer("propositional", 3).save_pretrained(tmp_path / "odd")
    assert "model and tokenizer disagree: symbol_classes" in error(tmp_path / "odd", out)
    config = json.loads((tmp_path / "odd" / "config.json").read_text())
    (tmp_path / "odd" / "config.json").write_text(json.dumps(config | {"d_model": "wide"}))
    assert "d_model" in error(tmp_path / "odd", out)


MISTYPED = """
import sys, hf_alpha.cli
for line in sys.stdin.read().splitlines():
    sys.argv[1:] = line.split()
    try:
        hf_alpha.cli.main()
    except SystemExit as stop:
        print(stop.code, "torch" in sys.modules)
"""


def test_a_mistyped_folder_is_told_before_torch_is_loaded(tmp_path):
    commands = ["train no", "push no a/b", "info no", "evaluate no", "convert no x",
                "solve --model no a", "solve --model runs/no a"]  # fmt: skip
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "config.json").touch()  # so runs/no is no name on the Hub
    done = subprocess.run(
        [sys.executable, "-c", MISTYPED], input="\n".join(commands), capture_output=True,
        text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["2 False"] * len(commands), done.stderr


def test_the_installed_command_ends_with_these_codes(tmp_path):
    done = own_process.run("-m", "hf_alpha.cli", "solve", "--model", tmp_path / "absent", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: no checkpoint folder '{tmp_path / 'absent'}'\n"


def test_transduce(tmp_path):
    """Gamma-spaces of texts, by files or a saved transducer; a drawing; bad calls."""
    lexicon, months, rules = tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "rules.yaml"
    lexicon.write_text("fire hose\tCOMPOUND\nfire\tNOUN\n")
    months.write_text("May\tMONTH\n")
    rules.write_text("- {pattern: '<MONTH> /[0-9]+/', label: DATE}\n")
    files = ["--lexicon", lexicon, "--lexicon", months, "--rules", rules]
    svg, folder = tmp_path / "a.svg", tmp_path / "fst"
    text = "A fire  hose, May 7"
    done = hf_alpha("transduce", text, *files, "--svg", svg, "--save", folder)
    assert done.out.splitlines() == [
        f"the transducer is in {folder}",
        "{(1, A, 1), (2, fire, 2), (3, hose, 3), (4, ,, 4), (5, May, 5), (6, 7, 6), "
        "(2, NOUN, 2), (2, COMPOUND, 3), (5, MONTH, 5), (5, DATE, 6)}",
        "  2-2     NOUN      fire",
        "  2-3     COMPOUND  fire  hose",
        "  5-5     MONTH     May",
        "  5-6     DATE      May 7",
    ]
    assert svg.read_text().startswith("<svg ")
    again = hf_alpha("transduce", "--transducer", folder, stdin=f"{text}\n\n{text}\n")
    assert again.out.splitlines() == 2 * done.out.splitlines()[1:]
    longest = hf_alpha("transduce", text, *files, "--match", "longest")
    assert "NOUN" not in longest.out and "DATE" in longest.out
    assert "hoses" not in hf_alpha("transduce", "fire hoses", *files).out.splitlines()[-1]
    assert "fire hoses" in hf_alpha("transduce", "fire hoses", *files, "--plurals").out
    assert hf_alpha("transduce", *files, "--save", tmp_path / "other").code == 0
    for arguments, message in [
        (["a"], "name a --lexicon, --rules or a --transducer"),
        (["a", "--transducer", folder, "--match", "all"], "has its own match: leave it out"),
        (["a", "b", *files, "--svg", svg], "--svg draws one text, and there are 2"),
        (["a", "--lexicon", tmp_path / "c.tsv"], "c.tsv: name a lexicon"),
        (["a", "--transducer", tmp_path], f"there is no transducer in {tmp_path}: hf-alpha trans"),
        (
            ["a", *files, "--svg", tmp_path / "no" / "a.svg"],
            f"no folder {tmp_path / 'no'} to write",
        ),
        (["--transducer", folder], "no text: the input is empty"),
    ]:
        assert message in hf_alpha("transduce", *arguments).error
