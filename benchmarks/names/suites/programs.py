"""What does a small program print?"""

import random
import re
from collections.abc import Mapping
from typing import ClassVar

from benchmarks.names.questions import Pool, Question, Suite, slot

NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w]|\.\d)")
LARGEST = 20


class Programs(Suite):
    """Programs of `difficulty` + 2 assignments, of sums and differences between 0 and 20."""

    name: ClassVar[str] = "programs"
    title: ClassVar[str] = "the value of a small program"
    instructions: ClassVar[str] = (
        "Say what a program in Python prints. Every name in it is a variable. Answer with the "
        "number alone."
    )
    pools: ClassVar[Mapping[str, Pool]] = {
        "variable": Pool.of(
            "a b c d x y z n m k",
            "size age price width speed depth score level rate total",
            "one two three four five six seven ten minus plus",
        )
    }
    hardest: ClassVar[int] = 8

    def draw(self, rng: random.Random, difficulty: int) -> Question:
        """Draw a program; one of its variables is printed."""
        count = difficulty + 2
        lines, values = [], list[int]()
        for number in range(count):
            while True:
                text, value = _expression(rng, values)
                if 0 <= value <= LARGEST:
                    break
            lines.append(f"{slot(number)} = {text}")
            values.append(value)
        printed = rng.randrange(1, count)
        text = "\n".join(["Program:", *lines, f"print({slot(printed)})"])
        return Question(text, f"{values[printed]}", ("variable",) * count)

    def read(self, text: str) -> str | None:
        """Return the one number of a text."""
        numbers = {int(number) for number in NUMBER.findall(text)}
        return f"{numbers.pop()}" if len(numbers) == 1 else None


def _expression(rng: random.Random, values: list[int]) -> tuple[str, int]:
    """Draw a number, or a sum or difference of a variable and a number or variable."""
    if not values:
        value = rng.randint(1, 9)
        return f"{value}", value
    first = rng.randrange(len(values))
    if len(values) > 1 and rng.random() < 0.5:
        second = rng.choice([i for i in range(len(values)) if i != first])
        operand, number = slot(second), values[second]
    else:
        number = rng.randint(1, 9)
        operand = f"{number}"
    if rng.random() < 0.5:
        return f"{slot(first)} + {operand}", values[first] + number
    return f"{slot(first)} - {operand}", values[first] - number
