"""The papers' numbers, the reference, and what is special to this model.

What it promises as every family does is in tests/families.
"""

from pathlib import Path

import pytest
import torch
from reference.check import check_reference
from reference.streams import ReferenceModel
from safetensors.torch import load_file, save_file
from strategies import BASE, POSITIONS, SWITCHES, make_model, random_batch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache, GenerationConfig
from transformers.testing_utils import CaptureLogger
from transformers.utils import logging

from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.modeling import modeling_alpha
from hf_alpha.modeling.relations import MadeOnce
from hf_alpha.modeling.symbols import first_occurrence

TWO_CLASSES = {"symbol_classes": {"proposition": 3, "function": 2}}
ENCODINGS = (
    {},
    {"symbol_encoding": "relational"},
    {"symbol_encoding": "dual_part", "symbol_renaming": "first_occurrence"},
    {"symbol_encoding": "learned", "symbol_renaming": "random"},
)
listing = pytest.mark.parametrize("encoding", ["streams", "relational"])


def logits(model, batch):
    with torch.no_grad():
        return model(**batch).logits


# Numbers of the papers -------------------------------------------------------------------------


def table_6() -> list[tuple[str, list[str], int]]:
    """Rows of Table 6: task, components, parameters."""
    text = (Path(__file__).parents[1] / "reference" / "table_6.txt").read_text()
    rows = []
    for line in text.splitlines():
        task, components, parameters = (part.strip() for part in line.split("|"))
        rows.append((task, components.split(), int(parameters.replace(",", ""))))
    assert len(rows) == 38
    return rows


@pytest.mark.parametrize(("task", "components", "parameters"), table_6())
def test_parameter_counts_of_table_6(task, components, parameters):
    size = (
        {"d_model": 96, "layers": 6, "heads": 6, "ffn": 768, "num_base_tokens": 10}
        if task == "propositional"
        else {"d_model": 64, "layers": 8, "heads": 4, "ffn": 1024, "num_base_tokens": 13}
    )
    sides = {
        f"{side}_{name}": size[short]
        for side in ("encoder", "decoder")
        for name, short in (("layers", "layers"), ("attention_heads", "heads"), ("ffn_dim", "ffn"))
    }
    config = AlphaConfig(
        num_base_tokens=size["num_base_tokens"],
        d_model=size["d_model"],
        **sides,
        encoder_per_stream_attention="EP" in components,
        encoder_aggregated_attention="EA" in components,
        decoder_per_stream_attention="DP" in components,
        decoder_aggregated_attention="DA" in components,
        cross_attention=[
            m for m, c in (("per_stream", "CP"), ("aggregated", "CA")) if c in components
        ],
    )
    with torch.device("meta"):
        model = AlphaForConditionalGeneration(config)
    assert model.num_parameters() == parameters


# Reference -------------------------------------------------------------------------------------


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(s) or "default")
def test_equals_reference(switches):
    """Of two classes by turns, which share all that is switched."""
    classes = TWO_CLASSES if SWITCHES.index(switches) % 2 else {}
    check_reference(make_model(**switches, **classes), ReferenceModel)


@pytest.mark.slow
@pytest.mark.parametrize(
    "positions", POSITIONS, ids=lambda p: "-".join(map(str, p.values())) or "tree, rope"
)
def test_equals_reference_for_all_positions(positions):
    check_reference(make_model(**positions), ReferenceModel)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "other",
    [
        {"normalize_embeddings": False, "normalize_features": False, "adacos": False},
        {"activation_function": "gelu", "scale_embedding": True},
        {"normalize_features": False, "adacos": False},
    ],
    ids=str,
)
def test_equals_reference_for_other_settings(other):
    check_reference(make_model(**other), ReferenceModel)


# What a Transformers user does -----------------------------------------------------------------


@listing
def test_sampling_scores_and_returned_states(encoding):
    model = make_model(symbol_encoding=encoding)
    model.set_attn_implementation("eager")
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    del batch["decoder_input_ids"]
    out = model.generate(
        **batch,
        do_sample=True,
        num_return_sequences=2,
        max_new_tokens=4,
        output_scores=True,
        output_attentions=True,
        output_hidden_states=True,
        return_dict_in_generate=True,
    )
    assert len(out.sequences) == 4
    symbols = first_occurrence(batch["input_ids"], batch["input_ids"] >= BASE).shape[1]
    heads = model.config.encoder_attention_heads
    assert symbols > 1
    s = symbols if encoding == "streams" else 1
    assert out.encoder_attentions[0].shape == (2, s * heads, 6, 6)
    assert out.encoder_hidden_states[0].shape == (2, 6, s * model.config.d_model)
    assert out.cross_attentions[0][0].shape == (4, s * heads, 1, 6)
    scores = model.compute_transition_scores(out.sequences, out.scores)
    assert scores.shape == (4, out.sequences.shape[1] - 1)
    # Padding and start are never predicted while a sequence is open.
    first = out.sequences[:, 1]
    assert not torch.isin(first, torch.tensor([0, 1])).any()


@listing
def test_beams_share_what_the_encoder_found(encoding):
    """Rows of a batch may be beams of fewer inputs; they get what copies of the inputs give."""
    model = make_model(symbol_encoding=encoding, cross_attention=["per_stream", "aggregated"])
    batch = random_batch(2, model.config, [(6, 3), (4, 0)])
    ids = torch.tensor([[1, 4, 5], [1, 6, 4], [1, 3, 3], [1, 7, 7]])
    encoded = model.get_encoder()(**batch)
    mask = batch["attention_mask"]
    found = model(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=ids).logits
    copies = {name: value.repeat_interleave(2, 0) for name, value in batch.items()}
    copies["decoder_input_ids"] = ids
    torch.testing.assert_close(found, logits(model, copies), atol=1e-5, rtol=1e-5)


@listing
def test_eager_and_sdpa_agree(encoding):
    model = make_model(symbol_encoding=encoding, cross_attention=["per_stream", "aggregated"])
    batch = random_batch(2, model.config, [(6, 3), (4, 0)])
    one = logits(model, batch)
    model.set_attn_implementation("eager")
    torch.testing.assert_close(logits(model, batch), one, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@listing
def test_half_precision_runs_and_is_close(encoding, dtype):
    model = make_model(symbol_encoding=encoding)
    batch = random_batch(2, model.config, [(6, 3), (4, 0)])
    full = logits(model, batch)
    half = logits(model.to(dtype), batch)
    assert half.dtype == dtype and half.isfinite().all()
    usable = full > -1e3
    assert (half.float() - full)[usable].abs().mean() < 0.1
    model.train()(**labelled_batch(model, [(6, 3), (4, 0)])).loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


@listing
def test_training_with_autocast(encoding):
    """In bfloat16 as Trainer's `bf16`; the weights stay as they are."""
    model = make_model(symbol_encoding=encoding, dropout=0.0).train()
    batch = labelled_batch(model, [(6, 3), (4, 0)])
    expected = model(**batch).loss
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(**batch).loss
    torch.testing.assert_close(loss, expected, atol=0.05, rtol=0.05)
    loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def labelled_batch(model, sizes, seed=2):
    batch = random_batch(seed, model.config, sizes, target_length=5)
    labels = batch.pop("decoder_input_ids")[:, 1:].clone()
    labels[::2, -1] = -100
    return {**batch, "labels": labels}


@listing
def test_smoothing_spreads_over_usable_columns_only(encoding):
    model = make_model(symbol_encoding=encoding, label_smoothing=0.3)
    batch = labelled_batch(model, [(6, 2)])
    loss = model(**batch).loss
    out = model(**batch).logits[0].double()
    usable = out[0] > -1e3
    log_probs = out[:, usable].log_softmax(-1)
    columns = torch.nonzero(usable)[:, 0].tolist()
    expected, count = 0.0, 0
    for position, label in enumerate(batch["labels"][0].tolist()):
        if label != -100:
            expected -= 0.7 * log_probs[position, columns.index(label)]
            expected -= 0.3 * log_probs[position].mean()
            count += 1
    assert loss.isfinite()
    assert float(loss.detach()) == pytest.approx(float((expected / count).detach()), rel=1e-5)


@pytest.mark.parametrize(
    "settings",
    [pytest.param(x, marks=[pytest.mark.slow][: i > 0]) for i, x in enumerate(ENCODINGS)],
)
def test_compiled_model_agrees(settings, fresh_compiler):
    model = make_model(**settings, encoder_layers=1, decoder_layers=1)
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    ids = batch["input_ids"]
    batch["stream_ids"] = first_occurrence(ids, ids >= BASE)
    expected = logits(model, batch)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        out = compiled(**batch, use_cache=False).logits
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_a_compiled_model_finds_symbols_itself(fresh_compiler):
    """The graph breaks there, and all else goes on."""
    model = make_model(encoder_layers=1, decoder_layers=1)
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    with torch.no_grad():
        out = torch.compile(model, backend="eager")(**batch).logits
    torch.testing.assert_close(out, logits(model, batch), atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@listing
def test_compiled_generation_agrees(encoding, fresh_compiler):
    """With a static cache, as `generate` compiles on an accelerator."""
    model = make_model(symbol_encoding=encoding)
    batch = random_batch(2, model.config, [(6, 3), (4, 0), (5, 2)])
    del batch["decoder_input_ids"]
    ids, settings = batch["input_ids"], {"num_beams": 3, "max_new_tokens": 6}
    expected = model.generate(**batch, **settings)
    model.forward = torch.compile(model.forward, backend="aot_eager")
    stream_ids = first_occurrence(ids, ids >= BASE)
    settings |= {"cache_implementation": "static", "disable_compile": True}
    assert model.generate(**batch, stream_ids=stream_ids, **settings).equal(expected)


@pytest.mark.parametrize("encoding", ["streams", "learned", "relational"])
@pytest.mark.parametrize("side", ["encoder_layers", "decoder_layers"])
def test_stacks_without_layers(side, encoding):
    model = make_model(symbol_encoding=encoding, **{side: 0})
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    assert logits(model, batch).isfinite().all()
    prompt = {name: value for name, value in batch.items() if not name.startswith("decoder")}
    search = {"num_beams": 2, "max_new_tokens": 4}
    plain = model.generate(**prompt, **search, use_cache=False)
    assert torch.equal(model.generate(**prompt, **search), plain)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("encoding", ["streams", "learned", "dual_part", "relational"])
def test_what_a_generation_keeps_is_made_once_and_changes_nothing(encoding, beams, monkeypatch):
    """Bit for bit; weights may change before the next one, of the same output of an encoder."""
    monkeypatch.setattr(modeling_alpha, "TABLE", 4)
    model = make_model(symbol_encoding=encoding)
    batch = random_batch(2, model.config, [(6, 3), (4, 0), (5, 2)])
    start = batch.pop("decoder_input_ids")
    encoded = model.get_encoder()(**batch)
    search = {"num_beams": beams, "max_new_tokens": 6, "min_new_tokens": 6}
    search |= {"output_logits": True, "return_dict_in_generate": True}
    read = []
    model.model.shared.register_forward_hook(lambda *x: read.append(x))
    for changed in (False, True):
        if changed:
            model.model.shared.weight.data.neg_()
        given = {**batch, "encoder_outputs": encoded, "decoder_input_ids": start, **search}
        read.clear()
        kept = model.generate(**given)
        assert len(read) == 1 and encoded.streams.kept is None
        with monkeypatch.context() as patch:
            patch.setattr(modeling_alpha, "MadeOnce", lambda of_generation: None)
            anew = model.generate(**given)
        assert torch.equal(kept.sequences, anew.sequences)
        assert torch.equal(torch.stack(kept.logits), torch.stack(anew.logits))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("encoding", ["streams", "learned", "dual_part", "relational"])
def test_a_training_step_makes_the_table_once_and_learns_the_same(encoding, frozen, monkeypatch):
    """A table that was made without gradients, for an encoder that is frozen, is not the head's."""
    model = make_model(symbol_encoding=encoding, dropout=0.0).train()
    batch = labelled_batch(model, [(5, 2), (3, 1)])
    if frozen:
        encoder = model.model.encoder
        monkeypatch.setattr(encoder, "forward", torch.no_grad()(encoder.forward))
    read, steps = [], []
    model.model.shared.register_forward_hook(lambda *x: read.append(x))
    for make in (MadeOnce, lambda: None):
        monkeypatch.setattr(modeling_alpha, "MadeOnce", make)
        model.zero_grad()
        read.clear()
        loss = model(**batch).loss
        loss.backward()
        steps.append((len(read), loss.detach(), model.model.shared.weight.grad))
    (reads, kept, gradient), (more, anew, expected) = steps
    assert reads == 1 + frozen < more
    assert torch.equal(kept, anew)
    torch.testing.assert_close(gradient, expected)


def test_linear_layers_can_be_watched_and_replaced():
    model = make_model().eval()
    batch = random_batch(0, model.config, [(40, 5)] * 16)
    expected = logits(model, batch)
    layer = model.model.encoder.layers[0]
    seen = []
    hook = layer.fc1.register_forward_hook(lambda module, inputs, out: seen.append(out))
    assert torch.equal(logits(model, batch), expected)
    hook.remove()
    assert all(out.min() < 0 for out in seen)  # before the activation, and left alone

    class Wrapped(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)

    layer.fc1 = Wrapped(layer.fc1)
    assert torch.equal(logits(model, batch), expected)


@pytest.mark.parametrize("rows", [1, 16])
def test_what_is_not_a_number_stays_so(rows):
    model = make_model().eval()
    batch = random_batch(0, model.config, [(40, 5)] * rows)
    torch.nn.init.constant_(model.model.decoder.layers[-1].fc1.weight, torch.nan)
    assert logits(model, batch).isnan().any()


def test_wrong_inputs_are_named():
    model = make_model()
    batch = random_batch(2, model.config, [(6, 3)])
    with pytest.raises(ValueError, match="inputs_embeds is not supported"):
        model(**batch, inputs_embeds=torch.zeros(1, 6, 16))
    with pytest.raises(ValueError, match="tree_paths"):
        model(**{**batch, "tree_paths": None})
    with pytest.raises(ValueError, match="EncoderDecoderCache"):
        model(**batch, past_key_values=DynamicCache())
    with pytest.raises(ValueError, match=r"^decoder_input_ids are \(1, 0\), without a token"):
        model(**{**batch, "decoder_input_ids": batch["decoder_input_ids"][:, :0]})
    with pytest.raises(ValueError, match=r"^labels are \(4,\): give \(samples, length\)"):
        model(**{**batch, "decoder_input_ids": None}, labels=torch.arange(4))
    batch["input_ids"][0, 0] = model.config.vocab_size
    with pytest.raises(ValueError, match=r"token id 15 is outside.*extend_symbols"):
        model(**batch)


def test_inference_tensors_can_be_saved(tmp_path):
    with torch.inference_mode():
        model = make_model().half()
    model.save_pretrained(tmp_path)
    loaded = AlphaForConditionalGeneration.from_pretrained(tmp_path, dtype="auto").state_dict()
    kept = model.state_dict()
    assert loaded.keys() == kept.keys()
    for name, tensor in kept.items():
        assert loaded[name].dtype == tensor.dtype and torch.equal(loaded[name], tensor), name


@pytest.mark.parametrize("search", [{"do_sample": True}, {"num_beams": 2}])
@listing
def test_a_returned_cache_can_be_gone_on_from(encoding, search):
    """It keeps the source once per input; the inputs may be given once for each answer."""
    model = make_model(symbol_encoding=encoding, adacos=False)
    batch = random_batch(2, model.config, [(6, 3), (4, 2), (5, 0)])
    del batch["decoder_input_ids"]
    fixed = {"min_new_tokens": 4, "max_new_tokens": 4, "num_return_sequences": 2}
    out = model.generate(**batch, **search, **fixed, return_dict_in_generate=True)
    copies = {name: value.repeat_interleave(2, 0) for name, value in batch.items()}
    # The mask tells `generate` that these ids are all tokens, and not only new ones.
    inputs = {
        **copies,
        "decoder_input_ids": out.sequences,
        "decoder_attention_mask": torch.ones_like(out.sequences),
        "max_new_tokens": 3,
    }
    if "do_sample" in search:
        fresh = model.generate(**inputs)
        assert torch.equal(fresh, model.generate(**inputs, past_key_values=out.past_key_values))
    else:  # the cache is that of all beams in their last order, not of the sorted answers
        assert len(model.generate(**inputs, past_key_values=out.past_key_values)) == 6
    plain = model(**copies, decoder_input_ids=out.sequences)
    plain.past_key_values.batch_repeat_interleave(2)
    twice = torch.cat((out.sequences, out.sequences[:, -1:]), 1).repeat_interleave(2, 0)
    again = model(
        **copies, decoder_input_ids=twice[:, -1:], past_key_values=plain.past_key_values
    ).logits
    whole = model(**copies, decoder_input_ids=twice).logits
    torch.testing.assert_close(again[:, -1], whole[:, -1], atol=1e-5, rtol=1e-5)


def test_rows_that_do_not_belong_together_are_refused():
    model = make_model()
    batch = random_batch(2, model.config, [(6, 3), (4, 2), (5, 0)])
    del batch["decoder_input_ids"]
    for rows in (1, 2, 4):
        with pytest.raises(ValueError, match=f"{rows} rows for 3 inputs"):
            model(**batch, decoder_input_ids=torch.ones(rows, 2, dtype=torch.long))
    with pytest.raises(ValueError, match="labels has 6 rows for 3 inputs"):
        model(**batch, labels=torch.full((6, 2), 4))
    with pytest.raises(ValueError, match="1 rows for 3 inputs"):
        model.generate(**batch, decoder_input_ids=torch.tensor([[1, 4]]), num_beams=3)


# What is returned, loaded and said ---------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["streams", "learned", "relational"])
def test_gradients_pass_through_what_is_returned(encoding):
    model = make_model(symbol_encoding=encoding)
    model.set_attn_implementation("eager")
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    out = model(**batch, output_hidden_states=True, output_attentions=True, use_cache=False)
    states = [*out.encoder_hidden_states, *out.decoder_hidden_states]
    weights = [*out.encoder_attentions, *out.decoder_attentions, *out.cross_attentions]
    for tensor in (*states, *weights):
        tensor.retain_grad()
    out.logits[..., :BASE].square().sum().backward()
    assert all(tensor.grad.abs().sum() > 0 for tensor in (*states, *weights))
    plain = model(**batch).logits
    torch.testing.assert_close(out.logits, plain)


def test_a_checkpoint_without_its_embedding_says_so(tmp_path):
    model = make_model()
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert not [name for name in tensors if "embed_tokens" in name]
    del tensors["model.shared.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    loaded, report = AlphaForConditionalGeneration.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert report["missing_keys"] == {"model.shared.weight"}
    assert not any(weight.is_meta for weight in loaded.parameters())


@pytest.mark.parametrize("how", [{"max_new_tokens": 4}, {"max_length": 5}, "config", {}])
def test_generation_warns_of_no_limit_that_the_caller_did_not_set(how):
    model = make_model()
    model.generation_config.eos_token_id = None
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    del batch["decoder_input_ids"]
    if how == "config":
        how = {"generation_config": GenerationConfig(max_new_tokens=4, pad_token_id=0)}
    with CaptureLogger(logging.get_logger("transformers.generation.utils")) as log:
        out = model.generate(**batch, **how)
    assert not log.out and out.shape[1] == (5 if how else 129)
    assert model.generation_config.max_length == 129


def test_chunks_of_a_prompt_are_for_decoders_alone():
    model = make_model()
    batch = random_batch(2, model.config, [(6, 3), (4, 2)])
    del batch["decoder_input_ids"]
    kept = {"max_new_tokens": 4, "return_dict_in_generate": True, "output_logits": True}
    one, two = (
        model.generate(**batch, **kept),
        model.generate(**batch, **kept, prefill_chunk_size=2),
    )
    assert one.sequences.equal(two.sequences)
    for x, y in zip(one.logits, two.logits, strict=True):
        assert x.equal(y)


class OperatorCalls(TorchDispatchMode):
    """Counts what PyTorch is called for: of small models, most of the time goes there."""

    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("encoding", "most"), [("learned", 305), ("relational", 452)])
def test_a_new_token_takes_few_operator_calls(encoding, most):
    model = make_model(symbol_encoding=encoding)
    batch = random_batch(2, model.config, [(6, 3), (5, 2)])
    inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "tree_paths")}
    numbers = []
    for tokens in (4, 5):
        with OperatorCalls() as calls:
            model.generate(**inputs, min_new_tokens=tokens, max_new_tokens=tokens)
        numbers.append(calls.number)
    assert numbers[1] - numbers[0] <= most
