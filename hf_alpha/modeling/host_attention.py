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
from .relations import Relations, add_relations

PREFIX = "relational_"
CROSS = re.compile("cross|encoder_attn|EncDec")
"""What all families call attention to the source, or the part that it is in."""


Gated = tuple[Relations, torch.Tensor]
"""Relations between queries and keys, and gates (B, T, G) that say what heads add for them."""


class UnreachedError(ValueError):
    """A backbone with attention that is not told of relations.

    Attributes:
        why: what is said of it.
    """

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
        relations: all of them.
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
        name: of the function.
        block: that attends.
        query: (B, H, T, K); `key` and `value` (B, groups of heads, M, K).
        symbol_relations: what the stack is told that the block is part of.
        **kwargs: for the function.
    """
    attend = _function(name, block)
    if symbol_relations is None:
        return attend(block, query, key, value, attention_mask, scaling=scaling, **kwargs)
    relations, gates = symbol_relations.of(block, query)
    seen, gates = relations.last(key.shape[2]).to(query.device), gates.to(query.device)
    if _adds_to_mask(name, symbol_relations, query, kwargs):
        if attention_mask is not None and attention_mask.dtype == torch.bool:
            attention_mask = additive(attention_mask, query.dtype)
        attention_mask = add_relations(attention_mask, gates, seen.of_sources(len(key)))
        return attend(block, query, key, value, attention_mask, scaling=scaling, **kwargs)
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
    query_BHTK: torch.Tensor,
    kwargs: dict[str, Any],
) -> bool:
    """Returns whether scores of relations go into the mask, and not into queries and keys.

    Of one new token they are a number for each key, and keys, of all tokens before, would be copied
    to be extended. What is in a mask is not squashed (Gemma 2).
    """
    return (
        isinstance(symbol_relations, LayerRelations)
        and query_BHTK.shape[2] == 1
        and name in ("eager", "sdpa")
        and kwargs.get("softcap") is None
    )


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


__all__ = ["LayerRelations", "StackRelations", "UnreachedError", "relate_attention"]
