"""Requests in OpenAI's form with names spelled canonically, and their answers with names again.

No connection is known here: requests and answers are data. Fields that are not known stay as they
are.
"""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

import regex  # type: ignore[import-untyped]

from hf_alpha.modeling.canonical_answers import TERMINAL, BackStream, Forms
from hf_alpha.modeling.canonical_names import CanonicalNames, Spelling
from hf_alpha.modeling.chat_names import (
    ANSWERS,
    PARTS,
    ChatNames,
    tool_names,
    write_data,
    write_message,
    write_schema,
)
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import overlapping
from hf_alpha.modeling.text_pieces import Cut
from hf_alpha.modeling.words import A_WORD, WORDS

logger = logging.getLogger(__name__)
TEXTS = ("content", "reasoning_content", "reasoning", "refusal", "text")
"""Fields of an answer that are texts."""
THOUGHT = "thinking"
"""The part of a content that is no part of the answer."""
FORMS = ("response_format", "structured_outputs", "guided_json", "guided_choice", "guided_regex",
         "guided_grammar", "json_schema", "grammar", "regex", "ebnf")  # fmt: skip
"""Fields that say how an answer has to be: OpenAI's, those of vLLM, llama.cpp and SGLang."""
_JSON_STRING = regex.compile(r'"(?:[^"\\\n]|\\.)*+"')
_JSON_STRINGS = {  # by how many backslashes one is there: also of JSON in a string of JSON
    1: _JSON_STRING,
    2: regex.compile(r'(?<!\\)\\"(?:[^"\\\n]|\\{2}(?:[^"\\]|\\{2}|\\"))*+\\"'),
    4: regex.compile(r'(?<!\\)\\{3}"(?:[^"\\\n]|\\{4}(?:[^"\\]|\\{4}|\\{3}"))*+\\{3}"'),
}
_ESCAPED = regex.compile(
    rf"(?P<anywhere>{TERMINAL}"
    r"|(?<=\w)\\++(?=_(?:[^\W_]|\\++_)))"  # of Markdown
    r"|(?<!\\)\\++(?:(?i:u(?P<high>[0-9a-f]{4})(?:(?<=d[89ab]..)\\++u(?P<low>d[c-f]..))?)"
    r"|(?=/)|(?P<space>[bfnrt]))"
)
_JSON_PARTS = regex.compile(rf"\\u[0-9a-fA-F]{{0,4}}|\\.|{A_WORD}|[^\w\\]+|\\", regex.DOTALL)
_OPEN = regex.compile(r"\\(?:u[0-9a-fA-F]{0,3})?|\w+")
"""What may go on at the end of JSON."""
CALLED = ("function", "custom")
"""What a tool, a choice or a call has its name in: a function, or a tool that takes a text."""
_OLDER = -1
"""The number of a call that is the only one, `function_call`."""
Write = Callable[[bool, str], str]
"""From whether a text answers those before, and the text, to what stands in its place."""


def write_request(body: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Write all texts of a request that may have names, in the order in which they are read.

    Raises:
        ValueError: a field is not as OpenAI has it.
    """
    written = {key: value for key, value in body.items() if key != "names"}
    said = partial(write, False)
    try:
        for key in ("tools", "functions"):
            if written.get(key):
                written[key] = _schema(written[key], said)
        if "messages" in written:
            written["messages"] = [_message(message, write) for message in written["messages"]]
        for key in ("prompt", "suffix", "stop", "bad_words"):
            if isinstance(value := written.get(key), str) or _are_texts(value):
                written[key] = write_data(value, said)
            elif value and key == "prompt":
                raise ValueError("`prompt` is no text, so its names cannot be spelled: send text")
        for key in ("tool_choice", "function_call"):
            if isinstance(choice := written.get(key), Mapping):
                written[key] = _choice(choice, said)
        written |= {key: _schema(written[key], said) for key in FORMS if key in written}
        if "documents" in written:
            written["documents"] = write_data(written["documents"], said)
        if isinstance(guess := written.get("prediction"), Mapping):
            written["prediction"] = write_message(guess, said)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the request is not as OpenAI's API has it: {error!r}") from None
    return written


def _schema(schema: Any, said: Callable[[str], str]) -> Any:
    """Write a schema, or several, with titles that are made of names (`Max Price`) as these."""
    written = write_schema(schema, said)
    _entitle(schema, written)
    return written


def _entitle(old: Any, new: Any) -> None:
    """Write titles that Pydantic has made of names in a schema that was written otherwise."""
    if isinstance(old, list | tuple):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if not isinstance(old, Mapping) or len(old) != len(new):  # of data, keys may be one now
        return
    for (name, was), (word, part) in zip(old.items(), new.items(), strict=True):
        _entitle(was, part)
        title = was.get("title") if isinstance(was, Mapping) else None
        if word != name and isinstance(title, str) and _letters(title) == _letters(name):
            part["title"] = word
        called = old.get("name")
        if name == word == "parameters" and isinstance(title, str) and isinstance(called, str):
            behind = title.removeprefix(called)  # `get_xArguments`
            if behind != title and behind[:1].isupper():
                part["title"] = f"{new['name']}{behind}"


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _message(message: Mapping[str, Any], write: Write) -> dict[str, Any]:
    """Write a message; arguments of calls are JSON in a string."""
    said = partial(write, message.get("role") == ANSWERS)
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    written = {**message, **write_message(rest, said)}  # in the same order
    if calls := message.get("tool_calls"):
        written["tool_calls"] = [_called(call, lambda of: _call(of, said)) for call in calls]
    if call := message.get("function_call"):
        written["function_call"] = _call(call, said)
    return written


def _called(call: Any, write: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    """Write what a call of a tool calls; what is no call stays as it is."""
    kinds = [k for k in CALLED if isinstance(call, Mapping) and isinstance(call.get(k), Mapping)]
    return {**call, **{kind: write(call[kind]) for kind in kinds}} if kinds else call


def _call(call: Mapping[str, Any], said: Callable[[str], str]) -> dict[str, Any]:
    of_text = {key: said(call[key]) for key in ("name", "input") if isinstance(call.get(key), str)}
    written = {**call, **of_text}
    if (arguments := call.get("arguments")) is not None:
        is_text = isinstance(arguments, str)
        written["arguments"] = (_in_json if is_text else write_data)(arguments, said)
    return written


def _choice(choice: Mapping[str, Any], said: Callable[[str], str]) -> dict[str, Any]:
    if any(isinstance(choice.get(kind), Mapping) for kind in CALLED):
        return dict(_called(choice, lambda of: {**of, "name": said(of["name"])}))
    if isinstance(allowed := choice.get("allowed_tools"), Mapping):
        tools = [_choice(tool, said) for tool in allowed["tools"]]
        return {**choice, "allowed_tools": {**allowed, "tools": tools}}
    return {**choice, "name": said(choice["name"])} if "name" in choice else {**choice}


def texts_of(body: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """Return all texts of a request that may have names, each with whether it answers others."""
    texts: list[tuple[bool, str]] = []

    def look(answers: bool, text: str) -> str:
        texts.append((answers, Unescaped.of(text)))
        return text

    write_request(body, look)
    return texts


def tools_of(body: Mapping[str, Any]) -> list[Any]:
    """Return the tools of a request, those of the older form too."""
    return [*(body.get("tools") or ()), *(body.get("functions") or ())]


def names_of(finder: NameFinder, body: Mapping[str, Any]) -> ChatNames:
    """Return what finds the names of a request, text by text.

    Raises:
        ValueError: names have to be given, and are not; or they are wrong.
    """
    given = body.get("names")
    if given is None and finder.columns:
        kind, column = next(iter(finder.columns.items()))
        raise ValueError(
            f"the names of class {kind!r} are listed in {column!r}, which the request lacks: give "
            f'them as `names`, {{"{kind}": ["Ann"]}}'
        )
    try:
        return ChatNames(finder, tools_of(body), given)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"the request is not as OpenAI's API has it: {error!r}") from None


def undescribed(body: Mapping[str, Any]) -> set[str]:
    """Return the names of a request's tools and of their parameters that nothing describes."""
    return {str(n) for n, is_described in tool_names(tools_of(body)) if not is_described}


class Unescaped(str):
    r"""A text in which letters stand as escapes, as `\u00e9` does in JSON, as what these stand for.

    In strings as JSON has them signs too, such as `\u0027`, but for what an escape alone can stand
    for there; `\n` and the like are a space, and so are colours of terminals anywhere. `get\_x` of
    Markdown is `get_x`.

    Args:
        text: with the escapes.
    """

    _text: str
    _places: list[int]  # of each letter, where it stands in the text with the escapes

    def __new__(cls, text: str) -> "Unescaped":
        parts, places, end = [], list[int](), 0
        strings: dict[int, Any] = {}
        for match in _ESCAPED.finditer(text):
            (start, stop), kind = match.span(), match.lastgroup
            number = stop - start - 1 if kind == "space" else 1
            if number in _JSON_STRINGS and number not in strings:
                strings[number] = [found.span() for found in _JSON_STRINGS[number].finditer(text)]
            is_string = bool(overlapping(start, stop, strings.get(number, ())))
            if kind in ("high", "low"):
                high, low = int(match["high"], 16), int(match["low"] or "0", 16)
                new = chr(0x10000 + (high % 0x400 << 10) + low % 0x400 if low else high)
                is_sign = is_string and new not in '"\\'
                is_wanted = (new > "\x7f" or is_sign) and not "\ud800" <= new <= "\udfff"
            else:
                new = "" if text[stop - 1] == "\\" else " "
                is_wanted = is_string or kind == "anywhere"
            if is_wanted:
                parts += [text[end:start], new]
                places += range(end, start + len(new))
                end = stop
        self = super().__new__(cls, "".join([*parts, text[end:]]))
        self._text, self._places = text, [*places, *range(end, len(text) + 1)]
        return self

    @classmethod
    def of(cls, text: str) -> str:
        """Return a text without escapes of letters; itself if it has none."""
        has_any = "\\" in text or "\x1b" in text
        return cls(text) if has_any and _ESCAPED.search(text) else text

    def written(self, cut: Cut) -> str:
        """Return the text that was cut at its names, with the escapes that are no part of these."""
        return "".join([
            self._text[self._places[start] : self._places[stop]] if as_is else piece
            for piece, start, stop, as_is in cut.pieces
        ])  # fmt: skip


class CanonicalRequest:
    """A request for a chat or for a text to go on, as a model reads it; and its answers back.

    The spelling of a request begins with the spelling of its beginning: one that has a turn more
    has the same words before it.

    Args:
        names: finds and spells names.
        body: the request. Its field `names`, if it has one, lists names of the request, class ->
            names, and is left out.

    Attributes:
        body: the request as the model reads it.
        table: word -> what it stands for.
        parts_left: words of names (of `Ann Lee`, Lee) that the model reads elsewhere.
        says_json: whether an answer has to be JSON, so that names in it are escaped as there.

    Raises:
        ValueError: a field is not as OpenAI has it, or names are wrong.
    """

    def __init__(self, names: CanonicalNames, body: Mapping[str, Any]):
        found = names_of(names.finder, body)
        spelling = Spelling(names, variants=found.variants)
        spelling.avoid(found.stay)

        def write(answers: bool, text: str) -> str:
            text = Unescaped.of(text)
            spans, keys = found.find(text, answers)
            cut = spelling.add(text, spans, (), keys, answers)
            return text.written(cut) if isinstance(text, Unescaped) else cut.written

        self._names, self.table = names, spelling.table
        self.body = write_request(body, write)
        self.parts_left, self.says_json = spelling.parts_left(), _says_json(body)

    @classmethod
    def from_table(
        cls, names: CanonicalNames, table: Mapping[str, str], says_json: bool = False
    ) -> "CanonicalRequest":
        """Return one that was spelled elsewhere, without its body."""
        made = cls.__new__(cls)
        made._names, made.table, made.body, made.parts_left = names, dict(table), {}, set()
        made.says_json = says_json
        return made

    # -- answers

    def back(self, answer: Any) -> Any:
        """Return an answer with names; one that has no choices, such as an error, as it is."""
        if not isinstance(answer, Mapping) or not isinstance(answer.get("choices"), list):
            return answer
        return {**answer, "choices": [self._choice_back(choice) for choice in answer["choices"]]}

    def _choice_back(self, choice: Any) -> Any:
        if not isinstance(choice, Mapping):
            return choice
        written = self._texts_back(choice)
        if isinstance(message := choice.get("message"), Mapping):
            written["message"] = self.message_back(message)
        return written

    def _texts_back(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {**fields, **_texts(fields, self._text_back)}

    def _text_back(self, key: str, text: str) -> str:
        back = self.back_stream(key)
        return back.feed(text) + _closed(back)

    def back_stream(self, key: str) -> "BackStream | JsonBack":
        """Return what takes the parts of a text of an answer, by the field that it is in."""
        is_json = self.says_json and key in ("content", "text")
        return JsonBack(self.table) if is_json else BackStream(self._names, self.table)

    def message_back(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message of an answer with names."""
        written = self._texts_back(message)
        if isinstance(calls := message.get("tool_calls"), list):
            written["tool_calls"] = [_called(call, self._call_back) for call in calls]
        if isinstance(call := message.get("function_call"), Mapping):
            written["function_call"] = self._call_back(call)
        return written

    def _call_back(self, call: Mapping[str, Any]) -> dict[str, Any]:
        written = {**call}
        if isinstance(name := call.get("name"), str):
            written["name"] = _name_back(name, self.table)
        if isinstance(arguments := call.get("arguments"), str):
            written["arguments"] = json_back(arguments, Forms(self.table))
        elif arguments is not None:
            written["arguments"] = write_data(arguments, partial(self._text_back, ""))
        if isinstance(text := call.get("input"), str):
            written["input"] = self._text_back("input", text)
        return written


class CanonicalStream:
    """The chunks of a stream in OpenAI's form, each with names as far as they are sure.

    A text is held until its word is whole; a call's name until it is one of the words. What is held
    comes with the chunk that ends a choice, or else when the stream is closed.
    """

    def __init__(self, request: CanonicalRequest, names: CanonicalNames):
        self._request, self._table, self._names = request, request.table, names
        self._texts: dict[tuple[int, str], BackStream | JsonBack] = {}
        self._calls: dict[tuple[int, int], _CallBack] = {}
        self._said, self._head = set[str](), dict[str, Any]()  # texts that go on, and a chunk

    def feed(self, chunk: Any) -> Any:
        """Return a chunk with names."""
        if not isinstance(chunk, Mapping) or not isinstance(chunk.get("choices"), list):
            return chunk
        self._head = {key: value for key, value in chunk.items() if key != "usage"}
        return {**chunk, "choices": [self._choice(choice) for choice in chunk["choices"]]}

    def close(self) -> dict[str, Any] | None:
        """Return a chunk with what is held, if the stream ends with something held."""
        choices = []
        for index in sorted({index for index, _ in [*self._texts, *self._calls]}):
            choice = self._ended({"delta": {}}, index)
            choice = {key: value for key, value in choice.items() if value}
            choices += [{"index": index, **choice, "finish_reason": None}] if choice else []
        return {**self._head, "choices": choices} if choices else None

    def _choice(self, choice: Any) -> Any:
        if not isinstance(choice, Mapping):
            return choice
        index, ended = choice.get("index") or 0, choice.get("finish_reason") is not None
        feed = partial(self._feed, index)
        written = {**choice, **_texts(choice, feed)}
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._said.clear()
            delta = {**delta, **_texts(delta, feed)}
            if isinstance(calls := delta.get("tool_calls"), list):
                delta["tool_calls"] = [self._call(call, index) for call in calls]
            if isinstance(call := delta.get("function_call"), Mapping):
                delta["function_call"] = self._call_back(index, _OLDER).feed(call)
            is_more = self._said or delta.get("tool_calls") or delta.get("function_call")
            if is_more and len(self._texts) > len(self._said):
                delta = self._whole(delta, index)
            written["delta"] = delta
        if isinstance(message := choice.get("message"), Mapping):
            written["message"] = self._request.message_back(message)
        return self._ended(written, index) if ended else written

    def _whole(self, delta: dict[str, Any], index: int) -> dict[str, Any]:
        """Return a delta with what is held of texts that do not go on in it: so they are whole.

        Else the end of a thought would come behind the answer.
        """
        for (number, key), back in self._texts.items():
            if number == index and key not in self._said and (rest := _closed(back)):
                delta = _with_rest(delta, key, rest)
        return delta

    def _ended(self, choice: dict[str, Any], index: int) -> dict[str, Any]:
        """Return the last part of a choice, with what is held of it."""
        delta = dict(choice["delta"]) if isinstance(choice.get("delta"), Mapping) else None
        for place in [place for place in self._texts if place[0] == index]:
            if not (text := _closed(self._texts.pop(place))):
                continue
            if (key := place[1]) == "text" or delta is None:
                choice = _with_rest(choice, key, text)
            else:
                delta = _with_rest(delta, key, text)
        for called in [called for called in self._calls if called[0] == index]:
            number, rest = called[1], self._calls.pop(called).close()
            if not rest:
                continue
            if number == _OLDER:
                begun = (delta or {}).get("function_call") or {}
                rest = {key: (begun.get(key) or "") + text for key, text in rest.items()}
                delta = {**(delta or {}), "function_call": {**begun, **rest}}
            else:
                calls = (delta or {}).get("tool_calls") or ()
                calls = [*calls, {"index": number, CALLED["input" in rest]: rest}]
                delta = {**(delta or {}), "tool_calls": calls}
        return choice if delta is None else {**choice, "delta": delta}

    def _feed(self, index: int, key: str, text: str) -> str:
        if text:
            self._said.add(key)
        if (index, key) not in self._texts:
            self._texts[index, key] = self._request.back_stream(key)
        return self._texts[index, key].feed(text)

    def _call(self, call: Any, index: int) -> Any:
        number = call.get("index") or 0 if isinstance(call, Mapping) else 0
        return _called(call, lambda of: self._call_back(index, number).feed(of))

    def _call_back(self, index: int, number: int) -> "_CallBack":
        if (index, number) not in self._calls:
            self._calls[index, number] = _CallBack(self._table, self._names)
        return self._calls[index, number]


def _texts(fields: Mapping[str, Any], back: Callable[[str, str], str]) -> dict[str, Any]:
    """Write the texts of an answer, and those in the parts of its contents."""

    def of(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [{**x, **_parts(key, x)} if isinstance(x, Mapping) else x for x in value]
        return back(key, value) if isinstance(value, str) else value

    def _parts(key: str, part: Mapping[str, Any]) -> dict[str, Any]:
        return {k: of(k if k == THOUGHT else key, part[k]) for k in PARTS if k in part}

    return {key: of(key, fields[key]) for key in TEXTS if key in fields}


def _with_rest(fields: Mapping[str, Any], key: str, rest: str) -> dict[str, Any]:
    """Return fields of an answer with more of a text, which may be in the parts of a content."""
    said: Any = fields.get("content" if key == THOUGHT else key) or ""
    part = {"type": "text", "text": rest}
    if key != THOUGHT:
        return {**fields, key: said + (rest if isinstance(said, str) else [part])}
    parts = [{"type": "text", "text": said}] if isinstance(said, str) and said else [*said]
    place = sum(isinstance(each, Mapping) and THOUGHT in each for each in parts)
    parts.insert(place, {"type": THOUGHT, THOUGHT: [part]})
    return {**fields, "content": parts}


def _name_back(name: str, table: Mapping[str, str]) -> str:
    """Return what is called by words, such as `functions.tool_b`."""
    return str(WORDS.sub(lambda match: str(table.get(match[0], match[0])), name))


def _says_json(body: Mapping[str, Any]) -> bool:
    """Whether the answer to a request has to be JSON."""
    forms = [body.get(key) for key in ("response_format", "structured_outputs")]
    kinds = [form.get(k) for form in forms if isinstance(form, Mapping) for k in ("type", "json")]
    told = any(isinstance(kind, Mapping) or f"{kind}".startswith("json") for kind in kinds)
    return told or any(body.get(key) for key in ("guided_json", "json_schema"))


def _closed(back: "BackStream | JsonBack") -> str:
    """Return the rest of a text, and note words in it that were given to no name."""
    rest = back.close()
    if back.not_given:
        _note_not_given()
    return rest


@cache
def _note_not_given() -> None:
    logger.warning("an answer has a word for names that was given to none (such as tool_k, "
                   "of three tools): it stays as it is. This is said once")  # fmt: skip


class _CallBack:
    """A call of a tool as it comes."""

    def __init__(self, table: Mapping[str, str], names: CanonicalNames):
        self._table, self._name, self._arguments = table, "", JsonBack(table)
        self._input, self._takes_text = BackStream(names, table), False

    def feed(self, function: Mapping[str, Any]) -> dict[str, Any]:
        written = dict(function)
        if isinstance(name := function.get("name"), str):
            self._name += name
            written["name"] = "" if self._is_open() else self._take_name()
        for key, back in (("arguments", self._arguments), ("input", self._input)):
            if isinstance(given := function.get(key), str):
                if given and self._name:
                    written["name"] = self._take_name()
                written[key] = back.feed(given)
                self._takes_text |= key == "input"
        return written

    def close(self) -> dict[str, str]:
        """Return what was held, if there is something."""
        rest = {"name": self._take_name()} if self._name else {}
        if arguments := self._arguments.close():
            rest["arguments"] = arguments
        if (text := _closed(self._input)) or (rest and self._takes_text):
            rest["input"] = text
        return rest

    def _is_open(self) -> bool:
        """Whether a name may go on: it begins a longer word."""
        word = next(reversed(WORDS.findall(self._name)), "")
        word = word if self._name.endswith(word) else ""
        return any(w != word and w.startswith(word) for w in self._table)

    def _take_name(self) -> str:
        name, self._name = self._name, ""
        return _name_back(name, self._table)


class JsonBack:
    """Writes JSON with names as it comes; the last word may go on."""

    not_given: Collection[str] = ()

    def __init__(self, table: Mapping[str, str]):
        self._forms, self._held = Forms(table), ""

    def feed(self, new: str) -> str:
        """Take more of it; return what is sure."""
        if self._held[:1] not in ("", "\\") and WORDS.fullmatch(new):
            self._held += new  # a long word is not looked at again for each of its parts
            return ""
        text = self._held + new
        *_, last = [0, *(match.start() for match in _JSON_PARTS.finditer(text))]
        cut = last if _OPEN.fullmatch(text, last) else len(text)
        self._held = text[cut:]
        return json_back(text[:cut], self._forms)

    def close(self) -> str:
        """Return the rest."""
        rest, self._held = self._held, ""
        return json_back(rest, self._forms)


def json_back(text: str, forms: Forms) -> str:
    """Write JSON, or a part of it, with names in place of words, escaped as JSON has them.

    The text need not be whole; all between words stays as it is.
    """
    written = []
    for match in _JSON_PARTS.finditer(text):
        part = match.group()
        name = forms.name(part) if part[0] != "\\" else None
        written.append(part if name is None else json.dumps(name, ensure_ascii=False)[1:-1])
    return "".join(written)


def _in_json(text: str, write: Any) -> str:
    """Spell the names in JSON, string by string; what is none is spelled as a text."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return str(write(text))

    def string(match: Any) -> str:
        written = write(plain := json.loads(match[0]))
        has_escapes = "\\u" in match[0]
        return match[0] if written == plain else json.dumps(written, ensure_ascii=has_escapes)

    return str(_JSON_STRING.sub(string, text))


def _are_texts(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, str) for one in value)
