"""What a solver alone makes of a problem."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """What a solver alone makes of a problem: an answer, a proof that there is none, or neither.

    Attributes:
        by: the solver that decided, or those that gave up.
        answer: that the solver found; None without one.
        unsatisfiable: it is proved that no answer is right.
        core: parts of an unsatisfiable problem that contradict one another already, as texts;
            empty where there is nothing to choose from.
        reason: why neither is known.
    """

    by: str
    answer: str | None = None
    unsatisfiable: bool = False
    core: tuple[str, ...] = ()
    reason: str | None = None
