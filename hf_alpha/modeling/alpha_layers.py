"""Layers over hidden states with a stream axis (arXiv 2601.23169, Algorithms 3 and 4).

Shapes: B batch, N batch or 1, S streams, L source length, T target length, D model width.
"""

from typing import Any

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache
from transformers.modeling_layers import GradientCheckpointingLayer

from .attention import AlphaAttention, CosSin
from .configuration_alpha import AlphaConfig
from .cpu import BlockLinear, in_blocks
from .streams import Streams

# Switch -> name of the module.
CROSS_ATTENTION = {"per_stream": "encoder_attn", "aggregated": "encoder_aggregated_attn"}


class AlphaLayer(GradientCheckpointingLayer):
    """What encoder and decoder layers share: the aggregated block and the feed-forward block."""

    self_attn: AlphaAttention | None
    aggregated_attn: AlphaAttention | None
    aggregated_attn_layer_norm: nn.LayerNorm

    def __init__(self, config: AlphaConfig, num_heads: int, ffn_dim: int):
        super().__init__()
        self.config = config
        self.num_heads = num_heads
        self.fc1 = BlockLinear(config.d_model, ffn_dim)
        self.fc2 = BlockLinear(ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.activation = ACT2FN[config.activation_function]
        self.dropout = nn.Dropout(config.dropout)

    def _add_attention(self, name: str, enabled: bool, slot: int | None, cross: bool) -> bool:
        """Make an attention block and its norm, if wanted; returns whether it was."""
        config = self.config
        attention = AlphaAttention(config, self.num_heads, slot, cross) if enabled else None
        setattr(self, name, attention)
        if enabled:
            norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
            setattr(self, f"{name}_layer_norm", norm)
        return enabled

    def _aggregated(
        self, hidden_BSLD: torch.Tensor, streams: Streams, **kwargs: Any
    ) -> torch.Tensor:
        """Lets each stream attend to the aggregated view of all of them."""
        assert self.aggregated_attn is not None
        norm, view = self.aggregated_attn_layer_norm, streams.aggregate(hidden_BSLD)
        if self.config.aggregated_attention_norm == "pre":
            update, *_ = self.aggregated_attn(norm(hidden_BSLD), norm(view), **kwargs)
            return hidden_BSLD + self.dropout(update)
        update, *_ = self.aggregated_attn(hidden_BSLD, view, **kwargs)
        return norm(hidden_BSLD + self.dropout(update))

    def _feed_forward(self, hidden_BSLD: torch.Tensor) -> torch.Tensor:
        update = in_blocks(lambda rows: self.fc2(self.activation(self.fc1(rows))), hidden_BSLD)
        return self.final_layer_norm(hidden_BSLD + self.dropout(update))


class AlphaEncoderLayer(AlphaLayer):
    """Algorithm 3: per-stream attention, aggregated attention, feed-forward."""

    def __init__(self, config: AlphaConfig):
        super().__init__(config, config.encoder_attention_heads, config.encoder_ffn_dim)
        self._add_attention("self_attn", config.encoder_per_stream_attention, None, cross=False)
        aggregated = config.encoder_aggregated_attention
        self._add_attention("aggregated_attn", aggregated, None, cross=False)

    def forward(
        self,
        hidden_BSLD: torch.Tensor,
        streams: Streams,
        mask: torch.Tensor | None,
        rope: CosSin,
        output_attentions: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns the new hidden state and per-stream attention weights on demand."""
        weights = None
        shared = {
            "mask": mask,
            "query_rope": rope,
            "key_rope": rope,
            "relations": streams.within,
        }
        if self.self_attn is not None:
            update, weights, _ = self.self_attn(
                hidden_BSLD, hidden_BSLD, output_weights=output_attentions, **shared
            )
            hidden_BSLD = self.self_attn_layer_norm(hidden_BSLD + self.dropout(update))
        if self.aggregated_attn is not None:
            hidden_BSLD = self._aggregated(hidden_BSLD, streams, **shared)
        return self._feed_forward(hidden_BSLD), weights


class AlphaDecoderLayer(AlphaLayer):
    """Algorithm 4: causal per-stream and aggregated attention, cross-attention, feed-forward."""

    def __init__(self, config: AlphaConfig, index: int):
        super().__init__(config, config.decoder_attention_heads, config.decoder_ffn_dim)
        # A layer owns cache slots 2i and 2i + 1, filled in order: slot 0 always tells the length.
        slot = 2 * index
        slot += self._add_attention(
            "self_attn", config.decoder_per_stream_attention, slot, cross=False
        )
        aggregated = config.decoder_aggregated_attention
        self._add_attention("aggregated_attn", aggregated, slot, cross=False)
        modes = config.cross_attention if config.is_encoder_decoder else ()
        self.cross = [CROSS_ATTENTION[mode] for mode in modes]
        for offset, name in enumerate(self.cross):
            self._add_attention(name, True, 2 * index + offset, cross=True)

    def forward(
        self,
        hidden_BSTD: torch.Tensor,
        streams: Streams,
        mask: torch.Tensor | None,
        rope: CosSin,
        encoder_NSLD: torch.Tensor | None = None,
        encoder_view_N1LD: torch.Tensor | None = None,
        encoder_mask: torch.Tensor | None = None,
        cross_rope: tuple[CosSin, CosSin] = (None, None),
        past_key_values: Cache | None = None,
        query_scale: torch.Tensor | None = None,
        output_attentions: bool = False,
        points: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Returns the new hidden state and, on demand, self- and cross-attention weights, masses.

        Args:
            encoder_NSLD: what cross-attention attends to; a decoder alone has none.
            encoder_view_N1LD: what aggregated cross-attention attends to.
            cross_rope: of queries and keys of cross-attention.
            query_scale: of self-attention, (B or 1, 1, T, 1).
            points: return the sums of the weights of the first cross-attention over each symbol.
        """
        weights = cross_weights = masses = None
        shared = {
            "mask": mask,
            "query_rope": rope,
            "key_rope": rope,
            "query_scale": query_scale,
            "cache": past_key_values,
            "relations": streams.within,
        }
        if self.self_attn is not None:
            update, weights, _ = self.self_attn(
                hidden_BSTD, hidden_BSTD, output_weights=output_attentions, **shared
            )
            hidden_BSTD = self.self_attn_layer_norm(hidden_BSTD + self.dropout(update))
        if self.aggregated_attn is not None:
            hidden_BSTD = self._aggregated(hidden_BSTD, streams, **shared)
        for name in self.cross:
            attention, norm = getattr(self, name), getattr(self, f"{name}_layer_norm")
            update, block_weights, block_masses = attention(
                hidden_BSTD,
                encoder_NSLD if name == CROSS_ATTENTION["per_stream"] else encoder_view_N1LD,
                mask=encoder_mask,
                query_rope=cross_rope[0],
                key_rope=cross_rope[1],
                cache=past_key_values,
                output_weights=output_attentions,
                relations=streams.across,
                output_masses=points and masses is None and streams.across is not None,
            )
            hidden_BSTD = norm(hidden_BSTD + self.dropout(update))
            cross_weights = block_weights if cross_weights is None else cross_weights
            masses = block_masses if masses is None else masses
        return self._feed_forward(hidden_BSTD), weights, cross_weights, masses


__all__ = ["CROSS_ATTENTION", "AlphaDecoderLayer", "AlphaEncoderLayer"]
