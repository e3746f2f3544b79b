"""Symbolic lasso traces as text: `a;&ab;{b}`, `request ; { & request grant }`, `a; cycle{a & b}`.

A trace says what has to hold at each step of an infinite word: steps in order, the last ones in
braces and repeated forever. A step is a Boolean formula, and what it leaves open is open at every
visit anew (2601.23169, Appendix C.2; Hahn et al. 2021).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hf_alpha.logic.formulas import fold
from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import NOTATIONS, FormulaError, split_at

from .grammar import LTL

Step = tuple[str, ...]  # canonical prefix tokens of a Boolean formula
Cube = dict[str, bool]  # a conjunction of literals: symbol -> value

TEMPORAL = frozenset({"X", "U"})
SEPARATOR, OPEN, CLOSE = ";", "{", "}"
CYCLE = "cycle"


@dataclass(frozen=True)
class Trace:
    """An infinite symbolic word.

    Attributes:
        steps: one Boolean formula a step, as canonical prefix tokens.
        loop: index of the first step that is repeated; all behind it are repeated too.
    """

    steps: tuple[Step, ...]
    loop: int


def read_trace(text: str, notation: str | None = None) -> Trace | None:
    """Read a trace; None if the text is none.

    Args:
        text: any string.
        notation: how its steps are written: "compact", "prefix" (spaced), "infix" (Spot's, with
            or without the word `cycle` before the brace), or None to detect it: with whitespace
            all steps are prefix or all are infix, without it all are compact or all are infix.

    Raises:
        ValueError: if the notation is unknown.
    """
    if notation is None:
        likely = "prefix" if len(text.split()) > 1 else "compact"
        readings = (read_trace(text, candidate) for candidate in (likely, "infix"))
        return next((trace for trace in readings if trace is not None), None)
    check_known("notation", notation, NOTATIONS)
    text = text.strip()
    head, *loops = split_at(text, OPEN + CLOSE)
    if len(loops) != 2 or text[len(head)] != OPEN or not text.endswith(CLOSE):
        return None
    *prefix, last = split_at(head, SEPARATOR)
    last = last.strip().removesuffix(CYCLE) if notation == "infix" else last
    if last.strip():
        return None
    steps = []
    for part in (*prefix, *split_at(loops[0], SEPARATOR)):
        step = _read_step(part.strip(), notation)
        if step is None:
            return None
        steps.append(step)
    return Trace(tuple(steps), len(prefix))


def write_trace(trace: Trace, notation: str | None = None) -> str:
    """Write a trace as "compact", "prefix" or "infix" (Spot's syntax); None for compact if it fits.

    Raises:
        FormulaError: a name is too long for compact notation.
        ValueError: the notation is unknown.
    """
    check_known("notation", notation, NOTATIONS)
    if notation == "infix":
        steps = [LTL.format(list(step), "infix") for step in trace.steps]
        prefix = "".join(f"{step}; " for step in steps[: trace.loop])
        return f"{prefix}{CYCLE}{{{'; '.join(steps[trace.loop :])}}}"
    tokens = list(trace_tokens(trace))
    if notation is None:
        notation = "compact" if all(len(token) == 1 for token in tokens) else "prefix"
    if notation == "compact" and (long := [token for token in tokens if len(token) > 1]):
        raise FormulaError(f"{long[0]!r} is too long for compact notation: use 'prefix'")
    return ("" if notation == "compact" else " ").join(tokens)


def trace_tokens(trace: Trace) -> Iterator[str]:
    """Give the tokens of a trace in the order in which a model writes them."""
    for index, step in enumerate(trace.steps):
        if index:
            yield SEPARATOR
        if index == trace.loop:
            yield OPEN
        yield from step
    yield CLOSE


def same_trace(one: Trace, other: Trace) -> bool:
    """Whether two traces are equal up to the order of the operands of `&` and `|`."""
    return (one.loop, len(one.steps)) == (other.loop, len(other.steps)) and all(
        left == right or _ordered(left) == _ordered(right)
        for left, right in zip(one.steps, other.steps, strict=True)
    )


def cube_step(cube: Sequence[tuple[str, bool]]) -> Step:
    """Write a conjunction of literals in the given order as a step; `1` if there is none."""
    tokens: list[str] = []
    for index, (symbol, value) in enumerate(cube):
        tokens += ["&"] * (index < len(cube) - 1) + ["!"] * (not value) + [symbol]
    return tuple(tokens) or ("1",)


def read_cube(step: Step) -> Cube | None:
    """Read a step as a conjunction of literals that do not contradict; None if it is none."""
    cube: Cube = {}
    value = True
    for token in step:
        if token == "!" and value:
            value = False
        elif token in ("!", "|", "0"):
            return None
        elif token == "&" or token == "1":
            if not value:
                return None
        elif cube.setdefault(token, value) is not value:
            return None
        else:
            value = True
    return cube


@lru_cache(maxsize=65536)
def _read_step(text: str, notation: str) -> Step | None:
    try:
        tokens = LTL.parse(text, notation)
    except FormulaError:
        return None
    return None if TEMPORAL.intersection(tokens) else tuple(tokens)


def _ordered(step: Step) -> str:
    """Write a step with the operands of each `&` and `|` in alphabetical order."""
    operators = {
        "!": lambda operand: f"! {operand}",
        **{x: lambda *both, x=x: " ".join([x, *sorted(both)]) for x in "&|"},
    }
    return fold(step, operators, str)
