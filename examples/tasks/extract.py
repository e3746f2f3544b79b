"""Make pairs for extracting: an expression of a Python function gets a variable of its own.

    python examples/tasks/extract.py data/extract

The source is `extract total + rate` and, below it, a function in which that expression stands more
than once; the answer is the function with `size = total + rate` before it is used.
`extract_check` says which answers are right.
"""

import ast
import random
from collections.abc import Sequence

from extract_check import OPERATORS, ORDER, Replace
from pair_files import PairFiles, Row, spread

LOCALS, READS = 2, 7
"""Variables of a function, and how often parameters are read in it, whatever their number."""


def draw(rng: random.Random, pool: Sequence[str], names: int) -> Row:
    """Draw a pair.

    Args:
        rng: the random numbers.
        pool: names of the source and the new one.
        names: different ones of the source: the function, `LOCALS` variables and 1 to `READS`
            parameters.
    """
    new, function, one, two, *parameters = rng.sample(pool, names + 1)
    reads = spread(rng, parameters, READS)
    expression = _binary(rng, ast.Name(reads.pop()), ast.Name(reads.pop()))
    operands: list[ast.expr] = [expression, expression, *map(ast.Name, reads)]
    rng.shuffle(operands)
    last = [*operands[5:], ast.Name(two)]
    body: list[ast.stmt] = [
        ast.Assign([ast.Name(one)], _joined(rng, operands[:3])),
        ast.Assign([ast.Name(two)], _joined(rng, [*operands[3:5], ast.Name(one)])),
        ast.Return(_joined(rng, last)),
    ]
    arguments = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None, [])
    definition = ast.FunctionDef(function, arguments, body, [])
    source = ast.unparse(ast.fix_missing_locations(definition))
    marked = ast.unparse(expression)
    return {
        "source": f"{ORDER}{marked}\n{source}",
        "target": extracted(source, marked, new),
        "names": names,
    }


def _joined(rng: random.Random, operands: list[ast.expr]) -> ast.expr:
    """Join operands by random operators."""
    operands = rng.sample(operands, len(operands))
    joined = operands.pop()
    while operands:
        joined = _binary(rng, *rng.sample([joined, operands.pop()], 2))
    return joined


def _binary(rng: random.Random, left: ast.expr, right: ast.expr) -> ast.BinOp:
    return ast.BinOp(left, rng.choice(OPERATORS)(), right)


def extracted(source: str, marked: str, name: str) -> str:
    """Write a function in which a new variable has the place of an expression, as unparsed."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    expression = ast.parse(marked, mode="eval").body
    replacing, body = Replace(expression, ast.Name(name, ast.Load())), list[ast.stmt]()
    for statement in function.body:
        had_none = not replacing.count
        replacing.visit(statement)
        if had_none and replacing.count:
            body.append(ast.Assign([ast.Name(name)], expression))
        body.append(statement)
    function.body = body
    return ast.unparse(ast.fix_missing_locations(function))


_SEEN_WORDS = "count delta edge factor index key limit max_len node rate size total x"
_UNSEEN_WORDS = "area batch cost depth error frame gain height level _tmp width volume y"
SEEN, UNSEEN = (
    [f"{word}{number}" for number in ("", 1, 2, 3) for word in words.split()]
    for words in (_SEEN_WORDS, _UNSEEN_WORDS)
)
FILES = PairFiles(
    draw,
    SEEN,
    UNSEEN,
    train=[(names,) for names in range(LOCALS + 2, LOCALS + 5)],
    test=[(names,) for names in range(LOCALS + 2, LOCALS + READS + 2)],
)

if __name__ == "__main__":
    FILES.main()
