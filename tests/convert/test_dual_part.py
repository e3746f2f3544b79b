import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import BASE, POSITIONS, make_model, random_batch, seeds

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.convert import (
    ConversionError,
    convert_checkpoint,
    convert_checkpoint_to_dual_part,
    convert_checkpoint_to_relational,
    to_dual_part,
)
from hf_alpha.convert.dual_part import prove_start
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.random_numbers import RANDOM_METHODS

PLAIN = {"normalize_embeddings": False, "normalize_features": False, "adacos": False}
TWO_CLASSES = {"symbol_classes": {"function": 2, "proposition": 3}}


def make_vanilla(seed=0, **changes):
    return make_model(seed, symbol_encoding="learned", **changes)


def unit(rows):
    return torch.nn.functional.normalize(rows, dim=-1)


@settings(max_examples=12, deadline=None)
@given(
    seed=seeds,
    positions=st.sampled_from(POSITIONS),
    method=st.sampled_from(RANDOM_METHODS),
    random_dim=st.sampled_from([0, 3, 15]),
    other=st.sampled_from([{}, PLAIN, TWO_CLASSES, {"symbol_renaming": "random"}]),
)
def test_all_weights_but_the_embedding_arrive(seed, positions, method, random_dim, other):
    vanilla = make_vanilla(seed % 5, **positions, **other)
    converted = to_dual_part(vanilla, random_dim, method, seed)
    config = converted.config
    assert config.random_dim == (random_dim or 8) and config.random_method == method
    assert (config.symbol_seed, config.symbol_encoding) == (seed, "dual_part")
    ours, theirs = dict(converted.named_parameters()), dict(vanilla.named_parameters())
    assert ours.keys() == theirs.keys()
    rest = [n for n in ours if n != "model.shared.weight"]
    assert all(torch.equal(ours[n], theirs[n]) for n in rest)
    assert torch.equal(converted.logit_scale.scale, vanilla.logit_scale.scale)
    old, new = vanilla.model.embedding_table().detach(), converted.model.embedding_table().detach()
    width = 16 - config.random_dim
    torch.testing.assert_close(unit(new[:BASE, :width]), unit(old[:BASE, :width]))
    mean = old[BASE : BASE + 2].mean(0) if "symbol_classes" in other else old[BASE:].mean(0)
    torch.testing.assert_close(unit(new[BASE, :width]), unit(mean[:width]))
    if "normalize_embeddings" in other:
        torch.testing.assert_close(new[BASE, :width], mean[:width])
    assert converted(**random_batch(seed, config, [(6, 3)])).logits.isfinite().all()


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["dual_part", "relational", "streams"])
def test_half_precision_stays(dtype, kind, tmp_path):
    """Of all conversions; they lived through it as float32, or not at all."""
    vanilla = make_vanilla(normalize_embeddings=True).to(dtype)
    vanilla.save_pretrained(tmp_path / "vanilla")
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "vanilla")
    convert = {
        "dual_part": convert_checkpoint_to_dual_part,
        "relational": convert_checkpoint_to_relational,
        "streams": lambda *folders: convert_checkpoint(*folders, "a", "b"),
    }[kind]
    converted = convert(tmp_path / "vanilla", tmp_path / "out")
    loaded, _ = load_checkpoint(tmp_path / "out")
    assert loaded.dtype == converted.dtype == dtype
    assert {weight.dtype for weight in loaded.parameters()} == {dtype}
    batch = random_batch(1, loaded.config, [(6, 3)])
    assert torch.equal(loaded(**batch).logits, converted.eval()(**batch).logits)


def test_it_can_be_trained_and_extended():
    converted = to_dual_part(make_vanilla()).train()
    batch = random_batch(1, converted.config, [(6, 3), (4, 1)])
    labels = batch.pop("decoder_input_ids")
    optimizer = torch.optim.AdamW(converted.parameters(), lr=3e-3)
    losses = []
    for _ in range(20):
        loss = converted(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    assert sum(losses[-5:]) < sum(losses[:5])
    converted.extend_symbols({"proposition": 3})
    assert converted.config.num_symbols == 8


def test_proof_notices_a_wrong_weight():
    vanilla = make_vanilla()
    converted = to_dual_part(vanilla)
    with torch.no_grad():
        converted.model.decoder.layers[1].fc2.bias[0] += 1e-3
    with pytest.raises(ConversionError, match="with the same embeddings, logits differ"):
        prove_start(vanilla, converted)
    converted = to_dual_part(vanilla)
    with torch.no_grad():
        converted.model.shared.weight[3, 0] += 1.0
    with pytest.raises(ConversionError, match="rows of base tokens differ"):
        prove_start(vanilla, converted)


def test_impossible_conversions():
    with pytest.raises(ConversionError, match="already"):
        to_dual_part(make_model())
    with pytest.raises(ConversionError, match="only 4 hypercube_vertices"):
        to_dual_part(make_vanilla(), 2)
    with pytest.raises(ConversionError, match="random_method must be one of"):
        to_dual_part(make_vanilla(), 4, "uniform")


def test_checkpoints(tmp_path):
    vanilla = make_vanilla()
    vanilla.save_pretrained(tmp_path / "vanilla")
    build_tokenizer("propositional", 5).save_pretrained(tmp_path / "vanilla")
    made = convert_checkpoint_to_dual_part(tmp_path / "vanilla", tmp_path / "out", 6)
    model, tokenizer = load_checkpoint(tmp_path / "out")
    assert model.config.random_dim == 6 and tokenizer.vocab_size == 15
    prove_start(vanilla, model)
    assert torch.equal(model.model.symbol_draws.random_parts, made.model.symbol_draws.random_parts)
