"""Many tokens of which only later ones are hidden: as with a mask, and without one."""

from functools import partial

import pytest
import torch
from families.test_alpha_decoder import BASE, NEW, make_decoder
from strategies import make_model
from torch.utils._python_dispatch import TorchDispatchMode

STREAMS = {"symbol_encoding": "streams", "decoder_aggregated_attention": True}
MODELS = {
    "learned": partial(make_decoder, symbol_encoding="learned"),
    "relational": partial(make_decoder, symbol_encoding="relational"),
    "new symbols": partial(make_decoder, **NEW),
    "streams": partial(make_decoder, **STREAMS),
    "with a source": partial(make_model, symbol_encoding="relational", encoder_position="rope"),
    "streams with a source": partial(make_model, encoder_position="rope", **STREAMS),
}


def read(model, ids, mask, **options):
    """The output of a decoder for a text, behind a source that is its beginning if it has one."""
    if not model.config.is_encoder_decoder:
        return model(ids, attention_mask=mask, **options)
    source = {"input_ids": ids[:, :9], "attention_mask": torch.ones_like(ids[:, :9])}
    return model(**source, decoder_input_ids=ids, decoder_attention_mask=mask, **options)


def gradients_of(model, logits, shown):
    """Gradients of all weights, of some number that depends on all logits of tokens."""
    names, weights = zip(*model.named_parameters(), strict=True)
    loss = logits[shown].clamp(min=-20).sin().sum()
    found = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("padding", [slice(0), slice(93, None), slice(17)])
def test_equals_a_mask_of_all_pairs(name, implementation, padding):
    model = MODELS[name](attn_implementation=implementation)
    ids = torch.randint(3, BASE + 5, (2, 110), generator=torch.Generator().manual_seed(0))
    ids[1, padding] = 0
    shown = ids > 0
    written_out = shown[:, None, None] & torch.ones(110, 110, dtype=torch.bool).tril()
    given = [read(model, ids, mask).logits for mask in (shown.long(), written_out)]
    torch.testing.assert_close(given[0][shown], given[1][shown], atol=2e-5, rtol=1e-4)
    found, expected = (gradients_of(model, logits, shown) for logits in given)
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_later_tokens_are_zero(name):
    model, ids = MODELS[name](), torch.randint(3, BASE, (1, 100))
    outputs = read(model, ids, None, output_attentions=True)
    for weights in getattr(outputs, "attentions", None) or outputs.decoder_attentions:
        assert weights.shape[-2:] == (100, 100)
        assert not weights.triu(1).any() and bool(weights[..., -1, 0].all())


def test_a_prefix_sees_what_is_later_in_it():
    model, ids = make_decoder(**NEW, prefix_lm=True), torch.randint(3, BASE, (1, 100))
    prefix_mask = torch.ones_like(ids[:, :50])
    other = ids.clone()
    other[0, 49:51] = BASE + 2
    one, two = (model(x, prefix_mask=prefix_mask).logits[0] for x in (ids, other))
    assert bool((one != two)[:49].any(-1).all())
    other[0, 49] = ids[0, 49]
    assert torch.equal(one[:50], model(other, prefix_mask=prefix_mask).logits[0, :50])


class LargestTensor(TorchDispatchMode):
    """How many numbers the largest tensor holds that an operation returns."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, (tuple, list)) else (found,):
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return found


@pytest.mark.parametrize("name", [name for name in MODELS if "streams" not in name])
@pytest.mark.parametrize("learns", [False, True])
def test_nothing_is_held_for_each_pair_of_tokens(name, learns):
    model, length = MODELS[name](), 700
    ids = torch.randint(3, BASE + 5, (1, length))
    ids[:, -20:] = 0
    with LargestTensor() as largest, torch.set_grad_enabled(learns):
        logits = read(model, ids, (ids > 0).long()).logits
        if learns:
            gradients_of(model, logits, ids > 0)
    assert length * 16 <= largest.numbers < length**2
