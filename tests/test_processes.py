import os
import subprocess
import sys

import pytest
import torch

from hf_alpha.processes import choose_device, own_share, process_state

SCRIPT = "from hf_alpha.processes import process_state; process_state()"


@pytest.mark.slow
def test_processes_that_do_not_know_of_each_other(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2",
               "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
               str(script)]  # fmt: skip
    package = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": package}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode
    assert "several processes were asked for, but this one does not know" in done.stderr
    assert "UserWarning: several processes" in done.stderr


def test_more_processes_than_there_are(monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "ACCELERATE_USE_CPU", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    assert process_state() is None
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert process_state() is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in (None, "RANK"):
        if name is not None:
            monkeypatch.setenv(name, "0")
        with pytest.raises(ValueError, match="torchrun"):
            process_state()


@pytest.mark.parametrize(
    ("rank", "count", "share"),
    [
        ("", "", (1, 1)),
        ("0", "2", (1, 2)),
        ("1", "2", (2, 2)),
        ("1", "1", (1, 1)),
        ("1", "", (1, 1)),
    ],
)
def test_one_process_has_all_whatever_its_rank(monkeypatch, rank, count, share):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", count)
    assert own_share() == share


def test_devices():
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    assert choose_device() == (accelerator or torch.device("cpu"))
    assert choose_device("cpu") == torch.device("cpu")
    for name in ("abacus", "cuda:99", "xla"):
        with pytest.raises(ValueError, match=f"no device '{name}' here"):
            choose_device(name)
