"""Random formulas of linear temporal logic of an exact size.

Trees are drawn conditioned on having no trivial identity at all: with the papers' constants most
trees have one, and redrawing them node by node would favour other operators.
`hf_alpha.logic.sampling` has the distribution.
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from hf_alpha.logic.sampling import Sampler

Node = tuple[int, int, str]
"""A subtree to draw: its size, how many of its nodes are unary, and its place (`_KEPT`)."""

_KEPT = {"": "01", "!": "", "X": "0", "&": "", "U left": "1", "U right": ""}
"""Place of a leaf -> the constants that Spot keeps there; the root is "". Larger subtrees have the
place "!" where they must not start with `!`, and "" elsewhere."""


class LtlSampler(Sampler):
    """Draw formulas of linear temporal logic: not, next, until, and.

    Spot's identities (2.13, "Trivial Identities" in its manual) are `!!x`, `!0`, `!1`, `X1`, `0&x`,
    `1&x`, `x&x` (also within nested conjunctions, in any order), `xU0`, `xU1`, `0Ux` and `xUx`.
    Constants are left as the formulas 0 and 1, as `X0` and as `1Ux`.

    Trees have Spot's probabilities, conditioned on the size and on no identity but identical
    operands. A conjunction or until with identical operands is drawn again: two leaves at their
    place, larger ones from the operator on, with as many unary nodes.

    Formulas that come out of Spot at some size are partly larger ones that shrank to it. With tree
    sizes 1-35, 5 symbols and constants these make up most of the small ones, and constants are
    twice as frequent there as here (5.1 % of the tokens of formulas of size 12, here 2.5 %);
    operators differ by at most 1.5 % of the tokens.

    The first formula of a size takes time that grows with its cube, seconds for 200 tokens.
    """

    operators = frozenset("!&XU")

    def vary(self, rng: random.Random, tokens: Sequence[str]) -> list[str]:
        """Draw one subtree anew, at its size, unless that makes a trivial identity."""
        start = rng.randrange(len(tokens))
        end, missing = start, 1
        while missing:
            missing += len(_PLACES.get(tokens[end], ())) - 1
            end += 1
        varied = [*tokens[:start], *self.sample(rng, end - start), *tokens[end:]]
        return list(tokens) if _has_identity(varied) else varied

    def is_feasible(self, size: int, min_leaves: int = 1) -> bool:
        return size >= 1 and sum(self._by_unary(size, min_leaves)) > 0

    def _by_unary(self, size: int, min_leaves: int) -> list[float]:
        """Return weights by number of unary nodes, which is size + 1 - 2 * leaves."""
        return self._weights.by_unary(size)[: max(0, size + 2 - 2 * min_leaves)]

    @property
    def _weights(self) -> "_LtlWeights":
        return _ltl_weights(len(self.symbols), self.constant_priority)

    def _draw(self, rng: random.Random, size: int, min_leaves: int) -> list[str]:
        unary = _pick(rng, list(accumulate(self._by_unary(size, min_leaves))))
        return self._draw_node(rng, (size, unary, ""), _Subtrees())[0]

    def _draw_node(
        self, rng: random.Random, node: Node, subtrees: "_Subtrees"
    ) -> tuple[list[str], int]:
        """Draw a subtree without identical operands: its tokens and its number."""
        tokens, nodes = self._shape(rng, node)
        operands: list[int] = []
        for index in range(len(tokens) - 1, -1, -1):
            token = tokens[index]
            if token not in self.operators:
                operands.append(subtrees.number(token))
            elif token in "!X":
                operands.append(subtrees.number(token, operands.pop()))
            else:
                left, right = operands.pop(), operands.pop()
                size = nodes[index][0]
                while size == 3 and left == right:
                    leaves = [
                        self._leaf(rng, place) for _, _, place in nodes[index + 1 : index + 3]
                    ]
                    tokens[index + 1 : index + 3] = leaves
                    left, right = map(subtrees.number, leaves)
                number = subtrees.binary(token, left, right)
                if number is None:
                    subtree_tokens, number = self._draw_node(rng, nodes[index], subtrees)
                    tokens[index : index + size] = subtree_tokens
                operands.append(number)
        return tokens, operands[0]

    def _shape(self, rng: random.Random, root: Node) -> tuple[list[str], list[Node]]:
        """Draw a tree top-down whose operands may be identical: its tokens and their nodes."""
        weights = self._weights
        tokens: list[str] = []
        nodes: list[Node] = []
        pending = [root]
        while pending:
            node = pending.pop()
            nodes.append(node)
            size, unary, place = node
            if size == 1:
                tokens.append(self._leaf(rng, place))
                continue
            sums, choices = weights.choices(size, unary, place)
            operator, left = choices[_pick(rng, sums)]
            tokens.append(operator)
            if not left:
                place = operator if size == 2 or operator == "!" else ""
                pending.append((size - 1, unary - 1, place))
                continue
            right = size - 1 - left
            in_left = _pick(rng, weights.splits(left, right, unary))
            first, second = _PLACES[operator]
            pending.append((right, unary - in_left, second if right == 1 else ""))
            pending.append((left, in_left, first if left == 1 else ""))
        return tokens, nodes

    def _leaf(self, rng: random.Random, place: str) -> str:
        constants, num_symbols = _KEPT[place], len(self.symbols)
        position = rng.random() * (num_symbols + len(constants) * self.constant_priority)
        if position < num_symbols:
            return self.symbols[int(position)]
        rank = int((position - num_symbols) / self.constant_priority)
        return constants[min(rank, len(constants) - 1)]


_PLACES = {"!": ("!",), "X": ("X",), "&": ("&", "&"), "U": ("U left", "U right")}


class _Subtrees:
    """Numbers of subtrees: those that Spot takes for the same have the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._conjuncts: dict[int, frozenset[int]] = {}

    def number(self, *key: object) -> int:
        """Return the number of a token with the numbers of its operands."""
        return self._numbers.setdefault(key, len(self._numbers))

    def binary(self, token: str, left: int, right: int) -> int | None:
        """Return the number of an until or a conjunction; None if operands are identical."""
        if token == "U":
            return None if left == right else self.number(token, left, right)
        left_conjuncts = self._conjuncts.get(left) or frozenset((left,))
        right_conjuncts = self._conjuncts.get(right) or frozenset((right,))
        if left_conjuncts & right_conjuncts:
            return None
        number = self.number(token, left_conjuncts | right_conjuncts)
        self._conjuncts[number] = left_conjuncts | right_conjuncts
        return number


def _has_identity(tokens: Sequence[str]) -> bool:
    """Say whether Spot would simplify a formula, see `LtlSampler`."""
    subtrees = _Subtrees()
    operands: list[tuple[int, str]] = []  # the number of each and its first token
    for token in reversed(tokens):
        places = _PLACES.get(token, ())
        numbers = []
        for place in places:
            number, first = operands.pop()
            if first == token == "!" or (first in "01" and first not in _KEPT[place]):
                return True
            numbers.append(number)
        combined = (
            subtrees.binary(token, *numbers)
            if len(numbers) == 2
            else subtrees.number(token, *numbers)
        )
        if combined is None:
            return True
        operands.append((combined, token))
    return False


def _pick(rng: random.Random, sums: Sequence[float]) -> int:
    """Draw an index; `sums` are the weights summed up."""
    return bisect_right(sums, rng.random() * sums[-1], 0, len(sums) - 1)


class _LtlWeights:
    """Probabilities that a tree of Spot's has no identity, by size and number of unary nodes.

    Operands may be identical, except two leaves. Arrays are indexed by the number of unary nodes,
    lists of them by the size; those of leaves depend on the place too.
    """

    def __init__(self, num_symbols: int, constant_priority: float):
        leaves = num_symbols + 2 * constant_priority
        self._leaf = {
            place: np.array([(num_symbols + len(constants) * constant_priority) / leaves])
            for place, constants in _KEPT.items()
        }
        self._same_symbol = num_symbols / leaves**2
        self._any = [np.zeros(1), self._leaf[""]]
        self._not_negated = [np.zeros(1), self._leaf["!"]]
        self._terms: dict[int, dict[tuple[str, int], np.ndarray]] = {}
        self._choices: dict[Node, tuple[list[float], list[tuple[str, int]]]] = {}
        self._splits: dict[tuple[int, int, int], list[float]] = {}

    def by_unary(self, size: int) -> list[float]:
        """Return the weights of the trees of a size with 0, 1, ... unary nodes."""
        for following in range(len(self._any), size + 1):
            terms = self._terms[following] = self._weigh(following)
            self._any.append(sum(terms.values(), start=np.zeros(following)))
            self._not_negated.append(self._any[-1] - terms["!", 0])
        return self._any[size].tolist()

    def choices(
        self, size: int, unary: int, place: str
    ) -> tuple[list[float], list[tuple[str, int]]]:
        """Return weights, summed up, of the root's operator and left size (0 of a unary one)."""
        key = size, unary, place
        if key not in self._choices:
            terms = self._terms[size]
            choices = [choice for choice in terms if not choice[0] == place == "!"]
            weights = [float(terms[choice][unary]) for choice in choices]
            self._choices[key] = list(accumulate(weights)), choices
        return self._choices[key]

    def splits(self, left: int, right: int, unary: int) -> list[float]:
        """Return weights, summed up, of how many of the unary nodes are in the left operand."""
        key = left, right, unary
        if key not in self._splits:
            # The place of a leaf does not matter: it has no unary nodes.
            left_weights, right_weights = np.zeros(unary + 1), np.zeros(unary + 1)
            for array, size in ((left_weights, left), (right_weights, right)):
                weights = self._any[size][: unary + 1]
                array[: len(weights)] = weights
            self._splits[key] = list(accumulate((left_weights * right_weights[::-1]).tolist()))
        return self._splits[key]

    def _weigh(self, size: int) -> dict[tuple[str, int], np.ndarray]:
        """Return the weights of each operator and left size at the root of a tree of this size."""
        terms = {}
        share = 1 / 2 if size == 2 else 1 / 4
        below = self._leaf["X"] if size == 2 else self._any[size - 1]
        terms["!", 0] = _padded(share * self._not_negated[size - 1], size, shift=1)
        terms["X", 0] = _padded(share * below, size, shift=1)
        for operator in "&U":
            places = _PLACES[operator]
            for left in range(1, size - 1):
                sizes = left, size - 1 - left
                left_weights, right_weights = (
                    self._leaf[place] if part == 1 else self._any[part]
                    for part, place in zip(sizes, places, strict=True)
                )
                num_pairs = np.convolve(left_weights, right_weights)
                if size == 3:
                    num_pairs = np.maximum(num_pairs - self._same_symbol, 0)
                terms[operator, left] = _padded(share / (size - 2) * num_pairs, size)
        return terms


def _padded(weights: np.ndarray, length: int, shift: int = 0) -> np.ndarray:
    return np.pad(weights, (shift, length - shift - len(weights)))


_ltl_weights = lru_cache(maxsize=64)(_LtlWeights)
