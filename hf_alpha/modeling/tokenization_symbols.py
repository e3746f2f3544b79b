"""What tokenizers with symbols have in common: batches with names, padding, and decoding.

A sample's names are mapped onto symbols row by row; the mapping travels with the encoding as
`batch.names`, so that a tokenizer itself keeps nothing between calls.
"""

import contextlib
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from transformers import BatchEncoding
from transformers.utils import PaddingStrategy, TensorType, is_torch_tensor, to_py_obj

from .grammar import Grammar
from .saving import SavesCode

IGNORED_LABEL = -100
ABSENT_STREAM = -1
MAX_SYMBOLS = 1_000_000

Names = dict[str, str]  # symbol token -> the user's name, one per row
Ranges = dict[str, list[list[int]]]  # class -> [start, stop) of its ids


class AlphaEncoding(BatchEncoding):
    """A `BatchEncoding` with `names`: per row, symbol token -> the user's name, as it is written.

    `names` is an attribute and no key, so that `model(**batch)` does not see it; it is one mapping
    instead of a list if a single string was encoded.

    Args:
        data: the columns.
        names: of each row.
        beneath: what a tokenizer beneath said of each row, whose texts had symbols in place of
            names: characters in there are not those of the texts as they were given. So there are
            `sequence_ids` and `word_ids`, in which a name is a word, but not `char_to_token` and
            its like; a padded batch has none of them.
    """

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        *args: Any,
        names: list[Names] | Names | None = None,
        beneath: Sequence[Any] | None = None,
        **kwargs: Any,
    ):
        self.names = names
        self.beneath = beneath
        super().__init__(data, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "names": self.names, "beneath": self.beneath}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.names, self.beneath = state.get("names"), state.get("beneath")

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """Which text of a pair each token is of; None for special tokens."""
        if self.beneath is None:
            return super().sequence_ids(batch_index)
        return self.beneath[batch_index].sequence_ids

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """The number of each token's word in its text; None for special tokens."""
        if self.beneath is None:
            return super().word_ids(batch_index)
        return self.beneath[batch_index].word_ids


class SymbolTokenizer(SavesCode):
    """Mixin in front of a tokenizer of Transformers: its vocabulary has classes of symbols.

    Attributes:
        symbol_ranges: class -> [start, stop) pairs of its symbols' ids.
        grammar: how formulas are written; None for texts and plain sequences.
    """

    model_input_names: list[str]
    symbol_ranges: Ranges
    grammar: Grammar | None = None

    @property
    def symbol_classes(self) -> dict[str, int]:
        """Class -> number of its symbols."""
        return {
            name: sum(stop - start for start, stop in pairs)
            for name, pairs in self.symbol_ranges.items()
        }

    @abstractmethod
    def settings(self) -> list[Any]:
        """Return all that ids depend on besides the code, as plain data."""

    # Batches

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str | PaddingStrategy = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | TensorType | None = None,
        verbose: bool = True,
    ) -> AlphaEncoding:
        """Pad rows to one batch.

        On top of what every tokenizer does: `tree_paths` get 0 on the padding side; `stream_ids`
        get -1 and `labels` -100 on the right, each to its own longest row (`stream_ids` to at
        least 1). Without "stream_ids" in `model_input_names` a batch has none.
        """
        names = None
        if isinstance(encoded_inputs, AlphaEncoding):
            names = encoded_inputs.names
        elif isinstance(encoded_inputs, Sequence):
            if all(isinstance(row, AlphaEncoding) for row in encoded_inputs):
                names = [row.names for row in encoded_inputs]
            keys = encoded_inputs[0].keys() if encoded_inputs else []
            encoded_inputs = {key: [row[key] for row in encoded_inputs] for key in keys}
        columns = dict(encoded_inputs)
        ragged = {key: columns.pop(key) for key in ("stream_ids", "labels") if key in columns}
        first = next(iter(columns.get("input_ids", ())), None)
        if return_tensors is None and is_torch_tensor(first):
            return_tensors = "pt"
        encoded = super().pad(  # type: ignore[misc]
            columns,
            padding=padding,
            max_length=max_length,
            pad_to_multiple_of=pad_to_multiple_of,
            padding_side=padding_side,
            return_attention_mask=return_attention_mask,
            return_tensors=return_tensors,
            verbose=verbose,
        )
        padded = padding not in (False, PaddingStrategy.DO_NOT_PAD) or return_tensors is not None
        for key, rows in ragged.items():
            column = to_py_obj(rows)
            if padded and first is not None and not isinstance(first, int):
                multiple = pad_to_multiple_of if key == "labels" else None
                filler = IGNORED_LABEL if key == "labels" else ABSENT_STREAM
                column = rectangle(column, filler, multiple or 1)
            ragged[key] = column
        if padded and "stream_ids" not in self.model_input_names:
            ragged.pop("stream_ids", None)
        ragged = dict(BatchEncoding(ragged, tensor_type=return_tensors))
        return AlphaEncoding({**encoded, **ragged}, names=names)

    # Decoding

    def decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = True,
        names: Sequence[Names | None] | Names | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write ids as text, in the one spelling that encoding reads as these ids.

        Args:
            token_ids: one row of ids or a batch of rows; negative ids (ignored labels) are left
                out.
            skip_special_tokens: leave out pad, start and end tokens.
            names: the `names` of the encoding that was answered. A batch may have n rows for each
                of them, as `num_return_sequences=n` makes it.
            **kwargs: options of other tokenizers, without effect.

        Raises:
            ValueError: the batch's rows are no multiple of `names`, or an id is not in the
                vocabulary.
        """
        ids = to_py_obj(token_ids)
        if isinstance(names, Mapping):
            names = [names]
        if not (isinstance(ids, list | tuple) and ids and isinstance(ids[0], list | tuple)):
            row = list(ids) if isinstance(ids, list | tuple) else [ids]
            if names is not None and len(names) != 1:
                raise ValueError(f"one row of ids, but {len(names)} rows of `names`")
            return self._write(row, skip_special_tokens, names[0] if names else None)
        if names is None:
            names = [None]
        if not names or len(ids) % len(names):
            raise ValueError(f"{len(ids)} rows of ids are no multiple of {len(names)} `names`")
        repeats = len(ids) // len(names)
        return [
            self._write(row, skip_special_tokens, names[index // repeats])
            for index, row in enumerate(ids)
        ]

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
        names: Sequence[Names | None] | Names | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """`decode`, but always a list."""
        rows = self.decode(sequences, skip_special_tokens, names) if len(sequences) else []
        return rows if isinstance(rows, list) else [rows]

    @abstractmethod
    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        """Write one row of ids as text."""


def as_ranges(value: Any) -> dict[str, list[list[int]]]:
    """Class -> [start, stop) pairs as lists, if it is that."""
    if isinstance(value, Mapping) and all(isinstance(name, str) and name for name in value):
        with contextlib.suppress(TypeError):
            ranges = {name: [list(pair) for pair in pairs] for name, pairs in value.items()}
            pairs = [pair for found in ranges.values() for pair in found]
            integers = all(type(edge) is int for pair in pairs for edge in pair)
            if integers and all(len(pair) == 2 and pair[0] < pair[1] for pair in pairs):
                return ranges
    raise ValueError(f"`symbol_ranges` is {value!r}: give class -> [[start, stop], ...]")


def check_counts(value: Any, known: Collection[str] | None = None) -> None:
    """Refuse what is not class -> number of symbols; `known` are the classes that there are."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise ValueError(f"{value!r} symbols: give class -> number")
    for name, count in value.items():
        if type(count) is not int or not 0 <= count <= MAX_SYMBOLS:
            raise ValueError(
                f"cannot add {count!r} symbols to class {name!r}: give 0 to {MAX_SYMBOLS:,}"
            )
        if known is not None and name not in known:
            classes = ", ".join(map(repr, known)) or "none"
            raise ValueError(f"no symbol class {name!r}: this tokenizer's classes are {classes}")


def text_rows(value: str | Sequence[str] | None, name: str) -> list[str] | None:
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    rows = list(value)
    for row, text in enumerate(rows):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ValueError(f"row {row} of `{name}` is a {kind}: give a string or a list of them")
    return rows


def name_rows(names: Sequence[Names] | Names | None, count: int) -> list[Names]:
    if names is None:
        return [{} for _ in range(count)]
    rows = [names] if isinstance(names, Mapping) else list(names)
    if len(rows) != count:
        raise ValueError(f"{count} rows in `text_target`, but {len(rows)} in `names`")
    return rows


def rectangle(rows: list[list[int]], filler: int, multiple: int) -> list[list[int]]:
    width = max([1, *map(len, rows)])
    width = -(-width // multiple) * multiple
    return [[*row, *[filler] * (width - len(row))] for row in rows]


__all__ = ["AlphaEncoding", "Names", "SymbolTokenizer"]
