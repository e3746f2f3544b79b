"""A test kit for rules: whether renaming by a rule changes names, and nothing else.

`check_rule` needs neither pytest nor torch. What it compares is what tokenizers make ids of: the
text between names, and which name each is.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from difflib import unified_diff
from itertools import accumulate
from time import thread_time
from typing import Any, NamedTuple

from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import keys_in, parts

FRESH = tuple(f"{a}{b}{n}" for n in range(100) for a in "qvwxyzäλ变" for b in "kjo")
MOST_LINES = 40
LEAST_SECONDS = 0.02
"""What is shorter is no measurement of time."""
MOST_GROWTH = 10
"""Times as long for four times the text: 4 is linear, 16 quadratic."""


class RuleFault(AssertionError):
    """A text for which a rule does not keep its promise: `fault`, `text`, and what it became."""

    def __init__(self, fault: str, text: str, other: str):
        changed = unified_diff(text.splitlines(), other.splitlines(), "text", "became", "", "", 1)
        super().__init__("\n".join([fault, *changed][: MOST_LINES + 1]))
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
    means the same; names come back as they were; none captures another one or a word if they are
    spelled alike. Of the longest: time grows with the text, not faster.

    Args:
        rule: as in a recipe: `{"rule": "python"}`, a pattern, a function.
        texts: real ones, in which names occur more than once.
        same: whether a text and a renamed one mean the same; best by running both.
        names: what names may be called; a text takes those that do not stand in it.
        rounds: renamings of each text.
        seed: of the renamings.

    Returns:
        How much was checked: a rule that finds nothing keeps all promises.

    Raises:
        RuleFault: an AssertionError that has the first text that fails, and says how.
        ValueError: a text has more names than `names`.
    """
    finder, rng = NameFinder({"name": rule}), random.Random(seed)
    marked = [_Marked(finder, text) for text in texts]
    called = sorted({name for text in marked for name in text.names.values()})
    for text in marked if called else ():
        back = "".join(text.spelled(text.names))
        if back != text.text and text.shape(back) != text.shape(text.text):
            raise RuleFault("names do not come back", text.text, back)
        for _ in range(rounds):
            _check_renamed(text, names, same, rng)
            _check_capture(text, called, rng)
    _check_time(finder, max((text.text for text in marked), key=len, default=""))
    found = [(bool(text.spans), len(text.names), len(text.spans)) for text in marked]
    return Checked(len(marked), *map(sum, zip((0, 0, 0), *found, strict=True)))


class _Marked:
    """A text with its names: `names` is symbol -> how it is called, by first occurrence."""

    def __init__(self, finder: NameFinder, text: str):
        self.finder, self.text, self.spans = finder, text, finder.find(text)
        keys = keys_in(text, self.spans)
        symbols = {key: f"<name_{rank}>" for rank, key in enumerate(dict.fromkeys(keys))}
        self.symbols = [symbols[key] for key in keys]
        spelled = (text[span.start : span.stop] for span in self.spans)
        self.names = dict(reversed([*zip(self.symbols, spelled, strict=True)]))
        self.pieces: list[tuple[str, str | None]] = []
        for (part, _), symbol in zip(parts(text, self.spans), [*self.symbols, ""], strict=True):
            self.pieces += [(part, None), ("", symbol or None)]

    def spelled(self, names: dict[str, str]) -> list[str]:
        """Put names in place of symbols, as an answer is spelled; return the pieces."""
        return self.finder.spell(self.pieces, dict.fromkeys(self.names, "name"), names)

    def shape(self, text: str) -> tuple[list[str], list[int]]:
        """What tokenizers make ids of: the text between names, and which name each is."""
        spans = self.finder.find(text)
        keys = keys_in(text, spans)
        ranks = {key: rank for rank, key in enumerate(dict.fromkeys(keys))}
        return [part for part, _ in parts(text, spans)], [ranks[key] for key in keys]


def _check_renamed(text: _Marked, names: Sequence[str], same: Any, rng: random.Random) -> None:
    free = [name for name in names if name not in text.text]
    if len(free) < len(text.names):
        raise ValueError(f"a text has {len(text.names)} names: give as many `names` that it lacks")
    table = dict(zip(text.names, rng.sample(free, len(text.names)), strict=True))
    other = "".join(table[symbol] if symbol else part for part, symbol in text.pieces)
    if text.shape(other) != text.shape(text.text):
        raise RuleFault("other names are found under other names", text.text, other)
    if same is not None and not same(text.text, other):
        raise RuleFault("it does not mean the same under other names", text.text, other)


def _check_capture(text: _Marked, called: Sequence[str], rng: random.Random) -> None:
    """A name that is spelled at random is itself, or none where the rule keeps that spelling."""
    if not all(span.binding for span in text.spans):
        return  # names that are spelled alike are one
    pieces = text.spelled({symbol: rng.choice(called) for symbol in text.names})
    other, starts = "".join(pieces), [0, *accumulate(map(len, pieces))][1::2]
    symbols = dict(zip(starts, text.symbols, strict=False))
    spans, owners = text.finder.find(other), dict[str, str | None]()
    for key, span in zip(keys_in(other, spans), spans, strict=True):
        symbol = symbols.get(span.start)
        if owners.setdefault(key, symbol) != symbol:
            raise RuleFault("a name of an answer captures another one or a word", text.text, other)


def _check_time(finder: NameFinder, text: str) -> None:
    while text and (few := _seconds(finder, text)) < LEAST_SECONDS:
        text = f"{text}\n{text}"
    if text and (many := _seconds(finder, "\n".join([text] * 4))) > MOST_GROWTH * few:
        raise RuleFault(f"four times the text takes {many / few:.0f} times as long", text, text)


def _seconds(finder: NameFinder, text: str) -> float:
    """Return the lesser of two, of texts that no cache knows."""
    seconds = []
    for ending in ("", "\n"):
        start = thread_time()
        finder.find(text + ending)
        seconds.append(thread_time() - start)
    return min(seconds)
