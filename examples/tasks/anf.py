"""Make pairs for A-normal form: each operation of a term is bound to a name that the source lacks.

    python examples/tasks/anf.py data/anf
    python examples/tasks/anf.py data/anf-16 --operations 16 --rows 60000   # up to 16, not 7
    python examples/tasks/anf.py data/anf-wider --operations 16 --names 17 --rows 60000

`a1 & ( b2 | c3 )` is answered by `let d4 = b2 | c3 ; let e5 = a1 & d4 ; e5`;
`hf_alpha.tasks.text.anf:check` says which answers are right.
"""

import random
from collections.abc import Callable, Sequence

from pair_files import (
    Row,
    draw_term,
    files_of_operations,
    main_of_operations,
    spread,
    write_term,
)

from hf_alpha.tasks.text.anf import OPERATORS, Term

MOST_OPERATIONS = 7


def normal_form(term: Term, names: Sequence[str]) -> str:
    """Write the A-normal form of a term, inner operations first and left ones before right ones.

    Args:
        term: with two operands to each operator.
        names: new ones, one for each operation.
    """
    unused, statements = iter(names), list[str]()

    def bind(part: Term) -> str:
        if isinstance(part, str):
            return part
        operator, *operands = part
        left, right = map(bind, operands)
        statements.append(f"let {(name := next(unused))} = {left} {operator} {right}")
        return name

    result = bind(term)
    return " ; ".join([*statements, result])


def draw(
    rng: random.Random,
    pool: Sequence[str],
    names: int,
    operations: int,
    answer: Callable[[Term, Sequence[str]], str] = normal_form,
) -> Row:
    """Draw a pair.

    Args:
        rng: the random numbers.
        pool: names of the source and new ones.
        names: different ones of the source, at most one more than there are operations.
        operations: of the source.
        answer: writes that of a term, with new names, one for each operation.
    """
    chosen = rng.sample(pool, names + operations)
    leaves = spread(rng, chosen[:names], operations + 1)
    term = draw_term(rng, leaves, OPERATORS)
    return {
        "source": write_term(term),
        "target": answer(term, chosen[names:]),
        "names": names,
        "operations": operations,
    }


FILES = files_of_operations(draw, MOST_OPERATIONS)
SEEN, UNSEEN = FILES.seen, FILES.unseen

if __name__ == "__main__":
    main_of_operations(draw, MOST_OPERATIONS)
