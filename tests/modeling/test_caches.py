import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds
from transformers.cache_utils import DynamicCache, DynamicLayer, StaticCache

from hf_alpha import AlphaConfig
from hf_alpha.modeling.caches import SMALL, BeamLayer, reorder

ROWS, HEADS, WIDTH = 6, 4, 8
LARGE = SMALL // (ROWS * HEADS)  # wide enough for one pass
STEPS = st.lists(st.sampled_from(["add", "reorder", "look", "drop", "select"]), max_size=12)


def equal(one, two):
    return all(
        torch.equal(a, b)
        for a, b in zip((one.keys, one.values), (two.keys, two.values), strict=True)
    )


@settings(deadline=None)
@given(STEPS, seeds, st.booleans(), st.sampled_from([WIDTH, LARGE]))
def test_beam_layer_does_what_a_dynamic_layer_does(steps, seed, filled, width):
    torch.manual_seed(seed)
    plain = DynamicLayer()
    if filled:
        plain.update(*torch.randn(2, ROWS, HEADS, 3, width).unbind())
    beams = BeamLayer.of(plain)
    for step in steps:
        length = plain.get_seq_length()
        assert beams.get_seq_length() == length
        if step == "add":
            rows = len(plain.keys) if length else ROWS
            new = torch.randn(2, rows, HEADS, 1, width).unbind()
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
