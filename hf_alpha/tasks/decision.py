"""What a solver alone makes of a problem."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from hf_alpha.modeling.grammar import Grammar

from .formulas import as_written, subformula_ends


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


class Clock:
    """Seconds that are left.

    Args:
        seconds: in all.
    """

    def __init__(self, seconds: float):
        self.seconds, self._end = seconds, time.monotonic() + seconds

    def count(self, seconds: float) -> None:
        """Count seconds that passed elsewhere."""
        self._end -= seconds

    @property
    def left(self) -> float:
        """Seconds until the time is up; 0 from then on."""
        return max(0.0, self._end - time.monotonic())


def conjuncts(tokens: Sequence[str], grammar: Grammar) -> list[list[str]]:
    """Return the operands of the outermost `&`s of a formula in prefix order.

    Args:
        tokens: as they were written, so with derived operators.
    """
    ends = subformula_ends(grammar, tokens)
    parts: list[list[str]] = []
    starts = [0]
    while starts:
        start = starts.pop()
        if tokens[start] == "&":
            starts += [ends[start + 1], start + 1]
        else:
            parts.append(list(tokens[start : ends[start]]))
    return parts


def joined(parts: Sequence[Sequence[str]]) -> list[str]:
    """Return the conjunction of formulas in prefix order."""
    return ["&"] * (len(parts) - 1) + list(chain.from_iterable(parts))


def small_core(
    written: Sequence[str], grammar: Grammar, refutes: Callable[[list[str]], bool], clock: Clock
) -> tuple[str, ...]:
    """Return conjuncts of an unsatisfiable formula that are unsatisfiable together, in infix.

    Blocks of conjuncts are left out as long as the rest stays refuted, at first large ones. If
    there is time for all of it, no conjunct of the result can be left out.

    Args:
        written: the formula as it was written, in prefix order.
        grammar: of the solvers that refute it.
        refutes: proves that a formula of its tokens is unsatisfiable; False if it does not.
        clock: when to stop with what is found by then.

    Returns:
        Empty for a formula that is no conjunction.
    """
    parts = conjuncts(written, grammar)
    if len(parts) == 1:
        return ()
    kept = [grammar.rewritten(part) for part in parts]
    numbers = list(range(len(parts)))
    size = len(parts) // 2
    while size and clock.left:
        start = 0
        while start < len(numbers) and clock.left:
            rest = numbers[:start] + numbers[start + size :]
            if rest and refutes(joined([kept[number] for number in rest])):
                numbers = rest
            else:
                start += size
        size //= 2
    writer = as_written(grammar)
    return tuple(writer.format(parts[number], "infix") for number in numbers)
