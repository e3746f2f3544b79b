"""Locks end with their process; what is half-written is gone."""

import os
import signal
import subprocess
import sys

import pytest

from hf_alpha.io.folders import (
    lock_folder,
    locked,
    new_folder,
    remove_leftovers,
    replacing,
    scratch_folder,
)

HOLD = """
import sys, time
from pathlib import Path
from hf_alpha.io.folders import locked
with locked(Path(sys.argv[1])) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def holder(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip() == "True"


def test_a_lock_keeps_others_out_and_ends_with_its_process(tmp_path):
    folder = tmp_path / "data"
    process, mine = holder(folder)
    assert mine
    with locked(folder) as got:
        assert not got
    process.send_signal(signal.SIGKILL)
    process.wait()
    with locked(folder) as got:
        assert got


def test_a_child_that_outlives_a_killed_run_keeps_nobody_out(tmp_path):
    script = """if True:
        import os, sys, time
        from pathlib import Path
        from hf_alpha.io.folders import locked
        with locked(Path(sys.argv[1])):
            if not os.fork():  # here the child has left the lock
                print(os.getpid(), flush=True)
            time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "data")], stdout=subprocess.PIPE, text=True
    )
    child = int(process.stdout.readline())
    try:
        with locked(tmp_path / "data") as got:
            assert not got
        process.kill()
        process.wait()
        with locked(tmp_path / "data") as got:
            assert got
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_one_process_makes_a_folder(tmp_path):
    with scratch_folder(tmp_path / "out"):
        with pytest.raises(ValueError, match="another process"), new_folder(tmp_path / "out"):
            pass
        with new_folder(tmp_path / "outer") as folder, lock_folder(folder):
            pass
    with new_folder(tmp_path / "out") as folder:
        (folder / "file").write_text("")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "outer"]


def test_a_lock_leaves_nothing(tmp_path):
    with locked(tmp_path / "new"):
        pass
    with locked(tmp_path / "some" / "new"):
        pass
    assert not (tmp_path / "some").exists()
    with pytest.raises(RuntimeError), locked(tmp_path / "new"):
        raise RuntimeError
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FileExistsError, match="is a file: name a folder"),
        locked(tmp_path / "file"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_files_and_folders_are_whole_or_not_there(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(RuntimeError), replacing(tmp_path / "file") as file:
        file.write_text("half")
        raise RuntimeError
    with pytest.raises(RuntimeError), new_folder(tmp_path / "a" / "folder") as folder:
        (folder / "half").write_text("half")
        raise RuntimeError
    assert (tmp_path / "file").read_text() == "old"
    assert not (tmp_path / "a").exists(), "made for nothing"
    with replacing(tmp_path / "file") as file, new_folder(tmp_path / "folder") as folder:
        file.write_text("new")
        (folder / "whole").write_text("whole")
    assert (tmp_path / "file").read_text() == "new"
    for name in ("file", "folder"):
        with pytest.raises(FileExistsError, match=f"{name} .* exists"), new_folder(tmp_path / name):
            pass
    assert (tmp_path / "folder" / "whole").read_text() == "whole"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def test_leftovers_are_removed_unless_somebody_writes_them(tmp_path):
    for name in ("out", "outer"):
        (tmp_path / f".{name}.{'a' * 32}").mkdir()
        (tmp_path / f".{name}.{'b' * 32}").write_text("half")
    (tmp_path / ".out.txt").write_text("mine")
    busy = tmp_path / f".out.{'c' * 32}"
    process, mine = holder(busy)
    assert mine
    remove_leftovers(tmp_path, "out")
    assert sorted(path.name[:6] for path in tmp_path.iterdir()) == [".out.c", ".out.t"] + 2 * [
        ".outer"
    ]
    process.kill()
    process.wait()
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".out.txt"]
