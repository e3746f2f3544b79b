"""Where the texts of a packed row begin, and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache

from hf_alpha.modeling.packed_texts import PackedTexts, packed_texts


def rows(*positions):
    """Ids that are as good as any, and these positions."""
    positions = torch.tensor(positions)
    return torch.ones_like(positions), positions


def found(ids, positions, mask=None, cache=None):
    return packed_texts(ids, mask, positions, cache)


@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6), starts=st.data())
def test_texts_apart_and_together_are_the_row(lengths, starts):
    """A text begins where a position does not follow the one before, wherever it starts."""
    first = [starts.draw(st.integers(0, 9)) for _ in lengths]
    parts = [torch.arange(i, i + n) for i, n in zip(first, lengths, strict=True)]
    for n in range(1, len(parts)):  # one that goes on where another ends is no new text
        parts[n] += 20 * n
    ids, positions = torch.arange(3, 3 + sum(lengths))[None], torch.cat(parts)[None]
    texts = found(ids, positions)
    if len(lengths) == 1:
        assert texts is None
        return
    assert texts.lengths == lengths and texts.mask.sum(1).tolist() == lengths
    apart = texts.apart(ids, 0)
    assert [row[:n].tolist() for row, n in zip(apart, lengths, strict=True)] == [
        part.tolist() for part in ids[0].split(lengths)
    ]
    assert not apart[texts.mask == 0].any()
    assert texts.together(apart).equal(ids)


@pytest.mark.parametrize(
    ("positions", "lengths"),
    [
        ([0, 1, 2, 0, 1, 2], [3, 3]),
        ([0, 1, 2, 7, 8, 9], [3, 3]),  # a gap
        ([5, 4, 3, 2, 1, 0], [1] * 6),  # back
        ([0, 0, 1, 1, 2, 3], [1, 2, 3]),  # no step
    ],
)
def test_a_text_begins_where_a_position_does_not_follow(positions, lengths):
    assert found(*rows(positions)).lengths == lengths


def test_rows_of_a_batch_begin_texts():
    texts = found(*rows([0, 1, 2], [0, 1, 0]))
    assert texts.lengths == [3, 2, 1] and texts.shape == (2, 3)
    ids, _ = rows([0, 1, 2], [0, 1, 2])
    assert PackedTexts.of(torch.tensor([[0, 1, 0]]), 2).lengths == [2, 1, 2, 1]  # one row for all
    assert found(ids, torch.tensor([[4, 5, 6]])) is None


def test_beside_a_mask_the_last_tokens_of_it_are_those_at_hand():
    """What is hidden may have any position, at the end of a mask that has cached tokens too."""
    ids, positions = rows([0, 0, 1, 2])
    shown = torch.tensor([[1, 1, 1, 0, 1, 1, 1]])  # three that are cached, then padding
    assert found(ids, positions, shown) is None
    with pytest.raises(ValueError, match="start again within a row"):
        found(ids, positions, torch.tensor([[0, 1, 1, 1, 1, 1, 1]]))


def test_a_cache_that_holds_tokens_is_as_a_mask():
    ids, positions = rows([0, 1, 0])
    cache = DynamicCache()
    assert found(ids, positions, cache=cache).lengths == [2, 1]
    cache.update(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), 0)
    with pytest.raises(ValueError, match="start again within a row"):
        found(ids, positions, cache=cache)
    assert found(*rows([2, 3, 4]), cache=cache) is None
    prepared = torch.zeros(1, 1, 3, 5)  # as generate makes it
    assert found(ids, positions, prepared, cache) is None
