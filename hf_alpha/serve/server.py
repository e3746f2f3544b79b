"""The address: requests over HTTP in OpenAI's form, and streams."""

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as Call
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hf_alpha.serve.connections import tell_once
from hf_alpha.serve.engine import STOPPING, Ask, Engine, Part
from hf_alpha.serve.http import application, check_key, error_of, fault_of, read_body, until_gone
from hf_alpha.serve.logprobs import as_listed
from hf_alpha.serve.messages import MessageReader, add
from hf_alpha.serve.reading import most_bytes
from hf_alpha.serve.requests import Chat, Completion, Refusal, Request, read_request, shown

MARKUP = 64 * 1024
"""Bytes of a request besides its text, which may be escaped to twice its size."""
MORE = ", or serve with more --max-input"


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

    def told(self) -> str:
        """Return what is logged of it."""
        usage = self.usage()
        return ", {prompt_tokens} tokens read, {completion_tokens} written".format(**usage)

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
            yield _event(error_of(refusal))
        except Exception as error:
            fault = fault_of(error)
            self.status = fault.status_code
            yield _event(error_of(fault))


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

        routes = [
            Route("/health", self.health),
            Route("/v1/models", self.models),
            Route("/v1/models/{name:path}", self.model),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/completions", self.complete, methods=["POST"]),
        ]
        return application(routes, hosts, lifespan)

    def stop(self) -> None:
        """Tell all who wait that there will be no answer."""
        self.engine.closing = True

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
        check_key(call, self._key)
        if name != self.name:
            told = f"there is no model {shown(name)}, but {self.name!r}"
            raise Refusal(404, told, "model_not_found")

    async def _answer(self, call: Call, kind: type[Request]) -> Response:
        body = await read_body(call, lambda: self._check(call, self.name), self._most, MORE)
        request = read_request(kind, body)
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


async def _watch(call: Call, ask: Ask) -> None:
    """Wait until a client has its answer or is gone; then nothing more is written for it."""
    await until_gone(call)
    ask.give(Refusal(499, "the client is gone"))
