"""What an encoding does with a model of Transformers: on the way in, and to its logits.

Such a host stays as it is. Its ids are rows of its table (`SymbolEncoding.rows`); its head gives
scores of hidden states against these rows; and `SymbolEncoding.logits` makes logits of ids from
them. Encodings that add vectors, or relations between positions, have a subclass.

Shapes: B batch, S streams (1 unless the encoding opens streams), L or T length, D width of the
host, R rows of its table, V vocabulary, C classes of symbols.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from transformers.cache_utils import Cache

from .streams import Streams

OWN_PARTS = frozenset({"logits", "memories", "table"})
"""Of an encoding, what a host does not ask for unless its [`HostEncoding`] says so."""


@dataclass
class HeadCall:
    """What passes the backbone's head in the call that is under way.

    Attributes:
        keep: how many of the last positions get logits; 0 for all.
        hidden_BSTD: what goes in of the positions that get logits, stream by stream; seen when it
            does.
        all_BSTD: the same of all positions.
        averaged: whether the head has seen the mean over streams.
        cache: of the decoder's attention to itself.
    """

    streams: Streams
    keep: int = 0
    hidden_BSTD: torch.Tensor | None = None
    all_BSTD: torch.Tensor | None = None
    averaged: bool = False
    cache: Cache | None = None


@dataclass
class HostOutput:
    """What the host's decoder and head gave: logits (B * S or B, T, R), and what went in."""

    logits: torch.Tensor
    head: HeadCall


class HostEncoding:
    """An encoding by rows and logits alone: the host does all else.

    A subclass that `adds_vectors` has `additions(ids_BL, streams)`, what is added to the vectors of
    tokens, (B, L, D) or None. One that `relates` has `make_relations()`, a trained module, and
    `relations(table, rows_BL, streams)`, what attention gets as arguments of the host's forward.

    Args:
        model: a [`RetrofitModel`], with the host and the symbol layer.

    Attributes:
        adds_vectors: whether something is added to the vectors of tokens.
        relates: whether attention is told of relations between positions.
        averages: whether the head may see the mean over streams, where it is linear.
        asks: parts of the encoding, of `OWN_PARTS`, that it asks for.
    """

    adds_vectors: ClassVar[bool] = False
    relates: ClassVar[bool] = False
    averages: ClassVar[bool] = False
    asks: ClassVar[frozenset[str]] = frozenset({"logits"})

    def __init__(self, model: Any):
        self.model = model
        self.symbols = model.symbols
        self.config = model.config
        # Configurations are slow to ask.
        self._cap = getattr(model.config.decoder_config, "final_logit_softcapping", None)

    def number(self, streams: Streams) -> int:
        """Returns how many rows of the host's batch a sample has."""
        return streams.ids.shape[1] if self.symbols.encoding.opens_streams else 1

    def scores(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns scores against each row of the host, stream by stream: (B, S, T, R)."""
        return output.logits.unflatten(0, (-1, self.number(streams)))

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V), which are still to get the caller's names."""
        return self.symbols.encoding.logits(self.scores(output, streams), streams)

    def scores_of_new(self, output: HostOutput) -> torch.Tensor | None:
        """Returns logits of a symbol that the text lacks, (B, T, C), if there may be such."""
        if (rows := self.model.new_symbols) is None:
            return None
        assert output.head.hidden_BSTD is not None
        new_BTC = rows(output.head.hidden_BSTD[:, 0])
        return self.capped(new_BTC).to(output.logits)

    def check_rows(self) -> None:
        """Raise a ValueError for rows that are not those of the host."""
        ids_BL = torch.arange(self.config.vocab_size, device="cpu")[None]
        none_B1 = ids_BL.new_full((1, 1), -1)
        streams = Streams(none_B1, torch.full_like(ids_BL, -1), torch.ones_like(none_B1))
        rows_BL = self.symbols.encoding.rows(ids_BL, streams)[:, 0]
        if ((rows_BL != ids_BL) & ~self.config.vocabulary.is_symbol(ids_BL)).any():
            raise ValueError(
                f"symbol_encoding {self.config.symbol_encoding!r} gives base tokens other rows "
                "than their ids, which are those of a model of Transformers: set rows_per_class, "
                "and leave base tokens to SymbolEncoding.rows"
            )

    # -- logits that some hosts squash: cap * tanh(products / cap) ---------------------------------

    def shifted(self, logits: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
        """Returns logits with something added to the products that they come from."""
        return self.capped(self.products(logits) + more).to(logits.dtype)

    def products(self, logits: torch.Tensor) -> torch.Tensor:
        """Returns what logits were before they were squashed, if they were."""
        if (cap := self._cap) is None:
            return logits
        limit = 1.0 - 1e-6
        return (logits.float() / cap).clamp(-limit, limit).atanh() * cap

    def capped(self, products: torch.Tensor) -> torch.Tensor:
        """Squashes products as the host does; undoes `products`."""
        return products if (cap := self._cap) is None else cap * (products / cap).tanh()


def host_encoding(model: Any) -> Any:
    """Returns what the model's encoding does with its host, a [`HostEncoding`].

    Raises:
        ValueError: the encoding has a part that nothing would ask for, or rows of its own.
    """
    encoding, own_parts = model.config.encoding, set[str]()
    host = encoding.hosts[model.config.decodes_alone]
    for each in encoding.__mro__:
        if "hosts" in vars(each):
            break
        own_parts |= OWN_PARTS & vars(each).keys()
    if unheard := own_parts - host.asks:
        raise ValueError(
            f"symbol_encoding {encoding.name!r} has {', '.join(sorted(unheard))} of its own, which "
            f"{host.__name__}, made for {each.__name__}, never asks for: take an 'alpha' model, or "
            "give the encoding `hosts` of its own, HostEncodings that do the same with the scores "
            "and states of a model of Transformers"
        )
    made = host(model)
    made.check_rows()
    return made


def silent(layer: nn.Linear) -> nn.Linear:
    """Returns a layer that begins with zeros, so that what it is part of begins with no effect."""
    layer.starts_at_zero = True  # type: ignore[assignment]
    return layer
