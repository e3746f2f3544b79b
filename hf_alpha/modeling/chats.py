"""Names in chats: in what was said, and in nothing that a template writes around it.

Names are looked for in the contents of messages and in the schemas and arguments of tools. On their
way through the template they stand between characters of the private use areas, which are then
taken out: so no template has to be known. One that sorts names sorts them by what stands before
them, in the order in which they are first said.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from transformers.utils import get_json_schema

from .chat_names import ANSWERS, ChatNames, write_message, write_schema
from .names_in_text import NameFinder
from .spans import MarkedText, Span, check_marked
from .text_pieces import cut_at_names
from .tokenization_symbols import check_row_counts, in_row

PRIVATE = (range(0x100000, 0x10FFFE), range(0xF0000, 0xFFFFE))
"""Code points that mean nothing, of which marks are made."""
_DIGITS, _WIDTH = 256, 4
_WORDS = re.compile(r"\w+|\W")

Chat = Sequence[Mapping[str, Any]]


class WritesChats:
    """Mixin in front of a tokenizer with names: it finds them in what was said in a chat.

    Attributes:
        chat_roles: of the messages in which names are looked for.
        finder: finds names, by the rule of each class.
    """

    chat_roles: Sequence[str]
    finder: NameFinder
    split_special_tokens: bool
    _added: Any

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Sequence[Any] | None = None,
        documents: Any = None,
        chat_template: str | None = None,
        *,
        names: Any = None,
        tokenize: bool = True,
        sanitize_control_tokens: bool = False,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Write a chat, or chats, as a text or its ids; the text is that of the tokenizer beneath.

        Names are looked for in what was said: in the contents of messages of `chat_roles`, in calls
        of tools and in the schemas of tools. What the template writes besides has no names. A name
        is one symbol in all messages, and names of what was said before are names in an answer.

        Args:
            conversation: messages, or a list of chats.
            tools: schemas of tools, or functions of Python.
            names: of the chat, or of each, as for a call.
            tokenize: return ids, else a `MarkedText`.
            sanitize_control_tokens: is not supported.

        Raises:
            ValueError: an argument is wrong, a name that is given stands in no message, or the
                template changes names, or leaves out tools or calls of tools.
        """
        if sanitize_control_tokens:
            raise ValueError(
                "sanitize_control_tokens is not supported beside names: refuse messages that have "
                "control tokens, or write them otherwise"
            )
        tools = schemas(tools)
        first = conversation[0] if isinstance(conversation, list | tuple) and conversation else None
        is_batch = isinstance(first, list | tuple) or hasattr(first, "messages")
        chats = conversation if is_batch else [conversation]
        all_names = names if is_batch and names is not None else [names] * len(chats)
        check_row_counts(chats, all_names, "conversation", "names")
        options |= {"documents": documents, "chat_template": chat_template}
        of_text = {k: v for k, v in options.items() if k != "return_assistant_tokens_mask"}

        def render(chat: Any, tools: Any) -> str:
            of_host = super(WritesChats, self).apply_chat_template  # type: ignore[misc]
            return of_host(chat, tools, tokenize=False, **of_text)

        marked = []
        for number, (chat, of_chat) in enumerate(zip(chats, all_names, strict=True)):
            with in_row(number if is_batch else None):
                messages = getattr(chat, "messages", chat)
                marked.append(self._mark_chat(render, messages, tools, of_chat))
        if not tokenize:
            return marked if is_batch else marked[0]
        given = {"names": marked if is_batch else marked[0]}
        given |= tokenizer_kwargs or {}
        options["tokenizer_kwargs"] = given
        return super().apply_chat_template(conversation, tools, **options)  # type: ignore[misc]

    def parse_response(
        self,
        response: Any,
        schema: Any = None,
        *,
        prefix: Any = None,
        names: Any = None,
        **more: Any,
    ) -> Any:
        """Read an answer, or a batch of them, as messages; the arguments are Transformers'.

        Ids are written with special tokens, by which a template knows the parts of an answer.

        Args:
            names: of the chat that is answered, or of each, for ids.
        """
        prefix, response = self._as_text(prefix), self._as_text(response, names)
        return super().parse_response(response, schema, prefix=prefix, **more)  # type: ignore[misc]

    def get_response_parser(self, *args: Any, prefix: Any = None, **options: Any) -> Any:
        """As Transformers' own, with the special tokens of a prefix of ids."""
        prefix = self._as_text(prefix)
        return super().get_response_parser(*args, prefix=prefix, **options)  # type: ignore[misc]

    def _as_text(self, said: Any, names: Any = None) -> Any:
        """Write ids with special tokens; texts stay as they are."""
        if said is None or isinstance(said, str) or not len(said) or isinstance(said[0], str):
            return said
        return self.decode(said, skip_special_tokens=False, names=names)  # type: ignore[attr-defined]

    def tools_gap(self) -> str:
        """Say what is wrong if rules find names of tools, which chats do not have; else ""."""
        if all(rule.rule != "tools" for rule in self.finder.rules.values()):
            return ""
        chat, tool = [{"role": "user", "content": "hello"}], {"name": "a_tool", "parameters": {}}
        tools = [{"type": "function", "function": tool}]
        of_host = super().apply_chat_template  # type: ignore[misc]
        why = "it has no chat template"
        if getattr(self, "chat_template", None):
            why = "its chat template writes no tools"
            written = _writes(partial(of_host, tokenize=False), chat, tools)
            if written is None or "a_tool" in written:
                return ""
        return f"{why}, whose names are to be found: set tokenizer.chat_template (docs/chats.md)"

    def _mark_chat(self, render: Any, chat: Any, tools: Any, names: Any) -> MarkedText:
        """Return the text of a chat with its names, also those that are given for it."""
        if names is None:
            self.finder.require_names("")
        added, split = self._added, self.split_special_tokens
        found = ChatNames(self.finder, tools, names, lambda text: added.find(text, split))
        marked = mark_chat(render, chat, tools, self.chat_roles, found)
        check_marked(found.given, [marked])
        marked.variants = found.variants
        return marked


def schemas(tools: Sequence[Any] | None) -> list[Any] | None:
    """Return the schemas of tools, some of which may be functions of Python."""
    return tools and [get_json_schema(tool) if callable(tool) else tool for tool in tools]  # type: ignore[return-value]


def mark_chat(
    render: Callable[[Chat, Any], str],
    chat: Chat,
    tools: list[Any] | None,
    roles: Sequence[str],
    found: ChatNames,
) -> MarkedText:
    """Return the text of a chat, with the names of what was said.

    A name is one in all that follows it, as a name of a source is one in its answer: so the text of
    a chat's beginning has the names that it has in the whole chat.

    Args:
        render: from messages and tools to a text.
        found: finds the names of contents.

    Raises:
        ValueError: the template changes names, writes another text where there are some, or leaves
            out tools or calls of tools.
    """
    text = render(chat, tools)
    check_told(render, chat, tools, text)
    marks = _Marks(text)

    def write(content: str, answers: bool = False) -> str:
        around, spans_and_keys = marks.around, zip(*found.find(content, answers), strict=True)
        places = [
            (i, j, around(content[i:j], key, kind)) for (i, j, kind, _), key in spans_and_keys
        ]
        return cut_at_names("kept", content, [(*place, False, False) for place in places]).written

    tools = tools and [write_schema(tool, write) for tool in tools]
    chat = [
        write_message(message, partial(write, answers=message["role"] == ANSWERS))
        if message.get("role") in roles
        else message
        for message in chat
    ]
    if not marks.numbers:
        return MarkedText(text, [])
    plain, spans = marks.read(render(chat, tools))
    words, others = (sorted(_WORDS.findall(each)) for each in (plain, text))  # names may be sorted
    if spans is None or words != others:
        names = dict.fromkeys(name for name, *_ in marks.numbers)
        raise ValueError(
            "the chat template changes names that it is given, or what it writes depends on them "
            f"({', '.join(map(repr, sorted(names)[:3]))}): use a template that writes contents as "
            "they are, or leave these out of the names; or mark the names of the text yourself, "
            "tokenizer(MarkedText(text, spans), add_special_tokens=False)"
        )
    return MarkedText(plain, spans)


class _Marks:
    """Marks of names in a text on its way through a template, which has none of their characters.

    Before a name stands a number of it, in `_WIDTH` characters, and one more behind it. They are
    sorted as the names are first said.

    Attributes:
        numbers: (name, key, class) -> its number.
    """

    def __init__(self, text: str):
        used = set(text)
        free = (c for c in map(chr, chain.from_iterable(PRIVATE)) if c not in used)
        self._stop, *digits = [*islice(free, _DIGITS + 1)] or [""]
        if len(digits) < _DIGITS:
            raise ValueError("the chat has all characters of the private use areas: leave some out")
        self._digits = sorted(digits)
        self._values = {digit: value for value, digit in enumerate(self._digits)}
        self.numbers: dict[tuple[str, str, str], int] = {}

    def around(self, name: str, key: str, kind: str) -> str:
        """Return a name between its marks."""
        number = self.numbers.setdefault((name, key, kind), len(self.numbers))
        digits = (self._digits[value] for value in number.to_bytes(_WIDTH, "big"))
        return f"{''.join(digits)}{name}{self._stop}"

    def read(self, marked: str) -> tuple[str, list[Span] | None]:
        """Take the marks out of a text; its names are None if one is not as it was given."""
        names, digits = [*self.numbers], "".join(self._digits)
        pattern = f"([{digits}]{{{_WIDTH}}})([^{digits}{self._stop}]*){self._stop}"
        plain, spans, end, length = [], list[Span](), 0, 0
        for match in re.finditer(pattern, marked):
            number = int.from_bytes(bytes(self._values[digit] for digit in match[1]), "big")
            name, key, kind = names[number] if number < len(names) else ("", "", "")
            if name != match[2]:
                return marked, None
            plain += [marked[end : match.start()], name]
            start = length + match.start() - end
            end, length = match.end(), start + len(name)
            binding = key.removeprefix(f"\0{kind} ") if key.startswith("\0") else ""
            spans.append(Span(start, length, kind, binding))
        return "".join([*plain, marked[end:]]), spans


def check_told(render: Any, chat: Chat, tools: list[Any] | None, text: str) -> None:
    """Refuse a template that leaves out tools or calls: without them, the text is another chat's.

    (An error, no warning: a model would be trained on empty answers, or asked for calls of tools
    that it cannot see. Who wants that text leaves them out.)
    """
    calls = [call for message in chat for call in message.get("tool_calls") or ()]
    bare = [{k: v for k, v in message.items() if k != "tool_calls"} for message in chat]
    given = (("tools", tools, (chat, None)), ("tool_calls", calls, (bare, tools)))
    for what, listed, rest in given:
        names = [part.get("function", part).get("name") or "" for part in listed or ()]
        left_out = [name for name in names if name not in text]
        if left_out or (names and _writes(render, *rest) == text):
            raise ValueError(
                f"the chat template leaves out `{what}` ({(left_out or names)[0]!r}), so that the "
                "text lacks them: set tokenizer.chat_template to one that writes tools and their "
                "calls, as Qwen's and Hermes' do (docs/chats.md), or leave them out"
            )


def _writes(render: Any, chat: Chat, tools: list[Any] | None) -> str | None:
    """What a template writes; None where it stops."""
    try:
        return render(chat, tools)
    except Exception:  # whatever a template raises where it asks for what is not there
        return None
