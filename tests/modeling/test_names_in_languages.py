"""Names of programming languages, checked by what they are for: programs are renamed and run."""

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from case_files import DATA, cases_of
from language_texts import FRESH, node_modules, npm_package, rename_folder, typescript

from hf_alpha.modeling.languages import LANGUAGES
from hf_alpha.modeling.names_in_languages import declared_names, undeclared_words
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.testing import check_rule


def marked(language: str, text: str) -> str:
    """Mark names, the second binding of a spelling by 2."""
    for start, stop, binding in reversed(declared_names(text, language)):
        number = int(binding.rpartition(" ")[2])
        sign = f"«{text[start:stop]}»{number + 1 if number else ''}"
        text = text[:start] + sign + text[stop:]
    return text


MARKED = cases_of("marked_programs.txt")


@pytest.mark.parametrize(
    "language, text", [(key, text) for key, texts in MARKED.items() for text in texts]
)
def test_names_are_what_a_text_binds_and_no_other_reads(language: str, text: str) -> None:
    plain = re.sub(r"«(.*?)»\d?", r"\1", text)
    assert marked(language, plain) == text


@pytest.mark.parametrize("language", MARKED)
def test_other_names_are_the_same_names(language: str) -> None:
    """And none captures another one; time grows as the text does."""
    texts = [re.sub(r"«(.*?)»\d?", r"\1", text) for text in MARKED[language]]
    found = check_rule({"rule": language}, texts, names=FRESH, rounds=1)
    assert found.renamed > 10 and found.names > 25


def test_an_answer_has_names_of_its_problem() -> None:
    def found(language: str, problem: str, answer: str) -> list[str]:
        finder = NameFinder({"name": {"rule": language}})
        known = {problem[s.start : s.stop]: "name" for s in finder.find(problem)}
        return [answer[s.start : s.stop] for s in finder.find(answer, known)]

    program = "function f(size, key) { return size.key }"
    assert found("javascript", program, "f(size.key, x => x + {key: 1})") == ["f", "size", "x", "x"]
    assert found("javascript", program, "return f(size") == ["f", "size"]
    assert found("java", "int f(int a) { return a; }", "a + b.a(c)") == ["a"]
    assert [*undeclared_words("x.a + y", "java")] == [(0, 1), (6, 7)]
    assert declared_names("let \ud800 = 1", "javascript") == []
    assert declared_names("/* 😀 */ let é = 1", "javascript") == [(12, 13, "é 0")]


# -- programs that run ----------------------------------------------------------------------------

PROGRAMS = DATA / "programs"
RUN: dict[str, tuple[str, str, Callable[[Path], list[list[str]]]]] = {
    "javascript": ("node", "main.js", lambda file: [["node", str(file)]]),
    "typescript": (
        "npm",
        "main.ts",
        lambda file: [
            ["node", f"{typescript()}/bin/tsc", "--strict", "--target", "es2022", str(file)],
            ["node", str(file.with_suffix(".js"))],
        ],
    ),
    "go": ("go", "main.go", lambda file: [["go", "run", str(file)]]),
    "java": ("javac", "Main.java", lambda file: [["java", str(file)]]),
    "c": (
        "gcc",
        "main.c",
        lambda file: [["gcc", "-w", "-o", f"{file}.out", str(file)], [f"{file}.out"]],
    ),
}  # fmt: skip


def output(language: str, text: str, folder: Path) -> str:
    """Run a program, and return what it prints."""
    _, name, commands = RUN[language]
    (folder / name).write_text(text)
    for command in commands(folder / name):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, f"{done.stderr}\n{text}"
    return done.stdout


@pytest.mark.slow  # compilers
@pytest.mark.parametrize("language", RUN)
def test_programs_print_the_same_under_other_names(language: str, tmp_path: Path) -> None:
    if shutil.which(RUN[language][0]) is None:
        pytest.skip(f"no {RUN[language][0]} here")
    program = (PROGRAMS / RUN[language][1]).read_text()
    printed = output(language, program, tmp_path)
    found = check_rule(
        {"rule": language},
        [program],
        lambda text, other: output(language, other, tmp_path) == printed,
        names=FRESH,
    )
    assert printed and found.names > 25


# -- files of packages ----------------------------------------------------------------------------


@pytest.mark.slow
def test_npm_does_the_same_under_other_names(tmp_path: Path) -> None:
    """The files of a version of semver, which npm brings, and what it says of versions."""
    source = Path(shutil.which("npm") or "").resolve().parents[1] / "node_modules/semver"
    if not source.exists():
        pytest.skip("no npm here")
    found = rename_folder("javascript", source, tmp_path / "other")
    asked = """
        const s = require(process.argv[1] + "/index.js");
        const vs = ["1.2.3", "1.2.4-beta.1", "2.0.0", "x"];
        const rs = ["^1.2", "~1.2.3 || >=2", "1.x - 2", "<1.2.4-beta.2", "*"];
        console.log(JSON.stringify([Object.keys(s), s.subset(rs[0], rs[4]),
          vs.map(v => [s.valid(v), s.parse(v), s.coerce(v)]),
          rs.map(r => [s.validRange(r), vs.map(v => s.satisfies(v, r)), s.minVersion(r)]),
          vs.slice(0, 3).map(v => [s.inc(v, "minor"), s.diff(v, "1.2.3")])]))"""
    before, behind = (
        subprocess.run(
            ["node", "-e", asked, str(place)], capture_output=True, text=True, check=True
        ).stdout
        for place in (source, tmp_path / "other")
    )
    assert found.startswith("4") and before == behind


@pytest.mark.slow
def test_typescript_sees_the_same_symbols_under_other_names(tmp_path: Path) -> None:
    """The files of rxjs: each identifier means what it meant, types too; the same runs."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    (plain, other), compiler = (tmp_path / "plain", tmp_path / "other"), typescript()
    shutil.copytree(npm_package("rxjs@7.8.2") / "src", plain)
    rename_folder("typescript", plain, other)
    script = Path(__file__).parents[1] / "typescript_symbols.cjs"
    command = ["node", *map(str, (script, compiler, plain, other))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["wrong"] == 0 and found["diagnostics"] == [0, 0], done.stderr
    assert found["files"] > 200 and found["found"] > 0.9 * found["own"]
    script, modules = script.with_name("typescript_minified.cjs"), node_modules()
    command = ["node", *map(str, (script, modules, plain, other))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["files"] == found["same"] and found["named"] > 200, done.stderr


@pytest.mark.slow
def test_go_sees_the_same_objects_under_other_names(tmp_path: Path) -> None:
    """Packages of its library: each identifier means what it meant."""
    if shutil.which("go") is None:
        pytest.skip("no Go here")
    asked = ["go", "env", "GOROOT"]
    root = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    plain, other = tmp_path / "plain", tmp_path / "other"
    for package in ("bufio", "fmt", "go/ast", "math/big", "sort", "strconv", "strings"):
        shutil.copytree(Path(root, "src", package), plain / package)
    rename_folder("go", plain, other)
    script = Path(__file__).parents[1] / "go_symbols.go"
    command = ["go", "run", *map(str, (script, plain, other))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert not found.keys() & {"wrong", "undecided"}, done.stderr
    assert found["files"] > 100 and found["found"] > 0.95 * found["own"]


@pytest.mark.slow
def test_classes_of_the_jdk_are_the_same_bytes_under_other_names(tmp_path: Path) -> None:
    """Without tables for debuggers, local names are in no class file."""
    archives = sorted(Path("/usr/lib/jvm").glob("*/lib/src.zip"))
    archives = [path for path in archives if (path.parents[1] / "bin/javac").exists()]
    if not archives:
        pytest.skip("no JDK with its sources here")
    plain, other, made = tmp_path / "plain", tmp_path / "other", []
    with zipfile.ZipFile(archives[0].resolve()) as archive:
        files = [n for n in archive.namelist() if re.fullmatch(r"java.base/java/math/\w+.java", n)]
        archive.extractall(plain, files)
    rename_folder("java", plain, other)
    for folder in (plain, other):
        patch, classes = f"java.base={folder / 'java.base'}", folder / "classes"
        command = [archives[0].parents[1] / "bin/javac", "-nowarn", "-g:none"]
        command += ["--patch-module", patch, "-d", classes, *folder.rglob("*.java")]
        subprocess.run(command, check=True, capture_output=True)
        made.append({p.name: p.read_bytes() for p in classes.rglob("*.class")})
    assert len(made[0]) > 5 and made[0] == made[1]


def test_every_language_is_tested() -> None:
    assert MARKED.keys() == RUN.keys() == LANGUAGES.keys()
