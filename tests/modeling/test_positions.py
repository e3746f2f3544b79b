import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from hf_alpha.logic.propositional.notation import PROPOSITIONAL
from hf_alpha.modeling.positions import (
    length_scale,
    sinusoidal,
    token_positions,
    tree,
)

paths = st.lists(st.sampled_from([0, 1]), max_size=61)


def number(path: list[int]) -> int:
    """Heap number of a node, from the steps root -> node."""
    heap = 1
    for step in path:
        heap = 2 * heap + step
    return heap


def reference(path: list[int], width: int) -> list[float]:
    """Shiv & Quirk 2019: a child's vector is its step, then its parent's vector, cut to width."""
    if not path:
        return [0.0] * width
    step = [0.0, 1.0] if path[-1] else [1.0, 0.0]
    pairs = width - width % 2
    return (step + reference(path[:-1], width))[:pairs] + [0.0] * (width % 2)


@given(st.lists(paths, min_size=1, max_size=4), st.integers(1, 140))
def test_tree_is_the_path_by_recursion(rows, width):
    heap = torch.tensor([[number(path) for path in rows]])
    vectors = tree(heap, width, torch.float32)
    assert vectors.shape == (1, len(rows), width)
    assert vectors[0].tolist() == [reference(path, width) for path in rows]


def test_tree_of_padding_and_root_is_zero():
    assert not tree(torch.tensor([[0, 1]]), 8, torch.float32).any()


@pytest.mark.parametrize("width", [64, 128, 161])
def test_trees_deeper_than_a_number_keep_their_nearest_steps(width):
    depth = 100
    heap = PROPOSITIONAL.tree_paths(["!", "&", "a"] + ["!"] * (depth - 2) + ["b"])[-1]
    path = [0, 1] + [0] * (depth - 2)
    vector = tree(torch.tensor([[heap]]), width, torch.float32)[0, 0].tolist()
    assert vector == reference(path[-62:], width)


@given(st.integers(0, 500), st.integers(1, 33))
def test_sinusoidal_is_its_formula(position, width):
    vector = sinusoidal(torch.tensor([[position]]), width, torch.float32)[0, 0].tolist()
    half = (width + 1) // 2
    angles = [position / 10000 ** (i / half) for i in range(half)]
    expected = [*map(math.sin, angles), *map(math.cos, angles)][:width]
    assert vector == pytest.approx(expected, abs=1e-4)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=3),
       st.booleans())  # fmt: skip
def test_positions_count_from_the_first_token(rows, left):
    width = max(pad + length for pad, length in rows)
    mask = []
    for _, length in rows:
        ones, zeros = [1] * length, [0] * (width - length)
        mask.append(zeros + ones if left else ones + zeros)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    positions = token_positions(torch.tensor(mask), ids)
    for row, (_, length) in enumerate(rows):
        kept = [int(p) for p, m in zip(positions[row], mask[row], strict=True) if m]
        assert kept == list(range(length))
    assert token_positions(None, ids).tolist() == [list(range(width))]


@given(st.integers(2, 4000), st.floats(1.0, 20.0))
@example(65, 4.25)
def test_scores_that_grow_with_length_keep_the_weight_of_the_largest(length, gap):
    """One key is ahead of all others by `gap` at 64 tokens: its weight is no less at any length."""
    scale = length_scale(torch.tensor([[63, length - 1]]), torch.float64)
    assert scale.shape == (1, 1, 2, 1) and scale[0, 0, 0, 0] == 1
    weights = [
        1 / (1 + (n - 1) * math.exp(-gap * factor))
        for n, factor in zip((64, length), scale[0, 0, :, 0].tolist(), strict=True)
    ]
    # The others' sum is (n - 1) * (n + 1) ** -power: it falls from n = 64 on if power >= 65 / 63.
    grown = gap / math.log(65) >= 65 / 63
    assert not grown or length < 64 or weights[1] >= weights[0] - 1e-6
