"""Rows under other names, and whether answers follow them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha import MarkedText, TextTask
from hf_alpha.answer.base import Answerer, Reply
from hf_alpha.data.keys import canonical_text
from hf_alpha.data.rows import described
from hf_alpha.evaluation.evaluate import run
from hf_alpha.evaluation.renamed import Followed, interval, namings_of
from hf_alpha.logic.propositional import PropositionalTask
from hf_alpha.tasks.checking import Answer

TEXTS = TextTask({"variable": "[a-e]", "person": ["Ann", "Bob", "Cid"]})
RINGS = TextTask({"ring": {"rule": "smiles"}})
FORMULAS = PropositionalTask()
CASES = {
    "texts": (TEXTS, [("Ann adds a to b", "b + a"), ("Bob is Bob", "Bob"), ("c", "c d")]),
    "rings": (RINGS, [("C1CC1C2CC2", "C1CC1"), ("c1ccc2ccccc2c1", "C1CCC2CCCCC2C1")]),
    "formulas": (FORMULAS, [("&a!b", "a1b0"), ("|xy", "x1"), ("!z", "z0")]),
}


def rows_of(task, pairs):
    return described(task, ({"problem": one, "answer": two} for one, two in pairs))


class By(Answerer):
    """Answers by a function of the problem."""

    name = "by"

    def __init__(self, function):
        self.function = function

    def answer(self, task, problems):
        for index, problem in problems.items():
            yield {index: Reply((Answer(self.function(problem)),))}


def followed(task, pairs, answers, count=3):
    rows = rows_of(task, pairs)
    namings = namings_of(task, rows, count)
    known = {row["problem"]: row["answer"] for row in rows}
    known |= {naming.row["problem"]: naming.row["answer"] for naming in namings}
    before, after = (
        run(By(lambda problem: answers(known[problem], problem)), task, some, progress=False)
        for some in (rows, [naming.row for naming in namings])
    )
    return Followed.of(task, namings, before.records, after.records)


@pytest.mark.parametrize("case", CASES)
def test_answers_that_follow_the_names_are_right_and_unchanged(case):
    task, pairs = CASES[case]
    found = followed(task, pairs, lambda target, _: target)
    assert (found.rows, found.right_before, found.changed) == (len(pairs), len(pairs), 0)
    assert len(pairs) < found.asked == found.right <= 3 * len(pairs)
    assert f"{found}".startswith("100.0 % (") and ", in 0 rows" in f"{found}"


def test_answers_that_stay_as_they_were_have_changed():
    def first(target, problem):
        return "b + a" if problem.startswith(("Ann", "Bob", "Cid")) else "none"

    found = followed(TEXTS, [("Ann adds a to b", "b + a"), ("nobody", "none"), ("c", "d")], first)
    assert found.rows == 2, "a row without names is not asked again"
    assert found.right_before == 1 and found.rows_changed == 1
    assert 0 < found.changed <= 3 and found.right == 3 - found.changed < 3


def test_the_spelling_of_an_answers_own_names_does_not_matter():
    def spelled(target, problem):
        return "C7CC7" if problem.startswith("C1") else "C1CC1"

    assert followed(RINGS, [("C1CC1C2CC2", "C1CC1")], spelled).changed == 0
    cut = followed(RINGS, [("C1CC1C2CC2", "C1CC1")], lambda *_: "C1CC1C2")
    assert cut.changed == 0, "a ring that is not closed is no name"


@given(st.lists(st.text("abcde AnBobCid+", max_size=12), min_size=1, max_size=4), st.integers(0, 9))
def test_namings_are_renamings_of_rows(texts, seed):
    rows = rows_of(TEXTS, [(text or "a", text[::-1]) for text in texts])
    namings = namings_of(TEXTS, rows, 2, seed)
    assert all(naming.row != rows[naming.index] for naming in namings)
    for naming in namings:
        assert len({*naming.table.values()}) == len(naming.table)
        texts = naming.row["problem"], rows[naming.index]["problem"]
        assert len({canonical_text(text, TEXTS.finder) for text in texts}) == 1
    assert namings == namings_of(TEXTS, rows, 2, seed)


def test_names_that_a_column_lists_are_marked_in_the_new_rows_too():
    task = TextTask({"person": {"column": "who"}})
    texts = [
        ("Ann met Bob", [(0, 3, "person"), (8, 11, "person")]),
        ("Bo is in May", [(0, 2, "person")]),
    ]
    rows = rows_of(task, [(MarkedText(*text), "Ann") for text in texts])
    for naming in namings_of(task, rows, 2):
        problem = naming.row["problem"]
        names = [problem[span.start : span.stop] for span in problem.spans]
        kept = rows[naming.index]["problem"]
        old = [kept[span.start : span.stop] for span in kept.spans]
        assert names == [naming.table.get(("person", name), name) for name in old] != old
        assert problem.endswith("May") == (naming.index == 1)


def test_intervals_are_wilsons():
    """As the book has them: Agresti and Coull 1998."""
    for share, count, low, high in [
        (0, 10, 0, 0.2775),
        (0.5, 10, 0.2366, 0.7634),
        (1, 20, 0.8389, 1),
    ]:
        assert interval(share, count) == pytest.approx((low, high), abs=1e-4)
