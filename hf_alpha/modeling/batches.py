"""What all tokenizers share: batches of encoded rows with the names of each, and a fast tokenizer.

Some columns of a batch have rows that are no list of tokens.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tokenizers import Tokenizer
from transformers import BatchEncoding
from transformers.utils import PaddingStrategy, TensorType, is_torch_tensor, to_py_obj

Names = dict[str, str]  # symbol token -> the user's name, one per row


class RowNames(dict[str, str]):
    """The names of a row, of which the row itself has some as words that are no names.

    Attributes:
        words: these, which decoding leaves as they are. (JSON loses them.)
    """

    words: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: Mapping[str, str], words: Iterable[str]) -> "RowNames":
        """Make one."""
        self = cls(names)
        self.words = frozenset(words)
        return self


def words_beside(names: Mapping[str, str] | None) -> frozenset[str]:
    """Return the words that a row has beside its names and spelled like them."""
    return getattr(names, "words", frozenset())


class AlphaEncoding(BatchEncoding):
    """A `BatchEncoding` with `names`: per row, symbol token -> the user's name, as it is written.

    `names` is an attribute and no key, so that `model(**batch)` does not see it; it is one mapping
    instead of a list if a single string was encoded.

    Args:
        *args: of the base class; encodings are those of a tokenizer beneath, if there is one, in
            which a name is a word.
    """

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        *args: Any,
        names: list[Names] | Names | None = None,
        **kwargs: Any,
    ):
        self.names = names
        super().__init__(data, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "names": self.names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.names = state.get("names")


class PadsColumns:
    """Mixin in front of a tokenizer of Transformers: it pads columns that others do not know.

    Attributes:
        along_tokens: column with an entry for each token -> what it gets beside padding.
        ragged: column with rows of a length of their own -> what fills them on the right, to the
            longest row and at least 1, whatever side tokens are padded on.
    """

    model_input_names: list[str]
    padding_side: str
    along_tokens: ClassVar[Mapping[str, Any]] = {"tree_paths": 0, "offset_mapping": (0, 0)}
    ragged: ClassVar[Mapping[str, int]] = {}

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = super()._pad(encoded_inputs, *args, **kwargs)  # type: ignore[misc]
        left = (kwargs.get("padding_side") or self.padding_side) == "left"
        for key, filler in self.along_tokens.items():
            if key in outputs:
                values = list(outputs[key])
                filling = [filler] * (len(outputs["input_ids"]) - len(values))
                outputs[key] = filling + values if left else values + filling
        return outputs

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
        """Pad rows to one batch, as every tokenizer does, with the columns that are `ragged`.

        Of these, `labels` are padded to a multiple as well, and a batch gets those alone that
        `model_input_names` has.
        """
        names = getattr(encoded_inputs, "names", None)
        if isinstance(encoded_inputs, Sequence):
            if all(isinstance(row, AlphaEncoding) for row in encoded_inputs):
                names = [row.names for row in encoded_inputs]
            keys = encoded_inputs[0].keys() if encoded_inputs else []
            encoded_inputs = {key: [row[key] for row in encoded_inputs] for key in keys}
        columns = dict(encoded_inputs)
        ragged = {key: to_py_obj(columns.pop(key)) for key in self.ragged if key in columns}
        before = columns.get("input_ids", ())
        first = next(iter(before), None)
        if return_tensors is None and is_torch_tensor(first):
            return_tensors = "pt"
        options = (padding_side, return_attention_mask, return_tensors, verbose)
        encoded = super().pad(columns, padding, max_length, pad_to_multiple_of, *options)  # type: ignore[misc]
        if first is not None and (padding not in (False, "do_not_pad") or return_tensors):
            left = (padding_side or self.padding_side) == "left"
            ragged = self._padded(
                ragged, before, encoded["input_ids"], left, pad_to_multiple_of or 1
            )
        return AlphaEncoding(
            {**encoded, **BatchEncoding(ragged, tensor_type=return_tensors)}, names=names
        )

    def _padded(
        self, ragged: dict[str, Any], before: Any, after: Any, left: bool, multiple: int
    ) -> dict[str, Any]:
        """Pad ragged columns.

        Args:
            ragged: the columns, of all rows or of one alone.
            before, after: ids of tokens without and with padding.
            multiple: of which `labels` have a length.
        """
        kept = {k: v for k, v in ragged.items() if k == "labels" or k in self.model_input_names}
        if isinstance(to_py_obj(before[0]), int):
            return kept
        return {
            key: rectangle(rows, self.ragged[key], multiple if key == "labels" else 1)
            for key, rows in kept.items()
        }


def rectangle(
    rows: Sequence[Sequence[int]], filler: int, multiple: int = 1, left: bool = False
) -> list[list[int]]:
    """Fill rows on the right, or left, up to the longest one, and to a multiple; at least one."""
    width = max([1, *map(len, rows)])
    width = -(-width // multiple) * multiple
    if left:
        return [[*[filler] * (width - len(row)), *row] for row in rows]
    return [[*row, *[filler] * (width - len(row))] for row in rows]


def copied_backend(tokenizer: Any) -> tuple[Tokenizer, dict[str, Any]]:
    """A copy of a fast tokenizer's backend, and its special tokens and other settings.

    Raises:
        ValueError: it is no fast tokenizer.
    """
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise ValueError(
            f"{type(tokenizer).__name__} is no fast tokenizer: it cannot say where its tokens "
            "stand. Take a fast one (tokenizer.is_fast), or words, characters or bpe:8000"
        )
    beneath = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    beneath.no_truncation()  # those of the last call
    beneath.no_padding()
    special = {k: v for k, v in tokenizer.special_tokens_map.items() if k.endswith("_token")}
    for key in ("chat_template", "response_template", "chat_control_tokens"):
        if getattr(tokenizer, key, None) is not None:
            special[key] = getattr(tokenizer, key)
    return beneath, copy.deepcopy(special) | {
        "extra_special_tokens": [str(token) for token in tokenizer.extra_special_tokens],
        "model_max_length": tokenizer.model_max_length,
        "padding_side": tokenizer.padding_side,
        "truncation_side": tokenizer.truncation_side,
    }
