"""Retrofits in training loops, with adapters, compiled and offloaded."""

import pytest
import torch
from accelerate import cpu_offload, disk_offload
from datasets import Dataset
from peft import AutoPeftModelForSeq2SeqLM, LoraConfig, get_peft_model
from promises import logits
from retrofits import BOTH_SIDES, make_retrofit, random_batch
from torch._dynamo.utils import counters
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_alpha import AlphaTrainer
from hf_alpha.modeling.symbols import first_occurrence

SETTINGS = {
    "streams": BOTH_SIDES,
    "relational": {"symbol_encoding": "relational"},
    "dual_part": {"symbol_encoding": "dual_part"},
    "canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
}
HOSTS = ("t5", "bart")
cases = pytest.mark.parametrize(
    ("host", "encoding"),
    [
        ("t5", "streams"),
        ("bart", "streams"),
        ("t5", "dual_part"),
        ("bart", "canonical"),
        ("bart", "relational"),
    ],
)
SIZES = [(7, 3), (6, 2), (5, 0)]


def samples(config, count=8):
    """A data set of tokenised rows."""
    batch = random_batch(1, config, [(6, 3)] * count)
    batch["labels"] = batch.pop("decoder_input_ids").roll(-1, 1)
    batch["labels"][:, -1] = config.eos_token_id
    symbol = config.vocabulary.is_symbol(batch["input_ids"])
    batch["stream_ids"] = first_occurrence(batch["input_ids"], symbol)
    return Dataset.from_dict({name: rows.tolist() for name, rows in batch.items()})


def train(model, rows, out, trainer=Seq2SeqTrainer, **settings):
    """The losses of a few steps."""
    settings = {"max_steps": 6, "per_device_train_batch_size": 4, **settings}
    arguments = Seq2SeqTrainingArguments(
        out, learning_rate=0.02, report_to="none", save_strategy="no", logging_steps=1,
        use_cpu=True, disable_tqdm=True, **settings,
    )  # fmt: skip
    run = trainer(model, arguments, train_dataset=rows)
    run.train()
    model.eval()
    return [entry["loss"] for entry in run.state.log_history if "loss" in entry]


@pytest.mark.parametrize(
    "trainer", [AlphaTrainer, pytest.param(Seq2SeqTrainer, marks=pytest.mark.slow)]
)
@cases
def test_trainers_tune_all_of_it(host, encoding, trainer, tmp_path):
    model = make_retrofit(host, **SETTINGS[encoding])
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    losses = train(model, samples(model.config), tmp_path, trainer)
    assert losses[-1] < 0.9 * losses[0]
    for name, weight in model.named_parameters():
        assert weight.equal(before[name]) != weight.requires_grad, name
    if encoding == "dual_part":
        assert int(model.symbol_draws.step) >= 5  # the sixth is counted by a seventh forward


@pytest.mark.parametrize("host", HOSTS)
def test_blocks_are_trained_around_a_frozen_backbone(host, tmp_path):
    model = make_retrofit(host, **BOTH_SIDES)
    model.freeze_backbone()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    losses = train(model, samples(model.config), tmp_path, AlphaTrainer)
    assert losses[-1] < losses[0]
    for name, weight in model.named_parameters():
        assert weight.equal(before[name]) == name.startswith("backbone."), name


# -- adapters -------------------------------------------------------------------------------------


ADAPTERS = {
    "attention": {"target_modules": ["q", "v", "q_proj", "v_proj"]},
    "head": {"target_modules": ["lm_head"]},
    "saved head": {"target_modules": ["q", "v"], "modules_to_save": ["lm_head"]},
}


# A head of its own: merging into one that is tied changes what is read as well.
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("host", "encoding", "where"),
    [
        ("t5", "streams", "attention"),
        ("t5", "relational", "attention"),
        ("bart", "streams", "attention"),
        ("bart", "dual_part", "attention"),
        ("t5_v1_1", "streams", "head"),
        ("bart_untied", "dual_part", "head"),
        ("t5_v1_1", "streams", "saved head"),
    ],
)
def test_an_adapter_is_trained_saved_merged_and_used(host, encoding, where, tmp_path):
    base = make_retrofit(host, **SETTINGS[encoding])
    base.save_pretrained(tmp_path / "base")
    base.name_or_path = str(tmp_path / "base")
    rows = samples(base.config)
    batch = {name: torch.tensor(rows[name]) for name in rows.column_names}
    labels = batch.pop("labels")
    config = LoraConfig(task_type="SEQ_2_SEQ_LM", r=4, **ADAPTERS[where])
    before = logits(base, {**batch, "labels": labels})
    model = get_peft_model(base, config)
    train(model, rows, tmp_path / "run")
    trained = logits(model, {**batch, "labels": labels})
    assert not torch.allclose(trained, before, atol=1e-4)
    answers = model.generate(**batch, num_beams=2, max_new_tokens=5)
    model.save_pretrained(tmp_path / "adapter")
    again = AutoPeftModelForSeq2SeqLM.from_pretrained(tmp_path / "adapter").eval()
    torch.testing.assert_close(logits(again, {**batch, "labels": labels}), trained)
    assert again.generate(**batch, num_beams=2, max_new_tokens=5).equal(answers)
    # Merged, the head sees the mean over streams; around it, the adapter saw each of them.
    merged = again.merge_and_unload()
    found = logits(merged, {**batch, "labels": labels})
    torch.testing.assert_close(found, trained, atol=1e-4, rtol=1e-4)


# -- precision, compilers, devices ----------------------------------------------------------------


@cases
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)]
)
def test_half_precision(host, encoding, dtype, tmp_path):
    """T5 has some weights, and so its states, in full precision where others have 16 bits."""
    model = make_retrofit(host, **SETTINGS[encoding])
    batch = random_batch(1, model.config, SIZES)
    expected = logits(model, batch)
    model.save_pretrained(tmp_path)
    half = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dtype=dtype).eval()
    assert half.dtype == half.get_output_embeddings().weight.dtype == dtype
    found = logits(half, batch)
    torch.testing.assert_close(found.float(), expected, atol=0.3, rtol=0.1)
    half.train()(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    assert half.generate(batch["input_ids"], max_new_tokens=4).shape[0] == len(SIZES)


@pytest.mark.parametrize("host", HOSTS)
def test_blocks_may_have_more_precision_than_their_backbone(host):
    model = make_retrofit(host, **BOTH_SIDES)
    model.freeze_backbone()
    model.backbone.to(torch.bfloat16)
    batch = random_batch(1, model.config, SIZES)
    model.train()(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    for name, weight in model.named_parameters():
        assert (weight.grad is not None) == ("aggregated" in name), name


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    ("host", "encoding"),
    [
        ("t5", "relational"),
        pytest.param("t5", "streams", marks=pytest.mark.slow),
        pytest.param("bart", "dual_part", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_compiled_models_give_the_same(host, encoding):
    model = make_retrofit(host, **SETTINGS[encoding])
    batch = random_batch(1, model.config, SIZES)
    if model.config.needs_stream_ids:
        batch["stream_ids"] = model.encode(batch["input_ids"], batch["attention_mask"]).streams.ids
    expected = logits(model, batch)
    counters.clear()
    compiled = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(logits(compiled, batch), expected, atol=1e-5, rtol=1e-5)
    assert not counters["graph_break"]


@cases
@pytest.mark.parametrize("where", ["cpu", "disk"])
def test_offloaded_models_give_the_same(where, host, encoding, tmp_path):
    model = make_retrofit(host, **SETTINGS[encoding])
    batch = random_batch(1, model.config, SIZES)
    expected = logits(model, batch)
    decoder_ids = batch.pop("decoder_input_ids")
    answers = model.generate(**batch, num_beams=2, max_new_tokens=5)
    if where == "cpu":
        cpu_offload(model, torch.device("cpu"), offload_buffers=True)
    else:
        disk_offload(model, tmp_path, torch.device("cpu"), offload_buffers=True)
    assert all(weight.is_meta for weight in model.parameters())
    found = logits(model, {**batch, "decoder_input_ids": decoder_ids})
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert model.generate(**batch, num_beams=2, max_new_tokens=5).equal(answers)


@cases
def test_a_device_map_is_taken(host, encoding, tmp_path):
    model = make_retrofit(host, **SETTINGS[encoding])
    batch = random_batch(1, model.config, SIZES)
    expected = logits(model, batch)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, device_map="cpu")
    assert logits(loaded.eval(), batch).equal(expected)
