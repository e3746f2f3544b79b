"""An answer, and the verdict on it."""

from typing import Any

from .base import Task, Verdict


class Answer(str):
    """An answer of a model.

    Attributes:
        ended: whether the model has ended it; else the limit of its length has cut it off.
    """

    ended: bool

    def __new__(cls, text: str, ended: bool = True) -> "Answer":
        self = super().__new__(cls, text)
        self.ended = ended
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
