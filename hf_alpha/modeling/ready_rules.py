"""Ready-made rules for names: what people of a field call a name, and what binds it.

`symbols: {ring: {rule: smiles}}` takes one. Those for molecules are here.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import regex  # type: ignore[import-untyped]

from .name_rules import ReadyRule
from .names_in_code import identifiers, json_names, numbers, sql_names, sql_words
from .names_in_python import python_names, unbound_names

_TOKEN = regex.compile(
    r"(?P<atom>\[[^][\s]+\]|Br|Cl|[BCNOPSFIbcnops*])|(?P<ring>[0-9]|%[0-9]{2}|%\([0-9]+\))"
    r"|(?P<sign>[-=#$:/\\~().>])"
)
"""Of SMILES (Daylight, OpenSMILES), and of reactions in SMILES."""
_ATOM = regex.compile(r"[A-Za-z*\]]")
_RING = regex.compile("[0-9]")
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

    A number that an atom closes is free again from the next atom on. One that stands in the
    molecule as text, and not as a symbol, is not free in it.
    """
    opened: dict[str, int] = {}
    closed: set[int] = set()  # by the atom in hand
    spellings = []
    for before, symbol, plain in zip(between, symbols, _plain_rings(between), strict=False):
        if _ATOM.search(before):
            closed.clear()
        if symbol in opened:
            number = opened.pop(symbol)
            closed.add(number)
        else:
            taken = closed.union(opened.values(), plain)
            number = opened[symbol] = next(n for n in count(1) if n not in taken)
        spellings.append(_ring_number(number))
    return spellings


def _plain_rings(between: Sequence[str]) -> list[set[int]]:
    """Return for each symbol the numbers of rings that its molecule has between symbols."""
    plain = [set[int]() for _ in between[1:]]
    if not any(map(_RING.search, between)):
        return plain
    first = 10**6  # numbers from here on stand for the symbols
    text = between[0] + "".join(f"%({first + n}){part}" for n, part in enumerate(between[1:]))
    for tokens in _molecules(text):
        rings = {int(token.strip("%()")) for kind, *_, token in tokens if kind == "ring"}
        for number in rings:
            if number >= first:
                plain[number - first] = {ring for ring in rings if ring < first}
    return plain


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
    # a chat's schemas say them: `chats`
    "tools": ReadyRule(lambda text: (), answers=False, stem="function_"),
}
"""What a rule may be called -> how its names are found."""
