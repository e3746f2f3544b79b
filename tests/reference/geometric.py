"""Section 2 of Roche (2023), written out pair by pair; no padding."""

import math

import torch
from torch import Tensor

from hf_alpha.modeling.segment_relations import RELATIONS

Span = tuple[int, int]


def relation(one: Span, two: Span, same: bool, limit: int) -> str:
    """The relation of element `one` to element `two` by its name; spans are closed."""
    (start, stop), (first, last) = one, two
    if same:
        return "0"
    if first > stop:
        return f"+{min(first - stop, limit)}"
    if last < start:
        return f"-{min(start - first, limit)}"
    if one == two:
        return "||"
    if start >= first and stop <= last:
        return "<|~" if start == first else "<~|" if stop == last else "<~"
    if first >= start and last <= stop:
        return ">|~" if start == first else ">~|" if stop == last else ">~"
    return ".X" if start < first else "X."


def graph_attention(
    query: Tensor, key: Tensor, value: Tensor, vectors: dict[str, Tensor], spans: list[Span],
    limit: int,
) -> Tensor:  # fmt: skip
    """Equations 1, 2 (with its exponentials) and 6 of one head: (N, K)."""
    width, rows = query.shape[1], []
    for i, one in enumerate(spans):
        scores = []
        for j, two in enumerate(spans):
            g = vectors[relation(one, two, i == j, limit)]
            scores.append((query[i] @ key[j] + query[i] @ g) / math.sqrt(width))
        weights = torch.stack(scores).exp()
        weights = weights / weights.sum()
        rows.append(sum(weights[j] * value[j] for j in range(len(spans))))
    return torch.stack(rows)


def rotation(position: int, width: int, theta: float) -> Tensor:
    """R of Su et al., for halves in place of neighbours, as most implementations rotate: (K, K)."""
    half = width // 2
    matrix = torch.zeros(width, width, dtype=torch.float64)
    for i in range(half):
        angle = position * theta ** (-2 * i / width)
        matrix[i, i] = matrix[i + half, i + half] = math.cos(angle)
        matrix[i, i + half], matrix[i + half, i] = -math.sin(angle), math.sin(angle)
    return matrix


def padded(spans: list[Span], which: int, length: int, depth: int) -> list[int | None]:
    """The sequence x'' of Section 2.3: `depth` places for each position, None where it is empty.

    Args:
        spans: of the elements, positions from 0.
        which: 0 for x''.start, 1 for x''.end.
    """
    places: list[int | None] = [None] * (length * depth)
    for element, span in enumerate(spans):
        block = range(span[which] * depth, (span[which] + 1) * depth)
        free = [place for place in block if places[place] is None]
        places[free[0]] = element  # an IndexError is an element beyond D
    return places


def rotary_attention(
    query: Tensor, key: Tensor, value: Tensor, spans: list[Span], theta: float, depth: int
) -> Tensor:
    """Section 2.3 of one head, in its padded form: (N, K); row r has position floor(r / D)."""
    width, number = query.shape[1], len(spans)
    length = 1 + max(stop for _, stop in spans)
    scores = query.new_zeros(number, number)
    for which in (0, 1):
        places = padded(spans, which, length, depth)
        rows = [(element, place // depth) for place, element in enumerate(places)]
        for i, at_i in rows:
            for j, at_j in rows:
                if i is None or j is None:
                    continue
                one, two = rotation(at_i, width, theta), rotation(at_j, width, theta)
                pair = torch.zeros_like(scores)
                pair[i, j] = 1.0
                scores = scores + pair * ((one @ query[i]) @ (two @ key[j]))
    weights = (scores / (2 * math.sqrt(width))).exp()
    return (weights / weights.sum(1, keepdim=True)) @ value


def relation_names(max_distance: int) -> list[str]:
    """The names of all relations, in the order of their numbers: distances, then `RELATIONS`."""
    distances = range(-max_distance, max_distance + 1)
    return [f"{d:+d}" if d else "0" for d in distances] + list(RELATIONS)
