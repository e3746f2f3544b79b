"""Other names for a problem: as many, none of the old ones, and nothing else changes."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hf_alpha.demo.renaming import renamed_problem, renamed_text
from hf_alpha.tasks import get_task

FORMULAS = [get_task("ltl"), get_task("propositional")]


@given(st.sampled_from(FORMULAS), st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 80))
@settings(max_examples=100, deadline=None)
def test_a_formula_with_other_names_is_the_same_formula(task, seed, size, count):
    rng, count = random.Random(seed), min(count, size)
    assume(task.is_feasible(size, count))
    problem = task.read(task.sample(rng, size, task.default_symbols(count)))
    text, names = renamed_problem(task, problem, rng)
    assert task.canonical(text, "renaming") == task.canonical(problem, "renaming")
    assert list(names) == list(problem.symbols) and len({*names.values()}) == len(names)
    assert {*names.values()}.isdisjoint(problem.symbols)
    assert task.symbols_of(text) == [names[symbol] for symbol in problem.symbols]


def test_derived_operators_and_glued_letters_keep_their_form():
    task = get_task("ltl")
    text, names = renamed_problem(task, task.read("GFa -> X(b W !a)"), random.Random(0))
    assert text == f"G F {names['a']} -> X ({names['b']} W !{names['a']})"


def test_many_names_are_numbered():
    task = get_task("propositional")
    problem = task.read(" & ".join(f"p{i}" for i in range(90)))
    _, names = renamed_problem(task, problem, random.Random(0))
    assert len({*names.values()} | {*names}) == 180


def test_names_of_a_text_change_places_within_their_class():
    rules = {"variable": {"pattern": "[a-z][0-9]*"}, "function": ["F", "G"]}
    task = get_task("text").configured(symbols=rules)
    problem = task.read("F x G y z max")
    text, names = renamed_problem(task, problem, random.Random(0))
    assert {*names} == {"F", "G", "x", "y", "z"}
    assert names["F"] == "G" and names["G"] == "F"
    assert all(names[name] in set("xyz") - {name} for name in "xyz")
    assert text == " ".join(names.get(word, word) for word in ["F", "x", "G", "y", "z", "max"])
    assert renamed_text(task, problem, "z F new", names) == f"{names['z']} G new"
    with pytest.raises(ValueError, match="no two names of one class"):
        renamed_problem(task, task.read("F x"), random.Random(0))
