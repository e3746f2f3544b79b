"""Accelerate's offloading: weights that are only there while a module's `forward` runs."""

import pytest
import torch
from accelerate import cpu_offload, disk_offload
from families.test_alpha_decoder import make_decoder
from folnets import folnet_batch, make_folnet
from geometrics import FORMS, batch, small_model
from retrofits import make_retrofit
from strategies import make_model, random_batch

# FOLNet asks a layer that is hooked for its matrix, and gets it up to rounding.
MODELS = {"alpha": (make_model, random_batch, 0.0), "folnet": (make_folnet, folnet_batch, 1e-4)}


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("encoding", ["streams", "learned", "dual_part", "relational"])
@pytest.mark.parametrize("where", ["cpu", "disk"])
@pytest.mark.parametrize("model_type", MODELS)
def test_offloaded_models_give_the_same(model_type, where, encoding, tmp_path):
    make, make_batch, atol = MODELS[model_type]
    model = make(symbol_encoding=encoding)
    batch = make_batch(1, model.config, [(6, 3), (4, 2)])
    decoder_ids = batch.pop("decoder_input_ids")
    with torch.no_grad():
        logits = model(**batch, decoder_input_ids=decoder_ids).logits
    answers = model.generate(**batch, num_beams=2, max_new_tokens=5)
    if where == "cpu":
        cpu_offload(model, torch.device("cpu"), offload_buffers=True)
    else:
        disk_offload(model, tmp_path, torch.device("cpu"), offload_buffers=True)
    assert all(weight.is_meta for weight in model.parameters())
    with torch.no_grad():
        found = model(**batch, decoder_input_ids=decoder_ids).logits
    torch.testing.assert_close(found, logits, atol=atol, rtol=atol)
    assert model.generate(**batch, num_beams=2, max_new_tokens=5).equal(answers)


NEW = {"symbol_encoding": "relational", "new_symbols": True}


@pytest.mark.parametrize("kind", ["alpha", "alpha alone", "t5", "llama"])
def test_offloaded_models_write_the_same_new_symbols(kind):
    """Parts of `relational` that are no layers read their own weights."""
    model = {
        "alpha": lambda: make_model(**NEW, adacos=False),
        "alpha alone": lambda: make_decoder(**NEW),
    }.get(kind, lambda: make_retrofit(kind, **NEW))()
    inputs = {"input_ids": torch.tensor([[11, 3, 11, 12], [12, 4, 10, 10]])}
    inputs |= {"tree_paths": torch.arange(1, 9).view(2, 4)} if kind == "alpha" else {}
    answers = model.generate(**inputs, max_new_tokens=5)
    cpu_offload(model, torch.device("cpu"), offload_buffers=True)
    assert model.generate(**inputs, max_new_tokens=5).equal(answers)


def test_offloaded_heads_give_the_same():
    model = make_folnet("AutoModelForMaskedLM", symbol_encoding="relational")
    batch = folnet_batch(1, model.config, [(6, 3), (4, 2)])
    with torch.no_grad():
        logits = model(**batch).logits
        cpu_offload(model, torch.device("cpu"), offload_buffers=True)
        torch.testing.assert_close(model(**batch).logits, logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("form", ["gated graph", "rotary"])
def test_offloaded_geometric_encoders_give_the_same(form, tmp_path):
    model, inputs = small_model(**FORMS[form]), batch()
    with torch.no_grad():
        logits = model(**inputs).logits
        disk_offload(model, tmp_path, torch.device("cpu"), offload_buffers=True)
        torch.testing.assert_close(model(**inputs).logits, logits)
