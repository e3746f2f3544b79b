"""Copying: a string is answered by itself (2410.17161, Section 5.1)."""

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import comb
from typing import ClassVar

from hf_alpha.modeling.choices import check_known
from hf_alpha.modeling.grammar import FormulaError, is_plain_name
from hf_alpha.tasks.base import DrawnTask, Verdict

NOTATIONS = ("compact", "prefix")

_NUMBERED = re.compile(r"[^\W\d]\d+")  # what it calls symbols when letters run out


class CopyingTask(DrawnTask):
    """Write a string again, symbol by symbol.

    Every token is a symbol, so nothing but their order matters. A string is written as characters
    side by side (`abca`) or, with names of several characters, with spaces between them
    (`request grant request`). A lone word counts as characters, except a letter and a number, such
    as `p26`, which is one symbol.
    """

    name: ClassVar[str] = "copying"
    grammar: ClassVar[None] = None
    base_tokens: ClassVar[tuple[str, ...]] = ()
    symbol_classes: ClassVar[Mapping[str, int]] = {"character": 5}
    targets: ClassVar[Mapping[str, str]] = {"copy": "The string itself."}
    measure: ClassVar[str] = "edit_distance"
    num_beams: ClassVar[int] = 1
    random_name: ClassVar[str] = "random string"
    random_note: ClassVar[str] = (
        "The random string has the length and the symbols of the right one."
    )
    problems: ClassVar[str] = "strings"
    example: ClassVar[str] = "request grant request"
    samples: ClassVar[tuple[str, ...]] = ("a b c b a", "dabcabc")
    released_model: ClassVar[str | None] = "copying-relational-small"
    data: ClassVar[str] = "`problem` is a random string, `answer` the same string"
    sizes: ClassVar[tuple[int, int]] = (3, 30)
    alpha: ClassVar[float] = 1.0  # there are few short strings
    held_out: ClassVar[bool] = False

    def is_feasible(
        self, size: int, num_symbols: int, exactly: bool = False, constant_priority: float = 0.0
    ) -> bool:
        return 1 <= (num_symbols if exactly else 1) <= size and num_symbols >= 1

    def draw(
        self,
        rng: random.Random,
        size: int,
        symbols: Sequence[str],
        exactly: bool = False,
        constant_priority: float = 0.0,
    ) -> list[str]:
        """Draw a string of exactly `size` symbols.

        With `exactly` it is uniform over the strings in which every symbol occurs. Otherwise the
        number of distinct symbols is uniform from 1 to as many as fit, then which ones they are,
        then the string as with `exactly`. (The paper says "at most 5 unique characters" and no
        more.)

        Raises:
            ValueError: if there is no such string.
        """
        if not self.is_feasible(size, len(symbols), exactly):
            raise ValueError(f"no string of length {size} over {len(symbols)} symbol(s)")
        if not exactly:
            symbols = rng.sample(list(symbols), rng.randint(1, min(len(symbols), size)))
        unused_symbols, used_symbols, count = list(symbols), list[str](), len(symbols)
        rng.shuffle(unused_symbols)
        tokens: list[str] = []
        uniform = rng.random
        for length in range(size, 0, -1):
            if unused_symbols and uniform() < _chance_of_new(length, len(unused_symbols), count):
                used_symbols.append(unused_symbols.pop())
                tokens.append(used_symbols[-1])
            else:
                tokens.append(used_symbols[int(uniform() * len(used_symbols))])
        return tokens

    def target_of(self, tokens: Sequence[str], method: str | None = None) -> str:
        check_known("targets", method, self.targets)
        return self.write(tokens)

    def distance(self, problem: str, answer: str | None, target: str | None = None) -> int:
        """Return the edit distance to the string, in symbols; no answer counts as an empty one.

        An answer that is one of the string's symbols, however long, is that symbol.
        """
        from rapidfuzz.distance import Levenshtein

        symbols, text = self.read(problem).tokens, (answer or "").strip()
        return Levenshtein.distance(symbols, [text] if text in symbols else _split(text))

    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Draw a string of the same length over the symbols of the problem."""
        problem = self.read(problem)
        return self.write([rng.choice(problem.symbols) for _ in problem.tokens])

    def check(
        self,
        problem: str,
        answer: str,
        target: str | None = None,
        notation: str | None = None,
        solver: str = "auto",
        timeout: float = 10.0,
    ) -> Verdict:
        """Judge an answer: `exact`, `wrong`, or `malformed` if it holds what is no name.

        Args:
            target: not needed: the problem is its own answer.
            notation: how the answer is written: "compact" (`abca`), "prefix" (`a b c a`), or None
                to detect it.

        Raises:
            FormulaError: if the problem cannot be read.
            ValueError: if the notation is unknown.
        """
        check_known("notation", notation, NOTATIONS)
        symbols = self.read(problem).tokens
        try:
            copy = self.parse(answer, notation) if answer.strip() else []
        except FormulaError:
            return Verdict.malformed
        return Verdict.exact if tuple(copy) == symbols else Verdict.wrong

    def parse(self, problem: str, notation: str | None = None) -> list[str]:
        """Return the symbols of a string.

        Raises:
            FormulaError: if it is empty or holds something that is no name.
            ValueError: if the notation is unknown.
        """
        check_known("notation", notation, NOTATIONS)
        tokens = _split(problem, notation)
        if not tokens:
            raise FormulaError("the string is empty: write at least one symbol", 0)
        for position, token in enumerate(tokens):
            if not is_plain_name(token):
                raise FormulaError(
                    f"token {position + 1}, {token!r}, is no name: write letters side by side "
                    "(abca), or names with spaces between them (x1 x2 x1)",
                    position,
                )
        return tokens


def _split(text: str, notation: str | None = None) -> list[str]:
    """Split a text at whitespace if it then has several words, else into characters."""
    words = text.split()
    if notation == "prefix" or (notation is None and len(words) > 1):
        return words
    text = text.strip()
    return [text] if _NUMBERED.fullmatch(text) else list(text)


@cache
def _chance_of_new(length: int, missing: int, count: int) -> float:
    """Return the chance that the next of `length` tokens is one of the `missing` symbols."""
    return missing * _words(length - 1, missing - 1, count) / _words(length, missing, count)


def _words(length: int, required: int, count: int) -> int:
    """Number of strings over `count` symbols in which `required` given ones occur."""
    return sum((-1) ** i * comb(required, i) * (count - i) ** length for i in range(required + 1))
