"""Names of Python programs: what a text binds itself, scope by scope.

Names are parameters, variables, functions and classes that the text defines, and the variables of
comprehensions, patterns and handlers; `x` of one scope is another name than `x` of another one. The
keyword of a call to a function of the text is its parameter. These keep their spelling:

- what the text does not bind: builtins, names of other modules;
- imports, whatever they are called;
- attributes, so all that a class binds: methods and fields;
- names that begin with `__`, which Python has uses for, and, of the module, those of builtins;
- parameters that a call may reach by a keyword in a way that cannot be followed: `method(key=1)`;
- strings and comments; of an f-string, the expressions are code.

Scopes are those of Python's reference, "Execution model". A text that is no program of Python has
no scopes: see `fragment_names`.
"""

import ast
import builtins
import keyword
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
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
                return Binding(self.module, name) if name in self.module.bound else None
            if name in scope.bound and (within or scope.kind != "class"):
                return Binding(scope, name)
            within = within and scope.kind == "types"
            scope = scope.outer
        return None


class Function(NamedTuple):
    """A function of the program.

    Attributes:
        scope: of its parameters.
        keywords: the parameters that a call can name.
        method: its name, if it is a method.
    """

    scope: PythonScope
    keywords: frozenset[str]
    method: str | None


class Use(NamedTuple):
    """A place at which a name stands, and the scope in which it is looked up."""

    start: int
    name: str
    scope: PythonScope
    is_read: bool


def python_names(text: str) -> list[tuple[Any, ...]]:
    """Return start, stop and binding of the names of a program, in order.

    A binding is called by the name and a number, 0 for the first of that name. A text that Python
    cannot parse has the names of `fragment_names`, which have no binding.
    """
    program = _program(text)
    return fragment_names(text) if program is None else program[0]


def unbound_names(text: str) -> list[tuple[int, int]]:
    """Return start and stop of what may be names of another text: words that are not bound here."""
    program = _program(text)
    return fragment_words(text) if program is None else program[1]


@lru_cache(maxsize=64)
def _program(text: str) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]] | None:
    """Return the names of a program and the words that it does not bind; None if it is none."""
    try:
        with warnings.catch_warnings():  # of escapes in strings
            warnings.simplefilter("ignore")
            tree = _located(ast.parse(text), text, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    program = _Program(text, tree)
    return program.names(), program.unbound()


class _Program:
    """What a program binds and uses; nodes have the places that `_located` gave them."""

    def __init__(self, text: str, tree: ast.AST):
        self.text = text
        self.uses: list[Use] = []
        self.calls: list[tuple[ast.Call, PythonScope]] = []
        self.functions: list[Function] = []
        self._binds: list[tuple[str, PythonScope, Any]] = []
        self.what: dict[Binding, list[Any]] = defaultdict(list)
        """What binds a name each time: a Function, "class", "import" or "variable"."""
        blocks = [(tree, PythonScope(None, "module"))]
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

    def unbound(self) -> list[tuple[int, int]]:
        """Return where names stand that the program does not bind."""
        starts = [use.start for use in self.uses if use.scope.home(use.name) is None]
        return [(start, self._stop(start)) for start in starts]

    def names(self) -> list[tuple[int, int, str]]:
        """Return start, stop and binding of each name, in order."""
        kept = self._follow_keywords()
        places = []
        for start, name, scope, is_read in self.uses:
            if (binding := scope.home(name)) is None:
                continue
            if binding.scope.kind == "class":
                kept.add(binding)
                # `x = x` in a class reads the `x` of the module
                around = binding.scope.outer and binding.scope.outer.home(name, within=False)
                if is_read and around:
                    kept.add(around)
            places.append((start, binding))
        kept |= {binding for _, binding in places if self._is_special(binding)}
        places.sort(key=itemgetter(0))
        called: dict[Binding, str] = {}
        alike = Counter[str]()
        for _, binding in places:
            if binding not in kept and binding not in called:
                number = alike[binding.name]
                called[binding] = f"{binding.name} {number}"
                alike[binding.name] += 1
        return [(i, self._stop(i), called[b]) for i, b in places if b in called]

    def _stop(self, start: int) -> int:
        return int(_NAME.match(self.text, start).end())

    def _is_special(self, binding: Binding) -> bool:
        name = binding.name
        return (
            name.startswith("__")
            or "import" in self.what[binding]
            or (binding.scope.kind == "module" and hasattr(builtins, name))
        )

    # Keywords of calls

    def _follow_keywords(self) -> set[Binding]:
        """Add the keywords that are parameters; return the parameters that keep their names."""
        kept: set[Binding] = set()
        for call, scope in self.calls:
            functions = self._called(call, scope)
            for word in call.keywords:
                if isinstance(functions, Function):
                    if word.arg in functions.keywords:
                        self.uses.append(Use(_start(word), word.arg, functions.scope, False))
                else:
                    kept |= {
                        Binding(f.scope, word.arg) for f in functions if word.arg in f.keywords
                    }
        return kept

    def _called(self, call: ast.Call, scope: PythonScope) -> Function | list[Function]:
        """Return the function that a call calls, or all that it may be calling."""
        root = call.func
        while isinstance(root, ast.Attribute):
            root = root.value
        what = self._what(root, scope)
        if isinstance(root, ast.Name) and (not what or "import" in what):
            given = [self._what(argument, scope) for argument in call.args]  # partial(f, x=1)
            return [f for functions in given for f in functions if isinstance(f, Function)]
        if isinstance(call.func, ast.Attribute):
            return [f for f in self.functions if f.method == call.func.attr]
        if len(what) == 1 and isinstance(what[0], Function):
            return what[0]
        if what == ["class"]:
            return [f for f in self.functions if f.method in ("__init__", "__new__")]
        return self.functions

    def _what(self, node: ast.AST, scope: PythonScope) -> list[Any]:
        binding = scope.home(node.id) if isinstance(node, ast.Name) else None
        return self.what[binding] if binding else []

    # What a node binds and uses

    def _bind(self, name: str, scope: PythonScope, what: Any, start: int | None = None) -> None:
        self._binds.append((name, scope, what))
        if start is not None:
            self.uses.append(Use(start, name, scope, False))

    def _read(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        """Take in a node; return the nodes in it that are still to be read, with their scopes."""
        start, stop = getattr(node, "start", 0), getattr(node, "stop", 0)
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self.uses.append(Use(start, name, scope, True))
            case ast.Name(id=name):
                self._bind(name, scope, "variable", start)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return self._function(node, scope)
            case ast.ClassDef(name=name):
                return self._class(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.NamedExpr(target=target, value=value):
                around = scope
                while around.kind == "comprehension":
                    around = around.outer  # type: ignore[assignment]
                return [(target, around), (value, scope)]
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    self._bind(alias.asname or alias.name.partition(".")[0], scope, "import")
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                scope.declared |= dict.fromkeys(names, type(node).__name__.lower())
                _, *words = self._words(start, stop)
                for name, word in zip(names, words, strict=True):
                    self.uses.append(Use(word, name, scope, False))
            case ast.ExceptHandler(name=str(name), type=error):
                self._bind(name, scope, "variable", self._word(getattr(error, "stop", start), 1))
            case (
                ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                *_, last = self._words(start, stop)
                self._bind(name, scope, "variable", last)
            case ast.Call():
                self.calls.append((node, scope))
        if type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):
            self._bind(node.name, scope, "variable", self._word(start, 0))
        if type(node).__name__ == "TypeAlias":
            types = self._types(node, scope)
            return [(node.name, scope), (node.value, types), *_in(types, node.type_params)]
        return _in(scope, ast.iter_child_nodes(node))

    def _function(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        arguments, types = node.args, self._types(node, scope)
        inner = PythonScope(types, "function")
        keywords = frozenset(
            parameter.arg for parameter in [*arguments.args, *arguments.kwonlyargs]
        )
        is_method = scope.kind == "class"
        function = Function(inner, keywords, getattr(node, "name", "") if is_method else None)
        self.functions.append(function)
        outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += filter(None, (arguments.vararg, arguments.kwarg))
        for parameter in parameters:
            self._bind(parameter.arg, inner, "variable", parameter.start)
        if isinstance(node, ast.Lambda):
            return [(node.body, inner), *_in(scope, outside)]
        before = 1 + isinstance(node, ast.AsyncFunctionDef)  # `def`, or `async def`
        self._bind(node.name, scope, function, self._word(node.start, before))
        notes = [node.returns, *(parameter.annotation for parameter in parameters)]
        return [
            *_in(scope, [*outside, *node.decorator_list]),
            *_in(types, [*filter(None, notes), *getattr(node, "type_params", ())]),
            *_in(inner, node.body),
        ]

    def _class(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        types = self._types(node, scope)
        self._bind(node.name, scope, "class", self._word(node.start, 1))
        return [
            *_in(scope, node.decorator_list),
            *_in(types, [*node.bases, *node.keywords, *getattr(node, "type_params", ())]),
            *_in(PythonScope(types, "class"), node.body),
        ]

    def _comprehension(self, node: Any, scope: PythonScope) -> list[tuple[ast.AST, PythonScope]]:
        """The first iterable is the only part that is read outside."""
        inner, first = PythonScope(scope, "comprehension"), node.generators[0]
        parts = [child for child in ast.iter_child_nodes(node) if child is not first]
        return [(first.iter, scope), *_in(inner, [*parts, first.target, *first.ifs])]

    def _types(self, node: Any, scope: PythonScope) -> PythonScope:
        return PythonScope(scope, "types") if getattr(node, "type_params", None) else scope

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


def _in(scope: PythonScope, nodes: Any) -> list[tuple[ast.AST, PythonScope]]:
    return [(node, scope) for node in nodes]


def _start(node: Any) -> int:
    return int(node.start)


def _located(tree: Any, text: str, offset: int) -> Any:
    """Give the nodes of a tree the characters `start` and `stop` at which they stand.

    `ast` counts bytes of UTF-8. Before Python 3.12 it does not know where the expressions of an
    f-string stand: each of them is parsed again.
    """
    ends = [match.end() for match in regex.finditer(r"\r\n|\r|\n", text)]
    starts, lines = [0, *ends], [text[i:j] for i, j in zip([0, *ends], [*ends, None], strict=True)]

    def place(line: int, column: int) -> int:
        row = lines[line - 1]
        inside = column if row.isascii() else len(row.encode()[:column].decode())
        return offset + starts[line - 1] + inside

    nodes = [tree]
    while nodes:
        node = nodes.pop()
        is_f_string = isinstance(node, ast.JoinedStr)
        if hasattr(node, "lineno"):
            node.start = place(node.lineno, node.col_offset)
            node.stop = place(node.end_lineno, node.end_col_offset)
        if is_f_string and sys.version_info < (3, 12):
            written = text[node.start - offset : node.stop - offset]
            node.values = [
                _located(ast.parse(f"({field})", mode="eval"), f"({field})", node.start + i - 1)
                for field, i in _fields(written)
            ]
        else:
            nodes += ast.iter_child_nodes(node)
    return tree


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
    parameters = {*_parameters(code)}
    for match in _NAME.finditer(code):
        name, (start, stop) = match.group(), match.span()
        is_keyword = _KEYWORD.match(code, stop) and _BEFORE_KEYWORD.search(code, 0, start)
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
