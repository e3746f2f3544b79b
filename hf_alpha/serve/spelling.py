"""Requests are spelled in processes of their own.

That takes milliseconds, or seconds where a request is large, and Python does one thing at a time:
so no request holds the others.
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

SMALL = 2**16
"""Bytes of a request that waits for no larger one: those have processes of their own."""
SECONDS = 20.0
"""Of a processor, for a request."""
PROCESSES = max(2, min(4, os.cpu_count() or 2))

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

    def __init__(self, names: CanonicalNames, transport: Any):
        super().__init__(names, transport)
        self.spelled, self.undescribed = 0, set[str]()
        self._pools: dict[bool, ProcessPoolExecutor] = {}

    async def __aenter__(self) -> "SpellingTransport":
        self._pools = {is_small: _pool(self.names) for is_small in (True, False)}
        await asyncio.to_thread(self._pools[True].submit(os.getpid).result)  # one has started
        return self

    async def aclose(self) -> None:
        """End the processes, and close what sends requests."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        await super().aclose()

    async def _spell(self, data: bytes) -> Sent:
        is_small = len(data) <= SMALL
        pool = self._pools[is_small]
        try:
            sent = await asyncio.get_running_loop().run_in_executor(pool, _spell, data)
        except BrokenProcessPool:
            if self._pools[is_small] is pool:
                self._pools[is_small] = _pool(self.names)
            raise Refusal(500, "the process that spelled this request ended") from None
        except TimeoutError:
            told = f"to spell this request takes more than {SECONDS:g} seconds: send a shorter one"
            raise Refusal(400, told) from None
        self.spelled += 1
        if len(self.undescribed) < self.MOST_NAMES:
            self.undescribed |= sent.undescribed
        return sent


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
    signal.signal(signal.SIGPROF, _late)
    threading.Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _late(*_: Any) -> None:
    raise TimeoutError


def _spell(data: bytes) -> Sent:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return spell(_names, data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
