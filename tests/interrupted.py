"""Runs of `generate` in processes of their own that a signal ends or stops at a given moment.

Processes are forked from one that has imported the package, so that each starts at once.
"""

import os
import sys
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import Signals
from threading import RLock
from typing import Any

from tqdm import tqdm

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["hf_alpha.logic.drawing.generate"])


def start(
    moment: tuple[str, str, int], number: Signals, folder: Path, settings: dict[str, Any]
) -> BaseProcess:
    """Start a run that sends itself a signal at a moment.

    Args:
        moment: an audit event, a part of its arguments, and at which of these events.
        number: the signal.
    """
    process = FORKS.Process(target=_run, args=(moment, number, folder, settings))
    process.start()
    return process


def _run(
    moment: tuple[str, str, int], number: Signals, folder: Path, settings: dict[str, Any]
) -> None:
    from hf_alpha.logic.drawing.generate import generate

    event, argument, count = moment

    def watch(seen: str, arguments: tuple) -> None:
        nonlocal count
        if seen == event and argument in str(arguments):
            count -= 1
            if not count:
                os.kill(os.getpid(), number)

    sys.addaudithook(watch)
    tqdm.set_lock(RLock())  # its own is for processes, and outlives one that is killed
    generate("propositional", folder, **settings, progress=False)


__all__ = ["start"]
