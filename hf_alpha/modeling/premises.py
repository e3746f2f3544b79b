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
    """What one operator keeps: `keys` (B, C * S, P, E) grow by rows, `values` by columns too."""

    keys: torch.Tensor
    values: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the present rows; `values` of the past have zeros in the columns that are new."""
        if self.is_initialized and (more := value_states.shape[-1] - self.values.shape[-1]) > 0:
            self.values = F.pad(self.values, (0, more))
        return super().update(key_states, value_states, *args, **kwargs)

    def get_seq_length(self) -> int:
        """Positions, of keys without a number as well: those of trans."""
        return self.keys.shape[-2] if self.is_initialized else 0

    def crop(self, tokens_to_remove: int) -> None:
        """Forget so many of the last positions; the number is negative, as in the base class."""
        before = self.get_seq_length()
        super().crop(tokens_to_remove)
        gone = before - self.get_seq_length()
        if gone and self.values.shape[-1] > gone:
            self.values = self.values[..., :-gone]


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
    """The encoder's atoms, as a decoder sees them.

    Attributes:
        unary: (N, I, D1).
        binary: (N, I, I, D2).
    """

    unary: torch.Tensor
    binary: torch.Tensor


@dataclass(frozen=True)
class Columns:
    """Premises at the positions that a layer of a decoder relates to.

    Attributes:
        slot: of the cache, the first one of this layer.
        streams: S.
        source: the encoder's atoms, in an encoder-decoder.
        past: cache of the decoder's own premises.
        across: cache of those of the source.
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
        """Premises of source, past and present: (C, N, M, E).

        Args:
            offset: of the operator's slot.
            present: (C, N, T, E).
            project: makes (C, N, I, E) of the source's atoms.
        """
        present = self._remember(offset, keys=present)[0]
        source = self.of_source(offset, project)
        return present if source is None else torch.cat((source, present), dim=2)

    def extend_square(self, offset: int, present: torch.Tensor) -> torch.Tensor:
        """The premise v(a, y) for a of past and present: (C, N, P + T, M), from (C, N, T, M)."""
        return self._remember(offset, values=present)[1]

    def of_source(
        self, offset: int, project: Callable[[Source], torch.Tensor]
    ) -> torch.Tensor | None:
        """What `project` makes of the source's atoms, or made in an earlier call."""
        if self.source is None:
            return None
        slot = self.slot + offset
        if self.across is None:
            return project(self.source)
        cache = self.across.cross_attention_cache
        if not self.across.is_updated.get(slot):
            made = self._folded(project(self.source))
            cache.update(made, made[..., :0], slot)
            self.across.is_updated[slot] = True
        return self._unfolded(cache.layers[slot].keys)

    def _remember(
        self,
        offset: int,
        keys: torch.Tensor | None = None,
        values: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        given = keys if keys is not None else values
        assert given is not None
        keys = given[..., :0] if keys is None else keys
        values = given[..., :0] if values is None else values
        if self.past is None:
            return keys, values
        new = self._folded(keys), self._folded(values)
        kept = self.past.update(*new, self.slot + offset)
        return self._unfolded(kept[0]), self._unfolded(kept[1])

    def _folded(self, x: torch.Tensor) -> torch.Tensor:
        """(C, B * S, ...) -> (B, C * S, ...): caches are reordered along dimension 0."""
        return x.unflatten(1, (-1, self.streams)).transpose(0, 1).flatten(1, 2)

    def _unfolded(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(1, (-1, self.streams)).transpose(0, 1).flatten(1, 2)


__all__ = ["HISTORY", "Columns", "PremiseLayer", "Source", "use_premise_layers"]
