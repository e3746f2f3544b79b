"""Renamings over the whole vocabulary, id by id: what each id is called inside the model."""

from collections.abc import Sequence

import torch

from hf_alpha.modeling.random_numbers import mix

Table = list[int]  # id -> id


def canonical(listed: Sequence[int], classes: Sequence[int]) -> Table:
    """Symbols by order of first occurrence, those that a sample lacks behind them.

    Args:
        listed: the sample's symbols in that order.
        classes: of each id, 0 for base tokens.
    """
    ranks = [listed.index(i) if i in listed else len(listed) + i for i in range(len(classes))]
    return renamed(ranks, classes)


def random(key: torch.Tensor, classes: Sequence[int]) -> Table:
    """Symbols in the order of hashes of their ids."""
    hashes = mix(mix(torch.arange(len(classes))) ^ key) & (2**47 - 1)
    return renamed(hashes.tolist(), classes)


def renamed(ranks: Sequence[int], classes: Sequence[int]) -> Table:
    """The n-th id of a class for the member of n-th rank; base tokens keep theirs."""
    table = list(range(len(classes)))
    for number in set(classes) - {0}:
        members = [i for i, other in enumerate(classes) if other == number]
        for new, old in zip(members, sorted(members, key=lambda i: ranks[i]), strict=True):
            table[old] = new
    return table
