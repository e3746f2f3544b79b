"""One tokenizer for texts in which some tokens are only names: from text to ids, and back.

A text goes one way, be it a formula or prose:

    text -> the names in it (`_mark`: by a grammar, rules, columns of data or spans that are given)
         -> symbols for them (`assign_symbols`, row by row)
         -> ids of all pieces (`_columns`, `_features`: a table of tokens, or a tokenizer beneath)

and ids go back by `_write`. These four are what `AlphaTokenizer` and `TextTokenizer` differ in. The
names of a row travel with the encoding as `batch.names`, so that a tokenizer itself keeps nothing
between calls.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, filterfalse, starmap
from typing import Any, NamedTuple

from transformers.utils import PaddingStrategy, TensorType, to_py_obj

from .batches import AlphaEncoding, Names, PadsColumns, RowNames, words_beside
from .bound_names import key_of
from .choices import refuse
from .grammar import FormulaError
from .saving import SavesCode

MAX_SYMBOLS = 1_000_000
_OF_ANSWERS = ("truncation", "add_special_tokens", "verbose")
_OF_PADDING = ("pad_to_multiple_of", "padding_side", "return_attention_mask")

Texts = str | Sequence[str] | None
Features = dict[str, list[int]]  # what a model is given of one row
Table = dict[str, int]  # name -> id of its symbol
Ranges = dict[str, list[list[int]]]  # class -> [start, stop) of its ids
NewNames = str | Callable[[int, str], str]  # how symbols without a name are spelled, see `decode`


class CutRow(NamedTuple):
    """A row of a call whose names have symbols.

    Attributes:
        pieces: its text, and its second text if there is one, cut, with symbols in place of names.
        table: name -> id of its symbol. Names that have a binding are called by its key.
        symbols: name -> token of its symbol.
        names: the same the other way round, as names are spelled.
    """

    pieces: list[Any]
    table: Table
    symbols: dict[str, str]
    names: Names


class Reading(NamedTuple):
    """How the texts of a row are read.

    Attributes:
        asked: of an answer, the row that it answers.
        allow_absent: an answer may have names that its row lacks.
        options: of the call, such as `notation`.
    """

    asked: CutRow | None
    allow_absent: bool
    options: Mapping[str, Any]


class Marked(NamedTuple):
    """A row of a call with its names.

    Attributes:
        classes: name -> class, in order of first occurrence; of an answer, at least those that its
            row lacks. Names that have a binding are called by its key (`Span.key`).
        cut: from name -> symbol token to the pieces of a `CutRow`.
        spellings: name -> how it is spelled, where that is not what it is called.
        words: what else the row has that is spelled like its names.
    """

    classes: dict[str, str]
    cut: Callable[[dict[str, str]], list[Any]]
    spellings: Mapping[str, str] = {}
    words: Collection[str] = ()


class SymbolTokenizer(SavesCode, PadsColumns, ABC):
    """Mixin in front of a tokenizer of Transformers: its vocabulary has classes of symbols.

    A batch has `stream_ids` (B, S) beside the usual keys: the symbols of each row in order of first
    occurrence, -1 padded.

    Attributes:
        symbol_ranges: class -> [start, stop) pairs of its symbols' ids.
        spells_names: names become words of the model instead, and there are no symbols.
    """

    spells_names = False
    ragged = {"stream_ids": -1, "labels": -100}  # noqa: RUF012
    symbol_ranges: Ranges
    _symbol_ids: Table  # token of a symbol -> its id
    _token_of: dict[int, str]  # and the other way round
    _class_at: dict[int, str]  # id of a symbol -> its class
    _own_names: Table = {}  # noqa: RUF012  # name that is the same symbol wherever it occurs -> id

    @abstractmethod
    def settings(self) -> list[Any]:
        """Return all that ids depend on besides the code, as plain data."""

    # From texts to ids

    def __call__(
        self,
        text: Texts = None,
        text_pair: Texts = None,
        text_target: Texts = None,
        *,
        names: Any = None,
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
            names: of each text, names beside those that its rules find: class -> names, or a list
                of names of the class whose rule is a column, or of the only class; or the text as
                `MarkedText`, with all of its names. For `text_target` alone, the `names` of the
                encoding that it answers.
            padding: as in any tokenizer; labels are always padded on the right, with -100.
            max_length: as in any tokenizer; a formula that is longer is an error.
            max_target_length: the same for answers; `max_length` if not given.
            **kwargs: as in any tokenizer: `truncation`, `padding_side` and so on. With
                `allow_absent_symbols` answers may have names that their input lacks; only models
                with `new_symbols`, or `learned` ones, can give such an answer, so that they are an
                error otherwise. (Of `text_target` without `text` and `names` nothing is known.)

        Raises:
            FormulaError: a row cannot be read, has more names than there are symbols, or its
                answer has a name that it lacks.
            ValueError: an argument is not supported, rows and answers do not match, or there are
                none.
        """
        alone = isinstance(text if text is not None else text_target, str)
        both = text is not None and text_target is not None
        refuse(text is None and text_target is None, "give `text` or `text_target`")
        if alone and text is not None and names is not None:
            names = [names]
        refuse(
            both and isinstance(text, str) != isinstance(text_target, str),
            "give `text` and `text_target` both as one string or both as a list",
        )
        of_padding = {key: kwargs[key] for key in _OF_PADDING if key in kwargs}
        kwargs = {key: kwargs[key] for key in kwargs if key not in _OF_PADDING[:2]}
        encoding = self._encode(
            text_rows(text, "text"),
            text_rows(text_pair, "text_pair"),
            text_rows(text_target, "text_target"),
            names,
            max_length,
            max_target_length or max_length,
            **kwargs,
        )
        if padding or return_tensors is not None:
            length = max_length if padding == PaddingStrategy.MAX_LENGTH else None
            padded = self.pad(
                encoding, padding, length, return_tensors=return_tensors, **of_padding
            )
            for part, ids in zip(encoding.encodings or (), padded["input_ids"], strict=False):
                part.pad(
                    len(ids),
                    direction=of_padding.get("padding_side") or self.padding_side,
                    pad_id=self.pad_token_id,  # type: ignore[attr-defined]
                    pad_token=self.pad_token,  # type: ignore[attr-defined]
                )
            encoding = AlphaEncoding(padded.data, encoding.encodings, names=padded.names)
        if alone and "overflow_to_sample_mapping" not in encoding:  # parts of a text are a batch
            if return_tensors is None:
                encoding.data = {key: column[0] for key, column in encoding.data.items()}
            of_rows: Any = encoding.names
            encoding.names = of_rows and of_rows[0]
        return encoding

    def _encode(
        self,
        texts: list[str] | None,
        pairs: list[str] | None,
        targets: list[str] | None,
        names: Any,
        max_length: int | None,
        max_target_length: int | None,
        allow_absent_symbols: bool = False,
        **options: Any,
    ) -> AlphaEncoding:
        """Encode the rows of a call without padding."""
        refuse(not (targets if texts is None else texts), "there are no rows to encode")
        if texts is None and targets is not None:
            asked = self._asked(names, len(targets))
            rows = self._rows(targets, None, asked, allow_absent_symbols or names is None, options)
            return self._columns(rows, max_target_length, are_answers=True, **options)
        assert texts is not None
        check_row_counts(texts, pairs, "text", "text_pair")
        check_row_counts(texts, targets, "text", "text_target")
        if names is not None:
            check_row_counts(texts, names, "text", "names")
            texts, pairs = self._with_names(texts, pairs, names)
        rows = self._rows(texts, pairs, options=options)
        encoding = self._columns(rows, max_length, **options)
        if targets is not None:
            refuse(
                "overflow_to_sample_mapping" in encoding,
                "a part of a text has no answer: leave out return_overflowing_tokens",
            )
            options = {key: options[key] for key in _OF_ANSWERS if key in options}
            rows = self._rows(targets, None, rows, allow_absent_symbols)
            answers = self._columns(rows, max_target_length, are_answers=True, **options)
            if not allow_absent_symbols:
                self._check_symbols(answers, encoding)
            encoding["labels"] = answers["input_ids"]
        return encoding

    def _with_names(
        self, texts: list[str], pairs: list[str] | None, names: Sequence[Any]
    ) -> tuple[list[str], list[str] | None]:
        """Mark the names that are given for each row in its text, and in its second one."""
        rows = []
        for number, (text, of_row) in enumerate(zip(texts, names, strict=True)):
            with in_row(number):
                rows.append(self.mark([text] if pairs is None else [text, pairs[number]], of_row))
        marked, *others = map(list, zip(*rows, strict=True))
        return marked, others[0] if others else None

    def mark(self, texts: Sequence[str], names: Any) -> list[Any]:
        """Mark the names that are given for texts of a row, and those that rules find in them.

        Args:
            texts: one, or two that belong together.
            names: as for a call.

        Raises:
            ValueError: there are no such classes, or a name stands in no text.
        """
        raise ValueError("names: it takes none: a grammar says which words of a formula are names")

    def encode_pair(self, problem: str, answer: str | None = None, **options: Any) -> Features:
        """Encode one row as plain lists; see `encode_pairs`."""
        answers = None if answer is None else [answer]
        return self.encode_pairs([problem], answers, first_row=None, **options)[0]

    def encode_pairs(
        self,
        problems: Sequence[str],
        answers: Sequence[str] | None = None,
        allow_absent_symbols: bool = False,
        first_row: int | None = 0,
        **options: Any,
    ) -> list[Features]:
        """Encode rows as plain lists, with nothing around them: for large data sets.

        Args:
            problems: formulas, or texts.
            answers: one for each of them.
            allow_absent_symbols: as for a call.
            first_row: number of the first row, for error messages; None for no numbers in them.
            **options: of how texts are read, as for a call: `notation` of formulas.

        Returns:
            For each row `input_ids`, `stream_ids`, `tree_paths` (with a grammar) and `labels` (with
            answers); `pad` makes batches of such rows.

        Raises:
            FormulaError, ValueError: as a call does.
        """
        texts, targets = text_rows(problems, "problems") or [], text_rows(answers, "answers")
        check_row_counts(texts, targets, "problems", "answers")
        rows = self._rows(texts, options=options, first_row=first_row)
        features = self._features(rows)
        if targets is not None:
            rows = self._rows(targets, None, rows, allow_absent_symbols, first_row=first_row)
            for row, answer in zip(features, self._features(rows, are_answers=True), strict=True):
                row["labels"] = answer["input_ids"]
        return features

    def encode(self, text: str, text_pair: str | None = None, **kwargs: Any) -> Any:
        """The `input_ids` of one text."""
        return self(text, text_pair, **kwargs)["input_ids"]

    def tokenize(self, text: str, pair: str | None = None, **kwargs: Any) -> list[str]:
        """The tokens of one text, those of symbols in place of its names."""
        ids = self.encode(text, pair, **{"add_special_tokens": False, **kwargs})
        return self.convert_ids_to_tokens(ids)  # type: ignore[attr-defined]

    def _rows(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        asked: Sequence[CutRow | None] | None = None,
        allow_absent: bool = False,
        options: Mapping[str, Any] | None = None,
        first_row: int | None = 0,
    ) -> list[CutRow]:
        """Find the names of all rows and give them symbols.

        Args:
            pairs: the second text of each row.
            asked: of answers, the row that each answers.
            allow_absent: answers may have names that their rows lack.
            options: of a call, on how texts are read.
        """
        rows: list[CutRow] = []
        try:
            for number, text in enumerate(texts):
                parts = (text,) if pairs is None else (text, pairs[number])
                question = None if asked is None else asked[number]
                rows.append(self._row(parts, Reading(question, allow_absent, options or {})))
        except ValueError:
            with in_row(None if first_row is None else first_row + len(rows)):
                raise
        return rows

    def _row(self, texts: tuple[str, ...], reading: Reading) -> CutRow:
        classes, cut, spellings, words = self._mark(texts, reading)
        if (asked := reading.asked) is not None:
            if not words and not classes.keys() - asked.table.keys():
                return CutRow(cut(asked.symbols), *asked[1:])
            if not reading.allow_absent:
                check_present(texts[0], classes, asked.table, spellings)
        table = self.assign_symbols(classes, asked and asked.table)
        symbols = dict(zip(table, map(self._token_of.__getitem__, table.values()), strict=True))
        names = {token: spellings.get(name, name) for name, token in symbols.items()}
        names |= {} if asked is None else asked.names
        words = words_beside(asked and asked.names).union(words)
        return CutRow(cut(symbols), table, symbols, RowNames.of(names, words) if words else names)

    @abstractmethod
    def _mark(self, texts: tuple[str, ...], reading: Reading) -> Marked:
        """Find the names of a row, or of an answer to one."""

    @abstractmethod
    def _columns(
        self, rows: list[CutRow], max_length: int | None, are_answers: bool = False, **options: Any
    ) -> AlphaEncoding:
        """Return the ids of rows, with all that a call asks for."""

    @abstractmethod
    def _features(self, rows: list[CutRow], are_answers: bool = False) -> list[Features]:
        """Return the ids of rows, and what else a model is given of them."""

    def _streams(self, ids: Sequence[int]) -> list[int]:
        """The symbols of a row, by first occurrence."""
        symbols = self._token_of
        return list(dict.fromkeys([index for index in ids if index in symbols]))

    def _check_symbols(self, answers: Any, encoding: Any) -> None:
        """Refuse answers with symbols that their texts lack, or truncation has cut off."""
        for row, present in enumerate(encoding["stream_ids"]):
            symbols = self._streams(answers["input_ids"][row])
            if absent := [index for index in symbols if index not in present]:
                token = self._token_of[absent[0]]
                why = (
                    "truncation has cut off the input: raise max_length, leave the row out,"
                    if token in encoding.names[row]
                    else "the input lacks: correct the row, leave it out,"
                )
                raise FormulaError(
                    f"row {row}: the answer has the {self.class_of(absent[0])} "
                    f"{answers.names[row].get(token, token)!r}, which {why} or pass "
                    "allow_absent_symbols=True"
                )

    # Symbols

    @property
    def symbol_classes(self) -> dict[str, int]:
        """Class -> number of its symbols."""
        return {
            name: sum(stop - start for start, stop in pairs)
            for name, pairs in self.symbol_ranges.items()
        }

    @property
    def symbol_ids(self) -> list[int]:
        """The ids of all symbols: of formulas in the order of ids, of texts class by class."""
        return list(self._symbol_ids.values())

    @property
    def num_base_tokens(self) -> int:
        """Number of tokens that are no symbols, special tokens included."""
        return self.vocab_size - len(self._symbol_ids)

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of tokens, symbols and special tokens included."""

    def class_of(self, index: int) -> str:
        """The class of the symbol with this id."""
        return self._class_at[index]

    def extend_symbols(self, counts: Mapping[str, int]) -> list[int]:
        """Add symbols to classes, at the end of the vocabulary: the ids in use never move.

        New ids go to the classes in their own order, whatever that of `counts`. The model has a
        method of the same name, which has to be called with the same counts.

        Returns:
            The new ids.

        Raises:
            ValueError: a class is unknown, or a count is negative or beyond a million.
        """
        first = self.vocab_size
        self._grow(counts, self.symbol_ranges)
        return list(range(first, self.vocab_size))

    def _grow(self, counts: Mapping[str, int], known: Collection[str] | None = None) -> None:
        check_counts(counts, known)
        classes = dict.fromkeys([*self.symbol_ranges, *counts])
        tokens = self._new_tokens({name: counts[name] for name in classes if counts.get(name)})
        for name, new in tokens.items():
            start = self.vocab_size
            self._append(new)
            self.symbol_ranges.setdefault(name, []).append([start, start + len(new)])
        self._rebuild_tables()

    @abstractmethod
    def _new_tokens(self, counts: Mapping[str, int]) -> dict[str, list[str]]:
        """Class -> tokens for so many more symbols."""

    @abstractmethod
    def _append(self, tokens: list[str]) -> None:
        """Put tokens behind those of the vocabulary."""

    def add_special_tokens(
        self, special_tokens_dict: Mapping[str, Any], replace_extra_special_tokens: bool = True
    ) -> int:
        """Make tokens of the vocabulary special.

        Raises:
            ValueError: a token is not in the vocabulary, or those that are special are fixed;
                nothing is changed then.
        """
        for value in special_tokens_dict.values():
            self._refuse_new(value if isinstance(value, list | tuple) else [value])
        return super().add_special_tokens(  # type: ignore[misc]
            dict(special_tokens_dict), replace_extra_special_tokens
        )

    def _refuse_new(self, tokens: Iterable[Any]) -> None:
        if unknown := [token for token in map(str, tokens) if not self._has(token)]:
            raise ValueError(
                f"cannot add token {unknown[0]!r}: a model with symbols takes no other new tokens. "
                "Add symbols by `extend_symbols`, and tokens to the tokenizer beneath, before "
                "from_tokenizer puts symbols on top of it"
            )

    @abstractmethod
    def _has(self, token: str) -> bool:
        """Whether a token is in the vocabulary."""

    def _rebuild_tables(self) -> None:
        """Find everything out again that follows from the vocabulary and its ranges."""
        self._token_of = {index: token for token, index in self._symbol_ids.items()}
        self._class_at = {
            index: name
            for name, pairs in self.symbol_ranges.items()
            for start, stop in pairs
            for index in range(start, min(stop, self.vocab_size))  # a damaged file may say more
        }

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
        given, at = table or {}, self._class_at
        assigned = dict(given)
        used = set(assigned.values())
        for own in (self._symbol_ids, self._own_names):
            for name in own.keys() & classes.keys() if own else ():
                index = own[name]
                if index not in used and name not in assigned and at[index] == classes[name]:
                    assigned[name] = index
                    used.add(index)
        own_first = len(assigned) > len(given)
        free: dict[str, Iterator[int]] = {}
        for name, kind in classes.items():
            if name not in assigned:
                if kind not in free:
                    ids = chain.from_iterable(starmap(range, self.symbol_ranges.get(kind, ())))
                    free[kind] = filterfalse(used.__contains__, ids)
                if (index := next(free[kind], -1)) < 0:
                    short = sum(k == kind and n not in assigned for n, k in classes.items())
                    raise self._too_few(kind, short)
                assigned[name] = index
        return {name: assigned[name] for name in (*given, *classes)} if own_first else assigned

    def _too_few(self, kind: str, short: int) -> FormulaError:
        count = self.symbol_classes.get(kind, 0)
        return FormulaError(
            f"{count + short} names of class {kind!r}, but the vocabulary has {count} symbols "
            "for them: make the tokenizer with more (`count` in the rule of the class, or "
            f"`symbol_classes`), or call extend_symbols({{{kind!r}: {short}}}) on the "
            "tokenizer and on the model"
        )

    def _table_of(self, names: Names) -> Table:
        """Name -> id of its symbol, of the `names` of an encoded row."""
        if unknown := [token for token in names if token not in self._symbol_ids]:
            raise ValueError(f"`names` has {unknown[0]!r}, which is no symbol")
        return {key_of(name): self._symbol_ids[token] for token, name in names.items()}

    def _asked(self, names: Sequence[Names] | Names | None, number: int) -> list[CutRow | None]:
        """The rows that so many answers answer, as far as their `names` say; None without names."""
        if names is None:
            return [None] * number
        all_names = [names] if isinstance(names, Mapping) else list(names)
        check_row_counts(range(number), all_names, "text_target", "names")
        asked: list[CutRow | None] = []
        for place, of_row in enumerate(all_names):
            with in_row(place):
                symbols = {key_of(name): token for token, name in of_row.items()}
                asked.append(CutRow([], self._table_of(of_row), symbols, of_row))
        return asked

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
            skip_special_tokens: leave out pad, start and end tokens. (Transformers' default is to
                write them; here ids are mostly answers, which nobody wants to end in `</s>`.)
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
        is_batch = isinstance(ids, list | tuple) and ids and isinstance(ids[0], list | tuple)
        rows = ids if is_batch else [ids if isinstance(ids, list | tuple) else [ids]]
        all_names = [names] if names is None or isinstance(names, Mapping) else names
        if not all_names or len(rows) % len(all_names):
            raise ValueError(f"{len(rows)} rows of ids are no multiple of {len(all_names)} `names`")
        repeats, texts = len(rows) // len(all_names), []
        for number, row in enumerate(rows):
            row = [int(index) for index in row if index >= 0]
            self._check_ids(row)
            table = self.with_new_names(row, all_names[number // repeats], new_names)
            texts.append(self._write(row, skip_special_tokens, table))
        return texts if is_batch else texts[0]

    def _check_ids(self, ids: Iterable[int]) -> None:
        size = self.vocab_size  # counts added tokens, so it is asked for once
        if outside := [index for index in ids if not 0 <= index < size]:
            raise ValueError(
                f"id {outside[0]} is outside this tokenizer's vocabulary of {size} "
                "tokens: model and tokenizer have to be extended alike (`extend_symbols`)"
            )

    def with_new_names(
        self, ids: Iterable[int], names: Names | None, spelling: NewNames | None
    ) -> Names | None:
        """Return the names of a row, and spellings of the symbols that have none; see `decode`."""
        if spelling is None:
            return names
        of_symbols = {**getattr(self, "symbol_names", {}), **(names or {})}
        table = RowNames.of(of_symbols, words_beside(names))
        tokens = map(self.convert_ids_to_tokens, dict.fromkeys(ids))  # type: ignore[attr-defined]
        nameless = [token for token in tokens if token in self._symbol_ids and token not in table]
        used, numbers = {*table.values()} if nameless else set[str](), count(1)
        for token in nameless:
            kind = self.class_of(self._symbol_ids[token])
            table[token] = self._new_name(spelling, numbers, kind, used)
            used.add(table[token])
        return table

    def _new_name(
        self, spelling: NewNames, numbers: Iterator[int], symbol_class: str, used: set[str]
    ) -> str:
        """The next spelling that is not in use, and no token."""
        if isinstance(spelling, str):
            names = (f"{spelling}{n}" for n in numbers)
            return next(name for name in names if not (name in used or self._has(name)))
        name = spelling(next(numbers), symbol_class)
        if name in used or self._has(name):
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


def check_present(
    answer: str,
    classes: Mapping[str, str],
    present: Container[str],
    spellings: Mapping[str, str] = {},
) -> None:
    """Refuse an answer with a name that the row which it answers lacks."""
    if name := next((name for name in classes if name not in present), None):
        shown = answer if len(answer) <= 60 else f"{answer[:60]}..."
        raise FormulaError(
            f"the answer {str(shown)!r} has the {classes[name]} "
            f"{str(spellings.get(name, name))!r}, which the input lacks, "
            "so that only a model with new_symbols=True, or a `learned` one, can give it: correct "
            "the row, leave it out, or pass allow_absent_symbols=True"
        )


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
def in_row(number: int | None) -> Iterator[None]:
    """Name the row in errors that its content raises; None for a row without a number."""
    try:
        yield
    except ValueError as error:
        if number is None:
            raise
        if isinstance(error, FormulaError):
            raise FormulaError(f"row {number}: {error}", error.position) from None
        raise ValueError(f"row {number}: {error}") from None


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
