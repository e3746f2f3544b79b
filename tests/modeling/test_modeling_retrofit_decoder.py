"""A symbol layer around a decoder: that nothing but symbols is added, and what is refused."""

import pytest
import torch
from families.test_alpha_decoder import make_decoder
from hosts import BERT_SIZES, DECODERS, GEMMA_SIZES, IDS, make_host
from hypothesis import given
from hypothesis import strategies as st
from retrofits import DecoderFamily, Seen, make_retrofit, random_batch
from torch._dynamo.utils import counters
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    CompileConfig,
    DynamicCache,
    Gemma2Config,
    Gemma3TextConfig,
    MambaConfig,
    MistralConfig,
    MptConfig,
    Qwen2Config,
    StaticCache,
)

from hf_alpha.modeling import host_attention
from hf_alpha.modeling.configuration_retrofit import RetrofitConfig
from hf_alpha.modeling.modeling_retrofit_decoder import (
    PackedTexts,
    RetrofitForCausalLM,
    packed_texts,
)
from hf_alpha.modeling.symbols import rename_ids
from hf_alpha.modeling.token_reader import TokenReader

RELATIONAL = {"symbol_encoding": "relational"}
LEARNED = {"symbol_encoding": "learned", "place": "middle, two classes"}
CANONICAL = {**LEARNED, "symbol_renaming": "first_occurrence"}
SIZES = [(7, 3), (5, 2), (4, 0)]
OWN = {"symbol_encoding": "streams", "num_base_tokens": 10}
hosts = pytest.mark.parametrize("host", DECODERS)


def batch_of(model, side="left"):
    return DecoderFamily().make_batch(1, model.config, SIZES, side)


def labelled(model):
    """A batch whose first two tokens are no answers."""
    batch = DecoderFamily().labelled(1, model.config, SIZES)
    batch["labels"][:, :2] = -100
    return batch


@hosts
def test_without_renamings_it_is_its_host(host):
    bare = make_host(host, vocab_size=45)
    model = make_retrofit(make_host(host, vocab_size=45), **LEARNED)
    batch = batch_of(model)
    kept = batch["attention_mask"].bool()
    positions = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        expected = bare(**batch, position_ids=positions).logits[..., : model.config.vocab_size]
        assert torch.equal(model(**batch).logits[kept], expected[kept])
        rows = labelled(model)
        # Transformers' own loss, of the rows that the vocabulary has.
        bare.lm_head.weight.data[model.config.vocab_size :] = 0
        loss = torch.nn.functional.cross_entropy(
            model(**rows).logits[:, :-1].flatten(0, 1), rows["labels"][:, 1:].flatten()
        )
        torch.testing.assert_close(model(**rows).loss, loss)
    search = {"num_beams": 3, "max_new_tokens": 5, "do_sample": False}
    unused = [[i] for i in range(model.config.vocab_size, 45)]
    answers = bare.generate(**batch, **search, bad_words_ids=unused)
    assert torch.equal(model.generate(**batch, **search), answers)


ALIBI = (BloomConfig(n_layer=2, n_head=2, hidden_size=16), MptConfig(n_layers=2, d_model=16))


def config_of(backbone, **settings):
    """Of a model that is built directly: five symbols of one class, in one row of the backbone."""
    backbone.vocab_size = 45
    names = {"symbol_classes": {"name": 5}, "symbol_ranges": {"name": [[10, 15]]}}
    sizes = {"vocab_size": 45, "num_base_tokens": 40, "pad_token_id": 0, "eos_token_id": 2}
    rows = {"class_rows": {"name": [10]}}
    return RetrofitConfig(backbone_config=backbone, **{**names, **sizes, **rows, **settings})


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("backbone", ALIBI, ids=lambda config: config.model_type)
def test_a_host_whose_attention_takes_no_relations_is_refused_by_its_first_run(backbone, training):
    model = RetrofitForCausalLM(config_of(backbone, **RELATIONAL)).train(training)
    match = f"'{backbone.model_type}' model does not take .* reach its layer 0's attention.*choose"
    with pytest.raises(ValueError, match=match):
        model(input_ids=torch.tensor([[5, 10, 5, 11]]))


def test_a_cache_without_room_for_symbols_is_refused():
    model = make_retrofit("llama", symbol_encoding="relational")
    batch = DecoderFamily().make_batch(1, model.config, SIZES, "left")
    expected = model(**batch).logits
    own = model.config.get_text_config(decoder=True)
    for cache in (DynamicCache(), DynamicCache(config=own), StaticCache(own, max_cache_len=16)):
        torch.testing.assert_close(model(**batch, past_key_values=cache).logits, expected)
    for cache in (DynamicCache(config=model.backbone.config),
                  StaticCache(model.backbone.config, max_cache_len=16)):  # fmt: skip
        with pytest.raises(ValueError, match="has 2 layers, and none to keep symbols in: give a"):
            model(**batch, past_key_values=cache)


@hosts
@pytest.mark.parametrize("renaming", ["random", "random_per_batch", "first_occurrence"])
def test_renamed_samples_are_learned_as_samples_with_other_names(host, renaming):
    model = make_retrofit(host, **LEARNED, symbol_renaming=renaming).train()
    plain = make_retrofit(host, **LEARNED).train()
    batch = labelled(model)
    ids, mask, labels = batch["input_ids"], batch["attention_mask"], batch["labels"]
    table = model.symbols.open(ids, mask, None, True).renaming
    assert table is not None and not torch.equal(table[0], torch.arange(table.shape[1]))
    vocabulary = model.config.vocabulary
    renamed = rename_ids(ids, table, vocabulary)
    wanted = renamed.masked_fill(labels == -100, -100)
    found = model(**batch)
    expected = plain(input_ids=renamed, attention_mask=mask, labels=wanted)
    base, symbols = vocabulary.base_ids, vocabulary.symbol_ids(torch.arange(table.shape[1]))
    assert torch.equal(found.logits[..., base], expected.logits[..., base])
    columns = symbols[table][:, None].expand(-1, ids.shape[1], -1)
    moved = expected.logits.gather(-1, columns)
    usable = found.logits[..., symbols] > -1e3
    assert torch.equal(found.logits[..., symbols][usable], moved[usable])
    if renaming == "first_occurrence":
        assert not usable.all()  # names that a problem lacks
    else:
        torch.testing.assert_close(found.loss, expected.loss)


@hosts
def test_random_renamings_are_for_learning(host):
    """A model that answers between two steps must not rename in each step of an answer."""
    model = make_retrofit(host, **LEARNED, symbol_renaming="random")
    batch = batch_of(model)
    expected = model.generate(**batch, max_new_tokens=5, do_sample=False)
    assert model.train().generate(**batch, max_new_tokens=5, do_sample=False).equal(expected)


def test_what_does_not_fit_is_refused():
    model = make_retrofit("gpt2", **CANONICAL)
    batch = batch_of(model)
    cache = model(**batch, past_key_values=DynamicCache(config=model.config.host_config))
    step = {"input_ids": batch["input_ids"][:, -1:], "past_key_values": cache.past_key_values}
    with pytest.raises(ValueError, match=r"stream_ids are missing: .*the problem"):
        model(**step)
    with pytest.raises(ValueError, match=r"labels is .* give a label for each token"):
        model(**batch, labels=batch["input_ids"][:, 1:])
    with pytest.raises(ValueError, match="input_ids are missing"):
        model(attention_mask=batch["attention_mask"])
    with pytest.raises(ValueError, match="inputs_embeds is not supported"):
        model(inputs_embeds=torch.zeros(1, 2, 16))
    with pytest.raises(ValueError, match=r"65 tokens is longer than .* \(64\)"):
        model(input_ids=torch.full((1, 65), 5))
    with pytest.raises(ValueError, match="an encoder-decoder: take RetrofitForConditional"):
        RetrofitForCausalLM(make_retrofit("t5").config)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "state_size": 4, "vocab_size": 20}
    config = RetrofitConfig(
        backbone_config=MambaConfig(**sizes), num_base_tokens=15, symbol_encoding="learned"
    )
    with pytest.raises(ValueError, match="'mamba' model has no past_key_values"):
        RetrofitForCausalLM(config)


@pytest.mark.parametrize("make", [lambda: make_retrofit("llama"), lambda: make_decoder(**OWN)])
@torch.no_grad()
def test_a_name_that_is_new_in_a_later_turn_finds_no_stream_in_the_cache(make):
    model, ids = make(), torch.tensor([[5, 10, 6, 7, 11, 10, 11]])
    first, rest = ids.split([4, 3], dim=1)
    later = {"attention_mask": torch.ones_like(ids), "stream_ids": torch.tensor([[10, 11]])}
    cache = model(first, use_cache=True).past_key_values
    with pytest.raises(ValueError, match=r"holds 1 streams, and the texts have 2.* Leave .* out"):
        model(rest, **later, past_key_values=cache)
    # As the message says: all names from the start on.
    cache = model(first, stream_ids=later["stream_ids"], use_cache=True).past_key_values
    found = model(rest, **later, past_key_values=cache).logits
    torch.testing.assert_close(found, model(ids).logits[:, 4:], atol=1e-5, rtol=1e-5)


# -- several texts in a row -----------------------------------------------------------------------

# One row, in which names come again in another text; then two rows.
PACKED = {
    (5, 4, 3): [[5, 10, 6, 11, 10, 7, 11, 10, 8, 11, 20, 11]],
    (4, 2, 1, 5): [[5, 10, 6, 10, 7, 11], [12, 10, 8, 12, 7, 10]],
}
STREAMS = {"symbol_encoding": "streams"}
ENCODINGS = [RELATIONAL, STREAMS, CANONICAL, LEARNED]
encodings = pytest.mark.parametrize("settings", ENCODINGS)


def packed(lengths):
    """Packed rows as TRL and DataCollatorWithFlattening make them, and their texts alone."""
    ids = torch.tensor(PACKED[lengths])
    positions = torch.cat([torch.arange(length) for length in lengths]).view_as(ids)
    rows = {"input_ids": ids, "position_ids": positions, "labels": ids}
    texts = [{"input_ids": text[None]} for text in ids.flatten().split(lengths)]
    return rows, texts


@encodings
@pytest.mark.parametrize("lengths", PACKED)
def test_texts_in_one_row_are_as_alone(settings, lengths):
    model = make_retrofit("llama", **settings)
    rows, texts = packed(lengths)
    labels = rows["labels"].masked_fill(rows["position_ids"] == 0, -100)  # as collators make them
    if settings is LEARNED:  # whose loss is of packed rows
        rows["labels"] = labels
    found = model(**rows, output_hidden_states=True)
    alone = [model(**text, output_hidden_states=True) for text in texts]
    expected = torch.cat([output.logits[0] for output in alone])
    torch.testing.assert_close(found.logits.flatten(0, 1), expected, atol=1e-5, rtol=1e-5)
    if settings is not STREAMS:  # whose states are as wide as there are names
        states = torch.cat([output.hidden_states[-1][0] for output in alone])
        torch.testing.assert_close(found.hidden_states[-1].flatten(0, 1), states)
    losses = [model(**text, labels=text["input_ids"]).loss for text in texts]
    tokens = torch.tensor([length - 1 for length in lengths])
    mean = (torch.stack([x.nan_to_num() for x in losses]) * tokens).sum() / tokens.sum()
    torch.testing.assert_close(found.loss, mean)
    shifted = {**rows, "labels": None, "shift_labels": labels.roll(-1)}
    torch.testing.assert_close(model(**shifted).loss, mean)
    lengths = {"cu_seq_lens_q": torch.tensor([0, 5]), "max_length_q": 5}
    assert model(**rows, **lengths).loss.equal(found.loss)


@encodings
def test_texts_that_would_see_one_another_are_refused(settings):
    model = make_retrofit("llama", **settings)
    rows, _ = packed((5, 4, 3))
    seen = rows | {"attention_mask": torch.ones_like(rows["input_ids"])}
    if settings is LEARNED:  # what its host makes of it
        expected = model.backbone(**seen).logits[..., : model.config.vocab_size]
        assert model(**seen).logits.equal(expected)
        return
    with pytest.raises(ValueError, match=r"start again within a row.* would see one another"):
        model(**seen)
    with pytest.raises(ValueError, match="hold several texts: leave them out"):
        model(**rows, stream_ids=torch.tensor([[10, 11, 20]]))
    with pytest.raises(ValueError, match="output_attentions of rows with several texts"):
        model.set_attn_implementation("eager")
        model(**rows, output_attentions=True)


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_of_padding_are_no_new_texts(side):
    model = make_retrofit("llama", **RELATIONAL)
    batch = batch_of(model, side)
    positions = (batch["attention_mask"].cumsum(-1) - 1).masked_fill(
        batch["attention_mask"] == 0, 1
    )
    kept = batch["attention_mask"].bool()
    found = model(**batch, position_ids=positions).logits[kept]
    torch.testing.assert_close(found, model(**batch).logits[kept])


@hosts
@pytest.mark.parametrize("settings", [LEARNED, RELATIONAL])
def test_arguments_that_fit_no_other_or_nothing_takes_are_refused(host, settings):
    model = make_retrofit(host, **settings)
    batch = batch_of(model)
    mask = batch.pop("attention_mask")
    with pytest.raises(TypeError, match=r"'atention_mask', .* did you mean 'attention_mask'"):
        model(**batch, atention_mask=mask)
    with pytest.raises(ValueError, match=r"attention_mask is \(3, 6\), .* 3 rows of 7 tokens"):
        model(**batch, attention_mask=mask[:, 1:])
    with pytest.raises(ValueError, match=r"attention_mask is \(2, 7\)"):
        model(**batch, attention_mask=mask[:2])
    with pytest.raises(ValueError, match=r"position_ids are \(2, 7\), and there are 3 rows"):
        model(**batch, position_ids=mask[:2])
    with pytest.raises(ValueError, match="position_ids are missing: give those that start again"):
        model(**batch, cu_seq_lens_q=torch.tensor([0, 4, 7]))
    cache = model(**batch, attention_mask=mask).past_key_values
    step = {"input_ids": batch["input_ids"][:, -1:], "past_key_values": cache}
    if model.config.needs_stream_ids:
        step["stream_ids"] = torch.full((3, 1), -1)
    with pytest.raises(ValueError, match="3 rows of 8 tokens: give 1 for each"):
        model(**step, attention_mask=mask)


@pytest.mark.parametrize("settings", [*ENCODINGS, {**RELATIONAL, "new_symbols": True}])
def test_logits_of_the_last_tokens_are_those_of_all(settings):
    """As `generate` asks for them, with a cache behind; the head sees no other."""
    model = make_retrofit("llama", **settings)
    batch = batch_of(model)
    listed = {"stream_ids": model.symbols.open(*batch.values(), None, False).ids}
    whole = model(**batch)
    rows = []
    model.backbone.lm_head.register_forward_hook(lambda *x: rows.append(x[1][0].shape[1]))
    last = model(**batch, logits_to_keep=2)
    assert last.logits.shape[1] == 2 and rows == [2]
    torch.testing.assert_close(last.logits, whole.logits[:, -2:])
    step = {"input_ids": batch["input_ids"][:, -1:], **listed}
    step["attention_mask"] = torch.nn.functional.pad(batch["attention_mask"], (0, 1), value=1)
    found = model(**step, past_key_values=last.past_key_values).logits
    torch.testing.assert_close(found, model(**step, past_key_values=whole.past_key_values).logits)
    rows.clear()
    model.generate(**batch, max_new_tokens=3, do_sample=False, min_new_tokens=3)
    assert rows == [1, 1, 1]
    with pytest.raises(ValueError, match="logits_to_keep beside labels: leave it out"):
        model(**batch, labels=batch["input_ids"], logits_to_keep=2)


@pytest.mark.slow  # test_modeling_alpha.py compiles a model in the quick run
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("breaks", [False, True])
def test_a_compiled_decoder_says_the_same(breaks):
    """Also with a break of the graph within a layer, as a user's hook may have."""
    model = make_retrofit("llama", **RELATIONAL)
    batch = batch_of(model)
    if breaks:
        first, *_ = model.backbone.model.layers
        first.mlp.register_forward_hook(lambda *_: torch._dynamo.graph_break())
    with torch.no_grad():
        compiled = torch.compile(model, backend="eager")(**batch).logits
        torch.testing.assert_close(compiled, model(**batch).logits, atol=1e-5, rtol=1e-5)


def softcapped():
    """A host that squashes its scores, and takes relations as slots."""
    return AutoModelForCausalLM.from_config(
        Gemma2Config(**{**GEMMA_SIZES, **IDS, "vocab_size": 45})
    )


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}])
@pytest.mark.parametrize("host", ["llama", "gemma2", "own"])
def test_tokens_are_read_by_numbers_as_by_places_in_the_list(host, search, monkeypatch):
    """Not where a list has more names than the text, one of which is new when it is written."""
    if host == "own":
        model = make_decoder(**RELATIONAL)
    else:
        model = make_retrofit(softcapped() if host == "gemma2" else host, **RELATIONAL)
    batch = random_batch(1, model.config, [(7, 3), (5, 2), (4, 1)], side="left")
    del batch["decoder_input_ids"]
    search = {**search, "min_new_tokens": 6, "max_new_tokens": 6, "do_sample": False}
    search |= {"output_logits": True, "return_dict_in_generate": True}
    read, real = [], TokenReader.__call__
    monkeypatch.setattr(TokenReader, "__call__", lambda *args: read.append(1) or real(*args))
    found = model.generate(**batch, **search)
    assert len(read) == 5
    symbols = [i for i in range(45) if model.config.vocabulary.class_of(i)]
    rows = [[i for i in row if i in symbols] for row in batch["input_ids"].tolist()]
    more = {**batch, "stream_ids": torch.tensor([[*dict.fromkeys(row + symbols)] for row in rows])}
    listed = model.generate(**more, **search)
    assert len(read) == 5
    monkeypatch.setattr(TokenReader, "behind", lambda *_: None)
    for one, other in ((found, batch), (listed, more)):
        expected = model.generate(**other, **search)
        assert torch.equal(torch.stack(one.logits), torch.stack(expected.logits))
        assert torch.equal(one.sequences, expected.sequences)


@pytest.mark.slow  # as above
@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_token_is_one_graph_and_says_the_same():
    """As `generate` compiles it behind a static cache."""
    model = make_retrofit("llama", **RELATIONAL)
    batch = random_batch(1, model.config, [(7, 3), (5, 2)], side="left")
    del batch["decoder_input_ids"]
    search = {"min_new_tokens": 6, "max_new_tokens": 6, "do_sample": False}
    expected = model.generate(**batch, **search)
    compiled = CompileConfig(fullgraph=True, backend="aot_eager", mode=None)
    compiled._compile_all_devices = True
    counters.clear()
    search |= {"cache_implementation": "static", "compile_config": compiled}
    assert torch.equal(model.generate(**batch, **search), expected)
    assert counters["stats"]["unique_graphs"] == 1


# Windows that slide -------------------------------------------------------------------------------

SIZES_45 = {**BERT_SIZES, **IDS, "vocab_size": 45, "num_key_value_heads": 1}
GEMMA = {key: value for key, value in GEMMA_SIZES.items() if "cap" not in key}
WINDOW = {
    "mistral": MistralConfig(**SIZES_45, sliding_window=4),  # says nothing of its layers
    "gemma3_text": Gemma3TextConfig(
        **{**GEMMA, **IDS, "vocab_size": 45}, layer_types=["sliding_attention", "full_attention"]
    ),
    "qwen2": Qwen2Config(
        **SIZES_45, use_sliding_window=True, sliding_window=4, layer_types=["sliding_attention"] * 2
    ),
}


@pytest.mark.parametrize(
    ("host", "encoding", "new_symbols"),
    [
        ("mistral", "relational", True),
        ("mistral", "dual_part", True),
        ("gemma3_text", "relational", False),
        ("qwen2", "relational", False),
        ("qwen2", "streams", False),
        ("t5gemma", "relational", True),
    ],
)
def test_a_window_that_slides_is_as_without_a_cache(host, encoding, new_symbols, monkeypatch):
    """Layers hold the keys of the last tokens, slots of ours those of all."""
    settings = {"symbol_encoding": encoding, "new_symbols": new_symbols}
    made = AutoModelForCausalLM.from_config(WINDOW[host]) if host in WINDOW else host
    model = make_retrofit(made, **settings)
    search = {"min_new_tokens": 9, "max_new_tokens": 9, "do_sample": False}
    search |= {"output_logits": True, "return_dict_in_generate": True, "disable_compile": True}
    for sizes in ([(3, 2), (2, 1)], [(7, 3), (5, 2)]):
        batch = random_batch(1, model.config, sizes, side="left")
        del batch["decoder_input_ids"]
        whole = model.generate(**batch, **search, use_cache=False)
        monkeypatch.undo()
        for cache, looks in (("dynamic", True), ("static", True), ("static", False)):
            if not looks:  # as on a GPU
                monkeypatch.setattr(host_attention, "can_look", lambda _: False)
            cached = model.generate(**batch, **search, cache_implementation=cache)
            for one, two in zip(whole.logits, cached.logits, strict=True):
                torch.testing.assert_close(two, one, atol=1e-4, rtol=1e-4)
            assert torch.equal(cached.sequences, whole.sequences)


# Rows of several texts ----------------------------------------------------------------------------


def packed_rows(*positions):
    """Ids that are as good as any, and these positions."""
    positions = torch.tensor(positions)
    return torch.ones_like(positions), positions


def texts_of(ids, positions, mask=None, cache=None):
    return packed_texts(ids, mask, positions, cache)


@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=6), starts=st.data())
def test_texts_apart_and_together_are_the_row(lengths, starts):
    """A text begins where a position does not follow the one before, wherever it starts."""
    first = [starts.draw(st.integers(0, 9)) for _ in lengths]
    parts = [torch.arange(i, i + n) for i, n in zip(first, lengths, strict=True)]
    for n in range(1, len(parts)):  # one that goes on where another ends is no new text
        parts[n] += 20 * n
    ids, positions = torch.arange(3, 3 + sum(lengths))[None], torch.cat(parts)[None]
    texts = texts_of(ids, positions)
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
    assert texts_of(*packed_rows(positions)).lengths == lengths


def test_rows_of_a_batch_begin_texts():
    texts = texts_of(*packed_rows([0, 1, 2], [0, 1, 0]))
    assert texts.lengths == [3, 2, 1] and texts.shape == (2, 3)
    ids, _ = packed_rows([0, 1, 2], [0, 1, 2])
    assert PackedTexts.of(torch.tensor([[0, 1, 0]]), 2).lengths == [2, 1, 2, 1]  # one row for all
    assert texts_of(ids, torch.tensor([[4, 5, 6]])) is None


def test_beside_a_mask_the_last_tokens_of_it_are_those_at_hand():
    """What is hidden may have any position, at the end of a mask that has cached tokens too."""
    ids, positions = packed_rows([0, 0, 1, 2])
    shown = torch.tensor([[1, 1, 1, 0, 1, 1, 1]])  # three that are cached, then padding
    assert texts_of(ids, positions, shown) is None
    with pytest.raises(ValueError, match="start again within a row"):
        texts_of(ids, positions, torch.tensor([[0, 1, 1, 1, 1, 1, 1]]))


def test_a_cache_that_holds_tokens_is_as_a_mask():
    ids, positions = packed_rows([0, 1, 0])
    cache = DynamicCache()
    assert texts_of(ids, positions, cache=cache).lengths == [2, 1]
    cache.update(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), 0)
    with pytest.raises(ValueError, match="start again within a row"):
        texts_of(ids, positions, cache=cache)
    assert texts_of(*packed_rows([2, 3, 4]), cache=cache) is None
    prepared = torch.zeros(1, 1, 3, 5)  # as generate makes it
    assert texts_of(ids, positions, prepared, cache) is None


def test_memory_grows_neither_with_the_square_of_tokens_nor_with_names():
    """But for one table of which name stands where, for the pointer."""
    host = make_host("llama", max_position_embeddings=300)
    model = make_retrofit(host, **RELATIONAL)
    model.extend_symbols({"name": 95})
    names = model.config.vocabulary.symbol_ids(torch.arange(100))
    ids = names.repeat(1, 3)
    for learns in (False, True):
        with torch.set_grad_enabled(learns), Seen(torch.float32) as seen:
            logits = model(ids, logits_to_keep=0 if learns else 1).logits
            if learns:
                logits.logsumexp(-1).sum().backward()
        large = {shape for shape in seen.shapes if 300 in shape[:-1] and shape[-1] > 200}
        assert not large
