"""Which of the given rules lead from one thing to another?"""

import random
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar

from benchmarks.names.questions import SLOT, Pool, Question, Suite, slot

CHAIN = re.compile(rf"{SLOT.pattern}(?:(?:\s*(?:,|->|→|>)\s*|\s+){SLOT.pattern})*")


class Proofs(Suite):
    """Rules among 2 * `difficulty` + 2 names, of which a chain of `difficulty` + 1 is asked for."""

    name: ClassVar[str] = "proofs"
    title: ClassVar[str] = "proofs by rules in the question"
    instructions: ClassVar[str] = (
        "Prove a statement by rules. Answer with the chain of names that leads from the first one "
        "to the last one, each joined to the next by a rule, as in x, y, z."
    )
    pools: ClassVar[Mapping[str, Pool]] = {
        "thing": Pool.of(
            "cat dog bird fish horse mouse lion bear wolf fox frog snake",
            "pear plum lemon cherry melon apple berry grape peach nut fig date",
            "nothing everything rule proof start end goal first last other chain step",
        )
    }
    hardest: ClassVar[int] = 5

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw rules with one chain from start to goal, and others that lead off it or into it."""
        count, last = 2 * difficulty + 2, difficulty + 1
        rules = [(i, i + 1) for i in range(last)]
        for new in range(last + 1, count):
            old = rng.randrange(new)
            leads_in = old == 0 or (old <= last and rng.random() < 0.5)
            rules.append((new, old) if leads_in else (old, new))
        numbers = rng.sample(range(count), count)
        facts = frozenset((slot(numbers[a]), slot(numbers[b])) for a, b in rules)
        shown = [f"Every {a} is a {b}." for a, b in sorted(facts)]
        rng.shuffle(shown)
        start, goal = slot(numbers[0]), slot(numbers[last])
        target = ", ".join(slot(numbers[i]) for i in range(last + 1))
        text = f"Rules: {' '.join(shown)}\nProve: every {start} is a {goal}."
        return Question(text, target, ("thing",) * count, facts)

    def read(self, text: str) -> str | None:
        """Write a chain with commas; None if there is anything beside it."""
        found = CHAIN.fullmatch(text.rstrip(". "))
        return None if found is None else ", ".join(SLOT.findall(found[0]))

    def is_right(self, question: Question, answer: str) -> bool:
        """Say whether each step of a chain is a rule, and its ends are those that were asked."""
        chain, wanted = answer.split(", "), question.target.split(", ")
        steps = pairwise(chain)
        ends = (chain[0], chain[-1]) == (wanted[0], wanted[-1])
        return ends and all(step in question.facts for step in steps)
