"""What test data has that training had not is counted row by row, and said."""

import hypothesis.strategies as st
from hypothesis import given, settings

from hf_alpha.data.first_look import look_at_rows
from hf_alpha.data.unlike_training import FIRST_LOOK_FILE, TrainingFacts, look_at_tests
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.tokenization_text import TextTokenizer

RULES = {"small": {"pattern": "[a-z]", "count": 3}, "large": {"pattern": "[A-Z]", "count": 3}}
TRAINING = ["swap a B", "swap a b B C"]
TOKENIZER = TextTokenizer.from_texts(TRAINING, RULES)
FINDER = NameFinder(RULES)
FACTS = TrainingFacts.of(look_at_rows([{"problem": text} for text in TRAINING], FINDER, TOKENIZER))


def look(*texts: str, training: TrainingFacts | None = FACTS, renamed: int | None = None):
    rows = [{"problem": text, "answer": None} for text in texts]
    return look_at_tests(rows, FINDER, TOKENIZER, training, renamed)


def test_each_thing_that_training_lacked_has_a_line(tmp_path):
    assert FACTS.names == {"small": (1, 2), "large": (1, 2)}
    length = FACTS.longest["source"]
    assert length == len(TOKENIZER("swap a b B C")["input_ids"])
    assert look("swap a B").warnings == []
    more = look("swap a b c d B", "swap a B", "swap a b c B C")
    assert more.warnings == [
        "more names of class small than the 2 that training had at most in 2 of 3 rows, up to 4",
        f"longer sources than the {length} tokens that training had at most in 2 of 3 rows, up to "
        f"{length + 1}",
    ], "four names are more than the tokenizer has symbols"
    assert look("swap a b c d B", training=None).warnings == []
    nameless = look("swap a", "swap a B", "swap a b", renamed=1)
    assert nameless.warnings == [
        "no large in 2 of 3 rows: are names written as in training? The rule is "
        "{'pattern': '[A-Z]', 'count': 3}",
        "1 of 3 rows are renamings of training's",
    ]
    (unknown,) = look("swap swop a B", "swap swop swop a B").warnings[:1]
    assert unknown.startswith("3 of ") and unknown.endswith("unknown to the model: 'swop'")
    said = str(look("swap a", "swap a b B", renamed=0))
    assert "small      1 / 1.5 / 2 names in a source (min / mean / max); in training 1 to 2" in said
    assert "nameless   0 of 2 sources" in said and "renamings  0 sources" in said


def test_facts_lie_beside_the_model(tmp_path):
    assert TrainingFacts.beside(str(tmp_path)) is None
    FACTS.save(tmp_path)
    assert TrainingFacts.beside(str(tmp_path)) == FACTS and (tmp_path / FIRST_LOOK_FILE).is_file()


@given(st.lists(st.lists(st.sampled_from("abcdBCD"), max_size=6), min_size=1, max_size=6))
@settings(max_examples=60)
def test_a_text_is_noted_as_rows_are_counted(rows):
    """A note for more names is there exactly where the row counts in the warning."""
    texts = [" ".join(["swap", *names]) for names in rows]
    for kind, letters in (("small", "abcd"), ("large", "BCD")):
        counts = [len(set(names) & set(letters)) for names in rows]
        noted = [FACTS.notes(text, FINDER) for text in texts]
        for count, notes in zip(counts, noted, strict=True):
            mine = [note for note in notes if kind in note]
            assert bool(mine) == (count == 0 or count > 2)
        beyond = sum(count > 2 for count in counts)
        told = [line for line in look(*texts).warnings if f"class {kind}" in line]
        assert bool(told) == bool(beyond)
        assert not told or f"in {beyond} of {len(rows)} rows" in told[0]
