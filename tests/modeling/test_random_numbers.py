import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.modeling.random_numbers import (
    RANDOM_METHODS,
    capacity,
    draw_key,
    sample_keys,
    symbol_vectors,
)

FINITE = ("neighboring_points", "hypercube_vertices")
seeds = st.integers(-(2**63), 2**64)
steps = st.integers(-1, 10**6)


def draw(method, symbols, dims, seed=0, step=0):
    key = draw_key(seed, torch.tensor(step))
    return symbol_vectors(method, torch.as_tensor(symbols), dims, key)


def rows(vectors):
    return [tuple(row) for row in vectors.tolist()]


@given(
    method=st.sampled_from(FINITE),
    dims=st.integers(1, 40),
    count=st.integers(1, 300),
    seed=seeds,
    step=steps,
)
def test_vectors_are_unique_and_never_zero(method, dims, count, seed, step):
    most = capacity(method, dims)
    count = count if most is None else min(count, most)
    vectors = draw(method, range(count), dims, seed, step)
    assert vectors.shape == (count, dims) and vectors.dtype == torch.float32
    assert (vectors != 0).any(-1).all()
    allowed = {-1.0, 1.0} if method == "hypercube_vertices" else {-1.0, 0.0, 1.0}
    assert set(vectors.flatten().tolist()) <= allowed
    if dims <= 32 or dims > 36:  # between them a chance in 10**5
        assert len(set(rows(vectors))) == count


@pytest.mark.parametrize("method", FINITE)
@pytest.mark.parametrize("dims", [1, 2, 3, 5, 8])
def test_all_vectors_are_drawn_once(method, dims):
    """As many symbols as there are vectors get every one of them; 2410.17161, Table 1."""
    count = 2**dims if method == "hypercube_vertices" else 3**dims - 1
    assert capacity(method, dims) == count
    for seed in range(5):
        assert len(set(rows(draw(method, range(count), dims, seed)))) == count


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("method", "dims"), [(m, d) for m in FINITE for d in (1, 2, 3)])
def test_vectors_are_equally_likely(method, dims):
    """Chi-squared for the first symbol's vector and for the first two symbols' vectors."""
    count, trials = capacity(method, dims), 1500
    drawn = [rows(draw(method, range(2), dims, step=step)) for step in range(trials)]
    for seen, possible in (
        (Counter(first for first, _ in drawn), count),
        (Counter(map(tuple, drawn)), count * (count - 1)),
    ):
        expected = trials / possible
        chi_squared = sum((n - expected) ** 2 / expected for n in seen.values())
        chi_squared += (possible - len(seen)) * expected
        free = possible - 1
        assert chi_squared < free + 5 * math.sqrt(2 * free)


@pytest.mark.parametrize("method", RANDOM_METHODS)
@pytest.mark.parametrize("dims", [4, 32, 33, 64])
def test_moments(method, dims):
    vectors = torch.cat([draw(method, range(20), dims, step=step) for step in range(500)])
    variance = 2 / 3 if method == "neighboring_points" else 1.0
    covariance = vectors.T @ vectors / len(vectors)
    if (method, dims) == ("neighboring_points", 4):
        variance *= 81 / 80  # without the zero vector
    assert vectors.mean(0).abs().max() < 0.05
    assert (covariance - variance * torch.eye(dims)).abs().max() < 0.08
    # Nor do neighbours in symbol or step have anything in common.
    if dims > 4:  # in a small set, being different is being dissimilar
        assert abs(float((vectors[1:] * vectors[:-1]).mean())) < 0.02
    assert abs(float((vectors[20:] * vectors[:-20]).mean())) < 0.02


def test_normal_numbers_are_normal():
    numbers = draw("normal", range(2000), 50).flatten()
    for bound, share in ((-2, 0.02275), (-1, 0.15866), (0, 0.5), (1, 0.84134), (2, 0.97725)):
        assert float((numbers < bound).float().mean()) == pytest.approx(share, abs=0.006)
    assert numbers.isfinite().all() and numbers.abs().max() < 6


@settings(max_examples=30)
@given(
    method=st.sampled_from(RANDOM_METHODS),
    dims=st.integers(6, 40),
    symbols=st.lists(st.integers(0, 60), min_size=1, max_size=9),
    seed=seeds,
)
def test_a_vector_depends_on_its_symbol_alone(method, dims, symbols, seed):
    whole = draw(method, range(61), dims, seed)
    assert torch.equal(draw(method, symbols, dims, seed), whole[symbols])


@pytest.mark.parametrize("method", RANDOM_METHODS)
def test_seeds_and_steps_differ(method):
    drawn = {
        tuple(rows(draw(method, range(3), 16, seed, step)))
        for seed in (-1, 0, 1, 2**40)
        for step in (-1, 0, 1, 2)
    }
    assert len(drawn) == 16


def test_the_number_of_the_zero_vector_is_left_out():
    """The set is never written out: 3**32 numbers, and the one in the middle maps to zero."""
    digits = 3 ** torch.arange(32)
    vectors = draw("neighboring_points", range(100_000), 32).long()
    numbers = ((vectors + 1) * digits).sum(-1)
    assert numbers.min() >= 0 and numbers.max() < 3**32
    assert not (numbers == (3**32 - 1) // 2).any()
    assert len(set(numbers.tolist())) == 100_000


def test_a_samples_key_is_made_of_its_tokens():
    key = draw_key(0, torch.tensor(5))
    ids = torch.tensor([[5, 6, 7, 0, 0], [0, 0, 5, 6, 7], [5, 7, 6, 0, 0], [5, 6, 7, 7, 0]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]) > 0
    keys = sample_keys(ids, mask, key).tolist()
    assert keys[0] == keys[1] and len(set(keys)) == 3
    assert keys[0] != int(sample_keys(ids, mask, draw_key(0, torch.tensor(6)))[0])
