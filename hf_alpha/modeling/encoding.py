"""How symbols become vectors and come back: what an encoding is, in our models and around others.

An encoding is one file, `encoding_<name>.py`: rows that are trained, the row of each token, and how
scores against rows become logits. It knows no backbone, and no backbone knows it. In our models
scores are products of hidden states and rows; around a model of Transformers they are what its head
gives for its own rows ([`HostEncoding`]).

Shapes: B batch, S streams (1 unless the encoding opens streams), L or T length, D model width,
R rows of the table, V vocabulary, K random dimensions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache

from .new_symbols import UNUSABLE
from .relations import TextSymbols
from .streams import Streams
from .symbol_vocabulary import SymbolVocabulary


@dataclass(frozen=True)
class TextStates:
    """The last states of a decoder, by which a [`RelationalMemory`] points at symbols of the text.

    Attributes:
        hidden: that go into the head of the model, of all positions at hand: (B, T, D).
        cache: of the decoder; it keeps what is projected of them.
        slot: the first of the cache that is not the layers'.
        keep: how many of the last positions get logits: T; 0 for all.
    """

    hidden: torch.Tensor
    cache: Cache | None
    slot: int
    keep: int = 0


class RelationalMemory(nn.Module):
    """What a model knows of symbols, where the encoding works by relations between positions.

    That of a model with a source has `read`, `follow` and `remember`, that of a text alone `go_on`.

    Attributes:
        num_histories: slots of a decoder's cache that it takes.
        takes_numbers: whether the next token of a generation may come with [`TokenRelations`].
        read: returns the streams of an input with relations; also given its mask (B, L).
        follow: returns those over a decoder's tokens; also given those over what they follow, and
            which symbols the decoder has written.
        go_on: returns those over a text; also given which symbols it has.
        remember: given an encoder's last states (B, L, D), its streams, and the table of the model,
            returns the streams with what was found about each symbol.
        enter: returns what is added to the vectors of tokens, (B, T, D); None in an encoder.
        point: returns what the head adds to the scores of symbols, (B, T, S); also given sums of
            the weights of a decoder's last attention to the source over each symbol, (B, T, H, S),
            and the decoder's states.
        scores: given hidden states (B, S, T, D), the table and the streams, returns scores against
            rows of base tokens, then against each symbol of the sample.
    """

    num_histories: ClassVar[int]
    takes_numbers: ClassVar[bool] = False
    of_symbols = True
    read: Callable[[Streams, torch.Tensor | None], Streams]
    follow: Callable[[Streams, Streams, TextSymbols], Streams]
    go_on: Callable[[Streams, TextSymbols], Streams]
    remember: Callable[[torch.Tensor, Streams, torch.Tensor], Streams]
    enter: Callable[[Streams], torch.Tensor | None]
    point: Callable[[Streams, torch.Tensor | None, TextStates | None], torch.Tensor]
    scores: Callable[[torch.Tensor, torch.Tensor, Streams], torch.Tensor]


class SymbolEncoding:
    """One way to see symbols; `register_encoding` makes a subclass known by its name.

    What is in pairs is for a model with a source, and for a decoder alone.

    Args:
        config: of the model, a [`SymbolModelConfig`]. Read settings from it at each use: symbols
            may be added later.

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
        sees_names: whether results depend on what symbols are called, so that a renaming matters.
        random_parts: whether symbols have random vectors, drawn anew in each step of training.
        rows_per_class: trained rows that the symbols of a class share; None where each has its own.
        rows_in_turn: whether a class may have more rows in a host, which a sample's symbols have in
            order of first occurrence.
        no_extension: why symbols cannot be added without training; empty where they can.
        memories: modules for what was found about symbols, where the encoding works by relations
            between positions; the third is for a model with a source and `new_symbols`. See
            `encoding_relational`.
        hosts: what it does with a model of Transformers, where that is its own: a `HostEncoding`
            for encoder-decoders, and one for decoders. Those of the encodings here are in
            `host_encoding`, which models of our own do without.

    Examples:
        >>> model.config.encoding.name, sorted(model.config.encoding.promises)
        ('relational', ['extension', 'renaming'])
    """

    name: ClassVar[str]
    description: ClassVar[str]
    promises: ClassVar[frozenset[str]] = frozenset()
    lists_symbols: ClassVar[bool] = False
    opens_streams: ClassVar[bool] = False
    sees_names: ClassVar[bool] = True
    random_parts: ClassVar[bool] = False
    rows_per_class: ClassVar[int | None] = None
    rows_in_turn: ClassVar[bool] = False
    no_extension: ClassVar[str] = ""
    memories: ClassVar[tuple[type[RelationalMemory], ...] | None] = None
    hosts: ClassVar[tuple[Any, Any] | None] = None

    def __init__(self, config: PreTrainedConfig):
        self.config = config

    @classmethod
    def validate(cls, config: PreTrainedConfig, num_symbols: int) -> None:
        """Raise a ValueError for settings that do not fit the encoding.

        Args:
            num_symbols: how many symbols there are, or are to be after an extension.
        """
        if cls.memories is not None and not config.takes_relations:
            raise ValueError(
                f"symbol_encoding {cls.name!r} needs attention that takes relations between "
                f"positions, and that of {config.model_type!r} models does not: choose another "
                "encoding, or an 'alpha' model"
            )

    @property
    def vocabulary(self) -> SymbolVocabulary:
        """The model's vocabulary."""
        return self.config.vocabulary

    @property
    def shape(self) -> tuple[int, int]:
        """Number and width of the rows that are trained."""
        if self.rows_per_class is None:
            return self.config.vocab_size, self.config.hidden_size
        shared = self.rows_per_class * len(self.vocabulary.ranges)
        return self.vocabulary.num_base_tokens + shared, self.config.hidden_size

    def table(self, trained_RD: torch.Tensor, parts: torch.Tensor | None) -> torch.Tensor:
        """Returns the table that `rows` points into, of unit rows if they are to be so: (R, D).

        Args:
            trained_RD: of the `shape`.
            parts: random parts of the symbols, in the order of their ids, where there are
                `random_parts`: (symbols, K).
        """
        if not self.config.normalize_embeddings:
            return trained_RD
        return F.normalize(trained_RD, dim=-1)

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns the row of each token in each stream: (B, S, L).

        In a host, base tokens have rows of their ids, and classes those of `config.class_rows`;
        else base tokens come first, then the rows of each class.

        Args:
            ids_BL: token ids of the sequence that `streams` is over.
        """
        if self.rows_per_class is None:
            return ids_BL[:, None]
        if not (self.rows_in_turn and self.vocabulary.in_turn):
            return self.vocabulary.rows(ids_BL, self.rows_per_class)[:, None]
        if streams.by_token:
            rows_BL = self.rows_of_listed(streams).gather(1, streams.own.clamp(min=0))
            return torch.where(streams.own < 0, ids_BL, rows_BL)[:, None]
        return self.vocabulary.rows(ids_BL, self.rows_per_class, streams.own)[:, None]

    def rows_of_listed(self, streams: Streams) -> torch.Tensor:
        """Returns the row of each symbol that the streams list, any where there is none: (B, S)."""
        ids_BS = streams.ids
        nth_S = partial(torch.arange, ids_BS.shape[1], device=ids_BS.device)
        return streams.once(
            ("rows of listed", ids_BS.shape[0]),
            lambda: self.vocabulary.rows(ids_BS.clamp(min=0), 1, nth_S()),
        )

    def logits(self, scores_BSTR: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns logits (B, T, V) from the scores of hidden states against each row.

        Args:
            scores_BSTR: of all rows of the table, or of a host's.
        """
        return scores_BSTR[:, 0, :, : self.config.vocab_size]


def listed_logits(
    base_BTV: torch.Tensor, own_BTS: torch.Tensor, streams: Streams, vocabulary: SymbolVocabulary
) -> torch.Tensor:
    """Returns logits (B, T, V) of base tokens and each sample's symbols; others hold `UNUSABLE`.

    Args:
        base_BTV: as `SymbolVocabulary.join` takes them.
        own_BTS: of the symbols that the streams list.
    """
    b, t, s = own_BTS.shape
    ids_BS, count = streams.ids, vocabulary.num_symbols

    def in_columns(x_BTS: torch.Tensor, none: float) -> torch.Tensor:
        column_BS = vocabulary.symbols_before(ids_BS).masked_fill(ids_BS < 0, count)
        symbols = x_BTS.new_full((*x_BTS.shape[:2], count + 1), none)
        index_BTS = column_BS[:, None].expand_as(x_BTS)
        return symbols.scatter(-1, index_BTS, x_BTS)[..., :-1]

    if not streams.by_token:
        return vocabulary.join(base_BTV, in_columns(own_BTS, UNUSABLE), dim=-1)
    # Of few tokens, the other way round: from which of the listed symbols each column is.
    place_S = partial(torch.arange, s, device=ids_BS.device)
    place_B1N = streams.once(("columns", b), lambda: in_columns(place_S().expand(b, 1, s), s))
    place_BTN = place_B1N if t == 1 else place_B1N.expand(b, t, count)
    symbols = F.pad(own_BTS, (0, 1), value=UNUSABLE).gather(-1, place_BTN)
    return vocabulary.join(base_BTV, symbols, dim=-1)
