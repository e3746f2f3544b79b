"""Bit-parallel truth tables against brute force."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.propositional import value

from hf_alpha.logic import truth_table
from hf_alpha.logic.propositional.sampler import FormulaSampler

SYMBOLS = ("a", "b", "c", "d", "e", "f")


@st.composite
def formulas(draw, max_size=30):
    symbols = SYMBOLS[: draw(st.integers(1, len(SYMBOLS)))]
    sampler = FormulaSampler(symbols, draw(st.sampled_from([0.0, 0.5])))
    size = draw(st.integers(1, max_size).filter(sampler.is_feasible))
    return sampler.sample(random.Random(draw(st.integers(0, 2**32))), size)


@given(formulas())
def test_a_table_is_the_textbooks_function(tokens):
    symbols = [token for token in dict.fromkeys(tokens) if token not in "01!&|=^"]
    table = truth_table.table_of(tokens, symbols)
    for point, values in enumerate(itertools.product([False, True], repeat=len(symbols))):
        assert table >> point & 1 == value([*tokens], dict(zip(symbols, values, strict=True)))


@given(st.integers(0, 4), st.data())
def test_minimal_cube_is_the_first_of_the_shortest(num_variables, data):
    table = data.draw(st.integers(0, truth_table.full_table(num_variables)))
    cubes = (
        tuple(zip(kept, values, strict=True))
        for size in range(num_variables + 1)
        for kept in itertools.combinations(range(num_variables), size)
        for values in itertools.product([True, False], repeat=size)
    )
    expected = next((cube for cube in cubes if covers(table, num_variables, cube)), None)
    assert truth_table.minimal_cube(table, num_variables) == (expected if table else None)


def covers(table, num_variables, cube):
    return all(
        table >> point & 1
        for point in range(1 << num_variables)
        if all((point >> (num_variables - 1 - i) & 1) == value for i, value in cube)
    )


@pytest.mark.parametrize("num_symbols", [10, 16])
def test_many_variables(num_symbols):
    symbols = tuple("abcdefghijklmnop"[:num_symbols])
    parity = ["^"] * (num_symbols - 1) + list(symbols)
    cube = truth_table.minimal_cube(truth_table.table_of(parity, symbols), num_symbols)
    assert len(cube) == num_symbols and sum(value for _, value in cube) % 2 == 1
    conjunction = ["&"] * (num_symbols - 1) + list(symbols)
    cube = truth_table.minimal_cube(truth_table.table_of(conjunction, symbols), num_symbols)
    assert cube == tuple((i, True) for i in range(num_symbols))
