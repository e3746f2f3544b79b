"""Formulas as clauses, against truth tables and against py-aiger."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.tasks import get_task, truth_table
from hf_alpha.tasks.propositional import sat
from hf_alpha.tasks.propositional.sampler import FormulaSampler

TASK = get_task("propositional")
NAMES = TASK.default_symbols(20)
FORMULAS = st.builds(
    lambda seed, size, count, constants: FormulaSampler(
        tuple(NAMES[:count]), 0.2 if constants else 0.0
    ).sample(random.Random(seed), size),
    st.integers(0, 2**32),
    st.integers(4, 60),
    st.integers(2, 8),
    st.booleans(),
)


def table_of(tokens):
    tables = truth_table.leaf_tables(TASK.symbols_in(tokens))
    return truth_table.evaluate(tokens, tables, tables["1"]), tables["1"]


@given(FORMULAS)
@settings(max_examples=300, deadline=None)
def test_formulas_hold_where_their_tables_say(tokens):
    table, full = table_of(tokens)
    assert sat.is_satisfiable(tokens) == (table != 0)
    assert sat.implies(tokens, {}) == (table == full)


@given(FORMULAS, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_partial_assignments_imply_what_their_tables_say(tokens, seed):
    rng = random.Random(seed)
    given_values = {name: rng.random() < 0.5 for name in NAMES[:10] if rng.random() < 0.5}
    free = [s for s in TASK.symbols_in(tokens) if s not in given_values]
    tables = truth_table.leaf_tables(free)
    fixed = {name: tables["1"] if value else 0 for name, value in given_values.items()}
    implied = truth_table.evaluate(tokens, {**fixed, **tables}, tables["1"]) == tables["1"]
    assert sat.implies(tokens, given_values) == implied


@given(FORMULAS)
@settings(max_examples=300, deadline=None)
def test_nothing_can_be_left_out_of_a_prime_implicant(tokens):
    symbols = TASK.symbols_in(tokens)
    found = sat.prime_implicant(tokens, symbols)
    assert (found is None) == (table_of(tokens)[0] == 0)
    if found is not None:
        assert list(found) == [symbol for symbol in symbols if symbol in found]
        assert sat.implies(tokens, found)
        for symbol in found:
            fewer = {name: value for name, value in found.items() if name != symbol}
            assert not sat.implies(tokens, fewer)


def test_hard_questions_are_left_open():
    names = [f"x{i}" for i in range(50)]
    chain = ["^"] * 49
    twice = ["=", *chain, *names, *chain, *random.Random(0).sample(names, 50)]
    assert sat.implies(twice, {}, conflicts=100) is None
    assert sat.is_satisfiable(["!", *twice], conflicts=100) is None
