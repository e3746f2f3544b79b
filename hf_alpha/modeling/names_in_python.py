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
- what is read by its spelling: by `locals()`, `eval(...)`, `globals()`, `f"{x=}"`, and, beside
  `from m import *`, names of the module that may be those of `m`;
- other strings, and comments.

Scopes are those of Python's reference, "Execution model". A text that is no program of Python has
no scopes: see `fragment_names`.
"""

import ast
import builtins
import io
from collections import Counter, defaultdict
from functools import lru_cache
from types import GeneratorType
from typing import Any

from .python_code import A_NAME, parsed
from .python_fragments import fragment_names, fragment_words
from .python_reading import Binding, Class, Function, PythonScope, Reading, Use, name_of

_READS_ATTRIBUTES = ("getattr", "setattr", "hasattr", "delattr", "vars", "dir")
_GETS_NAMES = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__set_name__")
_BUILTIN_ATTRIBUTES = {
    name
    for each in [*vars(builtins).values(), io.TextIOWrapper, io.BytesIO, GeneratorType]
    if isinstance(each, type)
    for name in dir(each)
}


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


def is_program(text: str) -> bool:
    """Return whether Python can read a text."""
    return _program(text, False) is not None


@lru_cache(maxsize=64)
def _program(
    text: str, attributes: bool
) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]] | None:
    """Return the names of a program and the words that it does not bind; None if it is none."""
    try:
        tree = parsed(text, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    program = _Program(text, tree, attributes)
    return program.names(), program.unbound()


class _Program(Reading):
    """Which of the bindings of a program are names: nothing reaches these by their spelling."""

    def __init__(self, text: str, tree: Any, attributes: bool):
        super().__init__(text, tree)
        self.fields = PythonScope(None, "attributes")
        self._follow_keywords()
        if attributes:
            self._take_attributes()
        if self.stars:
            self._keep_names_of_stars(tree.body)

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
            kept |= {binding} if start in self.shown else set()
        seen = self._seen_scopes()
        kept |= {b for b in places.values() if b.scope in seen or self._is_special(b)}
        found = [(start, places[start]) for start in sorted(places) if places[start] not in kept]
        called, alike = dict[Binding, str](), Counter[str]()
        for _, binding in found:
            if binding not in called:
                called[binding] = f"{binding.name} {alike[binding.name]}"
                alike[binding.name] += 1
        return [(start, self._stop(start), called[binding]) for start, binding in found]

    def unbound(self) -> list[tuple[int, int]]:
        """Return where names stand that the program does not bind."""
        starts = {use.start for use in self.uses if use.scope.home(use.name) is None}
        return [(start, self._stop(start)) for start in sorted(starts)]

    def _stop(self, start: int) -> int:
        return int(A_NAME.match(self.text, start).end())

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
        for builtin, scope in self.seen:
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
            if node is None or max(self.stars) > node.start:
                self.kept.add(binding)
            elif use.role != "written":
                later = use.start >= node.start and use.scope.kind == "function"
                if not later and use.start < node.stop:
                    self.kept.add(binding)

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
                made |= given if name_of(call.func) == "dict" else set()
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
        binding = scope.home(name_of(getattr(call, "func", None)))
        match self.what[binding] if binding else ():
            case [Function(is_handed=False) as function] if function.owner is None:
                return function
        return None

    def _is_outside(self, call: Any, scope: PythonScope) -> bool:
        """Whether a call reaches no function of the text: what it calls has none, and gets none."""
        if isinstance(call, ast.ClassDef) or call in self.decorators:
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
            whats = [self._what(base, each.outer) or name_of(base) for base in each.bases]
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
        binding = scope.home(name_of(node))
        return self.what[binding] if binding else []

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
        for node, scope in self.attributes:
            root = node.value
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            is_own = self._is_own(node.value, scope, own)
            is_known = not name_of(root) or self._what(root, scope) or hasattr(builtins, root.id)
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
        others |= {word for text in self.texts for word in A_NAME.findall(text)}
        self.fields.bound = {name for name in defined - others if not name.startswith("__")}

    def _is_own(self, value: Any, scope: PythonScope, own: set[PythonScope]) -> bool:
        """Whether a value is sure to be of a class of the text, or such a class."""
        match self._what(value.func if isinstance(value, ast.Call) else value, scope):
            case [Class(scope=body)]:
                return body in own
            case ["variable"] if isinstance(value, ast.Name):
                binding = scope.home(value.id)
                return binding in self.selves and self.selves[binding] in own
        return False

    def _reads_attributes(self) -> bool:
        """Whether attributes may be read by their spelling, which is computed."""
        read = (use for use in self.uses if use.name in _READS_ATTRIBUTES)
        special = (node.attr for node, _ in self.attributes)
        methods = (function.method for function in self.functions)
        return (
            any(use.scope.home(use.name) is None for use in read)
            or "__dict__" in special
            or any(method in _GETS_NAMES for method in methods)
        )


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
