"""Few-shot prompts: how models that follow instructions are asked, and how replies are read.

The form is that of 2601.23169, Appendix H: what is asked, how it is written, four examples, and
the formula in infix. The sentences are our own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hf_alpha.modeling.grammar import Grammar

THOUGHTS, THOUGHT = "<think>", "</think>"


@dataclass(frozen=True)
class NoAnswer:
    """What stands in place of an answer that could not be found, and why there is none."""

    reason: str


class Prompt(ABC):
    """The prompt of a task.

    Attributes:
        grammar: reads problems.
        instructions: what is asked, and how problems and answers are written.
        examples: problems with right answers, both as the task writes them.
        label: what stands before an answer.
        request: the last line, to a model that follows instructions.
        missing: why there is no answer in a reply without a candidate.
        unreadable: why there is none in a reply whose candidates cannot be read.
    """

    grammar: ClassVar[Grammar]
    instructions: ClassVar[str]
    examples: ClassVar[tuple[tuple[str, str], ...]]
    label: ClassVar[str]
    request: ClassVar[str]
    missing: ClassVar[str]
    unreadable: ClassVar[str]

    def ask(self, tokens: Sequence[str], plain: bool = False) -> str:
        """Write the prompt for one problem.

        Args:
            tokens: the problem, as canonical tokens.
            plain: for a model that only continues a text: the prompt ends where the answer begins.
        """
        parts = [self.instructions]
        for number, (problem, answer) in enumerate(self.examples, 1):
            formula = self.write_problem(self.grammar.parse(problem))
            example = f"Formula: {formula}\n{self.label}: {self.write_answer(answer)}"
            parts.append(f"Example {number}\n{example}")
        end = f"{self.label}:" if plain else self.request
        parts.append(f"Your turn\nFormula: {self.write_problem(tokens)}\n{end}")
        return "\n\n".join(parts)

    def read(self, reply: str) -> str | NoAnswer:
        """Find the answer in a reply, and write it as the task writes answers.

        What stands up to the last `</think>` is left out. Of several answers the last one that can
        be read counts: it is what a model says after thinking aloud.
        """
        conclusion = reply.rpartition(THOUGHT)[2]
        if THOUGHTS in conclusion:
            return NoAnswer("thoughts without an end")
        if not conclusion.strip():
            return NoAnswer("empty reply")
        answers = [self.read_answer(candidate) for candidate in self.candidates(conclusion)]
        readable = [answer for answer in answers if answer is not None]
        if readable:
            return readable[-1]
        return NoAnswer(self.unreadable if answers else self.missing)

    @abstractmethod
    def write_problem(self, tokens: Sequence[str]) -> str:
        """Write a problem, given as canonical tokens, as the prompt shows it."""

    @abstractmethod
    def write_answer(self, answer: str) -> str:
        """Write an answer of the task as the prompt shows it."""

    @abstractmethod
    def candidates(self, text: str) -> Iterable[Any]:
        """Find what may be an answer, in order; of any text."""

    @abstractmethod
    def read_answer(self, candidate: Any) -> str | None:
        """Write a candidate as the task writes answers; None if it is none."""


__all__ = ["NoAnswer", "Prompt"]
