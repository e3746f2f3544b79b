import json
import re
from pathlib import Path

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import spans as reference
from small_objectives import BERT, FOLNET, recipe, write_rows
from small_tokenizers import CHARACTERS, WORDS, byte_level, unigram, word_level, word_piece
from transformers import AutoModelForTokenClassification, BertConfig, BertForTokenClassification
from typer.testing import CliRunner

from hf_alpha.cli import app
from hf_alpha.objectives.formats import read_format
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.objectives.tokens import Tokens, first_tokens, span_scores, spans_of
from hf_alpha.recipe import DataSettings, RecipeError
from hf_alpha.train import train

WNUT = str(Path(__file__).parents[1] / "data_files" / "wnut17.conll")
NAMED = {"format": "conll", "train": WNUT, "validation": WNUT, "test": WNUT}

TAGS = ["O", "B", "I", "o", "b", "i", "B-person", "I-person", "B-place", "I-place", "i-place"]
TEXTS = st.lists(st.sampled_from(TAGS), min_size=1, max_size=9)


def test_spans_and_those_in_their_gaps():
    """`had a Blue Cross surgery`: had .. surgery is one expression, Blue Cross another."""
    assert spans_of(["B", "o", "b", "i", "I", "O"]) == {("", (0, 4)), ("", (2, 3))}
    assert spans_of(["B-x", "I-x", "B-x", "I-y", "O"]) == {("x", (0, 1)), ("x", (2,)), ("y", (3,))}


@settings(max_examples=1000)
@given(TEXTS)
def test_spans_are_those_of_the_reference(tags):
    found = reference.spans(tags)
    assert spans_of(tags) == set(found) and len(set(found)) == len(found)


@given(st.lists(TEXTS.flatmap(lambda t: st.tuples(st.permutations(t), st.just(t))), min_size=1))
def test_scores_are_those_of_the_reference(pairs):
    found, wanted = span_scores(pairs), reference.scores(pairs)
    assert found == pytest.approx({key: wanted[key] for key in found})


WORD = st.one_of(
    st.sampled_from(WORDS), st.text([*CHARACTERS, "ß", "İ", "中"], min_size=1, max_size=5)
)


@pytest.mark.parametrize("kind", [word_level, word_piece, byte_level, unigram])
@given(st.lists(WORD, min_size=1, max_size=8))
def test_the_first_token_of_a_word_is_the_first_that_has_a_character_of_it(kind, words):
    text = " ".join(words)
    found = kind(end=True)(text, return_offsets_mapping=True)["offset_mapping"]
    owner = [place for place, word in enumerate(words) for _ in [*word, " "]]
    wanted = {}
    for column, (start, stop) in enumerate(found):
        for character in range(start, min(stop, len(text))):
            if text[character] != " ":
                wanted.setdefault(owner[character], column)
    assert first_tokens(words, found) == wanted


@pytest.mark.parametrize("side", ["left", "right"])
@given(st.data())
@settings(max_examples=15, deadline=None)
def test_what_is_said_of_a_token_is_said_of_its_word(side, data):
    """Whatever is padded where and cut: a model that knows all tags says all that it sees."""
    rows = read_format("conll", WNUT)[: data.draw(st.integers(1, 30))]
    aim = Tokens(max_length=data.draw(st.sampled_from([4, 9, 128])))
    told, source = Dataset.from_list(rows), DataSettings(source="source")
    tokenizer = make_tokenizer("wordpiece:300", [" ".join(row["source"]) for row in rows])
    tokenizer.padding_side = side
    sizes = {key: value for key, value in BERT.items() if key != "model_type"}
    config = BertConfig(**sizes, **aim.config_settings([told], source))
    made = aim.features(told, source, tokenizer, config, training=False)
    collate = aim.collator(tokenizer, BertForTokenClassification(config), 0)
    labels = collate(list(made))["labels"].numpy()
    said = np.where(labels < 0, data.draw(st.integers(0, 2)), labels)
    records = aim.records(said, labels, told, made, source, config)
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
    assert f"; {cut} of {total} words are cut off" in aim.summary(told, made, source)


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
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out" / "evaluation" / "metrics.json").read_text())
    lines = (tmp_path / "out" / "evaluation" / "predictions.jsonl").read_text().splitlines()
    pairs = [(one["prediction"], one["target"]) for one in map(json.loads, lines)]
    assert [target for _, target in pairs] == [row["target"] for row in read_format("conll", WNUT)]
    assert found["metrics"]["all"] == pytest.approx(reference.scores(pairs))
    assert found["metrics"]["all"]["f1"] == pytest.approx(seen["eval_f1"])


def test_tags_that_data_declares_are_named_and_other_tags_than_of_spans_have_an_accuracy():
    kind = Features({"words": List(Value("string")), "pos": List(ClassLabel(names=["V", "N"]))})
    rows = Dataset.from_dict({"words": [["dogs", "bark"]], "pos": [[1, 0]]}, features=kind)
    aim, source = Tokens(spans=False), DataSettings(source="words", target="pos")
    aim.check_rows(rows, source)
    found = aim.config_settings([rows], source)
    assert found["label2id"] == {"V": 0, "N": 1}
    record = {"prediction": ["N", "N"], "target": ["N", "V"]}
    assert aim.score([record], BertConfig(**found)) == {"accuracy": 0.5}
    with pytest.raises(
        ValueError, match=r"row 0: .*: the tag of word 0, 'dogs': 'N' is no tag of a"
    ):
        Tokens().check_rows(rows, source)


def test_in_evaluation_a_tag_that_the_model_does_not_know_is_not_found(tmp_path, caplog):
    train(recipe(tmp_path, "token", NAMED))
    rows = [{"source": ["a", "b", "c"], "target": ["O", "B-planet", "O"]}]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    changed = tmp_path / "out" / "recipe.yaml"
    changed.write_text(changed.read_text().replace("format: conll", "format: null"))
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "out"), "--data", file])
    assert done.exit_code == 0, done.output
    assert "holds 'B-planet', which is no tag of the model" in caplog.text
    assert "so it is with 1 words" in caplog.text
    folder = tmp_path / "out" / "evaluation-rows"
    assert json.loads((folder / "metrics.json").read_text())["metrics"]["all"]["recall"] == 0
    assert json.loads((folder / "predictions.jsonl").read_text())["target"] == rows[0]["target"]


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
        Tokens().check_rows(Dataset.from_list(rows), DataSettings())


def test_settings_that_do_not_fit_are_named(tmp_path):
    with pytest.raises(RecipeError, match="labels: 'NOUN' is no tag of a span"):
        recipe(tmp_path, {"name": "token", "labels": ["O", "NOUN"]}, NAMED)
    with pytest.raises(
        RecipeError, match=r"row 0: .* holds 'O', which is no tag of the model: B-per"
    ):
        train(recipe(tmp_path, {"name": "token", "labels": ["B-person", "I-person"]}, NAMED))
