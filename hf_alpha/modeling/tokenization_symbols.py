"""What tokenizers with symbols have in common: calls, symbols for names, padding, and decoding.

A sample's names are mapped onto symbols row by row; the mapping travels with the encoding as
`batch.names`, so that a tokenizer itself keeps nothing between calls.
"""

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, count, islice
from typing import Any

from transformers import BatchEncoding
from transformers.utils import PaddingStrategy, TensorType, is_torch_tensor, to_py_obj

from .choices import refuse
from .grammar import FormulaError, Grammar
from .saving import SavesCode

IGNORED_LABEL = -100
ABSENT_STREAM = -1
MAX_SYMBOLS = 1_000_000
_OF_PADDING = ("pad_to_multiple_of", "padding_side")

Texts = str | Sequence[str] | None
Features = dict[str, list[int]]  # what a model is given of one row
Names = dict[str, str]  # symbol token -> the user's name, one per row
Table = dict[str, int]  # name -> id of its symbol
Ranges = dict[str, list[list[int]]]  # class -> [start, stop) of its ids
NewNames = str | Callable[[int, str], str]  # how symbols without a name are spelled, see `decode`


class AlphaEncoding(BatchEncoding):
    """A `BatchEncoding` with `names`: per row, symbol token -> the user's name, as it is written.

    `names` is an attribute and no key, so that `model(**batch)` does not see it; it is one mapping
    instead of a list if a single string was encoded.

    Args:
        data: the columns.
        *args: of the base class; encodings are those of a tokenizer beneath, if there is one, in
            which a name is a word.
        names: of each row.
        **kwargs: of the base class.
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


class SymbolTokenizer(SavesCode):
    """Mixin in front of a tokenizer of Transformers: its vocabulary has classes of symbols.

    Attributes:
        symbol_ranges: class -> [start, stop) pairs of its symbols' ids.
        grammar: how formulas are written; None for texts and plain sequences.
    """

    model_input_names: list[str]
    padding_side: str
    symbol_ranges: Ranges
    grammar: Grammar | None = None
    _symbol_ids: Table  # token of a symbol -> its id
    _own_names: Table = {}  # noqa: RUF012  # name that is the same symbol wherever it occurs -> id

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

    # Calls

    def __call__(
        self,
        text: Texts = None,
        text_pair: Texts = None,
        text_target: Texts = None,
        *,
        names: Sequence[Names] | Names | None = None,
        padding: bool | str | PaddingStrategy = False,
        max_length: int | None = None,
        max_target_length: int | None = None,
        return_tensors: str | TensorType | None = None,
        **kwargs: Any,
    ) -> AlphaEncoding:
        """Encode texts, answers, or texts with their answers.

        Args:
            text: formulas, or texts; a text that knows its names is a `MarkedText`.
            text_pair: second texts, whose names are those of the first; formulas have none.
            text_target: the answers; with `text` they give `labels` (B, M) in the names of their
                row, alone they give `input_ids`.
            names: for `text_target` alone, the `names` of the encoding that it answers.
            padding: as in any tokenizer; labels are always padded on the right, with -100.
            max_length: as in any tokenizer; a formula that is longer is an error.
            max_target_length: the same for answers; `max_length` if not given.
            return_tensors: as in any tokenizer.
            **kwargs: as in any tokenizer: `truncation`, `padding_side` and so on. With
                `allow_absent_symbols` answers may have names that their input lacks; no model but a
                `learned` one can give such an answer, so that they are an error otherwise. (Of
                `text_target` without `text` and `names` nothing is known.)

        Raises:
            FormulaError: a row cannot be read, has more names than there are symbols, or its
                answer has a name that it lacks.
            ValueError: an argument is not supported, rows and answers do not match, or there are
                none.
        """
        check_inputs(text, text_target, names)
        pad_options = {key: kwargs.pop(key) for key in _OF_PADDING if key in kwargs}
        encoding = self._encode(
            text_rows(text, "text"),
            text_rows(text_pair, "text_pair"),
            text_rows(text_target, "text_target"),
            names=names,
            padding=padding,
            max_length=max_length,
            max_target_length=max_target_length or max_length,
            **kwargs,
        )
        if padding or return_tensors is not None:
            length = max_length if padding == PaddingStrategy.MAX_LENGTH else None
            pad_options["return_attention_mask"] = kwargs.get("return_attention_mask")
            padded = self.pad(
                encoding, padding, length, return_tensors=return_tensors, **pad_options
            )
            for part, ids in zip(encoding.encodings or (), padded["input_ids"], strict=False):
                part.pad(
                    len(ids),
                    direction=pad_options.get("padding_side") or self.padding_side,
                    pad_id=self.pad_token_id,  # type: ignore[attr-defined]
                    pad_token=self.pad_token,  # type: ignore[attr-defined]
                )
            encoding = AlphaEncoding(padded.data, encoding.encodings, names=padded.names)
        single = isinstance(text if text is not None else text_target, str)
        return only_row(encoding, return_tensors) if single else encoding

    def encode(self, text: str, text_pair: str | None = None, **kwargs: Any) -> Any:
        """The `input_ids` of one text."""
        return self(text, text_pair, **kwargs)["input_ids"]

    @abstractmethod
    def _encode(self, *rows: Any, **options: Any) -> AlphaEncoding:
        """Encode the rows of a call without padding: texts, with `labels`, or answers alone.

        Args:
            *rows: texts, second texts and answers, each a list or None.
            **options: the arguments of the call.
        """

    # Symbols for names

    def class_of(self, index: int) -> str:
        """The class of the symbol with this id."""
        return next(
            name
            for name, pairs in self.symbol_ranges.items()
            if any(start <= index < stop for start, stop in pairs)
        )

    def assign_symbols(self, classes: Mapping[str, str], table: Table | None = None) -> Table:
        """Give the names of a row their symbols.

        A name that is the token of a symbol, or that a symbol has of its own, gets that symbol; the
        others get free ones of their class, in order of first occurrence.

        Args:
            classes: name -> class, in order of first occurrence.
            table: names that have their symbols already, and keep them.

        Returns:
            All of these names, with the ids of their symbols.

        Raises:
            FormulaError: a class has more names than symbols.
        """
        assigned = dict(table or {})
        used = set(assigned.values())
        for own in (self._symbol_ids, self._own_names):
            for name, kind in classes.items():
                index = own.get(name)
                if index is None or index in used or name in assigned:
                    continue
                if self.class_of(index) == kind:
                    assigned[name] = index
                    used.add(index)
        for kind in dict.fromkeys(classes.values()):
            rest = [name for name in classes if classes[name] == kind and name not in assigned]
            assigned.update(zip(rest, self._free_symbols(kind, len(rest), used), strict=True))
        return {name: assigned[name] for name in (*(table or ()), *classes)}

    def _free_symbols(self, kind: str, number: int, used: set[int]) -> list[int]:
        """The first symbols of a class that are free, so many of them."""
        ids = (index for pair in self.symbol_ranges.get(kind, ()) for index in range(*pair))
        free = list(islice((index for index in ids if index not in used), number))
        if short := number - len(free):
            count = self.symbol_classes.get(kind, 0)
            raise FormulaError(
                f"{count + short} names of class {kind!r}, but the vocabulary has {count} symbols "
                "for them: make the tokenizer with more (`count` in the rule of the class, or "
                f"`symbol_classes`), or call extend_symbols({{{kind!r}: {short}}}) on the "
                "tokenizer and on the model"
            )
        return free

    def _table_of(self, names: Names) -> Table:
        """Name -> id of its symbol, of the `names` of an encoded row."""
        if unknown := [token for token in names if token not in self._symbol_ids]:
            raise ValueError(f"`names` has {unknown[0]!r}, which is no symbol")
        return {name: self._symbol_ids[token] for token, name in names.items()}

    def _tables_of(self, names: Sequence[Names] | Names, count: int) -> list[Table]:
        """The tables of so many rows, from the `names` of their encodings."""
        tables = []
        for number, row_names in enumerate(name_rows(names, count)):
            with in_row(number):
                tables.append(self._table_of(row_names))
        return tables

    # Batches

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = super()._pad(encoded_inputs, *args, **kwargs)  # type: ignore[misc]
        for key, filler in (("tree_paths", 0), ("offset_mapping", (0, 0))):
            if key in outputs:
                values = list(outputs[key])
                filling = [filler] * (len(outputs["input_ids"]) - len(values))
                left = (kwargs.get("padding_side") or self.padding_side) == "left"
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
        new_names: NewNames | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write ids as text, in the one spelling that encoding reads as these ids.

        Args:
            token_ids: one row of ids or a batch of rows; negative ids (ignored labels) are left
                out.
            skip_special_tokens: leave out pad, start and end tokens.
            names: the `names` of the encoding that was answered. A batch may have n rows for each
                of them, as `num_return_sequences=n` makes it.
            new_names: how symbols that have no name are spelled: what a number from 1 on follows
                (`"t"` for t1, t2, ...), other than the names and words that there are; or a
                function from that number and the class to a name. By default they are written as
                their tokens.
            **kwargs: options of other tokenizers, without effect.

        Raises:
            ValueError: the batch's rows are no multiple of `names`, an id is not in the vocabulary,
                or `new_names` gives a name that there is.
        """
        ids = to_py_obj(token_ids)
        if isinstance(names, Mapping):
            names = [names]
        if not (isinstance(ids, list | tuple) and ids and isinstance(ids[0], list | tuple)):
            row = list(ids) if isinstance(ids, list | tuple) else [ids]
            if names is not None and len(names) != 1:
                raise ValueError(f"one row of ids, but {len(names)} rows of `names`")
            table = self._with_new(row, names[0] if names else None, new_names)
            return self._write(row, skip_special_tokens, table)
        if names is None:
            names = [None]
        if not names or len(ids) % len(names):
            raise ValueError(f"{len(ids)} rows of ids are no multiple of {len(names)} `names`")
        repeats = len(ids) // len(names)
        return [
            self._write(
                row, skip_special_tokens, self._with_new(row, names[index // repeats], new_names)
            )
            for index, row in enumerate(ids)
        ]

    def _with_new(
        self, ids: list[int], names: Names | None, spelling: NewNames | None
    ) -> Names | None:
        """The names of a row, and spellings of the symbols that have none."""
        if spelling is None:
            return names
        table = {**getattr(self, "symbol_names", {}), **(names or {})}
        used = {*table.values(), *self.get_vocab()}  # type: ignore[attr-defined]
        numbers = count(1)
        for index in dict.fromkeys(i for i in ids if i >= 0):
            token = self.convert_ids_to_tokens(index)  # type: ignore[attr-defined]
            if token in self._symbol_ids and token not in table:
                table[token] = self._new_name(spelling, numbers, self.class_of(index), used)
                used.add(table[token])
        return table

    @staticmethod
    def _new_name(
        spelling: NewNames, numbers: Iterator[int], symbol_class: str, used: set[str]
    ) -> str:
        """The next spelling that is not in use."""
        if isinstance(spelling, str):
            return next(name for n in numbers if (name := f"{spelling}{n}") not in used)
        name = spelling(next(numbers), symbol_class)
        if name in used:
            raise ValueError(f"new_names gives {name!r}, which is a name or a word already")
        return name

    def batch_decode(
        self,
        sequences: Any,
        skip_special_tokens: bool = True,
        clean_up_tokenization_spaces: bool | None = None,
        names: Sequence[Names | None] | Names | None = None,
        new_names: NewNames | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """`decode`, but always a list."""
        if not len(sequences):
            return []
        rows = self.decode(sequences, skip_special_tokens, names, new_names)
        return rows if isinstance(rows, list) else [rows]

    @abstractmethod
    def _write(self, ids: list[int], skip_special_tokens: bool, names: Names | None) -> str:
        """Write one row of ids as text."""


def as_ranges(value: Any) -> dict[str, list[list[int]]]:
    """Class -> [start, stop) pairs as lists, if it is that."""
    if isinstance(value, Mapping) and all(isinstance(name, str) and name for name in value):
        with contextlib.suppress(TypeError):
            ranges = {name: [list(pair) for pair in pairs] for name, pairs in value.items()}
            pairs = list(chain.from_iterable(ranges.values()))
            integers = all(type(edge) is int for pair in pairs for edge in pair)
            if integers and all(len(pair) == 2 and pair[0] < pair[1] for pair in pairs):
                return ranges
    raise ValueError(f"`symbol_ranges` is {value!r}: give class -> [[start, stop], ...]")


def check_counts(value: Any, classes: Collection[str] | None = None) -> None:
    """Refuse what is not class -> number of symbols; `classes` are those that there are."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise ValueError(f"{value!r} symbols: give class -> number")
    for name, number in value.items():
        listed = ", ".join(map(repr, classes or ())) or "none"
        refuse(
            type(number) is not int or not 0 <= number <= MAX_SYMBOLS,
            f"cannot add {number!r} symbols to class {name!r}: give 0 to {MAX_SYMBOLS:,}",
        )
        refuse(
            classes is not None and name not in classes,
            f"no symbol class {name!r}: this tokenizer's classes are {listed}",
        )


@contextlib.contextmanager
def in_row(number: int) -> Iterator[None]:
    """Name the row in errors that its content raises."""
    try:
        yield
    except FormulaError as error:
        raise FormulaError(f"row {number}: {error}", error.position) from None
    except ValueError as error:
        raise ValueError(f"row {number}: {error}") from None


def check_inputs(text: Texts, text_target: Texts, names: Any) -> None:
    """Refuse the arguments of a call that do not go together."""
    both = text is not None and text_target is not None
    refuse(text is None and text_target is None, "give `text` or `text_target`")
    refuse(
        text is not None and names is not None,
        "`names` belong to `text_target` alone: `text` brings its own",
    )
    refuse(
        both and isinstance(text, str) != isinstance(text_target, str),
        "give `text` and `text_target` both as one string or both as a list",
    )


def only_row(encoding: AlphaEncoding, return_tensors: Any) -> AlphaEncoding:
    """The only row of a batch: its names, and its columns, unless they are tensors.

    A text that truncation has cut into several parts stays a batch.
    """
    if "overflow_to_sample_mapping" in encoding:
        return encoding
    if return_tensors is None:
        encoding.data = {key: column[0] for key, column in encoding.data.items()}
    encoding.names = encoding.names[0] if isinstance(encoding.names, list) else encoding.names
    return encoding


def check_row_counts(rows: Sequence[Any], others: Sequence[Any] | None, *names: str) -> None:
    """Refuse other rows than one for each; the names are those of the two arguments."""
    if others is not None and len(others) != len(rows):
        raise ValueError(f"{len(rows)} rows in `{names[0]}`, but {len(others)} in `{names[1]}`")


def text_rows(value: Texts, name: str) -> list[str] | None:
    """The texts of an argument as a list; None if it is not given."""
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    rows = list(value)
    for row, text in enumerate(rows):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ValueError(f"row {row} of `{name}` is a {kind}: give a string or a list of them")
    return rows


def name_rows(names: Sequence[Names] | Names | None, count: int) -> list[Names]:
    """The names of each of so many rows; none if they are not given."""
    if names is None:
        return [{} for _ in range(count)]
    rows = [names] if isinstance(names, Mapping) else list(names)
    check_row_counts(range(count), rows, "text_target", "names")
    return rows


def rectangle(rows: list[list[int]], filler: int, multiple: int) -> list[list[int]]:
    """Fill rows on the right up to the longest one, and to a multiple; at least one column."""
    width = max([1, *map(len, rows)])
    width = -(-width // multiple) * multiple
    return [[*row, *[filler] * (width - len(row))] for row in rows]


__all__ = ["AlphaEncoding", "Names", "SymbolTokenizer"]
