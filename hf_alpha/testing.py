"""A test kit for rules: whether renaming by a rule changes names, and nothing else.

`check_rule` needs neither pytest nor torch. What it compares is what tokenizers make ids of: the
text between names, and of each name its class and which one it is.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from difflib import unified_diff
from itertools import accumulate
from time import thread_time
from typing import Any, NamedTuple

from hf_alpha.modeling.names_in_text import NameFinder, Span, keys_in, parts

CLASS = "name"
FRESH = tuple(f"{a}{b}{n}" for n in range(100) for a in "qvwxyzäλ变" for b in "kjo")
MOST_LINES = 40
LEAST_SECONDS = 0.02
"""What is shorter is no measurement of time."""
MOST_GROWTH = 10
"""Times as long for four times the text: 4 is linear, 16 quadratic."""


class RuleFault(AssertionError):
    """A text that a rule does not keep its promise for.

    Attributes:
        fault: which promise.
        text: the text.
        other: what it became.
    """

    def __init__(self, fault: str, text: str, other: str):
        changed = unified_diff(text.splitlines(), other.splitlines(), "text", "became", "", "", 1)
        shown = "\n".join(list(changed)[:MOST_LINES])
        super().__init__(f"{fault}\n{shown}")
        self.fault, self.text, self.other = fault, text, other


class Checked(NamedTuple):
    """How much was checked: texts, those with names, names, and places of names."""

    texts: int
    renamed: int
    names: int
    places: int


def check_rule(
    rule: Any,
    texts: Iterable[str],
    same: Callable[[str, str], bool] | None = None,
    names: Sequence[str] = FRESH,
    rounds: int = 3,
    seed: int = 0,
) -> Checked:
    """Rename texts by a rule at random, and check that nothing but names changed.

    Of each text: the rule finds the same names in it under others, so that ids are the same; it
    means the same; names come back as they were; an answer whose names are spelled alike, or like
    words of it, has the same names. Of the longest one: time grows with the text, not faster.

    Args:
        rule: as in a recipe: `{"rule": "python"}`, a pattern, a function.
        texts: real ones, in which names occur more than once.
        same: whether a text and a renamed one mean the same; best by running both.
        names: what names may be called; each text needs as many as it has names, and takes those
            that do not stand in it.
        rounds: renamings of each text.
        seed: of the renamings.

    Returns:
        How much was checked: a rule that finds nothing keeps all promises.

    Raises:
        RuleFault: an AssertionError that has the first text that fails, and says how.
        ValueError: `names` are too few.
    """
    finder, rng = NameFinder({CLASS: rule}), random.Random(seed)
    texts = [*texts]
    marked = [_Marked(finder, text) for text in texts]
    called = sorted({text.text[s.start : s.stop] for text in marked for s in text.spans})
    for text in filter(lambda text: text.spans, marked):
        back = "".join(text.spelled(text.names))
        if back != text.text and text.shape(back) != text.shape(text.text):
            raise RuleFault("names do not come back", text.text, back)
        for _ in range(rounds):
            _check_renamed(text, names, same, rng)
            if all(span.binding for span in text.spans):
                _check_capture(text, called, rng)
    _check_time(finder, max(texts, key=len, default=""))
    return Checked(
        len(marked),
        sum(bool(text.spans) for text in marked),
        sum(len(text.names) for text in marked),
        sum(len(text.spans) for text in marked),
    )


class _Marked:
    """A text with its names: `names` is symbol -> how it is called, by first occurrence."""

    def __init__(self, finder: NameFinder, text: str):
        self.finder, self.text = finder, text
        self.spans = finder.find(text)
        self.names: dict[str, str] = {}
        symbols: dict[str, str] = {}
        for key, span in zip(keys_in(text, self.spans), self.spans, strict=True):
            symbol = symbols.setdefault(key, f"<{CLASS}_{len(symbols)}>")
            self.names.setdefault(symbol, text[span.start : span.stop])
        self.symbols = [symbols[key] for key in keys_in(text, self.spans)]

    def _pieces(self) -> list[tuple[str, str | None]]:
        pieces: list[tuple[str, str | None]] = []
        for (part, span), symbol in zip(
            parts(self.text, self.spans), [*self.symbols, None], strict=True
        ):
            pieces += [(part, None)] + [("", symbol)] * (span is not None)
        return pieces

    def renamed(self, names: dict[str, str]) -> str:
        """Put names in place of symbols, whatever they capture."""
        return "".join(names[symbol] if symbol else part for part, symbol in self._pieces())

    def spelled(self, names: dict[str, str]) -> list[str]:
        """Put names in place of symbols, as an answer is spelled; return the pieces."""
        return self.finder.spell(self._pieces(), dict.fromkeys(self.names, CLASS), names)

    def shape(self, text: str) -> list[Any]:
        """What tokenizers make ids of: the text between names, and which name each is."""
        spans: tuple[Span, ...] = self.finder.find(text)
        keys = keys_in(text, spans)
        ranks = {key: rank for rank, key in enumerate(dict.fromkeys(keys))}
        between = [part for part, _ in parts(text, spans)]
        return [*between, *(ranks[key] for key in keys)]


def _check_renamed(text: _Marked, names: Sequence[str], same: Any, rng: random.Random) -> None:
    free = [name for name in names if name not in text.text]
    if len(free) < len(text.names):
        raise ValueError(f"a text has {len(text.names)} names: give as many `names` that it lacks")
    other = text.renamed(dict(zip(text.names, rng.sample(free, len(text.names)), strict=True)))
    if text.shape(other) != text.shape(text.text):
        raise RuleFault("other names are found under other names", text.text, other)
    if same is not None and not same(text.text, other):
        raise RuleFault("it does not mean the same under other names", text.text, other)


def _check_capture(text: _Marked, called: Sequence[str], rng: random.Random) -> None:
    """A name is taken for none but itself; one that the rule keeps there is none at all."""
    pieces = text.spelled({symbol: rng.choice(called) for symbol in text.names})
    other, starts = "".join(pieces), [0, *accumulate(map(len, pieces))][1::2]
    symbols = dict(zip(starts, text.symbols, strict=False))
    spans = text.finder.find(other)
    owners: dict[str, str | None] = {}
    for key, span in zip(keys_in(other, spans), spans, strict=True):
        symbol = symbols.get(span.start)
        if owners.setdefault(key, symbol) != symbol:
            raise RuleFault("a name of an answer captures another one or a word", text.text, other)


def _check_time(finder: NameFinder, text: str) -> None:
    if not text:
        return
    while (before := _seconds(finder, text)) < LEAST_SECONDS:
        text = f"{text}\n{text}"
    if (behind := _seconds(finder, "\n".join([text] * 4))) > MOST_GROWTH * before:
        raise RuleFault(
            f"four times the text takes {behind / before:.0f} times as long", text[:200], "..."
        )


def _seconds(finder: NameFinder, text: str) -> float:
    """Return the least of two, of texts that no cache knows."""
    seconds = []
    for number in range(2):
        start = thread_time()
        finder.find(text + "\n" * number)
        seconds.append(thread_time() - start)
    return min(seconds)
