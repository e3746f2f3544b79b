"""Decoders alone: texts, and targets that go on from their sources."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import hf_alpha
from datasets import Dataset
from small_objectives import BERT, TRAINING, evaluated, recipe, write_rows
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, LlamaConfig

from hf_alpha.loading import load_checkpoint
from hf_alpha.objectives.base import Predictions
from hf_alpha.objectives.causal import Causal
from hf_alpha.recipe import Data, RecipeError
from hf_alpha.train import train

LLAMA = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
         "num_hidden_layers": 2, "num_attention_heads": 2}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
RETROFIT = {"model_type": "alpha-retrofit", "symbol_encoding": "learned", "backbone_config": LLAMA}
FOLNET = {"model_type": "folnet", "is_decoder": True, "hidden_size": 16, "binary_hidden_size": 8,
          "head_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
          "intermediate_size": 16, "binary_intermediate_size": 16}  # fmt: skip
PEOPLE = ("Ann", "Bea", "Cleo", "Dan")
PAIRS = [
    {"source": f"{one} met {two} {day} . who ?", "target": f"{two} and {one}"}
    for one in PEOPLE for two in PEOPLE if one != two for day in ("today", "later")
]  # fmt: skip
NAMES = {"person": {"tokens": list(PEOPLE)}}
LEARNING = {"max_steps": 100, "learning_rate": 0.01, "per_device_train_batch_size": 8}


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("model", "more"),
    [(LLAMA, {}), (GPT2, {}), (FOLNET, {}), (RETROFIT, {"symbols": NAMES}), (RETROFIT, {})],
    ids=["llama", "gpt2", "folnet", "retrofit with names", "retrofit"],
)
def test_texts_are_learned_and_their_loss_is_evaluated(tmp_path, model, more):
    """Loss and perplexity of a token, over all sequences of long texts too."""
    texts = [{"source": f"{row['source']} {row['target']} ."} for row in PAIRS]
    file = write_rows(tmp_path / "texts.jsonl", texts)
    objective = {"name": "causal", "max_length": 8}
    data = {"train": file, "validation": file, "test": file}
    training = {**LEARNING, "max_steps": 20, "eval_strategy": "steps", "eval_steps": 20}
    lines: list[str] = []
    trainer = train(
        recipe(tmp_path, objective, data, training, model=model, **more), say=lines.append
    )
    assert "training: 24 rows, 48 sequences" in lines
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert losses[-1] < 0.9 * losses[0]
    (seen,) = [row for row in trainer.state.log_history if "eval_perplexity" in row]
    measured = evaluated(tmp_path / "out", "--card")[0]["metrics"]["all"]
    shown = (tmp_path / "out" / "evaluation" / "report.txt").read_text()
    assert "x100" not in shown and (tmp_path / "out" / "README.md").is_file()
    assert measured["loss"] == pytest.approx(seen["eval_loss"], rel=0.1)
    assert measured["perplexity"] == pytest.approx(math.exp(measured["loss"]))
    assert f"{measured['perplexity']:.3f}" in shown
    assert ", a decoder" in hf_alpha("info", tmp_path / "out").out


def loss_of(model: Any, ids: list[int], first: int) -> float:
    """The loss of the tokens from `first` on, one after the other."""
    scores = torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0], -1).detach()
    return -sum(float(scores[i - 1, ids[i]]) for i in range(first, len(ids)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("model", "more"),
    [(LLAMA, {}), (RETROFIT, {"symbols": NAMES})],
    ids=["llama", "retrofit with names"],
)
def test_only_targets_are_learned_and_the_exact_ones_are_those_that_are_generated(
    tmp_path, model, more
):
    train_file = write_rows(tmp_path / "train.jsonl", PAIRS[:16])
    test_file = write_rows(tmp_path / "test.jsonl", [*PAIRS[:4], *PAIRS[16:]])
    objective = {"name": "causal", "pairs": True, "max_length": 24}
    data = {"train": train_file, "test": test_file}
    made = recipe(tmp_path, objective, data, LEARNING, model=model, **more)
    train(made, say=lambda _: None)
    measured, records = evaluated(tmp_path / "out", "--by", "target")
    trained, tokenizer = load_checkpoint(tmp_path / "out", answers=False)
    trained.eval()
    rows = [json.loads(line) for line in Path(test_file).read_text().splitlines()]
    features = made.aim.features(
        Dataset.from_list(rows), made.data, tokenizer, trained.config, training=False
    )
    exact = []
    for record, sequence in zip(records, features, strict=True):
        ids, labels = sequence["input_ids"], sequence["labels"]
        start = labels.count(-100)
        assert ids[start:] == labels[start:] and set(labels[:start]) == {-100}
        assert record["loss"] == pytest.approx(loss_of(trained, ids, start), abs=1e-3)
        written = trained.generate(
            torch.tensor([ids[:start]]), max_new_tokens=12, do_sample=False
        )[0, start:].tolist()  # fmt: skip
        exact.append(written[: len(ids) - start] == ids[start:])
        assert (record["wrong"] == 0) == exact[-1]
    assert any(exact[:4])
    assert measured["metrics"]["all"]["exact"] == sum(exact) / len(exact)


@pytest.mark.parametrize("config", [LlamaConfig, GPT2Config])
def test_any_decoder_of_transformers_goes_on_from_its_checkpoint(tmp_path, config, monkeypatch):
    """With its own tokenizer, which has no padding; it is saved and resumed as such a model."""
    sizes = dict(LLAMA if config is LlamaConfig else GPT2)
    tokenizer = train_tokenizer([row["source"] for row in PAIRS])
    tokenizer.save_pretrained(tmp_path / "host")
    sizes.pop("model_type")
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(
        config(**sizes, vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)
    ).save_pretrained(tmp_path / "host")
    file = write_rows(tmp_path / "pairs.jsonl", PAIRS)
    objective = {"name": "causal", "pairs": True, "max_length": 40}
    training = {**LEARNING, "max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    place = str(tmp_path / "host")
    data = {"train": file, "test": file}
    train(recipe(tmp_path, objective, data, training, checkpoint=place), say=lambda _: None)
    again = train(
        recipe(tmp_path, objective, data, {**training, "max_steps": 6}, checkpoint=place),
        say=lambda _: None, allow_changes=True,
    )  # fmt: skip
    assert again.state.global_step == 6
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert type(plain.config) is config
    assert AutoTokenizer.from_pretrained(tmp_path / "out").pad_token is None
    evaluated(tmp_path / "out")


def train_tokenizer(texts: list[str]) -> Any:
    """A byte-level BPE as GPT-2's, whose texts have no end token of their own."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    made = ByteLevelBPETokenizer()
    made.train_from_iterator(texts, 300, special_tokens=["<|end|>"], show_progress=False)
    return PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, eos_token="<|end|>")


@pytest.mark.parametrize(
    ("objective", "more", "message"),
    [
        ({"max_length": 65}, {"model": GPT2}, "objective: a sequence of max_length has 64 tokens"),
        ({}, {"model": {**BERT, "max_position_embeddings": 256}}, "model: a 'bert' model sees the"),
        ({}, {"model": {**RETROFIT, "symbol_renaming": "first_occurrence"}, "symbols": NAMES},
         "model: the model lists the names of a text beforehand"),
        ({"pairs": True, "max_length": 9}, {"model": LLAMA}, "row 0: source and target have 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_said(tmp_path, objective, more, message):
    file = write_rows(tmp_path / "pairs.jsonl", PAIRS)
    said = recipe(tmp_path, {"name": "causal", **objective}, {"train": file}, TRAINING, **more)
    with pytest.raises(RecipeError, match=message):
        train(said, say=lambda _: None)


def test_a_model_that_is_no_decoder_is_refused_when_the_recipe_is_read(tmp_path):
    with pytest.raises(RecipeError, match="'geometric' is trained by the objective"):
        recipe(tmp_path, "causal", {"train": "rows.jsonl"}, model={"model_type": "geometric"})


def test_a_pair_may_have_max_length_tokens_and_no_more():
    rows = Dataset.from_dict({"source": ["a b"], "target": ["c a"]})
    tokenizer, source = train_tokenizer(["a b c"]), Data(train="rows.jsonl")
    (found,) = Causal(40, pairs=True).features(rows, source, tokenizer, None)
    length = len(found["input_ids"])
    (again,) = Causal(length, pairs=True).features(rows, source, tokenizer, None)
    assert again == found
    with pytest.raises(ValueError, match=f"row 0: source and target have {length} tokens, more"):
        Causal(length - 1, pairs=True).features(rows, source, tokenizer, None)


def test_all_sequences_of_a_text_count():
    """With one of them in place of all, loss and perplexity would be another text's."""
    features = Dataset.from_dict({"row": [0, 0, 2, 0]})
    counted = np.array([[1.0, 3, 1], [2.0, 3, 0], [0.5, 1, 0], [4.0, 2, 2]])
    rows, source = Dataset.from_dict({"source": ["long", "", "short"]}), Data(train="rows.jsonl")
    records = Causal(4).records(Predictions(counted, None, rows, features, source, None))
    assert records == [
        {"loss": 7.0, "tokens": 8, "wrong": 3},
        {"loss": 0.0, "tokens": 0, "wrong": 0},
        {"loss": 0.5, "tokens": 1, "wrong": 0},
    ]
    score = Causal(4).score(records, None)
    assert score == {"loss": 7.5 / 9, "perplexity": pytest.approx(math.exp(7.5 / 9))}


def test_a_long_text_goes_on_and_every_token_is_learned_once():
    rows = Dataset.from_dict({"source": ["a b c d e", "a", "  "]})
    tokenizer = train_tokenizer(["a b c"])
    source = Data(train="rows.jsonl")
    found = Causal(4).features(rows, source, tokenizer, None)
    whole = [tokenizer(text)["input_ids"] + [tokenizer.eos_token_id] for text in rows["source"][:2]]
    learned = [
        [i for one in found if one["row"] == row for i in one["labels"][1:]] for row in (0, 1)
    ]
    assert learned == [ids[1:] for ids in whole] and max(map(len, found["input_ids"])) == 4
    batch = Causal(4).padding(tokenizer)(list(found))
    padded = batch["attention_mask"] == 0
    assert padded.any() and torch.equal(batch["labels"] == -100, padded)
    with pytest.raises(ValueError, match="the column 'source' holds no text"):
        Causal(4).features(rows.select([2]), source, tokenizer, None)
