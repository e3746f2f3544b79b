"""Streams: which symbol each one is centred on, and how streams become one view again. Renamings.

Shapes: B batch, S streams, L length, D model width, V vocabulary. A sample's streams are ordered by
first occurrence of their symbols in its input, never by vocabulary id, so that a renamed input runs
the same arithmetic in the same order.
"""

import torch

from .random_numbers import mix


def first_occurrence(ids_BL: torch.Tensor, symbol_BL: torch.Tensor) -> torch.Tensor:
    """Symbols of each row in order of first occurrence, padded with -1.

    Returns (B, S) with S the largest number of distinct symbols in a row, at least 1. Reads one
    number back from the device; tokenizer and collator provide the table where that matters.

    Args:
        ids_BL: token ids.
        symbol_BL: which of them are symbols, and not padding.
    """
    # What is no symbol equals none of them.
    ids = torch.where(symbol_BL, ids_BL, -1)
    equal = ids[:, :, None] == ids[:, None, :]
    first = symbol_BL & ~equal.tril(-1).any(-1)
    rank = first.cumsum(-1) - 1
    width = max(int(first.sum(-1).max()), 1)
    # A column beyond the table takes what is not a first occurrence, and is cut off.
    table = ids.new_full((ids.shape[0], width + 1), -1)
    table.scatter_(1, torch.where(first, rank, width), torch.where(first, ids, -1))
    return table[:, :width]


def own_streams(ids_BL: torch.Tensor, stream_ids_BS: torch.Tensor) -> torch.Tensor:
    """Index of the stream centred on each token, -1 where there is none: (B, L)."""
    match = (ids_BL[:, None, :] == stream_ids_BS[:, :, None]) & (stream_ids_BS >= 0)[:, :, None]
    return torch.where(match.any(1), match.to(torch.int8).argmax(1), -1)


def canonical_renaming(symbol_ids_BS: torch.Tensor, class_V: torch.Tensor) -> torch.Tensor:
    """Rename each sample's symbols by order of first occurrence within their class: (B, V).

    Entry v is the new id of id v. Symbols that a sample lacks follow in the order of their ids, so
    that each row is a bijection.

    Args:
        symbol_ids_BS: symbols by first occurrence, -1 padded.
        class_V: 0 for a base token, else the number of the class, from 1 on.
    """
    b, s = symbol_ids_BS.shape
    vocabulary = class_V.shape[0]
    ids = torch.arange(vocabulary, device=class_V.device)
    # A column beyond the table takes what is padding.
    column = torch.where(symbol_ids_BS >= 0, symbol_ids_BS, vocabulary)
    ranks = (ids + s).expand(b, -1)
    ranks = torch.nn.functional.pad(ranks, (0, 1)).scatter(
        1, column, torch.arange(s, device=ids.device).expand(b, s)
    )[:, :-1]
    return _renaming(ranks + (s + vocabulary) * class_V, class_V)


def random_renaming(keys_B: torch.Tensor, class_V: torch.Tensor) -> torch.Tensor:
    """Rename each sample's symbols at random within their class; entries as above: (B, V)."""
    ids = torch.arange(class_V.shape[0], device=class_V.device)
    # Room for 2**16 classes above 47 random bits.
    ranks = mix(mix(ids) ^ keys_B[:, None]) & ((1 << 47) - 1)
    ranks = torch.where(class_V == 0, ids, ranks)
    return _renaming(ranks + (class_V << 47), class_V)


def _renaming(ranks_BV: torch.Tensor, class_V: torch.Tensor) -> torch.Tensor:
    """Give the n-th id of a class, in the order of its ids, to the member of n-th rank."""
    order_BV = ranks_BV.argsort(dim=-1, stable=True)
    targets = class_V.argsort(stable=True).expand_as(order_BV)
    return torch.zeros_like(order_BV).scatter(1, order_BV, targets)


def stream_weights(stream_ids_BS: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Weights of the mean over a sample's k streams: 1/k for its own, 0 for padding; (B, S).

    A sample without symbols keeps one stream (2601.23169, Appendix A, edge case).
    """
    active = stream_ids_BS >= 0
    first = torch.arange(active.shape[1], device=active.device) == 0
    active = active | (first & ~active.any(1, keepdim=True))
    return active.to(dtype) / active.sum(1, keepdim=True).to(dtype)


def mean_streams(x: torch.Tensor, weights_BS: torch.Tensor) -> torch.Tensor:
    """Weighted mean over streams of (B, S, ...): (B, ...)."""
    if x.shape[1] == 1:
        return x[:, 0]
    return torch.einsum("bs,bs...->b...", weights_BS, x)


def aggregate(
    hidden: torch.Tensor, stream_BL: torch.Tensor, weights_BS: torch.Tensor
) -> torch.Tensor:
    """One view of all streams: their mean, at a symbol its own stream (Algorithm 2).

    Args:
        hidden: of each stream: (B, S, L, ...).
        stream_BL: index of the stream of the symbol at each position, -1 for none.
        weights_BS: of the mean.

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
    """(B, S, L, D) -> (B, L, S * D): length stays dimension 1, by which static caches are sized."""
    b, s, length, d = hidden_BSLD.shape
    return hidden_BSLD.transpose(1, 2).reshape(b, length, s * d)


def unpack_streams(packed: torch.Tensor, width: int) -> torch.Tensor:
    """(B, L, S * D) -> (B, S, L, D) for streams of model width `width`."""
    b, length, total = packed.shape
    return packed.view(b, length, total // width, width).transpose(1, 2)


__all__ = [
    "aggregate",
    "canonical_renaming",
    "first_occurrence",
    "mean_streams",
    "own_streams",
    "pack_streams",
    "random_renaming",
    "stream_weights",
    "unpack_streams",
]
