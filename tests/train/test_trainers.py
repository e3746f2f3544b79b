from itertools import chain

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_model
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_alpha.train.trainers import AlphaTrainer, BucketSampler


def random_keys(count: int, seed: int = 0) -> np.ndarray:
    """(number of symbols, length), about as in generated data."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 36, count)
    return np.stack([np.minimum(rng.integers(1, 6, count), (length + 1) // 2), length], axis=1)


def batches(order, size: int) -> list[list[int]]:
    return [order[i : i + size] for i in range(0, len(order), size)]


@given(
    st.integers(0, 300),
    st.integers(1, 20),
    st.sampled_from([1, 2, 8, 300]),
    st.integers(0, 9),
    st.integers(0, 3),
)
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
    if size * window >= count:  # one window: batches in the order of symbols, then of lengths
        told = sorted([tuple(keys[i]) for i in batch] for batch in batches(order, size))
        assert [*chain(*told)] == sorted(map(tuple, keys))
    other = BucketSampler(keys, size, seed + 1, window)
    other.set_epoch(epoch)
    assert count < 50 or list(other) != order


def test_the_short_batch_is_last_and_the_others_are_shuffled():
    """Or the batches behind it would mix samples of two."""
    keys, orders = np.stack([np.arange(103) // 10, np.zeros(103, int)], axis=1), set()
    for epoch in range(5):
        sampler = BucketSampler(keys, 10, window=100)
        sampler.set_epoch(epoch)
        *full, short = batches(list(sampler), 10)
        assert len(short) == 3 and set(keys[short, 0]) == {10}
        assert all(len(set(keys[b, 0])) == 1 for b in full)
        orders.add(tuple(keys[[batch[0] for batch in full], 0]))
    assert len(orders) == 5


def test_operations_are_those_that_the_base_class_counts(tmp_path):
    arguments = Seq2SeqTrainingArguments(tmp_path, report_to="none", use_cpu=True)
    trainer = AlphaTrainer(make_model(), arguments)
    for shape in ((2, 3), (4, 9)):
        batch = {"input_ids": torch.zeros(shape), "labels": torch.zeros(2, 5)}
        expected = Seq2SeqTrainer.floating_point_ops(trainer, batch)
        assert trainer.floating_point_ops(batch) == expected > 0
    assert trainer.floating_point_ops({"labels": torch.zeros(2, 5)}) == 0
