import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from hf_alpha.modeling.linear import (
    LARGEST,
    NARROW,
    SMALLEST,
    STEP,
    BlockLinear,
    block_sizes,
    in_blocks,
)


@given(st.integers(0, 10_000))
def test_blocks_make_up_all_rows(rows):
    sizes = block_sizes(rows)
    *blocks, last = sizes
    assert sum(sizes) == rows
    assert all(SMALLEST <= size <= LARGEST and size % STEP == 0 for size in blocks)
    assert last <= LARGEST and (last < SMALLEST or last % STEP == 0)
    assert len({size for size in sizes if size >= SMALLEST}) <= 2
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("rows", [SMALLEST, 192, LARGEST, 1500])
@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(1, 24), (40, 24), (8, NARROW // 8), (96, 96)]), seeds, st.booleans())
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


def test_second_gradients_agree():
    torch.manual_seed(0)
    layer, x = BlockLinear(8, NARROW // 8), torch.randn(128, 8, requires_grad=True)

    def second(y: torch.Tensor) -> torch.Tensor:
        (grad,) = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(grad.pow(2).sum(), layer.weight)[0]

    expected = second(F.linear(x, layer.weight, layer.bias))
    torch.testing.assert_close(second(layer(x)), expected, atol=1e-1, rtol=1e-3)


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
    layer, x = BlockLinear(8, NARROW // 8), torch.randn(5, SMALLEST, 8)
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


def test_forward_mode_works():
    torch.manual_seed(0)
    layer, x = BlockLinear(8, NARROW // 8), torch.randn(SMALLEST, 8)
    for grad in (False, True):
        with torch.set_grad_enabled(grad), forward_ad.dual_level():
            change = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, x))).tangent
        torch.testing.assert_close(change, F.linear(x, layer.weight), atol=1e-5, rtol=1e-5)


def test_wrong_width_is_pytorchs_own_error():
    for width in (32, 128):
        with torch.no_grad(), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            BlockLinear(64, 128)(torch.randn(256, width))
