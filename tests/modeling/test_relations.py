"""Relations, memory and pointer: against the model in loops, and part by part.

What `relational` promises as every encoding does is in tests/families.
"""

from functools import partial

import pytest
import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from hypothesis import given
from hypothesis import strategies as st
from reference.check import check_reference
from reference.relational import RelationalReferenceModel
from strategies import (
    BASE,
    POSITIONS,
    SWITCHES,
    TWO_CLASSES,
    make_model,
    random_batch,
    seeds,
    slot_relations,
)
from transformers import DynamicCache, EncoderDecoderCache

from hf_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling import attention, masks, relations
from hf_alpha.modeling.relations import (
    NONE,
    START,
    IndexRelations,
    SlotRelations,
    add_relations,
    add_relations_,
    match_rows,
    mean_by_symbol,
    one_hot,
)


def make_relational(seed=0, **settings):
    return make_model(seed, **{"symbol_encoding": "relational", **settings})


def logits(model, batch):
    with torch.no_grad():
        return model(**batch).logits


# Reference -------------------------------------------------------------------------------------


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("classes", [{}, TWO_CLASSES], ids=["one class", "two classes"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_reference(seed, classes):
    check_reference(make_relational(seed, **classes), RelationalReferenceModel, seed)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("switches", SWITCHES[1:], ids="-".join)
def test_equals_reference_for_all_switches(switches):
    check_reference(make_relational(**switches), RelationalReferenceModel)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("positions", POSITIONS[1:], ids=lambda p: "-".join(map(str, p.values())))
def test_equals_reference_for_all_positions(positions):
    check_reference(make_relational(**positions), RelationalReferenceModel)


def test_equals_reference_for_other_settings():
    plain = {"normalize_embeddings": False, "normalize_features": False, "adacos": False}
    check_reference(make_relational(scale_embedding=True, **plain), RelationalReferenceModel)


# Parts -----------------------------------------------------------------------------------------


def test_means():
    own = torch.tensor([[2, 0, 2, -1], [1, 1, 3, 1], [-1, -1, -1, -1]])
    hidden = torch.randn(*own.shape, 3, generator=torch.Generator().manual_seed(0))
    for row, means, states in zip(own, mean_by_symbol(hidden, own, 5), hidden, strict=True):
        for symbol in range(5):
            there = states[row == symbol]
            expected = there.mean(0) if len(there) else torch.zeros(3)
            torch.testing.assert_close(means[symbol], expected)


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.integers(1, 9))
def test_products_of_slots_are_gated_relations(seed, sources, beams, symbols):
    """Of beams that share a source too."""
    generator = torch.Generator().manual_seed(seed)
    heads, length, keys, width, scaling = 2, 3, 70, 4, 0.25
    rows = sources * beams
    wanted = torch.randint(2, (2, rows, length, symbols), generator=generator).float()
    own = torch.randint(-1, symbols, (sources, keys), generator=generator)
    gates = torch.randn(rows, length, 2 * heads, generator=generator)
    query = torch.randn(sources, heads, beams * length, width, generator=generator)
    key = torch.randn(sources, heads, keys, width, generator=generator)
    for own_of_keys in (own, own.repeat_interleave(beams, 0)):
        relations = slot_relations(tuple(wanted), own_of_keys)
        matrices = tuple(matrix.view(sources, 1, -1, keys) for matrix in relations.matrices)
        expected = add_relations(query @ key.mT * scaling, gates, matrices)
        products = relations.extend_queries(query, gates, scaling) @ relations.extend_keys(key).mT
        torch.testing.assert_close(products * scaling, expected)


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))
def test_relations_of_single_queries_are_those_of_many(seed, sources, beams, count):
    generator = torch.Generator().manual_seed(seed)
    draw = partial(torch.randint, 2, generator=generator)
    queries = tuple(draw((sources * beams, 1, 3)).float() for _ in range(count))
    own = torch.randint(-1, 3, (sources, 5), generator=generator)
    relations = SlotRelations(queries, own)
    gates = torch.randn(sources * beams, 1, count * 2, generator=generator)
    mask = torch.randn(sources, 1, 1, 5, generator=generator)
    single = relations.of_sources(sources)
    assert isinstance(single, torch.Tensor)
    many = tuple(x.view(sources, 1, beams, 5) for x in relations.matrices)
    found = add_relations(None, gates, single), add_relations(mask, gates, single)
    torch.testing.assert_close(found, tuple(add_relations(x, gates, many) for x in (None, mask)))
    scores = torch.randn(sources, 2, beams, 5, generator=generator)
    expected = add_relations_(scores.clone(), gates, many)
    assert torch.equal(add_relations_(scores, gates, single), expected)


def parts(length: int) -> st.SearchStrategy[slice]:
    """Slices of so many places, none of them empty."""
    ends = st.tuples(st.integers(0, length - 1), st.integers(1, length))
    return ends.map(lambda ends: slice(min(ends), max(ends[0] + 1, ends[1])))


@given(
    seed=seeds,
    queries=st.integers(1, 3).flatmap(lambda n: st.tuples(st.just(n), parts(n))),
    keys=parts(4),
    as_places=st.booleans(),
)
def test_parts_have_the_relations_of_the_whole(seed, queries, keys, as_places):
    """Made of indices or of slots, before or after matrices are made for several layers."""
    generator, (length, wanted) = torch.Generator().manual_seed(seed), queries
    last = torch.randint(-1, 3, (2, length), generator=generator)
    held = torch.randint(-1, 3, (2, 2, 4), generator=generator).unbind()
    indices = IndexRelations(last.masked_fill(last < 0, NONE), held, 3, torch.float32)
    places = torch.arange(4)[keys] if as_places else keys
    expected = [
        [[[[float(one == there >= 0) for there in row] for one in ones[wanted]]]
         for ones, row in zip(last.tolist(), one_held[:, places].tolist(), strict=True)]
        for one_held in held
    ]  # fmt: skip
    same = one_hot(last, 3, torch.float32)
    wholes = [(indices, expected)]
    wholes += [(SlotRelations((same,), held[i]), expected[i : i + 1]) for i in range(2)]
    for whole, matrices in wholes:
        for _ in range(2):  # the second time, the matrices of the whole are there
            part = whole.part(wanted, places)
            assert [matrix.tolist() for matrix in part.matrices] == matrices
            slots = [(query @ part.keys.mT)[:, None].tolist() for query in part.queries]
            assert slots == matrices
            if part.shape[0] == 1:
                assert part.lines.permute(2, 0, 1, 3)[:, :, :, None].tolist() == matrices
            assert {x.device.type for x in part.to(torch.device("meta")).matrices} == {"meta"}
            assert len(whole.matrices) == len(matrices)


def test_a_new_model_begins_with_the_same_symbol_and_no_pointer():
    model = AlphaForConditionalGeneration(make_relational().config).model
    start = [START, 0]  # the first relation in half of the two heads
    for layer in model.encoder.layers:
        assert layer.self_attn.gates(torch.randn(3, 16)).tolist() == [start] * 3
    for layer in model.decoder.layers:
        assert layer.encoder_attn.gates(torch.randn(3, 16)).tolist() == [[*start, 0, 0]] * 3
    memory = model.symbol_memory
    assert not any(weight.any() for weight in memory.pointer.parameters())
    found = torch.stack(memory(torch.randn(2, 3, 16)), dim=2)
    torch.testing.assert_close(found.norm(dim=-1), torch.full((2, 3, 2), 4.0))


def test_what_a_checkpoint_lacks_begins_as_in_a_new_model(tmp_path):
    """As in one that was saved before its model had relations."""
    model = make_relational()
    state = {name: w for name, w in model.state_dict().items()
             if ".gates." not in name and "symbol_memory" not in name}  # fmt: skip
    model.save_pretrained(tmp_path, state_dict=state)
    loaded = AlphaForConditionalGeneration.from_pretrained(tmp_path)
    assert loaded.model.encoder.layers[0].self_attn.gates.bias.tolist() == [START, 0]
    assert loaded.model.symbol_memory.input_norm.weight.tolist() == [1.0] * 16
    assert loaded.model.symbol_memory.pointer.repeat.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: "-".join(s) or "default")
def test_all_weights_are_trained(switches):
    """A weight without a gradient stops training in several processes."""
    model = make_relational(**switches).train()
    batch = random_batch(1, model.config, [(7, 3), (5, 2)])
    model(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


# Symbols of a sample ---------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_padding_holds_does_not_matter(side):
    model = make_relational()
    batch = random_batch(2, model.config, [(6, 3), (4, 2), (3, 0)], side=side)
    hidden = batch["attention_mask"] == 0
    for token in (BASE, int(batch["input_ids"][1].max())):
        filled = batch["input_ids"].masked_fill(hidden, token)
        assert (filled >= BASE)[1:].any(1).all()
        assert torch.equal(logits(model, {**batch, "input_ids": filled}), logits(model, batch))


def test_what_padding_of_a_prompt_holds_does_not_matter():
    """Nor does a symbol there count as written."""
    model = make_relational()
    batch = random_batch(2, model.config, [(6, 3), (5, 2)])
    ids, symbol = batch["decoder_input_ids"].clone(), batch["input_ids"].amax(1)
    ids[:, 0] = model.config.pad_token_id
    mask = torch.ones_like(ids)
    mask[:, 0] = 0
    plain = logits(model, {**batch, "decoder_input_ids": ids, "decoder_attention_mask": mask})
    ids[:, 0] = symbol
    assert (symbol >= BASE).all()
    filled = logits(model, {**batch, "decoder_input_ids": ids, "decoder_attention_mask": mask})
    assert torch.equal(filled[:, 1:], plain[:, 1:])
    visible = (mask[:, None] * torch.ones(1, 4, 1)).tril().bool()[:, None]
    for prepared in (visible, torch.zeros(2, 1, 4, 4).masked_fill(~visible, -1e30)):
        again = logits(
            model, {**batch, "decoder_input_ids": ids, "decoder_attention_mask": prepared}
        )
        torch.testing.assert_close(again[:, 1:], plain[:, 1:], atol=1e-5, rtol=1e-5)
    prompt = {**batch, "decoder_input_ids": ids[:, :3], "decoder_attention_mask": mask[:, :3]}
    kept = {"max_new_tokens": 4, "output_logits": True, "return_dict_in_generate": True}
    kept["disable_compile"] = True
    plain = model.generate(**prompt, **kept, use_cache=False)
    for cache in ("dynamic", "static"):
        found = model.generate(**prompt, **kept, cache_implementation=cache)
        for one, other in zip(found.logits, plain.logits, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_caches_without_layers_are_filled():
    """As the error for other caches tells to make them."""
    model = make_relational()
    batch = random_batch(2, model.config, [(6, 3), (5, 2)])
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    first = {**batch, "decoder_input_ids": batch["decoder_input_ids"][:, :2]}
    rest = {**batch, "decoder_input_ids": batch["decoder_input_ids"][:, 2:]}
    with torch.no_grad():
        model(**first, past_key_values=cache, use_cache=True)
        found = model(**rest, past_key_values=cache, use_cache=True).logits
    torch.testing.assert_close(found, logits(model, batch)[:, 2:], atol=1e-5, rtol=1e-5)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("symbols", [5, 1])
@pytest.mark.parametrize("padding_side", ["left", "right"])
def test_slots_add_what_matrices_add(monkeypatch, symbols, padding_side):
    """Logits, gradients, and what is generated with a cache and beams; in blocks of queries too."""
    model = make_relational()
    batch = random_batch(3, model.config, [(9, symbols), (30, 2), (17, 1)], side=padding_side)
    results = []
    ways = [(1 << 40, 1 << 40, 128, 0), (0, 1 << 40, 128, 0), (0, 0, 4, 0), (0, 0, 4, 1 << 20)]
    for many_scores, few_symbols, block, held_scores in ways:
        monkeypatch.setattr(attention, "HELD_SCORES", held_scores)
        monkeypatch.setattr(masks, "MANY_SCORES", many_scores)
        monkeypatch.setattr(relations, "FEW_SYMBOLS", few_symbols)
        monkeypatch.setattr(relations, "BLOCK", block)
        monkeypatch.setattr(relations, "MANY_SYMBOLS", block)
        model.zero_grad()
        output = model(**batch)
        output.logits.logsumexp(-1).sum().backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        search = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 6, "min_length": 6}
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask", "tree_paths")}
        answers = model.generate(**inputs, **search)
        results.append((output.logits.detach(), gradients, answers))
    (logits, gradients, answers), *others = results
    for other_logits, other_gradients, other_answers in others:
        torch.testing.assert_close(logits, other_logits, atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(gradients, other_gradients, atol=1e-4, rtol=1e-4)
        assert torch.equal(answers, other_answers)


def test_layers_may_lie_on_several_devices():
    """The device without data stands for another one."""
    model = make_relational()
    batch = random_batch(2, model.config, [(6, 3), (5, 2)])
    last = model.model.decoder.layers[-1].to("meta")
    add_hook_to_module(last, AlignDevicesHook(execution_device="meta"))
    memory = model.model.symbol_memory.pointer.to("meta")
    add_hook_to_module(memory, AlignDevicesHook(execution_device="meta"))
    found = logits(model, batch)
    assert found.is_meta and found.shape == (2, 4, model.config.vocab_size)


def test_samples_without_symbols():
    model = make_relational()
    batch = random_batch(2, model.config, [(6, 0), (4, 0)])
    out = logits(model, batch)
    assert out.isfinite().all() and (out[..., BASE:] < -1e3).all()
    answers = {name: batch[name] for name in ("input_ids", "attention_mask", "tree_paths")}
    assert (model.generate(**answers, num_beams=2, max_new_tokens=5) < BASE).all()
    model.train()(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_a_symbol_that_only_the_list_has_is_known_by_its_class():
    """The collator may list more symbols than stand in an input; they change no other."""
    model = make_relational()
    batch = random_batch(2, model.config, [(6, 2)])
    ids = batch["input_ids"]
    listed = ids[ids >= BASE].unique()[None]
    other = next(i for i in range(BASE, BASE + 5) if i not in listed)
    before = logits(model, {**batch, "stream_ids": listed})
    more = torch.cat((listed, torch.tensor([[other]])), 1)
    after = logits(model, {**batch, "stream_ids": more})
    assert (after[..., other] > -1e3).all()
    kept = [i for i in range(BASE + 5) if i != other]
    torch.testing.assert_close(after[..., kept], before[..., kept], atol=1e-5, rtol=1e-5)


def test_rows_are_repeated_for_beams_or_kept_once_for_each_sample():
    """Beams of a sample lie side by side."""
    samples = torch.tensor([[1, 2], [3, 4], [5, 6]])
    beams = torch.tensor([[1, 2], [1, 2], [3, 4], [3, 4], [5, 6], [5, 6]])
    assert match_rows(samples, 6).equal(beams)
    assert match_rows(beams, 3).equal(samples)
    assert match_rows(samples, 3) is samples
    assert match_rows(None, 6) is None


def test_symmetric_symbols_tie_without_positions():
    """A limit that docs/promises.md names: nothing but rounding tells them apart."""
    ids = torch.tensor([[3, BASE, 4, BASE + 1, 2]])
    answer = torch.tensor([[1, 5, 6]])
    tied = make_relational(encoder_position="none", cross_attention_rope=False)
    out = logits(tied, {"input_ids": ids, "decoder_input_ids": answer})
    torch.testing.assert_close(out[..., BASE], out[..., BASE + 1], atol=1e-5, rtol=1e-5)
    apart = make_relational(encoder_position="rope")
    out = logits(apart, {"input_ids": ids, "decoder_input_ids": answer})
    assert ((out[..., BASE] - out[..., BASE + 1]).abs() > 1e-4).all()
