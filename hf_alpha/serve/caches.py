"""What a decoder keeps of rows that are answered together: cut to some of them, and joined.

Rows end in the same place, so shorter ones have padding in front, which attention masks hide. Keys,
values and which symbols stand where ([`TextSoFar`]) are all kept by token: 0 is none of them.

Shapes: B batch, M tokens that a cache holds.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import DynamicCache, DynamicLayer


def is_by_token(cache: Any, rows: int, length: int) -> bool:
    """Return whether a cache keeps all by row and token, (B, ..., M, ...), of so many.

    Windows keep the last tokens alone, and `streams` have a row for each name.
    """
    layers = _filled(cache) if type(cache) is DynamicCache else []
    whole = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
    return whole and all(
        x.shape[0] == rows and x.shape[2] == length for layer in layers for x in _states(layer)
    )


def cut(cache: DynamicCache, rows: Sequence[int], length: int) -> None:
    """Keep these rows alone, and of each the last tokens."""
    for layer in _filled(cache):
        index = torch.tensor(rows, device=layer.keys.device)
        layer.keys, layer.values = (x[index, :, -length:] for x in _states(layer))


def join(cache: DynamicCache, other: DynamicCache) -> None:
    """Put the rows of another cache of the same model behind those of a cache."""
    for layer, more in zip(_filled(cache), _filled(other), strict=True):
        both = zip(_states(layer), _states(more), strict=True)
        layer.keys, layer.values = (_together(*parts) for parts in both)


def _filled(cache: DynamicCache) -> list[Any]:
    return [layer for layer in cache.layers if layer.is_initialized]


def _states(layer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return layer.keys, layer.values


def _together(*parts: torch.Tensor) -> torch.Tensor:
    length = max(x.shape[2] for x in parts)
    return torch.cat([F.pad(x, (0, 0, length - x.shape[2], 0)) for x in parts])
