import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds

from hf_alpha.modeling.symbols import (
    aggregate,
    canonical_renaming,
    first_occurrence,
    mean_streams,
    own_streams,
    pack_streams,
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
@settings(deadline=None)
def test_first_occurrence(rows):
    ids = torch.tensor(rows)
    assert first_occurrence(ids, ids >= BASE).tolist() == streams_of(rows)


@given(id_rows, st.data())
@settings(deadline=None)
def test_own_streams(rows, data):
    """Also of tokens that are in no stream, as a decoder may see them."""
    streams = streams_of(rows)
    ids = data.draw(st.lists(st.lists(st.integers(-1, 12), min_size=3, max_size=3),
                             min_size=len(rows), max_size=len(rows)))  # fmt: skip
    expected = [
        [streams[b].index(i) if i >= 0 and i in streams[b] else -1 for i in row]
        for b, row in enumerate(ids)
    ]
    own = own_streams(torch.tensor(ids), torch.tensor(streams))
    assert own.tolist() == expected and own.dtype == torch.long


@given(id_rows, st.integers(0, 2))
@settings(deadline=None)
def test_stream_weights(rows, extra):
    streams = torch.tensor(streams_of(rows, extra))
    weights = stream_weights(streams, torch.float64)
    for ids, row in zip(streams.tolist(), weights.tolist(), strict=True):
        k = sum(i >= 0 for i in ids)
        expected = [1 / k if i >= 0 else 0.0 for i in ids] if k else [1.0] + [0.0] * (len(ids) - 1)
        assert row == expected


@given(id_rows, st.integers(0, 2), seeds, st.sampled_from([(3,), (), (2, 3)]))
@settings(deadline=None)
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
@settings(deadline=None)
def test_packing(b, s, length, d):
    hidden = torch.arange(b * s * length * d).view(b, s, length, d)
    packed = pack_streams(hidden)
    assert packed.shape == (b, length, s * d)
    for j in range(s):
        assert torch.equal(packed[..., j * d : (j + 1) * d], hidden[:, j])
    assert torch.equal(unpack_streams(packed, d), hidden)


def test_canonical_renaming_where_symbols_have_small_ids():
    """Present ones come first, in their order; absent ones follow, whatever their ids."""
    classes = torch.tensor([0, 1, 1, 1, 1, 1])
    table = canonical_renaming(torch.tensor([[4, 2, 5, 3], [3, -1, -1, -1]]), classes)
    assert table.tolist() == [[0, 5, 2, 4, 1, 3], [0, 2, 3, 1, 4, 5]]
