"""What tokenizers of formulas and of texts share: symbols for names, and rows of a call."""

import pytest

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer

RULES = {"name": {"pattern": "n[0-9]+", "count": 2}, "other": {"pattern": "o[0-9]+", "count": 3}}
FORMULAS = AlphaTokenizer(
    base_tokens="+",
    symbol_classes={name: rule["count"] for name, rule in RULES.items()},
    name_patterns={name: rule["pattern"] for name, rule in RULES.items()},
)
TEXTS = TextTokenizer.from_texts(["n1 + o1"], RULES)
BOTH = pytest.mark.parametrize("tokenizer", [FORMULAS, TEXTS], ids=["formulas", "texts"])


def test_too_many_names_are_one_error():
    messages = set()
    for tokenizer in (FORMULAS, TEXTS):
        with pytest.raises(FormulaError) as error:
            tokenizer(["n1 +", "o1 + n1 + n2 + n3 + n1"])
        messages.add(str(error.value))
    (message,) = messages
    assert message.startswith("row 1: 3 names of class 'name', but the vocabulary has 2 symbols")
    assert message.endswith("extend_symbols({'name': 1}) on the tokenizer and on the model")


@BOTH
def test_names_get_the_free_symbols_of_their_class_in_order(tokenizer):
    own = tokenizer.symbol_ids  # two of the first class, three of the second
    classes = {"o1": "other", "n7": "name", "o2": "other", "o3": "other"}
    table = tokenizer.assign_symbols(classes, {"o3": own[2]})
    assert table == {"o3": own[2], "o1": own[3], "n7": own[0], "o2": own[4]}
    token = tokenizer.convert_ids_to_tokens(own[0])  # which is that symbol's own
    assert tokenizer.assign_symbols({"n7": "name", token: "name"}) == {"n7": own[1], token: own[0]}
    assert [tokenizer.class_of(index) for index in own] == ["name"] * 2 + ["other"] * 3


@BOTH
def test_a_single_text_has_one_mapping_of_names_as_tensors_too(tokenizer):
    lists, tensors = tokenizer("n7 + o1"), tokenizer("n7 + o1", return_tensors="pt")
    assert lists.names == tensors.names and set(lists.names.values()) == {"n7", "o1"}
    assert tensors["input_ids"].tolist() == [lists["input_ids"]]
    assert tokenizer.encode("n7 + o1") == lists["input_ids"]
    assert tokenizer.decode(lists["input_ids"], names=lists.names) == "n7 + o1"


@BOTH
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "n1", "text_target": ["n1"]}, "both as one string or both as a list"),
        ({"text": []}, "no rows to encode"),
        ({"text_target": ["n1"], "names": [{"+": "n1"}]}, r"row 0: `names` has '\+', which is no"),
    ],
)
def test_calls_are_refused_alike(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        tokenizer(**arguments)


@BOTH
def test_symbols_without_a_name_are_spelled_on_demand(tokenizer):
    """By names that the row has not got; the same symbol has the same name."""
    first, second = tokenizer.symbol_ids[:2]
    other = tokenizer.symbol_ids[2]
    names = {tokenizer.convert_ids_to_tokens(first): "t1"}
    ids = [first, other, second, other]

    def words(row, **kwargs):
        return tokenizer.decode(row, **kwargs).split()

    assert words(ids, names=names, new_names="t") == ["t1", "t2", "t3", "t2"]
    batch = tokenizer.batch_decode([ids, ids[1:]], names=[names, {}], new_names="t")
    assert [row.split() for row in batch] == [["t1", "t2", "t3", "t2"], ["t1", "t2", "t1"]]
    assert words(ids, names=names, new_names=lambda n, kind: f"{kind}{n}") == [
        "t1", "other1", "name2", "other1",
    ]  # fmt: skip
    assert words(ids, names=names)[1] == tokenizer.convert_ids_to_tokens(other)
    with pytest.raises(ValueError, match="new_names gives 't1', which is a name"):
        tokenizer.decode(ids, names=names, new_names=lambda n, kind: "t1")
