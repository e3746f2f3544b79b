"""Solve problems with a model and check every answer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transformers import PreTrainedModel

from hf_alpha.generation import extend_vocabulary, generate_answers
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AlphaTokenizer
from hf_alpha.tasks import Task, Verdict


@dataclass
class Solution:
    """A problem and what the model makes of it.

    Attributes:
        problem: as it was given.
        answers: best first, in the problem's own names, each with its verdict.
        error: why there is no answer.
        read_as: the problem in infix, if operators of it were rewritten while reading.
    """

    problem: str
    answers: list[tuple[str, Verdict]]
    error: str | None = None
    read_as: str | None = None

    @property
    def solved(self) -> bool:
        """Whether one of the answers is correct."""
        return any(verdict.is_correct for _, verdict in self.answers)


def solve(
    model: PreTrainedModel,
    tokenizer: AlphaTokenizer,
    task: Task,
    problems: Iterable[str],
    *,
    top: int = 1,
    num_beams: int | None = None,
    max_new_tokens: int = 128,
    notation: str | None = None,
    solver: str = "auto",
) -> Iterator[Solution]:
    """Solve problems one after the other; one that cannot be read is a solution with an error.

    A `streams` model whose vocabulary is too small for a problem is extended on the way: new
    symbols need no training.
    """
    for problem in problems:
        try:
            tokens = task.parse(problem, notation)
            extend_vocabulary(model, tokenizer, len(task.symbols_in(tokens)))
            grammar = task.grammar
            prefix = " ".join(tokens) if grammar is None else grammar.format(tokens)
            (answers,) = generate_answers(
                model,
                tokenizer,
                [prefix],
                num_beams=max(num_beams or task.num_beams, top),
                num_return_sequences=top,
                max_new_tokens=max_new_tokens,
                progress=False,
            )
        except FormulaError as error:
            yield Solution(problem, [], str(error))
            continue
        if answers is None:
            known = sum(tokenizer.symbol_classes.values())
            yield Solution(
                problem,
                [],
                f"more names than the {known} symbols that this model was trained on; convert it "
                "to 'streams' (hf-alpha convert), which takes any number",
            )
            continue
        # Judged as in `evaluate`: in the notation that the tokenizer writes, and in no other.
        written = ["prefix" if " " in answer else "compact" for answer in answers]
        verdicts = [
            task.check(prefix, answer, notation=kind, solver=solver)
            for answer, kind in zip(answers, written, strict=True)
        ]
        read_as = None
        if grammar is not None and grammar.rewrites(problem, notation):
            read_as = grammar.format(tokens, "infix")
        yield Solution(problem, list(zip(answers, verdicts, strict=True)), read_as=read_as)


__all__ = ["Solution", "solve"]
