"""Symbols that a text lacks: against loops over its tokens."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache, LlamaConfig, StaticCache

from hf_alpha.modeling.new_symbols import UNUSABLE, TextSoFar, symbols_so_far
from hf_alpha.modeling.symbol_vocabulary import SymbolVocabulary

# Ids 0 to 3 and 7 are base tokens; class a has 4, 5, 9 and class b has 6, 8.
VOCABULARY = SymbolVocabulary(10, {"a": [[4, 6], [9, 10]], "b": [[6, 7], [8, 9]]})
CLASSES = {"a": [4, 5, 9], "b": [6, 8]}
SYMBOLS = [*CLASSES["a"], *CLASSES["b"]]
texts = st.lists(st.integers(0, 9), min_size=1, max_size=12)
sources = st.lists(st.sampled_from(SYMBOLS), unique=True, max_size=4)


def written(ids, past=0, source=None):
    """What a text has, of which the first tokens lie in a cache; a source has other symbols."""
    row = torch.tensor([ids])
    cache = None
    if past:  # as a model does it: symbols first, then the layers
        key = torch.zeros(1, 1, past, 1)
        cache = DynamicCache()
        TextSoFar.of(row[:, :past], None, cache, 1, VOCABULARY)
        cache.update(key, key, 0)
    listed = None if source is None else torch.tensor([[*source, -1]])
    return TextSoFar.of(row[:, past:], None, cache, 1, VOCABULARY).written(listed)


def first_unused(text, kind):
    return next((i for i in CLASSES[kind] if i not in text), None)


@settings(max_examples=100)  # texts that use up a class are rare
@given(texts, st.none() | sources, st.data())
def test_what_a_text_has_against_loops(ids, source, data):
    past = data.draw(st.integers(0, len(ids) - 1))
    found = written(ids, past, source)
    unused, exists = found.first_unused()
    logits, new = torch.randn(1, len(ids) - past, 10), torch.randn(1, len(ids) - past, 2)
    completed = found.complete(logits, new)
    labels = [data.draw(st.sampled_from([-100, *range(10)])) for _ in ids[past:]]
    mapped = found.labels(torch.tensor([labels]))[0].tolist()
    for t, label in enumerate(labels):
        text, expected = [*(source or ()), *ids[: past + t + 1]], logits[0, t].clone()
        for c, (kind, symbols) in enumerate(CLASSES.items()):
            first = first_unused(text, kind)
            assert bool(exists[0, t, c]) == (first is not None)
            for i in symbols:
                expected[i] = expected[i] if i in text else UNUSABLE
            if first is not None:
                assert int(unused[0, t, c]) == first
                expected[first] = new[0, t, c]
            if label in symbols and label not in text:
                label = first
        assert mapped[t] == label
        assert torch.equal(completed[0, t], expected)


@settings(max_examples=30)
@given(texts, sources)
def test_symbols_are_listed_by_first_occurrence(ids, source):
    """Those of a source first, whichever ids they have."""
    found = written(ids, source=source)
    listed = [i for i in dict.fromkeys([*source, *ids]) if i in SYMBOLS] or [-1]
    assert found.by_first_occurrence().tolist() == [listed]
    assert found.are_new(torch.tensor([listed])).tolist() == [
        [i in SYMBOLS and i not in source for i in listed]
    ]


def test_padding_is_no_symbol_whatever_its_id():
    ids, mask = torch.tensor([[4, 4, 5, 1]]), torch.tensor([[0, 0, 1, 1]])
    text = TextSoFar.of(ids, mask, None, 0, VOCABULARY)
    assert text.symbols[..., 0].tolist() == [[0, 0, 2, 0]]


def test_a_cache_without_room_is_refused():
    cache = DynamicCache()
    cache.layer_class_to_replicate = None
    with pytest.raises(ValueError, match="none to keep symbols in"):
        TextSoFar.of(torch.tensor([[4, 1]]), None, cache, 1, VOCABULARY)


@settings(max_examples=30)
@given(texts, st.data())
def test_each_place_has_its_symbol_and_the_last_before_it(ids, data):
    """In one go or in parts, by any cache, and as indices of a list."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(ids)))) | {len(ids)})
    listed = data.draw(st.lists(st.sampled_from(SYMBOLS), unique=True, min_size=1))
    numbers = {None: 0, **{symbol: n for n, symbol in enumerate(sorted(SYMBOLS), start=1)}}
    own = [i if i in SYMBOLS else None for i in ids]
    last = [next((i for i in own[t::-1] if i is not None), None) for t in range(len(ids))]
    columns = own, [None, *last[:-1]], last
    key, layers = torch.zeros(1, 1, 1, 1), LlamaConfig(num_hidden_layers=2)
    for cache in (None, DynamicCache(), StaticCache(layers, max_cache_len=len(ids) + 2)):
        start = 0
        for stop in cuts if cache is not None else [len(ids)]:
            text = TextSoFar.of(torch.tensor([ids[start:stop]]), None, cache, 1, VOCABULARY)
            if cache is not None:
                keys = key.expand(1, 1, stop - start, 1)
                cache.update(keys, keys, 0)
            first, start = start, stop
        found = text.symbols[0, : len(ids)].T.tolist()
        assert found == [[numbers[symbol] for symbol in column] for column in columns]
        assert not text.symbols[:, len(ids) :].any()
        places = text.listed(torch.tensor([[*listed, -1]]))
        own_at, behind, last_at = (
            [listed.index(i) if i in listed else -1 for i in column] for column in columns
        )
        assert places.own[0, : len(ids)].tolist() == own_at
        assert places.behind[0, : len(ids)].tolist() == behind
        assert places.here.tolist() == [own_at[first:]]
        assert places.last.tolist() == [last_at[first:]]


def test_symbols_go_on_from_those_that_a_cache_holds():
    """With padding, which may hold any id, in front."""
    own = torch.tensor([[2, 0, -1, 1, 0]])
    mask = torch.tensor([[0, 1, 1, 1, 1]])
    cache = DynamicCache()
    for first, last in ((0, 3), (3, 4), (4, 5)):
        text = symbols_so_far(own[:, first:last], mask[:, :last], cache, 0)
        assert text.here.tolist() == [[-1, 0, -1, 1, 0][first:last]]
        assert text.own.tolist() == [[-1, 0, -1, 1, 0][:last]]
        assert text.positions.tolist() == [*range(first, last)]
