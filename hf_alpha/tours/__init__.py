"""The tours of `hf-alpha quickstart`: what the package can do, on one task, in minutes."""

from collections.abc import Callable
from pathlib import Path

from hf_alpha.folders import alone_in
from hf_alpha.tasks import DrawnTask, Task, get_task
from hf_alpha.tasks.registry import built_in_tasks
from hf_alpha.tours import conversion, names

DEFAULT_TOUR = "text"
"""The task of `hf-alpha quickstart`."""


@alone_in("output")
def run_tour(
    output: Path,
    task_name: str = DEFAULT_TOUR,
    steps: int | None = None,
    samples: int | None = None,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> str:
    """Run the tour of a task; everything it makes is in `output`.

    Args:
        output: folder for the data, the trained model, reports, table and picture.
        task_name: what `get_task` finds a task by that has a tour.
        steps: training steps; by default as many as fit into 40 seconds for each encoding, or
            into a minute and a half.
        samples: problems for each number of symbols; by default 50, or 200.
        say: is told what happens.

    Returns:
        The table that it prints.

    Raises:
        ValueError: if the task has no tour, or another process writes in `output`.
        MissingSolverError: if what checks the answers is not installed.
    """
    task = get_task(task_name)
    if not isinstance(task, DrawnTask):
        return names.run(output, steps, samples or 50, seed, say)
    if task.tour is None:
        tasks = [name for name in built_in_tasks() if _has_tour(get_task(name))]
        raise ValueError(f"no tour of task {task.name!r}: choose one of {', '.join(tasks)}")
    return conversion.run(output, task, task.tour, steps, samples or 200, seed, say)


def _has_tour(task: Task) -> bool:
    return not isinstance(task, DrawnTask) or task.tour is not None


__all__ = ["DEFAULT_TOUR", "run_tour"]
