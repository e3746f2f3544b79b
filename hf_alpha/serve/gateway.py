"""An address in front of another one, which reads names spelled canonically."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.requests import Request as Call
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hf_alpha.modeling.canonical_names import CanonicalNames
from hf_alpha.serve.connections import tell_once
from hf_alpha.serve.http import (
    LOGGER,
    application,
    check_key,
    error_of,
    fault_of,
    read_body,
    until_gone,
)
from hf_alpha.serve.requests import Refusal
from hf_alpha.serve.spelling import SpellingTransport

MOST_BYTES = 32 * 2**20
"""Of a request, as hosted APIs take them: it may have pictures."""
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
KNOWN = ("chat/completions", "completions", "models")
"""Paths that the log names; others are what a client has written."""
OF_ONE_WAY = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding "
    b"upgrade host expect date server".split()
)
"""Headers that are between two neighbours."""
STREAM = "text/event-stream"
KEPT = 100
"""Connections to the other side that are kept."""
UNDESCRIBED = (
    "%d tools and parameters so far have no description: without their names, nothing says what "
    "they are for (docs/alias.md)"
)


class Gateway:
    """Passes on all under /v1; requests for chats and texts with names spelled canonically.

    Nothing is kept of a request, no cookies either.

    Args:
        upstream: the other address, http://host:8000/v1.
        names: finds and spells names.
        key: that clients have to know, if there is one; it stays here.
        upstream_key: for the other address, in place of the client's own.
        timeout: seconds in which the other side has to say something.

    Raises:
        ValueError: the address is none.
    """

    def __init__(
        self,
        upstream: str,
        names: CanonicalNames,
        key: str | None = None,
        upstream_key: str | None = None,
        timeout: float = 120,
    ):
        self.name = upstream.rstrip("/")
        try:
            self._address = httpx2.URL(self.name)
        except httpx2.InvalidURL as error:
            raise ValueError(f"--upstream {upstream}: {error}") from None
        if self._address.scheme not in ("http", "https") or not self._address.host:
            raise ValueError(f"--upstream {upstream}: write http://host:8000/v1")
        # Many servers end a connection after 5 s: a request that meets the end is lost, and a new
        # connection costs nothing without TLS.
        kept = 0 if self._address.scheme == "http" else KEPT
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=kept)
        self._transport = SpellingTransport(names, httpx2.AsyncHTTPTransport(limits=limits))
        self._told = 0
        self._key, self._upstream_key = key or None, upstream_key
        self._timeout = httpx2.Timeout(timeout).as_dict()

    def app(self, hosts: list[str]) -> Starlette:
        """Return the application, for requests under these host names."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            tell_once(asyncio.get_running_loop())
            async with self._transport:
                yield

        paths = [*KNOWN, "{path:path}"]
        routes = [Route(f"/v1/{path}", self.pass_on, methods=METHODS) for path in paths]
        return application([Route("/health", self.health), *routes], hosts, lifespan)

    def stop(self) -> None:
        """Do nothing: who waits is cut off when the time for that is up."""

    async def health(self, call: Call) -> Response:
        """Say that requests are passed on, and how many were spelled; anybody may ask."""
        return JSONResponse({"status": "ok", "spelled": self._transport.spelled})

    async def pass_on(self, call: Call) -> Response:
        """Pass on a request and its answer."""
        request = self._request(call, await self._body(call))
        try:
            response = await _unless_gone(call, self._transport.handle_async_request(request))
        except ValueError as error:
            raise Refusal(400, f"{error}") from None
        except httpx2.RequestError as error:
            raise _not_reached(self.name, error) from None
        finally:
            self._tell_undescribed()
        return Passed(self.name, response)

    def _tell_undescribed(self) -> None:
        """Log how many tools and parameters have no description, where there are more now."""
        if (number := len(self._transport.undescribed)) > self._told:
            self._told = number
            logging.getLogger(LOGGER).warning(UNDESCRIBED, number)

    async def _body(self, call: Call) -> bytes:
        if call.method in ("GET", "HEAD", "DELETE"):
            check_key(call, self._key)
            return b""
        return await read_body(call, lambda: check_key(call, self._key), MOST_BYTES)

    def _request(self, call: Call, body: bytes) -> httpx2.Request:
        path = call.scope["raw_path"].decode("latin-1").removeprefix("/v1")
        if {".", ".."} & {*httpx2.URL(path).path.split("/")}:
            raise Refusal(404, "Not Found: a path has no dots alone")
        query = call.scope["query_string"].decode("latin-1")
        url = f"{self.name}{path}{'?' * bool(query)}{query}"
        hidden = {*OF_ONE_WAY, b"content-length"}
        hidden |= {b"authorization"} if self._key or self._upstream_key else set()
        headers = [(key, value) for key, value in call.headers.raw if key.lower() not in hidden]
        if self._upstream_key:
            headers.append((b"authorization", f"Bearer {self._upstream_key}".encode()))
        made = httpx2.Request(call.method, url, headers=headers, content=body or None)
        made.extensions = {"timeout": self._timeout}
        return made


class Passed(StreamingResponse):
    """An answer as it comes from the other side, which is told when nobody waits for it."""

    def __init__(self, name: str, response: httpx2.Response):
        super().__init__(self._parts(response), response.status_code)
        headers = response.headers.raw
        self.raw_headers = [(k.lower(), v) for k, v in headers if k.lower() not in OF_ONE_WAY]
        self._name = name
        self._response: Any = response

    async def _parts(self, response: Any) -> AsyncIterator[bytes]:
        """Yield the answer; where a stream of events breaks off, the last one says so."""
        is_stream = response.headers.get("content-type", "").startswith(STREAM)
        try:
            async for part in response.stream:
                yield part
        except Exception as error:
            if not is_stream:
                raise
            is_known = isinstance(error, httpx2.RequestError)
            refusal = _not_reached(self._name, error) if is_known else fault_of(error)
            yield f"\n\ndata: {json.dumps(error_of(refusal))}\n\n".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._response.stream.aclose()


async def _unless_gone(call: Call, work: Coroutine[Any, Any, Any]) -> Any:
    """Do some work, as long as a client waits for it.

    Raises:
        Refusal: the client is gone.
    """
    working, watching = asyncio.ensure_future(work), asyncio.create_task(until_gone(call))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Refusal(499, "the client is gone")
        return working.result()
    finally:
        watching.cancel()
        working.cancel()


def _not_reached(name: str, error: Exception) -> Refusal:
    """Log which address did not answer, and return what a client is told, which is not where."""
    what = type(error).__name__
    logging.getLogger(LOGGER).warning("%s was not reached, or broke off: %s", name, what)
    if isinstance(error, httpx2.TimeoutException):
        return Refusal(504, f"the model's server did not answer in time ({what}): ask again later")
    return Refusal(502, f"the model's server was not reached, or broke off ({what})")
