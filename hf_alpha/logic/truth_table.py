"""Bit-parallel truth tables: a Boolean function of k variables is one Python integer.

Bit x of a table is the function's value under assignment x, and variable i is bit k - 1 - i of x,
so that variable 0 is the most significant one. Variables are numbered by first occurrence; the
highest set bit of a table is then the satisfying assignment that comes first when true is listed
before false.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

MAX_VARIABLES = 16


@cache
def full_table(num_variables: int) -> int:
    """Return the table of *true*: 2**num_variables set bits."""
    return (1 << (1 << num_variables)) - 1


@cache
def variable_tables(num_variables: int) -> tuple[int, ...]:
    """Return the table of each variable."""
    full = full_table(num_variables)
    tables = []
    for variable in range(num_variables):
        width = 1 << (num_variables - 1 - variable)
        tables.append((full // ((1 << 2 * width) - 1)) * (((1 << width) - 1) << width))
    return tuple(tables)


def evaluate(tokens: Sequence[str], tables: Mapping[str, int], full: int) -> int:
    """Evaluate canonical prefix tokens, given the table of every leaf (constants included).

    Walks the tokens from the right with a stack, so the depth of the formula does not matter. The
    order of operands is ignored because every binary operator here commutes.
    """
    stack: list[int] = []
    push, pop, leaf = stack.append, stack.pop, tables.get
    for token in reversed(tokens):
        table = leaf(token)
        if table is not None:
            push(table)
        elif token == "!":
            stack[-1] ^= full
        elif token == "&":
            push(pop() & pop())
        elif token == "|":
            push(pop() | pop())
        elif token == "^":
            push(pop() ^ pop())
        else:
            push(pop() ^ pop() ^ full)
    return stack[0]


def table_of(
    tokens: Sequence[str], symbols: Sequence[str], values: Mapping[str, bool] | None = None
) -> int | None:
    """Return the table of a formula over the symbols; None if they are too many.

    Args:
        tokens: canonical prefix tokens.
        symbols: without a value.
        values: of all its other symbols.
    """
    if len(symbols) > MAX_VARIABLES:
        return None
    tables = leaf_tables(symbols)
    full = tables["1"]
    if values:
        tables = {**{name: full if x else 0 for name, x in values.items()}, **tables}
    return evaluate(tokens, tables, full)


@lru_cache(maxsize=4096)
def _leaves(symbols: tuple[str, ...]) -> dict[str, int]:
    count = len(symbols)
    return {
        "0": 0,
        "1": full_table(count),
        **dict(zip(symbols, variable_tables(count), strict=True)),
    }


def leaf_tables(symbols: Iterable[str]) -> dict[str, int]:
    """Return the tables of the symbols, the i-th being variable i, and of the two constants."""
    symbols = tuple(symbols)
    # Large tables are made anew: remembering thousands of them would cost more than it saves.
    return _leaves(symbols) if len(symbols) <= 8 else _leaves.__wrapped__(symbols)


@lru_cache(maxsize=1 << 16)
def minimal_cube(table: int, num_variables: int) -> tuple[tuple[int, bool], ...] | None:
    """Return the shortest partial assignment all of whose completions satisfy the table.

    Among the shortest, the one whose tuple of variables comes first, then true before false. None
    if the table is unsatisfiable, () if it is a tautology. A partial assignment to the variables K
    exists exactly if the table stays non-empty when every other variable is universally
    quantified; the search tries the sets K by size, then lexicographically, and shares the
    quantifications of their common prefixes.
    """
    if not table:
        return None
    # m literals cover 2**(k - m) assignments, so fewer literals need more satisfying ones.
    fewest = num_variables - (table.bit_count().bit_length() - 1)
    cubes = (_keep(table, num_variables, 0, n) for n in range(fewest, num_variables + 1))
    variables, remaining_table = next(cube for cube in cubes if cube is not None)
    point = remaining_table.bit_length() - 1
    return tuple((i, bool(point >> (num_variables - 1 - i) & 1)) for i in variables)


@cache
def _quantifiers(num_variables: int) -> tuple[tuple[int, int], ...]:
    """Return for each variable the shift and the mask that quantify it universally."""
    full = full_table(num_variables)
    variables = enumerate(variable_tables(num_variables))
    return tuple((1 << (num_variables - 1 - i), full ^ table) for i, table in variables)


def _keep(
    table: int, num_variables: int, first: int, literals: int
) -> tuple[tuple[int, ...], int] | None:
    """Keep `literals` of the variables from `first` on, quantify the others; None if empty."""
    if literals == num_variables - first:
        return tuple(range(first, num_variables)), table
    quantifiers = _quantifiers(num_variables)
    if literals == 0:
        for shift, mask in quantifiers[first:]:
            table &= (table >> shift) & mask
            if not table:
                return None
        return (), table
    cube = _keep(table, num_variables, first + 1, literals - 1)
    if cube is not None:
        return (first, *cube[0]), cube[1]
    shift, mask = quantifiers[first]
    table &= (table >> shift) & mask
    return _keep(table, num_variables, first + 1, literals) if table else None
