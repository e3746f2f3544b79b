"""Multi-head attention over streams: per-stream and aggregated, self and cross.

Shapes: B batch, N sources (B, or one for all beams of a sample), S streams of the queries,
R streams of a source (S per stream, 1 aggregated), T query length, L source length, M keys (cached
ones included), D model width, H heads, K head width.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import EncoderDecoderCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .configuration_alpha import AlphaConfig
from .masks import additive, are_few, later_hidden, self_attention_part
from .positions import rotate
from .relations import (
    Matrices,
    RelationGates,
    Relations,
    add_relations,
    add_relations_,
    alike,
    in_blocks,
)

HELD_SCORES = 1 << 20
"""Of a head; up to here they are held for the gradients, which takes less time."""
CosSin = tuple[torch.Tensor, torch.Tensor] | None


def eager_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    fold: "Fold | None" = None,
    gates: torch.Tensor | None = None,
    relations: Matrices = (),
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns softmax attention written out, (B, T, H, K), and its weights (B, H, T, M).

    Args:
        fold: lays out the weights as the caller of the model sees them, and the values are summed
            with those: gradients then pass through the weights that are returned.
        gates: what `relations` between queries and keys add to the scores, see `add_relations_`.
    """
    scores = (query * scaling) @ key.mT
    if attention_mask is not None:
        scores += attention_mask
    if gates is not None:
        scores = add_relations_(scores, gates, relations)
    precise = scores.dtype if scores.dtype.itemsize > 2 else torch.float32
    weights = alike(scores.softmax(-1, dtype=precise), scores)
    if dropout:
        weights = F.dropout(weights, p=dropout, training=module.training)
    returned = weights if fold is None else fold.unfold_weights(weights)
    weights = weights if fold is None else fold.fold_weights(returned)
    out = weights.flatten(0, 1).bmm(value.flatten(0, 1))  # `@` would make more calls of it
    return out.view(*query.shape[:3], -1).transpose(1, 2), returned


class Fold(NamedTuple):
    """Where the rows of a folded attention come from.

    Each of `sources * source_streams` sequences of keys has `beams * query_streams * T` queries.
    """

    sources: int
    source_streams: int
    beams: int
    query_streams: int
    heads: int

    def unfold_weights(self, weights: torch.Tensor) -> torch.Tensor:
        """Gives each sample its weights: (N * R, H, beams * queries * T, M) -> (B, S * H, T, M)."""
        n, r, b, q, h = self
        unfolded = weights.view(n, r, h, b, q, -1, weights.shape[-1])
        unfolded = unfolded.permute(0, 3, 1, 4, 2, 5, 6)
        return unfolded.reshape(n * b, r * q * h, -1, weights.shape[-1])

    def fold_weights(self, weights: torch.Tensor) -> torch.Tensor:
        """Undoes `unfold_weights`: (B, S * H, T, M) -> (N * R, H, beams * queries * T, M)."""
        n, r, b, q, h = self
        folded = weights.view(n, b, r, q, h, -1, weights.shape[-1]).permute(0, 2, 4, 1, 3, 5, 6)
        return folded.reshape(n * r, h, -1, weights.shape[-1])


class AlphaAttention(nn.Module):
    """Attention from S query streams to R source streams, with R = S or R = 1.

    With R = S each stream attends to its own source: streams are folded into the batch. With R = 1
    all streams attend to one sequence: they are folded into the query length, so that nothing is
    copied S times. So are the beams of a sample in cross-attention: they share its source. Keys and
    values are cached as (N, R * H, M, K): dimension 0 stays the batch.

    Args:
        slot: index in a decoder's cache; None in an encoder.
        cross: the source is the encoder's output.

    Attributes:
        gates: what relations between positions add to the scores, where the encoding has such:
            that of the same symbol and, in cross-attention, that of a symbol already written; in a
            decoder alone, that of standing behind the same symbol.
    """

    def __init__(
        self, config: AlphaConfig, num_heads: int, slot: int | None = None, cross: bool = False
    ):
        super().__init__()
        self.config = config
        self.num_heads = num_heads
        self.head_dim = config.hidden_size // num_heads
        self.scaling = self.head_dim**-0.5
        self.slot = slot
        self.cross = cross
        self.is_causal = slot is not None and not cross
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.k_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.v_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.out_proj = nn.Linear(config.hidden_size, config.hidden_size)
        relations, halves = (2, (0, 1)) if config.decodes_alone else (2 if cross else 1, (0,))
        self.gates = None
        if config.memory is not None:
            self.gates = RelationGates(config.hidden_size, num_heads, relations, halves=halves)

    def forward(
        self,
        hidden_BSTD: torch.Tensor,
        source_NRLD: torch.Tensor,
        mask: torch.Tensor | None = None,
        query_rope: CosSin = None,
        key_rope: CosSin = None,
        cache: EncoderDecoderCache | None = None,
        output_weights: bool = False,
        relations: Relations | None = None,
        output_masses: bool = False,
        query_scale: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Attends; returns (B, S, T, D) and, on demand, weights (B, S * H, T, M) and masses.

        Args:
            mask: additive, (N or 1, 1 or H, T or 1, M); T is 1 where beams share a source. It may
                hold scores of any kind, such as those of a relation between positions, one for each
                head. None hides nothing, and of a decoder's own tokens those that come later.
            output_weights: attend by a way that knows the weights.
            relations: between positions of queries and keys, for the gates.
            output_masses: where there are relations, return the sums of the weights over each
                symbol, (B, T, H, symbols): they are what attention makes of the symbols as values.
            query_scale: what scores of each position are multiplied with, (B or 1, 1, T, 1).
        """
        b, s, t, d = hidden_BSTD.shape
        if query_scale is not None:  # of products and relations alike
            hidden_BSTD = hidden_BSTD * query_scale
        r, heads = source_NRLD.shape[1], self.num_heads
        key, value = self._keys_values(source_NRLD, key_rope, cache)
        n, m = key.shape[0] // r, key.shape[2]
        # Every source stream answers so many beams and query streams, laid out in the query length.
        beams, queries = b // n, s // r
        query = rotate(self._heads(self.q_proj(hidden_BSTD)), query_rope)
        if r > 1:  # a copy only where beams share streams
            query = query.view(n, beams, r, queries * t, heads, self.head_dim).transpose(1, 2)
        query = query.reshape(n * r, -1, heads, self.head_dim).transpose(1, 2)
        fold = Fold(n, r, beams, queries, heads)
        query, key, value, gates = self._relate(hidden_BSTD, relations, query, key, value)
        dropout = self.config.attention_dropout if self.training else 0.0
        weights: Any = None
        summed = False
        if gates is not None and s == 1 and b == n and not (output_weights or are_few(t, m)):
            assert relations is not None
            how = (dropout, output_masses)
            out = self._attend_in_blocks(query, key, value, mask, relations, gates[:, 0], *how)
        else:
            related: dict[str, Any] = {}
            if gates is not None:
                assert relations is not None
                related = {"gates": gates, "relations": relations.of_sources(n)}
            summed = bool(related and output_masses)  # which takes the weights themselves
            attend = self._function(output_weights or summed, mask, gates, (t, m))
            causal = self.is_causal and mask is None and t > 1
            if causal and (related or queries > 1 or attend is not sdpa_attention_forward):
                mask, causal = later_hidden(t, query.device, query.dtype), False
            mask = self._fold_mask(mask, r, queries, t)
            if related and attend is not eager_attention:
                mask, related = add_relations(mask, **related), {}
            out, weights = attend(
                self,
                query,
                key,
                value,
                mask,
                scaling=self.scaling,
                dropout=dropout,
                is_causal=causal,
                **({"fold": fold} if output_weights else {}),
                **related,
            )
        masses = None
        if output_masses and relations is not None:
            folded = fold.fold_weights(weights) if output_weights else weights
            sums = relations.sums(folded) if summed else out[..., self.head_dim :]
            masses = sums.reshape(b, t, heads, -1)
        if out.shape[-1] > self.head_dim:
            out = out[..., : self.head_dim]
        if r > 1:
            out = out.reshape(n, r, beams, queries * t, d).transpose(1, 2)
        out = self.out_proj(out.reshape(b, s, t, d))
        return out, weights if output_weights else None, masses

    def _relate(
        self,
        hidden_BSTD: torch.Tensor,
        relations: Relations | None,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Returns queries, keys and values with relations as slots, or gates for their matrices."""
        if self.gates is None or relations is None:
            return query, key, value, None
        gates = self.gates(hidden_BSTD)
        if relations.prefers_slots(self.head_dim):
            query = relations.extend_queries(query, gates[:, 0], self.scaling)
            # Fused kernels want values as wide as queries.
            return query, relations.extend_keys(key), relations.extend_keys(value), None
        return query, key, value, gates

    def _attend_in_blocks(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        relations: Relations,
        gates_BTG: torch.Tensor,
        dropout: float,
        output_masses: bool,
    ) -> torch.Tensor:
        """Attends for some queries at a time, so that no score of all pairs is held.

        Returns (B, T, H, K), with masses behind the values if asked for: K + symbols.
        """
        length = query.shape[2]
        causal = self.is_causal and mask is None and length > 1

        def attend(part: slice) -> torch.Tensor:
            keys, shown = slice(part.stop if causal else None), mask
            if causal:
                place_M = torch.arange(part.stop, device=query.device)
                shown = additive((place_M <= place_M[part, None])[None, None], query.dtype)
            elif mask is not None and mask.shape[2] > 1:
                shown = mask[:, :, part]
            few = relations.part(part, keys)
            out, weights = eager_attention(
                self,
                query[:, :, part],
                key[:, :, keys],
                value[:, :, keys],
                shown,
                self.scaling,
                dropout,
                gates=gates_BTG[:, part],
                relations=few.of_sources(key.shape[0]),
            )
            return torch.cat((out, few.sums(weights)), -1) if output_masses else out

        held = length * key.shape[2] <= HELD_SCORES
        return in_blocks(attend, length, query.device, held)

    def _function(self, weighs: bool, mask: torch.Tensor | None, *more: Any) -> Callable[..., Any]:
        """Returns the function that attends; all give the same up to rounding.

        Args:
            weighs: whether the weights are wanted.
            mask: that is added to the scores; more about them follows, gates and sizes T and M.
        """
        chosen = "eager" if weighs else self.config._attn_implementation
        return ALL_ATTENTION_FUNCTIONS.get_interface(chosen, eager_attention)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:-1], self.num_heads, self.head_dim)

    def _keys_values(
        self, source_NRLD: torch.Tensor, key_rope: CosSin, cache: EncoderDecoderCache | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns keys and values (N * R, H, M, K), through the cache where there is one."""
        if cache is not None and self.cross and cache.is_updated.get(self.slot):
            layer = cache.cross_attention_cache.layers[self.slot]
            return self._by_stream(layer.keys), self._by_stream(layer.values)
        key = rotate(self._heads(self.k_proj(source_NRLD)), key_rope).transpose(2, 3)
        value = self._heads(self.v_proj(source_NRLD)).transpose(2, 3)
        if cache is None:
            return key.flatten(0, 1), value.flatten(0, 1)
        if self.cross:
            cache.is_updated[self.slot] = True
        part = cache.cross_attention_cache if self.cross else self_attention_part(cache)
        key, value = part.update(key.flatten(1, 2), value.flatten(1, 2), self.slot)
        return self._by_stream(key), self._by_stream(value)

    def _by_stream(self, cached: torch.Tensor) -> torch.Tensor:
        """Moves the streams from heads to rows: (N, R * H, M, K) -> (N * R, H, M, K)."""
        if cached.shape[1] == self.num_heads:  # a view would cost a call for each step and block
            return cached
        return cached.reshape(-1, self.num_heads, *cached.shape[2:])

    @staticmethod
    def _fold_mask(mask: torch.Tensor | None, r: int, queries: int, t: int) -> torch.Tensor | None:
        if mask is None:
            return None
        if r > 1 and mask.shape[0] > 1:
            # Not repeat_interleave: ONNX gets a number of repeats that is not fixed wrong.
            mask = mask[:, None].expand(-1, r, -1, -1, -1).flatten(0, 1)
        if queries > 1 and t > 1 and mask.shape[2] > 1:
            mask = mask.repeat(1, 1, queries, 1)
        return mask


__all__ = ["AlphaAttention"]
