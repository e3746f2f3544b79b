"""How symbols become vectors and come back: one class for each encoding.

An encoding turns ids into rows of a table of vectors, and scores against that table into logits.
It knows no backbone, and no backbone knows it.

Shapes: B batch, S streams (1 unless the encoding opens streams), L or T length, D model width,
R rows of the table, V vocabulary, K random dimensions.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache

from .masks import shown_tokens
from .new_symbols import UNUSABLE, TextSoFar, remembered
from .random_numbers import capacity
from .relations import (
    RelationGates,
    Relations,
    SymbolMemory,
    SymbolRelations,
    TextMemory,
    by_source,
    last_symbols,
    match_rows,
    num_slots,
    one_hot,
    written_symbols,
)
from .streams import Streams
from .symbol_vocabulary import SymbolVocabulary
from .symbols import mean_streams, own_streams

if TYPE_CHECKING:
    from .configuration_symbols import SymbolModelConfig
    from .symbol_layer import SymbolLayer


class SymbolEncoding:
    """One way to see symbols; [`register_encoding`] makes a subclass known by its name.

    Args:
        config: of the model. Read settings from it at each use: symbols may be added later.

    Attributes:
        name: what `config.symbol_encoding` calls it.
        description: what a model card says.
        promises: what holds exactly, beside what holds for all models: `"renaming"` (a renamed
            input gives the same logits, columns moved, bit for bit) and `"extension"` (a larger
            vocabulary changes no logit of the old columns), or `"close extension"` (it does so up
            to rounding). docs/promises.md states them.
        lists_symbols: whether `stream_ids`, the list of the input's symbols, is needed; answers
            then hold no others.
        opens_streams: whether a hidden state has a stream for each symbol of the input.
        num_histories: slots of a decoder's cache that the encoding needs for itself: with a source,
            and alone.
        output_fields: of an encoder's output that only this encoding has.
        sees_names: whether results depend on what symbols are called, so that a renaming matters.
        random_parts: whether symbols have random vectors, drawn anew in each step of training.
        rows_per_class: trained rows that the symbols of a class share; None where each has its own.
        no_extension: why symbols cannot be added without training; empty where they can.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    promises: ClassVar[frozenset[str]] = frozenset()
    lists_symbols: ClassVar[bool] = False
    opens_streams: ClassVar[bool] = False
    num_histories: ClassVar[tuple[int, int]] = (0, 0)
    output_fields: ClassVar[tuple[str, ...]] = ()
    sees_names: ClassVar[bool] = True
    random_parts: ClassVar[bool] = False
    rows_per_class: ClassVar[int | None] = None
    no_extension: ClassVar[str] = ""

    def __init__(self, config: "SymbolModelConfig"):
        self.config = config

    @classmethod
    def complete(cls, config: "SymbolModelConfig") -> None:
        """Set the defaults of settings that depend on others."""

    @classmethod
    def validate(cls, config: "SymbolModelConfig", num_symbols: int) -> None:
        """Raise a ValueError for settings that do not fit each other.

        Args:
            num_symbols: how many symbols there are, or are to be after an extension.
        """

    @property
    def vocabulary(self) -> SymbolVocabulary:
        """The model's vocabulary."""
        return self.config.vocabulary

    @property
    def num_rows(self) -> int:
        """Trained rows of the embedding."""
        if self.rows_per_class is None:
            return self.config.vocab_size
        return self.vocabulary.num_base_tokens + self.rows_per_class * len(self.vocabulary.ranges)

    @property
    def row_dim(self) -> int:
        """Trained width of a row."""
        return self.config.hidden_size

    @classmethod
    def memory(
        cls, config: "SymbolModelConfig", num_heads: int
    ) -> SymbolMemory | TextMemory | None:
        """Returns the module for what was found about symbols, in an encoder or in a text so far.

        Args:
            num_heads: of the decoder's attention to the source; in a decoder alone, to itself.
        """
        return None

    @classmethod
    def gates(
        cls, width: int, num_heads: int, num_relations: int = 1, halves: tuple[int, ...] = (0,)
    ) -> RelationGates | None:
        """Returns the gates of an attention block for relations, if the encoding has such.

        Args:
            width: D.
            num_heads: of the block.
            num_relations: of the block: that of the same symbol and, in cross-attention, that of a
                symbol already written; in a decoder alone, that of standing behind the symbol, the
                next one after it.
            halves: of the heads, which the first relations begin in.
        """
        return None

    @classmethod
    def binary_atoms(cls, num_relations: int, width: int) -> nn.Linear | None:
        """Returns what makes binary base atoms of a FOLNet from relations, if there are such."""
        return None

    def table(self, trained_RD: torch.Tensor, parts: torch.Tensor | None) -> torch.Tensor:
        """Returns the table that `rows` points into, from the trained rows: (R, D).

        Args:
            trained_RD: (`num_rows`, `row_dim`).
            parts: random parts of the symbols, in the order of their ids, where there are
                `random_parts`: (symbols, K).
        """
        return trained_RD

    # -- what a backbone passes on: nothing is added here, for encodings by relations to override --

    def own(self, ids_BL: torch.Tensor, listed_NS: torch.Tensor) -> torch.Tensor:
        """Returns the index of the symbol at each position among those listed, -1 for none: (B, L).

        Args:
            ids_BL: token ids.
            listed_NS: symbols by first occurrence, -1 padded; those of a source for all its beams.
        """
        if not self.config.needs_stream_ids:
            return torch.full_like(ids_BL, -1)
        return own_streams(ids_BL, match_rows(listed_NS, ids_BL.shape[0]))

    def relate(self, streams: Streams, mask_BL: torch.Tensor | None) -> Streams:
        """Returns the streams of an input with the relations between its positions.

        Args:
            mask_BL: 1 for tokens, 0 for padding, which may hold any id.
        """
        return streams

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams, layer: "SymbolLayer") -> Streams:
        """Returns the streams with what the encoder found about each symbol.

        Args:
            hidden_BLD: the encoder's last states.
            streams: of the input.
            layer: has the table and the memory's weights.
        """
        return streams

    def follow(
        self,
        source: Streams,
        ids_BT: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Cache | None,
        slot: int,
    ) -> Streams:
        """Returns the streams over a decoder's tokens; arguments as of `SymbolLayer.follow`."""
        return replace(source.expand(ids_BT.shape[0]), own=self.own(ids_BT, source.ids))

    def go_on(self, streams: Streams, text: TextSoFar) -> Streams:
        """Returns the streams over the tokens at hand of a decoder alone, with relations if any.

        Args:
            streams: over those tokens.
            text: with what the cache holds.
        """
        return streams

    def enter(
        self, vectors_BSLD: torch.Tensor, streams: Streams, layer: "SymbolLayer"
    ) -> torch.Tensor:
        """Returns the vectors of tokens with what is known about symbols added."""
        return vectors_BSLD

    def recall(
        self,
        streams: Streams,
        hidden_BTD: torch.Tensor,
        cache: Cache | None,
        slot: int,
        layer: "SymbolLayer",
    ) -> Streams:
        """Returns the streams of a decoder alone with what the head adds to scores of symbols.

        Args:
            streams: that `go_on` returned.
            hidden_BTD: the decoder's last states.
            cache: of the decoder.
            slot: the first that is not the layers'.
            layer: has the pointer's weights.
        """
        return streams

    def point(
        self, streams: Streams, masses_BTHS: torch.Tensor | None, layer: "SymbolLayer"
    ) -> Streams:
        """Returns the streams with what the head adds to the scores of symbols.

        Args:
            streams: that `follow` returned.
            masses_BTHS: sums of the weights of the decoder's last attention to the source over each
                symbol; None without layers.
            layer: has the pointer's weights.
        """
        return streams

    # -- rows and scores ---------------------------------------------------------------------------

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns the row of each token in each stream: (B, S, L).

        Args:
            ids_BL: token ids of the sequence that `streams` is over.
            streams: of the batch.
        """
        return ids_BL[:, None]

    def scores(
        self, hidden_BSTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns scores of hidden states against each row of the table: (B, S, T, R)."""
        # All rows at once: one matrix shape and one order of summation, whatever the encoding is.
        return F.linear(hidden_BSTD, table_RD)

    def logits(self, scores_BSTR: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V) from `scores`."""
        return scores_BSTR[:, 0]

    def join(self, base_BTV: torch.Tensor, own: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V) from those of base tokens and those of symbols.

        Args:
            base_BTV: as `SymbolVocabulary.join` takes them.
            own: of all symbols, in the order of their ids; of those that `streams` list where the
                encoding `lists_symbols`: (B, T, symbols).
        """
        if self.lists_symbols:
            return listed_logits(base_BTV, own, streams.ids, self.vocabulary)
        return self.vocabulary.join(base_BTV, own, dim=-1)


_ENCODINGS: dict[str, type[SymbolEncoding]] = {}


def register_encoding(encoding: type[SymbolEncoding]) -> type[SymbolEncoding]:
    """Make an encoding known by its name, as a decorator of its class.

    Raises:
        ValueError: the name is taken by another class.
    """
    registered = _ENCODINGS.get(encoding.name, encoding)
    # The same one again is a module, or a cell of a notebook, that ran anew.
    if (registered.__module__, registered.__qualname__) != (
        encoding.__module__,
        encoding.__qualname__,
    ):
        raise ValueError(f"there is a symbol encoding {encoding.name!r} already: {registered}")
    _ENCODINGS[encoding.name] = encoding
    return encoding


def encoding_names() -> tuple[str, ...]:
    """Returns the names of all encodings, in the order in which they were registered."""
    return tuple(_ENCODINGS)


def encoding_class(name: str) -> type[SymbolEncoding]:
    """Returns the encoding of a name.

    Raises:
        ValueError: there is none; the message lists the names.
    """
    if name not in _ENCODINGS:
        raise ValueError(f"symbol_encoding must be one of {', '.join(_ENCODINGS)}; not {name!r}")
    return _ENCODINGS[name]


@register_encoding
class LearnedEncoding(SymbolEncoding):
    """One trained vector per symbol: the vanilla model."""

    name = "learned"
    description = (
        "A vanilla Transformer with one trained vector per symbol: the baseline that "
        "`hf-alpha convert` starts from. It knows the symbols of its training only."
    )
    no_extension = (
        "symbol_encoding 'learned' has one trained vector per symbol, and none for new ones; "
        "convert the model to 'streams' or 'relational' first (hf-alpha convert), or, if it is a "
        "decoder, train one with more symbols"
    )


@register_encoding
class DualPartEncoding(SymbolEncoding):
    """A learned part that a class shares, and a random part of each symbol (2410.17161).

    One row per class is trained, of D - K dimensions. A symbol's row in the table is that and K
    random numbers of its own; base tokens have 0 there (Section 4.1).
    """

    name = "dual_part"
    description = (
        "A model with dual-part embeddings (arXiv 2410.17161): symbols share a learned "
        "part and each has a random part of its own, so symbols can be added after training with "
        "`extend_symbols`. The draw of random parts lies in the checkpoint; "
        "`model.redraw_symbols(seed)` makes another one."
    )
    promises = frozenset({"close extension"})
    random_parts = True
    rows_per_class = 1

    @classmethod
    def complete(cls, config: "SymbolModelConfig") -> None:
        if not config.random_dim:
            config.random_dim = max(1, min(32, config.hidden_size // 2))

    @classmethod
    def validate(cls, config: "SymbolModelConfig", num_symbols: int) -> None:
        widest = config.max_random_dim
        if not 0 < config.random_dim <= widest:
            raise ValueError(
                f"random_dim must lie between 1 and {widest}, not {config.random_dim}: the model "
                f"is {config.hidden_size} wide"
            )
        vectors = capacity(config.random_method, config.random_dim)
        if vectors is not None and num_symbols > vectors:
            raise ValueError(
                f"{num_symbols} symbols need as many random parts, but there are only {vectors} "
                f"{config.random_method} with random_dim {config.random_dim}: choose a larger "
                'random_dim, or random_method "normal"'
            )

    @property
    def row_dim(self) -> int:
        return self.config.hidden_size - self.config.random_dim

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns rows as the base class does; over another model's table, those of classes."""
        if self.vocabulary.class_rows is None:
            return super().rows(ids_BL, streams)
        return self.vocabulary.rows(ids_BL, per_class=1)[:, None]

    def table(self, trained_RD: torch.Tensor, parts: torch.Tensor | None) -> torch.Tensor:
        assert parts is not None
        learned = F.normalize(trained_RD, dim=-1) if self.config.normalize_parts else trained_RD
        vocabulary = self.vocabulary
        base, classes = learned.split([vocabulary.num_base_tokens, len(vocabulary.ranges)])
        shared = [classes[number - 1].expand(stop - start, -1)
                  for start, stop, number in vocabulary.spans]  # fmt: skip
        symbols = torch.cat((torch.cat((classes[:0], *shared)), parts), dim=-1)
        return vocabulary.join(F.pad(base, (0, parts.shape[-1])), symbols, dim=0)


@register_encoding
class StreamsEncoding(SymbolEncoding):
    """One stream per symbol of the input: the symbol-invariant Transformer (2601.23169).

    A class has two rows, whatever the vocabulary: the actual row, which a stream gives to its own
    symbol, and the placeholder row, which it gives to all others of the class (Algorithm 1). Rows
    of base tokens come first, then both rows of each class.
    """

    name = "streams"
    description = (
        "A symbol-invariant model (arXiv 2601.23169): one stream per symbol, so renaming "
        "a problem renames its answer and changes nothing else, and symbols can be added after "
        "training with `extend_symbols`."
    )
    promises = frozenset({"renaming", "extension"})
    lists_symbols = True
    opens_streams = True
    sees_names = False
    rows_per_class = 2

    def actual_rows(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the row of each token in its own stream; base tokens have but one."""
        return self.vocabulary.rows(ids, per_class=2, nth=0)

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        actual, placeholder = (
            self.vocabulary.rows(ids_BL, per_class=2, nth=nth)[:, None] for nth in (0, 1)
        )
        stream = torch.arange(streams.ids.shape[1], device=ids_BL.device)[None, :, None]
        return torch.where(streams.own[:, None] == stream, actual, placeholder)

    def logits(self, scores_BSTR: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns logits by Algorithm 5: a base token's is a mean over streams, a symbol's its own.

        Symbols that a sample has no stream for hold `UNUSABLE`.
        """
        length = scores_BSTR.shape[2]
        base = scores_BSTR[..., : self.vocabulary.num_base_rows]
        base_BTV = mean_streams(base, streams.weights.to(base.dtype))
        # Any row will do for a padded stream, whose column is cut off.
        actual_BS = self.actual_rows(streams.ids.clamp(min=0))
        index = actual_BS[:, :, None, None].expand(-1, -1, length, 1)
        own_BTS = scores_BSTR.gather(-1, index)[..., 0].transpose(1, 2)
        return self.join(base_BTV, own_BTS, streams)


@register_encoding
class RelationalEncoding(SymbolEncoding):
    """One stream, in which "the same symbol as" is a relation between positions.

    A class has one row, which all its symbols share; rows of base tokens come first. Over another
    model's table it may have several, words of that model, which a sample's symbols have in order
    of first occurrence. See `relations` for the parts that tell symbols apart, and
    [`SymbolRelations`] for what a backbone passes on of them. The head compares with the row of the
    class and what the encoder found about a symbol, and adds the pointer.
    """

    name = "relational"
    description = (
        "A model in which a name is only where it stands: attention is told which "
        "positions hold the same name, so renaming a problem renames its answer and changes "
        "nothing else, and symbols can be added after training with `extend_symbols`."
    )
    promises = frozenset({"renaming", "extension"})
    lists_symbols = True
    num_histories = (1, 2)  # which symbols were written; states that the head points at
    output_fields = ("symbol_memory",)
    sees_names = False
    rows_per_class = 1

    @classmethod
    def validate(cls, config: "SymbolModelConfig", num_symbols: int) -> None:
        if not config.takes_relations:
            raise ValueError(
                f"symbol_encoding 'relational' needs attention that takes relations between "
                f"positions, and that of {config.model_type!r} models does not: choose another "
                "encoding, or an 'alpha' model"
            )

    @classmethod
    def memory(cls, config: "SymbolModelConfig", num_heads: int) -> SymbolMemory | TextMemory:
        if config.decodes_alone:
            return TextMemory(config.hidden_size, num_heads)
        return SymbolMemory(config.hidden_size, num_heads)

    @classmethod
    def gates(
        cls, width: int, num_heads: int, num_relations: int = 1, halves: tuple[int, ...] = (0,)
    ) -> RelationGates:
        return RelationGates(width, num_heads, num_relations, halves=halves)

    @classmethod
    def binary_atoms(cls, num_relations: int, width: int) -> nn.Linear:
        return nn.Linear(num_relations, width, bias=False)

    def relate(self, streams: Streams, mask_BL: torch.Tensor | None) -> Streams:
        own_BL = streams.own if mask_BL is None else torch.where(mask_BL > 0, streams.own, -1)
        same_BLS = one_hot(own_BL, num_slots(streams.ids.shape[1]), streams.weights.dtype)
        within = Relations((same_BLS,), same_BLS)
        return replace(streams, own=own_BL, related=SymbolRelations(within))

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams, layer: "SymbolLayer") -> Streams:
        """Returns the streams with rows of symbols: that of the class, and what was found."""
        device = hidden_BLD.device
        entered, returned = layer.memory(streams.means(hidden_BLD))
        # Any row will do where a sample has fewer symbols than others.
        rows_BS = self.rows(streams.ids.clamp(min=0), streams)[:, 0]
        rows_BSD = F.embedding(rows_BS.to(device), layer.table(device)) + returned
        if self.config.normalize_embeddings:
            rows_BSD = F.normalize(rows_BSD, dim=-1)
        return streams.relating(memory=torch.stack((entered, rows_BSD), dim=2))

    def follow(
        self,
        source: Streams,
        ids_BT: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Cache | None,
        slot: int,
    ) -> Streams:
        streams = super().follow(source, ids_BT, mask, cache, slot)
        own_BT, own_BM, position_T = symbols_so_far(streams.own, mask, cache, slot)
        dtype, number = streams.weights.dtype, num_slots(streams.ids.shape[1])
        same_BTS = one_hot(own_BT, number, dtype)
        so_far_BMS = same_BTS if own_BM is own_BT else one_hot(own_BM, number, dtype)
        written_BTS = written_symbols(so_far_BMS, position_T)
        related = SymbolRelations(
            within=Relations((same_BTS,), so_far_BMS),
            across=Relations.of((same_BTS, written_BTS), source.own),
            memory=streams.memory,
            source=source.own,
            written=written_BTS[..., : streams.ids.shape[1]],
        )
        return replace(streams, own=own_BT, related=related)

    def go_on(self, streams: Streams, text: TextSoFar) -> Streams:
        own_BM, position_T = own_of(text, streams.ids, self.vocabulary), text.positions
        own_BT, last_BM = own_BM[:, position_T], last_symbols(own_BM)
        number, dtype = num_slots(streams.ids.shape[1]), streams.weights.dtype
        last_BTS = one_hot(last_BM[:, position_T], number, dtype)
        same = Relations.of((last_BTS,), own_BM)
        behind = Relations.of((last_BTS,), F.pad(last_BM[:, :-1], (1, 0), value=-1))
        related = SymbolRelations(same.beside(behind), source=own_BM, positions=position_T)
        return replace(streams, own=own_BT, related=related)

    def enter(
        self, vectors_BSLD: torch.Tensor, streams: Streams, layer: "SymbolLayer"
    ) -> torch.Tensor:
        if streams.related is not None and streams.related.positions is not None:
            return vectors_BSLD + layer.memory.enter(streams)[:, None]  # in a decoder alone
        memory = streams.memory
        if memory is None:  # in an encoder
            return vectors_BSLD
        entries_NSD = memory[:, :, 0].to(vectors_BSLD.device)
        return vectors_BSLD + by_source(streams.here, entries_NSD)[:, None]

    def recall(
        self,
        streams: Streams,
        hidden_BTD: torch.Tensor,
        cache: Cache | None,
        slot: int,
        layer: "SymbolLayer",
    ) -> Streams:
        return streams.relating(pointer=layer.memory.point(hidden_BTD, streams, cache, slot + 1))

    def point(
        self, streams: Streams, masses_BTHS: torch.Tensor | None, layer: "SymbolLayer"
    ) -> Streams:
        if masses_BTHS is None or streams.related is None:
            return streams
        written_BTS = streams.related.written
        assert written_BTS is not None  # as `follow` found it
        number, device = streams.ids.shape[1], masses_BTHS.device
        known = (written_BTS.to(device), streams.here.to(device), masses_BTHS[..., :number])
        return streams.relating(pointer=layer.memory.pointer(*known))

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        nth = 0 if self.vocabulary.class_rows is None else streams.own
        return self.vocabulary.rows(ids_BL, per_class=1, nth=nth)[:, None]

    def scores(
        self, hidden_BSTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns scores against rows of base tokens, then against each symbol of the sample."""
        if self.config.decodes_alone:
            return self._scores_in_text(hidden_BSTD, table_RD, streams)
        if streams.memory is None:
            raise ValueError(
                "symbol_encoding 'relational' compares with what the encoder found about symbols, "
                "and the streams have no memory: call SymbolLayer.remember after the encoder"
            )
        base = F.linear(hidden_BSTD, table_RD[: self.vocabulary.num_base_tokens])
        # Layers may lie on several devices.
        rows_NSD = streams.memory[:, :, 1].to(hidden_BSTD.device)
        own = by_source(hidden_BSTD[:, 0], rows_NSD.transpose(1, 2))
        if streams.pointer is not None:
            own = own + streams.pointer.to(own)
        return torch.cat((base, own[:, None]), dim=-1)

    def _scores_in_text(
        self, hidden_BSTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns the same of a decoder alone, where a symbol is the row of its class."""
        scores_BSTR = F.linear(hidden_BSTD, table_RD)
        rows_BS = self.rows(streams.ids.clamp(min=0), streams)[:, 0]
        index = rows_BS[:, None, None].expand(*scores_BSTR.shape[:3], -1)
        own = scores_BSTR.gather(-1, index)
        if streams.pointer is not None:
            own = own + streams.pointer[:, None].to(own)
        return torch.cat((scores_BSTR[..., : self.vocabulary.num_base_tokens], own), dim=-1)

    def logits(self, scores_BSTR: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V); symbols that a sample has not got hold `UNUSABLE`."""
        count = self.vocabulary.num_base_tokens
        base, own = scores_BSTR[:, 0, :, :count], scores_BSTR[:, 0, :, count:]
        return self.join(base, own, streams)


def own_of(text: TextSoFar, ids_BS: torch.Tensor, vocabulary: SymbolVocabulary) -> torch.Tensor:
    """Returns which of the listed symbols stands at each position of a text: (B, M).

    Args:
        ids_BS: of the symbols, -1 padded.
    """
    own_BM = own_streams(vocabulary.symbol_ids(text.symbols.clamp(min=0)), ids_BS)
    return torch.where(text.symbols >= 0, own_BM, -1)


def symbols_so_far(
    own_BT: torch.Tensor, mask: torch.Tensor | None, cache: Cache | None, slot: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns which symbols stand at a decoder's tokens, -1 for none: (B, T), and all: (B, M).

    Also returns the places of the tokens among all of them: (T,).

    Args:
        own_BT: of the tokens, padding among them.
        mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention.
        cache: of the decoder's attention to itself, which keeps those of earlier tokens.
        slot: where it keeps them.

    Raises:
        ValueError: the cache has no such slot, and gets none.
    """
    past = 0 if cache is None else cache.get_seq_length()
    position_T = torch.arange(own_BT.shape[1], device=own_BT.device) + past
    if mask is not None:
        own_BT = torch.where(shown_tokens(mask, position_T), own_BT, -1)
    return own_BT, remembered(own_BT, cache, slot), position_T


def listed_logits(
    base_BTV: torch.Tensor,
    own_BTS: torch.Tensor,
    ids_BS: torch.Tensor,
    vocabulary: SymbolVocabulary,
) -> torch.Tensor:
    """Returns logits (B, T, V) of base tokens and each sample's symbols; others hold `UNUSABLE`.

    Args:
        base_BTV: as `SymbolVocabulary.join` takes them.
        own_BTS: of the symbols of the sample.
        ids_BS: which those are, -1 padded.
    """
    b, t, s = own_BTS.shape
    count = vocabulary.num_symbols
    column_BS = torch.where(ids_BS >= 0, vocabulary.symbols_before(ids_BS), count)
    symbols = own_BTS.new_full((b, t, count + 1), UNUSABLE)
    symbols = symbols.scatter(-1, column_BS[:, None].expand(b, t, s), own_BTS)
    return vocabulary.join(base_BTV, symbols[..., :-1], dim=-1)


__all__ = [
    "UNUSABLE",
    "DualPartEncoding",
    "RelationalEncoding",
    "StreamsEncoding",
    "SymbolEncoding",
    "encoding_class",
    "encoding_names",
    "register_encoding",
    "symbols_so_far",
]
