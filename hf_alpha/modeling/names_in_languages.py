"""Names of programming languages by their grammars (tree-sitter): what a text declares, by scopes.

A language is data: a grammar, the nodes that may be names, and a query that says what they are. The
captures of a query:

- `@scope`: a node with names of its own. `.function`: that of a function, to which `var` of
  JavaScript binds. `.barrier`: what it inherits cannot be seen in the text, so a name from around
  it that is used in it keeps its spelling. `.outside`: a part of a scope that belongs to the one
  around it. `.body`: what it binds is what the scope around it binds, if both do. `.none`: no
  scope, whatever other patterns say.
- `@bind`: binds names in the scope in which it stands, or those of a pattern, such as a
  destructuring. `.outer`: in the scope around that; `.function`: in that of the function;
  `.after`: from its end on, not in all of its scope. `.unsure`: where it is seen is not sure: all
  bindings of its spelling are one name, and none if the text uses that spelling unbound. `.inner`:
  so, unless it stands in the scope of a function itself.
- `@keep`: what this node means keeps its spelling.
- `@type`: stands for a type, where the language keeps these apart from values: all that is spelled
  so is one name, and none unless an `.unsure` binding is.
- `@other`: not a name but a label, a key, a field.
- `@opaque`: a text whose words may be anything: bindings that are spelled like one keep their
  spelling. `.root`: those outside of all functions.
- `@dynamic`: all that can be seen from here keeps its spelling, as by `eval`. `.root`: all that is
  bound outside of functions.
- `@free`: the others of its pattern count only where the text does not bind this name.
- `@internal`: what is not seen by other texts, where the language is linked.
- `@macro`: what a macro of the text is called; `.unclean` if it may spell out its arguments.
- `@called`: a call; `.unclean` if it is `@dynamic` unless the text has a macro that is called so.

What is not sure gives fewer names: to treat two bindings as one, or none, is never wrong.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib import import_module
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

import regex  # type: ignore[import-untyped]

from .languages import LANGUAGES
from .name_rules import ReadyRule

_WORD = regex.compile(r"[\w$]+")


class _Scope:
    """A part of a text with names of its own."""

    def __init__(self, node: Any, flags: set[str], outer: "_Scope | None"):
        self.start, self.stop = node.start_byte, node.end_byte
        self.outer, self.flags = outer, flags
        self.bound: dict[str, _Binding] = {}

    def around(self) -> "Iterator[_Scope]":
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


class _Binding:
    """What a scope binds; of bindings that were made one, each leads to the next."""

    def __init__(self, name: str, scope: _Scope):
        self.name, self.scope = name, scope
        self.seen_from: int = 1 << 62
        self.is_kept = self.is_unsure = False
        self._same: _Binding | None = None

    def root(self) -> "_Binding":
        binding = self
        while binding._same is not None:
            binding = binding._same
        return binding

    def join(self, other: "_Binding") -> None:
        mine, other = self.root(), other.root()
        if mine is not other:
            other._same = mine
            mine.is_kept |= other.is_kept


class _Use(NamedTuple):
    """A node that may be a name, and what it means; None if the text does not bind it."""

    node: Any
    name: str
    binding: _Binding | None


def declared_names(text: str, language: str) -> list[tuple[int, int, str]]:
    """Return start, stop and binding of the names of a program, in order.

    A binding is called by the name and a number, 0 for the first of that name. A statement or
    function of the outermost level that cannot be parsed has no names.

    Raises:
        ImportError: tree-sitter or the grammar is not installed.
    """
    return _program(text, language)[0]


def undeclared_words(text: str, language: str) -> list[tuple[int, int]]:
    """Return start and stop of what may be names of another text: words that are not bound here."""
    return _program(text, language)[1]


def is_program(text: str, language: str) -> bool:
    """Return whether all of a text has the grammar of a language."""
    return _program(text, language)[2]


@lru_cache(maxsize=64)
def _program(
    text: str, language: str
) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]], bool]:
    try:
        source = text.encode()
    except UnicodeEncodeError:
        return [], [], False
    program = _ParsedText(source, language)
    place = _places(text)
    called: dict[_Binding, str] = {}
    alike = Counter[str]()
    names, words = [], []
    for node, name, binding in program.uses:
        start, stop = place(node.start_byte), place(node.end_byte)
        if binding is None:
            words.append((start, stop))
        elif not (root := binding.root()).is_kept:
            if root not in called:
                called[root] = f"{name} {alike[name]}"
                alike[name] += 1
            names.append((start, stop, called[root]))
    return names, words, not program.broken


def _places(text: str) -> Callable[[int], int]:
    """Return what takes bytes of UTF-8 to characters."""
    if text.isascii():
        return int
    sizes = (len(character.encode()) for character in text)
    table = {byte: i for i, byte in enumerate(accumulate(sizes, initial=0))}
    return table.__getitem__


class _ParsedText:
    """What a program binds and uses, in order."""

    def __init__(self, source: bytes, key: str):
        self.language, parser, names, query = _grammar(key)
        tree = parser.parse(source)
        self.root = tree.root_node
        cursor = import_module("tree_sitter").QueryCursor
        self.names = cursor(names).captures(self.root).get("name", [])
        self.names.sort(key=attrgetter("start_byte"))
        self.words: dict[int, str] = {node.id: node.text.decode() for node in self.names}
        self.nodes: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        """Capture -> nodes, and what has to be free where they are taken for that."""
        self.flags: dict[str, dict[int, set[str]]] = defaultdict(dict)  # capture -> node -> flags
        for _, captures in cursor(query).matches(self.root):
            free = captures.pop("free", [None])[0]
            for capture, nodes in captures.items():
                kind, *flags = capture.split(".")
                for node in nodes:
                    self.flags[kind].setdefault(node.id, set()).update(flags)
                    self.nodes[kind].append((node, free))
        self.scopes = self._scopes()
        self.bound: dict[int, _Binding] = {}
        self.bindings: list[_Binding] = []
        self._bind()
        self.broken = [node for node in self.root.children if node.has_error]
        if self.root.is_error or any("\\" in word for word in self.words.values()):
            self.broken = [self.root]  # names may be written with escapes
        others = self.flags["other"]
        self.uses = [
            _Use(node, self.words[node.id], self._meaning(node))
            for node in self.names
            if node.id not in others
        ]
        self._keep()
        self.uses = [*self._without_broken()]

    def _scopes(self) -> dict[int, _Scope]:
        """Return the scope in which each name, and what is `@dynamic`, stands."""
        flags = self.flags["scope"]
        nodes = {n.id: n for n, _ in self.nodes["scope"] if "none" not in flags[n.id]}
        nodes.pop(self.root.id, None)
        opening = sorted(nodes.values(), key=lambda n: (n.start_byte, -n.end_byte))
        dynamic = [node for node, _ in self.nodes["dynamic"]]
        points = sorted([*self.names, *dynamic], key=attrgetter("start_byte"))
        self.top = scope = _Scope(self.root, {"function"}, None)
        stack, scopes, number = [scope], {}, 0
        for point in points:
            while number < len(opening) and opening[number].start_byte <= point.start_byte:
                node = opening[number]
                number += 1
                while len(stack) > 1 and stack[-1].stop <= node.start_byte:
                    stack.pop()
                is_outside = "outside" in flags[node.id] and stack[-1].outer is not None
                outer = stack[-1].outer if is_outside else stack[-1]
                stack.append(_Scope(node, flags[node.id], outer))
            while len(stack) > 1 and stack[-1].stop <= point.start_byte:
                stack.pop()
            scopes[point.id] = stack[-1]
        return scopes

    def _bind(self) -> None:
        hoisted = []
        for node, _ in self.nodes["bind"]:
            flags = self.flags["bind"][node.id]
            for name in self._in_pattern(node):
                scope = target = self.scopes[name.id]
                if "outer" in flags and scope.outer is not None:
                    target = scope.outer
                if "function" in flags:
                    target = next(s for s in scope.around() if "function" in s.flags)
                spelled = self.words[name.id]
                if spelled not in target.bound:
                    target.bound[spelled] = _Binding(spelled, target)
                    self.bindings.append(target.bound[spelled])
                binding = self.bound[name.id] = target.bound[spelled]
                since = node.end_byte if "after" in flags else -1
                binding.seen_from = min(binding.seen_from, since)
                binding.is_kept |= "keep" in flags
                binding.is_unsure |= "unsure" in flags
                binding.is_unsure |= "inner" in flags and "function" not in target.flags
                if target is not scope:
                    hoisted.append((binding, scope, target))
        for binding, scope, target in hoisted:  # `catch (e) { var e = 1 }`
            for between in scope.around():
                if between is target:
                    break
                if (other := between.bound.get(binding.name)) is not None:
                    binding.join(other)
        for binding in self.bindings:  # `function f(x) { var x }`
            outer = binding.scope.outer
            if "body" in binding.scope.flags and outer and binding.name in outer.bound:
                binding.join(outer.bound[binding.name])

    def _in_pattern(self, node: Any) -> Iterator[Any]:
        """Yield the names that a pattern binds."""
        nodes = [node]
        while nodes:
            node = nodes.pop()
            if node.id in self.words:
                yield node
            elif (field := self.language.patterns.get(node.type)) is not None:
                nodes += node.children_by_field_name(field) if field else node.named_children
            elif not node.is_extra:  # no comment: who knows what it binds
                self.nodes["opaque"].append((node, None))

    def _meaning(self, node: Any) -> _Binding | None:
        if (bound := self.bound.get(node.id)) is not None:
            return bound
        name, crossed = self.words[node.id], False
        for scope in self.scopes[node.id].around():
            binding = scope.bound.get(name)
            if binding is not None and binding.seen_from <= node.start_byte:
                binding.root().is_kept |= crossed
                return binding
            crossed |= "barrier" in scope.flags
        return None

    def _without_broken(self) -> Iterator[_Use]:
        """Yield the uses; in what cannot be parsed they mean nothing."""
        starts = [node.start_byte for node in self.broken]
        for use in self.uses:
            number = bisect_right(starts, use.node.start_byte) - 1
            is_broken = number >= 0 and use.node.start_byte < self.broken[number].end_byte
            yield use._replace(binding=None) if is_broken else use

    def _keep(self) -> None:
        """Mark the bindings that keep their spelling."""
        meaning = {use.node.id: use.binding for use in self.uses}
        for kind in ("keep", "opaque", "dynamic"):
            self.nodes[kind] = [
                (node, free)
                for node, free in self.nodes[kind]
                if free is None or meaning.get(free.id) is None
            ]
        for node, _ in self.nodes["keep"]:
            for name in self._in_pattern(node):
                if (kept := meaning.get(name.id)) is not None:
                    kept.root().is_kept = True
        internal = {
            self.bound[name.id]
            for node, _ in self.nodes["internal"]
            for name in self._in_pattern(node)
            if name.id in self.bound
        }
        self._call_macros()
        words, root_words = self._opaque()
        is_root_kept = False
        for node, _ in self.nodes["dynamic"]:
            if "root" in self.flags["dynamic"].get(node.id, ()):
                is_root_kept = True
                continue
            for scope in self.scopes[node.id].around():
                for binding in scope.bound.values():
                    binding.root().is_kept = True
        reserved, at_root = self.language.reserved, self.language.globals | root_words
        alike = defaultdict(list)
        for binding in self.bindings:
            name = binding.name
            alike[name].append(binding)
            is_kept = name in words or name in reserved
            if binding.scope is self.top:
                is_kept |= is_root_kept or name in at_root
                is_kept |= self.language.is_linked and binding not in internal
            binding.root().is_kept |= is_kept
        free = {use.name for use in self.uses if use.binding is None}
        types = {self.words.get(node.id) for node, _ in self.nodes["type"]}
        for name, bindings in alike.items():
            is_unsure = any(binding.is_unsure for binding in bindings)
            if is_unsure or name in types:
                for binding in bindings:
                    bindings[0].join(binding)
                bindings[0].root().is_kept |= name in free or not is_unsure

    def _call_macros(self) -> None:
        """Say of what is called whether it may use, or spell out, what it is not given."""
        macros = {node.text: self.flags["macro"][node.id] for node, _ in self.nodes["macro"]}
        for call, _ in self.nodes["called"]:
            function = call.child_by_field_name("function")
            if "unclean" in macros.get(function.text, ()):
                self.nodes["opaque"].append((call, None))
            elif "unclean" in self.flags["called"][call.id] and function.text not in macros:
                self.nodes["dynamic"].append((function, None))

    def _opaque(self) -> tuple[set[str], set[str]]:
        """Return the words that may be anything, and those that may be what the root binds."""
        words, root_words = set[str](), set[str]()
        for node, _ in self.nodes["opaque"]:
            is_root = "root" in self.flags["opaque"].get(node.id, ())
            (root_words if is_root else words).update(_WORD.findall(node.text.decode()))
        for node in self.broken:
            words.update(_WORD.findall(node.text.decode()))
        return words, root_words


@cache
def _grammar(key: str) -> tuple[Any, ...]:
    """Return a language, its parser, and its queries: of names, and of what they are."""
    language = LANGUAGES[key]
    module, _, function = language.grammar.partition(":")
    try:
        tree_sitter, grammar = import_module("tree_sitter"), import_module(module)
    except ImportError as error:
        raise ImportError(
            f"names of {key} need tree-sitter: pip install 'hf_alpha[languages]' ({error})"
        ) from None
    made = tree_sitter.Language(getattr(grammar, function)())
    named = "\n".join(f"({kind}) @name" for kind in language.names)
    queries = (tree_sitter.Query(made, query) for query in (named, language.query))
    return language, tree_sitter.Parser(made), *queries


LANGUAGE_RULES = {
    key: ReadyRule(
        partial(declared_names, language=key),
        unbound=partial(undeclared_words, language=key),
        reads=partial(is_program, language=key),
    )
    for key in LANGUAGES
}
"""Ready-made rules -> how their names are found."""
