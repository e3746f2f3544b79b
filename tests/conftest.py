"""Shared fixtures. No test reaches the real Hub: the address of the loopback stub is set here,
before huggingface_hub is imported (it reads its environment once), with a cache of its own."""

import gc
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest
from hub_stub import HubStub
from hypothesis import settings

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for benchmarks.studies, at the end
_STUB = HubStub()
_HF_HOME = tempfile.TemporaryDirectory(prefix="hf_alpha_tests_")
os.environ.update(_STUB.environment(_HF_HOME.name))
os.environ["HF_ALPHA_CACHE"] = f"{_HF_HOME.name}/hf_alpha"
for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ.pop(_name, None)  # of whoever runs the tests: the stub is no Hub to be spared
os.environ.setdefault("MPLBACKEND", "Agg")
gc.set_threshold(50_000, 10, 10)  # looking for garbage took a tenth of the time, at 700
gc.disable()  # until all is collected: what is imported stays
# No deadline: a case may wait for a busy machine.
settings.register_profile("usual", deadline=None, max_examples=25)
settings.register_profile("long", deadline=None, max_examples=1000)  # --hypothesis-profile long
settings.load_profile("usual")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is slow
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what a test with `quick_cases` leaves to the slow run."""
    cases = Counter[str]()
    for item in items:
        for mark in item.iter_markers("quick_cases"):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > mark.args[0]:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage from now on, and start the process that others are forked from: it imports
    what all kinds of them need, where the first kind would leave the others to import it each."""
    gc.enable()
    forked = ("hf_alpha.logic.drawing.chunk", "hf_alpha.serve.reading", "hf_alpha.serve.spelling")
    if any("/serve/" in item.nodeid or "/drawing/" in item.nodeid for item in session.items):
        forkserver.set_forkserver_preload([*forked])
        forkserver.ensure_running()


@pytest.fixture(scope="module", autouse=True)
def _frozen_modules() -> None:
    """What is imported by now stays, and no collection of garbage looks through it again: there is
    one wherever a trainer is made, and it would take longer than the steps of a small model."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    """What `quickstart` sets for its process holds for no other test: sums would differ."""
    torch = sys.modules.get("torch")
    before = torch and torch.get_num_threads()
    yield
    if torch and torch.get_num_threads() != before:
        torch.set_num_threads(before)


@pytest.fixture(scope="session")
def _started_stub() -> Iterator[HubStub]:
    _STUB.start()
    yield _STUB
    _STUB.close()


@pytest.fixture
def hub(_started_stub: HubStub) -> HubStub:
    """The loopback Hub, empty. In-process clients already talk to it; for a process of its own,
    start it with `{**os.environ, **hub.environment(<fresh folder>)}`."""
    _started_stub.repos.clear()
    _started_stub.blobs.clear()
    return _started_stub


@pytest.fixture
def fresh_compiler():
    """No compiled code of other tests: models that differ in settings alone share a limit."""
    import torch._dynamo

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def readings(monkeypatch) -> list[str]:
    """The texts that grammars read from now on, as often as they do; none was read before."""
    from hf_alpha.modeling.grammar import Grammar
    from hf_alpha.tasks.base import _read_formula

    texts: list[str] = []
    read, inner = Grammar.read, []

    def noted(grammar: Grammar, text: str, notation: str | None = None) -> list[str]:
        if not inner:  # to detect a notation, `read` calls itself
            texts.append(text)
        inner.append(text)
        try:
            return read(grammar, text, notation)
        finally:
            inner.pop()

    _read_formula.cache_clear()
    monkeypatch.setattr(Grammar, "read", noted)
    return texts
