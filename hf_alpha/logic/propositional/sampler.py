"""Random propositional formulas of an exact size.

A node that would be a trivial identity is drawn again. Every constant would be simplified away, so
constants are no leaves unless asked for. `hf_alpha.logic.sampling` has the distribution.
"""

import random
from collections.abc import Callable

from hf_alpha.logic.sampling import Sampler

OPERATORS = ("!", "&", "|", "=", "^")
CONSTANTS = ("0", "1")
_OPERATOR_SET = frozenset(OPERATORS)


class FormulaSampler(Sampler):
    """Draw propositional formulas: not, and, or, iff, xor."""

    operators = _OPERATOR_SET

    def is_feasible(self, size: int, min_leaves: int = 1) -> bool:
        if size < 1 or min_leaves > (size + 1) // 2:
            return False
        return size != 3 or not self._single_leaf

    def _draw(self, rng: random.Random, size: int, min_leaves: int) -> list[str]:
        while True:
            tokens = self._shape(rng, size, min_leaves)
            if tokens is None:
                continue
            self._redraw_identities(rng, tokens)
            if min_leaves <= 1 or sum(x not in _OPERATOR_SET for x in tokens) >= min_leaves:
                return tokens

    @property
    def _single_leaf(self) -> bool:
        return len(self.symbols) == 1 and not self.constant_priority

    def _leaf(self, rng: random.Random) -> str:
        if self.constant_priority:
            constants = 2 * self.constant_priority
            if rng.random() * (constants + len(self.symbols)) < constants:
                return CONSTANTS[int(rng.random() * 2)]
        return self.symbols[int(rng.random() * len(self.symbols))]

    def _shape(self, rng: random.Random, size: int, min_leaves: int) -> list[str] | None:
        """Draw a formula top-down; None as soon as it cannot have `min_leaves` leaves."""
        uniform, leaf, symbols = rng.random, self._leaf, self.symbols
        plain, num_symbols = not self.constant_priority, len(symbols)
        single = self._single_leaf
        tokens: list[str] = []
        room = (size + 1) // 2 - min_leaves
        pending = [(size, False)]
        while pending:
            tokens_left, negated = pending.pop()
            if tokens_left == 1:
                tokens.append(symbols[int(uniform() * num_symbols)] if plain else leaf(rng))
                continue
            operator, left = _choose(uniform, tokens_left, negated, single)
            tokens.append(operator)
            if left == 0:
                room -= (tokens_left + 1) // 2 - tokens_left // 2
                pending.append((tokens_left - 1, True))
            else:
                right = tokens_left - 1 - left
                room -= (tokens_left + 1) // 2 - (left + 1) // 2 - (right + 1) // 2
                pending.append((right, False))
                pending.append((left, False))
            if room < 0:
                return None
        return tokens

    def _redraw_identities(self, rng: random.Random, tokens: list[str]) -> None:
        """Draw operands of a binary operator again, in place, as long as they are identical."""
        sizes = [1] * len(tokens)
        for node in range(len(tokens) - 1, -1, -1):
            token = tokens[node]
            if token not in _OPERATOR_SET:
                continue
            left = sizes[node + 1]
            if token == "!":
                sizes[node] = left + 1
                continue
            middle = node + 1 + left
            right = sizes[middle]
            end = middle + right
            sizes[node] = 1 + left + right
            while left == right and tokens[node + 1 : middle] == tokens[middle:end]:
                tokens[node + 1 : middle] = self.sample(rng, left)
                tokens[middle:end] = self.sample(rng, right)


def _choose(
    uniform: Callable[[], float], size: int, negated: bool, single_leaf: bool
) -> tuple[str, int]:
    """Draw a node of two or more tokens: its operator and the size of its left operand (! has 0).

    Nodes that can only become a trivial identity are never chosen: `!` above `!`, hence `!` at
    size 3; and over a single leaf whatever leads to size 3 or to two operands of size 1 or 2.
    """
    if size == 2:
        return "!", 0
    negatable = not negated and size != 3 and not (single_leaf and size in (4, 6))
    while True:
        operator = OPERATORS[int(uniform() * 5)]
        if operator == "!":
            if negatable:
                return operator, 0
            continue
        left = 1 + int(uniform() * (size - 2))
        right = size - 1 - left
        if not single_leaf or (left != 3 and right != 3 and not left == right <= 2):
            return operator, left
