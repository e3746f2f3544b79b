"""Programs whose names are easily confused: renamed, each prints what it printed."""
# ruff: noqa: RUF001

FORMS = {
    "partial of a method": """
from functools import partial
class A:
    def go(self, x): return x
    def both(self): return partial(self.go, x=1)()
print(A().both())
""",
    "submit of an executor": """
from concurrent.futures import ThreadPoolExecutor
def work(x): return x
with ThreadPoolExecutor(1) as pool:
    print(pool.submit(work, x=1).result())
""",
    "init_subclass keyword": """
class Base:
    def __init_subclass__(cls, tag): cls.t = tag
class A(Base, tag=3): pass
print(A.t)
""",
    "metaclass keyword": """
class M(type):
    def __new__(mcs, n, b, d, tag): return super().__new__(mcs, n, b, d)
    def __init__(cls, n, b, d, tag): cls.t = tag
class A(metaclass=M, tag=3): pass
print(A.t)
""",
    "self.__class__(x=1)": """
class A:
    def __init__(self, x): self.x = x
    def twin(self): return self.__class__(x=self.x)
print(A(2).twin().x)
""",
    "call of an attribute that is an object with __call__": """
class Layer:
    def __call__(self, h, mask): return h + mask
class Net:
    def __init__(self): self.layer = Layer()
    def run(self, h): return self.layer(h, mask=1)
print(Net().run(1))
""",
    "torch: self.attention(h, mask=m) and forward": """
from torch import nn
import torch
class Attention(nn.Module):
    def forward(self, h, mask): return h * mask
class Block(nn.Module):
    def __init__(self):
        super().__init__(); self.attention = Attention()
    def forward(self, h, mask=None): return self.attention(h, mask=mask)
print(Block()(torch.ones(1), mask=torch.ones(1)))
""",
    "function kept in an attribute": """
def double(x): return 2 * x
class A:
    def __init__(self): self.f = double
    def run(self): return self.f(x=3)
print(A().run())
""",
    "nested class by attribute": """
class A:
    class B:
        def __init__(self, x): self.x = x
print(A.B(x=1).x)
""",
    "lambda as a method": """
class A:
    twice = lambda self, x: 2 * x
print(A().twice(x=2))
""",
    "function in a dict": """
def f(x): return x
table = {"f": f}
print(table["f"](x=1))
""",
    "method aliased": """
class A:
    def first(self, x): return x
    second = first
print(A().second(x=1))
""",
    "setattr later / monkeypatch": """
class A: pass
def area(self, x): return x
A.area = area
print(A().area(x=1))
""",
    "property returns function": """
class A:
    @property
    def f(self):
        def inner(x): return x
        return inner
print(A().f(x=1))
""",
    "decorator class passes keywords": """
import functools
def cached(*, size):
    def wrap(f): return f
    return wrap
@cached(size=1)
def f(x): return x
print(f(x=1))
""",
    "dataclass field and replace": """
from dataclasses import dataclass, replace
@dataclass
class P:
    x: int
    y: int = 0
p = P(x=1)
print(replace(p, y=2).y)
""",
    "namedtuple": """
from collections import namedtuple
P = namedtuple("P", "x y")
print(P(x=1, y=2))
""",
    "star import then bound": """
from math import *
print(floor(2.5))
floor = 1
print(floor)
""",
    "class reads the module name beneath a function of that name": """
x = 1
def f():
    x = 2
    class A:
        x = x
    return A.x
print(f())
""",
    "class body del then module": """
x = 1
class A:
    x = 2
    del x
    y = x
print(A.y)
""",
    "class conditionally binds": """
n = 3
class A:
    for i in range(0): n = 2
    m = n
print(A.m)
""",
    "nonlocal and walrus in comprehension": """
def f(arg, /):
    print([x for y in range(10) if (x := y // 2) & 1])
    print(arg, x)
f(10)
""",
    "comprehension reuses its source": """
def f(a): return [a.real for a in a]
print(f([1, 2]))
""",
    "lambda walrus in comprehension": """
def f(cmd):
    fs = [lambda: (cmd := n) for n in range(2)]
    return cmd, fs[0]()
print(f(5))
""",
    "annotated class variable": """
class A:
    a = 5
    b: int = 6
print(A.a * A.b)
""",
    "f-string with format spec and =": """
def add(x: int, y: int):
    width = 5
    print(f"{x:,} + {y:>{width}} = {(x+y):,} {x!r:^{width}} {'a' if x else 'b'}")
    print(f"{{x}} {x:{'>' + str(width)}}")
add(10, 10)
""",
    "nested f-string and triple": """
def add(x, y):
    print(f'''{x} {f"{y} {f'{x}'}"} {
        x + y
    } \\N{BULLET} {x}''' "x" f"{y}" rf"\\{x}" F'{y}')
add(1, 2)
""",
    "f-string dict key": """
def g(row, key):
    print(f"{row['key']} {row[key]} {row.get('x', {'a': 1})['a']} {[k for k in row]}")
g({"key": 1, "b": 2}, "b")
""",
    "match": """
from dataclasses import dataclass
@dataclass
class P:
    x: int
    y: int
def f(v):
    match v:
        case P(x=0, y=y) | P(x=y, y=0): return y
        case {"k": k, **rest}: return k, rest
        case [a, *b, c] as whole: return a, b, c, whole
        case (1 | 2) as n if n > 1: return n
        case str(s): return s
        case x: return x
print(f(P(0, 3)), f(P(4, 0)), f({"k": 1, "z": 2}), f([1, 2, 3]), f(2), f("q"), f(9.5))
""",
    "except star, with, async": """
import asyncio
async def gen(n):
    for i in range(n): yield i
async def main():
    out = [i async for i in gen(3) if i]
    try: raise ExceptionGroup("g", [ValueError(1)])
    except* ValueError as err: print(err.exceptions)
    try: 1/0
    except (ZeroDivisionError, ValueError) as err: print(type(err))
    return out
print(asyncio.run(main()))
""",
    "unicode NFKC": """
def f(ﬁn, ℌ):
    return fin + H + 𝐇
print(f(1, 2))
""",
    "global in function makes name": """
def f():
    global total
    total = 3
f()
print(total)
""",
    "locals / format": """
def f(x, y):
    return "%(x)s {y}" % locals()
print(f(1, 2))
""",
    "dict of locals": """
def f(x, y):
    z = 3
    return "{x} {z}".format(**locals())
print(f(1, 2))
""",
    "kwargs read by name": """
def outer(x, **kw): return inner(x=x, **kw)
def inner(x, y): return x + y
print(outer(1, y=2))
""",
    "kwargs passed through wraps": """
from functools import wraps
def log(f):
    @wraps(f)
    def g(*args, **kwargs): return f(*args, **kwargs)
    return g
@log
def area(w, h): return w * h
print(area(w=1, h=2))
""",
    "dispatch through parameter": """
def call(fn): return fn(x=1)
def f(x): return x
print(call(f))
""",
    "class kw: call through cls attr": """
class A:
    kind = None
    def __init__(self, x): self.x = x
class B:
    made = A
    def make(self): return self.made(x=1)
print(B().make().x)
""",
    "super chain": """
class A:
    def __init__(self, x, y=0): self.x = x
class B(A):
    def __init__(self, x): super().__init__(x=x, y=1)
print(B(x=3).x)
""",
    "subclass of imported base by keyword": """
from collections import UserDict
class D(UserDict):
    def get2(self, key, default=None): return self.get(key, default=default)
print(D(a=1).get2("b", default=4))
""",
    "import inside try shadow": """
try:
    import ujson as js
except ImportError:
    js = None
print(js)
""",
    "name_ as module attr": """
import sys
value = 3
print(sys.modules[__name__].value)
""",
    "getattr globals": """
def task(): return 5
print(globals()["task"]())
""",
    "__all__": """
__all__ = ["task"]
def task(): return 5
print([n for n in __all__ if n in globals()])
""",
    "slots / property setter": """
class A:
    def __init__(self): self._x = 1
    @property
    def x(self): return self._x
    @x.setter
    def x(self, value): self._x = value
a = A(); a.x = 4
print(a.x)
""",
    "typing NamedTuple/TypedDict": """
from typing import NamedTuple, TypedDict
class N(NamedTuple):
    a: int
T = TypedDict("T", {"a": int})
print(N(a=1).a, T(a=2))
""",
    "string annotations": """
import typing
class Tree: pass
def f(t: "Tree", n: "list[Tree] | None" = None) -> typing.Optional["Tree"]: return t
print([note is Tree for note in typing.get_type_hints(f).values()], f(t=1))
x: "Tree"
def g(kind: typing.Literal["Tree"] = "Tree", m: typing.Annotated["Tree", "Tree"] = 1):
    return kind, m
print(g(), [*typing.get_type_hints(g).values()][0])
""",
    "exec": """
x = 1
exec("x += 1")
print(x)
""",
    "doctest": '''
def square(n, *, times=1):
    """Square `n`.

    >>> square(3)
    9
    >>> total = square(
    ...     2, times=2)
    >>> total
    8

    :param n: a number
    """
    return n * n * times
import doctest
print(doctest.testmod())
''',
    "keys of dictionaries": """
def f(x, y=0, z=0): return x, y, z
options = dict(y=2)
print(f(**{"x": 1}), f(1, **options), (lambda f=f, **kw: f(**kw))(x=3, z=4))
""",
    "a decorator that knows parameters": """
def option(spelling):
    def wrap(f): return lambda: f(**{spelling.strip("-"): 3})
    return wrap
@option("--count")
def hello(count, other=2): return count, other
print(hello())
""",
    "a decorator with keywords": """
def given(**kw): return lambda f: lambda: f(**kw)
@given(x=1)
def f(x): return x
print(f())
""",
    "a class adds to a name of the module": """
x = 1
def f():
    x = 5
    class A:
        x += 1
    return A.x
print(f())
""",
    "vars and names of a function": """
def f(a, b):
    c = 3
    return sorted(vars()), eval("a + b"), [d for d in (1,)]
print(f(1, 2))
""",
    "names of stars": """
from math import *
def area(radius): return pi * radius ** 2
size = floor(area(2))
def floor(x): return -x
print(size, floor(size), hypot(3, 4))
hypot = 1
""",
    "a function that is bound twice": """
def f(x): return x
try: print(f(x=1))
finally:
    def f(y): return y
print(f(y=2))
""",
    "a property and a setter": """
class A:
    @staticmethod
    def make(kind, size): return kind, size
    @classmethod
    def of(cls, size): return cls.make("a", size=size)
print(A.of(size=3))
""",
    "a subclass calls its base": """
class A:
    def area(self, w, h=1): return w * h
class B(A):
    def area(self, w, d=2): return super().area(w, h=d)
class C(B): pass
print(C().area(3), C().area(3, d=4), C.area(C(), w=1))
""",
    "a thread": """
from threading import Thread
def work(x, out): out.append(x)
done = []
t = Thread(target=work, kwargs={"x": 1, "out": done}); t.start(); t.join()
print(done)
""",
}
