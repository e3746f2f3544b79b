"""Datasets by datatrove's executors: those of one process, byte for byte."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor
from file_trees import files_of

from hf_alpha.data.cluster import generate_by
from hf_alpha.data.generate import generate

SETTINGS = {"sizes": (4, 12), "num_symbols": 3, "few_symbols": 20}
SCRIPT = """
import sys
from datatrove.executor import LocalPipelineExecutor
from hf_alpha.data.cluster import generate_by
if __name__ == "__main__":
    generate_by(LocalPipelineExecutor, "propositional", sys.argv[1], 2000, tasks=4,
                options={"workers": 2}, sizes=(4, 12), num_symbols=3, few_symbols=20).run()
"""


def by_tasks(folder, workers=1):
    made = generate_by(
        LocalPipelineExecutor, "propositional", folder, 2000, tasks=4,
        options={"workers": workers}, **SETTINGS,
    )  # fmt: skip
    made.run()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "data"
    generate("propositional", folder, 2000, progress=False, **SETTINGS)
    return files_of(folder)


def test_tasks_make_the_dataset_of_one_process(whole, tmp_path):
    by_tasks(tmp_path / "data", workers=2)
    assert files_of(tmp_path / "data") == whole
    # A task that is not known to have ended is run again, and finds its work done.
    logs = tmp_path / "data-logs"
    (logs / "draw/completions/00002").unlink()
    (logs / "make/completions/00000").unlink()
    by_tasks(tmp_path / "data")
    assert files_of(tmp_path / "data") == whole
    assert sorted(path.name for path in (logs / "draw/completions").iterdir())[2] == "00002"


@pytest.mark.slow
def test_a_killed_worker_s_work_is_done_again(whole, tmp_path):
    folder = tmp_path / "data"
    (tmp_path / "run.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "run.py"), str(folder)]
    first = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    while not list(Path(folder, ".parts").glob("*.parquet")):
        assert first.poll() is None
        time.sleep(0.01)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert not (folder / "data").exists()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    assert files_of(folder) == whole


@pytest.mark.slow
def test_tasks_of_ray_make_the_dataset_of_one_process(whole, tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        generate_by(
            RayPipelineExecutor, "propositional", tmp_path / "data", 2000, tasks=4,
            options={"workers": 2}, **SETTINGS,
        ).run()  # fmt: skip
    finally:
        ray.shutdown()
    assert files_of(tmp_path / "data") == whole


def test_no_tasks_are_refused(tmp_path):
    with pytest.raises(ValueError, match="tasks must be at least 1, got 0"):
        generate_by(LocalPipelineExecutor, "propositional", tmp_path / "x", 10, tasks=0)
