import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import spans as reference
from small_objectives import (
    BERT,
    FOLNET,
    SIZES,
    cut_off,
    evaluated,
    recipe,
    same_weights,
    write_rows,
)
from transformers import AutoModelForTokenClassification, BertConfig, BertForTokenClassification

from hf_alpha.data.formats import read_format
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.objectives.base import Predictions
from hf_alpha.objectives.names import find_names
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.objectives.tokens import Tokens, span_scores, spans_of
from hf_alpha.recipe import Data, RecipeError
from hf_alpha.train import train

WNUT = str(Path(__file__).parents[1] / "data_files" / "wnut17.conll")
NAMED = {"format": "conll", "train": WNUT, "validation": WNUT, "test": WNUT}

TAGS = ["O", "B", "I", "o", "b", "i", "B-person", "I-person", "B-place", "I-place", "i-place"]
TEXTS = st.lists(st.sampled_from(TAGS), min_size=1, max_size=9)


def test_spans_and_those_in_their_gaps():
    """`had a Blue Cross surgery`: had .. surgery is one expression, Blue Cross another."""
    assert spans_of(["B", "o", "b", "i", "I", "O"]) == {("", (0, 4)), ("", (2, 3))}
    assert spans_of(["B-x", "I-x", "B-x", "I-y", "O"]) == {("x", (0, 1)), ("x", (2,)), ("y", (3,))}


@given(TEXTS)
def test_spans_are_those_of_the_reference(tags):
    found = reference.spans(tags)
    assert spans_of(tags) == set(found) and len(set(found)) == len(found)


@given(st.lists(TEXTS.flatmap(lambda t: st.tuples(st.permutations(t), st.just(t))), min_size=1))
def test_scores_are_those_of_the_reference(pairs):
    found, wanted = span_scores(pairs), reference.scores(pairs)
    assert found == pytest.approx({key: wanted[key] for key in found})


@pytest.mark.parametrize("side", ["left", "right"])
@given(st.data())
@settings(max_examples=8)
def test_what_is_said_of_a_token_is_said_of_its_word(side, data):
    """Whatever is padded where and cut: a model that knows all tags says all that it sees."""
    rows = read_format("conll", WNUT)[: data.draw(st.integers(1, 30))]
    aim = Tokens(max_length=data.draw(st.sampled_from([4, 9, 128])))
    told, source = Dataset.from_list(rows), Data(train="rows.jsonl", source="source")
    tokenizer = make_tokenizer("wordpiece:300", [" ".join(row["source"]) for row in rows])
    tokenizer.padding_side = side
    config = BertConfig(**SIZES, **aim.config_settings([told], source))
    made = aim.features(told, source, tokenizer, config, training=False)
    collate = aim.collator(tokenizer, BertForTokenClassification(config), 0)
    labels = collate(list(made))["labels"].numpy()
    said = np.where(labels < 0, data.draw(st.integers(0, 2)), labels)
    records = aim.records(Predictions(said, labels, told, made, source, config))
    for record, row, seen, ids in zip(records, rows, made["words"], made["input_ids"], strict=True):
        assert record["words"] == row["source"] and record["target"] == row["target"]
        kept = [tag if word in seen else "O" for word, tag in enumerate(row["target"])]
        assert record["prediction"] == kept
        if len(ids) < aim.max_length:
            assert seen == list(range(len(kept)))
        else:
            assert seen == list(range(len(seen)))
    total = sum(len(row["source"]) for row in rows)
    cut = total - sum(map(len, made["words"]))
    assert f"; {cut} of {total} words are cut off" in aim.summary(told, made, source, None)


@pytest.mark.parametrize("model", [BERT, FOLNET], ids=["bert", "folnet"])
def test_models_learn_to_find_names_and_are_evaluated(tmp_path, model):
    """From a file as it was given out to metrics, which are those of what was predicted."""
    steps = 80 if model is BERT else 2
    training = {"max_steps": steps, "learning_rate": 0.01, "per_device_train_batch_size": 10}
    training |= {"eval_strategy": "steps", "eval_steps": steps, "label_smoothing_factor": 0.01}
    said = []
    objective = {"name": "token", "max_length": 24}
    trainer = train(recipe(tmp_path, objective, NAMED, training, model=model), say=said.append)
    assert any(
        re.search("training: 30 rows, 30 sequences; [1-9][0-9]* of 4.. words", x) for x in said
    )
    seen = [row for row in trainer.state.log_history if "eval_f1" in row][-1]
    if model is BERT:
        assert seen["eval_f1"] > 0.8
    again = AutoModelForTokenClassification.from_pretrained(tmp_path / "out")
    assert set(again.config.label2id) > {"O", "B-person", "I-location"}
    found, records = evaluated(tmp_path / "out")
    pairs = [(one["prediction"], one["target"]) for one in records]
    assert [target for _, target in pairs] == [row["target"] for row in read_format("conll", WNUT)]
    assert found["metrics"]["all"] == pytest.approx(reference.scores(pairs))
    assert found["metrics"]["all"]["f1"] == pytest.approx(seen["eval_f1"])


NAMES = ["Ann", "Bob", "O'Neil", "x-9", "Ünal", "McX2"]
AROUND = ["{}", "{}", "{}'s", "({},", "anti-{}", "{}/{}"]
PIECES = st.sampled_from(["the", "met", "well-known", ".", *AROUND])
NAMED_TEXTS = st.lists(st.tuples(PIECES, st.integers(0, 2), st.integers(0, 2)), min_size=1)
SYMBOLS = {"person": {"column": "names", "count": 4}}


def with_names(told, names: list[str]) -> dict:
    """A row of words; names stand alone, in words, and twice in one."""
    words = [piece.format(names[one], names[two]) for piece, one, two in told]
    return {"source": words, "target": ["O", "B"] * (len(words) // 2) + ["O"] * (len(words) % 2),
            "names": names}  # fmt: skip


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", ["words", "characters", "wordpiece:300", "bpe:300"])
@settings(max_examples=8)
@given(NAMED_TEXTS, st.permutations(NAMES), st.sampled_from([5, 64]))
def test_a_name_is_one_token_and_no_renaming_changes_features(kind, told, names, length):
    """A word that is a name has one token, with its tag, whatever the name and its neighbours."""
    source, aim = Data(train="rows.jsonl"), Tokens(length)
    rows = [Dataset.from_list([with_names(told, some)]) for some in (names[:3], names[3:])]
    seen = [MarkedText(" ".join(with_names(told, ["a", "b", "c"])["source"]), [])]
    tokenizer = make_tokenizer(kind, [*seen, MarkedText("a", [(0, 1, "person")])], SYMBOLS)
    config = BertConfig(**aim.config_settings([Dataset.from_dict(NO_NAMES)], source))
    one, two = (aim.features(some, source, tokenizer, config)[0] for some in rows)
    assert one == two
    symbols = [i for i in one["input_ids"] if i in tokenizer.symbol_ids]
    assert one["stream_ids"] == list(dict.fromkeys(symbols))
    count = sum(piece.count("{}") for piece, *_ in told)
    assert len(symbols) == count or len(one["input_ids"]) == length
    tagged = [i for i, label in zip(one["input_ids"], one["labels"], strict=True) if label >= 0]
    for word, index in zip(one["words"], tagged, strict=True):
        piece = told[word][0]
        assert (index in tokenizer.symbol_ids) == piece.startswith("{}")


NO_NAMES = {"source": [["a", "b"]], "target": [["O", "B"]]}


def test_each_word_of_a_name_has_its_tag():
    row = {"source": ["in", "New", "York", "City-wide"], "n": ["New York City"]}
    (text,) = Tokens().texts_of(
        row, 0, Data(train="rows.jsonl"), find_names({"place": {"column": "n"}})
    )
    assert [text[start:stop] for start, stop, *_ in text.spans] == ["New", "York", "City"]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ({**FOLNET, "symbol_encoding": "relational"}, {"column": "names"}),
        ({**FOLNET, "symbol_encoding": "streams"}, {"tokens": NAMES}),
        ({**FOLNET, "symbol_encoding": "learned"}, {"pattern": "|".join(NAMES)}),
        (BERT, {"column": "names", "count": 20}),
    ],
    ids=["relational", "streams", "learned", "bert"],
)
def test_tags_of_names_are_learned_resumed_and_evaluated(tmp_path, monkeypatch, model, rule):
    """With an exact encoding, renamed data gets the same tags."""
    rng = random.Random(0)
    told = [[("{}'s", 0, 0), ("met", 0, 0), ("{}", 1, 1), ("the", 0, 0), ("{}", 2, 2)]] * 12
    files = {}
    for renamed in (False, True):
        orders = [rng.sample(NAMES, 3) for _ in told]
        rows = [with_names(each, names) for each, names in zip(told, orders, strict=True)]
        files[renamed] = write_rows(tmp_path / f"{renamed}.jsonl", rows)
    data = {"train": files[False], "validation": files[False], "test": files[True]}
    steps = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    symbols = {"person": rule}
    made = recipe(tmp_path, "token", data, steps, model=model, symbols=symbols)
    train(made)
    weights, said = cut_off(tmp_path / "out", 4), []
    train(made, say=said.append)
    assert any("resuming" in line and "step 2" in line for line in said)
    assert same_weights(weights, tmp_path / "out")
    records = []
    for name, file in files.items():
        _, some = evaluated(tmp_path / "out", "--data", file, into=tmp_path / f"found-{name}")
        rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
        assert [record["words"] for record in some] == [row["source"] for row in rows]
        records.append(some)
    if model.get("symbol_encoding") in ("relational", "streams"):
        one, two = ([record["prediction"] for record in some] for some in records)
        assert one == two


def test_tags_that_data_declares_are_named_and_other_tags_than_of_spans_have_an_accuracy():
    kind = Features({"words": List(Value("string")), "pos": List(ClassLabel(names=["V", "N"]))})
    rows = Dataset.from_dict({"words": [["dogs", "bark"]], "pos": [[1, 0]]}, features=kind)
    aim, source = Tokens(spans=False), Data(train="rows.jsonl", source="words", target="pos")
    aim.check_rows(rows, source)
    found = aim.config_settings([rows], source)
    assert found["label2id"] == {"V": 0, "N": 1}
    record = {"prediction": ["N", "N"], "target": ["N", "V"]}
    assert aim.score([record], BertConfig(**found)) == {"accuracy": 0.5}
    with pytest.raises(
        ValueError, match=r"row 0: .*: the tag of word 0, 'dogs': 'N' is no tag of a"
    ):
        Tokens().check_rows(rows, source)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"source": "a b"}, "row 0: the columns 'source' and 'target': the words are 'a b'"),
        ({"source": []}, "the words are []: give a list of words"),
        ({"target": ["O"]}, "2 words, but 1 tags"),
        ({"source": ["a", " "]}, "word 1 is ' ': give a text"),
        ({"target": ["O", None]}, "the tag of word 1, 'b', is None: give a text"),
        ({"target": ["O", "O-person"]}, "'O-person' is no tag of a span, such as B, I-person or O"),
    ],
)
def test_rows_that_cannot_be_learned_are_named(row, message):
    rows = [{"source": ["a", "b"], "target": ["B", "I"], **row}]
    with pytest.raises(ValueError, match=re.escape(message)):
        Tokens().check_rows(Dataset.from_list(rows), Data(train="rows.jsonl"))


def test_settings_that_do_not_fit_are_named(tmp_path):
    with pytest.raises(RecipeError, match="labels: 'NOUN' is no tag of a span"):
        recipe(tmp_path, {"name": "token", "labels": ["O", "NOUN"]}, NAMED)
    with pytest.raises(
        RecipeError, match=r"row 0: .* holds 'O', which is no tag of the model: B-per"
    ):
        train(recipe(tmp_path, {"name": "token", "labels": ["B-person", "I-person"]}, NAMED))
