"""The processes that other tests start are like new ones, and end."""

import os
import signal
import time

import own_process
import pytest

PARENT = """
import os, sys, time
child = os.fork()
if child:
    print(child, flush=True)
    print("started", file=sys.stderr, flush=True)
time.sleep(600)
"""


def has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"  # nobody asked for its code yet
    except FileNotFoundError:
        return True


def wait_until_ended(*pids: int) -> None:
    deadline = time.monotonic() + 30
    while not all(map(has_ended, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("dropped", [False, True])
def test_one_that_takes_too_long_is_killed_with_its_child(dropped):
    """As is one that nobody waits for."""
    process = own_process.Process("-c", PARENT)
    deadline = time.monotonic() + 60
    while not process.stderr:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    pids = process.pid, int(process.stdout)
    assert not any(map(has_ended, pids))
    if dropped:
        del process
    else:
        with pytest.raises(TimeoutError, match=r"killed after 0\.1 s:\nstarted"):
            process.wait(timeout=0.1)
        assert process.returncode == -signal.SIGKILL
    wait_until_ended(*pids)


STATE = """
import random, sys
import numpy, torch
print(torch.get_num_threads(), hash("a"), [path for path in sys.path if "elsewhere" in path])
print(random.random())
print(numpy.random.rand())
"""


def state(*arguments: str, **env: str) -> list[str]:
    done = own_process.run(*arguments, "-c", STATE, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return [*done.stdout.splitlines()[0].split(), *done.stdout.splitlines()[1:]]


def test_threads_and_random_numbers_are_as_in_a_new_interpreter():
    one, three = state(OMP_NUM_THREADS="1"), state(OMP_NUM_THREADS="3")
    assert (one[0], three[0]) == ("1", "3")
    assert one[1] == three[1]  # both were forked
    assert one[3] != three[3] and one[4] != three[4]
