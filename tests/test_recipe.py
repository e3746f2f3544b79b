import re

import pytest

from hf_alpha.recipe import RecipeError, parse_recipe, read_recipe


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("xyz=1", "unknown key 'xyz'; known: checkpoint, data"),
        ("chekpoint=x", "unknown key 'chekpoint'; did you mean 'checkpoint'?"),
        ("data.max_train_sample=1", "data: unknown .*did you mean 'max_train_samples'?"),
        ("data.generate.num_sample=1", "generate: unknown .*did you mean 'num_samples'?"),
        ("data.generate.out_dir=x", "generate: unknown key 'out_dir'"),
        ("training.max_stps=1", "training: unknown .*did you mean 'max_steps'?"),
        ("model.d_modell=1", "model: unknown .*did you mean 'd_model'?"),
        ("model.vocab_size=20", "model: 'vocab_size' follows from the key 'num_symbols'"),
        ("checkpoint=here", "either 'checkpoint' or 'model', not both"),
        ("num_symbols=many", "'num_symbols' must be a whole number, not 'many'"),
        ("training=3", "'training' must be a mapping, not 3"),
        ("data.generate=no", "data: 'generate' must be a mapping"),
        ("data.generate.num_samples=x", "generate: 'num_samples' must be a whole number, not 'x'"),
        ("data.generate.sizes=5", r"generate: 'sizes' must be \[smallest, largest\], not 5"),
        ("num_symbols=0", "'num_symbols' must be at least 1, not 0"),
        ("data.max_train_samples=0", "data: 'max_train_samples' must be at least 1, not 0"),
        ("data.draw={num_samples: 5}", "data: give either 'draw' or 'path' with 'generate', not"),
        ("data.draw=no", "data: 'draw' must be a mapping"),
        ("training.max_steps=1.5", "'max_steps' must be a whole number, not 1.5"),
        ("training.learning_rate=high", "'learning_rate' must be a number, not 'high'"),
        ("training.bf16=x", "'bf16' must be true or false, not 'x'"),
        ("training.max_steps", "override 'training.max_steps': write it as key=value"),
        ("=3", "override '=3': write it"),
        ("training..x=3", "override 'training..x=3': write it"),
        ("task.name=3", "override 'task.name=3': 'task' is not a mapping"),
        ("model.cross_attention=[a", re.escape("'model.cross_attention=[a': not valid YAML")),
    ],
)
def test_wrong_overrides_are_named(override, message):
    with pytest.raises(RecipeError, match=message):
        read_recipe("propositional/debug", [override])


def test_overrides_are_yaml(tmp_path):
    overrides = [
        "training.max_steps=10", "--model.dropout=0.1", "training.learning_rate=1e-3",
        "training.adam_epsilon=1E-9", "training.run_name=1e-3x", "training.eval_strategy=no",
        "training.bf16=false", "model.cross_attention=[aggregated]",
        "data.max_train_samples=null", "checkpoint=",
    ]  # fmt: skip
    recipe = read_recipe("propositional/debug.yaml", overrides)
    assert recipe.training["max_steps"] == 10
    assert recipe.training["learning_rate"] == 0.001
    assert recipe.training["adam_epsilon"] == 1e-9
    assert recipe.training["eval_strategy"] == "no" and recipe.training["bf16"] is False
    assert recipe.training["run_name"] == "1e-3x"
    assert recipe.model["dropout"] == 0.1
    assert recipe.model["cross_attention"] == ["aggregated"]
    assert recipe.data.max_train_samples is None and recipe.checkpoint is None


def test_missing_parts_and_files_are_named(tmp_path):
    whole = {"task": "propositional", "data": {"path": "x"}, "training": {"output_dir": "y"}}
    assert parse_recipe(whole).data.path == "x"
    for key in whole:
        with pytest.raises(RecipeError, match=f"the key '{key}' is missing"):
            parse_recipe({name: value for name, value in whole.items() if name != key})
    with pytest.raises(RecipeError, match="data: the key 'path' is missing"):
        parse_recipe({**whole, "data": {}})
    draw = {"num_samples": 5, "sizes": [3, 4], "num_symbols": 2}
    assert parse_recipe({**whole, "data": {"draw": draw}}).data.draw == draw
    for key in ("num_sample", "split", "tokenizer"):
        with pytest.raises(RecipeError, match=f"data: draw: unknown key '{key}'"):
            parse_recipe({**whole, "data": {"draw": {**draw, key: 1}}})
    with pytest.raises(RecipeError, match="training: the key 'output_dir' is missing"):
        parse_recipe({**whole, "training": {}})
    with pytest.raises(RecipeError, match=r"no recipe 'propositional/nothing'.*debug\.yaml"):
        read_recipe("propositional/nothing")
    file = tmp_path / "recipe.yaml"
    file.write_bytes(b"\xff")
    with pytest.raises(RecipeError, match=r"recipe\.yaml: no UTF-8 text"):
        read_recipe(file)
    for text, message in [("- 1", "a mapping"), ("", "a mapping"), ("a: [", "not valid YAML")]:
        file.write_text(text)
        with pytest.raises(RecipeError, match=message):
            read_recipe(file)
