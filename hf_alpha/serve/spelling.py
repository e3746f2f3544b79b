"""Large requests are spelled in processes of their own.

That may take seconds, and Python does one thing at a time: so no request holds the others.
"""

import asyncio
import logging
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any

from hf_alpha.alias.transport import CanonicalTransport, Sent, spell
from hf_alpha.modeling.canonical_names import CanonicalNames
from hf_alpha.serve.http import LOGGER
from hf_alpha.serve.requests import Refusal

SMALL = 2**13
"""Bytes of a request that is spelled at once, within milliseconds."""
SECONDS = 20.0
"""For a request."""
PROCESSES = max(2, min(8, os.cpu_count() or 2))

_names: CanonicalNames
"""Of a process that spells."""


class SpellingTransport(CanonicalTransport):
    """A transport that holds nobody else while it spells a request.

    Attributes:
        spelled: how many requests were.
        undescribed: names of tools and parameters that nothing describes, at most `MOST_NAMES`.
    """

    MOST_NAMES = 10_000
    logger = logging.getLogger(LOGGER)

    def __init__(self, names: CanonicalNames):
        super().__init__(names)
        self.spelled, self.undescribed = 0, set[str]()
        self._pool: ProcessPoolExecutor | None = None

    async def __aenter__(self) -> "SpellingTransport":
        self._pool = _pool(self.names)
        return self

    async def aclose(self) -> None:
        """End the processes, and close what sends requests."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        await super().aclose()

    async def _spell(self, data: bytes) -> Sent | None:
        if len(data) <= SMALL or self._pool is None:
            sent = spell(self.names, data)
        else:
            sent = await self._spell_elsewhere(self._pool, data)
        if sent is not None:
            self.spelled += 1
            if len(self.undescribed) < self.MOST_NAMES:
                self.undescribed.update(sent.undescribed)
        return sent

    async def _spell_elsewhere(self, pool: ProcessPoolExecutor, data: bytes) -> Sent | None:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, _spell, data)
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = _pool(self.names)
            raise Refusal(500, "the process that spelled this request ended") from None
        except TimeoutError:
            told = f"to spell this request took more than {SECONDS:g} seconds: send a shorter one"
            raise Refusal(400, told) from None


def _pool(names: CanonicalNames) -> ProcessPoolExecutor:
    """Return processes that spell; they start when they are needed."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(PROCESSES, context, _begin, (names,))


def _begin(names: CanonicalNames) -> None:
    """Make ready a process that spells, which ends with the one that asks it."""
    global _names
    _names = names
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server to handle
    signal.signal(signal.SIGALRM, _late)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _late(*_: Any) -> None:
    raise TimeoutError


def _spell(data: bytes) -> Sent | None:
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return spell(_names, data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
