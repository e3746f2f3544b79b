"""From dataset rows to model batches."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset

from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer

COLUMNS = ("input_ids", "tree_paths", "stream_ids", "labels")


class AlphaCollator:
    """Pads tokenised rows into one batch and checks that the answers can be written at all.

    Args:
        tokenizer: gives the padding side and names the tokens in error messages.

    Returns (by calling it with a list of rows): `input_ids`, `attention_mask`, `tree_paths` (B, L),
    `stream_ids` (B, S), `labels` (B, T) as int64 tensors.
    """

    def __init__(self, tokenizer: AlphaTokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        for index, row in enumerate(rows):
            self._check_labels(index, row)
        features = [{name: row[name] for name in COLUMNS if name in row} for row in rows]
        return dict(self.tokenizer.pad(features, return_tensors="pt"))

    def _check_labels(self, index: int, row: Mapping[str, Any]) -> None:
        base = self.tokenizer.num_base_tokens
        missing = {i for i in row.get("labels", ()) if i >= base}.difference(row["stream_ids"])
        if missing:
            names = self.tokenizer.convert_ids_to_tokens(sorted(missing))
            raise ValueError(
                f"row {index} of the batch: the labels hold the symbol(s) {', '.join(names)}, "
                f"which the input {self.tokenizer.decode(row['input_ids'])!r} lacks, so no stream "
                "could ever predict them; correct or drop this row"
            )


def tokenize(dataset: Dataset, tokenizer: AlphaTokenizer, num_workers: int = 1) -> Dataset:
    """Add the model's columns to a dataset of `problem` and `answer` strings.

    Raises:
        ValueError: a row that the tokenizer cannot read, named by its number.
    """

    def encode(problem: str, answer: str, row: int) -> dict[str, list[int]]:
        try:
            return tokenizer.encode_pair(problem, answer)
        except ValueError as error:
            raise ValueError(f"row {row} of the dataset: {error}") from error

    return dataset.map(
        encode,
        input_columns=["problem", "answer"],
        with_indices=True,
        num_proc=num_workers if num_workers > 1 else None,
        desc="tokenizing",
    )


__all__ = ["AlphaCollator", "tokenize"]
