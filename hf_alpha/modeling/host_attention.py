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
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from .masks import additive
from .relations import Relations, add_relations, in_blocks

PREFIX = "relational_"
CROSS = re.compile("cross|encoder_attn|EncDec")
"""What all families call attention to the source, or the part that it is in."""

Gated = tuple[Relations, torch.Tensor]
"""Relations between queries and keys, and gates (B, T, G) that say what heads add for them."""


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
        reached: kinds of attention that have asked.
    """

    within: Gated
    across: Gated | None = None
    reached: set[str] = field(default_factory=set)

    @property
    def unreached(self) -> list[str]:
        """Kinds of attention that have not asked."""
        kinds = ("encoder",) if self.across is None else ("decoder", "cross")
        return [kind for kind in kinds if kind not in self.reached]

    def of(self, block: nn.Module, query: torch.Tensor) -> Gated:
        """Returns the relations for a block, which `relate_attention` has marked."""
        across = self.across if block.sees_source else None
        own = "encoder" if self.across is None else "decoder"
        self.reached.add(own if across is None else "cross")
        return self.within if across is None else across


@dataclass(frozen=True)
class LayerRelations:
    """What the attention blocks of a decoder alone are told: each layer has gates of its own.

    A head's gates are decided by its query.

    Attributes:
        weight: of the gates: (layers, H, K, relations).
        bias: of the gates: (layers, H, relations).
        reached: layers whose attention has asked.
    """

    relations: Relations
    weight: torch.Tensor
    bias: torch.Tensor
    reached: set[int] = field(default_factory=set)

    @property
    def unreached(self) -> list[str]:
        """Layers whose attention has not asked."""
        return [f"layer {i}'s" for i in range(len(self.weight)) if i not in self.reached]

    def of(self, block: nn.Module, query_BHTK: torch.Tensor) -> Gated:
        """Returns the relations for the block of a layer."""
        layer: Any = block.layer_idx
        self.reached.add(layer)
        weight, bias = (x[layer].to(query_BHTK) for x in (self.weight, self.bias))
        gates_BHTR = query_BHTK @ weight + bias[:, None]
        return self.relations, gates_BHTR.permute(0, 2, 3, 1).flatten(2)


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
    attend = _function(name, block)
    if symbol_relations is None:
        return attend(block, query, key, value, attention_mask, scaling=scaling, **kwargs)
    relations, gates = symbol_relations.of(block, query)
    seen = relations.part(slice(None), slice(-key.shape[2], None)).to(query.device)
    gates = gates.to(query.device)
    if _adds_to_mask(name, symbol_relations, seen, query, kwargs):
        attend = partial(attend, block, scaling=scaling, **kwargs)
        return _attend_by_masks(attend, query, key, value, attention_mask, seen, gates)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    width = value.shape[-1]
    query = seen.extend_queries(query, gates, scaling)
    key = seen.extend_keys(key)
    value = F.pad(value, (0, key.shape[-1] - width))  # as wide, which fused kernels ask for
    output, weights = attend(block, query, key, value, attention_mask, scaling=scaling, **kwargs)
    return output[..., :width], weights


def _adds_to_mask(
    name: str,
    symbol_relations: StackRelations | LayerRelations,
    relations: Relations,
    query_BHTK: torch.Tensor,
    kwargs: dict[str, Any],
) -> bool:
    """Returns whether scores of relations go into masks, and not into queries and keys.

    Of one new token they are a number for each key, and keys, of all tokens before, would be copied
    to be extended. With many symbols, queries and keys would be too wide. What is in a mask is not
    squashed (Gemma 2).
    """
    if not isinstance(symbol_relations, LayerRelations) or kwargs.get("softcap") is not None:
        return False
    if query_BHTK.shape[2] == 1:
        return name in ("eager", "sdpa")
    if name != "sdpa" or torch.compiler.is_compiling():  # to which it would be a condition of sizes
        return False
    return query_BHTK.shape[-1] + relations.shape[-1] > widest(query_BHTK)


def widest(query_BHTK: torch.Tensor) -> int:
    """Returns how wide heads with slots may be to be better than masks.

    On a CPU masks take less time where there are more slots than a head is wide: measured with K of
    64, 256 to 4,096 tokens and 4 to 200 names. GPUs have no fused kernels for more than 256.
    """
    return 2 * query_BHTK.shape[-1] if query_BHTK.is_cpu else 256


def _attend_by_masks(
    attend: Callable[..., Any],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    relations: Relations,
    gates: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attends with masks that hold the scores of relations, one for each block of queries.

    Args:
        mask: None for that of a decoder.
    """
    length, weights = query.shape[2], None

    def attend_block(part: slice) -> torch.Tensor:
        nonlocal weights
        keys, shown = slice(None), mask
        if mask is None and length > 1:
            keys = slice(part.stop)
            place_M = torch.arange(part.stop, device=query.device)
            shown = (place_M <= place_M[part, None])[None, None]
        elif mask is not None and mask.shape[2] > 1:
            shown = mask[:, :, part]
        if shown is not None and shown.dtype == torch.bool:
            # As `sdpa` has it, queries that see nothing find nothing; a single one sees itself.
            shown = additive(shown, query.dtype, None if length == 1 else -torch.inf)
        matrices = relations.part(part, keys).of_sources(key.shape[0])
        scores = add_relations(shown, gates[:, part], matrices)
        output, weights = attend(query[:, :, part], key[:, :, keys], value[:, :, keys], scores)
        return output

    return in_blocks(attend_block, length, query.device), weights


def _function(name: str, block: nn.Module) -> Callable[..., Any]:
    """Returns the function of Transformers; that of eager attention is each family's own."""
    family = sys.modules[type(block).__module__]
    eager = getattr(family, "eager_attention_forward", None)
    return ALL_ATTENTION_FUNCTIONS.get_interface(name, eager)


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
