"""A symbol layer around encoder-decoders of Transformers: rows, tokens, settings, folders."""

import copy
import json
from itertools import cycle, islice, permutations
from pathlib import Path

import pytest
import torch
from hosts import BART_SIZES, make_host
from hypothesis import given
from hypothesis import strategies as st
from peft import LoraConfig, get_peft_model
from small_tokenizers import byte_level, smiles, unigram, word_level
from strategies import make_model
from tokenizers import processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BigBirdPegasusConfig,
    BigBirdPegasusForConditionalGeneration,
    ByT5Tokenizer,
    GenerationConfig,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedTokenizerFast,
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    T5ForConditionalGeneration,
    TextIteratorStreamer,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from hf_alpha import MarkedText, SymbolConfig, TextTokenizer, get_symbol_model, load_checkpoint
from hf_alpha.convert import ConversionError
from hf_alpha.convert.host_tables import table_rows
from hf_alpha.convert.retrofit import GATE, convert_host
from hf_alpha.modeling.host_words import LETTERS
from hf_alpha.modeling.symbol_layer import SymbolLayer

IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
FIVE = {"name": {"pattern": "[xyz]", "count": 5}}
TEXTS = ["alice sees x and y", "not x"]


def host_for(tokenizer, name="t5", spare=0, **settings):
    """A small host with a row for each token, and some more that are not used."""
    return make_host(name, vocab_size=len(tokenizer) + spare, **{**IDS, **settings})


def converted(name="t5", spare=0, make=unigram, **settings):
    """A host, its tokenizer, and what they become."""
    tokenizer = make(end=True)
    host = host_for(tokenizer, name, spare)
    config = SymbolConfig(**{"symbols": FIVE, **settings})
    return host, tokenizer, *get_symbol_model(copy.deepcopy(host), tokenizer, config)


def table(model, rows):
    return model.get_input_embeddings().weight[rows].detach()


@torch.no_grad()
def logits(model, tokenizer, texts=TEXTS):
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    used = {name: batch[name] for name in ("input_ids", "attention_mask")}
    return model(**used, decoder_input_ids=batch["input_ids"][:, :4]).logits


@pytest.mark.gpu
@pytest.mark.parametrize("encoding", ["relational", "streams", "dual_part"])
def test_a_model_on_a_gpu_is_converted_there(encoding):
    tokenizer = unigram(end=True)
    for name in ("llama", "t5"):
        host = host_for(tokenizer, name).cuda()
        model, _ = get_symbol_model(host, tokenizer, SymbolConfig(encoding, symbols=FIVE))
        assert {each.device for each in (*model.parameters(), *model.buffers())} == {host.device}


CLASHES = {
    "alice sees x and y, not z: x": ({"pattern": "[a-z]", "count": 5}, unigram, "xyz", "kmq"),
    "C1CC2N1C3O2N3": ({"pattern": "[1-9]", "words": False, "count": 5}, smiles, "123", "724"),
}
"""Text -> a rule, a host's tokenizer, which has tokens for names, the text's names, and others."""


CONVERTED = [("t5", "relational"), ("t5", "streams"), ("gpt2", "streams"),
             ("gpt2", "relational"), ("llama", "relational"), ("llama", "streams")]  # fmt: skip
CLASHING = [
    (text, *pair) for texts in (CLASHES, [*CLASHES][::-1])
    for text, pair in zip(cycle(texts), CONVERTED, strict=False)
]  # fmt: skip
"""Each way to convert with one text at first, and then with the other."""


@pytest.mark.quick_cases(len(CONVERTED))
@pytest.mark.parametrize(("text", "name", "encoding"), CLASHING)
def test_a_renamed_text_has_the_renamed_answer_also_where_plain_tokens_spell_names(
    text, name, encoding
):
    """Texts are compared, of greedy search, beams, draws of one seed, and streams."""
    rule, make, names, others = CLASHES[text]
    plain = make(end=True)
    model, tokenizer = get_symbol_model(
        host_for(plain, name), plain, SymbolConfig(encoding, {"name": rule})
    )
    clashing = {(i,): 3.0 for t, i in plain.get_vocab().items() if t.strip("▁") in [*names]}
    search = {"max_new_tokens": 12, "sequence_bias": clashing}

    def answers(text):
        batch = tokenizer([text], return_tensors="pt")
        start = 1 if model.config.is_encoder_decoder else batch["input_ids"].shape[1]
        streamer = TextIteratorStreamer(tokenizer, start > 1, names=batch.names)
        ways = {"num_beams": 1, "streamer": streamer}, {"num_beams": 3}, {"temperature": 9.0}
        torch.manual_seed(0)
        ids = [
            model.generate(**batch, **search, do_sample="temperature" in way, **way)[0, start:]
            for way in ways
        ]
        texts = [tokenizer.decode(row, names=batch.names[0]) for row in ids]
        assert "".join(streamer).strip() == texts[0].strip()
        return texts, sum(row in [*clashing] for row in zip(torch.cat(ids).tolist()))

    def read(answer, names):
        spans = tokenizer.finder.find(answer, dict.fromkeys(names, "name"))
        places = {
            s.start: names.index(x) for s in spans if (x := answer[s.start : s.stop]) in names
        }
        return [places.get(i, letter) for i, letter in enumerate(answer)]

    found, clashes = answers(text)
    assert clashes
    for order in map("".join, islice(permutations(names), 1, None, 2)):
        renamed, _ = answers(text.translate(str.maketrans(names, order)))
        for one, two in zip(found, renamed, strict=True):
            assert read(one, names) == read(two, order)
    renamed, _ = answers(text.translate(str.maketrans(names, others)))
    for one, two in zip(found, renamed, strict=True):
        places = [
            [i for i in read(*each) if isinstance(i, int)] for each in ((one, names), (two, others))
        ]
        assert places[0] == places[1]


def test_a_model_that_finds_no_names_says_so(caplog):
    converted(symbols={"v": 3, "f": {"pattern": "[xyz]", "count": 2}})
    assert "only <v_0>, <v_1>, ... are names until a rule says" in caplog.text
    caplog.clear()
    converted()
    converted(make=word_level, symbol_tokens="x y z", symbols={})
    assert not caplog.text
    # chats of a host without a template have no tools
    converted(symbols={"tool": {"rule": "tools", "count": 2}})
    assert "no chat template, whose names are to be found: set tokenizer.chat_" in caplog.text


@pytest.mark.parametrize("name", ["t5", "bart"])
@pytest.mark.parametrize(("spare", "rows"), [(0, 3), (2, 1), (30, 0)])
def test_old_rows_stay_and_new_ones_lie_behind_them_or_where_none_is_used(name, spare, rows):
    """A row for `<join>` and two for the class: the unused rows of symbols' ids come first."""
    host, plain, model, tokenizer = converted(name, spare)
    size = len(plain)
    assert table_rows(model.backbone) == table_rows(host) + rows
    assert tokenizer.get_vocab()["<join>"] == size
    assert tokenizer.symbol_ranges == {"name": [[size + 1, size + 6]]}
    assert model.config.class_rows == {"name": [size + 1, size + 2]}
    assert (model.config.num_base_tokens, model.config.vocab_size) == (size + 1, size + 6)
    kept = host.state_dict()
    for key, value in model.backbone.state_dict().items():
        old = tuple(slice(size if n == size + spare else n) for n in kept[key].shape)
        assert torch.equal(value[old], kept[key][old]), key
    lengths = table(model, [*range(size), *model.config.class_rows["name"]]).norm(dim=-1)
    assert lengths[size:].min() > lengths[:size].min() / 2  # as rows are on average, not 0
    if not spare:
        mean = kept["shared.weight" if name == "t5" else "model.shared.weight"].mean(0)
        torch.testing.assert_close(table(model, size), mean)


def test_relations_of_a_decoder_begin_with_what_helps_before_training(tmp_path):
    """Behind a name, the one that followed it before is likelier than others; rates move gates."""
    _, _, model, tokenizer = converted("llama", make=byte_level, encoding="relational")
    assert tokenizer.spacing == "kept" and "<join>" not in tokenizer.get_vocab()
    batch = tokenizer("x y z x", return_tensors="pt")
    used = {"input_ids": batch["input_ids"]}
    names = batch["stream_ids"][0].tolist()
    with torch.no_grad():
        scores = model.eval()(**used).logits[0, -1]
        assert scores[names[1]] > max(scores[names[0]], scores[names[2]])
        model.save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path).eval()
        assert torch.equal(loaded(**used).logits, model(**used).logits)
    bias = model.relations.gate_bias
    before = bias.detach() * model.config.relation_scale
    assert before.unique().tolist() == [0, GATE]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model(**used, labels=used["input_ids"]).loss.backward()
    optimizer.step()
    moved = (bias.detach() * model.config.relation_scale - before).abs()
    assert 0.05 < moved.max() < 0.2


def test_names_that_a_column_lists_are_no_hindrance():
    """No text says which they are, and a conversion looks at one of its own."""
    plain = byte_level()
    rules = {"name": {"column": "names", "count": 4}}
    _, tokenizer = get_symbol_model(
        host_for(plain, "gpt2"), plain, SymbolConfig("relational", symbols=rules)
    )
    text = MarkedText("(alice, bob)", [(1, 6, "name"), (8, 11, "name")])
    encoded = tokenizer(text)
    assert len({*encoded["input_ids"]} & {*tokenizer.symbol_ids}) == 2
    assert tokenizer.decode(encoded["input_ids"], names=encoded.names) == text


def test_every_symbol_has_a_row_where_names_have_vectors():
    _, plain, model, tokenizer = converted(encoding="learned", renaming="first_occurrence")
    assert model.config.class_rows == {} and table_rows(model.backbone) == len(tokenizer)
    rows = table(model, tokenizer.symbol_ids)
    assert len(rows.unique(dim=0)) == 5 and torch.isfinite(rows).all()
    assert model.config.symbol_renaming == "first_occurrence"
    assert logits(model, tokenizer).shape[-1] == len(tokenizer) == len(plain) + 6


def test_a_rule_alone_is_for_the_only_class():
    rule = {"pattern": "n[0-9]+", "count": 8}
    _, _, model, tokenizer = converted(symbols=rule)
    assert model.config.symbol_classes == {"name": 8}
    assert list(tokenizer("x n12 y").names.values()) == ["n12"]
    for classes in ({"function": 3}, {"pattern": {"tokens": ["x"]}}, {"count": 3, "x": 2}):
        assert SymbolConfig(symbols=classes).rules == classes  # classes may be called so


def test_rows_begin_with_the_tokens_that_are_named():
    rules = {"x": {"pattern": "[xyz]", "count": 2}, "f": {"pattern": "[fgh]", "count": 3}}
    host, plain, model, _ = converted(
        "bart_untied", symbols=rules, actual={"x": "x y", "f": ["alice"]}, placeholder={"f": "bob"}
    )
    ids = {
        word: plain(word, add_special_tokens=False)["input_ids"]
        for word in ["x", "y", "alice", "bob"]
    }
    assert all(len(found) == 1 for found in ids.values())
    rows = model.config.class_rows
    for part in (host.get_encoder(), host.get_decoder()):
        old = part.get_input_embeddings().weight
        new = model.backbone.get_encoder() if part is host.get_encoder() else model.get_decoder()
        weight = new.get_input_embeddings().weight
        torch.testing.assert_close(weight[rows["x"][0]], old[ids["x"] + ids["y"]].mean(0))
        assert torch.equal(weight[rows["f"]], old[ids["alice"] + ids["bob"]])
    old, new = host.lm_head.weight, model.backbone.lm_head.weight
    assert torch.equal(new[rows["f"]], old[ids["alice"] + ids["bob"]])
    assert len({*rows["x"], *rows["f"]}) == 4


@pytest.mark.parametrize("encoding", ["dual_part", "streams"])
def test_rows_begin_with_what_words_mean_on_average(encoding):
    """Words of several tokens too: those of all of them count."""
    settings = {"encoding": encoding, "actual": ["alice", "bartholomew"]}
    host, tokenizer, model, _ = converted(**settings)
    ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in settings["actual"]]
    assert [len(word) > 1 for word in ids] == [False, True]
    expected = host.get_input_embeddings().weight[ids[0] + ids[1]].mean(0)
    row = model.config.class_rows["name"][0]
    torch.testing.assert_close(table(model, row), expected)


def rows_of(tokenizer, host, *words):
    """The mean of the rows of each word's tokens."""
    ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    return torch.stack([host.get_input_embeddings().weight[i].mean(0) for i in ids])


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (unigram, {"actual": "alice bartholomew x"}, ["alice", "bartholomew", "x"]),
        (word_level, {"symbols": {"name": {"pattern": "alice|[xyz]", "count": 2}}}, "xyz"),
        (word_level, {"symbols": {"name": 2}, "symbol_tokens": "z x"}, "zx"),
        (byte_level, {}, "xyz"),
        (byte_level, {"symbols": {"name": 4}}, LETTERS),
        (byte_level, {"symbols": {"name": 40}}, [*LETTERS, *map(str.upper, LETTERS)]),
        (smiles, {"symbols": {"name": {"rule": "smiles", "count": 2}}}, "123456789"),
    ],
)
def test_names_are_words_of_the_host_by_first_occurrence(make, settings, words):
    """Those that are named, or were symbols; else letters that the rule takes, or other tokens."""
    host, plain, model, _ = converted("llama", make=make, encoding="relational", **settings)
    rows = model.config.class_rows["name"]
    assert torch.equal(table(model, rows), rows_of(plain, host, *words))


def test_tokens_become_symbols_in_place():
    """No id and no row moves; where they are symbols, the shared rows are their own."""
    tokens = {"symbol_tokens": "x,y,z", "actual": "x", "placeholder": "y"}
    host, plain, model, tokenizer = converted(make=word_level, spare=3, **tokens)
    assert tokenizer.get_vocab() == plain.get_vocab() and tokenizer.symbol_ids == [4, 5, 6]
    assert table_rows(model.backbone) == table_rows(host)
    assert model.config.class_rows == {"name": [4, 5]}
    assert all(map(torch.equal, model.backbone.state_dict().values(), host.state_dict().values()))
    batch = tokenizer(["x and u not z", "u"], padding=True)
    assert batch["input_ids"] == plain(["x and u not z", "u"], padding=True)["input_ids"]
    assert batch["stream_ids"] == [[4, 6], [-1, -1]]
    # Of the first symbol alone, and without symbols, the model is the host as it was.
    base = model.config.vocabulary.base_ids
    for text, columns in (("x and u x", [*base, 4]), ("u not u and", base)):
        ours, theirs = logits(model, tokenizer, [text]), logits(host, plain, [text])
        assert torch.equal(ours[..., columns], theirs[..., columns])


def test_classes_have_rows_of_their_own():
    """A row stays where it is for a symbol of the class alone; others get a copy."""
    tokens = {"symbol_tokens": {"a": "x y", "b": "z u"}, "actual": {"a": "x", "b": "x"}}
    host, _, model, _ = converted(make=word_level, **tokens)
    rows = model.config.class_rows
    assert rows["a"][0] == 4 and len({*rows["a"], *rows["b"]}) == 4
    assert torch.equal(table(model, [*rows["a"], *rows["b"]]), table(host, [4, 5, 4, 6]))
    swapped = {**tokens, "actual": {"a": "z", "b": "x"}, "placeholder": {"a": "u", "b": "y"}}
    host, _, model, _ = converted(make=word_level, **swapped)
    rows = model.config.class_rows
    assert torch.equal(table(model, [*rows["a"], *rows["b"]]), table(host, [6, 7, 4, 5]))


@pytest.mark.parametrize("name", ["t5", "bart", "mbart"])
def test_special_ids_and_settings_of_generation_stay(name):
    tokenizer = unigram(end=True)
    host = host_for(tokenizer, name)
    host.generation_config.update(
        forced_bos_token_id=7, encoder_no_repeat_ngram_size=3, num_beams=4
    )
    before = host.generation_config.to_dict()
    model, made = get_symbol_model(host, tokenizer, SymbolConfig(symbols=FIVE))
    limit = {"max_length": 129 if name == "t5" else 64}  # none before; as many as positions
    assert model.generation_config.to_dict() == before | limit
    assert all(getattr(model.config, key) == value for key, value in IDS.items())
    assert made.special_tokens_map == tokenizer.special_tokens_map
    assert made.convert_ids_to_tokens(range(len(tokenizer))) == tokenizer.convert_ids_to_tokens(
        range(len(tokenizer))
    )
    batch = made(TEXTS, return_tensors="pt", padding=True)
    beam = {"num_beams": 2, "max_new_tokens": 4, "encoder_no_repeat_ngram_size": 0}
    assert (model.generate(**batch, **beam)[:, 1] == 7).all()  # the language that is asked for


IGNORED = {
    "temperature": 0.6, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "early_stopping": True,
    "length_penalty": 2.0, "output_scores": True,
}  # fmt: skip


@pytest.mark.parametrize("used", [{}, {"do_sample": True}, {"num_beams": 2}])
def test_settings_of_generation_without_effect_are_dropped(used, caplog, tmp_path):
    """Llama 2's chat has `temperature` without `do_sample`, with which Transformers saves none."""
    tokenizer = unigram(end=True)
    host = host_for(tokenizer)
    host.generation_config.update(**IGNORED, **used, repetition_penalty=1.5)
    model, _ = get_symbol_model(host, tokenizer, SymbolConfig(symbols=FIVE))
    model.save_pretrained(tmp_path)
    saved = GenerationConfig.from_pretrained(tmp_path)
    sampled, searched = ("temperature", "top_p", "top_k", "min_p"), ("early_stopping", "length_pen")
    has_effect = (*sampled * ("do_sample" in used), *searched * ("num_beams" in used))
    for name, value in IGNORED.items():
        assert (getattr(saved, name) == value) == name.startswith(has_effect or ("no setting",))
        assert (f"{name}={value}" in caplog.text) != name.startswith(has_effect or ("no setting",))
    assert saved.repetition_penalty == 1.5
    assert all(getattr(saved, name) == value for name, value in used.items())
    assert caplog.text.count("dropped") == 1


def test_new_symbols_may_be_written(caplog):
    """Hosts forbid unused ids of theirs, which are symbols now."""
    tokenizer = unigram(end=True)
    host, size = host_for(tokenizer, spare=9), len(tokenizer)
    host.generation_config.update(suppress_tokens=[5, size + 2], bad_words_ids=[[size + 1], [6, 7]])
    model, _ = get_symbol_model(copy.deepcopy(host), tokenizer, SymbolConfig(symbols=FIVE))
    assert model.generation_config.suppress_tokens == [5]
    assert model.generation_config.bad_words_ids == [[6, 7]]
    assert f"suppress_tokens [5, {size + 2}]" in caplog.text
    caplog.clear()
    host.generation_config.update(suppress_tokens=[5], bad_words_ids=None)
    model, _ = get_symbol_model(host, tokenizer, SymbolConfig(symbols=FIVE))
    assert model.generation_config.suppress_tokens == [5] and not caplog.text


def test_a_tokenizer_without_padding_gets_some():
    """As GPT-2's: what pads answers must be no text."""
    _, plain, model, tokenizer = converted("bart", make=byte_level)
    assert plain.pad_token_id is None and tokenizer.pad_token_id == len(plain)
    assert model.config.pad_token_id == model.generation_config.pad_token_id == len(plain)


def with_language(template: str):
    """A tokenizer as mBART's (`text </s> en_XX`) or NLLB's (`eng_Latn text </s>`)."""
    tokenizer = word_level(words=("en_XX",))
    number = tokenizer.convert_tokens_to_ids("en_XX")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("</s>", 2), ("en_XX", number)]
    )
    return tokenizer


@pytest.mark.parametrize("template", ["$A </s> en_XX", "en_XX $A </s>"])
def test_language_tokens_stay_where_they_are(template):
    plain = with_language(template)
    made = TextTokenizer.from_tokenizer(plain, FIVE)
    assert made("u and not")["input_ids"] == plain("u and not")["input_ids"]
    with_names = made("x and y")["input_ids"]
    assert len(with_names) == 5 and with_names.count(2) == 1
    assert made.decode(with_names, names=made("x and y").names).split() == [
        word for word in plain.decode(plain("x and y")["input_ids"]).split() if word != "</s>"
    ]
    model, _ = get_symbol_model(host_for(plain, "mbart"), plain, SymbolConfig(symbols=FIVE))
    labels = made("x and y", text_target="y and x")["labels"]
    assert model(**made(["x and y"], return_tensors="pt"), labels=torch.tensor([labels])).loss > 0


@given(text=st.text(max_size=12) | st.sampled_from(["a </s> b", "<extra_id_3>é", "<pad> "]))
def test_byt5s_tokenizer_becomes_a_fast_one(text):
    slow = ByT5Tokenizer()
    made = BYT5[1]
    text = text.encode(errors="ignore").decode()
    if "zz" not in text and not text.strip().endswith("</s>"):  # a name; ByT5's adds no end
        assert made(text)["input_ids"] == slow(text)["input_ids"]


BYT5 = get_symbol_model(
    make_host("byt5", vocab_size=384, pad_token_id=0, eos_token_id=1),
    ByT5Tokenizer(),
    SymbolConfig(symbols={"name": {"pattern": "zz+", "count": 3}}),
)


def test_names_are_found_in_bytes():
    model, tokenizer = BYT5
    batch = tokenizer(["f(zz, zzz) é"], return_tensors="pt")
    assert batch["stream_ids"].shape == (1, 2)
    assert tokenizer.batch_decode(batch["input_ids"], names=batch.names) == ["f(zz, zzz) é"]
    told, renamed, swapped, once = (
        logits(model, tokenizer, [text])
        for text in ("f(zz, zzz) é", "f(zzzz, zz) é", "f(zzz, zz) é", "f(zz, zz) é")
    )
    assert told.equal(renamed) and told.equal(swapped)  # symbols go by first occurrence
    assert told.shape == once.shape and not told.allclose(once)


def test_a_model_that_was_trained_with_vectors_for_names_becomes_one_without():
    """As a vanilla model does: with the first name alone, all is as it was."""
    _, _, learned, tokenizer = converted(encoding="learned")
    config = SymbolConfig(actual="<name_0>", placeholder="<name_1>")
    before = {text: logits(learned, tokenizer, [text]) for text in ("alice", "bob <name_0> and")}
    with pytest.raises(ConversionError, match="'<name_9>' is no token"):
        get_symbol_model(copy.deepcopy(learned), tokenizer, SymbolConfig(actual="<name_9>"))
    model, same = get_symbol_model(learned, tokenizer, config)
    first, second, *_ = tokenizer.symbol_ids
    assert same.settings() == tokenizer.settings()
    assert model.config.class_rows == {"name": [first, second]}
    for text, expected in before.items():
        columns = model.config.vocabulary.base_ids + [first] * ("<" in text)
        assert torch.equal(logits(model, tokenizer, [text])[..., columns], expected[..., columns])


# -- decoders alone -------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["relational", "streams", "dual_part", "learned"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_decoder_is_converted_and_writes_names(name, encoding, tmp_path):
    tokenizer = unigram(end=True)
    make_host(name, vocab_size=len(tokenizer), **IDS).save_pretrained(tmp_path / "host")
    tokenizer.save_pretrained(tmp_path / "host")
    lines = []
    convert_host(
        tmp_path / "host", tmp_path / "out", SymbolConfig(symbols=FIVE, encoding=encoding),
        lines.append,
    )  # fmt: skip
    assert f"a {name!r} model with {encoding!r} symbols" in lines[0]
    model, symbol_tokenizer = load_checkpoint(tmp_path / "out")
    assert type(model).__name__ == "RetrofitForCausalLM"
    first, second = (
        symbol_tokenizer([text], return_tensors="pt") for text in ("x y not x", "z x not z")
    )
    answers = [
        model.generate(**batch, max_new_tokens=8, do_sample=False) for batch in (first, second)
    ]
    assert torch.equal(*answers)  # names are symbols in the order in which they come
    texts = [
        symbol_tokenizer.batch_decode(answer, names=batch.names)[0]
        for answer, batch in zip(answers, (first, second), strict=True)
    ]
    assert texts[0].startswith("x y not x") and texts[1].startswith("z x not z")


@pytest.mark.parametrize("encoding", ["relational", "learned"])
@pytest.mark.parametrize("host", ["llama", "t5"])
def test_a_converted_model_may_write_new_names(host, encoding):
    """Their rows begin as those of names are; without names the host's logits are identical."""
    *_, model, tokenizer = converted(host, encoding=encoding, settings={"new_symbols": True})
    head = model.get_output_embeddings().weight
    ids = [i for pair in model.config.symbol_ranges["name"] for i in range(*pair)]
    rows = model.config.class_rows["name"] if encoding == "relational" else ids
    torch.testing.assert_close(model.new_symbols.weight, head[rows].mean(0, keepdim=True))
    batch = tokenizer(["sees x and"], return_tensors="pt")
    answer = {"decoder_input_ids": batch["input_ids"]} if model.config.is_encoder_decoder else {}
    logits = model(input_ids=batch["input_ids"], **answer).logits[0, -1, ids]
    assert (logits > -1e3).sum() == 2  # the name of the text, and a new one


def test_relations_have_to_reach_each_layer_of_a_decoder(monkeypatch):
    """One layer that calls another function than the configuration names."""
    tokenizer = unigram(end=True)
    host = make_host("llama", vocab_size=len(tokenizer), **IDS)
    attention = host.model.layers[1].self_attn
    forward = attention.forward
    attention.forward = lambda *args, symbol_relations=None, **kwargs: forward(*args, **kwargs)
    with pytest.raises(ConversionError, match="relations do not reach its layer 1's attention"):
        get_symbol_model(host, tokenizer, SymbolConfig(encoding="relational", symbols=FIVE))


# -- what cannot be converted ---------------------------------------------------------------------


def slow_tokenizer():
    tokenizer = unigram()
    tokenizer.__class__ = type("MarianTokenizer", (PreTrainedTokenizerFast,), {"is_fast": False})
    return tokenizer


BERT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8,
        "vocab_size": 90}  # fmt: skip


def mamba():
    return MambaForCausalLM(MambaConfig(hidden_size=8, num_hidden_layers=1, vocab_size=90))


def whisper():
    sizes = {key: 1 for key in BART_SIZES if key.endswith(("layers", "heads"))}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": 90}
    return WhisperForConditionalGeneration(WhisperConfig(d_model=8, **sizes, **ids))


def sparse():
    sizes = {**BART_SIZES, "max_position_embeddings": 64, "vocab_size": 90, "block_size": 2}
    config = BigBirdPegasusConfig(**sizes, attention_type="block_sparse", num_random_blocks=1)
    return BigBirdPegasusForConditionalGeneration(config)


@pytest.mark.parametrize(
    ("make", "config", "message"),
    [
        (mamba, {}, "'mamba' model has no past_key_values, keys and values"),
        (lambda: BertForMaskedLM(BertConfig(**BERT)), {}, "'bert' model is an encoder alone"),
        (lambda: BertModel(BertConfig(**BERT)), {}, "encoder alone, .*take an encoder-decoder"),
        (lambda: make_host("t5", vocab_size=90).encoder, {}, "no language modelling head"),
        (lambda: make_host("fsmt"), {}, "FSMT.* take a model"),
        (whisper, {}, "'whisper' model reads no text, or writes none; take an encoder-decoder"),
        (lambda: make_host("marian_apart"), {}, "Marian.* different vocabularies .* one id"),
        (sparse, {"encoding": "relational"}, "its sparse attention takes no relations"),
        (lambda: make_host("t5", vocab_size=89), {}, r"has 90 tokens, .* rows for 89: .*resize_to"),
        (None, {"actual": "x", "placeholder": ["x"]}, "'name' are the same: .* two tokens"),
        (None, {"actual": "é"}, "'é' is no token"),
        (None, {"symbol_tokens": "x bartholomew"}, "'bartholomew' is no token"),
        (None, {"symbol_tokens": "x x"}, "'▁x' is given twice"),
        (None, {"actual": {"f": "x"}}, "actual: there is no class 'f'"),
        (None, {"symbols": {"x": 2, "f": 2}, "actual": "x"}, "say which class tokens are for"),
        (None, {"symbols": {"x": {"tokens": ["a", "b"], "count": 1}}}, "2 tokens, but count = 1"),
        (None, {"symbols": {"x": 0}}, "'count' is 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_says_the_way_out(make, config, message):
    tokenizer = unigram(end=True)
    host = make() if make else host_for(tokenizer)
    before = {key: value.clone() for key, value in host.state_dict().items()}
    with pytest.raises(ConversionError, match=f"(?s){message}"):
        get_symbol_model(host, tokenizer, SymbolConfig(**config))
    assert all(torch.equal(value, before[key]) for key, value in host.state_dict().items())


def with_adapter(host):
    host.add_adapter(LoraConfig(target_modules=["q", "v"], init_lora_weights=False))
    return host


@pytest.mark.parametrize(
    "wrap",
    [
        lambda host: get_peft_model(host, LoraConfig(target_modules=["q", "v"])),
        with_adapter,
        torch.compile,
        lambda host: get_peft_model(host, LoraConfig(target_modules=["q", "v"])).base_model.model,
    ],
)
def test_what_would_not_be_loaded_again_is_refused(wrap):
    """A folder names the host's configuration; what is wrapped around its layers would be lost."""
    tokenizer = unigram(end=True)
    with pytest.raises(ConversionError, match=r"merge_and_unload\(\)"):
        get_symbol_model(wrap(host_for(tokenizer)), tokenizer, SymbolConfig(symbols=FIVE))


def test_an_adapter_that_is_merged_is_converted():
    tokenizer = unigram(end=True)
    config = LoraConfig(target_modules=["q", "v"], init_lora_weights=False)
    merged = get_peft_model(host_for(tokenizer), config).merge_and_unload()
    model, _ = get_symbol_model(merged, tokenizer, SymbolConfig(symbols=FIVE))
    assert not [name for name in model.state_dict() if "lora" in name]


def test_encodings_and_tokenizers_that_do_not_fit():
    with pytest.raises(ConversionError, match=r"streams, .*'wild'|'wild'.*streams"):
        SymbolConfig(encoding="wild")
    with pytest.raises(
        ConversionError,
        match=r"'led' model does not take .* 'relational': relations do not reach its encoder "
        r"attention, .*\(AttentionInterface\)\. T5, BART, .* every encoding; docs/retrofit.md",
    ):
        converted("led", encoding="relational")
    with pytest.raises(ConversionError, match="joins streams: use the encoding 'streams'"):
        SymbolConfig(encoding="dual_part", aggregated_attention=["encoder"])
    with pytest.raises(ConversionError, match="encoder or decoder, not 'middle'"):
        SymbolConfig(aggregated_attention=["middle"])
    with pytest.raises(ConversionError, match="no setting 'prefix_lm'"):
        converted("llama", encoding="relational", settings={"prefix_lm": True})
    with pytest.raises(
        ConversionError, match=r"MarianTokenizer is no fast tokenizer.*TextTokenizer"
    ):
        get_symbol_model(host_for(unigram()), slow_tokenizer())
    model, tokenizer = BYT5
    with pytest.raises(ConversionError, match="'streams' already"):
        get_symbol_model(model, tokenizer)
    with pytest.raises(ConversionError, match="'alpha' model has symbols already"):
        get_symbol_model(make_model(), tokenizer)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ("x y", ["Ġx is no symbol; Ġy is no symbol."]),
        ("Ġx", [": x is no symbol."]),
        ("x Ġx", ["x and Ġx are two symbols for one name."]),
        ("e Ġx x", [": x and Ġx are two", "--symbols 32 --names"]),
    ],
)
def test_spellings_that_are_no_symbols_are_named(caplog, tokens, said):
    """`x` and ` x` are two tokens of a byte-level tokenizer."""
    converted("bart", make=byte_level, symbol_tokens=tokens)
    assert all(text in caplog.text for text in said)
    assert "name those" not in caplog.text and caplog.text.count("no symbol") <= len(tokens.split())


def prophet(tokenizer):
    sizes = {key: 2 for key in ("num_encoder_layers", "num_decoder_layers")}
    heads = {"num_encoder_attention_heads": 2, "num_decoder_attention_heads": 2}
    width = {"hidden_size": 16, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    config = ProphetNetConfig(**sizes, **heads, **width, vocab_size=len(tokenizer), **IDS)
    return ProphetNetForConditionalGeneration(config)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, r"'streams': the model says 'the head gets states of shape"),
        ({"encoding": "dual_part"}, r"'dual_part': the model says 'the head gets states of shape"),
        ({"aggregated_attention": ["decoder"]}, "with aggregated attention: its configuration"),
        ({"encoding": "relational"}, "'relational': its configuration says"),
    ],
)
def test_a_family_whose_head_is_another_is_refused(asked, said):
    """ProphetNet's predicts several tokens at each place: there were logits of five dimensions."""
    tokenizer = unigram(end=True)
    with pytest.raises(ConversionError, match=f"'prophetnet' model does not take .*{said}"):
        get_symbol_model(prophet(tokenizer), tokenizer, SymbolConfig(symbols=FIVE, **asked))


ASKED = [
    {"encoding": "streams"},
    {"encoding": "relational"},
    {"encoding": "learned", "renaming": "first_occurrence"},
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked["encoding"])
def test_names_that_are_seen_are_found_by_the_proof(monkeypatch, asked):
    """Scores that say which symbol a name has got; the symbols are the last columns."""
    finish = SymbolLayer.finish

    def by_number(self, *args):
        found = finish(self, *args)
        found[..., -5:] += torch.arange(5.0) * (found[..., -5:] > -1e3)
        return found

    monkeypatch.setattr(SymbolLayer, "finish", by_number)
    tokenizer = unigram(end=True)
    with pytest.raises(ConversionError, match=f"'{asked['encoding']}': renaming changes its log"):
        get_symbol_model(host_for(tokenizer), tokenizer, SymbolConfig(symbols=FIVE, **asked))


class Forgetful(T5ForConditionalGeneration):
    """A T5 that loses what it has written."""

    def forward(self, *args, past_key_values=None, **kwargs):
        if past_key_values is not None and past_key_values.get_seq_length():
            past_key_values.reset()
        return super().forward(*args, past_key_values=past_key_values, **kwargs)


@pytest.mark.parametrize("asked", [*ASKED, {"encoding": "dual_part"}], ids=lambda x: x["encoding"])
def test_a_cache_that_changes_answers_is_found_by_the_proof(asked):
    tokenizer = unigram(end=True)
    host = host_for(tokenizer)
    host.__class__ = Forgetful
    message = f"'{asked['encoding']}': a cache changes its logits"
    with pytest.raises(ConversionError, match=message):
        get_symbol_model(host, tokenizer, SymbolConfig(symbols=FIVE, **asked))


@pytest.mark.parametrize("name", ["t5", "switch_transformers"])
def test_a_decoder_may_be_deeper_than_its_encoder(name):
    """T5's configuration has the encoder's layers in the place where caches look."""
    tokenizer = unigram(end=True)
    host = host_for(tokenizer, name, num_decoder_layers=3)
    model, made = get_symbol_model(host, tokenizer, SymbolConfig(symbols=FIVE))
    batch = made(TEXTS, return_tensors="pt", padding=True)
    answers = [
        model.generate(**batch, use_cache=cache, max_new_tokens=4) for cache in (True, False)
    ]
    assert answers[0].equal(answers[1])


# -- folders --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path) -> Path:
    """A model of Transformers, as `save_pretrained` leaves it."""
    tokenizer = unigram(end=True)
    host_for(tokenizer, spare=3).save_pretrained(tmp_path / "host")
    tokenizer.save_pretrained(tmp_path / "host")
    return tmp_path / "host"


def test_nothing_is_written_and_no_weight_is_made_up(folder, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileExistsError, match=r"taken exists: remove it, or choose another"):
        convert_host(folder, tmp_path / "taken", SymbolConfig())
    with pytest.raises(ConversionError, match="'é' is no token"):
        convert_host(folder, out, SymbolConfig(actual="é"))
    with pytest.raises(FileNotFoundError, match="no checkpoint folder"):
        convert_host(tmp_path / "none", out, SymbolConfig())
    BertConfig(**BERT).save_pretrained(tmp_path / "bert")
    with pytest.raises(ConversionError, match="encoder alone"):
        convert_host(tmp_path / "bert", out, SymbolConfig())
    WhisperConfig().save_pretrained(tmp_path / "whisper")
    with pytest.raises(ConversionError, match="'whisper' model reads no text, or writes none"):
        convert_host(tmp_path / "whisper", out, SymbolConfig())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_layers": 3}))
    with pytest.raises(ValueError, match="is missing, and"):
        convert_host(folder, out, SymbolConfig())
    assert not out.exists()
