import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import hf_alpha, weights_of
from hosts import make_host
from huggingface_hub import upload_folder
from small_tokenizers import unigram
from strategies import make_model

from hf_alpha.loading import load_checkpoint
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.tasks.text.swapping import swapping_pairs


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
    assert "hf-alpha convert" in hf_alpha("info", t5).out
    assert "hf-alpha convert" in hf_alpha("solve", "x y", "--model", t5).error
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
    evaluated = ["evaluate", run, "--data", tmp_path / "train.jsonl", "--card"]
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
    assert generation["max_length"] == 129, "Transformers would end answers after 20 tokens"
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

    dual = config_of("dual", "--to", "dual_part", "--symbols", 64)
    assert dual["symbol_encoding"] == "dual_part"
    assert dual["symbol_classes"] == {"name": 64}
    relational = config_of("relational", "--to", "relational", "--new-symbols")
    assert relational["symbol_encoding"] == "relational" and relational["new_symbols"]
    learned = config_of("learned", "--to", "learned", "--renaming", "first_occurrence")
    assert learned["symbol_renaming"] == "first_occurrence"
    tokens = config_of("tokens", "--symbol-tokens", "x y z", "--actual", "x", "--placeholder", "y")
    assert tokens["class_rows"] == {"name": [10, 11]} and tokens["symbol_classes"] == {"name": 3}
    two = ["--names", "v={rule: sql, language: mysql}", "--names", "f=[A-Z]=?"]
    assert config_of("two", *two)["symbol_classes"] == {"v": 32, "f": 32}
    rules = json.loads((tmp_path / "two" / "tokenizer_config.json").read_text())["symbols"]
    assert rules["f"] == {"pattern": "[A-Z]=?", "count": 32}
    assert rules["v"] == {"rule": "sql", "language": "mysql", "count": 32}
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
        (["--names", "{rule: tols}"], "no ready-made rule 'tols': there are "),
        (["--add-aggregated-attention", "middle"], "encoder or decoder, not 'middle'"),
        (["--to", "relational", "--placeholder", "x"], "--placeholder has no effect with --to rel"),
        (["--to", "learned", "--actual", "x"], "--actual has no effect with --to learned"),
    ],
)
def test_models_of_transformers_that_cannot_be_converted(tmp_path, t5, options, message):
    error = hf_alpha("convert", t5, tmp_path / "out", *options).error
    assert message in error and not (tmp_path / "out").exists()


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
    for kind, option, value in (
        ("relational", "--placeholder", "b"),
        ("relational", "--add-aggregated-attention", "encoder"),
        ("dual_part", "--actual", "a"),
    ):
        assert f"{option} has no effect" in error(vanilla, out, "--to", kind, option, value)
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
