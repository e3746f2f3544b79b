"""Answers of limited size, and the same under other names."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hf_alpha.demo.choices import (
    MAX_CHARACTERS,
    MAX_TOKENS,
    other_names,
    page_choices,
    renamed_text,
)
from hf_alpha.resources import released_model
from hf_alpha.tasks import get_task

LTL, SAT = "ltl-relational", "propositional-relational"
LEARNED = ("ltl-learned-small", "propositional-learned-small")
"""Offered beside these in the fixture."""


def test_the_released_models_and_their_solvers_are_offered(choices):
    offered = {name: choice.task.name for name, choice in choices.items()}
    assert {name: task for name, task in offered.items() if name not in LEARNED} == {
        LTL: "ltl",
        SAT: "propositional",
        "copying-relational-small": "copying",  # which has no solver
        "ltl-solver": "ltl",
        "propositional-solver": "propositional",
    }


def test_a_solver_answers_alone_or_behind_a_model_that_is_wrong(choices):
    solution = choices["ltl-solver"].solve("G(a -> F b) & F a", answers=10)
    assert solution.found_by == "bounded search" and len(solution.answers) == 1
    hard = "a & X(b U !c) & G(c -> F d) & F G !b & X X a & X X X !a & G F d"
    solution = choices["ltl-learned-small"].solve(hard)
    assert solution.answers[0][1].is_correct and solution.found_by == "bounded search"


@pytest.mark.parametrize("asked", [SAT, "propositional-solver"])
def test_unsatisfiable_is_said_in_place_of_answers_with_what_contradicts(choices, asked):
    solution = choices[asked].solve("a & b & !a")
    assert solution.unsatisfiable and solution.answers == [] and solution.error is None
    assert solution.core == ("a", "!a") and solution.found_by == "python-sat"


def test_the_same_answer_under_other_names(choices):
    """Of models that promise it; another may answer differently, and then that is said."""
    renamed = choices[LTL].rename("G(request -> F grant) & F request")
    assert renamed.same is True
    assert renamed.names == {"request": "name1", "grant": "name2"}
    assert renamed.after.problem == "G (name1 -> F name2) & F name1"
    assert renamed.after.answers[0][1].is_correct
    assert choices[SAT].rename("a & !a").same is True  # unsatisfiable under all names
    learned = choices["propositional-learned-small"]
    for problem in ("(a | b) & (!a | c) & !(b & c)", "(z | name1) & !(z & name1)", "b ^ a"):
        renamed = learned.rename(problem)
        (by_hand,) = learned.solve(problem).answers
        (other,) = renamed.after.answers
        expected = learned.task.rename(by_hand[0], renamed.names)
        assert renamed.same is (expected.split() == other[0].split())


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        ("", "the problem is empty"),
        (" \n ", "the problem is empty"),
        ("a &", "the formula ends at character 3 where a name"),
        ("(" * 3_000, "the formula ends at character 3000"),
        ("(" * 1_500 + "a" + ")" * 1_500, None),
        ("a" * (MAX_CHARACTERS + 1), "characters, and this page takes 4,000"),
        ("X " * 10_000 + "a", "characters, and this page takes 4,000"),
        ("X" * (MAX_TOKENS + 1) + "a", "502 tokens, and this page takes 500"),
        ("a <-> " * 7 + "a", "tokens, and this page takes 500"),  # once it is rewritten
        ("a <-> " * 30 + "a", "tokens"),  # so many that it is not rewritten
        ("\ud800", "half"),
    ],
)
def test_bad_problems_get_an_error_that_says_why(choices, problem, error):
    solution = choices[LTL].solve(problem)
    assert (solution.error is None) == (error is None)
    assert error is None or error in solution.error
    if error is not None:
        renamed = choices[LTL].rename(problem)
        assert renamed.before.error == solution.error and renamed.after is None
    assert len(solution.problem) <= MAX_CHARACTERS


def test_what_cannot_be_asked(choices):
    with pytest.raises(FileNotFoundError):
        page_choices(["./runs/nowhere"])
    folder = choices[SAT].place
    with pytest.raises(ValueError, match="two models are called 'propositional-relational'"):
        page_choices([folder, folder])


def test_a_model_of_texts_is_offered_by_its_folder():
    """Its names change places; the check that the package brings judges."""
    own = page_choices([str(released_model("anf-relational"))], device="cpu")
    assert [choice.task.name for choice in own.values()] == ["text"]
    renamed = own["anf-relational"].rename("f ( x , g ( y ) )")
    assert renamed.before.error is None and renamed.before.answers
    assert renamed.names and renamed.same in (True, False)
    assert sorted(renamed.names) == sorted(renamed.names.values())
    assert "no two names" in own["anf-relational"].rename("f & f").after.error


FORMULAS = [get_task("ltl"), get_task("propositional")]


@given(st.sampled_from(FORMULAS), st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 80))
def test_a_formula_with_other_names_is_the_same_formula(task, seed, size, count):
    rng, count = random.Random(seed), min(count, size)
    assume(task.is_feasible(size, count))
    symbols = [*task.default_symbols(count)[1:], "name1"]
    problem = task.read(task.sample(rng, size, symbols))
    names = other_names(task, problem)
    text = renamed_text(task, problem, problem, names)
    assert task.canonical(text, "renaming") == task.canonical(problem, "renaming")
    assert list(names) == list(problem.symbols) and len({*names.values()}) == len(names)
    assert {*names.values()}.isdisjoint(problem.symbols)
    assert task.symbols_of(text) == [names[symbol] for symbol in problem.symbols]


def test_names_of_a_text_change_places_within_their_class():
    rules = {"variable": {"pattern": "[a-z][0-9]*"}, "function": ["F", "G"]}
    task = get_task("text").configured(symbols=rules)
    problem = task.read("F x G y z max")
    names = other_names(task, problem)
    assert names == {"F": "G", "G": "F", "x": "y", "y": "z", "z": "x"}
    assert renamed_text(task, problem, problem, names) == "G y F z x max"
    assert renamed_text(task, problem, "z F new", names) == "x G new"
    with pytest.raises(ValueError, match="no two names of one class"):
        other_names(task, task.read("F x"))
