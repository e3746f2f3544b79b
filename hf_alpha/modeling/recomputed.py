"""The Boolean operator on binary atoms, without what it computes on the way being kept.

Between its two products there are several times as many numbers as in the atoms, for each pair of
positions: the most of all that training would store. They are computed in blocks of rows, which on
a CPU stay in its cache, and once more for the gradients.

Shapes: N rows of a batch, T and M positions, D width of binary atoms, R pairs of a block, W width
between the products.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F
from transformers.utils.generic import maybe_autocast

from .checks import is_transformed

PAIRS = {"cpu": 2048}  # of a block
MORE_PAIRS = 1 << 16  # on other devices

Hidden = Callable[[torch.Tensor], torch.Tensor]


def can_recompute(*tensors: torch.Tensor) -> bool:
    """Returns whether activations can be recomputed for these tensors.

    Nothing may look into what is computed (compilers, tracers, transforms), and the dtypes have to
    be the same, or be made so by autocast, which leaves double precision alone.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or is_transformed():
        return False
    dtypes = {x.dtype for x in tensors}
    return torch.float64 not in dtypes if _autocasts(tensors[0]) else len(dtypes) == 1


def boolean(
    hidden: Hidden, atoms_NTMD: torch.Tensor, weights: tuple[torch.Tensor, ...], transposed: bool
) -> torch.Tensor:
    """Returns the atoms u(x, y), and u(y, x), through a feed-forward block: (N, T, M, D).

    Args:
        hidden: what happens between the products: (R, any) -> (R, W).
        atoms_NTMD: normalised.
        weights: matrices and biases of the first and of the second product and, if `transposed`, of
            the linear skip of u(y, x).
        transposed: whether u(y, x) takes part; T is M then.

    With autocast, all of it is of autocast's dtype.
    """
    if _autocasts(atoms_NTMD):
        device = atoms_NTMD.device.type
        dtype = torch.get_autocast_dtype(device)
        cast = [x.to(dtype) for x in (atoms_NTMD, *weights)]
        with maybe_autocast(device, enabled=False):
            return boolean(hidden, cast[0], tuple(cast[1:]), transposed)
    if torch.is_grad_enabled():
        return _Boolean.apply(hidden, transposed, atoms_NTMD, *weights)
    return _forward(hidden, transposed, atoms_NTMD, *weights)


def _autocasts(x: torch.Tensor) -> bool:
    return x.device.type != "meta" and torch.is_autocast_enabled(x.device.type)


def _forward(
    hidden: Hidden, transposed: bool, atoms: torch.Tensor, *weights: torch.Tensor
) -> torch.Tensor:
    w_in, b_in, w_out, b_out, *skip = weights
    result = torch.empty_like(atoms, memory_format=torch.contiguous_format)
    width = atoms.shape[-1]
    for place in _blocks(atoms):
        rows_RD = _pairs(atoms, place, transposed)
        block = result[place].view(-1, width)
        torch.addmm(b_out, hidden(torch.addmm(b_in, rows_RD, w_in.t())), w_out.t(), out=block)
        if transposed:
            block.addmm_(rows_RD[:, width:], skip[0].t()).add_(skip[1])
    return result


class _Boolean(torch.autograd.Function):
    """Keeps the atoms only."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Hidden, transposed: bool, atoms: torch.Tensor, *weights: torch.Tensor
    ) -> torch.Tensor:
        ctx.hidden, ctx.transposed = hidden, transposed
        ctx.save_for_backward(atoms, *weights)
        return _forward(hidden, transposed, atoms, *weights)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        with maybe_autocast(gradients[0].device.type, enabled=False):  # as in `forward`
            return _Boolean._backward(ctx, gradients[0])

    @staticmethod
    def _backward(ctx: Any, gradient: torch.Tensor) -> Any:
        if torch.is_grad_enabled():  # these gradients are to be differentiated again
            return _differentiable_backward(ctx, gradient)
        atoms, *weights = ctx.saved_tensors
        width, transposed = atoms.shape[-1], ctx.transposed
        # The sums of many blocks would lose what a half-precision number cannot hold.
        wide = torch.promote_types(atoms.dtype, torch.float32)
        by_weight = [torch.zeros_like(weight, dtype=wide) for weight in weights]
        by_atom = torch.empty_like(atoms, memory_format=torch.contiguous_format)
        by_flipped = torch.empty_like(by_atom) if transposed else None
        for place in _blocks(atoms):
            rows_RD = _pairs(atoms, place, transposed)
            grad_RD = gradient[place].reshape(-1, width)
            grad_rows_RD = _backward(ctx.hidden, rows_RD, grad_RD, weights, by_weight)
            target = by_atom[place]
            target.copy_(grad_rows_RD[:, :width].view(target.shape))
            if by_flipped is not None:
                by_flipped[place].copy_(grad_rows_RD[:, width:].view(target.shape))
        if by_flipped is not None:
            by_atom += by_flipped.transpose(1, 2)
        return None, None, by_atom, *(total.to(atoms.dtype) for total in by_weight)


def _differentiable_backward(ctx: Any, gradient: torch.Tensor) -> Any:
    """Returns what `_Boolean.backward` does, by operations that PyTorch differentiates."""
    inputs = ctx.saved_tensors
    atoms, w_in, b_in, w_out, b_out, *skip = inputs
    flipped = atoms.transpose(1, 2)
    rows = torch.cat((atoms, flipped), dim=-1) if ctx.transposed else atoms
    result = F.linear(ctx.hidden(F.linear(rows, w_in, b_in)), w_out, b_out)
    if ctx.transposed:
        result = result + F.linear(flipped, *skip)
    needed = ctx.needs_input_grad[2:]
    required = [x for x, need in zip(inputs, needed, strict=True) if need]
    gradients = iter(torch.autograd.grad(result, required, gradient, create_graph=True))
    return None, None, *(next(gradients) if need else None for need in needed)


def _backward(
    hidden: Hidden,
    rows_RD: torch.Tensor,
    grad_RD: torch.Tensor,
    weights: list[torch.Tensor],
    by_weight: list[torch.Tensor],
) -> torch.Tensor:
    """Returns the gradient by the rows of a block; adds those by the weights to `by_weight`."""
    w_in, b_in, w_out, _, *skip = weights
    z = torch.addmm(b_in, rows_RD, w_in.t())
    with torch.enable_grad():
        z.requires_grad_()
        activations = hidden(z)
    total = grad_RD.sum(0, dtype=by_weight[3].dtype)
    _add_product(by_weight[2], grad_RD, activations.detach())
    by_weight[3] += total
    (grad_z,) = torch.autograd.grad(activations, z, grad_RD @ w_out)
    _add_product(by_weight[0], grad_z, rows_RD)
    by_weight[1] += grad_z.sum(0, dtype=by_weight[1].dtype)
    grad_rows = grad_z @ w_in
    if skip:
        flipped = slice(grad_RD.shape[-1], None)
        _add_product(by_weight[4], grad_RD, rows_RD[:, flipped])
        by_weight[5] += total
        grad_rows[:, flipped].addmm_(grad_RD, skip[0])
    return grad_rows


def _add_product(total: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
    """Adds x^T y, of another dtype perhaps."""
    if total.dtype == x.dtype:
        total.addmm_(x.t(), y)
    else:
        total += x.t() @ y


def _blocks(atoms: torch.Tensor) -> Iterator[tuple[slice, slice]]:
    """Yields places (rows of the batch, positions x) that hold so many pairs."""
    n, t, m, _ = atoms.shape
    pairs = PAIRS.get(atoms.device.type, MORE_PAIRS)
    rows, step = max(1, pairs // max(t * m, 1)), max(1, pairs // max(m, 1))
    for row in range(0, n, rows):
        for start in range(0, t, step):
            yield slice(row, row + rows), slice(start, start + step)


def _pairs(atoms: torch.Tensor, place: tuple[slice, slice], transposed: bool) -> torch.Tensor:
    """Returns the atoms at a place, with the transposed ones behind: (R, D or 2 D)."""
    own = atoms[place]
    if transposed:
        own = torch.cat((own, atoms.transpose(1, 2)[place]), dim=-1)
    return own.reshape(-1, own.shape[-1])


__all__ = ["boolean", "can_recompute"]
