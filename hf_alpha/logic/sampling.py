"""Random formulas of an exact size.

The distributions are those of Spot's random generator (`randltl`), as the papers use it: a formula
of one token is a leaf, one of two tokens a unary operator; from three on the operator is uniform
and a binary one splits the remaining tokens uniformly. Every symbol is as likely as every other,
and a constant has `constant_priority` against a symbol's 1.

Spot draws a tree of the given size and then simplifies trivial identities such as `!!x` or `x & x`
away, which shrinks it. Here no tree is drawn that Spot would shrink, so that the size is the one
that was asked for. How, and what that does to the distribution, is said by each task's sampler.
Identical operands are drawn again at their sizes; Spot's caller would throw the whole formula away.
"""

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from hf_alpha.modeling.choices import refuse


@dataclass(frozen=True)
class Sampler(ABC):
    """Draw formulas over `symbols`; a constant has `constant_priority` against a symbol's 1.

    Without symbols the constants are the only leaves and need a priority above zero.
    """

    symbols: tuple[str, ...]
    constant_priority: float = 0.0

    operators: ClassVar[frozenset[str]]

    def __post_init__(self) -> None:
        priority = self.constant_priority
        refuse(priority < 0, f"constant_priority must be >= 0, got {priority}")
        refuse(
            not self.symbols and not priority,
            "no leaves to draw from: give symbols or a constant_priority above 0",
        )

    def sample(self, rng: random.Random, size: int, min_leaves: int = 1) -> list[str]:
        """Return the prefix tokens of a random formula with exactly `size` tokens.

        Args:
            rng: source of randomness; the result is a function of its state.
            size: number of tokens.
            min_leaves: condition the shape on at least this many leaves.

        Raises:
            ValueError: if no such formula exists.
        """
        if not self.is_feasible(size, min_leaves):
            raise ValueError(
                f"no formula of size {size} with {min_leaves} or more leaves over "
                f"{len(self.symbols)} symbol(s)"
            )
        return self._draw(rng, size, min_leaves)

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
        order = [i for i, token in enumerate(tokens) if token not in self.operators]
        rng.shuffle(order)
        for position in order:
            places = positions.get(tokens[position])
            if places is None or places:
                spare.append(position)
            else:
                places.append(position)
        missing = [symbol for symbol, places in positions.items() if not places]
        rng.shuffle(missing)
        for symbol, position in zip(missing, spare, strict=False):
            tokens[position] = symbol
        return tokens

    @abstractmethod
    def is_feasible(self, size: int, min_leaves: int = 1) -> bool:
        """Say whether a formula of this size with this many leaves exists."""

    @abstractmethod
    def _draw(self, rng: random.Random, size: int, min_leaves: int) -> list[str]:
        """Draw a formula of a feasible size, as `sample` describes."""
