import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import own_process
import pytest
import torch
import trajectories
from commands import hf_alpha
from hosts import make_host
from safetensors.torch import load_file
from small_tokenizers import unigram, word_level
from strategies import make_model
from toy_backbone import ToyForConditionalGeneration
from transformers import AutoTokenizer, Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_alpha import SymbolConfig, get_symbol_model
from hf_alpha.answer.models import Model
from hf_alpha.answer.solving import solve
from hf_alpha.checkpoints.code_links import code_files
from hf_alpha.data.collate import AlphaCollator
from hf_alpha.data.rows import load
from hf_alpha.evaluation.compare import compare
from hf_alpha.evaluation.covariance import alpha_covariance
from hf_alpha.evaluation.evaluate import evaluate
from hf_alpha.hub.release import release
from hf_alpha.loading import CheckpointError, load_checkpoint
from hf_alpha.recipe import RECIPE_FILE, RecipeError, read_recipe
from hf_alpha.recipe.yaml import write_recipe
from hf_alpha.resources import resource_path
from hf_alpha.tasks import get_task
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.tasks.text.swapping import swapping_pairs
from hf_alpha.train import (
    AlphaTrainer,
    Interrupted,
    config_for,
    last_checkpoint,
    prepare_arguments,
    prepare_data,
    prepare_model,
    train,
)
from hf_alpha.train.checkpoints import notes_of_changes

BASES = ("text/small", "folnet/finetune")  # recipes that are whole only in those that extend them
RECIPES = [
    path
    for path in sorted(resource_path("training").rglob("*.yaml"))
    if f"{path.parent.name}/{path.stem}" not in BASES
]
PARAMETERS = {
    "propositional": 2_906_496,  # 2601.23169, Table 6
    "ltl": 2_654_144,
    "copying": 2_389_120,  # by the formula that gives the table: no paper has this model
}
QUIET = ["training.disable_tqdm=true", "training.logging_steps=1"]
SHORT = ["training.max_steps=2", "training.eval_strategy=no"]
LONGER = ["training.max_steps=3", "training.eval_strategy=no"]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("data") / "propositional-debug"


@pytest.fixture(scope="module")
def short_run(tmp_path_factory) -> Path:
    """A finished run of two steps, for copies: it ends with a checkpoint."""
    out = tmp_path_factory.mktemp("short") / "out"
    train(copying(out, *SHORT))
    return out


def debug(data_dir, out, *overrides: str):
    places = [f"data.path={data_dir}", f"training.output_dir={out}"]
    return read_recipe("propositional/debug", [*places, *QUIET, *overrides])


def copying(out, *overrides: str):
    return read_recipe("copying/debug", [f"training.output_dir={out}", *QUIET, *overrides])


def weights(folder) -> dict[str, torch.Tensor]:
    return load_file(Path(folder) / "model.safetensors")


def assert_same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recipe_builds_its_model_and_arguments(path, tmp_path):
    name = f"{path.parent.name}/{path.stem}"
    recipe = read_recipe(name, [f"training.output_dir={tmp_path}"])
    assert recipe == read_recipe(path, [f"training.output_dir={tmp_path}"])
    assert path.parent.name == recipe.task or recipe.kind == "rows"
    prepare_arguments(recipe)
    if recipe.checkpoint is not None or recipe.has_user_data:  # needs a model, or data
        return
    with torch.device("meta"):
        model, tokenizer = prepare_model(recipe)
    assert model.config.vocab_size == tokenizer.vocab_size
    if path.stem == "streams":
        assert model.num_parameters() == PARAMETERS[recipe.task]


OWN_TASK = """
task: text
data: {train: train.jsonl, validation: 0.2, max_answer_samples: 5}
symbols: {variable: "[a-z]", function: "[A-Z]"}
check: swap_check:check
model: {d_model: 16, encoder_layers: 1, decoder_layers: 1, encoder_attention_heads: 2,
        decoder_attention_heads: 2, encoder_ffn_dim: 16, decoder_ffn_dim: 16,
        symbol_encoding: relational}
training: {max_steps: 4, eval_strategy: steps, eval_steps: 2, save_steps: 2, report_to: none,
           load_best_model_at_end: true, metric_for_best_model: edit_distance,
           per_device_train_batch_size: 4, greater_is_better: false, output_dir: out}
"""


FOLNET_DECODER = [
    "model={model_type: folnet, is_decoder: true, symbol_encoding: learned, hidden_size: 32, "
    "num_hidden_layers: 2}"
]


@pytest.mark.parametrize(
    ("name", "changes", "side"),
    [
        ("t5-small", [], "right"),
        ("gpt2-small", [], "left"),
        ("learned-small", [], "right"),
        ("debug", FOLNET_DECODER, "left"),
    ],
)
def test_the_tokenizer_of_a_new_model_gives_what_it_can_generate_from(
    name, changes, side, tmp_path
):
    """Tree paths to a model with tree positions alone, padding on the left to a decoder alone."""
    model, tokenizer = prepare_model(read_recipe(f"propositional/{name}", changes))
    tokenizer.save_pretrained(tmp_path)
    for one in (tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        batch = one(["&ab", "!a"], padding=True, return_tensors="pt")
        assert batch["attention_mask"][1, 0] == (side == "right")
        assert ("tree_paths" in batch) == (name == "learned-small")
        assert model.generate(**batch, max_new_tokens=2).shape[0] == 2


TINY_DECODERS = {
    "gpt2": {
        "model_type": "gpt2", "n_embd": 32, "n_head": 2, "n_layer": 2, "n_inner": 64,
        "n_positions": 32, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    },
    "llama": {
        "model_type": "llama", "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 64,
    },
}  # fmt: skip
FEW = [
    "data.path=data",
    "data.generate={num_samples: 300, sizes: [1, 5], num_symbols: 3}",
    "training.output_dir=out",
    "training.max_steps=300",
    "training.learning_rate=5.0e-3",
    "training.warmup_steps=5",
    "training.per_device_train_batch_size=32",
    "training.eval_steps=150",
]


def tiny_decoder(kind: str) -> dict[str, Any]:
    """The model of a recipe."""
    if kind == "folnet":
        sizes = {"hidden_size": 32, "binary_hidden_size": 8, "num_hidden_layers": 2,
                 "num_attention_heads": 2, "head_size": 8, "intermediate_size": 64,
                 "binary_intermediate_size": 16, "is_decoder": True}  # fmt: skip
        return {"model_type": kind, "symbol_encoding": "learned", **sizes}
    backbone = {"backbone_config": TINY_DECODERS[kind]}
    return {"model_type": "alpha-retrofit", "symbol_encoding": "learned", **backbone}


CANONICAL = {"symbol_renaming": "first_occurrence"}


@pytest.mark.parametrize(
    ("kind", "names", "least"),
    [
        ("gpt2", {"symbol_encoding": "relational"}, 0.8),
        ("gpt2", {}, 0.9),
        ("llama", {}, 0.9),
        ("gpt2", CANONICAL, 0.9),
        ("folnet", {}, 0.2),  # it takes longer to learn
    ],
)
@pytest.mark.quick_cases(1)
def test_a_decoder_learns_what_it_is_trained_on(kind, names, least, tmp_path, monkeypatch):
    """Few problems by heart, from the recipe to checked answers."""
    monkeypatch.chdir(tmp_path)
    model = {**tiny_decoder(kind), **names}
    changes = [*QUIET, *FEW, "model=null", f"model={json.dumps(model)}"]
    trainer = train(read_recipe("propositional/gpt2-small", changes), say=lambda _: None)
    logged = [row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row]
    assert len(logged) == 2
    model, tokenizer = load_checkpoint("out")
    assert_same(model.state_dict(), trainer.model.state_dict())
    rows = list(load("data", "train"))
    found = evaluate(model.eval(), tokenizer, "propositional", rows, progress=False).overall
    assert found.correct > least
    problems = [row["problem"] for row in rows[:20]]
    covariance = alpha_covariance(model, tokenizer, problems, progress=False)
    assert (covariance.mean == 1) == bool(names)
    task = get_task("propositional")
    alone = [row["problem"] for row in rows if task.symbols_of(row["problem"]) == ["a"]]
    renamed = [problem.replace("a", " request ") for problem in alone]
    one, other = (
        [
            solution.answers[0][0]
            for solution in solve(formulas, task=task, model=(model, tokenizer), method="model")
        ]
        for formulas in (alone, renamed)
    )
    known = [pair for pair in zip(one, other, strict=True) if "a" in pair[0]]
    assert known  # a name comes back as it was written
    for ours, theirs in known:
        assert theirs.split() == ["request" if token == "a" else token for token in ours]


def test_a_decoder_with_prefixes_is_trained_with_the_problem_as_its_prefix(tmp_path):
    model = {**tiny_decoder("folnet"), "prefix_lm": True}
    changes = ["model=null", f"model={json.dumps(model)}", f"training.output_dir={tmp_path}"]
    recipe = read_recipe("propositional/debug", [*changes, "training.max_steps=2"])
    trainer = train(recipe)
    batch = next(iter(trainer.get_train_dataloader()))
    prefix = (batch["labels"] != -100).cumsum(1) == 0
    trained = trainer.model.eval()
    assert prefix.any(1).all()
    seen = [trained(**batch, prefix_mask=mask).loss for mask in (None, prefix)]
    assert seen[0] == seen[1] != trained(**batch, prefix_mask=torch.zeros_like(prefix)).loss


@pytest.mark.slow
@pytest.mark.parametrize("model", [
    {"is_encoder_decoder": False, "decoder_layers": 2},
    {"encoder_layers": 1, "encoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_layers": 1},
], ids=["decoder", "encoder-decoder"])  # fmt: skip
def test_models_learn_to_make_up_names(tmp_path, monkeypatch, model):
    """`b1 a1` becomes `t1 = a1 b1 ; t1`, with any names, whatever the data calls the new one."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    pool = [f"{letter}{number}" for letter in "abcd" for number in range(5)]
    rows = []
    for _ in range(400):
        one, two, new = rng.sample(pool, 3)
        rows.append({"source": f"{one} {two}", "target": f"{new} = {two} {one} ; {new}"})
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model |= {
        "symbol_encoding": "relational", "new_symbols": True, "d_model": 32,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "dropout": 0.0,
    }  # fmt: skip
    recipe = {
        "task": "text", "data": {"train": "pairs.jsonl"}, "tokenizer": "words", "model": model,
        "symbols": {"name": {"pattern": "[a-z][0-9]+"}},
        "training": {
            "output_dir": "out", "max_steps": 600, "per_device_train_batch_size": 32,
            "learning_rate": 0.003, "save_strategy": "no", "eval_strategy": "no",
            "report_to": "none", "disable_tqdm": True,
        },
    }  # fmt: skip
    Path("recipe.yaml").write_text(json.dumps(recipe))
    said = []
    train(read_recipe("recipe.yaml"), say=said.append)
    assert "do not come back" not in "\n".join(said)
    model, tokenizer = load_checkpoint("out")
    task = read_recipe("recipe.yaml").configured_task
    covariance = alpha_covariance(model, tokenizer, ["a1 b2"], max_renamings=12, progress=False)
    assert covariance.mean == 1 and covariance.samples[0].raw > 1
    answers = solve(["x7 y8", "t1 q9"], task=task, model=(model, tokenizer))
    assert [answer.answers[0][0] for answer in answers] == ["t1 = y8 x7 ; t1", "t2 = q9 t1 ; t2"]
    with pytest.raises(ValueError, match="the target has a name that the source lacks"):
        train(read_recipe("recipe.yaml", ["model.new_symbols=false", "training.output_dir=no"]))


@pytest.fixture
def own_task(tmp_path, monkeypatch) -> Path:
    """A folder with pairs, a check and a recipe."""
    rows = "".join(json.dumps(row) + "\n" for row in swapping_pairs(60, functions="FGH"))
    (tmp_path / "train.jsonl").write_text(rows.replace("swap", "SWAP"))
    check = "def check(source, answer, target):\n    return len(answer) == len(target)\n"
    (tmp_path / "swap_check.py").write_text(check)
    (tmp_path / "own.yaml").write_text(OWN_TASK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_own_pairs_are_trained_and_answered_on_the_way(own_task):
    lines: list[str] = []
    trainer = train(read_recipe("own.yaml", QUIET), say=lines.append)
    assert lines[0].splitlines()[0].split() == ["pairs", "60"]
    assert "variable  2 /" in lines[0] and "function  1 /" in lines[0]
    logged = [row for row in trainer.state.log_history if "eval_loss" in row]
    assert [row["step"] for row in logged] == [2, 4]
    assert all(row["eval_edit_distance"] > 0 and 0 <= row["eval_correct"] <= 1 for row in logged)
    best = min(row["eval_edit_distance"] for row in logged)
    assert trainer.state.best_metric == pytest.approx(best)
    model, tokenizer = load_checkpoint("out")
    (before,) = [trainer.model.state_dict()]
    assert_same({k: v for k, v in model.state_dict().items()}, before)
    assert tokenizer.symbol_classes == {"variable": 10, "function": 10}
    assert tokenizer.decode(tokenizer("SWAP b a").input_ids) == "SWAP <variable_0> <variable_1>"
    # It is resumed with the same vocabulary, and a finished run stays as it is.
    again: list[str] = []
    train(read_recipe("own.yaml", QUIET), say=again.append)
    assert "holds a finished run of 4 steps" in again[-1]


def test_a_run_goes_on_with_its_own_vocabulary_only(own_task):
    loss = "training.metric_for_best_model=loss"
    short = ["check=null", "data.max_answer_samples=0", loss, "training.max_steps=2"]
    train(read_recipe("own.yaml", [*QUIET, *short]), say=lambda _: None)
    (own_task / "out" / "model.safetensors").unlink()
    lines = (own_task / "train.jsonl").read_text()
    (own_task / "train.jsonl").write_text(lines + lines.replace("SWAP", "EXCHANGE", 1))
    longer = read_recipe("own.yaml", [*QUIET, *short[:3], "training.max_steps=4"])
    with pytest.raises(RecipeError, match=r"another (vocabulary|model)"):
        train(longer, allow_changes=True, say=lambda _: None)
    (own_task / "train.jsonl").write_text(lines)
    assert train(longer, allow_changes=True, say=lambda _: None).state.global_step == 4


def test_answers_may_be_as_long_as_those_of_the_data(own_task):
    """In `generate`, whoever calls it; so it is in a released model."""
    row = {"source": "SWAP a b : " + "a b " * 50, "target": "b a " * 50}
    with (own_task / "train.jsonl").open("a") as file:
        file.write(f"{json.dumps(row)}\n" * 2)
    more = ["check=null", "data.validation=null", "training.eval_strategy=no",
            "training.load_best_model_at_end=false", "training.max_steps=1"]  # fmt: skip
    train(read_recipe("own.yaml", [*QUIET, *more]), say=lambda _: None)
    release(Path("out"), Path("shared"))
    for folder in ("out", "shared"):
        model, tokenizer = load_checkpoint(folder)
        longest = len(tokenizer.encode_pair(row["source"], row["target"])["labels"])
        assert longest > 100 and model.generation_config.max_length == 1 + longest * 3 // 2 + 8
    batch = tokenizer([row["source"]], return_tensors="pt")
    forever = {**batch, "suppress_tokens": [0, 1, tokenizer.eos_token_id]}
    assert model.generate(**forever).shape[1] == model.generation_config.max_length
    assert model.generate(**forever, max_new_tokens=7).shape[1] == 8


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", ["words", "bpe:300"])
def test_a_decoder_answers_own_pairs(own_task, tokenizer):
    model = json.dumps(tiny_decoder("llama"))
    changes = ["model=null", f"model={model}", f"tokenizer={tokenizer}", "check=null"]
    recipe = read_recipe("own.yaml", [*QUIET, *changes])
    trainer = train(recipe, say=lambda _: None)
    logged = [row for row in trainer.state.log_history if "eval_correct" in row]
    assert [row["step"] for row in logged] == [2, 4]
    model, tokenizer = load_checkpoint("out")
    (solution,) = solve(["SWAP a b : F a b"], task=recipe.configured_task, model=(model, tokenizer))
    assert solution.error is None and solution.answers
    assert {*tokenizer.symbol_names.values()} >= {*"FGH"}  # each has learned a vector
    texts = ["SWAP a b : F a b", "SWAP a b : F G a b a b"]
    both = tokenizer(texts, padding=True, return_tensors="pt")
    answers = model.generate(**both, max_new_tokens=4)[:, both["input_ids"].shape[1] :]
    alone = [tokenizer(text, return_tensors="pt") for text in texts]
    for answer, row in zip(answers, alone, strict=True):
        length = row["input_ids"].shape[1]
        assert answer.tolist() == model.generate(**row, max_new_tokens=4)[0, length:].tolist()


TWO_CLASSES = {"variable": 2, "function": 2}
TUNED = ["check=null", "training.max_steps=2"]


def convert_small(folder: Path, **settings: Any) -> Path:
    """A small T5 with its tokenizer, converted, in a folder."""
    tokenizer = settings.pop("tokenizer", unigram)(end=True)
    host = make_host("t5", vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)
    config = SymbolConfig(**{"symbols": TWO_CLASSES, **settings})
    for part in get_symbol_model(host, tokenizer, config):
        part.save_pretrained(folder)
    return folder


def test_a_converted_model_finds_names_by_the_recipe(own_task):
    """Its symbols, made by a count alone, are as many as rows need, and it is resumed."""
    more = [*QUIET, *TUNED, f"checkpoint={convert_small(own_task / 'converted')}"]
    lines: list[str] = []
    trainer = train(read_recipe("own.yaml", more), say=lines.append)
    said = "variable has 2, and 1 more are needed, function has 2, and 1 more are needed"
    assert f"symbols of the checkpoint: {said}; they are added" in lines
    model, tokenizer = load_checkpoint("out")
    assert tokenizer.symbol_classes == model.config.symbol_classes == dict.fromkeys(TWO_CLASSES, 3)
    assert tokenizer.finder.rules["variable"].pattern == "[a-z]"
    assert_same(model.state_dict(), trainer.model.state_dict())
    text = "SWAP a b : F x G a b"
    (solution,) = solve(
        [text], task=read_recipe("own.yaml", more).configured_task, model=(model, tokenizer)
    )
    assert solution.error is None
    longer = [*more, "training.max_steps=4"]
    assert train(read_recipe("own.yaml", longer), True, lambda _: 0).state.global_step == 4


def test_one_class_of_a_recipe_is_that_of_the_checkpoint(own_task):
    """However the two are called, at the start and for a run that goes on."""
    checkpoint = convert_small(own_task / "converted", symbols=4)
    more = [*QUIET, *TUNED, f"checkpoint={checkpoint}", "symbols.function=null",
            "symbols.variable='[A-Za-z]'"]  # fmt: skip
    lines: list[str] = []
    train(read_recipe("own.yaml", more), say=lines.append)
    assert f"symbols: 'variable' is the class 'name' of {checkpoint}" in lines
    assert read_recipe("out/recipe.yaml").symbols == {"name": "[A-Za-z]"}
    tokenizer = load_checkpoint("out")[1]
    assert set(tokenizer("SWAP a b : F x").names.values()) == {"a", "b", "F", "x"}
    train(read_recipe("own.yaml", more), say=lines.append)
    assert "holds a finished run" in lines[-1]


def test_a_recipe_without_rules_takes_those_of_its_checkpoint(own_task):
    rules = {"variable": {"pattern": "[a-z]", "count": 2}, "function": "[A-Z]"}
    checkpoint = convert_small(own_task / "converted", symbols=rules, encoding="dual_part")
    more = [*QUIET, *TUNED, f"checkpoint={checkpoint}", "symbols=null"]
    trainer = train(read_recipe("own.yaml", more), say=lambda _: None)
    assert trainer.model.config.symbol_classes == {"variable": 3, "function": 10}
    written = read_recipe("out/recipe.yaml")
    assert written.symbols == {"variable": {"pattern": "[a-z]"}, "function": {"pattern": "[A-Z]"}}


def test_words_that_are_symbols_are_trained_as_they_are(own_task):
    rows = [{"source": f"{a} and {b}", "target": f"{b} and {a}"} for a, b in ("xy", "yz", "zx")]
    (own_task / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
    tokens = {"tokenizer": word_level, "symbol_tokens": "x y z", "symbols": {}}
    checkpoint = convert_small(own_task / "words", **tokens)
    best = ["training.load_best_model_at_end=false", "training.eval_strategy=no"]
    more = [*QUIET, *TUNED, *best, "data.train=words.jsonl", "data.validation=null",
            f"checkpoint={checkpoint}"]  # fmt: skip
    train(read_recipe("own.yaml", [*more, "symbols=null"]), say=lambda _: None)
    assert read_recipe("out/recipe.yaml").symbols == {"name": {"tokens": ["x", "y", "z"]}}
    assert load_checkpoint("out")[1].symbol_ids == [4, 5, 6]
    wider = read_recipe(
        "own.yaml", [*more, "symbols={name: '[a-z]+'}", "training.output_dir=wider"]
    )
    with pytest.raises(RecipeError, match=r"pair 0: the rules find 3 names \(and, x, y\).*: x y\."):
        train(wider, say=lambda _: None)


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({"symbols": 4}, "seed=0", r"symbols: the rules are for the classes variable, function, .*"
         "classes name: .*--symbols variable=32,function=32"),
        ({"encoding": "learned"}, "seed=0", "too few symbols in the checkpoint: variable has 2, .*"
         "more --symbols"),
        ({}, "symbols", "the key 'symbols' is missing: .* does not say it either"),
    ],
)  # fmt: skip
def test_checkpoints_that_do_not_fit_the_pairs(own_task, settings, change, message):
    checkpoint = convert_small(own_task / "converted", **settings)
    last = "symbols=null" if change == "symbols" else f"training.{change}"
    with pytest.raises(RecipeError, match=f"(?s){message}"):
        train(
            read_recipe("own.yaml", [*QUIET, *TUNED, f"checkpoint={checkpoint}", last]),
            say=lambda _: None,
        )
    assert not (own_task / "out").exists()


@pytest.mark.parametrize(
    ("body", "change", "message"),
    [
        ("1 / 0", "seed=0", "check: own:check, training pair 0 .*: ZeroDivisionError"),
        ("'maybe'", "seed=0", "check: .*returned 'maybe'"),
        ("(", "seed=0", "check: .*SyntaxError"),
        ("True", "metric_for_best_model=nope", "metric_for_best_model.*'eval_nope'"),
        ("True", "measure", "measures: measure own:score: it returned 'good'"),
    ],
)
def test_what_fails_at_the_first_answer_ends_before_training(own_task, body, change, message):
    code = "def score(predictions, references):\n    return 'good'\n"
    code += f"def check(source, answer, target):\n    return {body}\n"
    (own_task / "own.py").write_text(code)
    more = "measures={score: 'own:score'}" if change == "measure" else f"training.{change}"
    with pytest.raises(RecipeError, match=message):
        train(read_recipe("own.yaml", [*QUIET, "check=own:check", more]), say=lambda _: None)
    assert not (own_task / "out" / "model.safetensors").exists()


def test_a_tokenizer_without_a_start_token(own_task):
    """T5's and BERT's have none."""
    tokenizer = unigram(end=True)
    tokenizer.bos_token = None
    tokenizer.save_pretrained(own_task / "t5")
    model = train(read_recipe("own.yaml", [*QUIET, "tokenizer=./t5"])).model
    assert model.config.bos_token_id is None
    assert model.config.decoder_start_token_id == model.config.pad_token_id
    reloaded, _ = load_checkpoint(own_task / "out")
    assert_same(reloaded.state_dict(), model.state_dict())


@pytest.mark.parametrize(
    ("overrides", "prepare", "message"),
    [
        ("eval_strategy=sometimes", prepare_arguments, "training: sometimes is not"),
        # Accelerate would train a whole copy in each process.
        ("fsdp=full_shard use_cpu=true", prepare_arguments, "fsdp shards a model over accelerat"),
        ("label_smoothing_factor=0.1", prepare_arguments, "label_smoothing in the model's conf"),
        ("model.dropout=much", prepare_model, "model: .*'dropout'"),
        ("model.d_model=33", prepare_model, "model: d_model 33 is not a multiple"),
    ],
)
def test_values_that_a_class_refuses_are_named(overrides, prepare, message):
    said = [one if one.startswith("model.") else f"training.{one}" for one in overrides.split()]
    with pytest.raises(RecipeError, match=message):
        prepare(read_recipe("propositional/debug", said))


def test_missing_and_changed_data_are_explained(data_dir, tmp_path):
    tokenizer = build_tokenizer("propositional", 5)
    nowhere = debug(tmp_path / "no" / "data", tmp_path / "out", "data.generate={}")
    with pytest.raises(RecipeError, match=r"data: no file or folder .*generate-data"):
        prepare_data(nowhere, tokenizer)
    train_data, valid_data = prepare_data(
        debug(data_dir, tmp_path, "data.max_train_samples=7", "data.max_eval_samples=5"), tokenizer
    )
    assert len(train_data) == 7 and len(valid_data) == 5
    changed = debug(data_dir, tmp_path, "data.generate.num_samples=601")
    with pytest.raises(RecipeError, match="num_samples is 600 there and 601 here; choose another"):
        prepare_data(changed, tokenizer)


# Training


def test_debug_recipe(data_dir, tmp_path):
    out = tmp_path / "out"
    recipe = debug(data_dir, out)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of pinned memory without a device
        trainer = train(recipe)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 10 and sum(losses[-3:]) < sum(losses[:3]) - 1

    model, tokenizer = load_checkpoint(out)
    assert_same(dict(model.state_dict()), dict(trainer.model.state_dict()))
    initial = model.config.initial_logit_scale
    assert abs(float(model.logit_scale.scale) - initial) > 0.01
    batch = tokenizer(["& a ! b", "| c 1"], padding=True, return_tensors="pt")
    assert model.generate(**batch, max_new_tokens=4).shape[0] == 2
    files = {path.name for path in out.iterdir() if path.is_file()}
    assert {"modeling_alpha.py", "model.safetensors"} <= files and code_files(out) <= files
    # The one pickle records the settings, and is not needed.
    assert {name for name in files if name.endswith((".bin", ".pt", ".pth"))} == {
        "training_args.bin"
    }

    # Resuming a finished run changes nothing, and makes the final model if it is missing.
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    said: list[str] = []
    assert train(recipe, say=said.append).state.global_step == 10
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    assert said == [f"{out} holds a finished run of 10 steps: nothing is done"]
    (out / "model.safetensors").unlink()
    again = train(recipe)
    assert again.state.global_step == 10
    assert_same(weights(out), dict(load_file(out / "checkpoint-10" / "model.safetensors")))
    # A new run is a function of its seed.
    other = train(debug(data_dir, tmp_path / "other"))
    assert_same(dict(other.model.state_dict()), dict(trainer.model.state_dict()))


def test_a_run_with_other_settings_says_which_and_its_recipe_is_what_was_run(data_dir, tmp_path):
    out = tmp_path / "out"
    fixed = ["training.eval_strategy=no", "training.save_steps=4", "training.max_steps=4"]
    train(debug(data_dir, out, *fixed))
    told = (out / "recipe.yaml").read_text()
    trained = (out / "model.safetensors").stat().st_mtime_ns
    changed = [*fixed, "training.learning_rate=0.5", "model.dropout=0.2", "data.max_eval_samples=9"]
    differences = re.escape(
        "data.max_eval_samples: 2000 -> 9, training.learning_rate: 0.001 -> 0.5, "
        "model.dropout: null -> 0.2; choose another training.output_dir, or"
    )
    with pytest.raises(RecipeError, match=f"{out} holds a run with other settings: {differences}"):
        train(debug(data_dir, out, *changed))
    # The run is finished: nothing is trained with the new settings, and the file says so.
    train(debug(data_dir, out, *changed), allow_changes=True)
    assert (out / "recipe.yaml").read_text() == told
    assert (out / "model.safetensors").stat().st_mtime_ns == trained

    longer = debug(data_dir, out, *changed, "training.max_steps=8")
    said: list[str] = []
    train(longer, allow_changes=True, say=said.append)
    assert said == [f"{out}: resuming from {out}/checkpoint-4, step 4"]
    assert read_recipe(out / "recipe.yaml") == longer
    notes = [
        "# until step 4: data.max_eval_samples=2000",
        "# until step 4: training.max_steps=4",
        "# until step 4: training.learning_rate=0.001",
        "# until step 4: model.dropout=null",
    ]
    assert sorted(told_by(out)) == sorted(notes)
    train(longer)  # equal settings: nothing is asked
    last = debug(data_dir, out, *changed, "training.max_steps=9")
    train(last, allow_changes=True)
    assert sorted(told_by(out)) == sorted([*notes, "# until step 8: training.max_steps=8"])

    with pytest.raises(RecipeError, match=r"checkpoint-9 holds another model: tensor .* is \(64,"):
        wider = ["training.max_steps=12", "model.encoder_ffn_dim=48"]
        train(debug(data_dir, out, *changed, *wider), allow_changes=True)


def test_settings_of_steps_that_are_gone_held_until_the_step_before(data_dir, tmp_path):
    """A run that goes on from an earlier checkpoint than one that it once went on from."""
    first, second = "model.dropout=0.1", "training.learning_rate=0.5"
    earlier = ["until step 2: seed=7", "until step 8: seed=8", "until step 8: model.dropout=0.3"]
    notes = [f"# {note}" for note in earlier]
    write_recipe(debug(data_dir, tmp_path, first), tmp_path / RECIPE_FILE, notes)
    changed = debug(data_dir, tmp_path, second)
    assert notes_of_changes(changed, tmp_path, 4, allow_changes=True) == [
        "# until step 2: seed=7",
        "# until step 4: seed=8",
        "# until step 4: model.dropout=0.3",
        "# until step 4: training.learning_rate=0.001",
    ]


def told_by(out) -> list[str]:
    return [line for line in (out / "recipe.yaml").read_text().splitlines() if line[0] == "#"]


def test_a_run_without_checkpoints_is_not_overwritten(data_dir, tmp_path):
    few = ["training.eval_strategy=no", "training.save_strategy=no", "training.max_steps=2"]
    train(debug(data_dir, tmp_path, *few))
    trained = (tmp_path / "model.safetensors").stat().st_mtime_ns
    assert train(debug(data_dir, tmp_path, *few)).state.global_step == 2
    more = debug(data_dir, tmp_path, *few, "training.max_steps=3")
    with pytest.raises(RecipeError, match="a trained model and no checkpoint to resume: choose an"):
        train(more, allow_changes=True)
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == trained


def test_a_damaged_checkpoint_is_not_resumed(short_run, tmp_path):
    out = shutil.copytree(short_run, tmp_path / "out")
    os.truncate(out / "checkpoint-2" / "model.safetensors", 1000)
    with pytest.raises(ValueError, match=r"checkpoint-2: model\.safetensors cannot be read"):
        train(copying(out, *LONGER), allow_changes=True)


class Evil:
    """A pickle that makes a folder where it is loaded."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "scaler.pt"])
def test_a_state_of_training_that_is_none_is_named_and_runs_nothing(short_run, tmp_path, name):
    """Cut off, of another kind, or a pickle that does something."""
    out, folder = shutil.copytree(short_run, tmp_path / "out"), tmp_path / "made"
    file = out / "checkpoint-2" / name

    class Scaled(AlphaTrainer):
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            self.accelerator.scaler = torch.amp.GradScaler("cpu")

    recipe = copying(out, *LONGER)
    arguments = {"make_trainer": Scaled if name == "scaler.pt" else AlphaTrainer}
    contents = (None, Evil(folder), b"", b"PK" * 50, [1], {"some": 1})
    for content in contents if name == "optimizer.pt" else contents[:2]:
        if isinstance(content, bytes):
            file.write_bytes(content)
        elif content is not None:
            torch.save(content, file)
        elif file.exists():
            os.truncate(file, 300)
        else:  # a run without a scaler has none
            continue
        with pytest.raises(CheckpointError, match=r"checkpoint-2: the .* cannot be read: [^;]"):
            train(recipe, allow_changes=True, **arguments)
    assert not folder.exists()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process may be larger: what the system says is as of a full disk."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_ends_training_with_the_last_whole_checkpoint(short_run, tmp_path):
    sizes = {file.name: file.stat().st_size for file in (short_run / "checkpoint-2").iterdir()}
    for name in ("model.safetensors", "optimizer.pt"):
        out = tmp_path / name
        shutil.copytree(short_run / "checkpoint-2", out / "checkpoint-2")
        arguments = ["copying/debug", *QUIET, *LONGER, f"training.output_dir={out}"]
        with largest_file(sizes[name] - 1):
            done = hf_alpha("train", *arguments)
        assert done.code == 2 and "Traceback" not in done.err
        assert f"error: {out}/checkpoint-3 cannot be written: " in done.err
        assert last_checkpoint(out) == out / "checkpoint-2"
        assert not (out / "checkpoint-3").exists()


def test_data_is_drawn_as_it_is_needed(tmp_path):
    """No folder, and a run that resumes in the middle goes on with the rows that come next."""
    changes = ["training.dataloader_num_workers=1"]
    whole = train(copying(tmp_path / "whole", *changes))
    losses = [entry["eval_loss"] for entry in whole.state.log_history if "eval_loss" in entry]
    assert len(losses) == 2 and losses[1] < losses[0]
    out = tmp_path / "resumed"
    shutil.copytree(tmp_path / "whole" / "checkpoint-5", out / "checkpoint-5")
    train(copying(out, *changes))
    assert_same(weights(out), weights(tmp_path / "whole"))
    assert read_recipe(out / "recipe.yaml").data == copying(out).data


def test_another_dataset_chooses_the_checkpoint(data_dir, tmp_path):
    """One with more symbols than training has; the best checkpoint is what the run ends with."""
    wider = {"num_samples": 300, "sizes": [11, 13], "num_symbols": 7, "seed": 1}
    changes = [
        "num_symbols=7", f"data.validation={{path: {tmp_path / 'wider'}, generate: {wider}}}",
        "training.save_steps=4", "training.eval_steps=4", "training.save_total_limit=null",
        "training.load_best_model_at_end=true", "training.metric_for_best_model=loss",
        "training.learning_rate=0.5", "training.max_steps=12", "training.greater_is_better=true",
    ]  # fmt: skip
    recipe = debug(data_dir, tmp_path / "out", *changes)
    train_data, valid_data = prepare_data(recipe, build_tokenizer("propositional", 7))
    assert max(map(len, train_data["stream_ids"])) <= 5 < max(map(len, valid_data["stream_ids"]))
    trainer = train(recipe)
    losses = {e["step"]: e["eval_loss"] for e in trainer.state.log_history if "eval_loss" in e}
    best = max(losses, key=lambda step: losses[step])  # the worst, so it is not the last
    assert sorted(losses) == [4, 8, 12] and trainer.state.best_global_step == best
    assert best != 12
    chosen = weights(tmp_path / "out" / f"checkpoint-{best}")
    assert_same(weights(tmp_path / "out"), chosen)
    assert_same(train(recipe).model.state_dict(), chosen)  # a finished run: nothing is done
    for name in ("model.safetensors", "trainer_state.json"):  # as if killed while they were written
        (tmp_path / "out" / name).unlink()
    train(recipe)
    assert_same(weights(tmp_path / "out"), chosen)
    for step in {4, 8, 12} - {best}:  # as with save_total_limit: 1
        shutil.rmtree(tmp_path / "out" / f"checkpoint-{step}")
    said: list[str] = []
    assert_same(train(recipe, say=said.append).model.state_dict(), chosen)
    assert "finished run of 12 steps: nothing is done" in said[-1]


def test_checkpoints_cut_off_are_passed_over(tmp_path):
    assert last_checkpoint(tmp_path / "absent") is None
    for step, state in [(5, "{}"), (10, "{}"), (20, '{"epoch": 1.'), (100, None)]:
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    (tmp_path / "checkpoint-best").mkdir()
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-10"


DRAWN = ("model.symbol_encoding=dual_part", "model.symbol_renaming=random")
# What is drawn is state that streams have not; the rest of a run is the same.
ENCODINGS = [pytest.param((), id="streams"), pytest.param(DRAWN, id="dual_part, random")]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("saving", ["steps", "epoch"])
def test_a_run_that_is_stopped_goes_on_as_if_it_had_not_been(tmp_path, saving):
    """By Ctrl-C at an epoch's end, of five steps, or in its middle: it saves, and ends the same."""
    stop = 5 if saving == "steps" else 6

    class Stopped(AlphaTrainer):
        def training_step(self, *args, **kwargs):
            if self.state.global_step == stop - 1:
                os.kill(os.getpid(), signal.SIGINT)
            return super().training_step(*args, **kwargs)

    changes = [*DRAWN, "training.max_steps=10", "training.save_steps=7",
               "training.eval_strategy=no", "training.logging_strategy=epoch",
               "data.draw.num_samples=160", f"training.save_strategy={saving}"]  # fmt: skip
    train(copying(tmp_path / "whole", *changes))
    with pytest.raises(Interrupted, match=f"stopped at step {stop}"):
        train(copying(tmp_path / "stopped", *changes), make_trainer=Stopped)
    train(copying(tmp_path / "stopped", *changes))
    assert_same(weights(tmp_path / "stopped"), weights(tmp_path / "whole"))
    assert int(weights(tmp_path / "whole")["model.symbol_draws.step"]) == 10
    steps = [row["step"] for row in logged(tmp_path / "whole")]
    assert [row["step"] for row in logged(tmp_path / "stopped")] == steps == [5, 10, 10]


def logged(out: Path) -> list[dict[str, float]]:
    """What a run has logged."""
    return json.loads((out / "trainer_state.json").read_text())["log_history"]


TWO_PROCESSES = """
    import json, sys
    from pathlib import Path
    from hf_alpha.recipe import read_recipe
    from hf_alpha.train import train

    data, out, *changes = sys.argv[1:]

    def run(name, *more):
        places = [f"data.path={data}", f"training.output_dir={out}/{name}"]
        recipe = read_recipe("propositional/debug", [*places, *changes, *more])
        trainer = train(recipe, allow_changes=name == "resumed")
        args, file = trainer.args, Path(data, "data", "train-00000-of-00001.parquet")
        record = {"world_size": args.world_size, "data": file.stat().st_ino,
                  "scale": float(trainer.model.logit_scale.scale)}
        Path(out, f"{name}-{args.process_index}.json").write_text(json.dumps(record))

    run("together", "training.max_steps=6", "training.optim=sgd", "training.learning_rate=0.1",
        "model.dropout=0.0")
    stopping = ["training.save_steps=11", "training.lr_scheduler_type=constant",
                "training.logging_steps=4"]
    run("whole", "training.max_steps=14", *stopping)
    run("resumed", "training.max_steps=11", *stopping)
    run("resumed", "training.max_steps=14", *stopping)
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_two_processes_are_one_with_twice_the_batch(tmp_path, encoding):
    data, script = tmp_path / "data", tmp_path / "script.py"
    script.write_text(textwrap.dedent(TWO_PROCESSES))
    # Ten steps are an epoch.
    changes = [*QUIET, "training.per_device_train_batch_size=16", "training.eval_strategy=no",
               "data.generate.num_samples=400", *encoding]  # fmt: skip
    result = own_process.run_in_two(script, data, tmp_path, *changes)
    assert result.returncode == 0, result.stderr[-3000:]
    made = json.loads((data / "generation.json").read_text())["rows"]

    alone = train(
        debug(
            data, tmp_path / "alone", *changes, "training.max_steps=6", "training.optim=sgd",
            "training.learning_rate=0.1", "model.dropout=0.0",
            "training.per_device_train_batch_size=32",
        )
    )  # fmt: skip
    assert sum(made.values()) == 400
    inode = (data / "data" / "train-00000-of-00001.parquet").stat().st_ino
    scale = float(alone.model.logit_scale.scale)
    assert abs(scale - alone.model.config.initial_logit_scale) > 0.01
    for rank in (0, 1):
        record = json.loads((tmp_path / f"together-{rank}.json").read_text())
        assert record["world_size"] == 2
        assert record["data"] == inode  # written once
        assert record["scale"] == pytest.approx(scale, abs=1e-5)
    ours, theirs = weights(tmp_path / "alone"), weights(tmp_path / "together")
    start = dict(prepare_model_of(alone).state_dict())
    for name, weight in ours.items():
        torch.testing.assert_close(theirs[name], weight, atol=1e-5, rtol=0)
    moved = max(float((ours[name] - start[name]).abs().max()) for name in ours)
    assert moved > 0.01
    # Resuming in the middle of the second epoch goes on with that epoch's batches.
    assert_same(weights(tmp_path / "resumed"), weights(tmp_path / "whole"))


def prepare_model_of(trainer):
    torch.manual_seed(trainer.args.seed)
    return type(trainer.model)(trainer.model.config)


@pytest.mark.parametrize("kind", [Seq2SeqTrainer, AlphaTrainer])
def test_accumulation_through_the_trainer_changes_nothing(data_dir, tmp_path, kind):
    """1 x 8 and 8 x 1, in the order of transformers' own trainer, and of ours."""
    tokenizer = build_tokenizer("propositional", 5)
    train_data, _ = prepare_data(debug(data_dir, tmp_path), tokenizer)

    def run(batch, accumulation):
        model = make_model(seed=1, dropout=0.0)
        arguments = Seq2SeqTrainingArguments(
            output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=batch,
            gradient_accumulation_steps=accumulation, learning_rate=0.1, optim="sgd",
            train_sampling_strategy="sequential", save_strategy="no", report_to="none",
            logging_steps=1, disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = kind(
            model=model, args=arguments, train_dataset=train_data,
            data_collator=AlphaCollator(tokenizer),
        )  # fmt: skip
        trainer.train()
        model.settle_step()
        logged = [(e["loss"], e["grad_norm"]) for e in trainer.state.log_history if "loss" in e]
        return model.state_dict(), torch.tensor(logged)

    (whole, logged), (pieces, logged_pieces) = run(8, 1), run(1, 8)
    torch.testing.assert_close(logged_pieces, logged, atol=1e-4, rtol=1e-4)
    assert float(whole["logit_scale.scale"]) != make_model(seed=1).config.initial_logit_scale
    for name, weight in whole.items():
        torch.testing.assert_close(pieces[name], weight, atol=1e-5, rtol=0, msg=name)


def test_rows_in_a_list_are_trained_on_as_those_of_a_dataset(data_dir, tmp_path):
    tokenizer = build_tokenizer("propositional", 5)
    rows, _ = prepare_data(debug(data_dir, tmp_path), tokenizer)

    def losses(rows):
        arguments = Seq2SeqTrainingArguments(
            str(tmp_path), max_steps=3, per_device_train_batch_size=2, save_strategy="no",
            report_to="none", logging_steps=1, disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        trainer = AlphaTrainer(
            make_model(seed=1), arguments, AlphaCollator(tokenizer), train_dataset=rows
        )
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    assert losses(list(rows)) == losses(rows)
    with pytest.raises(ValueError, match="row 1 of the training data is no mapping with input_ids"):
        losses([rows[0], {"labels": [1]}])


def test_a_tracker_that_is_missing_is_named_before_any_work(tmp_path, monkeypatch):
    for package in ("wandb", "wandbX"):  # hidden where it is installed
        monkeypatch.setitem(sys.modules, package, None)
    recipe = debug(tmp_path / "data", tmp_path / "run", "training.report_to=wandb")
    with pytest.raises(RecipeError, match=r"training: report_to: .*wandb"):
        train(recipe)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", trajectories.TASKS)
def test_first_steps_are_those_of_the_snapshot(task, tmp_path):
    """The same losses and gradient norms as ever, whatever is moved or made faster."""
    known = json.loads(trajectories.snapshot(task).read_text())
    found = trajectories.measure(task, tmp_path)
    assert len(found) == len(known) == 4
    for ours, theirs in zip(found, known, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_tools_take_any_type_of_model_with_symbols(data_dir, tmp_path):
    """Trained, resumed, released, evaluated and used for answers, all by its `model_type`."""
    chosen = ["model={model_type: toy, hidden_size: 8}", "training.max_steps=2"]
    run, out = tmp_path / "run", tmp_path / "released"
    recipe = debug(data_dir, run, *chosen, "training.save_steps=1", "training.eval_strategy=no")
    train(recipe)
    shutil.rmtree(run / "checkpoint-2")
    (run / "model.safetensors").unlink()
    assert type(train(recipe).model) is ToyForConditionalGeneration  # resumed
    release(run, out)
    model, tokenizer = load_checkpoint(out)
    assert type(model) is ToyForConditionalGeneration and model.config.hidden_size == 8
    rows = [{"problem": "& a ! b"}, {"problem": "&&&&&abcdef"}]
    models = [Model("other", model, tokenizer)]
    _, (report, _) = compare(
        models, get_task("propositional"), rows, tmp_path / "report", covariance=1,
        max_renamings=4, progress=False,
    )  # fmt: skip
    assert report.overall.count == 2 and report.overall.outcomes["outside_vocabulary"] == 0
    (solution,) = solve(["a & !b"], task="propositional", model=(model, tokenizer), method="model")
    assert solution.error is None and len(solution.answers) == 1


@pytest.mark.parametrize(("task", "position"), [("propositional", "tree"), ("copying", "rope")])
def test_a_tokenizer_with_a_grammar_asks_for_tree_positions(task, position):
    tokenizer = build_tokenizer(task, 4)
    config = config_for(tokenizer, {"d_model": 24})
    assert config.encoder_position == position
    assert config.d_model == 24
    assert config.symbol_ranges == tokenizer.symbol_ranges
    assert config_for(tokenizer, {"encoder_position": "none"}).encoder_position == "none"
