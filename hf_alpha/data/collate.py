"""From dataset rows to model batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from datasets import Dataset, IterableDataset
from datasets.fingerprint import Hasher

from hf_alpha.generation import AnyTokenizer
from hf_alpha.modeling.batches import rectangle
from hf_alpha.modeling.checks import IGNORE
from hf_alpha.modeling.saving import code_files

from .rows import problems

COLUMNS = ("input_ids", "tree_paths", "stream_ids", "labels")


@dataclass(eq=False)
class AlphaCollator:
    """Pads tokenised rows into one batch and checks that the answers can be written at all.

    Args:
        tokenizer: gives the padding side and names the tokens in error messages.
        allow_absent_symbols: take labels with symbols that their input lacks, which only models
            with `learned` or with new symbols can write; see `SymbolTokenizer.__call__`.
        for_decoder: make of each problem and its answer one sequence, as a decoder alone reads
            them, padded on the right. Labels are -100 in the problem.

    Returns (by calling it with a list of rows): `input_ids`, `attention_mask`, `tree_paths` (B, L),
    `stream_ids` (B, S), `labels` (B, T) as int64 tensors; `for_decoder`, labels are (B, L), and
    there are no `tree_paths`.
    """

    tokenizer: AnyTokenizer
    allow_absent_symbols: bool = False
    for_decoder: bool = False

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        if not self.allow_absent_symbols:
            for index, row in enumerate(rows):
                self._check_labels(index, row)
        tokenizer, features, side = self.tokenizer, rows, self.tokenizer.padding_side
        if self.for_decoder:
            features, side = [one_sequence(row) for row in features], "right"
        fillers = {"input_ids": tokenizer.pad_token_id, "attention_mask": 0}
        fillers |= {**tokenizer.along_tokens, **tokenizer.ragged}
        columns = {name: [row[name] for row in features] for name in COLUMNS if name in features[0]}
        columns["attention_mask"] = [[1] * len(ids) for ids in columns["input_ids"]]
        # What `tokenizer.pad` gives, in a fifth of the time, which is felt beside small models.
        left = set() if side == "right" else columns.keys() - tokenizer.ragged.keys()
        return {
            name: torch.from_numpy(np.array(rectangle(column, fillers[name], left=name in left)))
            for name, column in columns.items()
            if name in ("labels", *tokenizer.model_input_names)
        }

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
                f"which the input {self.tokenizer.decode(row['input_ids'])!r} lacks, so only a "
                "model with new_symbols=True could write them; correct or drop this row"
            )


def one_sequence(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose answer, if it has one, goes on from its problem."""
    problem, answer = row["input_ids"], row.get("labels")
    sequence = {**row, "input_ids": [*problem, *(answer or ())]}
    sequence.pop("tree_paths", None)  # an answer has no tree
    if answer is not None:
        sequence["labels"] = [*[IGNORE] * len(problem), *answer]
    return sequence


def tokenize(
    dataset: Any, tokenizer: AnyTokenizer, num_workers: int = 1, new_names: bool = False
) -> Any:
    """Add the model's columns to a dataset of `problem` and `answer` strings.

    A stream stays one: its rows are tokenised when they are read.

    A column `names`, if there is one, has those of each problem, as lists of
    {start, stop, symbol_class}. With `new_names`, answers may have names that problems lack.

    The result lies in the cache of `datasets` and is made again only for other data, another
    vocabulary or changed code of the tokenizer.

    Raises:
        ValueError: a row that the tokenizer cannot read, named by its number.
    """

    def encode(batch: dict[str, list[Any]], rows: list[int]) -> dict[str, list[list[int]]]:
        try:
            texts = problems(batch, rows[0])
            features = tokenizer.encode_pairs(texts, batch["answer"], new_names, rows[0])
        except ValueError as error:
            place, _, reason = str(error).partition(": ")
            raise ValueError(f"{place} of the dataset: {reason}") from error
        return {name: [row[name] for row in features] for name in features[0]}

    if isinstance(dataset, IterableDataset):
        return dataset.map(
            encode, batched=True, with_indices=True, remove_columns=dataset.column_names
        )
    return dataset.map(
        encode,
        batched=True,
        with_indices=True,
        num_proc=num_workers if num_workers > 1 else None,
        new_fingerprint=_fingerprint(dataset, tokenizer, new_names),
        desc="tokenizing",
    )


def _fingerprint(dataset: Dataset, tokenizer: AnyTokenizer, new_names: bool) -> str:
    """Name of the tokenised data in the cache.

    By default it would be a hash of the pickled tokenizer, which changes as the tokenizer is used.
    """
    code = [file.read_bytes() for file in code_files(tokenizer)]
    return Hasher.hash([dataset._fingerprint, *tokenizer.settings(), code, new_names])
