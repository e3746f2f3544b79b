"""The Boolean operator that keeps only its atoms, against PyTorch's own derivatives."""

from unittest.mock import patch

import pytest
import torch
from torch.nn import functional as F

from hf_alpha.modeling import logic_operators
from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.logic_operators import BinaryBool

FORMS = pytest.mark.parametrize("transposed", [True, False])


def operator(transposed: bool = True) -> BinaryBool:
    config = FolnetConfig(vocab_size=9, binary_hidden_size=6, binary_intermediate_size=10)
    torch.manual_seed(0)
    return BinaryBool(config, transposed)


def blocks_of(pairs: int):
    """Compute in blocks of so many pairs."""
    return patch.multiple(logic_operators, FEW_PAIRS=pairs, MANY_PAIRS=pairs)


def plainly():
    """Compute all at once, and let autograd keep what it likes."""
    return patch.object(logic_operators, "is_transformed", return_value=True)


@FORMS
@pytest.mark.parametrize("pairs", [3, 60])
def test_values_and_gradients_are_those_of_the_plain_way(transposed, pairs):
    """In blocks of a row and of several texts; atoms of an expanded batch; and again derived."""
    module, found = operator(transposed).double(), []
    module.fc2.requires_grad_(False)
    wanted = [p for p in module.parameters() if p.requires_grad]
    for way in (plainly(), blocks_of(pairs)):
        atoms = torch.linspace(-1, 1, 150, dtype=torch.float64).view(1, 5, 5, 6).requires_grad_()
        with way:
            result = module(2 * atoms.expand(3, -1, -1, -1))
            with torch.no_grad():
                torch.testing.assert_close(module(2 * atoms.expand(3, -1, -1, -1)), result)
            loss = result.transpose(1, 2).square().sum()
            first = torch.autograd.grad(loss, [atoms, *wanted], create_graph=True)
            second = torch.autograd.grad(sum((x * x).sum() for x in first), [atoms, *wanted])
        found.append([result, *first, *second])
    torch.testing.assert_close(found[1], found[0])


def test_half_precision_keeps_the_sums_of_many_blocks():
    module, atoms = operator(), torch.randn(8, 64, 64, 6)
    module(atoms).square().mean().backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    module.bfloat16()
    module(atoms.bfloat16()).float().square().mean().backward()
    for parameter, right in zip(module.parameters(), expected, strict=True):
        assert F.cosine_similarity(parameter.grad.flatten().float(), right.flatten(), 0) > 0.9999
        assert (parameter.grad.float() - right).norm() < 0.02 * right.norm()


@FORMS
def test_autocast_computes_again_what_it_does_not_keep(transposed):
    """In its own dtype, with gradients in that of the weights."""
    module, found = operator(transposed), {}
    for plain in (True, False):
        atoms = torch.linspace(-1, 1, 2 * 5 * 5 * 6).view(2, 5, 5, 6).requires_grad_()
        module.zero_grad()
        widths = []

        def keep(x, widths=widths):
            if x.shape[:-1].numel() == 50:
                widths.append(x.shape[-1])
            return x

        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x)
        with plainly() if plain else blocks_of(1000), hooks, torch.autocast("cpu", torch.bfloat16):
            result = module(atoms)
        result.float().square().sum().backward()
        found[plain] = [result, atoms.grad, *(p.grad for p in module.parameters())]
        assert max(widths, default=0) >= 10 if plain else max(widths, default=0) <= 6
        assert result.dtype == torch.bfloat16 and atoms.grad.dtype == torch.float32
    for one, two in zip(found[True], found[False], strict=True):
        assert one.dtype == two.dtype and (one - two).norm() <= 0.02 * one.norm()


def test_autocast_leaves_double_precision_alone():
    module, atoms = operator().double(), torch.randn(2, 3, 3, 6, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(atoms).dtype == torch.float64


def test_shapes_without_numbers_are_computed():
    assert operator().to("meta")(torch.empty(2, 3, 3, 6, device="meta")).is_meta
