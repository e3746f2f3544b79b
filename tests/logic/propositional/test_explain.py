import random

from hypothesis import given
from hypothesis import strategies as st
from reference.propositional import completions, value

from hf_alpha.logic.propositional.notation import PROPOSITIONAL, read_assignment
from hf_alpha.tasks import get_task

TASK = get_task("propositional")
SYMBOLS = "abcde"


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 5))
def test_cells_are_what_all_completions_say(seed, size, kept):
    rng = random.Random(seed)
    problem = TASK.sample(rng, size, SYMBOLS)
    symbols = TASK.symbols_of(problem)
    answer = TASK.random_answer(problem, rng)[: 2 * kept]
    given = read_assignment(answer)
    free = [symbol for symbol in symbols if symbol not in given]
    ways = completions(given, free)
    explanation = TASK.explain(problem, answer)
    for row in explanation.rows:
        tokens = PROPOSITIONAL.parse(row.label, "infix")
        values = [value([*tokens], way) for way in ways]
        assert row.cells[0] is (values[0] if len({*values}) == 1 else None)
        if 0 < len(free) <= 3:
            assert [*row.cells[1:]] == values
        elif len(row.cells) > 1:
            table = {x.label: x.cells[1] for x in explanation.rows}
            assert row.cells[1] == value([*tokens], table)
    whole = explanation.rows[-1].cells
    assert TASK.check(problem, answer).is_correct == (whole[0] is True)
    assert len(free) <= 3 or whole[0] is True or whole[1] is False
    covered = sum(value(PROPOSITIONAL.parse(problem), way) for way in ways)
    if free and whole[0] is None:
        assert explanation.notes[0].startswith(f"{covered} of {len(ways)} completions")


def test_a_partial_answer_as_a_table():
    explanation = TASK.explain("(grant -> idle) ^ c", "c0 grant 0".replace("c0", "c 0"))
    assert explanation.text().split("\n") == [
        "All 2 completions make the formula true.",
        "Without a value: idle.",
        "                      answer   #1   #2",
        "grant                      0    0    0",
        "idle                       ?    1    0",
        "c                          0    0    0",
        "grant -> idle              1    1    1",
        "(grant -> idle) ^ c        1    1    1",
    ]
