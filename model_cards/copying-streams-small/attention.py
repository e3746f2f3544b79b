"""Multi-head attention over streams: per-stream and aggregated, self and cross.

Shapes: B batch, S streams of the queries, R streams of the source (S per stream, 1 aggregated),
T query length, L source length, M keys (cached ones included), D model width, H heads, K head
width.
"""

from typing import Any

import torch
from torch import nn
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .configuration_alpha import AlphaConfig
from .positions import rotate

CosSin = tuple[torch.Tensor, torch.Tensor] | None


def eager_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention written out; returns (N, T, H, K) and the weights (N, H, T, M)."""
    scores = query @ key.transpose(-1, -2) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2), weights


class AlphaAttention(nn.Module):
    """Attention from S query streams to R source streams, with R = S or R = 1.

    With R = S each stream attends to its own source: streams are folded into the batch. With R = 1
    all streams attend to one sequence: they are folded into the query length, so that nothing is
    copied S times. Keys and values are cached as (B, R * H, M, K): dimension 0 stays the batch.

    Args:
        slot: index in the cache; None where nothing is cached.
        cross: the source is the encoder's output.
    """

    def __init__(
        self, config: AlphaConfig, num_heads: int, slot: int | None = None, cross: bool = False
    ):
        super().__init__()
        self.config = config
        self.num_heads = num_heads
        self.head_dim = config.d_model // num_heads
        self.scaling = self.head_dim**-0.5
        self.slot = slot
        self.cross = cross
        self.is_causal = False  # masks are always explicit
        self.q_proj = nn.Linear(config.d_model, config.d_model)
        self.k_proj = nn.Linear(config.d_model, config.d_model)
        self.v_proj = nn.Linear(config.d_model, config.d_model)
        self.out_proj = nn.Linear(config.d_model, config.d_model)

    def forward(
        self,
        hidden_BSTD: torch.Tensor,
        source_BRLD: torch.Tensor,
        mask: torch.Tensor | None = None,
        query_rope: CosSin = None,
        key_rope: CosSin = None,
        cache: EncoderDecoderCache | None = None,
        output_weights: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Attend; returns (B, S, T, D) and, on demand, weights (B, S * H, T, M).

        Args:
            mask: additive, (B or 1, 1, T or 1, M), or None.
        """
        b, s, t, d = hidden_BSTD.shape
        r = source_BRLD.shape[1]
        query = rotate(self._heads(self.q_proj(hidden_BSTD)), query_rope)
        # Every source stream answers s // r query streams, laid end to end in the query length.
        query = query.view(b, r, s // r, t, self.num_heads, self.head_dim)
        query = query.permute(0, 1, 4, 2, 3, 5).reshape(b * r, self.num_heads, -1, self.head_dim)
        key, value = self._keys_values(source_BRLD, key_rope, cache)
        m = key.shape[2]
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention
        )
        out, weights = attend(
            self,
            query,
            key.reshape(b * r, self.num_heads, m, self.head_dim),
            value.reshape(b * r, self.num_heads, m, self.head_dim),
            self._fold_mask(mask, r, s // r, t),
            scaling=self.scaling,
            dropout=self.config.attention_dropout if self.training else 0.0,
        )
        out = self.out_proj(out.reshape(b, s, t, d))
        if not output_weights or weights is None:
            return out, None
        weights = weights.view(b, r, self.num_heads, s // r, t, m).transpose(2, 3)
        return out, weights.reshape(b, s * self.num_heads, t, m)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim))

    def _keys_values(
        self, source_BRLD: torch.Tensor, key_rope: CosSin, cache: EncoderDecoderCache | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (B, R * H, M, K), through the cache where there is one."""
        if cache is not None and self.cross and cache.is_updated.get(self.slot):
            layer = cache.cross_attention_cache.layers[self.slot]
            return layer.keys, layer.values
        key = rotate(self._heads(self.k_proj(source_BRLD)), key_rope)
        value = self._heads(self.v_proj(source_BRLD))
        key, value = (x.transpose(2, 3).flatten(1, 2) for x in (key, value))
        if cache is not None and self.cross:
            cache.is_updated[self.slot] = True
            return cache.cross_attention_cache.update(key, value, self.slot)
        if cache is not None:
            return cache.self_attention_cache.update(key, value, self.slot)
        return key, value

    @staticmethod
    def _fold_mask(mask: torch.Tensor | None, r: int, queries: int, t: int) -> torch.Tensor | None:
        if mask is None:
            return None
        if r > 1 and mask.shape[0] > 1:
            mask = mask.repeat_interleave(r, dim=0)
        if queries > 1 and t > 1 and mask.shape[2] > 1:
            mask = mask.repeat(1, 1, queries, 1)
        return mask


__all__ = ["AlphaAttention"]
