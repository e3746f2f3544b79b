"""Rows of texts with symbols in place of their names, made ready for the tokenizer beneath."""

from collections.abc import Container, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from tokenizers import Encoding

from .grammar import FormulaError, check_unicode
from .names_in_text import Kept, MarkedText, Span
from .text_pieces import BETWEEN, Piece, moved, pieces_of
from .text_vocabulary import TextVocabulary
from .tokenization_symbols import Names, Table, in_row


class Row(NamedTuple):
    """A row on its way to the tokenizer beneath."""

    texts: list[str]  # its text, and its second text if there is one, with symbols
    pieces: list[list[Piece]]  # which these are made of
    table: Table
    names: Names


class RowEncoding:
    """What the tokenizer beneath made of a row, as a `tokenizers.Encoding` of the row's own texts.

    Characters are those of the texts as they were given: the tokenizer beneath got symbols in place
    of names, and names are one word each.

    Args:
        beneath: the encoding by the tokenizer beneath, or a part of it.
        row: what it was made of.
        spacing: of the tokenizer.
    """

    def __init__(self, beneath: Encoding, row: Row, spacing: str):
        self.beneath, self._row, self._spacing = beneath, row, spacing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of copies and pickles
            raise AttributeError(name)
        return getattr(self.beneath, name)

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token stands in its text; (0, 0) for special tokens."""
        gap = len(BETWEEN) if self._spacing == "words" else 0
        all_pieces = self._row.pieces
        starts = [
            [0, *accumulate(len(written) + gap for written, *_ in pieces)][: len(pieces)]
            for pieces in all_pieces
        ]
        pairs = zip(self.beneath.sequence_ids, self.beneath.offsets, strict=True)
        return [
            (0, 0) if which is None else moved(all_pieces[which], starts[which], *span)
            for which, span in pairs
        ]

    def pad(self, *args: Any, **kwargs: Any) -> None:
        """Pad it, as `tokenizers.Encoding.pad` does."""
        self.beneath.pad(*args, **kwargs)
        self.__dict__.pop("offsets", None)

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token with a character of a text; None where it is in none, as spaces are."""
        places = zip(self.beneath.sequence_ids, self.offsets, strict=True)
        of_text = (which == sequence_index and a <= char_pos < b for which, (a, b) in places)
        return next((token for token, here in enumerate(of_text) if here), None)

    def token_to_chars(self, token_index: int) -> tuple[int, int] | None:
        """The first character of a token and the one behind its last; None of special tokens."""
        in_text = self.beneath.token_to_chars(token_index) is not None
        return self.offsets[token_index] if in_text else None

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The number of the word with a character of a text."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.beneath.token_to_word(token)

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        """The first character of a word and the one behind its last."""
        tokens = self.beneath.word_to_tokens(word_index, sequence_index)
        return tokens and (self.offsets[tokens[0]][0], self.offsets[tokens[1] - 1][1])


class PreparesTexts(TextVocabulary):
    """Finds the names of texts, and puts symbols in their place."""

    def _prepare(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        tables: Sequence[Table] | None = None,
        allow_absent_symbols: bool = False,
        first_row: int = 0,
        split_special_tokens: bool | None = None,
    ) -> list[Row]:
        """Put symbols in place of the names of all rows.

        Args:
            texts: of each row.
            pairs: the second text of each row.
            tables: of answers, name -> id in the row that each answers.
            allow_absent_symbols: answers may have names that their rows lack.
            first_row: the number of the first row in error messages.
            split_special_tokens: special tokens are text like any other; by default the
                tokenizer's attribute.

        Raises:
            FormulaError: a row has more names than there are symbols, or one of two classes, or an
                answer has one that its row lacks.
            ValueError: see `NameFinder.find`.
        """
        rows = []
        for number, text in enumerate(texts):
            row = (text,) if pairs is None else (text, pairs[number])
            table = None if tables is None else tables[number]
            with in_row(first_row + number):
                rows.append(
                    self._prepare_row(row, table, allow_absent_symbols, split_special_tokens)
                )
        return rows

    def _prepare_row(
        self, texts: tuple[str, ...], table: Table | None, allow_absent: bool, split: bool | None
    ) -> Row:
        for text in texts:
            check_unicode(text)  # the tokenizer beneath would call it no string
            if table is None and self._by_row:
                self.finder.require_names(text)
        split = self.split_special_tokens if split is None else split
        kept = [self._added.find(text, split) for text in texts]
        return self._row_of(texts, kept, table, allow_absent)

    def _row_of(
        self, texts: tuple[str, ...], kept: Sequence[Kept], table: Table | None, allow_absent: bool
    ) -> Row:
        spans = [self._names(*pair, table) for pair in zip(texts, kept, strict=True)]
        if table is None or allow_absent:
            table = self.assign_symbols(_classes(texts, spans), table)
        else:
            check_present(texts[0], spans[0], table)
        symbols = {name: self._token_of[index] for name, index in table.items()}
        marks = self._marks() if any(kept) else ()
        pieces = []
        for text, names, own in zip(texts, spans, kept, strict=True):
            tokens = [(i, j, t in marks) for i, j, t in own]
            pieces.append(pieces_of(self.spacing, text, names, symbols, tokens, self.begins_parts))
        between = BETWEEN if self.spacing == "words" else ""
        written = [between.join([piece[0] for piece in of_text]) for of_text in pieces]
        return Row(written, pieces, table, {token: name for name, token in symbols.items()})

    def _names(self, text: str, kept: Kept, table: Table | None) -> tuple[Span, ...]:
        """The names of a text, those that are written as tokens of symbols included.

        Args:
            text: the text.
            kept: tokens of the tokenizer beneath that it has itself, which are no names.
            table: of an answer, name -> id in the row that it answers.
        """
        classes = None if table is None else {name: self.class_of(i) for name, i in table.items()}
        spans = self.finder.find(text, classes, kept)
        if "<" not in text:
            return spans
        tokens = tuple(
            Span(match.start(), match.end(), self.class_of(self._symbol_ids[match.group()]))
            for match in self._token_pattern.finditer(text)
            if match.group() in self._symbol_ids
        )
        first, second = (spans, tokens) if isinstance(text, MarkedText) else (tokens, spans)
        apart = [s for s in second if all(s.stop <= o.start or o.stop <= s.start for o in first)]
        return tuple(sorted([*first, *apart]))


def _classes(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> dict[str, str]:
    """Name -> class, in order of first occurrence."""
    classes: dict[str, str] = {}
    for text, names in zip(map(str, texts), spans, strict=True):
        for start, stop, kind in names:
            name = text[start:stop]
            if classes.setdefault(name, kind) != kind:
                raise FormulaError(
                    f"the name {name!r} is of class {classes[name]!r} and of class {kind!r} in one "
                    "text: a name belongs to one class",
                    start,
                )
    return classes


def check_present(answer: str, spans: Sequence[Span], names: Container[str]) -> None:
    """Refuse an answer with a name that the row which it answers lacks."""
    for start, stop, kind in spans:
        if (name := answer[start:stop]) not in names:
            shown = answer if len(answer) <= 60 else f"{answer[:60]}..."
            raise FormulaError(
                f"the answer {str(shown)!r} has the {kind} {name!r}, which the input lacks, so "
                "that no model but a `learned` one can give it: correct the row, leave it out, or "
                "pass allow_absent_symbols=True",
                start,
            )


__all__ = ["PreparesTexts", "Row", "RowEncoding", "check_present"]
