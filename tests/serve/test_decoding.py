"""The text of an answer as it comes is the text of all of it, whatever the tokenizer."""

import os
import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instructions import instructions
from small_tokenizers import SUBWORD, byte_level, finish, smiles, word_level
from tokenizers import Tokenizer, decoders, models, normalizers

from hf_alpha import AlphaTokenizer, CanonicalTokenizer, TextTokenizer
from hf_alpha.alias.plain import PlainTokenizer
from hf_alpha.serve.decoding import AnswerText

TEXT = "alice sees xa1 and bob: ya1 xa1 é"


def byte_fallback(end=False):
    """As Llama's: what is no piece is bytes, and all bytes in a row are one text."""
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += [
        "▁",
        "▁sees",
        "▁and",
        "al",
        "ice",
        "x",
        "y",
        "z",
        "a",
        "b",
        "1",
        "2",
        "é",
        ".",
        "▁not",
    ]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    beneath = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    beneath.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    bare = decoders.Strip(" ", 1, 0)
    beneath.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), bare]
    )
    return finish(beneath, end)


def spelled(rule, beneath=byte_level, **options):
    return TextTokenizer.from_tokenizer(beneath(), {"name": {**rule, "count": 4, **options}})


def canonical(rule, beneath=byte_level):
    return CanonicalTokenizer.from_tokenizer(beneath(), {"name": rule})


PATTERN = {"pattern": "[xyz][a-z][0-9]"}
TWO = {"tokens": ["alice sees", "bob", "é"]}
HOSTS = [*SUBWORD, byte_fallback]
TOKENIZERS = {
    **{f"symbols, {make.__name__}": partial(spelled, PATTERN, make)
       for make in (*HOSTS, word_level)},
    **{f"canonical, {make.__name__}": partial(canonical, PATTERN, make) for make in HOSTS},
    "plain": lambda: PlainTokenizer.of(byte_fallback()),
    **{f"made of {kind}": partial(TextTokenizer.from_texts, [TEXT, "not z ."], {"name": PATTERN},
                                  kind) for kind in ("words", "characters")},
    "names of two words": partial(spelled, TWO),
    "names of two words, canonical": partial(canonical, TWO),
    "names inside words": partial(spelled, {"pattern": "[0-9]"}, words=False),
    "names behind others": partial(canonical, {"pattern": r"(?<=alice )\w+"}),
    "rings": partial(spelled, {"rule": "smiles"}, smiles),
    "json": partial(spelled, {"rule": "json"}),
    "python": partial(spelled, {"rule": "python"}),
    "python, canonical": partial(canonical, {"rule": "python"}),
    "formulas": lambda: AlphaTokenizer(base_tokens=["&", "!", "1"], symbol_classes={"p": 40}),
}  # fmt: skip
TEXTS = {
    "rings": "C1CC1", "json": '{"alice": 1, "bob": {"alice": 2}}', "formulas": "& a ! b",
    "python": "def alice(x):\n    return x", "python, canonical": "def alice(x):\n    return x",
}  # fmt: skip
EXAMPLES = int(os.environ.get("EXAMPLES", "20"))
made = {}


def tokenizer_of(kind):
    if kind not in made:
        tokenizer = TOKENIZERS[kind]()
        made[kind] = tokenizer, tokenizer(TEXTS.get(kind, TEXT))
    return made[kind]


WORDS = [
    *(
        "xa1",
        " xa1",
        " ya",
        "1",
        " bob",
        "alice sees",
        " sees",
        "xa1y",
        " b",
        "c",
        " bs",
        "B ",
        "v1",
    ),
    *("é", "e\u0301", "👩\u200d👩\u200d👧", " 日本", "\n", ". ", "{", '"alice"', "x = alice", "&"),
]
"""Names of `TEXT`, their words and what is like them, and characters of several tokens."""


def written(tokenizer, encoding, ids, goes_on=True, ends=()):
    """What is settled by each token; and whether all of the text begins so, and that text."""
    text, parts = AnswerText(tokenizer, encoding, goes_on, ends), []
    for token in ids:
        text.add(token)
        text.look()
        parts.append(text.settle(text.sure))
    return parts, text.end(), text.whole()


def plain_ids(tokenizer, word):
    """Tokens of a word, as a model may write it whatever it is called."""
    beneath = getattr(tokenizer, "backend_tokenizer", None)
    if beneath is None:
        return [i for i in tokenizer.convert_tokens_to_ids([*word]) if i is not None]
    return beneath.encode(word, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_parts_are_those_of_the_whole(kind, data):
    """Of any tokens: plain words that are names too, their beginnings, bytes, emoji and marks."""
    tokenizer, encoding = tokenizer_of(kind)
    tokens = [[i] for i in (*encoding["input_ids"], *tokenizer.symbol_ids)]
    words = [plain_ids(tokenizer, word) for word in WORDS]
    some = st.sampled_from([*tokens, *filter(None, words)])
    other = st.lists(st.integers(0, len(tokenizer) - 1), min_size=1, max_size=1)
    ids = [i for part in data.draw(st.lists(some | other, max_size=40)) for i in part]
    parts, is_whole, whole = written(tokenizer, encoding, ids, data.draw(st.booleans()))
    assert is_whole and whole.startswith("".join(parts)), (parts, whole)


def answer(kind, number):
    """Tokens of words, with a name now and then, and characters of several tokens."""
    tokenizer, encoding = tokenizer_of(kind)
    words = [" sees", " not", " 日本", "👩", ". ", "\n", " and"]
    symbols = {*tokenizer.symbol_ids}
    named = [i for i in encoding["input_ids"] if tokenizer.spells_names or i in symbols]
    rng, ids = random.Random(0), []
    while len(ids) < number:
        name = [rng.choice(named)] if rng.random() < 0.2 else []
        ids += name or plain_ids(tokenizer, rng.choice(words))
    return tokenizer, encoding, ids[:number]


@pytest.mark.parametrize(
    "kind",
    ["symbols, byte_level", "canonical, unigram", "plain", "made of words", "names of two words",
     "formulas"],
)  # fmt: skip
def test_work_grows_as_an_answer_does(kind, monkeypatch):
    """Four times the tokens take 4.5 times the work at most: instructions, and tokens decoded."""
    tokenizer, work, decoded = tokenizer_of(kind)[0], [], []
    name = "pieces" if hasattr(tokenizer, "pieces") else "_write"
    method = getattr(type(tokenizer), name)

    def counted(tokenizer, ids, *rest):
        decoded.append(len(ids))
        return method(tokenizer, ids, *rest)

    monkeypatch.setattr(type(tokenizer), name, counted)
    for number in (150, 600):
        decoded.clear()
        _, encoding, ids = answer(kind, number)
        taken = instructions(lambda: written(tokenizer, encoding, ids))  # noqa: B023
        work.append((taken, sum(decoded)))
    assert all(four <= 4.5 * one for one, four in zip(*work, strict=True)), work


@pytest.mark.parametrize("kind", ["symbols, byte_level", "canonical, byte_level", "plain"])
def test_parts_come_at_once(kind):
    """But for the last word, or character."""
    parts, _, whole = written(*answer(kind, 100))
    assert sum(map(bool, parts)) > 30 and len(whole) - len("".join(parts)) < 20
