"""Datasets drawn by many machines: the executors of datatrove (extra `cluster`).

There are two stages. The tasks of the first draw problems and prove their answers, each a shard of
[`generate`]; the one task of the second puts what they drew into splits by the hash of its
canonical form, without duplicates. What is done is not done twice: tasks that have ended are known
to datatrove, the chunks of those that were killed to the dataset's folder. The dataset is that of
one machine, byte for byte.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .generate import generate

if TYPE_CHECKING:
    from datatrove.executor.base import PipelineExecutor


def generate_by(
    executor: "type[PipelineExecutor]",
    task: str,
    out_dir: str | os.PathLike[str],
    num_samples: int,
    *,
    tasks: int,
    options: Mapping[str, Any] | None = None,
    logging_dir: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> "PipelineExecutor":
    """Returns what makes a dataset by many tasks when it is run: `generate_by(...).run()`.

        from datatrove.executor import SlurmPipelineExecutor

        options = {"partition": "cpu", "time": "12:00:00"}
        generate_by(
            SlurmPipelineExecutor, "ltl", "data/ltl", 10_000_000, tasks=64, options=options
        ).run()

    Run again, it does what is missing. A local worker that is killed leaves datatrove waiting:
    interrupt it, and run it again.

    Args:
        executor: `LocalPipelineExecutor`, `SlurmPipelineExecutor` or `RayPipelineExecutor`.
        task: what is solved: a name, or `package.module:Class`.
        out_dir: folder to make, on a disk that all machines see.
        num_samples: problems in all splits together.
        tasks: shards of the first stage; the same number each time.
        options: of the executor, such as `workers`.
        logging_dir: datatrove's records; by default beside the dataset, `OUT_DIR-logs`.
        settings: further ones of [`generate`], such as `sizes`; `num_workers` are processes of a
            task, for which a Slurm job needs as many `cpus_per_task`.

    Raises:
        ValueError: there are no tasks; when run, as for [`generate`].
    """
    if tasks < 1:
        raise ValueError(f"tasks must be at least 1, got {tasks}")
    out_dir = Path(out_dir).absolute()
    logs = Path(logging_dir or f"{out_dir}-logs").absolute()
    arguments = {"task": task, "out_dir": str(out_dir), "num_samples": num_samples, **settings}
    options = options or {}
    first = executor(
        pipeline=[partial(_draw, arguments)], tasks=tasks, logging_dir=str(logs / "draw"), **options
    )
    return executor(
        pipeline=[partial(_make, arguments)], tasks=1, logging_dir=str(logs / "make"),
        depends=first, **options,
    )  # fmt: skip


def _draw(arguments: Mapping[str, Any], data: Any, rank: int, world_size: int) -> None:
    """A task of the first stage: makes the chunks of shard `rank + 1` of `world_size`."""
    generate(**arguments, shard=(rank + 1, world_size), progress=False)


def _make(arguments: Mapping[str, Any], data: Any, rank: int, world_size: int) -> None:
    """The task of the second stage: makes the dataset, of chunks that are there."""
    generate(**arguments, progress=False)


__all__ = ["generate_by"]
