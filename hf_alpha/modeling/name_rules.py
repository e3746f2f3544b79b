r"""Ready-made rules for names: what people of a field call a name, and what binds it.

A rule is a function from a text to its names, each as (start, stop) or (start, stop, binding). All
names of one binding are one name, whatever it is called; `\x. x` and `\y. y` are the same text to
a model if the rule says so. `READY_RULES` lists them, and `symbols: {ring: {rule: smiles}}` takes
one. A function of the user's own (`function: package.module:name`) can be a `ReadyRule` too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import regex  # type: ignore[import-untyped]

from .names_in_code import identifiers, json_names, numbers, sql_names, sql_words
from .names_in_python import python_names, unbound_names

Found = Iterable[Sequence[Any]]  # (start, stop) or (start, stop, binding) of each name
Spell = Callable[[Sequence[str], Sequence[str], Mapping[str, str]], Sequence[str]]


@dataclass(frozen=True)
class ReadyRule:
    """How names of a kind are found in a text, and spelled again in an answer.

    Attributes:
        find: from a text to its names, in any order. It takes every text: one that it cannot read
            has no names. A binding is anything with a string of its own. Names without a binding
            are one name where they are spelled alike.
        words: names are whole words; else they may stand inside one.
        spell: gives the names of decoded text their spelling. It gets what stands before each
            occurrence of a symbol and behind the last one, the symbols, and symbol -> how it was
            spelled in the problem (if it was), and returns the spelling of each occurrence. None
            for the old spelling, unless it captures another binding (see `uncaptured`).
        answers: `find` reads answers too. A name of an answer whose binding its problem has is that
            name; one without a binding is the problem's that is spelled so. Else the names of an
            answer are those of its problem, wherever they stand.
        unbound: finds words of an answer that `find` takes for none of its names, but that are
            names if its problem has one that is spelled so.
        languages: whose languages `find` takes as `language`; None if there is one language.
        examples: names as they are often written, such as digits. The symbols of a converted model
            start from what it knows of these; from letters, if none is given.
    """

    find: Callable[..., Found]
    words: bool = True
    spell: Spell | None = None
    answers: bool = True
    unbound: Callable[..., Found] | None = None
    languages: str | None = None
    examples: tuple[str, ...] = ()

    def __call__(self, text: str) -> Found:
        """Find the names of a text."""
        return self.find(text)

    def of(self, language: str | None) -> "ReadyRule":
        """Return the rule for a language."""
        if language is None:
            return self
        unbound = self.unbound and partial(self.unbound, language=language)
        return replace(self, find=partial(self.find, language=language), unbound=unbound)


def reads_answers(reader: Any) -> bool:
    """Whether a function or rule that finds names takes answers too."""
    return getattr(reader, "answers", False)


# -- spelling -------------------------------------------------------------------------------------


def uncaptured(find: Callable[[str], Found]) -> Spell:
    """Return how names get their old spelling, unless it would capture another binding.

    Two bindings may have been spelled alike. The first one in the text keeps its spelling. Another
    one has it too if `find` then says of the text that they are two; else it gets a number.
    """

    def spell(
        between: Sequence[str], symbols: Sequence[str], names: Mapping[str, str]
    ) -> Sequence[str]:
        table: dict[str, str] = {}
        alike: list[str] = []
        for symbol in symbols:
            if symbol not in table:
                old = names.get(symbol, symbol)
                if old in table.values():
                    alike.append(symbol)
                    old = _numbered(old, {*names.values(), *table.values()}, between)
                table[symbol] = old
        for symbol in alike:
            asked = {**table, symbol: names[symbol]}
            if _partition(find, between, symbols, asked) == _ranks(symbols):
                table = asked
        return [table[symbol] for symbol in symbols]

    return spell


def _numbered(name: str, used: set[str], between: Sequence[str]) -> str:
    """Return a name with a number behind it that no name and no text has."""
    text = " ".join(between)
    return next(new for n in count(1) if (new := f"{name}{n}") not in used and new not in text)


def _partition(
    find: Callable[[str], Found],
    between: Sequence[str],
    symbols: Sequence[str],
    table: Mapping[str, str],
) -> list[int] | None:
    """Return which names of a text are one, as numbers; None if others stand in it, or fewer."""
    text, places = "", []
    for before, symbol in zip(between, symbols, strict=False):
        start = len(text) + len(before)
        text += before + table[symbol]
        places.append((start, len(text)))
    found = {tuple(place[:2]): place[2:] for place in find(text + between[-1])}
    if not found.keys() >= {*places}:
        return None
    keys = [(*found[place],) or text[slice(*place)] for place in places]
    return _ranks(keys)


def _ranks(keys: Sequence[Any]) -> list[int]:
    """Return keys as numbers, by first occurrence."""
    ranks = {key: rank for rank, key in enumerate(dict.fromkeys(keys))}
    return [ranks[key] for key in keys]


# -- molecules ------------------------------------------------------------------------------------

_TOKEN = regex.compile(
    r"(?P<atom>\[[^][\s]+\]|Br|Cl|[BCNOPSFIbcnops*])|(?P<ring>[0-9]|%[0-9]{2}|%\([0-9]+\))"
    r"|(?P<sign>[-=#$:/\\~().>])"
)
"""Of SMILES (Daylight, OpenSMILES), and of reactions in SMILES."""
_ATOM = regex.compile(r"[A-Za-z*\]]")
_MAP = regex.compile(r"(?<=:)[0-9]+(?=\])")
Tokens = list[tuple[str, int, int, str]]  # kind, start, stop and text


def _molecules(text: str) -> Iterator[Tokens]:
    """Yield the tokens of each word that is SMILES, or of the text if each word is one token."""
    words = [_tokens(match) for match in regex.finditer(r"\S+", text)]
    if len(words) > 1 and all(len(word) == 1 or _is_arrow(word) for word in words):
        yield [token for word in words for token in word]
        return
    yield from filter(None, words)


def _is_arrow(tokens: Tokens) -> bool:
    return bool(tokens) and all(token == ">" for *_, token in tokens)


def _tokens(word: Any) -> Tokens:
    """Split a word; into nothing if it is not SMILES."""
    tokens: Tokens = []
    place = word.start()
    while place < word.end():
        match = _TOKEN.match(word.string, place, word.end())
        if match is None:
            return []
        tokens.append((match.lastgroup, *match.span(), match.group()))
        place = match.end()
    return tokens


def ring_numbers(text: str) -> list[tuple[int, int, int]]:
    """Find the numbers of rings in SMILES, each ring a binding: 0 for the first that opens.

    A number stands for one ring from where it opens to where it closes, and may then stand for
    another. One that is not closed is no name, nor are digits of isotopes, charges and atom maps.
    Words that are not SMILES have no names.
    """
    rings: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for tokens in _molecules(text):
        rings += _rings(tokens)
    return [(*place, ring) for ring, places in enumerate(sorted(rings)) for place in places]


def _rings(tokens: Tokens) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where each ring of a molecule opens and closes; none if brackets do not match."""
    rings = []
    opened: dict[int, tuple[int | None, tuple[int, int]]] = {}  # number -> atom and place
    atom: int | None = None  # the one that a ring number now belongs to, by its place
    branches: list[int | None] = []
    for kind, start, stop, token in tokens:
        if kind == "atom":
            atom = start
        elif kind == "ring":
            if atom is None:
                return []
            number = int(token.strip("%()"))
            other, place = opened.pop(number, (None, (0, 0)))
            if other is None:
                opened[number] = atom, (start, stop)
            elif other != atom:
                rings.append((place, (start, stop)))
        elif token == "(":
            branches.append(atom)
        elif token == ")":
            if not branches:
                return []
            atom = branches.pop()
        elif token in (".", ">"):
            atom = None
            if token == ">":
                opened.clear()
    return [] if branches else rings


def lowest_free(
    between: Sequence[str], symbols: Sequence[str], names: Mapping[str, str]
) -> list[str]:
    """Spell rings by the lowest number that is free, as RDKit does: 1 to 9, then %10.

    A number that an atom closes is free again from the next atom on.
    """
    opened: dict[str, int] = {}
    closed: set[int] = set()  # by the atom in hand
    spellings = []
    for before, symbol in zip(between, symbols, strict=False):
        if _ATOM.search(before):
            closed.clear()
        if symbol in opened:
            number = opened.pop(symbol)
            closed.add(number)
        else:
            taken = closed.union(opened.values())
            number = opened[symbol] = next(n for n in count(1) if n not in taken)
        spellings.append(_ring_number(number))
    return spellings


def _ring_number(number: int) -> str:
    return f"{number}" if number < 10 else f"%{number}" if number < 100 else f"%({number})"


def atom_maps(text: str) -> list[tuple[int, int]]:
    """Find the numbers of atom maps in SMILES, `[CH3:1]`: equal numbers are one name."""
    return [
        (start + match.start(), start + match.end())
        for tokens in _molecules(text)
        for kind, start, _, token in tokens
        if kind == "atom"
        for match in _MAP.finditer(token)
    ]


_DIGITS = tuple("123456789")
READY_RULES: dict[str, ReadyRule] = {
    "python": ReadyRule(python_names, unbound=unbound_names),
    "sql": ReadyRule(sql_names, unbound=sql_words, languages="dialects of sqlglot"),
    "json": ReadyRule(json_names, answers=False),
    "identifier": ReadyRule(identifiers, languages="languages of Pygments"),
    "number": ReadyRule(numbers),
    "smiles": ReadyRule(ring_numbers, words=False, spell=lowest_free, examples=_DIGITS),
    "atom_maps": ReadyRule(atom_maps, words=False, examples=_DIGITS),
    "tools": ReadyRule(lambda text: (), answers=False),  # a chat's schemas say them: `chats`
}
"""What a rule may be called -> how its names are found."""
