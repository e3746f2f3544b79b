"""Scores of cjoin beyond what exponentials hold; all else of operators is in whole stacks."""

from functools import partial

import pytest
import torch
from reference.folnet import FolnetReference, View, causal

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.logic_operators import OPERATORS, Atoms, Columns, Scope, Source
from hf_alpha.modeling.masks import additive

CLOSE = {"atol": 1e-10, "rtol": 1e-10}
D1, D2, ROWS, LENGTH, BEFORE, PREFIX = 14, 9, 2, 5, 4, 2
SIZES = {
    "hidden_size": D1, "binary_hidden_size": D2, "num_attention_heads": 3, "head_size": 4,
    "intermediate_size": 11, "binary_intermediate_size": 10, "vocab_size": 20,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("form", ["decoder", "prefix", "encoder-decoder"])
def test_large_scores_of_cjoin_in_a_decoder(form):
    """Up to some hundreds, either sign: the sums of the paper; what comes later stays hidden."""
    has_source = form == "encoder-decoder"
    config = FolnetConfig(**SIZES, is_encoder_decoder=has_source, is_decoder=not has_source)
    operator = OPERATORS["c"](config, has_source).double()
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        drawn = torch.randn(ROWS, *shape, generator=generator, dtype=torch.float64)
        return drawn.requires_grad_()

    with torch.no_grad():
        for name, weight in operator.named_parameters():
            scale = 100 if "kernel.weight" in name else 1
            weight.normal_(0, scale * weight.shape[-1] ** -0.5, generator=generator)
    allowed, before = causal(LENGTH, PREFIX if form == "prefix" else 0), BEFORE * has_source
    allowed = torch.cat((torch.ones(LENGTH, before, dtype=torch.bool), allowed), 1)
    unary, binary = draw(LENGTH, D1), draw(LENGTH, before + LENGTH, D2)
    source = Source(draw(BEFORE, D1), draw(BEFORE, BEFORE, D2)) if has_source else None
    mask = additive(allowed.expand(ROWS, -1, -1), torch.float64)
    scope = Scope(mask, Columns(0, source=source))

    def run(unary):
        return operator(Atoms.of(unary, binary, scope, [operator]))

    scores, found = operator.kernel(unary), run(unary)
    assert scores.max() > 200 and scores.min() < -200
    weights = {f"operator.{name}": weight for name, weight in operator.named_parameters()}
    equation = partial(FolnetReference(config, weights).cjoin, "operator")
    views = [
        View(allowed, True, source_ad=source.unary[n], source_abd=source.binary[n])
        if source
        else View(allowed, True)
        for n in range(ROWS)
    ]
    expected = torch.stack([equation(unary[n], binary[n], views[n]) for n in range(ROWS)])
    torch.testing.assert_close(found, expected, **CLOSE)
    leaves = [*operator.parameters(), unary, binary, *([source.unary] if source else [])]
    weight = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    gradients = [torch.autograd.grad((x * weight).sum(), leaves) for x in (found, expected)]
    torch.testing.assert_close(*gradients, **CLOSE)
    if form != "decoder":
        return
    later = unary.detach().clone()
    later[:, -1] *= 1e3
    again = run(later)
    assert torch.equal(again[:, :-1], found[:, :-1]) and again.isfinite().all()
    small = later / 1e4
    small[:, -1] *= 1e6  # these alone are beyond the bound
    first, second = run(later / 1e4), run(small)
    assert torch.equal(first[:, :-1], second[:, :-1]) and second.isfinite().all()
