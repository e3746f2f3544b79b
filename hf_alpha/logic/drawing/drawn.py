"""Training data drawn when it is asked for: no file, and as many rows as one likes."""

import random

import numpy as np
from torch.utils.data import Dataset

from hf_alpha.modeling.choices import refuse
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.tasks import Task, drawn_task

from .chunk import check_sizes


class DrawnProblems(Dataset[dict[str, list[int]]]):
    """Tokenised problems and answers of a task whose targets are cheap to compute.

    Row i is a function of task, vocabulary, `sizes`, `num_symbols`, seed, split and i, and of
    nothing else: any number of workers and processes sees the same rows, and a run that resumes
    goes on where it stopped. Sizes are uniform; so is the number of distinct symbols, over those
    that a problem of the size can have. Which symbols they are is uniform too.

    Rows are as `tokenize` makes them. Splits differ in their seeds only: where there are few
    problems, some are in both.

    Args:
        task: a task, or what `get_task` finds one by.
        tokenizer: gives ids and names of the symbols, its first `num_symbols` ones.
        num_samples: rows.
        sizes: smallest and largest number of tokens.
        num_symbols: most distinct symbols of a problem.
        seed: of everything that is drawn.

    Attributes:
        keys: (number of symbols, size) of each row, for `BucketSampler`: (N, 2).

    Raises:
        ValueError: for impossible settings.
    """

    def __init__(
        self,
        task: str | Task,
        tokenizer: AlphaTokenizer,
        num_samples: int,
        sizes: tuple[int, int],
        num_symbols: int,
        seed: int = 0,
        split: str = "train",
    ):
        self.task = drawn_task(task)
        self.tokenizer = tokenizer
        self.symbols = tokenizer.symbol_tokens[:num_symbols]
        self.seed = f"{split}/{seed}"
        refuse(num_samples < 1, f"num_samples must be at least 1, got {num_samples}")
        refuse(num_symbols < 1, f"num_symbols must be at least 1, got {num_symbols}")
        refuse(
            len(self.symbols) < num_symbols,
            f"the vocabulary has {len(self.symbols)} symbols, so problems cannot have "
            f"num_symbols = {num_symbols}",
        )
        self.keys = self._draw_keys(num_samples, sizes)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        count, size = self.keys[index].tolist()
        rng = random.Random(f"{self.seed}/{index}")
        answer = None
        while answer is None:
            tokens = self.task.draw(rng, size, rng.sample(self.symbols, count), exactly=True)
            answer = self.task.target_of(tokens)
        return self.tokenizer.encode_pair(self.task.write(tokens), answer)

    def _draw_keys(self, num_samples: int, sizes: tuple[int, int]) -> np.ndarray:
        """Draw all numbers of symbols and sizes; those of a row do not depend on `num_samples`."""
        smallest, largest = check_sizes(sizes)
        choices = [self._feasible(size) for size in range(smallest, largest + 1)]
        numbers = np.array([len(counts) for counts in choices], np.int16)
        table = np.zeros((len(choices), max(numbers)), np.int16)
        for row, counts in zip(table, choices, strict=True):
            row[: len(counts)] = counts
        generators = (np.random.default_rng(list(f"{self.seed}/{x}".encode())) for x in "sk")
        for_size, for_count = generators
        offsets = for_size.integers(len(choices), size=num_samples, dtype=np.int16)
        columns = (for_count.random(num_samples, np.float32) * numbers[offsets]).astype(np.int16)
        return np.stack([table[offsets, columns], offsets + np.int16(smallest)], axis=1)

    def _feasible(self, size: int) -> list[int]:
        counts = range(1, len(self.symbols) + 1)
        feasible = [k for k in counts if self.task.is_feasible(size, k, exactly=True)]
        if not feasible:
            raise ValueError(f"there is no problem of size {size}: choose other sizes")
        return feasible
