"""A task whose targets kill the worker; in a module that worker processes can import."""

import multiprocessing
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from hf_alpha.tasks.propositional import PropositionalTask


class DeadlyTargets(PropositionalTask):
    """A formula of four tokens kills the worker that gets it, as often as the file says."""

    def __init__(self, deaths_left: Path):
        self.deaths_left = deaths_left

    def target_of(self, tokens: Sequence[str], method: str | None = None) -> str | None:
        if len(tokens) == 4 and multiprocessing.parent_process() is not None:
            left = int(self.deaths_left.read_text())
            if left:
                self.deaths_left.write_text(str(left - 1))
                os.kill(os.getpid(), signal.SIGKILL)
        return super().target_of(tokens, method)
