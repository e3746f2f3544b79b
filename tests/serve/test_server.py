"""The server, asked by OpenAI's own client: answers in names, alone and many at once."""

import asyncio
import json
import os
import re
import resource
import signal
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection

import openai
import own_process
import pytest
import torch
from serving import (
    CHAT,
    SCRIPT,
    TEXTS,
    TOOLS,
    caller,
    canonical,
    chat,
    complete,
    converted,
    plain,
    renamed,
    scripted,
    served,
    text_of,
)
from small_tokenizers import byte_level
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from hf_alpha import CanonicalModel
from hf_alpha.generation import generate_answers
from hf_alpha.loading import load_checkpoint
from hf_alpha.resources import released_models
from hf_alpha.serve import caches, reading
from hf_alpha.serve.requests import Chat, read_request
from hf_alpha.serve.server import MARKUP

LONG = {"max_tokens": 3000}


@pytest.fixture(scope="module")
def client():
    """One that asks a converted Llama."""
    with served(*converted()) as client:
        yield client


MAKERS = {
    "relational": converted,
    "learned": lambda: converted(encoding="learned"),
    "canonical": canonical,
    "t5": lambda: converted("t5", encoding="streams"),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_answers_are_the_models_own_in_the_names_of_the_text(make):
    """At once and in parts, and renamed where the names are; with more names than it has symbols
    where the model needs no training for that.
    """
    model, tokenizer = make()
    (expected,), _ = generate_answers(
        model, tokenizer, TEXTS, num_beams=1, max_new_tokens=20, progress=False
    )
    with served(model, tokenizer) as client:
        one, two = (text_of(client, text) for text in TEXTS)
        assert one.strip() == expected.strip() and two == renamed(one) and len(one) > 5
        assert make is not converted or one.startswith(" ")  # it goes on behind a word
        if make is MAKERS["learned"]:
            with pytest.raises(openai.BadRequestError, match="more names than the 2 symbols"):
                complete(client, "xa1 xb1 xc1")
        else:
            many = [text_of(client, f"xa1 {name} zc1 xd1 xa1") for name in ("yb2", "ye2")]
            assert many[1] == many[0].replace("yb2", "ye2")


def test_a_plain_model_answers_as_without_a_server():
    model, tokenizer = plain()
    inputs = tokenizer.host(TEXTS[0], return_tensors="pt")
    length = inputs["input_ids"].shape[1]
    (ids,) = model.generate(**inputs, max_new_tokens=20, do_sample=False, pad_token_id=0)
    with served(model, tokenizer) as client:
        assert text_of(client, TEXTS[0]) == tokenizer.host.decode(ids[length:])


def test_a_released_model_answers_with_names_that_it_makes_up():
    """As solve does: an A-normal form."""
    model, tokenizer = load_checkpoint(released_models()["anf-relational"])
    with served(model, tokenizer) as client:
        one, two = (text_of(client, f"{a} | {b}", max_tokens=30).strip() for a, b in ("xy", "pq"))
    assert one == "let t1 = x | y ; t1" and two == "let t1 = p | q ; t1"


def test_a_hundred_requests_at_once_get_what_each_gets_alone(client):
    """Greedy and drawn ones, in parts and whole, one answer and two, short and long."""
    kinds = [
        {"prompt": TEXTS[0]},
        {"prompt": "bob and xa1", "temperature": 1.5, "seed": 3, "max_tokens": 11},
        {"prompt": "za1", "top_p": 0.9, "seed": 4, "n": 2, "stop": "a"},
        {"prompt": "not " * 30 + "zb1 xa1", "stream": True, "max_tokens": 20},
    ]

    def texts(choices):
        found = {}
        for choice in choices:
            found[choice.index] = found.get(choice.index, "") + choice.text
        return found

    alone = [
        texts(chunk.choices[0] for chunk in complete(client, **{"max_tokens": 9, **kind}))
        if "stream" in kind
        else texts(complete(client, **{"max_tokens": 9, **kind}).choices)
        for kind in kinds
    ]
    assert len(alone[2]) == 2 and alone[2][0] != alone[2][1]

    async def ask(many, kind):
        reply = await many.completions.create(model="small", **{"max_tokens": 9, **kind})
        if "stream" in kind:
            return texts([chunk.choices[0] async for chunk in reply])
        return texts(reply.choices)

    async def ask_all():
        url = {"base_url": client.base_url, "api_key": "none", "max_retries": 0}
        async with openai.AsyncOpenAI(**url) as many:
            return await asyncio.gather(*(ask(many, kinds[i % 4]) for i in range(100)))

    assert asyncio.run(ask_all()) == alone * 25


def test_nobody_waits_for_a_longer_answer(client, monkeypatch):
    """Who comes later joins, and all get what they get alone: drawn, rated and in parts, too."""
    joined, join = [], caches.join
    monkeypatch.setattr(caches, "join", lambda *both: joined.append(join(*both)))
    kinds = [{"prompt": TEXTS[0], "max_tokens": 300, "logprobs": 1}, {"prompt": "bob xa1"}]
    kinds += [{"prompt": "not " * 20 + "zb1 xa1", "temperature": 1.5, "seed": 3}]
    alone = [complete(client, **{"max_tokens": 5, **kind}).choices[0] for kind in kinds]
    before = client.engine._batch  # it stays until there is another one
    with ThreadPoolExecutor() as pool:
        long = pool.submit(partial(complete, client, **kinds[0]))
        while (batch := client.engine._batch) is before or not (batch and batch[0].ids):
            time.sleep(0.001)
        short = [complete(client, max_tokens=5, **kind).choices[0] for kind in kinds[1:]]
        assert not long.done()
        found = [long.result().choices[0], *short]
    assert [choice.text for choice in found] == [choice.text for choice in alone]
    rated, expected = found[0].logprobs, alone[0].logprobs
    assert rated.tokens == expected.tokens
    assert rated.token_logprobs == pytest.approx(expected.token_logprobs, abs=1e-4)
    assert joined
    while client.engine._cache is not None:  # nothing is kept for nobody
        time.sleep(0.001)


def test_long_texts_and_long_answers_share_no_batch_that_has_no_positions_for_both():
    with served(*converted(positions=32)) as client, ThreadPoolExecutor() as pool:
        asks = [("alice " * 20, {"max_tokens": 8}), ("za1", {"max_tokens": 30})] * 2
        replies = list(pool.map(lambda ask: complete(client, ask[0], **ask[1]), asks))
    assert [reply.usage.completion_tokens for reply in replies] == [8, 30] * 2


def test_a_seed_draws_the_same_answer_again_and_none_draws_others(client):
    drawn = {"temperature": 1.3, "top_p": 0.95}
    one, again, other = (text_of(client, TEXTS[0], seed=s, **drawn) for s in (1, 1, 2))
    assert one == again != other
    assert len({complete(client, TEXTS[0], **drawn).choices[0].text for _ in range(3)}) > 1
    greedy = text_of(client, TEXTS[0], temperature=0, seed=5)
    assert greedy == text_of(client, TEXTS[0], temperature=1e-30)
    assert greedy == text_of(client, TEXTS[0]) != one


@pytest.mark.parametrize("make", [converted, canonical])
def test_stop_strings_are_in_the_names_of_the_text_and_never_sent(make):
    with served(*make()) as client:
        whole = text_of(client, TEXTS[0])
        for start in (1, 4, 9):
            stop = whole[start : start + 5]
            assert text_of(client, TEXTS[0], stop=["~~", stop]) == whole[: whole.find(stop)]
        for start in range(2, 12):  # the first one counts, of two that come with one token too
            two = [whole[start + 1 : start + 4], whole[start : start + 3]]
            expected = whole[: min(map(whole.find, two))]
            assert text_of(client, TEXTS[0], stop=two) == expected
        assert complete(client, TEXTS[0], stop=stop).choices[0].finish_reason == "stop"
        assert complete(client, TEXTS[0]).choices[0].finish_reason == "length"


def test_a_plain_word_that_is_spelled_like_a_name_is_another_in_streams_too():
    """Also where it is the beginning of a word that goes on."""
    with served(*converted(rule={"column": "names"}, encoding="streams")) as client:

        def answer(name):
            return text_of(client, f"not {name}", extra_body={"names": [name]})

        plain = answer("q9")
        longer = re.search(r"\bbob\w+", plain)[0]  # of a token `bob` and others
        for name in ("bob", longer):
            apart = re.sub(rf"\b{name}\b", f"{name}1", plain)
            assert apart != plain and answer(name) == apart.replace("q9", name)


def test_tokens_are_counted(client):
    usage = complete(client, TEXTS[0], n=2).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5, 40, 45)
    usual = client.engine._usual
    for asked, written in ((None, usual), (usual + 7, usual + 7), (1, 1)):
        usage = complete(client, TEXTS[0], max_tokens=asked).usage
        assert usage.completion_tokens == written
    *_, last = complete(client, TEXTS[0], stream=True, stream_options={"include_usage": True})
    assert last.usage.total_tokens == 25 and last.choices == []


def test_a_chat_is_answered_in_its_names_found_or_given(client):
    one, two = (chat(client, text).message.content for text in TEXTS)
    assert two == renamed(one) and "a1" in one
    parts = [{"type": "text", "text": text} for text in ("alice sees xa1", "and ya1")]
    assert chat(client, parts) == chat(client, "alice sees xa1\nand ya1")
    # no rule finds these
    given = [chat(client, f"{name} sees bob", [name]).message.content for name in ("dora", "emil")]
    assert given[1] == given[0].replace("dora", "emil") and "dora" in given[0]
    assert given[0] == chat(client, "dora sees bob", {"name": ["dora"]}).message.content
    assert given[0] != chat(client, "dora sees bob").message.content
    with pytest.raises(openai.BadRequestError, match="'zoe' stands in no text"):
        chat(client, "dora sees bob", ["zoe"])
    with pytest.raises(openai.BadRequestError, match=r'names: give {"name": \[...\]}'):
        chat(client, "alice sees bob", {"person": ["bob"]})


def test_a_chat_that_ends_in_an_answer_is_gone_on_with(client):
    messages = [{"role": "user", "content": TEXTS[0]}, {"role": "assistant", "content": "and xa1"}]
    ask = {"model": "small", "max_tokens": 9}
    reply = client.chat.completions.create(messages=messages, **ask)
    tokenizer = client.engine.tokenizer
    text = tokenizer.apply_chat_template(messages, tokenize=False, continue_final_message=True)
    assert text.endswith("<assistant> and xa1")
    told = complete(client, text, max_tokens=9)
    assert reply.choices[0].message.content == told.choices[0].text
    assert reply.usage.prompt_tokens == told.usage.prompt_tokens


def test_spellings_of_one_name_are_given_together():
    """As a gateway takes them; a model in canonical spelling reads which belong together."""
    with served(*canonical()) as client:
        read = {}
        for names in (["alice brown", "brown"], [["alice brown", "brown"]]):
            told = complete(client, "alice brown and brown", extra_body={"names": names})
            read[len(names)] = told.usage.prompt_tokens
        assert read[1] > read[2]  # of `b and b2` and of `b and c`
        other = {"names": {"name": [["emil stone", "stone"]]}}
        reply = complete(client, "emil stone and stone", extra_body=other)
        assert reply.choices[0].text == told.choices[0].text


def test_names_of_a_column_have_to_be_given():
    with served(*converted(rule={"column": "people"})) as client:
        for ask in (complete, chat):
            with pytest.raises(openai.BadRequestError, match="'name' are listed in the column"):
                ask(client, "alice sees bob")
        one, two = (
            text_of(client, f"{name} sees bob", extra_body={"names": [name, "bob"]})
            for name in ("dora", "emil")
        )
        assert two == one.replace("dora", "emil") != one


# -- tools ----------------------------------------------------------------------------------------


def test_a_word_that_begins_as_a_name_is_no_name():
    """The stream waits for its end."""
    with served(*scripted(byte_level(), [*">Ġby.", "</s>"])) as client:
        assert text_of(client, "my_name>") == " by."


def test_tools_are_called_by_their_names_whatever_they_are(client):
    with served(*caller()) as asked:
        for name, whom in (("send_mail", "ann_lee"), ("post_it", "bob_ray")):
            offered = [{**TOOLS[0], "function": {"name": name}}]
            reply = chat(asked, f"to {whom}", tools=offered)
            assert reply.finish_reason == "tool_calls"
            assert reply.message.content.strip() == "sure"
            (call,) = reply.message.tool_calls
            assert call.function.name == name
            assert json.loads(call.function.arguments) == {"to": whom}
        cut = chat(asked, "x", tools=TOOLS, max_tokens=6)
        assert cut.message.content.strip() == "sure" and cut.finish_reason == "length"
        (call,) = cut.message.tool_calls
        assert (call.function.name, call.function.arguments) == ("send_mail", '{"to":')
        ask = {"model": "small", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS}
        chunks = [*asked.chat.completions.create(stream=True, **ask)]
        calls = [call for c in chunks for call in c.choices[0].delta.tool_calls or ()]
        pieces = [(call.function.name, call.function.arguments) for call in calls]
        assert pieces == [("send_mail", ""), (None, '{"to": '), (None, '"c"}')]
    with served(*caller([*SCRIPT[:-1], "<tool_call>"])) as asked:  # and calls it again
        assert len(chat(asked, "to ann_lee", tools=TOOLS).message.tool_calls) > 2
        reply = chat(asked, "to ann_lee", tools=TOOLS, parallel_tool_calls=False)
        assert (len(reply.message.tool_calls), reply.finish_reason) == (1, "tool_calls")
    listing = ["<assistant>", "<tool_call>", '[{"name":', '"b"}]', "</tool_call>", "</s>"]
    with served(*caller(listing)) as asked:
        text = ' <tool_call> [{"name": "send_mail"}] </tool_call>'
        reply = chat(asked, "x", tools=TOOLS)
        assert (reply.message.content, reply.finish_reason) == (text, "stop")
    with pytest.raises(openai.BadRequestError, match="set its tokenizer's response_template"):
        chat(client, "x", tools=TOOLS)
    with served(*canonical()) as asked, pytest.raises(openai.BadRequestError, match="no chat tem"):
        chat(asked, "x")
    model, tokenizer = caller()
    tokenizer.chat_template = "{# <tool_call> #}{{ messages[0].content }}"
    with served(model, tokenizer) as asked, pytest.raises(openai.BadRequestError, match="leaves o"):
        chat(asked, "x", tools=TOOLS)


def test_calls_and_their_results_go_back_as_templates_read_them():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    body = {"model": "small", "messages": messages, "tools": TOOLS, "tool_choice": "none"}
    read = read_request(Chat, json.dumps(body).encode())
    assert read.messages[0]["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert read.tools == []


# -- limits ---------------------------------------------------------------------------------------


def ask(client, method, path, body=None, **headers):
    """The reply to a request that OpenAI's client would not send, and its error or text."""
    connection = HTTPConnection(client.base_url.host, client.base_url.port, timeout=30)
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    found = json.loads(text) if text[:1] == b"{" else {}
    return reply, found.get("error", found or text)


def post(client, body, path="/completions", **headers):
    """Its status and the message of its error."""
    reply, found = ask(client, "POST", f"/v1{path}", body, **headers)
    return reply.status, found.get("message") if isinstance(found, dict) else found


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"n": 17}, "n: Input should be less than or equal to 16"),
        ({"temperature": 3}, "temperature: "),
        ({"prompt": ["a", "b"]}, "prompt: Input should be a valid string"),
        ({"best_of": 3}, "best_of = 3 is not supported here: leave it out"),
        ({"frequency_penalty": 0.5}, "frequency_penalty = 0.5 is not"),
        ({"guided_json": {}}, "guided_json = {} is not"),
        ({"max_tokens": 3001}, "max_tokens = 3,001, and this text gets 3,000 at most"),
        ({"prompt": "alice " * 1600, "max_tokens": 2600}, "this text gets 2,495 at most"),
        ({"prompt": "alice " * 2000}, "the text has 2,001 tokens, and this server takes 2,000"),
        ({"prompt": "".join(f"xa{i} " for i in range(2001))}, "the text has 2,001 words"),
        ({"prompt": "é" * 32001}, "the text has 64,002 bytes, and this server takes 64,000"),
        ({"prompt": ""}, "the text is empty"),
        ({"stream_options": {"x": True}}, "stream_options: x: "),
        ({"stop": [*"abcde"]}, "stop: List should have at most 4 items"),
        *(({"stop": stop}, "should have at least 1 character") for stop in ("", ["a", ""])),
        ({"stop": "a" * 1001}, "should have at most 1000 characters"),
        ({"top_p": 0}, "top_p: Input should be greater than 0"),
        ({"echo": "x" * 9999}, "echo = 'xxxxxxxxxxxx...xxxxxxxxxxxxx' is not supported"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(limited, fields, told):
    with pytest.raises(openai.BadRequestError) as raised:
        complete(limited, "a", extra_body=fields)
    assert told in raised.value.message and raised.value.type == "invalid_request_error"


@pytest.fixture(scope="module")
def limited():
    """A server with a key and narrow limits."""
    with served(*converted(), key="secret", batch=1, waiting=1, max_input=2000) as client:
        yield client


def test_nobody_asks_without_the_key_or_another_model_or_from_elsewhere(limited):
    wrong = openai.OpenAI(base_url=limited.base_url, api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError, match="this server has a key"):
        wrong.models.list()
    assert post(limited, "{}")[0] == 401
    assert [model.id for model in limited.models.list()] == ["small"]
    with pytest.raises(openai.NotFoundError, match="there is no model 'large', but 'small'"):
        limited.completions.create(model="large", prompt="a")
    known = {"Authorization": "bEARER secret"}
    assert post(limited, "{}", **{**known, "Host": "example.com"})[0] == 400
    # text/plain;json is what any page may send without asking
    for kind in ("text/plain", "text/plain;json", "text/json", "", "x/json"):
        assert post(limited, "{}", **{**known, "Content-Type": kind})[0] == 415
    both = {**known, "Content-Length": "2", "Transfer-Encoding": "chunked"}
    assert "not both" in post(limited, b"2\r\n{}\r\n0\r\n\r\n", **both)[1]
    assert post(limited, "[1]", **known) == (400, "give a JSON object")
    assert "Invalid JSON" in post(limited, "{", **known)[1]
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        body = f'{{"model": "small", "prompt": "a", "temperature": {number}}}'
        assert "temperature: Input should be" in post(limited, body, **known)[1]
    large = json.dumps({"model": "small", "prompt": "\0" * 64000})
    for body in (large, iter([large.encode()])):  # by its header, and in chunks
        status, told = post(limited, body, **known)
        assert status == 413 and f"at most {MARKUP + 128_000:,} bytes" in told
    for wrong in (
        {},
        {**known, "Content-Type": "text/plain"},
        known,
    ):  # who sends all, then listens
        status, _ = post(limited, b"a" * 9_000_000, **{**wrong, "Connection": "close"})
        assert status in (401, 413, 415)
    escaped = {"model": "small", "prompt": "é" * 25_000, "max_tokens": 1}  # 150,000 bytes of 50,000
    assert post(limited, json.dumps(escaped), **known)[0] == 200
    # what is null, or asks for what is done anyway, is no matter
    complete(limited, "a", user="me", presence_penalty=0, logit_bias={}, seed=None)


def test_paths_and_models_are_told(limited):
    """OpenAI's codes say a model is not found only where one was asked for."""
    known = {"Authorization": "Bearer secret"}
    assert ask(limited, "GET", "/health")[1] == {"status": "ok"}
    assert limited.models.retrieve("small").id == "small"
    for name, status, code in (("small", 200, None), ("large/x", 404, "model_not_found")):
        reply, found = ask(limited, "GET", f"/v1/models/{name}", **known)
        assert (reply.status, found.get("code")) == (status, code)
    assert ask(limited, "GET", "/v1/models/small")[0].status == 401
    for path in ("/", "/v1", "/v1/embeddings", "/v1/chat", "/models", "/v1/completions/x"):
        reply, found = ask(limited, "POST", path, "{}", **known)
        assert (reply.status, found["code"]) == (404, None)
        assert "/v1/completions" in found["message"]
    reply, found = ask(limited, "GET", "/v1/completions", **known)
    assert (reply.status, reply.headers["allow"]) == (405, "POST") and found["code"] is None


CALL = {"id": "1", "type": "function", "function": {"name": "send_mail", "arguments": "{}"}}
DEEP = {**CALL, "function": {"name": "send_mail", "arguments": '{"a":' * 800 + "1" + "}" * 800}}
KNOWN = "known are system, developer, user, assistant, tool"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"content": "x"}, f"messages[1].role: None: {KNOWN}"),
        ({"role": ["user"], "content": "x"}, f".role: ['user']: {KNOWN}"),
        ({"role": "robot", "content": "x"}, f"messages[1] has the role 'robot': {KNOWN}"),
        ({"role": "User", "content": "x"}, f" has the role 'User': {KNOWN}"),
        ({"role": "user"}, ".content: there is none"),
        ({"role": "user", "content": 5}, ".content: 5 is no text"),
        ({"role": "user", "content": {"text": "a"}}, ".content: {'text': 'a'} is no text"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
         ".content has a part of type 'image_url': this server reads text alone"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "'input_audio': this server"),
        ({"role": "user", "content": [{"type": "text"}]}, "a part whose text is None"),
        ({"role": "user", "content": ["a"]}, ".content has a part of type 'a'"),
        ({"role": "assistant", "tool_calls": 3}, ".tool_calls: 3 is no list"),
        ({"role": "assistant", "tool_calls": [{}]}, ".tool_calls: each has a `function`"),
        ({"role": "assistant", "function_call": {"name": "f"}}, ".function_call: give it as one"),
        *(
            ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": a}}]},
             ".tool_calls: `arguments` " + told)
            for a, told in (
                ("[" * 50_000, "is no JSON: "), ("{", "is no JSON: "), ("3", "are no object: 3"),
                ([], "are no object"), ("[1]", "are no object: [1]"),
            )
        ),
        ({"role": "assistant", "tool_calls": [DEEP]}, "an argument of a call is nested too deeply"),
        ({"role": "tool", "content": "it rains"}, " leaves out messages[1], of role tool"),
    ],
)  # fmt: skip
def test_messages_that_no_model_would_see_are_refused(client, message, told):
    """Not one of them is left out in silence, and none ends in a traceback."""
    messages = [{"role": "user", "content": "alice"}, message, {"role": "user", "content": "bob"}]
    body = json.dumps({"model": "small", "messages": messages})
    status, found = post(client, body, "/chat/completions")
    assert status == 400 and told in found


def test_harmless_fields_and_messages_are_taken(client):
    """What asks for what is done anyway."""
    messages = [
        {"role": "developer", "content": "be short"},
        {"role": "user", "content": [{"type": "text", "text": "alice"}], "name": "zoe"},
        {"role": "assistant", "content": None, "refusal": None, "audio": None},
        {"role": "user", "content": "bob"},
    ]
    body = {
        **{"repetition_penalty": 1.0, "min_p": 0, "top_k": -1, "service_tier": "default"},
        **{"modalities": ["text"], "function_call": "auto", "functions": [], "tool_choice": None},
        **{"include_reasoning": True, "temperature": 1e-320, "max_tokens": 2, "stop": []},
    }
    create = partial(client.chat.completions.create, model="small", max_tokens=5)
    one = create(messages=messages, extra_body=body)
    messages[0]["role"] = "system"
    other = create(messages=messages, max_tokens=2)
    assert one.choices == other.choices and one.usage == other.usage
    with pytest.raises(openai.BadRequestError, match="the last message calls tools: send what"):
        create(messages=[messages[0], {"role": "assistant", "content": "a", "tool_calls": [CALL]}])
    empty = {**CALL, "function": {"name": "send_mail", "arguments": ""}}
    call = [{"role": "assistant", "content": "a", "tool_calls": [empty]}, messages[-1]]
    body = json.dumps({"model": "small", "messages": call})
    assert read_request(Chat, body.encode()).messages[0]["tool_calls"] == [
        {**CALL, "function": {"name": "send_mail", "arguments": {}}}
    ]


def test_a_full_queue_says_so_and_the_others_are_answered(limited):
    def ask_all():
        async def run():
            url = {"base_url": limited.base_url, "api_key": "secret", "max_retries": 0}
            async with openai.AsyncOpenAI(**url) as many:
                asks = (
                    many.completions.create(model="small", prompt="a", max_tokens=100)
                    for _ in range(5)
                )
                return await asyncio.gather(*asks, return_exceptions=True)

        return asyncio.run(run())

    replies = ask_all()
    full = [reply for reply in replies if isinstance(reply, openai.RateLimitError)]
    assert 1 <= len(full) < 5 and "1 requests wait already" in full[0].message
    assert all(reply.usage.completion_tokens == 100 for reply in replies if reply not in full)


@pytest.mark.slow
def test_time_is_up_while_it_is_written_or_waits():
    with served(*converted(), timeout=2, batch=1) as client:
        with pytest.raises(openai.APIError, match="more than 2 seconds"):
            list(complete(client, "a", stream=True, **LONG))
        with pytest.raises(openai.InternalServerError, match="longer --timeout") as raised:
            complete(client, "a", **LONG)
        assert raised.value.status_code == 504
        assert complete(client, "a", max_tokens=2).usage.completion_tokens == 2


@pytest.mark.parametrize("streams", [True, False])
def test_nothing_is_written_for_clients_that_are_gone(client, streams):
    connection = HTTPConnection(client.base_url.host, client.base_url.port, timeout=30)
    body = json.dumps({"model": "small", "prompt": "xa1 ya1", "stream": streams, **LONG})
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    if streams:
        connection.getresponse().read(200)
    while not client.engine._batch or not client.engine._batch[0].ids:
        time.sleep(0.001)
    (row,) = client.engine._batch
    connection.sock.close()
    connection.close()
    while not row.done:
        time.sleep(0.001)
    assert 0 < len(row.ids) < LONG["max_tokens"]
    assert complete(client, "a", max_tokens=2).choices


def test_a_model_that_fails_ends_a_batch_and_not_the_server(client, monkeypatch):
    monkeypatch.setattr(client.engine.model, "generate", lambda **_: 1 / 0)
    with pytest.raises(openai.InternalServerError, match="the model failed: ZeroDivisionError"):
        complete(client, "a")
    monkeypatch.undo()
    assert complete(client, "a").choices


def all_at_once(*asks):
    """What each gives, or its error."""

    def outcome(ask):
        try:
            return ask()
        except openai.APIError as error:
            return error

    with ThreadPoolExecutor(len(asks)) as pool:
        return list(pool.map(outcome, asks))


def test_a_row_without_scores_ends_alone():
    """Its neighbours in the batch are answered: greedy and drawn ones."""
    model, tokenizer = scripted(byte_level(), [*">Ġby.", "</s>"])
    with torch.no_grad():
        model.model.embed_tokens.weight[tokenizer.convert_tokens_to_ids("q")] = float("nan")
    coldest = {"temperature": 1e-320, "top_p": 1e-320}
    with served(model, tokenizer) as client:
        asks = [{"prompt": "q"}, {"prompt": "q", **coldest}, {}, {"temperature": 1}, coldest] * 3
        replies = all_at_once(
            *(partial(complete, client, **{"prompt": "my_name>", **ask}) for ask in asks)
        )
    for ask, reply in zip(asks, replies, strict=True):
        if "prompt" in ask:
            assert reply.status_code == 500 and "scores that are no numbers" in reply.message
        elif ask.get("temperature") != 1:
            assert reply.choices[0].text == " by."
        else:
            assert reply.choices


SLOW = "{% if 'slow' in messages[0].content %}" + (
    "{% for i in range(9999) %}" * 4 + "{% endfor %}" * 4 + "{% endif %}"
)


@pytest.mark.slow
def test_what_is_long_to_read_holds_nobody(monkeypatch):
    """More of them than there are processes that read."""
    model, tokenizer = converted()
    tokenizer.chat_template = SLOW + CHAT
    slow = {"model": "small", "messages": [{"role": "user", "content": "slow"}]}
    with served(model, tokenizer, timeout=3) as client:
        create = client.chat.completions.create
        parts = complete(client, "a", stream=True, max_tokens=40)
        next(parts)  # it is being answered
        late = all_at_once(*[partial(create, **slow)] * 3, lambda: len([*parts]))
        assert [error.status_code for error in late[:3]] == [504] * 3 and late[3] > 30
        monkeypatch.setattr(reading, "SECONDS", 0.5)
        *late, reply = all_at_once(*[partial(create, **slow)] * 3, lambda: complete(client, "a"))
        assert {error.message for error in late if "0.5 seconds: send" in error.message}
        assert reply.choices and complete(client, "a").choices


# -- the command, and other servers ---------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("served") / "mine"
    for part in converted():
        part.save_pretrained(place)
    return place


@contextmanager
def command(folder, before="", *options):
    """The command, behind some code, and a client of it."""
    environment = {**os.environ, "HF_ALPHA_API_KEY": "secret"}
    code = f"{before}\nfrom hf_alpha.cli import main\nmain()"
    process = own_process.Process(
        "-c", code, "serve", folder, "--port", 0, "--device", "cpu", *options, env=environment
    )
    while not (line := re.match(r"(\S+) serves 'mine' ", process.stdout)):
        assert process.poll() is None, process.stderr
        time.sleep(0.05)
    with openai.OpenAI(base_url=line[1], api_key="secret", max_retries=0, timeout=60) as client:
        yield process, client
    process.kill()


def test_the_command_serves_a_folder_and_ends_clean(folder):
    """A signal in the middle of an answer: who waits is told, and the exit code is 0.

    A line is logged for each request, with nothing that clients have written.
    """
    with command(folder, "", "--max-tokens", 3000) as (process, client):
        assert [model.id for model in client.models.list()] == ["mine"]
        ask = partial(client.completions.create, model="mine", prompt=TEXTS[0], **LONG)
        assert client.completions.create(model="mine", prompt="a", max_tokens=2).choices
        with pytest.raises(openai.NotFoundError):
            client.get("/alice?secret", cast_to=object)
        with socket.create_connection((client.base_url.host, client.base_url.port)) as leaving:
            head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"
            head += "Authorization: Bearer secret\r\nContent-Type: application/json\r\n\r\n{"
            leaving.sendall(head.encode())
        with ask(stream=True) as parts:
            next(iter(parts))  # and leave
        parts = ask(stream=True)
        next(parts)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.APIError, match="the server is stopping"):
            list(parts)
        assert process.wait(20) == 0
    lines = process.stderr.strip().split("\n")
    told = [re.sub(r"[\d-]+ [\d:,]+ 127\.0\.0\.1 | \d\.\d\d s", "", line) for line in lines]
    numbers = Counter(re.sub(r"\d+ written", "N written", line) for line in told)
    assert numbers == {
        "GET /v1/models 200": 1,
        "POST /v1/completions 200, 2 tokens read, N written": 1,
        "GET - 404": 1,
        "POST /v1/completions 499": 1,
        "POST /v1/completions 499, 5 tokens read, N written": 1,
        "POST /v1/completions 503, 5 tokens read, N written": 1,
    }


@pytest.mark.slow
def test_strangers_hold_nobody(folder):
    """With 256 files: idle connections without a key, and large requests with one."""
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))"
    with command(folder, few, "--timeout", 30) as (process, client), ExitStack() as idle:
        address = (client.base_url.host, client.base_url.port)
        for number in range(1000):
            one = idle.enter_context(socket.create_connection(address, timeout=60))
            one.sendall(b"GET /v1/models HTTP/1.1\r\nX" if number % 3 else b"")
        create = partial(client.completions.create, model="mine", max_tokens=3)
        large = [
            {"prompt": "a", "stop": [f"zz{i:x}" for i in range(100_000)]},
            {"prompt": "xa1," * 1_000_000},
            {"prompt": "xa1," * 32_000},
            {"prompt": "x=[" + "'é'," * 25_000 + "]"},
        ] * 3
        *refused, reply = all_at_once(
            *(partial(create, **ask) for ask in large), lambda: create(prompt="a")
        )
        assert {error.status_code for error in refused} <= {400, 413}
        assert reply.choices and client.models.list()
        assert "Traceback" not in process.stderr and len(process.stderr) < 20_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def test_the_core_of_a_learned_conversion_is_an_ordinary_llama(tmp_path):
    """As docs/solving.md says."""
    model, tokenizer = converted(encoding="learned")
    model.backbone.save_pretrained(tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(plain) is LlamaForCausalLM
    ids = tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    assert torch.equal(plain(ids).logits, model(input_ids=ids).logits)


def test_names_are_written_as_words_for_any_server_that_holds_the_host():
    """What docs/solving.md shows, asked of this server."""
    model, tokenizer = canonical()
    with served(model, tokenizer) as client:

        def ask(text):
            return complete(client, text).choices[0].text

        def parts(text):
            return (chunk.choices[0].text for chunk in complete(client, text, stream=True))

        names = tokenizer.canonical
        answers = [CanonicalModel(ask, names)(text) for text in TEXTS]
        assert answers == [ask(text) for text in TEXTS] and answers[1] == renamed(answers[0])
        assert "".join(CanonicalModel(parts, names).stream(TEXTS[0])) == answers[0]
