"""What each way to install the package takes: seconds, megabytes, and the first import.

    python benchmarks/installs.py --python python3.11 --python python3.12 --out installs
    python benchmarks/installs.py --python 'chroot /srv/forky python3.14' --ways alias

Each way is installed into a fresh environment. Seconds are those of a processor, whatever else the
machine does and however fast it downloads. Megabytes are those of site-packages without pip, those
of torch and its CUDA libraries apart: pip takes the build that its configuration and the platform
offer. An import is a whole process, less the start of the interpreter, the fastest of seven. An
interpreter behind `chroot FOLDER` gets a copy of the checkout in that folder. With `--out`, what
the result has is not measured again.
"""

import os
import resource
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure

WAYS = {
    "alias": ("--group alias", "--no-deps .", "from hf_alpha import CanonicalTransport"),
    "core": ("-c constraints.txt .", "", "from hf_alpha import generate_answers"),
    "test": ("-c constraints.txt .[test]", "", "from hf_alpha import generate_answers"),
}
"""By name: what pip installs, what it installs then, and the import that is timed."""
TORCH = ("torch", "nvidia", "triton", "torchgen", "functorch", "cuda")
"""What names of folders in site-packages begin with."""
IMPORTS = 7
CHECKOUT = (
    *("hf_alpha", "model_cards", "tokenizer", "training"),
    *("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "hatch_build.py"),
)


class Interpreter:
    """A Python with which environments are made, perhaps behind `chroot FOLDER`."""

    def __init__(self, command: str) -> None:
        """Take the command that starts it."""
        self.command = shlex.split(command)
        is_jailed = self.command[0] == "chroot"
        self.prefix = self.command[:2] if is_jailed else []
        self.root = Path(self.command[1]).resolve() if is_jailed else Path("/")

    def version(self) -> str:
        """Python's version."""
        code = "import platform; print(platform.python_version())"
        return self.run(*self.command[len(self.prefix) :], "-c", code, cwd="/")

    def run(self, *arguments: str, cwd: str, **variables: str) -> str:
        """Run a program of this interpreter's world, with `cwd` as that world names it."""
        script = shlex.join(["cd", cwd]) + " && " + shlex.join(arguments)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        done = subprocess.run(
            [*self.prefix, "/bin/sh", "-c", script], env=environment | variables,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{script}\n{done.stdout[-3000:]}")
        return done.stdout.strip()

    def seconds(self, *arguments: str, **where: str) -> float:
        """How long a processor works on that."""
        start = processor_seconds()
        self.run(*arguments, **where)
        return processor_seconds() - start


def processor_seconds() -> float:
    """Of all processes that have ended, those that they started among them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def installed(interpreter: Interpreter, way: str, folder: str) -> dict[str, Any]:
    """Install once into `folder`, as the interpreter names it; what it took."""
    first, then, imported = WAYS[way]
    python = f"{folder}/environment/bin/python"
    where = {"cwd": f"{folder}/checkout"}
    start = interpreter.command[len(interpreter.prefix) :]
    interpreter.run(*start, "-m", "venv", f"{folder}/environment", **where)
    interpreter.run(python, "-m", "pip", "install", "-q", "--no-cache-dir", "-U", "pip", **where)
    site = interpreter.run(python, "-c", "import site; print(site.getsitepackages()[0])", **where)
    place = interpreter.root / site.lstrip("/")
    before = sum(sizes(place).values())
    pip = (python, "-m", "pip", "install", "-q")
    took = sum(
        interpreter.seconds(*pip, *shlex.split(part), **where) for part in (first, then) if part
    )
    size = sizes(place)
    torch = sum(n for name, n in size.items() if name.startswith(TORCH))
    starts = {
        code: min(interpreter.seconds(python, "-c", code, **where) for _ in range(IMPORTS))
        for code in ("pass", imported)
    }
    return {
        "seconds": took,
        "MB": (sum(size.values()) - before - torch) / 1e6,
        "torch, MB": torch / 1e6,
        "import, s": starts[imported] - starts["pass"],
    }


def sizes(folder: Path) -> dict[str, int]:
    """Bytes of each entry of a folder."""
    return {
        entry.name: sum(
            path.lstat().st_size for path in [entry, *entry.rglob("*")] if not path.is_dir()
        )
        for entry in folder.iterdir()
    }


def measured(interpreter: Interpreter, way: str) -> dict[str, Any]:
    """What an installation takes."""
    temporary = interpreter.root / "tmp" if interpreter.prefix else None
    with tempfile.TemporaryDirectory(dir=temporary) as name:
        folder = Path(name)
        (folder / "checkout").mkdir()
        for part in CHECKOUT:
            source, target = measure.ROOT / part, folder / "checkout" / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("*.pyc")
                shutil.copytree(source, target, symlinks=True, ignore=ignored)
            else:
                shutil.copyfile(source, target)
        return installed(interpreter, way, f"/{folder.relative_to(interpreter.root)}")


def show(results: Sequence[dict[str, Any]]) -> str:
    """A row for each way and interpreter."""
    rows = [
        [f"`{way}`", found["version"], f"{found['seconds']:.0f}", f"{found['MB']:,.0f}",
         f"{found['torch, MB']:,.0f}", f"{found['import, s']:.2f}"]
        for way in WAYS
        for found in results
        if found["way"] == way
    ]  # fmt: skip
    columns = ["what is installed", "Python", "seconds", "MB without torch", "torch, MB",
               "first import, s"]  # fmt: skip
    return measure.table(columns, rows, words=["Python"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and keep."""
    parser = measure.parser_of(__doc__)
    parser.add_argument("--python", action="append", help="an interpreter; several times")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args(arguments)
    kept = measure.kept(options.out) if options.out else None
    results: list[dict[str, Any]] = (kept or {"installations": []})["installations"]
    for way in options.ways:
        for interpreter in map(Interpreter, options.python or ["python3"]):
            done = {(one["way"], one["version"]) for one in results}
            if (way, version := interpreter.version()) in done:
                continue
            results.append({"way": way, "version": version} | measured(interpreter, way))
            measure.keep(show(results), {"installations": results}, options.out, arguments)
    print(show(results))


if __name__ == "__main__":
    main()
