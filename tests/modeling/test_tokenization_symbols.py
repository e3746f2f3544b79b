"""What tokenizers of formulas and of texts share: symbols for names, and rows of a call."""

import json
import os

import own_process
import pytest
from transformers import AutoTokenizer

from hf_alpha.geometric import GeometricTokenizer
from hf_alpha.logic.propositional.notation import PROPOSITIONAL
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.modeling.tokenization_symbols import SymbolTokenizer
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.transduction import Lexicon, Transducer

RULES = {"name": {"pattern": "n[0-9]+", "count": 2}, "other": {"pattern": "o[0-9]+", "count": 3}}
FORMULAS = AlphaTokenizer(
    base_tokens="+",
    symbol_classes={name: rule["count"] for name, rule in RULES.items()},
    name_patterns={name: rule["pattern"] for name, rule in RULES.items()},
)
TEXTS = TextTokenizer.from_texts(["n1 + o1"], RULES)
BOTH = pytest.mark.parametrize("tokenizer", [FORMULAS, TEXTS], ids=["formulas", "texts"])


def test_a_tokenizer_says_how_it_goes_every_step():
    """One that leaves a step out cannot be made, and does not answer None later."""

    class Unfinished(SymbolTokenizer):
        def settings(self):
            return []

    with pytest.raises(TypeError, match=r"abstract methods .*_columns.*_mark.*vocab_size"):
        Unfinished()


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
        ({}, "give `text` or `text_target`"),
        ({"text": "n1", "text_target": ["n1"]}, "both as one string or both as a list"),
        ({"text": ["n1"], "text_target": ["n1", "n1"]}, "1 rows in `text`, but 2"),
        ({"text": []}, "no rows to encode"),
        ({"text": ["n1", 3]}, "row 1 of `text` is a int"),
        ({"text": ["n1"], "names": [{}, {}]}, "1 rows in `text`, but 2 in `names`"),
        ({"text_target": ["n1"], "names": [{}, {}]}, "1 rows in `text_target`, but 2 in `names`"),
        ({"text_target": ["n1"], "names": [{"+": "n1"}]}, r"row 0: `names` has '\+', which is no"),
    ],
)
def test_calls_are_refused_alike(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        tokenizer(**arguments)


@BOTH
def test_ids_and_rows_that_do_not_fit_are_refused_alike(tokenizer):
    with pytest.raises(ValueError, match=r"id 100 is outside .* tokens.*extend_symbols"):
        tokenizer.decode([100])
    with pytest.raises(ValueError, match="3 rows of ids are no multiple of 2 `names`"):
        tokenizer.batch_decode([[4], [4], [4]], names=[{}, {}])
    with pytest.raises(ValueError, match="1 rows in `problems`, but 0"):
        tokenizer.encode_pairs(["n1"], [])
    with pytest.raises(ValueError, match=r"no symbol class 'colour': .* are 'name', 'other'"):
        tokenizer.extend_symbols({"colour": 1})
    with pytest.raises(ValueError, match="cannot add -1 symbols"):
        tokenizer.extend_symbols({"name": -1})
    with pytest.raises(ValueError, match=r"cannot add token 'new'.*extend_symbols"):
        tokenizer.add_tokens(["new"])


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
        tokenizer.decode(ids, new_names=lambda n, kind: "t1")


FRESH = """
import json, sys
sys.modules["hf_alpha"] = None  # as if it were not installed
from transformers import AutoTokenizer
for folder, again, text in json.loads(sys.argv[1]):
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    tokenizer.save_pretrained(again)
    segments = {"segment_ids": [1], "segment_starts": [0], "segment_ends": [1]}
    if hasattr(tokenizer, "segment_labels"):
        none = {"input_ids": [4], **dict.fromkeys(segments, [])}
        rows = [{"input_ids": [4, 5], **segments}, none]
        assert tokenizer.pad(rows)["segment_ids"] == [[1], [0]]
    try:
        batch = tokenizer([text])
        (said,) = tokenizer.batch_decode(batch["input_ids"], names=batch.names)
    except ImportError as error:
        said = str(error)
    print(json.dumps([said, getattr(tokenizer, "symbol_ranges", None)]))
"""


def test_a_process_without_the_package_loads_them_uses_them_and_saves_the_same_files(tmp_path):
    """All but encoding where segments are found by the package."""
    formulas = AlphaTokenizer(
        base_tokens=("0", "1", "!", "&", "|", "=", "^"), grammar=PROPOSITIONAL,
        symbol_classes={"proposition": 5, "function": 2}, name_patterns={"function": "f.*"},
    )  # fmt: skip
    formulas.extend_symbols({"proposition": 3})
    lexicon = Lexicon.from_entries([("alice", "NAME"), ("alice and bob", "PAIR")])
    segments = GeometricTokenizer.from_tokenizer(
        make_tokenizer("bpe:300", ["alice and bob"]), Transducer.compile(lexicon)
    )
    tokenizers = {"formulas": formulas, "texts": TEXTS, "segments": segments}
    texts = {"formulas": "& request ! f1", "texts": "n2 + o1", "segments": "alice and bob"}
    told = []
    for name, tokenizer in tokenizers.items():
        tokenizer.save_pretrained(tmp_path / name)
        told.append([str(tmp_path / name), str(tmp_path / f"{name} again"), texts[name]])
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    result = own_process.run("-I", "-c", FRESH, json.dumps(told), cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    said = [json.loads(line) for line in result.stdout.splitlines()[-3:]]
    missing = "is not installed: pip install 'hf_alpha[transduction]'"
    for name, (text, ranges) in zip(tokenizers, said, strict=True):
        assert text == texts[name] if name != "segments" else text.endswith(missing)
        assert ranges == getattr(tokenizers[name], "symbol_ranges", None)
        first, again = (
            {p.name: p.read_bytes() for p in (tmp_path / folder).iterdir() if p.suffix != ".py"}
            for folder in (name, f"{name} again")
        )
        assert first == again
        loaded = AutoTokenizer.from_pretrained(tmp_path / f"{name} again")
        assert type(loaded) is type(tokenizers[name])
        assert loaded([texts[name]]) == tokenizers[name]([texts[name]])
