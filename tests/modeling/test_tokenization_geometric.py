import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import CHARACTERS, MARKS, WORDS, finish, unigram, word_piece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, BertTokenizerFast, PreTrainedTokenizerFast

from hf_alpha.geometric import GeometricTokenizer
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.transduction import Lexicon, Transducer

SEGMENTS = ["segment_ids", "segment_starts", "segment_ends"]
ENTRIES = [
    ("alice", "NAME"), ("bob sees", "CLAUSE"), ("alice and bob", "PAIR"), ("and", "WORD"),
    ("bob", "NAME"), ("sees x", "CLAUSE"), ("é", "SIGN"), ("ﬁre", "NOUN"), ("中", "SIGN"),
    ("! =", "SIGN"), ("İz", "NAME"), ("carol not", "PAIR"), ("👩", "SIGN"), ("z", "WORD"),
]  # fmt: skip
TRANSDUCER = Transducer.compile(Lexicon.from_entries(ENTRIES), max_per_position=9)
CHARACTER_TRANSDUCER = Transducer.compile(
    Lexicon.from_entries([("lic", "IN"), ("dbo", "OVER"), ("é", "SIGN"), ("b", "LETTER")]),
    unit="characters",
    max_per_position=9,
)


def plain_bpe() -> PreTrainedTokenizerFast:
    """As GPT-1's: ends of words are marked."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=120, special_tokens=MARKS, show_progress=False, end_of_word_suffix="</w>"
    )
    tokenizer.train_from_iterator([f"{a} {b}" for a in WORDS for b in WORDS], trainer)
    return finish(tokenizer, False)


def framed(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """With special tokens around one text, and around two."""
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B:1 </s>:1",
        special_tokens=[(mark, tokenizer.convert_tokens_to_ids(mark)) for mark in ("<s>", "</s>")],
    )
    return tokenizer


TEXTS = [f"{a} {b}, {c}!" for a in WORDS for b in WORDS for c in CHARACTERS]
TOKENIZERS = {
    "wordpiece": framed(word_piece()),
    "bpe": framed(plain_bpe()),
    "bytes": make_tokenizer("bpe:300", TEXTS),
    "metaspace": framed(unigram()),
}
PARTS = [
    *WORDS, "Alice and  bob", "sees x", "e\u0301", "é", "ﬁre", "fi", "中中", "! =", "!=", "İz",
    "🙂", "👩", "carol\tnot", "qq", "\u200b", "",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PARTS), max_size=9).map(" ".join) | st.lists(
    st.sampled_from(PARTS), max_size=5
).map("".join)


def expected(tokenizer, transducer, texts, encoding, cut_left) -> list[tuple[int, int, int]]:
    """The segments of a row, each looked up character by character.

    Args:
        texts: of the row.
        encoding: of the row, padded and cut.
        cut_left: whether the first tokens are cut off, and not the last ones.
    """
    whole = tokenizer(*texts, add_special_tokens=False, return_offsets_mapping=True)
    parts, offsets = whole.sequence_ids(), whole["offset_mapping"]
    found = set()
    for part, text in enumerate(texts):
        every = [span for span, which in zip(offsets, parts, strict=True) if which == part]
        seen = [c for c, which in enumerate(encoding.sequence_ids) if which == part]
        lost = len(every) - len(seen) if cut_left else 0
        column = {lost + number: c for number, c in enumerate(seen)}
        for start, stop, label in transducer.spans(text):
            touched = [
                n for n, (a, b) in enumerate(every) if any(a <= c < b for c in range(start, stop))
            ]
            if touched and all(n in column for n in touched):
                number = transducer.labels.index(label) + 1
                found.add((column[touched[0]], column[touched[-1]], number))
    return sorted(found)


def segments(batch) -> list[list[tuple[int, int, int]]]:
    """The segments of each row of a batch, without padding."""
    columns = [batch[key] for key in ("segment_starts", "segment_ends", "segment_ids")]
    columns = [c.tolist() if isinstance(c, torch.Tensor) else c for c in columns]
    return [
        [triple for triple in zip(*row, strict=True) if triple[2]]
        for row in zip(*columns, strict=True)
    ]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("transducer", [TRANSDUCER, CHARACTER_TRANSDUCER], ids=["words", "chars"])
@pytest.mark.parametrize("kind", TOKENIZERS)
@given(st.data())
def test_segments_lie_over_the_tokens_of_their_characters(kind, transducer, data):
    """Pairs, padding and truncation on both sides; all else is the wrapped tokenizer's batch."""
    beneath = copy.deepcopy(TOKENIZERS[kind])
    beneath.padding_side, beneath.truncation_side = (
        data.draw(st.sampled_from(["left", "right"])) for _ in range(2)
    )
    tokenizer = GeometricTokenizer.from_tokenizer(beneath, transducer)
    texts = data.draw(st.lists(TEXT, min_size=1, max_size=3))
    pairs = data.draw(st.none() | st.lists(TEXT, min_size=len(texts), max_size=len(texts)))
    options = {"padding": data.draw(st.sampled_from([True, False, "max_length"]))}
    if data.draw(st.booleans()):
        options |= {"truncation": True, "max_length": data.draw(st.integers(6, 14))}
    elif options["padding"] == "max_length":
        options["max_length"] = 400
    options["add_special_tokens"] = data.draw(st.booleans())
    if options["padding"]:
        options["return_tensors"] = data.draw(st.sampled_from([None, "pt"]))
    batch, wanted = tokenizer(texts, pairs, **options), beneath(texts, pairs, **options)
    assert [*batch] == [*wanted, *SEGMENTS]
    for key, value in wanted.items():
        assert (
            torch.equal(torch.as_tensor(batch[key]), torch.as_tensor(value))
            if (options["padding"])
            else batch[key] == value
        )
    rows = list(zip(texts, *([pairs] if pairs is not None else []), strict=True))
    cut_left = beneath.truncation_side == "left"
    right = [
        expected(beneath, transducer, row, wanted.encodings[n], cut_left)
        for n, row in enumerate(rows)
    ]
    assert segments(batch) == right
    if options["padding"]:
        assert {len(row) for row in batch["segment_ids"]} == {max([1, *map(len, right)])}
        filled = [[*row, *[(0, 0, 0)] * (len(batch["segment_ids"][0]) - len(row))] for row in right]
        for key, place in zip(SEGMENTS, (2, 0, 1), strict=True):
            assert torch.as_tensor(batch[key]).tolist() == [
                [t[place] for t in row] for row in filled
            ]


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(["left", "right"]), st.booleans())
@settings(max_examples=25)
def test_rows_padded_later_are_the_batch_made_at_once(kind, texts, side, tensors):
    tokenizer = GeometricTokenizer.from_tokenizer(TOKENIZERS[kind], TRANSDUCER)
    tokenizer.padding_side = side
    at_once = tokenizer(texts, padding=True, return_tensors="pt" if tensors else None)
    rows = [tokenizer(text) for text in texts]
    later = tokenizer.pad(rows, return_tensors="pt" if tensors else None)
    assert sorted(later) == sorted(at_once)
    for key, value in at_once.items():
        assert torch.equal(torch.as_tensor(later[key]), torch.as_tensor(value)), key
    more = tokenizer.pad(later, padding="max_length", max_length=200)
    again = tokenizer(texts, padding="max_length", max_length=200)
    for key in again:
        assert torch.equal(torch.as_tensor(more[key]), torch.as_tensor(again[key])), key
    assert dict(tokenizer.pad(rows[0], padding=False)) == dict(rows[0])
    (first,) = (tokenizer.pad(rows[0], padding="max_length", max_length=200),)
    assert {key: [value] for key, value in first.items()} == dict(
        tokenizer(texts[:1], padding="max_length", max_length=200)
    )


@given(st.lists(TEXT, min_size=1, max_size=3), st.integers(0, 2))
def test_windows_have_the_segments_that_are_in_them_whole(texts, stride):
    tokenizer = GeometricTokenizer.from_tokenizer(TOKENIZERS["wordpiece"], TRANSDUCER)
    options = {"max_length": 7, "truncation": True, "stride": stride}
    options |= {"return_overflowing_tokens": True, "return_offsets_mapping": True}
    batch = tokenizer(texts, **options)
    for row, sample in enumerate(batch["overflow_to_sample_mapping"]):
        offsets = batch["offset_mapping"][row]
        every = tokenizer(texts[sample], return_offsets_mapping=True)["offset_mapping"][1:-1]
        wanted = set()
        for start, stop, label in TRANSDUCER.spans(texts[sample]):
            own = [tuple(x) for x in every if x[0] < stop and x[1] > start]
            if own and set(own) <= set(map(tuple, offsets[1:-1])):
                columns = [offsets.index(own[0]), offsets.index(own[-1])]
                wanted.add((*columns, TRANSDUCER.labels.index(label) + 1))
        assert segments(batch)[row] == sorted(wanted)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_saved_loaded_and_copied_it_is_the_same(kind, tmp_path):
    beneath = TOKENIZERS[kind]
    beneath.padding_side = "left"
    tokenizer = GeometricTokenizer.from_tokenizer(beneath, TRANSDUCER)
    beneath.padding_side = "right"
    here = tmp_path / "here"
    tokenizer.save_pretrained(here)
    tokenizer.save_pretrained(here)
    loaded = [AutoTokenizer.from_pretrained(here), GeometricTokenizer.from_pretrained(here)]
    loaded[1].save_pretrained(here)  # onto its own files
    loaded += [copy.deepcopy(each) for each in (tokenizer, loaded[0])]
    loaded += [pickle.loads(pickle.dumps(each)) for each in (tokenizer, loaded[0])]
    here.rename(tmp_path / "elsewhere")  # as checkpoints go: nothing is read later
    texts = ["alice and bob", "bob sees x and Alice"]
    wanted = tokenizer(texts, padding=True)
    assert all(wanted["segment_ids"][1])
    for other in loaded:
        assert type(other) is GeometricTokenizer
        assert dict(other(texts, padding=True)) == dict(wanted)
        assert other.decode(wanted["input_ids"][1]) == tokenizer.decode(wanted["input_ids"][1])
        assert other.special_tokens_map == beneath.special_tokens_map
        assert len(other) == len(beneath)
    shorter = Transducer.compile(Lexicon.from_entries([("alice", "WHO")]))
    other = GeometricTokenizer.from_pretrained(tmp_path / "elsewhere", transducer=shorter)
    assert other.segment_labels == ["WHO"] and other(texts[0])["segment_ids"] == [1]


def test_segments_are_beside_the_columns_of_the_tokenizer_beneath():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fire", "hose", "##s", "a"]
    plain = BertTokenizerFast(vocab={word: index for index, word in enumerate(vocabulary)})
    transducer = Transducer.compile(Lexicon.from_entries([("fire hoses", "NOUN")]))
    tokenizer = GeometricTokenizer.from_tokenizer(plain, transducer)
    batch = tokenizer(["A fire hoses", "a"], padding=True)
    wanted = plain(["A fire hoses", "a"], padding=True)
    assert {key: batch[key] for key in wanted} == dict(wanted)
    assert batch["segment_starts"] == [[2], [0]] and batch["segment_ends"] == [[4], [0]]
    again = GeometricTokenizer.from_tokenizer(tokenizer, TRANSDUCER)
    assert again.model_input_names == tokenizer.model_input_names


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_no_segment_is_over_a_special_token_that_the_text_writes(kind):
    """Whatever its words are in a lexicon; words that the vocabulary lacks are no such tokens."""
    mask = "[MASK]" if kind == "bytes" else "<mask>"
    beneath = copy.deepcopy(TOKENIZERS[kind])
    beneath.add_special_tokens({"mask_token": mask})
    entries = [("mask", "WORD"), (f"{mask} bob", "PAIR"), ("bob", "NAME"), ("qß", "WORD")]
    transducer = Transducer.compile(Lexicon.from_entries(entries))
    tokenizer = GeometricTokenizer.from_tokenizer(beneath, transducer)
    (found,) = segments(tokenizer([f"alice {mask} bob qß"]))
    assert [transducer.labels[number - 1] for *_, number in found] == ["NAME", "WORD"]


def test_what_cannot_be_wrapped_or_encoded_is_refused():
    tokenizer = GeometricTokenizer.from_tokenizer(TOKENIZERS["wordpiece"], TRANSDUCER)
    with pytest.raises(ValueError, match="segments are found in whole texts"):
        tokenizer(["alice"], is_split_into_words=True)
    named = make_tokenizer("words", ["alice sees"], {"name": {"tokens": ["alice"]}})
    with pytest.raises(ValueError, match="TextTokenizer has symbols in place of names"):
        GeometricTokenizer.from_tokenizer(named, TRANSDUCER)
    with pytest.raises(ValueError, match="str is no fast tokenizer"):
        GeometricTokenizer.from_tokenizer("bert", TRANSDUCER)
    bare = GeometricTokenizer(tokenizer_object=tokenizer.backend_tokenizer)
    with pytest.raises(ValueError, match=r"has no transducer: transducer\.json and lexicon\.tsv"):
        bare("alice")
