import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.tasks import Verdict, get_task

TASK = get_task("copying")
NAMES = ("a", "B", "é", "x1", "request", "grant_2")
STRINGS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=12).map("".join)


def levenshtein(ours: list[str], theirs: list[str]) -> int:
    """The recurrence, row by row."""
    row = list(range(len(theirs) + 1))
    for i, left in enumerate(ours, start=1):
        above, row = row, [i]
        for j, right in enumerate(theirs, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(0, 12), st.booleans())
def test_strings_are_as_asked_for(seed, size, count, exactly):
    symbols = TASK.default_symbols(count)
    if not TASK.is_feasible(size, count, exactly):
        with pytest.raises(ValueError, match=f"no string of length {size} over {count}"):
            TASK.draw(random.Random(seed), size, symbols, exactly)
        return
    tokens = TASK.draw(random.Random(seed), size, symbols, exactly)
    assert tokens == TASK.draw(random.Random(seed), size, symbols, exactly)
    assert len(tokens) == size and set(tokens) <= set(symbols)
    assert not exactly or set(tokens) == set(symbols)
    assert TASK.parse(TASK.write(tokens)) == tokens
    assert TASK.target_of(tokens) == TASK.target(TASK.write(tokens), "copy") == TASK.write(tokens)


@given(STRINGS, STRINGS, st.permutations("abcd"))
def test_distance_is_the_recurrence_and_does_not_care_for_names(problem, answer, permuted):
    distance = TASK.distance(problem, answer)
    assert distance == levenshtein(list(problem), list(answer)) == TASK.distance(answer, problem)
    assert (distance == 0) == (TASK.check(problem, answer) == Verdict.exact)
    renaming = dict(zip("abcd", permuted, strict=True))
    assert TASK.distance(TASK.rename(problem, renaming), TASK.rename(answer, renaming)) == distance
    assert TASK.distance(problem, None) == TASK.distance(problem, "") == len(problem)


@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=6), st.text(max_size=20))
def test_every_answer_gets_a_verdict(tokens, answer):
    problem = TASK.write(tokens)
    assert TASK.parse(problem) == tokens
    for notation in (None, "compact", "prefix"):
        verdict = TASK.check(problem, answer, notation=notation)
        assert verdict in (Verdict.exact, Verdict.wrong, Verdict.malformed)
    assert TASK.check(problem, problem) == Verdict.exact
    assert TASK.distance(problem, answer) >= 0
    drawn = TASK.random_answer(problem, random.Random(0))
    assert TASK.check(problem, drawn) in (Verdict.exact, Verdict.wrong)
    assert len(TASK.parse(drawn)) == len(TASK.parse(problem))
    assert set(TASK.parse(drawn)) <= set(TASK.parse(problem))


@pytest.mark.parametrize(
    ("problem", "answer", "notation", "verdict", "distance"),
    [
        ("abca", "abca", None, "exact", 0),
        ("abca", " a b c a ", None, "exact", 0),
        ("abca", "abca", "prefix", "wrong", 4),
        ("abca", "a b c a", "compact", "malformed", 0),
        ("abca", "abc", None, "wrong", 1),
        ("abca", "", None, "wrong", 4),
        ("abca", "ab a", None, "wrong", 3),
        ("abca", "ab1a", "compact", "malformed", 1),
        ("request grant request", "request grant", None, "wrong", 1),
        ("p26", "p26", "compact", "exact", 0),
        ("p26 a", "p26", None, "wrong", 1),
        ("request grant", "grant", None, "wrong", 1),
    ],
)
def test_verdicts(problem, answer, notation, verdict, distance):
    assert TASK.check(problem, answer, notation=notation) == verdict
    if notation is None:
        assert TASK.distance(problem, answer) == distance


def test_what_cannot_be_read_is_named():
    with pytest.raises(FormulaError, match="the string is empty"):
        TASK.parse("  ")
    with pytest.raises(FormulaError, match=r"token 2, '&', is no name: write letters") as caught:
        TASK.parse("a&b")
    assert caught.value.position == 1
    with pytest.raises(ValueError, match="unknown notation 'infix': choose one of compact"):
        TASK.check("ab", "ab", notation="infix")
    with pytest.raises(ValueError, match="unknown targets 'sort': choose one of copy"):
        TASK.target("ab", "sort")
