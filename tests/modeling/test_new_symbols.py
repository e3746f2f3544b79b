"""Symbols that a text lacks: against loops over its tokens."""

import pytest
import torch
from transformers import DynamicCache

from hf_alpha.modeling.new_symbols import TextSoFar, symbols_so_far
from hf_alpha.modeling.symbol_vocabulary import SymbolVocabulary

# Ids 0 to 3 and 7 are base tokens; class a has 4, 5, 9 and class b has 6, 8.
VOCABULARY = SymbolVocabulary(10, {"a": [[4, 6], [9, 10]], "b": [[6, 7], [8, 9]]})


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


def test_padding_is_no_symbol_whatever_its_id():
    ids, mask = torch.tensor([[4, 4, 5, 1]]), torch.tensor([[0, 0, 1, 1]])
    text = TextSoFar.of(ids, mask, None, 0, VOCABULARY)
    assert text.symbols[..., 0].tolist() == [[0, 0, 2, 0]]


def test_a_cache_without_room_is_refused():
    cache = DynamicCache()
    cache.layer_class_to_replicate = None
    with pytest.raises(ValueError, match="none to keep symbols in"):
        TextSoFar.of(torch.tensor([[4, 1]]), None, cache, 1, VOCABULARY)


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
