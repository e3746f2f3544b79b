"""The transport, behind real clients and in front of a real address."""

import asyncio
import gzip
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import httpx2
import pytest
from openai import APIStatusError, AsyncOpenAI, OpenAI

from hf_alpha import CanonicalTransport

RULES = {"tool": {"rule": "tools"}}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "sky.get-weather",
            "description": "Weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


class Echo(BaseHTTPRequestHandler):
    """Says the last message again and calls the first tool with it, as OpenAI's API does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, self.headers, data))
        if not self.path.endswith("/completions"):
            return self._send(data, "application/json")
        body = json.loads(data)
        said = body["messages"][-1]["content"]
        if "status" in body:
            return self._send(b'{"error": {"message": "no function_b"}}', "application/json", 429)
        if "plain" in body:
            return self._send(b"function_b is no JSON", "text/plain")
        name = body["tools"][0]["function"]["name"] if body.get("tools") else ""
        call = {"name": name, "arguments": json.dumps({"function_c": said})}
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


@pytest.fixture(scope="module")
def server():
    """The address."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    made.seen, made.daemon_threads = [], True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{made.server_port}/v1"
    yield made
    made.shutdown()
    made.server_close()


def ask(client, text, **fields):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="m", messages=messages, tools=TOOLS, **fields)


@pytest.mark.parametrize("library", [httpx2, httpx])
def test_a_client_has_names_and_the_model_has_words(server, library):
    """At once and in a stream; the key goes through; what is no chat stays as it is."""
    with library.Client(transport=CanonicalTransport(RULES)) as http:
        client = OpenAI(api_key="secret", base_url=server.url, http_client=http)
        text = 'Ask sky.get-weather for "city" now, not function_b'
        answer = ask(client, text)
        path, headers, data = server.seen[-1]
        assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
        body = json.loads(data)
        spelled = 'Ask function_b for "function_c" now, not function_d'
        assert body["messages"][0]["content"] == spelled
        assert "weather" not in json.dumps(body["tools"]).replace("Weather of a city", "")
        message = answer.choices[0].message
        assert message.content == text and answer.model_extra == {"x": 1}
        call = message.tool_calls[0].function
        assert (call.name, json.loads(call.arguments)) == ("sky.get-weather", {"city": text})
        got, calls = "", []
        for chunk in ask(client, text, stream=True):
            delta = chunk.choices[0].delta
            got += delta.content or ""
            calls += [c.function for c in delta.tool_calls or ()]
        assert got == text and json.loads("".join(c.arguments for c in calls)) == {"city": text}
        assert "".join(c.name or "" for c in calls) == "sky.get-weather"
        with pytest.raises(APIStatusError, match="no function_b") as caught:
            ask(client.with_options(max_retries=0), text, extra_body={"status": 429})
        assert caught.value.response.headers["x-request-id"] == "7"
        whole = [{"a": 1}, "sky.get-weather"]
        assert http.post(f"{server.url}/embeddings", json=whole).json() == whole
        sent = {"messages": [{"content": "x"}], "plain": 1}
        assert http.post(f"{server.url}/chat/completions", json=sent).text[:10] == "function_b"
        with pytest.raises(ValueError, match="names of such requests are not spelled"):
            http.post(f"{server.url}/responses", json={})


def test_a_stream_that_is_cut_off_ends_as_the_other_side_ended_it(server):
    """Nothing is made up behind it."""
    with httpx2.Client(transport=CanonicalTransport(RULES)) as http:
        client = OpenAI(api_key="k", base_url=server.url, http_client=http, max_retries=0)
        chunks = list(ask(client, "words and more", stream=True, extra_body={"cut": 1}))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) in ("", "word")
        with pytest.raises(Exception, match="Connection error"):
            ask(OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", http_client=http,
                       max_retries=0), "x")  # fmt: skip


def test_a_hundred_at_once_get_their_own_names(server):
    """Streams and whole answers."""

    async def one(client, number):
        name = f"tool.{number}"
        tools = [{"type": "function", "function": {"name": name, "description": "A tool."}}]
        text = f"Call {name}, no other"
        messages = [{"role": "user", "content": text}]
        create = client.chat.completions.create
        if number % 2:
            answer = await create(model="m", messages=messages, tools=tools)
            return answer.choices[0].message.content == text
        got = ""
        async for chunk in await create(model="m", messages=messages, tools=tools, stream=True):
            got += chunk.choices[0].delta.content or ""
        return got == text

    async def all_of_them():
        async with httpx2.AsyncClient(transport=CanonicalTransport(RULES), timeout=60) as http:
            client = AsyncOpenAI(api_key="k", base_url=server.url, http_client=http)
            return await asyncio.gather(*[one(client, number) for number in range(100)])

    assert all(asyncio.run(all_of_them()))
    spelled = {json.loads(data)["messages"][0]["content"] for *_, data in server.seen[-100:]}
    assert spelled == {"Call function_b, no other"}


def test_neither_torch_nor_transformers_is_loaded():
    """Nor the tokenizers library."""
    code = (
        "import sys, httpx2, hf_alpha\n"
        "hf_alpha.CanonicalTransport({'tool': {'rule': 'tools'}, 'x': {'rule': 'python'}})\n"
        "print({'torch', 'transformers', 'tokenizers'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr
