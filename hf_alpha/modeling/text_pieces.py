"""Texts cut into pieces, with symbols in place of names, for the tokenizer beneath, and back.

[`tokenization_text`] says how spaces are kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import accumulate, count, zip_longest
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any

import regex  # type: ignore[import-untyped]

from .words import UNSPACED, inside_word

if TYPE_CHECKING:  # canonical spelling before an address needs no tokenizer
    from tokenizers import Encoding

JOIN = "<join>"
SPACINGS = ("before", "kept", "words")
BETWEEN = "\x1f"
"""What stands between words on their way to a tokenizer of words; texts with it lose it."""
WORD = regex.compile(r"\w+|[^\w\s]|\n|[^\S\n]+")
SHORT, MOST = 64, 16_384
"""Characters of a text that is kept, with what it became; and how many are kept."""

Piece = tuple[str, int, int, bool]
"""A piece of what the tokenizer beneath gets, start and stop of what it stands for in the text, and
whether it does so character by character, or else as a whole. What begins a part may be before the
characters."""
Gap = tuple[str, tuple[Piece, ...]]
"""What is written for a text between two names, and its pieces, from its own start on."""

Place = tuple[int, int, str, bool, bool]
"""Where a name starts and stops; what is written for it, the token of its symbol or a word; whether
a space before it is implied where `spacing` says so, or stands as the text has it; and whether one
behind it is implied, since the tokenizer beneath would write it."""

GivenToken = tuple[int, int, bool, bool]
"""Start and stop of a token that the text has itself; whether it is special: then it is no word,
and nothing joins what stands beside it to it; and whether it parts what is beside it."""


class Memory(dict[str, Any]):
    """What a function makes of texts; that of short ones is kept."""

    def __init__(self, make: Callable[[str], Any]):
        self._make = make

    def __missing__(self, text: str) -> Any:
        made = self._make(text)
        if len(text) <= SHORT:
            if len(self) >= MOST:
                self.clear()
            self[text] = made
        return made


class Cut:
    """A text with symbols in place of names, cut at them.

    How a text between two names is written depends on nothing but itself and what the names beside
    it imply.

    Args:
        gaps: what stands before each of the `wholes`, and behind the last one.
        wholes: start and stop of names, and what is written for them, first.
        between: what stands between pieces.

    Attributes:
        parts: what is written for the first gap, the first whole, the second gap and so on.
    """

    def __init__(self, gaps: Sequence[Gap], wholes: Sequence[Any], between: str):
        self._gaps, self._wholes, self._between = gaps, wholes, between
        self.parts = [""] * (len(gaps) + len(wholes))
        self.parts[::2] = [written for written, _ in gaps]
        self.parts[1::2] = [whole[2] for whole in wholes]

    @property
    def written(self) -> str:
        """The whole text for the tokenizer beneath."""
        return self._between.join(filter(None, self.parts))

    @cached_property
    def pieces(self) -> list[Piece]:
        """What stands where; no piece is empty."""
        pieces: list[Piece] = []
        at = 0
        for (_, of_gap), whole in zip_longest(self._gaps, self._wholes):
            pieces += [(written, at + i, at + j, as_is) for written, i, j, as_is in of_gap]
            if whole is not None:
                start, at, written = whole[:3]
                pieces.append((written, start, at, False))
        return pieces


def cut_at_names(
    spacing: str,
    text: str,
    names: Sequence[Place],
    given_tokens: Sequence[GivenToken] = (),
    begins_parts: Sequence[Any] | None = None,
) -> Cut:
    """Cut a text at its names.

    Args:
        spacing: one of `SPACINGS`.
        given_tokens: that the text has itself.
        begins_parts: what is written where a part begins behind one that parts, whether it is
            before a space too, and whether a text begins so (left out if not).
    """
    if spacing == "words":
        return _words(str(text), names, given_tokens)
    plain = str(text)
    spaced = [*(name[3] for name in names), False]
    closed = [False, *(name[4] for name in names)]
    begin, before_space, *first = begins_parts or ("", False)
    openings = [begin if any(first) else "", *[None] * len(names)]
    if not given_tokens:
        beside = [*zip(closed, spaced, openings, strict=True)]
        return Cut(_gaps(_gap, plain, names, beside), names, "")
    starts = {start for start, _, _, parted in given_tokens if parted}
    edges = {stop for _, stop, _, parted in given_tokens if parted} - starts
    edges = edges if begins_parts else set()
    openings[0] = "" if 0 in starts else openings[0]
    begun = sorted(i for i in edges if before_space or plain[i : i + 1] != " ")
    gaps = [
        _gap(
            closed[number] and at not in starts,
            spaced[number],
            openings[number],
            plain[at:end],
            begin,
            [i - at for i in begun if at < i < end],
        )
        for number, (at, end) in enumerate(_between(plain, names))
    ]
    return Cut(gaps, names, "")


def _between(text: str, wholes: Sequence[Any]) -> Iterable[tuple[int, int]]:
    """Start and stop of what stands before each whole, and behind the last one."""
    return zip([0, *(w[1] for w in wholes)], [*(w[0] for w in wholes), len(text)], strict=True)


def _gaps(
    write: Callable[..., Gap], text: str, wholes: Sequence[Any], beside: Sequence[tuple[Any, ...]]
) -> list[Gap]:
    """What is written between wholes, by what a function is told of what is beside."""
    parts = [text[start:stop] for start, stop in _between(text, wholes)]
    return [_table(write, told)[part] for told, part in zip(beside, parts, strict=True)]


@cache
def _table(write: Callable[..., Gap], beside: tuple[Any, ...]) -> Memory:
    return Memory(partial(write, *beside))


def _gap(
    closed: bool,
    spaced: bool,
    opening: str | None,
    part: str,
    begin: str = "",
    begun: Sequence[int] = (),
) -> Gap:
    """What is written for the text between two names.

    Args:
        closed: a space behind the name before it is implied.
        spaced: a space before the name behind it is implied.
        opening: what is written before a text that begins; None of other parts.
        begin: what is written where a part begins.
        begun: where parts begin in it.
    """
    end, joined, first = len(part), False, opening is not None
    if spaced and (part or not first):
        if part[-1:] == " ":
            end -= (len(part) > 1 or not first) and not part[-2:-1].isspace()
        else:
            joined = not part[-1:].isspace()
    pieces, at = [], 0
    if closed and end and not part[0].isspace():
        pieces.append((JOIN, 0, 0, False))
    for edge in (*begun, end):
        if edge > at:
            before = begin if at else opening or ""
            pieces.append((before + part[at:edge], at, edge, True))
        at = edge
    if joined:
        pieces.append((JOIN, len(part), len(part), False))
    return "".join(piece[0] for piece in pieces), tuple(pieces)


def _words(plain: str, names: Sequence[Place], given_tokens: Sequence[GivenToken]) -> Cut:
    """Split a text into words, symbols, `<join>` and whitespace that is no single space."""
    wholes: Sequence[Any] = names
    specials = {start for start, _, special, _ in given_tokens if special}
    if given_tokens:
        wholes = sorted(
            [*names, *((start, stop, plain[start:stop]) for start, stop, *_ in given_tokens)]
        )
    are_words = [whole[0] not in specials for whole in wholes]
    others = [False] * len(wholes)
    beside = [
        *zip(
            [False, *are_words], [*are_words, False], [True, *others], [*others, True], strict=True
        )
    ]
    return Cut(_gaps(_gap_of_words, plain, wholes, beside), wholes, BETWEEN)


def _gap_of_words(before: bool, behind: bool, first: bool, last: bool, part: str) -> Gap:
    """Leave out the spaces that are implied between words, and write `<join>` where none is.

    Args:
        before: what stands before it is a word; no space is implied beside special tokens, and one
            is lost.
        behind: what stands behind it is a word.
        part: the text between two names or tokens of the text's own.
    """
    pieces: list[Piece] = []
    apart_before, blank_before, space = not before, first, None
    for match in WORD.finditer(part):
        word, (start, stop) = match.group(), match.span()
        blank = word.isspace()
        if word == " " and not blank_before and space is None:
            space = (word, start, stop, True)
            continue
        if blank:
            pieces += [space] if space else []
        elif not apart_before and space is None:
            pieces.append((JOIN, start, start, False))
        pieces.append((word, start, stop, True))
        apart_before, blank_before, space = blank, blank, None
    if last and space:
        pieces.append(space)
    elif behind and not apart_before and space is None:
        pieces.append((JOIN, len(part), len(part), False))
    return BETWEEN.join([piece[0] for piece in pieces]), tuple(pieces)


class RowEncoding:
    """What the tokenizer beneath made of a row, as a `tokenizers.Encoding` of the row's own texts.

    Characters are those of the texts as they were given: the tokenizer beneath got symbols in place
    of names, and names are one word each.

    Args:
        beneath: the encoding by the tokenizer beneath, or a part of it.
        cuts: what each text of the row was made of.
        between: what stands between pieces.
    """

    def __init__(self, beneath: "Encoding", cuts: Sequence[Cut], between: str):
        self.beneath, self._cuts, self._gap = beneath, cuts, len(between)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of copies and pickles
            raise AttributeError(name)
        return getattr(self.beneath, name)

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token stands in its text; (0, 0) for special tokens."""
        starts = [
            [0, *accumulate(len(written) + self._gap for written, *_ in pieces)][: len(pieces)]
            for pieces in (each.pieces for each in self._cuts)
        ]
        pairs = zip(self.beneath.sequence_ids, self.beneath.offsets, strict=True)
        return [
            (0, 0) if which is None else self._moved(self._cuts[which].pieces, starts[which], *span)
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
        first, last = max(begin + start, first), min(begin + stop, last)
        return first, max(last, first + (start < stop))  # what begins a part is its first character

    def pad(self, *args: Any, **kwargs: Any) -> None:
        """Pad it, as `tokenizers.Encoding.pad` does."""
        self.beneath.pad(*args, **kwargs)
        self.__dict__.pop("offsets", None)

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token with a character of a text; None where it is in none, as spaces are.

        The space that a name implies is the name's.
        """
        pieces = self._cuts[sequence_index].pieces
        char_pos += not any(start <= char_pos < stop for _, start, stop, _ in pieces)
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


_SPACED = regex.compile(rf"(?V1)[\w--[{UNSPACED}]]")
"""Letters, digits and marks of scripts that put spaces between words."""
_LAST_WORD = regex.compile(rf"{_SPACED.pattern}++$")


def reads_on(before: str, behind: str) -> bool:
    """Whether a character and the first one of a text would read as one word."""
    pair = before + behind[:1]
    return all(map(_SPACED.match, pair)) and inside_word(pair, 1)


class Beginnings:
    """How some names begin, to look at the ends of many texts."""

    def __init__(self, names: Iterable[str]):
        self._names = sorted(names)
        self._longest = max(map(len, self._names), default=0)

    def place(self, text: str) -> int:
        """Return where the end of a text begins that may be, or go on to be, one of the names."""
        first = max(0, len(text) - self._longest)
        return next((i for i in range(first, len(text)) if self._begin_so(text[i:])), len(text))

    def _begin_so(self, end: str) -> bool:
        place = bisect_left(self._names, end)
        return place < len(self._names) and self._names[place].startswith(end)


def last_word(text: str) -> int:
    """Return where the last word of a text begins, if the text ends in one: it may go on."""
    match = _LAST_WORD.search(text)
    return len(text) if match is None else match.start()


Segment = tuple[str, str | None]
"""A piece of text, and None if it is plain, "" if it is a name, else the plain word that it is
written for."""
Confused = Callable[[list[Segment], Mapping[str, str]], Sequence[tuple[int, int]]]
ROUNDS = 50
"""How often a text is read at most until no plain word in it is taken for a name."""
_SIGNS = f"{digits}{ascii_letters}_?"


def spaced(pieces: Iterable[tuple[str, bool, bool]]) -> list[Segment]:
    """Put together what tokens are as text: plain segments and names in turn.

    A name of whole words is a word of its own: where it and what is beside it would read as one, a
    space comes between, for "ra" and "t2" are no "rat2".

    Args:
        pieces: what each is as text, whether it is a name, and whether one of whole words.
    """
    segments, plain, last, word_before = list[Segment](), "", "", False
    for piece, is_name, is_word in pieces:
        if not piece:
            continue
        if (is_word or word_before) and reads_on(last, piece):
            plain += " "
        if is_name:
            segments += [(plain, None), (piece, "")]
            plain = ""
        else:
            plain += piece
        last, word_before = piece[-1], is_word
    return [*segments, (plain, None)]


def together(segments: Iterable[Segment]) -> str:
    """Return the text of segments."""
    return "".join([text for text, _ in segments])


def spell_apart(segments: list[Segment], used: Container[str], confused: Confused) -> list[Segment]:
    """Give plain words that would be read as names spellings that are none.

    A word has one spelling wherever that happens. Which one depends on the word, on the plain text
    before it, and on which names are in use, whatever each of them stands for.

    Args:
        used: names in use, and what else new spellings must not be.
        confused: tells where, [start, stop), segments are read as one of the names in use, or as
            one of the new spellings (word -> spelling), though it was not written there.
    """
    spelled: dict[str, str] = {}
    others: dict[str, Iterator[Iterable[str]]] = {}
    for _ in range(ROUNDS):
        segments, words = _cut_out(segments, confused(segments, spelled))
        if not words:
            break
        for word, before in words.items():
            taken = {*spelled.values()}
            for kind in others.setdefault(word, _spellings(word)):
                free = (new for new in kind if not (new in used or new in taken or new in before))
                if new := next(free, ""):
                    break
            spelled[word] = new or word  # where there is none, it stays as it is
        segments = [(spelled[word] if word else text, word) for text, word in segments]
    return segments


def _cut_out(
    segments: list[Segment], places: Sequence[tuple[int, int]]
) -> tuple[list[Segment], dict[str, str]]:
    """Make plain words that are read as names segments of their own.

    Returns:
        The segments; and each word that needs a spelling, a first one or another one than it has,
        with the plain text before it.
    """
    if not places:
        return segments, {}
    cut, words, before, start = list[Segment](), dict[str, str](), "", 0
    for text, word in segments:
        stop, at = start + len(text), start
        inside = [(max(i, start), min(j, stop)) for i, j in places]
        inside = [(first, last) for first, last in inside if first < last]
        if word and inside:
            words.setdefault(word, before)
        for first, last in inside if word is None else ():
            plain = text[first - start : last - start]
            between = text[at - start : first - start]
            words.setdefault(plain, before + between)
            cut += [(between, None), (plain, plain)]
            before, at = before + between + plain, last
        cut.append((text[at - start :], word))
        before += text[at - start :] if word is None else ""
        start = stop
    return cut, words


def _spellings(word: str) -> Iterator[Iterable[str]]:
    """Yield kinds of spellings for a plain word: other numbers for one, the word with a number.

    Then letters and signs, for names that may stand inside words, so that all these may have one.
    """
    if word.isdecimal():
        yield map(str, count(1))
    yield (f"{word}{number}" for number in count(1))
    alike = (str.isdigit, str.isupper, str.islower)
    yield from sorted(_SIGNS, key=lambda sign: [is_(sign) != is_(word[:1]) for is_ in alike])


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
