"""Plant bugs in a copy of the repository, one at a time, and see whether the tests notice.

Run by hand: `python tests/mutation.py`, or with words that the places have to contain:
`python tests/mutation.py symbols.py generate.py`. Writes `mutation.json` beside the report on
screen (`--out`). First the tests have to pass without a bug. A bug whose text the code no longer
has exactly once is an error: write it anew.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import datasets  # noqa: F401  imported once, for all the forks that run tests
import hypothesis  # noqa: F401
import pytest
import torch  # noqa: F401
import transformers.modeling_utils  # noqa: F401
from file_trees import copy_tree

ROOT = Path(__file__).resolve().parents[1]
BUGS = ROOT / "tests" / "planted_bugs.json"
TIMEOUT = 900
"""Seconds for the tests of a bug, after which it counts as noticed: it made something hang."""


class Mutant(NamedTuple):
    """A bug: `old` becomes `new` in a file of the package; `tests` are arguments of pytest."""

    file: str
    old: str
    new: str
    tests: str


def mutants() -> list[Mutant]:
    """Return all bugs, those of `planted_bugs.json`."""
    return [Mutant(**bug) for bug in json.loads(BUGS.read_text(encoding="utf-8"))]


def main() -> int:
    """Run; the exit code is 0 if every bug was noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only bugs in files whose name holds one of these")
    parser.add_argument("--out", type=Path, default=Path("mutation.json"))
    options = parser.parse_args()
    chosen = [m for m in mutants() if not options.words or any(w in m.file for w in options.words)]
    check_texts(chosen)
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy = Path(folder)
        copy_tree(copy)
        for tests in selections(chosen):
            if run_tests(copy, tests) != 0:
                sys.exit(f"the tests fail without any bug: {tests}")
        results: list[dict[str, str]] = []
        for mutant in chosen:
            outcome = try_mutant(copy, mutant)
            results.append({"outcome": outcome, **mutant._asdict()})
            print(f"{outcome:9}{mutant.file}: {mutant.old!r} -> {mutant.new!r}", flush=True)
    killed = sum(result["outcome"] == "killed" for result in results)
    print(f"{killed} of {len(results)} killed")
    options.out.write_text(json.dumps({"killed": killed, "mutants": results}, indent=1) + "\n")
    return int(killed < len(results))


def check_texts(chosen: Iterable[Mutant]) -> None:
    """Say which bugs cannot be planted."""
    lost = [
        f"{mutant.file}: {mutant.old!r} is there {count} times, not once"
        for mutant in chosen
        if (count := (ROOT / "hf_alpha" / mutant.file).read_text().count(mutant.old)) != 1
    ]
    if lost:
        sys.exit("\n".join(lost))


def selections(chosen: Iterable[Mutant]) -> list[str]:
    """Return the arguments for a run without bugs: all whole files go into one."""
    found = dict.fromkeys(mutant.tests for mutant in chosen)
    parts = [tests for tests in found if " -k " in tests]
    files = dict.fromkeys(file for tests in found if tests not in parts for file in tests.split())
    return [*([" ".join(files)] if files else []), *parts]


def try_mutant(copy: Path, mutant: Mutant) -> str:
    """Plant a bug, run its tests, and take it out again."""
    path = copy / "hf_alpha" / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        code = run_tests(copy, mutant.tests)
    finally:
        path.write_text(text)
    return {0: "survived", 1: "killed", 2: "killed"}.get(code, f"error {code}")


def run_tests(copy: Path, tests: str) -> int:
    """Return pytest's exit code; 1 where time is up."""
    process = get_context("fork").Process(target=_run_pytest, args=(copy, tests))
    process.start()
    process.join(TIMEOUT)
    if process.is_alive():
        process.kill()
        process.join()
        return 1
    assert process.exitcode is not None
    return process.exitcode


def _run_pytest(copy: Path, tests: str) -> None:
    """Run tests with the package of the copy; this process is a fork that has the heavy imports."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os.chdir(copy)
    # Bytecode is told from its source by size and time: two bugs may have the same.
    sys.dont_write_bytecode = True
    # For the processes that the tests start:
    os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(copy))
    import hf_alpha

    assert hf_alpha.__file__.startswith(str(copy)), hf_alpha.__file__
    plugins = ["-n", "0", "-p", "no:cacheprovider"]
    sys.exit(pytest.main(["-x", "-q", "-m", "not gpu", *plugins, *shlex.split(tests)]))


if __name__ == "__main__":
    sys.exit(main())
