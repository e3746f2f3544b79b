"""Tasks: what is solved, how an answer is written and how it is checked."""

from .base import Task, Verdict
from .copying import CopyingTask
from .ltl import LTLTask
from .propositional import PropositionalTask

_TASKS: dict[str, type[Task]] = {
    task.name: task for task in (CopyingTask, LTLTask, PropositionalTask)
}


def get_task(name: str) -> Task:
    """Return the task called `name`.

    Raises:
        ValueError: if there is none; the message lists the names.
    """
    if name not in _TASKS:
        raise ValueError(f"unknown task {name!r}: choose one of {', '.join(sorted(_TASKS))}")
    return _TASKS[name]()


__all__ = ["CopyingTask", "LTLTask", "PropositionalTask", "Task", "Verdict", "get_task"]
