"""What all addresses have in common: who may ask and what, errors, a log, and how they end."""

import asyncio
import hmac
import logging
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Call
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hf_alpha.serve.connections import LINGER, Connection, most_connections
from hf_alpha.serve.requests import Refusal

JSON = "application/json"
LOGGER = "hf_alpha.serve"
PATHS = "ask for /v1/chat/completions, /v1/completions (POST), /v1/models or /health (GET)"
LOOPBACK = ["127.0.0.1", "localhost"]


def application(routes: Sequence[Route], hosts: list[str], lifespan: Any) -> Starlette:
    """Return an application, for requests under these host names."""
    # A page from elsewhere may not reach this by a name that it has pointed here.
    layers = [Middleware(RequestLog), Middleware(TrustedHostMiddleware, allowed_hosts=hosts)]
    handlers = {HTTPException: _refused, ClientDisconnect: _gone}
    return Starlette(False, routes, layers, handlers, lifespan=lifespan)


def check_key(call: Call, key: str | None) -> None:
    """Refuse who lacks the key, if there is one."""
    scheme, _, given = call.headers.get("authorization", "").partition(" ")
    sent = given.strip().encode("latin-1") * (scheme.lower() == "bearer")
    if key is not None and not hmac.compare_digest(sent, key.encode()):
        raise Refusal(401, "this server has a key: give it as api_key", "invalid_api_key")


def _check_headers(call: Call, most: int, more: str) -> None:
    """Refuse what is no JSON by its type, which no page of others sends unasked, or too large."""
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, f"send JSON, with the header Content-Type: {JSON}")
    if "transfer-encoding" in call.headers and "content-length" in call.headers:
        raise Refusal(400, "send Content-Length or Transfer-Encoding, not both")
    if int(call.headers.get("content-length", 0)) > most:
        raise _too_large(most, more)


def _too_large(most: int, more: str) -> Refusal:
    return Refusal(413, f"a request has at most {most:,} bytes: send a shorter one{more}")


async def read_body(call: Call, check: Callable[[], object], most: int, more: str = "") -> bytes:
    """Read a request, up to a size.

    Of one that is refused the rest is thrown away for a while: many clients send all of it before
    they look at an answer.

    Args:
        check: refuses who may not ask.
        most: bytes.
        more: how there could be more.

    Raises:
        Refusal: it is too large, no JSON by its header, or was refused by the check.
    """
    refusal = None
    try:
        check()
        _check_headers(call, most, more)
    except Refusal as error:
        refusal = error
    body, goes_on = bytearray(), True
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER if refusal else None) as limit:
            while goes_on:
                message = await call.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                goes_on = message["more_body"]
                body += b"" if refusal else message["body"]
                if len(body) > most and refusal is None:
                    refusal = _too_large(most, more)
                    limit.reschedule(asyncio.get_running_loop().time() + LINGER)
    if refusal is not None:
        raise refusal
    return bytes(body)


async def until_gone(call: Call) -> None:
    """Wait until a client has its answer or is gone."""
    while (await call.receive())["type"] != "http.disconnect":
        pass


def log_fault(what: str, error: BaseException) -> None:
    """Log where an error came from, without its message, which may tell what was asked."""
    places = "".join(traceback.format_tb(error.__traceback__))
    logging.getLogger(LOGGER).error("%s: %s\n%s", what, type(error).__name__, places)


def fault_of(error: Exception) -> Refusal:
    """Log a fault of this server, and return what a client is told of it."""
    log_fault("a request failed", error)
    return Refusal(500, f"this server failed: {type(error).__name__}")


def error_of(refusal: HTTPException) -> dict[str, Any]:
    """Return an error as OpenAI writes it."""
    kind = "invalid_request_error" if refusal.status_code < 500 else "server_error"
    code = getattr(refusal, "code", None)
    return {"error": {"message": refusal.detail, "type": kind, "code": code, "param": None}}


async def _refused(call: Call, refusal: Any) -> Response:
    if not isinstance(refusal, Refusal):  # by the paths and methods that there are
        refusal.detail = f"{refusal.detail}: {PATHS}"
    return JSONResponse(error_of(refusal), refusal.status_code, refusal.headers)


async def _gone(call: Call, error: Exception) -> Response:
    return Response(status_code=499)  # to nobody


class RequestLog:
    """Logs a line for each request (in ASGI), which says nothing that a client has written."""

    def __init__(self, app: Any):
        self._app, self._logger = app, logging.getLogger(LOGGER)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; a fault is answered too."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), None

        async def sending(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            refusal = fault_of(error)
            if status is None:
                reply = JSONResponse(error_of(refusal), refusal.status_code)
                await reply(scope, receive, sending)
        finally:
            self._log(scope, status, time.monotonic() - began)

    def _log(self, scope: Any, status: int | None, seconds: float) -> None:
        route, answers = scope.get("route"), scope["state"].get("answers")
        method = scope["method"] if scope["method"] in ("GET", "POST") else "-"
        said = f"{(scope['client'] or '-')[0]} {method} {route.path if route else '-'}"
        status = status or 499 if answers is None else answers.status or status
        told = f"{status} {seconds:.2f} s"
        if answers is not None:
            told += answers.told()
        self._logger.info("%s %s", said, told)


class Served(Protocol):
    """What is served under a name."""

    name: str

    def app(self, hosts: list[str]) -> Starlette:
        """Return the application, for requests under these host names."""

    def stop(self) -> None:
        """Tell all who wait that there will be no answer."""


class Server(uvicorn.Server):
    """Uvicorn, which tells what it serves that it is to stop before it waits for answers."""

    def __init__(self, api: Served, hosts: list[str]):
        settings: Any = {"log_level": "warning", "access_log": False, "server_header": False}
        settings |= {"http": Connection, "ws": "none", "backlog": most_connections()}
        super().__init__(uvicorn.Config(api.app(hosts), timeout_graceful_shutdown=5, **settings))
        self._api = api

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop."""
        self._api.stop()
        super().handle_exit(sig, frame)


def serve(api: Served, host: str, port: int, say: Callable[[str], object] = print) -> None:
    """Serve until a signal says to stop; all who wait are told.

    Raises:
        OSError: there is no such address, or its port is taken.
    """
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise OSError(f"{host}:{port}: {error}; name another --host or --port") from None
    # asyncio does so for sockets that it opens itself: else an answer's second part waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    say(f"http://{host}:{listening.getsockname()[1]}/v1 serves {api.name!r} (stop with Ctrl-C)")
    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger(LOGGER).addHandler(lines)
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    # Of a client that left in the middle of an answer it warns for each part; 499 tells of it once.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again at its end
    with suppress(KeyboardInterrupt):
        Server(api, LOOPBACK if host in LOOPBACK else ["*"]).run(sockets=[listening])
