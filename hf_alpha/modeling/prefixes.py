"""Prefixes: tokens of a decoder's text that see each other in both directions, as a prompt may.

Shapes: B batch, T tokens at hand, M keys (cached ones included).
"""

from typing import Any

import torch
from torch.nn import functional as F

from .checks import IGNORE, check_cached_prefix, check_prefix


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
    check_prefix(prefix_mask, rows)
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
        check_cached_prefix(kwargs.get("past_key_values"))
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


__all__ = ["split_prefix", "visible_in_prefix", "with_prompt_as_prefix"]
