"""Why a trace satisfies a formula, or does not: subformulas beside steps."""

from collections.abc import Mapping

from hf_alpha.logic.formulas import MAX_TOKENS, subformulas
from hf_alpha.tasks.explanation import Explanation, TableRow
from hf_alpha.tasks.problem import Problem

from . import lasso
from .grammar import LTL_OF_SOLVERS, for_solvers
from .trace import Trace, read_trace

MAX_COLUMNS = 40
"""Columns of a table; a longer trace gets none."""

LEGEND = "1 is true, 0 false, ? depends on what the trace leaves open."


def explain(problem: Problem, answer: str) -> Explanation:
    """Explain an answer by the value of each subformula at each step.

    A cell is 1 if the subformula holds from that step on in every word of the trace, 0 if it does
    in none, as far as the three-valued evaluation of `lasso` finds out, else `?`. Where the formula
    is false in one word that was found, the table is that of this word, which goes twice round the
    loop if the two rounds differ.
    """
    trace = read_trace(answer)
    if trace is None:
        return Explanation(("The answer is not a trace: steps separated by ; with a loop in {}.",))
    for number, step in enumerate(trace.steps, start=1):
        if lasso.is_contradictory(step):
            return Explanation((f"Step {number} contradicts itself, so the trace has no word.",))
    steps = 2 * len(trace.steps) - trace.loop
    tokens = for_solvers(problem)
    if steps > MAX_COLUMNS or max(len(problem.written), len(tokens)) > MAX_TOKENS:
        return Explanation(("Formula or trace is too long for a table.",))
    shown, conclusion = trace, _CONCLUSIONS[lasso.decide(tokens, trace)]
    table = _rows(problem, lasso.leaves(problem.symbols, trace), trace)
    if table[-1].cells[0] is None and (word := lasso.counterexample(tokens, trace)):
        shown = word
        table = _rows(problem, lasso.leaves(problem.symbols, word), word)
        conclusion = "The trace allows this word, in which the formula is false at step 1."
    columns = tuple(str(number) for number in range(1, len(shown.steps) + 1))
    legend = (LEGEND,) * any(None in row.cells for row in table)
    notes = (conclusion, _repeated(shown), *legend)
    return Explanation(notes, columns, tuple(table), shown.loop)


_CONCLUSIONS = {
    True: "Every word of the trace satisfies the formula: it is true at step 1.",
    False: "No word of the trace satisfies the formula: it is false at step 1.",
    None: "Step by step it stays open whether every word of the trace satisfies the formula: "
    "a solver compares whole words.",
}


def _rows(problem: Problem, leaves: Mapping[str, lasso.Pair], trace: Trace) -> list[TableRow]:
    steps = len(trace.steps)
    words = lasso.shape(steps, trace.loop, 1)
    rows = []
    for label, tokens in subformulas(LTL_OF_SOLVERS, problem.written):
        must, may = words.evaluate(tokens, leaves)
        cells = tuple(_cell(must >> step & 1, may >> step & 1) for step in range(steps))
        rows.append(TableRow(label, cells))
    return rows


def _cell(must: int, may: int) -> bool | None:
    return None if must != may else bool(must)


def _repeated(trace: Trace) -> str:
    first, last = trace.loop + 1, len(trace.steps)
    if first == last:
        return f"Step {last} is repeated forever."
    return f"Steps {first} to {last} are repeated forever."
