"""Against a real server on this machine."""

import json
import time

import pytest
from chat_server import serving, solver

from hf_alpha.evaluation.compare import compare
from hf_alpha.evaluation.evaluate import Exam
from hf_alpha.evaluation.instructed import AskedModel, Reply
from hf_alpha.evaluation.report import Report
from hf_alpha.evaluation.service import LARGEST, Service, ServiceError, _seconds
from hf_alpha.tasks import get_task

TASK = get_task("ltl")
ROWS = [{"problem": problem} for problem in ("a", "Xa", "&aXb", "U!ab", "!U1!a", "XX&a!b")]
SETTINGS = {"batch_size": 3, "solver": "auto", "timeout": 10.0, "num_workers": 0, "progress": False}
QUICK = {"pause": 0.01, "timeout": 5.0}


def ask(service: Service, *prompts: str) -> dict[str, Reply]:
    found: dict[str, Reply] = {}
    service.ask(prompts, found.__setitem__)
    return found


def test_a_service_is_asked_with_what_was_said_and_no_more():
    with serving(str.upper) as server:
        request = {"max_tokens": 7, "temperature": None}
        asked = Service(server.address, "some-model", "secret", request, **QUICK)
        assert ask(asked, "hello", "you") == {
            "hello": Reply("HELLO", True, 300, 5),
            "you": Reply("YOU", True, 300, 3),
        }
        assert sorted(map(json.dumps, server.requests)) == [
            json.dumps({"model": "some-model", "max_tokens": 7,
                        "messages": [{"role": "user", "content": text}]})
            for text in ("hello", "you")
        ]  # fmt: skip
        assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret"}
        assert "secret" not in json.dumps(asked.settings)
        ask(Service(f"{server.address}/chat/completions/", "other", **QUICK), "hello")
        assert server.requests[-1]["temperature"] == 0
        assert "Authorization" not in server.headers[-1]


def test_what_fails_for_a_time_is_tried_again():
    busy = {"status": 429, "headers": {"Retry-After": "0.3"}, "body": b"slow down"}
    with serving(str.upper, [busy, {"status": 500}, {"status": 503}]) as server:
        start = time.monotonic()
        assert ask(Service(server.address, "m", **QUICK), "hello")["hello"].text == "HELLO"
        assert len(server.requests) == 4
        assert time.monotonic() - start >= 0.3, "as long as the service asks for"
    with serving(str.upper, [{"delay": 2}]) as server:
        asked = Service(server.address, "m", pause=0.01, timeout=0.5)
        assert ask(asked, "hello")["hello"].text == "HELLO"
        assert len(server.requests) == 2, "the first one was too slow"


def test_what_fails_for_good_says_why_and_shows_no_key():
    denied = {"error": {"message": "the key secret-key is unknown"}}
    with serving(str.upper, [{"status": 401, "body": json.dumps(denied).encode()}]) as server:
        with pytest.raises(ServiceError) as error:
            ask(Service(server.address, "m", "secret-key", **QUICK), "hello")
        assert str(error.value) == (
            f"{server.address}/chat/completions refuses the request: 401 Unauthorized the key … is "
            "unknown"
        )
        assert len(server.requests) == 1
    with serving(str.upper, [{"status": 500, "body": b"no room"}] * 3) as server:
        asked = Service(server.address, "m", attempts=2, **QUICK)
        with pytest.raises(ServiceError, match=r"no reply in 2 attempts: 500 .* no room\. Replies"):
            ask(asked, "hello")
        server.troubles[:] = [{"status": 200, "body": b"<html>"}]
        with pytest.raises(ServiceError, match="answers with something else: <html>"):
            ask(asked, "hello")
    with pytest.raises(ServiceError, match=r"no reply in 2 attempts: .*refused"):
        ask(asked, "hello")  # the server is down now


@pytest.mark.parametrize("headers", [{}, {"Content-Length": None}], ids=["length", "no length"])
def test_an_answer_is_read_up_to_a_limit(headers):
    huge = {"status": 200, "body": b" " * (LARGEST + 1), "headers": headers}
    with serving(str.upper, [huge]) as server:
        with pytest.raises(ServiceError, match="answers with more than 16,777,216 bytes"):
            ask(Service(server.address, "m", **QUICK), "hello")
        assert len(server.requests) == 1, "it would be as long again"


@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_that_is_nested_too_deep_is_damaged(status):
    """Reading it ended in a RecursionError."""
    deep = {"status": status, "body": b"[" * 200_000}
    said = (
        "answers with something else" if status == 200 else "refuses the request: 400 Bad Request"
    )
    with serving(str.upper, [deep]) as server, pytest.raises(ServiceError, match=rf"{said}:? \[\["):
        ask(Service(server.address, "m", **QUICK), "hello")


def test_an_answer_that_ends_too_early_is_asked_for_again():
    for body in (b"", b'{"choices": [', b'{"choices": []}'):
        cut = {"status": 200, "body": body, "headers": {"Content-Length": "99"}}
        with serving(str.upper, [cut]) as server:
            assert ask(Service(server.address, "m", **QUICK), "hello")["hello"].text == "HELLO"


def test_nothing_is_sent_anywhere_else():
    with serving(str.upper) as other:
        moved = {"status": 302, "headers": {"Location": f"{other.address}/chat/completions"}}
        with serving(str.upper, [moved]) as server, pytest.raises(ServiceError, match="302 Found"):
            ask(Service(server.address, "m", "secret", **QUICK), "hello")
        assert not other.requests
    for address in ("localhost:8000", "ftp://here/v1", "http://", "file:///etc/passwd"):
        with pytest.raises(ValueError, match="is no address: write http://"):
            Service(address, "m")
    with pytest.raises(ValueError, match="keep the key out of it"):
        Service("http://me:key@localhost/v1", "m")
    with pytest.raises(ValueError, match="has a space or a line's end in it") as error:
        Service("http://localhost/v1", "m", "secret\n")
    assert "secret" not in str(error.value)


def test_proxies_of_the_environment_are_not_used(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(str.upper) as server, serving(str.upper) as proxy:
        monkeypatch.setenv("http_proxy", proxy.address)
        asked = Service(server.address, "m", "secret", attempts=1, **QUICK)
        assert ask(asked, "hello")["hello"].text == "HELLO"
        assert len(server.requests) == 1 and not proxy.requests


@pytest.mark.parametrize(
    ("asked_for", "seconds"),
    [("20", 20), ("86400", 600), ("1e400", 600), ("nan", 0), ("-5", 0), ("soon", 0), (None, 0)],
)
def test_a_pause_has_a_limit_whatever_the_service_asks_for(asked_for, seconds):
    assert _seconds(asked_for) == seconds


@pytest.mark.parametrize("usage", [None, [], [7], "many", 3])
def test_a_service_may_not_say_how_many_tokens_there_were(usage):
    with serving(str.upper, [{"usage": usage}]) as server:
        asked = Service(server.address, "m", **QUICK)
        assert ask(asked, "hello") == {"hello": Reply("HELLO", True, None, None)}


def test_answers_are_checked_and_covariance_is_measured(tmp_path):
    with serving(solver(TASK)) as server:
        entry = AskedModel("m", Service(server.address, "m", **QUICK))
        report = entry.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))
        assert [record.outcome for record in report.records] == ["correct"] * 6
        assert report.settings["address"] == f"{server.address}/chat/completions"
        problems = [row["problem"] for row in ROWS]
        found = entry.covariance(Exam(TASK, [], tmp_path, SETTINGS), problems, max_renamings=4)
        assert found.mean == 1.0 and found.used == 6 and found.constant == 0
        asked = len(server.requests)
        assert asked == 6 * 4, "what was asked for correctness is not asked again"
        (note,) = entry.notes(Exam(TASK, ROWS, tmp_path, SETTINGS), 0)
        said = sum(len(request) for request in map(solver(TASK), _prompts(server)))
        assert note == f"m: 24 prompts asked: 7,200 tokens in, {said:,} out"


def _prompts(server) -> list[str]:
    return [request["messages"][0]["content"] for request in server.requests]


@pytest.mark.parametrize(("temperature", "drawn"), [(None, True), (0.5, True), (0.0, False)])
def test_covariance_of_drawn_replies_is_refused_before_any_is_asked(tmp_path, temperature, drawn):
    """Without a temperature a service uses its own, which is above 0."""
    rows = [{"problem": "a", "num_symbols": 1, "size": 1}]
    with serving(solver(TASK)) as server:
        asked = Service(server.address, "m", request={"temperature": temperature}, **QUICK)
        still = AskedModel("still", Service(server.address, "still", **QUICK))
        wanted = {"progress": False, "max_renamings": 2}
        assert asked.sampled == drawn
        if drawn:
            with pytest.raises(ValueError, match="those of m are drawn: measure none"):
                compare([still, AskedModel("m", asked)], TASK, rows, tmp_path, **wanted)
            assert not server.requests
            wanted["covariance"] = 0
        _, reports = compare([AskedModel("m", asked)], TASK, rows, tmp_path, **wanted)
        assert reports[0].overall.correct == 1.0
        assert (reports[0].alpha_covariance is None) == drawn


def test_a_reply_that_was_cut_off_has_no_answer():
    with serving(solver(TASK), [{"finish": "length"}]) as server:
        entry = AskedModel("m", Service(server.address, "m", **QUICK))
        report = entry.evaluate(Exam(TASK, ROWS, None, SETTINGS))
        assert report.reasons == {"cut off at the limit of tokens": 1}
        assert report.overall.correct == 5 / 6


def test_replies_that_were_paid_for_are_not_lost(tmp_path):
    """A run is stopped by an error, and later by a full stop in the middle of a line."""
    troubles = [{}, {}, {}, {}, {"status": 400, "body": b"out of credit"}]
    with serving(solver(TASK), troubles) as server:
        entry = AskedModel("m", Service(server.address, "m", parallel=1, **QUICK))
        with pytest.raises(ServiceError, match="out of credit"):
            entry.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))
        with pytest.raises(FileNotFoundError):
            Report.load(tmp_path)
        assert len(server.requests) == 5
        with (tmp_path / "replies-0.jsonl").open("a") as file:
            file.write('\n{"by": "x", "pro')
        report = entry.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))
        assert len(server.requests) == 7, "of six problems four had been answered"
        assert report == Report.load(tmp_path) and report.overall.correct == 1.0
        other = AskedModel("m", Service(server.address, "m", request={"top_p": 1}, **QUICK))
        with pytest.raises(ValueError, match="holds an evaluation with request = "):
            other.evaluate(Exam(TASK, ROWS, tmp_path, SETTINGS))
        assert len(server.requests) == 7


def test_replies_that_come_beside_a_failure_are_kept():
    """Several requests are under way when one of them is refused."""
    with serving(str.upper, [{"delay": 0.3}, {"status": 400}]) as server:
        found: dict[str, Reply] = {}
        asked = Service(server.address, "m", parallel=2, **QUICK)
        with pytest.raises(ServiceError, match="refuses the request: 400"):
            asked.ask([f"{number}" for number in range(40)], found.__setitem__)
        answered = len(server.requests) - 1
        assert len(found) == answered and 1 <= answered < 39, "no more are asked for"
