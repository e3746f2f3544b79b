"""Connections with limits that uvicorn lacks: of their number, and of the time that they idle.

A connection idles where its client is to do something: send a request, all of it, or read what it
asked for. Idle ones cost nobody else anything: where there are too many, the longest idle is cut.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus
from operator import itemgetter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0
"""Seconds for the header and the body of a request together, and for what is to be read next."""
LINGER = 2.0
"""Seconds for the rest of a request that is refused before its end."""
MOST = 1024
"""Connections, if a process may have four times as many files."""
FULL = "all connections of this server are in use: ask again later\n"
SLOW = "the request did not come within its time: send it at once\n"


def most_connections() -> int:
    """Return how many connections there may be.

    Each is a file. A process of Unix may have more files than it begins with, so it takes them; a
    quarter is for connections, and one for those that are accepted while there are as many.
    """
    try:
        import resource
    except ImportError:
        return MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST if hard == resource.RLIM_INFINITY else min(4 * MOST, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS has one more limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MOST if soft == resource.RLIM_INFINITY else max(min(MOST, soft // 4), 1)


def tell_once(loop: asyncio.AbstractEventLoop) -> None:
    """Have a loop log once that it has no files for connections: it tries again and again."""
    told = False

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal told
        of_accepting = "socket.accept()" in context["message"]
        if not (of_accepting and told):
            loop.default_exception_handler(context)
        told = told or of_accepting

    loop.set_exception_handler(handle)


def _answer(status: HTTPStatus, told: str) -> bytes:
    """Return an answer of HTTP behind which the connection ends."""
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\n"
    return f"{head}Content-Length: {len(told)}\r\nConnection: close\r\n\r\n{told}".encode()


class Connection(H11Protocol):
    """A connection that is cut once it idles for too long, or is one too many.

    Attributes:
        since: by the loop's clock, when it began to idle; None where it does not.
    """

    since: float | None = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, in place of one that idles if there are too many."""
        if len(self.connections) >= self.config.backlog and not self._cut_another():
            transport.write(_answer(HTTPStatus.SERVICE_UNAVAILABLE, FULL))
            transport.close()
            return
        super().connection_made(transport)
        self._look()

    def _cut_another(self) -> bool:
        """Cut the connection that has been idle for longest, if one is."""
        idle = [(one.since, one) for one in self.connections
                if isinstance(one, Connection) and one.since is not None]  # fmt: skip
        if not idle:
            return False
        _, longest = min(idle, key=itemgetter(0))
        self.connections.discard(longest)
        longest.transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._idles(None)
        if self.flow is not None:  # it was taken
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take more of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request; not for long for the rest of one that has its answer."""
        super().on_response_complete()
        self._idles(None)
        is_refused = self.cycle.response_complete and self.conn.their_state is h11.SEND_BODY
        self._look(LINGER if is_refused else PATIENCE)

    def pause_writing(self) -> None:
        """Wait until the client has read something."""
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        """Write on."""
        super().resume_writing()
        self._idles(None)
        self._look()

    def _look(self, patience: float | None = None) -> None:
        """See whether the client has to do something: then it has so many seconds from now on."""
        asks = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        reads = self.flow.write_paused or self.transport.is_closing()
        self._idles((patience or PATIENCE) if asks or reads else None)

    def _idles(self, seconds: float | None) -> None:
        """Have it cut after so many seconds, unless that is so already; or never."""
        if seconds is None:
            if self._timer is not None:
                self._timer.cancel()
            self.since = self._timer = None
        elif self._timer is None:
            self.since = self.loop.time()
            self._timer = self.loop.call_later(seconds, self._cut)

    def _cut(self) -> None:
        """End the connection; who was slow to ask is told."""
        self._idles(None)
        if self.flow.write_paused or self.transport.is_closing():
            self.transport.abort()
            return
        began = self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]
        if began or self.conn.our_state is h11.SEND_RESPONSE:
            self.transport.write(_answer(HTTPStatus.REQUEST_TIMEOUT, SLOW))
        self.transport.close()
        self._look()
