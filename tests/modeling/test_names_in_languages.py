"""Names of programming languages, checked by what they are for: programs are renamed and run."""

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
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


MARKED = {
    "javascript": [
        # what binds, and where
        "var {a: «b» = 1, ...«c»} = {}, [«d», , «e» = «d»] = x; [«d», x] = [«e», «b»]",
        "for (const «i» of «i») ; for (var «j» in x) «j»; «j»; for (x of y) ;",
        "try { x } catch («e») { «e» } try { } catch ({message: «m»}) { «m» } e",
        "try { x } catch («e») { var «e» = 1; «e» } «e»",  # one of both, as it is
        "«f»(); function «f»(«a», «b» = () => «a», ...«c») { var «a»; return «f» }",
        "let «x» = 1; function «f»(«a» = «x», «b») { var «x»2, «b»; { var «b» = «x»2 } }",
        "{ let «a» = 1; { let «a»2 = 2; «a»2 } «a» }",
        "var «g» = function «f»() { «f» }; class «A» {} x = class «B» extends «A» { m() { «B» } }",
        "switch (x) { case 1: let «y» = 2; «y» }",
        "function «f»(«a») { return { [«a»]: 1, [«a»](«a»2) { return «a»2 } } }",
        "({ [x](«x») { return «x» } }); class «A» { static { var «t»; «t» } #t = t; t() {} }",
        "async function* «f»(«a») { for await (const «b» of «a») yield «b» }",
        "lbl: for (let «lbl»;;) { «lbl»; break lbl } `${(«y») => «y»}y`",
        # a function in a block: whether it is seen around it depends on a mode
        "function «f»() { { function «g»() {} «g»() } } { function «h»() {} }",
        "function «f»() { { function g() {} } } g()",
        # read by its spelling
        "import a, {b, c as d} from 'm'; import * as e from 'm'; b(d, a, e)",
        "export const a = 1; const «b» = 2, c = 3; export { «b» as x, c }; export function f() {}",
        "export { a as b } from 'm'; let «a»",
        "const a = 1; x = {a, b: a, a2: 1}; const { c } = x",
        "const fs = require('fs'); function «f»(«require») { const «g» = «require»('g') }",
        "function f(a) { eval('a') } function g(«b») { arguments; «b» }",
        "function «f»(a, «b») { with (x) { a } «b» }",
        "var a = 1, «b» = 2; window.a; function «f»(«window», «a») { «window».b }",
        "var Map = 1, a = a || {}; function «f»() { let «Map» }",
        "let Foo, «Bar»; x = <Foo a={«Bar»}><Foo.Baz/></Foo>",
        "x = new Function('a'); var a; function f() { var «a» }",
        "var \\u0061b, ab",
        # what cannot be parsed
        "function «f»(«a») { return «a» }\nfunction g(b) { return b b }\nlet b, «c»",
        "let a = (; } function f(b) { b",
    ],
    "typescript": [
        "function «f»(«a»: string, «b»?: A, ...«c»: A[]): «a» is string { return «a» }",
        "function «f»(«a»: 1): void; function «f»(«a»2: any) { return «a»2 }",
        "type «A»<«T»> = { [«K» in keyof «T»]: «T»[«K»] }; let «x»: «A»<number>, «y2»: B",
        "class «A»<«T»> extends B<«T»> { c(«x»: «T»): «A»<«T»> { return new «A»(«x») } }",
        "abstract class «A» { [«k»: string]: any; abstract m(«x»: «A»): void; p: «A»; q = 1 }",
        "class «A» { constructor(private a: B, readonly b = a, «c»: B) { «c» } }",
        "let «f» = <«T»>(«x»: «T») => «x» as «T», «g»: («x»2: number) => void = «f»!",
        "enum «E» { A = 1, B = A } let «x»: «E» = «E».A, «y»: «E».B, «A2» = A; const «z» = 1",
        "const A = 1; enum «E» { B = A } const «c» = A; namespace N { let «d» = A; export let e }",
        "function «f»() { interface «I» { m(«x»: «I»): this } let «y»: «I»; }",
        # types and values apart: what is spelled like both is one name, if it is a type of the text
        "class «A» {} function «f»(«A»: string, «b»: «A») { return «A» }",
        "function «f»(Map: Map<string, 1>, «x»: Set<1>) { return Map.size + «x».size }",
        "import * as checks from 'm'; { const checks: checks.Check[] = []; let «c» = checks }",
        "function «f»<T>(«x»: T): T { return «x» } let «y»: T",
        "type «A» = B extends (infer U)[] ? U : U; function «f»<U>(«x»: U) {}",
        "type «A»<«T»> = «T» extends («x»: infer «U») => infer «U» ? [«U», «T»] : «T»;",
        # seen elsewhere
        "export type A = 1; export enum E {} export abstract class B {} type «C» = A; export { D }",
        "interface Window { a: b } declare const a: b; let a, b; declare global { let c }",
        "import a = require('b'); import c = d.e; export = «f»; export as namespace f2; let «f», d",
        "let «t»: [a: number, ...b: A[]], «a2», «b»: N.M, «u»: typeof «b»",
        "export default function f<«T»>(«x»: «T») { return x2 } function g(b) { return b b }",
    ],
    "go": [
        "func f(«a», «b» int, «c» ...T) («r» int, «e» error) { «r» = «a»; return }",
        "func («t» *T[K]) m(«n» *n, «p» p.Q) *n { return «n».n(«t».p, «p».m) }",
        "var x = 1; func f(«x» int) { «y» := «x»; { «y»2 := «y» + x2; «y»2++ } }",
        "func f(«x» int) int { «x», «y» := 1, «x»; if «x»2 := «x»; «x»2 > «y» { }; return «x» }",
        "func f() { if «a» := g(); «a» { } else if «b» := «a»; «b» { } else { «a».b() } }",
        "func f(«v» []int) { for _, «v»2 := range «v» { g(«v»2) }; for i = range «v» { } }",
        "func f(«x» any) { switch «x» := «x».(type) { case int: «x»++ } }",
        "func f() { switch «a» := 1; { case «a» > 1: «b» := «a»; b2 = «b» } }",
        "func f() { select { case «v», «ok» := <-ch: g(«v», «ok»); case v2 = <-ch: } }",
        "func f() { «g» := func(«g»2 int) («h» int) { return «g»2 }; var «k» = «g»; k2() }",
        "func f(«m» M) { m: for { break m }; goto m; _, «a» := «m».m, 1; _ = «a» }",
        "func f[T any](«x» T) { var «y» func(«z» T) T = g[T]; type U T; U(«x», «y») }",
        "func f(a, «b», k int) T { return T{a: 1, c: «b», d: {k: «b»}} }",
        "func f(true, «a» int, make M) { g(true, make(«a».b)); const «c», «d» = iota, 2 }",
        "func f(«a» int) { return «a» }; func g(b int) { return b b }",
    ],
    "java": [
        "class A { int x; A(int «x») { this.x = «x»; } int f() { return x; } }",
        "class A { void f() { x = 1; int «x» = 2; «x»++; for (int «i» : a) { «i»++; } i++; } }",
        "class A { void f(int a, int «b») { new B(a) { int m() { return a; } }; g(«b»); } }",
        "class A { void f(int «a») { g(«b» -> «b» + «a», («c», «d») -> «c», A::a, «a»::b); } }",
        "class A { void f() { try (R «r» = g()) { «r».r(); } catch (E | F «e») { «e».e(); } } }",
        "class A { void f(Object «o») { if (!(«o» instanceof B «b»)) return; «b».b(); } }",
        "class A { void f(Object «o») { if («o» instanceof B b) return; } int b() { return b; } }",
        "class A { int f(int «a») { a: for (;;) break a; return «a».a + a(«a»); } }",
        "class A { void f() { int RED = 1, «x»; switch («x») { case RED: int «n»; } n(); } }",
        "class A { Object f(int a, int «b») { g(() -> «b»); return (B & C) (c -> a + c); } }",
        "class A { void f(int a, int «b») { class B { int c = a; } record C(int b, int a) {} } }",
        "record P(int x, int y) { P { f(x); } static int f(int «x») { return «x»; } }",
        "enum E { A, B; int f(int «A») { return «A» + E.A; } }",
        "int f(int «a») { return «a»; }\nint «b» = f(1);",
        "class A { void f() { int «x» = 1; { int «y» = «x»; } { int «y»2 = 2; «y»2++; } } }",
        "class A { @B(a = 1) void f(int «a», String... «b») { «a»++; String «s» = \"a\"; } }",
    ],
    "c": [
        "int f(int «a», char *«b»[], int (*«c»)(int «d»)) { return «a» + *«b»[0] + «c»(1); }",
        "int f(int «x») { int «y» = «x»; { int «y»2 = 1, «x»2 = «y»2 + «x»2; } return «y»; }",
        "static int «x»; int f(void) { int «y» = «x», «x»2 = 2; return «x»2 + «y»; }",
        "static int «g»(int); int h(int); static int «g»(int «x») { return h(«x»); }",
        "int x; extern int y; static int «z»; int f(void) { return x + y + «z»; }",
        "struct s { int a; }; int f(struct s *«s») { struct s «a» = { .a = 1 }; return «s»->a; }",
        "typedef int t; enum { A, B }; int f(t «a») { return (t)«a» + A; }",
        "#define M(x) ((x) + a)\nint f(int a, int «b», int x) { return M(«b») + x; }",
        "#define S(x) #x\nint f(int a, int «b») { return S(a)[0] + «b»; }",
        "int f(int a) { { int «b» = 1; } FOO(1); return a; } int g(int «a») { return «a»; }",
        "#include \"x.def\"\nstatic int x; int f(int «a») { return «a» + x; }",
        "int f(int «a») { out: if («a») goto out; return sizeof(«a») + sizeof «a»; }",
        "static int x; int f(void) { extern int x; return x; } int g(int «y») { return «y»; }",
        "int f(«a», «b») int «a»; int «b»; { return «a» + «b»; }",
        "int f(int «n», int «a»[«n»]) { for (int «i» = 0; «i» < «n»; «i»++) «a»[«i»] = i2; }",
        "static int f(int «a») { puts(__func__); return «a»; }",
        "int f(int a) {\n#if X > a\nint «b» = 1; return «b»;\n#endif\n}",
    ],
}  # fmt: skip


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

PROGRAMS = Path(__file__).parents[1] / "data_files" / "programs"
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
