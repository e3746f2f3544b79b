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
from hf_alpha.modeling.grammar import FormulaError, Grammar
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.tasks import Problem, Task, Verdict
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
    """Solve problems one after the other, each of which is read once.

    One that cannot be read, or is too long for the model, is a solution with an error. A
    vocabulary of one class that is too small for a problem is extended on the way, if the encoding
    takes new symbols without training.

    Args:
        problems: texts, or what the task has read already.
        top: answers of a solution. A search has at least as many beams.
        first_correct: a solution has one answer, the first correct one of `top`, or else the best;
            those behind it are not checked.
        num_beams: by default the papers'.
        max_new_tokens: limit of an answer's length; by default the model's own.
        notation: of the texts; detected by default.
        solver: as in the task's `check`.
    """
    task.prepare(tokenizer)
    search = {
        "num_beams": max(num_beams or task.num_beams, top),
        "num_return_sequences": top,
        "max_new_tokens": max_new_tokens or own_limit(model),
    }
    for text in problems:
        input_text = text.given if isinstance(text, Problem) else text
        try:
            problem = task.read(text, notation)
            answers = _answers(model, tokenizer, task, problem, search)
        except (FormulaError, InputTooLong) as error:
            yield Solution(input_text, [], str(error))
            continue
        pairs = ((answer, check_answer(task, problem, answer, solver=solver)) for answer in answers)
        verdicts = _first_correct(pairs) if first_correct else list(pairs)
        solution = Solution(input_text, verdicts, read_as=_read_as(tokenizer, problem))
        if not solution.solved:
            solution.unsatisfiable = task.has_answer(problem) is False
        yield solution


def _answers(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    task: Task,
    problem: Problem,
    search: dict[str, int],
) -> list[Answer]:
    """Answer a problem, and extend the vocabulary first if need be.

    Raises:
        FormulaError: the model cannot read the problem, or it has too many names.
        InputTooLong: the problem has more tokens than the model has positions.
    """
    extend_vocabulary(model, tokenizer, task.needed_symbols([problem]))
    (answers,) = generate_answers(model, tokenizer, [problem], progress=False, **search)
    if answers is None:
        raise FormulaError(_too_many_names(model, tokenizer))
    return answers


def _first_correct(judged: Iterable[tuple[Answer, Verdict]]) -> list[tuple[Answer, Verdict]]:
    """Return the first correct answer, or else the best one; none if there are none."""
    best: list[tuple[Answer, Verdict]] = []
    for answer, verdict in judged:
        if verdict.is_correct:
            return [(answer, verdict)]
        best = best or [(answer, verdict)]
    return best


def _too_many_names(model: PreTrainedModel, tokenizer: AnyTokenizer) -> str:
    num_symbols = sum(tokenizer.symbol_classes.values())
    if model.config.encoding.no_extension:
        advice = (
            "convert it to 'streams' or 'relational' (hf-alpha convert), which take any number"
            if model.config.is_encoder_decoder
            else "train one with more (num_symbols)"
        )
        return f"more names than the {num_symbols} symbols that this model was trained on; {advice}"
    return (
        f"more names than {num_symbols} symbols: call extend_symbols on the model and the tokenizer"
    )


def _read_as(tokenizer: AnyTokenizer, problem: Problem) -> str | None:
    """Return the problem in infix as the model reads it, if its operators are rewritten."""
    grammar = getattr(tokenizer, "grammar", None)
    if grammar is None or grammar.derived.keys().isdisjoint(problem.written):
        return None
    grammar = Grammar.from_dict(grammar.to_dict())  # a checkpoint's may be of an older version
    return grammar.format(grammar.rewritten([*problem.written]), "infix")


__all__ = ["Solution", "solve"]
