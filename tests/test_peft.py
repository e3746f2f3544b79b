"""Adapters of PEFT on the models: trained by Trainer, saved, loaded, merged, and generating."""

import itertools

import pytest
import torch
from folnets import folnet_batch, make_folnet
from geometrics import FORMS, small_model
from geometrics import batch as geometric_batch
from peft import (
    AutoPeftModelForSeq2SeqLM,
    IA3Config,
    LoraConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)
from strategies import BASE, make_model, random_batch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_alpha.modeling.modeling_geometric import GeometricForTokenClassification

PROJECTIONS = ["q_proj", "v_proj"]
LORA = {"task_type": "SEQ_2_SEQ_LM", "r": 4}
ADAPTERS = {
    "lora": LoraConfig(**LORA, target_modules=PROJECTIONS),
    "dora": LoraConfig(**LORA, target_modules=PROJECTIONS, use_dora=True),
    "all-linear": LoraConfig(**LORA, target_modules="all-linear"),
    "embedding": LoraConfig(**LORA, target_modules=["shared", *PROJECTIONS]),
    "saved embedding": LoraConfig(**LORA, target_modules=PROJECTIONS, modules_to_save=["shared"]),
    "trained tokens": LoraConfig(
        **LORA, target_modules=PROJECTIONS, trainable_token_indices=[3, BASE]
    ),
    "ia3": IA3Config(
        task_type="SEQ_2_SEQ_LM", target_modules=["k_proj", "v_proj"], feedforward_modules=[]
    ),
}
ENCODINGS = ["streams", "learned", "dual_part", "relational"]


def samples(config, count=8):
    """Rows as tensors of their own, as Trainer's data have them."""
    batch = random_batch(1, config, [(6, 3)] * count)
    batch["labels"] = batch["decoder_input_ids"].roll(-1, 1)
    del batch["decoder_input_ids"]
    return [{name: rows[i] for name, rows in batch.items()} for i in range(count)]


def train(model, rows, out):
    arguments = Seq2SeqTrainingArguments(
        out, max_steps=5, per_device_train_batch_size=4, learning_rate=0.05, report_to="none",
        save_strategy="no", logging_steps=1, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    Seq2SeqTrainer(model, arguments, train_dataset=rows).train()
    return model.eval()


def generate(model, batch):
    return model.generate(**batch, num_beams=2, max_new_tokens=6)


def cases():
    """All adapters with `streams`, and those that differ most with the other encodings."""
    for adapter, encoding in itertools.product(ADAPTERS, ENCODINGS):
        quick = encoding == "streams" or adapter in ("lora", "embedding")
        yield pytest.param(adapter, encoding, marks=[] if quick else pytest.mark.slow)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("adapter", "encoding"), list(cases()))
def test_an_adapter_is_trained_saved_merged_and_used(adapter, encoding, tmp_path):
    base = make_model(symbol_encoding=encoding)
    base.save_pretrained(tmp_path / "base")
    base.name_or_path = str(tmp_path / "base")
    rows = samples(base.config)
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    with torch.no_grad():
        before = base(**batch).logits
    model = train(get_peft_model(base, ADAPTERS[adapter]), rows, tmp_path / "run")
    if encoding == "dual_part":
        assert int(base.model.symbol_draws.step) >= 4  # the fifth is counted by a sixth forward
    with torch.no_grad():
        trained = model(**batch).logits
    assert not torch.allclose(trained, before, atol=1e-4)
    model.save_pretrained(tmp_path / "adapter")
    labels = batch.pop("labels")
    answers = generate(model, batch)
    again = AutoPeftModelForSeq2SeqLM.from_pretrained(tmp_path / "adapter").eval()
    assert type(again) is not PeftModel
    with torch.no_grad():
        torch.testing.assert_close(again(**batch, labels=labels).logits, trained)
        assert generate(again, batch).equal(answers)
        merged = again.merge_and_unload()
        torch.testing.assert_close(
            merged(**batch, labels=labels).logits, trained, atol=1e-4, rtol=1e-4
        )
    assert merged.state_dict().keys() == make_model(symbol_encoding=encoding).state_dict().keys()


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [(PromptTuningConfig, "learned"), *((PrefixTuningConfig, encoding) for encoding in ENCODINGS)],
)
def test_virtual_tokens_are_refused(kind, encoding):
    """As prompts for `streams`, PEFT itself finds no embedding with a row for each token."""
    virtual = kind(task_type="SEQ_2_SEQ_LM", num_virtual_tokens=3)
    base = make_model(symbol_encoding=encoding)
    rows = samples(base.config, 2)
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    with pytest.raises(ValueError, match=r"(prompt|prefix) tuning"):
        get_peft_model(base, virtual)(**batch)


def test_the_memory_of_symbols_can_be_trained_beside_an_adapter():
    config = LoraConfig(**LORA, target_modules=PROJECTIONS, modules_to_save=["symbol_memory"])
    model = get_peft_model(make_model(symbol_encoding="relational"), config).train()
    batch = random_batch(1, model.config, [(6, 3), (5, 2)])
    model(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    memory = model.base_model.model.model.symbol_memory.modules_to_save["default"]
    assert all(weight.grad is not None for weight in memory.parameters())


LOGIC = [
    "premise", "kernel", "output", "source_premise", "source_kernel", "fc1", "fc2", "skip",
    "shared",
]  # fmt: skip


@pytest.mark.parametrize("auto_class", ["AutoModelForSeq2SeqLM", "AutoModelForMaskedLM"])
def test_adapters_work_wherever_operators_read_a_weight_themselves(auto_class):
    """Gradients reach each adapter of a weight that has one; merged, all give the same."""
    base = make_folnet(auto_class, symbol_encoding="relational")
    batch = folnet_batch(1, base.config, [(6, 3), (4, 2)])
    ids = batch["decoder_input_ids" if base.config.is_encoder_decoder else "input_ids"]
    batch["labels"] = ids.masked_fill(ids == base.config.pad_token_id, -100)
    base(**batch).loss.backward()
    trained = {name for name, weight in base.named_parameters() if weight.grad is not None}
    torch.manual_seed(0)
    lora = LoraConfig(r=2, target_modules=LOGIC, init_lora_weights=False)
    model = get_peft_model(base, lora).eval()
    outputs = model(**batch)
    outputs.loss.backward()
    adapters = [(name, x) for name, x in model.named_parameters() if "lora_" in name]
    for name, adapter in adapters:
        weight = name.removeprefix("base_model.model.").split(".lora_")[0] + ".weight"
        assert (adapter.grad is not None and adapter.grad.any()) == (weight in trained), name
    with torch.no_grad():
        merged = model.merge_and_unload()(**batch).logits
    torch.testing.assert_close(merged, outputs.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("form", ["gated graph", "rotary"])
def test_geometric_encoders_take_adapters(form, tmp_path):
    """LoRA beside a trained head; saved and loaded, the outputs are the same."""
    settings = FORMS[form]
    base = small_model(GeometricForTokenClassification, **settings)
    inputs = geometric_batch()
    labels = inputs["input_ids"] % 2
    config = LoraConfig(task_type="TOKEN_CLS", target_modules=["query", "value"])
    adapted = get_peft_model(base, config)
    loss = adapted(**inputs, labels=labels).loss
    loss.backward()
    optimizer = torch.optim.SGD(adapted.parameters(), 0.1)
    optimizer.step()
    assert adapted(**inputs, labels=labels).loss < loss
    adapted.save_pretrained(tmp_path)
    again = small_model(GeometricForTokenClassification, **settings)
    loaded = PeftModel.from_pretrained(again, tmp_path)
    torch.testing.assert_close(loaded(**inputs).logits, adapted(**inputs).logits)
