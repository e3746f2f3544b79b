import pytest
from tiny_studies import TINY

from benchmarks.studies import published
from benchmarks.studies.published import Published, drawn
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
