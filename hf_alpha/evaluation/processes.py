"""Work on one list in several processes, when `accelerate launch` or torchrun started them."""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")


def process_state() -> Any | None:
    """Return accelerate's `PartialState` if this is one of several processes, else None.

    Raises:
        RuntimeError: several processes were started, but accelerate does not connect them.
    """
    launched = "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1
    running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not launched and not running:
        return None
    from accelerate import PartialState  # type: ignore[import-untyped]

    # Without `cpu`, accelerate connects no processes on a machine without accelerators.
    state = PartialState() if torch.accelerator.is_available() else PartialState(cpu=True)
    if launched and state.num_processes == 1:
        raise RuntimeError(
            f"{os.environ['WORLD_SIZE']} processes were started, but accelerate takes each for the "
            "only one: start them with `accelerate launch`, with --cpu if there is no accelerator"
        )
    return state if state.num_processes > 1 else None


def split(items: Sequence[Item], state: Any | None) -> list[Item]:
    """Return this process's share: every n-th item, so that sorted work is spread evenly."""
    if state is None:
        return list(items)
    dealt = [x for rank in range(state.num_processes) for x in items[rank :: state.num_processes]]
    with state.split_between_processes(dealt) as share:
        return list(share)


def gather(items: list[Item], state: Any | None) -> list[Item]:
    """Return the items of all processes, in every process."""
    if state is None:
        return items
    from accelerate.utils import gather_object  # type: ignore[import-untyped]

    return list(gather_object(items))


__all__ = ["gather", "process_state", "split"]
