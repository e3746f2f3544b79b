import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from reference import renamings as reference
from strategies import layouts, ranges_of, seeds

from hf_alpha.modeling import symbols
from hf_alpha.modeling.symbol_vocabulary import SymbolVocabulary
from hf_alpha.modeling.symbols import (
    aggregate,
    canonical_renaming,
    first_occurrence,
    mean_streams,
    own_streams,
    pack_streams,
    random_renaming,
    rename_columns,
    rename_ids,
    stream_weights,
    unpack_streams,
)

BASE = 4
id_rows = st.integers(1, 8).flatmap(
    lambda length: st.lists(
        st.lists(st.integers(0, 12), min_size=length, max_size=length), min_size=1, max_size=4
    )
)


def streams_of(rows: list[list[int]], extra: int = 0) -> list[list[int]]:
    """Distinct symbols by first occurrence, padded with -1 to the longest row, at least 1."""
    found = [list(dict.fromkeys(i for i in row if i >= BASE)) for row in rows]
    width = max([1, *map(len, found)]) + extra
    return [row + [-1] * (width - len(row)) for row in found]


@given(id_rows)
def test_first_occurrence(rows):
    ids = torch.tensor(rows)
    assert first_occurrence(ids, ids >= BASE).tolist() == streams_of(rows)


@given(id_rows, st.data())
def test_own_streams(rows, data):
    """Also of tokens that are in no stream, as a decoder may see them."""
    streams = streams_of(rows)
    ids = data.draw(st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3),
                             min_size=len(rows), max_size=len(rows)))  # fmt: skip
    expected = [
        [streams[b].index(i) if i in streams[b] else -1 for i in row] for b, row in enumerate(ids)
    ]
    for many in (0, 1 << 40):  # among sorted ids, and by a comparison with each
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(symbols, "MANY_SYMBOLS", many)
            own = own_streams(torch.tensor(ids), torch.tensor(streams))
        assert own.tolist() == expected and own.dtype == torch.long


@given(id_rows, st.integers(0, 2))
def test_stream_weights(rows, extra):
    streams = torch.tensor(streams_of(rows, extra))
    weights = stream_weights(streams, torch.float64)
    for ids, row in zip(streams.tolist(), weights.tolist(), strict=True):
        k = sum(i >= 0 for i in ids)
        expected = [1 / k if i >= 0 else 0.0 for i in ids] if k else [1.0] + [0.0] * (len(ids) - 1)
        assert row == expected


@given(id_rows, st.integers(0, 2), seeds, st.sampled_from([(3,), (), (2, 3)]))
def test_aggregate_and_mean(rows, extra, seed, features):
    ids, streams = torch.tensor(rows), torch.tensor(streams_of(rows, extra))
    b, length, s = *ids.shape, streams.shape[1]
    hidden = torch.randn(b, s, length, *features, generator=torch.Generator().manual_seed(seed))
    weights, own = stream_weights(streams, torch.float32), own_streams(ids, streams)
    mean, view = mean_streams(hidden, weights), aggregate(hidden, own, weights)
    for i in range(b):
        active = [j for j in range(s) if streams[i, j] >= 0] or [0]
        for position in range(length):
            expected = sum(hidden[i, j, position] for j in active) / len(active)
            torch.testing.assert_close(mean[i, position], expected)
            if rows[i][position] >= BASE:
                expected = hidden[i, streams[i].tolist().index(rows[i][position]), position]
                assert torch.equal(view[i, position], expected)
            else:
                torch.testing.assert_close(view[i, position], expected)


def test_an_absent_stream_leaves_no_trace():
    """Not even one of infinities and what they turn into."""
    ids, streams = torch.tensor([[5, 1]]), torch.tensor([[5, -1]])
    hidden = torch.ones(1, 2, 2, 3)
    hidden[:, 1] = 1e30
    view = aggregate(hidden, own_streams(ids, streams), stream_weights(streams, hidden.dtype))
    assert torch.equal(view, torch.ones(1, 2, 3))


@given(*[st.integers(1, 4)] * 4)
def test_packing(b, s, length, d):
    hidden = torch.arange(b * s * length * d).view(b, s, length, d)
    packed = pack_streams(hidden)
    assert packed.shape == (b, length, s * d)
    for j in range(s):
        assert torch.equal(packed[..., j * d : (j + 1) * d], hidden[:, j])
    assert torch.equal(unpack_streams(packed, d), hidden)


@given(layouts.filter(any), seeds, st.booleans())
def test_renamings_are_those_of_the_whole_vocabulary(layout, seed, canonical):
    """Ids, logits and gradients bit for bit, from as many columns as there are symbols."""
    generator = torch.Generator().manual_seed(seed)
    size, symbols = len(layout), [i for i, number in enumerate(layout) if number]
    vocabulary = SymbolVocabulary(size, ranges_of(layout))
    if canonical:
        shuffled = torch.tensor(symbols)[torch.randperm(len(symbols), generator=generator)]
        listed = [shuffled[: len(symbols) // 2].tolist(), shuffled.tolist(), []]
        padded = torch.tensor([row + [-1] * (len(symbols) - len(row)) for row in listed])
        renaming = canonical_renaming(padded, vocabulary)
        tables = torch.tensor([reference.canonical(row, layout) for row in listed])
    else:
        keys = torch.randint(-(2**63), 2**63 - 1, (3,), generator=generator)
        renaming = random_renaming(keys, vocabulary)
        tables = torch.tensor([reference.random(key, layout) for key in keys])
    assert renaming.shape == (3, len(symbols))
    assert torch.equal(rename_ids(torch.arange(size).expand(3, -1), renaming, vocabulary), tables)
    logits = torch.randn(3, 2, size, generator=generator).requires_grad_()
    weights = torch.randn(3, 2, size, generator=generator)
    moved = rename_columns(logits, renaming, vocabulary)
    plain = logits.gather(-1, tables[:, None].expand_as(logits))
    assert torch.equal(moved, plain)
    ours, theirs = (torch.autograd.grad((x * weights).sum(), logits)[0] for x in (moved, plain))
    assert torch.equal(ours, theirs)
