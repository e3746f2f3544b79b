"""How names are spelled in an answer: as in its problem, where that captures nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from .name_rules import Spell
from .words import WORDS


def uncaptured(rule: Any) -> Spell:
    """Return how names get their old spelling, unless it would capture another name or a word.

    Two bindings may have been spelled alike, or as a word of the text that is no name, `list`. The
    first one in the text keeps its spelling, and so does the word. Another one has it too if the
    rule then says of the text that they are two; else it gets a number.
    """

    def spell(
        between: Sequence[str], symbols: Sequence[str], names: Mapping[str, str]
    ) -> Sequence[str]:
        table = {symbol: names.get(symbol, symbol) for symbol in symbols}
        text = " ".join(between)
        words = text.casefold()  # to SQL, `T1` and `t1` are one name
        used = {name.casefold() for name in (*names.values(), *table.values())}
        numbers: dict[str, Iterator[int]] = {}

        def numbered(name: str) -> str:
            spelled = (f"{name}{n}" for n in numbers.setdefault(name, count(1)))
            new = next(o for o in spelled if o.casefold() not in used and o.casefold() not in words)
            used.add(new.casefold())
            return new

        reading = _Reading(rule, between, symbols, table)
        if hidden := {s for s in reading.missing if table[s] in text}:
            other = {**table, **{symbol: numbered(table[symbol]) for symbol in hidden}}
            missing = _Reading(rule, between, symbols, other).missing
            for symbol in hidden:
                if missing[symbol] < reading.missing[symbol]:
                    table[symbol] = other[symbol]
            reading = _Reading(rule, between, symbols, table)
        while captured := [s for s in reading.captured() if table[s] == names.get(s, s)]:
            table |= {symbol: numbered(table[symbol]) for symbol in captured}
            reading = _Reading(rule, between, symbols, table)
        return [table[symbol] for symbol in symbols]

    return spell


class _Reading:
    """What a rule says of a text in which symbols are spelled by a table.

    Attributes:
        places: each symbol, with what the rule takes the name there for.
        bound: what binds words of the text that are no symbols.
        missing: symbol -> at how many places the rule finds none: in a comment, or where the text
            has a word of its own that is kept.
    """

    def __init__(
        self, rule: Any, between: Sequence[str], symbols: Sequence[str], table: Mapping[str, str]
    ):
        text, starts = "", []
        for before, symbol in zip(between, symbols, strict=False):
            starts.append(len(text) + len(before))
            text += before + table[symbol]
        found = {start: binding for start, _, *binding in rule(text + between[-1])}
        self.missing = Counter(s for s, i in zip(symbols, starts, strict=True) if i not in found)
        # Names without a binding are one name if they are spelled alike.
        self.places = [
            (symbol, tuple(found.pop(start, ())) or table[symbol])
            for symbol, start in zip(symbols, starts, strict=True)
        ]
        self.bound = {tuple(binding) for binding in found.values() if binding}

    def captured(self) -> list[str]:
        """Return the symbols that are read as an earlier one, or that bind a word."""
        ranks = {symbol: rank for rank, (symbol, _) in enumerate(reversed(self.places))}
        owners: dict[Any, str | None] = dict.fromkeys(self.bound)
        captured: dict[str, None] = {}
        for symbol, key in self.places:
            if symbol in captured:
                continue
            owner = owners.setdefault(key, symbol)
            if owner is None or (ranks[owner] > ranks[symbol] and owner not in captured):
                captured[symbol] = None
            elif owner != symbol:
                captured[owner] = None
                owners[key] = symbol
        return [*captured]


def speller(
    reader: Any,
    symbols: Sequence[Any],
    names: Mapping[str, str],
    pieces: Sequence[tuple[str, str | None]],
) -> Any:
    """How symbols are spelled again; None if that is what `names` say."""
    if reader is None or not symbols:
        return None
    if (spell := getattr(reader, "spell", None)) is not None:
        return spell
    used = Counter(str(names.get(token, token)) for token in set(symbols))
    words = {word for piece, token in pieces if token is None for word in WORDS.findall(piece)}
    return uncaptured(reader) if max(used.values()) > 1 or used.keys() & words else None
