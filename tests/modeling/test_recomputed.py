"""The Boolean operator that keeps only its atoms, against PyTorch's own derivatives."""

from contextlib import nullcontext
from unittest.mock import patch

import pytest
import torch
from torch.nn import functional as F

from hf_alpha.modeling import logic_operators, recomputed
from hf_alpha.modeling.configuration_folnet import FolnetConfig
from hf_alpha.modeling.logic_operators import BinaryBool

FORMS = ["mlp", "reglu"]


def operator(form: str, transposed: bool) -> BinaryBool:
    config = FolnetConfig(
        vocab_size=9, binary_hidden_size=6, binary_intermediate_size=10, boolean_form=form
    )
    torch.manual_seed(0)
    return BinaryBool(config, transposed).double()


@pytest.mark.parametrize("pairs", [3, 20, 10_000])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_values_and_gradients_are_those_of_the_plain_way(form, transposed, pairs):
    """In blocks of a row, of several texts and of all; atoms of an expanded batch too."""
    module = operator(form, transposed)
    atoms = torch.randn(1, 5, 5, 6, dtype=torch.float64).requires_grad_()
    found = {}
    for plain in (True, False):
        module.zero_grad()
        atoms.grad = None
        way = patch.object(logic_operators, "can_recompute", return_value=not plain)
        with way, patch.dict(recomputed.PAIRS, {"cpu": pairs}):
            result = module(atoms.expand(3, -1, -1, -1))
            result.transpose(1, 2).square().sum().backward()
            with torch.no_grad():
                torch.testing.assert_close(module(atoms.expand(3, -1, -1, -1)), result)
        found[plain] = [result, atoms.grad, *(p.grad for p in module.parameters())]
    for one, two in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(two, one)


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_have_gradients(form, transposed):
    """Of penalties on gradients, with frozen weights too."""
    module = operator(form, transposed)
    module.fc2.requires_grad_(False)
    atoms = torch.randn(2, 3, 3, 6, dtype=torch.float64).requires_grad_()
    wanted = [atoms, *(p for p in module.parameters() if p.requires_grad)]
    found = {}
    for plain in (True, False):
        with patch.object(logic_operators, "can_recompute", return_value=not plain):
            result = module(2 * atoms).square().sum()
        first = torch.autograd.grad(result, wanted, create_graph=True)
        penalty = sum((x * x).sum() for x in first)
        found[plain] = [*first, *torch.autograd.grad(penalty, wanted)]
    for one, two in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(two, one)


def test_half_precision_keeps_the_sums_of_many_blocks():
    module, atoms = operator("mlp", True).float(), torch.randn(2, 64, 64, 6)
    module(atoms).square().mean().backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    module.bfloat16()
    with patch.dict(recomputed.PAIRS, {"cpu": 64}):
        module(atoms.bfloat16()).float().square().mean().backward()
    for parameter, right in zip(module.parameters(), expected, strict=True):
        assert F.cosine_similarity(parameter.grad.flatten().float(), right.flatten(), 0) > 0.9999
        assert (parameter.grad.float() - right).norm() < 0.02 * right.norm()


def plainly(plain: bool):
    """Compute in the plain way, or in whichever way is chosen."""
    return (
        patch.object(logic_operators, "can_recompute", return_value=False)
        if plain
        else nullcontext()
    )


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_autocast_computes_again_what_it_does_not_keep(form, transposed):
    """In its own dtype, with gradients in that of the weights; backward within autocast too."""
    module, found = operator(form, transposed).float(), {}
    for plain in (True, False):
        atoms = torch.linspace(-1, 1, 2 * 5 * 5 * 6).view(2, 5, 5, 6).requires_grad_()
        module.zero_grad()
        widths = []

        def keep(x, widths=widths):
            if x.shape[:-1].numel() == 50:
                widths.append(x.shape[-1])
            return x

        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x)
        with torch.autocast("cpu", torch.bfloat16):
            with plainly(plain), hooks:
                result = module(atoms)
            result.float().square().sum().backward()
        found[plain] = [result, atoms.grad, *(p.grad for p in module.parameters())]
        assert max(widths) >= 10 if plain else max(widths) == 6
        assert result.dtype == torch.bfloat16 and atoms.grad.dtype == torch.float32
    for one, two in zip(found[True], found[False], strict=True):
        assert one.dtype == two.dtype and (one - two).norm() <= 0.02 * one.norm()


def test_autocast_around_the_backward_pass_alone_changes_nothing():
    module, atoms = operator("mlp", True).float(), torch.randn(2, 5, 5, 6).requires_grad_()
    module(atoms).square().sum().backward()
    wanted, atoms.grad = atoms.grad, None
    loss = module(atoms).square().sum()
    with torch.autocast("cpu", torch.bfloat16):
        loss.backward()
    assert torch.equal(atoms.grad, wanted)


def test_autocast_leaves_double_precision_alone():
    module, atoms = operator("mlp", True), torch.randn(2, 3, 3, 6, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(atoms).dtype == torch.float64


def test_shapes_without_numbers_are_computed():
    assert operator("mlp", True).float().to("meta")(torch.empty(2, 3, 3, 6, device="meta")).is_meta
