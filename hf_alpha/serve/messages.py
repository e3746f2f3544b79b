"""What a model writes in a chat, told apart as it comes: text, thoughts and calls of tools."""

import json
import uuid
from collections.abc import Iterator, Mapping
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import regex  # type: ignore[import-untyped]
from transformers.cli.serving.utils import get_response_template
from transformers.utils.chat_parsing import ResponseParser
from transformers.utils.chat_parsing.response_templates import load_response_template

Delta = dict[str, Any]
"""What is new in a message, as OpenAI writes it: text, thoughts, or a call or more of one."""
CALLS = "tool_calls"
"""Field of a response template, and of a message, that has calls."""
TEXTS = {
    "content": "content",
    **dict.fromkeys(("reasoning_content", "thinking", "reasoning"), "reasoning_content"),
}
"""Field of a response template that has text -> field of a message."""
NO_CALL = (ValueError, KeyError, TypeError, RecursionError)
"""What reading a call raises where there is none."""
_NAME = r'\s*\{\s*"name"\s*:\s*(?P<name>"(?:[^"\\]|\\.)+")'
_HEAD = regex.compile(rf'(?s){_NAME}\s*,\s*"arguments"\s*:\s*(?=\{{)')
"""What is a call, whatever follows: its arguments are sent as they are written."""


def template_of(model: Any, tokenizer: Any) -> Any:
    """Return how a model writes messages, by its tokenizer or its family, if that is known."""
    host = SimpleNamespace(config=getattr(model.config, "backbone_config", None) or model.config)
    template = get_response_template(tokenizer, host)
    if template is None and "<tool_call>" in f"{getattr(tokenizer, 'chat_template', None)}":
        host.config = SimpleNamespace(model_type="qwen2")  # many write calls as it does
        template = get_response_template(tokenizer, host)
    return template


class CallEnd:
    """Finds where the first call of an answer ends, in a text that comes in parts.

    Args:
        opens, closes: patterns of what stands around a call.
    """

    MOST = 256
    """Characters of what opens or closes a call."""

    def __init__(self, opens: Any, closes: Any):
        self._opens, self._closes, self._behind, self._is_open = opens, closes, "", False

    @classmethod
    def of(cls, template: Any) -> "CallEnd | None":
        """Make one; None where messages have no calls."""
        field = load_response_template(template).fields.get(CALLS)
        marked = field and field.open_re and field.close_re
        return cls(field.open_re, field.close_re) if marked else None

    def find(self, text: str) -> int | None:
        """Return where the call ends in what comes next, if it does."""
        known, text = len(self._behind), self._behind + text
        begun = None if self._is_open else self._opens.search(text)
        start = begun.end() if begun else 0
        ended = self._closes.search(text, start) if self._is_open or begun else None
        return None if ended is None else ended.end() - known

    def take(self, text: str) -> None:
        """Take what comes next."""
        text = self._behind + text
        if not self._is_open and (begun := self._opens.search(text)):
            self._is_open, text = True, text[begun.end() :]
        self._behind = text[-self.MOST :]


class Arguments:
    """Says which characters belong to a JSON object, one after the other from its first on."""

    def __init__(self) -> None:
        self._depth, self._in_text, self._escaped, self._ended = 0, False, False, False

    def takes(self, character: str) -> bool:
        """Whether the next character belongs to it."""
        if self._ended:
            return False
        if self._in_text:
            self._in_text = self._escaped or character != '"'
            self._escaped = character == "\\" and not self._escaped
        else:
            self._in_text = character == '"'
            self._depth += (character in "{[") - (character in "}]")
            self._ended = self._depth == 0
        return True


class MessageReader:
    """Tells what a model writes in a chat: text, thoughts, and calls of tools.

    A call begins once its name is known and its arguments begin; from there on it is one, even if
    its arguments turn out to be no JSON. What is no call is text. Of a call that is cut off there
    is what was written of it; before its name, that is nothing.

    Args:
        template: Transformers' `response_template`; None for text alone.
        prefix: the chat so far, as the model reads it.

    Attributes:
        calls: how many there are so far.
    """

    def __init__(self, template: Any, prefix: str, tools: list[dict[str, Any]]):
        self._template, self._tools = template and load_response_template(template), tools
        self._field = self._template and self._template.fields.get(CALLS)
        self._parser = self._template and self._new_parser(prefix)
        self._unsent, self.calls = "", 0  # by the parser
        self._body: str | None = None  # of the call that is being read
        self._arguments: Arguments | None = None  # once it is a call
        begun: list[Any] = []  # a call that an answer which is gone on with ends in
        for event in self._parser.initial_events if self._parser else ():
            begun = [] if event["type"] == "region_close" else [*begun, event]
        self._within = begun[0]["field"] if begun else ""
        begun = [event for event in begun if event["field"] == CALLS]
        self._begun = [delta for event in begun for delta in self._of_event(event)]

    def _new_parser(self, prefix: str) -> ResponseParser:
        """Return a parser; what stands before an answer counts where the template knows it."""
        if self._template.start_anchor_re.search(prefix):
            try:
                return ResponseParser(self._template, prefix=prefix, tools=self._tools)
            except NO_CALL:  # an answer that is gone on with has what looks like a call
                pass
        return ResponseParser(self._template, prefix="", tools=self._tools)

    def feed(self, text: str, finish: str | None) -> Iterator[Delta]:
        """Yield what is new in the message; of a call its name first.

        Args:
            finish: why the answer ends, if it does.
        """
        for _, same in groupby(self._deltas(text, finish), _kind):
            joined: Delta = {}
            for delta in same:
                add(joined, delta)
            yield joined

    def _deltas(self, text: str, finish: str | None) -> Iterator[Delta]:
        begun, self._begun = self._begun, []
        yield from begun
        if self._parser is None:
            yield from [{"content": text}] if text else []
            return
        for character in [*text, None] if finish else text:
            self._unsent += character or ""
            feed = self._parser.feed
            try:
                events = feed(character) if character else self._parser.finalize()[1]
                # lists, so that nothing is sent of what turns out to be no call
                yield from [delta for event in events for delta in self._of_event(event)]
            except NO_CALL:
                yield from self._of_no_call(finish if character is None else None)

    def _of_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Yield what a parser's event adds to the message."""
        kind, field = event["type"], event["field"]
        if field != CALLS:
            if kind == "region_chunk" and not event["dirty"]:
                self._unsent = self._unsent.partition(event["text"])[2]
                yield from [{TEXTS[field]: event["text"]}] if field in TEXTS else []
            elif kind == "region_close" and field != "content":
                self._unsent = ""
        elif kind == "region_open":
            self._body, self._arguments = "", None
        elif kind == "region_chunk":
            for character in event["text"]:
                yield from self._of_call(character)
        else:
            calls = [] if self._arguments else _whole_calls(event["value"])
            self._unsent, self._body, self._arguments = "", None, None
            for name, arguments in calls:
                yield self._call(name, arguments)

    def _of_call(self, character: str) -> Iterator[Delta]:
        """Yield what a character adds to a call: its name, or more of its arguments."""
        assert self._body is not None
        if self._arguments is None:
            self._body += character
            head = _HEAD.match(self._body) if character == "{" and self._is_plain else None
            name = head and _name(head["name"])
            if not name:
                return
            self._arguments = Arguments()
            yield self._call(name, "")
        if self._arguments.takes(character):
            function = {"arguments": character}
            yield {CALLS: [{"index": self.calls - 1, "function": function}]}

    @property
    def thought(self) -> str | None:
        """What ends a thought that the answer begins in, if it does."""
        field = self._template and self._template.fields.get(self._within)
        is_thought = field and TEXTS.get(self._within) == "reasoning_content"
        return field.close_literals[0] if is_thought and field.close_literals else None

    @property
    def can_be_told(self) -> bool:
        """Whether calls are `<tool_call>`, a JSON object and `</tool_call>`."""
        field = self._field
        if not (field and field.open_re and field.close_re and self._is_plain):
            return False
        marks = field.open_re.fullmatch("<tool_call>"), field.close_re.fullmatch("</tool_call>")
        return all(marks)

    @property
    def _is_plain(self) -> bool:
        """Whether a call is written as JSON, with `name` and `arguments`."""
        of_json = self._field.content == "json" and not self._field.content_args
        transform = self._field.transform
        is_whole = isinstance(transform, Mapping) and transform.get("function") == "{content}"
        return bool(of_json and is_whole)

    def _of_no_call(self, finish: str | None) -> Iterator[Delta]:
        """Yield what was taken for a call, and is none: text, or half of one that is cut off."""
        unsent, body, arguments = self._unsent, self._body, self._arguments
        self._unsent, self._body, self._arguments = "", None, None
        self._parser = self._new_parser("")
        if arguments is not None:
            return
        opened = self._field and self._field.open_re.search(unsent)
        if finish == "length" and (body is not None or opened):
            body = unsent[opened.end() :] if body is None else body
            given = {} if opened is None else opened.groupdict()
            half = _HEAD.fullmatch(body, partial=True) if self._is_plain else None
            if name := given.get("name") or (half and _name(half["name"] or "")):
                yield self._call(name, "")
            if name or half or not body:
                return
        yield from [{"content": unsent}] if unsent else []

    def _call(self, name: str, arguments: str) -> Delta:
        function = {"name": name, "arguments": arguments}
        call = {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}
        self.calls += 1
        return {CALLS: [{"index": self.calls - 1, **call}]}


def _name(written: str) -> str:
    """Return the name that a JSON string is; none if it is no whole one."""
    try:
        return str(json.loads(written))
    except ValueError:
        return ""


def _whole_calls(value: Any) -> list[tuple[str, str]]:
    """Return names and arguments of what a parser has read as a call, or as several.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: it is none.
    """
    calls = []
    for call in value if isinstance(value, list) else [value]:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if not (isinstance(name, str) and name and isinstance(arguments, dict | str)):
            raise TypeError(f"{call!r} is no call")
        calls.append((name, arguments if isinstance(arguments, str) else json.dumps(arguments)))
    return calls


def _kind(delta: Delta) -> Any:
    """Return the same for deltas that may be joined: texts of a kind, pieces of arguments."""
    (key,) = delta
    return key if key != CALLS else (delta[key][0].get("id"), delta[key][0]["index"])


def add(message: dict[str, Any], delta: Delta) -> None:
    """Add what is new to a message."""
    for key, new in delta.items():
        if key != CALLS:
            message[key] = message.get(key, "") + new
            continue
        for call in new:
            calls = message.setdefault(CALLS, [])
            if known := [one for one in calls if one["index"] == call["index"]]:
                known[0]["function"]["arguments"] += call["function"]["arguments"]
            else:
                calls.append({**call, "function": {**call["function"]}})
