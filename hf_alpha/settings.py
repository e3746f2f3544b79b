"""Settings as dataclasses and signatures declare them: checked, described, and as a JSON schema.

A setting has a name, a type, a default and a meaning. They are read from a dataclass, whose fields
hold the meaning in `metadata["help"]` (as `TrainingArguments` has it) or in the class docstring,
or from the signature and docstring of a function.
"""

import dataclasses
import difflib
import enum
import inspect
import json
import re
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

REQUIRED = dataclasses.MISSING
KINDS = {
    bool: "true or false",
    dict: "a mapping",
    float: "a number",
    int: "a whole number",
    str: "text",
}
JSON_TYPES = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    tuple: "array",
    types.NoneType: "null",
}
ARGUMENTS = re.compile(r"^(\w+(?:, ?\w+)*)(?: ?\(.*?\))?:(?:\s+|$)(.*)", re.DOTALL)


class RecipeError(ValueError):
    """A recipe that cannot be read or run; the message names the key and the way out."""


class UnknownKeyError(RecipeError):
    """A mapping has keys that are not known.

    Attributes:
        where: which mapping it is.
        keys: all of them.
    """

    def __init__(self, where: str, keys: list[str], hint: str):
        super().__init__(f"{where}: unknown key {keys[0]!r}; {hint}")
        self.where, self.keys = where, keys


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes:
        name: its key.
        hint: its annotation; `Any` where that is not known.
        default: the value that it has when it is not given, or `REQUIRED`.
        meaning: what it is for, in a sentence or more.
        least: its smallest value, if it has one.
    """

    name: str
    hint: Any
    default: Any
    meaning: str = ""
    least: int | None = None

    @property
    def kinds(self) -> tuple[type, ...]:
        """What `isinstance` has to see; empty where the annotation is not made of plain types."""
        kinds = {
            dict if dataclasses.is_dataclass(part) else get_origin(part) or part
            for part in _parts(self.hint)
        }
        if not kinds <= {*KINDS, types.NoneType}:
            return ()
        return tuple(sorted(kinds, key=lambda kind: kind.__name__))

    def check(self, value: Any, where: str) -> None:
        """Check a value against a plain annotation and the smallest value.

        Raises:
            RecipeError: it is of another kind, or too small.
        """
        kinds = self.kinds
        accepted = (*kinds, int) if float in kinds else kinds
        flag = isinstance(value, bool) and bool not in kinds  # which Python takes for a number
        if kinds and (flag or not isinstance(value, accepted)):
            names = " or ".join(KINDS[kind] for kind in kinds if kind in KINDS)
            raise RecipeError(f"{where}: {self.name!r} must be {names}, not {value!r}")
        if self.least is not None and value is not None and value < self.least:
            raise RecipeError(f"{where}: {self.name!r} must be at least {self.least}, not {value}")

    def describe(self) -> str:
        """Return the setting as a paragraph: name, type, default, meaning."""
        head = f"{self.name}: {_type_name(self.hint)}"
        if self.default is REQUIRED:
            head += ", required"
        elif (default := _plain(self.default)) not in (None, {}, ""):
            head += f", default {_as_yaml(default)}"
        text = textwrap.wrap(self.meaning, 96, initial_indent="    ", subsequent_indent="    ")
        return "\n".join([*textwrap.wrap(head, 96, subsequent_indent="    "), *text])

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the value. Null is always allowed: it removes a key."""
        schema: dict[str, Any] = {"description": self.meaning} if self.meaning else {}
        schema |= _or_null(_schema(self.hint))
        if self.least is not None:
            schema["minimum"] = self.least
        if self.default is not REQUIRED and (default := _plain(self.default)) is not None:
            schema["default"] = default
        return schema


def meaning(text: str, least: int | None = None) -> dict[str, Any]:
    """Return the metadata of a dataclass field: what it is for, and its smallest value."""
    return {"help": text, "least": least}


def settings_of(declared: Callable[..., Any], without: Collection[str] = ()) -> dict[str, Setting]:
    """Return the settings that a dataclass or a function declares, by name."""
    return {entry.name: entry for entry in _declared(declared) if entry.name not in without}


@cache  # TrainingArguments have hundreds, and each recipe is checked against them
def _declared(declared: Callable[..., Any]) -> tuple[Setting, ...]:
    if dataclasses.is_dataclass(declared):
        return tuple(_of_fields(declared))
    return tuple(_of_arguments(declared))


def check_keys(given: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Check that all keys are known.

    Raises:
        UnknownKeyError: some are not; the message has the nearest one of the first.
    """
    known = sorted(allowed)
    if unknown := [key for key in given if key not in known]:
        near = difflib.get_close_matches(str(unknown[0]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise UnknownKeyError(where, unknown, hint)


def check_settings(given: Mapping[str, Any], settings: Mapping[str, Setting], where: str) -> None:
    """Check keys and values; see `check_keys` and `Setting.check`."""
    check_keys(given, settings, where)
    for key, value in given.items():
        settings[key].check(value, where)


def object_schema(settings: Iterable[Setting], **more: Any) -> dict[str, Any]:
    """Return the JSON schema of a mapping with these settings and no others."""
    properties = {entry.name: entry.schema() for entry in settings}
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _of_fields(declared: Any) -> Iterator[Setting]:
    hints = _hints(declared)
    meanings: dict[str, str] = {}
    for kind in reversed(declared.__mro__):  # a subclass describes what it adds
        meanings |= _meanings(kind.__doc__)
    for entry in dataclasses.fields(declared):
        if not entry.init:
            continue
        default = entry.default
        if entry.default_factory is not dataclasses.MISSING:
            default = entry.default_factory()
        text = entry.metadata.get("help") or meanings.get(entry.name, "")
        least = entry.metadata.get("least")
        yield Setting(entry.name, hints.get(entry.name, Any), default, text, least)


def _of_arguments(declared: Callable[..., Any]) -> Iterator[Setting]:
    hints, meanings = _hints(declared), _meanings(declared.__doc__)
    if isinstance(declared, type):
        hints = _hints(declared.__init__)  # type: ignore[misc]
    for name, parameter in inspect.signature(declared).parameters.items():
        default = REQUIRED if parameter.default is parameter.empty else parameter.default
        yield Setting(name, hints.get(name, Any), default, meanings.get(name, ""))


def _hints(declared: Any) -> dict[str, Any]:
    try:
        return get_type_hints(declared)
    except NameError:  # a name that is imported for type checkers only
        entries = dataclasses.fields(declared) if dataclasses.is_dataclass(declared) else ()
        return {e.name: e.type for e in entries if not isinstance(e.type, str)}


def _meanings(docstring: str | None) -> dict[str, str]:
    """Read the section `Args:` of a docstring; several names may share a meaning."""
    _, _, rest = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    section = re.split(r"\n\S", rest)[0]
    meanings: dict[str, str] = {}
    for block in re.split(r"\n(?=    \S)", section):
        if match := ARGUMENTS.match(" ".join(block.split())):
            meanings |= dict.fromkeys(re.split(r", ?", match[1]), match[2])
    return meanings


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _schema(hint: Any) -> dict[str, Any]:
    """JSON schema of an annotation; an empty one, which takes anything, where it has none."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, types.UnionType):
        return _schema_of_any(arguments)
    if origin is Literal:
        return {"enum": list(arguments)}
    if not isinstance(origin, type):
        return {}
    if issubclass(origin, enum.Enum):
        return {"enum": [member.value for member in origin]}
    if dataclasses.is_dataclass(origin):
        return object_schema(settings_of(origin).values())
    if origin not in JSON_TYPES:
        return {}
    schema: dict[str, Any] = {"type": JSON_TYPES[origin]}
    if origin is tuple and arguments and Ellipsis not in arguments:
        schema |= {"prefixItems": [_schema(part) for part in arguments], "items": False}
        schema |= {"minItems": len(arguments)}
    elif origin is list and arguments:
        schema |= {"items": _schema(arguments[0])}
    elif origin is dict and arguments:
        schema |= {"additionalProperties": _schema(arguments[1])}
    return schema


def _schema_of_any(hints: Iterable[Any]) -> dict[str, Any]:
    schemas = [_schema(hint) for hint in hints]
    if not all(schemas):
        return {}
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if not schema or _allows_null(schema):
        return schema
    if "type" in schema:
        kinds = schema["type"]
        return {**schema, "type": [*([kinds] if isinstance(kinds, str) else kinds), "null"]}
    return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}


def _allows_null(schema: dict[str, Any]) -> bool:
    return "null" in schema.get("type", ()) or any(map(_allows_null, schema.get("anyOf", ())))


def _type_name(hint: Any) -> str:
    """An annotation as people write it."""
    if hint is Any:
        return "any value"
    parts = [part for part in _parts(hint) if part is not types.NoneType]
    if float in parts:
        parts = [part for part in parts if part is not int]
    if any(isinstance(part, type) and issubclass(part, enum.Enum) for part in parts):
        parts = [part for part in parts if part is not str]  # the name of a member
    names = [KINDS.get(get_origin(part) or part, "") or _written(part) for part in parts]
    return " or ".join(dict.fromkeys(names))


def _written(hint: Any) -> str:
    if dataclasses.is_dataclass(hint):
        return "a mapping"
    if get_origin(hint) in (list, tuple):
        return "a list"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return f"one of {', '.join(str(member.value) for member in hint)}"
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _as_yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _plain(value: Any) -> Any:
    """A default as YAML and JSON know it; None where they do not."""
    if isinstance(value, enum.Enum):
        return value.value
    return value if isinstance(value, bool | int | float | str | list | dict) else None


__all__ = [
    "REQUIRED",
    "RecipeError",
    "Setting",
    "UnknownKeyError",
    "check_keys",
    "check_settings",
    "meaning",
    "object_schema",
    "settings_of",
]
