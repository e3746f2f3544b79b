"""Tasks: what is solved, how an answer is written and how it is checked."""

from .base import Task, Tour, Verdict
from .registry import get_task, name_of, register_task, task_names

__all__ = ["Task", "Tour", "Verdict", "get_task", "name_of", "register_task", "task_names"]
