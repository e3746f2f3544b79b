"""Adapters of PEFT that train and save what symbols add to a model."""

import copy
import json
import re
import shutil

import pytest
import torch
from commands import hf_alpha
from hosts import make_host
from peft import LoraConfig, PeftModel, get_peft_model
from promises import logits
from retrofits import BOTH_SIDES, make_retrofit, random_batch
from small_tokenizers import unigram
from strategies import make_model

from hf_alpha import SymbolConfig, adapter_settings, get_symbol_model
from hf_alpha.folders import OutsideError
from hf_alpha.loading import load_checkpoint, load_config

IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
RULE = {"name": {"pattern": "[xyz]", "count": 5}}
TEXTS = ["alice sees x, y and z", "not x and z", "x and y"]
ATTENTION = {"gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"], "t5": ["q", "v"]}


def converted(host, encoding):
    """A model as a fresh conversion makes it, its tokenizer, and a batch with labels."""
    tokenizer = unigram(end=True)
    bare = make_host(host, vocab_size=len(tokenizer), **IDS)
    config = SymbolConfig(encoding=encoding, symbols=RULE)
    model, tokenizer = get_symbol_model(bare, tokenizer, config)
    batch = dict(tokenizer(TEXTS, padding=True, padding_side="right", return_tensors="pt"))
    batch.pop("stream_ids")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return model.eval(), tokenizer, {**batch, "labels": labels}


def trained(model, batch):
    """The names of the weights that a few steps change, and where."""
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    optimizer = torch.optim.SGD([x for x in model.parameters() if x.requires_grad], lr=0.5)
    for _ in range(3):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return {name for name, weight in model.named_parameters() if not weight.equal(before[name])}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("host", "encoding"),
    [("gpt2", "relational"), ("llama", "streams"), ("gpt2", "dual_part"), ("llama", "relational"),
     ("gpt2", "streams"), ("llama", "dual_part")],
)  # fmt: skip
def test_what_symbols_add_is_trained_saved_and_merged(host, encoding, tmp_path):
    """GPT-2 has one table for both ends, Llama two."""
    model, tokenizer, batch = converted(host, encoding)
    settings = adapter_settings(model, tokenizer)
    (join,) = tokenizer.convert_tokens_to_ids(["<join>"])
    rows = sorted([*model.config.class_rows["name"], join])
    assert list(settings["trainable_token_indices"].values()) == [rows] * (1 + (host == "llama"))
    lora = LoraConfig(task_type="CAUSAL_LM", target_modules=ATTENTION[host], **settings)
    adapted = get_peft_model(model, lora)
    before = logits(adapted, batch)
    changed = trained(adapted, batch)
    assert changed == {name for name, x in adapted.named_parameters() if x.requires_grad}
    kinds = ["lora_A", "trainable_tokens_delta"]
    if encoding == "relational":
        kinds += ["gates", "gate_bias", "query_proj", "key_proj", "norm.weight"]
    assert all(any(kind in name for name in changed) for kind in kinds)
    after = logits(adapted, batch)
    assert not torch.allclose(after, before, atol=1e-2)
    with adapted.disable_adapter():
        torch.testing.assert_close(logits(adapted, batch), before)
    adapted.save_pretrained(tmp_path / "adapter")
    fresh, _, _ = converted(host, encoding)
    if encoding == "dual_part":
        fresh.symbol_draws.load_state_dict(model.symbol_draws.state_dict())
    loaded = PeftModel.from_pretrained(fresh, tmp_path / "adapter").eval()
    assert logits(loaded, batch).equal(after)
    prompt = {name: x[:, :4] for name, x in batch.items() if name != "labels"}
    answers = loaded.generate(**prompt, max_new_tokens=4, do_sample=False)
    merged = loaded.merge_and_unload()
    torch.testing.assert_close(logits(merged, batch), after, atol=1e-5, rtol=1e-4)
    assert merged.generate(**prompt, max_new_tokens=4, do_sample=False).equal(answers)
    merged.save_pretrained(tmp_path / "merged")
    again = type(merged).from_pretrained(tmp_path / "merged").eval()
    torch.testing.assert_close(logits(again, batch), logits(merged, batch))


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"symbol_encoding": "relational"}, ["relations"]),
        (BOTH_SIDES, [f"{x}_aggregated.{i}" for x in ("encoder", "decoder") for i in (0, 1)]),
        ({"symbol_encoding": "dual_part"}, None),
    ],
)
def test_encoder_decoders_have_parts_of_their_own(settings, parts):
    model = make_retrofit("t5", **settings)
    before = copy.deepcopy(model)
    found = adapter_settings(model)
    assert found.get("modules_to_save") == parts
    assert found["trainable_token_indices"] == {"backbone.shared": model.config.class_rows["name"]}
    lora = LoraConfig(task_type="SEQ_2_SEQ_LM", target_modules=ATTENTION["t5"], **found)
    adapted = get_peft_model(model, lora).eval()
    batch = random_batch(1, model.config, [(6, 3), (5, 2)])
    torch.testing.assert_close(logits(adapted, batch), logits(before, batch))
    changed = trained(adapted, {**batch, "labels": batch["decoder_input_ids"]})
    assert changed == {name for name, x in adapted.named_parameters() if x.requires_grad}
    after = logits(adapted, batch)
    merged = logits(adapted.merge_and_unload(), batch)
    torch.testing.assert_close(merged, after, atol=1e-5, rtol=1e-4)


def test_models_of_this_package_have_such_parts_too():
    model = make_model(symbol_encoding="relational")
    found = adapter_settings(model)
    assert "model.symbol_memory" in found["modules_to_save"]
    assert all(x.endswith(("symbol_memory", "gates")) for x in found["modules_to_save"])
    vocabulary = model.config.vocabulary
    rows = range(vocabulary.num_base_tokens, model.get_input_embeddings().num_embeddings)
    assert found["trainable_token_indices"] == {"model.shared": list(rows)}


def test_tables_that_are_partly_one_are_refused():
    with pytest.raises(ValueError, match=r"backbone.shared, .* train whole tables"):
        adapter_settings(make_retrofit("t5_v1_1"))


def test_an_adapters_folder_is_no_model(tmp_path, monkeypatch, hub):
    """Alone, beside a configuration, and on the Hub: its model, at another place, is not loaded."""
    model, tokenizer, _ = converted("gpt2", "relational")
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "base")
    adapter = get_peft_model(model, LoraConfig(target_modules=["c_attn"]))
    adapter.peft_config["default"].base_model_name_or_path = "base"
    for part in (adapter, tokenizer):
        part.save_pretrained(tmp_path / "adapter")
    shutil.copytree(tmp_path / "base", tmp_path / "both")
    shutil.copytree(tmp_path / "adapter", tmp_path / "both", dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    said = r"holds an adapter \(PEFT\) for 'base', .*merge_and_unload\(\)"
    (tmp_path / "pairs.jsonl").write_text(json.dumps({"source": "x", "target": "x"}))
    for place in ("adapter", "both"):
        for command in (
            ("solve", "--model", place, "x"), ("info", place), ("convert", place, "out"),
            ("evaluate", place, "--data", "pairs.jsonl", "--out", "out"), ("push", place, "me/x"),
        ):  # fmt: skip
            assert re.search(said, hf_alpha(*command).error), command
        files = {file.name: file.read_bytes() for file in (tmp_path / place).iterdir()}
        hub.append("model", f"me/{place}", files)
        with pytest.raises(OutsideError, match=f"me/{place} {said}"):
            load_checkpoint(f"me/{place}")
    assert load_config("me/both").model_type == model.config.model_type  # which is only read
    assert not (tmp_path / "out").exists()
