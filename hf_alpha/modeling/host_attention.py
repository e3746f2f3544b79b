"""Attention of any model of Transformers that is told where the same symbol stands.

An attention block of Transformers calls the function that its configuration names
(`AttentionInterface`), with the keyword arguments of the model's forward. So relations reach it as
an argument, and become part of its queries and keys ([`Relations`]): no mask, no hook, no code for
a family. For each function of Transformers, `eager` and `sdpa` for one, there is one of ours that
calls it: `relational_eager`, `relational_sdpa`.

Shapes: B batch, N sources (B, or one for all beams of a sample), H heads, T queries, M keys, K head
width, G gates.
"""

import re
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .checks import can_look
from .masks import additive
from .relations import PREFIX, Relations, add_relations, in_blocks

CROSS = re.compile("cross|encoder_attn|EncDec")
"""What all families call attention to the source, or the part that it is in."""

Gated = tuple[Relations, torch.Tensor]
"""Relations between queries and keys, and gates that say what heads add for them, (B, T, G), or
(B, H, T, relations, 1)."""


class UnreachedError(ValueError):
    """A backbone with attention that is not told of relations."""

    def __init__(self, family: str, encoding: str, place: str):
        self.why = (
            f"relations do not reach its {place} attention, which does not call the function that "
            "the configuration names (AttentionInterface)"
        )
        super().__init__(
            f"a {family!r} model does not take symbol_encoding {encoding!r}: {self.why}; choose "
            "another encoding"
        )


@dataclass(frozen=True)
class StackRelations:
    """What the attention blocks of an encoder, or of a decoder with a source, are told.

    Gates are the same in all layers.

    Attributes:
        within: for attention to the stack's own positions.
        across: for a decoder's attention to the source.
        positions: places of a decoder's tokens at hand among all so far: (T,).
        reached: kinds of attention that have asked.
    """

    within: Gated
    across: Gated | None = None
    positions: torch.Tensor | None = None
    reached: set[str] = field(default_factory=set)

    @property
    def unreached(self) -> list[str]:
        """Kinds of attention that have not asked."""
        kinds = ("encoder",) if self.across is None else ("decoder", "cross")
        return [kind for kind in kinds if kind not in self.reached]

    def of(self, block: nn.Module, query: torch.Tensor, num_keys: int) -> Gated:
        """Returns the relations for a block, which `relate_attention` has marked."""
        if self.across is not None and block.sees_source:
            self.reached.add("cross")
            return self.across
        self.reached.add("encoder" if self.across is None else "decoder")
        relations, gates = self.within
        if self.positions is not None:
            keys = keys_at_hand(num_keys, relations.shape[1], self.positions)
            relations = relations.part(slice(None), keys)
        return relations, gates


@dataclass(frozen=True)
class LayerRelations:
    """What the attention blocks of a decoder alone are told: each layer has gates of its own.

    A head's gates are decided by its query.

    Attributes:
        weights: of the gates, for each layer: (H, K, relations).
        biases: of the gates, likewise: (H, 1, relations).
        positions: places of the tokens at hand among all so far: (T,).
        reached: layers whose attention has asked.
        lines: of one query, the relations to the keys that a layer has, for layers with as many on
            one device: (B, 1, relations, M).
    """

    relations: Relations
    weights: Sequence[torch.Tensor]
    biases: Sequence[torch.Tensor]
    positions: torch.Tensor
    reached: set[int] = field(default_factory=set)
    lines: dict[Hashable, torch.Tensor] = field(default_factory=dict)

    @property
    def unreached(self) -> list[str]:
        """Layers whose attention has not asked."""
        return [f"layer {i}'s" for i in range(len(self.weights)) if i not in self.reached]

    def of(self, block: nn.Module, query_BHTK: torch.Tensor, num_keys: int) -> Gated:
        """Returns the relations for the block of a layer."""
        weight, bias = self._of_layer(block, query_BHTK)
        gates_BHTR = query_BHTK @ weight + bias
        keys = keys_at_hand(num_keys, self.relations.shape[1], self.positions)
        relations = self.relations.part(slice(None), keys)
        return relations, gates_BHTR[..., None]

    def scores(self, block: nn.Module, query_BH1K: torch.Tensor, num_keys: int) -> torch.Tensor:
        """Returns what is added to the scores of one query and the keys: (B, H, 1, M)."""
        weight, bias = self._of_layer(block, query_BH1K)
        kind = num_keys, query_BH1K.device, query_BH1K.dtype
        if (lines_B1RM := self.lines.get(kind)) is None:
            lines_B1RM, all_keys = self.relations.lines, self.relations.shape[1]
            if num_keys != all_keys:
                lines_B1RM = lines_B1RM[..., keys_at_hand(num_keys, all_keys, self.positions)]
            self.lines[kind] = lines_B1RM = lines_B1RM.to(query_BH1K)
        return (query_BH1K @ weight).add_(bias) @ lines_B1RM

    def _of_layer(self, block: nn.Module, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        layer: Any = block.layer_idx
        self.reached.add(layer)
        weight, bias = self.weights[layer], self.biases[layer]
        if weight.dtype == like.dtype and weight.device == like.device:
            return weight, bias
        return weight.to(like), bias.to(like)


def keys_at_hand(num_keys: int, all_keys: int, position_T: torch.Tensor) -> slice | torch.Tensor:
    """Returns which of a decoder's tokens a layer has the keys of: (M,).

    A sliding window holds the last tokens; static caches have unused places behind them.

    Args:
        num_keys: M, of the layer.
        all_keys: of a layer that sees all tokens, with as many unused places.
        position_T: places of the tokens at hand.
    """
    if num_keys == all_keys:
        return slice(None)
    if can_look(position_T):
        start = max(int(position_T[-1]) + 1 - num_keys, 0)
        return slice(start, start + num_keys)
    start_1 = (position_T[-1:] + 1 - num_keys).clamp(min=0)
    return start_1 + torch.arange(num_keys, device=position_T.device)


def relational_attention(
    name: str,
    block: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    symbol_relations: StackRelations | LayerRelations | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attends as a function of Transformers does, with relations where they are given.

    Args:
        query: (B, H, T, K); `key` and `value` (B, groups of heads, M, K).
        symbol_relations: what the stack is told that the block is part of.
    """
    attend = partial(_function(name, block), block, **kwargs)
    if symbol_relations is None:
        return attend(query, key, value, attention_mask, scaling=scaling)
    squashes = kwargs.get("softcap") is not None  # which a mask is not (Gemma 2)
    one = query.shape[2] == 1 and name in ("eager", "sdpa")
    if isinstance(symbol_relations, LayerRelations) and one and not squashes:
        # A number for each key; extended keys of all tokens before would be copies.
        scores = symbol_relations.scores(block, query, key.shape[2])
        if attention_mask is not None and attention_mask.dtype == torch.bool:
            attention_mask = additive(attention_mask, query.dtype)
        mask = scores if attention_mask is None else attention_mask + scores
        return attend(query, key, value, mask, scaling=scaling)
    relations, gates = symbol_relations.of(block, query, key.shape[2])
    seen = relations.to(query.device)
    if gates.device != query.device:
        gates = gates.to(query.device)
    if (
        not squashes
        and name == "sdpa"
        and not torch.compiler.is_compiling()  # to which it would be a condition of sizes
        and query.shape[-1] + seen.shape[-1] > widest(query)
    ):
        attend = partial(attend, scaling=scaling)
        return _attend_by_masks(block, attend, query, key, value, attention_mask, seen, gates)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    width = value.shape[-1]
    query = seen.extend_queries(query, gates, scaling)
    key = seen.extend_keys(key)
    value = F.pad(value, (0, key.shape[-1] - width))  # as wide, which fused kernels ask for
    output, weights = attend(query, key, value, attention_mask, scaling=scaling)
    return output[..., :width], weights


def widest(query_BHTK: torch.Tensor) -> int:
    """Returns how wide heads with slots may be to be better than masks.

    On a CPU masks take less time where there are more slots than a head is wide: measured with K of
    64, 256 to 4,096 tokens and 4 to 200 names. GPUs have no fused kernels for more than 256.
    """
    return 2 * query_BHTK.shape[-1] if query_BHTK.is_cpu else 256


def _attend_by_masks(
    block: nn.Module,
    attend: partial[Any],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    relations: Relations,
    gates: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attends with masks that hold the scores of relations, one for each block of queries.

    Args:
        mask: None for none, or of a block that is causal for that of a decoder.
    """
    length, weights = query.shape[2], None
    if gates.dim() == 5:
        gates = gates.permute(0, 2, 3, 1, 4).flatten(2)
    bias = attend.keywords.get("position_bias")  # of T5
    causal = mask is None and length > 1 and getattr(block, "is_causal", True)  # as `sdpa` has it

    def attend_block(part: slice) -> torch.Tensor:
        nonlocal weights
        keys, shown = slice(part.stop if causal else None), None
        if causal:
            place_M = torch.arange(part.stop, device=query.device)
            shown = (place_M <= place_M[part, None])[None, None]
        elif mask is not None:
            shown = mask[:, :, part] if mask.shape[2] > 1 else mask
        if (
            shown is not None and shown.dtype == torch.bool
        ):  # as `sdpa` has it, queries that see nothing find nothing
            shown = additive(shown, query.dtype, -torch.inf)
        matrices = relations.part(part, keys).of_sources(key.shape[0])
        scores = add_relations(shown, gates[:, part], matrices)
        options = {} if bias is None else {"position_bias": bias[:, :, part, keys]}
        output, weights = attend(
            query[:, :, part], key[:, :, keys], value[:, :, keys], scores, **options
        )
        return output

    return in_blocks(attend_block, length, query.device), weights


def _function(name: str, block: nn.Module) -> Callable[..., Any]:
    """Returns the function of Transformers; that of eager attention is each family's own."""
    if name != "eager":
        return ALL_ATTENTION_FUNCTIONS[name]
    return sys.modules[type(block).__module__].eager_attention_forward


def relate_attention(host: PreTrainedModel) -> None:
    """Have the attention blocks of a model call our functions around those that they call now."""
    for module in host.modules():
        if isinstance(module, PreTrainedModel):
            name = (module.config._attn_implementation or "eager").removeprefix(PREFIX)
            _register(name)
            # Not by the property, which hands it on to configurations of other parts.
            module.config._attn_implementation_internal = PREFIX + name
    for name, module in host.named_modules():
        module.sees_source = bool(CROSS.search(name))


def _register(name: str) -> None:
    """Make our function around one of Transformers known, with the masks that it takes."""
    AttentionInterface.register(PREFIX + name, partial(relational_attention, name))
    if name in ALL_MASK_ATTENTION_FUNCTIONS:
        AttentionMaskInterface.register(PREFIX + name, ALL_MASK_ATTENTION_FUNCTIONS[name])
