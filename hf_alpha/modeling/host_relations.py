"""Identity of symbols as a relation, for backbones whose attention is not ours.

All symbols of a class are one row of the backbone. What tells them apart is given through what any
model of Transformers takes: an additive mask for each head says which positions hold the same
symbol, the decoder's input and the head get what the encoder found about each symbol. See
`relations` for the parts and where they come from.

Shapes: B batch, N sources (B, or one for all beams of a sample), S symbols of a sample's input,
L source length, T target length, M keys, D width, H heads.
"""

from dataclasses import replace

import torch
from torch import nn

from .relations import (
    RelationGates,
    add_relations,
    at_symbols,
    by_source,
    mean_by_symbol,
    occurrences,
    one_hot,
)
from .streams import Streams


def silent(layer: nn.Linear) -> nn.Linear:
    """Returns a layer that begins with zeros, so that what it is part of begins with no effect."""
    layer.starts_at_zero = True  # type: ignore[assignment]
    return layer


class HostRelations(nn.Module):
    """What `relational` encoding adds to a backbone.

    Gates decide by a token's vector how much each head adds to its scores where a relation holds;
    one mask is for all layers. All of it begins with no effect.

    Args:
        width: D.
        encoder_heads, decoder_heads: H of both sides.
    """

    def __init__(self, width: int, encoder_heads: int, decoder_heads: int):
        super().__init__()
        self.encoder_gates = RelationGates(width, encoder_heads, 1, start=0.0)
        self.decoder_gates = RelationGates(width, decoder_heads, 1, start=0.0)
        self.cross_gates = RelationGates(width, decoder_heads, 2, start=0.0)
        self.gate_norm = nn.LayerNorm(width, elementwise_affine=False)
        self.input_norm = nn.LayerNorm(width)
        self.input_proj = silent(nn.Linear(width, width, bias=False))
        self.output_norm = nn.LayerNorm(width)
        self.output_proj = silent(nn.Linear(width, width, bias=False))
        # Whether a symbol was written before, and whether it is the last token.
        self.repeat = silent(nn.Linear(2, 1, bias=False))

    def encoder_mask(
        self, mask: torch.Tensor | None, vectors_BLD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns the mask of the encoder's attention: (B, H, L, L)."""
        assert streams.within is not None
        gates = self.encoder_gates(self.gate_norm(vectors_BLD))
        return add_relations(mask, gates, streams.within.matrices)

    def decoder_masks(
        self,
        mask: torch.Tensor | None,
        source_mask: torch.Tensor | None,
        vectors_BTD: torch.Tensor,
        streams: Streams,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the masks of the decoder's attention to itself, (B, H, T, M), and the source."""
        vectors_BTD = self.gate_norm(vectors_BTD)
        assert streams.within is not None and streams.across is not None
        own = add_relations(mask, self.decoder_gates(vectors_BTD), streams.within.matrices)
        across = streams.across.matrices
        return own, add_relations(source_mask, self.cross_gates(vectors_BTD), across)

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        """Returns the streams with what the encoder found about each symbol: (B, S, 2, D)."""
        number = streams.ids.shape[1]
        where_BSL = occurrences(streams.own, number, hidden_BLD.dtype)
        mean_BSD = mean_by_symbol(hidden_BLD, where_BSL)
        entry = self.input_proj(self.input_norm(mean_BSD))
        returned = self.output_proj(self.output_norm(mean_BSD))
        return replace(streams, memory=torch.stack((entry, returned), dim=2))

    @staticmethod
    def enter(streams: Streams) -> torch.Tensor:
        """Returns what the decoder adds to the vectors of its tokens: (B, T, D)."""
        assert streams.memory is not None
        return at_symbols(streams.own, streams.memory[:, :, 0])

    def point(self, hidden_BTD: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns what is added to the score of each symbol of the input: (B, T, S)."""
        assert streams.memory is not None and streams.written is not None
        number = streams.ids.shape[1]
        last_BTS = one_hot(streams.own, number, hidden_BTD.dtype)
        known_BTS = by_source(hidden_BTD, streams.memory[:, :, 1].transpose(1, 2))
        repeated = torch.stack((streams.written.to(last_BTS), last_BTS), dim=-1)
        return known_BTS + self.repeat(repeated)[..., 0]


__all__ = ["HostRelations", "silent"]
