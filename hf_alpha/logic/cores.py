"""What of a formula without an answer contradicts itself already, within so many seconds."""

import time
from collections.abc import Callable, Sequence
from itertools import chain

from hf_alpha.modeling.grammar import Grammar

from .formulas import subformula_ends


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
    writer = grammar.as_written()
    return tuple(writer.format(parts[number], "infix") for number in numbers)
