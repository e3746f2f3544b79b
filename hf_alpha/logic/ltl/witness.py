"""The shortest symbolic lasso traces that satisfy an LTL formula, without Spot.

Shapes are tried in order: few steps first, then a short loop. For each, one question is whether
any concrete word of that shape satisfies the formula; the other is which literals a trace can
leave out such that the three-valued evaluation still proves it. Small shapes answer both with
tables of all words and of all partial words, large ones with a SAT solver and by dropping one
literal after another. Which large shape of two steps or more is the first, bounded search says:
most formulas that get there have none.
"""

from collections.abc import Callable, Container, Sequence
from functools import lru_cache

import numpy as np

from hf_alpha.logic.formulas import fold
from hf_alpha.logic.sat import Circuit, GaveUpError, solver

from .bounded_worker import search
from .lasso import Pair, Shape, shape
from .trace import Trace, cube_step

MAX_STEPS = 5
"""Longest trace that is looked for. Spot found no satisfiable formula that needs more among those
drawn as the papers draw them."""
_TABLE_WORDS = 12
"""Free values up to which all words of a shape, 2 ** values, are written out."""
_TABLE_CUBES = 10
"""Free values up to which all partial words of a shape, 3 ** values, are written out."""

_SHAPES = [(steps, loop) for steps in range(1, MAX_STEPS + 1) for loop in reversed(range(steps))]

Literal = tuple[int, int, bool]  # step, symbol, value


def shortest_witness(tokens: Sequence[str], symbols: Sequence[str]) -> Trace | None:
    """Return a symbolic trace with as few steps as possible all of whose words satisfy a formula.

    Which of them is a function of the formula's structure: of its tokens with the symbols numbered
    as in `symbols`. Among the traces with the fewest steps it has the shortest loop; among those
    that the three-valued evaluation proves the fewest literals (where `3 ** (steps * symbols)` is
    at most 59,049; beyond that no literal can be left out on its own), then those that come first
    by step and symbol, true before false. So `a | !a` has `{a}`, as `{1}` would not be proved.

    Args:
        tokens: canonical prefix tokens.
        symbols: the formula's symbols by first occurrence.

    Returns:
        None if no lasso of at most `MAX_STEPS` steps satisfies the formula, which is no proof that
        the formula is unsatisfiable, or the SAT solver meets more than `sat.MAX_CONFLICTS`.
    """
    numbered, count = _numbered(tokens, symbols), len(symbols)
    try:
        for steps, loop in _SHAPES:
            if is_large := steps > 1 and steps * count > _TABLE_WORDS:
                lasso = search(numbered, MAX_STEPS)
                if not isinstance(lasso, tuple):
                    return None
                steps, loop = len(lasso[0]), lasso[1]
            literals = _search(numbered, count, steps, loop)
            if literals is not None or is_large:
                return None if literals is None else _trace(literals, symbols, steps, loop)
    except GaveUpError:
        pass
    return None


def single_step(tokens: Sequence[str], symbols: Sequence[str]) -> Trace | None:
    """Return the `shortest_witness` of one step; None without one, or with too many symbols.

    Most formulas have one, and a table tells it in less time than a solver takes to be asked.
    """
    if len(symbols) > _TABLE_CUBES:
        return None
    literals = _best_cube(_numbered(tokens, symbols), len(symbols), 1, 0)
    return None if literals is None else _trace(literals, symbols, 1, 0)


def generalised(
    tokens: Sequence[str], symbols: Sequence[str], word: Sequence[Container[str]], loop: int
) -> Trace:
    """Return a symbolic trace of the shape of a concrete word that satisfies a formula.

    It is proved, and has as few literals as `shortest_witness` gives that shape.

    Args:
        tokens: canonical prefix tokens.
        symbols: the formula's symbols by first occurrence.
        word: what is true at each step.
        loop: index of the first step that is repeated.
    """
    literals = [
        (step, number, symbol in truths)
        for step, truths in enumerate(word)
        for number, symbol in enumerate(symbols)
    ]
    numbered = _numbered(tokens, symbols)
    kept_literals = _fewest_literals(numbered, len(symbols), len(word), loop, literals)
    assert kept_literals is not None, "the word satisfies the formula"
    return _trace(kept_literals, symbols, len(word), loop)


def _numbered(tokens: Sequence[str], symbols: Sequence[str]) -> list[str]:
    names = {symbol: f"p{index}" for index, symbol in enumerate(symbols)}
    return [names.get(token, token) for token in tokens]


def _trace(literals: Sequence[Literal], symbols: Sequence[str], steps: int, loop: int) -> Trace:
    rows: list[list[tuple[str, bool]]] = [[] for _ in range(steps)]
    for step, symbol, value in sorted(literals):
        rows[step].append((symbols[symbol], value))
    return Trace(tuple(map(cube_step, rows)), loop)


def _search(
    tokens: Sequence[str], num_symbols: int, steps: int, loop: int
) -> tuple[Literal, ...] | None:
    """Return the literals of the best trace of a shape, None if there is none."""
    values = steps * num_symbols
    if steps == 1 and values <= _TABLE_CUBES:  # most formulas have one: no need to ask first
        return _best_cube(tokens, num_symbols, steps, loop)
    word: tuple[Literal, ...] | None
    if values <= _TABLE_WORDS:
        words = shape(steps, loop, 1 << values)
        truths = words.first(words.evaluate(tokens, _all_words(steps, num_symbols))[0])
        word = _word(_lowest(truths), steps, num_symbols) if truths else None
    else:
        word = _solve(tokens, num_symbols, steps, loop)
    return None if word is None else _fewest_literals(tokens, num_symbols, steps, loop, word)


def _fewest_literals(
    tokens: Sequence[str], num_symbols: int, steps: int, loop: int, word: Sequence[Literal]
) -> tuple[Literal, ...] | None:
    """Leave out what a trace need not say; None if the word does not satisfy the formula."""
    if steps * num_symbols <= _TABLE_CUBES:
        return _best_cube(tokens, num_symbols, steps, loop)
    return _drop_literals(tokens, num_symbols, shape(steps, loop, 1), word)


def _best_cube(
    tokens: Sequence[str], num_symbols: int, steps: int, loop: int
) -> tuple[Literal, ...] | None:
    """Return the first partial word of a shape that is proved, None if no word is."""
    codes, leaves = _all_cubes(steps, num_symbols)
    partial = shape(steps, loop, len(codes))
    proved = partial.first(partial.evaluate(tokens, leaves)[0])
    if not proved:
        return None
    best = enumerate(codes[_lowest(proved)].tolist())
    return tuple((*divmod(value, num_symbols), code == 0) for value, code in best if code < 2)


def _lowest(table: int) -> int:
    return (table & -table).bit_length() - 1


def _word(index: int, steps: int, num_symbols: int) -> tuple[Literal, ...]:
    values = steps * num_symbols
    return tuple(
        (*divmod(value, num_symbols), not index >> (values - 1 - value) & 1)
        for value in range(values)
    )


@lru_cache(maxsize=64)
def _all_words(steps: int, num_symbols: int) -> dict[str, Pair]:
    """Return tables of the symbols in all words of a shape, those that are true early first."""
    values = steps * num_symbols
    index = np.arange(1 << values)
    columns = [~index >> (values - 1 - value) & 1 for value in range(values)]
    tables = [_packed(columns[symbol::num_symbols]) for symbol in range(num_symbols)]
    return {f"p{symbol}": (table, table) for symbol, table in enumerate(tables)}


@lru_cache(maxsize=64)
def _all_cubes(steps: int, num_symbols: int) -> tuple[np.ndarray, dict[str, Pair]]:
    """Return all partial words of a shape, the best first, and the tables of the symbols.

    Words are rows of codes, one for each value: 0 true, 1 false, 2 free.
    """
    values = steps * num_symbols
    codes = np.stack(np.unravel_index(np.arange(3**values), (3,) * values), axis=1) if values \
        else np.zeros((1, 0), int)  # fmt: skip
    # Read as a number to base 3, this orders rows as `shortest_witness` says.
    codes = codes[np.argsort((codes < 2).sum(axis=1), kind="stable")]
    leaves = {}
    for symbol in range(num_symbols):
        columns = list(codes.T[symbol::num_symbols])
        leaves[f"p{symbol}"] = (
            _packed([column == 0 for column in columns]),
            _packed([column != 1 for column in columns]),
        )
    return codes, leaves


def _packed(blocks: Sequence[np.ndarray]) -> int:
    """Join columns of bits, one for each step, to one table."""
    bits = np.concatenate(blocks).astype(np.uint8)
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def _drop_literals(
    tokens: Sequence[str], num_symbols: int, words: Shape, word: Sequence[Literal]
) -> tuple[Literal, ...]:
    """Leave out literals from the last to the first while the trace is still proved."""
    must, may = [0] * num_symbols, [0] * num_symbols
    for step, symbol, value in word:
        must[symbol] |= value << step
        may[symbol] |= value << step
    needed_literals = []
    for step, symbol, value in reversed(word):
        bit = 1 << step
        must[symbol], may[symbol] = must[symbol] & ~bit, may[symbol] | bit
        pairs = zip(must, may, strict=True)
        leaves = {f"p{index}": pair for index, pair in enumerate(pairs)}
        if not words.evaluate(tokens, leaves)[0] & 1:
            needed_literals.append((step, symbol, value))
            if value:
                must[symbol] |= bit
            else:
                may[symbol] &= ~bit
    return tuple(needed_literals)


def _solve(
    tokens: Sequence[str], num_symbols: int, steps: int, loop: int
) -> tuple[Literal, ...] | None:
    """Find a concrete word of a shape with a SAT solver: a variable for each formula and step."""
    circuit = Circuit(steps * num_symbols)

    def leaf(token: str) -> tuple[int, ...]:
        if token in ("0", "1"):
            return (1 if token == "1" else -1,) * steps
        return tuple(2 + step * num_symbols + int(token[1:]) for step in range(steps))

    def until(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        """Least fixpoint: the first round of the loop is that of a word which ends there."""
        values, after = list[int](), -1
        for first in (loop, 0):
            values = []
            for x, y in zip(a[first:][::-1], b[first:][::-1], strict=True):
                after = circuit.or_(y, circuit.and_(x, after))
                values.insert(0, after)
        return tuple(values)

    operators: dict[str, Callable[..., tuple[int, ...]]] = {
        "!": lambda a: tuple(-x for x in a),
        "X": lambda a: (*a[1:], a[loop]),
        "&": lambda a, b: tuple(map(circuit.and_, a, b)),
        "|": lambda a, b: tuple(map(circuit.or_, a, b)),
        "U": until,
    }
    root = fold(tokens, operators, leaf)[0]
    with solver([*circuit.clauses, [root]], name="glucose4") as sat_solver:
        model = sat_solver.model()
    if model is None:
        return None
    values = range(steps * num_symbols)
    return tuple((*divmod(value, num_symbols), value + 2 in model) for value in values)
