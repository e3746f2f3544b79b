"""Names in chats: in what was said, and in nothing that a template writes around it.

Names are looked for in the contents of messages and in the schemas and arguments of tools. On their
way through the template they stand between two characters of the private use area, which are then
taken out: so no template has to be known.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from transformers.utils import get_json_schema

from .names_in_text import Known, MarkedText, Span, keys_in, parts

ROLES = ("user", "assistant", "tool")
"""Of the messages in which names are looked for, unless a tokenizer says otherwise."""
ANSWERS = "assistant"
CONTENTS = ("content", "reasoning_content", "thinking", "reasoning")
SCHEMA_WORDS = ("type", "format", "pattern", "$ref", "$schema")
"""Keys of a tool's schema whose values are words of JSON Schema."""
START, STOP = 0x100000, "\U0010fffd"
"""Of names on their way: a character from `START` on, one for each name, and `STOP`."""
_MARKED = re.compile(f"([{chr(START)}-\U0010fffc])([^{chr(START)}-{STOP}]*){STOP}")

Chat = Sequence[Mapping[str, Any]]
Find = Callable[[str, Known, bool], Sequence[Span]]
Write = Callable[[str], str]


def schemas(tools: Sequence[Any] | None) -> list[Any] | None:
    """Return the schemas of tools, some of which may be functions of Python."""
    return tools and [get_json_schema(tool) if callable(tool) else tool for tool in tools]  # type: ignore[return-value]


def tool_names(tools: Any) -> Iterator[str]:
    """Yield the names of tools, and of their parameters at any depth."""
    for tool in tools or ():
        schema = tool.get("function", tool)
        yield from [schema["name"]] if "name" in schema else []
        yield from _parameters(schema)


def _parameters(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(parameters := schema.get("properties"), Mapping):
            yield from parameters
        schema = [*schema.values()]
    for part in schema if isinstance(schema, list | tuple) else ():
        yield from _parameters(part)


def mark_chat(
    render: Callable[[Chat, Any], str],
    chat: Chat,
    tools: list[Any] | None,
    roles: Sequence[str],
    find: Find,
    given: Mapping[str, str],
) -> MarkedText:
    """Return the text of a chat, with the names of what was said.

    A name is one in all that follows it, as a name of a source is one in its answer: so the text of
    a chat's beginning has the names that it has in the whole chat.

    Args:
        render: from messages and tools to a text.
        chat: the messages.
        tools: schemas of tools.
        roles: of the messages in which names are looked for.
        find: finds the names of a content: by that, the names that are known already, and whether
            it answers what was said.
        given: name -> class, known from the start.

    Raises:
        ValueError: the template changes names, or writes another text where there are some.
    """
    text, known = render(chat, tools), {name: (name, kind) for name, kind in given.items()}
    names = set[str]()

    def write(content: str, answers: bool = False) -> str:
        spans = find(content, known, answers)
        keys = iter(keys_in(content, spans, known if answers else None))
        written = ""
        for before, span in parts(content, spans):
            written += before
            if span is not None:
                name, key = content[span.start : span.stop], next(keys)
                names.add(name)
                known.setdefault(key, (name, span.symbol_class))
                written += f"{chr(START + [*known].index(key))}{name}{STOP}"
        return written

    tools = tools and [_schema(tool, write) for tool in tools]
    chat = [
        _message(message, partial(write, answers=message["role"] == ANSWERS))
        if message.get("role") in roles
        else message
        for message in chat
    ]
    spans, end, plain = [], 0, ""
    marked = render(chat, tools) if names else text
    for match in _MARKED.finditer(marked):
        plain += marked[end : match.start()]
        spans.append(_span(len(plain), match, known))
        plain, end = plain + match[2], match.end()
    if plain + marked[end:] != text or not names.issuperset(text[i:j] for i, j, *_ in spans):
        raise ValueError(
            "the chat template changes names that it is given, or what it writes depends on them "
            f"({', '.join(map(repr, sorted(names)[:3]))}): use a template that writes contents as "
            "they are, or leave these out of the names; or mark the names of the text yourself, "
            "tokenizer(MarkedText(text, spans), add_special_tokens=False)"
        )
    return MarkedText(text, spans)


def _span(start: int, match: Any, known: Known) -> Span:
    """Return a marked name, which stands in the text from `start` on."""
    key, (_, kind) = [*known.items()][ord(match[1]) - START]
    binding = key.removeprefix(f"\0{kind} ") if key.startswith("\0") else ""
    return Span(start, start + len(match[2]), kind, binding)


def _message(message: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Write what was said in a message, calls of tools included."""
    said = {key: message[key] for key in (*CONTENTS, "name") if key in message}
    written = {**message, **{key: _content(value, write) for key, value in said.items()}}
    if calls := message.get("tool_calls"):
        written["tool_calls"] = [_call(call, write) for call in calls]
    return written


def _content(content: Any, write: Write) -> Any:
    """Write a content: a text, or a list of parts, some of which are texts."""
    if isinstance(content, list | tuple):
        return [{**x, "text": write(x["text"])} if "text" in x else x for x in content]
    return _data(content, write)


def _call(call: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Write a call of a tool."""
    if "function" in call:
        return {**call, "function": _call(call["function"], write)}
    return {k: _data(v, write) if k in ("name", "arguments") else v for k, v in call.items()}


def _data(value: Any, write: Write) -> Any:
    """Write all texts of plain data, keys included."""
    if isinstance(value, Mapping):
        return {_data(key, write): _data(part, write) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_data(part, write) for part in value]
    return write(value) if isinstance(value, str) else value


def _schema(schema: Any, write: Write) -> Any:
    """Write the texts of a tool's schema and the names of its parameters."""
    if isinstance(schema, list | tuple):
        return [_schema(part, write) for part in schema]
    if not isinstance(schema, Mapping):
        return _data(schema, write)
    written = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            written[key] = {write(name): _schema(part, write) for name, part in value.items()}
        else:
            written[key] = value if key in SCHEMA_WORDS else _schema(value, write)
    return written


__all__ = ["ROLES", "mark_chat", "schemas"]
