"""To answer: problems of a task and pairs of the user's own, prepared as all else is."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_objectives import BERT, TRAINING, write_rows
from typer.testing import CliRunner

from hf_alpha.cli import app
from hf_alpha.loading import load_checkpoint
from hf_alpha.objectives import Objective
from hf_alpha.recipe import RecipeError, parse_recipe, read_recipe
from hf_alpha.train import prepare_model, train

ALPHA = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}  # fmt: skip
T5 = {"model_type": "alpha-retrofit", "backbone_config": {
    "model_type": "t5", "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2,
}}  # fmt: skip
WORDS = ["to", "be", "or", "not", "that", "is", "the", "question"]
PAIRS = [
    {"source": f"{one} {two} {three}", "target": f"{three} {two} {one}"}
    for one in WORDS for two in WORDS[:4] for three in WORDS[4:]
]  # fmt: skip
DRAW = {"num_samples": 20, "sizes": [1, 4], "num_symbols": 2}


def content(folder: Path, data: dict, **more: Any) -> dict[str, Any]:
    training = {**TRAINING, "output_dir": str(folder / "out")}
    return {"task": "text", "data": data, "training": training, **more}


@pytest.mark.parametrize("kind", ["drawn", "pairs", "class"])
def test_every_recipe_is_prepared_by_its_objective(tmp_path, kind):
    """From the recipe to a batch whose loss the model gives, without asking what kind it is."""
    file = write_rows(tmp_path / "rows.jsonl", PAIRS)
    recipe = parse_recipe({
        "drawn": content(tmp_path, {"draw": DRAW}, model=ALPHA) | {"task": "propositional"},
        "pairs": content(tmp_path, {"train": file}, model=ALPHA, symbols={"word": ["be", "is"]}),
        "class": content(tmp_path, {"train": file}, model=BERT, objective="class"),
    }[kind])  # fmt: skip
    objective, lines = recipe.aim, []
    assert isinstance(objective, Objective) and objective.answers == (kind != "class")
    examples = objective.examples(recipe, lines.append)
    model, tokenizer = prepare_model(recipe, examples, say=lines.append)
    rows = objective.datasets(recipe, examples, model, tokenizer, lines.append)["train_dataset"]
    batch = objective.collator(tokenizer, model, recipe.seed)([rows[0], rows[1]])
    known = {key: value for key, value in batch.items() if key != "stream_ids" or kind != "class"}
    assert torch.isfinite(model(**known).loss)


BART = {"model_type": "alpha-retrofit", "backbone_config": {
    "model_type": "bart", "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16, "max_position_embeddings": 8,
}}  # fmt: skip
GPT2 = {"model_type": "alpha-retrofit", "backbone_config": {
    "model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 10,
}}  # fmt: skip
LONG = {"source": " ".join(WORDS * 2), "target": "to"}


@pytest.mark.parametrize("streaming", [False, True], ids=["stored", "stream"])
@pytest.mark.parametrize("model", [BART, GPT2, T5], ids=["bart", "gpt2", "t5"])
def test_pairs_longer_than_the_model_are_refused_or_dropped(tmp_path, model, streaming):
    """Before training: a model with relative positions takes all, up to a limit of the user's."""
    file = write_rows(tmp_path / "pairs.jsonl", [*PAIRS[:20], LONG, *PAIRS[20:]])

    def rows(**settings):
        said: list[str] = []
        data = {"train": file, "streaming": streaming, **settings}
        recipe = parse_recipe(
            content(tmp_path, data, model={**model, "symbol_encoding": "learned"})
        )
        parts = recipe.aim, recipe.aim.examples(recipe, said.append)
        made = prepare_model(recipe, parts[1], say=said.append)
        return [*parts[0].datasets(recipe, parts[1], *made, said.append)["train_dataset"]], said

    limit = {"max_length": 8} if model is T5 else {}
    with pytest.raises(RecipeError if not streaming else ValueError, match="too long") as error:
        rows(**limit)
    assert "at most" in str(error.value) and "data.drop_bad=true" in str(error.value)
    if not streaming:
        assert "1 of 129 pairs" in str(error.value) and "20 (17 and " in str(error.value)
    kept, said = rows(**limit, drop_bad=True)
    assert len(kept) == 128 and max(len(row["input_ids"]) for row in kept) < 8
    assert streaming or any("1 of 129 pairs dropped: too long" in line for line in said)
    if model is T5:
        assert len(rows()[0]) == 129


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("encoding", ["streams", "relational", "dual_part", "learned"])
def test_pairs_without_names_are_trained_evaluated_and_solved(tmp_path, encoding):
    file = write_rows(tmp_path / "pairs.jsonl", PAIRS)
    data = {"train": file, "validation": 0.2, "test": file}
    recipe = content(tmp_path, data, model={**ALPHA, "symbol_encoding": encoding})
    recipe["training"] |= {"eval_strategy": "steps", "eval_steps": 4}
    lines: list[str] = []
    trainer = train(parse_recipe(recipe), say=lines.append)
    assert "eval_correct" in trainer.state.log_history[-2]
    assert "nameless" not in "".join(lines)
    out = str(tmp_path / "out")
    assert not read_recipe(f"{out}/recipe.yaml").symbols
    assert load_checkpoint(out)[1].symbol_classes == {}
    for command in (["evaluate", out], ["solve", "to be is", "--model", out]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "out" / "evaluation" / "out" / "report.json").read_text())
    assert report["settings"]["num_samples"] == len(PAIRS)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("model", [ALPHA, T5], ids=["alpha", "t5"])
def test_a_model_without_names_learns_and_goes_on_from_its_checkpoint(tmp_path, model):
    """Few pairs by heart; a checkpoint needs no `symbols`, and takes none."""
    file = write_rows(tmp_path / "pairs.jsonl", PAIRS[:4])
    recipe = content(tmp_path, {"train": file}, model={**model, "symbol_encoding": "learned"})
    recipe["training"] |= {"max_steps": 100, "learning_rate": 0.02, "warmup_steps": 10}
    train(parse_recipe(recipe), say=lambda _: None)
    trained, tokenizer = load_checkpoint(tmp_path / "out")
    batch = tokenizer([row["source"] for row in PAIRS[:4]], padding=True, return_tensors="pt")
    answers = trained.generate(**batch, max_new_tokens=9)
    texts = tokenizer.batch_decode(answers, skip_special_tokens=True)
    assert texts == [row["target"] for row in PAIRS[:4]]
    again = content(tmp_path / "more", {"train": file}, checkpoint=str(tmp_path / "out"))
    assert train(parse_recipe(again), say=lambda _: None).state.log_history[0]["loss"] < 0.5
    with pytest.raises(RecipeError, match="symbols: the rules are for the classes word"):
        train(parse_recipe({**again, "symbols": {"word": "[a-z]+"}} | {
            "training": {**again["training"], "output_dir": str(tmp_path / "named")}
        }))  # fmt: skip
