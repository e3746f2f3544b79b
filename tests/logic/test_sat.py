"""Formulas as clauses, against truth tables."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.logic import sat, truth_table
from hf_alpha.logic.propositional.sampler import FormulaSampler
from hf_alpha.tasks import get_task

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


def table_of(tokens, values=None):
    """The table of a formula over its symbols without a value, and that of *true*."""
    free = [s for s in TASK.symbols_in(tokens) if s not in (values or {})]
    return truth_table.table_of(tokens, free, values), truth_table.full_table(len(free))


@given(FORMULAS, st.integers(0, 2**32))
def test_formulas_hold_where_their_tables_say(tokens, seed):
    rng = random.Random(seed)
    table, full = table_of(tokens)
    assert sat.is_satisfiable(tokens) == (table != 0)
    assert sat.implies(tokens, {}) == (table == full)
    values = {name: rng.random() < 0.5 for name in NAMES[:10] if rng.random() < 0.5}
    table, full = table_of(tokens, values)
    assert sat.implies(tokens, values) == (table == full)


@given(FORMULAS)
def test_nothing_can_be_left_out_of_a_prime_implicant(tokens):
    symbols = TASK.symbols_in(tokens)
    implicant = sat.prime_implicant(tokens, symbols)
    assert (implicant is None) == (table_of(tokens)[0] == 0)
    if implicant is not None:
        assert list(implicant) == [symbol for symbol in symbols if symbol in implicant]
        assert sat.implies(tokens, implicant)
        for symbol in implicant:
            fewer = {name: value for name, value in implicant.items() if name != symbol}
            assert not sat.implies(tokens, fewer)


def test_hard_questions_are_left_open():
    names = [f"x{i}" for i in range(50)]
    chain = ["^"] * 49
    twice = ["=", *chain, *names, *chain, *random.Random(0).sample(names, 50)]
    assert sat.implies(twice, {}, limit=100) is None
    assert sat.is_satisfiable(["!", *twice], limit=100) is None


@pytest.mark.parametrize("gate", ["and_", "or_", "xor"])
def test_gates_are_what_they_say_with_every_kind_of_input(gate):
    truth = {"and_": lambda x, y: x and y, "or_": lambda x, y: x or y, "xor": lambda x, y: x != y}
    for x, y in product([1, -1, 2, -2, 3, -3], repeat=2):
        circuit = sat.Circuit(2)
        out = getattr(circuit, gate)(x, y)
        for a, b in product([2, -2], [3, -3]):
            with sat.solver([*circuit.clauses, [a], [b]]) as query:
                model = query.model()
            assert (out in model) == truth[gate](x in model, y in model), (x, y, a, b)
