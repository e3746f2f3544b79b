"""The checklist of a release: every step that has to pass, and a table of what did.

    python .ci/release.py           in a clean checkout, where pip install -e '.[test]' was done
    python .ci/release.py cards     the steps of these names alone: versions, checks, wheel, ...

It publishes nothing: the tag and the upload (`twine upload dist/*`) are left to a person.
"""

import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PYTHON = Path(sys.executable)
PUSHES = """
import sys
from pathlib import Path
from hf_alpha.hub.push import push

for folder in map(Path, sys.argv[1:]):
    push(folder, f"me/{folder.name}", dry_run=True)
"""


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command without a view of the checkout; return what it says.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}")
    return done.stdout


def versions() -> str:
    """Nothing is left to commit; package, citation and changelog have the same version."""
    if changed := run("git", "status", "--porcelain"):
        raise RuntimeError(f"not committed:\n{changed}")
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    named = {"CITATION.cff": citation, "CHANGELOG.md": newest}
    wrong = {
        file: found and found[1]
        for file, found in named.items()
        if not found or found[1] != VERSION
    }
    if wrong:
        raise RuntimeError(f"pyproject.toml has {VERSION}, others: {wrong}")
    return VERSION


def checks() -> str:
    """What CI runs, in an environment of its own."""
    said = run(ROOT / ".ci" / "run")
    passed = re.findall(r"(\d+ passed)", said)
    return f"{passed[0]}, and the rest of .ci/run" if passed else said[-200:]


def wheel() -> str:
    """README's first command, from a wheel that was built of the source distribution."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        run(PYTHON, "-m", "build", "-o", folder / "dist", ROOT)
        (built,) = (folder / "dist").glob("*.whl")
        (sources,) = (folder / "dist").glob("*.tar.gz")
        run(PYTHON, "-m", "venv", folder / "environment")
        python = folder / "environment" / "bin" / "python"
        install = (python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt")
        run(*install, f"{built}[train,logic]", cwd=folder)
        run(python, "-m", "pip", "check", cwd=folder)
        said = run(python.with_name("hf-alpha"), "quickstart", cwd=folder)
        rows = [line for line in said.splitlines() if re.match(r"\W*relational\b.*\d", line)]
        sizes = [f"{file.name} {file.stat().st_size / 1e6:.1f} MB" for file in (built, sources)]
        return "; ".join([*sizes, *(" ".join(row.split()) for row in rows[-1:])])


def cards() -> str:
    """Each released folder would be uploaded as it is: it loads, has its card, and no secret."""
    folders = [config.parent for config in (ROOT / "model_cards").glob("**/config.json")]
    run(PYTHON, "-c", PUSHES, *folders)
    return f"{len(folders)} folders"


def tables() -> str:
    """Each figure of a page, and each folder's code, is what its command makes now."""
    return _tests("tests/test_figures.py", "tests/test_model_cards.py")


def folders() -> str:
    """Folders of earlier versions load and answer as they did; nothing but them is needed."""
    return _tests("tests/test_interface.py", "tests/test_trust.py", "tests/hub")


def _tests(*files: str) -> str:
    said = run(PYTHON, "-m", "pytest", "-q", "-m", "not gpu", *files)
    return said.rstrip().splitlines()[-1]


STEPS: tuple[Callable[[], str], ...] = (versions, checks, wheel, cards, tables, folders)


def main() -> int:
    """Run the steps, all even if one fails; print a table; return the exit status."""
    wanted = sys.argv[1:] or [step.__name__ for step in STEPS]
    if unknown := {*wanted} - {step.__name__ for step in STEPS}:
        print(f"no step is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    failed = 0
    print("| step | minutes | result |\n| --- | ---: | --- |")
    for step in STEPS:
        if step.__name__ not in wanted:
            continue
        start = time.monotonic()
        try:
            result = step()
        except RuntimeError as error:
            failed, result = failed + 1, "**failed**"
            print(error, file=sys.stderr)
        minutes = (time.monotonic() - start) / 60
        print(f"| {step.__name__} | {minutes:.1f} | {result} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
