"""Names in what is said in a chat: contents of messages, schemas and arguments of tools.

A name is one in all that follows it, as a name of a source is one in its answer: so the beginning
of a chat has the names that it has in the whole chat.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .names_in_text import NameFinder, Names, variants_in
from .spans import Kept, Known, Span, is_alone, keys_in
from .words import NamesByWord, like_a_word

ROLES = ("user", "assistant", "tool")
"""Of the messages in which names are looked for, unless a tokenizer says otherwise."""
ANSWERS = "assistant"
PARTS = ("text", "refusal", "thinking")
"""Fields of a part of a content that are texts."""
CONTENTS = ("content", "reasoning_content", "thinking", "reasoning", "refusal")
SCHEMA_WORDS = ("type", "format", "pattern", "$schema")
"""Keys of a tool's schema whose values are words of JSON Schema."""
_BY_NAME = ("properties", "$defs", "definitions", "dependentRequired", "dependentSchemas")
"""Keys of a schema whose value has names as keys, of parameters or of schemas."""
_VALUES = ("default", "example", "examples", "const", "enum")
"""Keys of a schema whose values are data, as arguments are."""

Write = Callable[[str], str]


class ChatNames:
    """Finds the names of the texts of a chat, one behind another.

    Args:
        tools: schemas, whose names are names of the chat where a rule is `tools`.
        names: that are given for the chat, as `NameFinder.by_class` takes them.
        kept: from a text to the tokens that it has and that are no names.

    Attributes:
        given: name -> class, of the names that are given.
        known: key -> (name, class), of those that were found so far.
        stay: names of tools and parameters that a rule keeps.
        variants: of names that are given, those that are spellings of one another.

    Raises:
        ValueError: names are given by their places, twice, or for no class.
    """

    def __init__(
        self,
        finder: NameFinder,
        tools: Any,
        names: Names | Sequence[str] | None = None,
        kept: Callable[[str], Kept] = lambda text: (),
    ):
        self._finder, self._kept = finder, kept
        (self.given, places), self.variants = finder.listed(names or {}), variants_in(names or {})
        if places:
            raise ValueError(f"names: {[*places[0][:2]]}: a chat takes names, not their places")
        of_tools = {kind: rule for kind, rule in finder.rules.items() if rule.rule == "tools"}
        named = [pair for pair in tool_names(tools) if pair[0]] if of_tools else []
        bare = {name for name, is_described in named if not is_described}
        stay = {kind: bare if rule.keep else () for kind, rule in of_tools.items()}
        of_chat = {n: kind for kind in stay for n, _ in named if n not in stay[kind]} | self.given
        self.stay = {name for name, _ in named} - of_chat.keys()
        self._like_words = {name for name in of_chat.keys() - self.given if like_a_word(name)}
        self.known: Known = {}
        # Bound names are known in answers, and in texts that bind none themselves.
        self._said, self._answered = NamesByWord(finder.inside), NamesByWord(finder.inside)
        self._has_bound = False
        for name, kind in of_chat.items():
            self._add(name, name, kind)

    def _add(self, key: str, name: str, kind: str) -> None:
        if key not in self.known:
            self.known[key] = name, kind
            self._answered.add(name, kind)
            self._has_bound |= key != name
            if key == name:
                self._said.add(name, kind)

    def find(self, text: str, answers: bool) -> tuple[list[Span], list[str]]:
        """Return the names of the next text, and the key of each.

        Args:
            answers: whether the text answers those before.
        """
        kept = self._kept(text)
        if answers:
            found = self._finder.find(text, self._answered.within(text), kept)
        else:
            found = self._finder.find_said(text, self._said.within(text), kept)
            if answers := self._has_bound and not any(span.binding for span in found):
                bound = self._finder.find(text, self._answered.within(text), kept)
                found = self._finder.with_given(text, [*found, *bound], None)
        plain = self._like_words
        spans = [s for s in found if text[s.start : s.stop] not in plain or is_alone(text, s)]
        keys = keys_in(text, spans, self.known if answers else None)
        for span, key in zip(spans, keys, strict=True):
            name, kind = text[span.start : span.stop], span.symbol_class
            if key not in self.known:
                self._add(key, name, kind)
                for other in [] if span.binding else self._finder.variants(name, kind):
                    self._add(other, other, kind)
        return spans, keys


def tool_names(tools: Any) -> Iterator[tuple[str, bool]]:
    """Yield the names of tools and of their parameters at any depth, and whether each is described.

    A parameter that takes some values only is described by these.
    """
    for tool in tools or ():
        schema = tool.get("function") or tool.get("custom") or tool
        yield from [(schema["name"], _says_more(schema))] if "name" in schema else []
        yield from _parameters(schema)


def _says_more(schema: Any) -> bool:
    """Whether a schema says what a thing is for, beside its name."""
    return isinstance(schema, Mapping) and any(map(schema.get, ("description", "enum")))


def _parameters(schema: Any) -> Iterator[tuple[str, bool]]:
    for part in schema if isinstance(schema, list | tuple) else ():
        yield from _parameters(part)
    for key, part in schema.items() if isinstance(schema, Mapping) else ():
        if key == "properties" and isinstance(part, Mapping):
            yield from ((name, _says_more(parameter)) for name, parameter in part.items())
        is_by_name = key in _BY_NAME and isinstance(part, Mapping)
        yield from _parameters([*part.values()] if is_by_name else () if key in _VALUES else part)


def write_message(message: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Write what was said in a message, calls of tools included."""
    said = {key: message[key] for key in (*CONTENTS, "name") if key in message}
    written = {**message, **{key: _content(value, write) for key, value in said.items()}}
    if calls := message.get("tool_calls"):
        written["tool_calls"] = [_call(call, write) for call in calls]
    return written


def _content(content: Any, write: Write) -> Any:
    """Write a content: a text, or a list of parts, some of which are texts."""
    if not isinstance(content, list | tuple):
        return write_data(content, write)
    return [
        {**part, **{key: _content(part[key], write) for key in PARTS if key in part}}
        if isinstance(part, Mapping)
        else write_data(part, write)
        for part in content
    ]


def _call(call: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Write a call of a tool."""
    if "function" in call:
        return {**call, "function": _call(call["function"], write)}
    return {k: write_data(v, write) if k in ("name", "arguments") else v for k, v in call.items()}


def write_data(value: Any, write: Write) -> Any:
    """Write all texts of plain data, keys included."""
    if isinstance(value, Mapping):
        return {write_data(key, write): write_data(part, write) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [write_data(part, write) for part in value]
    return write(value) if isinstance(value, str) else value


def write_schema(schema: Any, write: Write) -> Any:
    """Write the texts of a tool's schema and the names of its parameters."""
    if isinstance(schema, list | tuple):
        return [write_schema(part, write) for part in schema]
    if not isinstance(schema, Mapping):
        return write_data(schema, write)
    written = {}
    for key, value in schema.items():
        if key in _BY_NAME and isinstance(value, Mapping):
            value = {write(name): write_schema(part, write) for name, part in value.items()}
        elif key == "$ref" and isinstance(value, str):
            value = "/".join(map(write, value.split("/")))
        elif key in _VALUES:
            value = write_data(value, write)
        elif key not in SCHEMA_WORDS or isinstance(value, Mapping):
            value = write_schema(value, write)
        written[key] = value
    return written
