"""The wheel, installed where no checkout can be seen, is enough for a user's first command."""

import doctest
import inspect
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import tomllib
import urllib.request
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from public_names import public_names

import hf_alpha
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task
from hf_alpha.tasks.registry import built_in_tasks
from hf_alpha.wings import LIBRARIES, how_to_install, missing_library, optional

ROOT = Path(__file__).resolve().parents[1]
DATA_FOLDERS = ("tokenizer", "training", "model_cards")
LARGE = "reactions-relational"
"""Of the repository alone."""
PRELUDE = """
import torch
import transformers
import hf_alpha
from hf_alpha import *
from hf_alpha.folnet import *
from hf_alpha.geometric import *
from hf_alpha.transduction import *

model, tokenizer = load_checkpoint("model_cards/ltl-relational")
host: transformers.PreTrainedModel
host_tokenizer: transformers.PreTrainedTokenizerFast
"""
USER = """
answers = generate_answers(model, tokenizer, ["a & b"], num_beams=1)
first: str | None = str(answers[0][0]) if answers[0] else None
verdict: Verdict = TextTask({"name": "[a-z]"}).check("a", "a", target="a")
right: bool = verdict.is_correct
seconds: float = solve("a & b").seconds
loaded = transformers.AutoTokenizer.from_pretrained("model_cards/ltl-relational")
generate_answers(model, loaded, ["a & b"])
config: AlphaConfig = AlphaConfig.for_tokenizer(loaded, d_model=24)
score: float | None = hf_alpha.alpha_covariance(model, tokenizer, ["a & b"]).mean
"""
WRONG = """
SymbolConfig(encoding=3)
generate_answers(model, tokenizer, ["a"], beams=1)
TextTask({}).check("a")
solve("a & b").second
"""


def run(*command: str | Path, cwd: Path, timeout: int = 600) -> str:
    """Runs a command as a user would, without this process's view of the checkout."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def shipped(folder: Path) -> set[str]:
    """The files below a folder, relative to the checkout."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("wheel")
    # Without isolation: the build back end is a test dependency, nothing has to be downloaded.
    run(sys.executable, "-m", "build", "--no-isolation", "-o", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


@dataclass
class Installed:
    """An environment that has the wheel, and an empty folder to work in."""

    prefix: Path
    cwd: Path

    @property
    def python(self) -> Path:
        return self.prefix / "bin" / "python"


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    prefix = tmp_path_factory.mktemp("environment")
    venv.create(prefix, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(prefix)}))
    # The dependencies are borrowed from this environment instead of being downloaded again. A
    # plain path is not searched for .pth files, so this environment's own hf_alpha stays hidden.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--python", prefix / "bin" / "python")
    cwd = tmp_path_factory.mktemp("elsewhere")
    run(*pip, "install", "--no-deps", "--no-index", "--ignore-installed", wheel, cwd=cwd)
    return Installed(prefix, cwd)


@pytest.mark.slow  # .ci/run has it
def test_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path):
    """Of data what an installed package reads: no code beside models, no pictures."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    content = {name for name in names if ".dist-info/" not in name}
    needed = {task.released_model for task in map(get_task, built_in_tasks())}
    data = {
        name
        for folder in DATA_FOLDERS
        for name in shipped(ROOT / folder)
        if not name.endswith((".py", ".png"))
        if (parts := name.split("/"))[1] != "small" or parts[2] in needed
        if parts[1] != LARGE
    }
    assert content == shipped(ROOT / "hf_alpha") | {f"hf_alpha/_data/{name}" for name in data}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert wheel.stat().st_size < 20e6


@pytest.mark.slow  # .ci/run has it
def test_the_source_distribution_has_the_code_once(built: Path):
    """And not below the links of data folders, of which packing would follow the first alone."""
    (sources,) = built.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    code = [name for name in names if name.endswith("/modeling_alpha.py")]
    assert code == ["hf_alpha/modeling/modeling_alpha.py"]
    assert shipped(ROOT / "hf_alpha") <= names
    assert not [name for name in names if name.startswith(f"model_cards/{LARGE}/")]
    assert sources.stat().st_size < 20e6


def test_default_checkpoints_stay_small():
    """Each released model under model_cards/ is committed; those of 6 MB at most are shipped."""
    for name, folder in released_models().items():
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= (20e6 if name == LARGE else 6e6), f"{name} takes {size / 1e6:.1f} MB"


@pytest.mark.slow  # .ci/run has it
def test_installed_package_is_its_own(installed: Installed):
    script = (
        "import hf_alpha; from hf_alpha.resources import resource_path\n"
        "print(hf_alpha.__file__)\n"
        "for kind in ('tokenizer', 'training', 'model_cards'): print(resource_path(kind))"
    )
    lines = run(installed.python, "-c", script, cwd=installed.cwd).splitlines()
    assert len(lines) == 4
    for line in lines:
        assert Path(line).is_relative_to(installed.prefix), f"{line} is not in the new environment"


@pytest.fixture(scope="session")
def made(installed: Installed) -> Path:
    """The folder of a model that the quickstart of the wheel has made."""
    command = installed.prefix / "bin" / "hf-alpha"
    options = ("--steps", "1", "--samples", "1", "--output", "out")
    table = run(command, "quickstart", *options, cwd=installed.cwd, timeout=300)
    for row in ("relational", "canonical", "learned", "copy of the input"):
        assert row in table
    assert list((installed.cwd / "out").rglob("*.png"))
    return installed.cwd / "out" / "relational"


@pytest.mark.slow  # .ci/run has it
def test_quickstart_runs_from_the_wheel(made: Path):
    for name in ("modeling_alpha.py", "tokenization_text.py"):
        assert (made / name).read_bytes() == (ROOT / "hf_alpha" / "modeling" / name).read_bytes()


@pytest.mark.slow  # of the checkout, tests/test_model_cards.py shows it
def test_folders_that_the_wheel_made_need_no_package(installed: Installed, made: Path):
    script = (
        "import sys; sys.modules['hf_alpha'] = None\n"
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
        f"folder = {str(made)!r}\n"
        "tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)\n"
        "model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)\n"
        "batch = tokenizer(['swap x y : F x y'], return_tensors='pt')\n"
        "print(type(model), tokenizer.batch_decode(model.generate(**batch), names=batch.names))"
    )
    assert "AlphaForConditionalGeneration" in run(installed.python, "-c", script, cwd=installed.cwd)


@pytest.mark.slow  # it downloads what the package needs
def test_a_minimal_install_loads_and_generates(wheel: Path, tmp_path: Path):
    """And names the extra that something else needs."""
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt")
    run(*pip, wheel, cwd=tmp_path, timeout=1800)
    script = (
        "import hf_alpha\n"
        "from hf_alpha.resources import released_model\n"
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
        "folder = released_model('propositional-relational')\n"
        "tokenizer = AutoTokenizer.from_pretrained(folder)\n"
        "model = AutoModelForSeq2SeqLM.from_pretrained(folder)\n"
        "print(hf_alpha.generate_answers(model, tokenizer, ['rain & !snow'], progress=False))\n"
        "for name in hf_alpha.__all__:\n"
        "    try: getattr(hf_alpha, name)\n"
        "    except ImportError as error: print(name, error)\n"
        "try: hf_alpha.solve('rain & !snow')\n"
        "except ImportError as error: print('solve', error)"
    )
    answers, *missing = run(python, "-c", script, cwd=tmp_path, timeout=600).splitlines()
    assert answers == "[['rain 1 snow 0']]"
    assert missing == [
        *(f"{name} datasets is not installed: pip install 'hf_alpha[train]'"
          for name in ("alpha_covariance", "evaluate", "AlphaTrainer")),
        "solve python-sat is not installed: pip install 'hf_alpha[logic]'",
    ]  # fmt: skip
    said = run(python, "-m", "hf_alpha", "--version", cwd=tmp_path, timeout=300)
    assert said.startswith("hf_alpha ")
    run(python, "-m", "pip", "check", cwd=tmp_path)


@pytest.mark.slow  # .ci/run has it; it downloads some 30 MB
def test_names_before_a_model_need_the_wheel_without_torch(wheel: Path, tmp_path: Path):
    """The group `alias` is enough for `certify` and the gateway; the rest says what it lacks."""
    venv.create(tmp_path / "environment", with_pip=True, upgrade_deps=True)
    python = tmp_path / "environment" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "-q")
    run(*pip, "--group", f"{ROOT / 'pyproject.toml'}:alias", cwd=tmp_path, timeout=1800)
    run(*pip, "--no-deps", wheel, cwd=tmp_path)
    chat = {"messages": [{"role": "user", "content": "What does get_weather do?"}]}
    chat["tools"] = [{"type": "function", "function": {"name": "get_weather"}}]
    (tmp_path / "chats.jsonl").write_text(json.dumps(chat))
    program = (python, "-m", "hf_alpha")
    names = ("--names", "{rule: tools}")
    said = run(*program, "certify", "chats.jsonl", *names, cwd=tmp_path)
    assert said.startswith("1 text, 1 name,") and ": 0 reach the model otherwise" in said
    assert "torch is not installed" in run(*program, "info", cwd=tmp_path)
    command = [*program, "serve", "--upstream", "http://localhost:9/v1", *names, "--port", "0"]
    gateway = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    assert gateway.stdout is not None
    try:
        address = gateway.stdout.readline().split()[0].removesuffix("/v1")
        with urllib.request.urlopen(f"{address}/health", timeout=30) as answer:
            assert json.load(answer) == {"status": "ok", "spelled": 0}
    finally:
        gateway.terminate()
        gateway.communicate(timeout=30)
    done = subprocess.run([*program, "train", "text/small"], capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        done.stderr.startswith("error: ")
        and "is not installed: pip install hf_alpha" in done.stderr
    )


def example(name: str, value: Any) -> str:
    """The example of a name, as a function."""
    parts = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
    source = "".join(part.source for part in parts)
    return f"def example_{name.replace('.', '_')}() -> None:\n" + textwrap.indent(source, "    ")


@pytest.mark.slow  # mypy reads torch and Transformers
def test_a_users_code_is_type_checked(installed: Installed):
    """Against the wheel: the examples of all names and what is right pass, mistakes are seen."""
    right = PRELUDE + "\n".join(example(*each) for each in public_names().items()) + USER
    (installed.cwd / "user.py").write_text(right + WRONG)
    command = [sys.executable, "-m", "mypy", "--python-executable", installed.python, "user.py"]
    strict = ["--strict", "--ignore-missing-imports", "--untyped-calls-exclude=transformers"]
    done = subprocess.run(
        [*map(str, command), *strict],
        cwd=installed.cwd, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    first = right.count("\n") + 1
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert lines == set(range(first + 1, first + 5)), done.stdout


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = ("docs", "logic", "ltl", "test", "train")
    wanted = [*project["dependencies"], *(line for name in named for line in extras[name])]
    wanted = [line for line in wanted if not line.startswith("hf_alpha")]
    pinned = {
        canonical(line.split("==")[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    }
    assert {canonical(line) for line in wanted} <= pinned


def test_each_extra_that_something_needs_is_named_where_it_is_missing():
    """`LIBRARIES` has what pyproject.toml has, but for extras that no module needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    ours = {
        (canonical(line), name)
        for name, lines in extras.items()
        if name not in ("docs", "test")
        for line in lines
        if not line.startswith("hf_alpha")
    }
    assert {(canonical(package), extra) for package, extra in LIBRARIES.values()} == ours
    imported = ModuleNotFoundError("No module named 'pysat'", name="pysat.solvers")
    command = "python-sat is not installed: pip install 'hf_alpha[logic]'"
    assert missing_library(imported) == command
    part = ModuleNotFoundError("none", name="hf_alpha.none")
    assert (missing_library(part) or "").startswith("hf_alpha.none is not in this copy")
    assert missing_library(ModuleNotFoundError("none", name="nowhere")) is None
    assert "Python before 3.14" in (how_to_install("spot") or "")
    with pytest.raises(ImportError, match=re.escape(command)), optional():
        raise ImportError("cannot be imported") from imported


def test_the_oldest_versions_are_pins_that_pyproject_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for group in extras.values() for line in group)]
    wanted = {canonical(line): Requirement(line) for line in lines if "hf_alpha" not in line}
    pins = run(sys.executable, ROOT / ".ci" / "oldest.py", cwd=ROOT).split()
    assert {canonical(pin) for pin in pins} == wanted.keys()
    for pin in pins:
        allowed = wanted[canonical(pin)].specifier
        version = pin.split("==")[1]
        assert allowed.contains(version, prereleases=True), pin
        below = [part for part in allowed if part.operator in (">=", "==")]
        assert [part.version for part in below] == [version], pin


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for key, ours in (("title", "name"), ("version", "version"), ("license", "license")):
        assert citation[key] == project[ours]
    assert hf_alpha.__version__ == project["version"]
    assert f"version = {{{project['version']}}}" in (ROOT / "docs" / "paper.md").read_text("utf-8")
    for work in (citation, *citation["references"]):
        assert work["title"] and work["authors"]
        assert all("name" in author or "family-names" in author for author in work["authors"])


def canonical(requirement: str) -> str:
    """`PyYAML>=6.0` -> `pyyaml`."""
    name = requirement.split(";")[0]
    for mark in "<>=!~[ ":
        name = name.split(mark)[0]
    return name.lower().replace("_", "-").replace(".", "-")
