"""Connections that idle: they are cut, and cost nobody else anything."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest
import uvicorn

from hf_alpha.serve import connections
from hf_alpha.serve.connections import Connection, tell_once

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
LARGE = 96 * 1024 * 1024  # more than a machine keeps on the way


async def app(scope, receive, send):
    """Answers a GET, of /large with much and of /wait after a while, and a POST with its body."""
    assert scope["type"] == "http"
    body, more = b"", scope["method"] == "POST" and scope["path"] != "/refused"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    if scope["path"] == "/wait":
        await asyncio.sleep(3)
    body = b"x" * LARGE if scope["path"] == "/large" else body or b"fine"
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for start in range(0, len(body), 1 << 16):
        more = start + (1 << 16) < len(body)
        part = body[start : start + (1 << 16)]
        await send({"type": "http.response.body", "body": part, "more_body": more})


@pytest.fixture
def server(monkeypatch):
    """A server for eight connections, with little patience."""
    monkeypatch.setattr(connections, "PATIENCE", 1.0)
    monkeypatch.setattr(connections, "LINGER", 0.5)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=Connection, ws="none", lifespan="off", backlog=8,
                            log_level="warning", timeout_graceful_shutdown=1)  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    server.address = listening.getsockname()
    yield server
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


@contextmanager
def client(server, sent=b""):
    with socket.create_connection(server.address, timeout=20) as one:
        one.sendall(sent)
        yield one


def reply(one):
    """All that comes until the connection ends."""
    got = b""
    with suppress(ConnectionResetError):
        while part := one.recv(1 << 16):
            got += part
    return got


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nX", b"408"),
        (POST + b"four", b"408"),
        (GET, b"200"),  # and no other request
        (GET + b"GET / HTTP", b"200"),
        (POST + b"123456789" + POST, b"200"),
        (POST.replace(b"/ ", b"/refused "), b"200"),
        (POST.replace(b"9", b"99999999999999999999999999"), b"400"),
        (POST.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"), b"408"),
        (b"x" * 200_000, b"400"),
    ],
)
def test_who_does_not_go_on_is_cut(server, sent, status):
    """In the header, in the body, and behind an answer."""
    started = time.monotonic()
    with client(server, sent) as one:
        assert reply(one)[9:12] == status
    assert time.monotonic() - started < 15
    with client(server, LAST) as one:
        assert reply(one).endswith(b"fine")


def test_who_sends_byte_by_byte_has_no_more_time(server):
    """Nor who refuses to end what was answered."""
    for begun in (b"GET / HTTP/1.1\r\nX: ", POST.replace(b"9", b"999").replace(b"/", b"/refused")):
        with client(server, begun) as one, pytest.raises(OSError):
            for _ in range(300):
                one.sendall(b"x")
                time.sleep(0.05)


@pytest.mark.slow
def test_who_does_not_read_is_cut(server):
    with client(server, GET.replace(b"/ ", b"/large ")) as one:
        deadline = time.monotonic() + 15
        while server.server_state.total_requests == 0 and server.server_state.connections:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert len(reply(one)) < LARGE
    with client(server, GET.replace(b"/ ", b"/large ")) as one:  # slowly is fine
        got = 0
        while got < LARGE:
            got += len(one.recv(1 << 20))
            time.sleep(0.01)


@pytest.mark.slow
def test_one_too_many_takes_the_place_of_the_longest_idle(server, monkeypatch):
    """Where all are answered, it is refused."""
    monkeypatch.setattr(connections, "PATIENCE", 30.0)
    idle = [socket.create_connection(server.address, timeout=20) for _ in range(40)]
    for _ in range(20):
        with client(server, LAST) as one:
            assert reply(one).endswith(b"fine")
    assert len(server.server_state.connections) <= 8
    assert [one.recv(1) for one in idle[:30]] == [b""] * 30
    waiting = [socket.create_connection(server.address, timeout=20) for _ in range(8)]
    for one in waiting:
        one.sendall(LAST.replace(b"/ ", b"/wait "))
    while sum(one.since is None for one in [*server.server_state.connections]) < 8:
        time.sleep(0.01)
    with client(server) as one:
        assert reply(one).startswith(b"HTTP/1.1 503 ")
    assert all(reply(one).endswith(b"fine") for one in waiting)
    for one in (*idle, *waiting):
        one.close()


def test_a_lack_of_files_is_told_once(caplog):
    """The loop tries again each second, and for each connection that waits."""
    loop = asyncio.new_event_loop()
    tell_once(loop)
    for _ in range(3):
        loop.call_exception_handler({"message": "socket.accept() out of system resource"})
        loop.call_exception_handler({"message": "another"})
    loop.close()
    messages = [record.message.split()[0] for record in caplog.records]
    assert messages == ["socket.accept()", *["another"] * 3]
