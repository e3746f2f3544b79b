"""Names where they stand in a text, and which of them are one name."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from .words import like_a_word

Kept = Sequence[tuple[int, int, str]]  # start, stop and token of what is no name in a text
Known = dict[str, tuple[str, str]]  # key of a name -> its spelling and class


class Span(NamedTuple):
    """A name in a text: characters `start` to `stop`, its class, and what binds it.

    Names of one class and binding are one name, however they are spelled; those without a binding
    are one name if they are spelled alike.
    """

    start: int
    stop: int
    symbol_class: str
    binding: str = ""

    @classmethod
    def of(cls, start: int, stop: int, symbol_class: str, binding: Any = None) -> "Span":
        """Make one; a binding may be anything with a string of its own."""
        return cls(start, stop, symbol_class, "" if binding is None else str(binding))

    def key(self, text: str) -> str:
        """What the name is in its text, whichever span of it: its binding, else its spelling."""
        if self.binding:
            return f"\0{self.symbol_class} {self.binding}"
        return str(text)[self.start : self.stop]


SPAN = partial(tuple.__new__, Span)
"""From a tuple; the constructor takes twice as long."""


class MarkedText(str):
    """A text that says itself where its names stand; elsewhere it is a string like any other.

    Args:
        spans: its names, as (start, stop, class) or (start, stop, class, binding).

    Attributes:
        variants: of names that were listed for it, those that are spellings of one another.

    Raises:
        ValueError: a span is empty, lies outside the text or overlaps another one.

    Examples:
        >>> text = MarkedText("Ann came in May", [(0, 3, "person")])
        >>> text == "Ann came in May", text.spans[0].symbol_class
        (True, 'person')
    """

    spans: tuple[Span, ...]
    variants: Sequence[Sequence[str]] = ()

    def __new__(cls, text: str, spans: Iterable[Sequence[Any]]) -> "MarkedText":
        self = super().__new__(cls, text)
        self.spans = tuple(sorted(Span.of(*span) for span in spans))
        end = 0
        for span in self.spans:
            if not end <= span.start < span.stop <= len(text):
                raise ValueError(
                    f"the name at {tuple(span[:3])} is empty, overlaps another one or lies outside "
                    f"the text of {len(text)} characters"
                )
            end = span.stop
        return self

    def __getnewargs__(self) -> tuple[str, tuple[Span, ...]]:  # type: ignore[override]
        return str(self), self.spans


def parts(text: str, spans: Iterable[Span]) -> Iterator[tuple[str, Span | None]]:
    """Yield what stands before each name, with the name, and what stands behind the last one."""
    end = 0
    for span in spans:
        yield text[end : span.start], span
        end = span.stop
    yield text[end:], None


def keys_in(text: str, spans: Sequence[Span], known: Known | None = None) -> list[str]:
    """Return the key of each name.

    Args:
        known: of an answer, the names of its problem. A name without a binding is the one of its
            class that is spelled so there: that without a binding, else the first. So is one whose
            binding they lack, if it is called by the spelling and a number, `x 2`.
    """
    plain = str(text)
    keys = [span.key(text) if span.binding else plain[span.start : span.stop] for span in spans]
    if not known:
        return keys
    spelled = {pair: key for key, pair in reversed(known.items())}
    for number, (start, stop, kind, binding) in enumerate(spans):
        name = plain[start:stop]
        if keys[number] not in known and (not binding or binding.startswith(f"{name} ")):
            keys[number] = spelled.get((name, kind), keys[number])
    return keys


def known_names(text: str, spans: Iterable[Span]) -> Known:
    """Return the names of a text in order of first occurrence, as an answer to it knows them."""
    known: Known = {}
    for span in spans:
        known.setdefault(span.key(text), (str(text)[span.start : span.stop], span.symbol_class))
    return known


def without_spelling(text: str, spans: Iterable[Span]) -> str:
    """Return a text with the class and order of bindings in place of their names.

    Texts that differ in the spelling of bindings only have the same one.
    """
    numbers: dict[str, int] = {}
    written = ""
    for part, span in parts(text, spans):
        name = "" if span is None else text[span.start : span.stop]
        if span is not None and span.binding:
            number = numbers.setdefault(span.key(text), len(numbers))
            name = f"\0{span.symbol_class} {number};"
        written += part + name
    return written


def check_marked(names: Iterable[Any], texts: Iterable[str]) -> None:
    """Refuse listed names that are marked in none of some texts, where they are names at all.

    Raises:
        ValueError: naming the first one.
    """
    present = {text[start:stop] for text in texts for start, stop, *_ in getattr(text, "spans", ())}
    if absent := [name for name in names if isinstance(name, str) and name not in present]:
        raise ValueError(f"names: {absent[0]!r} stands in no text, or not as a whole word")


def is_alone(text: str, span: Span) -> bool:
    """Whether a name is all of a text, or stands in quotes, which JSON in JSON escapes."""
    before, behind = text[span.start - 1 : span.start], text[span.stop : span.stop + 32]
    return before == behind.lstrip("\\")[:1] and before in "\"'`"


def is_only_a_word(text: str, span: Span) -> bool:
    """Whether what is spelled like a parameter of a tool is a word of a text, as `city` may be."""
    return like_a_word(text[span.start : span.stop]) and not is_alone(text, span)


def overlapping(start: int, stop: int, kept: Sequence[Any]) -> Sequence[Any]:
    """Return those of tokens or names, which stand in order, that have a character of a place."""
    first = bisect_right(kept, start, key=itemgetter(1))
    return kept[first : bisect_left(kept, stop, first, key=itemgetter(0))]


def outside(text: str, spans: Iterable[Span], kept: Kept) -> Iterator[Span]:
    """Yield the spans that lie in no token that is kept."""
    for span in spans:
        around = overlapping(span.start, span.stop, kept)
        for first, last, token in around:
            if not (first <= span.start and span.stop <= last):
                raise ValueError(
                    f"the name {str(text)[span.start : span.stop]!r} at {tuple(span[:3])} overlaps "
                    f"{token!r}, a token of the tokenizer's own at {(first, last)}: leave it out "
                    "of the name"
                )
        if not around:
            yield span


def apart(spans: list[Span], classes: list[str]) -> tuple[Span, ...]:
    """Leave out what overlaps a name that goes before it."""
    separate: list[Span] = []
    end = 0
    for span in sorted(spans, key=lambda s: (s.start, -s.stop, classes.index(s.symbol_class))):
        if span.start >= end:
            separate.append(span)
            end = span.stop
    return tuple(separate)
