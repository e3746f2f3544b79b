import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds
from transformers.cache_utils import DynamicCache, DynamicLayer, StaticCache

from hf_alpha import AlphaConfig
from hf_alpha.modeling.caches import BeamLayer, reorder

ROWS, HEADS, WIDTH = 6, 4, 8
STEPS = st.lists(st.sampled_from(["add", "reorder", "look", "drop", "select"]), max_size=12)


def equal(one, two):
    return all(
        torch.equal(a, b)
        for a, b in zip((one.keys, one.values), (two.keys, two.values), strict=True)
    )


@given(STEPS, seeds, st.booleans())
def test_beam_layer_does_what_a_dynamic_layer_does(steps, seed, filled):
    torch.manual_seed(seed)
    plain = DynamicLayer()
    if filled:
        plain.update(*torch.randn(2, ROWS, HEADS, 3, WIDTH).unbind())
    beams = BeamLayer.of(plain)
    for step in steps:
        length = plain.get_seq_length()
        assert beams.get_seq_length() == length
        if step == "add":
            rows = len(plain.keys) if length else ROWS
            new = torch.randn(2, rows, HEADS, 1, WIDTH).unbind()
            with torch.no_grad():
                found = beams.update(*new)
            for one, two in zip(found, plain.update(*new), strict=True):
                assert torch.equal(one, two) and one.is_contiguous()
        elif length:
            rows = torch.randint(len(plain.keys), (ROWS,))
            for layer in (plain, beams):
                if step == "reorder":
                    layer.reorder_cache(rows)
                elif step == "select":
                    layer.batch_select_indices(rows)
                elif step == "drop" and length > 1:
                    layer.crop(-1)
            if step == "look":
                assert equal(plain, beams)
    if plain.get_seq_length():
        assert equal(plain, beams)


def test_gradients_pass_through():
    torch.manual_seed(0)
    keys = torch.randn(ROWS, HEADS, 2, WIDTH, requires_grad=True)
    layer = BeamLayer()
    layer.update(keys, keys.detach())
    layer.reorder_cache(torch.tensor([1, 1, 0, 3, 3, 5]))
    new = torch.randn(ROWS, HEADS, 1, WIDTH)
    layer.update(new, new)[0].sum().backward()
    assert torch.equal(keys.grad[:, 0, 0, 0], torch.tensor([1.0, 2, 0, 2, 0, 1]))


def test_cleared_layer_starts_anew():
    layer = BeamLayer()
    new = torch.randn(ROWS, HEADS, 1, WIDTH)
    layer.update(new, new)
    layer.reorder_cache(torch.arange(ROWS).flip(0))
    layer.reset()
    assert layer.get_seq_length() == 0
    assert torch.equal(layer.update(new, new)[0], new)


def test_only_plain_dynamic_layers_are_replaced():
    dynamic = DynamicCache()
    new = torch.randn(ROWS, HEADS, 1, WIDTH)
    dynamic.update(new, new, 0)
    order = torch.arange(ROWS).flip(0)
    reorder(dynamic, order)
    assert isinstance(dynamic.layers[0], BeamLayer)
    assert torch.equal(dynamic.layers[0].keys, new.flip(0))
    config = AlphaConfig(num_base_tokens=9).get_text_config(decoder=True)
    static = StaticCache(config=config, max_cache_len=5)
    static.update(new, new, 0)
    kinds = [type(layer) for layer in static.layers]
    reorder(static, order)
    assert [type(layer) for layer in static.layers] == kinds
    assert torch.equal(static.layers[0].keys[:, :, :1], new.flip(0))


def test_what_one_pass_cannot_do_is_concatenated():
    plain, beams = DynamicLayer(), BeamLayer()
    old = torch.randn(ROWS, HEADS, 2, WIDTH, dtype=torch.bfloat16)
    new = torch.randn(ROWS, HEADS, 1, WIDTH)
    for layer in (plain, beams):
        layer.update(old, old)
        layer.reorder_cache(torch.arange(ROWS).flip(0))
    with torch.no_grad():
        for one, two in zip(beams.update(new, new), plain.update(new, new), strict=True):
            assert one.dtype == two.dtype and torch.equal(one, two)
        beams.reorder_cache(torch.arange(ROWS))
        with pytest.raises(RuntimeError, match=r"[Ss]izes"):
            beams.update(new[:1], new[:1])


def test_layers_elsewhere_stay_as_they_are():
    cache = DynamicCache()
    new = torch.empty(ROWS, HEADS, 1, WIDTH, device="meta")
    cache.update(new, new, 0)
    reorder(cache, torch.arange(ROWS))
    assert type(cache.layers[0]) is DynamicLayer
