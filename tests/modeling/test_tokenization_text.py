"""Texts with names over any fast tokenizer: names in and out, and all else as it is beneath."""

import copy
import json
import pickle
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import regex
import torch
from datasets.fingerprint import Hasher
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import byte_level as small_byte_level
from small_tokenizers import smiles, unigram, word_level, word_piece
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoTokenizer,
    BatchEncoding,
    BertTokenizer,
    GPT2Tokenizer,
    LlamaTokenizer,
    MBart50Tokenizer,
    MBartTokenizer,
    NllbTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    T5Tokenizer,
)

from hf_alpha import AlphaTokenizer, CanonicalTokenizer, MarkedText, TextTokenizer
from hf_alpha.modeling import tokenizer_beneath
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.tasks.build_tokenizer import build_tokenizer

TEXTS = [
    "swap x y : ( x + y ) * x",
    "let f(x, y) = find y in x; the value of x's value is -y!",
    "if (x) then print the value , else stop .",
    "the quick brown fox jumps over the lazy dog [0-9]\n\t1 2 3 4 5 6 7 8",
]
RULES = {"variable": {"pattern": "v[0-9]+|[xyz]|Bob|New York|très_long", "count": 8}}
NAMES = ["x", "y", "z", "Bob", "New York", "très_long", "v123456"]
WORDS = ["swap", "find", "the", "value", "(", ")", "+", ",", ".", "'", "-", "f", "!"]
FOUR = {"variable": {"pattern": "[xyz]", "count": 4}}


def trained(model: Tokenizer, trainer: object, *parts: str) -> list:
    model.train_from_iterator(TEXTS * 3, trainer)
    state = json.loads(model.to_str())["model"]
    return [state[part] for part in parts]


def byte_level(cls: type, special: list[str], **settings: bool) -> PreTrainedTokenizerFast:
    beneath = Tokenizer(models.BPE())
    beneath.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=letters, special_tokens=special, show_progress=False
    )
    vocab, merges = trained(beneath, trainer, "vocab", "merges")
    return cls(vocab=vocab, merges=[tuple(merge) for merge in merges], **settings)


def sentence_pieces() -> list[tuple[str, float]]:
    beneath = Tokenizer(models.Unigram())
    beneath.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    return [tuple(piece) for piece in trained(beneath, trainer, "vocab")[0]]


def sentence_piece() -> PreTrainedTokenizerFast:
    """As newer conversions of SentencePiece make T5's."""
    beneath = Tokenizer(models.Unigram(sentence_pieces(), unk_id=2))
    beneath.normalizer = normalizers.Sequence(
        [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    )
    beneath.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    beneath.decoder = decoders.Metaspace(prepend_scheme="always")
    beneath.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=beneath, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def bert() -> BertTokenizer:
    beneath = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    beneath.normalizer = normalizers.BertNormalizer()
    beneath.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=special, show_progress=False)
    return BertTokenizer(vocab=trained(beneath, trainer, "vocab")[0])


def old_llama_backend() -> Tokenizer:
    beneath = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    beneath.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    vocab, merges = trained(beneath, trainer, "vocab", "merges")
    beneath.model = models.BPE(
        vocab, [tuple(m) for m in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    beneath.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    beneath.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return beneath


def llama(cls: type) -> PreTrainedTokenizerFast:
    beneath = old_llama_backend()
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    if cls is PreTrainedTokenizerFast:
        return cls(tokenizer_object=Tokenizer.from_str(beneath.to_str()), **special)
    state = json.loads(beneath.to_str())["model"]
    return cls(vocab=state["vocab"], merges=[tuple(merge) for merge in state["merges"]], **special)


ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
HOSTS = {
    "gpt2": byte_level(GPT2Tokenizer, ["<|endoftext|>"]),
    "roberta": byte_level(RobertaTokenizer, ROBERTA),
    "roberta with a first space": byte_level(RobertaTokenizer, ROBERTA, add_prefix_space=True),
    "t5": T5Tokenizer(vocab=sentence_pieces(), extra_ids=2),
    "sentencepiece": sentence_piece(),
    "bert": bert(),
    "llama": llama(LlamaTokenizer),
    "old llama": llama(PreTrainedTokenizerFast),
}
OVER = {name: TextTokenizer.from_tokenizer(host, RULES) for name, host in HOSTS.items()}
KEEPING = ("gpt2", "roberta")
"""Hosts that keep every character; the others give spaces, or what begins a text, a form."""
MADE = {
    kind: TextTokenizer.from_texts(
        [*TEXTS, *WORDS, "  ", " \n", f"the {' '.join(NAMES)}"], RULES, kind
    )
    for kind in ("words", "characters", "bpe:300")
}
ALL = {**MADE, **OVER}


@st.composite
def pieces(draw: st.DrawFn, blanks: str = "any") -> list[str]:
    """Names and words, and what stands between them; no two words are glued to one."""
    between = {"any": ["", " ", " ", "  ", "\n", " \n"], "one": ["", " "]}[blanks]
    words = draw(st.lists(st.sampled_from([*NAMES, *WORDS]), min_size=1, max_size=8))
    made = [draw(st.sampled_from(["", " "])) if blanks == "any" else ""]
    for word, after in pairwise([*words, ""]):
        glued = word[-1].isalnum() and after[:1].isalnum()
        blank = " " if glued else draw(st.sampled_from(between))
        made += [word, blank if after else ""]
    return made


def back(tokenizer: TextTokenizer, text: str) -> str:
    batch = tokenizer([text])
    (decoded,) = tokenizer.batch_decode(batch["input_ids"], names=batch.names)
    return decoded


# The text comes back


@pytest.mark.parametrize("kind", [*MADE, *KEEPING])
@settings(max_examples=15)
@given(pieces())
def test_text_comes_back_to_the_letter(kind: str, made: list[str]) -> None:
    text = "".join(made)
    assert back(ALL[kind], text) == text


@pytest.mark.parametrize("host", [small_byte_level(), unigram(end=True), word_piece()])
def test_ids_of_rows_that_pad_a_table_are_decoded_as_the_host_decodes_them(host):
    """Models have more rows than tokens: Qwen's and T5's tables are padded."""
    canonical = CanonicalTokenizer.from_tokenizer(host, {"name": "[a-z]"})
    ids = [*host("the b fox")["input_ids"], len(host) + 8, *host("c")["input_ids"]]
    for skip in (True, False):
        expected = host.decode(ids, skip_special_tokens=skip)
        assert canonical.decode(ids, skip_special_tokens=skip) == expected
    assert canonical.decode(len(host) + 8) == host.decode(len(host) + 8) == ""
    with_names = canonical.decode(ids, names={"b": "x"})
    assert with_names == canonical.decode([i for i in ids if i < len(host)], names={"b": "x"})


@pytest.mark.parametrize("kind", [TextTokenizer, CanonicalTokenizer])
def test_special_tokens_of_the_host_are_skipped_that_it_has_no_name_for(kind):
    """Such as the end of a turn, with which chat models end their answers."""
    host = llama(LlamaTokenizer)
    host.add_tokens([AddedToken("<|end|>", special=True), AddedToken("<tool>", special=False)])
    ids = host("the <tool> quick <unk> fox<|end|>", add_special_tokens=False)["input_ids"]
    for tokenizer in (kind.from_tokenizer(host, RULES), host):
        assert "<|end|>" in tokenizer.decode(ids, skip_special_tokens=False)
        written = tokenizer.decode(ids, skip_special_tokens=True)
        assert "<|end|>" not in written and "<tool>" in written


@pytest.mark.parametrize("kind", [name for name in HOSTS if name not in (*KEEPING, "bert")])
@settings(max_examples=15)
@given(pieces("one"))
def test_text_with_single_spaces_comes_back(kind: str, made: list[str]) -> None:
    """Such a host may take space at the start, at the end and in a row for one or none."""
    text = "".join(made)
    assert back(OVER[kind], text) == text


@settings(max_examples=15)
@given(pieces())
def test_bert_writes_what_it_writes_itself_and_names_as_they_are(made: list[str]) -> None:
    """Beside names that have no space before them, which stay where they are."""
    plain = "".join("quick" if part in NAMES else part for part in made)
    host = HOSTS["bert"].decode(HOSTS["bert"](plain)["input_ids"], skip_special_tokens=True)
    parts, expected = host.split("quick"), ""
    names = [number for number, part in enumerate(made) if part in NAMES]
    for part, number in zip(parts, [*names, None], strict=True):
        expected += part
        if number is not None:
            glued = not "".join(made[:number])[-1:].isspace()
            expected = (expected.removesuffix(" ") if glued else expected) + made[number]
    assert back(OVER["bert"], "".join(made)) == expected


GREEK = ["ζ1", "ζ", "αβ", "β_2"]
"""Names that no tokens of the tokenizers here spell."""


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=15)
@given(st.data())
def test_what_is_decoded_has_each_name_as_a_word(kind: str, data: st.DataObject) -> None:
    """Whatever tokens a model writes: none beside a name, and no other name, is glued to it."""
    tokenizer = ALL[kind]
    symbols = tokenizer.symbol_ids[: len(GREEK)]
    base = [i for token, i in tokenizer.get_vocab().items() if token.isascii()]
    base = [i for i in base if i not in tokenizer.symbol_ids and tokenizer.decode([i])]
    join = tokenizer.convert_tokens_to_ids("<join>")
    drawn = st.one_of(*map(st.sampled_from, (symbols, base, [join])))
    ids = data.draw(st.lists(drawn, min_size=1, max_size=10))
    table = dict(zip(symbols, data.draw(st.permutations(GREEK)), strict=True))
    names = {tokenizer.convert_ids_to_tokens(i): name for i, name in table.items()}
    text = tokenizer.decode(ids, names=names)
    found = NameFinder({"name": GREEK}).find(text)
    assert [text[start:stop] for start, stop, *_ in found] == [table[i] for i in ids if i in table]


def test_names_are_kept_apart_from_letters_only() -> None:
    rule = {"name": {"pattern": r"[a-z][a-z0-9]*|変数", "reserved": ["ra", "s"], "count": 9}}
    made = TextTokenizer.from_texts(["ra t2 ra", "変数は1つ x = 1", "x's"], rule, "bpe:300")
    ra, join, x, y = made.convert_tokens_to_ids(["ra", "<join>", "<name_0>", "<name_1>"])
    names = {"<name_0>": "t2", "<name_1>": "f"}
    for ids, text in [
        ([ra, join, x], "ra t2"),
        ([x, ra], "t2 ra"),
        ([x, join, y], "t2 f"),
        ([join, x, y, join], "t2 f"),
        ([x, *made("(")["input_ids"][:-1], join, y], "t2(f"),
        ([x, *made("'s")["input_ids"][:-1]], "t2's"),
    ]:
        assert made.decode(ids, names=names) == text
    for text in ("f(x)", "x+1", "x's", "-x.y_", "x\ny"):
        assert back(made, text) == text
    # scripts without spaces between words
    text = MarkedText("変数は1つ", [(0, 2, "name")])
    assert back(made, text) == text
    words = TextTokenizer.from_texts(["ra t2"], rule)
    ids = words.convert_tokens_to_ids(["ra", "<join>", "<name_0>", "<join>", "ra"])
    assert words.decode(ids, names=names) == "ra t2 ra"


# Names inside words

PARTS = {"part": {"count": 12, "words": False}}
INSIDE = {
    **{name: TextTokenizer.from_tokenizer(host, PARTS) for name, host in HOSTS.items()},
    **{
        kind: TextTokenizer.from_texts([*TEXTS, *WORDS, "  ", "\n"], PARTS, kind)
        for kind in ("characters", "bpe:300")
    },
    "smiles": TextTokenizer.from_tokenizer(smiles(), PARTS),
}
JOINING = ("t5", "sentencepiece", "bert", "characters", "bpe:300")
"""Hosts that lose a space beside a symbol, or write one, and those that are made with `<join>`."""


@st.composite
def with_parts(draw: st.DrawFn, kind: str) -> MarkedText:
    """A text in which any characters are names, also a part of a word or next to one another."""
    if kind == "smiles":
        words, blanks = ["C", "CN", "(", ")", "=", "c"], [""]
    elif kind == "bert":  # which writes spaces around signs
        words, blanks = ["swap", "find", "the", "value", "f"], [" ", ""]
    else:
        words, blanks = WORDS, ["", " ", "  ", "\n"] if kind in {*MADE, *KEEPING} else ["", " "]
    found = draw(st.lists(st.sampled_from(words), min_size=1, max_size=6))
    text = "".join(word + draw(st.sampled_from(blanks)) for word in found).rstrip()
    ends = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [(i, j, "part") for i, j in pairwise(ends) if draw(st.booleans())]
    return MarkedText(text, [s for s in spans if text[s[0] : s[1]] == text[s[0] : s[1]].strip()])


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("kind", INSIDE)
@settings(max_examples=25)
@given(st.data())
def test_names_inside_words_come_back_to_the_letter(kind: str, data: st.DataObject) -> None:
    text, tokenizer = data.draw(with_parts(kind)), INSIDE[kind]
    assert back(tokenizer, text) == text
    assert ("<join>" in tokenizer.get_vocab()) == (kind in JOINING)


def test_whole_words_and_parts_of_words_in_one_text() -> None:
    rules = {"digit": {"pattern": "[1-9]", "words": False, "count": 9}, "name": ["bob", "x"]}
    for kind in ("gpt2", "llama", "t5", "bert"):
        own = TextTokenizer.from_tokenizer(HOSTS[kind], rules)
        text = "find a1b2 bob 3x 12 the4 x" if kind == "bert" else "find f(x)1b2 bob 3+x 12 -bob x"
        assert back(own, text) == text
    text = "find1the2 bob, 12the value3"
    assert back(TextTokenizer.from_texts([text], rules), text) == text
    joins = own.tokenize("find a1b2 bob").count("<join>")
    assert joins == 3  # BERT would write spaces at both sides of a name, and loses them
    assert own.decode(own.convert_tokens_to_ids(["find", "<digit_0>"])) == "find <digit_0>"


# Plain words that are spelled like names

WORDY, OTHERS = ["alice", "bob", "x", "carol", "y"], ["x1", "z", "zed", "q", "t2"]
CLASHES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "letters": ({"pattern": "[a-z]"}, list("xyzab"), list("kmqrs")),
    "words": ({"pattern": "[a-z]+[0-9]*", "reserved": ["and", "sees"]}, WORDY, OTHERS),
    "column": ({"column": "names"}, WORDY, OTHERS),
    "identifier": ({"rule": "identifier"}, WORDY, OTHERS),
    "json": ({"rule": "json"}, WORDY, OTHERS),
    "inside words": ({"pattern": "[1-9]", "words": False}, list("12345"), list("36789")),
}
"""Rule, names of a text, and what they are renamed to: plain tokens spell all of them."""
CLASHING = {
    (kind, host): TextTokenizer.from_tokenizer(make(), {"name": {**rule, "count": 6}})
    for kind, (rule, *_) in CLASHES.items()
    for host, make in {"bytes": small_byte_level, "bert": word_piece, "t5": unigram}.items()
}


def as_read(tokenizer: TextTokenizer, text: str, names: dict[str, str]) -> tuple[list[str], ...]:
    """What stands between the names of a problem in an answer to it, and the symbols of these."""
    symbols = {name: symbol for symbol, name in names.items()}
    spans = tokenizer.finder.find(text, dict.fromkeys(symbols, "name"))
    spans = [span for span in spans if text[span.start : span.stop] in symbols]
    edges = [0, *(edge for span in spans for edge in span[:2]), len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(edges)]
    return pieces[::2], [symbols[name] for name in pieces[1::2]]


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("kind", CLASHING, ids=" ".join)
@settings(max_examples=40)
@given(st.data())
def test_names_are_all_that_renaming_changes_whatever_plain_tokens_spell(kind, data) -> None:
    """Random ids under any names: what is read as a name was written as one, and no other."""
    tokenizer, (_, names, others) = CLASHING[kind], CLASHES[kind[0]]
    symbols = tokenizer.symbol_ids[: len(names)]
    tokens = tokenizer.convert_ids_to_tokens(symbols)
    texts = [*names, *others, *(f" {name}" for name in names), " ", ",", ". ", "(", "sees"]
    beneath = tokenizer.backend_tokenizer
    plain = [beneath.encode(text, add_special_tokens=False).ids for text in texts]
    drawn = st.one_of(st.sampled_from([[i] for i in symbols]), st.sampled_from(plain))
    ids = list(chain.from_iterable(data.draw(st.lists(drawn, min_size=1, max_size=10))))
    tables = [
        dict(zip(tokens, data.draw(st.permutations(pool)), strict=True))
        for pool in (names, names, others)
    ]
    one, same, other = (
        as_read(tokenizer, tokenizer.decode(ids, names=table), table) for table in tables
    )
    assert one == same
    assert one[1] == other[1] == [tokens[symbols.index(i)] for i in ids if i in symbols]
    # what is no name of the text may be another new name, each another one
    words = regex.compile(r"." if tokenizer.finder.inside else r"\w+|\W", regex.DOTALL)
    pairs = {*zip(*(words.findall("\0".join(each[0])) for each in (one, other)), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


MEANT = [
    ({"column": "names"}, MarkedText("May came in May, not in june", [(0, 3, "name")])),
    ({"pattern": "(?<=Mr )\\w+"}, "Mr May came in May, and Mr Bob"),
    ({"rule": "json"}, 'the city of {"city": "city", "x": 1} is no x'),
    ({"rule": "python"}, "def f(x):\n    # x is\n    return x.x + y['x']"),
    ({"rule": "python"}, "no program: f x, x = y . x"),
    ({"pattern": "[1-9]", "words": False}, MarkedText("C1CC1[13CH3]", [(1, 2, "name")])),
]


@pytest.mark.parametrize(("rule", "text"), MEANT)
def test_words_that_a_text_has_beside_its_names_come_back_as_they_are(rule, text) -> None:
    """And so they do in answers to it, also where its names are copied and pickled."""
    tokenizer = TextTokenizer.from_tokenizer(small_byte_level(), {"name": rule})
    batch = tokenizer([text], text_target=[text], allow_absent_symbols=True)
    assert tokenizer.batch_decode(batch["input_ids"], names=batch.names) == [text]
    for names in (copy.deepcopy(batch.names), pickle.loads(pickle.dumps(batch)).names):
        assert tokenizer.decode(batch["labels"][0], names=names[0], new_names="t") == text
    pair = tokenizer([MarkedText("see: ", [])], [text])
    written = tokenizer.decode(pair["input_ids"][0], names=pair.names)
    assert written.removeprefix("see: ") == text


@pytest.mark.parametrize(
    ("rule", "names", "written", "text"),
    [
        ({"column": "names"}, ["May", "New York"], "May1 May, New York", "May1 May2, New York1"),
        ({"column": "names"}, ["May"], "May, May1 May", "May1, May11 May1"),
        ({"pattern": "[1-9]", "words": False}, list("12"), "C1CC1N2", "C3CC3N4"),
        ({"pattern": "[1-9]", "words": False}, list("123456789"), "C1C2C1", "C0C_C0"),
        ({"pattern": "[a-c]", "words": False}, list("abc"), "xaby", "xdey"),
        ({"rule": "atom_maps"}, list("123"), "[CH3:1][OH:4] 1", "[CH3:4][OH:5] 1"),
        ({"rule": "python"}, ["x", "y"], "lambda x: x.y + y", "lambda x1: x1.y + y1"),
        ({"rule": "tools"}, ["f1", "city"], 'f1: city, "city"', 'f11: city, "city1"'),
    ],
)
def test_plain_words_are_spelled_apart_by_hand(rule, names, written, text) -> None:
    """By the lowest number that is free, or letter, the same word always alike."""
    tokenizer = TextTokenizer.from_tokenizer(small_byte_level(), {"name": {**rule, "count": 9}})
    ids = tokenizer.backend_tokenizer.encode(written, add_special_tokens=False).ids
    tokens = tokenizer.convert_ids_to_tokens(tokenizer.symbol_ids)
    for order in (names, names[::-1]):
        assert tokenizer.decode(ids, names=dict(zip(tokens, order, strict=False))) == text
    assert tokenizer.decode(ids) == written


@pytest.mark.parametrize("kind", HOSTS)
def test_without_names_it_is_the_tokenizer_beneath(kind: str) -> None:
    """Its ids, with what it writes around them; an answer has an end token in any case."""
    own, host = OVER[kind], HOSTS[kind]
    for text in ("find the value", "f( ) + the lazy dog's value, 1 2", ""):
        made = own(text, return_offsets_mapping=True, text_target=text)
        expected = host(text, return_offsets_mapping=True)
        assert made["input_ids"] == expected["input_ids"]
        assert made["labels"] == own(text_target=text)["input_ids"]
        if made["labels"] != made["input_ids"]:
            plain = host(text, add_special_tokens=False)["input_ids"]
            assert made["labels"] == [*plain, own.eos_token_id]
        assert made["labels"].count(own.eos_token_id) == 1
        if kind != "t5":  # whose words have the space before them now
            assert made["offset_mapping"] == expected["offset_mapping"]
    pair = ("find the value", "( 1 2")
    assert own(*pair)["input_ids"] == host(*pair)["input_ids"]


def test_a_start_token_that_is_the_end_token_too_ends_no_text() -> None:
    """As OPT's."""
    host = word_level()
    host.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="</s> $A", special_tokens=[("</s>", 2)]
    )
    made = TextTokenizer.from_tokenizer(host, {"name": 2})
    assert made("and not")["input_ids"] == host("and not")["input_ids"] == [2, 8, 9]
    assert made("and", text_target="not")["labels"] == [9, 2]


def test_a_tokenizer_that_was_saved_with_an_end_token_keeps_it(tmp_path) -> None:
    """Of a decoder that was converted before texts went without: it was trained with it."""
    OVER["old llama"].save_pretrained(tmp_path)
    file, config = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    saved, settings = json.loads(file.read_text()), json.loads(config.read_text())
    saved["post_processor"]["single"] = [
        {"SpecialToken": {"id": "<s>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}},
    ]
    saved["post_processor"]["special_tokens"] |= settings.pop("target_template")["special_tokens"]
    file.write_text(json.dumps(saved))
    config.write_text(json.dumps(settings))
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    (ids,) = OVER["old llama"](["find x"])["input_ids"]
    pair = loaded("find x", text_target="find x")
    assert pair["input_ids"] == pair["labels"] == [*ids, 2]


CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""As Qwen's; that of a Llama begins with its start token."""


@pytest.mark.parametrize(
    ("kind", "starts"),
    [("gpt2", False), ("llama", False), ("llama", True), ("old llama", True), ("t5", False)],
)
def test_a_chat_has_the_ids_that_its_text_has(kind: str, starts: bool) -> None:
    """As far as its host's has: one that writes a start token writes it before any text."""
    host = copy.deepcopy(HOSTS[kind])
    host.add_tokens(["<|im_start|>", "<|im_end|>"], special_tokens=True)
    host.chat_template = "{{ bos_token }}" * starts + CHAT
    if starts:
        host.add_bos_token = True
    own = TextTokenizer.from_tokenizer(host, RULES)
    words = [{"role": "user", "content": "the lazy dog"}, {"role": "assistant", "content": "( 1 )"}]
    for chat, asks in ((words[:1], True), (words, False)):
        text = own.apply_chat_template(chat, tokenize=False, add_generation_prompt=asks)
        ids = own.apply_chat_template(chat, add_generation_prompt=asks)["input_ids"]
        assert text == host.apply_chat_template(chat, tokenize=False, add_generation_prompt=asks)
        assert ids == host.apply_chat_template(chat, add_generation_prompt=asks)["input_ids"]
        assert ids == own(text, add_special_tokens=False)["input_ids"]
        assert own([text])["input_ids"] == host([text])["input_ids"]
        assert own([text])["input_ids"] == [[1] * starts + ids + [1] * (kind == "t5")]
    named = [{"role": "user", "content": "find New York: x"}, {"role": "assistant", "content": "x"}]
    text = own.apply_chat_template(named, tokenize=False)
    batch = own.apply_chat_template([named], return_tensors="pt", return_dict=True)
    assert list(batch.names[0].values()) == ["New York", "x"]
    assert batch["input_ids"].tolist() == own([text], add_special_tokens=False)["input_ids"]
    (decoded,) = own.batch_decode(batch["input_ids"], names=batch.names, skip_special_tokens=False)
    assert "".join(decoded.split()) == "".join(text.split())


# Special and added tokens in texts

PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
PIECES += [(f"▁{word}", -2.0) for word in ("alice", "sees", "bob", "and")] + [
    (c, -5.0) for c in "▁abcdeilmnorstu"
]
LANGUAGES = {
    MBartTokenizer: ("en_XX", "de_DE", PIECES),
    MBart50Tokenizer: ("en_XX", "de_DE", PIECES),
    NllbTokenizer: (
        "eng_Latn", "deu_Latn", {word: i for i, (word, _) in enumerate(PIECES)},
    ),
}  # fmt: skip


ADDED = [
    AddedToken("<mask>", lstrip=True, normalized=False, special=True),
    AddedToken("<sep>", rstrip=True, normalized=False, special=True),
    AddedToken("solo", single_word=True, normalized=False),
    AddedToken("[Note x]"),  # is looked for in normalized text
    AddedToken("sum", normalized=False),  # in words too
]
INNER = ["s", "x", "sep", "pad", "mask", "unk", "extra_id_0", "endoftext", "PAD", "Note", "Bob"]
"""Names that such tokens have in them."""
PLAIN_WORDS = ["the", "find", "(", ")", "+", ","]
WORD_RULE = {"name": {"pattern": r"\w+", "reserved": ["the", "find"], "count": 20}}
UNKNOWING = ("word_level", "words", "characters", *(kind.__name__ for kind in LANGUAGES))
SAFE_RULE = {"name": {"tokens": [f"safe{i}" for i in range(len(INNER))], "count": 20}}


def with_added(host: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    host = copy.deepcopy(host)
    host.add_tokens(ADDED)
    return host


WITH_TOKENS = {name: with_added(host) for name, host in HOSTS.items()} | {
    kind.__name__: with_added(kind())
    for kind in (word_level, small_byte_level, word_piece, unigram)
}
WITH_TOKENS |= {
    kind.__name__: with_added(kind(vocab=pieces, src_lang=source, tgt_lang=target))
    for kind, (source, target, pieces) in LANGUAGES.items()
}
FOUND = {
    **{name: TextTokenizer.from_tokenizer(host, WORD_RULE) for name, host in WITH_TOKENS.items()},
    **{kind: TextTokenizer.from_texts([*TEXTS, "the"], WORD_RULE, kind) for kind in MADE},
}


def normalized(prepends: bool) -> tuple[PreTrainedTokenizerFast, TextTokenizer]:
    """A host with tokens that are looked for in normalized text, and symbols on top of it."""
    host = llama(PreTrainedTokenizerFast)
    host.add_tokens(["=>", "foo bar", AddedToken("[X]", lstrip=True, rstrip=True)])
    if not prepends:
        host.backend_tokenizer.normalizer = normalizers.Replace(" ", "▁")
    return host, TextTokenizer.from_tokenizer(host, {"name": "[A-Z]{7}"})


NORMALIZED = {prepends: normalized(prepends) for prepends in (True, False)}


def tokens_of(tokenizer: Any) -> list[str]:
    """Its added tokens, but for those that stand for names and spaces."""
    tokens = [token.content for token in tokenizer.added_tokens_decoder.values()]
    return [t for t in tokens if t != "<join>" and not t.startswith("<name_")]


@st.composite
def with_tokens(draw: st.DrawFn, tokens: list[str]) -> tuple[list[str], set[int]]:
    """Names, words and tokens in any order, what is between them, and where names are."""
    kinds = [st.sampled_from(some) for some in (INNER, PLAIN_WORDS, tokens)]
    found = draw(st.lists(st.one_of(*kinds), min_size=1, max_size=9))
    made: list[str] = []
    for piece, after in pairwise([*found, ""]):
        letters = piece[-1].isalnum() and after[:1].isalnum()
        # Behind a word, a tokenizer that normalizes it finds "[Note x]" behind a space only.
        behind_word = after == "[Note x]" and piece not in tokens
        spaced = letters or behind_word or "solo" in (piece, after) or "sum" in (piece, after)
        made += [piece, " " if spaced else draw(st.sampled_from(["", " ", "  "]))]
    return made, {i for i, piece in enumerate(made) if piece in INNER}


@pytest.mark.parametrize("prepends", [True, False])
@settings(max_examples=60)
@given(st.lists(st.sampled_from(["=>", "foo bar", "[X]", "</s>", *" \n(1é▁"]), max_size=8))
def test_tokens_that_are_looked_for_in_normalized_text(prepends: bool, made: list[str]) -> None:
    """With the "▁" that the tokenizer puts before a text, and behind a special token."""
    host, own = NORMALIZED[prepends]
    text, options = "".join(made), {"add_special_tokens": False, "return_offsets_mapping": True}
    ours, theirs = own(text, **options), host(text, **options)
    assert ours["input_ids"] == theirs["input_ids"]
    assert ours["offset_mapping"] == theirs["offset_mapping"]
    assert own.decode(ours["input_ids"], False) == host.decode(theirs["input_ids"])


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("kind", FOUND)
@settings(max_examples=15)
@given(st.data())
def test_special_and_added_tokens_in_texts_are_those_of_the_tokenizer_beneath(kind, data) -> None:
    """Names around them are symbols, and all is as with names that no token has in it."""
    tokenizer, host = FOUND[kind], WITH_TOKENS.get(kind)
    tokens = tokens_of(host or tokenizer)
    made, names = data.draw(with_tokens(tokens))
    text, plain = "".join(made), {"add_special_tokens": False}
    ids = tokenizer(text, **plain)["input_ids"]
    # the tokens: as the host has them in a text with another word in place of names
    if host is not None:
        other = "".join("the" if i in names else piece for i, piece in enumerate(made))
        theirs, index_of = host(other, **plain)["input_ids"], host.convert_tokens_to_ids
    else:
        index_of = tokenizer.convert_tokens_to_ids
        theirs = [index_of(piece) for piece in made if piece in tokens]
    # <unk> is what a text has, too, where a tokenizer of words knows none of it
    own = {index_of(t) for t in tokens}
    own -= {tokenizer.unk_token_id} if kind in UNKNOWING else set()
    assert [i for i in ids if i in own] == [i for i in theirs if i in own]
    # the rest: the host's, but for names; and as with names that no token has in it
    calm = copy.deepcopy(tokenizer)
    calm.use_rules(SAFE_RULE)
    safe = dict(zip(INNER, SAFE_RULE["name"]["tokens"], strict=True))
    other = "".join(safe[piece] if i in names else piece for i, piece in enumerate(made))
    assert ids == calm(other, **plain)["input_ids"]
    # (`<sep>` takes any space that is written behind it.)
    eats = kind in ("t5", "roberta with a first space")
    if host is not None and not (eats and "<sep>" in made):
        other = "".join("the" if i in names else piece for i, piece in enumerate(made))
        assert calm(other, **plain)["input_ids"] == theirs
    # the names, in every notation of the input
    batch = tokenizer([text], [text], text_target=[text])
    symbols = [tokenizer.convert_ids_to_tokens(i) for i in ids if i in tokenizer.symbol_ids]
    assert [batch.names[0][token] for token in symbols] == [made[i] for i in sorted(names)]
    for which in (0, 1):
        of_text = zip(batch["input_ids"][0], batch.sequence_ids(), strict=True)
        assert [i for i, number in of_text if number == which] == ids
    answer = tokenizer(text_target=[text], names=batch.names)["input_ids"]
    assert [tokenizer.encode_pair(text, text)["labels"]] == batch["labels"] == answer
    assert [i for i in answer[0] if i not in own] == [i for i in ids if i not in own]
    marked = MarkedText(text, tokenizer.finder.find(text))  # names in tokens are none
    assert tokenizer(marked, **plain)["input_ids"] == ids


BY_PARTS = {
    **{f"{kind}, pieces": (tokenizer, pieces().map("".join)) for kind, tokenizer in ALL.items()},
    **{f"{kind}, inside": (tokenizer, with_parts(kind)) for kind, tokenizer in INSIDE.items()},
    **{
        f"{kind}, tokens": (
            tokenizer,
            with_tokens(tokens_of(tokenizer)).map(lambda drawn: "".join(drawn[0])),
        )
        for kind, tokenizer in FOUND.items()
    },
}


@pytest.mark.quick_cases(9)
@pytest.mark.parametrize("kind", BY_PARTS)
@settings(max_examples=10)
@given(st.data())
def test_ids_of_parts_are_those_of_whole_texts(kind: str, data: st.DataObject) -> None:
    """Whether parts are new, known, too long or too many, and with special tokens as text."""
    tokenizer, texts = BY_PARTS[kind]
    rows = data.draw(st.lists(texts, min_size=1, max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "split_special_tokens", data.draw(st.booleans()))
        for name in ("MOST", "SHORT"):
            patch.setattr(tokenizer_beneath, name, data.draw(st.sampled_from([3, 99])))
        made = [tokenizer.encode_pairs(rows, rows) for _ in range(2)]
        patch.setattr(tokenizer._part_ids, "_apart", False)
        expected = tokenizer.encode_pairs(rows, rows)
        assert tokenizer(rows)["input_ids"] == [row["input_ids"] for row in expected]
    assert made == [expected, expected]


@pytest.mark.parametrize("kind", ALL)
def test_what_is_kept_of_special_tokens_is_theirs_or_their_letters(kind: str) -> None:
    """Whichever was asked for first."""
    tokenizer = copy.deepcopy(ALL[kind])
    rows = [f"= {token} =" for token in tokenizer.all_special_tokens]
    made = {}
    for split in (False, True, False):
        tokenizer.split_special_tokens = split
        ids = [row["input_ids"] for row in tokenizer.encode_pairs(rows)]
        assert ids == tokenizer(rows)["input_ids"]
        assert made.setdefault(split, ids) == ids


def test_a_tokenizer_that_draws_how_it_splits_draws_each_time() -> None:
    drawing = copy.deepcopy(MADE["bpe:300"])
    drawing.backend_tokenizer.model.dropout = 0.5
    rows = drawing.encode_pairs(["the value x the value"] * 30)
    assert len({len(row["input_ids"]) for row in rows}) > 1


def test_special_tokens_in_texts_by_hand() -> None:
    rule = {"v": {"pattern": "[a-z]+", "count": 9}}
    t5, gpt2, bert, llama = (
        TextTokenizer.from_tokenizer(HOSTS[name], rule) for name in ("t5", "gpt2", "bert", "llama")
    )
    words = TextTokenizer.from_texts(["a b", "  "], rule)
    assert gpt2.tokenize("a <|endoftext|>b") == ["<v_0>", "Ġ", "<|endoftext|>", "<join>", "<v_1>"]
    assert t5.tokenize("a <extra_id_0> b</s>") == ["<v_0>", "<extra_id_0>", "<v_1>", "</s>"]
    assert bert.tokenize("a [SEP] b") == ["<v_0>", "[SEP]", "<v_1>"]
    noted = TextTokenizer.from_tokenizer(WITH_TOKENS["bert"], {"v": {"pattern": r"\w+"}})
    assert noted.tokenize("a [NOTE X] b") == ["<v_0>", "[note x]", "<v_1>"]
    # an end that a trainer has appended is the end that the tokenizer appends
    for made in (t5, llama, words):
        asked = made("a b", text_target="b")
        for end in ("</s>", " </s>") if made is words else ("</s>",):
            answer = made(text_target=f"b{end}", names=asked.names, add_special_tokens=False)
            assert answer["input_ids"] == made.encode_pair("a b", "b")["labels"][-2:]
    assert words.tokenize("<s> a</s>b") == ["<s>", "<v_0>", "</s>", "<v_1>"]
    words.chat_template = "{% for m in messages %}<s> {{ m.content }}</s>{% endfor %}"
    chat = words.apply_chat_template([{"role": "user", "content": "a b"}], return_dict=True)
    assert words.convert_ids_to_tokens(chat["input_ids"])[:4] == ["<s>", "<v_0>", "<v_1>", "</s>"]
    # as text
    assert t5("a</s>", split_special_tokens=True).names == {"<v_0>": "a", "<v_1>": "s"}
    split = TextTokenizer.from_tokenizer(HOSTS["t5"], rule, split_special_tokens=True)
    assert split.encode_pair("a</s>")["stream_ids"] == split.symbol_ids[:2]
    # data that shows names and their number
    seen = TextTokenizer.from_tokenizer(HOSTS["t5"], {"v": "[a-z]+"}, ["a </s> b <pad>"] * 3)
    seen.name_symbols(["a </s> b <pad>"])
    assert list(seen.symbol_names.values()) == ["a", "b"]
    # tokens that are made special later
    gpt2.add_special_tokens({"pad_token": "Ġthe"})
    assert gpt2("Ġthe").names == {} and len(gpt2("the").names) == 1


def test_names_beside_added_tokens_are_whole_words() -> None:
    made = FOUND["gpt2"]
    for text, names in [
        ("summer resume sum of", ["of"]),  # the host has a token `sum` there
        ("a</s>b", ["a", "s", "b"]),  # it has no `</s>`
        ("a<mask>b", ["a", "b"]),
    ]:
        assert list(made(text).names.values()) == names
    around = TextTokenizer.from_tokenizer(WITH_TOKENS["gpt2"], {"name": r"\S+(?= <sep>)|\S+@"})
    assert list(around("x <sep> b y<mask> <sep> z@<mask>").names.values()) == ["x", "z@"]
    for marked in (
        MarkedText("a<mask>", [(0, 7, "name")]),
        MarkedText("a<mask>", [(0, 2, "name")]),
    ):
        with pytest.raises(
            ValueError, match=r"row 0: the name 'a<.* overlaps '<mask>', a token of"
        ):
            made(marked)
    functions = TextTokenizer.from_tokenizer(WITH_TOKENS["gpt2"], {"name": {"function": "m:f"}})
    functions.finder.functions["name"] = lambda text: [(text.find("s"), text.find("s") + 1)]
    assert functions("<mask>")["stream_ids"] == [] and functions("is").names == {"<name_0>": "s"}


# Renaming


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=15)
@given(pieces(), st.permutations([*NAMES, "v7"]))
def test_renaming_moves_symbols_and_nothing_else(kind, made, order) -> None:
    tokenizer = ALL[kind]
    table = dict(zip(NAMES, order, strict=False))
    renamed = [table.get(part, part) for part in made]
    one, two = tokenizer("".join(made)), tokenizer("".join(renamed))
    assert len(one["input_ids"]) == len(two["input_ids"])
    moved = dict(zip(one["stream_ids"], two["stream_ids"], strict=True))
    assert [moved.get(i, i) for i in one["input_ids"]] == two["input_ids"]
    assert {table[one.names[t]] for t in one.names} == set(two.names.values())


# Offsets


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=15)
@given(pieces())
def test_offsets_of_symbols_are_the_names(kind: str, made: list[str]) -> None:
    tokenizer, text = ALL[kind], "".join(made)
    batch = tokenizer(text, return_offsets_mapping=True)
    spelled = []
    for index, (start, stop) in zip(batch["input_ids"], batch["offset_mapping"], strict=True):
        token = tokenizer.convert_ids_to_tokens(index)
        assert 0 <= start <= stop <= len(text)
        if token in batch.names:
            assert text[start:stop] == batch.names[token]
            spelled.append(token)
        elif token == "<join>":
            assert start == stop
    assert spelled == [t for t in tokenizer.tokenize(text) if t in batch.names]
    assert len(spelled) == sum(part in NAMES for part in made)


# What any tokenizer does


def test_pairs_have_common_names_and_token_types() -> None:
    tokenizer = OVER["bert"]
    batch = tokenizer(
        ["find x"], ["( y + x )"], return_token_type_ids=True, return_special_tokens_mask=True
    )
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    x, y = ("<variable_0>", "<variable_1>")
    assert tokens == ["[CLS]", "find", x, "[SEP]", "(", y, "+", x, ")", "[SEP]"]
    assert batch["token_type_ids"] == [[0] * 4 + [1] * 6]
    assert batch["special_tokens_mask"] == [[1, 0, 0, 1, 0, 0, 0, 0, 0, 1]]
    assert batch.names == [{x: "x", y: "y"}]
    old = OVER["old llama"]
    ids = old("x", "y", return_token_type_ids=True)
    assert old.convert_ids_to_tokens(ids["input_ids"]) == ["<s>", x, "<s>", y]
    assert ids["token_type_ids"] == [0, 0, 1, 1]


QUESTIONS = {
    "token_to_chars": 12, "char_to_token": 20, "char_to_word": 20, "word_to_chars": 5,
    "token_to_word": 12, "word_to_tokens": 5, "token_to_sequence": 12,
}  # fmt: skip
"""Methods of a batch, and up to which number they are asked."""


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", [kind for kind in HOSTS if kind != "t5"])
def test_characters_and_tokens_are_those_of_the_tokenizer_beneath(kind: str, side: str) -> None:
    """Of texts without names, padded too; `t5` has its spaces elsewhere."""
    host, plain = copy.deepcopy(HOSTS[kind]), copy.deepcopy(OVER[kind])
    host.pad_token = plain.pad_token
    texts, pairs = ["find the value", "f the, 1"], ["the dog", "( 1 2 ) + the"]
    options = {"padding": True, "padding_side": side, "return_tensors": "np"}
    for rows in ((texts,), (texts, pairs)):
        own, batch = plain(*rows, **options), host(*rows, **options)
        assert own.is_fast
        for row in range(2):
            assert own.tokens(row) == batch.tokens(row)
            assert own.word_ids(row) == batch.word_ids(row)
            for name, count in QUESTIONS.items():
                for number in range(count):
                    told = [answer_or_none(each, name, row, number) for each in (own, batch)]
                    assert told[0] == told[1], (name, row, number)


def answer_or_none(batch: BatchEncoding, name: str, row: int, number: int) -> object:
    """None for what Transformers answers with an error: a word that there is not."""
    try:
        return getattr(batch, name)(row, number)
    except TypeError:
        return None


@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=15)
@given(pieces())
def test_characters_of_names_are_told(kind: str, made: list[str]) -> None:
    tokenizer, at = ALL[kind], 0
    batch = tokenizer(["", "".join(made)], padding=True)
    for part in made:
        if part in NAMES:
            span = (at, at + len(part))
            (token,) = {batch.char_to_token(1, place) for place in range(*span)}
            assert batch.names[1][batch.tokens(1)[token]] == part
            word = batch.char_to_word(1, at)
            assert batch.token_to_chars(1, token) == batch.word_to_chars(1, word) == span
        at += len(part)


@pytest.mark.parametrize("make", [np.array, lambda texts: pd.Series(texts, index=[3, 1])])
def test_texts_come_as_arrays_and_columns_too(make: Callable[[list[str]], Any]) -> None:
    texts, answers = ["find x", "( y )"], ["x", "y"]
    tokenizer = ALL["words"]
    column = make(texts), make(answers)
    listed = tokenizer(texts, text_target=answers)
    assert dict(tokenizer(column[0], text_target=column[1])) == dict(listed)
    assert tokenizer(*column)["input_ids"] == tokenizer(texts, answers)["input_ids"]
    assert tokenizer(text_target=column[1], names=listed.names)["input_ids"] == listed["labels"]
    assert [row["labels"] for row in tokenizer.encode_pairs(*column)] == listed["labels"]
    formulas = AlphaTokenizer(base_tokens=["&"], symbol_classes={"name": 3})
    listed = formulas(["x & y", "y & x"], text_target=answers)
    column = make(["x & y", "y & x"]), make(answers)
    assert dict(formulas(column[0], text_target=column[1])) == dict(listed)
    assert [row["labels"] for row in formulas.encode_pairs(*column)] == listed["labels"]
    with pytest.raises(ValueError, match="row 1 of `text` is a float: give a string"):
        tokenizer(pd.Series(["x", None]))


def test_truncation_and_what_overflows() -> None:
    tokenizer = ALL["words"]
    short = tokenizer("swap x y z", truncation=True, max_length=3)
    assert tokenizer.convert_ids_to_tokens(short["input_ids"]) == ["swap", "<variable_0>", "</s>"]
    assert len(short["stream_ids"]) == 1
    options = {"truncation": True, "max_length": 4, "stride": 1, "return_overflowing_tokens": True}
    for text in ("swap x y z", ["swap x y z", "x"]):
        parts = tokenizer(text, return_offsets_mapping=True, padding=True, **options)
        mapping = parts["overflow_to_sample_mapping"]
        assert mapping == ([0, 0] if isinstance(text, str) else [0, 0, 1])
        assert len(parts.names) == len(parts["input_ids"]) == len(mapping)
        assert {len(row) for row in parts["offset_mapping"]} == {4}
        decoded = tokenizer.batch_decode(parts["input_ids"], names=parts.names)
        assert decoded[:2] == ["swap x y", "y z"]
    with pytest.raises(ValueError, match="leave out return_overflowing_tokens"):
        tokenizer(["swap x y z"], text_target=["x"], **options)
    with pytest.raises(FormulaError, match=r"row 1: .* variable 'z', which truncation has cut off"):
        tokenizer(["x", "swap x y z"], text_target=["x", "z"], truncation=True, max_length=3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(side: str) -> None:
    tokenizer = ALL["words"]
    batch = tokenizer(
        ["swap x y", "x"],
        text_target=["y x", "x"],
        padding=True,
        padding_side=side,
        return_tensors="pt",
        return_offsets_mapping=True,
    )
    alone = tokenizer("x", return_offsets_mapping=True)
    for key, filler in {"input_ids": 0, "attention_mask": 0, "offset_mapping": (0, 0)}.items():
        fill = [filler] * 2
        row = fill + alone[key] if side == "left" else alone[key] + fill
        assert torch.equal(batch[key][1], torch.tensor(row)), key
    assert batch["stream_ids"].tolist()[1] == [alone["stream_ids"][0], -1]
    assert batch["labels"].tolist()[1] == [*alone["input_ids"], -100]
    assert len(tokenizer("x", padding="max_length", max_length=5)["input_ids"]) == 5
    without = {"return_attention_mask": False, "padding": True, "padding_side": side}
    for some in (tokenizer(["swap x y", "x"], **without), tokenizer("x", **without)):
        assert "attention_mask" not in some and "input_ids" in some


def test_single_and_empty_texts() -> None:
    for tokenizer in ALL.values():
        one, many = tokenizer("find x"), tokenizer(["find x"])
        assert {key: [value] for key, value in one.items()} == dict(many)
        assert [one.names] == many.names
        empty = tokenizer([""], return_tensors="pt")
        assert empty["stream_ids"].tolist() == [[-1]]
        assert tokenizer.decode(empty["input_ids"][0]) == ""
        ids = tokenizer("x", add_special_tokens=False)["input_ids"]
        assert tokenizer.convert_ids_to_tokens(ids) == ["<variable_0>"]
        assert tokenizer.encode("find x") == one["input_ids"]


# Saving, copies


TWO = {"variable": {"pattern": "[xyz]", "count": 4}, "function": {"tokens": ["f", "New York"]}}


@pytest.mark.parametrize("kind", ["words", "bpe:300", "bert", "t5", "old llama"])
def test_saved_and_loaded_it_is_the_same(kind: str, tmp_path) -> None:
    tokenizer = (
        TextTokenizer.from_tokenizer(HOSTS[kind], TWO)
        if kind in HOSTS
        else TextTokenizer.from_texts(TEXTS, TWO, kind)
    )
    tokenizer.extend_symbols({"variable": 2})
    tokenizer.save_pretrained(tmp_path)
    loaded = [AutoTokenizer.from_pretrained(tmp_path), TextTokenizer.from_pretrained(tmp_path)]
    loaded += [copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))]
    expected = tokenizer(TEXTS[:3])
    for other in loaded:
        batch = other(TEXTS[:3])
        assert (dict(batch), batch.names) == (dict(expected), expected.names)
        assert list(other.symbol_ranges) == list(other.finder.rules) == ["variable", "function"]
        assert other.settings() == tokenizer.settings()
        decoded = other.batch_decode(batch["input_ids"], names=batch.names)
        assert decoded == tokenizer.batch_decode(expected["input_ids"], names=expected.names)
        assert other.extend_symbols({"function": 1}) == [len(tokenizer)]


def test_loading_adds_no_tokens(tmp_path) -> None:
    TextTokenizer.from_texts(TEXTS, TWO).save_pretrained(tmp_path)
    for more in ({"pad_token": "<zz>"}, {"extra_special_tokens": ["<more>"]}):
        with pytest.raises(ValueError, match=r"cannot add token '<(zz|more)>'"):
            AutoTokenizer.from_pretrained(tmp_path, **more)
    assert AutoTokenizer.from_pretrained(tmp_path, eos_token="<pad>").eos_token == "<pad>"


def test_hash_is_that_of_its_settings() -> None:
    """`datasets.map` finds its results again, however the tokenizer was used meanwhile."""
    tokenizer = TextTokenizer.from_texts(TEXTS, RULES)
    hashes = {Hasher.hash(tokenizer.settings())}
    tokenizer(TEXTS, truncation=True, max_length=4, padding=True)
    hashes |= {Hasher.hash(t.settings()) for t in (tokenizer, copy.deepcopy(tokenizer))}
    assert len(hashes) == 1
    tokenizer.extend_symbols({"variable": 1})
    assert Hasher.hash(tokenizer.settings()) not in hashes
    assert Hasher.hash(tokenizer) == Hasher.hash(tokenizer)


# Vocabulary


def test_extension_keeps_every_id_and_takes_classes_in_their_order() -> None:
    one, two = (TextTokenizer.from_texts(TEXTS, TWO) for _ in range(2))
    before = one.get_vocab()
    new = one.extend_symbols({"variable": 2, "function": 3})
    assert two.extend_symbols({"function": 3, "variable": 2}) == new
    assert one.symbol_ranges == two.symbol_ranges and one.get_vocab() == two.get_vocab()
    assert before.items() <= one.get_vocab().items() and new == list(range(len(before), len(one)))
    assert one.symbol_classes == {"variable": 6, "function": 13}


def test_models_and_other_tokenizers_take_classes_in_the_same_order() -> None:
    from hf_alpha import AlphaConfig

    tokenizer = AlphaTokenizer(symbol_classes={"variable": 2, "function": 2})
    config = AlphaConfig.for_tokenizer(tokenizer, d_model=36)
    tokenizer.extend_symbols({"function": 1, "variable": 2})
    config.extend_symbols({"function": 1, "variable": 2})
    assert tokenizer.symbol_ranges == config.symbol_ranges
    assert tokenizer.symbol_ranges["variable"] == [[3, 5], [7, 9]]


def test_a_name_that_two_rules_find_is_of_the_first_class() -> None:
    tokenizer = TextTokenizer.from_texts(
        TEXTS, {"variable": "[a-z]", "function": {"tokens": ["f", "g"]}}
    )
    tokenizer.name_symbols(TEXTS)
    called = list(tokenizer.symbol_names.values())
    assert called.count("f") == 1 and tokenizer.symbol_names["<function_0>"] == "g"
    token = next(token for token, name in tokenizer.symbol_names.items() if name == "f")
    assert tokenizer("f ( x )").names[token] == "f"
    with pytest.raises(ValueError, match=r"'f' is in the classes 'a' and 'b'"):
        TextTokenizer.from_texts(TEXTS, {"a": ["f"], "b": ["f", "g"]})


def test_a_tokens_own_name_and_its_spelling_are_two_names() -> None:
    tokenizer = TextTokenizer.from_texts(TEXTS, FOUR)
    tokenizer.name_symbols(TEXTS)
    token = next(token for token, name in tokenizer.symbol_names.items() if name == "x")
    batch = tokenizer([f"swap x {token}"])
    assert len(batch["stream_ids"][0]) == 2
    assert tokenizer.batch_decode(batch["input_ids"], names=batch.names) == [f"swap x {token}"]
    looks_like_one = "the<variable_99>x"
    assert back(ALL["bpe:300"], looks_like_one) == looks_like_one


# Answers


def test_answers_are_in_the_names_of_their_row() -> None:
    tokenizer = TextTokenizer.from_texts(TEXTS, RULES)
    batch = tokenizer(["swap Bob x", "swap x v9"], text_target=["x Bob", "v9 x"])
    assert tokenizer.batch_decode(batch["labels"], names=batch.names) == ["x Bob", "v9 x"]
    assert (
        tokenizer(text_target=["x Bob", "v9 x"], names=batch.names)["input_ids"]
        == (batch["labels"])
    )
    rows = tokenizer.encode_pairs(["swap Bob x", "swap x v9"], ["x Bob", "v9 x"])
    assert [row["labels"] for row in rows] == batch["labels"]
    assert [row["input_ids"] for row in rows] == batch["input_ids"]
    assert tokenizer.encode_pair("swap Bob x", "x Bob") == rows[0]
    lacks = "row 1: the answer 'x z' has the variable 'z', which the input lacks"
    for call in (
        lambda: tokenizer(["x", "x"], text_target=["x", "x z"]),
        lambda: tokenizer(text_target=["x", "x z"], names=[{"<variable_0>": "x"}] * 2),
        lambda: tokenizer.encode_pairs(["x", "x"], ["x", "x z"]),
    ):
        with pytest.raises(FormulaError, match=lacks):
            call()
    allowed = tokenizer(["x"], text_target=["x z"], allow_absent_symbols=True)
    assert len(set(allowed["labels"][0])) == 3
    # a name of the row has the symbol that is called otherwise
    tokenizer.name_symbols(TEXTS)
    (ids,) = tokenizer(
        text_target=["x Bob"],
        names=[{tokenizer.convert_ids_to_tokens(tokenizer._own_names["x"]): "Bob"}],
        allow_absent_symbols=True,
    )["input_ids"]
    assert len(set(ids)) == 3


# Classes, marked texts, reserved words


def test_two_classes() -> None:
    tokenizer = TextTokenizer.from_texts(TEXTS, TWO)
    batch = tokenizer("f(x, y)")
    kinds = {name: token[1:-1].split("_")[0] for token, name in batch.names.items()}
    assert kinds == {"f": "function", "x": "variable", "y": "variable"}
    marked = MarkedText("a a", [(0, 1, "variable"), (2, 3, "function")])
    with pytest.raises(FormulaError, match="row 1: the name 'a' is of class 'variable' and of cla"):
        tokenizer(["x", marked])


def test_marked_texts_lists_of_names_and_reserved_words() -> None:
    tokenizer = TextTokenizer.from_texts(
        TEXTS, {"variable": {"pattern": "[a-z]+", "reserved": ["swap", "the"]}}
    )
    assert tokenizer("swap the cat").names == {"<variable_0>": "cat"} or (
        list(tokenizer("swap the cat").names.values()) == ["cat"]
    )
    marked = MarkedText("swap the cat", [(5, 8, "variable")])
    assert list(tokenizer(marked).names.values()) == ["the"]
    assert list(tokenizer([marked, "a"]).names[0].values()) == ["the"]
    places = TextTokenizer.from_texts(
        ["from New York to York"], {"place": ["York", "New York"]}, "characters"
    )
    batch = places("from New York to York")
    assert list(batch.names.values()) == ["New York", "York"]
    # a symbol's token beside marked names is that symbol, and no marked name's
    text = MarkedText("f <variable_0> g", [(0, 1, "variable"), (15, 16, "variable")])
    assert len(MADE["words"](text)["stream_ids"]) == 3


# Bad input


def test_clear_errors(tmp_path) -> None:
    make, over = TextTokenizer.from_texts, TextTokenizer.from_tokenizer
    slow = build_tokenizer("propositional", 5)
    for call, message in (
        (lambda: over(slow, FOUR), "AlphaTokenizer is no fast tokenizer.*bpe:8000"),
        (lambda: make(TEXTS, FOUR, "bpe:abc"), "tokenizer 'bpe:abc': write bpe:8000"),
        (lambda: make(TEXTS, FOUR, "bpe:²"), "write bpe:8000"),
        (lambda: make([], FOUR), "there are no texts"),
        (lambda: make("x y", FOUR), "`texts` is the string 'x y': give a list of strings"),
        (lambda: make(["no names"], FOUR), "no text has a name: look at the rules"),
        (lambda: make(TEXTS, ["x"]), r"symbols are \['x'\]: give class -> rule"),
        (
            lambda: over(over(HOSTS["gpt2"], FOUR), FOUR),
            "<variable_0> is in the vocabulary already.*call the class otherwise",
        ),
        (
            lambda: MADE["words"](["x", " ".join(f"v{i}" for i in range(9))]),
            r"row 1: 9 names of class 'variable', but .* 8 .*extend_symbols\({'variable': 1}",
        ),
        (lambda: MADE["words"](["x"], ["x", "y"]), "1 rows in `text`, but 2 in `text_pair`"),
        (
            lambda: MADE["bpe:300"](["x", "x \udcff"]),
            r"row 1: the character '\\udcff' at 2 is half",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


WORDS_AS_SYMBOLS = {"letter": [6, 4], "other": [7]}  # z and x; u


def test_tokens_of_the_tokenizer_are_symbols_as_they_are(tmp_path):
    plain = word_level(end=True)
    made = TextTokenizer.over_tokens(plain, WORDS_AS_SYMBOLS)
    assert made.get_vocab() == plain.get_vocab() and made.symbols_are_words
    assert made.symbol_classes == {"letter": 2, "other": 1}
    made.save_pretrained(tmp_path)
    for each in (made, AutoTokenizer.from_pretrained(tmp_path)):
        assert each.symbol_ranges == made.symbol_ranges and each.settings() == made.settings()
        batch = each(["x and u = x", "y"], padding=True)
        assert batch["input_ids"] == plain(["x and u = x", "y"], padding=True)["input_ids"]
        assert batch["stream_ids"] == [[4, 7], [-1, -1]]
        assert each.batch_decode(batch["input_ids"], names=batch.names) == ["x and u = x", "y"]
        assert each.symbol_words() == {"letter": ["z", "x"], "other": ["u"]}


def test_symbols_side_by_side_are_one_range():
    """Their numbers are in the order in which they were given."""
    made = TextTokenizer.over_tokens(word_level(end=True), {"letter": [7, 4, 5, 6], "other": [8]})
    assert made.symbol_ranges == {"letter": [[7, 8], [4, 7]], "other": [[8, 9]]}
    assert made.symbol_ids == [7, 4, 5, 6, 8]


def test_symbols_beyond_those_tokens_are_written_as_tokens_of_their_own():
    made = TextTokenizer.over_tokens(word_level(end=True), WORDS_AS_SYMBOLS)
    (new,) = made.extend_symbols({"letter": 1})
    batch = made("<letter_2> and x")
    assert batch["stream_ids"] == [new, 4]
    assert made.decode(batch["input_ids"], names=batch.names) == "<letter_2> and x"


def test_answers_with_symbols_that_the_input_lacks_are_refused():
    made = TextTokenizer.over_tokens(word_level(end=True), WORDS_AS_SYMBOLS)
    assert made("x and u", text_target="u and x")["labels"][0] == 7
    with pytest.raises(FormulaError, match="the answer has the letter 'z', which the input lacks"):
        made("x and u", text_target="z")


def test_tokens_that_cannot_be_symbols():
    with pytest.raises(ValueError, match="'x' is given twice"):
        TextTokenizer.over_tokens(word_level(), {"one": [4], "two": [4]})
    with pytest.raises(ValueError, match="do not fit the vocabulary"):
        TextTokenizer.over_tokens(word_level(), {"one": [400]})


def test_a_class_with_a_count_alone_has_the_names_that_a_text_gives():
    made = TextTokenizer.from_tokenizer(word_level(end=True), {"variable": 3})
    assert made.symbol_classes == {"variable": 3} and not made.symbols_are_words
    batch = made("x and <variable_2>")
    assert made("x and y")["stream_ids"] == []
    assert batch["stream_ids"] == [made.get_vocab()["<variable_2>"]]
    marked = MarkedText("alice and x", [(0, 5, "variable")])
    assert made(marked).names == {"<variable_0>": "alice"}


def test_rules_can_come_later(tmp_path):
    """Ids stay; symbols that have names of the data keep them."""
    made = TextTokenizer.from_tokenizer(word_level(end=True), {"variable": 2, "other": 2})
    before = made.get_vocab()
    rules = {"other": {"tokens": ["bob"]}, "variable": "[xyz]"}
    made.use_rules(rules)
    made.name_symbols(["y and bob", "y and x and z"])
    assert made.get_vocab() == before
    assert made.symbol_names == {"<variable_0>": "y", "<variable_1>": "x", "<other_0>": "bob"}
    assert made("x and y").names == {"<variable_1>": "x", "<variable_0>": "y"}
    made.use_rules({"variable": "[xyzu]", "other": ["bob"]})
    made.name_symbols(["u", "bob"])
    assert made.symbol_names["<variable_0>"] == "y" and made("u").names == {"<variable_0>": "u"}
    made.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.settings() == made.settings() and loaded("u").names == {"<variable_0>": "u"}


def test_names_of_data_are_kept_only_where_that_is_asked_for(tmp_path):
    """No name in a saved file, and symbols that nobody named are decoded as symbols."""
    made = TextTokenizer.from_texts(["swap tom ann"], {"person": {"pattern": "tom|ann|max"}})
    made.save_pretrained(tmp_path / "plain")
    batch = made(["swap max ann"])
    assert made.batch_decode(batch["input_ids"]) == ["swap <person_0> <person_1>"]
    assert made.batch_decode(batch["input_ids"], names=batch.names) == ["swap max ann"]
    for file in (tmp_path / "plain").glob("*.json"):
        assert "ann" not in file.read_text().replace("tom|ann|max", "").split('"')
    made.name_symbols(["tom and tom"])
    made.save_pretrained(tmp_path / "named")
    named = AutoTokenizer.from_pretrained(tmp_path / "named")
    assert named.decode(named("swap max tom")["input_ids"]) == "swap <person_1> tom"
    named.forget_names()
    assert named.settings() == AutoTokenizer.from_pretrained(tmp_path / "plain").settings()


def test_tokens_that_the_model_can_never_take_are_refused():
    made = TextTokenizer.from_tokenizer(word_level(end=True), {"variable": 2})
    before = made.settings(), dict(made.special_tokens_map)
    for add in (
        lambda: made.add_tokens(["x", "ZZZ"]),
        lambda: made.add_tokens("ZZZ", special_tokens=True),
        lambda: made.add_special_tokens({"mask_token": "ZZZ"}),
        lambda: made.add_special_tokens({"extra_special_tokens": ["ZZZ"]}),
    ):
        with pytest.raises(ValueError, match="cannot add token 'ZZZ': a model with symbols"):
            add()
    assert (made.settings(), dict(made.special_tokens_map)) == before
    assert made.add_tokens(["<variable_0>", "x"]) == 0 and made.settings() == before[0]
    made.add_special_tokens({"mask_token": "x"})
    assert made.mask_token == "x" and len(made) == made.num_base_tokens + 2


def test_rules_that_do_not_fit():
    made = TextTokenizer.from_tokenizer(word_level(), {"variable": 2})
    with pytest.raises(ValueError, match=r"for the classes name, .* of the classes variable: name"):
        made.use_rules({"name": "[xyz]"})
    words = TextTokenizer.over_tokens(word_level(), {"letter": [4]})
    with pytest.raises(ValueError, match=r"tokens that it had before \(x\).*from_tokenizer"):
        words.use_rules({"letter": "[xyz]"})


@pytest.mark.parametrize("kind", LANGUAGES)
def test_answers_are_in_the_language_of_answers(kind, tmp_path):
    source, target, vocabulary = LANGUAGES[kind]
    plain = kind(vocab=vocabulary, src_lang=source, tgt_lang=target)
    made = TextTokenizer.from_tokenizer(plain, {"name": {"tokens": ["tom"]}})
    texts, answers = ["alice sees bob", "bob"], ["bob and alice", "tom"]
    expected = plain(texts[0], text_target=answers[0])
    languages = plain.convert_tokens_to_ids([source, target])
    assert languages[0] in expected["input_ids"] and languages[1] in expected["labels"]
    made.save_pretrained(tmp_path)
    for each in (made, AutoTokenizer.from_pretrained(tmp_path), copy.deepcopy(made)):
        batch = each(texts[0], text_target=answers[0])
        assert batch["input_ids"] == expected["input_ids"]
        assert batch["labels"] == expected["labels"]
        assert each(text_target=answers[0])["input_ids"] == expected["labels"]
        assert each(texts[0])["input_ids"] == expected["input_ids"]  # as before
        row = each.encode_pair(texts[0], answers[0])
        assert [row["input_ids"], row["labels"]] == [expected["input_ids"], expected["labels"]]
        assert each.settings() == made.settings()
        with pytest.raises(FormulaError, match="the input lacks"):
            each(texts[1], text_target=answers[1])
        assert each(texts[0])["input_ids"] == expected["input_ids"]
    same = kind(vocab=vocabulary, src_lang=source, tgt_lang=source)
    other = TextTokenizer.from_tokenizer(same, {"name": {"tokens": ["tom"]}})
    assert other.settings() != made.settings() and "target_template" not in other.init_kwargs


@pytest.mark.parametrize("kind", [*KEEPING, "characters", "bpe:300"])
def test_a_name_that_its_text_glues_to_a_word_comes_back_so(kind: str) -> None:
    """As a template does that trims what it puts together; other names are words of their own."""
    rule = {"name": {"pattern": "[a-z]+_[a-z]+", "count": 9}}
    made = kind not in HOSTS
    texts = ["use get_it now x find_it 7 a"]
    tokenizer = (
        TextTokenizer.from_texts(texts, rule, kind)
        if made
        else TextTokenizer.from_tokenizer(HOSTS[kind], rule)
    )
    places = {"use get_itnow x": (4, 10), "xget_it now": (1, 7), "a find_it7": (2, 9)}
    for text, span in places.items():
        marked = MarkedText(text, [(*span, "name")])
        batch = tokenizer([marked], text_target=[text[slice(*span)]])
        ids, names = batch["input_ids"][0], batch.names[0]
        assert tokenizer.decode(ids, names=names) == text
        assert tokenizer.decode(ids, names=copy.deepcopy(dict(names))) == text
        bound = MarkedText(text, [(*span, "name", "b")])
        batch = tokenizer(bound)
        assert tokenizer.decode(batch["input_ids"], names=batch.names) == text
        name = text[slice(*span)]
        apart = tokenizer.decode(ids, names={token: name for token in names})
        assert apart != text and apart.replace(" ", "") == text.replace(" ", "")
