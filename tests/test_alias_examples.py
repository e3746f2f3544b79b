"""The examples of examples/alias run as they are, before a server that calls tools by their place.

They are slow, and each is skipped where its package is not installed.
"""

import importlib.util
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from serving import running

from hf_alpha import CanonicalNames
from hf_alpha.serve.gateway import Gateway

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "alias"
ALLOWED = re.compile("[a-zA-Z0-9_-]{1,64}")
"""Names of tools by OpenAI's API."""


def result_of(message):
    """What a tool said, also as smolagents tells it."""
    text = message["content"]
    text = text[0]["text"] if isinstance(text, list) else text
    if message["role"] == "tool":
        return text
    return text.partition("Observation:\n")[2] if text else None


class Caller(BaseHTTPRequestHandler):
    """Calls the first tool, and says what that said, by the last one if it is called at the end."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(data.decode())
        body = json.loads(data)
        functions = [tool["function"] for tool in body["tools"]]
        if wrong := [f["name"] for f in functions if not ALLOWED.fullmatch(f["name"])]:
            return self._send({"error": {"message": f"Invalid name {wrong[0]}"}}, 400)
        told = [*filter(None, map(result_of, body["messages"]))]
        if told and len(functions) == 1:
            return self._send(self._answer({"content": told[-1]}))
        function = functions[-1] if told else functions[0]
        (parameter, *_) = function["parameters"]["properties"]
        value = told[-1] if told else "notes.txt" if "file" in function["description"] else "Paris"
        call = {"name": function["name"], "arguments": json.dumps({parameter: value})}
        calls = [{"id": "c1", "type": "function", "function": call}]
        self._send(self._answer({"content": None, "tool_calls": calls}))

    def _answer(self, message):
        head = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {**head, "choices": [choice], "usage": usage}

    def _send(self, answer, status=200):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@contextmanager
def calling():
    """The address of such a server, with what it was sent (`seen`)."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), Caller)
    made.seen, made.daemon_threads = [], True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{made.server_port}/v1"
    yield made
    made.shutdown()
    made.server_close()


def run(name, url, **env):
    """What an example prints."""
    told = {"OPENAI_BASE_URL": url, "MODEL": "m", "OPENAI_API_KEY": "none", **env}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name", "printed", "hidden"),
    [
        (
            "mcp",
            "with_mcp.py",
            "files/read.text {'path': 'notes.txt'} milk, bread",
            ["files/", "whole_story", "path"],
        ),
        (
            "smolagents",
            "with_smolagents.py",
            "get_weather -> rain in Paris\ndelete_all_files -> rain in Paris",
            ["get_weather", "delete_all", "city"],
        ),
        (
            "langchain_openai",
            "with_langchain.py",
            "[('get_weather', {'city': 'Paris'})]",
            ["get_w"],
        ),
        ("pydantic_ai", "with_pydantic_ai.py", "rain in Paris", ["get_weather"]),
    ],
)
def test_an_example_runs(package, name, printed, hidden):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    with calling() as server:
        assert run(name, server.url) == printed
        sent = "".join(server.seen)
        assert server.seen and "tool_b" in sent and not [n for n in hidden if f'"{n}' in sent]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["", "1"], ids=["gateway", "transport"])
def test_litellm_asks_a_gateway_or_spells_itself(transport):
    pytest.importorskip("litellm", exc_type=ImportError)
    names = CanonicalNames({"tool": {"rule": "tools"}})
    with calling() as server, running(Gateway(server.url, names)) as url:
        told = run("with_litellm.py", server.url if transport else url, TRANSPORT=transport)
        assert told == """None ('weather.now', '{"city": "Paris"}')"""
        assert "weather.now" not in "".join(server.seen)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["before the gateway", "behind the gateway"])
def test_the_proxy_of_litellm(place, tmp_path):
    """Where LITELLM_PROXY is its command, of an environment with `pip install 'litellm[proxy]'`."""
    if (command := os.environ.get("LITELLM_PROXY")) is None:
        pytest.skip("LITELLM_PROXY is not set")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy, names = f"http://127.0.0.1:{port}/v1", CanonicalNames({"tool": {"rule": "tools"}})
    with calling() as server:
        is_before = place.startswith("before")
        with running(Gateway(server.url if is_before else proxy, names)) as gateway:
            config, told = tmp_path / "proxy.yaml", (EXAMPLES / "litellm_proxy.yaml").read_text()
            address = gateway if is_before else server.url
            config.write_text(told.replace("http://127.0.0.1:8000/v1", address))
            key = f"sk-{secrets.token_hex(32)}"
            env = {**os.environ, "LITELLM_MASTER_KEY": key}
            start = [command, "--config", config, "--port", str(port)]
            with subprocess.Popen(start, env=env) as process:
                try:
                    until_up(f"http://127.0.0.1:{port}/health/liveliness", process)
                    asked = proxy if is_before else gateway
                    told = run("with_litellm.py", asked, MODEL="canonical", OPENAI_API_KEY=key)
                finally:
                    process.terminate()
        assert told == """None ('weather.now', '{"city": "Paris"}')"""
        assert server.seen and "weather.now" not in "".join(server.seen)


def until_up(url, process):
    """Wait until an address answers."""
    while process.poll() is None:
        with suppress(httpx2.TransportError):
            if httpx2.get(url, timeout=60).is_success:
                return
        time.sleep(0.5)
    raise RuntimeError("it has ended")


def test_the_server_refuses_such_names_as_they_are():
    """As OpenAI's API does."""
    tool = {"name": "files/read.text", "description": "", "parameters": {}}
    body = {"messages": [], "tools": [{"type": "function", "function": tool}]}
    with calling() as server:
        assert httpx2.post(f"{server.url}/chat/completions", json=body).status_code == 400


def test_examples_are_short():
    for script in sorted(EXAMPLES.glob("*.py")):
        assert len(script.read_text(encoding="utf-8").splitlines()) < 40, script
