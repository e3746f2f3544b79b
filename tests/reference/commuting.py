"""Equal up to renaming and commuting, by writing out every way to write a formula."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

Arities = Mapping[str, int]


def canonical(
    tokens: Sequence[str], arities: Arities, constants: Collection[str], commutative: str
) -> str:
    """Return the first in the alphabet of all ways to write a formula, names numbered as they come.

    Numbering names by first occurrence is all renamings at once: of those that give the same order
    of operands, it is the first in the alphabet.
    """
    return min(
        _numbered(written, {*arities, *constants})
        for written in orders(tokens, arities, commutative)
    )


def orders(tokens: Sequence[str], arities: Arities, commutative: str) -> Iterator[list[str]]:
    """Give the formula with the operands of commutative operators in every order."""
    token, *rest = tokens
    if arities.get(token, 0) == 0:
        yield [token]
    elif arities[token] == 1:
        yield from ([token, *operand] for operand in orders(rest, arities, commutative))
    else:
        middle = _length(rest, arities)
        sides = [
            list(orders(part, arities, commutative)) for part in (rest[:middle], rest[middle:])
        ]
        for left, right in product(*sides):
            yield [token, *left, *right]
            if token in commutative:
                yield [token, *right, *left]


def _length(tokens: Sequence[str], arities: Arities) -> int:
    """Return the number of tokens of the formula at the beginning."""
    missing = length = 0
    while missing >= 0:
        missing += arities.get(tokens[length], 0) - 1
        length += 1
    return length


def _numbered(tokens: Sequence[str], fixed: Collection[str]) -> str:
    names: dict[str, str] = {}
    for token in tokens:
        if token not in fixed:
            names.setdefault(token, f"p{len(names):03d}")
    return " ".join(names.get(token, token) for token in tokens)
