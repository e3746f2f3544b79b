"""Solve problems with a model and check every answer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transformers import PreTrainedModel

from hf_alpha.generation import (
    InputTooLong,
    extend_vocabulary,
    generate_answers,
    own_limit,
)
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.tasks import Task, Verdict
from hf_alpha.tasks.checking import Answer, check_answer


@dataclass
class Solution:
    """A problem and what the model makes of it.

    Attributes:
        problem: as it was given.
        answers: best first, in the problem's own names, each with its verdict; `answer.ended` says
            whether it is whole.
        error: why there is no answer.
        read_as: the problem in infix, if operators of it were rewritten while reading.
        unsatisfiable: it is proved that no answer is right; asked only if none of these is.
    """

    problem: str
    answers: list[tuple[Answer, Verdict]]
    error: str | None = None
    read_as: str | None = None
    unsatisfiable: bool = False

    @property
    def solved(self) -> bool:
        """Whether one of the answers is correct."""
        return any(verdict.is_correct for _, verdict in self.answers)


def solve(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    task: Task,
    problems: Iterable[str],
    *,
    top: int = 1,
    first_correct: bool = False,
    num_beams: int | None = None,
    max_new_tokens: int | None = None,
    notation: str | None = None,
    solver: str = "auto",
) -> Iterator[Solution]:
    """Solve problems one after the other.

    One that cannot be read, or is too long for the model, is a solution with an error.

    A vocabulary of one class that is too small for a problem is extended on the way, if the
    encoding takes new symbols without training.

    Args:
        top: answers of a solution. A search has at least as many beams.
        first_correct: a solution has one answer, the first correct one of `top`, or else the best;
            those behind it are not checked.
        num_beams: by default the papers'.
        max_new_tokens: limit of an answer's length; by default the model's own.
        notation: of the problems; detected by default.
        solver: as in the task's `check`.
    """
    task.prepare(tokenizer)
    limit = max_new_tokens or own_limit(model)
    for problem in problems:
        try:
            tokens = task.parse(problem, notation)
            extend_vocabulary(model, tokenizer, task.needed_symbols([problem]))
            prefix = problem if task.own_data else _prefix(task, tokens)
            (answers,) = generate_answers(
                model,
                tokenizer,
                [prefix],
                num_beams=max(num_beams or task.num_beams, top),
                num_return_sequences=top,
                max_new_tokens=limit,
                progress=False,
            )
        except (FormulaError, InputTooLong) as error:
            yield Solution(problem, [], str(error))
            continue
        if answers is None:
            yield Solution(problem, [], _too_many_names(model, tokenizer))
            continue
        verdicts = (
            (answer, check_answer(task, prefix, answer, solver=solver)) for answer in answers
        )
        chosen = _first_correct(verdicts) if first_correct else list(verdicts)
        solution = Solution(problem, chosen, read_as=_rewritten(tokenizer, problem, notation))
        if not solution.solved:
            solution.unsatisfiable = task.has_answer(prefix) is False
        yield solution


def _first_correct(checked: Iterable[tuple[Answer, Verdict]]) -> list[tuple[Answer, Verdict]]:
    """Return the first correct answer, or else the best one; none if there are none."""
    best: list[tuple[Answer, Verdict]] = []
    for answer, verdict in checked:
        if verdict.is_correct:
            return [(answer, verdict)]
        best = best or [(answer, verdict)]
    return best


def _too_many_names(model: PreTrainedModel, tokenizer: AnyTokenizer) -> str:
    num_symbols = sum(tokenizer.symbol_classes.values())
    if model.config.encoding.no_extension:
        way = (
            "convert it to 'streams' or 'relational' (hf-alpha convert), which take any number"
            if model.config.is_encoder_decoder
            else "train one with more (num_symbols)"
        )
        return f"more names than the {num_symbols} symbols that this model was trained on; {way}"
    return (
        f"more names than {num_symbols} symbols: call extend_symbols on the model and the tokenizer"
    )


def _prefix(task: Task, tokens: list[str]) -> str:
    return " ".join(tokens) if task.grammar is None else task.grammar.format(tokens)


def _rewritten(tokenizer: AnyTokenizer, problem: str, notation: str | None) -> str | None:
    """Return the problem in infix as the model reads it, if operators are rewritten for that."""
    grammar = getattr(tokenizer, "grammar", None)
    if grammar is None or not grammar.rewrites(problem, notation):
        return None
    return grammar.format(grammar.parse(problem, notation), "infix")


__all__ = ["Solution", "solve"]
