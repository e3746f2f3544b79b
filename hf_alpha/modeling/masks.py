"""Additive attention masks: 0 where a key is visible, the lowest finite number elsewhere.

And prefixes: tokens of a decoder's text that see each other in both directions, as a prompt may.

Shapes: B batch, T query length, L source length, M keys.
"""

from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache, EncoderDecoderCache

from .checks import IGNORE, can_look, is_recorded
from .choices import refuse

MANY_SCORES = 1 << 13
"""Of a head; up to here matrices are as fast as slots."""


def are_few(num_queries: int, num_keys: int) -> bool:
    """Returns whether scores are so few that they may be held, a number for each.

    While a program is compiled or traced, a comparison of sizes would fix them: there they are.
    Those of a single query are, as keys would be copied for it.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or num_queries == 1:
        return True
    return num_queries * num_keys <= MANY_SCORES


def padding_mask(mask_BL: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """Returns a mask (B, 1, 1, L) that hides padding; None where there is seen to be none."""
    if mask_BL is None or _hides_nothing(mask_BL):
        return None
    return additive(mask_BL[:, None, None].bool(), dtype)


def causal_mask(
    ids_BT: torch.Tensor,
    mask: torch.Tensor | None,
    past_key_values: Cache | None,
    dtype: torch.dtype,
    prefix_mask: torch.Tensor | None = None,
) -> torch.Tensor | None:
    """Returns a mask (B or 1, 1, T, M) that hides later tokens, unused cache and padding.

    It is None for a single token that sees all, and for many tokens of which only later ones are to
    be hidden: to that [`AlphaAttention`] sees, and nothing is held for each pair of tokens.

    Args:
        ids_BT: without the tokens that the cache holds.
        mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention.
        past_key_values: the cache.
        dtype: of the mask.
        prefix_mask: 1 for tokens that see each other in both directions: (B, M) or shorter.
    """
    if mask is not None and mask.dim() == 4:
        if prefix_mask is None:
            return additive(mask, dtype) if mask.dtype == torch.bool else mask
        visible, keys = visible_keys(mask)[:, None], mask.shape[-1]
        past = 0 if past_key_values is None else past_key_values.get_seq_length()
        position_T = torch.arange(ids_BT.shape[1], device=ids_BT.device) + past
        return additive(visible | visible_in_prefix(prefix_mask, position_T, keys), dtype)
    mask = None if mask is not None and _hides_nothing(mask) else mask
    length = keys = ids_BT.shape[1]
    past = 0
    if (cache := self_attention_part(past_key_values)) is not None:
        past = cache.get_seq_length()
        keys, _ = cache.get_mask_sizes(length, 0)
        if mask is None and length == 1 and not cache.is_compileable:
            return None  # one new token sees all that is cached
    many = keys == length and prefix_mask is None and not are_few(length, keys)
    if many and (mask is None or _ends_in_padding(mask)):
        return None
    if mask is None and prefix_mask is None and keys == length:
        return later_hidden(length, ids_BT.device, dtype)
    query = torch.arange(length, device=ids_BT.device) + past
    key = torch.arange(keys, device=ids_BT.device)
    visible = (key[None, :] <= query[:, None])[None, None]
    if prefix_mask is not None:
        visible = visible | visible_in_prefix(prefix_mask, query, keys)
    if mask is not None:
        padded_mask = F.pad(mask, (0, keys - mask.shape[1])) if mask.shape[1] < keys else mask
        visible = visible & padded_mask[:, None, None].bool()
    return additive(visible, dtype)


def _hides_nothing(mask_BL: torch.Tensor) -> bool:
    """Returns whether there is seen to be no padding."""
    return can_look(mask_BL) and bool(mask_BL.all())


def _ends_in_padding(mask_BL: torch.Tensor) -> bool:
    """Returns whether no token comes behind padding, which is then hidden as all that is later.

    It is read back from any device: beside many scores, that costs nothing.
    """
    return not (is_recorded(mask_BL) or bool((mask_BL[:, 1:] > mask_BL[:, :-1]).any()))


def later_hidden(length: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Returns an additive mask (1, 1, T, T) that hides later tokens only."""
    hidden = torch.full((1, 1, length, length), torch.finfo(dtype).min, dtype=dtype, device=device)
    return hidden.triu_(1)


def visible_keys(mask: torch.Tensor) -> torch.Tensor:
    """Returns what a prepared mask (B or 1, 1, T, M) shows: (B or 1, T, M), True where visible."""
    return mask[:, 0] if mask.dtype == torch.bool else mask[:, 0] == 0


def shown_tokens(mask: torch.Tensor, position_T: torch.Tensor) -> torch.Tensor:
    """Returns which of a decoder's tokens are no padding: (B or 1, T).

    Args:
        mask: 1 for tokens, 0 for padding: (B, M), its last columns those of the tokens; or as it is
            prepared for attention, (B or 1, 1, T, M), where padding does not see itself either.
        position_T: places of the tokens among the keys.
    """
    if mask.dim() == 2:
        return mask[:, -position_T.shape[0] :] > 0
    visible_BTM = visible_keys(mask)
    column = position_T[None, :, None].expand(visible_BTM.shape[0], -1, -1)
    return visible_BTM.gather(2, column)[..., 0]


def first_states(hidden_BLD: torch.Tensor, mask_BL: torch.Tensor | None) -> torch.Tensor:
    """Returns the states of the first tokens that are no padding, which may come first: (B, D)."""
    if mask_BL is None:
        return hidden_BLD[:, 0]
    place = mask_BL.long().argmax(1)[:, None, None].expand(-1, 1, hidden_BLD.shape[-1])
    return hidden_BLD.gather(1, place)[:, 0]


def additive(
    visible: torch.Tensor, dtype: torch.dtype, hidden: float | None = None
) -> torch.Tensor:
    """Returns a mask of the same shape: 0 where visible, the lowest finite number elsewhere.

    Args:
        hidden: in place of that number.
    """
    # Finite: with -inf, a softmax over a row without any visible key would give NaN.
    hidden = torch.finfo(dtype).min if hidden is None else hidden
    return torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, hidden)


def is_by_token(mask: Any) -> bool:
    """Returns whether a mask is 1 for tokens and 0 for padding, not prepared for attention."""
    return isinstance(mask, torch.Tensor) and mask.dim() == 2


def full_mask(mask: Any) -> Any:
    """Returns the mask of full attention, where there is one for each kind of layers.

    It is None where no layer is of that kind: then the model keeps nothing that would need it.
    """
    return mask.get("full_attention") if isinstance(mask, dict) else mask


def self_attention_part(cache: Any) -> Any:
    """Returns the part of a cache that is for the decoder's own tokens; None for no cache."""
    return cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache


def split_prefix(
    next_BT: torch.Tensor | None, prefix_mask: torch.Tensor | None, prefix_lm: bool, rows: int
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Returns the label of each position, -100 within the prefix, and the prefix.

    Args:
        next_BT: the label of the token behind each position; None without labels.
        prefix_mask: 1 for tokens of the prefix: (B, T) or shorter.
        prefix_lm: whether, where none is given, the tokens before the first label are the prefix.
        rows: B.

    Raises:
        ValueError: the prefix has not a row for each text.
    """
    if next_BT is not None and prefix_lm and prefix_mask is None:
        labels_BT = F.pad(next_BT, (1, 0), value=IGNORE)[:, :-1]
        prefix_mask = (labels_BT != IGNORE).cumsum(1) == 0
    if prefix_mask is not None:
        refuse(
            prefix_mask.dim() != 2 or prefix_mask.shape[0] != rows,
            f"prefix_mask is {tuple(prefix_mask.shape)}, and there are {rows} texts: give (texts, "
            "length), 1 for the tokens of the prefix",
        )
    if next_BT is not None and prefix_mask is not None:
        # Within the prefix, a position sees the token behind it.
        seen_BT = F.pad(prefix_mask, (0, next_BT.shape[1] + 1 - prefix_mask.shape[1]))
        next_BT = next_BT.masked_fill(seen_BT[:, 1:] > 0, IGNORE)
    return next_BT, prefix_mask


def with_prompt_as_prefix(prompt: torch.Tensor | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments of `generate` in which the prompt is the prefix, if they have no other.

    Raises:
        ValueError: `past_key_values` holds tokens, which have not seen the rest of the prompt.
    """
    if prompt is None or kwargs.get("prefix_mask") is not None:
        return kwargs
    # An assistant only proposes tokens, and the model that it assists may have no prefix.
    if not getattr(kwargs.get("generation_config"), "is_assistant", False):
        cache = kwargs.get("past_key_values")
        cached = 0 if cache is None else cache.get_seq_length()
        refuse(
            cached,
            f"past_key_values holds {cached} tokens, and prefix_mask is missing: by default the "
            "whole input is the prefix, but these tokens have not seen what follows them. Pass the "
            "prefix_mask that they were computed with, (samples, length): 1 for tokens of their "
            "prefix (where generate made the cache, the attention_mask of its prompt, or ones), 0 "
            "behind it, which may be left out",
        )
    mask = kwargs.get("attention_mask")
    return {**kwargs, "prefix_mask": torch.ones_like(prompt) if mask is None else mask}


def visible_in_prefix(
    prefix_mask: torch.Tensor, position_T: torch.Tensor, num_keys: int
) -> torch.Tensor:
    """Returns which keys the tokens at hand see as parts of one prefix: (B, 1, T, M).

    Args:
        prefix_mask: 1 for tokens of the prefix, from the start of the text on.
        position_T: places of the tokens at hand among the keys.
        num_keys: M.
    """
    missing = max(0, num_keys - prefix_mask.shape[1])
    inside_BM = F.pad(prefix_mask > 0, (0, missing))[:, :num_keys]
    return (inside_BM[:, position_T, None] & inside_BM[:, None])[:, None]
