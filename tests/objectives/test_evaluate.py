from small_objectives import recipe, relations, write_rows
from typer.testing import CliRunner

from hf_alpha.cli import app
from hf_alpha.train import train


def test_a_model_without_answers_is_refused_where_answers_are_needed(tmp_path):
    data = {"source": "story", "target": "kind"}
    data["train"] = write_rows(tmp_path / "train.jsonl", relations(20))
    train(recipe(tmp_path, "class", data))
    out = str(tmp_path / "out")
    (tmp_path / "out" / "recipe.yaml").rename(tmp_path / "recipe.yaml")
    none = CliRunner().invoke(app, ["evaluate", out])
    assert "has no recipe.yaml that says what it is trained for" in str(none.exception)
    (tmp_path / "recipe.yaml").rename(tmp_path / "out" / "recipe.yaml")
    asked = CliRunner().invoke(app, ["solve", "x", "--model", out, "--task", "text"])
    assert "holds a BertForSequenceClassification, which does not answer" in str(asked.exception)
    told = CliRunner().invoke(app, ["info", out])
    assert "bert, an encoder (BertForSequenceClassification)" in told.output
    no_test = CliRunner().invoke(app, ["evaluate", out])
    assert "name a file of pairs with --data" in str(no_test.exception)
    by = CliRunner().invoke(app, ["evaluate", out, "--data", data["train"], "--by", "length"])
    assert "has no column 'length'" in str(by.exception)
