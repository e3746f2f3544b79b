"""Batches of samples alike in number of symbols and length."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler


class BucketSampler(Sampler[int]):
    """Orders samples so that consecutive ones, a batch, have like numbers of symbols and lengths.

    Padding then costs little, and few streams run for symbols that a sample lacks. Each epoch
    shuffles the samples, sorts them within windows of many batches, and shuffles the batches; the
    order depends on seed and epoch only, so that a resumed run sees the same batches.

    Args:
        keys: what to sort by, one tuple per sample, the most expensive first.
        batch_size: samples in a batch of one process.
        seed: of the order.
        window: batches sorted together; more is closer to uniform batches, and less random.
    """

    def __init__(
        self,
        keys: Sequence[Sequence[int]] | np.ndarray,
        batch_size: int,
        seed: int = 0,
        window: int = 64,
    ):
        self.keys = np.asarray(keys)
        self.batch_size = batch_size
        self.seed = seed
        self.window = window
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.keys)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng((self.seed, self.epoch))
        order = rng.permutation(len(self.keys))
        span = self.batch_size * self.window
        batches: list[np.ndarray] = []
        for start in range(0, len(order), span):
            part = order[start : start + span]
            part = part[np.lexsort(self.keys[part].T[::-1])]
            batches += np.split(part, range(self.batch_size, len(part), self.batch_size))
        # A short batch must come last, or all batches behind it would be cut askew.
        full = [batch for batch in batches if len(batch) == self.batch_size]
        short = [batch for batch in batches if len(batch) < self.batch_size]
        for index in rng.permutation(len(full)):
            yield from full[index].tolist()
        for batch in short:
            yield from batch.tolist()


__all__ = ["BucketSampler"]
