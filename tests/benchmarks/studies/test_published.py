import pytest
from tiny_studies import TINY

from benchmarks.studies import published
from benchmarks.studies.published import Published, conjunctions, drawn
from benchmarks.studies.specifications import DWYER, patterns
from hf_alpha.tasks import get_task


@pytest.fixture(autouse=True)
def few(monkeypatch):
    changes = {"SAMPLES": 200, "PER_CELL": 1, "MOST_NAMES": 2, "GRID_LENGTHS": 8}
    for name, value in {**changes, "CONJUNCTIONS": 20}.items():
        monkeypatch.setattr(published, name, value)


def canonical(tokens):
    """None for what is no formula."""
    try:
        return get_task("ltl").canonical(" ".join(tokens))
    except ValueError:
        return None


def test_conjunctions_are_of_patterns_and_can_be_satisfied():
    task = get_task("ltl")
    dwyer = {task.canonical(p["formula"]) for p in patterns() if p["family"] == DWYER}
    formulas = conjunctions()
    assert formulas == conjunctions() and len({*formulas}) == 20
    for formula in formulas:
        tokens = formula.split()
        assert 36 <= len(tokens) <= 126 and len(task.symbols_in(tokens)) <= 5
        assert task.check(formula, task.target(formula)).is_correct
        assert any(canonical(tokens[start:]) in dwyer for start in range(len(tokens))), "its last"


@pytest.mark.parametrize("task", ["propositional", "ltl"])
def test_problems_are_those_that_the_text_describes(task, tmp_path):
    rows = drawn(task, 5, tmp_path)
    assert len(rows) >= 10 and {10 <= row["size"] <= 35 for row in rows} == {True}
    assert max(row["num_symbols"] for row in rows) <= 5
    table = Published()
    row = next(row for row in table.rows(TINY) if row.name == f"{task}-random")
    values = table.measure(row, None, TINY, tmp_path)
    assert values["samples at most 5"] == len(rows)
    assert values["samples grid"] <= 3 * 8
    assert (values.get("samples conjunctions") == 20) == (task == "ltl")
    assert 0 < values["correct at most 10"] < 1
