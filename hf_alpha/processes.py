"""The processes of a run: which one this is, its device, and how they share work.

Torch is imported once it is asked.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")
NOT_CONNECTED = (
    "several processes were asked for, but this one does not know of any other: on CPUs start them "
    "with `torchrun --nproc-per-node N` (`accelerate launch --cpu` starts one only), on several "
    "GPUs with `accelerate launch` or torchrun"
)


def several_asked_for() -> bool:
    """Return whether this process was started as one of several."""
    if own_share()[1] > 1:
        return True
    # What `accelerate launch` leaves where it starts one process although more were asked for.
    return {"ACCELERATE_USE_CPU", "MASTER_ADDR"} <= os.environ.keys()


def is_left_alone() -> bool:
    """Return whether it was, but has not been told which one it is."""
    return several_asked_for() and not {"RANK", "LOCAL_RANK"} <= os.environ.keys()


def own_share() -> tuple[int, int]:
    """Return which of several processes this is, from 1 on, and how many there are."""
    count = int(os.environ.get("WORLD_SIZE") or 1)
    # A rank may be left over of something else, where there is but one process.
    return (int(os.environ.get("RANK") or 0) + 1 if count > 1 else 1), count


def is_first() -> bool:
    """Return whether this is the first of several processes, or the only one."""
    return own_share()[0] == 1


def process_state() -> Any | None:
    """Return accelerate's `PartialState` if this is one of several processes, else None.

    Raises:
        ValueError: several processes were asked for, but they are not there or do not know of each
            other.
    """
    import torch

    running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not running and not several_asked_for():
        return None
    if not running and is_left_alone():
        raise ValueError(NOT_CONNECTED)
    from accelerate import PartialState  # type: ignore[import-untyped]

    # Without `cpu`, accelerate connects no processes on a machine without accelerators.
    state = PartialState() if torch.accelerator.is_available() else PartialState(cpu=True)
    if not running and state.num_processes == 1:
        raise ValueError(NOT_CONNECTED)
    return state if state.num_processes > 1 else None


def choose_device(name: str = "auto") -> "torch.device":
    """Return the device to work on; `auto` is this process's accelerator, or the CPU without one.

    Raises:
        ValueError: there is no such device here.
    """
    import torch

    if name == "auto":
        state = process_state()
        if state is not None:
            return state.device
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # which of them depends on how torch was built
        raise ValueError(f"no device {name!r} here: choose auto or cpu ({error})") from None
    return device


@contextmanager
def first_before_others() -> Iterator[None]:
    """Have one process do what others find done, such as files that are made."""
    state = process_state()
    if state is None:
        yield
        return
    with state.main_process_first():
        yield


def split(items: Sequence[Item], state: Any | None) -> list[Item]:
    """Return this process's share: every n-th item, so that sorted work is spread evenly."""
    return list(items if state is None else items[state.process_index :: state.num_processes])


def gather(items: list[Item], state: Any | None) -> list[Item]:
    """Return the items of all processes, in every process."""
    if state is None:
        return items
    from accelerate.utils import gather_object  # type: ignore[import-untyped]

    return list(gather_object(items))
