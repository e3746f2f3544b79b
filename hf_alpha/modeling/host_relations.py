"""Identity of symbols as a relation, for backbones whose attention is not ours.

All symbols of a class are one row of the backbone. What tells them apart: attention is told which
positions hold the same symbol (`host_attention`), the decoder's input and the head get what the
encoder found about each symbol. See `relations` for the parts and where they come from.

Shapes: B batch, N sources (B, or one for all beams of a sample), S symbols of a sample's input,
L source length, T target length, M keys, D width, H heads.
"""

import torch
from torch import nn
from transformers import initialization as init

from .host_attention import LayerRelations, StackRelations
from .relations import RelationGates, TextMemory, by_source, scaled
from .streams import Streams


def silent(layer: nn.Linear) -> nn.Linear:
    """Returns a layer that begins with zeros, so that what it is part of begins with no effect."""
    layer.starts_at_zero = True  # type: ignore[assignment]
    return layer


class HostRelations(nn.Module):
    """What `relational` encoding adds to a backbone.

    Gates decide by a token's vector how much each head adds to its scores where a relation holds,
    the same in all layers. All of it begins with no effect.

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

    def encoder_relations(self, vectors_BLD: torch.Tensor, streams: Streams) -> StackRelations:
        """Returns what the encoder's attention is told; the vectors are those of the tokens."""
        assert streams.within is not None
        gates = self.encoder_gates(self.gate_norm(vectors_BLD))
        return StackRelations((streams.within, gates))

    def decoder_relations(self, vectors_BTD: torch.Tensor, streams: Streams) -> StackRelations:
        """Returns what the decoder's attention to itself and to the source is told, likewise."""
        assert streams.within is not None and streams.across is not None
        vectors_BTD = self.gate_norm(vectors_BTD)
        return StackRelations(
            (streams.within, self.decoder_gates(vectors_BTD)),
            (streams.across, self.cross_gates(vectors_BTD)),
        )

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        """Returns the streams with what the encoder found about each symbol: (B, S, 2, D)."""
        mean_BSD = streams.means(hidden_BLD)
        entry = self.input_proj(self.input_norm(mean_BSD))
        returned = self.output_proj(self.output_norm(mean_BSD))
        return streams.relating(memory=torch.stack((entry, returned), dim=2))

    @staticmethod
    def enter(streams: Streams) -> torch.Tensor:
        """Returns what the decoder adds to the vectors of its tokens: (B, T, D)."""
        assert streams.memory is not None
        return by_source(streams.here, streams.memory[:, :, 0])

    def point(self, hidden_BTD: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns what is added to the score of each symbol of the input: (B, T, S)."""
        assert streams.memory is not None and streams.related is not None
        assert streams.related.written is not None  # as `follow` found it
        last_BTS = streams.here.to(hidden_BTD)
        products_BTS = by_source(hidden_BTD, streams.memory[:, :, 1].transpose(1, 2))
        repeated = torch.stack((streams.related.written.to(last_BTS), last_BTS), dim=-1)
        return products_BTS + self.repeat(repeated)[..., 0]


class DecoderRelations(nn.Module):
    """What `relational` encoding adds to a decoder alone.

    Heads are told which positions hold the last symbol up to now, and which come after it, up to
    the next symbol: with the latter, one layer finds what followed a name before. The head of the
    model points at symbols. All of it begins with no effect.

    Args:
        width: D.
        num_layers: of the decoder.
        num_heads: H.
        head_dim: K.
        scale: of numbers that stand alone, which are stored as parts of it.
    """

    NUM_RELATIONS = 2

    def __init__(
        self, width: int, num_layers: int, num_heads: int, head_dim: int, scale: float = 1.0
    ):
        super().__init__()
        self.scale = scale
        shape = (num_layers, num_heads)
        self.gates = nn.Parameter(torch.zeros(*shape, head_dim, self.NUM_RELATIONS))
        self.gate_bias = nn.Parameter(torch.zeros(*shape, self.NUM_RELATIONS))
        self.memory = TextMemory(width, num_heads, silent=True, scale=scale)

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with no effect."""
        init.zeros_(self.gates)
        init.zeros_(self.gate_bias)

    def relations(self, streams: Streams) -> LayerRelations:
        """Returns what the decoder's attention is told."""
        assert streams.within is not None
        return LayerRelations(streams.within, self.gates, scaled(self.gate_bias, self.scale))


__all__ = ["DecoderRelations", "HostRelations", "silent"]
