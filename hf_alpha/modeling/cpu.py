"""All that is done for CPUs only: linear layers in blocks, attention by products, and dropout.

It gives the same as PyTorch's own ways up to rounding, and is switched off by the environment
variable `HF_ALPHA_CPU=0`. Models are written without it:
[`suit_cpu`] puts it in where one is built.

The tensor between the two products of a feed-forward block is several times as wide as the model.
Processed in blocks of rows, it fits in the CPU's cache and is never stored whole. Blocks of few
sizes also let oneDNN be used, which compiles a kernel for each shape: on AMD's CPUs from Zen 5 on
it is up to twice as fast as the MKL behind `F.linear`.

Shapes: M rows, D and E widths.
"""

import os
import re
from collections.abc import Callable
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad

from .checks import is_transformed

ENABLED = os.environ.get("HF_ALPHA_CPU", "1") != "0"
LARGEST, SMALLEST, STEP = 1024, 128, 32  # rows of a block: any multiple of the last in between
ONE_BLOCK = LARGEST + LARGEST // 2  # so many rows are not cut, if they are such a multiple
FEW_SCORES = 1 << 13  # of a head; up to here products are as fast as a fused kernel with a mask
ZEN_5 = 26  # a family of AMD's processors
FEW_PRODUCTS = 1 << 21  # of numbers; below, the way through `_Product` costs more than it saves


def suit_cpu(model: nn.Module) -> None:
    """Put what is here in the place of a model's plain layers, where that is worth it.

    Parameters and their names stay. Parts of other packages stay as they are.
    """
    package = __name__.rpartition(".")[0]
    kinds = ((module, kind) for module in model.modules() for kind in type(module).__mro__)
    for module, kind in kinds if ENABLED else ():
        if not kind.__module__.startswith(package):
            continue
        for part in (getattr(module, name) for name in PARTS.get(kind.__name__, ())):
            if type(part) in (nn.Linear, nn.Dropout):
                part.__class__ = BlockLinear if type(part) is nn.Linear else BitDropout
        name, wrap = METHODS.get(kind.__name__, ("", None))
        # In the class: copies of a module's attributes would call that module.
        if wrap is not None and not hasattr(vars(kind)[name], "__wrapped__"):
            setattr(kind, name, wrap(vars(kind)[name]))


def blocked(method: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Returns a method for rows that works as `in_blocks` does."""

    @wraps(method)
    def by_blocks(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return in_blocks(partial(method, self), x)

    return by_blocks


def in_blocks(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Apply to x (..., D) a function of its rows, on a CPU block by block."""
    on_cpu = ENABLED and x.device.type == "cpu"
    if not on_cpu or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return function(x)
    step, one_block = (STEP, SMALLEST) if prefers_onednn() else (1, LARGEST)
    rows = x.numel() // x.shape[-1]
    sizes = block_sizes(rows, step)
    if rows <= one_block or len(sizes) == 1:  # to split it would copy gradients
        return function(x)
    parts = x.reshape(-1, x.shape[-1]).split(sizes)
    return torch.cat([function(part) for part in parts]).view(*x.shape[:-1], -1)


def block_sizes(rows: int, step: int = STEP) -> list[int]:
    """Returns the sizes of blocks that make up so many rows, largest first, the odd rest last."""
    if rows <= ONE_BLOCK and not rows % step:
        return [rows]
    whole, rest = divmod(rows, LARGEST)
    odd = rest % step if rest >= SMALLEST else rest
    return [LARGEST] * whole + [size for size in (rest - odd, odd) if size]


class BlockLinear(nn.Linear):
    """A linear layer that works in the blocks of `in_blocks`, and otherwise is an ordinary one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling():  # what follows would be conditions of sizes
            return super().forward(x)
        weight, width, count = self._parameters.get("weight"), self.in_features, x.numel()
        is_worth_it = (
            count >= SMALLEST * width
            and (count * self.out_features >= FEW_PRODUCTS or not torch.is_grad_enabled())
            and x.shape[-1] == width
            and type(weight) is nn.Parameter
            and prefers_onednn()
            and is_plain(x, weight)
        )
        if not is_worth_it:
            return super().forward(x)
        rows = count // width
        one_block = rows <= ONE_BLOCK and not rows % STEP
        return self._multiply_block(x) if one_block else in_blocks(self._multiply_block, x)

    def _multiply_block(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.numel() // self.in_features
        if rows < SMALLEST or rows % STEP:
            return super().forward(x)
        product = multiply_recorded if torch.is_grad_enabled() else multiply
        return product(x, self.weight, self.bias)


def prefers_products(
    mask: torch.Tensor | None,
    gates: torch.Tensor | None = None,
    num_queries: int = 0,
    num_keys: int = 0,
) -> bool:
    """Returns whether two products beat one kernel for attention.

    PyTorch's fused kernel for CPUs knows no gradient of a mask: there PyTorch goes a way that is
    slower than two products. Few gated scores go that way without gradients, too, so that both
    give the same bit for bit; not those of a single new token, for which one kernel is faster.

    Args:
        mask: added to the scores.
        gates: of relations, which are added to the scores.
        num_queries: of a row, where there are gates; `num_keys` likewise.
    """
    added = [part for part in (mask, gates) if part is not None and part.is_cpu]
    # While compiling, a comparison of sizes would fix them.
    if not ENABLED or torch.compiler.is_compiling() or not added:
        return False
    few = num_queries > 1 and num_queries * num_keys <= FEW_SCORES
    return (few and gates is not None) or any(part.requires_grad for part in added)


def by_products(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that chooses how to attend: the eager way where products are better."""

    @wraps(method)
    def choose(self: Any, eager: bool, mask: Any, gates: Any = None, sizes: Any = (0, 0)) -> Any:
        fused = self.config._attn_implementation == "sdpa"
        return method(self, eager or (fused and prefers_products(mask, gates, *sizes)), mask)

    return choose


def is_plain(*tensors: torch.Tensor) -> bool:
    """Returns whether all tensors are float32 on a CPU, and no transformation records them.

    Tracers, transforms of torch.func and forward-mode differentiation know PyTorch's own operations
    only. Compilers come first, which else would make conditions of sizes.
    """
    return (
        not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and all([x.dtype == torch.float32 and x.is_cpu for x in tensors])  # at once: no generator
        and not torch.is_autocast_enabled("cpu")
        and not is_transformed()
        and getattr(forward_ad, "_current_level", -1) < 0
    )


@cache
def prefers_onednn() -> bool:
    """Returns whether oneDNN's products are there, and likely to be faster than `F.linear`.

    MKL, behind `F.linear`, is made for Intel's processors: there oneDNN took 10 to 12 % longer for
    whole training steps and generations. On AMD's it took half the time from Zen 5 on, and on those
    before, which have no units for 512 bits at once, 10 to 30 % longer.
    """
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return ENABLED and wide and amd_family(_cpuinfo()) >= ZEN_5 and has_onednn()


@cache
def has_onednn() -> bool:
    """Returns whether this PyTorch has oneDNN's operator, which is not a public one."""
    try:
        matrix = torch.zeros(2, 2, device="cpu", dtype=torch.float32)
        multiply(matrix, matrix, None)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return True


def amd_family(facts: str) -> int:
    """Returns the number of a processor's family if it is AMD's, else 0."""
    family = re.search(r"^cpu family\s*: (\d+)$", facts, re.MULTILINE)
    return int(family[1]) if family and "AuthenticAMD" in facts else 0


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def multiply(x: torch.Tensor, weight_ED: torch.Tensor, bias_E: torch.Tensor | None) -> torch.Tensor:
    """Multiplies rows (..., D) by oneDNN, without gradients: X W^T + b, (..., E)."""
    return torch.ops.mkldnn._linear_pointwise.default(x, weight_ED, bias_E, "none", [], "")


class _Product(torch.autograd.Function):
    """X W^T + b by oneDNN, which PyTorch itself uses in compiled models only."""

    @staticmethod  # with `setup_context`, a look at the signature takes as long as a small product
    def forward(
        ctx: Any, x: torch.Tensor, weight_ED: torch.Tensor, bias_E: torch.Tensor | None
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight_ED)
        return multiply(x, weight_ED, bias_E)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight_ED = ctx.saved_tensors
        # An expanded gradient, as that of `sum`, would take oneDNN hundreds of times as long.
        grad = gradients[0].contiguous()
        grad_ME = grad.view(-1, grad.shape[-1])
        product = multiply_recorded if torch.is_grad_enabled() else multiply
        wants = ctx.needs_input_grad
        grad_x = product(grad, weight_ED.t(), None) if wants[0] else None
        grad_w = None
        if wants[1]:  # transposed once more: of the two factors, the wide one need not be copied
            grad_w = product(x.reshape(-1, x.shape[-1]).t(), grad_ME.t(), None).t()
        return grad_x, grad_w, grad_ME.sum(0) if wants[2] else None


multiply_recorded = super(torch.autograd.Function, _Product).apply
"""`_Product.apply` without a look at transforms, of which `is_plain` knows that there are none."""


class BitDropout(nn.Dropout):
    """Dropout by 16 random bits for each number, which takes half the time of PyTorch's on a CPU.

    The share that is dropped is rounded to a multiple of 2 ** -16. Elsewhere it is PyTorch's own.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not (ENABLED and self.training and 0.0 < self.p < 1.0 and is_plain(x)):
            return super().forward(x)
        return _Dropped.apply(x, min(round(self.p * BITS), BITS - 1))


BITS = 1 << 16


class _Dropped(torch.autograd.Function):
    """Leaves out `dropped` of 2 ** 16 numbers, and scales the rest."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dropped: int) -> torch.Tensor:
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        bits = words.view(torch.int16)[: x.numel()]
        ctx.scale = BITS / (BITS - dropped)
        keep_mask = (bits >= dropped - BITS // 2).view(x.shape)
        ctx.save_for_backward(keep_mask)
        return torch.where(keep_mask, x, 0.0).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (keep_mask,) = ctx.saved_tensors
        return torch.where(keep_mask, gradients[0], 0.0) * ctx.scale, None


PARTS = {
    "AlphaAttention": ("q_proj", "k_proj", "v_proj", "out_proj"),
    "AlphaLayer": ("fc1", "fc2"),
    "ConjugateJoin": ("dropout",),
    "FolnetEmbeddings": ("dropout",),
    "FolnetLayer": ("dropout",),
    "GeometricEmbeddings": ("dropout", "projection"),
    "GeometricSelfAttention": ("query", "key", "value"),
    "Intermediate": ("dense",),
    "Join": ("dropout",),
    "MaskedTokenHead": ("dense",),
    "Residual": ("dense", "dropout"),
    "Trans": ("dropout",),
    "UnaryBool": ("fc1", "fc2"),
}
"""Class -> its parts that are worth it."""
METHODS: dict[str, tuple[str, Callable[..., Any]]] = {
    "AlphaAttention": ("_function", by_products),
    "AlphaLayer": ("_feed_forward", blocked),
    "GeometricSelfAttention": ("_function", by_products),
    "UnaryBool": ("forward", blocked),
}
"""Class -> a method of it, and what is put around it."""
