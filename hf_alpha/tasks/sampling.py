"""Random propositional formulas of an exact size.

The distribution is that of Spot's random generator with equal priorities for the five operators,
as the papers use it: a formula of one token is a leaf, one of two tokens a negation; from three on
the operator is uniform over the five and a binary one splits the remaining tokens uniformly. Every
symbol is as likely as every other. Three things differ from Spot:

* Spot draws a tree of the given size and then simplifies `!!x`, `x op x` and constants away, which
  shrinks it. Here such a node is drawn again, so that the size is the one that was asked for.
* Constants are therefore no leaves unless `constant_priority` asks for them.
* Operands that came out identical are both drawn again at their sizes; Spot's caller would throw
  the whole formula away.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

OPERATORS = ("!", "&", "|", "=", "^")
CONSTANTS = ("0", "1")
_OPERATOR_SET = frozenset(OPERATORS)


@dataclass(frozen=True)
class FormulaSampler:
    """Draw formulas over `symbols`; a constant has `constant_priority` against a symbol's 1.

    Without symbols the constants are the only leaves and need a priority above zero.
    """

    symbols: tuple[str, ...]
    constant_priority: float = 0.0

    def __post_init__(self) -> None:
        if self.constant_priority < 0:
            raise ValueError(f"constant_priority must be >= 0, got {self.constant_priority}")
        if not self.symbols and not self.constant_priority:
            raise ValueError("no leaves to draw from: give symbols or a constant_priority above 0")

    def sample(self, rng: random.Random, size: int, min_leaves: int = 1) -> list[str]:
        """Return the prefix tokens of a random formula with exactly `size` tokens.

        Args:
            rng: source of randomness; the result is a function of its state.
            size: number of tokens.
            min_leaves: condition the shape on at least this many leaves.

        Raises:
            ValueError: if no such formula exists (three tokens over a single leaf, for instance).
        """
        if not self.is_feasible(size, min_leaves):
            raise ValueError(
                f"no formula of size {size} with {min_leaves} or more leaves over "
                f"{len(self.symbols)} symbol(s)"
            )
        while True:
            tokens = self._shape(rng, size, min_leaves)
            if tokens is None:
                continue
            self._redraw_identities(rng, tokens)
            if min_leaves <= 1 or _count_leaves(tokens) >= min_leaves:
                return tokens

    def sample_exactly(self, rng: random.Random, size: int) -> list[str]:
        """Return a random formula of exactly `size` tokens in which every symbol occurs.

        The shape is conditioned on enough leaves. Symbols that the draw missed then replace
        leaves whose symbol occurs elsewhere too. A symbol placed so occurs once, so no two
        operands become identical; rejecting draws instead would be hopeless where the number of
        symbols is close to the number of leaves.
        """
        tokens = self.sample(rng, size, max(1, len(self.symbols)))
        positions: dict[str, list[int]] = {symbol: [] for symbol in self.symbols}
        spare = []
        order = [i for i, token in enumerate(tokens) if token not in OPERATORS]
        rng.shuffle(order)
        for position in order:
            found = positions.get(tokens[position])
            if found is None or found:
                spare.append(position)
            else:
                found.append(position)
        missing = [symbol for symbol, found in positions.items() if not found]
        rng.shuffle(missing)
        for symbol, position in zip(missing, spare, strict=False):
            tokens[position] = symbol
        return tokens

    def is_feasible(self, size: int, min_leaves: int = 1) -> bool:
        """Say whether a formula of this size with this many leaves exists."""
        if size < 1 or min_leaves > (size + 1) // 2:
            return False
        return size != 3 or not self._single_leaf

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


def _count_leaves(tokens: Sequence[str]) -> int:
    return sum(token not in _OPERATOR_SET for token in tokens)
