"""Tasks by name, and a user's own task from its data to solved problems."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import hf_alpha
from datasets import load_dataset
from toy_task import ToyTask

from hf_alpha import wings
from hf_alpha.logic.drawing import generate as generation
from hf_alpha.logic.drawing.drawn import DrawnProblems
from hf_alpha.recipe import parse_recipe
from hf_alpha.tasks import Task, get_task, name_of, task_names
from hf_alpha.tasks.build_tokenizer import build_tokenizer
from hf_alpha.tasks.registry import DEFAULT_TASK, built_in_tasks
from hf_alpha.train import train

ROOT = Path(__file__).resolve().parents[2]
TASKS = [ROOT / "hf_alpha" / "tasks", ROOT / "hf_alpha" / "logic"]
OWN = "toy_task:ToyTask"


def python(script: str, *path: Path) -> str:
    """What a script prints in a process of its own, with folders on Python's path."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {list(map(str, path))}\n{script}"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_built_in_tasks_are_found_by_their_names():
    assert built_in_tasks() == ["copying", "ltl", "propositional", "text"]
    assert set(task_names()) >= set(built_in_tasks()) and DEFAULT_TASK in built_in_tasks()
    for name in built_in_tasks():
        task = get_task(name)
        assert task.name == name == name_of(task) and get_task(task) is task


def test_only_the_module_of_a_task_is_imported():
    """Each task in turn adds its own folder to what is loaded, and no other's."""
    script = (
        "from hf_alpha.tasks import get_task, task_names\n"
        f"for index, name in enumerate({built_in_tasks()!r}):\n"
        "    places = [m.split('.') for m in sys.modules if m.startswith('hf_alpha.')]\n"
        "    loaded = {m[2] for m in places if m[1] in ('tasks', 'logic') and len(m) > 2}\n"
        "    assert loaded.isdisjoint(task_names()[index:]), name\n"
        "    module = type(get_task(name)).__module__\n"
        "    assert module.split('.')[2] == name and module in sys.modules\n"
    )
    python(script)


def texts_of(path: Path) -> Iterator[str]:
    """The strings of a file, docstrings aside, and the names of its code."""
    tree = ast.parse(path.read_text())
    blocks = (node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", 0), list))
    docs = {node.value for body in blocks for node in body if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        texts = [getattr(node, field, "") for field in ("id", "attr", "name", "module", "value")]
        yield from (text for text in texts if isinstance(text, str) and node not in docs)


def test_nothing_outside_its_folder_names_a_task():
    distinct = [name for name in built_in_tasks() if name != "text"]  # which is a word as well
    names = re.compile(rf"(?i)(?<![a-z])({'|'.join(distinct)})(?![a-z])")
    places = [
        (path.name, text)
        for path in sorted((ROOT / "hf_alpha").rglob("*.py"))
        if path.parent.parent not in TASKS and names.search(path.read_text())
        for text in texts_of(path)
        if names.search(text)
    ]
    listed = {("wings.py", text) for item in wings.TASKS.items() for text in item}
    # An extra is called like the task that it is for.
    assert {*places} == {("wings.py", "ltl"), ("registry.py", DEFAULT_TASK), *listed}
    assert names.search("hf_alpha.logic.ltl") and names.search("PropositionalTask") is None


def test_grammars_of_tasks_do_not_travel_with_models():
    for path in (ROOT / "hf_alpha" / "modeling").glob("*.py"):
        assert not re.search(r"(?m)^[A-Z_]+ = Grammar\(", path.read_text()), path


def test_a_task_of_ones_own_from_data_to_solved_problems(tmp_path):
    data, model = tmp_path / "data", tmp_path / "model"
    generate = {"num_samples": 60, "sizes": [3, 9], "num_symbols": 4, "alpha": 1.0}
    recipe = {
        "task": OWN,
        "num_symbols": 4,
        "data": {"path": str(data), "generate": generate},
        "model": {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
                  "encoder_attention_heads": 2, "decoder_attention_heads": 2,
                  "encoder_ffn_dim": 16, "decoder_ffn_dim": 16},
        "training": {"output_dir": str(model), "max_steps": 3, "report_to": "none",
                     "disable_tqdm": True, "per_device_train_batch_size": 16},
    }  # fmt: skip
    train(parse_recipe(recipe))
    record = json.loads((data / "generation.json").read_text())
    assert record["settings"]["task"] == OWN and sum(record["rows"].values()) == 60
    for row in load_dataset(str(data))["train"]:
        assert row["answer"] == ToyTask().target(row["problem"])
        assert row["num_symbols"] == len(ToyTask().symbols_of(row["problem"]))

    told = ["--task", OWN, "--covariance", 1, "--card", "--beams", 1, "--out", tmp_path / "out"]
    done = hf_alpha("evaluate", model, *told, "--data", data)
    assert done.code == 0 and "random answer" in done.out, done.err
    report = json.loads((tmp_path / "out" / "model" / "report.json").read_text())
    assert report["settings"]["task"] == OWN
    card = (model / "README.md").read_text()
    assert f"hf-alpha solve --task {OWN} --model model" in card and ToyTask.example in card

    done = hf_alpha("solve", "--task", OWN, "--model", model, "request & grant", "& b")
    assert done.code == 1 and done.err.endswith(
        "  error: the formula ends at character 3 while 1 operand is missing\n"
    )
    assert re.fullmatch(
        r"request & grant\n  (exact|wrong) +\S.*\n(  found by .*\n)?& b\n", done.out
    )
    done = hf_alpha("solve", "--task", OWN, "a & b")
    assert done.error == f"error: no model of task '{OWN}' is released: name one with --model"


def test_a_task_of_ones_own_is_drawn_and_tokenised():
    tokenizer = build_tokenizer(OWN, 4)
    data = DrawnProblems(OWN, tokenizer, num_samples=20, sizes=(5, 5), num_symbols=3)
    for index in range(20):
        problem = tokenizer.decode(data[index]["input_ids"])
        assert data[index] == tokenizer.encode_pair(problem, ToyTask().target(problem))


def test_modules_are_found_in_the_current_folder(tmp_path, monkeypatch):
    """By workers, too."""
    (tmp_path / "mine.py").write_text((ROOT / "tests" / "toy_task.py").read_text())
    monkeypatch.chdir(tmp_path)
    options = ["--samples", "40", "--sizes", "3-5", "--workers", "2", "--quiet"]
    done = hf_alpha("generate-data", "data", "--task", "mine:ToyTask", *options)
    assert done.code == 0 and (tmp_path / "data" / "data").is_dir(), done.err


def test_an_entry_point_offers_a_task_by_name(tmp_path):
    info = tmp_path / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    entries = ["first_leaf = toy_package.tasks:ToyTask", "other = toy_package.tasks:ToyTask"]
    (info / "entry_points.txt").write_text("\n".join(["[hf_alpha.tasks]", *entries]))
    (tmp_path / "toy_package").mkdir()
    toy = (ROOT / "tests" / "toy_task.py").read_text()
    (tmp_path / "toy_package" / "tasks.py").write_text(toy)
    script = (
        "from hf_alpha.tasks import get_task, name_of, task_names\n"
        "assert {'first_leaf', 'ltl'} <= set(task_names()) and 'toy_package' not in sys.modules\n"
        "task = get_task('first_leaf')\n"
        "assert type(task).__module__ == 'toy_package.tasks' and name_of(task) == 'first_leaf'\n"
        "try: get_task('other')\n"
        "except ValueError as error: print(error)"
    )
    out = python(script, tmp_path)
    assert "'other' offers toy_package.tasks:ToyTask, a task called 'first_leaf'" in out


def test_registered_tasks_are_found_by_name(tmp_path):
    script = (
        "from toy_task import ToyTask\n"
        "from hf_alpha.tasks import get_task, name_of, register_task, task_names\n"
        "assert register_task(register_task(ToyTask)) is ToyTask\n"
        "assert 'first_leaf' in task_names() and type(get_task('first_leaf')) is ToyTask\n"
        "assert name_of(get_task('first_leaf')) == 'toy_task:ToyTask'\n"
        "class Second(ToyTask): pass\n"
        "try: register_task(Second)\n"
        "except ValueError as error: print(error)"
    )
    assert "the name 'first_leaf' is that of toy_task:ToyTask" in python(script, ROOT / "tests")


MODULE = """
from toy_task import ToyTask
from hf_alpha.tasks import DrawnTask, get_task

class Half(ToyTask):
    base_tokens = ()

class Abstract(DrawnTask):
    name = "abstract"

    def random_answer(self, problem, rng):
        return ""

class Nameless(DrawnTask):
    is_feasible = draw = target_of = random_answer = check = lambda self: None

class Same(type(get_task("copying"))):
    pass

number = 3
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chess", r"unknown task 'chess': choose one of .*copying, .*or write package\.module:"),
        ("nowhere.at_all:Task", "there is no module 'nowhere' in .* or on Python's path"),
        ("broken_module:Task", "broken_module cannot be imported: No module named 'missing_one'"),
        ("own_tasks:Taks", "own_tasks has no class 'Taks'"),
        ("own_tasks:number", "3 is no subclass of hf_alpha.tasks.Task"),
        ("own_tasks:get_task", "registry:get_task is no subclass of hf_alpha.tasks.Task"),
        ("own_tasks:Abstract", "is abstract: it lacks the methods check, draw, is_feasible, targ"),
        ("own_tasks:Nameless", "lacks the attributes name, grammar, base_tokens, symbol_classes"),
        ("own_tasks:Same", "the task 'copying' is built in: choose another name"),
        (":Task", "task ':Task': write package.module:Class"),
        ("own_tasks:", "task 'own_tasks:': write package.module:Class"),
    ],
)
def test_what_is_no_task_is_said(name, message, tmp_path, monkeypatch):
    (tmp_path / "own_tasks.py").write_text(MODULE)
    (tmp_path / "broken_module.py").write_text("import missing_one")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_tasks", raising=False)
    with pytest.raises((ValueError, ImportError), match=message):
        get_task(name)
    error = hf_alpha("generate-data", tmp_path / "data", "--task", name).error
    assert error.startswith("error: ") and not (tmp_path / "data").exists()


@pytest.mark.parametrize("place", ["hf_alpha.tasks.ltl:LTLTask", "hf_alpha.tasks.ltl.task:LTLTask"])
def test_where_built_in_tasks_stood_before_is_known(place):
    """A recipe may name that."""
    assert type(get_task(place)) is type(get_task("ltl"))


def test_what_has_moved_is_found_where_it_was():
    with pytest.warns(FutureWarning, match=r"FormulaTask is in hf_alpha\.logic\.formula_task now"):
        from hf_alpha.tasks.base import FormulaTask
    assert isinstance(get_task("ltl"), FormulaTask)
    with pytest.warns(FutureWarning, match=r"generate is in hf_alpha\.logic\.drawing\.generate"):
        from hf_alpha.data.generate import generate
    assert generate is generation.generate


def test_a_class_that_keeps_a_name_counts_as_that_task():
    kept = type("Kept", (type(get_task("ltl")),), {})()
    assert name_of(kept) == "ltl" and isinstance(get_task(kept), Task) and get_task(kept) is kept
