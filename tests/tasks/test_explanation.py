from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.tasks.explanation import MAX_LABEL, Explanation, TableRow

CELLS = st.sampled_from([True, False, None])


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
