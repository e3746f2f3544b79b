import json
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hf_alpha.evaluation.compare import trained_region
from hf_alpha.io.yaml_files import read_yaml
from hf_alpha.recipe import (
    Data,
    Recipe,
    RecipeError,
    describe_settings,
    differences,
    parse_recipe,
    read_recipe,
    recipe_beside,
    recipe_schema,
    write_recipe,
)
from hf_alpha.resources import resource_path
from hf_alpha.train import prepare_model


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("xyz=1", "unknown key 'xyz'; known: check, checkpoint, data"),
        ("chekpoint=x", "unknown key 'chekpoint'; did you mean 'checkpoint'?"),
        ("data.max_train_sample=1", "data: unknown .*did you mean 'max_train_samples'?"),
        ("data.generate.num_sample=1", "generate: unknown .*did you mean 'num_samples'?"),
        ("data.generate.out_dir=x", "generate: unknown key 'out_dir'"),
        ("training.max_stps=1", "training: unknown .*did you mean 'max_steps'?"),
        ("model.d_modell=1", "model: unknown .*did you mean 'd_model'?"),
        ("model.vocab_size=20", "model: 'vocab_size' follows from the key 'num_symbols'"),
        ("num_symbols=many", "num_symbols: Input should be a valid integer; it is 'many'"),
        ("num_symbols=true", "num_symbols: Input should be a valid integer; it is True"),
        ("training=3", "training: Input should be a valid dictionary; it is 3"),
        ("data.generate=no", "data: generate: Input should be a valid dictionary"),
        (
            "data.generate.num_samples=x",
            "generate: num_samples: Input should be a valid integer; it is 'x'",
        ),
        ("data.generate.sizes=5", "generate: sizes: Input should be a valid tuple; it is 5"),
        ("num_symbols=0", "num_symbols: Input should be greater than or equal to 1; it is 0"),
        ("data.max_train_samples=0", "data: max_train_samples: Input should be greater"),
        (
            "data.draw={num_samples: 5}",
            "data: 'path' is for a dataset in a folder: give one of 'path'",
        ),
        ("data={draw: no}", "data: draw: Input should be a valid dictionary; it is 'no'"),
        ("data.drop_bad=true", "data: 'drop_bad' is for your own pairs that are answered"),
        ("data.validation=0.1", "data: validation: write a mapping with 'path', not 0.1"),
        ("data.validation={path: x, seed: 1}", "data: validation: unknown key 'seed'; known: gen"),
        ("data.validation={generate: {seed: 1}}", "data: validation: the key 'path' is missing"),
        (
            "data.validation={path: x, generate: {num_samples: 5, sizes: 5}}",
            "validation: generate: sizes: Input should",
        ),
        ("training.max_steps=1.5", "max_steps: Input should be a valid integer; it is 1.5"),
        (
            "training.learning_rate=high",
            "learning_rate: Input should be a valid number; it is 'high'",
        ),
        ("training.bf16=x", "bf16: Input should be a valid boolean; it is 'x'"),
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


TOKEN = "hf_" + 34 * "x"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("training.hub_token", TOKEN),
        ("training.hub_token", "other"),
        ("training.hub_token", 98765432),
        ("training.push_to_hub_token", "other"),
        ("training.run_name", TOKEN),
        ("data.path", f"https://me:{TOKEN}@huggingface.co/datasets/me/x"),
        ("model.cross_attention", [TOKEN]),
        ("task", TOKEN),
    ],
)
def test_secrets_stand_in_no_recipe(key, value, tmp_path):
    with pytest.raises(
        RecipeError, match=rf"{re.escape(repr(key))} is a secret.*HF_TOKEN"
    ) as error:
        read_recipe("propositional/debug", [f"{key}={json.dumps(value)}"])
    assert str(value) not in str(error.value).replace("HF_TOKEN", "")
    recipe = read_recipe("propositional/debug")
    section, _, name = key.rpartition(".")
    settings = {"": vars(recipe), "data": vars(recipe.data)}.get(section) or getattr(
        recipe, section
    )
    settings[name] = value  # in Python, where nothing is read
    with pytest.raises(RecipeError, match="is a secret"):
        write_recipe(recipe, tmp_path / "recipe.yaml")
    assert not list(tmp_path.iterdir())


def test_what_only_looks_like_a_secret_stands_in_recipes(tmp_path):
    allowed = ["training.hub_model_id=hf_alpha/my-model", "task=hf_alpha.logic.ltl:LTLTask"]
    write_recipe(read_recipe("propositional/debug", allowed), tmp_path / "recipe.yaml")
    assert read_recipe(tmp_path / "recipe.yaml").task == "hf_alpha.logic.ltl:LTLTask"
    assert "hub_token" not in describe_settings()
    with pytest.raises(RecipeError, match=r"all that lies in the output folder.* hf-alpha push"):
        read_recipe("propositional/debug", ["training.push_to_hub=true"])


def test_a_checkpoint_replaces_the_model_of_what_it_changes(tmp_path):
    """So that the same recipe trains a new model, or goes on from one."""
    recipe = read_recipe("propositional/debug", ["checkpoint=here"])
    assert recipe.checkpoint == "here" and recipe.model == {}
    child = "extends: propositional/debug\ncheckpoint: here\ntraining: {output_dir: out}\n"
    (tmp_path / "child.yaml").write_text(child)
    assert read_recipe(tmp_path / "child.yaml").model == {}
    both = ["checkpoint=here", "model.d_model=8"]
    with pytest.raises(RecipeError, match="either 'checkpoint' or 'model', not both"):
        read_recipe("propositional/debug", both)
    (tmp_path / "child.yaml").write_text(child + "model: {d_model: 8}\n")
    with pytest.raises(RecipeError, match="either 'checkpoint' or 'model', not both"):
        read_recipe(tmp_path / "child.yaml")
    assert read_recipe("propositional/debug", ["model=null"]).model == {}  # null removes a key


def test_an_unknown_key_that_another_recipe_brings_is_said_to_stand_there(tmp_path):
    """And what leaves it out: here, what a model of another type does not know."""
    write(tmp_path, root="model: {symbol_encoding: learned, d_model: 4}")
    write(tmp_path, base="extends: root\nmodel: {d_model: 8, encoder_layers: 1}")
    own = OWN + "extends: base\nmodel: {model_type: alpha-retrofit%s}\n"
    (tmp_path / "own.yaml").write_text(own % ", backbone: 3")
    message = (
        f"own.yaml: model: unknown key 'd_model', taken over from {tmp_path / 'base.yaml'}: leave "
        "out what does not fit by {d_model: null, encoder_layers: null}, or name a 'checkpoint'"
    )
    with pytest.raises(RecipeError, match=re.escape(message)):
        read_recipe(tmp_path / "own.yaml")
    (tmp_path / "own.yaml").write_text(own % ", d_model: null, encoder_layers: null, backbone: 3")
    with pytest.raises(RecipeError, match=r"own.yaml: model: unknown key 'backbone'; did you mean"):
        read_recipe(tmp_path / "own.yaml")
    (tmp_path / "own.yaml").write_text(own % ", d_model: null, encoder_layers: null")
    assert read_recipe(tmp_path / "own.yaml").model.keys() == {"model_type", "symbol_encoding"}
    write(tmp_path, plain=OWN + "extends: root")
    with pytest.raises(
        RecipeError, match=r"plain.yaml: model: unknown key 'd_modell'; did you mean"
    ):
        read_recipe(tmp_path / "plain.yaml", ["model.d_modell=3"])  # no file says that


def test_overrides_are_yaml(tmp_path):
    overrides = [
        "training.max_steps=10", "--model.dropout=0.1", "training.learning_rate=1e-3",
        "training.adam_epsilon=1E-9", "training.run_name=1e-3x", "training.eval_strategy=no",
        "training.bf16=false", "model.cross_attention=[aggregated]",
        "data.max_train_samples=null", "checkpoint=", "data.validation={}",
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
    assert not recipe.data.validation


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
    with pytest.raises(FileNotFoundError, match=r"no recipe 'propositional/nothing'.*debug\.yaml"):
        read_recipe("propositional/nothing")
    file = tmp_path / "recipe.yaml"
    file.write_bytes(b"\xff")
    with pytest.raises(RecipeError, match=r"recipe\.yaml: no UTF-8 text"):
        read_recipe(file)
    for text, message in [("- 1", "a mapping"), ("", "a mapping"), ("a: [", "not valid YAML")]:
        file.write_text(text)
        with pytest.raises(RecipeError, match=message):
            read_recipe(file)


# Recipes that extend others

BASE = """
task: propositional
num_symbols: 3
data: {path: data, generate: {num_samples: 9, alpha: 0.5}}
model: {d_model: 8, cross_attention: [per_stream, aggregated]}
training: {output_dir: runs/base, max_steps: 5, seed: 1}
"""


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)


def test_a_recipe_changes_what_it_extends(tmp_path):
    (tmp_path / "more").mkdir()
    child = """
        extends: base
        num_symbols: null
        data: {generate: {alpha: null, seed: 4}}
        model: {cross_attention: [aggregated]}
        training: {output_dir: runs/child, max_steps: 6, lr_scheduler_kwargs: {a: 1, b: null}}
    """
    grandchild = "extends: ../child\nmodel: null\ntraining: {output_dir: runs/grandchild}"
    write(tmp_path, base=BASE, child=child)
    write(tmp_path / "more", grandchild=grandchild, same=f"extends: {tmp_path}/child.yaml")
    found = read_recipe(tmp_path / "child.yaml", ["training.seed=2"])
    assert found == Recipe(
        task="propositional",
        data=Data(path="data", generate={"num_samples": 9, "seed": 4}),
        model={"d_model": 8, "cross_attention": ["aggregated"]},
        training={
            "output_dir": "runs/child",
            "max_steps": 6,
            "seed": 2,
            "lr_scheduler_kwargs": {"a": 1},
        },
    )
    last = read_recipe(tmp_path / "more" / "grandchild.yaml")
    assert last.model == {} and last.data == found.data and last.training["max_steps"] == 6
    # What a run writes stands alone.
    write_recipe(found, tmp_path / "run" / "recipe.yaml")
    assert "extends" not in (tmp_path / "run" / "recipe.yaml").read_text()
    assert read_recipe(tmp_path / "run" / "recipe.yaml") == found
    # Two runs would share a folder.
    with pytest.raises(RecipeError, match="training: the key 'output_dir' is missing"):
        read_recipe(tmp_path / "more" / "same.yaml")


def test_a_shipped_recipe_is_extended_by_its_name(tmp_path):
    write(tmp_path, mine="extends: propositional/debug\ntraining: {output_dir: here}")
    mine, debug = read_recipe(tmp_path / "mine.yaml"), read_recipe("propositional/debug")
    assert differences(mine, debug) == {} and mine.training["output_dir"] == "here"


def test_circles_and_missing_parents_are_errors_that_name_the_chain(tmp_path):
    write(tmp_path, a="extends: b", b="extends: c", c="extends: a", self="extends: self")
    write(tmp_path, d="extends: e", e="extends: nowhere", f="extends: [d, e]", g="extends: h")
    write(tmp_path, h="- a list")
    a, b, c, d, e, f, h = (tmp_path / f"{name}.yaml" for name in "abcdefh")
    for name, message in {
        "a": f"extend each other in a circle: {a} -> {b} -> {c} -> {a}",
        "self": "extend each other in a circle: ",
        "d": f"{d} -> {e} -> 'nowhere': no recipe 'nowhere': training/nowhere.yaml is not there",
        "f": f"{f}: 'extends' must be the name of one recipe",
        "g": f"{h}: a recipe is a mapping",
    }.items():
        with pytest.raises(RecipeError, match=re.escape(message)):
            read_recipe(tmp_path / f"{name}.yaml")


def test_the_documented_example_works(tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    shutil.copy(resource_path("training", "propositional", "learned.yaml"), tmp_path)
    write(tmp_path, mine=example)
    changed = differences(read_recipe("propositional/learned"), read_recipe(tmp_path / "mine.yaml"))
    assert changed == {
        "num_symbols": ("5", "10"),
        "model.symbol_renaming": ("null", '"random"'),
        "model.scale_embedding": ("true", "null"),
    }


README = resource_path("training", "README.md")
PINNED = json.loads(Path(__file__).with_name("snapshots").joinpath("recipes.json").read_text())


OWN = """
task: text
data: {train: pairs.jsonl, validation: 0.05}
symbols: {variable: "[a-z]"}
training: {output_dir: out}
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.path=x", "data: 'path' is for a dataset in a folder: give one of 'path'"),
        ("data.validation=1.5", "data: validation: give a share between 0 and 1, or a file, not"),
        ("data.train={split: train}", "data: train: the key 'path' is missing"),
        ("data.test={path: a, name: b}", "data: test: unknown key 'name'"),
        ("num_symbols=3", "'num_symbols' is for problems of a task: .* a 'count' in"),
        ("transducer=here", "'transducer' is for an objective that does not answer: name one"),
        ("data.pair=other", "data: 'pair' is for an objective that does not answer: name one"),
        ("data={path: x}", "'symbols' is for your own pairs: 'data' has no 'train'"),
        ("objective={name: [class]}", r"objective: no objective \['class'\]; known: answer"),
    ],
)
def test_recipes_of_own_pairs(tmp_path, change, message):
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    recipe = read_recipe(file)
    assert recipe.configured_task.symbols_of("x 1") == ["x"]
    write_recipe(recipe, tmp_path / "again.yaml")
    assert read_recipe(tmp_path / "again.yaml") == recipe
    with pytest.raises(RecipeError, match=message):
        read_recipe(file, [change])


def test_a_model_that_is_left_out_is_checked_too():
    said = {"training": {"output_dir": "out"}, "data": {"train": "rows.jsonl"}}
    with pytest.raises(RecipeError, match="model: no 'model_type' 'alpha' is trained by the obj"):
        parse_recipe({"task": "text", "objective": "class", **said})


def test_a_task_that_draws_reads_no_pairs(tmp_path):
    said = {"training": {"output_dir": "out"}, "data": {"train": "rows.jsonl"}}
    with pytest.raises(RecipeError, match="'ltl' draws its problems and reads no pairs of yours"):
        _ = parse_recipe({"task": "ltl", **said}).configured_task


def test_what_is_trained_makes_the_kind_of_a_recipe(tmp_path):
    training, rows = {"output_dir": "out"}, {"train": "rows.jsonl"}
    draw = {"num_samples": 5, "sizes": [3, 4], "num_symbols": 2}
    for said, kind in [
        ({"data": {"path": "x"}}, "generated"),
        ({"data": {"draw": draw}, "objective": "answer"}, "drawn"),
        ({"data": rows, "symbols": {"x": "[a-z]"}}, "pairs"),
        ({"data": rows, "objective": "class", "model": {"model_type": "bert"}}, "rows"),
        # What says nothing may stand where it is not known.
        ({"data": {"path": "x", "draw": {}, "train": None}, "check": None, "symbols": {}},
         "generated"),
    ]:  # fmt: skip
        assert parse_recipe({"task": "text", "training": training, **said}).kind == kind
    with pytest.raises(RecipeError, match="data: the key 'train' is missing: your own pairs of te"):
        parse_recipe({"task": "text", "training": training, "data": {}, "objective": "class"})


def test_a_recipe_of_others_stays_of_its_kind_without_its_places(tmp_path):
    write(tmp_path, recipe=OWN.replace("pairs.jsonl", "../pairs.jsonl"))
    recipe = recipe_beside(str(tmp_path))
    assert (recipe.kind, recipe.data.train) == ("pairs", "")
    own = read_recipe("propositional/relational-further")
    write_recipe(own, tmp_path / "recipe.yaml")
    # What is said of their data is known of further datasets too.
    assert trained_region(recipe_beside(str(tmp_path))) == trained_region(own) == ((0, 10), (1, 50))
    write(tmp_path, recipe=(tmp_path / "recipe.yaml").read_text().replace("path: ", "path: /"))
    far = recipe_beside(str(tmp_path))
    assert {far.data.path, *(more.path for more in far.data.more)} == {None}


@settings(max_examples=30)
@given(st.from_regex(r"[-+]?[0-9][0-9.eE_:x+-]{0,5}", fullmatch=True))
@example("1e5")
@example("1.5e3")
@example("no")
def test_texts_like_numbers_stay_texts(text):
    recipe = parse_recipe({
        "task": "text",
        "data": {"train": "x.jsonl", "source": text},
        "symbols": {"x": [text, "a"]},
        "training": {"output_dir": "out"},
    })  # fmt: skip
    with TemporaryDirectory() as folder:
        write_recipe(recipe, Path(folder) / "recipe.yaml")
        assert read_recipe(Path(folder) / "recipe.yaml") == recipe


def test_what_is_said_of_a_text_reaches_its_task(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(OWN)
    task = read_recipe(file, ["check=own:check", "ignore_whitespace=true"]).configured_task
    assert (task.check_path, task.ignore_whitespace) == ("own:check", True)
    for change, message in [
        ("check=nowhere", "write package.module:function"),
        ("symbols={x: {pattern: '('}}", "symbols: 'x': the pattern"),
        ("task=copying", "task 'copying' has no settings symbols"),
    ]:
        with pytest.raises(RecipeError, match=message):
            _ = read_recipe(file, [change]).configured_task


@pytest.mark.parametrize("name", PINNED)
def test_shipped_recipes_say_in_full_what_they_always_said(name):
    recipe = read_recipe(name)
    assert not recipe.has_user_data
    said = recipe.settings()
    # Later keys, which none of them uses.
    later = said["data"].pop("validation"), said.pop("objective"), said.pop("optimizer")
    assert later == (None, "answer", "") and said["data"].pop("more", None) is None
    pinned = PINNED[name]
    # Each kind of data has keys of its own: what is empty here is no key there.
    pinned["data"] = {key: value for key, value in pinned["data"].items()
                      if key in said["data"] or value not in (None, {})}  # fmt: skip
    assert said == pinned


# The schema and the texts that the settings declare

BASES = ("text/small", "folnet/finetune")  # recipes that are whole only in those that extend them
SHIPPED = [
    path
    for path in sorted(resource_path("training").rglob("*.yaml"))
    if f"{path.parent.name}/{path.stem}" not in BASES
]


def faults(content: Any) -> list[Any]:
    """What the schema refuses of a recipe, as an editor says it."""
    return list(jsonschema.Draft202012Validator(schema_of_recipes()).iter_errors(content))


schema_of_recipes = cache(recipe_schema)


def test_every_recipe_fits_the_schema_and_is_read_as_it_is_written(tmp_path):
    for path in SHIPPED:
        assert faults(read_yaml(path)) == [], path
        recipe = read_recipe(path, ["training.output_dir=out"])
        write_recipe(recipe, tmp_path / "recipe.yaml")
        assert read_recipe(tmp_path / "recipe.yaml") == recipe, path


@pytest.mark.parametrize(
    "change",
    [
        {"modle": {}},
        {"task": 3},
        {"num_symbols": 0},
        {"data": {"paht": "x"}},
        {"data": {"generate": {"num_sample": 1}}},
        {"data": {"draw": {"split": "train"}}},
        {"data": {"num_workers": 1.5}},
        {"model": {"d_modell": 3}},
        {"model": {"vocab_size": 3}},
        {"model": {"d_model": True}},
        {"objective": {"nmae": "class"}},
        {"objective": {"name": "class", "max_length": 0}},
        {"training": {"max_stps": 3}},
        {"training": {"learning_rate": "high"}},
        {"training": {"hub_token": "x"}},
    ],
    ids=str,
)
def test_the_schema_and_the_reader_refuse_the_same(change, tmp_path):
    """But for values of the model, which its configuration checks when it is made."""
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(good := {"extends": "propositional/debug", **change}))
    assert faults(good)
    with pytest.raises(RecipeError):
        recipe = read_recipe(file, [f"training.output_dir={tmp_path}"])
        prepare_model(recipe)
    assert faults({"extends": "propositional/debug"}) == []
    assert faults({"task": "ltl", "data": {"path": "x"}})


def test_every_setting_is_described():
    text, schema = describe_settings(), schema_of_recipes()["properties"]
    assert "data.num_workers: integer, default 1\n    processes that generate" in text
    assert "\nextends: string\n" in text and "\ntask: string, required\n" in text
    assert "model.dropout: number or integer, default 0.1\n    in [0, 1)." in text
    assert "training.learning_rate: number, default 5e-05\n" in text
    sections = {**schema, **{f"data.{k}": v for k, v in schema["data"]["properties"].items()}}
    for name in ("data", "model", "training", "data.generate", "data.draw"):
        for key in sections[name]["properties"]:
            assert f"\n{name}.{key}: " in text


def test_another_type_of_model_is_refused_by_name():
    for name in ("bart", "nothing", "3"):
        with pytest.raises(RecipeError, match=f"of 'model_type' '?{name}'?; known: alpha"):
            read_recipe("propositional/debug", [f"model.model_type={name}"])
    assert read_recipe("propositional/debug", ["model.model_type=alpha"]).model["d_model"] == 32
