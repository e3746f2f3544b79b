import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.build_tokenizer import build_tokenizer
from hf_alpha.data.collate import AlphaCollator

TOKENIZER = build_tokenizer("propositional", 5)
PAIRS = [
    ("& a ! b", "a1b0"), ("1", ""), ("| request 0", "request 1"), ("a", "a1"),
    ("^ = c c e", "e1"), ("!!!!d", "d1"), ("& x & y & z u", "x1y1z1u1"),
]  # fmt: skip


def rows_of(pairs):
    return [TOKENIZER.encode_pair(problem, answer) for problem, answer in pairs]


@given(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=6), st.sampled_from(["left", "right"]))
@settings(deadline=None)
def test_a_batch_is_what_the_tokenizer_makes(pairs, side):
    tokenizer = build_tokenizer("propositional", 5)
    tokenizer.padding_side = side
    batch = AlphaCollator(tokenizer)(rows_of(pairs))
    problems, answers = map(list, zip(*pairs, strict=True))
    expected = tokenizer(problems, text_target=answers, padding=True, return_tensors="pt")
    assert isinstance(batch, dict) and batch.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(batch[name], tensor) and batch[name].dtype == torch.int64, name


def test_padding_by_hand():
    rows = rows_of([("& a ! b", "a1b0"), ("1", "")])
    rows[0]["problem"] = "& a ! b"  # what the model does not know is left out
    right = AlphaCollator(TOKENIZER)(rows)
    assert right["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]
    assert right["tree_paths"].tolist() == [[1, 2, 3, 6, 0], [1, 0, 0, 0, 0]]
    assert right["stream_ids"].tolist() == [[10, 11], [-1, -1]]
    assert right["labels"].tolist() == [[10, 4, 11, 3, 2], [2, -100, -100, -100, -100]]
    tokenizer = build_tokenizer("propositional", 5)
    tokenizer.padding_side = "left"
    left = AlphaCollator(tokenizer)(rows)
    assert left["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert left["tree_paths"].tolist() == [[1, 2, 3, 6, 0], [0, 0, 0, 1, 0]]
    assert torch.equal(left["labels"], right["labels"])
    assert "problem" not in right


def test_labels_may_be_missing():
    batch = AlphaCollator(TOKENIZER)([TOKENIZER.encode_pair("& a b")])
    assert set(batch) == {"input_ids", "attention_mask", "tree_paths", "stream_ids"}


def test_a_symbol_that_the_input_lacks_is_an_error():
    rows = rows_of(PAIRS[:2])
    rows[1]["labels"] = [12, 4, 14, 3, 2]
    with pytest.raises(
        ValueError, match=r"row 1 of .* symbol\(s\) c, e, which the input '1' lacks"
    ):
        AlphaCollator(TOKENIZER)(rows)
    taken = AlphaCollator(TOKENIZER, allow_absent_symbols=True)(rows)
    assert taken["labels"][1].tolist() == [12, 4, 14, 3, 2]


def test_ids_behind_the_symbols_are_none():
    tokenizer = build_tokenizer("propositional", 5)
    tokenizer.symbol_ranges = {"proposition": [[10, 14]]}
    rows = rows_of(PAIRS[:1])
    rows[0]["labels"] = [14, 3, 2]
    assert AlphaCollator(tokenizer)(rows)["labels"].tolist() == [[14, 3, 2]]
    rows[0]["labels"] = [13, 3, 2]
    with pytest.raises(ValueError, match=r"symbol\(s\) d, which"):
        AlphaCollator(tokenizer)(rows)
