"""Symbols that a text has not got so far, and how a decoder writes them.

The head has a row more for each class: that the next token is a symbol of this class, and none of
those that the text has. Its probability goes to the first symbol of the class that is unused. So
what is predicted is a distribution over texts up to the names of their symbols: a renamed text has
the same probability, and those of all next tokens add up to 1. The text of a decoder with a source
begins with the source.

Shapes: B batch, T tokens at hand, M length of the text so far, N all symbols of the vocabulary in
the order of their ids, C classes, D width, V vocabulary.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache

from .checks import can_look
from .masks import shown_tokens
from .relations import MadeOnce, Movable, TextSymbols, first_positions
from .symbol_vocabulary import SymbolVocabulary

# Logit of a column that a sample cannot use: out of reach of any other, and finite in all dtypes.
UNUSABLE = -1e4


@dataclass(frozen=True)
class TextSoFar:
    """What a decoder has written, with what its cache holds.

    Symbols have numbers from 1 on, in the order of their ids; 0 stands for none.

    Attributes:
        symbols: of each position, the symbol of its token, the last one before it, and the last one
            up to it: (B, M, 3). Unused places of static caches have none.
        here: the same of the tokens at hand: (B, T, 3).
        positions: places of these in the text: (T,).
        vocabulary: of the model.
    """

    symbols: torch.Tensor
    here: torch.Tensor
    positions: torch.Tensor
    vocabulary: SymbolVocabulary

    @classmethod
    def of(
        cls,
        ids_BT: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Cache | None,
        slot: int,
        vocabulary: SymbolVocabulary,
        kept: MadeOnce | None = None,
    ) -> "TextSoFar":
        """Returns the text of the tokens at hand; arguments as of `symbols_so_far`.

        Args:
            kept: what a generation keeps.
        """
        if kept is not None and kept.by_token:
            number_BT = numbers_of_ids(vocabulary, ids_BT.device, kept)[ids_BT]
        else:
            number_BT = vocabulary.symbol_numbers(ids_BT)
        here_BT, position_T, past = tokens_at_hand(number_BT, 0, mask, cache)
        if cache is None or (isinstance(past, int) and not past):
            before_B1 = here_BT.new_zeros(here_BT.shape[0], 1)
        else:
            last_BM = cache.layers[slot].keys[:, 0, :, 2].to(here_BT.device)
            place = slice(past - 1, past) if isinstance(past, int) else (past - 1).view(1)
            before_B1 = last_BM[:, place]  # that of no token, the last one, is none
        if here_BT.shape[1] == 1:
            behind_BT, last_BT = before_B1, torch.where(here_BT > 0, here_BT, before_B1)
        else:
            all_BT = torch.cat((before_B1, here_BT), 1)
            place_T = torch.arange(all_BT.shape[1], device=all_BT.device)
            last_BT = all_BT.gather(1, torch.where(all_BT > 0, place_T, 0).cummax(1).values)
            behind_BT, last_BT = last_BT[:, :-1], last_BT[:, 1:]
        here_BT3 = torch.stack((here_BT, behind_BT, last_BT), -1)
        return cls(keep_states(here_BT3, cache, slot), here_BT3, position_T, vocabulary)

    def listed(self, ids_BS: torch.Tensor, kept: MadeOnce | None = None) -> TextSymbols:
        """Returns the same by the index of symbols in a list, -1 padded.

        Args:
            kept: what a generation with this list keeps.
        """
        kept = MadeOnce() if kept is None else kept
        index_BN = places_in_list(ids_BS, self.vocabulary, kept)
        all_BM3, here_BT3 = (
            index_BN.gather(1, x.flatten(1)).view_as(x) for x in (self.symbols, self.here)
        )
        (own_BM, behind_BM, _), (here_BT, _, last_BT) = all_BM3.unbind(-1), here_BT3.unbind(-1)
        return TextSymbols(own_BM, here_BT, self.positions, behind_BM, last_BT)

    def written(self, source_ids_BS: torch.Tensor | None = None) -> "WrittenSymbols":
        """Returns which symbols there are, up to each of the tokens at hand.

        Args:
            source_ids_BS: those of a source by first occurrence, -1 padded, which stand before it.
        """
        first_BN = first_positions(self.symbols[..., 0] - 1, self.vocabulary.num_symbols)
        if source_ids_BS is not None:
            before_BS = torch.arange(-source_ids_BS.shape[1], 0, device=first_BN.device)
            # A column beyond the table takes what is padding, and is cut off.
            column_BS = self.vocabulary.symbol_index(source_ids_BS)
            before_BS = before_BS.expand_as(column_BS)
            first_BN = F.pad(first_BN, (0, 1)).scatter(1, column_BS, before_BS)[:, :-1]
        return WrittenSymbols(first_BN, self.positions, self.vocabulary)


def places_in_list(
    ids_BS: torch.Tensor, vocabulary: SymbolVocabulary, kept: MadeOnce
) -> torch.Tensor:
    """Returns the index of each number's symbol among those listed, -1 for none: (B, N + 1)."""

    def of_list() -> torch.Tensor:
        number_BS = vocabulary.symbol_numbers(ids_BS)  # padding is none, the first column
        index_S = torch.arange(ids_BS.shape[1], device=ids_BS.device)
        none_BN = index_S.new_full((ids_BS.shape[0], vocabulary.num_symbols + 1), -1)
        index_BN = none_BN.scatter(1, number_BS, index_S.expand_as(number_BS))
        return index_BN.index_fill(1, index_S[:1], -1)

    return kept.once(("listed", ids_BS.shape[0]), of_list)


def numbers_of_ids(
    vocabulary: SymbolVocabulary, device: torch.device, kept: MadeOnce
) -> torch.Tensor:
    """Returns the numbers of all ids' symbols, a table that a generation keeps: (V,)."""
    ids_V = partial(torch.arange, vocabulary.size, device=device)
    return kept.once("numbers", lambda: vocabulary.symbol_numbers(ids_V()))


def symbols_so_far(
    own_BT: torch.Tensor, mask: torch.Tensor | None, cache: Cache | None, slot: int
) -> TextSymbols:
    """Returns which symbols a decoder has written, with what its cache holds.

    Args:
        own_BT: index of the symbol at each token, padding among them, without those that the cache
            holds, -1 for none.
        mask: 1 for tokens, 0 for padding: (B, M); or as it is prepared for attention.
        cache: of the decoder's attention to itself, which keeps those at hand as well.
        slot: where it keeps them.

    Raises:
        ValueError: the cache has no such slot, and gets none.
    """
    own_BT, position_T, _ = tokens_at_hand(own_BT, -1, mask, cache)
    # What static caches hold behind the last token comes too late to count.
    own_BM = own_BT if cache is None else keep_states(own_BT[..., None], cache, slot)[..., 0]
    return TextSymbols(own_BM, own_BT, position_T, ends=cache is None or not cache.is_compileable)


def tokens_at_hand(
    x_BT: torch.Tensor, none: int, mask: torch.Tensor | None, cache: Cache | None
) -> tuple[torch.Tensor, torch.Tensor, int | torch.Tensor]:
    """Returns what tokens have, places of the tokens among all, and how many a cache holds.

    Args:
        none: what padding has; further arguments as of `symbols_so_far`.
    """
    past = 0 if cache is None else cache.get_seq_length()
    length, device = x_BT.shape[1], x_BT.device
    if isinstance(past, int):
        position_T = torch.arange(past, past + length, device=device)
    else:
        position_T = torch.arange(length, device=device) + past
    if mask is not None:
        x_BT = torch.where(shown_tokens(mask, position_T), x_BT, none)
    return x_BT, position_T, past


def keep_states(x_BTX: torch.Tensor, cache: Cache | None, slot: int) -> torch.Tensor:
    """Returns what belongs to all tokens so far, (B, M, X); arguments as of `symbols_so_far`."""
    if cache is None:
        return x_BTX
    if slot >= len(cache.layers) and cache.layer_class_to_replicate is None:
        raise ValueError(
            f"past_key_values has {len(cache.layers)} layers, and none to keep symbols in: "
            "give a DynamicCache() without a configuration, or one with that of "
            "model.config.get_text_config(decoder=True)"
        )
    states = x_BTX[:, None]
    return cache.update(states, states[..., :0], slot)[0][:, 0]


@dataclass(frozen=True)
class WrittenSymbols(Movable):
    """Which symbols a decoder's text has, up to each of its tokens at hand.

    Attributes:
        first: where each symbol stands first, the length of the text for those that do not, below
            0 for those of a source: (B, N).
        positions: places of the tokens at hand: (T,).
        vocabulary: of the model.
    """

    first: torch.Tensor
    positions: torch.Tensor
    vocabulary: SymbolVocabulary

    @property
    def written_BTN(self) -> torch.Tensor:
        """Whether each symbol stands in the text up to each token: (B, T, N)."""
        return self.first[:, None] <= self.positions[:, None]

    def by_first_occurrence(self) -> torch.Tensor:
        """Returns the text's symbols in that order, -1 padded: (B, S), S at least 1.

        S is how many a text has at most, read back from the device where that costs nothing, or
        how many there are.
        """
        order_BN = self.first.argsort(-1)
        there_BN = self.first.gather(1, order_BN) <= self.positions[-1]
        number = self.first.shape[1]
        if can_look(self.first):
            number = max(int(there_BN.sum(-1).max()), 1)
        ids_BN = torch.where(there_BN, self.vocabulary.symbol_ids(order_BN), -1)
        return ids_BN[:, :number]

    def are_new(self, ids_BS: torch.Tensor) -> torch.Tensor:
        """Returns which of the listed symbols (-1 padded) are not of a source: (B, S)."""
        index_BS = self.vocabulary.symbols_before(ids_BS.clamp(min=0))
        return (ids_BS >= 0) & (self.first.gather(1, index_BS) >= 0)

    def first_unused(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the first symbol of each class that is unused, and whether there is one.

        Ids and truth values, each (B, T, C). Where there is none, it is the first of the class.
        """
        number, length = self.first.shape[1], len(self.positions)
        index_N = torch.arange(number, device=self.first.device)
        class_N = self.vocabulary.classes(self.vocabulary.symbol_ids(index_N))
        # From which of the tokens on each symbol is there.
        since_BN = (self.first - self.positions[0]).clamp(0, length)
        places, exists = [], []
        for member_N in (class_N == i + 1 for i in range(len(self.vocabulary.ranges))):
            # From where on all members up to it are; as many as are there stand before the next.
            all_BN = torch.where(member_N, since_BN, 0).cummax(-1).values
            counts = all_BN.new_zeros(all_BN.shape[0], length + 1)
            counts = counts.scatter_add(1, all_BN, torch.ones_like(all_BN)).cumsum(-1)
            exists.append(counts[:, :length] < number)
            first = member_N.to(torch.int8).argmax()
            places.append(torch.where(exists[-1], counts[:, :length], first))
        ids_BTC = self.vocabulary.symbol_ids(torch.stack(places, -1))
        return ids_BTC, torch.stack(exists, -1)

    def labels(self, labels_BT: torch.Tensor) -> torch.Tensor:
        """Returns labels in which what is new at a token is the first unused symbol of its class.

        Args:
            labels_BT: of the next token at each of those at hand, -100 where there is none.
        """
        vocabulary = self.vocabulary
        ids_BTC, _ = self.first_unused()
        symbol_BT = vocabulary.is_symbol(labels_BT)
        number_BT = torch.where(symbol_BT, vocabulary.classes(labels_BT) - 1, 0)
        unused_BT = ids_BTC.gather(-1, number_BT[..., None])[..., 0]
        return torch.where(self.is_new(labels_BT), unused_BT, labels_BT)

    def is_new(self, labels_BT: torch.Tensor) -> torch.Tensor:
        """Returns which labels are symbols that the text up to their tokens has not got: (B, T)."""
        symbol_BT = self.vocabulary.is_symbol(labels_BT)
        index_BT = torch.where(symbol_BT, self.vocabulary.symbols_before(labels_BT), 0)
        return symbol_BT & (self.first.gather(1, index_BT) > self.positions)

    def complete(self, logits_BTV: torch.Tensor, new_BTC: torch.Tensor) -> torch.Tensor:
        """Returns logits in which an unused symbol has the score of a new one, or `UNUSABLE`.

        Args:
            logits_BTV: of base tokens and of symbols that the text has.
            new_BTC: scores of a new symbol of each class.
        """
        written_BTN = self.written_BTN
        base = written_BTN.new_ones(*written_BTN.shape[:2], self.vocabulary.num_base_rows)
        usable_BTV = self.vocabulary.join(base, written_BTN, dim=-1)
        logits_BTV = logits_BTV.masked_fill(~usable_BTV, UNUSABLE)
        ids_BTC, exists_BTC = self.first_unused()
        # Where no symbol is left, a column gets what it has.
        new_BTC = torch.where(exists_BTC, new_BTC, logits_BTV.gather(-1, ids_BTC))
        return logits_BTV.scatter(-1, ids_BTC, new_BTC)


class NewSymbols(nn.Module):
    """Rows of the head for symbols that the text has not got, one for each class.

    It has the parameter of a linear layer and is none: quantizers put others in the place of linear
    layers, which know no rows of unit length.

    Args:
        width: D.
        num_classes: C.
    """

    of_symbols = True

    def __init__(self, width: int, num_classes: int):
        super().__init__()
        self.weight = nn.Linear(width, num_classes, bias=False).weight

    def as_linear(self) -> nn.Linear:
        """Returns a linear layer with the same rows, as which they are initialised."""
        rows, width = self.weight.shape
        linear = nn.Linear(width, rows, bias=False, device="meta")
        linear.weight = self.weight
        return linear

    def forward(self, x: torch.Tensor, unit_rows: bool = False) -> torch.Tensor:
        """Returns products of states (..., D) with the rows, or with rows of unit length."""
        # Offloaded weights are only there while this is called.
        return F.linear(x, F.normalize(self.weight, dim=-1) if unit_rows else self.weight)
