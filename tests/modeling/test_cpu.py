import pytest
import torch
from folnets import make_folnet
from geometrics import small_model
from hypothesis import given, settings
from hypothesis import strategies as st
from retrofits import make_retrofit
from strategies import make_model, seeds
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from hf_alpha.modeling import cpu
from hf_alpha.modeling.cpu import (
    FEW_PRODUCTS,
    LARGEST,
    ONE_BLOCK,
    SMALLEST,
    STEP,
    BitDropout,
    BlockLinear,
    block_sizes,
    in_blocks,
)

WIDE = FEW_PRODUCTS // (8 * SMALLEST)  # of a layer, whose input is 8 wide, that oneDNN works on


@pytest.fixture(autouse=True, params=["oneDNN", "F.linear"])
def product(request, monkeypatch):
    """Both ways to multiply, whatever this processor prefers."""
    monkeypatch.setattr(cpu, "prefers_onednn", lambda: request.param == "oneDNN")
    return request.param


@pytest.mark.parametrize(
    ("vendor", "family", "found"), [("AuthenticAMD", 26, 26), ("GenuineIntel", 26, 0)]
)
def test_a_processor_is_told_by_its_family(vendor, family, found):
    facts = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\n"
    assert cpu.amd_family(2 * facts) == found and cpu.amd_family("") == 0


@given(st.integers(0, 10_000))
def test_blocks_without_a_step_are_as_few_as_can_be(rows):
    sizes = block_sizes(rows, step=1)
    few = 1 if rows <= ONE_BLOCK else -(-rows // LARGEST)
    assert sum(sizes) == rows and len(sizes) == few


@given(st.integers(0, 10_000))
def test_blocks_make_up_all_rows(rows):
    sizes = block_sizes(rows)
    *blocks, last = sizes
    assert sum(sizes) == rows
    assert all(SMALLEST <= size <= LARGEST and size % STEP == 0 for size in blocks)
    assert last <= (LARGEST if blocks else ONE_BLOCK) and (last < SMALLEST or last % STEP == 0)
    assert len({size for size in sizes if size >= SMALLEST}) <= 2
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("rows", [SMALLEST, 192, ONE_BLOCK, 1700])
@settings(max_examples=20)
@given(st.sampled_from([(1, 24), (40, 24), (8, WIDE), (96, 96)]), seeds, st.booleans())
def test_block_equals_linear_with_gradients(rows, widths, seed, bias):
    torch.manual_seed(seed)
    layer = BlockLinear(*widths, bias=bias)
    parameters = list(layer.parameters())
    x = torch.randn(rows, widths[0], requires_grad=True)
    grad = torch.randn(rows, widths[1])
    found = layer(x)
    expected = F.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        product = layer(x)
        torch.testing.assert_close(product, expected, atol=1e-4, rtol=1e-4)
    for one, two in zip(
        torch.autograd.grad(found, [x, *parameters], grad),
        torch.autograd.grad(expected, [x, *parameters], grad),
        strict=True,
    ):
        torch.testing.assert_close(one, two, atol=1e-3, rtol=1e-3)


@given(st.sampled_from([(3, 5), (2, 70), (1, 128), (4, 500)]), seeds)
def test_in_blocks_equals_one_call(shape, seed):
    torch.manual_seed(seed)
    first, second = BlockLinear(8, 32), BlockLinear(32, 8)

    def function(rows: torch.Tensor) -> torch.Tensor:
        return second(torch.relu(first(rows)))

    x = torch.randn(*shape, 8)
    torch.testing.assert_close(in_blocks(function, x), function(x), atol=1e-5, rtol=1e-5)


class Products(TorchDispatchMode):
    """Notes of each product by oneDNN whether both factors lie in memory without gaps."""

    def __init__(self) -> None:
        super().__init__()
        self.dense: list[bool] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.mkldnn._linear_pointwise.default:
            factors = args[:2]
            self.dense.append(all(x.is_contiguous() or x.t().is_contiguous() for x in factors))
        return func(*args, **(kwargs or {}))


REDUCTIONS = {
    "sum": torch.sum,
    "mean of the rows": lambda y: y.mean(0).pow(2).sum(),
    "transposed": lambda y: (y.t().contiguous() * torch.arange(1.0, len(y) + 1)).sum(),
}


@pytest.mark.parametrize("rows", [SMALLEST, 2 * LARGEST])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradients_reach_onednn_without_gaps(reduction, rows, product):
    """Else `y.sum().backward()` takes hundreds of times as long as in `nn.Linear`."""
    if product != "oneDNN":
        pytest.skip("there is nothing to see of PyTorch's own products")
    torch.manual_seed(0)
    layer, x = BlockLinear(8, WIDE), torch.randn(rows, 8, requires_grad=True)
    reduce = REDUCTIONS[reduction]
    with Products() as products:
        reduce(layer(x)).backward()
    assert len(products.dense) == 3 * len(block_sizes(rows)) and all(products.dense)
    found = [x.grad, layer.weight.grad, layer.bias.grad]
    wanted = torch.autograd.grad(
        reduce(F.linear(x.double(), layer.weight.double(), layer.bias.double()).float()),
        [x, layer.weight, layer.bias],
    )
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, atol=1e-4 * two.abs().max().item(), rtol=1e-4)


def test_other_types_and_places_take_the_ordinary_way():
    layer = BlockLinear(4, 3)
    assert isinstance(layer, nn.Linear)
    assert layer.double()(torch.randn(128, 4, dtype=torch.float64)).dtype == torch.float64
    with torch.autocast("cpu", torch.bfloat16):
        assert layer.float()(torch.randn(128, 4)).dtype == torch.bfloat16
    meta = BlockLinear(4, 3, device="meta")
    assert in_blocks(meta, torch.randn(200, 4, device="meta")).shape == (200, 3)


def test_what_the_kernel_does_not_know_is_left_to_pytorch():
    class Marked(torch.Tensor):
        pass

    layer, x = BlockLinear(8, 6), torch.randn(LARGEST, 8)
    expected = torch.nn.functional.linear(x, layer.weight, layer.bias)
    layer.weight = torch.nn.Parameter(layer.weight.detach().as_subclass(Marked))
    torch.testing.assert_close(layer(x).as_subclass(torch.Tensor), expected)
    traced = torch.jit.trace(lambda x: in_blocks(lambda rows: rows.relu(), x), (x,))
    assert torch.equal(traced(x), x.relu())


def test_transforms_of_functions_work():
    torch.manual_seed(0)
    layer, x = BlockLinear(8, WIDE), torch.randn(5, SMALLEST, 8)
    found = torch.func.vmap(layer)(x)
    torch.testing.assert_close(found, layer(x), atol=1e-5, rtol=1e-5)
    loss = torch.func.grad(lambda x: layer(x).pow(2).sum())
    samples = torch.func.vmap(loss)(x)
    for one, two in zip(samples, x, strict=True):
        y = two.clone().requires_grad_()
        layer(y).pow(2).sum().backward()
        torch.testing.assert_close(one, y.grad, atol=1e-3, rtol=1e-4)
    value, change = torch.func.jvp(layer, (x[0],), (torch.ones_like(x[0]),))
    expected = layer.weight.sum(1).expand_as(value)
    torch.testing.assert_close(change, expected, atol=1e-4, rtol=1e-4)


def test_one_switch_turns_everything_off(monkeypatch, product):
    calls = []

    def function(rows: torch.Tensor) -> torch.Tensor:
        calls.append(rows)
        return rows

    x = torch.randn(3, 700, 8)
    in_blocks(function, x)
    step = STEP if product == "oneDNN" else 1
    assert [len(rows) for rows in calls] == [1024, 1024, *block_sizes(2100 - 2048, step)]
    learned_mask = torch.zeros(2, 1, 1, 9, requires_grad=True)
    assert cpu.prefers_products(learned_mask)
    fixed_mask = learned_mask.detach()
    assert not cpu.prefers_products(fixed_mask) and not cpu.prefers_products(None)
    few = cpu.FEW_SCORES // 2
    assert cpu.prefers_products(None, fixed_mask, 2, few)
    assert not cpu.prefers_products(None, fixed_mask, 2, few + 1)
    assert not cpu.prefers_products(None, fixed_mask, 1, few)
    monkeypatch.setattr(cpu, "ENABLED", False)
    calls.clear()
    in_blocks(function, x)
    assert calls[0] is x and len(calls) == 1 and not cpu.prefers_products(learned_mask)


@pytest.mark.parametrize("p", [0.1, 0.5, 1 - 1e-6])
def test_dropout_by_bits_drops_its_share_and_scales_the_rest(p):
    x = torch.ones(2, 1000, 501).requires_grad_()
    torch.manual_seed(0)
    y = BitDropout(p).train()(x)
    y.backward(torch.full_like(y, 2.0))
    torch.testing.assert_close(x.grad, 2 * y.detach())  # the same are dropped
    share = (y == 0).double().mean().item()
    deviation = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(share - p) < 5 * deviation + 2**-16
    assert y.detach().unique().numel() <= 2
    if p < 0.9:
        assert y.mean().item() == pytest.approx(1.0, abs=0.01)
    torch.manual_seed(0)
    assert BitDropout(p).train()(x).equal(y)
    assert BitDropout(p).eval()(x) is x


def test_models_are_built_with_all_that_is_listed():
    """And parts of a backbone stay as they are."""
    geometric = small_model(embedding_size=16)
    models = [make_model(), make_folnet(unary_operators="jmc"), geometric]
    modules = [module for model in models for module in model.modules()]
    bases = {base.__name__: base for module in modules for base in type(module).__mro__}
    for kind, (name, _) in cpu.METHODS.items():
        assert hasattr(getattr(bases[kind], name), "__wrapped__")
    swapped = {
        (base.__name__, name)
        for module in modules
        for name, part in module.named_children()
        for base in type(module).__mro__
        if isinstance(part, BlockLinear | BitDropout)
    }
    assert swapped >= {(kind, name) for kind, names in cpu.PARTS.items() for name in names}
    backbone = make_retrofit("bart", symbol_encoding="streams").backbone
    assert not any(isinstance(module, BlockLinear | BitDropout) for module in backbone.modules())


def test_without_the_switch_models_are_plain(monkeypatch):
    monkeypatch.setattr(cpu, "ENABLED", False)
    model = make_model()
    assert not any(isinstance(module, BlockLinear | BitDropout) for module in model.modules())


def test_replicas_work_with_their_own_weights():
    """As `DataParallel` makes them, which copies a module's attributes."""
    layer, x = make_model().model.encoder.layers[0], torch.randn(1, 3, 200, 16)
    replica = layer._replicate_for_data_parallel()
    replica.fc2 = nn.Linear(24, 16, bias=False)
    nn.init.zeros_(replica.fc2.weight)
    assert not replica._feed_forward(x).any() and layer._feed_forward(x).all()
