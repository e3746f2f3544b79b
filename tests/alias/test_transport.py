"""The transport, behind real clients and in front of a real address."""

import asyncio
import gzip
import json
import subprocess
import sys

import httpx
import httpx2
import pytest
from openai import APIStatusError, AsyncOpenAI, OpenAI
from openai_chats import echoing

from hf_alpha import CanonicalNames, CanonicalTransport
from hf_alpha.alias.chat import CanonicalRequest, CanonicalStream
from hf_alpha.alias.transport import _events

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


@pytest.fixture(scope="module")
def server():
    """The address."""
    with echoing() as made:
        yield made


def ask(client, text, **fields):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="m", messages=messages, tools=TOOLS, **fields)


@pytest.mark.parametrize("library", [httpx2, httpx])
def test_a_client_has_names_and_the_model_has_words(server, library):
    """At once and in a stream; the key goes through; what is no chat stays as it is."""
    with library.Client(transport=CanonicalTransport(RULES)) as http:
        client = OpenAI(api_key="secret", base_url=server.url, http_client=http)
        text = 'Ask sky.get-weather for "city" now, not tool_b'
        answer = ask(client, text)
        path, headers, data = server.seen[-1]
        assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
        body = json.loads(data)
        spelled = 'Ask tool_b for "tool_c" now, not tool_d'
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
        with pytest.raises(APIStatusError, match="no tool_b") as caught:
            ask(client.with_options(max_retries=0), text, extra_body={"status": 429})
        assert caught.value.response.headers["x-request-id"] == "7"
        whole = [{"a": 1}, "sky.get-weather"]
        assert http.post(f"{server.url}/embeddings", json=whole).json() == whole
        sent = {"messages": [{"content": "x"}], "plain": 1}
        assert http.post(f"{server.url}/chat/completions", json=sent).text[:6] == "tool_b"
        events = {**sent, "tools": TOOLS, "plain": "events"}
        told = http.post(f"{server.url}/chat/completions", json=events).text
        assert "sky.get-weather" in told and "tool_b" not in told
        seen = len(server.seen)
        for path in ("responses", "responses/compact", "messages/count_tokens", "api/chat",
                     "models/gemini-4:streamGenerateContent", "threads/runs", "batches",
                     "messages/batches", "realtime", "realtime/sessions"):  # fmt: skip
            with pytest.raises(ValueError, match="names of such requests are not spelled"):
                http.post(f"{server.url}/{path}", json={})
        whole = gzip.compress(json.dumps(sent).encode())
        for data in (whole, b"[{}]", b'{"a":' + b"[" * 99_999):
            with pytest.raises(ValueError, match="no object in JSON"):
                http.post(f"{server.url}/Chat/Completions", content=data)
        assert len(server.seen) == seen


def test_parts_of_names_that_stay_are_told_once(server, caplog):
    """And not which ones."""
    with httpx2.Client(transport=CanonicalTransport({"person": {"column": "people"}})) as http:
        for text in ("Ann Lee", "Ann Lee and Lee", "Ann Lee and Lee"):
            body = {"messages": [{"content": text}], "names": {"person": ["Ann Lee"]}}
            assert http.post(f"{server.url}/chat/completions", json=body).status_code == 200
    (told,) = caplog.records
    assert told.name == "hf_alpha.alias.transport" and "parts of names" in told.getMessage()
    assert "Lee" not in told.getMessage()


def test_a_stream_that_is_cut_off_ends_as_the_other_side_ended_it(server):
    """Nothing is made up behind it."""
    with httpx2.Client(transport=CanonicalTransport(RULES)) as http:
        client = OpenAI(api_key="k", base_url=server.url, http_client=http, max_retries=0)
        for text in ("words and tool_b", "tool_b"):
            chunks = [*ask(client, text, stream=True, extra_body={"unfinished": 1})]
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
        chunks = list(ask(client, "words and more", stream=True, extra_body={"cut": 1}))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) in ("", "word")
        with pytest.raises(Exception, match="Connection error"):
            ask(OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", http_client=http,
                       max_retries=0), "x")  # fmt: skip


def test_what_is_no_json_parts_no_word_of_a_stream():
    """A sign of life, say, may come in the middle of one."""
    names = CanonicalNames(RULES)
    parts = ({"choices": [{"delta": {"content": text}}]} for text in ("sky tool", "_b"))
    one, two = (f"data: {json.dumps(part)}\n\n".encode() for part in parts)
    stream = CanonicalStream(CanonicalRequest(names, {"tools": TOOLS}), names)
    told = b"".join(_events(iter([one, b"data: ping\n\n", two, b"data: [DONE]\n\n"]), stream))
    chunks = [json.loads(line[5:]) for line in told.split(b"\n") if b"{" in line]
    said = "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)
    assert said == "sky sky.get-weather" and told.endswith(b"}\n\ndata: [DONE]\n\n")


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
    assert spelled == {"Call tool_b, no other"}


def test_neither_torch_nor_transformers_is_loaded():
    """Nor the tokenizers library; the processor is hardly asked, beyond a client's own import."""
    code = (
        "import sys, time, httpx2\n"
        "began = time.process_time()\n"
        "import hf_alpha\n"
        "hf_alpha.CanonicalTransport({'tool': {'rule': 'tools'}, 'x': {'rule': 'python'}})\n"
        "print({'torch', 'transformers', 'tokenizers'} & {*sys.modules})\n"
        "print(time.process_time() - began)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    loaded, seconds = done.stdout.split()
    assert loaded == "set()", done.stderr
    assert float(seconds) < 0.3
