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
    own_streams,
    random_renaming,
    rename_columns,
    rename_ids,
    stream_weights,
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


def test_an_absent_stream_leaves_no_trace():
    """Not even one of infinities and what they turn into."""
    ids, streams = torch.tensor([[5, 1]]), torch.tensor([[5, -1]])
    hidden = torch.ones(1, 2, 2, 3)
    hidden[:, 1] = 1e30
    view = aggregate(hidden, own_streams(ids, streams), stream_weights(streams, hidden.dtype))
    assert torch.equal(view, torch.ones(1, 2, 3))


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
