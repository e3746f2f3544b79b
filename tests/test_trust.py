"""Folders of others run no code, and read nothing outside of them.

Every command, and every file of a folder that can name code or a path.
"""

import inspect
import json
import re
import shutil
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import any_command, hf_alpha
from small_tokenizers import word_level
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification
from transformers.modeling_flash_attention_utils import FLASH_ATTENTION_COMPATIBILITY_MATRIX

import hf_alpha as package
from hf_alpha import AlphaConfig, AlphaForConditionalGeneration
from hf_alpha.checkpoints import timed_patterns
from hf_alpha.cli import COMMANDS
from hf_alpha.io.inside import OutsideError
from hf_alpha.loading import (
    CheckpointError,
    load_checkpoint,
    load_config,
    load_host,
    load_tokenizer,
)
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.recipe import Data, Recipe, named_code, parse_recipe, recipe_of
from hf_alpha.transduction import Transducer
from hf_alpha.trust import UntrustedCodeError, refused_code, remember_recipe, trusting

ROWS = [{"source": f"swap {a} {b}", "target": f"{b} {a}"} for a, b in ("xy", "yz", "zx")]
TEXT = ROWS[0]["source"]
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}  # fmt: skip
RULES = {"name": {"pattern": "[a-z]", "count": 4}}
FUNCTIONS = """
import re
from pathlib import Path
Path("{}", "RAN").touch()
def find(text):
    return [match.span() for match in re.finditer("[x-z]", text)]
def check(source, answer, target):
    return True
def measure(predictions, references):
    return 1.0
def read(path):
    return [{"source": "swap x", "target": "yes"}, {"source": "swap y", "target": "no"}]
"""
CLASSES = """
from pathlib import Path
from transformers import PreTrainedConfig, PreTrainedTokenizerFast
from hf_alpha.tasks.text.task import TextTask
Path("{}", "RAN").touch()
class Task(TextTask):
    name = "evil"
class Config(PreTrainedConfig):
    model_type = "evil"
class EvilTokenizer(PreTrainedTokenizerFast):
    pass
"""
"""What must not run: an import leaves a file."""


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def changed(path: Path, **entries: Any) -> None:
    read, write = (yaml.safe_load, yaml.safe_dump)
    if path.suffix != ".yaml":
        read, write = json.loads, json.dumps
    content = read(path.read_text()) if path.is_file() else {}
    path.write_text(write({**content, **entries}))


@pytest.fixture(scope="module")
def innocent(tmp_path_factory) -> Path:
    """A model of somebody else, with a recipe, and one that classifies."""
    root = tmp_path_factory.mktemp("innocent")
    texts = [text for row in ROWS for text in row.values()]
    tokenizer = TextTokenizer.from_texts(texts, RULES)
    config = AlphaConfig.for_tokenizer(tokenizer, symbol_encoding="relational", **SIZES)
    for part in (AlphaForConditionalGeneration(config), tokenizer):
        part.save_pretrained(root / "m")
    changed(root / "m" / "trainer_state.json", global_step=1, max_steps=1, log_history=[])
    changed(root / "m" / "recipe.yaml", task="text", data={"train": "pairs.jsonl"},
            symbols=RULES, training={"output_dir": "out"})  # fmt: skip

    words = word_level()
    labels = {"label2id": {"yes": 0, "no": 1}, "id2label": {0: "yes", 1: "no"}}
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertForSequenceClassification(BertConfig(vocab_size=len(words), **sizes, **labels))
    for part in (model, words):
        part.save_pretrained(root / "classes")
    changed(root / "classes" / "recipe.yaml", task="text", objective="class",
            data={"train": "pairs.jsonl"}, model={"model_type": "bert"},
            training={"output_dir": "out"})  # fmt: skip
    return root


@pytest.fixture
def here(innocent, tmp_path, monkeypatch) -> Path:
    """A current folder with those models, rows, and code that a name can reach."""
    shutil.copytree(innocent, tmp_path, dirs_exist_ok=True)
    written(tmp_path / "pairs.jsonl", ROWS)
    for folder in (tmp_path, tmp_path / "m", tmp_path / "classes"):
        # A process that outlives a test has another current folder.
        (folder / "evil.py").write_text(FUNCTIONS.replace("{}", str(tmp_path)))
        (folder / "wicked.py").write_text(CLASSES.replace("{}", str(tmp_path)))
    changed(tmp_path / "mine.yaml", task="text", checkpoint="m", data={"train": "pairs.jsonl"},
            training={"output_dir": "mine", "max_steps": 1, "report_to": "none",
                      "disable_tqdm": True})  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    loaded = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - loaded:
        if name.split(".")[0] in ("evil", "wicked", "m"):
            del sys.modules[name]


SOLVE = ("solve", "--model", "m", TEXT)
EVALUATE = ("evaluate", "m", "--data", "pairs.jsonl", "--covariance", 0, "--out", "r")
TRAIN = ("train", "mine.yaml")
TAKEN = socket.create_server(("127.0.0.1", 0))
DEMO = ("demo", "--model", "m", "--port", TAKEN.getsockname()[1])  # so that nothing is served
SERVE = ("serve", "m", "--port", TAKEN.getsockname()[1])


def by_tokenizer(m: Path) -> None:
    (m / "recipe.yaml").unlink()
    changed(m / "tokenizer_config.json", symbols={"name": {"function": "evil:find", "count": 4}})


def by_recipe(**entries: Any) -> Callable[[Path], None]:
    return lambda m: changed(m / "recipe.yaml", **entries)


def by_format(m: Path) -> None:
    changed(m.parent / "classes" / "recipe.yaml",
            data={"train": "pairs.jsonl", "format": "evil:read"})  # fmt: skip


def by_config(m: Path) -> None:
    for folder in (m, m.parent / "classes"):
        config = {"model_type": "evil", "auto_map": {"AutoConfig": "wicked.Config"}}
        (folder / "config.json").write_text(json.dumps(config))


def by_tokenizer_class(m: Path) -> None:
    for folder in (m, m.parent / "classes"):
        changed(folder / "tokenizer_config.json", tokenizer_class="EvilTokenizer",
                auto_map={"AutoTokenizer": [None, "wicked.EvilTokenizer"]})  # fmt: skip


def by_kernel(m: Path) -> None:
    for folder in (m, m.parent / "classes"):
        changed(folder / "config.json", _attn_implementation="me/evil-kernel")


def by_part(m: Path) -> None:
    changed(m / "config.json", attn_implementation={"": "kernels-community/evil"})


def by_flash(m: Path) -> None:
    """Its library is missing here: Transformers would take a kernel of the Hub."""
    changed(m / "config.json", attn_implementation="flash_attention_2")


RULE = {"name": {"function": "evil:find", "count": 4}}
INFO = ("info", "m")
CLASSIFY = ("evaluate", "classes", "--data", "pairs.jsonl", "--out", "r")
LOADING = [SOLVE, EVALUATE, TRAIN, DEMO, SERVE, INFO, ("convert", "m", "o"),
           ("convert", "classes", "o", "--transducer", "fst"), ("push", "m", "me/m"),
           ("release", "m", "o")]  # fmt: skip
CERTIFY = ("certify", "pairs.jsonl", "--names", "[a-z]+", "--model", "m")  # takes decoders alone
STUDIES = [("studies.grow", "m", "o")]
BARE = [*LOADING[4:], *STUDIES]  # which look at models alone, at no recipe
ATTACKS = [
    *[(by_tokenizer, "evil:find", command) for command in (SOLVE, EVALUATE, TRAIN, DEMO)],
    *[(by_recipe(symbols=RULE), "evil:find", command) for command in (SOLVE, EVALUATE)],
    *[(by_recipe(check="evil:check"), "evil:check", command) for command in (SOLVE, EVALUATE)],
    *[(by_recipe(task="wicked:Task"), "wicked:Task", command) for command in (SOLVE, EVALUATE)],
    *[(by_recipe(task="m.wicked:Task"), "m.wicked:Task", command) for command in (SOLVE, EVALUATE)],
    (by_recipe(measures={"good": "evil:measure"}), "evil:measure", EVALUATE),
    (by_format, "evil:read", CLASSIFY),
    *[(by_config, "wicked.Config", command) for command in (*LOADING, CERTIFY, *STUDIES)],
    *[(by_tokenizer_class, "wicked.EvilTokenizer", c) for c in (*LOADING, *STUDIES)],
    *[(by_kernel, "me/evil-kernel", command) for command in LOADING[:6]],
    (by_part, "kernels-community/evil", SOLVE),
    (by_flash, "flash_attention_2", INFO),
]


def name_of(attack: Any) -> str:
    return attack[0] if isinstance(attack, tuple) else getattr(attack, "__name__", attack)


@pytest.fixture
def transducer(here):
    """What some commands ask for beside a model."""
    (here / "words.tsv").write_text("fire hose\tCOMPOUND\n")
    Transducer.from_settings({"lexicon": "words.tsv"}).save(here / "fst")


@pytest.mark.parametrize(("plant", "name", "command"), ATTACKS, ids=name_of)
def test_code_that_a_folder_names_does_not_run(plant, name, command, here, transducer):
    plant(here / "m")
    done = any_command(*command, stdin="y\ny\n")
    assert name in done.error and "--trust-remote-code" in done.error
    assert not (here / "RAN").exists() and not {"evil", "wicked"} & set(sys.modules)
    assert not [path for path in ("o", "r", "mine") if (here / path).exists()]


KERNELS = (by_kernel, by_part, by_flash)
TRUSTED = [(p, c) for p, _, c in ATTACKS if c not in BARE and p not in KERNELS]


def is_quick(plant: Callable[[Path], None], command: tuple[Any, ...]) -> bool:
    """Each way to name code with one command, and one of them with all."""
    one = {by_config: SOLVE, by_tokenizer_class: INFO}
    return plant is by_tokenizer or (command is one[plant] if plant in one else command != SOLVE)


@pytest.mark.parametrize(
    ("plant", "command"),
    [
        pytest.param(plant, command, marks=() if is_quick(plant, command) else pytest.mark.slow)
        for plant, command in [*TRUSTED, (by_tokenizer_class, INFO)]
    ],
    ids=name_of,
)
def test_it_runs_where_the_user_trusts_it(plant, command, here, monkeypatch):
    """For one command; what is not on Python's path is not found beside the folder."""
    plant(here / "m")
    if plant not in (by_config, by_tokenizer_class):  # those come with their file
        done = hf_alpha(*command, "--trust-remote-code")
        assert "there is no module" in done.error and "PYTHONPATH" in done.error
        monkeypatch.syspath_prepend(here)
    done = hf_alpha(*command, "--trust-remote-code")
    assert (here / "RAN").exists(), done
    if plant not in (by_config, by_tokenizer_class):  # which make no model with symbols
        codes = (2,) if command in (DEMO, SERVE) else (0, 1)  # its port is taken
        assert done.code in codes and "Traceback" not in done.err, done
    if command != TRAIN:
        assert "--trust-remote-code" in hf_alpha(*command).error


def test_only_the_folder_that_is_trusted_runs_code(here):
    by_recipe(check="evil:check")(here / "m")
    with trusting("classes"), pytest.raises(UntrustedCodeError, match="evil:check"):
        recipe_of("m")
    by_tokenizer(here / "m")
    tokenizer = load_tokenizer("m")
    with pytest.raises(ValueError, match="not imported, since others may have named it"):
        tokenizer(TEXT)
    with pytest.raises(ValueError, match="'evil:find'"):
        AutoTokenizer.from_pretrained("m")(TEXT)
    sys.path.append(str(here))
    _, tokenizer = load_checkpoint("m", trust_remote_code=True)
    assert tokenizer(TEXT).names == {"<name_0>": "x", "<name_1>": "y"}


def test_a_recipe_that_changed_is_none_of_this_user(tmp_path):
    """Nor is a copy of one."""
    names, copy = {"check": "mine:check"}, tmp_path / "copy"
    file = tmp_path / "recipe.yaml"
    file.write_text("check: mine:check\n")
    remember_recipe(file, names.values())
    assert refused_code(tmp_path, names) == {}
    copy.mkdir()
    shutil.copy(file, copy)
    assert refused_code(copy, names) == names
    file.write_text("check: mine:check\ndata: {}\n")
    assert refused_code(tmp_path, names) == names


def test_what_this_user_trained_here_needs_no_trust(here):
    """The short way for one's own runs: known by a digest that is nowhere in the folder."""
    assert hf_alpha(*TRAIN, "checkpoint=null", "symbols={name: {function: 'evil:find', count: 4}}",
                    "check=evil:check", f"model={json.dumps(SIZES)}").code == 0  # fmt: skip
    own = ("evaluate", "mine", "--data", "pairs.jsonl", "--covariance", 0, "--out")
    done = hf_alpha(*own, "first")
    assert done.code == 0 and "correct" in done.out, done.err
    assert hf_alpha("solve", "--model", "mine", TEXT).code == 0

    shutil.copytree("mine", "copied")  # the same files elsewhere are a stranger's
    assert "'evil:check'" in hf_alpha("evaluate", "copied", *own[2:], "copy").error
    config = Path("mine/tokenizer_config.json")
    before = config.read_text()
    config.write_text(before.replace("evil:find", "m.evil:find"))  # not what the recipe names
    assert "evil:find" in load_tokenizer("mine").finder.rules["name"].function
    assert not load_tokenizer("mine").finder.functions
    config.write_text(before)
    assert load_tokenizer("mine").finder.functions
    changed(Path("mine/recipe.yaml"), measures={"good": "evil:measure"})
    assert "'evil:measure'" in hf_alpha(*own, "changed").error


def test_trust_is_recorded_nowhere(here):
    by_tokenizer(here / "m")
    sys.path.append(str(here))
    assert hf_alpha(*TRAIN, "--trust-remote-code").code == 0
    assert "--trust-remote-code" in hf_alpha("evaluate", "mine", *EVALUATE[2:]).error


def test_the_users_own_word_is_obeyed(here):
    """In an option and in a recipe on the command line, modules of the current folder too."""
    (here / "m" / "recipe.yaml").unlink()
    assert hf_alpha(*SOLVE, "--task", "wicked:Task").code == 0
    assert (here / "RAN").exists()


def test_all_that_can_name_code_is_known():
    """The keys that say so in a recipe, and the commands that take a model."""
    said = {
        name
        for kind in (Recipe, Data)
        for name, field in kind.model_fields.items()
        if "package.module" in field.description or "function" in field.description
    }
    assert said == {"check", "measures", "symbols", "format"}
    symbols = {"name": {"function": "d:find"}, "other": "[a-z]:[a-z]"}
    training = {"output_dir": "out"}
    recipe = parse_recipe({
        "task": "a:Task", "check": "b:check", "measures": {"good": "c:measure"},
        "symbols": symbols, "data": {"train": "pairs.jsonl"}, "training": training,
    })  # fmt: skip
    assert named_code(recipe) == {
        "task": "a:Task", "check": "b:check", "measures.good": "c:measure",
        "symbols.name.function": "d:find",
    }  # fmt: skip
    rows = parse_recipe({
        "task": "a:Task", "objective": "class", "model": {"model_type": "bert"},
        "symbols": symbols, "data": {"train": "pairs.jsonl", "format": "e:read"},
        "training": training,
    })  # fmt: skip
    assert named_code(rows) == {
        "task": "a:Task", "symbols.name.function": "d:find", "data.format": "e:read",
    }  # fmt: skip
    formulas = parse_recipe({"task": "a:Task", "data": {"path": "x"}, "training": training})
    assert named_code(formulas) == {"task": "a:Task"}
    models = {"model", "models", "run", "folder", "overrides"}  # which may name a checkpoint
    taking = {n for n, c in COMMANDS.items() if models & set(inspect.signature(c).parameters)}
    taking -= {"compare"}  # which trains from scratch
    asking = {
        n for n, c in COMMANDS.items() if "trust_remote_code" in inspect.signature(c).parameters
    }
    assert taking == asking
    assert {command[0] for command in (*LOADING, CERTIFY)} == taking


def test_every_model_is_loaded_without_asking():
    """One place calls Transformers' loaders, and says each time whether code is trusted."""
    root = Path(package.__file__).parent
    calls = re.compile(r"(Auto\w+|auto|auto_class\(\w+\))\s*\.from_pretrained\(")
    places = {
        path.name
        for path in root.rglob("*.py")
        for line in path.read_text().splitlines()
        if calls.search(line) and "trust_remote_code=" not in line
    }
    assert places == set()


def test_checks_of_the_package_itself_need_no_trust(tmp_path):
    """They judge an answer and do nothing else; nothing else in the package counts."""
    recipes = Path(package.__file__).parents[1].glob("training/text/*.yaml")
    checks = {yaml.safe_load(file.read_text(encoding="utf-8")).get("check") for file in recipes}
    checks = {name for name in checks if name and name.startswith("hf_alpha.")}
    assert len(checks) > 3
    for name in checks:
        assert not refused_code(tmp_path, {"check": name})
        module, function = name.split(":")
        assert callable(getattr(import_module(module), function))
    names = {"check": "hf_alpha.tasks.text.anf:check", "measures": "hf_alpha.hub.release:release",
             "format": "hf_alpha.tasks.text.anf.os:check"}  # fmt: skip
    assert refused_code(tmp_path, names).keys() == {"measures", "format"}


BERT = {"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2}
NOT_INSTALLED = {
    "a kernel": {"attn_implementation": "me/evil"},
    "in a mapping": {"attn_implementation": {"": "me/evil"}},
    "in private": {"_attn_implementation": "me/evil@main:forward"},
    "behind our own name": {"attn_implementation": "relational_me/evil"},
    "in pages": {"attn_implementation": "paged|me/evil"},
    "a missing library": {"attn_implementation": "flash_attention_3"},
    "of experts": {"experts_implementation": "deepgemm"},
    "of a part": {
        "model_type": "encoder-decoder", "encoder": BERT, "decoder": BERT,
        "attn_implementation": {"encoder": "me/evil"},
    },
}  # fmt: skip


@pytest.mark.parametrize("settings", NOT_INSTALLED.values(), ids=NOT_INSTALLED)
def test_a_configuration_chooses_only_what_is_installed(tmp_path, settings):
    (tmp_path / "config.json").write_text(json.dumps(BERT | settings))
    with pytest.raises(UntrustedCodeError, match=r"config\.json, .*_implementation: '"):
        load_config(tmp_path)


@pytest.mark.parametrize("name", ["eager", "sdpa", "flex_attention", "flash_attention_2",
                                  "relational_sdpa", {"": "eager"}, None])  # fmt: skip
def test_what_is_installed_needs_no_trust(tmp_path, monkeypatch, name):
    library = FLASH_ATTENTION_COMPATIBILITY_MATRIX[2]
    monkeypatch.setitem(library, "general_availability_check", lambda: True)
    (tmp_path / "config.json").write_text(json.dumps(BERT | {"attn_implementation": name}))
    assert load_config(tmp_path).model_type == "bert"


def test_models_without_symbols_choose_no_kernel_either(here):
    by_kernel(here / "m")
    with pytest.raises(UntrustedCodeError, match="me/evil-kernel"):
        load_host("classes")


def by_extends(name: str) -> Callable[[Path], None]:
    def plant(m: Path) -> None:
        (m.parent / "outside").mkdir()
        changed(m.parent / "outside" / "base.yaml", check="evil:check")
        changed(m / "recipe.yaml", extends=name.format(m.parent))

    return plant


def by_index(name: str) -> Callable[[Path], None]:
    """Weights in several files, one of them elsewhere."""

    def plant(m: Path) -> None:
        (m.parent / "outside").mkdir()
        (m / "model.safetensors").rename(m.parent / "outside" / "model.safetensors")
        weights = {"model.shared.weight": name.format(m.parent)}
        changed(m / "model.safetensors.index.json", metadata={}, weight_map=weights)

    return plant


def by_torch_index(m: Path) -> None:
    (m / "model.safetensors").unlink()
    weights = {"model.shared.weight": "../outside/evil.bin"}
    changed(m / "pytorch_model.bin.index.json", metadata={}, weight_map=weights)


def by_tokenizer_file(m: Path) -> None:
    changed(m / "tokenizer_config.json", fast_tokenizer_files=["../outside/tokenizer.4.0.0.json"])


def by_weights(name: str) -> Callable[[Path], None]:
    """Weights under another name than the usual one, elsewhere."""

    def plant(m: Path) -> None:
        (m.parent / "outside").mkdir()
        (m / "model.safetensors").rename(m.parent / "outside" / "w.safetensors")
        (m / "linked").symlink_to(m.parent / "outside")
        weights = {"model.shared.weight": "../outside/w.safetensors"}
        changed(m / "x.safetensors.index.json", metadata={}, weight_map=weights)
        (m / "linked").unlink() if name.endswith("json") else None
        changed(m / "config.json", transformers_weights=name)

    return plant


def by_configuration(m: Path) -> None:
    """A configuration that names another one, which names weights elsewhere."""
    by_weights("x.safetensors.index.json")(m)
    (m / "config.json").rename(m / "config.4.0.0.json")
    changed(m / "config.json", model_type="alpha", configuration_files=["config.4.0.0.json"])


def by_opened_file(name: str, **settings: Any) -> Callable[[Path], None]:
    """Files that tokenizers open where they are, from the current folder on."""

    def plant(m: Path) -> None:
        (m.parent / "private.txt").write_text("secret")
        changed(m / name, **settings)

    return plant


def by_link(name: str) -> Callable[[Path], None]:
    def plant(m: Path) -> None:
        (m.parent / "outside").mkdir()
        file = m.parent / "outside" / name
        file.write_text((m / name).read_text() if (m / name).is_file() else "{}")
        (m / name).unlink(missing_ok=True)
        (m / name).symlink_to(file)

    return plant


RELEASE = ("release", "m", "o")
PATHS = [
    *[(by_extends(name), command) for command in (SOLVE, INFO)
      for name in ("../outside/base", "{}/outside/base.yaml", "../../{}/outside/base")],
    *[(by_index(name), command) for command in (SOLVE, INFO, RELEASE)
      for name in ("../outside/model.safetensors", "{}/outside/model.safetensors")],
    (by_torch_index, SOLVE),
    (by_tokenizer_file, SOLVE),
    *[(by_weights(name), command) for command in (SOLVE, INFO, RELEASE)
      for name in ("x.safetensors.index.json", "linked/w.safetensors")],
    (by_configuration, RELEASE),
    (by_opened_file("tokenizer_config.json", merges="private.txt"), SOLVE),
    (by_opened_file("tokenizer_config.json", sp_model_kwargs={"model_file": "private.txt"}), SOLVE),
    (by_opened_file("tokenizer_config.json", init_inputs=["private.txt"]), SOLVE),
    (by_opened_file("special_tokens_map.json", tokenizer_file="private.txt"), SOLVE),
    *[(by_link(name), RELEASE) for name in ("first_look.json", "chat_template.jinja", "vocab.json",
                                            "trainer_state.json", "recipe.yaml", "config.json")],
    (by_link("chat_template.jinja"), ("convert", "m", "o")),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "command"), PATHS)
def test_a_folder_names_and_links_to_nothing_outside_of_it(plant, command, here):
    """Nor where its code is trusted."""
    plant(here / "m")
    for trust in ([], ["--trust-remote-code"]):
        assert re.search("outside of (it|the folder)", hf_alpha(*command, *trust).error)
    assert not (here / "o").exists() and not (here / "RAN").exists()


def test_a_recipe_extends_those_in_its_folder_alone(here):
    """Not one of the package, for which a file of that name may lie here."""
    changed(here / "m" / "base.yaml", extends="parts/base")
    (here / "m" / "parts").mkdir()
    changed(here / "m" / "parts" / "base.yaml", check="evil:check")
    changed(here / "m" / "recipe.yaml", extends="base")
    assert "evil:check" in hf_alpha(*SOLVE).error
    changed(here / "m" / "recipe.yaml", extends="propositional/debug")
    assert "no such recipe in m" in hf_alpha(*SOLVE).error
    changed(here / "m" / "recipe.yaml", extends="base")
    changed(here / "m" / "parts" / "base.yaml", extends="../../mine")
    assert "outside" in hf_alpha(*SOLVE).error


TEST = ("evaluate", "m", "--covariance", 0, "--out", "r")


def test_a_strangers_test_data_is_in_the_folder(here, hub, monkeypatch):
    """Nothing of the Hub is read with the user's token, from inside of the folder neither."""
    lines = (here / "pairs.jsonl").read_bytes()
    hub.append("dataset", "me/private", {"train.jsonl": lines})
    private = {"path": "me/private", "split": "train"}
    for place in ("pairs.jsonl", "../pairs.jsonl", f"{here}/pairs.jsonl", "me/private", private):
        changed(here / "m" / "recipe.yaml", data={"train": "pairs.jsonl", "test": place})
        assert "--data" in hf_alpha(*TEST).error
        assert "--data" in hf_alpha(*TEST, "--trust-remote-code").error
        monkeypatch.chdir(here / "m")
        assert "--data" in hf_alpha("evaluate", ".", *TEST[2:]).error
        monkeypatch.chdir(here)
    assert not (here / "r").exists()
    done = hf_alpha(*EVALUATE)  # by the user's own word
    assert done.code == 0, done.err
    assert "renamings of training's" not in done.out  # for which the user's file was read


def test_a_strangers_test_data_holds_no_links_out_of_the_folder(here):
    """Neither does a dataset; a link to the folder itself is the user's own word."""
    (here / "m" / "data").mkdir()
    (here / "m" / "data" / "test.jsonl").symlink_to(here / "pairs.jsonl")
    changed(here / "m" / "recipe.yaml", data={"train": "pairs.jsonl", "test": "data"})
    said = r"data/test\.jsonl is a link to .*, outside of the folder"
    assert re.search(said, hf_alpha(*TEST).error)
    given = ("evaluate", "m", "--data", "m/data", *TEST[2:])
    assert re.search(said, hf_alpha(*given).error)
    assert not (here / "r").exists()
    (here / "m" / "data" / "test.jsonl").unlink()
    shutil.copy("pairs.jsonl", "m/data/test.jsonl")
    (here / "mine").symlink_to(here / "m")
    (here / "rows").symlink_to(here / "m" / "data")
    done = hf_alpha("evaluate", "mine", "--data", "rows", *TEST[2:])
    assert done.code == 0, done.err


def test_data_in_the_folder_is_taken(here):
    shutil.copy("pairs.jsonl", "m/test.jsonl")
    test = {"path": "test.jsonl", "split": "train"}
    changed(here / "m" / "recipe.yaml", data={"train": "test.jsonl", "test": test})
    done = hf_alpha(*TEST)
    assert done.code == 0 and "renamings of training's" in done.out, done.err


def test_data_of_what_this_user_trained_is_where_the_recipe_says(here):
    """It names no code, and is remembered all the same; a copy is not."""
    own = ("checkpoint=null", f"model={json.dumps(SIZES)}", "data.test=pairs.jsonl",
           f"symbols={json.dumps(RULES)}")  # fmt: skip
    assert hf_alpha(*TRAIN, *own).code == 0
    done = hf_alpha("evaluate", "mine", *TEST[2:])
    assert done.code == 0 and "renamings of training's" in done.out, done.err
    shutil.copytree("mine", "copied")
    assert "--data" in hf_alpha("evaluate", "copied", *TEST[2:]).error
    assert hf_alpha("release", "mine", "released").code == 0  # is this user's as well
    assert hf_alpha("evaluate", "released", *TEST[2:5], "r2").code == 0
    assert hf_alpha("release", "copied", "theirs").code == 0
    assert "--data" in hf_alpha("evaluate", "theirs", *TEST[2:5], "r3").error


def test_patterns_of_a_quantization_have_a_limit_of_time(here, monkeypatch):
    monkeypatch.setattr(timed_patterns, "LIMIT", 0.5)
    slow = {"quant_method": "fp8", "modules_to_not_convert": ["re:(?:[a-z_.0-9]*)*X"]}
    changed(here / "m" / "config.json", quantization_config=slow)
    with pytest.raises(
        CheckpointError, match=r"config\.json: quantization_config\.modules_to_not_"
    ):
        load_checkpoint("m")


ELSEWHERE = {
    "a path": "{}/else/mod.Config",
    "a path as a repository": "{}/else--mod.Config",
    "a repository": "evil/repo--mod.Config",
    "above": "../else/mod.Config",
    "a link": "linked.Config",
    "a link to a folder": "else/mod.Config",
    "an import of a link": "importing.Config",
}


@pytest.mark.parametrize("name", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_trusted_code_lies_in_the_folder(file, name, here):
    (here / "else").mkdir()
    shutil.copy("wicked.py", "else/mod.py")
    if "link" in name or "import" in name:
        (here / "m" / "linked.py").symlink_to(here / "else" / "mod.py")
    if name.startswith("else"):
        (here / "m" / "else").symlink_to(here / "else")
    (here / "m" / "importing.py").write_text("from .linked import Config\n")
    by_config(here / "m")
    changed(here / "m" / "config.json", auto_map={"AutoConfig": "wicked.Config"})
    names = {"AutoTokenizer": [None, name]} if file.startswith("tok") else {"AutoConfig": name}
    changed(here / "m" / file, auto_map=names)
    with trusting("m"), pytest.raises(OutsideError, match=r"outside of (it|the folder)"):
        load_config("m")
    assert not (here / "RAN").exists()


SCORES = ("evaluate", "classes", "--data", "classes/rows.jsonl", "--out", "mine")
WRITTEN = [
    *[(("transduce", "--lexicon", "words.tsv", "--save", "mine"), name)
      for name in ("lexicon.tsv", "transducer.json")],
    (("transduce", "fire hose", "--lexicon", "words.tsv", "--svg", "mine/a.svg"), "a.svg"),
    *[((*EVALUATE[:-1], "mine"), name)
      for name in ("m/report.json", "m/records.jsonl", "table.txt", "heatmap.png")],
    *[(SCORES, name) for name in ("metrics.json", "predictions.jsonl", "report.txt")],
    *[(TRAIN, name) for name in ("recipe.yaml", "first_look.json", "trained_rows.npy",
                                 "config.json", "model.safetensors")],
    *[(("quickstart", "--output", "mine", "--steps", 1), name)
      for name in ("train.jsonl", "test.jsonl", "swap.yaml", "table.txt")],
    ((*EVALUATE, "--card"), "../m/README.md"),
    (("solve", "--file", "pairs.jsonl", "--model", "m", "--out", "mine/a.jsonl"), "a.jsonl"),
    *[(("convert", "m", "mine"), "config.json"), (("release", "m", "mine"), "config.json")],
    (("generate-data", "mine", "--task", "propositional"), "a.txt"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), WRITTEN, ids=name_of)
def test_no_command_writes_over_a_file_of_the_user(command, name, here, transducer):
    (here / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
    (here / "mine" / name).write_text("my own: text\n")
    written(here / "classes" / "rows.jsonl", [{"source": "swap x", "target": "yes"}])
    done = hf_alpha(*command)
    assert done.code == 2 and "Traceback" not in done.err, done
    assert re.search("already|damaged|exists|by hand|not empty|was changed", done.err), done
    assert (here / "mine" / name).read_text() == "my own: text\n"


def test_a_command_writes_over_what_it_wrote(here, transducer):
    for command in ((*WRITTEN[0][0],), (*SCORES,), (*EVALUATE[:-1], "again", "--card")):
        written(here / "classes" / "rows.jsonl", [{"source": "swap x", "target": "yes"}])
        for _ in range(2):
            assert (done := hf_alpha(*command)).code in (0, 1), done
    (here / "mine" / "lexicon.tsv").write_text("mine\tOWN\n")
    assert "no transducer was saved with it" in hf_alpha(*WRITTEN[0][0]).error


def test_trust_does_not_reach_further_than_code(here):
    by_link("first_look.json")(here / "m")
    with pytest.raises(OutsideError, match=r"first_look\.json is a link to"):
        load_checkpoint("m", trust_remote_code=True)
