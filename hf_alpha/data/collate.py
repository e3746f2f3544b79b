"""From dataset rows to model batches."""

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from datasets.fingerprint import Hasher

from hf_alpha.modeling.tokenization_alpha import AnyTokenizer

COLUMNS = ("input_ids", "tree_paths", "stream_ids", "labels")


class AlphaCollator:
    """Pads tokenised rows into one batch and checks that the answers can be written at all.

    Args:
        tokenizer: gives the padding side and names the tokens in error messages.
        allow_absent_symbols: take labels with symbols that their input lacks, which only a
            `learned` model can write; see `AlphaTokenizer.__call__`.

    Returns (by calling it with a list of rows): `input_ids`, `attention_mask`, `tree_paths` (B, L),
    `stream_ids` (B, S), `labels` (B, T) as int64 tensors.
    """

    def __init__(self, tokenizer: AnyTokenizer, allow_absent_symbols: bool = False):
        self.tokenizer = tokenizer
        self.allow_absent_symbols = allow_absent_symbols

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        if not self.allow_absent_symbols:
            for index, row in enumerate(rows):
                self._check_labels(index, row)
        features = [{name: row[name] for name in COLUMNS if name in row} for row in rows]
        return dict(self.tokenizer.pad(features, return_tensors="pt"))

    def _check_labels(self, index: int, row: Mapping[str, Any]) -> None:
        missing = {
            i
            for ranges in self.tokenizer.symbol_ranges.values()
            for start, stop in ranges
            for i in row.get("labels", ())
            if start <= i < stop
        }.difference(row["input_ids"])
        if missing:
            names = self.tokenizer.convert_ids_to_tokens(sorted(missing))
            raise ValueError(
                f"row {index} of the batch: the labels hold the symbol(s) {', '.join(names)}, "
                f"which the input {self.tokenizer.decode(row['input_ids'])!r} lacks, so no stream "
                "could ever predict them; correct or drop this row"
            )


def tokenize(dataset: Dataset, tokenizer: AnyTokenizer, num_workers: int = 1) -> Dataset:
    """Add the model's columns to a dataset of `problem` and `answer` strings.

    The result lies in the cache of `datasets` and is made again only for other data, another
    vocabulary or changed code of the tokenizer.

    Raises:
        ValueError: a row that the tokenizer cannot read, named by its number.
    """

    def encode(
        problems: list[str], answers: list[str], rows: list[int]
    ) -> dict[str, list[list[int]]]:
        encoded = []
        for problem, answer, row in zip(problems, answers, rows, strict=True):
            try:
                encoded.append(tokenizer.encode_pair(problem, answer))
            except ValueError as error:
                raise ValueError(f"row {row} of the dataset: {error}") from error
        return {name: [features[name] for features in encoded] for name in encoded[0]}

    return dataset.map(
        encode,
        batched=True,
        input_columns=["problem", "answer"],
        with_indices=True,
        num_proc=num_workers if num_workers > 1 else None,
        new_fingerprint=_fingerprint(dataset, tokenizer),
        desc="tokenizing",
    )


def _fingerprint(dataset: Dataset, tokenizer: AnyTokenizer) -> str:
    """Name of the tokenised data in the cache.

    By default it would be a hash of the pickled tokenizer, which changes as the tokenizer is used.
    """
    grammar = tokenizer.grammar
    classes = [type(tokenizer), *([type(grammar)] if grammar else [])]
    code = [inspect.getsource(sys.modules[cls.__module__]) for cls in classes]
    return Hasher.hash(
        [
            dataset._fingerprint,
            tokenizer.get_vocab(),
            tokenizer.symbol_ranges,
            tokenizer.name_patterns,
            grammar and grammar.to_dict(),
            code,
        ]
    )


__all__ = ["AlphaCollator", "tokenize"]
