"""A cache that the beams of a sample share, so that a search moves no keys and values.

Ordinarily each beam has its own copy of what it has seen, and all copies are rearranged in each
step. Here a sample has one pool to which all its beams add; each looks at the pool through a mask
of its own tokens, and only the masks are rearranged.

Shapes: B beams of all samples, N samples, G beams of one, C heads (of all streams), T new tokens,
P tokens in a pool, K head width.
"""

from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

FIRST = 16  # tokens of each beam for which a pool has room at first; it doubles when it is full


class PoolLayer(DynamicLayer):
    """Keys and values of one layer, (N, C, P, K) within buffers that have room for more."""

    def __init__(self, beams: int):
        super().__init__()
        self.beams = beams
        self.used = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        super().lazy_initialization(key_states, value_states)
        b, c, _, k = key_states.shape
        shape = (b // self.beams, c, self.beams * FIRST, k)
        self.keys, self.values = key_states.new_empty(shape), value_states.new_empty(shape)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add what is new of each beam, (B, C, T, K); returns all of the pool, (N, C, P, K)."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self.used = self.used, self.used + self.beams * key_states.shape[2]
        while self.used > self.keys.shape[2]:
            self.keys, self.values = (
                torch.cat((x, torch.empty_like(x)), dim=2) for x in (self.keys, self.values)
            )
        for pool, new in ((self.keys, key_states), (self.values, value_states)):
            _, c, t, k = new.shape
            part = pool[:, :, start : self.used].view(-1, c, self.beams, t, k)
            part.copy_(new.view(-1, self.beams, c, t, k).transpose(1, 2))
        return self.keys[:, :, : self.used], self.values[:, :, : self.used]

    def get_seq_length(self) -> int:
        """Tokens of one beam."""
        return self.used // self.beams

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Nothing moves: [`BeamCache`] keeps track."""


class BeamCache(Cache):
    """Self-attention cache of a beam search from its start on.

    Attributes:
        seen: which tokens of its sample's pool are a beam's own: (N, G, P).
    """

    shared_by_beams = True

    def __init__(self, beams: int):
        super().__init__(layers=[])
        self.beams = beams
        self.seen: torch.Tensor | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        while len(self.layers) <= layer_idx:
            self.layers.append(PoolLayer(self.beams))
        return self.layers[layer_idx].update(key_states, value_states)

    def visible(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """What new tokens see of the pool once they are in it, by beam and token: (N, 1, G * T, P).

        To be called once for each call of the model, before the layers add them.
        """
        g, t, device = self.beams, ids_BT.shape[1], ids_BT.device
        if self.seen is None:
            self.seen = torch.zeros(len(ids_BT) // g, g, 0, dtype=torch.bool, device=device)
        n = len(self.seen)
        own_GG = torch.eye(g, dtype=torch.bool, device=device)
        past_TT = torch.ones(t, t, dtype=torch.bool, device=device).tril()
        new = (own_GG[:, None, :, None] & past_TT[:, None]).reshape(g * t, g * t)
        old = self.seen[:, :, None].expand(-1, -1, t, -1).flatten(1, 2)
        visible = torch.cat((old, new.expand(n, -1, -1)), dim=-1)
        self.seen = visible.view(n, g, t, -1)[:, :, -1]
        return visible[:, None]

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Let each beam go on from another one of its sample."""
        if self.seen is not None:
            self.seen = self.seen.flatten(0, 1)[beam_idx].view_as(self.seen)


__all__ = ["BeamCache"]
