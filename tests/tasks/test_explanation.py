import random

from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import get_task
from hf_alpha.tasks.explanation import MAX_LABEL, MAX_ROWS, Explanation, TableRow, subformulas
from hf_alpha.tasks.ltl.grammar import LTL

TASK = get_task("ltl")
CELLS = st.sampled_from([True, False, None])


def slow_subformulas(tokens: list[str]) -> set[tuple[str, ...]]:
    """Every slice that is a formula, slices by trying them all."""
    slices = set()
    for start in range(len(tokens)):
        for end in range(start + 1, len(tokens) + 1):
            try:
                LTL.format(tokens[start:end])
            except FormulaError:
                continue
            slices.add(tuple(tokens[start:end]))
            break
    return slices - {("0",), ("1",)}


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_every_subformula_is_there_once_and_the_whole_is_last(seed, size):
    tokens = TASK.draw(random.Random(seed), size, "abc", constant_priority=1.0)
    rows = subformulas(LTL, tokens)
    slices = [tuple(canonical) for _, canonical in rows]
    assert set(slices) == slow_subformulas(tokens) | {tuple(tokens)}
    assert len(slices) == len(set(slices)) and slices[-1] == tuple(tokens)
    assert [len(x) for x in slices] == sorted(map(len, slices))
    for label, canonical in rows:
        assert LTL.parse(label, "infix") == canonical


def test_operators_stay_as_they_were_written():
    written = LTL.read("G(request -> F grant) & request")
    labels, formulas = zip(*subformulas(LTL, written), strict=True)
    assert labels == (
        "request", "grant", "F grant", "request -> F grant", "G (request -> F grant)",
        "G (request -> F grant) & request",
    )  # fmt: skip
    assert formulas[2] == ["U", "1", "grant"]


def test_long_formulas_have_the_rows_nearest_to_the_whole():
    rows = subformulas(LTL, ["X"] * 2_000 + ["a"])
    assert len(rows) == MAX_ROWS
    assert [len(tokens) for _, tokens in rows] == list(range(2_002 - MAX_ROWS, 2_002))


@given(st.lists(st.tuples(st.text(min_size=1), CELLS, CELLS), min_size=1), st.sampled_from([0, 1]))
def test_a_table_has_a_line_for_each_row(drawn, loop):
    rows = tuple(TableRow(label, (one, two)) for label, one, two in drawn)
    explanation = Explanation(("A note.",), ("1", "2"), rows, loop)
    signs = [[{True: "1", False: "0", None: "?"}[x] for x in row.cells] for row in rows]
    if not any(character in label for label, *_ in drawn for character in "\r\n\t"):
        lines = explanation.text().split("\n")
        assert lines[0] == "A note." and len(lines) == 2 + len(rows)
        assert [[line.split()[-3 + loop], line.split()[-1]] for line in lines[2:]] == [
            [one, two] if loop else ["|", two] for one, two in signs
        ] or loop


def test_the_loop_and_the_values_are_marked():
    rows = (TableRow("<b>x</b>", (True, None)), TableRow("\x1b[31m", (False, True)))
    explanation = Explanation(("Why & how.",), ("1", "2"), rows, loop=1)
    assert explanation.text().split("\n") == [
        "Why & how.",
        "           1 | 2",
        "<b>x</b>   1 | ?",
        r"\x1b[31m   0 | 1",
    ]
    (line,) = (
        Explanation((), ("1",), (TableRow(f"(a{'b' * 5_000}c)", (True,)),)).text().split("\n")[1:]
    )
    assert line.startswith("(abb") and "b … b" in line and "bc)   " in line
    assert len(line) < MAX_LABEL + 6
    assert Explanation(("No table.",)).text() == "No table."
