"""The streams of a batch: one object that a backbone passes on, from encoder to decoder and head.

Shapes: B batch, N sources (B, or one for all beams of a sample), S streams, L length, D model
width; `...` is whatever follows the stream axis of a hidden state.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch.nn import functional as F
from transformers.modeling_outputs import BaseModelOutput

from .new_symbols import WrittenSymbols
from .relations import MadeOnce, Movable, Relations, SymbolRelations, by_source, match_rows
from .symbols import aggregate, stream_weights

Made = TypeVar("Made")


@dataclass(frozen=True)
class Streams(Movable):
    """Which symbol each stream is centred on, and where they stand in one sequence.

    A backbone sees hidden states (B, S, ...) and this; S is 1 unless the encoding opens streams.

    Attributes:
        ids: each stream's symbol, by first occurrence in the input, -1 padded: (B, S). Without
            streams, the input's symbols where the model works with their list, else -1.
        own: index of the stream of the symbol at each position, -1 for none: (B, L).
        weights: of the mean over a sample's streams: (B, S).
        renaming: what each symbol is called inside the model, where symbols are renamed: of each
            symbol of the vocabulary, in the order of their ids, the index of another one among
            them: (B, symbols).
        related: relations between positions, where the encoding has such.
        memory: what was found about each symbol of a source, likewise: (N, S, 2, D).
        pointer: what the head adds to the score of each symbol, likewise: (B, T, S).
        written: of a decoder, where the text may go on with symbols that it lacks: those that it
            has, position by position.
        kept: where what is made once is kept; None where parts of a model are called by themselves.

    Examples:
        >>> batch = tokenizer(["a & !b"], return_tensors="pt")
        >>> streams = model.base_model.symbols.open(
        ...     batch["input_ids"], batch["attention_mask"], batch["stream_ids"], training=False
        ... )
        >>> streams.ids.shape
        torch.Size([1, 2])
    """

    ids: torch.Tensor
    own: torch.Tensor
    weights: torch.Tensor
    renaming: torch.Tensor | None = None
    related: SymbolRelations | None = None
    memory: torch.Tensor | None = None
    pointer: torch.Tensor | None = None
    written: WrittenSymbols | None = None
    kept: MadeOnce | None = None

    @classmethod
    def of(cls, outputs: Any, dtype: torch.dtype) -> "Streams":
        """Returns the streams of a model's output, as many as it has rows.

        Args:
            outputs: has `streams` and `last_hidden_state`, whose rows a search may have repeated.
            dtype: of the weights.
        """
        streams, rows = outputs.streams, outputs.last_hidden_state.shape[0]
        if streams.written is not None:  # those of the head change from token to token
            streams = streams.but(kept=None)
        if streams.ids.shape[0] != rows:
            of_rows = ("ids", "own", "weights", "renaming", "memory")
            streams = streams.but(**{n: match_rows(getattr(streams, n), rows) for n in of_rows})
        if streams.weights.dtype == dtype:
            return streams
        key = "weights", rows, dtype
        weights = streams.once(key, lambda: stream_weights(streams.ids, dtype))
        return streams.but(weights=weights)

    def but(self, **changes: Any) -> "Streams":
        """Returns the same with changes, in a fifth of the time of `dataclasses.replace`."""
        return Streams(**{**vars(self), **changes})

    def fields(self) -> dict[str, "Streams"]:
        """Returns the field that carries these in a model's output, where `of` reads them.

        Relations are for layers alone.
        """
        return {"streams": self.but(related=None)}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Returns what is made once, see [`MadeOnce`]; where nothing is kept, made anew."""
        return make() if self.kept is None else self.kept.once(key, make)

    @property
    def by_token(self) -> bool:
        """Whether these are of a generation, where tokens come one by one."""
        return self.kept is not None and self.kept.by_token

    @property
    def within(self) -> Relations | None:
        """Relations between positions of this sequence, where the encoding has such."""
        return None if self.related is None else self.related.within

    @property
    def across(self) -> Relations | None:
        """Relations between positions of this sequence and the source's, likewise."""
        source = None if self.related is None else self.related.source
        return None if source is None else source.across

    def to(self, device: torch.device) -> "Streams":
        """Returns the same streams on another device."""
        return self if self.ids.device == device else super().to(device)

    def with_room(self, source_ids_NS: torch.Tensor) -> "Streams":
        """Returns the same with zeros in the memory for symbols that the source has not got.

        Args:
            source_ids_NS: the source's symbols, which are listed before others, -1 padded.
        """
        if self.memory is None:
            return self
        known_NS = (source_ids_NS >= 0)[..., None, None].to(self.memory)
        more = self.ids.shape[1] - source_ids_NS.shape[1]
        return self.but(memory=F.pad(self.memory * known_NS, (0, 0, 0, 0, 0, more)))

    def of_last(self, number: int) -> "Streams":
        """Returns the same streams for the last positions, which are those that get logits."""
        if self.written is None:
            return self
        positions = self.written.positions[-number:]
        return self.but(written=replace(self.written, positions=positions))

    def masses(self, weights_BHTL: torch.Tensor) -> torch.Tensor | None:
        """Returns the sums of weights of attention to the source over each symbol: (B, T, H, S)."""
        if self.across is None:
            return None
        there_NLS = self.across.keys[..., : self.ids.shape[1]].to(weights_BHTL)
        heads = (by_source(weights_BTL, there_NLS) for weights_BTL in weights_BHTL.unbind(1))
        return torch.stack(tuple(heads), 2)

    def aggregate(self, hidden: torch.Tensor) -> torch.Tensor:
        """Returns one view of all streams of a state (B, S, L, ...) by Algorithm 2: (B, 1, L, ...).

        L is the axis of positions: at a symbol's position the view is its own stream's.
        """
        return aggregate(hidden, self.own.to(hidden.device), self.weights.to(hidden))[:, None]


@dataclass
class SymbolEncoderOutput(BaseModelOutput):
    """Output of an encoder with what the decoder has to know about the streams and names.

    Attributes:
        last_hidden_state: (B, L, S * D).
        streams: of the input, with what was found about each symbol.
    """

    # Optional only because every field of a ModelOutput is.
    streams: Streams = None  # type: ignore[assignment]
