"""Relations between positions, which say where the same symbol stands, and attention with them.

    score(t, m) = q_t . k_m / sqrt(K) + sum over relations r of gate_r(h_t) * r(t, m)

What makes use of them is in `encoding_relational`.

Shapes: B batch, N sources (B, or one for all beams of a sample), S symbols of a sample's input,
L source length, T target length, M keys (cached ones included), D model width, H heads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Self, TypeVar, cast

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import initialization as init

from .masks import are_few

Made = TypeVar("Made")
Rows = TypeVar("Rows", bound=torch.Tensor | None)

Matrices = tuple[torch.Tensor, ...] | torch.Tensor

PREFIX = "relational_"  # of the names of attentions of hosts that add relations to their scores
START = 2.0  # score of the same symbol, in the half of the heads that begin with one


def scaled(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Returns numbers that stand alone, which are stored as parts of a scale."""
    return x if scale == 1 else x * scale


def alike(x: torch.Tensor, y: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns `x` with the type, or another one, and on the device of `y`: layers lie on several.

    Mostly it does already, and to ask PyTorch takes as long as a small operation.
    """
    dtype = y.dtype if dtype is None else dtype
    return x if x.dtype == dtype and x.device == y.device else x.to(y.device, dtype)


class RelationGates(nn.Module):
    """How much each head of an attention block adds to its scores where a relation holds.

    A position decides that by its hidden state, one number for each head and relation. It has the
    parameters of a linear layer and is none: quantizers put others in the place of linear layers,
    which know no scale.

    Args:
        width: D.
        num_heads: H.
        num_relations: of the block. (..., D) becomes (..., relations * H), the first relation's
            heads first.
        start: what half of the heads begin with for a relation; the rest begins with 0.
        halves: which half, of the first relations; others begin with 0 everywhere.
        scale: of the bias, which is stored as a part of it.
    """

    of_symbols = True

    def __init__(
        self,
        width: int,
        num_heads: int,
        num_relations: int,
        start: float = START,
        halves: tuple[int, ...] = (0,),
        scale: float = 1.0,
    ):
        super().__init__()
        linear = nn.Linear(width, num_heads * num_relations)
        self.weight, self.bias = linear.weight, linear.bias
        self.num_heads = num_heads
        self.start = start
        self.halves = halves
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns the gates for states (..., D)."""
        return F.linear(x, self.weight, scaled(self.bias, self.scale))

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with the first relations, each in half of the heads."""
        init.zeros_(self.weight)
        start = torch.zeros_like(self.bias).view(-1, self.num_heads)
        middle = self.num_heads // 2
        for relation, half in enumerate(self.halves):
            part = slice(middle, None) if half else slice(middle)
            start[relation, part] = self.start / self.scale
        init.copy_(self.bias, start.flatten())


def add_relations(
    mask: torch.Tensor | None, gates: torch.Tensor, relations: Matrices
) -> torch.Tensor:
    """Returns a mask with what relations add to the scores: (N, H, beams * T, M).

    Args:
        mask: additive, one that (N, H, beams * T, M) broadcasts with.
        gates: from [`RelationGates`]: (B, T, relations * H).
        relations: see `Relations.of_sources`.
    """
    if isinstance(relations, torch.Tensor):
        n, beams, kinds, _ = relations.shape
        relations = alike(relations, gates)
        if kinds * beams == 1:
            added = gates.view(n, -1, 1, 1) * relations
        else:
            added = gates.view(n * beams, kinds, -1).mT.bmm(relations.flatten(0, 1))
            added = added.unflatten(0, (n, beams)).transpose(1, 2)
        return added if mask is None else mask + added
    for gate, relation in _gated(gates, relations):
        mask = gate * relation if mask is None else torch.addcmul(mask, gate, relation)
    assert mask is not None
    return mask


def add_relations_(
    scores: torch.Tensor, gates_BTG: torch.Tensor, relations: Matrices
) -> torch.Tensor:
    """Adds what relations add to scores (N, H, beams * T, M) in place, without a mask."""
    if isinstance(relations, torch.Tensor):  # one by one too, so that sums have the same order
        relations = relations[:, None].unbind(3)
    for gate, relation in _gated(gates_BTG, relations):
        scores.addcmul_(gate, relation)
    return scores


def _gated(
    gates_BTG: torch.Tensor, relations: tuple[torch.Tensor, ...]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Returns the gates of each relation, (N, H, beams * T, 1), and the relation.

    Args:
        gates_BTG: or (B, H, T, relations, 1), where each sample has its own source.
    """
    moved = (alike(relation, gates_BTG, relation.dtype) for relation in relations)
    if gates_BTG.dim() == 5:
        return zip(gates_BTG.unbind(3), moved, strict=True)
    rows, kinds = relations[0].shape[0], len(relations)
    if kinds == 1:  # with nothing to put together for the gradients
        gates: Any = (gates_BTG.reshape(rows, -1, gates_BTG.shape[-1], 1).transpose(1, 2),)
    else:
        gates = gates_BTG.reshape(rows, -1, kinds, gates_BTG.shape[-1] // kinds, 1)
        gates = gates.permute(2, 0, 3, 1, 4)
    return zip(gates, moved, strict=True)


SLOTS = 8
"""Numbers of slots are multiples of this, so that shapes are few and kernels fit."""
FEW_SYMBOLS = 0.25
"""Of the number of keys; up to here slots are faster than matrices."""
MOST_SLOTS = 16
"""On a CPU, and half of a head's width more; with more, heads with slots are so wide that matrices
take less time."""
BLOCK = 128
"""Queries whose scores are held at a time."""
MANY_SYMBOLS = 64
"""From so many on, sums over places take less time than products with a table of all of them."""


def num_slots(num_symbols: int) -> int:
    """Returns a number of slots that is enough for so many symbols."""
    if torch.compiler.is_compiling():  # rounded up, it would be a condition of the size
        return num_symbols
    return num_symbols + -num_symbols % SLOTS


def _block(device: torch.device) -> int:
    return BLOCK if device.type == "cpu" else 4 * BLOCK  # with less to launch elsewhere


def is_in_blocks(length: int, device: torch.device) -> bool:
    """Returns whether so many queries are more than one block."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return length > _block(device)


def in_blocks(
    function: Callable[[slice], torch.Tensor],
    length: int,
    device: torch.device,
    held: bool = False,
) -> torch.Tensor:
    """Returns what a function gives for slices of so many queries, side by side: (B, length, ...).

    Of several blocks nothing is stored for the gradients, for which each is computed once more: so
    memory grows with the number of keys, whatever that of the queries is.

    Args:
        held: store it all the same.
    """
    if not is_in_blocks(length, device):
        return function(slice(0, length))
    step = _block(device)
    if torch.is_grad_enabled() and not held:
        function = partial(checkpoint, function, use_reentrant=False)
    starts = range(0, length, step)
    return torch.cat([function(slice(i, min(i + step, length))) for i in starts], 1)


class MadeOnce:
    """What is made once, for all parts of one call of a model or all tokens of one generation.

    The next call or `generate` makes it anew. So does a compiler, which keeps it by itself.

    Args:
        of_generation: tokens come one by one.
    """

    def __init__(self, of_generation: bool = False):
        self._made: dict[Hashable, Any] = {}
        self._of_generation = of_generation

    @property
    def by_token(self) -> bool:
        """Whether this is of a generation, where tokens come one by one."""
        return self._of_generation and not torch.compiler.is_compiling()

    @property
    def goes_on(self) -> bool:
        """Whether it is, and the tokens are no prompt: the model itself has chosen them."""
        return self.by_token and bool(self._made)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Returns what is made once.

        Args:
            key: that nothing else has; with whatever it depends on.
            make: makes it.
        """
        if torch.compiler.is_compiling():
            return make()
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def to(self, device: torch.device) -> "MadeOnce":
        """Returns what is kept on another device: nothing yet."""
        return MadeOnce(self._of_generation)


class Movable:
    """A dataclass that lies on a device: its fields with `to`, and tuples of such, move with it."""

    def to(self, device: torch.device) -> Self:
        """Returns the same on another device."""

        def moved(x: Any) -> Any:
            return tuple(map(moved, x)) if isinstance(x, tuple) else x.to(device)

        data: Any = self
        values = {x.name: getattr(data, x.name) for x in fields(data)}
        there = {k: moved(x) for k, x in values.items() if isinstance(x, tuple) or hasattr(x, "to")}
        return cast(Self, replace(data, **there))


class Relations(Movable, ABC):
    """Relations between queries and keys, with a slot for each symbol of a sample.

    That a relation holds is a product of two vectors over the slots, so what a head adds to its
    scores there can be part of its own product of queries and keys ([`extend_queries`] and
    [`extend_keys`]): memory grows with the length and not with its square, and fused kernels
    compute it. For few scores, `matrices` are as good. Slots are a sample's symbols by first
    occurrence, so that no name counts.

    Attributes:
        queries: of each relation, 1 for the symbols that a query looks for: (B, T, S).
        keys: 1 for the symbol at a key: (B, M, S), or (N, M, S) where beams share their source.
        shape: T, M and S.
        made: what is made of them once, for several layers: `matrices` and `lines`.
    """

    queries: tuple[torch.Tensor, ...]
    keys: torch.Tensor
    made: MadeOnce

    @property
    def lines(self) -> torch.Tensor:
        """The matrices of single queries side by side, for few operations: (N, beams, R, M)."""
        return self.made.once("lines", self._lines)

    @abstractmethod
    def _lines(self) -> torch.Tensor: ...

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of queries, keys and slots."""
        return self.queries[0].shape[1], *self.keys.shape[1:]

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """On which device they are."""

    def prefers_slots(self, width: int) -> bool:
        """Returns whether slots are faster than matrices, for attention that can do either.

        Measured with 400 tokens: with few scores there is no difference;
        slots cost as much as they have symbols, matrices as much as there are keys.

        Args:
            width: of a head.
        """
        num_queries, num_keys, num_slots = self.shape
        most = FEW_SYMBOLS * num_keys
        if self.device.type == "cpu":
            most = min(most, MOST_SLOTS + width // 2)
        return not are_few(num_queries, num_keys) and num_slots <= most

    @property
    def matrices(self) -> tuple[torch.Tensor, ...]:
        """Of each relation, 1 where it holds and 0 elsewhere: (B, 1, T, M)."""
        return self.made.once("matrices", self._matrices)

    @abstractmethod
    def _matrices(self) -> tuple[torch.Tensor, ...]: ...

    def of_sources(self, number: int) -> Matrices:
        """Returns what is added to the scores of attention to so many sources.

        Matrices, each (N, 1, beams * T, M), 1 where it holds and 0 elsewhere; or those of single
        queries, (N, beams, relations, M). N is B, or less where the beams of a sample share keys.
        """
        if self.shape[0] == 1:
            lines = self.lines
            return lines if len(lines) == number else lines.view(number, -1, *lines.shape[2:])
        matrices = self.matrices
        if matrices[0].shape[0] == number:
            return matrices
        return tuple(x.view(number, 1, -1, x.shape[-1]) for x in matrices)

    def extend_queries(
        self, query_NHTK: torch.Tensor, gates_BTG: torch.Tensor, scaling: float
    ) -> torch.Tensor:
        """Returns queries whose product with extended keys adds the gated relations: K + S wide.

        Args:
            query_NHTK: queries of all beams of a sample, one after the other: (N, H, beams * T, K).
            gates_BTG: from [`RelationGates`], G = relations * H; or (B, H, T, relations, 1).
            scaling: of the products of queries and keys.
        """
        n, _, length, _ = query_NHTK.shape
        relations = self.made.once(
            ("queries", n), lambda: tuple(x.reshape(n, 1, length, -1) for x in self.queries)
        )
        slots = None
        for gate, relation in _gated(gates_BTG / scaling, relations):
            slots = gate * relation if slots is None else torch.addcmul(slots, gate, relation)
        assert slots is not None
        return torch.cat((query_NHTK, alike(slots, query_NHTK)), -1)

    def extend_keys(self, x_NHMK: torch.Tensor) -> torch.Tensor:
        """Returns what belongs to keys, of N sources, with the slots of their symbols: K + S wide.

        Extended values make attention sum its weights over each symbol.
        """
        n, heads, kind = *x_NHMK.shape[:2], (x_NHMK.dtype, x_NHMK.device)
        keys_NHMS = self.made.once(
            ("keys", n, heads, *kind),
            lambda: match_rows(self.keys, n)[:, None].to(x_NHMK).expand(-1, heads, -1, -1),
        )
        return torch.cat((x_NHMK, keys_NHMS), -1)

    def sums(self, weights_NHTM: torch.Tensor) -> torch.Tensor:
        """Returns the sums of attention's weights over each symbol: (N, T, H, S)."""
        sums = self._sums(weights_NHTM.flatten(1, 2))
        return sums.unflatten(1, weights_NHTM.shape[1:3]).transpose(1, 2)

    def _sums(self, x_NEM: torch.Tensor) -> torch.Tensor:
        return x_NEM.bmm(alike(match_rows(self.keys, x_NEM.shape[0]), x_NEM))

    def part(self, queries: slice, keys: slice | torch.Tensor) -> Self:
        """Returns the relations of some queries to some keys, which may be places (M,)."""
        whole, cut = self.shape[:2], (queries, keys)
        if all(
            isinstance(x, slice) and len(range(n)[x]) == n for n, x in zip(whole, cut, strict=True)
        ):
            return self
        return self._part(queries, keys)

    @abstractmethod
    def _part(self, queries: slice, keys: slice | torch.Tensor) -> Self: ...

    def to(self, device: torch.device) -> Self:
        return self if self.device == device else super().to(device)


@dataclass(frozen=True)
class SlotRelations(Relations):
    """Relations of queries whose slots are there already, to keys of which each holds one symbol.

    Attributes:
        own: index of the symbol at each key, -1 for none: (B, M), or (N, M).
        kept: where slots of keys are kept.
    """

    queries: tuple[torch.Tensor, ...]
    own: torch.Tensor
    kept: MadeOnce = field(default_factory=lambda: MadeOnce())
    made: MadeOnce = field(default_factory=lambda: MadeOnce())

    @property
    def device(self) -> torch.device:
        return self.own.device

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.queries[0].shape[1], self.own.shape[1], self.queries[0].shape[2]

    @property
    def keys(self) -> torch.Tensor:  # type: ignore[override]
        query = self.queries[0]
        return self.kept.once("keys", lambda: one_hot(self.own, query.shape[2], query.dtype))

    def _lines(self) -> torch.Tensor:
        lines_BES = self.queries[0] if len(self.queries) == 1 else torch.cat(self.queries, 1)
        lines_NES = lines_BES.view(self.own.shape[0], -1, lines_BES.shape[2])
        return self._at_keys(lines_NES).unflatten(1, (-1, len(self.queries)))

    def _matrices(self) -> tuple[torch.Tensor, ...]:
        rows, sources = self.queries[0].shape[0], self.own.shape[0]
        if rows == sources:
            return tuple(self._at_keys(query)[:, None] for query in self.queries)
        length = self.shape[0]
        each = (query.reshape(sources, -1, query.shape[2]) for query in self.queries)
        return tuple(self._at_keys(x).view(rows, 1, length, -1) for x in each)

    def _at_keys(self, query_NES: torch.Tensor) -> torch.Tensor:
        """Returns what queries have in the slot of each key's symbol, 0 for none: (N, E, M)."""
        column_N1M = self.kept.once("columns", self._columns)
        column_NEM = column_N1M.expand(-1, query_NES.shape[1], -1)
        return F.pad(query_NES, (0, 1)).gather(2, column_NEM)

    def _sums(self, x_NEM: torch.Tensor) -> torch.Tensor:
        if self.own.shape[0] == x_NEM.shape[0] and sums_over_places(x_NEM, self.shape[2]):
            return sum_by_symbol(x_NEM, self.kept.once("columns", self._columns), self.shape[2])
        return super()._sums(x_NEM)

    def _columns(self) -> torch.Tensor:
        return columns_of(self.own, self.shape[2])[:, None]

    def _part(self, queries: slice, keys: slice | torch.Tensor) -> Self:
        own, kept = self.own[:, keys], self.kept
        if own.shape != self.own.shape or not isinstance(keys, slice):
            kept = MadeOnce()
        return type(self)(tuple(query[:, queries] for query in self.queries), own, kept=kept)


NONE = -2
"""In place of the index of a symbol: none is looked for, which -1, none at a key, is not."""


def sought(own_BT: torch.Tensor) -> torch.Tensor:
    """Returns indices of symbols, -1 for none, as those that queries look for: (B, T)."""
    return own_BT.masked_fill(own_BT < 0, NONE)


@dataclass(frozen=True)
class IndexRelations(Relations):
    """Relations of queries, each of which looks for one symbol, kept as indices of symbols.

    Slots are made where they are asked for, side by side for each relation: of many symbols, they
    would be most of what a model holds.

    Attributes:
        sought: index of the symbol that a query looks for, `NONE` for none: (B, T).
        held: for each relation, index of the symbol at a key that it goes to, -1 for none: (B, M).
        number: of slots of each relation.
        dtype: of slots and matrices.
    """

    sought: torch.Tensor
    held: tuple[torch.Tensor, ...]
    number: int
    dtype: torch.dtype
    made: MadeOnce = field(default_factory=lambda: MadeOnce())

    @property
    def device(self) -> torch.device:
        return self.sought.device

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.sought.shape[1], self.held[0].shape[1], len(self.held) * self.number

    @property
    def queries(self) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        return self.made.once("queries", self._queries)

    def _queries(self) -> tuple[torch.Tensor, ...]:
        sought_BTS, more = one_hot(self.sought, self.number, self.dtype), len(self.held) - 1
        if not more:
            return (sought_BTS,)
        paddings = ((i * self.number, (more - i) * self.number) for i in range(more + 1))
        return tuple(F.pad(sought_BTS, padding) for padding in paddings)

    @property
    def keys(self) -> torch.Tensor:  # type: ignore[override]
        return self.made.once("keys", self._keys)

    def _keys(self) -> torch.Tensor:
        return torch.cat([one_hot(held, self.number, self.dtype) for held in self.held], -1)

    def _lines(self) -> torch.Tensor:
        held_BEM = torch.stack(self.held, 1) if self.held[1:] else self.held[0][:, None]
        return (held_BEM == self.sought[:, None])[:, None].to(self.dtype)

    def _matrices(self) -> tuple[torch.Tensor, ...]:
        sought = self.sought[:, None, :, None]
        return tuple((sought == held[:, None, None]).to(self.dtype) for held in self.held)

    def _part(self, queries: slice, keys: slice | torch.Tensor) -> Self:
        held = tuple(held[:, keys] for held in self.held)
        return replace(self, sought=self.sought[:, queries], held=held, made=MadeOnce())


@dataclass(frozen=True)
class SourceRelations(Movable):
    """Of a text to the source that it follows.

    Attributes:
        across: between positions of the text and the source's: the same symbol, and one that was
            written already.
        written: whether each symbol was written up to a position: (B, T, S).
        positions: places of the queries among the keys of the text: (T,).
    """

    across: Relations
    written: torch.Tensor
    positions: torch.Tensor


@dataclass(frozen=True)
class TextSymbols:
    """Which symbols a text has where, by their index among those listed, -1 for none.

    Attributes:
        own: at each position, those that a cache holds included: (B, M).
        here: at the tokens at hand: (B, T).
        positions: places of these among all: (T,).
        behind: the last one before each position, where a text is looked at by itself: (B, M).
        last: likewise, the last one up to each of the tokens at hand: (B, T).
        ends: whether the text ends with these tokens: static caches have unused places behind them.
    """

    own: torch.Tensor
    here: torch.Tensor
    positions: torch.Tensor
    behind: torch.Tensor | None = None
    last: torch.Tensor | None = None
    ends: bool = True


@dataclass(frozen=True)
class TextRelations(Movable):
    """Of a text by itself.

    Attributes:
        within: those of the last symbol up to a position, to where that symbol stands, and to what
            comes after it, up to the next symbol.
        own: index of the symbol at each position, those that a cache holds included: (B, M); not
            beside [`TokenRelations`].
        positions: places of the queries among the keys: (T,).
    """

    within: Relations
    own: torch.Tensor | None
    positions: torch.Tensor


@dataclass(frozen=True)
class SymbolRelations(Movable):
    """What an encoding by relations knows of the positions of one sequence.

    Attributes:
        within: relations between positions of this sequence, as attention is told them.
        source: those to a source, of a text that follows one.
        text: those of a text that has symbols by itself.
    """

    within: Relations
    source: SourceRelations | None = None
    text: TextRelations | None = None


def match_rows(x: Rows, rows: int) -> Rows:
    """Repeat each row for the beams of its sample, or keep one for each sample; None stays None."""
    if x is None or x.shape[0] == rows:
        return x
    if x.shape[0] > rows:
        return x[:: x.shape[0] // rows]  # type: ignore[return-value]
    return x.repeat_interleave(rows // x.shape[0], dim=0)  # type: ignore[return-value]


def by_source(x_BTE: torch.Tensor, y_NEF: torch.Tensor) -> torch.Tensor:
    """Multiplies the rows of each sample's beams by what its beams share: (B, T, F).

    (Sizes by `shape`, here and elsewhere: `len` would be a constant of an exported program.)
    """
    if x_BTE.shape[0] == y_NEF.shape[0]:
        return x_BTE.bmm(y_NEF)  # of small models, one call where `@` makes six
    b, t, _ = x_BTE.shape
    return x_BTE.reshape(y_NEF.shape[0], -1, x_BTE.shape[-1]).bmm(y_NEF).view(b, t, -1)


def mean_by_symbol(
    hidden_BLD: torch.Tensor, own_BL: torch.Tensor, num_symbols: int
) -> torch.Tensor:
    """Returns the mean of hidden states at each symbol's positions, 0 for none: (B, S, D).

    Args:
        own_BL: index of the symbol at each position, -1 for none.
        num_symbols: S.
    """
    there_BSL = one_hot(own_BL.to(hidden_BLD.device), num_symbols, hidden_BLD.dtype).mT
    count_BS1 = there_BSL.sum(-1, keepdim=True).clamp(min=1)
    return there_BSL.bmm(hidden_BLD) / count_BS1


def sums_over_places(x_BEM: torch.Tensor, num_symbols: int) -> bool:
    """Returns whether sums over symbols take less time by `sum_by_symbol` than by a product.

    Only those of a CPU have one order. Gradients would go through copies.
    """
    many = not torch.compiler.is_compiling() and num_symbols >= MANY_SYMBOLS
    return many and x_BEM.is_cpu and not torch.is_grad_enabled()


def sum_by_symbol(x_BEM: torch.Tensor, column_B1M: torch.Tensor, num_symbols: int) -> torch.Tensor:
    """Returns the sums of numbers over the places of each symbol: (B, E, S).

    Args:
        column_B1M: index of the symbol at each place, S for none.
        num_symbols: S.
    """
    sums = x_BEM.new_zeros(*x_BEM.shape[:2], num_symbols + 1)
    return sums.scatter_add_(2, column_B1M.expand_as(x_BEM), x_BEM)[..., :-1]


def one_hot(own_BL: torch.Tensor, num_slots: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns 1 in the slot of the symbol at each position: (B, L, S).

    Args:
        own_BL: index of the symbol at each position, -1 for none.
        num_slots: S.
    """
    return (own_BL[..., None] == torch.arange(num_slots, device=own_BL.device)).to(dtype)


def columns_of(own_BM: torch.Tensor, num_symbols: int) -> torch.Tensor:
    """Returns the index of the symbol at each position, that of a further column for none: (B, M).

    Args:
        own_BM: index of the symbol at each position, -1 for none.
        num_symbols: number of columns of symbols.
    """
    return own_BM.masked_fill(own_BM < 0, num_symbols)


def first_positions(own_BM: torch.Tensor, num_symbols: int) -> torch.Tensor:
    """Returns where each symbol stands first, M for those that do not: (B, S)."""
    count = own_BM.shape[1]
    column = columns_of(own_BM, num_symbols)  # the last one is cut off
    positions = torch.arange(count, device=own_BM.device).expand_as(column)
    first = positions.new_full((column.shape[0], num_symbols + 1), count)
    return first.scatter_reduce(1, column, positions, "amin")[:, :-1]


def symbols_there(own_BM: torch.Tensor, num_symbols: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns whether each symbol stands anywhere, as 1 or 0: (B, S)."""
    there = torch.zeros((own_BM.shape[0], num_symbols + 1), dtype=dtype, device=own_BM.device)
    return there.scatter_(1, columns_of(own_BM, num_symbols), 1.0)[:, :-1]


def written_symbols(
    own_BM: torch.Tensor, position_T: torch.Tensor, num_symbols: int
) -> torch.Tensor:
    """Returns whether each symbol was written up to each position: (B, T, S).

    Args:
        own_BM: index of the symbol at each key, -1 for none.
        position_T: places of the queries among the keys.
        num_symbols: S.
    """
    return first_positions(own_BM, num_symbols)[:, None] <= position_T[:, None]
