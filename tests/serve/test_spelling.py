"""Requests are spelled elsewhere: who asks meanwhile is answered, and what fails is told."""

import json
import os
import signal
import threading
import time

import httpx2
import pytest
from openai_chats import echoing, slow_to_find
from serving import running

from hf_alpha import CanonicalNames
from hf_alpha.serve import spelling
from hf_alpha.serve.gateway import Gateway

SLOW = {"name": {"function": slow_to_find}}


def asking(text):
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


LARGE = asking("so a_name and more " * 4000)  # slow to find


def said(url, body):
    answer = httpx2.post(f"{url}/chat/completions", json=body, timeout=60)
    return answer.json()["choices"][0]["message"]["content"] if answer.is_success else answer.text


@pytest.fixture(scope="module")
def echo():
    with echoing() as made:
        yield made


def test_nobody_waits_for_a_large_request(echo):
    """It gets its names back too; the model has read words; all are counted."""
    with running(Gateway(echo.url, CanonicalNames(SLOW))) as url:
        assert said(url, asking("a_name")) == "a_name"  # its process takes seconds to start
        got = []
        thread = threading.Thread(target=lambda: got.append(said(url, LARGE)))
        thread.start()
        time.sleep(0.3)
        for _ in range(3):  # the first one, if it waited, would come back with the large one
            assert said(url, asking("a_name of a neighbour")) == "a_name of a neighbour"
        assert not got
        thread.join(60)
        assert got == [LARGE["messages"][0]["content"]]
        assert b"a_name" not in b"".join(data for *_, data in echo.seen)
        assert httpx2.get(url.replace("/v1", "/health")).json() == {"status": "ok", "spelled": 5}


def test_a_process_that_ends_is_replaced(echo):
    """As it does where memory is short; who waited for it is told."""
    gateway = Gateway(echo.url, CanonicalNames(SLOW))
    with running(gateway) as url:
        assert said(url, asking("a_name")) == "a_name"
        for is_small, slow in ((True, asking("so a_name and more " * 1000)), (False, LARGE)):
            got = []
            thread = threading.Thread(target=lambda: got.append(said(url, slow)))  # noqa: B023
            thread.start()
            time.sleep(0.7)
            for process in [*gateway._transport._pools[is_small]._processes]:
                os.kill(process, signal.SIGKILL)
            thread.join(60)
            assert "the process that spelled this request ended" in got[0]
        again = asking("a_name and " * 7000)
        assert len(json.dumps(again)) > spelling.SMALL
        assert said(url, again) == again["messages"][0]["content"]
        assert said(url, asking("a_name")) == "a_name"


def endless(text):
    while len(text) > 9000:
        pass
    return [(0, 6)]


def test_a_request_has_so_many_seconds(monkeypatch):
    monkeypatch.setattr(spelling, "SECONDS", 0.2)
    names = CanonicalNames({"name": {"function": endless}})
    monkeypatch.setattr(spelling, "_names", names, raising=False)
    before = signal.signal(signal.SIGPROF, spelling._late)
    try:
        with pytest.raises(TimeoutError):
            spelling._spell(json.dumps(LARGE).encode())
        assert spelling._spell(json.dumps(asking("a_name")).encode()).table == {"b": "a_name"}
    finally:
        signal.signal(signal.SIGPROF, before)
