import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_alpha.data.collate import BucketSampler


def random_keys(count: int, seed: int = 0) -> np.ndarray:
    """(number of symbols, length), about as in generated data."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 36, count)
    return np.stack([np.minimum(rng.integers(1, 6, count), (length + 1) // 2), length], axis=1)


def batches(order, size: int) -> list[list[int]]:
    return [order[i : i + size] for i in range(0, len(order), size)]


def waste(keys: np.ndarray, order: list[int], size: int) -> tuple[float, float]:
    """Share of streams, and of tokens, that are padding."""
    shares = []
    for column in keys.T:
        padded = sum(int(column[b].max()) * len(b) for b in batches(order, size))
        shares.append(1 - int(column.sum()) / padded)
    return shares[0], shares[1]


@given(
    st.integers(0, 300), st.integers(1, 20), st.integers(1, 8), st.integers(0, 9), st.integers(0, 3)
)
@settings(deadline=None)
def test_every_sample_once_in_an_order_of_seed_and_epoch(count, size, window, seed, epoch):
    keys = random_keys(count)
    sampler = BucketSampler(keys, size, seed, window)
    sampler.set_epoch(epoch)
    order = list(sampler)
    assert sorted(order) == list(range(count)) and len(sampler) == count
    assert all(type(index) is int for index in order)
    assert list(sampler) == order
    again = BucketSampler([tuple(key) for key in keys.tolist()] or keys, size, seed, window)
    assert count < 50 or list(again) != order or epoch == 0
    again.set_epoch(epoch)
    assert list(again) == order
    other = BucketSampler(keys, size, seed + 1, window)
    other.set_epoch(epoch)
    assert count < 50 or list(other) != order


def test_batches_are_alike():
    keys, size = random_keys(20_000), 32
    order = list(BucketSampler(keys, size))
    shuffled = np.random.default_rng(1).permutation(len(keys)).tolist()
    streams, tokens = waste(keys, order, size)
    random_streams, random_tokens = waste(keys, shuffled, size)
    assert random_streams > 0.3 and random_tokens > 0.4
    assert streams < random_streams / 20 and tokens < random_tokens / 4


def test_batches_come_in_random_order_and_change_with_the_epoch():
    keys, size = random_keys(6400), 32
    sampler = BucketSampler(keys, size)
    first = batches(list(sampler), size)
    means = np.array([keys[b, 0].mean() for b in first])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.25
    sampler.set_epoch(1)
    second = {frozenset(b) for b in batches(list(sampler), size)}
    assert not second & {frozenset(b) for b in first}


def test_the_short_batch_is_last():
    """Or the batches behind it would mix samples of two."""
    keys = np.stack([np.arange(103) // 10, np.zeros(103, int)], axis=1)
    for epoch in range(5):
        sampler = BucketSampler(keys, 10, window=100)
        sampler.set_epoch(epoch)
        *full, short = batches(list(sampler), 10)
        assert len(short) == 3 and set(keys[short, 0]) == {10}
        assert all(len(set(keys[b, 0])) == 1 for b in full)
