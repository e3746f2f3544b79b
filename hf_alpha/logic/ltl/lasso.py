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
from functools import cache, cached_property, lru_cache
from operator import and_, or_

from hf_alpha.logic import sat, truth_table

from .grammar import LTL, LTL_OF_SOLVERS
from .trace import Cube, Step, Trace, cube_step, read_cube

OPERATORS = frozenset({*LTL_OF_SOLVERS.operators, "0", "1"})
TEMPLATES = {token: LTL.derived[token].split() for token in LTL.repeating}

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

    @cached_property
    def full(self) -> Table:
        """The table of *true*: as many ones as there are positions in all words."""
        return (1 << self.steps * self.words) - 1

    @cached_property
    def _block(self) -> Table:
        """The table of *true* at position 0 alone: a one for each word."""
        return (1 << self.words) - 1

    @cached_property
    def _shifts(self) -> tuple[int, int, int]:
        """The bits at which the blocks of the second, first repeated and last position begin."""
        return self.words, self.loop * self.words, (self.steps - 1) * self.words

    def evaluate(self, tokens: Sequence[str], leaves: Mapping[str, Pair]) -> Pair:
        """Evaluate tokens as solvers read them, given the tables of the symbols.

        Where nothing is unknown, as in concrete words, both tables are the same object and are
        computed once. In words of one step, repeated, `X a` is a and `a U b` is b.
        """
        full, single = self.full, self.steps == 1
        unary = {"X": (lambda a: a) if single else self._next}
        binary = {"&": and_, "|": or_, "U": (lambda a, b: b) if single else self._until}
        stack: list[Pair] = []
        push, pop, leaf = stack.append, stack.pop, leaves.get
        for token in reversed(tokens):
            tables = leaf(token)
            if tables is not None:
                push(tables)
            elif token == "!":
                must, may = pop()
                no = full ^ may
                push((no, no if may is must else full ^ must))
            elif token in unary:
                must, may = pop()
                table = unary[token](must)
                push((table, table if may is must else unary[token](may)))
            elif token in binary:
                (a, a_may), (b, b_may) = pop(), pop()
                table = binary[token](a, b)
                is_known = a is a_may and b is b_may
                push((table, table if is_known else binary[token](a_may, b_may)))
            elif token in TEMPLATES:
                push(self.evaluate(TEMPLATES[token], {"$1": pop(), "$2": pop()}))
            else:
                constant = full if token == "1" else 0
                push((constant, constant))
        return stack[0]

    def first(self, table: Table) -> Table:
        """Return the block of position 0: in which words a formula holds."""
        return table & self._block

    def _next(self, table: Table) -> Table:
        second, entry, last = self._shifts
        return table >> second | (table >> entry & self._block) << last

    def _until(self, a: Table, b: Table) -> Table:
        """Return the least fixpoint of z = b | (a & X z)."""
        (second, entry, last), block = self._shifts, self._block
        reached, candidates = b, a & ~b
        while candidates:
            predecessors = reached >> second | (reached >> entry & block) << last
            if not candidates & predecessors:
                break
            reached |= candidates & predecessors
            candidates &= ~predecessors
        return reached


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
        tokens: the formula's, as solvers read them (`grammar.LTL_OF_SOLVERS`).
        trace: one that `is_contradictory` does not refuse.
    """
    if _is_too_long(tokens, trace):
        return None
    words = shape(len(trace.steps), trace.loop, 1)
    must, may = words.evaluate(tokens, leaves(symbols_in(tokens), trace))
    if not (must ^ may) & 1:
        return bool(must & 1)
    if _says_literals_only(trace) and _in_words(tokens, trace)[0] | 1 != (1 << _WORDS) - 1:
        return False
    return None


def counterexample(tokens: Sequence[str], trace: Trace) -> Trace | None:
    """Return a word of a trace that does not satisfy a formula; None if none is found.

    Its steps give each symbol of the formula a value. It goes twice round the loop, unless both
    rounds are the same.

    Args:
        tokens: the formula's, as solvers read them (`grammar.LTL_OF_SOLVERS`).
        trace: one that `is_contradictory` does not refuse.
    """
    if _is_too_long(tokens, trace) or not _says_literals_only(trace):
        return None
    must, leaves = _in_words(tokens, trace)
    failing = ((1 << _WORDS) - 1) & ~(must | 1)
    if not failing:
        return None
    word = (failing & -failing).bit_length() - 1
    steps = 2 * len(trace.steps) - trace.loop
    values = [
        [(symbol, bool(table >> step * _WORDS + word & 1)) for symbol, (table, _) in leaves.items()]
        for step in range(steps)
    ]
    if values[trace.loop : len(trace.steps)] == values[len(trace.steps) :]:
        del values[len(trace.steps) :]
    return Trace(tuple(map(cube_step, values)), trace.loop)


def leaves(symbols: Sequence[str], trace: Trace) -> dict[str, Pair]:
    """Return the tables of symbols in one word of a trace's shape, open where the trace is."""
    cubes = [_reading(step)[0] for step in trace.steps]
    return {
        symbol: (
            sum((cube.get(symbol) is True) << step for step, cube in enumerate(cubes)),
            sum((cube.get(symbol) is not False) << step for step, cube in enumerate(cubes)),
        )
        for symbol in symbols
    }


def _is_too_long(tokens: Sequence[str], trace: Trace) -> bool:
    steps = 2 * len(trace.steps) - trace.loop
    return len(tokens) * steps**2 * _WORDS > MAX_WORK


def _in_words(tokens: Sequence[str], trace: Trace) -> tuple[Table, dict[str, Pair]]:
    """Evaluate a formula in words of a trace: what must hold at position 0, and all symbols."""
    words = shape(2 * len(trace.steps) - trace.loop, trace.loop, _WORDS)
    literals = [_reading(step)[0] for step in trace.steps]
    literals += literals[trace.loop :]
    leaves = {
        symbol: _leaf(index, tuple(cube.get(symbol) for cube in literals))
        for index, symbol in enumerate(sorted(symbols_in(tokens)))
    }
    return words.first(words.evaluate(tokens, leaves)[0]), leaves


def _says_literals_only(trace: Trace) -> bool:
    """Whether all that the steps say is said by the values that they force."""
    return all(whole for _, whole in map(_reading, trace.steps))


@lru_cache(maxsize=65536)
def is_contradictory(step: Step) -> bool | None:
    """Decide whether a step of a trace holds in no word; None if that is too hard to say."""
    if read_cube(step) is not None:
        return False
    table = truth_table.table_of(step, symbols_in(step))
    if table is not None:
        return not table
    satisfiable = sat.is_satisfiable(step)
    return None if satisfiable is None else not satisfiable


@lru_cache(maxsize=65536)
def _reading(step: Step) -> tuple[Cube, bool]:
    """Return the values that a step forces on single symbols, and whether that is all it says.

    A disjunction can say nothing of single symbols; where it is all, other values are free.
    """
    cube = read_cube(step)
    if cube is not None:
        return cube, True
    symbols = symbols_in(step)
    table = truth_table.table_of(step, symbols)
    if table is None:
        return {}, False
    tables = truth_table.leaf_tables(symbols)
    literals = {symbol: True for symbol in symbols if not table & ~tables[symbol]}
    literals |= {symbol: False for symbol in symbols if not table & tables[symbol]}
    for symbol, value in literals.items():
        table |= tables["1"] ^ tables[symbol] if value else tables[symbol]
    return literals, table == tables["1"]


def symbols_in(tokens: Sequence[str]) -> list[str]:
    """Return the distinct symbols of a formula's tokens in order of first occurrence."""
    return [token for token in dict.fromkeys(tokens) if token not in OPERATORS]


@lru_cache(maxsize=4096)
def _leaf(symbol: int, values: tuple[bool | None, ...]) -> Pair:
    """Return a symbol's tables: word 0 knows what the steps say, the others are filled up."""
    must = may = 0
    for position, value in enumerate(values):
        if value is None:
            words = _filling(symbol, position)
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
