"""Linear layers over many rows, in blocks of few different sizes.

Between the two products of a feed-forward block lies a tensor many times as wide as the model. In
blocks it stays in a CPU's cache, and never is there as a whole. Blocks of few sizes also let oneDNN
be used, which compiles a kernel for each shape: on CPUs other than Intel's it is more than twice as
fast as the MKL behind `F.linear`.

Shapes: M rows, D and E widths.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

BLOCKS = (1024, 512, 256, 128)  # rows


def in_blocks(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Apply to x (..., D) a function of its rows, on a CPU block by block."""
    if x.device.type != "cpu" or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return function(x)
    rows_MD = x.reshape(-1, x.shape[-1])
    parts = [function(part) for part in rows_MD.split(block_sizes(len(rows_MD)))]
    return torch.cat(parts).view(*x.shape[:-1], -1)


def block_sizes(rows: int) -> list[int]:
    """Sizes of the blocks that make up so many rows, the largest first, the odd rest last."""
    sizes: list[int] = []
    for size in BLOCKS:
        sizes += [size] * (rows // size)
        rows %= size
    return [*sizes, rows] if rows or not sizes else sizes


class BlockLinear(nn.Linear):
    """A linear layer that knows the blocks of `in_blocks`, and is an ordinary one otherwise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight
        if _has_kernel(x) and x.dtype == weight.dtype and type(weight) is nn.Parameter:
            return _Product.apply(x, self.weight, self.bias)
        return super().forward(x)


def _has_kernel(x: torch.Tensor) -> bool:
    return (
        x.dim() == 2
        and x.shape[0] in BLOCKS
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and _is_known()
    )


@cache
def _is_known() -> bool:
    """Whether this PyTorch has the operator, which is not a public one, as it is called here."""
    try:
        matrix = torch.zeros(2, 2, device="cpu", dtype=torch.float32)
        _multiply(matrix, matrix, None)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True


def _multiply(
    x_MD: torch.Tensor, weight_ED: torch.Tensor, bias_E: torch.Tensor | None
) -> torch.Tensor:
    return torch.ops.mkldnn._linear_pointwise(x_MD, weight_ED, bias_E, "none", [], "")


class _Product(torch.autograd.Function):
    """x W^T + b by oneDNN, which PyTorch itself uses in compiled models only."""

    @staticmethod
    def forward(
        x_MD: torch.Tensor, weight_ED: torch.Tensor, bias_E: torch.Tensor | None
    ) -> torch.Tensor:
        return _multiply(x_MD, weight_ED, bias_E)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x_MD, weight_ED = ctx.saved_tensors
        (grad_ME,) = gradients
        wants = ctx.needs_input_grad
        grad_x = _Product.apply(grad_ME, weight_ED.t(), None) if wants[0] else None
        # Transposed once more: of the two factors, the wide one need not be copied.
        grad_w = _Product.apply(x_MD.t(), grad_ME.t(), None).t() if wants[1] else None
        return grad_x, grad_w, grad_ME.sum(0) if wants[2] else None


__all__ = ["BlockLinear", "block_sizes", "in_blocks"]
