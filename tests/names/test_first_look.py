import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.names.first_look import (
    FIRST_LOOK_FILE,
    LACKING,
    REMEDY,
    FirstLook,
    TrainingFacts,
    fault,
    look_at_tests,
    mark,
)

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


def look(pairs, finder, tokenizer=None) -> FirstLook:
    found = FirstLook(finder)
    for start in range(0, len(pairs), 1000):
        marked = found.add(pairs[start : start + 1000])
        if tokenizer is not None:
            found.add_tokens(marked, tokenizer)
    return found


def test_what_is_shown_before_training():
    found = look(PAIRS, FINDER, TOKENIZER)
    assert str(found).splitlines() == [
        "pairs     5",
        "variable  0 / 1.8 / 4 names in a source (min / mean / max), 8 different: y, x, z, a, b",
        "nameless  1 of 5 sources",
        "longest   source 13 tokens; target 5 tokens",
        "example   swap «x: variable» «y: variable» : ( «x: variable» + «y: variable» )",
        "->        ( «y: variable» + «x: variable» )",
    ]
    with pytest.raises(
        ValueError,
        match=r"3 of 5 pairs cannot be learnt: 2: the .* row 1 \('w'\), "
        r"row 4 \('v'\); 1: more names than `count`: row 2 \(4 of class variable\).*reserved.* "
        "data.drop_bad=true",
    ):
        found.check()
    assert found.questions == ["26 of 52 tokens are unknown to the model: '*', '7', '-' and 2 more"]
    assert look(PAIRS, NameFinder({"sum": r"\(", "other": 3, "sign": "[*]"})).questions == [
        f"no {name} in 3 of 5 rows: does its rule fit them? It is {rule}"
        for name, rule in (("sum", {"pattern": r"\("}), ("sign", {"pattern": "[*]"}))
    ]
    assert "unknown   0 of " in str(look([("swap x", "x")], FINDER, TOKENIZER))
    first = look(PAIRS[:1], FINDER)
    assert first.rows == 1 and "unknown" not in str(first)
    first.check()


def test_first_rows_of_many():
    """Over several batches; rows count from 0 through all of them."""
    pairs = [("f x", "x" if i % 600 else "y") for i in range(2500)]
    found = look(pairs, NameFinder({"variable": "[x-z]"}))
    assert found.bad[LACKING] == [f"row {i} ('y')" for i in range(0, 2500, 600)]


names = st.lists(st.sampled_from(["x", "y", "z", "f", "g"]), max_size=4)
TWO = NameFinder({"variable": {"pattern": "[x-z]", "count": 2}, "function": "[fg]"})


@given(names, names)
def test_a_pair_is_bad_just_if_it_cannot_be_learnt(problem, answer):
    pair = mark(" ".join(["(", *problem]), " ".join(["(", *answer]), TWO)
    is_within = len(set(problem) - {"f", "g"}) <= 2
    assert (fault(pair, TWO) is None) == (is_within and set(answer) <= set(problem))
    assert (fault(pair, TWO, new_names=True) is None) == is_within


def test_names_of_a_column_and_of_several_classes():
    finder = NameFinder({"person": {"column": "who"}, "number": "[0-9]+"})
    text = MarkedText("Ann met Bob 2 times", [(0, 3, "person"), (12, 13, "number")])
    found = look([(text, answer) for answer in ("Ann 2", "Ann 3", "Bob")], finder)
    # Bob is no name here, since the row does not list him: an ordinary word.
    assert found.bad == {LACKING: ["row 1 ('3')"]}
    assert "«Ann: person» met Bob «2: number» times" in str(found)


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
    with pytest.raises(ValueError, match=message):
        look(PAIRS, NameFinder(rules)).check()


def test_names_may_be_left_to_the_tokenizer():
    found = look(PAIRS, NameFinder({"name": 1}))
    found.check()
    assert found.nameless == len(PAIRS)
    with pytest.raises(ValueError, match="no source has a name"):  # one class is looked for
        look(PAIRS, NameFinder({"name": 1, "variable": "[A-Z]"})).check()


def test_a_pattern_that_takes_a_word_of_the_task_for_a_name():
    pairs = [(f"swap x{i} y : x{i} - y", f"y - x{i}") for i in range(20)]
    (question,) = look(pairs, NameFinder({"variable": r"\w+"})).questions
    assert "swap, y (if it is none, put `reserved: [...]` into the rule of variable)" in question
    assert "swap" not in look(pairs, FINDER).questions[0]
    assert look(pairs[:19], FINDER).questions == []


RULES = {"small": {"pattern": "[a-z]", "count": 3}, "large": {"pattern": "[A-Z]", "count": 3}}
TRAINING = ["swap a B", "swap a b B C"]
TEXTS = TextTokenizer.from_texts(TRAINING, RULES)
CASES = NameFinder(RULES)
FACTS = look([(text, "") for text in TRAINING], CASES, TEXTS).facts


def look_at(*texts: str, training: TrainingFacts | None = FACTS, renamed: list[int] | None = None):
    rows = [{"problem": text, "answer": None} for text in texts]
    return look_at_tests(rows, CASES, TEXTS, training, renamed)


def test_each_thing_that_training_lacked_has_a_line(tmp_path):
    assert FACTS.names == {"small": (1, 2), "large": (1, 2)}
    length = FACTS.longest["source"]
    assert length == len(TEXTS("swap a b B C")["input_ids"])
    assert look_at("swap a B").warnings == []
    more = look_at("swap a b c d B", "swap a B", "swap a b c B C")
    assert more.warnings == [
        "more names of class small than the 2 that training had at most in 2 of 3 rows, up to 4"
        + REMEDY,
        f"longer sources than the {length} tokens that training had at most in 2 of 3 rows, up to "
        f"{length + 1}",
    ], "four names are more than the tokenizer has symbols"
    assert look_at("swap a b c d B", training=None).warnings == []
    nameless = look_at("swap a", "swap a B", "swap a b", renamed=[2])
    assert nameless.warnings == [
        "no large in 2 of 3 rows: does its rule fit them? It is {'pattern': '[A-Z]', 'count': 3}",
        "1 of 3 rows are renamings of training's: rows 2",
    ]
    (unknown,) = look_at("swap swop a B", "swap swop swop a B").warnings[:1]
    assert unknown.startswith("3 of ") and unknown.endswith("unknown to the model: 'swop'")
    said = str(look_at("swap a", "swap a b B", renamed=[]))
    assert "small      1 / 1.5 / 2 names in a source (min / mean / max), 2 different: a, b" in said
    assert "nameless   0 of 2 sources" in said and "renamings  0 sources" in said


def test_facts_lie_beside_the_model(tmp_path):
    assert TrainingFacts.beside(str(tmp_path)) is None
    look([(text, "") for text in TRAINING], CASES, TEXTS).save(tmp_path)
    assert TrainingFacts.beside(str(tmp_path)) == FACTS and (tmp_path / FIRST_LOOK_FILE).is_file()


@given(st.lists(st.lists(st.sampled_from("abcdBCD"), max_size=6), min_size=1, max_size=6))
def test_a_text_is_noted_as_rows_are_counted(rows):
    """A note for more names is there exactly where the row counts in the warning."""
    texts = [" ".join(["swap", *names]) for names in rows]
    for kind, letters in (("small", "abcd"), ("large", "BCD")):
        counts = [len(set(names) & set(letters)) for names in rows]
        noted = [list(FACTS.notes(text, CASES)) for text in texts]
        for count, notes in zip(counts, noted, strict=True):
            mine = [note for note in notes if kind in note]
            assert bool(mine) == (count == 0 or count > 2)
        beyond = sum(count > 2 for count in counts)
        told = [line for line in look_at(*texts).warnings if f"class {kind}" in line]
        assert bool(told) == bool(beyond)
        assert not told or f"in {beyond} of {len(rows)} rows" in told[0]
