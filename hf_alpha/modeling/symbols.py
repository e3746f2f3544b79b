"""Streams: which symbol each one is centred on, and how streams become one view again. Renamings.

Shapes: B batch, S streams, L or T length, D model width, V vocabulary, N all symbols of the
vocabulary, in the order of their ids. A sample's streams are ordered by first occurrence of their
symbols in its input, never by vocabulary id, so that a renamed input runs the same arithmetic in
the same order.
"""

import torch
from torch.nn import functional as F

from .random_numbers import mix
from .relations import in_blocks
from .symbol_vocabulary import SymbolVocabulary

MANY_SYMBOLS = 16
"""From so many on, ids are looked for among sorted ones; it takes less time than to compare all."""


def first_occurrence(ids_BL: torch.Tensor, symbol_BL: torch.Tensor) -> torch.Tensor:
    """Returns the symbols of each row in order of first occurrence, padded with -1.

    Returns (B, S) with S the largest number of distinct symbols in a row, at least 1. Reads one
    number back from the device; tokenizer and collator provide the table where that matters.

    Args:
        symbol_BL: which of them are symbols, and not padding.
    """
    ids = torch.where(symbol_BL, ids_BL, -1)
    # Sorted, equal ids stand side by side, the first one first.
    ordered, place_BL = ids.sort(stable=True)
    begins = F.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0), value=True)
    first = symbol_BL & torch.zeros_like(symbol_BL).scatter(1, place_BL, begins)
    rank = first.cumsum(-1) - 1
    width = max(int(first.sum(-1).max()), 1)
    # A column beyond the table takes what is not a first occurrence, and is cut off.
    table = ids.new_full((ids.shape[0], width + 1), -1)
    table.scatter_(1, torch.where(first, rank, width), torch.where(first, ids, -1))
    return table[:, :width]


@torch.no_grad()
def own_streams(ids_BL: torch.Tensor, stream_ids_BS: torch.Tensor) -> torch.Tensor:
    """Returns the index of the stream centred on each token, -1 where there is none: (B, L).

    Args:
        ids_BL: token ids, none below 0.
        stream_ids_BS: each stream's symbol, -1 padded.
    """
    if stream_ids_BS.shape[1] >= MANY_SYMBOLS and not torch.compiler.is_compiling():
        # Behind the padding are the ids in their order.
        ordered_BS, index_BS = stream_ids_BS.sort(stable=True)
        place_BL = torch.searchsorted(ordered_BS, ids_BL.contiguous()).clamp(
            max=stream_ids_BS.shape[1] - 1
        )
        found_BL = ordered_BS.gather(1, place_BL) == ids_BL
        return torch.where(found_BL, index_BS.gather(1, place_BL), -1)
    index_S1 = torch.arange(stream_ids_BS.shape[1], device=ids_BL.device)[:, None]

    def own(part: slice) -> torch.Tensor:
        same_BSL = ids_BL[:, None, part] == stream_ids_BS[..., None]
        return torch.where(same_BSL, index_S1, -1).amax(1)

    return in_blocks(own, ids_BL.shape[1], ids_BL.device)


def canonical_renaming(symbol_ids_BS: torch.Tensor, vocabulary: SymbolVocabulary) -> torch.Tensor:
    """Rename each sample's symbols by order of first occurrence within their class: (B, N).

    Entry n is the index, from 0 on, of the symbol that symbol n is called. Symbols that a sample
    lacks follow in the order of their ids, so that each row is a bijection.

    Args:
        symbol_ids_BS: symbols by first occurrence, -1 padded.
    """
    b, s = symbol_ids_BS.shape
    count = vocabulary.num_symbols
    index_N = torch.arange(count, device=symbol_ids_BS.device)
    class_N = vocabulary.classes(vocabulary.symbol_ids(index_N))
    # A column beyond the table takes what is padding.
    column_BS = vocabulary.symbol_index(symbol_ids_BS)
    ranks = F.pad(index_N + s, (0, 1)).expand(b, -1)
    first = torch.arange(s, device=index_N.device).expand(b, s)
    ranks = ranks.scatter(1, column_BS, first)[:, :-1]
    return _renaming(ranks + (s + count) * class_N, class_N)


def random_renaming(keys_B: torch.Tensor, vocabulary: SymbolVocabulary) -> torch.Tensor:
    """Rename each sample's symbols at random within their class; entries as above: (B, N)."""
    index_N = torch.arange(vocabulary.num_symbols, device=keys_B.device)
    ids_N = vocabulary.symbol_ids(index_N)
    class_N = vocabulary.classes(ids_N)
    # Room for 2**16 classes above 47 random bits.
    ranks = mix(mix(ids_N) ^ keys_B[:, None]) & ((1 << 47) - 1)
    return _renaming(ranks + (class_N << 47), class_N)


def _renaming(ranks_BN: torch.Tensor, class_N: torch.Tensor) -> torch.Tensor:
    """Give the n-th symbol of a class, in the order of its ids, to the member of n-th rank."""
    order_BN = ranks_BN.argsort(dim=-1, stable=True)
    targets = class_N.argsort(stable=True).expand_as(order_BN)
    return torch.zeros_like(order_BN).scatter(1, order_BN, targets)


def rename_ids(
    ids_BL: torch.Tensor, renaming_BN: torch.Tensor, vocabulary: SymbolVocabulary
) -> torch.Tensor:
    """Rename tokens; base tokens keep their ids: (B, L)."""
    index_BL = vocabulary.symbol_index(ids_BL)
    # A column behind those of the symbols is for base tokens.
    renamed_BL = F.pad(renaming_BN, (0, 1)).gather(1, index_BL)
    symbol = index_BL < vocabulary.num_symbols
    return torch.where(symbol, vocabulary.symbol_ids(renamed_BL), ids_BL)


def rename_columns(
    logits_BTV: torch.Tensor, renaming_BN: torch.Tensor, vocabulary: SymbolVocabulary
) -> torch.Tensor:
    """Undo a renaming: the column of each symbol is that of what it was called; (B, T, V)."""
    # By one split and one merge, base columns and their gradients are copied once.
    pieces = vocabulary.pieces
    columns = logits_BTV.split([stop - start for start, stop, _ in pieces], -1)
    is_symbol = [symbols for _, _, symbols in pieces]
    symbols = torch.cat([x for x, symbol in zip(columns, is_symbol, strict=True) if symbol], -1)
    symbols = symbols.gather(-1, renaming_BN[:, None].expand_as(symbols))
    moved = iter(symbols.split([stop - start for start, stop in vocabulary.runs], -1))
    merged = [next(moved) if s else x for x, s in zip(columns, is_symbol, strict=True)]
    return torch.cat(merged, -1)


def stream_weights(stream_ids_BS: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns weights (B, S) of the mean over k streams: 1/k for a sample's own, 0 for padding.

    A sample without symbols keeps one stream (2601.23169, Appendix A, edge case).
    """
    if stream_ids_BS.shape[1] == 1:
        return torch.ones_like(stream_ids_BS, dtype=dtype)
    active = (stream_ids_BS >= 0).to(dtype)
    active[:, 0] = 1  # padding stands behind symbols: here it is the only stream
    return active / active.sum(1, keepdim=True)


def mean_streams(x: torch.Tensor, weights_BS: torch.Tensor) -> torch.Tensor:
    """Returns the weighted mean over streams of (B, S, ...): (B, ...)."""
    if x.shape[1] == 1:
        return x[:, 0]
    return torch.einsum("bs,bs...->b...", weights_BS, x)


def aggregate(
    hidden: torch.Tensor, stream_BL: torch.Tensor, weights_BS: torch.Tensor
) -> torch.Tensor:
    """Returns one view of all streams: their mean, at a symbol its own stream (Algorithm 2).

    Args:
        hidden: of each stream: (B, S, L, ...).
        stream_BL: index of the stream of the symbol at each position, -1 for none.

    Returns:
        (B, L, ...).
    """
    if hidden.shape[1] == 1:
        return hidden[:, 0]
    features = (1,) * (hidden.dim() - 3)
    index = stream_BL.clamp(min=0).reshape(hidden.shape[0], 1, -1, *features)
    own = hidden.gather(1, index.expand(-1, -1, -1, *hidden.shape[3:]))[:, 0]
    symbol = (stream_BL >= 0).reshape(hidden.shape[0], -1, *features)
    return torch.where(symbol, own, mean_streams(hidden, weights_BS))


def pack_streams(hidden_BSLD: torch.Tensor) -> torch.Tensor:
    """Packs (B, S, L, D) -> (B, L, S * D): static caches are sized by dimension 1, the length."""
    b, s, length, d = hidden_BSLD.shape
    if s == 1:
        return hidden_BSLD[:, 0]
    return hidden_BSLD.transpose(1, 2).reshape(b, length, s * d)


def unpack_streams(packed: torch.Tensor, width: int) -> torch.Tensor:
    """Unpacks (B, L, S * D) -> (B, S, L, D) for streams of model width `width`."""
    b, length, total = packed.shape
    if total == width:
        return packed[:, None]
    return packed.view(b, length, total // width, width).transpose(1, 2)
