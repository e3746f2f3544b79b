"""Texts cut into pieces, with symbols in place of names, for the tokenizer beneath, and back.

[`tokenization_text`] says how spaces are kept.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import regex  # type: ignore[import-untyped]

from .names_in_text import Span

JOIN = "<join>"
SPACINGS = ("before", "kept", "words")
BETWEEN = "\x1f"
"""What stands between words on their way to a tokenizer of words; texts with it lose it."""
WORD = regex.compile(r"\w+|[^\w\s]|\n|[^\S\n]+")

Table = dict[str, int]  # name -> id


class Piece(NamedTuple):
    """A piece of what the tokenizer beneath gets, and the characters of the text it stands for."""

    text: str
    start: int
    stop: int
    as_is: bool  # character by character; else as a whole


def moved(pieces: list[Piece], starts: list[int], start: int, stop: int) -> tuple[int, int]:
    """The characters of the text that characters of the prepared one stand for."""
    number = max(bisect_right(starts, start) - 1, 0)
    piece, before = pieces[number], starts[number]
    if not piece.as_is:
        return piece.start, piece.stop
    return piece.start + start - before, min(piece.start + stop - before, piece.stop)


def pieces_of(
    spacing: str, text: str, spans: Sequence[Span], table: Table, token_of: Mapping[int, str]
) -> list[Piece]:
    """Cut a text into pieces.

    Args:
        spacing: one of `SPACINGS`.
        text: the text.
        spans: its names.
        table: name -> id of its symbol.
        token_of: id of a symbol -> its token.
    """
    if spacing == "words":
        return _words(text, spans, table, token_of)
    pieces, at, plain = [], 0, str(text)
    for start, stop, _ in spans:
        end, join = start, False
        if spacing == "before" and start:
            absorbed = plain[start - 1] == " " and start - 1 >= max(at, 1)
            end, join = (start - 1, False) if absorbed else (start, True)
        if end > at:
            pieces.append(Piece(plain[at:end], at, end, True))
        if join:
            pieces.append(Piece(JOIN, start, start, False))
        pieces.append(Piece(token_of[table[plain[start:stop]]], start, stop, False))
        at = stop
    if at < len(plain):
        pieces.append(Piece(plain[at:], at, len(plain), True))
    return pieces


def _words(
    text: str, spans: Sequence[Span], table: Table, token_of: Mapping[int, str]
) -> list[Piece]:
    """Split a text into words, symbols, `<join>` and whitespace that is no single space."""
    plain = str(text)
    found = []
    at = 0
    for start, stop, _ in (*spans, Span(len(plain), len(plain), "")):
        found += [
            Piece(match.group(), match.start(), match.end(), True)
            for match in WORD.finditer(plain, at, start)
        ]
        if stop > start:
            found.append(Piece(token_of[table[plain[start:stop]]], start, stop, False))
        at = stop
    pieces: list[Piece] = []
    blank_before, space = True, None  # at the start there is no word to be joined to
    for piece in found:
        blank = piece.as_is and piece.text.isspace()
        if blank and piece.text == " " and not blank_before and space is None:
            space = piece
            continue
        if blank:
            pieces += [space] if space else []
        elif not blank_before and space is None:
            pieces.append(Piece(JOIN, piece.start, piece.start, False))
        pieces.append(piece)
        blank_before, space = blank, None
    return pieces + ([space] if space else [])


def join_words(tokens: list[str]) -> str:
    """Undo `_words`."""
    parts: list[str] = []
    bare = True  # nothing is to be written before the next word
    for token in tokens:
        if token == JOIN:
            bare = True
            continue
        blank = token.isspace()
        parts.append(token if blank or bare else f" {token}")
        bare = blank
    return "".join(parts)


__all__ = [
    "BETWEEN",
    "JOIN",
    "SPACINGS",
    "WORD",
    "Piece",
    "Table",
    "join_words",
    "moved",
    "pieces_of",
]
