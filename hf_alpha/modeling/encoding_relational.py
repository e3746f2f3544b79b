"""Encoding `relational`: a symbol's vector does not tell which symbol it is; where it stands does.

    same(t, m) = 1 where positions t and m hold the same symbol
    score(t, m) = q_t . k_m / sqrt(K) + gate(h_t) * same(t, m)       in attention ([`Relations`])
    x(t) = row of its class + entry of the symbol at t               in a decoder's input
    logit(t, i) = h_t . (row of its class + return of symbol i) + pointer(t, i)

Entries and returns are read off what the encoder found at a symbol's positions ([`SymbolMemory`]).
A decoder alone has no encoder: there `same` is that of the last symbol up to t, a second relation
is what stands behind it, and entries mark where a symbol is new ([`TextMemory`]). With a source and
new symbols, a decoder has both ([`AnswerMemory`]). Its kin are Renamer (Ankner, Renda and Carbin
2023), relation-aware attention (Shaw et al. 2018) and pointer networks (Vinyals et al. 2015).

What becomes of it in a host is in `host_encoding`.

Shapes: B batch, N sources (B, or one for all beams of a sample), S symbols of a sample's input,
L source length, T target length, M keys (cached ones included), D width, H heads, R rows, V
vocabulary.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedConfig
from transformers import initialization as init

from .encoding import RelationalMemory, SymbolEncoding, TextStates, listed_logits
from .masks import are_few
from .relations import (
    NONE,
    IndexRelations,
    MadeOnce,
    RelationGates,
    Relations,
    SlotRelations,
    SourceRelations,
    SymbolRelations,
    TextRelations,
    TextSymbols,
    add_relations_,
    alike,
    by_source,
    columns_of,
    first_positions,
    in_blocks,
    mean_by_symbol,
    num_slots,
    one_hot,
    scaled,
    sought,
    sum_by_symbol,
    sums_over_places,
    symbols_there,
    written_symbols,
)
from .streams import Streams

STRENGTH = 1.0  # of each head of a decoder's pointer, at first


# -- what is known of a sample's symbols -----------------------------------------------------------


def to_source(streams: Streams) -> SourceRelations:
    """Returns the relations of a text to its source."""
    assert streams.related is not None and streams.related.source is not None
    return streams.related.source


def in_text(streams: Streams) -> TextRelations:
    """Returns the relations of a text by itself."""
    assert streams.related is not None and streams.related.text is not None
    return streams.related.text


class FoundSymbols(nn.Module):
    """What an encoder found about symbols: of each an entry and a return, vectors that are trained.

    They are read off the mean of its last states over the positions of a symbol. Its entry is added
    to the symbol's row where that stands in a decoder's input; the head adds its return.
    """

    of_symbols = True

    def found(
        self, hidden_BLD: torch.Tensor, streams: Streams
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns entries and returns, each (B, S, D), by the module's own `forward`."""
        return self(mean_by_symbol(hidden_BLD, streams.own, streams.ids.shape[1]))

    def enter(self, streams: Streams) -> torch.Tensor | None:
        """Returns what is added to the vectors of tokens, (B, T, D); None in an encoder."""
        if streams.memory is None:
            return None
        entries_NSD, _ = self.vectors(streams, streams.own.device)
        _, here_BTS = self.repeated(streams, streams.own.device)
        return by_source(here_BTS, entries_NSD)

    @staticmethod
    def vectors(streams: Streams, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns what is remembered, for the decoder and for the head: (N, S, D) each.

        Args:
            device: of what is to be added to; layers may lie on several.
        """
        memory = streams.memory
        assert memory is not None
        key = ("memory", device, memory.shape[1])  # which grows by new symbols
        entries_NSD, returns_NSD = streams.once(key, lambda: memory.to(device).unbind(2))
        return entries_NSD, returns_NSD

    @staticmethod
    def repeated(streams: Streams, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns whether symbols were written so far, and stand at a position: each (B, T, S)."""
        within, number = streams.within, streams.ids.shape[1]
        assert within is not None
        here_BTS = within.made.once("here", lambda: within.queries[0][..., :number])
        written_BTS = to_source(streams).written
        if here_BTS.device != device:
            return written_BTS.to(device), here_BTS.to(device)
        return written_BTS, here_BTS


class SymbolPointer(nn.Module):
    """What the head adds to the score of a symbol: whether it was written, and attention to it.

    Args:
        num_heads: H, of the decoder's attention to the source.
    """

    def __init__(self, num_heads: int):
        super().__init__()
        self.repeat = nn.Parameter(torch.zeros(2))
        self.attention = nn.Parameter(torch.zeros(num_heads))

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with nothing."""
        init.zeros_(self.repeat)
        init.zeros_(self.attention)

    def forward(
        self, written_BTS: torch.Tensor, last_BTS: torch.Tensor, masses_BTHS: torch.Tensor
    ) -> torch.Tensor:
        """Returns scores of a sample's symbols at each position: (B, T, S).

        Args:
            written_BTS: whether a symbol stands in the decoder's input up to a position.
            last_BTS: whether it stands at that position.
            masses_BTHS: sums of the weights of attention to the source over each symbol.
        """
        written, last = self.repeat
        mass_BTS = (alike(self.attention, masses_BTHS)[:, None] * masses_BTHS).sum(2)
        return mass_BTS.addcmul(written, written_BTS).addcmul(last, last_BTS)


class SymbolMemory(FoundSymbols, RelationalMemory):
    """What a model with a source knows of symbols, in its encoder, its decoder and at its head.

    Entries and returns have the length sqrt(D) at first, that of rows before they are normalised.

    Args:
        config: of the model.
        num_heads: H, of the decoder's attention to the source.
    """

    num_histories = 1  # which symbols were written

    def __init__(self, config: PreTrainedConfig, num_heads: int):
        super().__init__()
        self.config, width = config, config.hidden_size
        self.input_proj = nn.Linear(width, width, bias=False)
        self.output_proj = nn.Linear(width, width, bias=False)
        self.input_norm = nn.RMSNorm(width)
        self.output_norm = nn.RMSNorm(width)
        self.pointer = SymbolPointer(num_heads)

    def forward(self, mean_BSD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns entries and returns: each (B, S, D)."""
        entry = self.input_norm(self.input_proj(mean_BSD))
        return entry, self.output_norm(self.output_proj(mean_BSD))

    @staticmethod
    def read(streams: Streams, mask_BL: torch.Tensor | None) -> Streams:
        # Padding may hold any id.
        own_BL = streams.own if mask_BL is None else streams.own.masked_fill(mask_BL <= 0, -1)
        number = num_slots(streams.ids.shape[1])
        same = IndexRelations(sought(own_BL), (own_BL,), number, streams.weights.dtype)
        return streams.but(own=own_BL, related=SymbolRelations(same))

    @staticmethod
    def follow(streams: Streams, source: Streams, text: TextSymbols) -> Streams:
        dtype, number = streams.weights.dtype, num_slots(streams.ids.shape[1])
        own_BM, position_T = text.own, text.positions
        if source.by_token and position_T.shape[0] == 1 and text.ends:
            return SymbolMemory._follow_next(streams, source, text)
        same = IndexRelations(sought(text.here), (own_BM,), number, dtype)
        if position_T.shape[0] == 1 and text.ends:
            written_BTS = symbols_there(own_BM, number, dtype)[:, None]
        elif own_BM is text.here and are_few(own_BM.shape[1], number):
            written_BTS = same.queries[0].cummax(1).values
        else:
            written_BTS = written_symbols(own_BM, position_T, number).to(dtype)
        kept = source.once(("slots", number), MadeOnce)
        across = SlotRelations((same.queries[0], written_BTS), source.own, kept=kept)
        of_source = SourceRelations(across, written_BTS[..., : streams.ids.shape[1]], position_T)
        return streams.but(related=SymbolRelations(same, of_source))

    @staticmethod
    def _follow_next(streams: Streams, source: Streams, text: TextSymbols) -> Streams:
        """Does what `follow` does for one token of a generation, in few operations.

        What is found in tables and columns is found in few: there are two columns behind those of
        symbols, one for keys of the text that hold none, and zeros for those of the source.
        """
        dtype, number = streams.weights.dtype, num_slots(streams.ids.shape[1])
        own_BM, device = text.own, text.own.device

        def tables() -> tuple[torch.Tensor, torch.Tensor]:
            index = torch.arange(number + 1, device=device)  # the last one is for none, -1
            slots = F.pad(one_hot(index, number, dtype), (0, 2))
            return slots, index.masked_fill(index == number, NONE)

        def columns() -> torch.Tensor:
            column_NL = torch.where(source.own < 0, number + 1, source.own)
            each = 2 * own_BM.shape[0] // column_NL.shape[0]
            return column_NL[:, None].expand(-1, each, -1)

        slots, sought_S = source.once(("tables", number), tables)
        column_NEL = source.once(("columns of keys", own_BM.shape[0]), columns)
        here_B1S = slots[text.here]
        column_B1M = torch.where(own_BM < 0, number, own_BM)[:, None]
        written_B1S = torch.zeros_like(here_B1S).scatter_(2, column_B1M, 1.0)
        same = IndexRelations(sought_S[text.here], (own_BM,), number, dtype)
        same.made.once("queries", lambda: (here_B1S,))
        same.made.once("lines", lambda: here_B1S.gather(2, column_B1M)[:, None])
        kept = source.once(("slots", number + 2), MadeOnce)
        across = SlotRelations((here_B1S, written_B1S), source.own, kept=kept)
        both_NES = torch.cat((here_B1S, written_B1S), 1)
        if both_NES.shape[0] != column_NEL.shape[0]:
            both_NES = both_NES.view(column_NEL.shape[0], -1, number + 2)
        across.made.once("lines", lambda: both_NES.gather(2, column_NEL).unflatten(1, (-1, 2)))
        written_B1S = written_B1S[..., : streams.ids.shape[1]]
        of_source = SourceRelations(across, written_B1S, text.positions)
        return replace(streams, related=SymbolRelations(same, of_source))

    def remember(
        self, hidden_BLD: torch.Tensor, streams: Streams, table_RD: torch.Tensor
    ) -> Streams:
        entered_BSD, returned_BSD = self.found(hidden_BLD, streams)
        # Any row will do where a sample has fewer symbols than others.
        rows_BS = self.config.vocabulary.rows(streams.ids.clamp(min=0), per_class=1)
        rows_BSD = F.embedding(rows_BS.to(hidden_BLD.device), table_RD) + returned_BSD
        if self.config.normalize_embeddings:
            rows_BSD = F.normalize(rows_BSD, dim=-1)
        return streams.but(memory=torch.stack((entered_BSD, rows_BSD), dim=2))

    def point(
        self, streams: Streams, masses_BTHS: torch.Tensor | None, states: TextStates | None
    ) -> torch.Tensor:
        assert masses_BTHS is not None
        written_BTS, here_BTS = self.repeated(streams, masses_BTHS.device)
        return self.pointer(written_BTS, here_BTS, masses_BTHS[..., : streams.ids.shape[1]])

    def scores(
        self, hidden_BSTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        if streams.memory is None:
            raise ValueError(
                "symbol_encoding 'relational' compares with what the encoder found about symbols, "
                "and the streams have no memory: call SymbolLayer.remember after the encoder"
            )
        base = F.linear(hidden_BSTD, table_RD[: self.config.vocabulary.num_base_tokens])
        own = self.scores_of_listed(hidden_BSTD[:, 0], table_RD, streams)
        if streams.pointer is not None:
            own = own + alike(streams.pointer, own)
        return torch.cat((base, own[:, None]), dim=-1)

    def scores_of_listed(
        self, hidden_BTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns the products of states with what was found about each symbol: (B, T, S)."""
        _, rows_NSD = self.vectors(streams, hidden_BTD.device)
        return by_source(hidden_BTD, rows_NSD.mT)


class TextMemory(RelationalMemory):
    """What a decoder alone has of the symbols of its text: where each came first, and a pointer.

    The pointer is attention to the positions up to now that hold symbols, with the relations that
    all attention is told. What a head adds to the score of a symbol is the sum of its weights over
    the symbol's positions, times the head's strength. A score of 0 stands for none of them.

    Args:
        config: of the model.
        num_heads: H.
        silent: begin with no effect.
        scale: of numbers that stand alone, which are stored as parts of it.
    """

    num_histories = 2  # the text's symbols, and states to point at
    takes_numbers = True

    def __init__(
        self, config: PreTrainedConfig, num_heads: int, silent: bool = False, scale: float = 1.0
    ):
        super().__init__()
        self.config, width = config, config.hidden_size
        self.silent = silent
        self.scale = scale
        self.head_dim = max(width // num_heads, 1)
        self.first = nn.Parameter(torch.zeros(width))
        self.norm = nn.LayerNorm(width)
        self.query_proj = nn.Linear(width, num_heads * self.head_dim, bias=False)
        self.key_proj = nn.Linear(width, num_heads * self.head_dim, bias=False)
        self.gates = RelationGates(width, num_heads, 2, halves=(0, 1), scale=scale)
        self.strength = nn.Parameter(torch.zeros(num_heads))

    @torch.no_grad()
    def reset(self) -> None:
        """Begin with no effect, or with vectors of unit length and a pointer that counts."""
        width = len(self.first)
        if self.silent:
            init.zeros_(self.first)
        else:
            init.normal_(self.first, std=width**-0.5)
        init.constant_(self.strength, 0.0 if self.silent else STRENGTH / self.scale)
        init.normal_(self.query_proj.weight, std=width**-0.5)
        init.normal_(self.key_proj.weight, std=width**-0.5)

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the vector of first occurrences, and the strength of each head: (D,), (H,).

        Offloaded weights are only there while this is called.
        """
        return self.first, scaled(self.strength, self.scale)

    @staticmethod
    def go_on(streams: Streams, text: TextSymbols) -> Streams:
        assert text.behind is not None and text.last is not None
        number, dtype = num_slots(streams.ids.shape[1]), streams.weights.dtype
        relations = IndexRelations(sought(text.last), (text.own, text.behind), number, dtype)
        alone = TextRelations(relations, text.own, text.positions)
        return streams.but(own=text.here, related=SymbolRelations(relations, text=alone))

    def enter(self, streams: Streams) -> Any:
        text = in_text(streams)
        if text.own is None:  # beside `TokenRelations`: all listed symbols stand before
            return None
        if streams.own.shape[1] == 1:
            newly_BT = (text.own == sought(streams.own)).sum(1, keepdim=True) == 1
        else:
            first_BS = first_positions(text.own, streams.ids.shape[1])
            # Where no symbol stands, the first one does not either, and is no match.
            newly_BT = first_BS.gather(1, streams.own.clamp(min=0)) == text.positions
        first_D, _ = self()
        return torch.where(newly_BT[..., None], first_D, 0.0)

    def point(
        self, streams: Streams, masses_BTHS: torch.Tensor | None, states: TextStates | None
    ) -> torch.Tensor:
        assert states is not None
        text, keep, device = in_text(streams), states.keep, states.hidden.device
        if text.own is None:
            within: Any = text.within
            return within.point(self, streams, states)
        states_BTD = self.norm(states.hidden)
        key_BHMK = self._heads(self.key_proj(states_BTD))
        if states.cache is not None:
            key_BHMK, _ = states.cache.update(key_BHMK, key_BHMK[..., :0], states.slot + 1)
        states_BTD = states_BTD[:, -keep:]
        query_BHTK = self._heads(self.query_proj(states_BTD))
        own_BM, position_T = (x.to(device) for x in (text.own, text.positions[-keep:]))
        number = streams.ids.shape[1]
        by_places = sums_over_places(query_BHTK, number)
        there_BMS = None if by_places else one_hot(own_BM, number, query_BHTK.dtype)
        relations = text.within.part(slice(-keep, None), slice(None))
        gates_BTG = self.gates(states_BTD)
        _, strength_H = self()

        def masses(part: slice) -> torch.Tensor:
            scores_BHTM = query_BHTK[:, :, part] @ key_BHMK.mT * self.head_dim**-0.5
            gated = relations.part(part, slice(None)), gates_BTG[:, part]
            weights_BHTM = _pointer_weights(scores_BHTM, *gated, own_BM, position_T[part])
            # Heads first: one product for each position, of its weights of all heads.
            if part.stop - part.start == 1:  # for which `einsum` is many small calls
                weights_BTM = (strength_H.to(weights_BHTM) @ weights_BHTM.squeeze(2))[:, None]
            else:
                weights_BTM = torch.einsum("h,bhtm->btm", strength_H, weights_BHTM)
            if there_BMS is None:
                return sum_by_symbol(weights_BTM, columns_of(own_BM, number)[:, None], number)
            return weights_BTM @ there_BMS

        return in_blocks(masses, position_T.shape[0], device)

    def _heads(self, x_BTG: torch.Tensor) -> torch.Tensor:
        return x_BTG.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def scores(
        self, hidden_BSTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns the same; that of a symbol is that of its class."""
        vocabulary = self.config.vocabulary
        scores_BSTR = F.linear(hidden_BSTD, table_RD)
        rows_BS = vocabulary.rows(streams.ids.clamp(min=0), per_class=1)
        index = rows_BS[:, None, None].expand(*scores_BSTR.shape[:3], -1)
        own = scores_BSTR.gather(-1, index)
        if streams.pointer is not None:
            own = own + streams.pointer[:, None].to(own)
        return torch.cat((scores_BSTR[..., : vocabulary.num_base_tokens], own), dim=-1)


def _pointer_weights(
    scores_BHTM: torch.Tensor,
    relations: Relations,
    gates_BTG: torch.Tensor,
    own_BM: torch.Tensor,
    position_T: torch.Tensor,
) -> torch.Tensor:
    """Returns the weights of a pointer's attention from scores without relations: (B, H, T, M)."""
    matrices = relations.of_sources(scores_BHTM.shape[0])
    scores_BHTM = add_relations_(scores_BHTM, gates_BTG, matrices)
    hidden_BTM = (own_BM < 0)[:, None]
    if position_T.shape[0] > 1:  # unused places of static caches hold no symbol
        place_M = torch.arange(own_BM.shape[1], device=own_BM.device)
        hidden_BTM = hidden_BTM | (place_M > position_T[:, None])
    scores_BHTM = scores_BHTM.masked_fill(hidden_BTM[:, None], -torch.inf)
    return F.pad(scores_BHTM, (0, 1)).softmax(-1)[..., :-1]


class AnswerMemory(SymbolMemory):
    """What a model with a source knows of symbols where answers may have others than the source.

    Of those, nothing was found: they have a class, and what the answer has of them by itself.

    Args:
        config: of the model.
        num_heads: H, of the decoder's attention to the source.
    """

    num_histories = 2

    def __init__(self, config: PreTrainedConfig, num_heads: int):
        super().__init__(config, num_heads)
        self.text = TextMemory(config, num_heads)

    @staticmethod
    def follow(streams: Streams, source: Streams, text: TextSymbols) -> Streams:
        followed = SymbolMemory.follow(streams, source, text)
        assert followed.related is not None
        alone = in_text(TextMemory.go_on(streams, text))
        return followed.but(related=replace(followed.related, text=alone))

    def enter(self, streams: Streams) -> torch.Tensor | None:
        entered = super().enter(streams)
        return None if entered is None else entered + self.text.enter(streams)

    def point(
        self, streams: Streams, masses_BTHS: torch.Tensor | None, states: TextStates | None
    ) -> torch.Tensor:
        points = super().point(streams, masses_BTHS, states)
        return points + self.text.point(streams, None, states).to(points)

    def scores_of_listed(
        self, hidden_BTD: torch.Tensor, table_RD: torch.Tensor, streams: Streams
    ) -> torch.Tensor:
        """Returns the same, and the score of its class for each symbol that the source lacks."""
        own_BTS = super().scores_of_listed(hidden_BTD, table_RD, streams)
        vocabulary, ids_BS = self.config.vocabulary, streams.ids.to(own_BTS.device)
        first = vocabulary.num_base_tokens
        class_BS = vocabulary.rows(ids_BS.clamp(min=0), per_class=1) - first
        scores_BTC = F.linear(hidden_BTD, table_RD[first:])
        index = class_BS.clamp(min=0)[:, None].expand_as(own_BTS)
        assert streams.written is not None
        new_BS = streams.written.to(own_BTS.device).are_new(ids_BS)
        return torch.where(new_BS[:, None], scores_BTC.gather(-1, index), own_BTS)


class RelationalEncoding(SymbolEncoding):
    """A class has one row, which all its symbols share; rows of base tokens come first.

    In a host it may have several, words of the host, which a sample's symbols have in turn.
    """

    name = "relational"
    description = (
        "A model in which a name is only where it stands: attention is told which "
        "positions hold the same name, so renaming a problem renames its answer and changes "
        "nothing else, and symbols can be added after training with `extend_symbols`."
    )
    promises = frozenset({"renaming", "extension"})
    lists_symbols = True
    sees_names = False
    rows_per_class = 1
    rows_in_turn = True
    memories = (SymbolMemory, TextMemory, AnswerMemory)

    def logits(self, scores_BSTR: torch.Tensor, streams: Streams) -> torch.Tensor:
        """Returns logits from scores of base tokens and of the sample's symbols: (B, T, V).

        Symbols that a sample has not got hold `UNUSABLE`.
        """
        sizes = self.vocabulary.num_base_tokens, streams.ids.shape[1]
        base, own = scores_BSTR[:, 0].split(sizes, -1)
        return listed_logits(base, own, streams, self.vocabulary)
