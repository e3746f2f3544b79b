"""What every task knows: its tokens, how to draw a problem, find a target and check an answer."""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar

from hf_alpha.modeling.grammar import Grammar

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Verdict(StrEnum):
    """The outcome of checking one answer."""

    exact = "exact"
    correct = "correct"
    wrong = "wrong"
    malformed = "malformed"
    timeout = "timeout"
    undecided = "undecided"

    @property
    def is_correct(self) -> bool:
        """Whether the answer solves the problem."""
        return self in (Verdict.exact, Verdict.correct)


class Task(ABC):
    """A kind of problem whose symbols may be renamed without changing what is asked.

    Problems and answers are strings. Problems are trusted: one that cannot be read is a
    `FormulaError`. Answers come from models: whatever they are, checking gives a verdict.

    Attributes:
        name: what `get_task` knows the task by.
        grammar: the notation of problems.
        base_tokens: tokens whose identity matters, without padding, start and end.
        symbol_classes: class of interchangeable symbols -> how many the vocabulary starts with.
        targets: ways to compute a target; the first is the default.
    """

    name: ClassVar[str]
    grammar: ClassVar[Grammar]
    base_tokens: ClassVar[tuple[str, ...]]
    symbol_classes: ClassVar[Mapping[str, int]]
    targets: ClassVar[tuple[str, ...]]

    @abstractmethod
    def sample(self, rng: random.Random, size: int, symbols: Sequence[str]) -> str:
        """Draw a problem of exactly `size` tokens over the symbols."""

    @abstractmethod
    def target(self, problem: str, method: str | None = None) -> str | None:
        """Compute an answer with one of `targets`; None if there is none."""

    @abstractmethod
    def random_answer(self, problem: str, rng: random.Random) -> str:
        """Draw a well-formed answer at random: the baseline that a model has to beat."""

    @abstractmethod
    def check(
        self,
        problem: str,
        answer: str,
        target: str | None = None,
        notation: str | None = None,
        solver: str = "auto",
        timeout: float = 10.0,
    ) -> Verdict:
        """Judge an answer; `exact` needs a target, `notation` is how the answer is written."""

    def parse(self, problem: str, notation: str | None = None) -> list[str]:
        """Return the problem's canonical prefix tokens.

        Raises:
            FormulaError: if the problem cannot be read.
        """
        return self.grammar.parse(problem, notation)

    def symbols_of(self, problem: str) -> list[str]:
        """Return the problem's distinct symbols in order of first occurrence."""
        return self.symbols_in(self.parse(problem))

    def symbols_in(self, tokens: Sequence[str]) -> list[str]:
        """Return the distinct symbols of canonical tokens in order of first occurrence."""
        fixed = self._fixed
        return [token for token in dict.fromkeys(tokens) if token not in fixed]

    def canonical(self, problem: str) -> str:
        """Return the problem with its symbols renamed in order of first occurrence.

        Two problems are the same up to renaming exactly if their canonical forms are equal.
        """
        return self.canonical_form(self.parse(problem))

    def canonical_form(self, tokens: Sequence[str]) -> str:
        """Return the canonical form of canonical tokens."""
        symbols = self.symbols_in(tokens)
        names = dict(zip(symbols, default_symbols(len(symbols), self._fixed), strict=True))
        renamed = [names.get(token, token) for token in tokens]
        return self.write(renamed)

    @staticmethod
    def write(tokens: Sequence[str]) -> str:
        """Join tokens: without spaces if every token is one character, else with them."""
        return ("" if all(len(token) == 1 for token in tokens) else " ").join(tokens)

    @staticmethod
    def rename(text: str, mapping: Mapping[str, str]) -> str:
        """Rename the symbols of a problem or an answer; symbols not in `mapping` stay.

        A text without whitespace counts as compact (each letter a name) unless a key of `mapping`
        is longer than one character. A compact text that receives a longer name becomes a spaced
        one.
        """
        if len(text.split()) <= 1 and all(len(name) == 1 for name in mapping):
            return Task.write([mapping.get(token, token) for token in text.strip()])
        return _IDENTIFIER.sub(lambda match: mapping.get(match[0], match[0]), text)

    @property
    def _fixed(self) -> frozenset[str]:
        return _fixed_tokens(type(self))


def default_symbols(count: int, reserved: frozenset[str] = frozenset()) -> list[str]:
    """Return `count` names: a to z, A to Z, then s52, s53 and so on, skipping reserved ones."""
    if count <= 26 and reserved.isdisjoint(LETTERS):
        return list(LETTERS[:count])
    letters = [letter for letter in LETTERS if letter not in reserved]
    return [*letters[:count], *(f"s{i}" for i in range(len(letters), count))]


_FIXED: dict[type[Task], frozenset[str]] = {}


def _fixed_tokens(task: type[Task]) -> frozenset[str]:
    if task not in _FIXED:
        _FIXED[task] = frozenset({*task.grammar.operators, *task.grammar.constants})
    return _FIXED[task]
