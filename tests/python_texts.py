"""The rule `python` and real files: `python tests/python_texts.py [CRUXEVAL]` prints a table.

Each file is renamed; its ids, and Python's symbol tables, have to be the same but for names. Names
that Python's symbol tables have are the reference: parameters, and what functions and modules bind,
without imports. Functions of CRUXEval (its file, of JSON lines) and tests of CPython are run.
"""

import ast
import builtins
import gzip
import json
import random
import re
import subprocess
import symtable
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import transformers

from hf_alpha.modeling.names_in_python import python_names

LIBRARY = Path(ast.__file__).parent
PACKAGES = Path(transformers.__file__).parents[1]
MOST_LETTERS = 400_000
SHOWN = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CPYTHON = """
abc augassign baseexception binop bool class collections compare complex contains copy
decorators descr dict enumerate exception_hierarchy fractions funcattrs generators global
heapq index isinstance iter keyword keywordonlyarg list metaclass named_expressions operator
patma property raise range richcmp scope set setcomps slice sort string subclassinit super
textwrap tuple unpack unpack_ex with yield_from
"""
"""Tests of CPython that look at no name of a variable and no line of a traceback."""
TESTS = [f"test_{name}" for name in CPYTHON.split()]


class Row(NamedTuple):
    """Texts of a kind: how many, their names, those of the reference, and texts that are equal."""

    kind: str
    texts: int
    names: int
    reference: int
    equal: int
    failed: tuple[str, ...]


def renamed(text: str, called: Any) -> str:
    """Give each binding another name."""
    written, end = "", 0
    for start, stop, binding in python_names(text):
        written, end = f"{written}{text[end:start]}{called(binding)}", stop
    return written + text[end:]


def distinct(binding: str) -> str:
    name, _, number = binding.partition(" ")
    return f"{name}0{int(number):03}\u01c3"


def blocks(table: symtable.SymbolTable) -> list[Any]:
    """Return the names of each block, as they were before `distinct`, and what they are there."""
    asked = ("is_parameter", "is_global", "is_local", "is_free", "is_assigned", "is_referenced")
    names = {  # Python 3.12 has those of comprehensions in the block around
        (
            re.sub("0[0-9]{3}\u01c3", "", symbol.get_name()),
            *(getattr(symbol, key)() for key in asked),
        )
        for symbol in table.get_symbols()
        if symbol.get_name() != "__class__"  # there is one where a parameter is called `super`
    }
    return [table.get_type(), sorted(names), *map(blocks, table.get_children())]


def bound(table: symtable.SymbolTable) -> int:
    """How many names a program binds, by Python's symbol tables."""
    is_module = table.get_type() == "module"
    names = [
        symbol
        for symbol in table.get_symbols()
        if symbol.is_local() and not symbol.is_imported()
        and not symbol.get_name().startswith(("__", "."))
        and not (is_module and hasattr(builtins, symbol.get_name()))
    ]  # fmt: skip
    own = 0 if table.get_type() == "class" else len(names)
    return own + sum(map(bound, table.get_children()))


def is_the_same(text: str) -> bool:
    """Whether a program under other names is the same to Python, and has the same ids."""
    other = renamed(text, distinct)
    compile(other, "", "exec", dont_inherit=True)
    tables = [blocks(symtable.symtable(each, "", "exec")) for each in (text, other)]
    again = [(place, distinct(binding)) for *place, binding in python_names(text)]
    called = [other[start:stop] for start, stop, _ in python_names(other)]
    return tables[0] == tables[1] and called == [name for _, name in again]


def files(folder: Path, pattern: str, *without: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    return [path for path in found if not {*path.relative_to(folder).parts} & {*without}]


def sets() -> Iterator[tuple[str, list[Path]]]:
    """Yield kinds of files and the files."""
    others = ("site-packages", "test", "tests", "lib2to3", "idlelib")
    yield "standard library", files(LIBRARY, "**/*.py", *others)
    packages = files(PACKAGES, "*/**/*.py", "transformers", "torch", "hf_alpha")
    yield "500 files of packages", random.Random(0).sample(packages, min(500, len(packages)))
    yield "models of Transformers", files(PACKAGES, "transformers/models/*/modeling_*.py")[::5]


def checked(kind: str, paths: Iterable[Path]) -> Row:
    texts = names = reference = equal = 0
    failed = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            table = symtable.symtable(text, "", "exec")
        except (SyntaxError, ValueError):
            continue
        if len(text) > MOST_LETTERS:
            continue
        texts += 1
        names += len({binding for *_, binding in python_names(text)})
        reference += bound(table)
        if is_the_same(text):
            equal += 1
        else:
            failed.append(str(path))
    return Row(kind, texts, names, reference, equal, tuple(failed))


def outcome(program: str, name: str) -> str:
    scope: dict[str, Any] = {}
    try:
        exec(program, scope)
    except Exception as error:
        return type(error).__name__
    return repr(scope[name])


def run_functions(path: Path) -> Row:
    """Run each function of CRUXEval with its input, renamed too."""
    names = reference = 0
    failed = []
    rows = [*map(json.loads, gzip.decompress(path.read_bytes()).splitlines())]
    for row in rows:
        program = f"{row['code']}\nresult = f({row['input']})\n"
        found = python_names(program)
        names += len({binding for *_, binding in found})
        reference += bound(symtable.symtable(program, "", "exec"))
        called = {start: distinct(binding) for start, _, binding in found}
        other = outcome(renamed(program, distinct), called[len(row["code"]) + 1])
        if outcome(program, "result") != other:
            failed.append(row["id"])
    equal = len(rows) - len(failed)
    return Row("functions of CRUXEval, run", len(rows), names, reference, equal, tuple(failed))


def run_beginnings(path: Path) -> Row:
    """Run them too when their names were found as a model is asked: `assert f(1) ==`."""
    names = reference = 0
    failed = []
    rows = [*map(json.loads, gzip.decompress(path.read_bytes()).splitlines())]
    for row in rows:
        text, end = f"{row['code']}\nassert f({row['input']}) ==", 0
        written, found = "", python_names(text)
        for _, stop in found:
            written, end = f"{written}{text[end:stop]}\u01c3", stop
        programs = [
            re.sub(r"\nassert (.*) ==\Z", r"\nresult = \1\n", each)
            for each in (text, written + text[end:])
        ]
        names += len({text[start:stop] for start, stop in found})
        reference += bound(symtable.symtable(programs[0], "", "exec"))
        first, other = (outcome(program, "result") for program in programs)
        failed += [row["id"]] if first != other else []
    equal = len(rows) - len(failed)
    kind = "the same, asked about: `assert f(1) ==`"
    return Row(kind, len(rows), names, reference, equal, tuple(failed))


def tests_run(text: str, name: str) -> list[str]:
    """Run a file of tests; return how many ran and which failed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{name}.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-W", "ignore", "-m", "unittest", name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return re.findall(
        r"^(?:Ran \d+ tests?|OK|FAILED|FAIL: .*|ERROR: .*)", done.stderr, re.MULTILINE
    )


def run_tests() -> Row:
    """Run tests of CPython, with other names of what no class or function shows as its own."""
    names = reference = 0
    failed = []
    for name in TESTS:
        text = (LIBRARY / "test" / f"{name}.py").read_text(encoding="utf-8")
        shown = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, SHOWN)}

        def called(binding: str, shown: set[str] = shown) -> str:
            own = binding.partition(" ")[0]
            return own if own in shown else binding.replace(" ", "_0")

        names += len({binding for *_, binding in python_names(text)})
        reference += bound(symtable.symtable(text, "", "exec"))
        if tests_run(text, name) != tests_run(renamed(text, called), name):
            failed.append(name)
    equal = len(TESTS) - len(failed)
    return Row("tests of CPython, run", len(TESTS), names, reference, equal, tuple(failed))


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [checked(kind, paths) for kind, paths in sets()]
    for path in map(Path, sys.argv[1:]):
        rows += [run_functions(path), run_beginnings(path)]
    rows.append(run_tests())
    print("| texts | tried | equal when renamed | names | of those of symbol tables |")
    print("|---|---|---|---|---|")
    for kind, texts, names, reference, equal, _ in rows:
        print(f"| {kind} | {texts:,} | {equal:,} | {names:,} | {names / reference:.1%} |")
    for row in rows:
        print(*row.failed, sep="\n", end="\n" * bool(row.failed), file=sys.stderr)


if __name__ == "__main__":
    main()
