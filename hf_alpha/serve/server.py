"""The address: requests over HTTP in OpenAI's form, and streams."""

import asyncio
import hmac
import json
import logging
import signal
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Call
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hf_alpha.serve.connections import LINGER, Connection, most_connections, tell_once
from hf_alpha.serve.engine import STOPPING, Ask, Engine, Part
from hf_alpha.serve.logprobs import as_listed
from hf_alpha.serve.messages import MessageReader, add
from hf_alpha.serve.reading import log_fault, most_bytes
from hf_alpha.serve.requests import Chat, Completion, Refusal, Request, read_request, shown

MARKUP = 64 * 1024
"""Bytes of a request besides its text, which may be escaped to twice its size."""
JSON = "application/json"
LOGGER = "hf_alpha.serve"
PATHS = "ask for /v1/chat/completions, /v1/completions (POST), /v1/models or /health (GET)"
LOOPBACK = ["127.0.0.1", "localhost"]


@dataclass(frozen=True)
class Piece:
    """What is new in an answer: fields that grow, why it ends, if it does, and rated tokens."""

    index: int
    fields: dict[str, Any]
    finish: str | None = None
    rated: Sequence[Any] = ()


class Completions:
    """The answers to a request that has been read, as OpenAI writes them.

    Attributes:
        status: of a stream, which has said 200 before: how it ended.
    """

    status: int | None = None

    def __init__(self, ask: Ask, template: Any):
        self._ask, self._template, self._written = ask, template, 0
        self._is_chat = isinstance(ask.request, Chat)
        kind = "chat.completion" if self._is_chat else "text_completion"
        self._head: dict[str, Any] = {"id": f"{kind[:4]}-{uuid.uuid4().hex}", "object": kind}
        self._head |= {"created": int(time.time()), "model": ask.request.model}

    async def _pieces(self) -> AsyncIterator[Piece]:
        request: Any = self._ask.request
        readers, left = [], request.n
        for index in range(left if self._is_chat else 0):
            readers.append(MessageReader(self._template, self._ask.read.prefix, request.tools))
            yield Piece(index, {"role": "assistant", "content": ""})
        while left:
            part: Part = await self._ask.next()
            finish, rated, pieces = part.finish, part.logprobs or [], iter([{"text": part.text}])
            if self._is_chat:
                pieces = readers[part.index].feed(part.text, finish)
            for piece in pieces:
                yield Piece(part.index, piece, None, rated)
                rated = []
            if finish is not None:
                left, self._written = left - 1, self._written + part.tokens
                if finish == "stop" and self._is_chat and readers[part.index].calls:
                    finish = "tool_calls"
            if finish is not None or rated:
                yield Piece(part.index, {} if self._is_chat else {"text": ""}, finish, rated)

    def _choice(self, key: str, piece: Piece, start: int = 0) -> dict[str, Any]:
        """Return a piece, or all of an answer; `start` is its place in the answer."""
        content, logprobs = {key: piece.fields} if self._is_chat else piece.fields, None
        if piece.rated:
            logprobs = {"content": [*piece.rated], "refusal": None}
            logprobs = logprobs if self._is_chat else as_listed(piece.rated, start)
        return {
            "index": piece.index, **content, "logprobs": logprobs, "finish_reason": piece.finish
        }  # fmt: skip

    def usage(self) -> dict[str, int]:
        """Return how many tokens were read, and written so far."""
        read, written = self._ask.tokens, self._written
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    async def whole(self) -> dict[str, Any]:
        """Return all answers at once."""
        answers: dict[int, Piece] = {}
        async for new in self._pieces():
            before = answers.get(new.index, Piece(new.index, {}))
            add(before.fields, new.fields)
            rated = [*before.rated, *new.rated]
            answers[new.index] = Piece(new.index, before.fields, new.finish, rated)
        choices = [self._choice("message", answers[index]) for index in sorted(answers)]
        return {**self._head, "choices": choices, "usage": self.usage()}

    async def stream(self) -> AsyncIterator[str]:
        """Yield the events of a stream; an error is one, since the stream has begun."""
        head = {**self._head, "object": f"{self._head['object']}{'.chunk' * self._is_chat}"}
        self.status = 499  # the client is gone, if nothing else comes
        try:
            places = Counter[int]()
            async for new in self._pieces():
                choice = self._choice("delta", new, places[new.index])
                places[new.index] += sum(len(one["token"]) for one in new.rated)
                yield _event({**head, "choices": [choice]})
            if self._ask.request.stream_options.get("include_usage"):
                yield _event({**head, "choices": [], "usage": self.usage()})
            self.status = 200
            yield "data: [DONE]\n\n"
        except Refusal as refusal:
            self.status = refusal.status_code
            yield _event(_error(refusal))
        except Exception as error:
            fault = _fault(error)
            self.status = fault.status_code
            yield _event(_error(fault))


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


class Api:
    """What clients may call.

    Args:
        key: that clients have to know, if there is one.
    """

    def __init__(self, engine: Engine, name: str, key: str | None = None):
        self.engine, self.name, self._key = engine, name, key or None
        self._most = MARKUP + 2 * most_bytes(engine.limits.max_input)
        self._watchers = set[asyncio.Task[None]]()

    def app(self, hosts: list[str]) -> Starlette:
        """Return the application, for requests under these host names."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            tell_once(asyncio.get_running_loop())
            await asyncio.to_thread(self.engine.start)
            yield
            self.engine.closing = True
            await asyncio.to_thread(self.engine.join)

        # A page from elsewhere may not reach this by a name that it has pointed here.
        layers = [Middleware(RequestLog), Middleware(TrustedHostMiddleware, allowed_hosts=hosts)]
        routes = [
            Route("/health", self.health),
            Route("/v1/models", self.models),
            Route("/v1/models/{name:path}", self.model),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/completions", self.complete, methods=["POST"]),
        ]
        handlers = {HTTPException: _refused, ClientDisconnect: _gone}
        return Starlette(False, routes, layers, handlers, lifespan=lifespan)

    async def health(self, call: Call) -> Response:
        """Say whether answers are written; anybody may ask."""
        if self.engine.closing:
            raise Refusal(503, STOPPING)
        return JSONResponse({"status": "ok"})

    async def models(self, call: Call) -> Response:
        """Say which model there is."""
        self._check(call, self.name)
        return JSONResponse({"object": "list", "data": [self._card()]})

    async def model(self, call: Call) -> Response:
        """Say whether there is a model."""
        self._check(call, call.path_params["name"])
        return JSONResponse(self._card())

    def _card(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model", "created": 0, "owned_by": "hf_alpha"}

    async def chat(self, call: Call) -> Response:
        """Answer a chat."""
        return await self._answer(call, Chat)

    async def complete(self, call: Call) -> Response:
        """Answer a text, or go on with it."""
        return await self._answer(call, Completion)

    def _check(self, call: Call, name: str) -> None:
        """Refuse who lacks the key, and another model than this one."""
        scheme, _, given = call.headers.get("authorization", "").partition(" ")
        sent = given.strip().encode("latin-1") * (scheme.lower() == "bearer")
        if self._key is not None and not hmac.compare_digest(sent, self._key.encode()):
            raise Refusal(401, "this server has a key: give it as api_key", "invalid_api_key")
        if name != self.name:
            told = f"there is no model {shown(name)}, but {self.name!r}"
            raise Refusal(404, told, "model_not_found")

    async def _answer(self, call: Call, kind: type[Request]) -> Response:
        request = read_request(kind, await self._read(call))
        self._check(call, request.model)
        if isinstance(request, Chat) and request.tools and self.engine.template is None:
            told = "nobody knows how this model calls tools: set its tokenizer's response_template"
            raise Refusal(400, f"{told} (see Transformers' docs), or leave tools out")
        ask = Ask(request, self.engine.limits.timeout)
        self.engine.ask(ask)
        watcher = asyncio.create_task(_watch(call, ask))
        self._watchers.add(watcher)  # or it is forgotten before its end
        watcher.add_done_callback(self._watchers.discard)
        await ask.next()
        call.state.answers = answers = Completions(ask, self.engine.template)
        if request.stream:
            return StreamingResponse(answers.stream(), media_type="text/event-stream")
        return JSONResponse(await answers.whole())

    async def _read(self, call: Call) -> bytes:
        refusal = None
        try:
            self._check(call, self.name)
            _check_headers(call, self._most)
        except Refusal as error:
            refusal = error
        return await _body(call, self._most, refusal)


def _check_headers(call: Call, most: int) -> None:
    """Refuse what is no JSON by its type, which no page of others sends unasked, or too large."""
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refusal(415, f"send JSON, with the header Content-Type: {JSON}")
    if "transfer-encoding" in call.headers and "content-length" in call.headers:
        raise Refusal(400, "send Content-Length or Transfer-Encoding, not both")
    if int(call.headers.get("content-length", 0)) > most:
        raise _too_large(most)


def _too_large(most: int) -> Refusal:
    told = f"a request has at most {most:,} bytes: send a shorter one, or serve with more"
    return Refusal(413, f"{told} --max-input")


async def _body(call: Call, most: int, refusal: Refusal | None) -> bytes:
    """Read a request, up to a size.

    Of one that is refused the rest is thrown away for a while: many clients send all of it before
    they look at an answer.
    """
    body, more = bytearray(), True
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER if refusal else None) as limit:
            while more:
                message = await call.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                more = message["more_body"]
                body += b"" if refusal else message["body"]
                if len(body) > most and refusal is None:
                    refusal = _too_large(most)
                    limit.reschedule(asyncio.get_running_loop().time() + LINGER)
    if refusal is not None:
        raise refusal
    return bytes(body)


async def _watch(call: Call, ask: Ask) -> None:
    """Wait until a client has its answer or is gone; then nothing more is written for it."""
    while (await call.receive())["type"] != "http.disconnect":
        pass
    ask.give(Refusal(499, "the client is gone"))


def _fault(error: Exception) -> Refusal:
    """Log a fault of this server, and return what a client is told of it."""
    log_fault("a request failed", error)
    return Refusal(500, f"this server failed: {type(error).__name__}")


def _error(refusal: HTTPException) -> dict[str, Any]:
    """Return an error as OpenAI writes it."""
    kind = "invalid_request_error" if refusal.status_code < 500 else "server_error"
    code = getattr(refusal, "code", None)
    return {"error": {"message": refusal.detail, "type": kind, "code": code, "param": None}}


async def _refused(call: Call, refusal: Any) -> Response:
    if not isinstance(refusal, Refusal):  # by the paths and methods that there are
        refusal.detail = f"{refusal.detail}: {PATHS}"
    return JSONResponse(_error(refusal), refusal.status_code, refusal.headers)


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
            refusal = _fault(error)
            if status is None:
                reply = JSONResponse(_error(refusal), refusal.status_code)
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
            usage = answers.usage()
            told += ", {prompt_tokens} tokens read, {completion_tokens} written".format(**usage)
        self._logger.info("%s %s", said, told)


class Server(uvicorn.Server):
    """Uvicorn, which tells an engine that it is to stop before it waits for answers."""

    def __init__(self, api: Api, hosts: list[str]):
        settings: Any = {"log_level": "warning", "access_log": False, "server_header": False}
        settings |= {"http": Connection, "ws": "none", "backlog": most_connections()}
        super().__init__(uvicorn.Config(api.app(hosts), timeout_graceful_shutdown=5, **settings))
        self._engine = api.engine

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop."""
        self._engine.closing = True
        super().handle_exit(sig, frame)


def serve(api: Api, host: str, port: int, say: Callable[[str], object] = print) -> None:
    """Serve until a signal says to stop; all who wait are told.

    Raises:
        OSError: there is no such address, or its port is taken.
    """
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise OSError(f"{host}:{port}: {error}; name another --host or --port") from None
    say(f"http://{host}:{listening.getsockname()[1]}/v1 serves {api.name!r} (stop with Ctrl-C)")
    lines = logging.StreamHandler()
    lines.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logging.getLogger(LOGGER).addHandler(lines)
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again at its end
    with suppress(KeyboardInterrupt):
        Server(api, LOOPBACK if host in LOOPBACK else ["*"]).run(sockets=[listening])
