"""LTL on lassos, bit-parallel: many words at once, and words of which not everything is known.

A set of m words of the same shape (n positions, of which those from `loop` on are repeated) is
evaluated together. A table is one Python integer of n blocks of m bits: bit w of block i says
whether a formula holds in word w from position i on. A three-valued table is a pair of those,
(must, may): what holds whatever the unknown values are, and what they do not rule out
(Kleene's strong logic, with least fixpoints for `until`). Both are proofs: what must hold holds in
every word of a symbolic trace, what may not hold in none. What lies between is open.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from . import truth_table
from .trace import Cube, Step, Trace, read_cube

OPERATORS = frozenset({"!", "&", "|", "X", "U", "0", "1"})

MAX_WORK = 1 << 32
"""Formula tokens times bits of a table times steps (an `until` may go over the table once a step),
beyond which a trace is left to a solver."""

_WORDS = 24
"""Words in a check: the trace itself with its unknowns, and concrete words of it."""

Table = int
Pair = tuple[Table, Table]


@dataclass(frozen=True)
class Shape:
    """The shape of the words that are evaluated together.

    Attributes:
        steps: number of positions n.
        loop: first position that is repeated.
        words: number of words m.
    """

    steps: int
    loop: int
    words: int

    @property
    def full(self) -> Table:
        """The table of *true*."""
        return (1 << self.steps * self.words) - 1

    def evaluate(self, tokens: Sequence[str], leaves: Mapping[str, Pair]) -> Pair:
        """Evaluate canonical prefix tokens, given the tables of the symbols.

        Where nothing is unknown, as in concrete words, both tables are the same object and are
        computed once.
        """
        full, successor, until = self.full, self._next, self._until
        stack: list[Pair] = []
        for token in reversed(tokens):
            if token == "!":
                must, may = stack.pop()
                no = full ^ may
                stack.append((no, no if may is must else full ^ must))
            elif token == "&":
                (a, a_may), (b, b_may) = stack.pop(), stack.pop()
                both = a & b
                stack.append((both, both if a is a_may and b is b_may else a_may & b_may))
            elif token == "|":
                (a, a_may), (b, b_may) = stack.pop(), stack.pop()
                either = a | b
                stack.append((either, either if a is a_may and b is b_may else a_may | b_may))
            elif token == "X":
                must, may = stack.pop()
                after = successor(must)
                stack.append((after, after if may is must else successor(may)))
            elif token == "U":
                (a, a_may), (b, b_may) = stack.pop(), stack.pop()
                kept = until(a, b)
                stack.append((kept, kept if a is a_may and b is b_may else until(a_may, b_may)))
            elif token in ("0", "1"):
                constant = full if token == "1" else 0
                stack.append((constant, constant))
            else:
                stack.append(leaves[token])
        return stack[0]

    def first(self, table: Table) -> Table:
        """Return the block of position 0: in which words a formula holds."""
        return table & ((1 << self.words) - 1)

    def _next(self, table: Table) -> Table:
        if self.steps == 1:
            return table
        words = self.words
        entry = (table >> self.loop * words) & ((1 << words) - 1)
        return table >> words | entry << (self.steps - 1) * words

    def _until(self, a: Table, b: Table) -> Table:
        """Return the least fixpoint of z = b | (a & X z)."""
        found, more = b, a & ~b
        if self.steps == 1 or not more:
            return found
        while True:
            grown = found | (more & self._next(found))
            if grown == found:
                return found
            found = grown


@cache
def shape(steps: int, loop: int, words: int) -> Shape:
    """Return a shape, always the same object for the same numbers."""
    return Shape(steps, loop, words)


def decide(tokens: Sequence[str], trace: Trace) -> bool | None:
    """Decide whether every word of a trace satisfies a formula; None if that stays open.

    True comes from the three-valued evaluation, False from there or from a concrete word of the
    trace that does not satisfy the formula. The concrete words go twice round the loop, so that
    they need not repeat what the trace leaves open.

    Args:
        tokens: the formula's canonical prefix tokens.
        trace: one that `is_contradictory` does not refuse.
    """
    repeated = trace.steps[trace.loop :]
    steps = (*trace.steps, *repeated)
    loop = trace.loop
    if len(tokens) * len(steps) ** 2 * _WORDS > MAX_WORK:
        return None
    words = shape(len(steps), loop, _WORDS)
    readings = [_reading(step) for step in steps]
    literals = [cube for cube, _ in readings]
    symbols = sorted(symbols_in(tokens))
    leaves = {symbol: _leaf(symbol, index, literals) for index, symbol in enumerate(symbols)}
    must, may = (words.first(table) for table in words.evaluate(tokens, leaves))
    if must & 1:
        return True
    everything = all(whole for _, whole in readings)
    if not may & 1 or (everything and must | 1 != (1 << _WORDS) - 1):
        return False
    return None


def is_contradictory(step: Step) -> bool | None:
    """Decide whether a step of a trace holds in no word; None if it has too many symbols."""
    if read_cube(step) is not None:
        return False
    table = _table(step)
    return None if table is None else not table


@lru_cache(maxsize=65536)
def _reading(step: Step) -> tuple[Cube, bool]:
    """What a step says of single symbols, and whether that is all it says.

    A disjunction can say nothing of single symbols; where it is all, other values are free.
    """
    cube = read_cube(step)
    if cube is not None:
        return cube, True
    table = _table(step)
    if table is None:
        return {}, False
    symbols = symbols_in(step)
    tables = truth_table.leaf_tables(symbols)
    literals = {symbol: True for symbol in symbols if not table & ~tables[symbol]}
    literals |= {symbol: False for symbol in symbols if not table & tables[symbol]}
    for symbol, value in literals.items():
        table |= tables["1"] ^ tables[symbol] if value else tables[symbol]
    return literals, table == tables["1"]


def _table(step: Step) -> int | None:
    symbols = symbols_in(step)
    if len(symbols) > truth_table.MAX_VARIABLES:
        return None
    tables = truth_table.leaf_tables(symbols)
    return truth_table.evaluate(step, tables, tables["1"])


def symbols_in(tokens: Sequence[str]) -> list[str]:
    """Return the distinct symbols of canonical tokens in order of first occurrence."""
    return [token for token in dict.fromkeys(tokens) if token not in OPERATORS]


def _leaf(symbol: str, index: int, literals: Sequence[Cube]) -> Pair:
    """Return a symbol's tables: word 0 knows what the steps say, the others are filled up."""
    must = may = 0
    for position, cube in enumerate(literals):
        value = cube.get(symbol)
        if value is None:
            words = _filling(index, position)
            low, high = words, words | 1
        else:
            low = high = (1 << _WORDS) - 1 if value else 0
        must |= low << position * _WORDS
        may |= high << position * _WORDS
    return must, may


@cache
def _filling(symbol: int, position: int) -> int:
    """Choose values of a free symbol: all false, all true, then at random, the same every time."""
    bits = random.Random(f"{symbol} {position}").getrandbits(_WORDS)
    return (bits & ~0b111) | 0b100
