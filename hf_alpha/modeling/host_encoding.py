"""What an encoding does with a model of Transformers: on the way in, and to its logits.

Such a host stays as it is. Its ids are rows of its table (`SymbolEncoding.rows`); its head gives
scores of hidden states against these rows; and `SymbolEncoding.logits` makes logits of ids from
them. Encodings that add vectors, or relations between positions, have a subclass. All of it is here
and not with the encoding, so that models of our own carry none of it.

What `relational` adds to a host is without effect at first: [`HostRelations`], and for decoders
[`DecoderRelations`], which attention is told of as `host_attention` says.

Shapes: B batch, S streams (1 unless the encoding opens streams), L or T length, D width of the
host, R rows of its table, V vocabulary, C classes of symbols, K random dimensions or those of a
head, H heads, N symbols of the vocabulary.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedConfig
from transformers import initialization as init
from transformers.cache_utils import Cache

from .checks import can_look
from .encoding import TextStates, listed_logits
from .encoding_relational import FoundSymbols, TextMemory, in_text, to_source
from .host_attention import LayerRelations, StackRelations
from .new_symbols import UNUSABLE
from .relations import RelationGates, alike, by_source, scaled
from .streams import Streams
from .symbols import mean_streams

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

    def states(self, slot: int) -> TextStates:
        """Returns what a [`TextMemory`] points by, whose cache keeps states of all positions.

        Args:
            slot: the first of the cache that is not the layers'.
        """
        assert self.all_BSTD is not None
        return TextStates(self.all_BSTD[:, 0], self.cache, slot, self.keep)


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
        return alike(self.capped(self.products(logits) + more), logits)

    def products(self, logits: torch.Tensor) -> torch.Tensor:
        """Returns what logits were before they were squashed, if they were."""
        if (cap := self._cap) is None:
            return logits
        limit = 1.0 - 1e-6
        return (logits.float() / cap).clamp(-limit, limit).atanh() * cap

    def capped(self, products: torch.Tensor) -> torch.Tensor:
        """Squashes products as the host does; undoes `products`."""
        return products if (cap := self._cap) is None else cap * (products / cap).tanh()


def silent(layer: nn.Linear) -> nn.Linear:
    """Returns a layer that begins with zeros, so that what it is part of begins with no effect."""
    layer.starts_at_zero = True  # type: ignore[assignment]
    return layer


# -- random parts, and streams ---------------------------------------------------------------------


class HostParts(HostEncoding):
    """A symbol is a row of its class and a random part, scaled by `config.random_scale`."""

    adds_vectors = True
    asks = frozenset()

    def additions(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        return self._widened(self.symbols.parts(self.symbols.renamed(ids_BL, streams)), 0)

    def _widened(self, parts: torch.Tensor, place: int) -> torch.Tensor:
        """Returns random parts as they are added: in the last dimensions of D, scaled.

        Args:
            parts: (..., K).
            place: 0 for the input, 1 for the head.
        """
        missing = self.model.width - parts.shape[-1]
        return F.pad(parts, (missing, 0)) * self.config.random_scale[place]

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits; a symbol's is that of its class and what its random part adds."""
        vocabulary = self.config.vocabulary
        assert output.head.hidden_BSTD is not None and self.symbols.draws is not None
        hidden_BTD = output.head.hidden_BSTD[:, 0]
        parts_ND = self._widened(self.symbols.draws(self.model.training), 1).to(hidden_BTD)
        index_N = torch.arange(parts_ND.shape[0], device=hidden_BTD.device)
        rows_N = vocabulary.rows(vocabulary.symbol_ids(index_N), per_class=1)
        own_BTN = self.shifted(output.logits[..., rows_N], F.linear(hidden_BTD, parts_ND))
        return vocabulary.join(output.logits, own_BTN, dim=-1)


class HostStreams(HostEncoding):
    """Algorithm 5 with a host's head, which sees the mean over streams where it is linear."""

    averages = True
    asks = frozenset()

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        encoding = self.symbols.encoding
        if not output.head.averaged:
            return encoding.logits(self.scores(output, streams), streams, self._mean)
        hidden_BSTD = output.head.hidden_BSTD
        assert hidden_BSTD is not None
        actual_BS = encoding.actual_rows(streams)
        weight: Any = self.model.get_output_embeddings().weight
        row_BSD = F.embedding(actual_BS, weight)
        mean_BTD = mean_streams(hidden_BSTD, streams.weights.to(hidden_BSTD))
        off_BSTD = hidden_BSTD - mean_BTD[:, None]
        off_BTS = torch.einsum("bstd,bsd->bts", off_BSTD, row_BSD)
        index = actual_BS[:, None].expand(-1, output.logits.shape[1], -1)
        own_BTS = self.shifted(output.logits.gather(-1, index), off_BTS)
        return listed_logits(output.logits, own_BTS, streams, self.config.vocabulary)

    def _mean(self, logits_BSTR: torch.Tensor, weights_BS: torch.Tensor) -> torch.Tensor:
        """Returns the logits of the mean of states; logits may be squashed."""
        if logits_BSTR.shape[1] == 1:
            return logits_BSTR[:, 0]
        return self.capped(mean_streams(self.products(logits_BSTR), weights_BS))


# -- relations -------------------------------------------------------------------------------------

AHEAD = 2.0
"""What a name is ahead of the word of the host whose row it has, which may be its equal."""


class HostRelations(FoundSymbols):
    """What is trained for a host with a source.

    Gates decide by a token's vector how much each head adds to its scores where a relation holds,
    the same in all layers.

    Args:
        width: D.
        encoder_heads, decoder_heads: H of both sides.
    """

    def __init__(self, width: int, encoder_heads: int, decoder_heads: int):
        super().__init__()
        self.encoder_gates = RelationGates(width, encoder_heads, 1, start=0.0)
        self.decoder_gates = RelationGates(width, decoder_heads, 1, start=0.0)
        self.cross_gates = RelationGates(width, decoder_heads, 2, start=0.0)
        self.gate_norm = nn.LayerNorm(width, elementwise_affine=False)
        self.input_norm = nn.LayerNorm(width)
        self.input_proj = silent(nn.Linear(width, width, bias=False))
        self.output_norm = nn.LayerNorm(width)
        self.output_proj = silent(nn.Linear(width, width, bias=False))
        # Whether a symbol was written before, and whether it is the last token.
        self.repeat = silent(nn.Linear(2, 1, bias=False))

    def forward(self, mean_BSD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns entries and returns: each (B, S, D)."""
        entry = self.input_proj(self.input_norm(mean_BSD))
        return entry, self.output_proj(self.output_norm(mean_BSD))

    def tell(self, table: nn.Module, rows_BL: torch.Tensor, streams: Streams) -> StackRelations:
        """Returns what attention of a stack is told; gates depend on the vectors of its tokens.

        Args:
            table: of the side of the host that is called.
            rows_BL: the host's ids.
            streams: over them.
        """
        assert streams.within is not None
        vectors_BLD = self.gate_norm(table(rows_BL))
        if streams.across is None:
            return StackRelations((streams.within, self.encoder_gates(vectors_BLD)))
        return StackRelations(
            (streams.within, self.decoder_gates(vectors_BLD)),
            (streams.across, self.cross_gates(vectors_BLD)),
            to_source(streams).positions,
        )

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        """Returns the streams with entries and returns of symbols: (B, S, 2, D)."""
        return streams.but(memory=torch.stack(self.found(hidden_BLD, streams), dim=2))

    def point(self, streams: Streams, head: HeadCall) -> torch.Tensor:
        """Returns what is added to the score of each listed symbol: (B, T, S)."""
        assert streams.memory is not None and head.hidden_BSTD is not None
        hidden_BTD = head.hidden_BSTD[:, 0]
        products_BTS = by_source(hidden_BTD, streams.memory[:, :, 1].transpose(1, 2))
        repeated = torch.stack(self.repeated(streams, hidden_BTD.device), dim=-1)
        return products_BTS + self.repeat(repeated.to(hidden_BTD))[..., 0]


class HostAnswerRelations(HostRelations):
    """What is trained for a host with a source whose answers may have others than its symbols.

    Args:
        config: of the model.
        encoder_heads, decoder_heads: H of both sides.
    """

    def __init__(self, config: PreTrainedConfig, encoder_heads: int, decoder_heads: int):
        super().__init__(config.hidden_size, encoder_heads, decoder_heads)
        self.slot = config.num_slots
        self.text = TextMemory(config, decoder_heads, silent=True, scale=config.relation_scale)

    def enter(self, streams: Streams) -> torch.Tensor | None:
        entered = super().enter(streams)
        return None if entered is None else entered + self.text.enter(streams)

    def point(self, streams: Streams, head: HeadCall) -> torch.Tensor:
        points = super().point(streams, head)
        return points + self.text.point(streams, None, head.states(self.slot))


class DecoderRelations(nn.Module):
    """What is trained for a host that decodes alone.

    Heads are told which positions hold the last symbol up to now, and which come after it, up to
    the next symbol: with the latter, one layer finds what followed a name before. The head of the
    model points at symbols.

    Args:
        config: of the model.
        num_layers: of the decoder.
        num_heads: H.
        head_dim: K.
    """

    of_symbols = True

    def __init__(self, config: PreTrainedConfig, num_layers: int, num_heads: int, head_dim: int):
        super().__init__()
        self.scale = config.relation_scale
        shape = (num_layers, num_heads)
        self.gates = nn.Parameter(torch.zeros(*shape, head_dim, 2))
        self.gate_bias = nn.Parameter(torch.zeros(*shape, 2))
        self.memory = TextMemory(config, num_heads, silent=True, scale=self.scale)

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with no effect."""
        init.zeros_(self.gates)
        init.zeros_(self.gate_bias)

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns weights and biases of the gates; offloaded ones are only there meanwhile."""
        return self.gates, scaled(self.gate_bias, self.scale)

    def tell(self, table: nn.Module, rows_BL: torch.Tensor, streams: Streams) -> LayerRelations:
        """Returns what the decoder's attention is told; gates depend on queries, not on vectors."""
        assert streams.within is not None
        layers = streams.once("gates", self._by_layer)
        return LayerRelations(streams.within, *layers, in_text(streams).positions)

    def _by_layer(self) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        weights, biases = self()
        return weights.unbind(), biases[:, :, None].unbind()

    def enter(self, streams: Streams) -> Any:
        return self.memory.enter(streams)

    def point(self, streams: Streams, head: HeadCall) -> torch.Tensor:
        return self.memory.point(streams, None, head.states(len(self.gates)))


class HostRelational(HostEncoding):
    """A symbol is a row of its class, and where it stands.

    See [`HostRelations`] and, of decoders alone, [`DecoderRelations`].
    """

    adds_vectors = True
    relates = True
    asks = frozenset()

    def make_relations(self) -> HostRelations | DecoderRelations:
        """Returns the trained part that is added to the host."""
        if not self.config.decodes_alone:
            heads = (self._num_heads("encoder"), self._num_heads("decoder"))
            if self.config.new_symbols:
                return HostAnswerRelations(self.config, *heads)
            return HostRelations(self.model.width, *heads)
        config = self.config.decoder_config
        # DeepSeek's values have another width than its queries.
        widths = (getattr(config, name, None) for name in ("qk_head_dim", "head_dim"))
        head_dim = next(filter(None, widths), self.model.width // config.num_attention_heads)
        slots = self.model.num_slots
        return DecoderRelations(self.config, slots, config.num_attention_heads, head_dim)

    def _num_heads(self, side: str) -> int:
        config = self.model.stack(side).config.get_text_config()
        return getattr(config, f"{side}_attention_heads", None) or config.num_attention_heads

    def additions(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor | None:
        entered = self.model.relations.enter(streams)
        return None if entered is None else scaled(entered, self.config.random_scale[0])

    def relations(
        self, table: nn.Module, rows_BL: torch.Tensor, streams: Streams
    ) -> dict[str, Any]:
        """Returns arguments of the host's forward that its attention gets; see `tell`."""
        if _has_no_symbols(streams):
            return {}
        # These models hand on to their decoder what is called so.
        decodes, kind = streams.across is not None, self.model.backbone.config.model_type
        name = (
            "decoder_symbol_relations"
            if decodes and kind == "encoder-decoder"
            else "symbol_relations"
        )
        return {name: self.model.relations.tell(table, rows_BL, streams)}

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits; a symbol's is that of its class and what is known about the symbol."""
        vocabulary = self.config.vocabulary
        index = self.symbols.encoding.rows_of_listed(streams)[:, None]
        if output.logits.shape[1] > 1:
            index = index.expand(-1, output.logits.shape[1], -1)
        added_BTS = self.model.relations.point(streams, output.head)
        added_BTS = scaled(added_BTS, self.config.random_scale[1])
        if vocabulary.in_turn:
            added_BTS = added_BTS + AHEAD
        own_BTS = self.shifted(output.logits.gather(-1, index), added_BTS)
        ids_BS, of_all = streams.ids, output.logits.shape[-1] == vocabulary.size
        if not (streams.by_token and of_all and streams.once("all", lambda: _are_listed(ids_BS))):
            return listed_logits(output.logits, own_BTS, streams, vocabulary)
        # There are columns of all ids, in which those of the listed symbols are written.
        ids_V = partial(torch.arange, vocabulary.size, device=ids_BS.device)
        symbol_V = streams.once("symbols", lambda: vocabulary.is_symbol(ids_V()))
        index = streams.once(own_BTS.shape, lambda: ids_BS[:, None].expand_as(own_BTS))
        return torch.where(symbol_V, UNUSABLE, output.logits).scatter_(-1, index, own_BTS)


def _are_listed(ids_BS: torch.Tensor) -> bool:
    """Returns whether there is seen to be no padding in a list."""
    return can_look(ids_BS) and bool((ids_BS >= 0).all())


def _has_no_symbols(streams: Streams) -> bool:
    """Returns whether there is nothing to relate: then the host gives its own logits, exactly.

    Training goes the same way always, so that each weight has a gradient.
    """
    if torch.is_grad_enabled() or not can_look(streams.ids):
        return False
    return streams.once("no symbols", lambda: bool((streams.ids < 0).all()))


# -- which one -------------------------------------------------------------------------------------

HOSTS: dict[str, type[HostEncoding]] = {
    "SymbolEncoding": HostEncoding,
    "DualPartEncoding": HostParts,
    "StreamsEncoding": HostStreams,
    "RelationalEncoding": HostRelational,
}
"""Class of an encoding -> what it does with a host. By names: folders have classes of their own."""


def host_encoding(model: Any) -> Any:
    """Returns what the model's encoding does with its host, a [`HostEncoding`].

    That is in its own `hosts`, or else those here, or in those of the class that it extends.

    Raises:
        ValueError: the encoding has a part that nothing would ask for, or rows of its own.
    """
    encoding, own_parts = model.config.encoding, set[str]()
    for each in encoding.__mro__:
        if (hosts := vars(each).get("hosts")) is not None:
            host = hosts[model.config.decodes_alone]
            break
        if (host := HOSTS.get(each.__name__)) is not None:
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
