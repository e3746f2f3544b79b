"""What a decoder of neural logic operators keeps: premises of the source and of past positions.

Binary atoms u(x, y) of a new position x are a row. To deduce them, operators need premises at all
positions that it relates to, and never the binary atoms of other rows, but for trans: its premise
v(a, y) is a matrix, which grows by a row and a column with each position.

Shapes: C channels, N rows of a batch (B samples times S streams), I positions of the source, P of
the past, T of the present, M = I + P + T, E width of a premise (0 for trans).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicLayer, EncoderDecoderCache

HISTORY = 0  # the cache slot that tells how many positions there are, and which symbols they hold


class PremiseLayer(DynamicLayer):
    """Keeps premises: `keys` (B, C * S, P, E) grow by rows, `values` by columns too."""

    keys: torch.Tensor
    values: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the present rows; `values` of the past have zeros in the columns that are new."""
        if self.is_initialized and (columns := value_states.shape[-1] - self.values.shape[-1]) > 0:
            self.values = F.pad(self.values, (0, columns))
        return super().update(key_states, value_states, *args, **kwargs)

    def get_seq_length(self) -> int:
        """Returns how many positions are kept, P; `keys` of trans have rows of width 0."""
        return self.keys.shape[-2] if self.is_initialized else 0

    def crop(self, tokens_to_remove: int) -> None:
        """Forget so many of the last positions; the number is negative, as in the base class."""
        before = self.get_seq_length()
        super().crop(tokens_to_remove)
        num_removed = before - self.get_seq_length()
        if num_removed and self.values.shape[-1] > num_removed:
            self.values = self.values[..., :-num_removed]


def use_premise_layers(cache: Cache, slots: int) -> None:
    """Let a cache that holds nothing yet keep premises in so many slots.

    Raises:
        ValueError: it cannot grow, as static caches cannot.
    """
    if any(layer.get_max_length() > 0 for layer in cache.layers):
        raise ValueError(
            "FOLNet keeps matrices of premises that grow with the text, for which there is no "
            "static cache: leave out cache_implementation, or use a DynamicCache"
        )
    cache.layers = [PremiseLayer() for _ in range(slots)]


@dataclass(frozen=True)
class Source:
    """The encoder's atoms, a row for each row of the decoder.

    Attributes:
        unary: u_L(x): (N, I, D1).
        binary: u_L(x, y): (N, I, I, D2).
    """

    unary: torch.Tensor
    binary: torch.Tensor


@dataclass(frozen=True)
class Columns:
    """Premises at the positions that a layer of a decoder relates to.

    Attributes:
        slot: the first slot of this layer in the caches.
        streams: S.
        source: the encoder's atoms, in an encoder-decoder.
        past: cache of the premises of the decoder's own positions.
        across: cache of the premises of the source's positions.
    """

    slot: int
    streams: int = 1
    source: Source | None = None
    past: Cache | None = None
    across: EncoderDecoderCache | None = None

    def extend(
        self,
        offset: int,
        present: torch.Tensor,
        project: Callable[[Source], torch.Tensor],
    ) -> torch.Tensor:
        """Returns premises of source, past and present: (C, N, M, E).

        Args:
            offset: of the operator's slot from the first one of the layer.
            present: premises of the present positions: (C, N, T, E).
            project: makes (C, N, I, E) of the source's atoms.
        """
        present = self._remember(offset, keys=present)[0]
        source = self.of_source(offset, project)
        return present if source is None else torch.cat((source, present), dim=2)

    def extend_square(self, offset: int, present: torch.Tensor) -> torch.Tensor:
        """Returns v(a, y) for a of past and present, (C, N, P + T, M), from (C, N, T, M)."""
        return self._remember(offset, values=present)[1]

    def of_source(
        self, offset: int, project: Callable[[Source], torch.Tensor]
    ) -> torch.Tensor | None:
        """Returns what `project` makes of the source's atoms; a cache keeps it for later calls."""
        if self.source is None:
            return None
        slot = self.slot + offset
        if self.across is None:
            return project(self.source)
        cache = self.across.cross_attention_cache
        if not self.across.is_updated.get(slot):
            premises = self._folded(project(self.source))
            cache.update(premises, premises[..., :0], slot)
            self.across.is_updated[slot] = True
        return self._unfolded(cache.layers[slot].keys)

    def _remember(
        self,
        offset: int,
        keys: torch.Tensor | None = None,
        values: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Notes present premises in the cache; returns keys and values of past and present."""
        present = keys if keys is not None else values
        assert present is not None
        keys = present[..., :0] if keys is None else keys
        values = present[..., :0] if values is None else values
        if self.past is None:
            return keys, values
        entries = self.past.update(self._folded(keys), self._folded(values), self.slot + offset)
        return self._unfolded(entries[0]), self._unfolded(entries[1])

    def _folded(self, x: torch.Tensor) -> torch.Tensor:
        """Puts samples first, as caches are reordered: (C, B * S, ...) -> (B, C * S, ...)."""
        return x.unflatten(1, (-1, self.streams)).transpose(0, 1).flatten(1, 2)

    def _unfolded(self, x: torch.Tensor) -> torch.Tensor:
        """Puts channels first again: (B, C * S, ...) -> (C, B * S, ...)."""
        return x.unflatten(1, (-1, self.streams)).transpose(0, 1).flatten(1, 2)


__all__ = ["HISTORY", "Columns", "PremiseLayer", "Source", "use_premise_layers"]
