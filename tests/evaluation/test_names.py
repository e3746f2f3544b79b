"""What is a name in a text, what renaming makes of it, and what is refused."""

import itertools
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import NAMES, SUBWORD, byte_level, smiles, unigram, word_level, word_piece
from tokenizers import normalizers

from hf_alpha.evaluation import alpha_covariance
from hf_alpha.evaluation.covariance import by_rules
from hf_alpha.evaluation.names import (
    Ids,
    RuledNames,
    WordNames,
    found_by,
    names_of,
    rename,
)
from hf_alpha.generation import generate_answers
from hf_alpha.modeling.configuration_alpha import AlphaConfig
from hf_alpha.modeling.modeling_alpha import AlphaForConditionalGeneration
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.modeling.tokenization_canonical import CanonicalTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.tasks import get_task

SWAP = {"alice": "bob", "bob": "alice"}
KINDS = [*SUBWORD, lambda end=False: word_level(end, (*NAMES, "&", "sees"))]


def checked(words: WordNames, text: str, table: dict[str, str]) -> list[int]:
    """The ids of the renamed text, once `check` has nothing against it."""
    source, tables = words.read(text), [{}, table]
    inputs = words.inputs(source, tables)
    words.check(source, tables, inputs)
    return inputs[1]["input_ids"]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    "text", ["alice & bob", "bob", "sees alice  sees bartholomew", "bartholomew & bob & bob"]
)
def test_all_forms_of_a_name_are_renamed_together(make, text):
    """At the start, after a space, of one token and of many: as if the text had been written so."""
    tokenizer = make(end=True)
    for image in itertools.permutations(NAMES):
        table = dict(zip(NAMES, image, strict=True))
        renamed = re.sub(r"[a-z]+", lambda match, t=table: t.get(match[0], match[0]), text)
        assert checked(WordNames(tokenizer, NAMES), text, table) == tokenizer(renamed)["input_ids"]


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("bobby, Bob, bob_1, 1bob, bobé, bob", ["bob"], ["bob"]),
        ("(bob)bob's bob-bob.", ["bob"], ["bob"] * 4),
        ("x1 x x11", ["x", "x1"], ["x1", "x"]),  # one begins with the other
        ("New York, York, New Yorker", ["York", "New York"], ["New York", "York"]),
        ("New York, New", ["New", "New York"], ["New York", "New"]),
        ("a.b axb a+ a+b $v $vv", ["a.b", "a+", "$v"], ["a.b", "a+", "a+", "$v"]),
        ("имя имянин ИМЯ", ["имя"], ["имя"]),
        ("bo\u0301b bo\u0301 bo", ["bo"], ["bo"]),  # a combining accent belongs to the word
        ("हिन्दी हिन्द", ["हिन्द"], ["हिन्द"]),  # so does a vowel sign
    ],
)
def test_a_name_is_a_whole_word_of_this_spelling(text, names, found):
    assert list(WordNames(byte_level(), names).read(text)[1::2]) == found


words_of_text = st.lists(
    st.sampled_from([*NAMES, "alicebob", "Bob", "bob2", "not", "é", "<unk>", "&", " ", "'s", ""])
)


@given(words_of_text.map(" ".join) | words_of_text.map("".join), st.permutations(NAMES))
def test_renaming_and_its_inverse_are_the_identity(text, image):
    words = WordNames(byte_level(), NAMES)
    table = dict(zip(NAMES, image, strict=True))
    inverse = {new: old for old, new in table.items()}
    source = words.read(text)
    (row,) = words.inputs(source, [table])
    renamed = words.tokenizer.decode(row["input_ids"])
    assert words.read(renamed) == rename(source, table)
    (back,) = words.inputs(words.read(renamed), [inverse])
    assert words.tokenizer.decode(back["input_ids"]) == text == "".join(source)
    assert rename(rename(source, table), inverse) == source
    if source[1::2]:
        checked(words, text, table)


@pytest.mark.parametrize(
    ("make", "symbols", "message"),
    [
        (word_level, ["x", "w"], "symbol 'w' does not come back"),
        (unigram, ["bob", "andré"], "symbol 'andré' does not come back"),
        (word_piece, ["alice", "Alice"], "'Alice' does not come back .* becomes 'alice alice'"),
        (word_piece, ["x_1"], "symbol 'x_1' does not come back .* becomes 'x _ 1 x _ 1'"),
        (byte_level, ["x", "y", "x"], "symbol 'x' is given twice"),
        (byte_level, {"one": ["x"], "two": ["y", "x"]}, "symbol 'x' is given twice"),
        (byte_level, [" x"], "symbol ' x' is no word: write names without spaces around"),
        (byte_level, [""], "symbol '' is no word"),
        (byte_level, ["x", 3], "symbol 3 is no string but a int"),
        (byte_level, [], "`symbols` is empty"),
        (byte_level, "xyz", "is the string 'xyz': give a list of names"),
        (byte_level, {"one": "xyz"}, "is the string 'xyz': give a list of names"),
        (byte_level, None, "give `symbols`"),
    ],
)
def test_names_that_a_tokenizer_cannot_keep_are_refused(make, symbols, message):
    with pytest.raises(ValueError, match=message):
        WordNames(make(), symbols)


def saw_alice():
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("alice sees", "alice saw")
    return tokenizer


@pytest.mark.parametrize(
    ("make", "names", "text", "table", "message"),
    [
        # Lower-casing makes a name of another word.
        (word_piece, ["alice", "bob"], "Alice sees bob", SWAP,
         "turns 'Alice sees bob' into 'alice sees bob', which has the names 'alice', 'bob' "
         "instead of 'bob'"),
        # So does splitting at an underscore.
        (word_piece, ["x", "y"], "x and y_1", {"x": "y", "y": "x"}, "the names 'x', 'y' instead"),
        # The new name and the word before it are another name.
        (byte_level, ["York", "Paris", "New York"], "New Paris", {"Paris": "York", "York": "Paris"},
         "renamed to 'New York' it has the names 'New York' instead of 'York'"),
        # Two names that stand side by side become one word.
        (byte_level, ["$v", "w", "x"], "x$v", {"$v": "w", "w": "$v"},
         "renamed to 'xw' it has the names none instead of 'x', 'w'"),
        # A word beside the name depends on it.
        (saw_alice, ["alice", "bob"], "bob sees", SWAP,
         "turns 'alice sees' into 'alice saw', but 'bob sees' into 'bob sees': more than"),
        # In a word of its own a name is known, in this one it is not.
        (word_level, ["x", "y"], "x and y.", {"x": "y", "y": "x"}, "the names 'x' instead of"),
    ],
)  # fmt: skip
def test_texts_that_cannot_be_renamed_are_refused(make, names, text, table, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        checked(WordNames(make(), names), text, table)


def test_changes_of_other_words_do_no_harm():
    tokenizer = word_piece()
    ids = checked(WordNames(tokenizer, ["alice", "bob"]), "The café: alice's, BOBBY!", SWAP)
    assert tokenizer.decode(ids) == "the cafe : bob ' s, bobby!"


@pytest.mark.parametrize("make", SUBWORD)
def test_special_tokens_are_no_text_unless_they_are_names(make):
    """The `s` of `</s>` is no name."""
    tokenizer = make(end=True)
    words = WordNames(tokenizer, ["s", "x"])
    ids = checked(words, "x and s", {"x": "s", "s": "x"})
    assert ids == tokenizer("s and x")["input_ids"] and ids[-1] == tokenizer.eos_token_id
    assert words.answers([ids]) == [("", "s", " and ", "x", "")]
    assert words.answers([tokenizer(" x ", add_special_tokens=False)["input_ids"]]) == [
        ("", "x", "")
    ]
    if tokenizer.unk_token is not None:  # what is unknown does not vanish
        assert words.answers([[tokenizer.unk_token_id]]) == [("<unk>",)]

    tokenizer.add_tokens(["<name1>", "<name2>"], special_tokens=True)
    swap = {"<name1>": "<name2>", "<name2>": "<name1>"}
    ids = checked(WordNames(tokenizer, list(swap)), "<name1> and <name2>", swap)
    first, second = tokenizer.convert_tokens_to_ids(list(swap))
    assert [i for i in ids if i in (first, second)] == [second, first]


def test_names_inside_words_and_bindings_are_renamed_by_the_rules_that_find_them():
    tokenizer = smiles()
    task = get_task("text").configured(symbols={"ring": {"rule": "smiles"}})
    text = "C1CC1C1CC2C1CC2.[Na+]"
    names = by_rules(tokenizer, task, [text, "C3CC3"])
    assert isinstance(names, RuledNames) and names_of(tokenizer, names) is names
    (ring,) = names.classes
    ids = checked(names, text, dict(zip(ring, [ring[2], ring[0], ring[1]], strict=True)))
    assert tokenizer.decode(ids) == "C3CC3C3CC1C3CC1.[Na+]"
    canonical = CanonicalTokenizer.from_tokenizer(tokenizer, {"ring": {"rule": "smiles"}})
    spelled = by_rules(canonical, task, [text, "C3CC3"])
    assert checked(spelled, text, {ring[0]: ring[1], ring[1]: ring[0]}) == tokenizer(text).input_ids
    spelled.tokenizer.batch_decode = lambda *_, **__: [text, text.replace("2", "1")]
    with pytest.raises(ValueError, match="the names '#0', '#0', '#1', '#1', '#2', '#2'"):
        checked(spelled, text, {})
    answers = names.answers([tokenizer(answer)["input_ids"] for answer in ("C1CC1", "C3CC3", "CC")])
    assert answers[0] == answers[1] and [*map(names.has_name, answers)] == [True, True, False]
    # by spelling: an answer is in the names of its text
    spelled = get_task("text").configured(symbols={"ring": {"pattern": "[1-3]", "words": False}})
    names = by_rules(tokenizer, spelled, [text, "3"])
    ((first, second, _),) = names.classes
    assert checked(names, text, {}) == tokenizer(text)["input_ids"]
    (answer,) = names.answers([tokenizer("C1CC12CC2")["input_ids"]])
    assert rename(answer, {first: second, second: first})[1::2] == (second, second, first, first)
    words = get_task("text").configured(symbols={"ring": {"pattern": "[1-3]"}})
    assert by_rules(tokenizer, words, ["1 or 2", "3"]) == {"ring": ["1", "2", "3"]}


def test_rules_alone_say_which_names_change_places():
    tokenizer, rules = smiles(), {"ring": {"rule": "smiles"}}
    names = found_by(tokenizer, rules, ["C1CC1", "C%12CC%12"])
    assert [name.rpartition("\0")[2] for name in names.classes[0]] == [*"123456789", "%12"]
    assert found_by(tokenizer, ["1", "2"], []) == ["1", "2"]
    with pytest.raises(ValueError, match="the rule of class 'x' finds no two names"):
        found_by(tokenizer, {"x": {"pattern": "[a-z]"}}, ["a 1 a"])


def test_a_tokenizer_of_ours_is_renamed_by_ids():
    tokenizer = AlphaTokenizer(base_tokens=["&"], symbol_classes={"proposition": 3})
    ids = names_of(tokenizer, None)
    assert isinstance(ids, Ids) and ids.classes == [[4, 5, 6]]
    assert names_of(tokenizer, {"some": ["a"], "others": ["c"]}).classes == [[4], [6]]
    source = ids.read("request & grant & request")
    (row,) = ids.inputs(source, [{4: 6, 6: 4}])
    assert row["input_ids"] == [6, 3, 5, 3, 6, 2] and row["stream_ids"] == [6, 5]
    for symbols, message in [
        (["a b"], "symbol 'a b' is not a single token of the vocabulary"),
        (["request"], "symbol 'request' is not a single token of the vocabulary"),
        (["a", "a"], "given twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            Ids(tokenizer, symbols)
    with pytest.raises(ValueError, match="give `symbols`"):
        Ids(AlphaTokenizer(base_tokens=["&"]))


TEXTS = ["swap x y : ( x + y )", "swap a f : f - a", "swap z z : z"]
CLASSES = {"function": {"tokens": ["f", "New"]}, "variable": {"pattern": "[a-z]|Bob", "count": 5}}


@pytest.mark.parametrize(("encoding", "seed"), [("streams", 6), ("relational", 10)])
def test_texts_with_names_are_renamed_as_ids(encoding: str, seed: int):
    tokenizer = TextTokenizer.from_texts(TEXTS, CLASSES)
    torch.manual_seed(seed)  # of a model whose answers have names
    sizes = {"d_model": 24, "encoder_layers": 1, "decoder_layers": 1}
    blocks = {"encoder_aggregated_attention": True, "decoder_aggregated_attention": True}
    config = AlphaConfig.for_tokenizer(tokenizer, symbol_encoding=encoding, **sizes, **blocks)
    model = AlphaForConditionalGeneration(config).eval()
    settings = {"num_beams": 1, "max_new_tokens": 5}
    measured = alpha_covariance(
        model, tokenizer, TEXTS, max_renamings=12, generate_kwargs=settings, progress=False
    )
    assert measured.mean == 1.0
    called = alpha_covariance(
        model,
        tokenizer,
        TEXTS,
        symbols=["<variable_0>", "<variable_1>"],
        generate_kwargs=settings,
        progress=False,
    )
    assert called.mean == 1.0
    options = {"generate_kwargs": settings, "progress": False}
    ruled = alpha_covariance(model, tokenizer, TEXTS, symbols=CLASSES, **options)
    assert (ruled.mean, ruled.used, ruled.max_renamings) == (1.0, 3, 8)
    one = {"letter": {"pattern": "[a-z]|Bob"}}  # a class of the tokenizer, under another name
    assert alpha_covariance(model, tokenizer, TEXTS, symbols=one, **options).used == 3
    with pytest.raises(ValueError, match=r"the tokenizer finds names itself, by .* of 'other'"):
        alpha_covariance(model, tokenizer, TEXTS, symbols={"other": {"pattern": "z"}}, **options)
    renamed = [" ".join({"x": "Bob", "f": "New"}.get(w, w) for w in t.split()) for t in TEXTS]
    one, two, beyond = (
        generate_answers(model, tokenizer, texts, progress=False, **settings)
        for texts in (TEXTS, renamed, ["x y z a b c"])
    )
    assert beyond == [None]  # six names, five symbols
    swapped = [[" ".join({"x": "Bob", "f": "New"}.get(w, w) for w in a[0].split())] for a in one]
    assert [[" ".join(a[0].split())] for a in two] == swapped
    assert any(set(answer[0].split()) & {*"xyzaf"} for answer in one)  # names are at stake
