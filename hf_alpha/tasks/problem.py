"""A problem that was read."""

from collections.abc import Sequence
from typing import Any


class Problem(str):
    """A problem as its task writes it, with what was found in reading it.

    Attributes:
        given: the text that was read.
        tokens: canonical tokens in prefix order, or the words of a text.
        symbols: the distinct symbols in order of first occurrence.
        written: with a grammar, the tokens as they stand in `given`, before operators are
            rewritten: a tokenizer rewrites them in its own way.
    """

    given: str
    tokens: tuple[str, ...]
    symbols: tuple[str, ...]
    written: tuple[str, ...]

    def __new__(
        cls,
        text: str,
        given: str,
        tokens: Sequence[str],
        symbols: Sequence[str],
        written: Sequence[str] = (),
    ) -> "Problem":
        self = str.__new__(cls, text)
        self.given, self.written = given, tuple(written)
        self.tokens, self.symbols = tuple(tokens), tuple(symbols)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.given, self.tokens, self.symbols, self.written


__all__ = ["Problem"]
