"""Texts cut into pieces, with symbols in place of names, for the tokenizer beneath, and back.

[`tokenization_text`] says how spaces are kept.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

import regex  # type: ignore[import-untyped]

from .names_in_text import Span

JOIN = "<join>"
SPACINGS = ("before", "kept", "words")
BETWEEN = "\x1f"
"""What stands between words on their way to a tokenizer of words; texts with it lose it."""
WORD = regex.compile(r"\w+|[^\w\s]|\n|[^\S\n]+")

Table = dict[str, int]  # name -> id


Piece = tuple[str, int, int, bool]
"""A piece of what the tokenizer beneath gets, start and stop of what it stands for in the text, and
whether it does so character by character, or else as a whole."""


def moved(pieces: list[Piece], starts: list[int], start: int, stop: int) -> tuple[int, int]:
    """The characters of the text that characters of the prepared one stand for."""
    number = max(bisect_right(starts, start) - 1, 0)
    _, first, last, as_is = pieces[number]
    if not as_is:
        return first, last
    begin = first - starts[number]
    return begin + start, min(begin + stop, last)


def pieces_of(
    spacing: str, text: str, spans: Sequence[Span], symbols: Mapping[str, str]
) -> list[Piece]:
    """Cut a text into pieces.

    Args:
        spacing: one of `SPACINGS`.
        text: the text.
        spans: its names.
        symbols: name -> token of its symbol.
    """
    if spacing == "words":
        return _words(text, spans, symbols)
    pieces: list[Piece] = []
    at, plain, implies = 0, str(text), spacing == "before"
    for start, stop, _ in spans:
        end, joined = start, False
        if implies and start:
            before = plain[start - 1] if start > at else ""
            if before == " ":
                end -= start > 1 and not plain[max(at, start - 2) : start - 1].isspace()
            else:
                joined = not before.isspace()
        if end > at:
            pieces.append((plain[at:end], at, end, True))
        if joined:
            pieces.append((JOIN, start, start, False))
        pieces.append((symbols[plain[start:stop]], start, stop, False))
        at = stop
    if at < len(plain):
        pieces.append((plain[at:], at, len(plain), True))
    return pieces


@lru_cache(maxsize=4096)
def _cut(part: str) -> tuple[tuple[str, int, int], ...]:
    """Words and whitespace of what stands between two names, which is often the same."""
    return tuple((match.group(), *match.span()) for match in WORD.finditer(part))


def _words(text: str, spans: Sequence[Span], symbols: Mapping[str, str]) -> list[Piece]:
    """Split a text into words, symbols, `<join>` and whitespace that is no single space."""
    plain, at = str(text), 0
    found: list[Piece] = []
    for start, stop, _ in spans:
        found += [(word, at + i, at + j, True) for word, i, j in _cut(plain[at:start])]
        found.append((symbols[plain[start:stop]], start, stop, False))
        at = stop
    found += [(word, at + i, at + j, True) for word, i, j in _cut(plain[at:])]
    pieces: list[Piece] = []
    blank_before, space = True, None  # at the start there is no word to be joined to
    for piece in found:
        written, start, _, as_is = piece
        blank = as_is and written.isspace()
        if blank and written == " " and not blank_before and space is None:
            space = piece
            continue
        if blank:
            pieces += [space] if space else []
        elif not blank_before and space is None:
            pieces.append((JOIN, start, start, False))
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
