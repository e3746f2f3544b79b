"""Cache of keys and values for beam search.

Shapes: B batch (beams included), H heads of all streams, M cached tokens, K head width.
"""

from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer


class BeamLayer(DynamicLayer):
    """A layer of a dynamic cache that puts its rows in order when it grows, both in one pass.

    A step of beam search moves the rows of a cache, and the next one adds a token to them; each
    copies everything. Here the order waits for the token, or for whoever looks at `keys` or
    `values` before it comes.
    """

    _keys: Any  # tensors, or None for a layer without content
    _values: Any

    def __init__(self) -> None:
        self._order: torch.Tensor | None = None  # (B,): which rows are to be the new ones
        super().__init__()

    @classmethod
    def of(cls, layer: DynamicLayer) -> "BeamLayer":
        """The same content in a layer of this kind."""
        made = cls()
        if layer.is_initialized:
            made.lazy_initialization(layer.keys, layer.values)
            made.keys, made.values = layer.keys, layer.values
        return made

    @property
    def keys(self) -> Any:
        self._settle()
        return self._keys

    @keys.setter
    def keys(self, keys: torch.Tensor | None) -> None:
        self._settle()
        self._keys = keys

    @property
    def values(self) -> Any:
        self._settle()
        return self._values

    @values.setter
    def values(self, values: torch.Tensor | None) -> None:
        self._settle()
        self._values = values

    def _settle(self) -> None:
        order, self._order = self._order, None
        if order is not None:
            self._keys = self._keys.index_select(0, order)
            self._values = self._values.index_select(0, order)

    def get_seq_length(self) -> int:
        """Tokens so far; does not ask for the rows to be in order."""
        return self._keys.shape[-2] if self.is_initialized and self._keys.numel() else 0

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Let rows (B,) of the cache be its new ones."""
        if self.get_seq_length():
            self._order = beam_idx if self._order is None else self._order[beam_idx]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens (B, H, new, K); returns all keys and all values (B, H, M, K)."""
        if self._order is None or torch.is_grad_enabled():
            return super().update(key_states, value_states, *args, **kwargs)
        order, self._order = self._order, None
        self._keys = select_and_add(self._keys, order, key_states)
        self._values = select_and_add(self._values, order, value_states)
        return self._keys, self._values


def select_and_add(old: torch.Tensor, order: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """`cat((old[order], new), dim=2)` without a copy in between: (B, H, M + new, K)."""
    if torch.compiler.is_compiling() or old.dtype != new.dtype or len(order) != len(new):
        return torch.cat((old.index_select(0, order), new), dim=2)
    past = old.shape[2]
    both = old.new_empty(len(order), old.shape[1], past + new.shape[2], old.shape[3])
    torch.index_select(old, 0, order, out=both[:, :, :past])
    both[:, :, past:] = new
    return both


def reorder(cache: Cache, beam_idx: torch.Tensor) -> None:
    """`cache.reorder_cache(beam_idx)`; plain dynamic layers on a CPU become [`BeamLayer`]s."""
    for index, layer in enumerate(cache.layers):
        plain = type(layer) is DynamicLayer and layer.is_initialized
        if plain and layer.keys.device == beam_idx.device == torch.device("cpu"):
            cache.layers[index] = BeamLayer.of(layer)
    cache.reorder_cache(beam_idx)


__all__ = ["BeamLayer", "reorder"]
