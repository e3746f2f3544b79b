"""An answer, and the verdict on it."""

from typing import Any

from .base import Task, Verdict


class Answer(str):
    """An answer of a model.

    Attributes:
        ended: whether the model has ended it; else the limit of its length has cut it off.
        score: natural logarithm of the probability that the model gives it, its end included; None
            where nobody asked for it.
    """

    ended: bool
    score: float | None

    def __new__(cls, text: str, ended: bool = True, score: float | None = None) -> "Answer":
        self = super().__new__(cls, text)
        self.ended, self.score = ended, score
        return self


def check_answer(
    task: Task, problem: str, answer: str, target: str | None = None, **settings: Any
) -> Verdict:
    """Return the verdict on what a model wrote.

    It has to be written as the tokenizer writes answers: that a base token happens to make a
    model's output read like another notation (`a=1`) does not count for it.

    Args:
        problem: as the task's `check` takes it; `answer` and `target` likewise.
        **settings: `solver` and `timeout` of that method.
    """
    notation = "prefix" if " " in answer else "compact"
    return task.check(problem, answer, target, notation=notation, **settings)
