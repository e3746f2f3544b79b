"""Find a task by its name: a built-in one, one of another package, or a class of the user's own."""

import re
from inspect import isabstract
from typing import Any, TypeVar

from hf_alpha import wings
from hf_alpha.checkpoints.imported_code import import_object

from .base import DrawnTask, Task

DEFAULT_TASK = "propositional"
"""What the command line solves unless told otherwise."""
ENTRY_POINTS = "hf_alpha.tasks"
"""Group of the entry points by which packages offer tasks: `name = "package.module:Class"`."""
CLASS_PATH = "package.module:Class"

_BUILT_IN = {"text": "hf_alpha.tasks.text:TextTask", **wings.TASKS}
_registered: dict[str, type[Task]] = {}

TaskClass = TypeVar("TaskClass", bound=type[Task])


def register_task(task: TaskClass) -> TaskClass:
    """Make a class known to `get_task` by its `name`, in this process; a decorator.

    Raises:
        ValueError: the class is no task, is abstract, lacks an attribute, or has the name of
            another task.

    Examples:
        >>> @register_task
        ... class Swapping(TextTask):
        ...     name = "swapping"
        >>> evaluate(model, tokenizer, "swapping", [], progress=False).overall.count
        0
    """
    _check(task)
    namesake = _registered.get(task.name, task)
    if _path(namesake) != _path(task):  # the same one again is a module that was loaded anew
        raise ValueError(
            f"{_path(task)}: the name {task.name!r} is that of {_path(namesake)}: choose another "
            "one"
        )
    _registered[task.name] = task
    return task


def get_task(task: str | Task) -> Task:
    """Return the task of this name; a task itself is returned as it is.

    Only the module of this task is imported.

    Args:
        task: a task, the name of one that is built in, registered or offered by an entry point, or
            `package.module:Class`.

    Raises:
        ValueError: there is none, or it is no task that can be used; the message says why.
        ImportError: its module cannot be imported because another one is missing.
    """
    if not isinstance(task, str):
        return task
    if task in _registered:
        return _registered[task]()
    if task in _BUILT_IN:
        module, _, name = _BUILT_IN[task].partition(":")
        built_in: type[Task] = getattr(wings.part(module), name)
        return built_in()
    if ":" in task:
        before = re.match(r"hf_alpha\.tasks\.(\w+)[.:]", task)  # as in 0.3
        if before and before[1] in wings.TASKS:
            return get_task(before[1])
        return _imported_task(task)()
    if task in (offered := _offered_tasks()):
        return _imported_task(offered[task], called=task)()
    raise ValueError(
        f"unknown task {task!r}: choose one of {', '.join(task_names())}, or write {CLASS_PATH} "
        "for one of your own"
    )


def drawn_task(task: str | Task) -> DrawnTask:
    """Return the task of this name, of which problems are to be drawn; see `get_task`.

    Raises:
        ValueError: its problems are not drawn.
    """
    task = get_task(task)
    if not isinstance(task, DrawnTask):
        raise ValueError(
            f"{task.problems} are not drawn: name a file of pairs (--data, or data.train); what is "
            "drawn is a hf_alpha.tasks.DrawnTask"
        )
    return task


def name_of(task: Task) -> str:
    """Return what `get_task` finds a task by in any process: its name, or `package.module:Class`.

    An instance of a class that inherits the name of a built-in task counts as that task.
    """
    if task.name in _BUILT_IN:
        return task.name
    path = _path(type(task))
    return task.name if _offered_tasks().get(task.name) == path else path


def task_names() -> list[str]:
    """Return the names of all tasks that need no path to a class; none is imported."""
    return sorted({*built_in_tasks(), *_offered_tasks(), *_registered})


def built_in_tasks() -> list[str]:
    """Return the names of the package's own tasks, but those that were left out."""
    return sorted(n for n, path in _BUILT_IN.items() if wings.is_here(path.partition(":")[0]))


def _offered_tasks() -> dict[str, str]:
    """Name -> `package.module:Class` of the tasks of other installed packages."""
    from importlib.metadata import entry_points  # here: most starts of the command need none

    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}


def _imported_task(path: str, called: str | None = None) -> type[Task]:
    """Import the class of a task, which its entry point, if any, gives the name `called`."""
    task: type[Task] = import_object(path, "task", CLASS_PATH)
    _check(task)
    if called not in (None, task.name):
        raise ValueError(
            f"the entry point {called!r} offers {path}, a task called {task.name!r}: give both the "
            "same name"
        )
    return task


def _check(task: Any) -> None:
    """Refuse what is no class of a task that can be made and used under its name."""
    if fault := _fault(task):
        raise ValueError(f"{_path(task)} {fault}")


def _fault(task: Any) -> str | None:
    if not isinstance(task, type) or not issubclass(task, Task):
        return "is no subclass of hf_alpha.tasks.Task"
    if isabstract(task):
        return f"is abstract: it lacks the methods {', '.join(sorted(task.__abstractmethods__))}"
    ours = (base for base in reversed(task.__mro__) if base.__module__.startswith("hf_alpha."))
    bases = filter(isabstract, ours)
    attributes = dict.fromkeys(name for base in bases for name in base.__annotations__)
    if missing := ", ".join(name for name in attributes if not hasattr(task, name)):
        return f"lacks the attributes {missing}"
    folder = _BUILT_IN.get(task.name, task.__module__).partition(":")[0]
    if not f"{task.__module__}.".startswith(f"{folder}."):
        return f"has a name that is taken: the task {task.name!r} is built in: choose another name"
    return None


def _path(task: Any) -> str:
    name = getattr(task, "__qualname__", None)
    return repr(task) if name is None else f"{task.__module__}:{name}"
