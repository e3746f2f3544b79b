"""Make pairs for negation normal form in the TPTP language: predicates and variables are names.

    python examples/tasks/nnf.py data/nnf

`~ ( p ( X ) & ! [ Y ] : q ( X , Y ) )` becomes `( ~ p ( X ) | ? [ Y ] : ~ q ( X , Y ) )`.
"""

import json
import random
from pathlib import Path
from typing import Any

from pair_files import parser_of, run

DUAL = {"&": "|", "|": "&", "!": "?", "?": "!"}
ATOMS = 4  # of the longest formulas, in training and in all tests
PREDICATES = [f"{letter}{number}" for letter in "pqrs" for number in range(10)]
VARIABLES = [f"{letter}{number}" for letter in "XYZW" for number in range(10)]


def draw(rng: random.Random, predicates: int, variables: int, atoms: int) -> Any:
    """Draw a formula with exactly so many atoms, predicates and variables, as nested tuples."""
    own = rng.sample(VARIABLES, variables)
    heads = spread(rng, rng.sample(PREDICATES, predicates), atoms)
    arguments = spread(rng, own, max(variables, atoms + rng.randint(0, atoms)))
    parts = [["atom", head] for head in heads]
    for number, argument in enumerate(arguments):
        parts[number % atoms].append(argument)
    while len(parts) > 1:
        at = rng.randrange(len(parts) - 1)
        parts[at : at + 2] = [wrap(rng, [rng.choice("&|"), *parts[at : at + 2]], own)]
    return parts[0]


def wrap(rng: random.Random, formula: Any, variables: list[str]) -> Any:
    """Put a negation, a quantifier or both before a formula, or nothing."""
    if rng.random() < 0.3:
        formula = [rng.choice("!?"), rng.choice(variables), formula]
    return ["~", formula] if rng.random() < 0.5 else formula


def spread(rng: random.Random, names: list[str], count: int) -> list[str]:
    """Return so many names in random order, each given one at least once."""
    chosen = [*names, *rng.choices(names, k=count - len(names))]
    rng.shuffle(chosen)
    return chosen


def write(formula: Any, negated: bool = False, normal: bool = False) -> str:
    """Write a formula in TPTP's language, or, if `normal`, its negation normal form."""
    head, *rest = formula
    if head == "atom":
        return f"{'~ ' * negated}{rest[0]} ( {' , '.join(rest[1:])} )"
    if head == "~":
        text = write(rest[0], normal and not negated, normal)
        return text if normal else f"~ {text}"
    head = DUAL[head] if negated else head
    if head in "!?":
        return f"{head} [ {rest[0]} ] : {write(rest[1], negated, normal)}"
    return f"( {write(rest[0], negated, normal)} {head} {write(rest[1], negated, normal)} )"


def save(file: Path, formulas: list[Any]) -> None:
    """Write the pairs of formulas into a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pairs = ({"source": write(f), "target": write(f, normal=True)} for f in formulas)
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))


def main(folder: Path) -> None:
    """Write the files."""
    rng = random.Random(0)
    shapes = [(p, v, a) for a in range(2, ATOMS + 1) for p in range(1, 4) for v in range(1, 4)]
    fitting = [shape for shape in shapes if shape[0] <= shape[2]]
    save(folder / "train.jsonl", [draw(rng, *rng.choice(fitting)) for _ in range(20_000)])
    names = [(min(n // 2, ATOMS), n - min(n // 2, ATOMS)) for n in range(2, 13) for _ in range(40)]
    save(folder / "test.jsonl", [draw(rng, p, v, ATOMS) for p, v in names])


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    arguments.add_argument("folder", type=Path)
    run(main, arguments)
