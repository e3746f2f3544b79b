"""Names of Python programs, checked by Python: by its symbol tables, and by running them."""

import builtins
import contextlib
import io
import keyword
import random
import re
import sys
import types
from collections.abc import Callable
from time import thread_time
from typing import Any

import pytest
from case_files import parts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from python_texts import LIBRARY, TESTS, checked, is_the_same, renamed, run_tests, sets
from reference.fragments import parameters
from small_tokenizers import byte_level
from transformers import AutoTokenizer

from hf_alpha import CanonicalNames, CanonicalTokenizer, TextTokenizer
from hf_alpha.modeling.name_spelling import uncaptured
from hf_alpha.modeling.names_in_python import python_names
from hf_alpha.modeling.python_fragments import _parameters
from hf_alpha.testing import check_rule

FILES = [
    "ast",
    "dataclasses",
    "functools",
    "inspect",
    "pdb",
    "test/test_patma",
    "test/test_fstring",
]


@pytest.mark.parametrize("name", FILES)
def test_a_library_under_other_names_has_the_same_symbol_tables(name: str) -> None:
    assert is_the_same((LIBRARY / f"{name}.py").read_text())


PROGRAMS = parts_of("python_programs.txt")


def outcome(program: str) -> str:
    scope: dict[str, Any] = {}
    exec(program, scope)
    return repr(list(scope.values())[-1])  # of its last statement


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_programs_compute_the_same_under_other_names(program: str, rng: random.Random) -> None:
    bindings = sorted({binding for *_, binding in python_names(program)})
    taken = {*re.findall(r"\w+", program), *keyword.kwlist, *dir(builtins)}
    letters = [f"{a}{b}" for a in "xyzßλ变" for b in ["", *"0éb"] if f"{a}{b}" not in taken]
    table = dict(zip(bindings, rng.sample(letters, len(bindings)), strict=True))
    other = renamed(program, table.__getitem__)
    assert outcome(other) == outcome(program)
    again = [(place, table[binding]) for *place, binding in python_names(program)]
    assert [other[i:j] for i, j, _ in python_names(other)] == [name for _, name in again]


def printed(program: str) -> str:
    """Run a program as a file is run; return what it prints."""
    module = types.ModuleType("__main__")
    with io.StringIO() as out, contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as own:
        own.setitem(sys.modules, "__main__", module)
        exec(compile(program, "program", "exec"), module.__dict__)
        return out.getvalue()


def test_renamed_programs_print_what_they_printed() -> None:
    """And answers capture nothing, though names are called as builtins, and as one another."""
    builtin = "def f(list, sum, len, sorted, range, print, math, x1): return sum + len(x1)\n"
    texts = [builtin, *parts_of("python_forms.txt").values()]
    found = check_rule({"rule": "python"}, texts, lambda *both: len({*map(printed, both)}) == 1)
    assert found.renamed > 50


@pytest.mark.parametrize(
    "answer, names, written",
    [
        ("def g(a): return list(sorted(a))", "f list", "def f(list1): return list(sorted(list1))"),
        ("def g(a): return sum(a)", "f sum", "def f(sum1): return sum(sum1)"),
        ("def g(a): return x1(a)", "f x1", "def f(x11): return x1(x11)"),
        ("def g(a): return a.sum", "f sum", "def f(sum): return sum.sum"),
        ("def g(a, n=1): return g(a=n, **a)", "f x y", "def f(x, y=1): return f(x=y, **x)"),
        ("def g(a, **b): g(x=1)", "f x y", "def f(x1, **y): f(x=1)"),
        ("def g(a): return h(a)", "h b", "def h1(b): return h(b)"),
        ("def g(c):\n a = h(c=k)\nk(g)", "f c", "def f(c):\n c1 = h(c=k)\nk(f)"),
        ("def g(a): print(a)  # a", "f print", "def f(print1): print(print1)  # a"),
    ],
)
def test_a_name_that_an_answer_binds_takes_no_word_of_it(answer, names, written) -> None:
    """The answer's names, in their order, are called as those of a problem."""
    tokenizer = TextTokenizer.from_tokenizer(byte_level(), {"name": {"rule": "python"}})
    batch = tokenizer([answer])
    called = dict(zip(batch.names[0], names.split(), strict=True))
    assert tokenizer.decode(batch["input_ids"][0], names=called) == written


def test_canonical_spelling_leaves_a_word_to_an_answer_too() -> None:
    names = CanonicalNames({"name": {"rule": "python"}})
    spelled = names.spell("def f(list):\n    return sorted(list)\n")
    assert (
        spelled.back("def b(c): return list(sorted(c))")
        == "def f(list1): return list(sorted(list1))"
    )
    assert spelled.back("return list(sorted(c))") == "return e(sorted(list))"  # no name of its own


ATTRIBUTES = parts_of("python_attributes.txt")


@pytest.mark.parametrize(
    "program, attributes",
    [
        ("lists", "size worth next walk label"),  # `items` is a method of dictionaries, too
        ("outside", ""),  # `getattr`
        ("matched", ""),
        ("imports", "x"),  # what `a` is, is not sure
        ("bases", ""),
    ],
)
def test_methods_and_fields_that_no_other_class_has_are_names(program, attributes) -> None:
    program = f"{ATTRIBUTES[program]}print(result)\n"
    found = {program[i:j] for i, j, *_ in python_names(program, attributes=True)}
    assert found - {program[i:j] for i, j, *_ in python_names(program)} == {*attributes.split()}
    rule = {"rule": "python", "attributes": True}
    check_rule(rule, [program], lambda *both: len({*map(printed, both)}) == 1, rounds=1)


PIECES = [
    "x = ['é', " + "'ßa', " * 50 + "]\n",
    "def f{0}(x, y=1):\n    '''`x`, `y`\n\n    >>> f{0}(1, y=2)\n    '''\n    return x\n",
    "f{0} = lambda x: f'é{{x}} {{x + 1!r:>{{x}}}}'\n",
    "class A{0}(B):\n    x = x\n    def f(self, x: 'A{0}'): self.g(x=x, **x)\n",
    "def f{0}():\n    global x{0}, y\n    x{0} = y = 1\n",
    "try: pass\nexcept (A, B) as x{0}: x{0}\nmatch 1:\n    case [x, *y]: pass\n",
    "from m import *\n__all__ += ['f{0}']\ndef f{0}(): return [x for x in x]\n",
]


def work(function: Callable[..., Any], *args: Any) -> int:
    """How much a call does: calls of functions, with the text that methods of texts work on."""
    done = 0

    def count(frame: Any, event: str, called: Any) -> None:
        nonlocal done
        text = getattr(called, "__self__", "")
        done += 1 + (len(text) if isinstance(text, str | bytes) else 0)

    sys.setprofile(count)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return done


@pytest.mark.parametrize("is_one_line", [False, True])
@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear_in_the_text(piece: str, is_one_line: bool) -> None:
    def text(number: int) -> str:
        if is_one_line:
            return "x = ['é', " + ", ".join([repr(piece)] * number) + "]"
        return "".join(piece.replace("{0}", str(i)) for i in range(number))

    few, many = (work(python_names, text(number)) for number in (25, 100))
    assert many < 5 * few


@pytest.mark.parametrize(
    "piece",
    [
        "x.y = f(k=1)\n",
        "for x ",
        "x, ",
        "lambda x: (x\n",
        "'''\n>>> x\n''' ",
        "def f(\n",
        "def f(a=(",
        "for x{0} in y: f(x{0}, [\n",
        "def f(a=lambda b, c=lambda d: (",
    ],
)
def test_time_is_linear_in_what_is_no_program(piece: str) -> None:
    def seconds(number: int) -> float:
        text = "$" + "".join(piece.replace("{0}", str(i)) for i in range(number))
        start = thread_time()
        python_names(text)
        return thread_time() - start

    few, many = (min(seconds(number + i) for i in (0, 1, 2)) for number in (1_000, 4_000))
    assert many < 8 * few + 0.02


def test_classes_that_get_names_of_fields_keep_fields() -> None:
    """What is set or looked for by its spelling may be printed, or kept under it."""
    text = "class A:\n    y = 1\n    def {}(self, *names): print(names)\nA().y = 2\n"
    for method, fields in (("__setattr__", 0), ("__set_name__", 0), ("again", 2)):
        other = text.format(method)
        found = python_names(other, attributes=True)
        assert [other[start:stop] for start, stop, *_ in found].count("y") == fields


def test_names_that_are_spelled_alike_are_looked_at_together() -> None:
    """A text is read a few times, however many of its names are spelled alike."""
    text = "".join(f"def f{i}(a{i}): return a{i}\n" for i in range(30)) + "def g(b): return a0(b)\n"
    names = python_names(text)
    edges = [0, *(edge for start, stop, _ in names for edge in (start, stop)), len(text)]
    between = [text[i:j] for i, j in zip(edges[::2], edges[1::2], strict=True)]
    symbols = [binding for *_, binding in names]
    called = {s: "f0" if s[0] == "f" else "a0" for s in symbols} | {"g 0": "g"}
    read: list[str] = []

    def find(text: str) -> list[tuple[Any, ...]]:
        read.append(text)
        return python_names(text)

    written = uncaptured(find)(between, symbols, called)
    assert len(read) <= 4
    assert written[-3:] == ["g", "a01", "a01"] and len({*written}) == 33


@pytest.mark.parametrize("name", ["f-strings", "patterns"])
def test_the_beginning_of_a_program_has_names_of_the_whole(name: str) -> None:
    """Where no scope and no call says that it has fewer."""
    program = PROGRAMS[name]
    whole = {program[i:j] for i, j, *_ in python_names(program)}
    for end in range(len(program)):
        start = program[:end]
        words = {start[i:j] for i, j, *_ in python_names(start) if j < end}
        assert words <= whole


@pytest.mark.parametrize(
    "text, names",
    [
        ("\U0001d431 = 1; x; ﬁ = x; fi", "\U0001d431 x ﬁ x fi"),  # Python takes them for one
        ("\ufeffx = 1", ""),
        ("x = '\u2028'; z = x\ry = z\r\nx\x0c", "x z x y z x"),
        ("def \\\n f(): pass", "f"),
        ("def f(d):\n a, b = d\n return f([a], b=b)\nassert f(1) ==", "f d a b d f a b f"),
        ("if f(a=1): sum = 1\ndef f(a): sum = a", "f a f a sum a"),
        ("class A:\n def f(self): __x = self; return __x", "A self self"),
        ("def f(a): g(a=a)\ng = f or print", "f g g f"),  # g may be f
        ("def f(a): g(a=a)", "f a a"),  # g is no function of the text
        ("def f(a): a.f(a=1)", "f a a"),
        ("def f(a): a\nclass A:\n def __init__(s, b): b\nA(a=1, b=2)", "f a a A s A"),
        ("x = 1\nclass A:\n x = 2\n def f(s): return x", "x A s x"),
        ("x = [x for x in x for y in x]", "x x1 x1 x y x1"),
        ("def f(a, /, **b): c = 1; f(a=1, c=2)", "f a b c f"),
        ("class A:\n def f(s, a): s.f(a=1)", "A s s"),
        ("(" * 300 + "x" + ")" * 300, ""),
        ("+".join("x" * 5000) + "\nx = 1", "x " * 5001),
        ("async def f(): await f()", "f f"),
        ("def f(t):\n [[(y := i) for i in r] for r in t]\n return y", "f t y i i r r t y"),
        ("def f():\n def g():\n  global x; x = 1\n g(); return x", "f g x x g x"),
        ("def f():\n global x\n return x", "f"),
        ("def f():\n x = 1\n def g():\n  nonlocal x; x = 2\ndef h(): return x", "f x g x x h"),
        ("from m import g\ndef f(a): g(a=a)", "f a a"),
        ("from m import g\ndef f(a): g(f, a=a)", "f f"),
        ("def f(a): a\ndef f(b): b\nf(a=1); f(b=1)", "f f f f"),
        ("class A:\n def __new__(c, a): a\nA(a=1)", "A c A"),
        ("import os.path\nos = os", ""),
        ("match x:\n case {1: y, **z}: y, z", "y z y z"),
        # Keywords that are not followed, and what they cannot reach
        ("def f(a): g(a=a)\ng(f)", "f f"),  # g may hand it on
        ("def f(a): g(a=a)\nf(1)", "f a a f"),
        ("def f(a): print(a=a)\nprint(f)", "f a a f"),  # a builtin hands nothing on
        ("def f(a): 'x'.format(a=a)\ng(f)", "f a a f"),
        ("import g\ndef f(a): g(1, a=[2])\ng(f)", "f a f"),
        ("class A:\n def f(s, a): s.g(a=1)", "A s a s"),
        ("class A:\n def f(s, a): s.g(a=1)\nh(A().f)", "A s s A"),
        ("class A(B):\n def f(s, a): s.g(a=1)", "A s s"),
        ("class B: 1\nclass A(B):\n def f(s, a): s.g(a=1)", "B A B s a s"),
        ("class A(m=A):\n def f(s, a): s.g(a=1)", "A A s s"),
        ("@g\ndef f(a, b): f(a=1)", "f b f"),
        ("@g('/{a}')\ndef f(a, b): a", "f b"),
        ("def f(a): {'a': 1}\ndef g(**c): f(**c)", "f g c f c"),
        # Names that are read by their spelling
        ("def f(x):\n def g(y): locals()\n return y", ""),
        ("def f(x): globals()\ny = 1", "x"),
        ("def f(x): eval('x', {}); vars(x)", "f x x"),
        ("def f(x): eval('x', None, None)", ""),
        ("from m import *\nx = 1; x", "x x"),
        ("from m import *\nprint(x); x = 1\ndef f(): f", "f f"),
        ("x = 1\nfrom m import *\nx", ""),
        ("from m import *\nif x: y = 1\ny\nz: int = 1\nz, w = z, 1", "z z w z"),
        # Code in strings
        ("x: 'x | list[\"x\"]' = 1\ny: Literal['x'] = 'x'", "x x x y"),
        ("def f(x: 'é + f' = 'f'): pass", "f x f"),
        ("__all__ = ['f', 'é']; __all__ += 'f g'.split()\ndef f(): 'f'\nf", "f f f f"),
        ("'''`x` ``x`` `x.y` `print`'''\nx = 1", "x x x"),
        ("def f(x):\n r'''f x\n :param x: `f`\n :type int x:\n'''", "f x x f x"),
        ("def f(x):\n '''\n >>> x = f(\n ...   x=1)\n >>> x, f\n x\n '''", "f x x1 f x x1 f"),
        ("def f(x):\n '''>>> x(:\n'''", "f x"),
        ("x = y = z = 1; f'{x=} {(y) = !r:>{z}} x={z} {z == 1}'", "z z z z"),
        # No program: as far as its words show
        ("print((n := 1), n", "n n"),
        ("import x as y, z\ny = f(x, z", ""),
        ("__x = 1; x = f(__x", "x"),
        ("as for the rest", ""),
        ("x = f(x == (", "x x"),
        ("x = (F'{x}x', fR'''{x}''x''', 'x'", "x x x"),
        (
            "def f(x):\n r'''f\n :param x: `f`\n >>> y = f('f')\n f\n >>> x'''\n z = [",
            "f x x f y f x z",
        ),
        ("x = '''\n>>> x\n'''; f'''`x`''', (", "x"),
    ],
)
def test_edges(text: str, names: str) -> None:
    """A number says that a name is another one than the first of that spelling."""
    found = [f"{text[i:j]}{''.join(b)[-2:].strip(' 0')}" for i, j, *b in python_names(text)]
    assert found == names.split()


def test_one_program_is_one_text_to_a_tokenizer(tmp_path) -> None:
    """Under other names too; an answer has the names of its problem, spelled without capture."""
    made = TextTokenizer.from_tokenizer(byte_level(), {"name": {"rule": "python", "count": 9}})
    made.save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    problem = "def f({0}):\n    return {0}.y\ndef g({1}):\n    return f({0}={1})\n"
    one, other = problem.format("x", "x"), problem.format("größe", "β")
    answer = "lambda {0}: print({0})"
    batch = tokenizer([one, other], text_target=[answer.format("x"), answer.format("größe")])
    assert batch["input_ids"][0] == batch["input_ids"][1]
    assert batch["labels"][0] == batch["labels"][1]
    nested = tokenizer([other], text_target=["lambda größe: print(lambda größe: größe)"])
    assert tokenizer.batch_decode(nested["labels"], names=nested.names)[0].count("größe") == 3
    assert list(batch.names[1].values()) == ["f", "größe", "g", "β"]
    assert tokenizer.batch_decode(batch["input_ids"], names=batch.names) == [one, other]
    x, y = list(batch.names[0])[1::2]
    assert batch.names[0][x] == batch.names[0][y] == "x"
    ids = tokenizer(f"lambda {x}: lambda {y}: {x} + {y}")["input_ids"]
    written = [tokenizer.decode(ids, names=names) for names in batch.names]
    assert written == ["lambda x: lambda x1: x + x1", "lambda größe: lambda β: größe + β"]


@pytest.mark.parametrize("made", [TextTokenizer, CanonicalTokenizer])
def test_an_answer_that_is_a_program_has_the_names_of_a_problem_that_is_none(made) -> None:
    """As with an order before a function: the one has scopes, the other has not."""
    tokenizer = made.from_tokenizer(byte_level(), {"name": {"rule": "python"}})
    problem = "inline size\ndef area(rate):\n    size = rate\n    return size\nanswer\n"
    answer = "def area(rate):\n    return rate\n"
    batch = tokenizer([problem], text_target=[answer])
    assert [*batch.names[0].values()] == ["size", "area", "rate"]
    assert tokenizer.batch_decode(batch["labels"], names=batch.names) == [answer]
    table = {"area": "x", "rate": "area", "size": "y"}
    other = [
        re.sub("area|rate|size", lambda name: table[name[0]], text) for text in (problem, answer)
    ]
    renamed = tokenizer(other[:1], text_target=other[1:])
    assert renamed["input_ids"] == batch["input_ids"] and renamed["labels"] == batch["labels"]


@pytest.mark.slow
def test_real_files_are_the_same_under_other_names() -> None:
    """Standard library, packages and models; tests of CPython are run."""
    for kind, paths in sets():
        row = checked(kind, paths)
        assert not row.failed and row.names > 0.75 * row.reference
    assert len(TESTS) > 40 and not run_tests().failed


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in Python 3.12")
def test_type_parameters_have_a_scope_of_their_own() -> None:
    text = (
        "type P[T, *Ts, **Q] = T | Ts | Q\n"
        "def f[T: int](x: T, y: list[T] = []) -> T: return x\n"
        "U = T\n@T\nclass A[T](list[T]):\n  U = T\n  def m[V](self, x: U, y: V) -> T: return T\n"
        'T = f"{T:{T["x"]}}"\n'
    )
    found = " ".join(binding for *_, binding in python_names(text))
    assert found.replace(" 0", "") == (
        "P T Ts Q T Ts Q f T 1 x T 1 y T 1 T 1 x T 2 T 2 A T 3 T 3 T 3 V self x 1 y 1 V T 3 T 3 "
        "T 2 T 2 T 2"
    )


PIECES = [
    "def f(",
    "def g",
    "lambda",
    "lambda x",
    *":()[]{},\n",
    " a",
    "=",
    "**d",
    " x: int",
    "f(b)",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_parameters_of_a_fragment_are_what_stands_behind_heads_and_commas(code: str) -> None:
    assert _parameters(code) == parameters(code)
