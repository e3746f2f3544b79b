import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from reference.ltl import satisfies

from hf_alpha.logic.ltl.grammar import LTL
from hf_alpha.logic.ltl.trace import Trace, cube_step, write_trace
from hf_alpha.tasks import Verdict, get_task

TASK = get_task("ltl")
SYMBOLS = "abc"


def draw_trace(rng: random.Random, known: float) -> Trace:
    """Steps that give each symbol a value with probability `known`."""
    literals = [
        [(name, rng.random() < 0.5) for name in SYMBOLS if rng.random() < known]
        for _ in range(rng.randint(1, 4))
    ]
    return Trace(tuple(map(cube_step, literals)), rng.randrange(len(literals)))


def words_of(trace: Trace, rng: random.Random, rounds: int) -> list[dict[str, bool]]:
    """The letters of a word of a trace that goes so often round the loop: what is open is drawn."""
    unrolled = [*trace.steps, *trace.steps[trace.loop :] * (rounds - 1)]
    letters = []
    for step in unrolled:
        negated = {name for sign, name in pairwise(step) if sign == "!"}
        letters.append(
            {name: name not in negated if name in step else rng.random() < 0.5 for name in SYMBOLS}
        )
    return letters


def holds_at(tokens: list[str], letters: list[dict[str, bool]], loop: int, step: int) -> bool:
    """Whether a word satisfies a formula from a step on, by the textbook."""
    names = [{name for name in SYMBOLS if letter[name]} for letter in letters]
    return satisfies(["X"] * step + tokens, names, loop)


def rows_of(explanation) -> dict[str, tuple[bool | None, ...]]:
    return {row.label: row.cells for row in explanation.rows}


@given(st.integers(0, 2**32), st.integers(1, 25), st.sampled_from([0.5, 0.9, 1.0]))
def test_cells_are_what_the_textbook_says(seed, size, known):
    """Of every word of the trace where it is right or open, of one word where it is wrong."""
    rng = random.Random(seed)
    formula = TASK.sample(rng, size, SYMBOLS, constant_priority=1.0)
    trace = draw_trace(rng, known)
    explanation = TASK.explain(formula, write_trace(trace))
    verdict = TASK.check(formula, write_trace(trace), solver="lasso")
    whole = explanation.rows[-1].cells[0]
    assert whole is {Verdict.correct: True, Verdict.wrong: False, Verdict.undecided: None}[verdict]
    assert len(explanation.columns) == len(explanation.rows[0].cells)
    if len(explanation.columns) == len(trace.steps) and "this word" not in explanation.notes[0]:
        assert explanation.loop == trace.loop
        for rounds in (1, 2, 3):
            letters = words_of(trace, rng, rounds)
            _assert_cells(explanation, letters, trace.loop)
    else:
        cells = rows_of(explanation)
        letters = [
            {name: bool(cells.get(name, [0] * 99)[step]) for name in SYMBOLS}
            for step in range(len(explanation.columns))
        ]
        assert _is_word_of(letters, trace, [name for name in SYMBOLS if name in cells])
        _assert_cells(explanation, letters, explanation.loop)


def _assert_cells(explanation, letters, loop) -> None:
    for row in explanation.rows:
        for step, cell in enumerate(row.cells):
            if cell is not None:
                assert cell == holds_at(LTL.parse(row.label, "infix"), letters, loop, step)


def _is_word_of(letters: list[dict[str, bool]], trace: Trace, names: list[str]) -> bool:
    """Whether letters fit the trace's steps, whose loop may be gone round twice."""
    steps = [*trace.steps, *trace.steps[trace.loop :]][: len(letters)]
    assert len(letters) in (len(trace.steps), 2 * len(trace.steps) - trace.loop)
    for step, letter in zip(steps, letters, strict=True):
        for sign, name in zip(("", *step), step, strict=False):
            if name in names and letter[name] != (sign != "!"):
                return False
    return True


def test_a_right_answer_as_a_table():
    explanation = TASK.explain("G(request -> F grant) & F request", "request ; { grant }")
    assert explanation.text().split("\n") == [
        "Every word of the trace satisfies the formula: it is true at step 1.",
        "Step 2 is repeated forever.",
        "1 is true, 0 false, ? depends on what the trace leaves open.",
        "                                     1 | 2",
        "request                              1 | ?",
        "grant                                ? | 1",
        "F grant                              1 | 1",
        "F request                            1 | ?",
        "request -> F grant                   1 | 1",
        "G (request -> F grant)               1 | 1",
        "G (request -> F grant) & F request   1 | ?",
    ]


def test_a_step_may_say_more_than_single_values():
    """`a | b` gives neither a value; `(a & b) | (a & !b)` gives a one."""
    table = rows_of(TASK.explain("a | X b", "{|&ab&a!b}"))
    assert table["a"] == (True,) and table["b"] == (None,)
