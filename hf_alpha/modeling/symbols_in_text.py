"""Rows of texts with symbols in place of their names, made ready for the tokenizer beneath."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

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
    symbols: dict[str, str]  # name -> token

    def names(self) -> Names:
        """Symbol token -> name."""
        return {token: name for name, token in self.symbols.items()}

    def offsets(self, encoding: Any, spacing: str) -> list[tuple[int, int]]:
        """Where in the texts as they were given the tokens stand."""
        gap = len(BETWEEN) if spacing == "words" else 0
        starts = [
            [0, *accumulate(len(written) + gap for written, *_ in pieces)][: len(pieces)]
            for pieces in self.pieces
        ]
        pairs = zip(encoding.sequence_ids, encoding.offsets, strict=True)
        return [
            (0, 0) if which is None else moved(self.pieces[which], starts[which], *span)
            for which, span in pairs
        ]


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
        spans = [self._names(*pair, table) for pair in zip(texts, kept, strict=True)]
        if table is None or allow_absent:
            table = self.assign_symbols(_classes(texts, spans), table)
        else:
            _check_present(texts[0], spans[0], table)
        symbols = {name: self._token_of[index] for name, index in table.items()}
        marks = self._marks() if any(kept) else ()
        pieces = [
            pieces_of(self.spacing, text, names, symbols, [(i, j, t in marks) for i, j, t in own])
            for text, names, own in zip(texts, spans, kept, strict=True)
        ]
        between = BETWEEN if self.spacing == "words" else ""
        written = [between.join([piece[0] for piece in of_text]) for of_text in pieces]
        return Row(written, pieces, table, symbols)

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


def _check_present(answer: str, spans: Sequence[Span], table: Table) -> None:
    """Refuse an answer with a name that the row which it answers lacks."""
    for start, stop, kind in spans:
        if (name := answer[start:stop]) not in table:
            shown = answer if len(answer) <= 60 else f"{answer[:60]}..."
            raise FormulaError(
                f"the answer {str(shown)!r} has the {kind} {name!r}, which the input lacks, so "
                "that no model but a `learned` one can give it: correct the row, leave it out, or "
                "pass allow_absent_symbols=True",
                start,
            )


__all__ = ["PreparesTexts", "Row"]
