"""The neural logic operators of FOLNet (Chen, ICLR 2023, Table 2).

An operator deduces unary atoms u(x) or binary atoms u(x, y) from premises, by a kernel: both are
linear projections of the atoms of the layer before. Each is a sum over one dimension: over
positions `a`, for which the kernel is normalised by a softmax, or over the `w` numbers of an atom.

Two sums are taken in another order than they are written, which changes no result and stores much
less: mu sums atoms before it projects them, and prod multiplies its three projections before it
applies them to an atom.

Shapes: N rows of a batch (samples, or their streams), T positions x whose atoms are deduced, M
positions that they relate to (T in an encoder; in a decoder those of the source and of the past
come before the T of the present), D1 and D2 widths of unary and binary atoms, H heads, S size of a
head, C channels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import ACT2FN

from .configuration_folnet import FolnetConfig
from .cpu import BlockLinear, in_blocks
from .premises import Columns, Source

LARGEST_EXPONENT = 60.0  # of cjoin's kernel in a decoder, where a maximum would look ahead
SMALLEST_SUM = 1e-30  # below any sum of such exponentials


@dataclass(frozen=True)
class Scope:
    """What the atoms of a layer relate to.

    Attributes:
        mask: additive, the lowest finite number where position a is hidden from x: (N or 1, 1, T or
            1, M). None hides nothing.
        columns: in a decoder, the premises of source and past; None in an encoder.
        key_vectors, value_vectors: for the positions of Shaw et al., a^K and a^V: (N or 1, T, M,
            S).
    """

    mask: torch.Tensor | None = None
    columns: Columns | None = None
    key_vectors: torch.Tensor | None = None
    value_vectors: torch.Tensor | None = None

    def visible(self, dtype: torch.dtype) -> torch.Tensor | None:
        """1 where a position is not hidden, else 0; shaped as `mask`."""
        return None if self.mask is None else (self.mask == 0).to(dtype)


@dataclass(frozen=True)
class Atoms:
    """Normalised atoms of the layer before, which kernels and premises are projected from.

    Attributes:
        unary: u(x): (N, T, D1).
        binary: u(x, y): (N, T, M, D2).
        scope: what they relate to.
    """

    unary: torch.Tensor
    binary: torch.Tensor
    scope: Scope


class LogicOperator(nn.Module):
    """Deduces what is added to the atoms of a branch.

    Attributes:
        letter: what Table 2 and the configuration call it.
        name: its name there, and that of its weights in a layer.

    Args:
        config: of the model.
        has_source: whether it belongs to a decoder behind an encoder, whose atoms it projects.
    """

    letter: ClassVar[str]
    name: ClassVar[str]

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.scaling = config.head_size**-0.5 if config.scaled else 1.0
        self.implication = IMPLICATIONS[config.implication]
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, atoms: Atoms) -> torch.Tensor:
        """What is deduced: (N, T, D1), or (N, T, M, D2) by an operator of the binary branch."""
        raise NotImplementedError

    def heads(self, x_NTC: torch.Tensor) -> torch.Tensor:
        """(N, T, H * S) -> (N, H, T, S)."""
        return x_NTC.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def everywhere(
        self, atoms: Atoms, projection: nn.Module, of_source: nn.Module | None
    ) -> torch.Tensor:
        """Projected unary atoms at all positions that are related to: (N, H, M, S)."""
        present = self.heads(projection(atoms.unary))
        if atoms.scope.columns is None:
            return present

        def project(source: Source) -> torch.Tensor:
            assert of_source is not None
            return self.heads(of_source(source.unary))

        return atoms.scope.columns.extend(SLOTS.index(self.letter), present, project)


class Join(LogicOperator):
    """U <- B x U: u_hs(x) = sum_a K_h(x, a) v_hs(a), K normalised over a (self-attention)."""

    letter, name = "j", "join"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d1, size = config.hidden_size, config.unary_size
        self.kernel = nn.Linear(config.binary_hidden_size, config.num_attention_heads, bias=False)
        self.premise = nn.Linear(d1, size)
        self.output = nn.Linear(size, d1)
        self.source_premise = nn.Linear(d1, size) if has_source else None

    def forward(self, atoms: Atoms) -> torch.Tensor:
        return self.deduce(atoms)[0]

    def deduce(self, atoms: Atoms) -> tuple[torch.Tensor, torch.Tensor]:
        """As `forward`, and the kernel: (N, H, T, M)."""
        kernel_NHTM = binary_kernel(self.kernel, atoms)
        premise_NHMS = self.everywhere(atoms, self.premise, self.source_premise)
        dropped = self.dropout(kernel_NHTM)
        deduced_NTHS = (dropped @ premise_NHMS).transpose(1, 2)
        if (vectors_NTMS := atoms.scope.value_vectors) is not None:
            deduced_NTHS = deduced_NTHS + dropped.transpose(1, 2) @ vectors_NTMS
        return self.output(self.implication(deduced_NTHS).flatten(2)), kernel_NHTM


class Mu(LogicOperator):
    """U <- B x B: u_hs(x) = sum_a K_h(x, a) v_s(x, a), K normalised over a (general RPE).

    The sum over a comes before the projection to v, which has no bias.
    """

    letter, name = "m", "mu"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d2 = config.binary_hidden_size
        self.kernel = nn.Linear(d2, config.num_attention_heads, bias=False)
        self.premise = nn.Linear(d2, config.head_size, bias=False)
        self.output = nn.Linear(config.unary_size, config.hidden_size)

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_NTHM = binary_kernel(self.kernel, atoms).transpose(1, 2)
        deduced_NTHS = self.premise(kernel_NTHM @ atoms.binary)
        return self.output(self.implication(deduced_NTHS).flatten(2))


class ConjugateJoin(LogicOperator):
    """U <- U x B: u_hs(x) = sum_a K_hs(a) v_h(x, a), K normalised over a.

    In a decoder, over the visible a: u_hs(x) = sum_a e^K_hs(a) v_h(x, a) / sum_a e^K_hs(a). With
    `cjoin_premise="size"`, u_sh(x) = sum_a K_sh(a) v_s(a, x).
    """

    letter, name = "c", "cjoin"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d1, size = config.hidden_size, config.unary_size
        self.by_size = config.cjoin_premise == "size"
        channels = config.head_size if self.by_size else config.num_attention_heads
        self.kernel = nn.Linear(d1, size, bias=False)
        self.premise = nn.Linear(config.binary_hidden_size, channels)
        self.output = nn.Linear(size, d1)
        self.source_kernel = nn.Linear(d1, size, bias=False) if has_source else None

    def forward(self, atoms: Atoms) -> torch.Tensor:
        premise_NCTM = channels_first(self.premise, atoms.binary)
        if atoms.scope.columns is not None:
            deduced = self._over_visible(atoms, premise_NCTM)
        elif self.by_size:
            kernel_NSHM = (
                self._kernel(atoms).unflatten(-1, (-1, self.num_heads)).permute(0, 2, 3, 1)
            )
            deduced = (kernel_NSHM @ premise_NCTM).permute(0, 3, 1, 2)
        else:
            deduced = (premise_NCTM @ self.heads(self._kernel(atoms))).transpose(1, 2)
        return self.output(self.implication(deduced).flatten(2))

    def _kernel(self, atoms: Atoms) -> torch.Tensor:
        """The kernel of an encoder: (N, M, H * S)."""
        scores_NMC = self.kernel(atoms.unary)
        if atoms.scope.mask is not None:
            scores_NMC = scores_NMC + atoms.scope.mask[:, 0, 0, :, None]
        return self.dropout(scores_NMC.softmax(1))

    def _over_visible(self, atoms: Atoms, premise_NHTM: torch.Tensor) -> torch.Tensor:
        """(N, T, H, S), where each x sees other positions a."""
        scores_NHMS = self.everywhere(atoms, self.kernel, self.source_kernel).float()
        # A fixed bound: a maximum over all positions would tell of those that come later.
        kernel_NHMS = scores_NHMS.clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT).exp()
        visible = atoms.scope.visible(kernel_NHMS.dtype)
        assert visible is not None  # as in every decoder
        total_NHTS = (visible @ kernel_NHMS).clamp(min=SMALLEST_SUM)
        deduced_NHTS = (premise_NHTM.float() * visible) @ self.dropout(kernel_NHMS) / total_NHTS
        return deduced_NHTS.to(premise_NHTM.dtype).transpose(1, 2)


class Assoc(LogicOperator):
    """B <- U x U: u_h(x, y) = sum_w K_hw(x) v_hw(y) (scores of self-attention)."""

    letter, name = "a", "assoc"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d1, size = config.hidden_size, config.unary_size
        self.kernel = nn.Linear(d1, size)
        self.premise = nn.Linear(d1, size)
        self.output = nn.Linear(config.num_attention_heads, config.binary_hidden_size)
        self.source_premise = nn.Linear(d1, size) if has_source else None

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_NHTS = self.heads(self.kernel(atoms.unary)) * self.scaling
        premise_NHMS = self.everywhere(atoms, self.premise, self.source_premise)
        scores_NHTM = kernel_NHTS @ premise_NHMS.transpose(2, 3)
        if (vectors_NTMS := atoms.scope.key_vectors) is not None:
            by_vector_NTHM = kernel_NHTS.transpose(1, 2) @ vectors_NTMS.transpose(2, 3)
            scores_NHTM = scores_NHTM + by_vector_NTHM.transpose(1, 2)
        return self.output(self.implication(scores_NHTM).permute(0, 2, 3, 1))


class Prod(LogicOperator):
    """B <- U x B: u_h(x, y) = sum_w K_hw(x) v_w(x, y) (general RPE).

    Without an implication, what x does to the atoms u(x, y) is one matrix, for all y.
    """

    letter, name = "p", "prod"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d2 = config.binary_hidden_size
        self.kernel = nn.Linear(config.hidden_size, config.unary_size)
        self.premise = nn.Linear(d2, config.head_size)
        self.output = nn.Linear(config.num_attention_heads, d2)
        self.is_linear = config.implication == "none"

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_NTHS = self.kernel(atoms.unary).unflatten(-1, (self.num_heads, -1)) * self.scaling
        if not self.is_linear:
            premise_NTMS = self.premise(atoms.binary)
            scores_NTMH = premise_NTMS @ kernel_NTHS.transpose(2, 3)
            return self.output(self.implication(scores_NTMH))
        premise, output = (weights(part) for part in (self.premise, self.output))
        # (N, T, D2, D2), and what the bias of the premise adds.
        matrix = output[0] @ (kernel_NTHS @ premise[0])
        shift = (kernel_NTHS @ premise[1]) @ output[0].t() + output[1]
        n, t, m, d2 = atoms.binary.shape
        deduced = torch.baddbmm(
            shift.view(n * t, 1, d2),
            atoms.binary.reshape(n * t, m, d2),
            matrix.view(n * t, d2, d2).transpose(1, 2),
        )
        return deduced.view(n, t, m, d2)


class Trans(LogicOperator):
    """B <- B x B: u_c(x, y) = sum_a K_c(x, a) v_c(a, y), K normalised over a.

    There are H channels c, or D2 with `trans_channels="binary"`. In an encoder-decoder a is in the
    source as well as in the target; v(a, y) is the encoder's where both are in the source, and 0
    where a is in the source and y is not (Appendix A.5).
    """

    letter, name = "t", "trans"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d2 = config.binary_hidden_size
        channels = d2 if config.trans_channels == "binary" else config.num_attention_heads
        self.kernel = nn.Linear(d2, channels, bias=False)
        self.premise = nn.Linear(d2, channels, bias=False)
        self.output = nn.Linear(channels, d2)
        self.source_premise = nn.Linear(d2, channels, bias=False) if has_source else None

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_NCTM = self.dropout(binary_kernel(self.kernel, atoms))
        premise_NCTM = channels_first(self.premise, atoms.binary)
        if atoms.scope.columns is None:
            deduced = kernel_NCTM @ premise_NCTM
        else:
            deduced = self._over_columns(atoms.scope, kernel_NCTM, premise_NCTM)
        return self.output(self.implication(deduced).permute(0, 2, 3, 1))

    def _over_columns(
        self, scope: Scope, kernel_NCTM: torch.Tensor, premise_NCTM: torch.Tensor
    ) -> torch.Tensor:
        """The deduced (N, C, T, M) of a decoder."""
        visible, columns = scope.visible(premise_NCTM.dtype), scope.columns
        assert visible is not None and columns is not None
        premise_NCRM = columns.extend_square(SLOTS.index(self.letter), premise_NCTM * visible)
        rows = premise_NCRM.shape[2]
        deduced = kernel_NCTM[..., -rows:] @ premise_NCRM
        source_NCII = columns.of_source(SLOTS.index(self.letter), self._project)
        if source_NCII is None:
            return deduced
        length = source_NCII.shape[2]
        by_source = kernel_NCTM[..., :length] @ source_NCII
        return torch.cat((deduced[..., :length] + by_source, deduced[..., length:]), dim=-1)

    def _project(self, source: Source) -> torch.Tensor:
        assert self.source_premise is not None
        return channels_first(self.source_premise, source.binary)


class UnaryBool(nn.Module):
    """U <- U x U: u_hs(x) = sum_w K_hw(x) v_ws(x), as a feed-forward block (Appendix A.3)."""

    def __init__(self, config: FolnetConfig):
        super().__init__()
        d1, wide = config.hidden_size, config.intermediate_size
        self.fc1 = BlockLinear(d1, wide)
        self.gate = BlockLinear(d1, wide) if config.boolean_form == "reglu" else None
        self.fc2 = BlockLinear(wide, d1)
        self.activation = ACT2FN[config.hidden_act]

    def forward(self, unary_NTD: torch.Tensor) -> torch.Tensor:
        """What is added to the unary atoms: (N, T, D1)."""
        return in_blocks(self._rows, unary_NTD)

    def _rows(self, rows: torch.Tensor) -> torch.Tensor:
        if self.gate is not None:
            return self.fc2(F.relu(self.gate(rows)) * self.fc1(rows))
        return self.fc2(self.activation(self.fc1(rows)))


class BinaryBool(UnaryBool):
    """B <- B x B: the same for binary atoms.

    In an encoder with `transposed_boolean`, it sees u(y, x) beside u(x, y).
    """

    def __init__(self, config: FolnetConfig, transposed: bool):
        nn.Module.__init__(self)
        d2, wide = config.binary_hidden_size, config.binary_intermediate_size
        width = 2 * d2 if transposed else d2
        self.fc1 = BlockLinear(width, wide)
        self.gate = BlockLinear(width, wide) if config.boolean_form == "reglu" else None
        self.fc2 = BlockLinear(wide, d2)
        self.skip = nn.Linear(d2, d2) if transposed else None
        self.activation = ACT2FN[config.hidden_act]

    def forward(self, binary_NTMD: torch.Tensor) -> torch.Tensor:
        """What is added to the binary atoms: (N, T, M, D2)."""
        if self.skip is None:
            return in_blocks(self._rows, binary_NTMD)
        flipped = binary_NTMD.transpose(1, 2)
        both = torch.cat((binary_NTMD, flipped), dim=-1)
        return in_blocks(self._rows, both) + self.skip(flipped)


def softplus_implication(z: torch.Tensor) -> torch.Tensor:
    """ln(1 + 2 e^z), Equation 27."""
    return F.softplus(z + math.log(2.0))


def relu_implication(z: torch.Tensor) -> torch.Tensor:
    """ReLU(z + ln 2), its lower bound (Appendix D.2)."""
    return F.relu(z + math.log(2.0))


def no_implication(z: torch.Tensor) -> torch.Tensor:
    """The same: an equivalence in place of an implication (Section 3.2)."""
    return z


def binary_kernel(projection: nn.Module, atoms: Atoms) -> torch.Tensor:
    """A binary kernel K(x, a), normalised over the visible a: (N, C, T, M)."""
    scores = channels_first(projection, atoms.binary)
    if atoms.scope.mask is not None:
        scores = scores + atoms.scope.mask
    return scores.softmax(-1)


def channels_first(projection: nn.Module, binary_NTMD: torch.Tensor) -> torch.Tensor:
    """Projected binary atoms, in the order of what multiplies them next: (N, C, T, M)."""
    weight_CD, bias_C = weights(projection)
    n, t, m, d = binary_NTMD.shape
    flat_NDP = binary_NTMD.reshape(n, t * m, d).transpose(1, 2)
    weight_NCD = weight_CD.expand(n, -1, -1)
    if bias_C is None:
        return torch.bmm(weight_NCD, flat_NDP).view(n, -1, t, m)
    return torch.baddbmm(bias_C[:, None], weight_NCD, flat_NDP).view(n, -1, t, m)


def weights(projection: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Matrix (C, D) and bias (C) of a linear layer, or of what stands in its place.

    Adapters and the hooks of offloading work in a layer's `forward`, so that is asked unless the
    layer is a plain one.
    """
    if is_plain_linear(projection):
        return projection.weight, projection.bias
    width = projection.in_features
    place = next(projection.parameters())
    points = torch.eye(width + 1, width, dtype=place.dtype, device=place.device)
    images = projection(points)  # the last one is that of 0
    return (images[:-1] - images[-1]).t(), images[-1]


def is_plain_linear(module: nn.Module) -> bool:
    """Whether a layer's `forward` is nothing but the product with its weight."""
    hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    return type(module) is nn.Linear and not hooked


IMPLICATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": no_implication,
    "softplus": softplus_implication,
    "relu": relu_implication,
}
OPERATORS: dict[str, type[LogicOperator]] = {
    operator.letter: operator for operator in (Join, Mu, ConjugateJoin, Assoc, Trans, Prod)
}
SLOTS = "jact"
"""Operators that keep premises of a decoder's past, in the order of their cache slots."""

__all__ = [
    "OPERATORS",
    "SLOTS",
    "Assoc",
    "Atoms",
    "BinaryBool",
    "ConjugateJoin",
    "Join",
    "LogicOperator",
    "Mu",
    "Prod",
    "Scope",
    "Trans",
    "UnaryBool",
]
