"""The wheel, installed where no checkout can be seen, is enough for a user's first command."""

import gzip
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from hf_alpha.resources import released_models

ROOT = Path(__file__).resolve().parents[1]
DATA_FOLDERS = ("tokenizer", "training", "model_cards")


def run(*command: str | Path, cwd: Path, timeout: int = 120) -> str:
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


def test_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    content = {name for name in names if ".dist-info/" not in name}
    code = shipped(ROOT / "hf_alpha")
    data = {f"hf_alpha/_data/{name}" for folder in DATA_FOLDERS for name in shipped(ROOT / folder)}
    assert content == code | data
    assert {name.split("/")[0] for name in content} == {"hf_alpha"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_code_in_data_folders_is_in_the_distributions(built: Path, wheel: Path):
    """Links of the checkout: files in the wheel, links in the source distribution that hold."""
    code = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for folder in (ROOT / "model_cards", ROOT / "tokenizer")
        for path in folder.rglob("*.py")
    }
    assert code
    with zipfile.ZipFile(wheel) as archive:
        assert {name: archive.read(f"hf_alpha/_data/{name}") for name in code} == code
    (sources,) = built.glob("*.tar.gz")
    # Unpacked before: a link is looked for anew in what is packed, from its beginning.
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(sources.read_bytes()))) as archive:
        top = sources.name.removesuffix(".tar.gz")
        assert {name: archive.extractfile(f"{top}/{name}").read() for name in code} == code


def test_default_checkpoints_stay_small():
    """Each released model under model_cards/ is committed and shipped: 6 MB at most."""
    for name, folder in released_models().items():
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        assert size <= 6e6, f"{name} takes {size / 1e6:.1f} MB"


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


def test_quickstart_runs_from_the_wheel(made: Path):
    for name in ("modeling_alpha.py", "tokenization_text.py"):
        assert (made / name).read_bytes() == (ROOT / "hf_alpha" / "modeling" / name).read_bytes()


@pytest.mark.slow  # of the checkout, tests/test_model_cards.py shows it
def test_folders_of_the_wheel_need_no_package(installed: Installed, made: Path):
    """By the code in the folders, those that were just made and those of the wheel."""
    (released,) = installed.prefix.rglob("ltl-streams-small/config.json")
    script = (
        "import sys; sys.modules['hf_alpha'] = None\n"
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
        "formulas, texts = ['request & !grant', '&a!b'], ['swap x y : F x y', 'swap a b : G b a']\n"
        f"for folder, asked in ({str(made)!r}, texts), ({str(released.parent)!r}, formulas):\n"
        "    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)\n"
        "    model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)\n"
        "    batch = tokenizer(asked, return_tensors='pt', padding=True)\n"
        "    out = model.generate(**batch, num_beams=3)\n"
        "    print(type(model), tokenizer.batch_decode(out, names=batch.names))"
    )
    lines = run(installed.python, "-c", script, cwd=installed.cwd).splitlines()
    assert len(lines) == 2 and all("AlphaForConditionalGeneration" in line for line in lines)
    assert "request" in lines[1] or "grant" in lines[1]


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = ("docs", "ltl", "tensorboard", "test")
    wanted = [*project["dependencies"], *(line for name in named for line in extras[name])]
    wanted = [line for line in wanted if not line.startswith("hf_alpha")]
    pinned = {
        canonical(line.split("==")[0])
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    }
    assert {canonical(line) for line in wanted} <= pinned


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
    for work in (citation, *citation["references"]):
        assert work["title"] and work["authors"]
        assert all("name" in author or "family-names" in author for author in work["authors"])


def test_hooks_before_a_commit_are_steps_of_ci():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    steps = (ROOT / ".ci" / "run").read_text()
    assert len(hooks) == 3
    for hook in hooks:
        assert f'step "{hook["name"]}' in steps


def canonical(requirement: str) -> str:
    """`PyYAML>=6.0` -> `pyyaml`."""
    name = requirement.split(";")[0]
    for mark in "<>=!~[ ":
        name = name.split(mark)[0]
    return name.lower().replace("_", "-").replace(".", "-")


def test_ci_runs_the_command_of_the_readme():
    """The command that CI takes from the README is there, once, as CI looks for it."""
    assert re.findall(r"pip install .*pytest", (ROOT / "README.md").read_text()) == [
        "pip install -e '.[test]' -c constraints.txt && pytest"
    ]
