"""The server of the page, with limits: of a request's size, of those that wait, of who may ask."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from hf_alpha.demo.drawing import STYLE
from hf_alpha.demo.page import build_page, import_gradio
from hf_alpha.demo.service import Service

MAX_BODY = 64 * 1024
"""Bytes of a request."""
MAX_WAITING = 64
"""Requests that wait for an answer; further ones are refused."""
LOOPBACK = "127.0.0.1"

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class SmallRequests:
    """Refuses requests that are too large, before they are read, and uploads of files.

    An ASGI middleware.
    """

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"].rstrip("/").endswith("/upload"):
            await _refuse(send, 404, "this page takes no files")
            return
        body = await _body(scope, receive)
        if body is None:
            await _refuse(send, 413, f"a request has at most {MAX_BODY:,} bytes")
            return
        await self.app(scope, _again(body, receive), send)


async def _body(scope: Message, receive: Receive) -> bytes | None:
    """Return a request's body; None if it is too large, which its header may say already."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not length.isdigit() or int(length) > MAX_BODY:
        return None
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            return None
    return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what comes behind it."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def following() -> Message:
        return messages.pop() if messages else await receive()

    return following


async def _refuse(send: Send, status: int, reason: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})


def serve(
    service: Service,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    browser: bool = False,
    wait: bool = True,
    say: Callable[[str], None] = print,
) -> Any:
    """Serve the page.

    Args:
        service: that answers.
        host: address to listen on; by default of this machine alone.
        port: by default the first that is free from 7860 on.
        browser: open the page in the browser.
        wait: return when the server is stopped (Ctrl-C), not at once.
        say: gets the address.

    Returns:
        The page, `gradio.Blocks`; its `local_url` is the address, and `close` stops the server.

    Raises:
        ImportError: Gradio is not installed.
        OSError: the port is taken.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # or it asks for its latest version
    gradio = import_gradio()
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    # Nor may a page from elsewhere reach this one, by a name that it has pointed at this machine.
    hosts = ["127.0.0.1", "localhost"] if host == LOOPBACK else ["*"]
    layers = [Middleware(TrustedHostMiddleware, allowed_hosts=hosts), Middleware(SmallRequests)]
    page = build_page(service)
    page.queue(max_size=MAX_WAITING, default_concurrency_limit=1, api_open=False)  # none passes by
    try:
        page.launch(
            server_name=host, server_port=port, inbrowser=browser, prevent_thread_lock=True,
            quiet=True, show_error=True, ssr_mode=False, share=False, css=STYLE,
            theme=gradio.themes.Default(), footer_links=["api"], app_kwargs={"middleware": layers},
        )  # fmt: skip
    except OSError:
        where = "the ports from 7860 on are" if port is None else f"port {port} is"
        raise OSError(f"{where} taken: name another by --port") from None
    say(f"{page.local_url} (stop with Ctrl-C)")
    if wait:
        page.block_thread()
    return page


__all__ = ["MAX_BODY", "MAX_WAITING", "SmallRequests", "serve"]
