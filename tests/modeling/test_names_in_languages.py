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

PROGRAMS = {
    "javascript": """
        const out = [];
        var hoisted = typeof late;
        var free = 1; out.push(((a = free) => { var free = a + 1; return free })());
        function late(n, m = () => n + 1) { var n = n * 2; return [n, m()] }
        class Stack { #items = []; push(item) { this.#items.push(item); return this }
          get size() { return this.#items.length } static of(...items) { const made = new Stack();
            for (const item of items) made.push(item); return made } }
        function scopes(x) { const found = [x]; { let x = 2; found.push(x) }
          try { throw x } catch (x) { var caught = x; found.push(x) }
          for (let x = 0, y = 3; x < y; x++) found.push(() => x);
          lbl: for (const x in {a: 1}) { for (;;) break lbl }
          switch (x) { case 1: let z = 5; found.push(z) }
          return found.map(x => typeof x == "function" ? x() : x).concat(caught) }
        function blocks() { { function inner() { return 1 } } return typeof inner }
        const counter = (function self(n) { return n ? n + self(n - 1) : 0 });
        function* walk({left: l, right: r = null, ...rest}, [first, , third = first] = [1, 2]) {
          if (l) yield* walk(l); yield [first, third, Object.keys(rest)]; if (r) yield r }
        const size = 7, shorthand = {size, late, ["size" + size](size) { return size }};
        out.push(hoisted, late(3), Stack.of(1, 2).size, scopes(1), blocks(), counter(4),
          [...walk({left: {right: 5}, size})], shorthand.size7(8), shorthand.size,
          `${out.map((out) => out)} ${(() => arguments.length > -1)()}`);
        out.push(((a, b) => { [a, b] = [b, a]; return {a, b: b} })(1, 2));
        console.log(JSON.stringify(out));
    """,
    "typescript": """
        enum Level { Low = 1, High = Low + 1 }
        const enum Flag { On = "on" }
        namespace Shapes { const side = 2; export const area = side * side;
          export function scaled(by: number) { const side = by; return area * side } }
        interface Named { readonly name: string; greet?(other: Named): string }
        type Pair<A, B = A> = { [K in keyof A]: A[K] } & { second: B };
        type Inner<T> = T extends Array<infer U> ? Inner<U> : T;
        abstract class Base<T extends Named> implements Named { static made = 0;
          [key: string]: unknown;
          constructor(readonly name: string, protected items: T[] = [], extra?: number) {
            Base.made += extra ?? 1 }
          abstract describe(level: Level): string;
          greet(this: Base<T>, other: Named) { return `${this.name} ${other.name}` } }
        class Person extends Base<Person> {
          describe(level: Level) { const name = Level[level]; return name + this.items.length } }
        function pick(value: string): string; function pick(value: number[]): number;
        function pick(value: string | number[]) {
          return typeof value === "string" ? value + "!" : value.length }
        function isText(value: unknown): value is string { return typeof value == "string" }
        function assertText(value: unknown): asserts value is string {
          if (!isText(value)) throw new Error("no text") }
        const both = <A extends object, B>(first: A, second: B): Pair<A, B> =>
          ({ ...first, second }) as Pair<A, B>;
        function local(Person: number) { interface Point { x: number; move(by: number): Point }
          const point: Point = { x: Person, move(by) { return { ...this, x: this.x + by } } };
          const { x: start, move } = point.move(2)!; return [start, typeof move, Person] }
        const out: unknown[] = [];
        const ann = new Person("Ann", [new Person("Bob", [], 5)]);
        const last: Inner<number[][]> = 3, flag: Flag = Flag.On;
        let text: unknown = ann.greet({ name: "Cy" }); assertText(text);
        out.push(Level.High, Shapes.scaled(3), ann.describe(Level.High), Base.made, pick("a"),
          pick([1, 2]), both({ a: 1 }, "b"), local(1), last satisfies number, flag, text.length);
        for (const [index, item] of out.entries() as Iterable<[number, unknown]>)
          console.log(index, JSON.stringify(item));
    """,
    "go": """
        package main
        import ("fmt"; "sort"; str "strings")
        type node struct { value int; next *node }
        type shape interface { area(scale int) (size int, err error) }
        type square struct{ side int }
        func (square square) area(scale int) (size int, err error) {
          size = square.side * square.side * scale
          defer func() { if size > 50 { size, err = 50, fmt.Errorf("%d is too much", size) } }()
          return }
        func (node *node) last() *node { for node.next != nil { node = node.next }; return node }
        func sum(values ...int) int { total := 0
          for _, value := range values { total := total + value; _ = total }
          for i := 0; i < len(values); i++ { total += values[i] }; return total }
        func mapped[T, U any](values []T, f func(value T) U) []U { var out []U
          for _, v := range values { out = append(out, f(v)) }; return out }
        func kind(x any) string { switch x := x.(type) {
          case int: x++; return fmt.Sprint("int ", x)
          case fmt.Stringer, nil: return fmt.Sprint(x == nil)
          case string: if x, ok := any(len(x)).(int); ok { return fmt.Sprint(x) } }
          return "other" }
        func scopes(x int) []int { out := []int{x}
          if x := x + 1; x > 5 { out = append(out, x) } else if y := x * 2; y > x {
            x, y := y, x; out = append(out, x, y) } else { out = append(out, -x) }
          x, z := x+10, 3; { x := x; x++; out = append(out, x) }
        outer:
          for x := range 4 { switch y := x % 3; {
            case y == 1: continue outer; case x > 2: break outer
            default: z := z + y; out = append(out, z) } }
          return append(out, x, z) }
        func main() {
          const low, high = iota, iota + 4
          list := &node{value: low, next: &node{value: high}}
          point := struct{ x, y int }{x: 1, y: 2}; x, y := 7, 8
          table := map[int]string{x: "x", y: "y"}; keys := []int{}
          for key := range table { keys = append(keys, key) }; sort.Ints(keys)
          ch := make(chan int, 2); ch <- 5; close(ch); got := []int{}
          for range 2 { select { case v, ok := <-ch: if ok { got = append(got, v) } } }
          var shapes = []shape{square{2}, square{9}}
          for i, shape := range shapes { size, err := shape.area(i + 1); fmt.Println(size, err) }
          len := func(s string) int { return str.Count(s, "") - 1 }
          type local struct{ len int }; made := local{len: len("four")}
          fmt.Println(list.last().value, point.x, point.y, x, y, keys, got, sum(1, 2, 3),
            mapped([]int{1, 2}, func(v int) string { return str.Repeat("a", v) }),
            kind(1), kind(nil), kind("abc"), kind(1.5), scopes(1), scopes(7), made.len) }
    """,
    "java": """
        import java.util.*;
        import java.util.function.*;
        public class Main {
          int x = 1; static int size = 4; enum Color { RED, BLUE } record Point(int x, int y) {}
          Main(int x) { this.x = x; }
          int sum(int... values) { int total = x; for (int value : values) total += value;
            int size = total; { int inner = size; size += inner; }
            { int inner = 2; size += inner; }
            return size + Main.size; }
          static <T> List<T> twice(List<T> list, Function<T, T> f) {
            List<T> out = new ArrayList<>();
            for (T item : list) { out.add(f.apply(item)); } return out; }
          static int captured(int base, int other) { Supplier<Integer> s = new Supplier<>() {
              int local = base; public Integer get() { int other = local; return other + base; } };
            Supplier<Integer> t = () -> other + s.get(); return t.get(); }
          static String kind(Object o, Color c) { if (o instanceof String text) return text;
            if (!(o instanceof Point point)) return "none"; int RED = 9;
            switch (c) { case RED: int n = point.x(); return "red" + n + RED;
              default: n = 2; return "other" + n; } }
          public static void main(String[] args) throws Exception {
            Main main = new Main(3); BiFunction<Integer, Integer, Integer> f = (a, b) -> a * 10 + b;
            StringBuilder out = new StringBuilder();
            outer: for (int i = 0, j = 9; ; i++, j--) {
              for (;;) { if (i > j) break outer; break; }
              out.append(i * j).append(' '); }
            try (Scanner in = new Scanner("5")) {
              out.append(in.nextInt()); throw new Exception("e");
            } catch (RuntimeException | Error e) { out.append(e);
            } catch (Exception e) { out.append(e.getMessage()); }
            System.out.println(out + " " + main.sum(1, 2) + twice(List.of(1, 2), v -> v + 1)
              + captured(1, 2) + kind("s", null) + kind(new Point(1, 2), Color.RED)
              + f.apply(1, 2));
          } }
    """,
    "c": r"""
        #include <stdio.h>
        #include <string.h>
        #define MAX(a, b) ((a) > (b) ? (a) : (b))
        #define SHOW(x) printf(#x "=%d\n", x)
        #define BUMP (hidden += 1)
        #define swap(t, p, q) do { t tmp = p; p = q; q = tmp; } while (0)
        typedef struct node { int value; struct node *next; } node;
        enum color { RED = 3, BLUE };
        static int counter = 1, table[4] = {1, 2, 3, 4};
        static int sum(const int *values, int size);
        static int apply(int (*f)(int x, int y), int x, int y) { return f(x, y); }
        static int add(int a, int b) { int counter = a; { int counter = 5; b += counter; }
          return counter + b; }
        static int sum(const int *values, int size) {
          int total = 0; for (int i = 0; i < size; i++) { int i2 = values[i]; total += i2; }
          return total; }
        static int list(node *node) { int value = 0;
          while (node) { value = value * 10 + node->value;
            node = node->next; } return value; }
        int shadow(int n) { int m = n, hidden = 1; BUMP; { int n = m + 1; m = n * sizeof(n); }
          if (m > 100) goto done; m += RED + hidden;
        done: return (n) + MAX(n, m); }
        int main(int argc, char **argv) {
          node last = {3, 0}, first = {.value = 2, .next = &last}; int shown = 4, p = 1, q = 2;
          char text[] = "text"; static int calls; swap(int, p, q);
          SHOW(shown); SHOW(p); counter += ++calls;
          printf("%d %d %d %d %s %zu %d\n", apply(add, 1, 2), sum(table, 4), list(&first),
            shadow(3), text, strlen(text), counter + (argc > 5)); return 0; }
    """,
}
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
@pytest.mark.parametrize("language", PROGRAMS)
def test_programs_print_the_same_under_other_names(language: str, tmp_path: Path) -> None:
    if shutil.which(RUN[language][0]) is None:
        pytest.skip(f"no {RUN[language][0]} here")
    program = PROGRAMS[language]
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
    assert MARKED.keys() == PROGRAMS.keys() == LANGUAGES.keys()
