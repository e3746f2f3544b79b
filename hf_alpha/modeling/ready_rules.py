"""Ready-made rules for names: what people of a field call a name, and what binds it.

`symbols: {ring: {rule: smiles}}` takes one. Those for molecules are here.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import regex  # type: ignore[import-untyped]

from .name_rules import ReadyRule
from .names_in_code import identifiers, json_names, json_paths, json_words, numbers
from .names_in_python import is_program, python_names, unbound_names
from .names_in_sql import sql_names, sql_words


def _nested(inner: str) -> str:
    """Return a pattern of brackets, of bounded size, so that no text takes long."""
    return rf"\((?:[^()\s]{{1,99}}+|{inner}){{0,9}}+\)"


_ELEMENT = (
    "A[cglmrstu]|B[aehikr]?|C[adeflmnorsu]?|D[bsy]|E[rsu]|F[elmr]?|G[ade]|H[efgos]|I[nr]?|Kr?"
    "|L[airuv]|M[cdgnot]|N[abdehiop]?|O[gs]?|P[abdmortu]?|R[abefghnu]|S[bcegimnr]?|T[abcehilms]"
    "|[UVW]|Xe|Yb?|Z[nr]"
)
_IN_BRACKETS = (
    rf"{_ELEMENT}|se|as|te|si|[Aabcnops*]|[DHRXZhrvxz#^](?:[0-9]++|\{{[0-9]*-[0-9]*\}})?"
    r"|[+-]++[0-9]*|@(?:@|[A-Z]{2}[0-9]++)?\??|:[0-9]++|!|[,;&][0-9]*"
    rf"|\${_nested(_nested(_nested('(?!)')))}"
)
_ATOM_TOKEN = (  # or one of BigSMILES' ends, [$], [<1], []
    rf"Br|Cl|[ABCNOPSFIabcnops*]|\[[0-9]*+(?!:)(?:{_IN_BRACKETS})++\]|\[(?:[$<>][0-9]*)?\]"
)
_RING_TOKEN = r"[0-9]|%[0-9]{2}|%\([0-9]+\)"
_BOND = r"[-=#$:/\\~@]"
_SIGN = rf"{_BOND}|[.()>]|<(?= ?-)|!(?={_BOND})|(?<={_BOND})[,;&](?=!?{_BOND})|(?<=[/\\])\?"
_ANY = f"{_ATOM_TOKEN}|{_RING_TOKEN}|{_SIGN}"
_TOKEN = regex.compile(
    rf"(?P<atom>{_ATOM_TOKEN})|(?P<ring>{_RING_TOKEN})|(?P<arrow>(?<!- ?)>)|(?P<sign>{_SIGN})"
    "|(?P<object>[{},;])"
)
"""Of SMILES (Daylight, OpenSMILES), reactions, SMARTS and BigSMILES. `->` is a dative bond."""
_RUN = regex.compile(
    rf"(?<![\p{{Latin}}\d_%)}}#$&~+^/\\@.-])"
    rf"(?:{_ANY}|\{{(?:{_ANY}|[,;])++\}})++(?P<glued>[\p{{Latin}}\d_%&+^])?"
    r"(?P<tail>[ \t]\|[^|\s]++\|(?!\S))?"  # of CXSMILES
)
_SPACED = regex.compile(rf"\s*(?:(?:{_ANY}|->|<-?|>>)(?:\s+|$))++")
_ATOM = regex.compile(r"[A-Za-z*\]]")
_RING = regex.compile("[0-9]")
_MAP = regex.compile(r"(?<=:)(?!0+\])[0-9]+(?=\])")  # 0 is none
Tokens = list[tuple[str, int, int, str]]  # kind, start, stop and text
Ring = tuple[tuple[int, int], tuple[int, int]]  # start and stop of where it opens, and closes


def _molecules(text: str) -> Iterator[Tokens]:
    """Yield the tokens of each word that may be a molecule, in brackets, quotes, lists or prose.

    Or of the whole text if each word is one token.
    """
    if _SPACED.fullmatch(text) and len(text.split()) > 1:
        yield _tokens(text, 0, len(text))
        return
    for run in _RUN.finditer(text):
        if run["glued"] is None:
            stop = run.start("tail") if run["tail"] else run.end()
            if tokens := _tokens(text, *_without_brackets(text, run.start(), stop)):
                yield tokens


def _without_brackets(text: str, start: int, stop: int) -> tuple[int, int]:
    """Leave out brackets of prose, of which the other one stands elsewhere, `(see C1CC1)`."""
    spare = text.count("(", start, stop) - text.count(")", start, stop)
    while spare > 0 and text[start] == "(":
        start, spare = start + 1, spare - 1
    while spare < 0 and start < stop and text[stop - 1] in ").:":
        stop, spare = stop - 1, spare + (text[stop - 1] == ")")
    return start, stop


def _tokens(text: str, start: int, stop: int) -> Tokens:
    found = _TOKEN.finditer(text, start, stop)
    return [(match.lastgroup, *match.span(), match.group()) for match in found]


def ring_numbers(text: str) -> list[tuple[int, int, int]]:
    """Find the numbers of rings in molecules, each ring a binding: 0 for the first that opens.

    A number stands for one ring from where it opens to where it closes, and may then stand for
    another. Digits of isotopes, charges and atom maps are no names, nor is a number that is not
    closed in a text that is one molecule, or its beginning. In other texts a word with such a
    number is no molecule.
    """
    rings: list[Ring] = []
    for tokens in _molecules(text):
        is_all = tokens[-1][2] - tokens[0][1] == len(text.strip())
        rings += _rings(tokens, is_all)
    return [(*place, ring) for ring, places in enumerate(sorted(rings)) for place in places]


def _rings(tokens: Tokens, may_be_open: bool) -> list[Ring]:
    """Return where each ring of a molecule opens and closes.

    There is none if brackets do not match, if a number is not closed and may not be open, or if it
    would bind an atom to itself, or two atoms that are bound already.
    """
    rings = []
    opened: dict[int, tuple[int, tuple[int, int]]] = {}  # number -> atom and place
    bonds = set[tuple[int | None, int]]()
    atom: int | None = None  # the one that a ring number now belongs to, by its place
    branches: list[int | None] = []
    for kind, start, stop, token in tokens:
        if kind == "atom":
            bonds.add((atom, start))
            atom = start
        elif kind == "ring":
            if atom is None:
                return []
            number = int(token.strip("%()"))
            if number not in opened:
                opened[number] = atom, (start, stop)
                continue
            other, place = opened.pop(number)
            if other == atom or {(other, atom), (atom, other)} & bonds:
                return []
            bonds.add((other, atom))
            rings.append((place, (start, stop)))
        elif token == "(":
            branches.append(atom)
        elif token == ")":
            if not branches:
                return []
            atom = branches.pop()
        elif token in ".,;" or kind == "arrow":
            atom = None
            if kind == "arrow":
                if opened and not may_be_open:
                    return []
                opened.clear()
    return [] if branches or (opened and not may_be_open) else rings


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


def as_mapped(
    between: Sequence[str], symbols: Sequence[str], names: Mapping[str, str]
) -> list[str]:
    """Spell numbers of atom maps as they were, and new ones by the lowest that is free."""
    plain = (number for part in between for number in _MAP.findall(part))
    taken, spelled = {*names.values(), *plain}, dict(names)
    free = (number for number in map(str, count(1)) if number not in taken)
    for symbol in symbols:
        if symbol not in spelled:
            spelled[symbol] = next(free)
    return [spelled[symbol] for symbol in symbols]


_DIGITS = tuple("123456789")
READY_RULES: dict[str, ReadyRule] = {
    "python": ReadyRule(python_names, unbound=unbound_names, reads=is_program, attributes=True),
    "sql": ReadyRule(
        sql_names, unbound=sql_words, languages="dialects of sqlglot", ignore_case=True
    ),
    "json": ReadyRule(json_names, answers=False, scoped=ReadyRule(json_paths, unbound=json_words)),
    "identifier": ReadyRule(identifiers, languages="languages of Pygments"),
    "number": ReadyRule(numbers),
    "smiles": ReadyRule(ring_numbers, words=False, spell=lowest_free, examples=_DIGITS),
    "atom_maps": ReadyRule(atom_maps, words=False, spell=as_mapped, keeps=True, examples=_DIGITS),
    # a chat's schemas say them: `chats`
    "tools": ReadyRule(lambda text: (), answers=False, stem="tool_"),
}
"""What a rule may be called -> how its names are found; programming languages have their own."""
