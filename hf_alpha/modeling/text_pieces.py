"""Texts cut into pieces, with symbols in place of names, for the tokenizer beneath, and back.

[`tokenization_text`] says how spaces are kept.
"""

from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import regex  # type: ignore[import-untyped]
from tokenizers import Encoding

JOIN = "<join>"
SPACINGS = ("before", "kept", "words")
BETWEEN = "\x1f"
"""What stands between words on their way to a tokenizer of words; texts with it lose it."""
WORD = regex.compile(r"\w+|[^\w\s]|\n|[^\S\n]+")

Piece = tuple[str, int, int, bool]
"""A piece of what the tokenizer beneath gets, start and stop of what it stands for in the text, and
whether it does so character by character, or else as a whole. What begins a part may be before the
characters."""


Place = tuple[int, int, str, bool, bool]
"""Where a name starts and stops; what is written for it, the token of its symbol or a word; whether
a space before it is implied where `spacing` says so, or stands as the text has it; and whether one
behind it is implied, since the tokenizer beneath would write it."""


class RowEncoding:
    """What the tokenizer beneath made of a row, as a `tokenizers.Encoding` of the row's own texts.

    Characters are those of the texts as they were given: the tokenizer beneath got symbols in place
    of names, and names are one word each.

    Args:
        beneath: the encoding by the tokenizer beneath, or a part of it.
        pieces: what each text of the row was made of.
        between: what stands between pieces.
    """

    def __init__(self, beneath: Encoding, pieces: Sequence[list[Piece]], between: str):
        self.beneath, self._pieces, self._gap = beneath, pieces, len(between)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of copies and pickles
            raise AttributeError(name)
        return getattr(self.beneath, name)

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token stands in its text; (0, 0) for special tokens."""
        starts = [
            [0, *accumulate(len(written) + self._gap for written, *_ in pieces)][: len(pieces)]
            for pieces in self._pieces
        ]
        pairs = zip(self.beneath.sequence_ids, self.beneath.offsets, strict=True)
        return [
            (0, 0) if which is None else self._moved(self._pieces[which], starts[which], *span)
            for which, span in pairs
        ]

    @staticmethod
    def _moved(pieces: list[Piece], starts: list[int], start: int, stop: int) -> tuple[int, int]:
        """Returns the characters of the text that characters of the prepared one stand for."""
        number = max(bisect_right(starts, start) - 1, 0)
        written, first, last, as_is = pieces[number]
        if not as_is:
            return first, last if start < stop else first  # a space that is no part of its token
        begin = last - len(written) - starts[number]
        return max(begin + start, first), min(begin + stop, last)

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


def pieces_of(
    spacing: str,
    text: str,
    names: Sequence[Place],
    given_tokens: Sequence[tuple[int, int, bool]] = (),
    begins_parts: tuple[str, bool] | None = None,
) -> list[Piece]:
    """Cut a text into pieces.

    Args:
        spacing: one of `SPACINGS`.
        text: the text.
        names: where they stand, in order.
        given_tokens: start and stop of tokens that the text has itself, and whether they are
            special: then they are no words, and nothing joins what stands beside them to them.
        begins_parts: what is written where a part begins behind one of them, and whether it is
            before a space too.
    """
    if spacing == "words":
        return _words(text, names, given_tokens)
    pieces: list[Piece] = []
    at, plain, after = 0, str(text), False
    begin, begun = "", list[int]()
    starts = {start for start, *_ in given_tokens}
    if begins_parts is not None:
        begin, before_space = begins_parts
        edges = {stop for _, stop, _ in given_tokens} - starts
        begun = sorted(i for i in edges if before_space or plain[i : i + 1] != " ")
    for start, stop, written, spaced, closed in names:
        end, joined = start, False
        if spaced and start:
            before = plain[start - 1] if start > at else ""
            if before == " ":
                end -= start > 1 and not plain[max(at, start - 2) : start - 1].isspace()
            else:
                joined = not before.isspace()
        pieces += _joins_behind(plain, at, end, starts) if after else ()
        pieces += _parts(plain, at, end, begin, begun)
        if joined:
            pieces.append((JOIN, start, start, False))
        pieces.append((written, start, stop, False))
        at, after = stop, closed
    pieces += _joins_behind(plain, at, len(plain), starts) if after else ()
    return pieces + _parts(plain, at, len(plain), begin, begun)


def _joins_behind(text: str, at: int, end: int, starts: Container[int]) -> list[Piece]:
    """`<join>` behind a name, where no space and no token of the text's own follows."""
    stands_alone = at == end or text[at].isspace() or at in starts
    return [] if stands_alone else [(JOIN, at, at, False)]


def _parts(text: str, start: int, stop: int, begin: str, begun: Sequence[int]) -> list[Piece]:
    """What stands between two names; parts that begin in there are pieces of their own."""
    if not begun:
        return [(text[start:stop], start, stop, True)] if start < stop else []
    pieces, at = [], start
    for edge in (*(i for i in begun if start < i < stop), stop):
        if edge > at:
            pieces.append(((begin if at > start else "") + text[at:edge], at, edge, True))
        at = edge
    return pieces


@lru_cache(maxsize=4096)
def _cut(part: str) -> tuple[tuple[str, int, int], ...]:
    """Words and whitespace of what stands between two names, which is often the same."""
    return tuple((match.group(), *match.span()) for match in WORD.finditer(part))


def _words(
    text: str,
    names: Sequence[Place],
    given_tokens: Sequence[tuple[int, int, bool]],
) -> list[Piece]:
    """Split a text into words, symbols, `<join>` and whitespace that is no single space."""
    plain, at = str(text), 0
    pieces: list[Piece] = []
    wholes = [name[:3] for name in names]
    if given_tokens:
        wholes = sorted(
            [*wholes, *((start, stop, plain[start:stop]) for start, stop, _ in given_tokens)]
        )
    for start, stop, written in wholes:
        pieces += [(word, at + i, at + j, True) for word, i, j in _cut(plain[at:start])]
        pieces.append((written, start, stop, False))
        at = stop
    pieces += [(word, at + i, at + j, True) for word, i, j in _cut(plain[at:])]
    return _joined(pieces, {start for start, _, special in given_tokens if special})


def _joined(unjoined: Sequence[Piece], specials: set[int]) -> list[Piece]:
    """Leave out the spaces that are implied between words, and write `<join>` where none is.

    `specials` are where special tokens start: no space is implied beside them, and one is lost.
    """
    pieces: list[Piece] = []
    apart_before, blank_before, space = True, True, None  # at the start there is no word to join
    for piece in unjoined:
        written, start, _, as_is = piece
        blank = as_is and written.isspace()
        if blank and written == " " and not blank_before and space is None:
            space = piece
            continue
        apart = blank or start in specials
        if blank:
            pieces += [space] if space else []
        elif not (apart or apart_before) and space is None:
            pieces.append((JOIN, start, start, False))
        pieces.append(piece)
        apart_before, blank_before, space = apart, blank, None
    return pieces + ([space] if space else [])


_SPACED = regex.compile(
    r"(?V1)[\w--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
)
"""Letters, digits and marks of scripts that put spaces between words."""


def spelled(pieces: Iterable[tuple[str, bool]]) -> str:
    """Put together what tokens are as text, and whether each piece is a name of whole words.

    Such a name is a word of its own: where it and what is beside it would read as one, a space
    comes between, for "ra" and "t2" are no "rat2".
    """
    parts: list[str] = []
    name_before = False
    for piece, is_name in pieces:
        if not piece:
            continue
        if (is_name or name_before) and parts and _SPACED.match(parts[-1][-1]):
            parts += [" "] if _SPACED.match(piece) else []
        parts.append(piece)
        name_before = is_name
    return "".join(parts)


def unjoined(tokens: Iterable[str], symbols: Container[str]) -> list[tuple[str, str | None]]:
    """Undo `_words`: pieces of text, and symbols, each with None and itself beside it."""
    pieces: list[tuple[str, str | None]] = []
    bare = True  # nothing is to be written before the next word
    for token in tokens:
        if token == JOIN:
            bare = True
            continue
        blank = token.isspace()
        pieces += [] if blank or bare else [(" ", None)]
        pieces.append((token, token if token in symbols else None))
        bare = blank
    return pieces


__all__ = [
    "BETWEEN",
    "JOIN",
    "SPACINGS",
    "WORD",
    "Piece",
    "Place",
    "RowEncoding",
    "pieces_of",
    "spelled",
    "unjoined",
]
