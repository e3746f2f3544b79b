"""The server over HTTP: answers for programs, and what it does with bad requests."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from hf_alpha.answer.solving import Solution
from hf_alpha.demo.choices import Choice
from hf_alpha.tasks.text import TextTask

LTL = "ltl-relational"


@pytest.fixture(scope="module")
def address(choices, page_server) -> Iterator[tuple[str, int]]:
    page = page_server.serve(choices)
    parts = urlsplit(page.local_url)
    yield parts.hostname, parts.port
    page.close()


def request(address, method: str, path: str, body: bytes = b"", **headers: str):
    connection = HTTPConnection(*address, timeout=300)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def call(address, name: str, *values: object) -> tuple[str, object]:
    """Ask as a program does: a request for the question, and one for the answer."""
    path = f"/gradio_api/call/{name}"
    status, text = request(address, "POST", path, json.dumps({"data": values}).encode())
    if status != 200:
        return str(status), text
    status, text = request(address, "GET", f"{path}/{json.loads(text)['event_id']}")
    kind, data = (line.split(": ", 1)[1] for line in text.strip().split("\n")[-2:])
    return kind, json.loads(data)


def ask(address, *values: object) -> dict[str, object]:
    """Return the record of an answer, which comes behind its HTML."""
    kind, (page, record) = call(address, "solve", *values)
    assert kind == "complete" and page.startswith('<div class="reply"')
    return record


def test_a_program_asks(address):
    record = ask(address, "G(a -> F b) & F a", LTL, 2)
    assert set(record) == {*Solution("").record()}
    assert record["error"] is None and len(record["answers"]) == 2
    assert record["verdict"] == "correct" and record["found_by"] == LTL
    described = json.loads(request(address, "GET", "/gradio_api/info")[1])["named_endpoints"]
    assert list(described) == ["/solve"]
    (of_model,) = [x for x in described["/solve"]["parameters"] if x["parameter_name"] == "model"]
    assert {LTL, "ltl-solver"} <= {*of_model["type"]["enum"]}


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        ("", "the problem is empty"),
        (None, "the problem is empty"),
        (["a"], "numbers and ranges are not read"),
        ("X " * 10_000 + "a", "this page takes 4,000"),
        ("(" * 3_000, "the formula ends at character 3000"),
        ("\ud800", "the text was not read as UTF-8"),
        ("a & <script>", "has no meaning here"),
    ],
)
def test_bad_problems_are_errors_of_the_answer(address, problem, error):
    record = ask(address, problem, LTL, 1)
    assert error in record["error"] and record["answers"] == []


def test_names_of_other_scripts_come_back(address):
    record = ask(address, '名前 & "<b>"', LTL, 1)
    assert "名前" in record["answers"][0]["answer"] and record["problem"] == '名前 & "<b>"'


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (["a", LTL, None], ""),
        (["a", LTL, "many"], ""),
        (["a", LTL, 11], "11 is greater than maximum value 10"),
        (["a", LTL, [2]], ""),
        (["a", "gpt", 1], "not in the list of choices"),
        (["a", [LTL], 1], ""),
        (["a", None, 1], ""),
    ],
)
def test_who_cannot_be_asked_is_an_error_of_the_call(address, values, error):
    kind, data = call(address, "solve", *values)
    assert kind == "error" and error in str(data)


@pytest.mark.parametrize("way", ["run", "api"])
def test_no_request_passes_by_those_that_wait(address, way):
    for path in (f"/gradio_api/{way}/solve", f"/gradio_api/{way}/solve/"):
        body = json.dumps({"data": ["a", LTL, 1]}).encode()
        assert request(address, "POST", path, body)[0] == 404
    functions = json.loads(request(address, "GET", "/config")[1])["dependencies"]
    for function in functions:
        if function["queue"] is not False:
            body = json.dumps({"fn_index": function["id"], "data": ["a", LTL]}).encode()
            assert request(address, "POST", f"/gradio_api/{way}/predict", body)[0] == 404


def test_a_large_body_is_refused_before_it_is_read(address, page_server):
    """By its header, or, without one, as soon as it is too long."""
    limit = f"a request has at most {page_server.MAX_BODY:,} bytes\n"
    connection = HTTPConnection(*address, timeout=300)
    connection.putrequest("POST", "/gradio_api/call/solve")
    connection.putheader("Content-Length", str(100_000_000))
    connection.endheaders()  # and not a byte of the body
    response = connection.getresponse()
    assert (response.status, response.read().decode()) == (413, limit)
    connection.close()

    connection = HTTPConnection(*address, timeout=300)
    pieces = (b"x" * 10_000 for _ in range(10_000))
    try:
        connection.request("POST", "/gradio_api/call/solve", pieces, encode_chunked=True)
    except OSError:
        pass  # the server has closed the connection meanwhile
    else:
        assert connection.getresponse().status == 413
    connection.close()
    for length in ("-1", "many"):
        status, _ = request(address, "POST", "/gradio_api/call/solve", **{"Content-Length": length})
        assert status in (400, 413)
    assert ask(address, "a", LTL, 1)["answers"]


def test_a_port_that_is_taken_is_named(address, choices, page_server):
    with pytest.raises(OSError, match=f"port {address[1]} is taken: name another by --port"):
        page_server.serve(choices, port=address[1])


def test_no_files_and_no_other_host(address):
    assert request(address, "POST", "/gradio_api/upload", b"x")[0] == 404
    assert request(address, "GET", "/", Host="elsewhere.example")[0] == 400
    assert request(address, "GET", "/gradio_api/file=/etc/passwd")[0] in (403, 404)


def test_a_page_for_everyone_goes_by_any_name(choices, page_server):
    page = page_server.serve(choices, host="0.0.0.0")
    address = "127.0.0.1", urlsplit(page.local_url).port
    assert request(address, "GET", "/", Host="me-my-space.hf.space")[0] == 200
    page.close()


@pytest.mark.slow
def test_many_requests_at_once_are_answered_or_refused(address, page_server):
    """None is lost: each has its own answer, or is told that too many wait."""
    problems = [f"n{i} & X n{i + 1}" for i in range(page_server.MAX_WAITING + 16)]
    with ThreadPoolExecutor(len(problems)) as pool:
        replies = list(pool.map(lambda problem: call(address, "solve", problem, LTL, 1), problems))
    answered = 0
    for problem, (kind, data) in zip(problems, replies, strict=True):
        if kind == "complete":
            assert data[1]["problem"] == problem and data[1]["answers"]
            answered += 1
        else:
            assert kind in ("error", "503"), data
    assert answered >= page_server.MAX_WAITING // 2
    assert ask(address, "a", LTL, 1)["answers"]


def test_names_are_asked_for_where_a_rule_reads_a_column_and_may_be_left_out(page_server):
    """A page has them in one field, for models whose rules find all names too."""
    choice = Choice("people", TextTask({"person": {"column": "people"}}))
    assert "the problem is empty" in choice.solve(" ").error
    assert "names of person are given" in choice.solve("ann sees bob").error
    described = page_server.build_page({"people": choice}).get_api_info()["named_endpoints"]
    of_names = described["/solve"]["parameters"][-1]
    assert of_names["parameter_name"] == "names" and of_names["parameter_default"] == ""
    assert of_names["parameter_has_default"]
