"""What relational encoding knows of symbols, alone and in a host, against loops over positions."""

import itertools
from dataclasses import replace

import pytest
import torch
from retrofits import make_retrofit, random_batch
from strategies import slot_relations
from torch import nn

from hf_alpha import AlphaConfig
from hf_alpha.modeling import host_attention
from hf_alpha.modeling import relations as relations_file
from hf_alpha.modeling.encoding import TextStates
from hf_alpha.modeling.encoding_relational import TextMemory
from hf_alpha.modeling.host_encoding import AHEAD, HeadCall, HostRelations
from hf_alpha.modeling.relations import (
    NONE,
    IndexRelations,
    SourceRelations,
    SymbolRelations,
    TextRelations,
    one_hot,
)
from hf_alpha.modeling.streams import Streams
from hf_alpha.modeling.symbols import first_occurrence

WIDTH, HEADS, NAMES = 8, 3, 2
SOURCE = [[0, -1, 1, 0], [-1, 0, 0, -1]]  # which symbol stands where, -1 for none
TARGET = [[-1, 1, 1], [0, -1, 0]]


def relations() -> HostRelations:
    torch.manual_seed(0)
    made = HostRelations(WIDTH, HEADS, HEADS)
    for weight in made.parameters():
        torch.nn.init.normal_(weight)
    return made


def streams() -> Streams:
    """Over the target, as `SymbolLayer.follow` gives them."""
    source, target = torch.tensor(SOURCE), torch.tensor(TARGET)
    written = [
        [[float(s in row[: t + 1]) for s in range(NAMES)] for t in range(len(row))]
        for row in TARGET
    ]

    same = one_hot(target, NAMES, torch.float32)
    return Streams(
        ids=torch.tensor([[10, 11], [12, -1]]),
        own=target,
        weights=torch.full((2, NAMES), 0.5),
        memory=torch.randn(2, NAMES, 2, WIDTH, generator=torch.Generator().manual_seed(1)),
        related=SymbolRelations(
            slot_relations((same,), target),
            SourceRelations(
                slot_relations((same, torch.tensor(written)), source),
                torch.tensor(written),
                torch.arange(len(TARGET[0])),
            ),
        ),
    )


def test_gates_are_those_of_the_tokens_vectors():
    made, found = relations(), streams()
    vectors = torch.randn(2, 3, WIDTH, generator=torch.Generator().manual_seed(2))
    table = nn.Embedding.from_pretrained(vectors.flatten(0, 1))
    told = made.tell(table, torch.arange(6).view(2, 3), found)
    assert told.within[0] is found.within
    assert torch.equal(told.within[1], made.decoder_gates(made.gate_norm(vectors)))
    assert told.across is not None and told.across[0] is found.across
    assert torch.equal(told.across[1], made.cross_gates(made.gate_norm(vectors)))
    alone = replace(found, related=SymbolRelations(found.within))
    encoder = made.tell(table, torch.arange(6).view(2, 3), alone)
    assert torch.equal(encoder.within[1], made.encoder_gates(made.gate_norm(vectors)))
    assert encoder.across is None


def test_what_is_entered_and_pointed_at_against_loops():
    made, found = relations(), streams()
    hidden = torch.randn(2, 3, WIDTH, generator=torch.Generator().manual_seed(3))
    entered, scores = (
        made.enter(found),
        made.point(found, HeadCall(found, hidden_BSTD=hidden[:, None])),
    )
    written, last = made.repeat.weight[0]
    for b, t in itertools.product(range(2), range(3)):
        name = TARGET[b][t]
        expected = found.memory[b, name, 0] if name >= 0 else torch.zeros(WIDTH)
        torch.testing.assert_close(entered[b, t], expected)
        for s in range(NAMES):
            score = hidden[b, t] @ found.memory[b, s, 1]
            score = score + written * (s in TARGET[b][: t + 1]) + last * (s == name)
            torch.testing.assert_close(scores[b, t, s], score)


def test_what_a_decoder_is_told_of_earlier_positions():
    """Which hold the last symbol, and which come after it up to the next; padding is no symbol."""
    model = make_retrofit("gpt2", symbol_encoding="relational")
    first, *_ = model.config.vocabulary.symbol_ids(torch.arange(3)).tolist()
    ids = torch.tensor([[first, first, 3, first + 1, 4, first, 5]])
    mask = torch.tensor([[0, 1, 1, 1, 1, 1, 1]])
    streams = model.symbols.open(ids, mask, torch.tensor([[first, first + 1]]), False)
    related = model.symbols.go_on(streams, ids, mask, None, 0).related
    own, last = [-1, 0, -1, 1, -1, 0, -1], [-1, 0, 0, 1, 1, 0, 0]
    for keys, matrix in zip((own, [-1, *last[:-1]]), related.within.matrices, strict=True):
        expected = [[float(query >= 0 and key == query) for key in keys] for query in last]
        assert matrix[0, 0].tolist() == expected


def test_the_memory_is_of_the_mean_over_a_symbols_positions():
    made = relations()
    found = streams()
    source = Streams(found.ids, torch.tensor(SOURCE), found.weights)
    hidden = torch.randn(2, 4, WIDTH, generator=torch.Generator().manual_seed(4))
    memory = made.remember(hidden, source).memory
    mean = (hidden[0, 0] + hidden[0, 3]) / 2
    torch.testing.assert_close(memory[0, 0, 0], made.input_proj(made.input_norm(mean)))
    torch.testing.assert_close(memory[0, 0, 1], made.output_proj(made.output_norm(mean)))


@pytest.mark.parametrize("host", ["t5", "bart"])
def test_new_relations_have_no_effect(host):
    """A name is then a word of the backbone, by first occurrence, and again where there are more.

    Only it is ahead of the word itself, which may be in the vocabulary as well.
    """
    model = make_retrofit(host, symbol_encoding="relational")
    for weight in model.relations.parameters():
        weight.data.zero_()
    config = model.config
    batch = random_batch(0, config, [(20, 4), (5, 2)])
    first, second = config.class_rows["name"]
    plain = {name: ids.clone() for name, ids in batch.items()}
    listed = []
    for row, ids in enumerate(batch["input_ids"].tolist()):
        listed.append([i for i in dict.fromkeys(ids) if config.vocabulary.class_of(i)])
        for rank, symbol in enumerate(listed[row]):
            for name in ("input_ids", "decoder_input_ids"):
                plain[name][row][batch[name][row] == symbol] = (first, second)[rank % 2]
    assert len(listed[0]) > 2
    with torch.no_grad():
        ours, theirs = model(**batch).logits, model.backbone(**plain).logits
    base = config.vocabulary.base_ids
    base = [i for i in base if i < theirs.shape[-1]]
    torch.testing.assert_close(ours[..., base], theirs[..., base], atol=1e-5, rtol=1e-5)
    rows = [(first, second)[rank % 2] for rank in range(len(listed[0]))]
    expected = theirs[0][:, rows] + AHEAD
    torch.testing.assert_close(ours[0][:, listed[0]], expected, atol=1e-5, rtol=1e-5)


# A text alone

LAST = [[0, 0, 1, 0], [-1, 0, 0, 0]]  # which stood last
CONFIG = AlphaConfig(is_encoder_decoder=False, d_model=WIDTH, decoder_attention_heads=2)


def text_with_relations():
    """Streams of the texts of `SOURCE`."""
    own, last = torch.tensor(SOURCE), torch.tensor(LAST)
    behind = torch.tensor([[-1, *row[:-1]] for row in LAST])
    looked_for = last.masked_fill(last < 0, NONE)
    within = IndexRelations(looked_for, (own, behind), NAMES, torch.float32)
    related = SymbolRelations(within, text=TextRelations(within, own, torch.arange(4)))
    return Streams(torch.tensor([[10, 11], [12, -1]]), own, torch.full((2, 2), 0.5), None, related)


@torch.no_grad()
def test_a_silent_memory_begins_with_no_effect_and_learns():
    memory, text = TextMemory(CONFIG, 2, silent=True), text_with_relations()
    memory.apply(lambda part: part.reset() if hasattr(part, "reset") else None)
    hidden = torch.randn(2, 4, WIDTH)
    with torch.enable_grad():
        scores = memory.point(text, None, TextStates(hidden, None, 0))
        (gradient,) = torch.autograd.grad(scores.sum(), [memory.strength])
    assert not scores.any() and not memory.enter(text).any() and gradient.all()


@pytest.mark.parametrize("kind", ["bart", "t5"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_masks_tell_an_encoder_and_a_decoder_what_slots_tell_them(monkeypatch, kind, side):
    """Of many symbols, in blocks of queries: logits, gradients, and what beams write."""
    model = make_retrofit(kind, symbol_encoding="relational")
    for weight in model.relations.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    batch = random_batch(3, model.config, [(20, 4), (13, 3)], side=side)
    results = []
    for most, block in ((1 << 40, 1 << 40), (0, 6)):
        monkeypatch.setattr(host_attention, "widest", lambda _, most=most: most)
        monkeypatch.setattr(relations_file, "BLOCK", block)
        model.zero_grad()
        found = model(**batch).logits
        found.logsumexp(-1).sum().backward()
        gradients = [x.grad.clone() for x in model.relations.parameters() if x.grad is not None]
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask")}
        search = {"num_beams": 3, "max_new_tokens": 6, "min_length": 6, "do_sample": False}
        results.append([found.detach(), *gradients, model.generate(**inputs, **search)])
    torch.testing.assert_close(results[1], results[0], atol=1e-4, rtol=1e-4)
    assert len(results[0]) > 5


@pytest.mark.parametrize("past, length", [(0, 17), (0, 20), (7, 17)])
def test_blocks_of_queries_change_nothing(monkeypatch, past, length):
    """With a cache, padding in front, gradients, and of the last positions alone.

    Nor where the scores of relations go into masks, of many symbols.
    """
    model = make_retrofit("llama", symbol_encoding="relational").double()
    for weight in model.relations.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    batch = random_batch(3, model.config, [(20, 4), (length, 3)], side="left")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    listed = first_occurrence(ids, model.config.vocabulary.is_symbol(ids) & (mask > 0))
    results = []
    for most, block in ((1 << 40, 1 << 40), (1 << 40, 6), (0, 6), (0, 1 << 40)):
        monkeypatch.setattr(host_attention, "widest", lambda _, most=most: most)
        monkeypatch.setattr(relations_file, "BLOCK", block)
        model.zero_grad()
        given = {"attention_mask": mask, "stream_ids": listed, "logits_to_keep": 9}
        if past:
            with torch.no_grad():
                cache = model(ids[:, :past], mask[:, :past], stream_ids=listed).past_key_values
            given["past_key_values"] = cache
        found = model(ids[:, past:], **given).logits
        found.logsumexp(-1).sum().backward()
        gradients = [x.grad.clone() for x in model.relations.parameters() if x.grad is not None]
        results.append([found.detach(), *gradients])
    for result in results[1:]:
        torch.testing.assert_close(result, results[0])
    assert found.shape[1] == 9 and len(results[0]) > 8
