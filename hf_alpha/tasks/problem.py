"""A problem that was read."""

from collections.abc import Sequence
from typing import Any

from hf_alpha.modeling.grammar import FormulaError


class Problem(str):
    """A problem as its task writes it, with what was found in reading it.

    Attributes:
        symbols: the distinct symbols in order of first occurrence.
        written: with a grammar, the tokens as they stand in `given`, before operators are
            rewritten: a tokenizer rewrites them in its own way.
        too_long: why it has no `tokens`, if it has none.
    """

    given: str
    symbols: tuple[str, ...]
    written: tuple[str, ...]
    too_long: str | None
    _tokens: tuple[str, ...]

    def __new__(
        cls,
        text: str,
        given: str,
        tokens: Sequence[str],
        symbols: Sequence[str],
        written: Sequence[str] = (),
        too_long: str | None = None,
    ) -> "Problem":
        self = str.__new__(cls, text)
        self.given, self.written, self.too_long = given, tuple(written), too_long
        self._tokens, self.symbols = tuple(tokens), tuple(symbols)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.given, self._tokens, self.symbols, self.written, self.too_long

    @property
    def tokens(self) -> tuple[str, ...]:
        """Canonical tokens in prefix order, or the words of a text.

        Raises:
            FormulaError: a formula has too many of them, once its operators are rewritten.
        """
        if self.too_long is not None:
            raise FormulaError(self.too_long)
        return self._tokens
