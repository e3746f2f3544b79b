"""A worker that hangs, dies or prints costs one answer; the process knows only its own file."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from hf_alpha.tasks import solver_process
from hf_alpha.tasks.solver_process import MissingSolverError, SolverCrashError, SolverProcess

WORKER = """
import os, signal, sys, time

def prepare():
    if os.environ.get("NO_SOLVER"):
        raise ImportError("pip install it")

def fail(tokens):
    raise ValueError("no such token: " + tokens[0])

def act(tokens):
    if tokens[0] == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if tokens[0] == "exit":
        os._exit(3)
    if tokens[0] == "late":
        time.sleep(60)
    if tokens[0] == "wrong":
        raise ValueError("wrong")
    return " ".join(tokens)

SERVED = {
    "act": act,
    "join": lambda tokens, between: between.join(tokens),
    "modules": lambda tokens: sorted(sys.modules),
    "hash": lambda tokens: hash(tokens[0]),
    "spin": lambda tokens: [0 for _ in iter(int, 1)],
    "wait": lambda tokens: time.sleep(float(tokens[0])),
    "die": lambda tokens: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": lambda tokens: os._exit(3),
    "fail": fail,
    "nothing": lambda tokens: None,
    "count": lambda tokens, seen=[]: seen.append(tokens) or len(seen),
}
"""


@pytest.fixture(scope="module", params=[False, True], ids=["same", "fresh"])
def solver(tmp_path_factory, request: pytest.FixtureRequest):
    worker = tmp_path_factory.mktemp("worker") / "worker.py"
    worker.write_text(WORKER)
    process = SolverProcess(worker, fresh=request.param)
    process.is_fresh = request.param
    yield process
    process.stop()


def test_a_light_process_that_hashes_alike(solver: SolverProcess):
    start = time.perf_counter()
    assert solver.call("join", 10, ["a", "\u00e9\n"], "-") == "a-\u00e9\n"
    assert time.perf_counter() - start < 5
    modules = solver.call("modules", 10, [])
    assert not {"hf_alpha", "torch", "numpy", "transformers"}.intersection(modules)
    number, pid = solver.call("hash", 10, ["a"]), solver._process.pid
    assert [solver.call("count", 10, []) for _ in range(3)] == [[1, 2, 3], [1, 1, 1]][
        solver.is_fresh
    ]
    assert solver._process.pid == pid
    solver.stop()
    assert solver.call("hash", 10, ["a"]) == number
    assert solver._process.pid != pid
    assert solver.call("nothing", 10, []) is None
    much = "ab" * 300_000  # more than a pipe holds
    assert solver.call("join", 20, [much, "c"], "-") == f"{much}-c"


@pytest.mark.parametrize(
    ("name", "tokens", "error", "message"),
    [
        ("spin", ["a"], TimeoutError, r"more than 0\.2 s"),
        ("wait", ["60"], TimeoutError, r"more than 0\.2 s"),
        ("die", ["a", "b"], SolverCrashError, r"on 2 tokens: .* \(exit code -11\)"),
        ("exit", ["a"], SolverCrashError, r"exit code 3"),
        ("fail", ["a"], SolverCrashError, r"1 tokens: ValueError: no such token: a"),
    ],
)
def test_failures_cost_one_answer(solver: SolverProcess, name, tokens, error, message):
    with pytest.raises(error, match=message):
        solver.call(name, 0.2, tokens)
    assert solver.call("join", 10, ["a", "b"], "&") == "a&b"


def test_a_limit_ends_with_its_call(solver: SolverProcess):
    solver.call("wait", 0.2, ["0.01"])
    time.sleep(0.3)
    assert solver.call("join", 1e12, ["a"], "") == "a"


def test_a_process_killed_from_outside_is_replaced(solver: SolverProcess):
    solver.call("nothing", 10, [])
    threading.Timer(0.2, os.kill, (solver._process.pid, signal.SIGKILL)).start()
    with pytest.raises(SolverCrashError, match="exit code -9"):
        solver.call("wait", 0.5, ["60"])  # the limit is for the fork, which does not see the kill
    solver.call("nothing", 10, [])
    os.kill(solver._process.pid, signal.SIGKILL)  # between two answers
    time.sleep(0.1)
    assert solver.call("join", 10, ["a"], "") == "a"


@pytest.mark.parametrize("size", [1, 100_000], ids=["small", "larger than a pipe"])
def test_a_stopped_process_keeps_nobody_waiting(solver: SolverProcess, size: int, monkeypatch):
    monkeypatch.setattr(solver_process, "GRACE", 0.2)
    solver.call("nothing", 10, [])
    stopped = solver._process.pid
    os.kill(stopped, signal.SIGSTOP)
    late = threading.Timer(20, os.kill, (stopped, signal.SIGCONT))  # who still waits gets an answer
    late.start()
    with pytest.raises(TimeoutError, match=r"more than 0\.2 s"):
        solver.call("join", 0.2, ["a"] * size, "")
    late.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(stopped, 0)
    assert solver.call("join", 10, ["a"] * size, "") == "a" * size


def test_a_process_that_never_starts_is_an_error(tmp_path: Path, monkeypatch):
    (tmp_path / "worker.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(solver_process, "START", 0.2)
    process = SolverProcess(tmp_path / "worker.py")
    with pytest.raises(SolverCrashError, match=r"was not ready within 0\.2 s"):
        process.call("join", 10, ["a"], "")


def test_of_many_each_has_its_own_answer(solver: SolverProcess, monkeypatch):
    """One that fails loses itself alone, whatever was asked behind it; the order stays."""
    monkeypatch.setattr(solver_process, "AHEAD", 6)
    acts = ["fine", "die", "die", "fine", "late", "fine", "wrong", *["fine"] * 20, "exit"]
    told = {"late": TimeoutError} | dict.fromkeys(["die", "exit", "wrong"], SolverCrashError)
    results, asked = [], ([act, str(i)] for i, act in enumerate(acts))
    for number, result in enumerate(solver.calls("act", 0.3, asked)):
        try:
            results.append(result())
        except Exception as error:
            results.append(type(error))
        if number % 5 == 0:
            time.sleep(0.05)  # what was asked ahead ends, or dies, meanwhile
    assert results == [told.get(act, f"{act} {i}") for i, act in enumerate(acts)]
    assert solver.call("join", 10, ["a", "b"], "") == "ab"


def test_who_stops_early_leaves_no_reply_behind(solver: SolverProcess):
    for result in solver.calls("act", 10, [["fine", str(i)] for i in range(100)]):
        assert result() == "fine 0"
        break
    assert solver.call("join", 10, ["a"], "") == "a"
    much = ["ab" * 300_000]  # more than a pipe holds, both ways
    assert [r() for r in solver.calls("join", 20, [much] * 9, "-")] == much * 9


def test_an_interrupt_leaves_no_reply_behind(solver: SolverProcess):
    def interrupt(*_):
        raise KeyboardInterrupt

    before, start = signal.signal(signal.SIGALRM, interrupt), time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            solver.call("wait", 60, ["60"])
        assert time.perf_counter() - start < 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert solver.call("join", 10, ["b"], "") == "b"


def test_a_missing_solver_is_named_until_it_is_there(
    solver: SolverProcess, monkeypatch: pytest.MonkeyPatch
):
    solver.stop()
    monkeypatch.setenv("NO_SOLVER", "1")
    for _ in range(2):
        with pytest.raises(MissingSolverError, match="pip install it"):
            solver.call("join", 10, ["a"], "")
    monkeypatch.delenv("NO_SOLVER")
    solver.stop()
    assert solver.call("join", 10, ["a"], "") == "a"


def test_a_fork_gets_its_own_process(solver: SolverProcess):
    solver.call("nothing", 10, [])
    parents = solver._process.pid
    child = os.fork()
    if child == 0:
        solver.call("nothing", 10, [])
        other = solver._process.pid
        solver.stop()
        os._exit(0 if other != parents else 1)
    assert os.waitpid(child, 0)[1] == 0
    solver.call("nothing", 10, [])
    assert solver._process.pid == parents


def test_threads_share_it(solver: SolverProcess):
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(
            target=lambda i=i: answers.update({i: solver.call("join", 10, [str(i)] * 2, "")})
        )
        for i in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {i: f"{i}{i}" for i in range(20)}
