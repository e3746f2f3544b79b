import pytest
import torch
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.data.collate import AlphaCollator, tokenize
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.tasks.build_tokenizer import build_tokenizer

TOKENIZER = build_tokenizer("propositional", 5)
PAIRS = [
    ("& a ! b", "a1b0"), ("1", ""), ("| request 0", "request 1"), ("a", "a1"),
    ("^ = c c e", "e1"), ("!!!!d", "d1"), ("& x & y & z u", "x1y1z1u1"),
]  # fmt: skip


def rows_of(pairs):
    return [TOKENIZER.encode_pair(problem, answer) for problem, answer in pairs]


@given(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=6), st.sampled_from(["left", "right"]))
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


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_decoder_gets_one_sequence_and_learns_the_answer_alone(side):
    tokenizer = build_tokenizer("propositional", 5)
    tokenizer.padding_side = side  # of the user's: what is learned is padded on the right
    rows = rows_of([("& a b", "a1b1"), ("1", "")])
    batch = AlphaCollator(tokenizer, for_decoder=True)(rows)
    problem, answer = rows[0]["input_ids"], rows[0]["labels"]
    assert batch["input_ids"][0].tolist() == problem + answer
    assert batch["labels"][0].tolist() == [-100] * len(problem) + answer
    assert problem[-1] == answer[-1] == tokenizer.eos_token_id
    assert batch["input_ids"][1].tolist() == [4, 2, 2, 0, 0, 0, 0, 0, 0]
    assert batch["labels"][1].tolist() == [-100, -100, 2, *[-100] * 6]
    assert batch["attention_mask"].sum(1).tolist() == [9, 3]
    assert batch["stream_ids"].tolist() == [rows[0]["stream_ids"], [-1, -1]]
    assert "tree_paths" not in batch
    del rows[0]["labels"], rows[1]["labels"]
    batch = AlphaCollator(tokenizer, for_decoder=True)(rows)
    assert batch["input_ids"].tolist() == [problem, [4, 2, 0, 0]] and "labels" not in batch


TEXTS = ["swap x y : x + y", "swap y z : z"]
ANSWERS = ["y x", "z"]
RULES = {"variable": {"pattern": "[xyz]", "count": 4}}


def test_texts_with_names_make_batches():
    tokenizer = TextTokenizer.from_texts(TEXTS, RULES)
    rows = tokenize(Dataset.from_dict({"problem": TEXTS, "answer": ANSWERS}), tokenizer)
    batch = AlphaCollator(tokenizer)(list(rows))
    expected = tokenizer(TEXTS, text_target=ANSWERS, padding=True, return_tensors="pt")
    assert batch.keys() == expected.keys()
    assert all(torch.equal(batch[key], expected[key]) for key in batch)


def test_a_column_says_where_the_names_are():
    tokenizer = TextTokenizer.from_texts(TEXTS, RULES, "bpe:300")
    spans = [
        [{"start": 0, "stop": 4, "symbol_class": "variable"}],
        [{"start": 5, "stop": 6, "symbol_class": "variable"}],
    ]
    columns = {"problem": TEXTS, "answer": ["swap", "y"], "names": spans}
    rows = tokenize(Dataset.from_dict(columns), tokenizer)
    marks = [tokenizer.decode(row["input_ids"]) for row in rows]
    assert [row["labels"][0] for row in rows] == [row["stream_ids"][0] for row in rows]
    assert marks[0].split()[1:] == TEXTS[0].split()[1:] and marks[0].split()[0] != "swap"
    columns["names"][1][0]["stop"] = 100
    with pytest.raises(ValueError, match=r"row 1 of the dataset: the name at \(5, 100, "):
        tokenize(Dataset.from_dict(columns), tokenizer)


@pytest.mark.parametrize(
    "change",
    [
        {"symbols": {"variable": {"pattern": "[xy]", "count": 4}}},
        {"symbols": {"variable": {"pattern": "[xyz]", "count": 5}}},
        {"symbols": {"variable": {"pattern": "[xyz]", "count": 4, "reserved": ["z"]}}},
        {"tokenizer": "bpe:300"},
        {"texts": [*TEXTS, "z z z"]},  # other names come first
        {"texts": [*TEXTS, "another"]},
    ],
)
def test_the_cache_knows_all_of_a_text_tokenizer(change):
    def named(**given):
        made = TextTokenizer.from_texts(**given)
        made.name_symbols(given["texts"])
        return made

    data = Dataset.from_dict({"problem": TEXTS[:1], "answer": ANSWERS[:1]})
    given = {"texts": TEXTS, "symbols": RULES}
    tokenizer = named(**given)
    first = tokenize(data, tokenizer)._fingerprint
    tokenizer(TEXTS, padding=True, truncation=True, max_length=3)  # use changes nothing
    assert tokenize(data, tokenizer)._fingerprint == first
    assert tokenize(data, named(**given))._fingerprint == first
    assert tokenize(data, named(**given | change))._fingerprint != first
