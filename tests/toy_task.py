"""A user's own task: one class in one file, outside the package and known to nothing in it."""

import random
from collections.abc import Sequence

from hf_alpha.modeling.grammar import Grammar
from hf_alpha.tasks import DrawnTask, Verdict


class ToyTask(DrawnTask):
    """Name the first leaf of a tree: `& & c a b` is answered by `c`."""

    name = "first_leaf"
    grammar = Grammar({"&": 2}, (), infix={"&": [1, "left"]}, spellings={}, derived={})
    base_tokens = ("&",)
    symbol_classes = {"leaf": 4}  # noqa: RUF012
    targets = {"first": "The first leaf."}  # noqa: RUF012
    example = "& request grant"

    def is_feasible(self, size, num_symbols, exactly=False, constant_priority=0.0) -> bool:
        return size % 2 == 1 and 1 <= (num_symbols if exactly else 1) <= (size + 1) // 2

    def draw(
        self, rng: random.Random, size, symbols, exactly=False, constant_priority=0.0
    ) -> list[str]:
        leaves = [*symbols] if exactly else []
        leaves += rng.choices(symbols, k=(size + 1) // 2 - len(leaves))
        rng.shuffle(leaves)
        return ["&"] * (size // 2) + leaves

    def target_of(self, tokens: Sequence[str], method=None) -> str:
        return self.symbols_in(tokens)[0]

    def random_answer(self, problem: str, rng: random.Random) -> str:
        return rng.choice(self.symbols_of(problem))

    def check(
        self, problem: str, answer: str, target=None, notation=None, solver="auto", timeout=10.0
    ) -> Verdict:
        return Verdict.exact if answer == self.target(problem) else Verdict.wrong
