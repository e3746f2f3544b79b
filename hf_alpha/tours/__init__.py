"""The tours of `hf-alpha quickstart`: what the package can do, on one task, in minutes."""

from collections.abc import Callable
from pathlib import Path

from hf_alpha.tasks import get_task
from hf_alpha.tasks.registry import DEFAULT_TASK, built_in_tasks
from hf_alpha.tours import conversion


def run_tour(
    output: Path,
    task_name: str = DEFAULT_TASK,
    steps: int | None = None,
    samples: int = 200,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> str:
    """Run the tour of a task; everything it makes is in `output`.

    Args:
        output: folder for the data, the trained model, reports, table and picture.
        task_name: what `get_task` finds a task by that has a tour.
        steps: training steps; by default as many as fit into a minute and a half.
        samples: problems for each number of symbols.
        say: is told what happens.

    Returns:
        The table that it prints.

    Raises:
        ValueError: if the task has no tour.
        MissingSolverError: if what checks the answers is not installed.
    """
    task = get_task(task_name)
    if task.tour is None:
        known = [name for name in built_in_tasks() if get_task(name).tour is not None]
        raise ValueError(f"no tour of task {task.name!r}: choose one of {', '.join(known)}")
    return conversion.run(output, task, task.tour, steps, samples, seed, say)


__all__ = ["run_tour"]
