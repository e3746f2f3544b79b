import random

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_alpha.data.first_look import LACKING, TOO_MANY, drop_bad, look
from hf_alpha.data.pairs import problems
from hf_alpha.modeling.names_in_text import NameFinder

FINDER = NameFinder({"variable": {"pattern": "[a-z][0-9]*", "count": 3}})
PAIRS = [
    ("swap x y : ( x + y )", "( y + x )"),
    ("swap y z : y * z", "z * y * w"),
    ("swap a b : ( a + b ) * c - d", "d"),
    ("two 7", "7"),
    ("swap q q : ! q", "q v u"),
]
TOKENIZER = PreTrainedTokenizerFast(
    tokenizer_object=Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(["<unk>", "swap", *":()+xy"])}, "<unk>")
    ),
    unk_token="<unk>",
)
TOKENIZER.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()


def dataset(pairs, streaming: bool = False):
    rows = Dataset.from_list([{"problem": p, "answer": a} for p, a in pairs])
    return rows.to_iterable_dataset(num_shards=min(2, len(pairs))) if streaming else rows


@pytest.mark.parametrize("streaming", [False, True])
def test_what_is_shown_before_training(streaming):
    found = look(dataset(PAIRS, streaming), FINDER, TOKENIZER)
    assert str(found).splitlines() == [
        "pairs      5",
        "variable   0 / 1.8 / 4 names in a source (min / mean / max), 8 different: y, x, z, a, b",
        "nameless   1 of 5 sources",
        "longest    source 28 characters, 13 tokens; target 9 characters, 5 tokens",
        "unknown    26 of 52 tokens: '*' (4), '7' (2), '-' (1), 'two' (1), '!' (1)",
        "bad pairs  2: the target has a name that the source lacks: row 1 ('w'), row 4 ('v')",
        "bad pairs  1: more names than `count`: row 2 (4 of class variable)",
        "example    swap «x» «y» : ( «x» + «y» )",
        "->         ( «y» + «x» )",
    ]
    with pytest.raises(
        ValueError,
        match=r"3 of 5 pairs cannot be learnt: 2: the .* row 1 \('w'\), "
        r"row 4 .*; 1: more names than `count`: row 2 .*reserved.* --drop-bad",
    ):
        found.refuse_bad()
    rare = look(dataset(PAIRS, streaming), NameFinder({"sum": r"\(", "other": 3, "sign": "[*]"}))
    assert [line for line in str(rare).splitlines() if line[0] == "?"] == [
        "?          no sum in 3 of 5 sources (if they have some: `symbols`)",
        "?          no sign in 3 of 5 sources (if they have some: `symbols`)",
    ]
    first = look(dataset(PAIRS, streaming), FINDER, limit=1)
    assert first.rows == 1 and "unknown" not in str(first) and "bad pairs  none" in str(first)
    first.refuse_bad()


@pytest.mark.parametrize("streaming", [False, True])
def test_bad_pairs_are_dropped_and_counted(streaming):
    kept, dropped = drop_bad(dataset(PAIRS, streaming), FINDER)
    assert [row["problem"] for row in kept] == [PAIRS[0][0], PAIRS[3][0]]
    assert dropped == {LACKING: 2, TOO_MANY: 1}
    look(kept, FINDER).refuse_bad()
    again, nothing = drop_bad(kept, FINDER)
    assert list(again) == list(kept) and nothing == {}
    with pytest.raises(ValueError, match=r"no pair is left of the data \(1: the target has a name"):
        drop_bad(dataset(PAIRS[1:2], streaming), FINDER)


def test_first_rows_of_many():
    """Over several batches; rows count from 0 through all of them."""
    pairs = [("f x", "x" if i % 600 else "y") for i in range(2500)]
    finder = NameFinder({"variable": "[x-z]"})
    assert look(dataset(pairs), finder).bad[LACKING] == [(i, "'y'") for i in range(0, 2500, 600)]


names = st.lists(st.sampled_from(["x", "y", "z", "f", "g"]), max_size=4)
TWO = NameFinder({"variable": {"pattern": "[x-z]", "count": 2}, "function": "[fg]"})


@given(st.lists(st.tuples(names, names), min_size=1, max_size=6))
@settings(deadline=None)
def test_a_pair_is_bad_just_if_it_cannot_be_learnt(pairs):
    good = [
        (p, a) for p, a in pairs if set(a) <= set(p) and len(set(p) - {"f", "g"}) <= 2
    ]  # fmt: skip
    texts = [(" ".join(["(", *p]), " ".join(["(", *a])) for p, a in pairs]
    if good:
        kept, dropped = drop_bad(dataset(texts), TWO)
        assert len(kept) == len(good) and sum(dropped.values()) == len(pairs) - len(good)


def test_names_of_a_column_and_of_several_classes():
    finder = NameFinder({"person": {"column": "who"}, "number": "[0-9]+"})
    rows = [
        {"problem": "Ann met Bob 2 times", "answer": answer,
         "spans": [{"start": 0, "stop": 3, "symbol_class": "person"},
                   {"start": 12, "stop": 13, "symbol_class": "number"}]}
        for answer in ("Ann 2", "Ann 3", "Bob")
    ]  # fmt: skip
    data = Dataset.from_list(rows)
    found = look(data, finder)
    # Bob is no name here, since the row does not list him: an ordinary word.
    assert found.bad == {LACKING: [(1, "'3'")]}
    assert "«Ann: person» met Bob «2: number» times" in str(found)
    kept, _ = drop_bad(data, finder)
    assert problems(kept[:])[0].spans[0].symbol_class == "person" and len(kept) == 2


class Names:
    """Says which texts a tokenizer gets."""

    unk_token_id, eos_token_id, bos_token_id, pad_token_id = 0, 1, 2, 3
    is_fast = True

    def __init__(self):
        self.texts = []

    def __call__(self, texts):
        self.texts += texts
        return {"input_ids": [[1] * len(text.split()) for text in texts]}


def test_tokenizers_get_texts_with_their_names_marked():
    look(dataset(PAIRS[:1]), FINDER, seen := Names())
    assert [len(text.spans) for text in seen.texts] == [4, 2]
    assert seen.texts == list(PAIRS[0])


def test_long_examples_and_many_names():
    names = [f"x{i}" for i in range(100)]
    finder = NameFinder({"variable": r"x\d+"})
    found = look(dataset([(f"sum\n{' '.join(names)}", " ".join(reversed(names)))]), finder)
    found.refuse_bad()
    assert "100 / 100.0 / 100 names" in str(found) and "100 different" in str(found)
    assert all(len(line) < 140 for line in str(found).splitlines()) and "sum «x0»" in str(found)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"variable": "[A-Z]"}, "no source has a name: look at `symbols` and at the 5 sources, of"),
        ({"variable": ["k"]}, "no source has a name: look at"),
        ({"variable": "[x-z]", "other": "[A-Z]"}, "'other': the pattern '.A-Z.' matches no word"),
        ({"word": r"\S+"}, r"'\\\\S\+' match every word of all pairs, so that nothing but names"),
        ({"word": r"\w+", "rest": r"\W"}, r"and '\\\\W' match every word of all pairs"),
    ],
)
def test_rules_that_find_nothing_or_everything(rules, message):
    for streaming in (False, True):
        with pytest.raises(ValueError, match=message):
            look(dataset(PAIRS, streaming), NameFinder(rules))


def test_names_may_be_left_to_the_tokenizer():
    found = look(dataset(PAIRS), NameFinder({"name": 1}))
    found.refuse_bad()
    assert found.nameless == len(PAIRS)
    with pytest.raises(ValueError, match="no source has a name"):  # one class is looked for
        look(dataset(PAIRS), NameFinder({"name": 1, "variable": "[A-Z]"}))


def test_a_pattern_that_takes_a_word_of_the_task_for_a_name():
    pairs = [(f"swap x{i} y : x{i} - y", f"y - x{i}") for i in range(20)]
    question = "in every source, a name: 'swap', 'y' (if it is none: `reserved`)"
    assert question in str(look(dataset(pairs), NameFinder({"variable": r"\w+"})))
    assert "swap" not in str(look(dataset(pairs), FINDER)).split("example")[0]
    assert "every" not in str(look(dataset(pairs[:19]), FINDER))


def test_data_of_names_alone_may_be_meant():
    rng = random.Random(0)
    texts = [" ".join(rng.sample("xyz", 2)) for _ in range(5)]
    pairs = [(text, text[::-1]) for text in texts]
    with pytest.raises(ValueError, match="If that is meant, list the names as `tokens`"):
        look(dataset(pairs), NameFinder({"letter": "[a-z]"}))
    assert look(dataset(pairs), NameFinder({"letter": ["x", "y", "z"]})).nameless == 0
    with pytest.raises(ValueError, match="the data holds no pair"):
        look(dataset(PAIRS).take(0), FINDER)
