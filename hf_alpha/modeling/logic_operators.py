"""The neural logic operators of FOLNet (Chen, ICLR 2023, Table 2).

An operator deduces unary atoms u(x) or binary atoms u(x, y) from premises, by a kernel: both are
linear projections of the atoms of the layer before. Each is a sum over one dimension: over
positions `a`, for which the kernel is normalised by a softmax, or over the `w` numbers of an atom.

Two sums are taken in another order than they are written, which changes no result and stores much
less: mu sums atoms before it projects them, and prod multiplies its three projections before it
applies them to an atom.

In a decoder, positions see earlier ones only. Kernels that are normalised and that Table 5 masks
get no share of the softmax: multiplied by 0 behind it, they would leave traces in the sum. Premises
of pairs (x, y) that nothing reads are not masked.

To deduce the row u(x, y) of a new position x, a decoder needs premises at all positions that x
relates to, and never the binary atoms of other rows. That is what its cache keeps: `keys` of a slot
grow by a row with each position; for trans, whose premise v(a, y) is a matrix, `values` grow by a
column too.

Shapes: N rows of a batch (samples, or their streams), T positions x whose atoms are deduced, M
positions that they relate to (T in an encoder; in a decoder I of the source and P of the past come
before the T of the present), D1 and D2 widths of unary and binary atoms, H heads, S size of a
head, C channels.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicLayer, EncoderDecoderCache
from transformers.utils.generic import maybe_autocast

from .checks import is_recorded, is_transformed
from .configuration_folnet import FolnetConfig
from .relations import RelationGates

LARGEST_EXPONENT = 60.0  # of cjoin's kernel in a decoder, where one maximum would look ahead
SMALLEST_SUM = 1e-30  # below any sum of such exponentials
HISTORY = 0  # the cache slot that tells how many positions there are, and which symbols they hold
FEW_PAIRS, MANY_PAIRS = 1 << 12, 1 << 16  # of a block: few stay in a CPU's cache


class PremiseLayer(DynamicLayer):
    """A cache slot of premises: `keys` (B, C * S, P, E) and `values` (B, C * S, P, M or 0)."""

    keys: torch.Tensor
    values: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the present rows; `values` of the past have zeros in the columns that are new."""
        if self.is_initialized and (columns := value_states.shape[-1] - self.values.shape[-1]) > 0:
            self.values = F.pad(self.values, (0, columns))
        return super().update(key_states, value_states, *args, **kwargs)

    def get_seq_length(self) -> int:
        """Returns P; `keys` of trans have rows of width 0."""
        return self.keys.shape[-2] if self.is_initialized else 0

    def crop(self, tokens_to_remove: int) -> None:
        """Forget so many of the last positions; the number is negative, as in the base class."""
        before = self.get_seq_length()
        super().crop(tokens_to_remove)
        num_removed = before - self.get_seq_length()
        if num_removed and self.values.shape[-1] > num_removed:
            self.values = self.values[..., :-num_removed]


def use_premise_layers(cache: Cache, layers: int) -> int:
    """Let a cache that holds nothing yet keep the premises of so many layers; returns its slots.

    Raises:
        ValueError: it cannot grow, as static caches cannot.
    """
    if any(layer.get_max_length() > 0 for layer in cache.layers):
        raise ValueError(
            "FOLNet keeps matrices of premises that grow with the text, for which there is no "
            "static cache: leave out cache_implementation, or use a DynamicCache"
        )
    slots = 1 + len(SLOTS) * layers
    cache.layers = [PremiseLayer() for _ in range(slots)]
    return slots


@dataclass(frozen=True)
class Source:
    """The encoder's atoms, a row for each row of the decoder.

    Attributes:
        unary: u_L(x): (N, I, D1).
        binary: u_L(x, y): (N, I, I, D2).
    """

    unary: torch.Tensor
    binary: torch.Tensor


@dataclass(frozen=True)
class Columns:
    """Premises at the positions that a layer of a decoder relates to.

    Attributes:
        streams: S.
        source: the encoder's atoms, in an encoder-decoder.
        past: cache of the premises of the decoder's own positions.
        across: cache of the premises of the source's positions.
    """

    layer: int
    streams: int = 1
    source: Source | None = None
    past: Cache | None = None
    across: EncoderDecoderCache | None = None

    def slot(self, letter: str) -> int:
        """Returns the slot of an operator of this layer."""
        return 1 + len(SLOTS) * self.layer + SLOTS.index(letter)

    def extend(
        self, letter: str, present: torch.Tensor, project: Callable[[Source], torch.Tensor]
    ) -> torch.Tensor:
        """Returns an operator's premises of source, past and present: (C, N, M, E).

        Args:
            present: premises of the present positions: (C, N, T, E).
            project: makes (C, N, I, E) of the source's atoms.
        """
        present = self._remember(letter, present, present[..., :0])[0]
        source = self.of_source(letter, project)
        return present if source is None else torch.cat((source, present), dim=2)

    def extend_square(self, letter: str, present: torch.Tensor) -> torch.Tensor:
        """Returns v(a, y) for a of past and present, (C, N, P + T, M), from (C, N, T, M)."""
        return self._remember(letter, present[..., :0], present)[1]

    def of_source(
        self, letter: str, project: Callable[[Source], torch.Tensor]
    ) -> torch.Tensor | None:
        """Returns what `project` makes of the source's atoms; a cache keeps it for later calls."""
        if self.source is None or self.across is None:
            return None if self.source is None else project(self.source)
        cache, slot = self.across.cross_attention_cache, self.slot(letter)
        if not self.across.is_updated.get(slot):
            premises = self._turned(project(self.source))
            cache.update(premises, premises[..., :0], slot)
            self.across.is_updated[slot] = True
        return self._turned(cache.layers[slot].keys)

    def _remember(
        self, letter: str, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Notes present premises in the cache; returns keys and values of past and present."""
        if self.past is None:
            return keys, values
        entries = self.past.update(self._turned(keys), self._turned(values), self.slot(letter))
        return self._turned(entries[0]), self._turned(entries[1])

    def _turned(self, x: torch.Tensor) -> torch.Tensor:
        """Puts samples first, as caches are reordered, or channels first again.

        (C, B * S, ...) becomes (B, C * S, ...), and the other way round.
        """
        return x.unflatten(1, (-1, self.streams)).transpose(0, 1).flatten(1, 2)


@dataclass(frozen=True)
class Scope:
    """What the atoms of a layer relate to.

    Attributes:
        mask: additive, the lowest finite number where position a is hidden from x: (N or 1, T or 1,
            M). None hides nothing.
        columns: in a decoder, the premises of source and past; None in an encoder.
        key_vectors, value_vectors: for the positions of Shaw et al., a^K and a^V: (N or 1, T, M,
            S).
        relations: 1 where one holds between x and a, else 0, for the gates of kernels: each
            (N, T, M).
    """

    mask: torch.Tensor | None = None
    columns: Columns | None = None
    key_vectors: torch.Tensor | None = None
    value_vectors: torch.Tensor | None = None
    relations: tuple[torch.Tensor, ...] = ()

    def visible(self, dtype: torch.dtype) -> torch.Tensor:
        """Returns 1 where a position is visible, else 0; shaped as `mask`, which a decoder has."""
        assert self.mask is not None
        return (self.mask == 0).to(dtype)

    def traced(self) -> tuple[torch.Tensor | None, ...]:
        """Returns the tensors that gradients flow into: the source's atoms, and both vectors.

        A layer that recomputes its activations takes them as arguments of their own.
        """
        source = None if self.columns is None else self.columns.source
        atoms = (None, None) if source is None else (source.unary, source.binary)
        return (*atoms, self.key_vectors, self.value_vectors)

    def carrying(
        self,
        unary: torch.Tensor | None,
        binary: torch.Tensor | None,
        key_vectors: torch.Tensor | None,
        value_vectors: torch.Tensor | None,
    ) -> "Scope":
        """Returns this scope with the tensors that `traced` gave in place of its own."""
        columns = self.columns
        if columns is not None and unary is not None and binary is not None:
            columns = replace(columns, source=Source(unary, binary))
        return replace(self, columns=columns, key_vectors=key_vectors, value_vectors=value_vectors)


@dataclass(frozen=True)
class Atoms:
    """Normalised atoms of the layer before, and what is projected from the binary ones.

    Attributes:
        unary: u(x): (N, T, D1).
        binary: u(x, y): (N, T, M, D2).
        kernels: letter of an operator -> its kernel K(x, a), normalised over the visible a:
            (C, N, T, M).
        premises: likewise, its premise v(x, a).
    """

    unary: torch.Tensor
    binary: torch.Tensor
    scope: Scope
    kernels: dict[str, torch.Tensor]
    premises: dict[str, torch.Tensor]

    @classmethod
    def of(
        cls,
        unary: torch.Tensor,
        binary: torch.Tensor,
        scope: Scope,
        operators: "Sequence[LogicOperator]",
    ) -> "Atoms":
        """Returns atoms with the projections that operators use, in as few products as possible.

        Args:
            unary: u(x): (N, T, D1).
            binary: u(x, y): (N, T, M, D2).
        """
        softmaxed = {o.letter: o.kernel for o in operators if o.kernel_is_binary}
        plain = {o.letter: o.premise for o in operators if o.premise_is_projected}
        kernels, premises = {}, {}
        if softmaxed:
            scores_CNTM = channels_first(list(softmaxed.values()), binary)
            if scope.relations:
                scores = _split(scores_CNTM, softmaxed)
                for operator in operators:
                    if isinstance(operator, Join):
                        scores["j"] = operator.related(scores["j"], unary, scope.relations)
                scores_CNTM = torch.cat(list(scores.values()))
            if scope.mask is not None:
                scores_CNTM = scores_CNTM + scope.mask
            kernels = _split(scores_CNTM.softmax(-1), softmaxed)
        if plain:
            premises = _split(channels_first(list(plain.values()), binary), plain)
        return cls(unary, binary, scope, kernels, premises)


class LogicOperator(nn.Module):
    """Deduces what is added to the atoms of a branch: (N, T, D1), or (N, T, M, D2).

    Attributes:
        letter: what Table 2 and the configuration call it.
        name: its name there, and that of its weights in a layer.
        kernel_is_binary: whether its kernel is projected from binary atoms, and normalised.
        premise_is_projected: whether its premise is projected from binary atoms, one by one.

    Args:
        has_source: whether it belongs to a decoder behind an encoder, whose atoms it projects.
    """

    letter: ClassVar[str]
    name: ClassVar[str]
    kernel_is_binary: ClassVar[bool] = False
    premise_is_projected: ClassVar[bool] = False
    kernel: nn.Module
    premise: nn.Module
    output: nn.Module

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.scaling = config.head_size**-0.5  # of assoc and prod, as in the original code
        self.form = config.implication

    def implication(self, z: torch.Tensor) -> torch.Tensor:
        """Returns ln(1 + 2 e^z), Equation 27, or ReLU(z + ln 2), a lower bound (Appendix D.2).

        By default z itself, as where an implication is an equivalence (Section 3.2).
        """
        if self.form == "none":
            return z
        z = z + math.log(2.0)
        return F.softplus(z) if self.form == "softplus" else F.relu(z)

    def heads(self, x_NTC: torch.Tensor) -> torch.Tensor:
        """Splits heads and puts them first: (N, T, H * S) -> (H, N, T, S)."""
        return x_NTC.unflatten(-1, (self.num_heads, -1)).permute(2, 0, 1, 3)

    def everywhere(
        self, atoms: Atoms, projection: nn.Module, of_source: nn.Module | None
    ) -> torch.Tensor:
        """Returns projected unary atoms at all positions that are related to: (H, N, M, S).

        Args:
            atoms: of the present positions; their scope knows those of the past and the source.
            projection: of the decoder's or encoder's own atoms.
            of_source: projection of the source's atoms, where there is a source.
        """
        present = self.heads(projection(atoms.unary))
        if atoms.scope.columns is None:
            return present

        def project(source: Source) -> torch.Tensor:
            assert of_source is not None
            return self.heads(of_source(source.unary))

        return atoms.scope.columns.extend(self.letter, present, project)

    def write_unary(self, deduced_HNTS: torch.Tensor) -> torch.Tensor:
        """Joins the heads of what is deduced and projects it: (N, T, D1)."""
        return self.output(self.implication(deduced_HNTS).permute(1, 2, 0, 3).flatten(2))

    def write_binary(self, deduced_CNTM: torch.Tensor) -> torch.Tensor:
        """Projects what is deduced: (N, T, M, D2)."""
        channels, *shape = deduced_CNTM.shape
        rows = self.implication(deduced_CNTM).reshape(channels, -1).t()  # no copy is made of it
        return self.output(rows).view(*shape, -1)


class Join(LogicOperator):
    """U <- B x U: u_hs(x) = sum_a K_h(x, a) v_hs(a), K normalised over a (self-attention).

    Table 5 masks K_h(x, a).

    Where the encoding of symbols relates positions, gate_rh(x) r(x, a) is added to the scores of
    K_h for each relation r, and half of the heads begin with "the same symbol as".
    """

    letter, name = "j", "join"
    kernel_is_binary = True

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d1, size = config.hidden_size, config.unary_size
        self.kernel = nn.Linear(config.binary_hidden_size, config.num_attention_heads, bias=False)
        self.premise = nn.Linear(d1, size)
        self.output = nn.Linear(size, d1)
        self.source_premise = nn.Linear(d1, size) if has_source else None
        heads, relations = config.num_attention_heads, 3 if has_source else 1
        halves = (0, 0) if has_source else (0,)
        self.gates = None
        if config.memory is not None:
            self.gates = RelationGates(d1, heads, relations, halves=halves)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def related(
        self,
        scores_CNTM: torch.Tensor,
        unary_NTD: torch.Tensor,
        relations: tuple[torch.Tensor, ...],
    ) -> torch.Tensor:
        """Returns the scores of the kernel, (C, N, T, M), with what relations add to them."""
        assert self.gates is not None
        gates_RHNT = self.gates(unary_NTD).unflatten(-1, (len(relations), -1)).permute(2, 3, 0, 1)
        for gate_HNT, relation in zip(gates_RHNT, relations, strict=True):
            scores_CNTM = torch.addcmul(scores_CNTM, gate_HNT[..., None], relation.to(gate_HNT))
        return scores_CNTM

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_HNTM = self.dropout(atoms.kernels[self.letter])
        premise_HNMS = self.everywhere(atoms, self.premise, self.source_premise)
        deduced_HNTS = kernel_HNTM @ premise_HNMS
        if (vectors_NTMS := atoms.scope.value_vectors) is not None:
            by_vector_NTHS = kernel_HNTM.permute(1, 2, 0, 3) @ vectors_NTMS
            deduced_HNTS = deduced_HNTS + by_vector_NTHS.permute(2, 0, 1, 3)
        return self.write_unary(deduced_HNTS)


class Mu(LogicOperator):
    """U <- B x B: u_hs(x) = sum_a K_h(x, a) v_s(x, a), K normalised over a (general RPE).

    The sum over a comes before the projection to v, which has no bias. Table 5 masks K_h(x, a),
    and v_s(x, a) of the same pairs.
    """

    letter, name = "m", "mu"
    kernel_is_binary = True

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d2 = config.binary_hidden_size
        self.kernel = nn.Linear(d2, config.num_attention_heads, bias=False)
        self.premise = nn.Linear(d2, config.head_size, bias=False)
        self.output = nn.Linear(config.unary_size, config.hidden_size)

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_NTHM = atoms.kernels[self.letter].permute(1, 2, 0, 3)
        deduced_NTHS = self.premise(kernel_NTHM @ atoms.binary)
        return self.output(self.implication(deduced_NTHS).flatten(2))


class ConjugateJoin(LogicOperator):
    """U <- U x B: u_hs(x) = sum_a K_hs(a) v_h(x, a), K normalised over a.

    Table 5 masks v_h(x, a). In a decoder, over the visible a:
    u_hs(x) = sum_a e^K_hs(a) v_h(x, a) / sum_a e^K_hs(a). With `cjoin_premise="size"`,
    u_sh(x) = sum_a K_sh(a) v_s(a, x).

    Exponentials of scores beyond `LARGEST_EXPONENT` would leave the range of float32. A position x
    that sees such scores subtracts their maximum first, one after the other; in a graph that is
    compiled or exported they count as that number.
    """

    letter, name = "c", "cjoin"
    premise_is_projected = True

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d1, size = config.hidden_size, config.unary_size
        self.by_size = config.cjoin_premise == "size"
        channels = config.head_size if self.by_size else config.num_attention_heads
        self.kernel = nn.Linear(d1, size, bias=False)
        self.premise = nn.Linear(config.binary_hidden_size, channels)
        self.output = nn.Linear(size, d1)
        self.source_kernel = nn.Linear(d1, size, bias=False) if has_source else None
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, atoms: Atoms) -> torch.Tensor:
        premise_CNTM = atoms.premises[self.letter]
        if atoms.scope.columns is not None:
            return self.write_unary(self._over_visible(atoms, premise_CNTM))
        kernel_NMC = self._kernel(atoms)
        if self.by_size:
            kernel_SNHM = kernel_NMC.unflatten(-1, (-1, self.num_heads)).permute(2, 0, 3, 1)
            deduced = (kernel_SNHM @ premise_CNTM).transpose(2, 3)
        else:
            deduced = premise_CNTM @ self.heads(kernel_NMC)
        return self.write_unary(deduced)

    def _kernel(self, atoms: Atoms) -> torch.Tensor:
        """Returns the kernel of an encoder, normalised over M: (N, M, H * S)."""
        scores_NMC = self.kernel(atoms.unary)
        if atoms.scope.mask is not None:
            scores_NMC = scores_NMC + atoms.scope.mask.transpose(1, 2)
        return self.dropout(scores_NMC.softmax(1))

    def _over_visible(self, atoms: Atoms, premise_HNTM: torch.Tensor) -> torch.Tensor:
        """Returns what is deduced where each x sees other positions a: (H, N, T, S)."""
        scores_HNMS = self.everywhere(atoms, self.kernel, self.source_kernel)
        wide = torch.promote_types(scores_HNMS.dtype, torch.float32)
        # A fixed bound: a maximum over all positions would tell of those that come later.
        kernel_HNMS = scores_HNMS.to(wide).clamp(-LARGEST_EXPONENT, LARGEST_EXPONENT).exp()
        visible = atoms.scope.visible(kernel_HNMS.dtype)
        # Both sums leave the range of the half precision that autocast would choose.
        with maybe_autocast(visible.device.type, enabled=False):
            total_HNTS = (visible @ kernel_HNMS).clamp(min=SMALLEST_SUM)
            shown_HNTM = premise_HNTM.to(wide) * visible
            deduced_HNTS = shown_HNTM @ self.dropout(kernel_HNMS) / total_HNTS
            if not is_recorded(visible):
                deduced_HNTS = self._beyond_bound(deduced_HNTS, scores_HNMS, shown_HNTM, visible)
        return deduced_HNTS.to(premise_HNTM.dtype)

    def _beyond_bound(
        self,
        deduced_HNTS: torch.Tensor,
        scores_HNMS: torch.Tensor,
        shown_HNTM: torch.Tensor,
        visible_NTM: torch.Tensor,
    ) -> torch.Tensor:
        """Returns what is deduced, also at positions that see scores beyond the bound.

        Only these are deduced anew: what a position sees alone decides how its sums are taken.

        Args:
            deduced_HNTS: right wherever the visible scores lie within the bound.
            scores_HNMS: K, as they are.
            shown_HNTM: v, 0 where it is hidden.
            visible_NTM: 1 where a position is visible, else 0; M wide.
        """
        large_NM = (scores_HNMS.abs() > LARGEST_EXPONENT).any(-1).any(0)
        sees_NT = (visible_NTM.bool() & large_NM[:, None]).any(-1)
        if not sees_NT.any():
            return deduced_HNTS
        rows = list(deduced_HNTS.unbind(2))
        for x in sees_NT.any(0).nonzero()[:, 0].tolist():
            hidden_NM = visible_NTM[:, x, :, None] == 0
            lowest = torch.finfo(shown_HNTM.dtype).min
            seen_HNMS = scores_HNMS.to(shown_HNTM.dtype).masked_fill(hidden_NM, lowest)
            row_HNS = (shown_HNTM[:, :, x, None] @ self.dropout(seen_HNMS.softmax(2)))[:, :, 0]
            rows[x] = torch.where(sees_NT[:, x, None], row_HNS, rows[x])
        return torch.stack(rows, dim=2)


class Assoc(LogicOperator):
    """B <- U x U: u_h(x, y) = sum_w K_hw(x) v_hw(y) (scores of self-attention).

    K is linear, and Table 5 masks nothing.
    """

    letter, name = "a", "assoc"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d1, size = config.hidden_size, config.unary_size
        self.kernel = nn.Linear(d1, size)
        self.premise = nn.Linear(d1, size)
        self.output = nn.Linear(config.num_attention_heads, config.binary_hidden_size)
        self.source_premise = nn.Linear(d1, size) if has_source else None

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_HNTS = self.heads(self.kernel(atoms.unary)) * self.scaling
        premise_HNMS = self.everywhere(atoms, self.premise, self.source_premise)
        scores_HNTM = kernel_HNTS @ premise_HNMS.transpose(2, 3)
        if (vectors_NTMS := atoms.scope.key_vectors) is not None:
            by_vector_NTHM = kernel_HNTS.permute(1, 2, 0, 3) @ vectors_NTMS.transpose(2, 3)
            scores_HNTM = scores_HNTM + by_vector_NTHM.permute(2, 0, 1, 3)
        return self.write_binary(scores_HNTM)


class Prod(LogicOperator):
    """B <- U x B: u_h(x, y) = sum_w K_hw(x) v_w(x, y) (general RPE).

    K is linear; Table 5 masks v_w(x, y), of pairs whose result nothing reads.

    Without an implication, what x does to the atoms u(x, y) is one matrix, for all y.
    """

    letter, name = "p", "prod"

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d2 = config.binary_hidden_size
        self.kernel = nn.Linear(config.hidden_size, config.unary_size)
        self.premise = nn.Linear(d2, config.head_size)
        self.output = nn.Linear(config.num_attention_heads, d2)

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_NTHS = self.kernel(atoms.unary).unflatten(-1, (self.num_heads, -1)) * self.scaling
        if self.form != "none":
            scores_NTMH = self.premise(atoms.binary) @ kernel_NTHS.transpose(2, 3)
            return self.output(self.implication(scores_NTMH))
        premise_SD, premise_S = biased(self.premise, kernel_NTHS.device)
        output_DH, output_D = biased(self.output, kernel_NTHS.device)
        matrix_NTDD = output_DH @ (kernel_NTHS @ premise_SD)
        shift_NTD = F.linear(kernel_NTHS @ premise_S, output_DH, output_D)
        n, t, m, d2 = atoms.binary.shape
        deduced = torch.baddbmm(
            shift_NTD.view(n * t, 1, d2),
            atoms.binary.reshape(n * t, m, d2),
            matrix_NTDD.view(n * t, d2, d2).transpose(1, 2),
        )
        return deduced.view(n, t, m, d2)


class Trans(LogicOperator):
    """B <- B x B: u_c(x, y) = sum_a K_c(x, a) v_c(a, y), K normalised over a.

    Table 5 masks K_c(x, a) and v_c(a, y): the sum is over y <= a <= x.

    There are H channels c, or D2 with `trans_channels="binary"`. In an encoder-decoder a is in the
    source as well as in the target; v(a, y) is the encoder's where both are in the source, and 0
    where a is in the source and y is not (Appendix A.5).
    """

    letter, name = "t", "trans"
    kernel_is_binary = premise_is_projected = True

    def __init__(self, config: FolnetConfig, has_source: bool = False):
        super().__init__(config)
        d2 = config.binary_hidden_size
        channels = d2 if config.trans_channels == "binary" else config.num_attention_heads
        self.kernel = nn.Linear(d2, channels, bias=False)
        self.premise = nn.Linear(d2, channels, bias=False)
        self.output = nn.Linear(channels, d2)
        self.source_premise = nn.Linear(d2, channels, bias=False) if has_source else None
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, atoms: Atoms) -> torch.Tensor:
        kernel_CNTM = self.dropout(atoms.kernels[self.letter])
        premise_CNTM = atoms.premises[self.letter]
        if atoms.scope.columns is None:
            return self.write_binary(kernel_CNTM @ premise_CNTM)
        return self.write_binary(self._over_columns(atoms.scope, kernel_CNTM, premise_CNTM))

    def _over_columns(
        self, scope: Scope, kernel_CNTM: torch.Tensor, premise_CNTM: torch.Tensor
    ) -> torch.Tensor:
        """Returns what a decoder deduces from past, present and source: (C, N, T, M)."""
        columns = scope.columns
        assert columns is not None
        masked = premise_CNTM * scope.visible(premise_CNTM.dtype)
        premise_CNRM = columns.extend_square(self.letter, masked)
        deduced = kernel_CNTM[..., -premise_CNRM.shape[2] :] @ premise_CNRM
        source_CNII = columns.of_source(self.letter, self._project)
        if source_CNII is None:
            return deduced
        length = source_CNII.shape[2]
        by_source = kernel_CNTM[..., :length] @ source_CNII
        return torch.cat((deduced[..., :length] + by_source, deduced[..., length:]), dim=-1)

    def _project(self, source: Source) -> torch.Tensor:
        return channels_first([self.source_premise], source.binary)


class UnaryBool(nn.Module):
    """U <- U x U: u_hs(x) = sum_w K_hw(x) v_ws(x), as a feed-forward block (Appendix A.3).

    Args:
        width, wide: of the atoms, and between the products.
        input_width: width of what goes in, where that is more than the atoms.
    """

    def __init__(self, config: FolnetConfig, width: int, wide: int, input_width: int | None = None):
        super().__init__()
        input_width = width if input_width is None else input_width
        self.fc1 = nn.Linear(input_width, wide)
        self.fc2 = nn.Linear(wide, width)
        self.activation = ACT2FN[config.hidden_act]

    def forward(self, atoms: torch.Tensor) -> torch.Tensor:
        """Returns what is added to the atoms, of the same shape."""
        return self.fc2(self.activation(self.fc1(atoms)))


class BinaryBool(UnaryBool):
    """B <- B x B: what [`UnaryBool`] does, to the binary atoms u(x, y) (N, T, M, D2).

    In an encoder with `transposed_boolean`, it sees u(y, x) beside u(x, y), and has a linear skip
    of it.

    Between its two products there are several times as many numbers as in the atoms, for each pair
    of positions: the most of all that training would store. They are computed in blocks of pairs,
    and once more for the gradients.
    """

    def __init__(self, config: FolnetConfig, transposed: bool):
        width = config.binary_hidden_size
        wide = config.binary_intermediate_size
        super().__init__(config, width, wide, 2 * width if transposed else width)
        self.skip = nn.Linear(width, width) if transposed else None

    def forward(self, atoms: torch.Tensor) -> torch.Tensor:
        both = (atoms,) if self.skip is None else (atoms, atoms.transpose(1, 2))
        factors = self._factors(atoms.device)
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or is_transformed():
            return self._of_block(factors, *both).view(atoms.shape)
        # Gradients of many blocks are summed: few pairs only where these sums are precise.
        precise = atoms.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
        pairs = FEW_PAIRS if atoms.is_cpu and precise else MANY_PAIRS
        deduce = self._recomputed if torch.is_grad_enabled() else self._of_block
        blocks = zip(*(_blocks(x, pairs) for x in both), strict=True)
        return torch.cat([deduce(factors, *block) for block in blocks]).view(atoms.shape)

    def _recomputed(self, *block: Any) -> torch.Tensor:
        """Returns what `_of_block` does, of which only its arguments are kept for the gradients."""
        return checkpoint(self._of_block, *block, use_reentrant=False, preserve_rng_state=False)

    def _of_block(
        self,
        factors: tuple[torch.Tensor, ...],
        atoms: torch.Tensor,
        flipped: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns what is added to R of the atoms u(x, y): (R, D2).

        Args:
            factors: matrices and biases of the two products and of the skip.
            atoms: R of them, of whatever shape.
            flipped: likewise u(y, x), if it takes part.
        """
        w_in, b_in, w_out, b_out, *skip = factors
        rows = atoms if flipped is None else torch.cat((atoms, flipped), dim=-1)
        rows = rows.reshape(-1, rows.shape[-1])
        z = self.activation(torch.addmm(b_in, rows, w_in))
        deduced = torch.addmm(b_out, z, w_out)
        if flipped is None:
            return deduced
        deduced = torch.addmm(deduced, rows[:, atoms.shape[-1] :], skip[0])
        return deduced + skip[1].to(deduced.dtype)

    def _factors(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        """Returns what `_of_block` multiplies by."""
        first, behind = biased(self.fc1, device), biased(self.fc2, device)
        skip = [] if self.skip is None else [biased(self.skip, device)]
        return tuple(x for weight, bias in (first, behind, *skip) for x in (weight.t(), bias))


def _blocks(atoms_NTMD: torch.Tensor, pairs: int) -> Sequence[torch.Tensor]:
    """Returns views of so many pairs each, in their order: some texts, or rows of one."""
    _, t, m, _ = atoms_NTMD.shape
    if t * m <= pairs:
        return atoms_NTMD.split(pairs // max(t * m, 1))
    return [part for text in atoms_NTMD.split(1) for part in text.split(max(1, pairs // m), 1)]


def channels_first(projections: Sequence[Any], binary_NTMD: torch.Tensor) -> torch.Tensor:
    """Returns projected binary atoms, in the order in which they are multiplied: (C, N, T, M).

    Args:
        projections: linear layers, whose channels follow each other.
    """
    parts = [weights(projection, binary_NTMD.device) for projection in projections]
    weight_CD = torch.cat([weight for weight, _ in parts])
    n, t, m, d = binary_NTMD.shape
    flat_DP = binary_NTMD.reshape(-1, d).t()
    if all(bias is None for _, bias in parts):
        return (weight_CD @ flat_DP).view(-1, n, t, m)
    biases = [weight.new_zeros(len(weight)) if bias is None else bias for weight, bias in parts]
    return torch.addmm(torch.cat(biases)[:, None], weight_CD, flat_DP).view(-1, n, t, m)


def _split(x_CNTM: torch.Tensor, projections: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Splits channels (C, N, T, M) among operators: letter -> (its channels, N, T, M)."""
    sizes = [projection.out_features for projection in projections.values()]
    return dict(zip(projections, x_CNTM.split(sizes), strict=True))


def weights(projection: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Returns matrix (C, D) and bias (C) of a linear layer, or of what stands in its place.

    Adapters and the hooks of offloading work in a layer's `forward`, so that is asked unless the
    layer is a plain one.
    """
    if is_plain_linear(projection):
        return projection.weight, projection.bias
    width = projection.in_features
    dtype = next(projection.parameters()).dtype  # offloaded, it has no device
    points = torch.eye(width + 1, width, dtype=dtype, device=device)
    images = projection(points)  # the last one is that of 0
    return (images[:-1] - images[-1]).t(), images[-1]


def biased(projection: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns matrix (C, D) and bias (C) of a layer that has a bias."""
    weight, bias = weights(projection, device)
    assert bias is not None
    return weight, bias


def is_plain_linear(module: nn.Module) -> bool:
    """Returns whether a layer's `forward` is nothing but the product with its weight."""
    hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
    ours = type(module).__module__.rpartition(".")[0] == __name__.rpartition(".")[0]
    return (type(module) is nn.Linear or ours) and not hooked


OPERATORS: dict[str, type[LogicOperator]] = {
    operator.letter: operator for operator in (Join, Mu, ConjugateJoin, Assoc, Trans, Prod)
}
SLOTS = "jact"
"""Operators that keep premises of a decoder's past, in the order of their cache slots."""
