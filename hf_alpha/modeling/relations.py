"""Identity of symbols as a relation between positions: what `relational` encoding is made of.

A symbol's vector does not tell which symbol it is. What tells it is where the same symbol stands:
heads of attention get scores for that ([`RelationGates`]), the decoder sees a symbol as what the
encoder found about it ([`SymbolMemory`]), and the head points at it ([`SymbolPointer`]). Its kin
are Renamer (Ankner, Renda and Carbin 2023), relation-aware attention (Shaw et al. 2018) and pointer
networks (Vinyals et al. 2015).

Shapes: B batch, N sources (B, or one for all beams of a sample), S symbols of a sample's input,
L source length, T target length, M keys (cached ones included), D model width, H heads.
"""

from collections.abc import Iterator

import torch
from torch import nn
from transformers import initialization as init

START = 2.0  # score of the same symbol, in the half of the heads that begin with one


class RelationGates(nn.Linear):
    """How much each head of an attention block adds to its scores where a relation holds.

    A position decides that by its hidden state, one number for each head and relation.

    Args:
        width: D.
        num_heads: H.
        num_relations: of the block. (..., D) becomes (..., relations * H), the first relation's
            heads first.
        start: what half of the heads begin with for the first relations; the rest begins with 0.
        starting: how many relations those are.
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        num_relations: int,
        start: float = START,
        starting: int = 1,
    ):
        super().__init__(width, num_heads * num_relations)
        self.num_heads = num_heads
        self.start = start
        self.starting = starting

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with the first relations, in half of the heads."""
        init.zeros_(self.weight)
        start = torch.zeros_like(self.bias).view(-1, self.num_heads)
        start[: self.starting, : self.num_heads // 2] = self.start
        init.copy_(self.bias, start.flatten())


def add_relations(
    mask: torch.Tensor | None, gates_BTG: torch.Tensor, relations: tuple[torch.Tensor, ...]
) -> torch.Tensor:
    """Returns a mask with what relations add to the scores: (N, H, beams * T, M).

    Args:
        mask: additive, one that (N, H, beams * T, M) broadcasts with.
        gates_BTG: from [`RelationGates`], G = relations * H.
        relations: each (N, 1, beams * T, M), 1 where it holds and 0 elsewhere. N is B, or less
            where the beams of a sample, B / N, share its keys.
    """
    for gate, relation in _gated(gates_BTG, relations):
        mask = gate * relation if mask is None else torch.addcmul(mask, gate, relation)
    assert mask is not None
    return mask


def add_relations_(
    scores: torch.Tensor, gates_BTG: torch.Tensor, relations: tuple[torch.Tensor, ...]
) -> torch.Tensor:
    """Adds what relations add to scores (N, H, beams * T, M) in place, without a mask."""
    for gate, relation in _gated(gates_BTG, relations):
        scores.addcmul_(gate, relation)
    return scores


def _gated(
    gates_BTG: torch.Tensor, relations: tuple[torch.Tensor, ...]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Returns the gates of each relation, (N, H, beams * T, 1), and the relation."""
    gates = gates_BTG.unflatten(0, (relations[0].shape[0], -1)).flatten(1, 2)
    gates = gates.unflatten(-1, (len(relations), -1, 1)).permute(2, 0, 3, 1, 4)
    # Layers may lie on several devices.
    moved = (relation.to(gates.device) for relation in relations)
    return zip(gates, moved, strict=True)


class SymbolPointer(nn.Module):
    """What the head adds to the score of a symbol: whether it was written, and attention to it.

    Args:
        num_heads: H, of the decoder's attention to the source.
    """

    def __init__(self, num_heads: int):
        super().__init__()
        self.repeat = nn.Parameter(torch.zeros(2))
        self.attention = nn.Parameter(torch.zeros(num_heads))

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with nothing."""
        init.zeros_(self.repeat)
        init.zeros_(self.attention)

    def forward(
        self,
        written_BTS: torch.Tensor,
        last_BTS: torch.Tensor,
        weights_BHTL: torch.Tensor,
        occurrences_NSL: torch.Tensor,
    ) -> torch.Tensor:
        """Returns scores of a sample's symbols at each position: (B, T, S).

        Args:
            written_BTS: whether a symbol stands in the decoder's input up to a position.
            last_BTS: whether it stands at that position.
            weights_BHTL: of attention to the source.
            occurrences_NSL: 1 where a symbol stands in the source.
        """
        written, last = self.repeat
        attended_BTL = torch.einsum("h,bhtl->btl", self.attention.to(weights_BHTL), weights_BHTL)
        mass_BTS = by_source(attended_BTL, occurrences_NSL.transpose(1, 2))
        return mass_BTS + written * written_BTS + last * last_BTS


class SymbolMemory(nn.Module):
    """What the encoder found about each symbol of the input, and the pointer to them.

    Two vectors are read off the mean of the encoder's last states over the positions of a symbol:
    what the decoder adds to the symbol's row where it stands in its input, and what the head adds
    to the row that it compares with. Their length is sqrt(D) at first, that of rows before they
    are normalised.

    Args:
        width: D.
        num_heads: H, of the decoder's attention to the source.
    """

    def __init__(self, width: int, num_heads: int):
        super().__init__()
        self.input_proj = nn.Linear(width, width, bias=False)
        self.output_proj = nn.Linear(width, width, bias=False)
        self.input_norm = nn.RMSNorm(width)
        self.output_norm = nn.RMSNorm(width)
        self.pointer = SymbolPointer(num_heads)

    def forward(self, mean_BSD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns what the decoder's input and the head read: each (B, S, D)."""
        entered = self.input_norm(self.input_proj(mean_BSD))
        return entered, self.output_norm(self.output_proj(mean_BSD))


def occurrences(own_BL: torch.Tensor, num_symbols: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns 1 at positions where a symbol stands, else 0: (B, S, L).

    Args:
        own_BL: index of the symbol at each position, -1 for none.
        num_symbols: S.
    """
    symbols = torch.arange(num_symbols, device=own_BL.device)
    return (own_BL[:, None] == symbols[:, None]).to(dtype)


def by_source(x_BTE: torch.Tensor, y_NEF: torch.Tensor) -> torch.Tensor:
    """Multiplies the rows of each sample's beams by what its beams share: (B, T, F)."""
    b, t, _ = x_BTE.shape
    return (x_BTE.reshape(y_NEF.shape[0], -1, x_BTE.shape[-1]) @ y_NEF).view(b, t, -1)


def at_symbols(own_BT: torch.Tensor, known_NSD: torch.Tensor) -> torch.Tensor:
    """Returns what is known about the symbol at each position, 0 where there is none: (B, T, D).

    Args:
        own_BT: index of the symbol at each position, -1 for none.
        known_NSD: a vector of each symbol, which all beams of a sample share.
    """
    where_BST = occurrences(own_BT, known_NSD.shape[1], known_NSD.dtype)
    return by_source(where_BST.transpose(1, 2), known_NSD)


def mean_by_symbol(hidden_BLD: torch.Tensor, occurrences_BSL: torch.Tensor) -> torch.Tensor:
    """Returns the mean of hidden states at each symbol's positions, 0 for none: (B, S, D)."""
    count_BS1 = occurrences_BSL.sum(-1, keepdim=True).clamp(min=1)
    return occurrences_BSL @ hidden_BLD / count_BS1


def same_symbol(own_BT: torch.Tensor, own_BM: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns 1 where query and key hold the same symbol, else 0: (B, 1, T, M).

    Args:
        own_BT: index of the symbol at each position of the queries, -1 for none; keys likewise.
    """
    same = (own_BT[..., None] == own_BM[:, None]) & (own_BT >= 0)[..., None]
    return same[:, None].to(dtype)


def first_positions(own_BM: torch.Tensor, num_symbols: int) -> torch.Tensor:
    """Returns where each symbol stands first, M for those that do not: (B, S + 1).

    The last column, all M, is for what is no symbol.
    """
    count = own_BM.shape[1]
    # A column beyond the table takes what is no symbol, and is cut off.
    column = torch.where(own_BM >= 0, own_BM, num_symbols + 1)
    positions = torch.arange(count, device=own_BM.device).expand_as(column)
    first = column.new_full((column.shape[0], num_symbols + 2), count)
    return first.scatter_reduce(1, column, positions, "amin")[:, :-1]


def written_symbols(first_BS: torch.Tensor, position_T: torch.Tensor) -> torch.Tensor:
    """Returns whether each symbol was written up to each position: (B, T, S).

    Args:
        first_BS: from `first_positions`.
        position_T: places of the queries among the keys.
    """
    return first_BS[:, None] <= position_T[:, None]


def written_in_source(
    first_BS: torch.Tensor, position_T: torch.Tensor, source_BL: torch.Tensor
) -> torch.Tensor:
    """Returns whether each position of the source holds a symbol written so far: (B, T, L).

    Args:
        source_BL: index of the symbol at each position of the source, -1 for none.
    """
    none = first_BS.shape[1] - 1
    first_BL = first_BS.gather(1, torch.where(source_BL >= 0, source_BL, none))
    return written_symbols(first_BL, position_T)


__all__ = [
    "RelationGates",
    "SymbolMemory",
    "SymbolPointer",
    "add_relations",
    "add_relations_",
    "at_symbols",
    "by_source",
    "first_positions",
    "mean_by_symbol",
    "occurrences",
    "same_symbol",
    "written_in_source",
    "written_symbols",
]
