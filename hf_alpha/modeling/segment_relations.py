"""Relations between segments of a text: Figure 1 and the matrix G of Roche (2023), Section 2.1.

An element is a token or a segment. It covers the positions from its start to its end, both
included; a token's start is its end. The relation of element i to element j is one of a finite
alphabet: a clipped distance where the two have no position in common, else one of nine names.

Shapes: B batch, N elements, R relations, H heads, K head width.
"""

from typing import NamedTuple

import torch
from torch import nn

from .checks import can_look

RELATIONS = ("X.", "<~|", "<~", ">|~", "||", "<|~", ">~", ">~|", ".X")
"""Relations of two different elements that share positions, seen from i.

`||`: both cover the same positions. `<`: i is smaller and lies within j, at its left end (`<|~`),
at its right end (`<~|`), or strictly inside (`<~`). `>`: j lies within i, likewise. `.X`: j begins
inside i and ends behind it; `X.`: j begins before i and ends inside it. The index of a name is
3 * (1 + sign(start_j - start_i)) + 1 + sign(end_j - end_i), so that 8 minus it is the converse's.
"""


def num_relations(max_distance: int) -> int:
    """Returns how many relations there are, R: the clipped distances and the names."""
    return 2 * max_distance + 1 + len(RELATIONS)


def relation_ids(starts_BN: torch.Tensor, ends_BN: torch.Tensor, max_distance: int) -> torch.Tensor:
    """Returns numbers of the relations of each element to each: (B, N, N), rows i and columns j.

    An element has distance 0 to itself. If j begins behind the end of i, the distance is
    start_j - end_i; if j ends before i begins, it is start_j - start_i. So the two distances of a
    pair need not be each other's opposite: the one to a segment before counts from its start. This
    is how the paper's example counts, in 79 of its 81 cells.
    """
    start_i, start_j = starts_BN[:, :, None], starts_BN[:, None]
    end_i, end_j = ends_BN[:, :, None], ends_BN[:, None]
    behind, before = start_j > end_i, end_j < start_i
    distance = torch.where(behind, start_j - end_i, start_j - start_i)
    distance = distance.clamp(-max_distance, max_distance) + max_distance
    named = 3 * (start_j - start_i).sign() + (end_j - end_i).sign() + 4
    itself = torch.eye(starts_BN.shape[1], dtype=torch.bool, device=starts_BN.device)
    return torch.where(behind | before | itself, distance, named + 2 * max_distance + 1)


class Segments(NamedTuple):
    """The segments of a batch; each tensor is (B, S).

    Attributes:
        ids: number of the label plus 1; 0 for padding.
        starts, ends: columns of the first and the last token.
    """

    ids: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor

    @classmethod
    def of(
        cls,
        ids: torch.Tensor | None,
        starts: torch.Tensor | None,
        ends: torch.Tensor | None,
        rows: int,
        tokens: int,
        num_labels: int,
    ) -> "Segments | None":
        """Returns the segments of a model's input, or None where it has none.

        Args:
            ids, starts, ends: as the attributes, or None.
            rows, tokens: numbers of rows and of columns of the text, B and T.

        Raises:
            ValueError: one of the three is missing, or no text of this shape can have them.
        """
        if ids is None and starts is None and ends is None:
            return None
        if ids is None or starts is None or ends is None:
            raise ValueError("give segment_ids, segment_starts and segment_ends, or none of them")
        segments = cls(ids, starts, ends)
        _check_shapes(segments, rows)
        if can_look(ids) and ids.numel():
            _check_values(segments, tokens, num_labels)
        return segments if ids.shape[1] else None

    @classmethod
    def nothing(cls, rows: int, device: torch.device) -> "Segments":
        """Returns one segment of padding for each row.

        In training without segments every weight takes part in a step so, as training in several
        processes needs it.
        """
        zeros = torch.zeros(rows, 1, dtype=torch.long, device=device)
        return cls(zeros, zeros, zeros)

    def starting(self, values: torch.Tensor) -> torch.Tensor:
        """Returns values of tokens, (B or 1, T), then those of segments' first tokens: (B, N)."""
        return self._behind(values, self.starts)

    def ending(self, values: torch.Tensor) -> torch.Tensor:
        """Returns values of tokens, (B or 1, T), then those of segments' last tokens: (B, N)."""
        return self._behind(values, self.ends)

    def shown(self, mask_BT: torch.Tensor | None, tokens: int) -> torch.Tensor:
        """Returns which elements are no padding: (B, N).

        Args:
            mask_BT: 1 for tokens, 0 for padding; None for no padding.
            tokens: how many tokens a row has, T.
        """
        segments = self.ids > 0
        mask = segments.new_ones(segments.shape[0], tokens) if mask_BT is None else mask_BT > 0
        return torch.cat((mask, segments), dim=1)

    def _behind(self, values: torch.Tensor, places_BS: torch.Tensor) -> torch.Tensor:
        values = values.expand(places_BS.shape[0], -1)
        return torch.cat((values, values.gather(1, places_BS)), dim=1)


def _check_shapes(segments: Segments, rows: int) -> None:
    shapes = [tuple(value.shape) for value in segments]
    if segments.ids.dim() != 2 or shapes[0][0] != rows or any(x != shapes[0] for x in shapes):
        raise ValueError(
            f"segment_ids, segment_starts and segment_ends are {', '.join(map(str, shapes))}, and "
            f"there are {rows} rows of tokens: give a number of each for every segment, and 0 for "
            "padding"
        )


def _check_values(segments: Segments, tokens: int, num_labels: int) -> None:
    smallest, largest = (int(x) for x in segments.ids.aminmax())
    if smallest < 0 or largest > num_labels:
        raise ValueError(
            f"segment_ids lie between {smallest} and {largest}, but the model knows {num_labels} "
            "segment_labels, numbered from 1: model and tokenizer must come from the same folder"
        )
    outside = (segments.starts < 0) | (segments.ends >= tokens)
    outside |= segments.starts > segments.ends
    if outside.any():
        row, column = outside.nonzero()[0].tolist()
        raise ValueError(
            f"segment {column} of row {row} goes from token {int(segments.starts[row, column])} to "
            f"{int(segments.ends[row, column])}: give columns of the {tokens} tokens of a row, the "
            "first one first"
        )


class RelationVectors(nn.Module):
    """A vector for each relation, shared by all heads as in Shaw et al. (2018): (R, K)."""

    def __init__(self, max_distance: int, head_size: int):
        super().__init__()
        self.vectors = nn.Embedding(num_relations(max_distance), head_size)

    def forward(self, query_BHNK: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """Returns what relations add to the scores of attention, before scaling: (B, H, N, N).

        This is the second term of Equation 6. The product of each query with all R vectors is
        made first, and each pair takes its own from there: no vector per pair is ever stored.

        Args:
            relations: numbers by `relation_ids`: (B or 1, N, N).
        """
        number = self.vectors.num_embeddings
        vectors_RK = self.vectors(torch.arange(number, device=query_BHNK.device))
        products_BHNR = query_BHNK @ vectors_RK.to(query_BHNK.dtype).T
        batch, heads = query_BHNK.shape[:2]
        return products_BHNR.gather(-1, relations[:, None].expand(batch, heads, -1, -1))
