"""Other names for a problem: as many, none of the old ones, and nothing else changes."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hf_alpha.demo.renaming import other_names, renamed_text
from hf_alpha.tasks import get_task

FORMULAS = [get_task("ltl"), get_task("propositional")]


@given(st.sampled_from(FORMULAS), st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 80))
@settings(max_examples=100, deadline=None)
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


def test_derived_operators_and_glued_letters_keep_their_form():
    task = get_task("ltl")
    problem = task.read("GFa -> X(b W !a)")
    text = renamed_text(task, problem, problem, other_names(task, problem))
    assert text == "G F name1 -> X (name2 W !name1)"


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
