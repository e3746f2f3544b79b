"""Distributed helpers: the device, the processes of a run, and how they share work."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from hf_alpha.environment import NOT_CONNECTED, is_left_alone, several_asked_for

Item = TypeVar("Item")


def process_state() -> Any | None:
    """Return accelerate's `PartialState` if this is one of several processes, else None.

    Raises:
        ValueError: several processes were asked for, but they are not there or do not know of each
            other.
    """
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


def choose_device(name: str = "auto") -> torch.device:
    """Return the device to work on; `auto` is this process's accelerator, or the CPU without one.

    Raises:
        ValueError: there is no such device here.
    """
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
