"""Why an assignment is right or wrong: the value of each subformula, and in which completions."""

from collections.abc import Sequence
from itertools import product

from hf_alpha.logic import sat, truth_table
from hf_alpha.logic.formulas import MAX_TOKENS, subformulas
from hf_alpha.tasks.explanation import Explanation, TableRow
from hf_alpha.tasks.problem import Problem

from .notation import PROPOSITIONAL, Assignment, read_assignment

MAX_OPEN = 3
"""Symbols without a value, up to which every completion gets a column."""


def explain(problem: Problem, answer: str) -> Explanation:
    """Explain an answer by the value of each subformula, under it and under its completions.

    In the first column a cell is 1 if the subformula is true under every completion of the answer,
    0 if it is under none, else `?`. Further columns are completions: all of them where at most
    `MAX_OPEN` symbols are without a value, else one that makes the formula false, if there is one.
    """
    assignment = read_assignment(answer)
    if assignment is None:
        return Explanation(("The answer is not an assignment: symbols, each with its value once.",))
    if max(len(problem.written), len(problem.tokens)) > MAX_TOKENS:
        return Explanation(("The formula is too long for a table.",))
    given = {symbol: assignment[symbol] for symbol in problem.symbols if symbol in assignment}
    free = [symbol for symbol in problem.symbols if symbol not in given]
    completions = _completions(problem.tokens, given, free)
    columns = [given, *({**given, **completion} for completion in completions)]
    rows = tuple(
        TableRow(label, tuple(_value(tokens, values) for values in columns))
        for label, tokens in subformulas(PROPOSITIONAL, problem.written)
    )
    notes = _notes(problem.tokens, given, free, rows[-1].cells)
    headings = ("answer", *(f"#{number}" for number in range(1, len(columns))))
    return Explanation(notes, headings, rows)


def _completions(tokens: Sequence[str], given: Assignment, free: list[str]) -> list[Assignment]:
    """Return values of the symbols that are left open: all ways, or one that fails."""
    if not free:
        return []
    if len(free) <= MAX_OPEN:
        return [dict(zip(free, x, strict=True)) for x in product((True, False), repeat=len(free))]
    constants = {symbol: str(int(value)) for symbol, value in given.items()}
    try:
        negated = ["!", *(constants.get(token, token) for token in tokens)]
        failing = sat.prime_implicant(negated, free)
    except sat.GaveUpError:
        failing = None
    return [] if failing is None else [{symbol: failing.get(symbol, False) for symbol in free}]


def _value(tokens: Sequence[str], values: Assignment) -> bool | None:
    """Return what a formula is under all completions; None if they differ, or it is too hard."""
    if sat.implies(tokens, values):
        return True
    return False if sat.implies(["!", *tokens], values) else None


def _notes(
    tokens: Sequence[str], given: Assignment, free: list[str], whole: Sequence[bool | None]
) -> tuple[str, ...]:
    values = {True: "true", False: "false"}
    if not free:
        return (f"Every symbol has a value, and the formula is {values[bool(whole[0])]}.",)
    few = len(free) <= 20
    ways = f"{2 ** len(free):,}" if few else f"2^{len(free)}"
    if whole[0] is not None:
        covered = f"All {ways} completions make the formula {values[whole[0]]}."
    elif (table := truth_table.table_of(tokens, free, given)) is not None:
        covered = f"{table.bit_count():,} of {ways} completions make it true."
    elif False in whole:
        covered = f"Not all of the {ways} completions make the formula true: #1 does not."
    else:
        covered = "Whether all completions make the formula true is too hard to say here."
    valueless = f"Without a value: {', '.join(free)}." if few else f"{len(free)} have no value."
    legend = "1 is true, 0 false, ? depends on the symbols without a value."
    return (covered, valueless, *[legend] * (None in whole))
