import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_alpha.logic.propositional.notation import PROPOSITIONAL
from hf_alpha.logic.propositional.sampler import FormulaSampler


def operands(tokens, start):
    """Return the operands of the node at `start` and the index behind it."""
    if tokens[start] not in "!&|=^":
        return [], start + 1
    children, end = [], start + 1
    for _ in range(PROPOSITIONAL.operators[tokens[start]]):
        _, behind = operands(tokens, end)
        children.append(tokens[end:behind])
        end = behind
    return children, end


def is_trivial(tokens):
    for node, token in enumerate(tokens):
        children, _ = operands(tokens, node)
        if token == "!" and children[0][0] == "!":
            return True
        if len(children) == 2 and children[0] == children[1]:
            return True
    return False


@given(st.integers(1, 60), st.integers(1, 10), st.integers(0, 2**32))
def test_size_is_exact_and_nothing_is_trivial(size, num_symbols, seed):
    sampler = FormulaSampler(tuple("abcdefghij"[:num_symbols]))
    if not sampler.is_feasible(size):
        assert (size, num_symbols) == (3, 1)
        return
    tokens = sampler.sample(random.Random(seed), size)
    assert len(tokens) == size and not is_trivial(tokens)
    assert PROPOSITIONAL.parse(" ".join(tokens)) == tokens


@given(st.integers(1, 10), st.integers(0, 20), st.integers(0, 2**32))
def test_exactly_k_symbols_even_where_every_leaf_is_needed(num_symbols, spare, seed):
    symbols = tuple("abcdefghij"[:num_symbols])
    sampler, size = FormulaSampler(symbols), 2 * num_symbols - 1 + spare
    if sampler.is_feasible(size, num_symbols):
        tokens = sampler.sample_exactly(random.Random(seed), size)
        assert len(tokens) == size and set(symbols) <= set(tokens) and not is_trivial(tokens)
    assert not sampler.is_feasible(2 * num_symbols - 2, num_symbols)


@pytest.mark.parametrize("symbols", ["a", "ab"])
def test_every_formula_that_is_not_trivial_is_drawn(symbols):
    sampler, rng = FormulaSampler(tuple(symbols)), random.Random(0)
    for size in (1, 2, 3, 4, 5, 6) if symbols == "a" else (1, 2, 3, 4):
        possible = set()
        for tokens in itertools.product("!&|=^" + symbols, repeat=size):
            try:
                PROPOSITIONAL.parse("".join(tokens), "compact")
            except ValueError:
                continue
            if not is_trivial(tokens):
                possible.add(tokens)
        assert bool(possible) == sampler.is_feasible(size)
        draws = 3000 if possible else 0
        assert {tuple(sampler.sample(rng, size)) for _ in range(draws)} == possible
