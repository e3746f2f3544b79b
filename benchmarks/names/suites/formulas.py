"""What the two suites of formulas share: names, and letters in the place of slots."""

import random
import re

from benchmarks.names.questions import FIRST_SLOT, SLOT, Pool, slot
from hf_alpha.tasks import DrawnTask

LETTERS = "abcdefgh"
"""What a formula's names are called where the grammars of tasks read it."""
SMALL = re.compile(r"(?<!\w)[a-h](?!\w)")
PROPOSITIONS = Pool.of(
    "a b c d e f g h",
    "j k m n p q r s",
    "true false and or not if then one zero always never",
)


def slots_of(formula: str) -> str:
    """Put slots in the place of letters that are words."""
    return SMALL.sub(lambda match: slot(LETTERS.index(match[0])), formula)


def letters_of(text: str) -> str | None:
    """Put letters in the place of slots; None if there are letters already."""
    if SMALL.search(text):
        return None
    return SLOT.sub(lambda match: LETTERS[(ord(match[0]) - FIRST_SLOT) % len(LETTERS)], text)


def draw_formula(task: DrawnTask, rng: random.Random, names: int) -> tuple[list[str], str]:
    """Draw a formula in which so many letters occur, and that has an answer, which is given too."""
    while True:
        tokens = task.draw(rng, 3 * names + 2, LETTERS[:names], exactly=True)
        answer = task.target_of(tokens)
        if answer is not None:
            return tokens, answer
