"""The order of operands in a canonical form: formulas up to renaming and commuting.

Two formulas are the same problem if one becomes the other when names are renamed and operands of
commutative operators change places. Here operands are put into an order that depends on neither.

Every subformula has a code, a number below 2**61 that is computed from its operators, its constants
and the colours of its names; the operands of a commutative operator enter it alike. Operands are
sorted by code. At first a name's colour is how often it occurs. While operands of a commutative
operator have equal codes, names are told apart by colour refinement (Weisfeiler and Leman): a
name's next colour is computed from its colour and the contexts of all its occurrences, a context
being the path to the root with the codes of the operands beside it.

Where that tells no more names apart, each name of the smallest class of equal colours (of several
such, of the one with the least colour) is tried with a colour of its own, and refinement goes on.
Of the formulas that come out, the first is taken, names numbered as they occur. Of names that can
change places without changing the formula, only one is tried.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

from hf_alpha.tasks.base import Task

_PRIME = 2**61 - 1
MAX_TRIED = 120
"""Choices of names that are tried: all there can be of five, 5 * 4 * 3 * 2."""
_START, _CHOSEN = 0x1F83D9ABFB41BD6B % _PRIME, 0x5BE0CD19137E2179 % _PRIME


@dataclass(frozen=True)
class Fixed:
    """What the order knows of a token that is no name.

    Attributes:
        arity: 0, 1 or 2.
        weight: of a second operand in codes; 1 where the two may change places.
        number: its own, the same on every machine and whatever the other tokens are.
    """

    arity: int
    weight: int
    number: int


def fixed_tokens(
    arities: Mapping[str, int], constants: Collection[str], commutative: Collection[str]
) -> dict[str, Fixed]:
    """Describe operators and constants for `commuted`."""
    return {
        token: Fixed(
            arity,
            3 if arity == 2 and token not in commutative else 1,
            int.from_bytes(blake2b(token.encode(), digest_size=7).digest()),
        )
        for token, arity in {**arities, **dict.fromkeys(constants, 0)}.items()
    }


@cache
def _fixed_of(task: type[Task]) -> dict[str, Fixed]:
    grammar = task.grammar
    assert grammar is not None, "only operators of a grammar are commutative"
    return fixed_tokens(grammar.operators, grammar.constants, task.commutative)


def in_order(tokens: Sequence[str], task: type[Task]) -> list[str]:
    """Sort the operands of a task's commutative operators, as the module says."""
    return commuted(tokens, _fixed_of(task))


def commuted(tokens: Sequence[str], fixed: Mapping[str, Fixed]) -> list[str]:
    """Sort the operands of commutative operators, as the module says.

    The result is the formula with some such operands exchanged and nothing else changed. Formulas
    that are equal up to renaming and commuting become equal up to renaming, always with up to 5
    names, and with more as long as at most `MAX_TRIED` choices of names have to be tried: beyond
    that, the first name as written is taken, which makes a difference only where refinement leaves
    names alike that no symmetry of the formula exchanges. (Codes are hashes: that two different
    ones are equal is as likely as 1 in 2**61.)

    Args:
        tokens: canonical prefix tokens; those that are not in `fixed` are names.
    """
    tree = _Tree(tokens, fixed)
    candidates: list[list[str]] = []
    pending = [(tree.colours, 1)]
    while pending:
        tree.colours, num_choices = pending.pop()
        alike = tree.refine_fully()
        if not alike:
            candidates.append(tree.in_order())
            continue
        colours = tree.colours
        new_colour = (colours[alike[0]] + _CHOSEN) ** 2 % _PRIME
        alike = tree.not_exchangeable(alike)
        num_choices *= len(alike)
        for name in alike if num_choices <= MAX_TRIED else alike[:1]:
            pending.append(({**colours, name: new_colour}, num_choices))
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda candidate: _numbered(candidate, fixed))


def _numbered(tokens: Sequence[str], fixed: Mapping[str, Fixed]) -> list[int]:
    """Number the names as they occur, to compare formulas up to renaming."""
    names: dict[str, int] = {}
    return [
        fixed[token].number if token in fixed else names.setdefault(token, len(names))
        for token in tokens
    ]


class _Tree:
    """A formula as flat lists, with the colours of its names and the codes of its subformulas.

    `codes[i]` belongs to the subformula that begins at token i. A unary operator has a second
    operand behind the last token, whose code is larger than all others.
    """

    def __init__(self, tokens: Sequence[str], fixed: Mapping[str, Fixed]):
        size = len(tokens)
        self.tokens = tokens
        self.codes = [_PRIME] * (size + 1)
        self.names: list[tuple[int, str]] = []
        # Operands first: its place, where its right operand begins and ends, weight, number.
        self.operators: list[tuple[int, int, int, int, int]] = []
        starts = [size]
        for i in range(size - 1, -1, -1):
            token = tokens[i]
            meaning = fixed.get(token)
            if meaning is None:
                self.names.append((i, token))
            elif not meaning.arity:
                self.codes[i] = meaning.number
            else:
                starts.pop()
                right = starts.pop() if meaning.arity == 2 else size
                self.operators.append((i, right, starts[-1], meaning.weight, meaning.number))
            starts.append(i)
        self.names.reverse()
        self.colours: dict[str, int] = {}
        for _, name in self.names:
            self.colours[name] = (self.colours.get(name, 0) + _START) % _PRIME

    def refine_fully(self) -> list[str]:
        """Refine the colours; return names that stay alike, none if the order of operands is known.

        They are the smallest such class, as written.
        """
        names = len(self.colours)
        different = len(set(self.colours.values()))
        while self.find_codes() and different < names:
            self.refine()
            before, different = different, len(set(self.colours.values()))
            if different == before:
                classes = Counter(self.colours.values())
                _, alike = min((count, colour) for colour, count in classes.items() if count > 1)
                return [name for name, colour in self.colours.items() if colour == alike]
        return []

    def not_exchangeable(self, names: Sequence[str]) -> list[str]:
        """Leave out names that can change places with an earlier one in the same formula."""
        unique_colours = {
            name: (i * _CHOSEN + _START) ** 2 % _PRIME for i, name in enumerate(self.colours)
        }
        code = self._root_code(unique_colours)
        representatives: list[str] = []
        for name in names:
            exchanges = (
                {**unique_colours, name: unique_colours[other], other: unique_colours[name]}
                for other in representatives
            )
            if not any(self._root_code(colours) == code for colours in exchanges):
                representatives.append(name)
        return representatives

    def _root_code(self, colours: dict[str, int]) -> int:
        self.colours = colours
        self.find_codes()
        return self.codes[0]

    def find_codes(self) -> bool:
        """Compute the codes; return whether a commutative operator has operands of equal ones."""
        codes, colours = self.codes, self.colours
        tied = False
        for i, name in self.names:
            codes[i] = colours[name]
        for i, right, _, weight, number in self.operators:
            left_code, right_code = codes[i + 1], codes[right]
            if left_code == right_code and weight == 1:
                tied = True
            code = left_code + weight * right_code + number
            codes[i] = code * code % _PRIME
        return tied

    def refine(self) -> None:
        """Compute the next colour of each name."""
        codes, colours, size = self.codes, self.colours, len(self.tokens)
        contexts = [0] * (size + 1)
        for i, right, _, weight, number in reversed(self.operators):
            context = contexts[i] + number + 3 * codes[right]
            contexts[i + 1] = context * context % _PRIME
            if right < size:
                context = contexts[i] + weight * number + 3 * codes[i + 1]
                contexts[right] = context * context % _PRIME
        for i, name in self.names:
            colours[name] += contexts[i]
        for name, colour in colours.items():
            colours[name] = colour % _PRIME

    def in_order(self) -> list[str]:
        """Write operands that may change places by their codes; equal ones stay as they are."""
        codes = self.codes
        places = [0] * len(codes)
        for i, right, end, weight, _ in reversed(self.operators):
            left, place = i + 1, places[i] + 1
            if weight == 1 and codes[right] < codes[left]:
                places[right], places[left] = place, place + end - right
            else:
                places[left], places[right] = place, place + right - left
        ordered_tokens = list(self.tokens)
        for place, token in zip(places, self.tokens, strict=False):
            ordered_tokens[place] = token
        return ordered_tokens
