"""Make pairs for proofs: which rules, of those that are given, lead from a fact to a goal.

    python examples/tasks/proofs.py data/proofs

`a1 -> b2 . c3 -> d4 . b2 -> c3 . fact : a1 . goal : c3 .` is answered by `a1 -> b2 ; b2 -> c3`.
A name is left of one rule at most, so there is one way only; it may go on behind the goal, and
others lead into it. `hf_alpha.tasks.text.proofs:check` says which answers are right where there
are several.
"""

import random
from collections.abc import Sequence
from itertools import pairwise

from pair_files import PairFiles, Row, letter_names

TRAINED, TESTED = 32, 100
"""Names at most, in training and in the tests."""
GOES_ON = 0.25
"""Probability that a further name makes the way behind the goal longer."""


def draw(rng: random.Random, pool: Sequence[str], names: int, steps: int) -> Row:
    """Draw a pair.

    Args:
        rng: the random numbers.
        pool: names to choose from.
        names: different ones, more than `steps`.
        steps: rules that lead from the fact to the goal.
    """
    chosen = rng.sample(pool, names)
    chain, others = chosen[: steps + 1], chosen[steps + 1 :]
    way = list(pairwise(chain))
    rules, end = list(way), chain[-1]
    for number, name in enumerate(others, start=len(chain)):
        if rng.random() < GOES_ON:
            rules.append((end, name))
            end = name
        else:
            rules.append((name, rng.choice(chosen[:number])))
    rng.shuffle(rules)
    told = " ".join(f"{one} -> {two} ." for one, two in rules)
    return {
        "source": f"{told} fact : {chain[0]} . goal : {chain[-1]} .",
        "target": " ; ".join(f"{one} -> {two}" for one, two in way),
        "names": names,
        "steps": steps,
    }


SEEN, UNSEEN = letter_names(TESTED + 4)
FILES = PairFiles(
    draw,
    SEEN,
    UNSEEN,
    train=[(names, steps) for names in range(4, TRAINED + 1) for steps in range(1, 5)
           if steps < names],
    test=[
        *((names, steps) for names in (8, 16, TRAINED, 64, TESTED) for steps in range(1, 5)),
        *((TRAINED, steps) for steps in range(5, 9)),
    ],
)  # fmt: skip

if __name__ == "__main__":
    FILES.main()
