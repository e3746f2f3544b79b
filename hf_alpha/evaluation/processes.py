"""Work on one list in several processes, when `accelerate launch` or torchrun started them."""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import torch.distributed

Item = TypeVar("Item")


def process_state() -> Any | None:
    """Return accelerate's `PartialState` if this is one of several processes, else None."""
    running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not running and int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return None
    from accelerate import PartialState

    state = PartialState()
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
    from accelerate.utils import gather_object

    return list(gather_object(items))


__all__ = ["gather", "process_state", "split"]
