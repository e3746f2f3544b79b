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
from safetensors.torch import load_file, save_file
from small_tokenizers import unigram
from strategies import make_model

from hf_alpha import SymbolConfig, adapter_settings, get_symbol_model
from hf_alpha.checkpoints import timed_patterns
from hf_alpha.demo.choices import page_choices
from hf_alpha.loading import load_checkpoint

IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
RULE = {"name": {"pattern": "[xyz]", "count": 5}}
TEXTS = ["alice sees x, y and z", "not x and z", "x and y"]
ATTENTION = {"gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"], "t5": ["q", "v"]}


def converted(host, encoding, hidden_size=None):
    """A model as a fresh conversion makes it, its tokenizer, and a batch with labels."""
    tokenizer = unigram(end=True)
    sizes = {"hidden_size": hidden_size} if hidden_size else {}
    bare = make_host(host, vocab_size=len(tokenizer), **IDS, **sizes)
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


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A conversion, `base`; an adapter of it as PEFT writes it, and the logits of both together."""
    place = tmp_path_factory.mktemp("adapters")
    model, tokenizer, batch = converted("llama", "relational")
    for part in (model, tokenizer):
        part.save_pretrained(place / "base")
    model.name_or_path = "base"
    settings = adapter_settings(model, tokenizer)
    lora = LoraConfig(task_type="CAUSAL_LM", target_modules=ATTENTION["llama"], **settings)
    adapted = get_peft_model(model, lora)
    trained(adapted, batch)
    adapted.eval().save_pretrained(place / "adapter")
    (place / "pairs.jsonl").write_text('{"source": "x and y", "target": "x"}\n' * 2)
    return place, batch, logits(adapted, batch)


@pytest.fixture
def place(folders, tmp_path, monkeypatch):
    """A copy of these folders, and the current one."""
    shutil.copytree(folders[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def renamed_base(adapter, base, **settings):
    """Have an adapter's folder say something else of its model."""
    file = adapter / "adapter_config.json"
    content = {**json.loads(file.read_text()), "base_model_name_or_path": base, **settings}
    file.write_text(json.dumps(content))


def test_an_adapters_folder_is_a_checkpoint(folders, place):
    """Every command takes it; merged, it is a folder like any other."""
    _, batch, expected = folders
    loaded, _ = load_checkpoint("adapter")
    torch.testing.assert_close(logits(loaded, batch), expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(logits(load_checkpoint("base")[0], batch), expected, atol=1e-3)
    assert all(weight.requires_grad for weight in loaded.parameters())
    said = hf_alpha("info", "adapter").out
    assert "adapter       LORA of rank 8 (PEFT) for base," in said
    assert "for 'base', which is merged (hf-alpha convert adapter MERGED) before" in (
        hf_alpha("convert", "adapter", "out", "--to", "relational").error
    )
    assert "is an adapter" in hf_alpha("release", "adapter").error  # whose code is its model's
    done = hf_alpha("convert", "adapter", "merged")
    assert done.out == "merged: base with the adapter adapter in its weights\n"
    dry = hf_alpha("push", "merged", "me/x", "--dry-run")  # without a network
    assert dry.out.startswith("nothing was uploaded to ") and "model.safetensors" in dry.err
    whole, _ = load_checkpoint("merged")
    torch.testing.assert_close(logits(whole, batch), expected, atol=1e-5, rtol=1e-4)
    answers = [hf_alpha("solve", "--model", x, "x and y") for x in ("adapter", "merged")]
    assert answers[0].code == 0 and answers[0].out == answers[1].out
    options = ("--data", "pairs.jsonl", "--covariance", 0)
    table = hf_alpha("evaluate", "adapter", "merged", "base", *options, "--out", "out").out
    numbers = re.findall(r"(?m)^(?:edit_distance)? +(adapter|merged) +(\S.*)$", table)
    assert dict(numbers)["adapter"] == dict(numbers)["merged"]
    assert page_choices(["adapter"], device="cpu")["adapter"].solve("x and y").answers


def test_a_shared_adapter_works_as_its_card_says(folders, place, hub):
    """Its model has a name on the Hub by then; the code of the card needs no hf_alpha."""
    error = hf_alpha("push", "adapter", "me/adapter", "--dry-run").error
    assert "'base', a folder of this machine: push that model first" in error
    assert hf_alpha("push", "base", "me/base").code == 0
    renamed_base(place / "adapter", "me/base", revision=hub.repos["model", "me/base"][-1][0])
    hub.append("model", "me/base", {"config.json": b"later, and damaged"})
    options = ("--data", "pairs.jsonl", "--covariance", 0, "--out", "out", "--card")
    assert hf_alpha("evaluate", "adapter", *options).code == 0
    dry = hf_alpha("push", "adapter", "me/adapter", "--dry-run")
    assert dry.out.startswith("nothing was uploaded to ") and "me/adapter" not in {
        name for _, name in hub.repos
    }
    assert "the card begins:\n  ---\n  base_model:" in dry.err
    assert hf_alpha("push", "adapter", "me/adapter").code == 0
    shared = hub.files("me/adapter")
    assert {*shared} >= {"adapter_config.json", "adapter_model.safetensors", "README.md"}
    assert "config.json" not in shared and "model.safetensors" not in shared
    _, batch, expected = folders
    loaded, _ = load_checkpoint("me/adapter")
    torch.testing.assert_close(logits(loaded, batch), expected, atol=1e-5, rtol=1e-4)
    card = shared["README.md"].decode()
    assert "alpha-covariance" in card.partition("Not measured: ")[2].partition("\n")[0]
    names = {"folder": "me/adapter"}
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    exec(code.replace("num_beams=1", "num_beams=1, max_new_tokens=4"), names)  # it never ends
    torch.testing.assert_close(logits(names["model"].eval(), batch), expected)


TENSORS = "adapter_model.safetensors"
SLOW = "(?:[a-z_.0-9]*)*X"
"""Takes years for long names; by the library `regex` no time, as there is no X."""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"base_model_name_or_path": "moved"}, r"for 'moved', which is not there.*no checkpoint"),
        ({"base_model_name_or_path": ""}, "names no model: write where its model lies into base_"),
        ({"base_model_name_or_path": "adapter"}, "for 'adapter', which holds an adapter itself"),
        ({"revision": "v2"}, "for 'base', revision 'v2', which is not there.*has no revisions"),
        ({"base_model_name_or_path": "gpt2"}, r"another model than gpt2, .*No modules"),
        ({"base_model_name_or_path": "wide"}, "another model than wide, .*size mismatch"),
        ({"auto_mapping": {"base_model_class": "Other"}}, "it was trained on a Other"),
        ({"peft_type": "PREFIX_TUNING"}, "of the kind PREFIX_TUNING, which does not become part"),
        *[({key: SLOW}, f"{key}: its patt") for key in ("target_modules", "exclude_modules")],
        ({"modules_to_save": [SLOW]}, "modules_to_save: its patterns take more than 0.5 seconds"),
        *[({key: {SLOW: 2}}, f"{key}: its patt") for key in ("rank_pattern", "alpha_pattern")],
        ({"layers_pattern": SLOW, "layers_to_transform": [0]}, "layers_pattern: its patterns"),
        ({"target_modules": "(q_proj"}, "target_modules: a pattern cannot be read: .*missing"),
        ({"alora_invocation_tokens": [1]}, "config.json: alora_invocation_tokens: the adapter wor"),
        ({"arrow_config": {"arrow_top_k": 1}}, "adapter_config.json: arrow_config: several adapt"),
        ({"bias": ["x"]}, r"adapter_config.json: these settings .*bias.*\(\w+Error"),
        ({"trainable_token_indices": [10**5]}, "adapter_config.json: .*trainable_token_indices"),
        ({"trainable_token_indices": "abc"}, "adapter_config.json: .*trainable_token_indices"),
        ({"layers_to_transform": {"a": 1}}, "'layers_to_transform': {'a': 1}"),
        ({"auto_mapping": "x", "target_modules": 5}, "adapter"),
        ("adapter_config.json", "is no JSON"),
        (TENSORS, f"{TENSORS} cannot be read"),
        ("lack", "is missing: it is an adapter for another model"),
        ("more", "tensor 'more' is left over: it is an adapter for another model"),
        ("nan", "holds numbers that are not finite"),
    ],
)
def test_an_adapter_has_to_fit_its_model(folders, place, change, said, monkeypatch):
    monkeypatch.setattr(timed_patterns, "LIMIT", 0.5 if "its patt" in said else 5)
    if isinstance(change, dict):
        content = dict(change)
        renamed_base(place / "adapter", content.pop("base_model_name_or_path", "base"), **content)
    elif change in ("lack", "more", "nan"):
        tensors = load_file(place / "adapter" / TENSORS)
        first = min(name for name in tensors if "lora_" in name)
        replaced = {"more": torch.ones(1)} if change == "more" else {}
        replaced |= {first: tensors[first] * torch.nan} if change == "nan" else {}
        tensors |= replaced
        save_file({k: v for k, v in tensors.items() if k != first or change != "lack"},
                  place / "adapter" / TENSORS)  # fmt: skip
    else:
        (place / "adapter" / change).write_bytes(b"damaged")
    for kind, hidden in {"gpt2": None, "wide": 32}.items():
        if change == {"base_model_name_or_path": kind}:
            model, tokenizer, _ = converted("llama" if hidden else "gpt2", "relational", hidden)
            for part in (model, tokenizer):
                part.save_pretrained(kind)
    done = hf_alpha("convert", "adapter", "out")
    assert done.code == 2 and re.search(said, done.err), done
    assert not (place / "out").exists()


def test_code_of_an_adapters_model_is_obeyed_where_the_adapter_is_trusted(place):
    """And nowhere else: it is the model's folder that names it."""
    for name in ("config.json", "tokenizer_config.json"):
        content = json.loads((place / "base" / name).read_text())
        content |= {"model_type": "own", "tokenizer_class": "Own", "auto_map": {
            "AutoConfig": "own.Config", "AutoTokenizer": [None, "own.Own"]}}  # fmt: skip
        (place / "base" / name).write_text(json.dumps(content))
    (place / "base" / "own.py").write_text("raise ValueError('it ran')\n")
    assert "base names code that would run" in hf_alpha("info", "adapter").error
    assert "it ran" in hf_alpha("info", "adapter", "--trust-remote-code").error
    assert "base names code that would run" in hf_alpha("info", "base").error
