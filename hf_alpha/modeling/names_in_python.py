"""Names of Python programs: what a text binds itself, scope by scope.

Names are parameters, variables, functions and classes that the text defines, and the variables of
comprehensions, patterns and handlers; `x` of one scope is another name than `x` of another one. The
keyword of a call to a function of the text is its parameter. Code in strings is code: annotations,
`__all__`, expressions of f-strings, and of docstrings the examples, `:param x:` and words in
backticks. These keep their spelling:

- what the text does not bind: builtins, names of other modules;
- imports, whatever they are called;
- attributes, so all that a class binds: methods and fields, unless they are asked for;
- names that begin with `__`, which Python has uses for, and, of the module, those of builtins;
- parameters that a keyword may reach in a way that cannot be followed: `method(key=1)`;
- what is read by its spelling: by `locals()`, `eval(...)`, `globals()`, and, beside
  `from m import *`, names of the module that may be those of `m`;
- other strings, and comments.

Scopes are those of Python's reference, "Execution model". A text that is no program of Python has
no scopes: see `fragment_names`.
"""

import ast
import builtins
import io
import keyword
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise, repeat
from operator import itemgetter
from types import GeneratorType
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]

NAME = r"(?<!\p{XID_Continue})[\p{XID_Start}_]\p{XID_Continue}*"
_TRIPLE = r"(\"\"\"|''')(?:\\.|[^\\])*?(?:\2|\Z)"
_SINGLE = r"([\"'])(?:\\.|(?!\3)[^\\\n])*+(?:\3|\Z)"
_STRING = regex.compile(rf"(?s)(?<!\w)((?i:[rbuft]{{0,2}}))(?:{_TRIPLE}|{_SINGLE})")
_STRING_OR_COMMENT = regex.compile(rf"{_STRING.pattern}|#[^\n]*")
_NAME = regex.compile(NAME)
_FIELD = r"""(?sx) \{\{ | \{ \s* ((?: [^][(){}'"!:] | != | (?&quoted) | (?&brackets) )+)
    (?(DEFINE) (?P<quoted> (\"{3}|'{3}) .*? \3 | (["']) .*? \4 )
               (?P<brackets> [[({] (?: [^][(){}'"] | (?&quoted) | (?&brackets) )* [])}] ))"""
_FIELDS = {
    True: regex.compile(_FIELD),  # of raw strings
    False: regex.compile(_FIELD.replace("(?sx)", r"(?sx) \\ (?: N\{[^}]*+\} | [^{] ) |")),
}
"""The beginning of a replacement field of an f-string, with its expression; `{{` is none."""


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


def python_names(text: str, attributes: bool = False) -> list[tuple[Any, ...]]:
    """Return start, stop and binding of the names of a program, in order.

    A binding is called by the name and a number, 0 for the first of that name. A text that Python
    cannot parse has the names of `fragment_names`, which have no binding.

    Args:
        text: all of it.
        attributes: whether methods and fields are names that classes of the text define, where no
            other class can be meant.
    """
    program = _program(text, attributes)
    return fragment_names(text) if program is None else program[0]


def unbound_names(text: str, attributes: bool = False) -> list[tuple[int, int]]:
    """Return start and stop of what may be names of another text: words that are not bound here."""
    program = _program(text, attributes)
    return fragment_words(text) if program is None else program[1]


@lru_cache(maxsize=64)
def _program(
    text: str, attributes: bool
) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]] | None:
    """Return the names of a program and the words that it does not bind; None if it is none."""
    try:
        tree = _parsed(text, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    program = _Program(text, tree, attributes)
    return program.names(), program.unbound()


class _Program:
    """What a program binds and uses; nodes have the places that `_located` gave them."""

    def __init__(self, text: str, tree: Any, attributes: bool):
        self.text = text
        self.uses: list[Use] = []
        self.calls: list[tuple[Any, PythonScope]] = []
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.strings: set[str] = set()
        self.taken: set[str] = set()
        """Attributes that are read, and not called at once."""
        self.what: dict[Binding, list[Any]] = defaultdict(list)
        """What binds a name each time: a Function, a Class, "import" or "variable"."""
        self.kept: set[Binding] = set()
        self._binds: list[tuple[str, PythonScope, Any]] = []
        self._called: set[ast.AST] = set()
        self._decorators: set[ast.AST] = set()
        self._docstrings: set[ast.AST] = set()
        self._code: set[ast.AST] = set()  # strings whose names are names
        self._seen: list[tuple[str, PythonScope]] = []  # builtin and scope, whose names it reads
        self._stars: list[int] = []
        self._attributes: list[tuple[Any, PythonScope]] = []
        self._selves: dict[Binding, PythonScope] = {}  # first parameter of a method -> its class
        self._texts: list[str] = []  # strings that are no docstrings
        self.fields = PythonScope(None, "attributes")
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
        self._follow_keywords()
        if attributes:
            self._take_attributes()
        if self._stars:
            self._keep_names_of_stars(tree.body)

    def unbound(self) -> list[tuple[int, int]]:
        """Return where names stand that the program does not bind."""
        starts = {use.start for use in self.uses if use.scope.home(use.name) is None}
        return [(start, self._stop(start)) for start in sorted(starts)]

    def names(self) -> list[tuple[int, int, str]]:
        """Return start, stop and binding of each name, in order."""
        kept, places = set(self.kept), dict[int, Binding]()
        for start, name, scope, role in self.uses:
            if (binding := scope.home(name)) is None:
                continue
            if binding.scope.kind == "class":
                binding = self.fields.home(name) or binding
                kept |= {binding} - {Binding(self.fields, name)}
                # `x = x` in a class reads the `x` of the module, whatever is around the class
                if role != "written" and (outside := scope.global_name(name)):
                    kept |= {binding, outside}
            places[start] = binding
        seen = self._seen_scopes()
        kept |= {b for b in places.values() if b.scope in seen or self._is_special(b)}
        called: dict[Binding, str] = {}
        alike = Counter[str]()
        for _, binding in sorted(places.items(), key=itemgetter(0)):
            if binding not in kept and binding not in called:
                number = alike[binding.name]
                called[binding] = f"{binding.name} {number}"
                alike[binding.name] += 1
        return [(i, self._stop(i), called[b]) for i, b in sorted(places.items()) if b in called]

    def _stop(self, start: int) -> int:
        return int(_NAME.match(self.text, start).end())

    def _is_special(self, binding: Binding) -> bool:
        name = binding.name
        return (
            name.startswith("__")
            or "import" in self.what[binding]
            or (binding.scope.kind == "module" and hasattr(builtins, name))
        )

    def _seen_scopes(self) -> set[PythonScope]:
        """Return the blocks whose names the program reads by their spelling."""
        seen = set[PythonScope]()
        for builtin, scope in self._seen:
            if builtin == "globals":
                seen.add(scope.module)
            elif scope.home(builtin) is None:
                seen.update(scope.around())
        return seen

    def _keep_names_of_stars(self, body: list[Any]) -> None:
        """Keep names of the module that may be those of `from m import *`.

        Surely its own are those that a statement of the module binds behind it, and that are read
        behind that statement alone, or in the function that it defines.
        """
        own: dict[str, Any] = {}
        for node in body:
            for name in _bound_by(node):
                own.setdefault(name, node)
        for use in self.uses:
            binding = use.scope.home(use.name)
            if binding is None or binding.scope.kind != "module":
                continue
            node = own.get(use.name)
            if node is None or max(self._stars) > node.start:
                self.kept.add(binding)
            elif use.role != "written":
                later = use.start >= node.start and use.scope.kind == "function"
                if not later and use.start < node.stop:
                    self.kept.add(binding)

    # Keywords of calls

    def _follow_keywords(self) -> None:
        """Add the keywords that are parameters, and keep the parameters that others may reach.

        A keyword that is not followed reaches the methods that are called so, and all functions
        that are loose: they are handed on, so that any call may be one of theirs.
        """
        words = set[str]()  # keywords that are not followed
        of_method: dict[str, set[str]] = defaultdict(set)
        spread = set[Any]()  # functions, and names of methods, that are called with `**`
        made = set[str]()  # keys of dictionaries
        for call, scope in self.calls:
            given = {word.arg for word in call.keywords}
            values = (word.value for word in call.keywords)  # Thread(target=f, kwargs={"x": 1})
            keys = (key for value in values if isinstance(value, ast.Dict) for key in value.keys)
            given |= {key.value for key in keys if isinstance(key, ast.Constant)}
            function = self._followed(call, scope)
            if function is not None:
                for word in call.keywords:
                    if word.arg in function.keywords:
                        self.uses.append(Use(word.start, word.arg, function.scope))
                        given.discard(word.arg)
            elif self._is_outside(call, scope):
                made |= given if _name_of(call.func) == "dict" else set()
                continue
            method = getattr(getattr(call, "func", None), "attr", "")
            if None in given:
                spread.add(function or method)
            of_method[method] |= given
            words |= given
        if None in words:
            words |= made | self.strings
        loose = self._loose()
        for function in self.functions:
            method = function.method or ""
            reach = set(of_method[method]) if method else set()
            if function in loose or function in spread or (method and method in spread):
                reach |= words
            self.kept |= {Binding(function.scope, name) for name in function.keywords & reach}

    def _followed(self, call: Any, scope: PythonScope) -> Function | None:
        """Return the function that a call calls, if that is sure."""
        binding = scope.home(_name_of(getattr(call, "func", None)))
        match self.what[binding] if binding else ():
            case [Function(is_handed=False) as function] if function.owner is None:
                return function
        return None

    def _is_outside(self, call: Any, scope: PythonScope) -> bool:
        """Whether a call reaches no function of the text: what it calls has none, and gets none."""
        if isinstance(call, ast.ClassDef) or call in self._decorators:
            return False
        root = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Constant | ast.JoinedStr):
            return True
        what = self._what(root, scope)
        if not isinstance(root, ast.Name) or (what and what != ["import"]):
            return False
        if not what and hasattr(builtins, root.id):
            return root.id != "type"
        values = [*call.args, *(word.value for word in call.keywords)]
        return not any(map(_may_be_function, values))

    def _loose(self) -> set[Function]:
        """Return the functions whose calls cannot all be seen."""
        read = (use.scope.home(use.name) for use in self.uses if use.role == "read")
        values, seen = set(filter(None, read)), self._seen_scopes()
        loose = {function for function in self.functions if function.is_handed}
        for binding, what in self.what.items():
            if len(what) > 1 or binding in values or binding.scope in seen:
                loose.update(each for each in what if isinstance(each, Function))
        own, taken = self._own_classes(), self.taken | self.strings
        loose |= {
            function
            for function in self.functions
            if (method := function.method)
            and (method.startswith("__") or method in taken or function.owner not in own)
        }
        return loose

    def _own_classes(self) -> set[PythonScope]:
        """Return the blocks of classes that only classes of the text are made of, and make."""
        own = set[PythonScope]()
        for each in sorted(self.classes):
            if not each.is_plain:
                continue
            whats = [self._what(base, each.outer) or _name_of(base) for base in each.bases]
            if all(
                what == "object"
                or (len(what) == 1 and isinstance(what[0], Class) and what[0].scope in own)
                for what in whats
            ):
                own.add(each.scope)
        for each in sorted(self.classes, reverse=True):
            if each.scope not in own:
                bases = [what for base in each.bases for what in self._what(base, each.outer)]
                own -= {base.scope for base in bases if isinstance(base, Class)}
        return own

    def _what(self, node: ast.AST | None, scope: PythonScope) -> list[Any]:
        binding = scope.home(_name_of(node))
        return self.what[binding] if binding else []

    # Methods and fields

    def _take_attributes(self) -> None:
        """Make names of the methods and fields that only classes of the text have.

        What a value is, is sure of `self`, of a class and of what it makes; elsewhere, a text
        without imports has values of its own classes and builtins alone.
        """
        own, defined, others = self._own_classes(), set[str](), set(_BUILTIN_ATTRIBUTES)
        for binding, what in self.what.items():
            if binding.scope.kind == "class":
                is_own = binding.scope in own and "import" not in what
                (defined if is_own else others).add(binding.name)
        has_imports = any("import" in what for what in self.what.values())
        for node, scope in self._attributes:
            root = node.value
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            is_own = self._is_own(node.value, scope, own)
            is_known = not _name_of(root) or self._what(root, scope) or hasattr(builtins, root.id)
            if is_own and isinstance(node.ctx, ast.Store):
                defined.add(node.attr)
            elif not is_own and (has_imports or not is_known):
                others.add(node.attr)
            start = node.stop - len(node.attr)
            if self.text[start : node.stop] == node.attr:
                self.uses.append(Use(start, node.attr, self.fields))
            else:
                others.add(node.attr)
        if self._reads_attributes():
            return
        others |= {word for text in self._texts for word in _NAME.findall(text)}
        self.fields.bound = {name for name in defined - others if not name.startswith("__")}

    def _is_own(self, value: Any, scope: PythonScope, own: set[PythonScope]) -> bool:
        """Whether a value is sure to be of a class of the text, or such a class."""
        match self._what(value.func if isinstance(value, ast.Call) else value, scope):
            case [Class(scope=body)]:
                return body in own
            case ["variable"] if isinstance(value, ast.Name):
                binding = scope.home(value.id)
                return binding in self._selves and self._selves[binding] in own
        return False

    def _reads_attributes(self) -> bool:
        """Whether attributes may be read by their spelling, which is computed."""
        read = (use for use in self.uses if use.name in _READS_ATTRIBUTES)
        special = (node.attr for node, _ in self._attributes)
        methods = (function.method for function in self.functions)
        return (
            any(use.scope.home(use.name) is None for use in read)
            or "__dict__" in special
            or any(method in ("__getattr__", "__getattribute__") for method in methods)
        )

    # What a node binds and uses

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
                self._attributes.append((node, scope))
                if isinstance(context, ast.Load) and node not in self._called:
                    self.taken.add(name)
            case ast.Constant(value=str(string)) if node not in self._code:
                self.strings.add(string)
                if node not in self._docstrings:
                    self._texts.append(string)
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
                self._stars += [start for alias in names if alias.name == "*"]
                for alias in names:
                    self._bind(alias.asname or alias.name.partition(".")[0], scope, "import")
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                scope.declared |= dict.fromkeys(names, type(node).__name__.lower())
                _, *words = self._words(start, stop)
                for name, word in zip(names, words, strict=True):
                    self.uses.append(Use(word, name, scope))
            case ast.ExceptHandler(name=str(name), type=error):
                self._bind(name, scope, "variable", self._word(getattr(error, "stop", start), 1))
            case (
                ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                *_, last = self._words(start, stop)
                self._bind(name, scope, "variable", last)
            case ast.AugAssign(target=ast.Name(id=name)):
                self.uses.append(Use(start, name, scope, "read"))
                self._exported(node.target, node.value, scope)
            case ast.Assign(targets=[target]):
                self._exported(target, node.value, scope)
            case ast.AnnAssign(annotation=note):
                return _in(scope, [*ast.iter_child_nodes(node), *self._notes(note)])
            case ast.Subscript(slice=ast.Name(id="__name__")):  # sys.modules[__name__]
                self._seen.append(("globals", scope))
            case ast.MatchClass(kwd_attrs=names):
                self._texts += names
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
        name, is_alone = _name_of(node.func), not (node.args or node.keywords)
        runs = name in _RUNS_CODE and not isinstance([*node.args, None, None][1], ast.Dict)
        if runs or (is_alone and name in _READS_NAMES):
            self._seen.append((name, scope))
        if node.keywords:
            self.calls.append((node, scope))

    def _function(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        arguments, types = node.args, self._types(node, scope)
        inner = PythonScope(types, "function")
        keywords = frozenset(
            parameter.arg for parameter in [*arguments.args, *arguments.kwonlyargs]
        )
        decorators = getattr(node, "decorator_list", ())
        owner = scope if scope.kind == "class" else None
        function = Function(
            inner,
            keywords,
            getattr(node, "name", "") if owner else None,
            owner,
            isinstance(node, ast.Lambda) or any(_name_of(d) not in _PLAIN for d in decorators),
        )
        self.functions.append(function)
        outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += filter(None, (arguments.vararg, arguments.kwarg))
        for parameter in parameters:
            self._bind(parameter.arg, inner, "variable", parameter.start)
        if isinstance(node, ast.Lambda):
            return [(node.body, inner), *_in(scope, outside)]
        if owner and parameters and "staticmethod" not in map(_name_of, decorators):
            self._selves[Binding(inner, parameters[0].arg)] = owner
        self._decorators.update(decorators)
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

    # Code in strings

    def _notes(self, note: ast.AST) -> Iterator[ast.AST]:
        """Yield the code in strings of an annotation: `list["Tree"]`, but not `Literal["tree"]`."""
        nodes = [note]
        while nodes:
            match nodes.pop():
                case ast.Constant(value=str(string)) as node:
                    inside = _inside(self.text, node)
                    if inside is None or self.text[slice(*inside)] != string:
                        continue
                    try:
                        code = _expression(self.text, string, inside[0])
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
        if _name_of(target) != "__all__" or scope.kind != "module":
            return
        for node in ast.walk(value):
            if isinstance(node, ast.Constant) and (inside := _inside(self.text, node)):
                self._code.add(node)
                for match in _NAME.finditer(self.text, *inside):
                    self.uses.append(Use(match.start(), match.group(), scope))

    def _docstring(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        """Take in what a docstring calls by its name; return the code of its examples.

        Examples share what they bind, and see nothing of a function that they stand in.
        """
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str()) as string), *_]:
                inside = _inside(self.text, string)
                self._docstrings.add(string)
            case _:
                return []
        if inside is None:
            return []
        for match in _TOLD.finditer(self.text, *inside):
            self.uses.append(Use(match.start("name"), match["name"], scope))
        examples = PythonScope(scope.module, "function")
        return _in(examples, _examples(self.text, *inside))

    def _words(self, start: int, stop: int | None = None) -> Iterator[int]:
        """Yield where words stand that are no part of strings and comments."""
        end = len(self.text) if stop is None else stop
        while match := _WORD_OR_NONE.search(self.text, start, end):
            if match.group("name"):
                yield match.start()
            start = match.end()

    def _word(self, start: int, number: int) -> int:
        words = self._words(start)
        return [next(words) for _ in range(number + 1)][-1]


_WORD_OR_NONE = regex.compile(rf"{_STRING_OR_COMMENT.pattern}|(?P<name>{NAME})")
_READS_NAMES = ("locals", "globals", "vars", "dir")
_RUNS_CODE = ("eval", "exec")
"""Builtins that read names by their spelling: without arguments, or without names of their own."""
_READS_ATTRIBUTES = ("getattr", "setattr", "hasattr", "delattr", "vars", "dir")
_BUILTIN_ATTRIBUTES = {
    name
    for each in [*vars(builtins).values(), io.TextIOWrapper, io.BytesIO, GeneratorType]
    if isinstance(each, type)
    for name in dir(each)
}
_PLAIN = ("staticmethod", "classmethod", "property")
_TOLD = regex.compile(
    rf"(?m)(?<!`)(`{{1,2}})(?P<name>{NAME})\1(?!`)|:(?:param|type|arg|keyword)\s+(?:[^\s:]+\s+)?"
    rf"\*{{0,2}}(?P<name>{NAME})\s*:"
)
"""Words of a docstring that are names of its program: `x`, ``x``, :param x:, :param int x:."""
_EXAMPLE = regex.compile(r"(?m)(?:^|\G)([ \t]*)>>>(?: (.*)|)$((?:\n[ \t]*\.\.\.(?: .*|)$)*)")
_LINE = regex.compile(r"(?m)^[ \t]*(?:>>>|\.\.\.) ?(.*)$")


def _in(scope: PythonScope, nodes: Any) -> list[tuple[ast.AST, PythonScope]]:
    return [(node, scope) for node in nodes]


def _name_of(node: Any) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _last_name(node: Any) -> str:
    return node.attr if isinstance(node, ast.Attribute) else _name_of(node)


def _may_be_function(node: ast.AST) -> bool:
    """Whether a value may be a function or have one; what is computed or counted has none."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(map(_may_be_function, node.elts))
    numbers = ast.Constant | ast.JoinedStr | ast.Compare | ast.BinOp | ast.UnaryOp
    return not isinstance(node, numbers)


def _bound_by(statement: Any) -> list[str]:
    """Return the names that a statement binds, whatever happens."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Assign(targets=targets):
            parts = [part for target in targets for part in ast.walk(target)]
            return [p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
    return []


def _words_in_strings(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from _NAME.findall(part.value)


def _inside(text: str, node: Any) -> tuple[int, int] | None:
    """Return start and stop of what is in the quotes of a string, if it is one in one piece."""
    match = _STRING.fullmatch(text, node.start, node.stop)
    if match is None or "f" in match[1].lower():
        return None
    quotes = len(match[2] or match[3])
    return match.end(1) + quotes, match.end() - quotes


def _examples(text: str, start: int, stop: int) -> Iterator[ast.AST]:
    """Yield the statements of a docstring's examples, `>>> f(x)`, that can be parsed."""
    for example in _EXAMPLE.finditer(text, start, stop):
        lines = [match.span(1) for match in _LINE.finditer(text, *example.span())]
        code = "\n".join(text[i:j] for i, j in lines)
        try:
            yield from _parsed(text, code, [i for i, _ in lines]).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue


def _expression(text: str, code: str, start: int) -> Any:
    """Parse an expression that stands in a text at `start`."""
    code = f"({code})"
    return _parsed(text, code, [start - 1 + line for line in _line_starts(code)], "eval").body


def _line_starts(code: str) -> list[int]:
    return [0, *(match.end() for match in regex.finditer(r"\r\n|\r|\n", code))]


def _parsed(text: str, code: str, starts: list[int] | None = None, mode: str = "exec") -> Any:
    """Parse code of a text, and give its nodes the characters `start` and `stop` of the text.

    `ast` counts bytes of UTF-8. Before Python 3.12 it does not know where the expressions of an
    f-string stand: each of them is parsed again.

    Args:
        text: all of it.
        code: a part of it, whose lines begin in it at `starts`; by default, all.
    """
    with warnings.catch_warnings():  # of escapes in strings
        warnings.simplefilter("ignore")
        tree: Any = ast.parse(code, mode=mode)
    edges = [*_line_starts(code), len(code)]
    lines = [code[i:j] for i, j in pairwise(edges)]
    starts, columns = starts or edges, [*map(_columns, lines)]

    def place(line: int, column: int) -> int:
        return starts[line - 1] + columns[line - 1][column]

    nodes: list[Any] = [tree]
    while nodes:
        node = nodes.pop()
        is_f_string = isinstance(node, ast.JoinedStr)
        if hasattr(node, "lineno"):
            node.start = place(node.lineno, node.col_offset)
            node.stop = place(node.end_lineno, node.end_col_offset)
        if is_f_string and sys.version_info < (3, 12):
            fields = _fields(text[node.start : node.stop])
            node.values = [_expression(text, field, node.start + i) for field, i in fields]
        else:
            nodes += ast.iter_child_nodes(node)
    return tree


def _columns(line: str) -> Sequence[int]:
    """Return the character that each byte of a line belongs to, and the end."""
    if line.isascii():
        return range(len(line) + 1)
    characters = (repeat(i, len(char.encode())) for i, char in enumerate(line))
    return [*chain.from_iterable(characters), len(line)]


def _fields(strings: str) -> Iterator[tuple[str, int]]:
    """Yield the expressions in strings, of those that are f-strings, and where they stand."""
    for string in _STRING.finditer(strings):
        if "f" in string[1].lower():
            for field in _FIELDS["r" in string[1].lower()].finditer(strings, *string.span()):
                if field[1]:
                    yield field[1].rstrip().removesuffix("="), field.start(1)


_DEFINED = regex.compile(rf"(?|\bclass\s+({NAME})|\bdef\s+({NAME})(?!\s*\(\s*(?:self|cls)\b))")
"""Not methods, which are attributes."""
_BRACKETS = r"(?(DEFINE)(?P<brackets>[[({](?:[^][(){}]|(?&brackets))*[])}]))"
_PARAMETERS = regex.compile(
    rf"(?|\bdef\s+\w+\s*\(((?:[^][(){{}}]|(?&brackets))*)"
    rf"|\blambda\b((?:[^][(){{}}:]|(?&brackets))*)){_BRACKETS}"
)
_PARAMETER = regex.compile(rf"\s*\**({NAME})?(?:[^][(){{}},]|(?&brackets))*+,?{_BRACKETS}")
_TARGET = rf"[(\[]*\*?{NAME}[)\]]*"
_TARGETS = (
    regex.compile(
        rf"(?m)(?:^|;)[ \t]*({_TARGET}(?:[ \t]*,[ \t]*{_TARGET})*+)[ \t]*,?[ \t]*(?::[^=\n]*)?"
        r"(?:[-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
    ),
    regex.compile(r"\bfor\s+([^\n:=]*?)\s+in\b"),
    regex.compile(rf"\bas\s+({NAME})"),
    regex.compile(rf"({NAME})\s*:="),
)
_KEYWORD = regex.compile(r"\s*=(?!=)")
_BEFORE_KEYWORD = regex.compile(r"(?r)[(,]\s*\Z")
_BRACKET = regex.compile(r"[][(){}]")
_DOT = regex.compile(r"(?r)\.\s*\Z")
_IMPORTS = regex.compile(r"(?m)^[ \t]*(?:from\s.*\simport|import)\s.*$")


def fragment_names(text: str) -> list[tuple[int, int]]:
    """Return the names of a text that is no whole program: the beginning of one, or more than one.

    As far as its words show, it binds what stands behind `def`, `class`, `for` and `as`, before
    `=`, and among parameters. All of one spelling is one name, but for attributes, keywords of
    calls, and what is imported.
    """
    code = _code(text)
    imported = {name for line in _IMPORTS.findall(code) for name in _NAME.findall(line)}
    patterns = (_DEFINED, *_TARGETS)
    bound = {code[i:j] for i, j in _parameters(code)}
    bound.update(
        name for pattern in patterns for match in pattern.finditer(code)
        for name in _NAME.findall(match[1])
    )  # fmt: skip
    return [(i, j) for i, j in _words_of(code) if code[i:j] in bound - imported]


def fragment_words(text: str) -> list[tuple[int, int]]:
    """Return the words of a text that may be names: no attributes and no keywords."""
    return list(_words_of(_code(text)))


def _words_of(code: str) -> Iterator[tuple[int, int]]:
    parameters, opened, before = {*_parameters(code)}, 0, 0
    for match in _NAME.finditer(code):
        name, (start, stop) = match.group(), match.span()
        for bracket in _BRACKET.findall(code, before, start):
            opened = max(0, opened + (1 if bracket in "([{" else -1))
        before = stop
        # In brackets: `a, b = c` assigns.
        is_keyword = (
            opened and _KEYWORD.match(code, stop) and _BEFORE_KEYWORD.search(code, 0, start)
        )
        if not (
            _DOT.search(code, 0, start)
            or (is_keyword and (start, stop) not in parameters)
            or keyword.iskeyword(name)
            or name.startswith("__")
        ):
            yield start, stop


def _parameters(code: str) -> list[tuple[int, int]]:
    listed = [match.span(1) for match in _PARAMETERS.finditer(code)]
    return [m.span(1) for span in listed for m in _PARAMETER.finditer(code, *span) if m[1]]


def _code(text: str) -> str:
    """Return a text as long with strings and comments blank, but for expressions of f-strings."""
    return str(_STRING_OR_COMMENT.sub(_blank, text))


def _blank(match: Any) -> str:
    written = match.group()
    blank = list(regex.sub(r"[^\n]", " ", written))
    for field, start in _fields(written):
        blank[start : start + len(field)] = field
    return "".join(blank)
