"""Limits of time and size for the templates of chats, which strangers write.

Transformers runs them in a sandbox of Jinja: they reach nothing, but may take years, or all memory.
Here they count what they do: each turn of a loop and each call is a step, at which the clock is
looked at; and whatever makes a text, a list or a number longer says how long before it does so.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2 import Template, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer
from transformers.utils import chat_template_utils

SECONDS = 10.0
"""For a chat; a usual one takes a thousandth."""
LARGEST = 50_000_000
"""Characters and entries that a template may write or make for a chat."""
LONGEST_TEMPLATE = 500_000
"""Characters of a template; long ones have 50,000."""
LARGEST_NUMBER = 10_000
"""As an argument of a filter or a method, and digits of a result."""

_METHODS = {
    *("strip", "lstrip", "rstrip", "split", "rsplit", "splitlines", "partition", "rpartition"),
    *("startswith", "endswith", "removeprefix", "removesuffix", "find", "rfind", "index", "rindex"),
    *("lower", "upper", "title", "capitalize", "casefold", "swapcase", "count", "get", "items"),
    *("keys", "values", "copy", "replace", "join", "format", "center", "ljust", "rjust", "zfill"),
    *("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower"),
    *("isnumeric", "isprintable", "isspace", "istitle", "isupper", "is_integer"),
}
"""Those of texts, numbers, lists and mappings that templates may call: others can do much."""
_WITHOUT = ("urlize", "pprint", "xmlattr", "striptags", "wordwrap")
"""Filters that no chat needs, and that take long for some texts."""
_OF_PARTS = {
    *("length", "count", "first", "last", "list", "map", "select", "reject", "selectattr"),
    *("rejectattr", "items", "dictsort", "sort", "reverse", "unique", "groupby", "min", "max"),
    *("sum", "default", "d", "attr", "batch", "slice", "random", "abs", "int", "float", "round"),
}
"""Filters that look at a list itself; the others write all that is in it."""
_WIDE = re.compile(r"\d{4}|[*{]\s*\*|%[^a-z%]*\*|\{[^}]*\{")
"""In a format: a field of a thousand characters, or whose width is an argument."""
_DATA = (str, bytes, int, float, list, tuple, dict)


class TemplateLimitError(ValueError):
    """The template of a chat takes too long, or writes too much."""


class _Work:
    """What the template of a chat has done so far."""

    def __init__(self) -> None:
        self.left, self.end = LARGEST, time.monotonic() + SECONDS
        self._known: dict[int, tuple[int, int, Any]] = {}

    def step(self, made: int = 1) -> None:
        """Count a turn of a loop, or a call, that made a value of some length."""
        self.left -= made
        if self.left < 0:
            raise TemplateLimitError(
                f"the chat template makes or writes more than {LARGEST:,} characters for a chat: "
                "shorten the chat, or use another template"
            )
        if time.monotonic() > self.end:
            raise TemplateLimitError(
                f"the chat template takes more than {SECONDS:g} seconds for a chat: use another one"
            )

    def check(self, size: int) -> None:
        """Refuse a value of a size that may only be about to be made."""
        if size > LARGEST:
            self.left = 0
            self.step()

    def size(self, value: Any) -> int:
        """Return the length of a value when all of it is written, about."""
        return self._measure(value)[0]

    def depth(self, value: Any) -> int:
        """Return how many lists and mappings are in each other."""
        return self._measure(value)[1]

    def _measure(self, value: Any) -> tuple[int, int]:
        """Measure each list once, however often it stands in others; templates change none."""
        if isinstance(value, str | bytes):
            return len(value), 0
        if isinstance(value, int):
            return value.bit_length() // 3 + 1, 0
        if isinstance(value, Namespace):  # which changes
            return self._sum(value._Namespace__attrs.values())
        if not isinstance(value, list | tuple | dict):
            return 1, 0
        if (known := self._known.get(id(value))) is None:
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            known = self._known[id(value)] = (*self._sum(parts), value)
        return known[:2]

    def _sum(self, parts: Any) -> tuple[int, int]:
        measured = [self._measure(part) for part in parts]
        return 2 + sum(s + 2 for s, _ in measured), 1 + max((d for _, d in measured), default=0)


_work: ContextVar[_Work | None] = ContextVar("work", default=None)


@contextmanager
def _counted(work: _Work) -> Iterator[None]:
    token = _work.set(work)
    try:
        yield
    except (RecursionError, MemoryError) as error:
        raise TemplateLimitError(f"the chat template asks for too much: {error!r}") from error
    finally:
        _work.reset(token)


def _length(value: Any) -> int:
    """Return the length of a value itself."""
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 1


def _whole(value: Any) -> bool:
    return isinstance(value, int)


class _Counting(NodeTransformer):
    """Has loops, and what makes texts and lists, say so, by filters with names that none has."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        written = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        turn = nodes.ExprStmt(_filter("count turn", nodes.Const(1 + written)))
        node.body.insert(0, turn.set_lineno(node.lineno))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter("join texts", *node.nodes).set_lineno(node.lineno)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        return self._made(node) if isinstance(node.arg, nodes.Slice) else self.generic_visit(node)

    def _made(self, node: Any) -> nodes.Node:
        self.generic_visit(node)
        if getattr(node, "ctx", "load") != "load":
            return node
        return _filter("count made", node).set_lineno(node.lineno)

    visit_List = visit_Dict = visit_Tuple = _made


def _filter(name: str, value: Any, *arguments: Any) -> nodes.Filter:
    return nodes.Filter(value, name, [*arguments], [], None, None)


def _count_turn(size: int) -> str:
    """Count a turn of a loop, and what it writes itself."""
    if (work := _work.get()) is not None:
        work.step(size)
    return ""


def _count_made(value: Any) -> Any:
    """Count a list, a mapping or a part of one, or of a text."""
    if (work := _work.get()) is not None:
        work.check(work.size(value))
        work.step(_length(value))
    return value


def _join_texts(*parts: Any) -> str:
    """Write parts behind each other, as `~` does."""
    if (work := _work.get()) is not None:
        size = sum(map(work.size, parts))
        work.check(size)
        work.step(size)
    return "".join(map(str, parts))


class _LimitedTemplate(Template):
    """Counts each time that it is rendered anew."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        with _counted(_Work()):
            return super().render(*args, **kwargs)

    def generate(self, *args: Any, **kwargs: Any) -> Iterator[str]:
        work, blocks = _Work(), super().generate(*args, **kwargs)
        while True:
            with _counted(work):
                block = next(blocks, None)
            if block is None:
                return
            yield block


class _LimitedEnvironment(ImmutableSandboxedEnvironment):
    """That of Transformers, whose templates count what they do."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])
    template_class = _LimitedTemplate

    def limit(self) -> None:
        """Begin to count."""
        self.filters = {
            name: _limited(name, function)
            for name, function in self.filters.items()
            if name not in _WITHOUT
        }
        self.filters |= {
            "count turn": _count_turn, "count made": _count_made, "join texts": _join_texts,
        }  # fmt: skip
        self.globals = {k: v for k, v in self.globals.items() if k != "lipsum"}
        self.finalize, self.optimized = _written, False

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        counting = _Counting().visit(source)
        nodes.Node.set_environment(counting, self)
        return super()._generate(counting, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Say how long a result is before it is made."""
        if (work := _work.get()) is not None:
            work.check(_result(work, operator, left, right))
        value = super().call_binop(context, operator, left, right)
        if work is not None:
            work.step(_length(value))
        return value

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Look at calls of methods, by which texts can grow, and count what comes back."""
        if (work := _work.get()) is None:
            return super().call(context, obj, *args, **kwargs)
        # The sandbox puts a function of its own around `format`.
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", None)
        if isinstance(owner, _DATA):
            args = _check_method(work, obj.__name__, owner, args, kwargs)
        for text in (*args, *kwargs.values()) if obj is self.globals["strftime_now"] else ():
            _check_format(f"{text}")
        value = super().call(context, obj, *args, **kwargs)
        work.step(_length(value))
        if isinstance(value, dict | list):
            work.check(work.size(value))
        return value


def _written(value: Any) -> Any:
    """Count what is written."""
    if (work := _work.get()) is not None:
        size = work.size(value)
        work.check(size)
        work.step(size)
    return value


def _result(work: _Work, operator: str, left: Any, right: Any) -> int:
    """Return the size of what an operator makes, at most."""
    of_left, of_right = work.size(left), work.size(right)
    if operator == "+":
        return of_left + of_right
    if operator == "%":
        if not isinstance(left, str | bytes):
            return of_left + of_right
        return _formatted(work, f"{left!r}", right)
    if _whole(left) and _whole(right):
        digits = of_left + of_right if operator == "*" else of_left * max(right, 1)
        return 0 if digits <= LARGEST_NUMBER else LARGEST + 1
    times, size = (left, of_right) if _whole(left) else (right, of_left)
    return size * max(times, 0) if _whole(times) else 0


def _formatted(work: _Work, form: str, *values: Any) -> int:
    """Return the size of a format that is filled, at most."""
    _check_format(form)
    places = form.count("%") + form.count("{")
    return len(form) + places * (1000 + sum(map(work.size, values)))


def _check_format(form: str) -> None:
    if _WIDE.search(form):
        raise TemplateLimitError("the chat template writes fields of a thousand characters")


def _check_numbers(values: Any) -> None:
    for value in values:
        if _whole(value) and abs(value) > LARGEST_NUMBER:
            raise TemplateLimitError(
                f"the chat template asks for more than {LARGEST_NUMBER:,} characters or entries at "
                "once"
            )


def _check_method(
    work: _Work, name: str, owner: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Refuse a method that makes too much of its owner; return its arguments."""
    if name not in _METHODS:
        raise TemplateLimitError(
            f"the chat template calls the method {name!r} of a {type(owner).__name__}, which chat "
            "templates may not"
        )
    if name in ("center", "ljust", "rjust", "zfill"):
        _check_numbers(args)
    elif name == "replace":
        old, new = [*args, *kwargs.values(), "", ""][:2]
        work.check(owner.count(old) * _length(new) + len(owner))
    elif name in ("split", "rsplit"):
        parts = owner.count(args[0]) if args and args[0] else len(owner) // 2
        work.step(10 * parts)  # each has a head
    elif name == "join":
        args = tuple(arg if isinstance(arg, _DATA) else [*arg] for arg in args)
        work.check(sum(work.size(arg) + _length(arg) * len(owner) for arg in args))
    elif name == "format":
        work.check(_formatted(work, owner, *args, *kwargs.values()))
    return args


def _limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that counts, and says how much it makes."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def limited(*args: Any, **kwargs: Any) -> Any:
        if (work := _work.get()) is None:
            return function(*args, **kwargs)
        before, (value, *more) = args[:first], args[first:]
        if name == "join" and not isinstance(value, _DATA):
            value = [*value]
        work.check(_filtered(work, name, value, [*more, *kwargs.values()]))
        result = function(*before, value, *more, **kwargs)
        work.step(_length(result))
        return result

    return limited


def _filtered(work: _Work, name: str, value: Any, options: list[Any]) -> int:
    """Return the size of what a filter makes, at most."""
    _check_numbers(options)
    if name in _OF_PARTS:
        if name == "sum" and any(isinstance(option, list | tuple) for option in options):
            return LARGEST + 1
        return 0
    size, added = work.size(value), sum(x if _whole(x) else work.size(x) for x in options)
    if name == "tojson":
        return size * (6 + added * work.depth(value))
    if name == "join":
        return size + added * _length(value)
    if name == "replace":
        return size + work.size(options[1]) * f"{value}".count(f"{options[0]}")
    if name == "format":
        return _formatted(work, f"{value}", *options)
    if name == "indent":
        return size + (added + 4) * f"{value}".count("\n")
    return size + added


def _compile(template: str) -> Template:
    """Compile a template of anybody as Transformers does, to one that counts."""
    if len(template) > LONGEST_TEMPLATE:
        raise TemplateLimitError(
            f"the chat template has {len(template):,} characters, the limit is {LONGEST_TEMPLATE:,}"
        )
    environment = _compile_freely("").environment
    environment.__class__ = _LimitedEnvironment
    environment.limit()
    with _counted(_Work()):
        return environment.from_string(template)


_compile_freely = chat_template_utils._cached_compile_jinja_template


def limit_templates() -> None:
    """Have all templates of chats that Transformers runs in this process keep the limits."""
    if chat_template_utils._cached_compile_jinja_template is not _compile:
        chat_template_utils._cached_compile_jinja_template = _compile
        chat_template_utils._compile_jinja_template.cache_clear()
