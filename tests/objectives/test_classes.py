import json
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from small_objectives import FOLNET, PEOPLE, recipe, relations, write_rows
from transformers import CONFIG_MAPPING, AutoModelForSequenceClassification, AutoTokenizer
from typer.testing import CliRunner

from hf_alpha.cli import app
from hf_alpha.modeling.names_in_text import MarkedText
from hf_alpha.objectives import OBJECTIVES
from hf_alpha.objectives.names import find_names
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.recipe import RecipeError, read_recipe
from hf_alpha.train import train

COLUMNS = {"source": "story", "pair": "query", "target": "kind", "validation": 0.2}


@pytest.fixture
def data(tmp_path):
    test = write_rows(tmp_path / "test.jsonl", relations(20, seed=1))
    return {"train": write_rows(tmp_path / "train.jsonl", relations(60)), "test": test, **COLUMNS}


def test_a_pair_is_classified_and_evaluated_by_groups(data, tmp_path):
    """From the recipe to a model of the plain Auto class, and to metrics of each group."""
    training = {
        "max_steps": 160,
        "learning_rate": 0.004,
        "eval_strategy": "steps",
        "eval_steps": 80,
    }
    trainer = train(recipe(tmp_path, "class", data, training))
    seen = [row for row in trainer.state.log_history if "eval_accuracy" in row]
    assert seen[-1]["eval_accuracy"] > 0.9
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert list(model.config.id2label.values()) == ["aunt", "mother", "sister"]
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "out"), "--by", "kind"])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out" / "evaluation" / "metrics.json").read_text())
    assert list(found["metrics"]) == ["aunt", "mother", "sister", "all"]
    assert found["samples"]["all"] == 20 == sum(found["samples"].values()) / 2
    records = (tmp_path / "out" / "evaluation" / "predictions.jsonl").read_text().splitlines()
    right = [one["prediction"] == one["target"] for one in map(json.loads, records)]
    assert found["metrics"]["all"]["accuracy"] == sum(right) / 20


def test_a_run_that_stopped_reaches_the_same_weights(data, tmp_path):
    """Dropout, the order of the rows and what is held out are those of a run without a stop."""
    training = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3}
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    train(recipe(tmp_path / "a", "class", data, training))
    first = recipe(tmp_path / "b", "class", data, {**training, "num_train_epochs": 1})
    train(first)
    for file in (tmp_path / "b" / "out").glob("*.*"):
        file.unlink() if file.is_file() else None
    (tmp_path / "b" / "out" / "checkpoint-6" / "trainer_state.json").unlink()  # as if cut off
    said = []
    train(first, say=said.append)
    assert any("resuming" in line and "step 3" in line for line in said)
    one, two = (load_file(tmp_path / x / "out" / "model.safetensors") for x in "ab")
    assert all(torch.equal(one[name], two[name]) for name in one)


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
    with pytest.raises(RecipeError, match="metrics: 'accuracy' is none of numbers: choose pearson"):
        recipe(tmp_path, {**objective, "metrics": ["accuracy"]}, data)
    file = write_rows(tmp_path / "nan.jsonl", [*rows, {"source": "end", "target": "nan"}])
    with pytest.raises(RecipeError, match=r"row 12: .*'nan', which is no finite number"):
        train(recipe(tmp_path / "nan", objective, {"train": file, "validation": file}, training))


def test_sequences_that_fill_their_room_are_counted(data, tmp_path):
    said = []
    train(recipe(tmp_path, {"name": "class", "max_length": 8}, data), say=said.append)
    assert any(re.search(r"[1-9]\d* fill max_length \(8\)", line) for line in said)


def test_a_checkpoint_gets_a_new_head(data, tmp_path):
    """Other classes, and the body of the first model."""
    train(recipe(tmp_path, "class", data))
    rows = [{"source": f"{name} is here.", "target": i % 2} for i, name in enumerate(PEOPLE)]
    file = write_rows(tmp_path / "two.jsonl", rows)
    said = []
    changed = {"max_steps": 1, "learning_rate": 0.0, "output_dir": str(tmp_path / "two")}
    second = recipe(tmp_path, "class", {"train": file}, changed, checkpoint=str(tmp_path / "out"))
    model = train(second, say=said.append).model
    assert any("2 weights are new: classifier.bias, classifier.weight" in line for line in said)
    assert model.config.id2label == {0: "0", 1: "1"} and model.classifier.weight.shape[0] == 2
    before = load_file(tmp_path / "out" / "model.safetensors")
    assert torch.equal(
        model.bert.embeddings.word_embeddings.weight.cpu(),
        before["bert.embeddings.word_embeddings.weight"],
    )


def test_as_many_other_classes_get_a_new_head_too_and_the_same_ones_keep_theirs(data, tmp_path):
    train(recipe(tmp_path, "class", data))
    before = load_file(tmp_path / "out" / "model.safetensors")
    others = [{**row, "kind": f"grand{row['kind']}"} for row in relations(60)]
    changed = {**data, "train": write_rows(tmp_path / "others.jsonl", others)}
    for name, source, is_new in (("same", data, False), ("others", changed, True)):
        said, told = [], {"max_steps": 1, "learning_rate": 0.0, "output_dir": str(tmp_path / name)}
        again = recipe(tmp_path, "class", source, told, checkpoint=str(tmp_path / "out"))
        after = train(again, say=said.append).model.state_dict()
        line = "2 weights are new: classifier.bias, classifier.weight"
        assert any(line in each for each in said) == is_new
        for weight, value in before.items():
            kept = torch.equal(after[weight].cpu(), value)
            assert kept == (not is_new or not weight.startswith("classifier.")), weight


TEXTS = [f"{name} is the mother of {other}." for name in PEOPLE for other in PEOPLE]
NAMED = make_tokenizer("words", TEXTS, {"person": {"tokens": list(PEOPLE), "count": 6}})


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
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output


def test_a_share_holds_out_renamings_together(data, tmp_path):
    symbols = {"person": {"column": "people", "count": 8}}
    made = recipe(tmp_path, "class", data, symbols=symbols)
    both = made.aim.read_both(made.data, 1, find_names(symbols))
    sides = [{(row["kind"], row["story"].split()[-1]) for row in rows} for rows in both]
    assert all(sides) and sides[0].isdisjoint(sides[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "text"}, "has no column 'text': it has 'story', 'query', 'kind', 'people'"),
        ({"where": {"kind": ["uncle"]}}, "holds no row with {'kind': ['uncle']}"),
        ({"format": "nli"}, "no format 'nli': known are squad, conll"),
    ],
)
def test_data_that_does_not_fit_is_named(data, tmp_path, change, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        train(recipe(tmp_path, "class", {**data, **change}))


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_class_of_one_row_is_a_class_whether_it_is_held_out_or_not(data, tmp_path, seed):
    rows = [*relations(12), {**relations(1)[0], "story": "one of a kind", "kind": "uncle"}]
    file = write_rows(tmp_path / "rare.jsonl", rows)
    settings = {**data, "train": file, "validation": 0.5}
    training = {"seed": seed, "max_steps": 1, "eval_strategy": "steps", "eval_steps": 1}
    trainer = train(recipe(tmp_path, "class", settings, training))
    assert list(trainer.model.config.id2label.values()) == ["aunt", "mother", "sister", "uncle"]


def test_in_evaluation_a_class_that_the_model_does_not_know_counts_as_wrong(data, tmp_path, caplog):
    metrics = {"name": "class", "metrics": ["accuracy", "f1", "matthews"]}
    train(recipe(tmp_path, metrics, data))
    rows = [{**row, "kind": "uncle"} for row in relations(5)]
    told = ["evaluate", str(tmp_path / "out"), "--data"]
    for count, others in ((5, []), (25, relations(20, seed=1))):
        file = write_rows(tmp_path / f"{count}.jsonl", [*rows, *others])
        caplog.clear()
        done = CliRunner().invoke(app, [*told, file])
        assert done.exit_code == 0, done.output
        warned = [record.getMessage() for record in caplog.records if "'uncle'" in record.message]
        assert len(warned) == 1 and f"so it is in 5 of {count} rows: they count as" in warned[0]
        folder = tmp_path / "out" / f"evaluation-{count}"
        records = [*map(json.loads, (folder / "predictions.jsonl").read_text().splitlines())]
        assert [record["target"] for record in records[:5]] == ["uncle"] * 5
        right = sum(record["prediction"] == record["target"] for record in records)
        found = json.loads((folder / "metrics.json").read_text())["metrics"]["all"]
        assert found["accuracy"] == right / count and -1 <= found["matthews"] <= 1


def test_rows_that_cannot_be_learned_are_named(data, tmp_path):
    rows = relations(9)
    few = {"name": "class", "labels": ["aunt", "mother"]}
    with pytest.raises(RecipeError, match="the column 'kind' holds 'sister', which is no class"):
        train(recipe(tmp_path, few, data))
    for bad, message in [
        ({"kind": None}, "row 9: the column 'kind' holds nothing"),
        ({"story": " "}, "row 9: the column 'story' holds ' ': give a text"),
    ]:
        file = write_rows(tmp_path / "bad.jsonl", [*rows, {**rows[0], **bad}])
        with pytest.raises(RecipeError, match=message):
            train(recipe(tmp_path, "class", {**data, "train": file}))
    several = [{**row, "kind": [row["kind"]]} for row in rows]
    file = write_rows(tmp_path / "several.jsonl", several)
    with pytest.raises(RecipeError, match=r"row 0: the column 'kind' holds \[.*no single class"):
        train(recipe(tmp_path, "class", {**data, "train": file}))
    with pytest.raises(RecipeError, match=r"where: the column 'kind' holds .*: it takes single"):
        train(recipe(tmp_path, "class", {**data, "train": file, "where": {"kind": "aunt"}}))


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


def test_tokenizers_without_pairs_are_refused(data, tmp_path):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    alone = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=alone, pad_token="[UNK]").save_pretrained(
        tmp_path / "t"
    )
    with pytest.raises(RecipeError, match="is not made for pairs of texts: it writes no token bet"):
        train(recipe(tmp_path, "class", data, tokenizer=str(tmp_path / "t")))


@pytest.mark.parametrize("objective", ["class", {"name": "masked", "sentences": "sop"}])
def test_pairs_without_token_types_are_refused(data, tmp_path, objective):
    """As by RoBERTa's tokenizer, for FOLNet, which tells texts apart by them."""
    from tokenizers import Tokenizer, models, processors
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "[UNK]": 1, "</s>": 2, "<s>": 3, "[MASK]": 4}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 3))
    special = {"pad_token": "<pad>", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(tmp_path / "t")
    with pytest.raises(RecipeError, match="gives both texts of a pair the same token types"):
        train(recipe(tmp_path, objective, data, tokenizer=str(tmp_path / "t"), model=FOLNET))


def test_folnet_and_bert_on_clutrr_are_of_one_size():
    sizes = []
    for name in ("clutrr-small", "clutrr-bert-small"):
        said = read_recipe(f"folnet/{name}")
        settings = dict(said.model)
        config = CONFIG_MAPPING[settings.pop("model_type")](vocab_size=1100, **settings)
        with torch.device("meta"):
            sizes.append(said.aim.auto.from_config(config).num_parameters())
    assert abs(sizes[0] / sizes[1] - 1) < 0.02


def test_every_objective_has_a_name_of_its_own_and_says_what_it_takes():
    for name, each in OBJECTIVES.items():
        assert each.name == name and each().auto_name.startswith("AutoModelFor")


def test_recipes_of_objectives_are_written_and_read_again(data, tmp_path):
    said = {"name": "class", "max_length": 32}
    trainer = train(recipe(tmp_path, said, {**data, "where": {"kind": ["aunt", "mother"]}}))
    again = read_recipe(tmp_path / "out" / "recipe.yaml")
    assert again.aim.max_length == 32 and again.data.where == {"kind": ["aunt", "mother"]}
    assert trainer.model.config.num_labels == 2
