"""Each operator against its sum in tests/reference/folnet.py, in float64, and two known ends."""

from dataclasses import dataclass
from functools import partial
from itertools import product

import pytest
import torch
from reference.folnet import BINARY, UNARY, FolnetReference, View, causal

from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.logic_operators import (
    OPERATORS,
    Atoms,
    BinaryBool,
    Columns,
    Scope,
    Source,
    UnaryBool,
)
from hf_alpha.modeling.masks import additive

CLOSE = {"atol": 1e-10, "rtol": 1e-10}
D1, D2 = 14, 9
SIZES = {
    "hidden_size": D1, "binary_hidden_size": D2, "num_attention_heads": 3, "head_size": 4,
    "intermediate_size": 11, "binary_intermediate_size": 10, "vocab_size": 20,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
FORMS = ["encoder", "decoder", "prefix", "encoder-decoder"]
OPTIONS = [
    {},
    {"cjoin_premise": "size", "trans_channels": "binary"},
    {"implication": "softplus"},
    {"implication": "relu", "trans_channels": "binary"},
    {"position_scheme": "shaw"},
]
LENGTHS = [(5, 3), (2, 4), (1, 1), (4, 5)]  # of sources and targets
PREFIX = 2


@dataclass
class Case:
    """A batch for an operator, and each sample of it alone.

    Attributes:
        leaves: tensors whose gradients are compared.
        unary, binary, scope: what the operator gets.
        places: of each sample, its rows and its columns in the batch.
        views: of each sample, for the reference.
    """

    leaves: list[torch.Tensor]
    unary: torch.Tensor
    binary: torch.Tensor
    scope: Scope
    places: list[tuple[torch.Tensor, torch.Tensor]]
    views: list[View]


def draw(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def places_of(lengths, left):
    """Where the tokens of each sample are, padded on one side."""
    longest = max(lengths)
    return [torch.arange(n) + (longest - n if left else 0) for n in lengths]


def visible_of(rows, columns, sizes, allowed):
    """(N, T, M): what each row of a padded batch sees."""
    visible = torch.zeros(len(rows), *sizes, dtype=torch.bool)
    for n, (row, column) in enumerate(zip(rows, columns, strict=True)):
        visible[n, row[:, None], column[None]] = allowed[n]
    return visible


def make_case(form, config, left, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sources, targets = zip(*LENGTHS, strict=True)
    if form == "encoder":
        rows = columns = places_of(sources, left)
        allowed = [torch.ones(n, n, dtype=torch.bool) for n in sources]
    else:
        rows = columns = places_of(targets, left)
        allowed = [causal(n, PREFIX if form == "prefix" else 0) for n in targets]
    length = before = max(sources if form == "encoder" else targets)
    before, source_places = 0, places_of(sources, left)
    if form == "encoder-decoder":
        before = max(sources)
        columns = [
            torch.cat((one, other + before)) for one, other in zip(source_places, rows, strict=True)
        ]
        allowed = [
            torch.cat((torch.ones(len(a), n, dtype=torch.bool), a), 1)
            for n, a in zip(sources, allowed, strict=True)
        ]
    number, width = len(LENGTHS), before + length
    unary, binary = draw(generator, number, length, D1), draw(generator, number, length, width, D2)
    of_source = draw(generator, number, before, D1), draw(generator, number, before, before, D2)
    vectors = [draw(generator, number, length, width, config.head_size) for _ in range(2)]
    shaw = config.position_scheme == "shaw"
    mask = additive(visible_of(rows, columns, (length, width), allowed), torch.float64)
    if form == "encoder":  # as for padding: the same for all rows
        mask = mask.amax(1, keepdim=True)
    source = Source(*of_source) if before else None
    scope = Scope(
        mask, None if form == "encoder" else Columns(0, source=source),
        **(dict(zip(("key_vectors", "value_vectors"), vectors, strict=True)) if shaw else {}),
    )  # fmt: skip
    views = []
    for n, (row, column) in enumerate(zip(rows, columns, strict=True)):
        at, there = source_places[n], (n, row[:, None], column[None])
        views.append(
            View(
                allowed[n],
                decoder=form != "encoder",
                keys_xys=vectors[0][there] if shaw else None,
                values_xys=vectors[1][there] if shaw else None,
                source_ad=of_source[0][n, at] if before else None,
                source_abd=of_source[1][n, at[:, None], at[None]] if before else None,
            )
        )
    places = list(zip(rows, columns, strict=True))
    leaves = [unary, binary, *of_source, *vectors]
    return Case(leaves, unary, binary, scope, places, views)


def randomize(module, seed=1):
    """Weights of the size that keeps numbers near 1; biases too, which begin at 0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.normal_(0, parameter.shape[-1] ** -0.5, generator=generator)
    return module


def run(operator, unary, binary, scope):
    return operator(Atoms.of(unary, binary, scope, [operator]))


def weights_of(module):
    return {f"operator.{name}": weight for name, weight in module.named_parameters()}


def assert_same(module, case, found, deduce, binary):
    """Outputs and gradients of a batch, and those of each sample alone by `deduce`."""
    generator = torch.Generator().manual_seed(2)
    leaves = [*module.parameters(), *case.leaves]
    ours = theirs = torch.zeros((), dtype=torch.float64)
    for n, (row, column) in enumerate(case.places):
        unary = case.unary[n, row]
        pairs = case.binary[n, row[:, None], column[None]]
        expected = deduce(unary, pairs, case.views[n])
        here = found[n, row[:, None], column[None]] if binary else found[n, row]
        if binary:  # what is hidden from x is nobody's premise
            shown = case.views[n].allowed_xy[:, :, None]
            here, expected = here * shown, expected * shown
        torch.testing.assert_close(here, expected, **CLOSE)
        weight = torch.randn(here.shape, generator=generator, dtype=here.dtype)
        ours, theirs = ours + (here * weight).sum(), theirs + (expected * weight).sum()
    mine, other = (
        torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        for loss in (ours, theirs)
    )
    assert any(gradient.abs().max() > 0 for gradient in other if gradient.numel())
    for one, two in zip(mine, other, strict=True):
        torch.testing.assert_close(one, two, **CLOSE)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("letter", OPERATORS)
def test_operators_are_the_sums_of_the_paper(letter, form):
    """With every option; padding on either side and masked atoms are no premises."""
    has_source = form == "encoder-decoder"
    for options, left in product(OPTIONS, (False, True)):
        if form != "encoder":
            options = {**options, "cjoin_premise": "heads"}  # the other one is refused
        config = FolnetConfig(
            **SIZES,
            **options,
            is_encoder_decoder=has_source,
            is_decoder=form in ("decoder", "prefix"),
        )
        operator = randomize(OPERATORS[letter](config, has_source))
        case = make_case(form, config, left)
        reference = FolnetReference(config, weights_of(operator))
        equation = partial(getattr(reference, {**UNARY, **BINARY}[letter]), "operator")
        found = run(operator, case.unary, case.binary, case.scope)
        assert_same(operator, case, found, equation, binary=letter in BINARY)


@pytest.mark.parametrize("form", FORMS[1:])
def test_large_scores_of_cjoin_in_a_decoder(form):
    """Up to some hundreds, either sign: the sums of the paper; what comes later stays hidden."""
    has_source = form == "encoder-decoder"
    config = FolnetConfig(**SIZES, is_encoder_decoder=has_source, is_decoder=not has_source)
    operator, case = randomize(OPERATORS["c"](config, has_source)), make_case(form, config, False)
    with torch.no_grad():
        for kernel in [operator.kernel, operator.source_kernel][: 1 + has_source]:
            kernel.weight.mul_(100)
    scores = operator.kernel(case.unary)
    assert scores.max() > 200 and scores.min() < -200
    equation = partial(FolnetReference(config, weights_of(operator)).cjoin, "operator")
    found = run(operator, case.unary, case.binary, case.scope)
    assert_same(operator, case, found, equation, binary=False)
    if form != "decoder":
        return
    later = case.unary.detach().clone()
    later[:, -1] *= 1e3
    again = run(operator, later, case.binary, case.scope)
    assert torch.equal(again[:, :-1], found[:, :-1]) and again.isfinite().all()
    small = later / 1e4
    small[:, -1] *= 1e6  # these alone are beyond the bound
    first, second = (run(operator, x, case.binary, case.scope) for x in (later / 1e4, small))
    assert torch.equal(first[:, :-1], second[:, :-1]) and second.isfinite().all()


@pytest.mark.parametrize("act", ["gelu", "relu"])
@pytest.mark.parametrize("transposed", [False, True])
def test_boolean_operators(transposed, act):
    config = FolnetConfig(**SIZES, transposed_boolean=transposed, hidden_act=act)
    case = make_case("encoder", config, left=False)
    unary, binary = (
        randomize(UnaryBool(config, D1, config.intermediate_size)),
        randomize(BinaryBool(config, transposed)),
    )
    for module, atoms in ((unary, case.unary), (binary, case.binary)):
        reference = FolnetReference(config, weights_of(module))
        equations = {
            unary: lambda one, two, view, of=reference: of.boolean("operator", one),
            binary: lambda one, two, view, of=reference: of.binary_boolean("operator", two, view),
        }
        assert_same(module, case, module(atoms), equations[module], binary=module is binary)
