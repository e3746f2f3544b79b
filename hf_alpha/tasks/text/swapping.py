"""An example of a task for texts, with two classes of names: two names of a term change places.

`swap x y : F x G y x` is answered by `F y G x y`. Terms are in prefix notation; functions, in
capital letters, have two arguments. Variables can be swapped, and so can functions.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase

SYMBOLS = {
    "variable": {"pattern": "[a-z][0-9]*", "reserved": ["swap"]},
    "function": {"pattern": "[A-Z][0-9]*"},
}
"""Rules by which the names are found."""


def swapping_pairs(
    num_rows: int,
    num_variables: Iterable[int] = range(2, 4),
    num_functions: Iterable[int] = range(1, 4),
    leaves: Iterable[int] = range(3, 7),
    seed: int = 0,
    variables: Sequence[str] = ascii_lowercase,
    functions: Sequence[str] = ascii_uppercase,
) -> Iterator[dict[str, str]]:
    """Draw pairs; how many names and leaves a term has is uniform over what fits.

    Args:
        num_variables: different variables of a term, 2 at least.
        num_functions: different functions of a term.
        seed: the pairs are a function of it and of the other arguments.

    Yields:
        `source` and `target`.
    """
    rng = random.Random(seed)
    shapes = [
        (v, f, size)
        for v in num_variables
        for f in num_functions
        for size in leaves
        if v <= size and f <= size - 1
    ]
    for _ in range(num_rows):
        v, f, size = rng.choice(shapes)
        chosen_variables, chosen_functions = rng.sample(variables, v), rng.sample(functions, f)
        term = _term(
            rng, _spread(rng, chosen_variables, size), _spread(rng, chosen_functions, size - 1)
        )
        pool = chosen_functions if f > 1 and rng.random() < 0.5 else chosen_variables
        one, two = rng.sample(pool, 2)
        swapped = {one: two, two: one}
        yield {
            "source": f"swap {one} {two} : {' '.join(term)}",
            "target": " ".join(swapped.get(token, token) for token in term),
        }


def _spread(rng: random.Random, names: list[str], count: int) -> list[str]:
    """Return `count` names in random order, each of those given at least once."""
    spread_names = [*names, *rng.choices(names, k=count - len(names))]
    rng.shuffle(spread_names)
    return spread_names


def _term(rng: random.Random, leaves: list[str], functions: list[str]) -> list[str]:
    """Draw a binary tree over the leaves, as tokens in prefix order."""
    if len(leaves) == 1:
        return leaves
    num_left_leaves = rng.randint(1, len(leaves) - 1)
    return [
        functions[0],
        *_term(rng, leaves[:num_left_leaves], functions[1:num_left_leaves]),
        *_term(rng, leaves[num_left_leaves:], functions[num_left_leaves:]),
    ]
