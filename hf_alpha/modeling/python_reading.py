"""Programs of Python as they are read: blocks, what each binds, and where names stand in them."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from .python_code import A_NAME, TOLD, examples_in, expression, inside_quotes, words_in


class Binding(NamedTuple):
    """A name that a scope binds."""

    scope: "PythonScope"
    name: str


class PythonScope:
    """A block of a program with names of its own.

    Attributes:
        outer: the block around it; None of the module.
        kind: "module", "function", "comprehension", "class", or "types" (type parameters).
        bound: the names that are bound in it.
        declared: name -> "global" or "nonlocal", of the names that are another block's.
    """

    def __init__(self, outer: "PythonScope | None", kind: str):
        self.outer, self.kind = outer, kind
        self.bound: set[str] = set()
        self.declared: dict[str, str] = {}
        self.module: PythonScope = self if outer is None else outer.module

    def home(self, name: str, within: bool = True) -> Binding | None:
        """Return what a name means here; None if the program does not bind it.

        Args:
            within: whether it stands in the block itself: only there are names of a class seen.
        """
        scope: PythonScope | None = self
        while scope is not None:
            declared = scope.declared.get(name)
            if declared == "global":
                return self.global_name(name)
            if name in scope.bound and (within or scope.kind != "class"):
                return Binding(scope, name)
            within = within and scope.kind == "types"
            scope = scope.outer
        return None

    def global_name(self, name: str) -> Binding | None:
        """Return what a name means in the module."""
        return Binding(self.module, name) if name in self.module.bound else None

    def around(self) -> "Iterator[PythonScope]":
        """Yield the block and those around it."""
        scope: PythonScope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class Function(NamedTuple):
    """A function of the program.

    Attributes:
        scope: of its parameters.
        keywords: the parameters that a call can name.
        method: its name, if it is a method.
        owner: the block of its class, if it is one.
        is_handed: whether a decorator gets it, or it has no name.
    """

    scope: PythonScope
    keywords: frozenset[str]
    method: str | None
    owner: PythonScope | None
    is_handed: bool


class Class(NamedTuple):
    """A class of the program.

    Attributes:
        start: where it begins.
        scope: of its body.
        bases: what it is made of.
        is_plain: whether no decorator and metaclass makes something else of it.
        outer: where its bases are looked up.
    """

    start: int
    scope: PythonScope
    bases: tuple[ast.expr, ...]
    is_plain: bool
    outer: PythonScope


class Use(NamedTuple):
    """A place at which a name stands, and the scope in which it is looked up.

    Attributes:
        role: "read"; "called", if it is read to be called at once; else "written".
    """

    start: int
    name: str
    scope: PythonScope
    role: str = "written"


_READS_NAMES = ("locals", "globals", "vars", "dir")
_RUNS_CODE = ("eval", "exec")
"""Builtins that read names by their spelling: without arguments, or without names of their own."""
_PLAIN = ("staticmethod", "classmethod", "property")
_SHOWN = re.compile(r"[\s)]*=\s*[!:}]")  # `regex` looks for the sign in all of the text first


class Reading:
    """What a program binds and uses; nodes have the places that `parsed` gave them."""

    def __init__(self, text: str, tree: Any):
        self.text = text
        self.uses: list[Use] = []
        self.calls: list[tuple[Any, PythonScope]] = []  # with keywords; classes with such too
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.strings: set[str] = set()
        self.taken: set[str] = set()  # attributes that are read, and not called at once
        self.what: dict[Binding, list[Any]] = defaultdict(list)
        """What binds a name each time: a Function, a Class, "import" or "variable"."""
        self.kept: set[Binding] = set()  # what keeps its spelling
        self._binds: list[tuple[str, PythonScope, Any]] = []
        self._called: set[ast.AST] = set()
        self.decorators: set[ast.AST] = set()
        self._docstrings: set[ast.AST] = set()
        self._code: set[ast.AST] = set()  # strings whose names are names
        self.seen: list[tuple[str, PythonScope]] = []  # builtin and scope, whose names it reads
        self.stars: list[int] = []  # where `from m import *` stands
        self.attributes: list[tuple[Any, PythonScope]] = []
        self.selves: dict[Binding, PythonScope] = {}  # first parameter of a method -> its class
        self.texts: list[str] = []  # strings that are no docstrings
        self.shown: set[int] = set()  # where names stand that f-strings print, `{x=}`
        module = PythonScope(None, "module")
        blocks = [(tree, module), *self._docstring(tree, module)]
        while blocks:  # no recursion: programs nest deeply
            node, scope = blocks.pop()
            blocks += self._read(node, scope)
        for name, scope, _ in self._binds:
            declared = scope.declared.get(name)
            if declared != "nonlocal":
                (scope.module if declared else scope).bound.add(name)
        for name, scope, what in self._binds:
            if (binding := scope.home(name)) is not None:
                self.what[binding].append(what)

    def _bind(self, name: str, scope: PythonScope, what: Any, start: int | None = None) -> None:
        self._binds.append((name, scope, what))
        if start is not None:
            self.uses.append(Use(start, name, scope))

    def _read(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        """Take in a node; return the nodes in it that are still to be read, with their scopes."""
        start, stop = getattr(node, "start", 0), getattr(node, "stop", 0)
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                role = "called" if node in self._called else "read"
                self.uses.append(Use(start, name, scope, role))
            case ast.Name(id=name):
                self._bind(name, scope, "variable", start)
            case ast.Attribute(attr=name, ctx=context):
                self.attributes.append((node, scope))
                if isinstance(context, ast.Load) and node not in self._called:
                    self.taken.add(name)
            case ast.Constant(value=str(string)) if node not in self._code:
                self.strings.add(string)
                if node not in self._docstrings:
                    self.texts.append(string)
            case ast.JoinedStr(values=values):
                for each in values:
                    value: Any = each.value if isinstance(each, ast.FormattedValue) else each
                    if _SHOWN.match(self.text, value.stop):
                        self.shown |= {*map(_place, ast.walk(value))}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return self._function(node, scope)
            case ast.ClassDef():
                return self._class(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.NamedExpr(target=target, value=value):
                around = scope
                while around.kind == "comprehension":
                    around = around.outer  # type: ignore[assignment]
                return [(target, around), (value, scope)]
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                self.stars += [start for alias in names if alias.name == "*"]
                for alias in names:
                    self._bind(alias.asname or alias.name.partition(".")[0], scope, "import")
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                scope.declared |= dict.fromkeys(names, type(node).__name__.lower())
                _, *words = words_in(self.text, start, stop)
                for name, word in zip(names, words, strict=True):
                    self.uses.append(Use(word, name, scope))
            case ast.ExceptHandler(name=str(name), type=error):
                self._bind(name, scope, "variable", self._word(getattr(error, "stop", start), 1))
            case (
                ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                *_, last = words_in(self.text, start, stop)
                self._bind(name, scope, "variable", last)
            case ast.AugAssign(target=ast.Name(id=name)):
                self.uses.append(Use(start, name, scope, "read"))
                self._exported(node.target, node.value, scope)
            case ast.Assign(targets=[target]):
                self._exported(target, node.value, scope)
            case ast.AnnAssign(annotation=note):
                return _in(scope, [*ast.iter_child_nodes(node), *self._notes(note)])
            case ast.Subscript(slice=ast.Name(id="__name__")):  # sys.modules[__name__]
                self.seen.append(("globals", scope))
            case ast.MatchClass(kwd_attrs=names):
                self.texts += names
            case ast.Call():
                self._call(node, scope)
        if type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):
            self._bind(node.name, scope, "variable", self._word(start, 0))
        if type(node).__name__ == "TypeAlias":
            types = self._types(node, scope)
            return [(node.name, scope), (node.value, types), *_in(types, node.type_params)]
        return _in(scope, ast.iter_child_nodes(node))

    def _call(self, node: ast.Call, scope: PythonScope) -> None:
        self._called.add(node.func)
        name, is_alone = name_of(node.func), not (node.args or node.keywords)
        runs = name in _RUNS_CODE and not isinstance([*node.args, None, None][1], ast.Dict)
        if runs or (is_alone and name in _READS_NAMES):
            self.seen.append((name, scope))
        if node.keywords:
            self.calls.append((node, scope))

    def _function(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        arguments, types = node.args, self._types(node, scope)
        inner = PythonScope(types, "function")
        keywords = frozenset(p.arg for p in [*arguments.args, *arguments.kwonlyargs])
        decorators = getattr(node, "decorator_list", ())
        owner = scope if scope.kind == "class" else None
        function = Function(
            inner,
            keywords,
            getattr(node, "name", "") if owner else None,
            owner,
            isinstance(node, ast.Lambda) or any(name_of(d) not in _PLAIN for d in decorators),
        )
        self.functions.append(function)
        outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += filter(None, (arguments.vararg, arguments.kwarg))
        for parameter in parameters:
            self._bind(parameter.arg, inner, "variable", parameter.start)
        if isinstance(node, ast.Lambda):
            return [(node.body, inner), *_in(scope, outside)]
        if owner and parameters and "staticmethod" not in map(name_of, decorators):
            self.selves[Binding(inner, parameters[0].arg)] = owner
        self.decorators.update(decorators)
        # `@click.option("--x")`, `@app.get("/{x}")`: a decorator that knows parameters by names
        told = {word for each in decorators for word in _words_in_strings(each)}
        self.kept |= {Binding(inner, p.arg) for p in parameters if p.arg in told}
        before = 1 + isinstance(node, ast.AsyncFunctionDef)  # `def`, or `async def`
        self._bind(node.name, scope, function, self._word(node.start, before))
        notes = [node.returns, *(parameter.annotation for parameter in parameters)]
        notes += [code for note in filter(None, notes) for code in self._notes(note)]
        return [
            *_in(scope, [*outside, *decorators]),
            *_in(types, [*filter(None, notes), *getattr(node, "type_params", ())]),
            *_in(inner, node.body),
            *self._docstring(node, inner),
        ]

    def _class(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        types = self._types(node, scope)
        inner = PythonScope(types, "class")
        is_plain = not (node.decorator_list or node.keywords)
        what = Class(node.start, inner, tuple(node.bases), is_plain, types)
        self.classes.append(what)
        if node.keywords:
            self.calls.append((node, scope))
        self._bind(node.name, scope, what, self._word(node.start, 1))
        return [
            *_in(scope, node.decorator_list),
            *_in(types, [*node.bases, *node.keywords, *getattr(node, "type_params", ())]),
            *_in(inner, node.body),
            *self._docstring(node, inner),
        ]

    def _comprehension(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        """The first iterable is the only part that is read outside."""
        inner, first = PythonScope(scope, "comprehension"), node.generators[0]
        parts = [child for child in ast.iter_child_nodes(node) if child is not first]
        return [(first.iter, scope), *_in(inner, [*parts, first.target, *first.ifs])]

    def _types(self, node: Any, scope: PythonScope) -> PythonScope:
        return PythonScope(scope, "types") if getattr(node, "type_params", None) else scope

    def _notes(self, note: ast.AST) -> Iterator[ast.AST]:
        """Yield the code in strings of an annotation: `list["Tree"]`, but not `Literal["tree"]`."""
        nodes = [note]
        while nodes:
            match nodes.pop():
                case ast.Constant(value=str(string)) as node:
                    inside = inside_quotes(self.text, node)
                    if inside is None or self.text[slice(*inside)] != string:
                        continue
                    try:
                        code = expression(self.text, string, inside[0])
                    except (SyntaxError, ValueError, RecursionError, MemoryError):
                        continue
                    self._code.add(node)
                    yield code
                    nodes.append(code)
                case ast.Subscript(value=value) if _last_name(value) == "Literal":
                    pass
                case ast.Subscript(value=value, slice=ast.Tuple(elts=[first, *_])) if (
                    _last_name(value) == "Annotated"
                ):
                    nodes.append(first)
                case node:
                    nodes += ast.iter_child_nodes(node)

    def _exported(self, target: ast.AST, value: ast.AST, scope: PythonScope) -> None:
        """Take in the names in strings of `__all__`."""
        if name_of(target) != "__all__" or scope.kind != "module":
            return
        for node in ast.walk(value):
            if isinstance(node, ast.Constant) and (inside := inside_quotes(self.text, node)):
                self._code.add(node)
                for match in A_NAME.finditer(self.text, *inside):
                    self.uses.append(Use(match.start(), match.group(), scope))

    def _docstring(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        """Take in what a docstring calls by its name; return the code of its examples.

        Examples share what they bind, and see nothing of a function that they stand in.
        """
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str()) as string), *_]:
                inside = inside_quotes(self.text, string)
                self._docstrings.add(string)
            case _:
                return []
        if inside is None:
            return []
        for match in TOLD.finditer(self.text, *inside):
            self.uses.append(Use(match.start("name"), match["name"], scope))
        examples = PythonScope(scope.module, "function")
        return _in(examples, examples_in(self.text, *inside))

    def _word(self, start: int, number: int) -> int:
        words = words_in(self.text, start)
        return [next(words) for _ in range(number + 1)][-1]


def _in(scope: PythonScope, nodes: Any) -> list[tuple[ast.AST, PythonScope]]:
    return [(node, scope) for node in nodes]


def _place(node: Any) -> int:
    is_attribute = isinstance(node, ast.Attribute)
    return int(node.stop) - len(node.attr) if is_attribute else getattr(node, "start", -1)


def name_of(node: Any) -> str:
    """Return the name that a node is, or nothing."""
    return node.id if isinstance(node, ast.Name) else ""


def _last_name(node: Any) -> str:
    return node.attr if isinstance(node, ast.Attribute) else name_of(node)


def _words_in_strings(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from A_NAME.findall(part.value)
