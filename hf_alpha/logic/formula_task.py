"""What tasks share whose problems are formulas, drawn by a sampler."""

import logging
import random
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from hf_alpha.modeling.grammar import Grammar
from hf_alpha.tasks.base import DrawnTask
from hf_alpha.tasks.solver_process import SolverCrashError

from .sampling import Sampler

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class FormulaTask(DrawnTask):
    """A task whose problems are formulas, drawn by a sampler of `sampling`."""

    grammar: ClassVar[Grammar]
    sampler: ClassVar[type[Sampler]]

    def is_feasible(
        self, size: int, num_symbols: int, exactly: bool = False, constant_priority: float = 0.0
    ) -> bool:
        sampler = self.sampler(tuple(self.default_symbols(num_symbols)), constant_priority)
        return sampler.is_feasible(size, max(1, num_symbols) if exactly else 1)

    def draw(
        self,
        rng: random.Random,
        size: int,
        symbols: Sequence[str],
        exactly: bool = False,
        constant_priority: float = 0.0,
    ) -> list[str]:
        """Draw a formula of exactly `size` tokens; `sampling` describes the distribution."""
        sampler = self.sampler(tuple(symbols), constant_priority)
        return sampler.sample_exactly(rng, size) if exactly else sampler.sample(rng, size)


def solver_target(ask: Callable[[], Answer | None], tokens: Sequence[str]) -> Answer | None:
    """Take a target from a solver; where it fails or runs out of time, None and a warning."""
    try:
        return ask()
    except (TimeoutError, SolverCrashError) as error:
        excerpt = " ".join(tokens[:50]) + (" ..." if len(tokens) > 50 else "")
        logger.warning("no target for a formula of %d tokens, %s: %s", len(tokens), error, excerpt)
        return None
