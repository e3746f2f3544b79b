"""A task whose targets kill worker processes; in a module that these can import."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from hf_alpha.logic.propositional import PropositionalTask


class DeadlyTargets(PropositionalTask):
    """Each problem kills a worker, which leaves a file; one of four tokens waits for two deaths."""

    def __init__(self, deaths: Path):
        self.deaths, self.survivor = deaths, os.getpid()

    def target_of(self, tokens: Sequence[str], method: str | None = None) -> str | None:
        if os.getpid() != self.survivor:
            (self.deaths / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        while len(tokens) == 4 and len(list(self.deaths.iterdir())) < 2:
            time.sleep(0.01)
        return super().target_of(tokens, method)
