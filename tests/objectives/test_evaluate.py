from commands import hf_alpha
from datasets import ClassLabel, Dataset
from small_objectives import FOLNET, SIZES, evaluated, recipe, relations, write_rows
from transformers import BertConfig, BertForSequenceClassification

from hf_alpha.objectives.classes import Classes
from hf_alpha.objectives.evaluate import evaluate_model, reader_of_rows
from hf_alpha.objectives.tokenizers import make_tokenizer
from hf_alpha.recipe import Data
from hf_alpha.train import train


def test_a_model_without_answers_is_refused_where_answers_are_needed(tmp_path):
    data = {"source": "story", "target": "kind"}
    data["train"] = write_rows(tmp_path / "train.jsonl", relations(20))
    train(recipe(tmp_path, "class", data))
    out = str(tmp_path / "out")
    (tmp_path / "out" / "recipe.yaml").rename(tmp_path / "recipe.yaml")
    assert "name a file of pairs with --data" in hf_alpha("evaluate", out).error
    (tmp_path / "recipe.yaml").rename(tmp_path / "out" / "recipe.yaml")
    assert "bert, an encoder (BertForSequenceClassification)" in hf_alpha("info", out).out
    with_data = ["evaluate", out, "--data", data["train"]]
    for command, message in [
        (
            ["solve", "x", "--model", out, "--task", "text"],
            "holds a BertForSequenceClassification, w",
        ),
        (["evaluate", out], "name a file of pairs with --data"),
        ([*with_data, "--by", "length"], "has no column 'length'"),
        *(
            ([*with_data, option, value], f"{option} is for models that write answers")
            for option, value in [("--samples", 3), ("--covariance", 3), ("--task", "text")]
        ),
    ]:
        assert message in hf_alpha(*command).error


def test_rows_that_a_model_was_trained_on_are_told_under_any_names(tmp_path):
    """Of a model with names, renamings too; what a checkpoint was trained on counts."""
    rows = [
        {"text": f"{one} sees {two}, {word}", "kind": word}
        for one, two, word in [("Ann", "Bea", "far"), ("Bea", "Bea", "near"), ("Ann", "Bea", "up")]
    ]
    renamed = [{**rows[0], "text": "Dan sees Eli, far"}, {**rows[1], "text": "Ann sees Eli, near"}]
    train_file = write_rows(tmp_path / "train.jsonl", rows[:2])
    later_file = write_rows(tmp_path / "later.jsonl", [rows[2], rows[1]])
    test_file = write_rows(tmp_path / "test.jsonl", [*renamed, rows[2]])
    data = {"source": "text", "target": "kind", "train": train_file}
    names = {"symbols": {"person": "[A-Z][a-z]+"}, "model": FOLNET}
    train(recipe(tmp_path, "class", data, **names))
    first = (tmp_path / "out").rename(tmp_path / "first")
    warned = hf_alpha("evaluate", first, "--data", test_file)
    assert "? first: 1 of 3 rows are renamings of training's: rows 0\n" in warned.out
    later = {**data, "train": later_file}
    train(recipe(tmp_path, "class", later, symbols=names["symbols"], checkpoint=str(first)))
    warned = hf_alpha("evaluate", tmp_path / "out", "--data", test_file)
    assert "? out: 2 of 3 rows are renamings of training's: rows 0, 2\n" in warned.out
    train(recipe(tmp_path, "class", data, {"output_dir": str(tmp_path / "plain")}))
    for file, said in [(test_file, ""), (train_file, "? plain: 2 of 2 rows are")]:
        out = hf_alpha("evaluate", tmp_path / "plain", "--data", file).out
        assert out.startswith(said) and ("?" in out) == bool(said)


def test_rows_of_the_same_columns_are_read_once(tmp_path):
    place = write_rows(tmp_path / "rows.jsonl", [{"text": "a b", "label": "x", "k": 1}])
    data = Data.model_construct(source="text", target="label")
    read = reader_of_rows(Classes(), data, str(place), None, "k")
    assert read(None) is read(None) and read(None).column_names == ["text", "label", "k"]


def test_groups_leave_metrics_as_they_are(tmp_path):
    rows = [
        {**row, "number": n % 2, "holes": [None, "x"][n % 2], "which": ["some", "all"][n % 2]}
        for n, row in enumerate(relations(20))
    ]
    file = write_rows(tmp_path / "train.jsonl", rows)
    data = {"source": "story", "target": "kind", "train": file, "test": file}
    train(recipe(tmp_path, "class", data, {"max_steps": 30}))
    out, found = str(tmp_path / "out"), {}
    for by in ("kind", "number"):
        scores, _ = evaluated(tmp_path / "out", "--by", by, into=tmp_path / by)
        found[by] = scores["metrics"]["all"]
    assert found["kind"] == found["number"]
    for by, message in [
        ("holes", "row 0: the column 'holes' holds nothing: give a text"),
        ("which", "row 1: the column 'which' holds 'all': give a text or a number"),
    ]:
        assert message in hf_alpha("evaluate", out, "--by", by).error


def test_groups_of_a_class_that_the_data_declares(tmp_path):
    """The column of what is right may be the one that groups: it is not written over."""
    kinds = ClassLabel(names=["mother", "sister", "aunt"])
    rows = Dataset.from_list(
        [{"source": row["story"], "target": kinds.str2int(row["kind"])} for row in relations(12)]
    ).cast_column("target", kinds)
    aim, settings = Classes(), Data(train="rows.jsonl")
    config = BertConfig(**SIZES, vocab_size=99, **aim.config_settings([rows], settings))
    tokenizer = make_tokenizer("words", rows["source"])
    model = BertForSequenceClassification(config).eval()
    told = [
        evaluate_model(aim, model, tokenizer, rows, settings, by=by, progress=False).metrics["all"]
        for by in (None, "target")
    ]
    assert told[0] == told[1]


def test_sequences_are_not_grouped(tmp_path):
    file = write_rows(tmp_path / "train.jsonl", [{"source": "one two three", "kind": "a"}] * 4)
    data = {"train": file, "test": file}
    train(recipe(tmp_path, {"name": "masked", "sentences": "none"}, data))
    error = hf_alpha("evaluate", tmp_path / "out", "--by", "kind").error
    assert "metrics of sequences, not of rows" in error
