"""Reads the next token of a generation by a decoder alone, in few operations.

Beside a small model, what is told of one token takes as long as some of its layers. A prompt is
read as [`SymbolLayer.go_on`] does it, by the places of symbols in their list. What follows has no
symbols but the prompt's: there the numbers that the cache keeps tell as much, and none is new.

Shapes: B batch, M length of the text so far, H heads, K head width, S listed symbols, V vocabulary,
N all symbols of the vocabulary.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache

from .checks import can_look
from .encoding import TextStates
from .encoding_relational import TextMemory
from .new_symbols import TextSoFar, numbers_of_ids, places_in_list
from .relations import (
    MANY_SYMBOLS,
    MadeOnce,
    Relations,
    SymbolRelations,
    TextRelations,
    TextSymbols,
    num_slots,
    symbols_there,
)
from .streams import Streams


@dataclass(frozen=True)
class TokenRelations(Relations):
    """Relations of one new token to its text, by the numbers that a cache keeps.

    Each symbol of the text is among those listed, so that numbers need no place in the list.

    Attributes:
        symbols: of each position, numbers of its symbol and of the last one before it, 0 for none,
            and another one: (B, 1, M, 3).
        last: number of the last symbol up to the token: (B, 1, 1, 1).
        listed: numbers of those listed, -1 padded: (B, 1, 1, S).
        dtype: of slots and matrices.
    """

    symbols: torch.Tensor
    last: torch.Tensor
    listed: torch.Tensor
    dtype: torch.dtype
    made: MadeOnce = field(default_factory=lambda: MadeOnce())

    @property
    def device(self) -> torch.device:
        return self.symbols.device

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self.symbols.shape[2], 2 * num_slots(self.listed.shape[3])

    @property
    def queries(self) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        last_B1S, number = self._slots(self.last)[:, 0], self.shape[2] // 2
        return F.pad(last_B1S, (0, number)), F.pad(last_B1S, (number, 0))

    @property
    def keys(self) -> torch.Tensor:  # type: ignore[override]
        return self._slots(self.symbols[:, 0, :, :2, None]).flatten(2)

    def _slots(self, numbers: torch.Tensor) -> torch.Tensor:
        """Returns 1 in the slot of each number, which are the last dimension: (..., slots)."""
        number = self.listed.shape[3]
        return F.pad((numbers == self.listed).to(self.dtype), (0, num_slots(number) - number))

    def there(self) -> torch.Tensor:
        """Returns 1 where a position has a symbol: (B, 1, M, S)."""
        return (self.symbols[..., :1] == self.listed).to(self.dtype)

    def nowhere(self) -> torch.Tensor:
        """Returns which positions have none: (B, 1, 1, M)."""
        return self._columns[:, :, :1] == 0

    def _lines(self) -> torch.Tensor:
        return (self._columns[:, :, :2] == self.last).to(self.dtype)

    @property
    def _columns(self) -> torch.Tensor:
        return self.made.once("columns", lambda: self.symbols.mT)

    def _matrices(self) -> tuple[torch.Tensor, ...]:
        return self.lines.split(1, 2)

    def _part(self, queries: slice, keys: slice | torch.Tensor) -> Self:
        return replace(self, symbols=self.symbols[:, :, keys], made=MadeOnce())

    def point(self, memory: TextMemory, streams: Streams, states: TextStates) -> torch.Tensor:
        """Does what `TextMemory.point` does for one token, in few operations."""
        assert states.cache is not None
        within, (rows, _, _) = self.to(states.hidden.device), states.hidden.shape
        state_B1D, one = memory.norm(states.hidden), (rows, -1, 1, memory.head_dim)
        key_BH1K = memory.key_proj(state_B1D).view(one)
        none = streams.once("no values", lambda: key_BH1K[..., :0])
        key_BHMK, _ = states.cache.update(key_BH1K, none, states.slot + 1)
        scores_BH1M = memory.query_proj(state_B1D).view(one) @ key_BHMK.mT * memory.head_dim**-0.5
        gates = memory.gates(state_B1D).view(rows, 2, -1, 1, 1).unbind(1)
        for gate, relation in zip(gates, within.matrices, strict=True):
            scores_BH1M.addcmul_(gate, relation)
        scores_BH1M.masked_fill_(within.nowhere(), -torch.inf)
        weights_BH1M = F.pad(scores_BH1M, (0, 1)).softmax(-1)[..., :-1]
        strength_1H = streams.once("strength", lambda: memory()[1].to(weights_BH1M)[None])
        weights_B11M = strength_1H @ weights_BH1M.transpose(1, 2)
        return (weights_B11M @ within.there())[:, 0]


class TokenReader:
    """What a generation reads on with, token by token, in few operations.

    It is for texts that have all symbols of their list and no others, as prompts have, and for
    dynamic caches. There a symbol's number tells as much as its place in the list.

    Args:
        text: the prompt.
        streams: over it, with the list.
        slot: where the cache keeps numbers.
    """

    def __init__(self, text: TextSoFar, streams: Streams, slot: int):
        vocabulary, kept = text.vocabulary, streams.kept
        assert kept is not None
        self.streams, self.slot = streams, slot
        self.numbers_V = numbers_of_ids(vocabulary, text.symbols.device, kept)
        number_BS = vocabulary.symbol_numbers(streams.ids).masked_fill(streams.ids < 0, -1)
        self.listed_B11S = number_BS[:, None, None]
        self.places_BN = None
        if vocabulary.in_turn:  # the row of a symbol is that of its place in the list
            self.places_BN = places_in_list(streams.ids, vocabulary, kept)
        self.none = text.symbols[:, None, :1, :0]

    @classmethod
    def behind(
        cls,
        text: TextSoFar,
        symbols: TextSymbols,
        streams: Streams,
        cache: Cache | None,
        slot: int,
    ) -> "TokenReader | None":
        """Returns what reads on behind a prompt; None where numbers would not tell all.

        Args:
            symbols: of the text, by their places in the list.
            cache: the text's.
        """
        ids_BS, own_BM = streams.ids, symbols.own
        if cache is None or cache.is_compileable or not can_look(own_BM):
            return None
        if ids_BS.shape[1] >= MANY_SYMBOLS or streams.renaming is not None:
            return None
        there_BS = symbols_there(own_BM, ids_BS.shape[1], torch.float32) > 0
        unlisted_BM = (text.symbols[..., 0] > 0) & (own_BM < 0)
        all_listed = torch.equal(there_BS, ids_BS >= 0) and not unlisted_BM.any()
        return cls(text, streams, slot) if all_listed and there_BS[:, 0].all() else None

    def __call__(self, ids_B1: torch.Tensor, cache: Cache) -> Streams:
        """Returns the streams over the next token of each row."""
        past = cache.get_seq_length()
        number_B111 = self.numbers_V[ids_B1.view(-1, 1, 1, 1)]
        before_B111 = cache.layers[self.slot].keys[:, :, past - 1 :, 2:]
        last_B111 = torch.where(number_B111 > 0, number_B111, before_B111)
        here_B113 = torch.cat((number_B111, before_B111, last_B111), -1)
        symbols_B1M3, _ = cache.update(here_B113, self.none, self.slot)
        dtype = self.streams.weights.dtype
        within = TokenRelations(symbols_B1M3, last_B111, self.listed_B11S, dtype)
        text = TextRelations(within, None, torch.arange(past, past + 1, device=ids_B1.device))
        own_B1 = ids_B1  # which nothing asks for
        if self.places_BN is not None:
            own_B1 = self.places_BN.gather(1, number_B111[:, 0, 0])
        return replace(self.streams, own=own_B1, related=SymbolRelations(within, text=text))
