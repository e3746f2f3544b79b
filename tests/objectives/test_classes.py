import re

import pytest
import torch
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from small_objectives import PEOPLE, evaluated, recipe, relations, write_rows
from tokenizers import Tokenizer, models, processors
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
)

from hf_alpha.folnet import FolnetConfig
from hf_alpha.modeling.spans import MarkedText
from hf_alpha.objectives.classes import Classes
from hf_alpha.objectives.names import find_names
from hf_alpha.objectives.tokenizers import check_tokenizer, make_tokenizer
from hf_alpha.recipe import Data, RecipeError
from hf_alpha.train import train

COLUMNS = {"source": "story", "pair": "query", "target": "kind", "validation": 0.2}


@pytest.fixture
def data(tmp_path):
    test = write_rows(tmp_path / "test.jsonl", relations(20, seed=1))
    return {"train": write_rows(tmp_path / "train.jsonl", relations(60)), "test": test, **COLUMNS}


def test_a_pair_is_classified_and_evaluated_by_groups(data, tmp_path):
    """From the recipe to a model of the plain Auto class, and to metrics of each group."""
    training = {"max_steps": 100, "learning_rate": 0.006}
    training |= {"eval_strategy": "steps", "eval_steps": 100}
    trainer = train(recipe(tmp_path, "class", data, training))
    seen = [row for row in trainer.state.log_history if "eval_accuracy" in row]
    assert seen[-1]["eval_accuracy"] > 0.9
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert list(model.config.id2label.values()) == ["aunt", "mother", "sister"]
    found, records = evaluated(tmp_path / "out", "--by", "kind")
    assert list(found["metrics"]) == ["aunt", "mother", "sister", "all"]
    assert found["samples"]["all"] == 20 == sum(found["samples"].values()) / 2
    right = [one["prediction"] == one["target"] for one in records]
    assert found["metrics"]["all"]["accuracy"] == sum(right) / 20


@pytest.mark.parametrize(
    "targets, classes",
    [([10, 2, 9, 2], ["2", "9", "10"]), (["10", "-1", "b", "1", "2"], ["-1", "b", "1", "2", "10"])],
)
def test_classes_are_numbered_as_they_are_counted(targets, classes):
    parts = [Dataset.from_dict({"kind": some}) for some in (targets[:2], targets[2:])]
    settings = Classes().config_settings(parts, Data(train="rows.jsonl", target="kind"))
    assert settings["id2label"] == dict(enumerate(classes))
    assert settings["label2id"] == {name: place for place, name in enumerate(classes)}


def test_an_unknown_class_is_not_the_first_one():
    config = PreTrainedConfig(id2label={0: "a", 1: "b"})
    pairs = [("a", "z"), ("a", "a"), ("b", "a")]
    records = [{"prediction": one, "target": other} for one, other in pairs]
    assert Classes().score(records, config) == {"accuracy": 1 / 3}


def test_numbers_are_predicted_and_correlated(tmp_path):
    rows = [{"source": "good " * i + "end", "target": str(i / 2)} for i in range(12)]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    data = {"train": file, "validation": file}
    training = {"max_steps": 2, "eval_strategy": "steps", "eval_steps": 2}
    objective = {"name": "class", "regression": True}
    trainer = train(recipe(tmp_path, objective, data, training))
    assert trainer.model.config.num_labels == 1
    logged = {key for row in trainer.state.log_history for key in row}
    assert {"eval_pearson", "eval_spearman"} <= logged
    with pytest.raises(RecipeError, match="metrics must be one of pearson, spearman"):
        recipe(tmp_path, {**objective, "metrics": ["accuracy"]}, data)
    file = write_rows(tmp_path / "nan.jsonl", [*rows, {"source": "end", "target": "nan"}])
    with pytest.raises(RecipeError, match=r"row 12: .*'nan': give a finite number"):
        train(recipe(tmp_path / "nan", objective, {"train": file, "validation": file}, training))


def test_sequences_that_fill_their_room_are_counted(data, tmp_path):
    said = []
    train(recipe(tmp_path, {"name": "class", "max_length": 8}, data), say=said.append)
    assert any(re.search(r"[1-9]\d* fill max_length \(8\)", line) for line in said)


@pytest.mark.parametrize("case", ["same classes", "other classes", "two classes"])
def test_a_checkpoint_keeps_its_body_and_its_head_for_the_same_classes(data, tmp_path, case):
    train(recipe(tmp_path, "class", data))
    before = load_file(tmp_path / "out" / "model.safetensors")
    rename = {
        "same classes": lambda kind: kind,
        "other classes": lambda kind: f"grand{kind}",
        "two classes": lambda kind: int(kind == "aunt"),
    }[case]
    others = [{**row, "kind": rename(row["kind"])} for row in relations(60)]
    changed = {**data, "train": write_rows(tmp_path / "others.jsonl", others)}
    said, told = [], {"max_steps": 1, "learning_rate": 0.0, "output_dir": str(tmp_path / "again")}
    again = recipe(tmp_path, "class", changed, told, checkpoint=str(tmp_path / "out"))
    model = train(again, say=said.append).model
    assert set(model.config.label2id) == {str(row["kind"]) for row in others}
    is_new = any("2 weights are new: classifier.bias, classifier.weight" in line for line in said)
    assert is_new == (case != "same classes")
    for name, value in model.state_dict().items():
        kept = before[name].shape == value.shape and torch.equal(value.cpu(), before[name])
        assert kept == (not is_new or not name.startswith("classifier.")), name


TEXTS = [f"{name} is the mother of {other}." for name in PEOPLE for other in PEOPLE]
NAMED = make_tokenizer("words", TEXTS, {"person": {"tokens": list(PEOPLE), "count": 6}})


@settings(max_examples=30)
@given(st.permutations(PEOPLE), st.sampled_from(["Zed", "Yves"]))
def test_pairs_with_names_have_types_and_streams_whatever_the_names(people, stranger):
    """[CLS] A [SEP] B [SEP]; a name of both texts is one symbol; streams by first occurrence."""

    def encoded(names):
        first = f"{names[0]} is the mother of {names[1]}."
        second = f"{names[1]} {names[2]}"
        spans = [
            MarkedText(text, [(text.index(n), text.index(n) + len(n), "person") for n in here])
            for text, here in ((first, names[:2]), (second, names[1:3]))
        ]
        return NAMED(*spans)

    one, two = encoded(list(people)), encoded([stranger, *people[1:]])
    tokens = NAMED.convert_ids_to_tokens(one["input_ids"])
    words = ["[CLS]", "x", "is", "the", "mother", "of", "x", ".", "[SEP]", "x", "x", "[SEP]"]
    assert [token if "<" not in token else "x" for token in tokens] == words
    assert one["token_type_ids"] == [0] * 9 + [1] * 3
    ids = one["input_ids"]
    assert one["stream_ids"] == [ids[1], ids[6], ids[10]] and ids[6] == ids[9]
    patterns = [[each["input_ids"].index(i) for i in each["input_ids"]] for each in (one, two)]
    assert patterns[0] == patterns[1] and two["token_type_ids"] == one["token_type_ids"]
    assert NAMED.decode(ids, names=one.names).startswith(
        f"{people[0]} is the mother of {people[1]}"
    )


def test_names_of_a_column_are_symbols_and_come_back_from_disk(data, tmp_path):
    symbols = {"person": {"column": "people", "count": 8}}
    trainer = train(recipe(tmp_path, "class", data, symbols=symbols))
    row = trainer.train_dataset[0]
    assert len(row["stream_ids"]) == 2 and set(row["token_type_ids"]) == {0, 1}
    again = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert not set(PEOPLE) & set(again.get_vocab())
    assert again(MarkedText("a", []), MarkedText("b", []))["token_type_ids"] == [0, 0, 0, 1, 1]
    evaluated(tmp_path / "out")


def test_a_share_holds_out_renamings_together(data, tmp_path):
    symbols = {"person": {"column": "people", "count": 8}}
    made = recipe(tmp_path, "class", data, symbols=symbols)
    both = made.aim.read_both(made.data, 1, find_names(symbols))
    sides = [{(row["kind"], row["story"].split()[-1]) for row in rows} for rows in both]
    assert all(sides) and sides[0].isdisjoint(sides[1])


def test_in_evaluation_a_class_that_the_model_does_not_know_counts_as_wrong(data, tmp_path, caplog):
    metrics = {"name": "class", "metrics": ["accuracy", "f1", "matthews"]}
    train(recipe(tmp_path, metrics, data))
    rows = [{**row, "kind": "uncle"} for row in relations(5)]
    for count, others in ((5, []), (25, relations(20, seed=1))):
        file = write_rows(tmp_path / f"{count}.jsonl", [*rows, *others])
        caplog.clear()
        found, records = evaluated(tmp_path / "out", "--data", file, into=tmp_path / f"{count}")
        warned = [record.getMessage() for record in caplog.records if "'uncle'" in record.message]
        assert len(warned) == 1 and f"so it is with 5 of {count}: they count as" in warned[0]
        assert [record["target"] for record in records[:5]] == ["uncle"] * 5
        right = sum(record["prediction"] == record["target"] for record in records)
        metrics = found["metrics"]["all"]
        assert metrics["accuracy"] == right / count and -1 <= metrics["matthews"] <= 1


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        ({}, {"source": "text"}, "has no column 'text': it has 'story', 'query', 'kind', 'people'"),
        ({}, {"where": {"kind": ["uncle"]}}, "holds no row with {'kind': ['uncle']}"),
        ({}, {"where": {"query": "Ann"}}, "where: the column 'query' holds ["),
        ({}, {"format": "nli"}, "no format 'nli': known are squad, conll"),
        ({"kind": None}, {}, "row 9: the column 'kind' holds nothing: give one class"),
        ({"story": " "}, {}, "row 9: the column 'story' holds ' ': give a text"),
        ({"kind": "uncle"}, {}, "the column 'kind' holds 'uncle', which is no class of the model"),
        ({"people": [["Ann"]]}, {"target": "people"}, "holds [['Ann']]: give one class"),
    ],
)
def test_rows_that_cannot_be_learned_are_named(data, tmp_path, row, change, message):
    rows = [*relations(9), {**relations(1)[0], **row}]
    if "people" in row:
        rows = [{**each, **row} for each in rows]
    changed = {**data, "train": write_rows(tmp_path / "bad.jsonl", rows), **change}
    objective = {"name": "class", "labels": ["aunt", "mother", "sister"]}
    with pytest.raises(RecipeError, match=re.escape(message)):
        train(recipe(tmp_path, objective, changed))


@pytest.mark.parametrize(
    ("objective", "more", "message"),
    [
        ("classes", {}, "objective: no objective 'classes'; known: answer, mask"),
        ({"name": "class", "max_lenght": 3}, {}, "unknown key 'max_lenght'; did you mean 'max_len"),
        (
            {"name": "class", "max_length": 4},
            {},
            "max_length 4 leaves no room for texts: .* take 5",
        ),
        ({"name": "class", "regression": True, "labels": ["a", "b"]}, {}, "labels are for classes"),
        ({"name": "class", "max_length": 129}, {}, "max_length is 129, but the model has 128 p"),
        ("class", {"model": {"model_type": "alpha"}}, "no 'model_type' 'alpha' is trained by the"),
        ("class", {"check": "a:b"}, "'check' is for your own pairs that are answered"),
        ("answer", {"model": {}}, "data: 'pair' is for an objective that does not answer"),
    ],
)
def test_recipes_that_do_not_fit_their_objective(data, tmp_path, objective, more, message):
    with pytest.raises(RecipeError, match=message):
        train(recipe(tmp_path, objective, data, **more))


def test_tokenizers_that_do_not_tell_pairs_apart_are_refused():
    """As those without a token between them, and RoBERTa's without types, which FOLNet needs."""
    words = {"<pad>": 0, "[UNK]": 1, "</s>": 2, "<s>": 3}
    backend = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    with pytest.raises(ValueError, match="is not made for pairs of texts: it writes no token bet"):
        check_tokenizer(plain, BertConfig(), 128, pairs=True)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 3))
    pairing = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")
    check_tokenizer(pairing, BertConfig(), 128, pairs=True)
    with pytest.raises(ValueError, match="gives both texts of a pair the same token types"):
        check_tokenizer(pairing, FolnetConfig(vocab_size=4), 128, pairs=True)
