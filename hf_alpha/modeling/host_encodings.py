"""What each symbol encoding does with a backbone: on the way in, to its attention, to its logits.

A backbone is a model of Transformers that stays as it is. Its ids are rows of its table; vectors of
tokens may get something added; forward may get relations; and the logits of symbols are found from
those of the rows and what went into the head.

Shapes: B batch, S streams (1 unless the encoding opens streams), L or T length, D width of the
backbone, K random dimensions, R rows of its table, V vocabulary.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as F

from .checks import can_look
from .host_attention import relate_attention
from .host_calls import HeadCall
from .host_relations import DecoderRelations, HostRelations
from .streams import Streams
from .symbols import mean_streams

if TYPE_CHECKING:
    from .modeling_retrofit import RetrofitModel


AHEAD = 2.0
"""What a name is ahead of the word of the backbone whose row it has, which may be its equal."""


@dataclass
class HostOutput:
    """What the backbone's decoder and head gave: logits (B * S or B, T, R), and what went in."""

    logits: torch.Tensor
    head: HeadCall


class HostEncoding:
    """An encoding with a vector for each symbol: the backbone does all of the work.

    Args:
        model: with the backbone and the symbol layer.

    Attributes:
        adds_vectors: whether something is added to the vectors of tokens.
    """

    adds_vectors = False

    def __init__(self, model: "RetrofitModel"):
        self.model = model
        self.symbols = model.symbols
        self.config = model.config
        # Configurations are slow to ask.
        self._cap = getattr(model.config.decoder_config, "final_logit_softcapping", None)

    def make_relations(self) -> nn.Module | None:
        """Returns the trained part that is added to the backbone, if there is such."""
        return None

    def relate_attention(self) -> None:
        """Have the backbone's attention take relations, if there are such."""

    def number(self, streams: Streams) -> int:
        """Returns how many rows of the backbone's batch a sample has."""
        return 1

    def additions(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor | None:
        """Returns what is added to the vectors of tokens, (B, L, D); None for nothing."""
        return None

    def relations(
        self, table: nn.Module, rows_BL: torch.Tensor, streams: Streams
    ) -> dict[str, Any]:
        """Returns arguments of the backbone's forward that its attention gets.

        Args:
            table: of the side of the backbone that is called.
            rows_BL: the backbone's ids.
            streams: over them.
        """
        return {}

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        """Returns the streams with what the encoder found about each symbol, if asked for."""
        return streams

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V), which are still to get the caller's names."""
        return output.logits[..., : self.config.vocab_size]

    def scores_of_new(self, output: HostOutput) -> torch.Tensor | None:
        """Returns logits of a symbol that the text lacks, (B, T, C), if there may be such."""
        if (rows := self.model.new_symbols) is None:
            return None
        assert output.head.hidden_BSTD is not None
        new_BTC = rows(output.head.hidden_BSTD[:, 0])
        return self._capped(new_BTC).to(output.logits)

    # -- logits that some backbones squash: cap * tanh(products / cap) -----------------------------

    def _shifted(self, logits: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
        """Returns logits with something added to the products that they come from."""
        return self._capped(self._products(logits) + more).to(logits.dtype)

    def _products(self, logits: torch.Tensor) -> torch.Tensor:
        """Returns what logits were before they were squashed, if they were."""
        if (cap := self._cap) is None:
            return logits
        limit = 1.0 - 1e-6
        return (logits.float() / cap).clamp(-limit, limit).atanh() * cap

    def _capped(self, products: torch.Tensor) -> torch.Tensor:
        """Squashes products as the backbone does; undoes `_products`."""
        return products if (cap := self._cap) is None else cap * (products / cap).tanh()


class HostStreams(HostEncoding):
    """Streams of a sample are rows of the backbone's batch (2601.23169, Algorithms 1 and 5)."""

    def number(self, streams: Streams) -> int:
        return streams.ids.shape[1]

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits by Algorithm 5: base tokens' by the mean over streams, symbols' own."""
        encoding, vocabulary = self.symbols.encoding, self.config.vocabulary
        actual_BS = vocabulary.rows(streams.ids.clamp(min=0), per_class=2, nth=0)
        if not output.head.averaged:
            logits_BSTR = output.logits.unflatten(0, (-1, streams.ids.shape[1]))
            base_BTR = logits_BSTR[:, 0]
            if logits_BSTR.shape[1] > 1:
                weights = streams.weights.to(logits_BSTR)
                base_BTR = self._capped(mean_streams(self._products(logits_BSTR), weights))
            index = actual_BS[:, :, None, None].expand(-1, -1, logits_BSTR.shape[2], 1)
            own_BTS = logits_BSTR.gather(-1, index)[..., 0].transpose(1, 2)
            return encoding.join(base_BTR, own_BTS, streams)
        hidden_BSTD = output.head.hidden_BSTD
        assert hidden_BSTD is not None
        weight: Any = self.model.get_output_embeddings().weight
        row_BSD = F.embedding(actual_BS, weight)
        mean_BTD = mean_streams(hidden_BSTD, streams.weights.to(hidden_BSTD))
        off_BSTD = hidden_BSTD - mean_BTD[:, None]
        off_BTS = torch.einsum("bstd,bsd->bts", off_BSTD, row_BSD)
        index = actual_BS[:, None].expand(-1, output.logits.shape[1], -1)
        own_BTS = self._shifted(output.logits.gather(-1, index), off_BTS)
        return encoding.join(output.logits, own_BTS, streams)


class HostParts(HostEncoding):
    """A symbol is a row of its class and a random part (2410.17161, Section 4.1)."""

    adds_vectors = True

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
        index_N = torch.arange(len(parts_ND), device=hidden_BTD.device)
        rows_N = vocabulary.rows(vocabulary.symbol_ids(index_N), per_class=1)
        own_BTN = self._shifted(output.logits[..., rows_N], F.linear(hidden_BTD, parts_ND))
        return self.symbols.encoding.join(output.logits, own_BTN, streams)


class HostRelational(HostEncoding):
    """A symbol is a row of its class, and where it stands: see [`HostRelations`]."""

    adds_vectors = True

    def make_relations(self) -> nn.Module:
        heads = (self._num_heads("encoder"), self._num_heads("decoder"))
        return HostRelations(self.model.width, *heads)

    def _num_heads(self, side: str) -> int:
        stack: Any = self.model.stack(side)
        config = stack.config.get_text_config()
        return getattr(config, f"{side}_attention_heads", None) or config.num_attention_heads

    def relate_attention(self) -> None:
        relate_attention(self.model.backbone)

    @property
    def _added(self) -> Any:
        return self.model.relations

    def additions(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor | None:
        if streams.memory is None:  # in the encoder
            return None
        return self._added.enter(streams) * self.config.random_scale[0]

    def relations(
        self, table: nn.Module, rows_BL: torch.Tensor, streams: Streams
    ) -> dict[str, Any]:
        if _has_no_symbols(streams):
            return {}
        vectors_BLD = table(rows_BL)
        decodes = streams.across is not None
        made = self._added.decoder_relations if decodes else self._added.encoder_relations
        # These models hand on to their decoder what is called so.
        pair = decodes and self.model.backbone.config.model_type == "encoder-decoder"
        name = "decoder_symbol_relations" if pair else "symbol_relations"
        return {name: made(vectors_BLD, streams)}

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        return self._added.remember(hidden_BLD, streams)

    def logits(self, output: HostOutput, streams: Streams) -> torch.Tensor:
        """Returns logits; a symbol's is that of its class and what is known about the symbol."""
        vocabulary = self.config.vocabulary
        assert output.head.hidden_BSTD is not None
        nth_S = torch.arange(streams.ids.shape[1], device=streams.ids.device)
        rows_BS = vocabulary.rows(streams.ids.clamp(min=0), per_class=1, nth=nth_S)
        index = rows_BS[:, None].expand(-1, output.logits.shape[1], -1)
        scores_BTS = self._point(output.head, streams)[:, -output.logits.shape[1] :]
        added_BTS = scores_BTS * self.config.random_scale[1]
        if any(len(rows) > 1 for rows in self.config.class_rows.values()):
            added_BTS = added_BTS + AHEAD
        own_BTS = self._shifted(output.logits.gather(-1, index), added_BTS)
        return self.symbols.encoding.join(output.logits, own_BTS, streams)

    def _point(self, head: HeadCall, streams: Streams) -> torch.Tensor:
        """Returns what is known about each symbol at each position: (B, T, S)."""
        assert head.hidden_BSTD is not None
        return self._added.point(head.hidden_BSTD[:, 0], streams)


class DecoderRelational(HostRelational):
    """The same in a decoder alone: see [`DecoderRelations`]."""

    def make_relations(self) -> nn.Module:
        config = self.config.decoder_config
        heads, width = config.num_attention_heads, self.model.width
        # DeepSeek's values have another width than its queries.
        widths = (getattr(config, name, None) for name in ("qk_head_dim", "head_dim"))
        head_dim = next(filter(None, widths), width // heads)
        scale = self.config.relation_scale
        return DecoderRelations(width, self.model.num_slots, heads, head_dim, scale)

    def additions(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        return self._added.memory.enter(streams) * self.config.random_scale[0]

    def relations(
        self, table: nn.Module, rows_BL: torch.Tensor, streams: Streams
    ) -> dict[str, Any]:
        if _has_no_symbols(streams):
            return {}
        if rows_BL.shape[1] == 1:  # whose scores go into masks
            streams = streams.for_layers()
        return {"symbol_relations": self._added.relations(streams)}

    def _point(self, head: HeadCall, streams: Streams) -> torch.Tensor:
        assert head.all_BSTD is not None  # the cache keeps states of all positions
        hidden_BTD, slot = head.all_BSTD[:, 0], self.model.num_slots
        return self._added.memory.point(hidden_BTD, streams, head.cache, slot + 1)


def _has_no_symbols(streams: Streams) -> bool:
    """Returns whether there is nothing to relate: then the backbone gives its own logits, exactly.

    Training goes the same way always, so that each weight has a gradient.
    """
    if torch.is_grad_enabled() or not can_look(streams.ids):
        return False
    return bool((streams.ids < 0).all())


HOST_ENCODINGS: dict[str, type[HostEncoding]] = {
    "SymbolEncoding": HostEncoding,
    "StreamsEncoding": HostStreams,
    "DualPartEncoding": HostParts,
    "RelationalEncoding": HostRelational,
}
DECODERS: dict[str, type[HostEncoding]] = {
    **HOST_ENCODINGS,
    "RelationalEncoding": DecoderRelational,
}


UNASKED = frozenset(
    {
        "binary_atoms", "enter", "gates", "logits", "memory", "num_rows", "point", "recall",
        "remember", "row_dim", "scores", "table",
    }
)  # fmt: skip
"""What a [`SymbolEncoding`] says and no backbone asks for: a [`HostEncoding`] does it instead."""


def host_encoding(model: "RetrofitModel") -> HostEncoding:
    """Returns what the model's encoding, or the nearest class that it is made from, does.

    Raises:
        ValueError: the encoding differs from that class in what nothing would ask for.
    """
    encoding, unheard = model.config.encoding, set[str]()
    kinds = HOST_ENCODINGS if model.config.is_encoder_decoder else DECODERS
    for each in encoding.__mro__:
        # By name: a folder's code may be loaded twice, and a class be there as often.
        if each.__name__ in kinds:
            break
        unheard |= UNASKED & vars(each).keys()
    if unheard:
        raise ValueError(
            f"symbol_encoding {encoding.name!r} overrides {', '.join(sorted(unheard))} of "
            f"{each.__name__}, which a backbone of Transformers never asks for: take an 'alpha' "
            f"model, or write a HostEncoding that does the same and put it into HOST_ENCODINGS as "
            f"{encoding.__name__!r}"
        )
    return kinds[each.__name__](model)


__all__ = ["HostEncoding", "HostOutput", "host_encoding"]
