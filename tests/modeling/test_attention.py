import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from hf_alpha.modeling.attention import weighted_sum


@given(
    st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(1, 40), st.integers(1, 16),
    seeds, st.booleans(),
)  # fmt: skip
def test_weighted_sum_is_a_product(n, heads, queries, keys, width, seed, grad):
    torch.manual_seed(seed)
    weights = torch.randn(n, heads, queries, keys).softmax(-1)
    value = torch.randn(n, heads, keys, width)
    expected = weights @ value
    with torch.set_grad_enabled(grad):
        found = weighted_sum(weights, value)
        apart = weighted_sum(weights, value.transpose(0, 1).contiguous().transpose(0, 1))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(apart, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weighted_sum_keeps_the_type(dtype):
    with torch.no_grad():
        weights, value = torch.ones(2, 1, 1, 3, dtype=dtype), torch.ones(2, 1, 3, 4, dtype=dtype)
        found = weighted_sum(weights, value)
    assert found.dtype == dtype and torch.equal(found, torch.full((2, 1, 1, 4), 3, dtype=dtype))


def test_weights_of_zero_hide_what_is_not_there():
    with torch.no_grad():
        weights = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
        value = torch.tensor([[2.0], [0.0]]).view(1, 1, 2, 1)
        assert weighted_sum(weights, value).item() == 2


def test_weighted_sum_minds_types_and_default_device():
    with torch.no_grad():
        value = torch.randn(2, 3, 5, 4)
        weights = torch.randn(2, 3, 1, 5).softmax(-1)
        expected = weights @ value
        with torch.device("meta"):
            torch.testing.assert_close(weighted_sum(weights, value), expected)
        with torch.autocast("cpu", torch.bfloat16):
            mixed = weighted_sum(weights.bfloat16(), value)
        assert mixed.dtype == torch.bfloat16
    change = torch.func.jvp(lambda value: weighted_sum(weights, value), (value,), (value,))[1]
    torch.testing.assert_close(change, expected)
