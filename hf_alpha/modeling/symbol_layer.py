"""The symbol layer: what lies between token ids and a backbone, on the way in and on the way out.

Shapes: B batch, S streams, L or T length, D model width, R rows of the table, V vocabulary,
K random dimensions.
"""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import initialization as init
from transformers.cache_utils import Cache
from transformers.modeling_utils import PreTrainedModel

from .checks import check_by_token, check_ids, check_symbols
from .configuration_symbols import SymbolModelConfig
from .encoding import RelationalMemory, SymbolEncoding, TextStates
from .new_symbols import UNUSABLE, TextSoFar, WrittenSymbols, symbols_so_far
from .random_numbers import draw_key, sample_keys, symbol_vectors
from .relations import MadeOnce, match_rows, scaled
from .steps import StepCounter
from .streams import Streams
from .symbols import (
    canonical_renaming,
    first_occurrence,
    own_streams,
    random_renaming,
    rename_columns,
    rename_ids,
    stream_weights,
)

INFERENCE = -1  # the step whose draw is kept for inference
AHEAD = 16  # steps that are drawn together, in as many operations as one


class SymbolDraws(nn.Module):
    """What is drawn for symbols: random parts and the keys of random renamings.

    Drawn anew in each optimiser step of training, the same in all its micro-batches and processes;
    inference uses one draw of random parts that is kept with the weights.

    Attributes:
        random_parts: of the symbols in inference, in the order of their ids: (symbols, K).
        step: optimiser steps so far.
    """

    random_parts: torch.Tensor
    step: torch.Tensor

    def __init__(self, config: SymbolModelConfig):
        super().__init__()
        self.config = config
        self.has_parts = config.encoding.random_parts
        if self.has_parts:
            self.register_buffer("random_parts", torch.empty(config.num_symbols, config.random_dim))
        self.register_buffer("step", torch.tensor(0))
        self.reset()

    @classmethod
    def of(cls, config: SymbolModelConfig) -> "SymbolDraws | None":
        """Returns what a model of this configuration draws; None if nothing."""
        return cls(config) if config.draws_symbols else None

    @torch.no_grad()
    def reset(self) -> None:
        """Initialise what a checkpoint did not bring."""
        init.zeros_(self.step)
        if self.has_parts:
            init.copy_(self.random_parts, self._draw(0, INFERENCE))
        self._forget()

    def _forget(self) -> None:
        self._seen: int | None = None  # count of steps at the last look
        self._ahead: list[torch.Tensor] = []  # parts of the current step and those to come

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Loads a state without taking it for an optimiser step."""
        super()._load_from_state_dict(*args, **kwargs)
        self._forget()

    def redraw(self) -> None:
        """Draw the random parts for inference by the seed in the configuration."""
        self.random_parts = self._draw(0, INFERENCE).to(self.random_parts)
        self._ahead = []

    def extend(self) -> None:
        """Draw random parts for newly added symbols; the old ones stay."""
        self._ahead = []
        if self.has_parts:
            new = self._draw(len(self.random_parts), INFERENCE).to(self.random_parts)
            self.random_parts = torch.cat((self.random_parts, new))

    @torch.no_grad()
    def _draw(self, first: int, step: int | torch.Tensor) -> torch.Tensor:
        """Returns the random parts of all symbols from number `first` on."""
        config, device = self.config, self.step.device
        symbols = torch.arange(first, config.num_symbols, device=device)
        key = draw_key(config.symbol_seed, torch.as_tensor(step, device=device))
        return symbol_vectors(config.random_method, symbols, config.random_dim, key)

    @torch.compiler.disable
    @torch.no_grad()
    def advance(self, count: int) -> None:
        """Draw for the next step if there has been one since the last call.

        Args:
            count: of [`StepCounter`].
        """
        if self._seen is not None and self._seen != count:
            self.step += 1
            self._ahead = self._ahead[1:]
        self._seen = count

    def key(self) -> torch.Tensor:
        """Returns the key of the current optimiser step."""
        return draw_key(self.config.symbol_seed, self.step)

    def forward(self, training: bool) -> torch.Tensor:
        """Returns the random parts of symbols as used, in the order of their ids: (symbols, K)."""
        return self._current() if training else self._finish(self.random_parts)

    @torch.compiler.disable
    def _current(self) -> torch.Tensor:
        if not self._ahead or self._ahead[0].device != self.step.device:
            steps = self.step + torch.arange(AHEAD, device=self.step.device)
            self._ahead = list(self._finish(self._draw(0, steps[:, None])).unbind())
        return self._ahead[0]

    def _finish(self, parts: torch.Tensor) -> torch.Tensor:
        return F.normalize(parts, dim=-1) if self.config.normalize_parts else parts


class SymbolLayer:
    """Ids to vectors, and hidden states to logits, by the encoding that the configuration names.

    It is no module: the model that owns it has the only embedding and what is drawn. Encoder,
    decoder and head share one. The trained rows are always read by the embedding's `forward`, so
    that adapters in its place and offloading hooks, which work there, take part.

    Args:
        config: of the model.
        draws: what is drawn for symbols, if anything.
        owner: has the embedding, and the parameters whose optimiser steps are counted.

    Attributes:
        encoding: the object that does the work.
        relates: the class of `memory`, which finds relations between positions, if there is one.
        steps: counts optimiser steps, for draws and for the scale of the head.

    Examples:
        >>> batch, layer = tokenizer(["a & !b"], return_tensors="pt"), model.base_model.symbols
        >>> streams = layer.open(batch["input_ids"], None, batch["stream_ids"], training=False)
        >>> layer.embed(batch["input_ids"], streams).shape  # (B, S, L, D)
        torch.Size([1, 1, 5, 64])
    """

    def __init__(
        self, config: SymbolModelConfig, draws: SymbolDraws | None, owner: PreTrainedModel
    ):
        self.config = config
        self.draws = draws
        self.owner = owner
        self.encoding: SymbolEncoding = config.encoding(config)
        self.relates: type[RelationalMemory] | None = config.memory
        self.steps = StepCounter(owner)
        self.scale = math.sqrt(config.hidden_size) if config.scale_embedding else 1.0

    @torch.compiler.disable
    def settle_step(self) -> None:
        """Draw anew if an optimiser step has been counted since the last call."""
        if self.draws is not None:
            self.draws.advance(self.steps.settle())

    @torch.compiler.disable
    def _start_step(self) -> None:
        self.steps.watch()
        self.settle_step()

    # -- on the way in ----------------------------------------------------------------------------

    def open(
        self,
        ids_BL: torch.Tensor,
        mask_BL: torch.Tensor | None,
        stream_ids: torch.Tensor | None,
        training: bool,
        kept: MadeOnce | None = None,
    ) -> Streams:
        """Open the streams of input sequences.

        Args:
            ids_BL: token ids.
            mask_BL: 1 for tokens, 0 for padding on either side.
            stream_ids: the samples' symbols by first occurrence, -1 padded: (B, S). Derived from
                the ids when absent, at the price of one synchronisation with the device.
            training: draw anew where an optimiser step is done, and rename where that is asked for.
            kept: of the call, or of a generation, which has these `stream_ids`; after its first
                call, tokens are those that the model itself has chosen.

        Raises:
            ValueError: an id is outside the vocabulary, or the mask or `stream_ids` do not fit the
                ids. Read back from the device where that costs nothing, see `checks`.
        """
        if training and self.draws is not None:
            self._start_step()
        chosen = kept is not None and kept.goes_on
        if not chosen:
            check_ids(self.config, ids_BL)
            check_by_token(*ids_BL.shape, attention_mask=mask_BL)
        listed_BS = self._list_symbols(ids_BL, mask_BL, stream_ids)
        streams = self._streams(ids_BL, mask_BL, listed_BS, training, kept)
        if self.config.needs_stream_ids and not chosen:
            check_symbols(self.config, ids_BL, mask_BL, streams.own)
        return streams

    def resume(
        self,
        ids_BL: torch.Tensor | None,
        mask_BL: torch.Tensor | None,
        stream_ids: torch.Tensor | None,
        hidden_BLD: torch.Tensor,
        training: bool,
    ) -> Streams | None:
        """Returns the streams of hidden states that came without; None if they are unknown.

        Args:
            ids_BL: the input of those states; needed where the model lists symbols or renames them,
                `stream_ids` likewise.
            hidden_BLD: the encoder's last states.
        """
        if not (self.config.needs_stream_ids or self.renames_now(training)):
            none = torch.full(hidden_BLD.shape[:2], -1, device=hidden_BLD.device)
            return self._streams(none, None, none[:, :1], training)
        if ids_BL is None or stream_ids is None:
            return None
        return self._streams(ids_BL, mask_BL, stream_ids, training)

    def _streams(
        self,
        ids_BL: torch.Tensor,
        mask_BL: torch.Tensor | None,
        listed_BS: torch.Tensor,
        training: bool,
        kept: MadeOnce | None = None,
    ) -> Streams:
        renaming, rows = self._renaming(ids_BL, mask_BL, listed_BS, training), listed_BS.shape[0]
        if self.relates is not None and kept is not None and kept.goes_on:
            own_BL = torch.full_like(ids_BL, -1)  # which `go_on` knows
        else:
            own_BL = self._own(ids_BL, listed_BS)
        made, dtype = MadeOnce() if kept is None else kept, self.owner.dtype
        streams_BS = listed_BS if self.encoding.opens_streams else listed_BS[:, :1]
        weights = made.once(("weights", rows, dtype), lambda: stream_weights(streams_BS, dtype))
        streams = Streams(listed_BS, own_BL, weights, renaming, kept=kept)
        if self.relates is None or self.config.decodes_alone:  # alone, `go_on` finds relations
            return streams
        return self.relates.read(streams, mask_BL)

    def _own(self, ids_BL: torch.Tensor, listed_BS: torch.Tensor) -> torch.Tensor:
        """Returns the index of the symbol at each position among those listed, -1 for none: (B, L).

        Args:
            listed_BS: symbols by first occurrence, -1 padded.
        """
        if not self.config.needs_stream_ids:
            return torch.full_like(ids_BL, -1)
        return own_streams(ids_BL, listed_BS)

    def _own_by_token(
        self, source: Streams, ids_BT: torch.Tensor, listed_BS: torch.Tensor
    ) -> torch.Tensor:
        """Returns the same; of a generation whose list is the source's, for all ids at once."""
        if not source.by_token or self.config.new_symbols:
            return self._own(ids_BT, listed_BS)

        def of_all() -> torch.Tensor:
            ids_V = torch.arange(self.config.vocab_size, device=listed_BS.device)
            return self._own(ids_V.expand(listed_BS.shape[0], -1), listed_BS)

        return source.once(("own", listed_BS.shape[0]), of_all).gather(1, ids_BT)

    @property
    def memory(self) -> RelationalMemory | None:
        """The module for what was found about symbols, where the encoding works by relations."""
        # Looked up at each use, as the embedding is: adapters may take its place.
        return self.owner.symbol_memory if self.relates is not None else None

    def remember(self, hidden_BLD: torch.Tensor, streams: Streams) -> Streams:
        """Returns the streams with what the encoder found about each symbol, if asked for.

        Args:
            hidden_BLD: the encoder's last states.
        """
        if (memory := self.memory) is None:
            return streams
        return memory.remember(hidden_BLD, streams, self.table(hidden_BLD.device, streams))

    def follow(
        self,
        source: Streams,
        ids_BT: torch.Tensor,
        mask: torch.Tensor | None = None,
        cache: Cache | None = None,
        slot: int = 0,
    ) -> Streams:
        """Returns the streams over the decoder's tokens, with relations if the encoding has such.

        Args:
            source: over the sources, one for each row of `ids_BT` or for all beams of a sample.
            ids_BT: token ids, without those that the cache holds already.
            mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention,
                (B, 1, T, M).
            cache: of the decoder's self-attention.
            slot: where the cache keeps which symbols were written.
        """
        config, rows = self.config, ids_BT.shape[0]

        def of_rows() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
            ids_BS, weights_BS = match_rows(source.ids, rows), match_rows(source.weights, rows)
            return ids_BS, weights_BS, match_rows(source.renaming, rows)

        ids_BS, weights_BS, renaming = source.once(("rows", rows), of_rows)
        own_BT = self._own_by_token(source, ids_BT, ids_BS)
        memory, kept = source.memory, source.kept
        streams = Streams(ids_BS, own_BT, weights_BS, renaming, memory=memory, kept=kept)
        if config.new_symbols:
            text = TextSoFar.of(ids_BT, mask, cache, slot, config.vocabulary)
            streams = self._as_written(streams, ids_BT, text.written(ids_BS))
            streams = streams.with_room(source.ids)
        if self.relates is None:
            return streams
        if config.new_symbols:
            symbols = text.listed(streams.ids)
        else:  # the source's list is all: the cache keeps places in it
            symbols = symbols_so_far(own_BT, mask, cache, slot)
        return self.relates.follow(streams.but(own=symbols.here), source, symbols)

    def go_on(
        self,
        streams: Streams,
        ids_BT: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Cache | None,
        slot: int,
    ) -> Streams:
        """Returns the streams over the tokens at hand of a decoder alone.

        Args:
            streams: that `open` returned for these tokens.
            ids_BT: token ids, without those that the cache holds already.
            mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention.
            cache: of the decoder.
            slot: the first one that is not the layers'.
        """
        config, kept = self.config, streams.kept
        if not config.num_histories:
            return streams
        text = TextSoFar.of(ids_BT, mask, cache, slot, config.vocabulary, kept)
        if config.new_symbols:
            streams = self._as_written(streams, ids_BT, text.written())
        if self.relates is None:
            return streams
        symbols = text.listed(streams.ids, kept)
        if kept is not None and kept.by_token and self.relates.takes_numbers:
            kept.once("prompt", lambda: (text, symbols, streams, cache, slot))  # for a TokenReader
        return self.relates.go_on(streams, symbols)

    def _as_written(
        self, streams: Streams, ids_BT: torch.Tensor, written: WrittenSymbols
    ) -> Streams:
        """Returns the streams of the symbols that the text has so far, and others may follow."""
        config, renaming = self.config, streams.renaming
        in_order = config.renames and config.symbol_renaming == "first_occurrence"
        if not (self.encoding.lists_symbols or in_order):
            return streams.but(written=written)
        listed = written.by_first_occurrence()
        if in_order and config.num_symbols:
            renaming = canonical_renaming(listed, config.vocabulary)
        return streams.but(
            ids=listed,
            own=own_streams(ids_BT, listed),
            weights=stream_weights(listed, self.owner.dtype),
            renaming=renaming,
            written=written,
        )

    def point(
        self,
        streams: Streams,
        masses_BTHS: torch.Tensor | None,
        states: TextStates | None = None,
    ) -> Streams:
        """Returns the streams with what the head adds to the scores of symbols, if anything.

        Args:
            streams: that `follow` or `go_on` returned.
            masses_BTHS: with a source, sums of the weights of the decoder's last attention to it
                over each symbol; nothing is added without.
            states: of the decoder, where texts have symbols by themselves.
        """
        if (memory := self.memory) is None or (
            masses_BTHS is None and not self.config.decodes_alone
        ):
            return streams
        return streams.but(pointer=memory.point(streams, masses_BTHS, states))

    def renamed(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns what ids are called inside the model: (B, L)."""
        if streams.renaming is None:
            return ids_BL
        return rename_ids(ids_BL, streams.renaming, self.config.vocabulary)

    def rows(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns the row of each token in each stream: (B, S, L).

        Args:
            ids_BL: token ids of the sequence that `streams` is over.
            streams: of the batch.
        """
        by_row = not streams.by_token or streams.renaming is not None
        if by_row or self.encoding.opens_streams or self.config.vocabulary.in_turn:
            return self.encoding.rows(self.renamed(ids_BL, streams), streams)
        size, device = self.config.vocab_size, ids_BL.device

        def of_all() -> torch.Tensor:
            ids_1V = torch.arange(size, device=device)[None]
            return self.encoding.rows(ids_1V, streams)[0, 0]

        return streams.once(("rows of ids", device), of_all)[ids_BL[:, None]]

    def parts(self, ids_BL: torch.Tensor) -> torch.Tensor:
        """Returns the random parts of tokens, 0 for base tokens: (B, L, K).

        Args:
            ids_BL: as the model calls them.
        """
        assert self.draws is not None
        # A row behind those of the symbols is that of base tokens.
        rows = F.pad(self.draws(self.owner.training), (0, 0, 0, 1))
        return F.embedding(self.config.vocabulary.symbol_index(ids_BL), rows)

    def embed(self, ids_BL: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Embed tokens once per stream: (B, S, L, D).

        Args:
            ids_BL: token ids of the sequence that `streams` is over.
            streams: of the batch.
        """
        rows_BSL = self.rows(ids_BL, streams)
        vectors_BSLD = F.embedding(rows_BSL, self.table(ids_BL.device, streams))
        memory = self.memory
        if memory is not None and (entered := memory.enter(streams)) is not None:
            vectors_BSLD = vectors_BSLD + entered[:, None]
        return scaled(vectors_BSLD, self.scale)

    def table(self, device: torch.device, streams: Streams | None = None) -> torch.Tensor:
        """Returns the table as used, of unit rows where `normalize_embeddings` is set: (R, D).

        Args:
            streams: of the batch that it is for, which keep it.
        """
        if streams is not None:  # without gradients, it is another one
            key = ("table", device, torch.is_grad_enabled())
            return streams.once(key, lambda: self.table(device))
        embedding = self.owner.get_input_embeddings()
        # With layers on several devices, the embedding may lie on another one.
        rows = embedding(torch.arange(self.encoding.shape[0], device=device)).to(device)
        parts = None
        if self.encoding.random_parts:
            assert self.draws is not None
            parts = self.draws(embedding.training).to(rows)
        return self.encoding.table(rows, parts)

    def _list_symbols(
        self, ids_BL: torch.Tensor, mask_BL: torch.Tensor | None, stream_ids: torch.Tensor | None
    ) -> torch.Tensor:
        if not self.config.needs_stream_ids:
            # One stream of no symbol in particular, whatever the tokenizer lists.
            return ids_BL.new_full((ids_BL.shape[0], 1), -1)
        if stream_ids is None:
            symbol = self.config.vocabulary.is_symbol(ids_BL)
            return first_occurrence(ids_BL, symbol if mask_BL is None else symbol & (mask_BL > 0))
        if stream_ids.shape[0] != ids_BL.shape[0]:
            raise ValueError(
                f"stream_ids has {stream_ids.shape[0]} rows for {ids_BL.shape[0]} inputs"
            )
        return stream_ids

    # -- renaming ---------------------------------------------------------------------------------

    def renames_now(self, training: bool) -> bool:
        """Returns whether symbols are called something else inside the model."""
        config = self.config
        if not config.renames or not config.num_symbols:
            return False
        return training or config.symbol_renaming == "first_occurrence"

    def _renaming(
        self,
        ids_BL: torch.Tensor,
        mask_BL: torch.Tensor | None,
        symbol_ids_BS: torch.Tensor,
        training: bool,
    ) -> torch.Tensor | None:
        """Returns what each symbol is called inside the model, (B, symbols); None if ids stay.

        Args:
            symbol_ids_BS: for `first_occurrence`, the samples' symbols in that order, -1 padded.
        """
        config = self.config
        if not self.renames_now(training):
            return None
        if config.symbol_renaming == "first_occurrence":
            if not config.needs_stream_ids:  # the list follows, see `go_on`
                return None
            return canonical_renaming(symbol_ids_BS, config.vocabulary)
        assert self.draws is not None
        key = self.draws.key()
        if config.symbol_renaming == "random_per_batch":
            return random_renaming(key.expand(ids_BL.shape[0]), config.vocabulary)
        padding = -1 if config.pad_token_id is None else config.pad_token_id
        mask = ids_BL != padding if mask_BL is None else mask_BL > 0
        return random_renaming(sample_keys(ids_BL, mask, key), config.vocabulary)

    # -- on the way out ---------------------------------------------------------------------------

    def scores(self, hidden_BSTD: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns scores of hidden states against what the encoding compares with: (B, S, T, R)."""
        if self.config.normalize_features:
            hidden_BSTD = F.normalize(hidden_BSTD, dim=-1)
        table_RD = self.table(hidden_BSTD.device, streams)
        if (memory := self.memory) is not None:
            return memory.scores(hidden_BSTD, table_RD, streams)
        # All rows at once: one matrix shape and one order of summation, whatever the encoding is.
        return F.linear(hidden_BSTD, table_RD)

    def logits(
        self, scores_BSTR: torch.Tensor, streams: Streams, new_BTC: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Returns logits (B, T, V) from scores; columns that a sample cannot use: `UNUSABLE`.

        Args:
            new_BTC: scores of a symbol that the text has not got, of each class, where they may be.
        """
        return self.finish(self.encoding.logits(scores_BSTR, streams), streams, new_BTC)

    def finish(
        self, logits: torch.Tensor, streams: Streams, new_BTC: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Returns logits (B, T, V) in the caller's names, from those in the model's."""
        if streams.renaming is not None:
            logits = rename_columns(logits, streams.renaming, self.config.vocabulary)
        if not self.encoding.lists_symbols and self.config.answers_are_listed:
            logits = logits.masked_fill(~self.usable_columns(streams.ids)[:, None], UNUSABLE)
        if streams.written is not None and new_BTC is not None:
            logits = streams.written.complete(logits, new_BTC)
        return logits

    def usable_columns(self, stream_ids_BS: torch.Tensor) -> torch.Tensor:
        """Returns which logits a sample can use: (B, V).

        All, or, where answers have the input's symbols alone, those and the base tokens.
        """
        config, device = self.config, stream_ids_BS.device
        rows, columns = stream_ids_BS.shape[0], config.vocab_size
        if not config.answers_are_listed:
            return torch.ones(rows, columns, dtype=torch.bool, device=device)
        # A column beyond the table takes what is padding, and is cut off.
        base = ~config.vocabulary.is_symbol(torch.arange(columns + 1, device=device))
        listed = torch.where(stream_ids_BS >= 0, stream_ids_BS, columns)
        return base.repeat(rows, 1).scatter(1, listed, True)[:, :-1]
