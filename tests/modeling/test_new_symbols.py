"""Symbols that a text lacks: against loops over its tokens."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from hf_alpha.modeling.new_symbols import UNUSABLE, TextSoFar, WrittenSymbols
from hf_alpha.modeling.relations import Relations, SymbolRelations, TextMemory, one_hot
from hf_alpha.modeling.streams import Streams
from hf_alpha.modeling.symbol_vocabulary import SymbolVocabulary

# Ids 0 to 3 and 7 are base tokens; class a has 4, 5, 9 and class b has 6, 8.
VOCABULARY = SymbolVocabulary(10, {"a": [[4, 6], [9, 10]], "b": [[6, 7], [8, 9]]})
CLASSES = {"a": [4, 5, 9], "b": [6, 8]}
texts = st.lists(st.integers(0, 9), min_size=1, max_size=12)


def written(ids, past=0):
    """What a text has, of which the first tokens lie in a cache."""
    row = torch.tensor([ids])
    cache = None
    if past:  # as a model does it: symbols first, then the layers
        key = torch.zeros(1, 1, past, 1)
        cache = DynamicCache()
        TextSoFar.of(row[:, :past], None, cache, 1, VOCABULARY)
        cache.update(key, key, 0)
    text = TextSoFar.of(row[:, past:], None, cache, 1, VOCABULARY)
    return WrittenSymbols(text.first_positions(5), text.positions, VOCABULARY)


def first_unused(text, kind):
    return next((i for i in CLASSES[kind] if i not in text), None)


@given(texts, st.data())
def test_what_a_text_has_against_loops(ids, data):
    past = data.draw(st.integers(0, len(ids) - 1))
    found = written(ids, past)
    unused, exists = found.first_unused()
    logits, new = torch.randn(1, len(ids) - past, 10), torch.randn(1, len(ids) - past, 2)
    completed = found.complete(logits, new)
    labels = [data.draw(st.sampled_from([-100, *range(10)])) for _ in ids[past:]]
    mapped = found.labels(torch.tensor([labels]))[0].tolist()
    for t, label in enumerate(labels):
        text, expected = ids[: past + t + 1], logits[0, t].clone()
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
@given(texts)
def test_symbols_are_listed_by_first_occurrence(ids):
    listed = [i for i in dict.fromkeys(ids) if i in CLASSES["a"] + CLASSES["b"]]
    assert written(ids).by_first_occurrence().tolist() == [listed or [-1]]


def test_padding_is_no_symbol_whatever_its_id():
    ids, mask = torch.tensor([[4, 4, 5, 1]]), torch.tensor([[0, 0, 1, 1]])
    text = TextSoFar.of(ids, mask, None, 0, VOCABULARY)
    assert text.symbols.tolist() == [[-1, -1, 1, -1]]


def test_a_cache_without_room_is_refused():
    cache = DynamicCache()
    cache.layer_class_to_replicate = None
    with pytest.raises(ValueError, match="none to keep symbols in"):
        TextSoFar.of(torch.tensor([[4, 1]]), None, cache, 1, VOCABULARY)


def test_gradients_reach_scores_of_new_symbols_and_of_written_ones():
    found = written([4, 1, 6])
    logits = torch.randn(1, 3, 10, requires_grad=True)
    new = torch.randn(1, 3, 2, requires_grad=True)
    found.complete(logits, new).softmax(-1)[..., 5].sum().backward()
    assert new.grad[0, :, 0].abs().min() > 0  # 5 is the first of its class that is unused
    assert logits.grad[0, 0, 4] != 0 and logits.grad[0, 0, 9] == 0


SOURCE = [[0, -1, 1, 0], [-1, 0, 0, -1]]  # which symbol stands where, -1 for none
LAST = [[0, 0, 1, 0], [-1, 0, 0, 0]]  # which stood last
WIDTH, HEADS, NAMES = 8, 2, 2


def text_with_relations():
    """Streams of the texts of `SOURCE`."""
    own, last = torch.tensor(SOURCE), torch.tensor(LAST)
    queries = (one_hot(last, NAMES, torch.float32),)
    behind = torch.tensor([[-1, *row[:-1]] for row in LAST])
    within = Relations.of(queries, own).beside(Relations.of(queries, behind))
    related = SymbolRelations(within, source=own, positions=torch.arange(4))
    return Streams(torch.tensor([[10, 11], [12, -1]]), own, torch.full((2, 2), 0.5), None, related)


@torch.no_grad()
def test_a_silent_memory_begins_with_no_effect_and_learns():
    memory, text = TextMemory(WIDTH, HEADS, silent=True), text_with_relations()
    memory.apply(lambda part: part.reset() if hasattr(part, "reset") else None)
    hidden = torch.randn(2, 4, WIDTH)
    with torch.enable_grad():
        scores = memory.point(hidden, text, None, 0)
        (gradient,) = torch.autograd.grad(scores.sum(), [memory.strength])
    assert not scores.any() and not memory.enter(text).any() and gradient.all()


@torch.no_grad()
def test_a_decoder_points_by_attention_to_a_symbols_positions_so_far():
    torch.manual_seed(0)
    made = TextMemory(WIDTH, HEADS)
    for weight in made.parameters():
        torch.nn.init.normal_(weight)
    text = text_with_relations()
    hidden = torch.randn(2, 4, WIDTH)
    scores = made.point(hidden, text, None, 0)
    states = made.norm(hidden)
    queries, keys = (x(states).view(2, 4, HEADS, -1) for x in (made.query_proj, made.key_proj))
    gates = made.gates(states).view(2, 4, 2, HEADS)
    entered = made.enter(text)
    for b, t in itertools.product(range(2), range(4)):
        new = SOURCE[b][t] >= 0 and SOURCE[b][t] not in SOURCE[b][:t]
        assert torch.equal(entered[b, t], made.first * new)
    for b, t, s in itertools.product(range(2), range(4), range(NAMES)):
        expected = 0.0
        for h in range(HEADS):
            weights = {None: 1.0}  # of no symbol
            for j in (j for j in range(t + 1) if SOURCE[b][j] >= 0):
                same, behind = SOURCE[b][j] == LAST[b][t], j > 0 and LAST[b][j - 1] == LAST[b][t]
                score = float(queries[b, t, h] @ keys[b, j, h]) / (WIDTH / HEADS) ** 0.5
                told = (gates[b, t, 0, h] * same + gates[b, t, 1, h] * behind) * (LAST[b][t] >= 0)
                weights[j] = math.exp(score + float(told))
            mass = sum(weights[j] for j in weights if j is not None and SOURCE[b][j] == s)
            expected += float(made.strength[h]) * mass / sum(weights.values())
        assert float(scores[b, t, s]) == pytest.approx(expected, abs=1e-5)
