"""Texts and chats are read in processes of their own.

To find names may take long, and Python does one thing at a time: so no text holds those that are
answered, and where its time is up the process that reads it is ended.
"""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from jinja2 import TemplateError

from hf_alpha import generation
from hf_alpha.modeling.chat_names import ANSWERS
from hf_alpha.modeling.chats import WritesChats
from hf_alpha.serve.constraints import Form, TokenBytes, form_of
from hf_alpha.serve.http import log_fault
from hf_alpha.serve.messages import MessageReader
from hf_alpha.serve.requests import KNOWN_ROLES, Chat, Refusal, Request, shown

PRIVATE = range(0xE000, 0xF900)
"""Code points that mean nothing."""
TOKEN_BYTES = 32
"""Bytes of a text for each token that it may have: most have 3 to 6, and long names are one."""
SECONDS = 10.0
"""For a text, if its request has so many left."""
START = 120.0
"""Seconds in which a process has to be ready: a busy machine imports a long time."""


def most_bytes(max_input: int) -> int:
    """Return how many bytes a text of at most so many tokens may have."""
    return TOKEN_BYTES * max_input


@dataclass(frozen=True)
class Read:
    """A text as the model reads it, with its names.

    Attributes:
        prefix: of an answer in a chat: the text, as the model writes.
        form: what an answer has to be.
        needed: class -> symbols for its names, where the tokenizer has too few; then there is
            nothing else.
    """

    encoding: Any = None
    prefix: str = ""
    form: Form | None = None
    needed: Mapping[str, int] | None = None


class TextReader:
    """Reads texts and chats.

    Args:
        max_input: tokens of a text.
        template: how the model writes messages, see `MessageReader`.
        adds_names: the model can write names that a text lacks.
    """

    def __init__(
        self, tokenizer: Any, max_input: int, template: Any = None, adds_names: bool = False
    ):
        self.tokenizer, self._max_input = tokenizer, max_input
        self._template, self._adds_names = template, adds_names
        self._spelling: TokenBytes | None = None

    def read(self, request: Request, may_grow: bool) -> Read:
        """Return a text or a chat as the model reads it.

        Args:
            may_grow: symbols can be added for its names.

        Raises:
            ValueError: it is too long, or cannot be read.
        """
        text, options = self._text(request)
        try:
            encoding = self.tokenizer(text, **options)
        except ValueError:
            needed = generation.needed_symbols(self.tokenizer, text) if may_grow else None
            if needed is None:
                raise
            return Read(needed=needed)
        ids = encoding["input_ids"]
        self._check_size(len(ids), "tokens")
        if not ids:
            raise ValueError("the text is empty: the model reads nothing that it could go on from")
        if not isinstance(request, Chat):
            return Read(encoding)
        prefix = self.tokenizer.decode(ids, False, names=encoding.names)
        if not request.has_form:
            return Read(encoding, prefix)
        told, spelling = MessageReader(self._template, prefix, []), self._spelling
        if spelling is None or len(spelling.tokens) != len(self.tokenizer):
            self._spelling = spelling = TokenBytes(self.tokenizer)
        if request.callable and not told.can_be_told:
            raise ValueError(
                "tool_choice, response_format with tools: this is for models that write a call as "
                "JSON within <tool_call> and </tool_call>"
            )
        form = form_of(request, spelling, encoding.names, told.thought, self._adds_names)
        encoding.names = form.names
        return Read(encoding, prefix, form)

    def _text(self, request: Any) -> tuple[str, dict[str, Any]]:
        """Return a text or a chat with its names, and how it is to be encoded."""
        if not isinstance(request, Chat):
            text = request.prompt
            self._check_words(text)
            if request.names is not None:
                (text,) = self.tokenizer.mark([text], request.names)
            return text, {}
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise ValueError("this model has no chat template: send a text to /v1/completions")
        messages, tools = request.messages, request.tools or None
        self._check_roles(messages)
        goes_on = messages[-1]["role"] == ANSWERS
        how = {
            "tokenize": False,
            "add_generation_prompt": not goes_on,
            "continue_final_message": goes_on,
        }
        of_host = super(WritesChats, self.tokenizer).apply_chat_template  # type: ignore[misc]
        write = partial(of_host, tools=tools, **how)
        text = write(messages)
        self._check_words(text)
        check_said(messages, text, write)
        text = self.tokenizer.apply_chat_template(messages, tools, names=request.names, **how)
        return text, {"add_special_tokens": False}

    def _check_roles(self, messages: list[dict[str, Any]]) -> None:
        """Refuse what no template writes."""
        known = dict.fromkeys((*KNOWN_ROLES, *self.tokenizer.chat_roles))
        for place, message in enumerate(messages):
            if message["role"] not in known:
                told = f"messages[{place}] has the role {shown(message['role'])}"
                raise ValueError(f"{told}: known are {', '.join(known)}")
        if messages[-1].get("tool_calls"):
            raise ValueError("the last message calls tools: send what they said too (role tool)")

    def _check_words(self, text: str) -> None:
        """Refuse what is too long before names are looked for, and symbols added for them."""
        if (size := len(text.encode())) > (most := most_bytes(self._max_input)):
            told = f"the text has {size:,} bytes, and this server takes {most:,}"
            raise ValueError(f"{told}: shorten it, or serve with more --max-input")
        self._check_size(len(text.split()), "words")

    def _check_size(self, number: int, what: str) -> None:
        if number > (most := self._max_input):
            told = f"the text has {number:,} {what}, and this server takes {most:,} tokens"
            raise ValueError(f"{told}: shorten it, or serve with more --max-input")


def check_said(
    messages: list[dict[str, Any]], text: str, write: Callable[[list[dict[str, Any]]], str]
) -> None:
    """Refuse a chat of which a template leaves out something.

    Contents are written again between two characters that mean nothing: one of them is there, if
    the template writes the content, or a part of it.

    Args:
        text: of the chat.
        write: from messages to a text.

    Raises:
        ValueError: a message is not in the text.
    """
    marks = [chr(PRIVATE.start + place % len(PRIVATE)) for place in range(len(messages))]
    said = [(message.get("content") or "").strip() for message in messages]
    marked = [
        {**message, "content": f"{mark}{message['content']}{mark}"} if content else message
        for message, content, mark in zip(messages, said, marks, strict=True)
    ]
    try:
        written = write(marked)
    except Exception:  # it reads contents, of JSON, say
        written = ""
    for place, (content, mark) in enumerate(zip(said, marks, strict=True)):
        if content and mark not in written and content not in text:
            told = f"messages[{place}], of role {messages[place]['role']}"
            raise ValueError(f"the chat template of this model leaves out {told}: send no such one")


def _work(pipe: Connection, tokenizer: Any, *arguments: Any) -> None:
    """Read what comes through a pipe, as long as somebody is at its other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server to handle
    reader = TextReader(tokenizer, *arguments)
    pipe.send(None)
    with suppress(EOFError, BrokenPipeError):
        while True:
            seconds, added, *asked = pipe.recv()
            signal.setitimer(signal.ITIMER_REAL, seconds)  # ends the process, also without a server
            for counts in added:
                tokenizer.extend_symbols(counts)
            reply = _reply(reader, *asked)
            signal.setitimer(signal.ITIMER_REAL, 0)
            pipe.send(reply)


def _reply(reader: TextReader, request: Request, may_grow: bool) -> Read | tuple[int, str]:
    """Return what was read, or the status and message of a refusal."""
    try:
        return reader.read(request, may_grow)
    except (ValueError, TypeError, TemplateError, RecursionError) as error:
        return 400, f"{error}".removeprefix("row 0: ")
    except Exception as error:
        log_fault("a request was not read", error)
        return 500, f"this could not be read: {type(error).__name__}: {error}"


def prepare() -> None:
    """Start the process that others are forked from, which imports what they need meanwhile."""
    forkserver.set_forkserver_preload([__name__])
    forkserver.ensure_running()


class ReadingProcess:
    """A process that reads texts, one after the other; there is always one.

    Args:
        tokenizer: as it was before any symbols were added; nobody changes it.
        *arguments: of `TextReader`.
    """

    def __init__(self, tokenizer: Any, *arguments: Any):
        self._arguments = tokenizer, *arguments
        self._process: BaseProcess | None = None

    def start(self) -> None:
        """Start the process, and wait until it is ready."""
        prepare()
        context = get_context("forkserver")
        self._pipe, theirs = context.Pipe()
        self._added = 0
        self._process = context.Process(
            target=_work, args=(theirs, *self._arguments), daemon=True, name="reading"
        )
        self._process.start()
        theirs.close()
        if not self._pipe.poll(START):
            raise RuntimeError(f"a process that reads texts was not ready within {START:g} s")
        self._pipe.recv()

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()

    def read(
        self,
        request: Request,
        added: Sequence[Mapping[str, int]],
        may_grow: bool,
        is_over: Callable[[], bool],
    ) -> Read | None:
        """Read a text or a chat.

        Args:
            added: symbols that were added so far, in their order, as `extend_symbols` takes them.
            may_grow: more can be.
            is_over: says whether nobody waits for it any more.

        Returns:
            What was read; None where nobody waits for it.

        Raises:
            Refusal: it cannot be read, or that takes too long.
        """
        new, end = [*added[self._added :]], time.monotonic() + SECONDS
        try:
            self._pipe.send((SECONDS + 1, new, request, may_grow))
            self._added += len(new)
            while not self._pipe.poll(0.1):
                if is_over() or time.monotonic() > end:
                    raise TimeoutError
            reply = self._pipe.recv()
        except RecursionError:  # nothing was sent
            raise Refusal(400, "an argument of a call is nested too deeply") from None
        except (OSError, EOFError) as error:
            self.stop()
            self.start()
            if is_over():
                return None
            if isinstance(error, TimeoutError):
                told = f"to read this text took more than {SECONDS:g} seconds: send a shorter one"
                raise Refusal(400, told) from None
            raise Refusal(500, "the process that read this text ended") from None
        if isinstance(reply, tuple):
            raise Refusal(*reply)
        return reply
