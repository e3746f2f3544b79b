"""Tasks: what is solved, how an answer is written and how it is checked."""

from .base import DrawnTask, Task, Verdict
from .decision import Decision
from .problem import Problem
from .registry import drawn_task, get_task, name_of, register_task, task_names

__all__ = [
    "Decision",
    "DrawnTask",
    "Problem",
    "Task",
    "Verdict",
    "drawn_task",
    "get_task",
    "name_of",
    "register_task",
    "task_names",
]
