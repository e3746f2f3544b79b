"""A server on this machine that speaks OpenAI's protocol for chats, and fails when told to."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hf_alpha.tasks import Task
from hf_alpha.tasks.propositional.prompt import SHOWN, WORDS

SIGNS = {word: sign for sign, word in WORDS.items()}
Trouble = dict[str, Any]


class ChatServer(ThreadingHTTPServer):
    """Answers chats by a rule.

    Attributes:
        troubles: what becomes of the next requests, one each: `status`, `headers` and `body` of an
            error (a header that is None is left out), or `delay` in seconds before an ordinary
            answer, its `finish` or its `usage`.
        requests: bodies of all requests; `headers` likewise.
    """

    daemon_threads = True

    def __init__(self, rule: Callable[[str], str], troubles: list[Trouble]):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rule, self.troubles = rule, troubles
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that do not wait for an answer are expected."""


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(body)
            self.server.headers.append(dict(self.headers))
            trouble = self.server.troubles.pop(0) if self.server.troubles else {}
        time.sleep(trouble.get("delay", 0))
        if self.path != "/v1/chat/completions":
            trouble = {"status": 404}
        if "status" in trouble:
            self.send(trouble["status"], trouble.get("body", b""), trouble.get("headers", {}))
            return
        text = self.server.rule(body["messages"][-1]["content"])
        choice = {"message": {"content": text}, "finish_reason": trouble.get("finish", "stop")}
        usage = {"prompt_tokens": 300, "completion_tokens": len(text)}
        usage = trouble.get("usage", usage)
        self.send(200, json.dumps({"choices": [choice], "usage": usage}).encode(), {})

    def send(self, status: int, body: bytes, headers: dict[str, str | None]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(
    rule: Callable[[str], str], troubles: list[Trouble] | None = None
) -> Iterator[ChatServer]:
    """Run a server meanwhile."""
    server = ChatServer(rule, troubles or [])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def solver(task: Task) -> Callable[[str], str]:
    """A rule that gives the right answer to a prompt of a task, with a sentence before it."""

    def solve(prompt: str) -> str:
        formula = prompt.rpartition("Formula: ")[2].splitlines()[0]
        if task.name == "propositional":
            tokens = [SIGNS.get(token, token) for token in SHOWN.parse(formula, "infix")]
        else:
            tokens = task.parse(formula, "infix")
        answer = task.target_of(tokens)
        return "I see none." if answer is None else f"Here:\n\n{task.prompt.write_answer(answer)}"

    return solve


__all__ = ["ChatServer", "serving", "solver"]
