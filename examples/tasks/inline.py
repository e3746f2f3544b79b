"""Make pairs for a rewriting of Python functions: a variable is inlined; identifiers are names.

    python examples/tasks/inline.py data/inline      # 4 to 6 names in training, 4 to 9 in the test
    python examples/tasks/inline.py data/inline-8 8  # 4 to 8 in training
    python examples/tasks/inline.py data/inline-20 20  # 4 to 20 in training and in the test

Source: the variable and a function; target: the function without it; as `ast.unparse` writes them.
`more-names.jsonl` has functions with up to 1.5 times the names of training, so none of it.
No source of the test is, names aside, one of training, or of a training with 4 to 6 names, and with
4 to 8, which a model may have had before.
"""

import ast
import copy
import json
import random
import re
from pathlib import Path

from pair_files import number, parser_of, run

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
WORDS = ["old", "new", "rate", "size", "_tmp", "total", "i", "x", "y", "max_len", "node", "key"]
NAMES = [f"{word}{number}" for word in WORDS for number in ["", 1, 2, 3]]
LEAST, MOST = 4, 6  # names in training, unless more are asked for
STAGES = (MOST, 8)  # of a model that is trained with more and more names
TESTED = 9
READS = 6  # of parameters; a function with fewer reads some again, one with more not all of them


def draw(rng: random.Random, names: int) -> tuple[str, ast.FunctionDef]:
    """Draw a function with so many different names; return the one to be inlined, too."""
    function, one, two, *parameters = rng.sample(NAMES, names)
    reads = [*parameters, *rng.choices(parameters, k=max(0, READS - len(parameters)))]
    rng.shuffle(reads)
    x, y, z, u, v, w = (ast.Name(read) for read in reads[:READS])
    a, b = ast.Name(one), ast.Name(two)
    test = ast.Compare(binary(rng, a, u), [rng.choice([ast.Lt, ast.GtE])()], [v])
    body: list[ast.stmt] = [
        ast.Assign([ast.Name(one)], binary(rng, x, y)),
        ast.Assign([ast.Name(two)], binary(rng, z, a)),
        ast.If(test, [ast.Return(rng.choice([a, b, w]))], []),
        ast.Return(binary(rng, binary(rng, a, w), b)),
    ]
    arguments = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None, [])
    return rng.choice([one, two]), ast.FunctionDef(function, arguments, body, [])


def binary(rng: random.Random, left: ast.expr, right: ast.expr) -> ast.BinOp:
    """Combine two expressions in random order."""
    left, right = rng.sample([left, right], 2)
    return ast.BinOp(left, rng.choice(OPERATORS)(), right)


class Inline(ast.NodeTransformer):
    """Puts the value of a variable, which is set once, wherever it is read."""

    def __init__(self, name: str):
        self.name = name

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """Take the variable's own assignment away."""
        if node.targets[0].id == self.name:
            self.value = node.value
            return None
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the variable."""
        return copy.deepcopy(self.value) if node.id == self.name else node


def pair(rng: random.Random, names: int) -> dict[str, str]:
    """Draw a source and its target."""
    name, function = draw(rng, names)
    source = ast.unparse(ast.fix_missing_locations(function))
    target = ast.unparse(Inline(name).visit(ast.parse(source)))
    return {"source": f"inline {name}\n{source}", "target": target}


def training(rng: random.Random, largest: int) -> list[dict[str, str]]:
    """Draw the pairs of training, with 4 names to so many."""
    return [pair(rng, rng.randint(LEAST, largest)) for _ in range(20_000)]


def save(file: Path, pairs: list[dict[str, str]]) -> None:
    """Write pairs into a file."""
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))


def shape(pair: dict[str, str]) -> str:
    """Write names as their ranks, by first occurrence: what renaming leaves of a source."""
    ranks: dict[str, int] = {}
    return re.sub(
        rf"\b({'|'.join(NAMES)})\b",
        lambda name: f"n{ranks.setdefault(name[0], len(ranks))}",
        pair["source"],
    )


def main(folder: Path, largest: int) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    train, test = training(rng, largest), list[dict[str, str]]()
    stages = [training(random.Random(0), most) for most in STAGES if most < largest]
    seen = {shape(pair) for pairs in (train, *stages) for pair in pairs}
    sizes = range(LEAST, max(largest, TESTED) + 1)
    while len(test) < len(sizes) * 60:
        drawn = pair(rng, sizes[len(test) // 60])
        if shape(drawn) not in seen:
            test.append(drawn)
    more, rng = range(largest + 1, largest * 3 // 2 + 1), random.Random(1)
    save(folder / "train.jsonl", train)
    save(folder / "test.jsonl", test)
    save(folder / "more-names.jsonl", [pair(rng, names) for names in more for _ in range(20)])


if __name__ == "__main__":
    arguments = parser_of(__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument(
        "largest",
        type=number(LEAST, len(NAMES) * 2 // 3),
        nargs="?",
        default=MOST,
        help="names in training",
    )
    run(main, arguments)
