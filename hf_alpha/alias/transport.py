"""Canonical spelling on the way of an HTTP client: whatever uses the client has it."""

import json
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]

from hf_alpha.alias.chat import CanonicalRequest, CanonicalStream, undescribed
from hf_alpha.modeling.canonical_names import CanonicalNames
from hf_alpha.modeling.names_in_text import NameFinder

SPELLED = ("/chat/completions", "/completions")
"""Ends of the paths of requests that are spelled."""
REFUSED = regex.compile(
    r"[/:](responses(/compact|/input_tokens)?|messages(/count_tokens)?|batches|assistants|threads"
    r"|runs|(conversations|realtime)(/.*)?|(stream)?generatecontent|counttokens|invoke.*|chat"
    r"|converse(-stream)?|generate(_stream)?|complete|completion|infill|apply-template|render)$"
)
"""Ends of paths of other APIs, whose requests have names that would go out as they are."""
OF_BODIES = (b"content-length", b"content-encoding", b"transfer-encoding", b"digest")
"""Headers that say something of a body that is not the one that is sent on."""

PARTS = (
    "parts of names reach the model, such as a surname beside a full name: give them as spellings "
    "of the name, or find people by people_rule (docs/alias.md)"
)
Rules = CanonicalNames | NameFinder | Mapping[str, Any]
Transport: Any = object
"""To type checkers the class that a client asks for, of whichever library; neither is loaded."""


@dataclass(frozen=True)
class Sent:
    """A request as it is sent.

    Attributes:
        content: the request in JSON.
        table: word -> what it stands for.
        undescribed: spelled names of tools and of parameters, for which there is no description.
        has_parts: whether parts of names stay in it, as surnames do beside full names.
        says_json: whether its answer has to be JSON.
    """

    content: bytes
    table: dict[str, str]
    undescribed: set[str]
    has_parts: bool
    says_json: bool


class CanonicalTransport(Transport):
    """A transport for the clients of httpx2 and httpx, in front of another one.

    Requests for chats and completions in OpenAI's form go out with their names spelled canonically,
    and their answers, streams too, come back with names. So the model reads the same, whatever they
    are called. Everything else goes through as it is: other paths, fields that are not known, and
    errors of the other side.

    A request may have a field `names`, class -> names, for rules that are columns; it stays here.

    Args:
        names: class -> rule, or `CanonicalNames`.
        transport: what sends requests; by default one of the client's library.
        **options: of `CanonicalNames`, such as `words`.

    Raises:
        ValueError: a rule is wrong.

    Examples:
        >>> import httpx2
        >>> transport = CanonicalTransport({"tool": {"rule": "tools"}})
        >>> client = httpx2.Client(transport=transport)  # OpenAI(http_client=client)
    """

    logger = logging.getLogger(__name__)

    def __init__(self, names: Rules, transport: Any = None, **options: Any):
        self.names = (
            names if isinstance(names, CanonicalNames) else CanonicalNames(names, **options)
        )
        self._transport, self._has_told = transport, False

    # -- of clients that wait

    def handle_request(self, request: Any) -> Any:
        """Send a request, and return its answer."""
        library, inner = self._parts(request, "HTTPTransport")
        if not _has_names(request):
            return inner.handle_request(request)
        self._tell(sent := spell(self.names, request.read()))
        spelled = CanonicalRequest.from_table(self.names, sent.table, sent.says_json)
        response = inner.handle_request(_sent(library, request, sent.content))
        if _is_stream(response):
            stream = CanonicalStream(spelled, self.names)
            source = _bytes_of(library, response).iter_bytes()
            body = _body(library.SyncByteStream, _events(source, stream), response.close)
            return _answered(library, response, stream=body)
        try:
            content = _bytes_of(library, response).read()
        finally:
            response.close()
        return _answered(library, response, content=self._back(response, content, spelled))

    def __enter__(self) -> "CanonicalTransport":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what sends requests."""
        if self._transport is not None:
            self._transport.close()

    # -- of clients that do other things meanwhile

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request, and return its answer."""
        library, inner = self._parts(request, "AsyncHTTPTransport")
        if not _has_names(request):
            return await inner.handle_async_request(request)
        self._tell(sent := await self._spell(await request.aread()))
        spelled = CanonicalRequest.from_table(self.names, sent.table, sent.says_json)
        response = await inner.handle_async_request(_sent(library, request, sent.content))
        if _is_stream(response):
            stream = CanonicalStream(spelled, self.names)
            source = _bytes_of(library, response).aiter_bytes()
            events = _async_events(source, stream)
            body = _async_body(library.AsyncByteStream, events, response.aclose)
            return _answered(library, response, stream=body)
        try:
            content = await _bytes_of(library, response).aread()
        finally:
            await response.aclose()
        return _answered(library, response, content=self._back(response, content, spelled))

    async def _spell(self, data: bytes) -> Sent:
        return spell(self.names, data)

    async def __aenter__(self) -> "CanonicalTransport":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what sends requests."""
        if self._transport is not None:
            await self._transport.aclose()

    # -- of both

    def _tell(self, sent: Sent) -> None:
        """Warn once that parts of names stay; of which ones, a log has to say nothing."""
        if sent.has_parts and not self._has_told:
            self._has_told = True
            self.logger.warning(PARTS)

    def _back(self, response: Any, content: bytes, spelled: CanonicalRequest) -> bytes:
        """Return a whole answer with names; what is no answer stays as it is."""
        if response.status_code >= 400:
            return content
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            if not content.lstrip().startswith(b"data:"):
                return content
            # events that do not say so in their header
            return b"".join(_events(iter([content]), CanonicalStream(spelled, self.names)))
        return json.dumps(spelled.back(answer), ensure_ascii=False).encode(
            "utf-8", "backslashreplace"
        )

    def _parts(self, request: Any, kind: str) -> tuple[Any, Any]:
        """Return the library of a request, and what sends it."""
        library = sys.modules[type(request).__module__.partition(".")[0]]
        if self._transport is None:
            # as many at once as ask: who uses a client has its limits
            limits = library.Limits(max_connections=None, max_keepalive_connections=20)
            self._transport = getattr(library, kind)(limits=limits)
        return library, self._transport


def spell(names: CanonicalNames, data: bytes) -> Sent:
    """Spell a request in JSON.

    Raises:
        ValueError: the request is wrong, or what the other side may read and this one does not.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise ValueError(
            "the request is no object in JSON as it is (but perhaps a compressed or deep one), so "
            "its names would reach the model"
        )
    spelled = CanonicalRequest(names, body)
    content = json.dumps(spelled.body, ensure_ascii=False).encode("utf-8", "backslashreplace")
    bare = undescribed(body) & {*spelled.table.values()}
    return Sent(content, spelled.table, bare, bool(spelled.parts_left), spelled.says_json)


def _has_names(request: Any) -> bool:
    """Whether a request has names to be spelled.

    Raises:
        ValueError: it is one of another API, whose names would reach the model.
    """
    path = request.url.path.rstrip("/").lower()
    if request.method != "POST":
        return False
    if not path.endswith(SPELLED) and REFUSED.search(path):
        raise ValueError(
            f"{path}: the names of such requests are not spelled, so they would reach the "
            "model: use chat completions or completions (/v1/chat/completions)"
        )
    return bool(path.endswith(SPELLED))


def _sent(library: Any, request: Any, content: bytes) -> Any:
    """Return a request with another body."""
    headers = _headers(request, (b"accept-encoding", b"content-type"))
    headers += [(b"Content-Type", b"application/json"), (b"Accept-Encoding", b"identity")]
    return library.Request(
        request.method,
        request.url,
        headers=headers,
        content=content,
        extensions=request.extensions,
    )


def _headers(message: Any, others: Sequence[bytes] = ()) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request or response that say nothing of its body."""
    return [(k, v) for k, v in message.headers.raw if k.lower() not in (*OF_BODIES, *others)]


def _is_stream(response: Any) -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.status_code < 400 and kind == "text/event-stream"


def _bytes_of(library: Any, response: Any) -> Any:
    """Return a response that has what the other side's encodings stand for."""
    return library.Response(response.status_code, headers=response.headers, stream=response.stream)


def _answered(library: Any, response: Any, **body: Any) -> Any:
    """Return a response with another body."""
    headers = _headers(response)
    return library.Response(
        response.status_code, headers=headers, extensions=response.extensions, **body
    )


class _Lines:
    """Cuts bytes into lines, each with its end."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[bytes]:
        *lines, self._held = (self._held + data).split(b"\n")
        return [line + b"\n" for line in lines]

    def rest(self) -> list[bytes]:
        return [self._held] if self._held else []


def _line_back(line: bytes, stream: CanonicalStream) -> bytes:
    """Return a line of a stream of events with names."""
    if not line.startswith(b"data:"):
        return line
    try:
        chunk = json.loads(line[5:])
    except (ValueError, RecursionError):
        return _rest(stream) + line if line[5:].strip() == b"[DONE]" else line
    end = line[len(line.rstrip(b"\r\n")) :]
    return _event(stream.feed(chunk), end)


def _event(chunk: Any, end: bytes) -> bytes:
    text = json.dumps(chunk, ensure_ascii=False)
    return b"data: " + text.encode("utf-8", "backslashreplace") + end


def _rest(stream: CanonicalStream) -> bytes:
    """Return what a stream holds when it ends, as an event of its own."""
    chunk = stream.close()
    return b"" if chunk is None else _event(chunk, b"\n\n")


def _events(source: Iterator[bytes], stream: CanonicalStream) -> Iterator[bytes]:
    lines = _Lines()
    for data in source:
        if written := b"".join([_line_back(line, stream) for line in lines.feed(data)]):
            yield written
    yield from (_line_back(line, stream) for line in lines.rest())
    yield _rest(stream)


async def _async_events(
    source: AsyncIterator[bytes], stream: CanonicalStream
) -> AsyncIterator[bytes]:
    lines = _Lines()
    async for data in source:
        if written := b"".join([_line_back(line, stream) for line in lines.feed(data)]):
            yield written
    for line in lines.rest():
        yield _line_back(line, stream)
    yield _rest(stream)


def _body(base: Any, events: Iterator[bytes], close: Callable[[], Any]) -> Any:
    """Return a body for a client's library, of which `base` is a class."""

    class Body(base):
        def __iter__(self) -> Iterator[bytes]:
            return events

        def close(self) -> None:
            close()

    return Body()


def _async_body(base: Any, events: AsyncIterator[bytes], close: Callable[[], Any]) -> Any:
    """Return a body as `_body` does, for clients that do other things meanwhile."""

    class AsyncBody(base):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return events

        async def aclose(self) -> None:
            await close()

    return AsyncBody()
