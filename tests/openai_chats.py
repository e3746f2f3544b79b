"""Chats in OpenAI's form, and an address that echoes them."""

import gzip
import json
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hf_alpha import CanonicalNames

RULES = {"tool": {"rule": "tools"}, "person": {"column": "people"}}
NAMES = CanonicalNames(RULES, words={"person": "Person"})
FIRST = ["get_weather", "sky.probe", "Ann Lee", "größe", "Lee"]
SECOND = ['say-"hi"', "tool_b", "PersonB", "Tool_c", "PersonB2"]
"""Two tools, two people, another spelling of the first one; a quote; words for names themselves."""


def written(parts, names):
    """A text of plain words and numbers of names."""
    return " ".join(part if isinstance(part, str) else names[part] for part in parts)


def request(template, names, last=None):
    """A request: two tools, one of which has a parameter, people, and what was said."""
    call = {"name": names[0], "arguments": json.dumps({names[1]: f"x {names[2]}\n{names[0]}"})}
    tools = [
        {
            "type": "function",
            "function": {
                "name": names[0],
                "description": f"Ask {names[0]} for {names[1]}.",
                "parameters": {
                    "type": "object",
                    "properties": {names[1]: {"type": "string"}},
                    "required": [names[1]],
                },
            },
        }
    ]
    messages = []
    for role, parts in template[:last]:
        message = {"role": role, "content": written(parts, names)}
        if role == "assistant":
            message["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
        messages.append(message)
    choice = {"type": "function", "function": {"name": names[0]}}
    return {
        "model": "m",
        "messages": messages,
        "tools": tools,
        "tool_choice": choice,
        "names": {"person": [[names[2], names[4]], names[3]]},
        "x_unknown": {"city": names[0]},
    }


SLOWLY = 3.0
"""Seconds in which names are found in some texts."""


def slow_to_find(text):
    """A rule for names with an underscore, which takes its time over much that is said."""
    if text.count("more") > 100:
        time.sleep(SLOWLY)
    return [match.span() for match in re.finditer(r"a_\w+", text)]


class Echo(BaseHTTPRequestHandler):
    """Says the last message again and calls the first tool with it, as OpenAI's API does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, self.headers, data))
        self.server.clients.add(self.client_address)
        if not self.path.endswith("/completions"):
            return self._send(data, "application/json")
        body = json.loads(data)
        said = body["messages"][-1]["content"]
        if "status" in body:
            told = b'{"error": {"message": "no tool_b"}}'
            return self._send(told, "application/json", body["status"])
        if "plain" in body:
            events = b'data: {"choices": [{"index": 0, "delta": {"content": "tool_b"}}]}\n\n'
            said = events if body["plain"] == "events" else b"tool_b is no JSON"
            return self._send(said, "text/plain")
        name = body["tools"][0]["function"]["name"] if body.get("tools") else ""
        call = {"name": name, "arguments": json.dumps({"tool_c": said})}
        calls = [{"index": 0, "id": "1", "type": "function", "function": call}] if name else None
        if not body.get("stream"):
            message = {"role": "assistant", "content": said, "tool_calls": calls}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "x": 1}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self._send(json.dumps({**answer, "choices": [choice]}).encode())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b": a remark\r\n\r\n")
        for start in range(0, len(said), 4):
            self._chunk({"content": said[start : start + 4]})
            if "cut" in body:
                return None
        if calls:
            self._chunk({"tool_calls": calls})
        if "unfinished" not in body:
            self._chunk({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    do_GET = do_POST

    def _chunk(self, delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        self.wfile.write(f"data: {json.dumps({**head, 'choices': [choice]})}\n\n".encode())

    def _send(self, data, kind="application/json", status=200):
        if status == 200 and kind == "application/json":
            data = gzip.compress(data)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-request-id", "7")
        if status == 200 and kind == "application/json":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@contextmanager
def echoing():
    """The address, with what it was sent (`seen`), through which connections (`clients`)."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    made.seen, made.clients, made.daemon_threads = [], set(), True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{made.server_port}/v1"
    yield made
    made.shutdown()
    made.server_close()
