"""Each operator against its sum in tests/reference/folnet.py, in float64, and two known ends."""

from dataclasses import dataclass
from functools import partial
from itertools import product

import pytest
import torch
from reference.folnet import BINARY, UNARY, FolnetReference, View, causal
from torch import nn

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
    {"cjoin_premise": "size", "trans_channels": "binary", "scaled": False},
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
@pytest.mark.parametrize("boolean_form", ["mlp", "reglu"])
@pytest.mark.parametrize("transposed", [False, True])
def test_boolean_operators(boolean_form, transposed, act):
    config = FolnetConfig(
        **SIZES, boolean_form=boolean_form, transposed_boolean=transposed, hidden_act=act
    )
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


def identity(linear):
    with torch.no_grad():
        linear.weight.copy_(torch.eye(*linear.weight.shape))
        if linear.bias is not None:
            linear.bias.zero_()


def test_join_of_assoc_is_self_attention():
    """`j.a` without residual, norm and Boolean operators of the binary branch (Section 3.2)."""
    heads, size, length = 3, 4, 6
    width = heads * size
    config = FolnetConfig(**{**SIZES, "hidden_size": width, "binary_hidden_size": heads})
    assoc, join = (randomize(OPERATORS[letter](config), seed) for seed, letter in enumerate("aj"))
    for same in (assoc.output, join.kernel):
        identity(same)
    attention = nn.MultiheadAttention(width, heads, batch_first=True).double()
    with torch.no_grad():
        projections = (assoc.kernel, assoc.premise, join.premise)
        attention.in_proj_weight.copy_(torch.cat([part.weight for part in projections]))
        attention.in_proj_bias.copy_(torch.cat([part.bias for part in projections]))
        attention.out_proj.load_state_dict(join.output.state_dict())
    x = torch.randn(2, length, width, dtype=torch.float64)
    padding = torch.arange(length) >= torch.tensor([[4], [6]])
    scope = Scope(additive(~padding[:, None], torch.float64))
    scores = run(assoc, x, torch.empty(0), scope)
    expected, kernel = attention(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    atoms = Atoms.of(x, scores, scope, [join])
    torch.testing.assert_close(join(atoms), expected, **CLOSE)
    torch.testing.assert_close(atoms.kernels["j"].transpose(0, 1), kernel, **CLOSE)


def test_mu_and_prod_with_static_premises_are_shaws_relative_positions():
    """Appendix E: their binary premises are the vectors of the clipped distance, for all inputs."""
    heads, size, length, most = 3, 4, 7, 2
    width = heads * size
    config = FolnetConfig(**{**SIZES, "hidden_size": width, "binary_hidden_size": heads + 2 * size})
    parts = {x: randomize(OPERATORS[x](config), seed) for seed, x in enumerate("apjm")}
    assoc, prod, join, mu = parts.values()
    x = torch.randn(2, length, width, dtype=torch.float64)
    keys, values = torch.randn(2, 2 * most + 1, size, dtype=torch.float64)
    place = torch.arange(length)
    distance = (place[None] - place[:, None]).clamp(-most, most) + most
    with torch.no_grad():
        prod.kernel.load_state_dict(assoc.kernel.state_dict())  # both are x W^Q
        for linear in (join.output, mu.output):
            identity(linear)
        # Binary atoms hold scores, then keys, then values; operators read and write their part.
        for linear, first in ((join.kernel, 0), (mu.kernel, 0), (prod.premise, heads),
                              (mu.premise, heads + size)):  # fmt: skip
            linear.weight.zero_()
            rows = torch.arange(len(linear.weight))
            linear.weight[rows, rows + first] = 1
        prod.premise.bias.zero_()
        for linear in (assoc.output, prod.output):
            identity(linear)
    static = torch.cat((torch.zeros(length, length, heads), keys[distance], values[distance]), -1)
    base = static.double().expand(2, -1, -1, -1)
    scored = base + sum(run(operator, x, base, Scope()) for operator in (assoc, prod))
    found = sum(run(operator, x, scored, Scope()) for operator in (join, mu))

    query, key, value = (
        linear(x).unflatten(-1, (heads, size))
        for linear in (assoc.kernel, assoc.premise, join.premise)
    )
    for h in range(heads):
        for i in range(length):
            e = torch.stack(  # Equation 35
                [
                    (query[:, i, h] * (key[:, j, h] + keys[distance[i, j]])).sum(-1) / size**0.5
                    for j in range(length)
                ]
            ).softmax(0)
            z = sum(  # Equation 34
                e[j][:, None] * (value[:, j, h] + values[distance[i, j]]) for j in range(length)
            )
            place = slice(h * size, (h + 1) * size)
            torch.testing.assert_close(found[:, i, place], z, **CLOSE)
