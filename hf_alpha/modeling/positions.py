"""Positions: rotary, sinusoidal and tree. All are computed on the fly; nothing is stored.

Shapes: B batch, T or L length, H heads, K head width, D model width.
"""

import math

import torch
from transformers.cache_utils import Cache

from .masks import visible_keys

TREE_STEPS = 62  # the steps that one signed 64-bit heap number can hold
UNIT_LENGTH = 64  # tokens after which `length_scale` leaves queries as they are


def token_positions(mask_BL: torch.Tensor | None, ids_BL: torch.Tensor) -> torch.Tensor:
    """Returns positions that count from the first token which is not padding: (B or 1, L)."""
    if mask_BL is None:
        return torch.arange(ids_BL.shape[1], device=ids_BL.device)[None]
    return (mask_BL.long().cumsum(-1) - 1).clamp(min=0)


def decoder_positions(
    ids_BT: torch.Tensor, mask: torch.Tensor | None, cache: Cache | None
) -> torch.Tensor:
    """Returns positions of a decoder's tokens, which may go on from a cache: (B or 1, T).

    Args:
        ids_BT: without the tokens that the cache holds.
        mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention,
            (B or 1, 1, T, M).
    """
    length = ids_BT.shape[1]
    if mask is not None and mask.dim() == 2:
        return token_positions(mask, ids_BT)[:, -length:]
    if mask is not None:  # a token's position is the number of keys before it
        return (visible_keys(mask).sum(-1) - 1).clamp(min=0)
    return token_positions(None, ids_BT) + (0 if cache is None else cache.get_seq_length())


def rotary(
    positions_BT: torch.Tensor, width: int, theta: float, heads: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosines and sines of RoPE (Su et al. 2021) for heads of width K: two (B, 1, T, H, K).

    The first half of the sines has the sign with which `rotate` uses it. All heads have the same,
    and where each has a copy (`heads`), products take half the time.
    """
    steps = torch.arange(0, -width, -2, device=positions_BT.device, dtype=torch.float32)
    rows, length = positions_BT.shape
    angles = positions_BT.float().view(rows, 1, length, 1, 1) * theta ** (steps / width)
    cos, sin = (x.expand(-1, -1, -1, heads, -1) for x in (angles.cos(), angles.sin()))
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def length_scale(positions_BT: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns what queries are multiplied with so that scores grow with length: (B, 1, T, 1).

    Over n tokens, the largest of bounded scores loses weight as 1 / n; scores that grow with log n
    make up for it (Chiang & Cholak 2022, section 5). The factor is 1 at `UNIT_LENGTH` tokens.
    """
    lengths = positions_BT[:, None, :, None].float() + 1
    return (lengths.log1p() / math.log1p(UNIT_LENGTH)).to(dtype)


def rotate(x: torch.Tensor, cos_sin: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
    """Rotate heads `x` (B, S, T, H, K) to their positions; without `cos_sin` leave them."""
    if cos_sin is None:
        return x
    cos, sin = cos_sin if cos_sin[0].dtype == x.dtype else (c.to(x.dtype) for c in cos_sin)
    return (x * cos).addcmul_(x.roll(x.shape[-1] // 2, -1), sin)


def sinusoidal(positions_BT: torch.Tensor, width: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns sinusoidal positions (Vaswani et al. 2017): (B, T, D), sines first, then cosines."""
    half = (width + 1) // 2
    exponent = torch.arange(half, device=positions_BT.device, dtype=torch.float32) / half
    angles = positions_BT[..., None].float() * 10000.0**-exponent
    return torch.cat((angles.sin(), angles.cos()), dim=-1)[..., :width].to(dtype)


def tree(paths_BL: torch.Tensor, width: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns tree positions of Shiv & Quirk (2019) from heap numbers: (B, L, D).

    A node's number is 1 for the root, 2c for the first child of c and 2c + 1 for the second, so its
    binary digits from the lowest up to the leading one are the path from the node to the root. Each
    step takes two positions, (1, 0) for a first and (0, 1) for a second child; the rest is zero.
    Number 0 (padding, end token) and the root give zero rows. Steps beyond D / 2 fall off at the
    root's end.
    """
    steps = min(width // 2, TREE_STEPS)
    shift = torch.arange(steps, device=paths_BL.device)
    rest = torch.bitwise_right_shift(paths_BL[..., None], shift)
    exists = rest > 1
    second = (rest & 1).bool()
    pairs = torch.stack((exists & ~second, exists & second), dim=-1).flatten(-2).to(dtype)
    return torch.nn.functional.pad(pairs, (0, width - 2 * steps))
