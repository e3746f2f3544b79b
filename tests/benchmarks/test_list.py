"""`python benchmarks`: all benchmarks, and the commands of their results."""

import re
import subprocess

import pytest
from scripts import FOLDER, load

DOOR = load("__main__")
RESULTS = {name: line for name, line in DOOR.recorded().items() if line.startswith("python b")}
"""Those of scripts; studies and evaluations are listed as they are called."""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    DOOR.main(arguments)
    return capsys.readouterr().out


def test_every_benchmark_and_every_result_is_listed_once(capsys):
    kept, settled = printed(capsys), printed(capsys, "archive")
    for name in DOOR.scripts(FOLDER):
        assert len(re.findall(rf"^  {name} ", kept, re.MULTILINE)) == 1
    groups = re.findall(r"Writes ([^.]+)", " ".join(kept.split()))
    written = [name for names in groups for name in names.split(", ")]
    written += re.findall(r"^# (\S+)\n# in git", settled, re.MULTILINE)
    assert sorted(set(written) & RESULTS.keys()) == sorted(RESULTS)
    named = {name for name in DOOR.recorded() if re.search(rf"{name}[,.\n]", kept)}
    assert named >= {name for name in DOOR.recorded() if "/" in name}
    assert max(map(written.count, RESULTS)) == 1


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_is_headed_by_the_command_that_wrote_it(result, capsys):
    """A script that moves takes its commands along; of one that goes, the last commit is told."""
    command = RESULTS[result]
    is_there, commit = (FOLDER.parent / command.split()[1]).is_file(), DOOR.last_commit(command)
    assert is_there is (commit is None)
    where = f"# in git: git worktree add ../{commit} {commit}\n" if commit else ""
    assert f"# {result}\n{where}{command}\n" in printed(capsys, result)
    assert f"# {result}\n{where}{command}\n" in printed(capsys, DOOR.script_of(command))
    assert printed(capsys, "show", result).startswith(f"`{command}`\n")


@pytest.mark.parametrize("commit", DOOR.GONE)
def test_git_has_the_scripts_that_are_gone(commit):
    git = ["git", "-C", str(FOLDER)]
    if subprocess.run([*git, "cat-file", "-e", commit], capture_output=True).returncode:
        pytest.skip("this checkout has no history")
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", commit, "."],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert {f"{name}.py" for name in DOOR.GONE[commit]} <= {*listed}
    written = {DOOR.script_of(line) for line in RESULTS.values()}
    assert {*DOOR.GONE[commit]} <= written, "a script without a result is named by no one"


def test_a_new_script_is_listed_before_it_is_sorted(capsys, monkeypatch):
    monkeypatch.delitem(DOOR.KEPT["Accuracy"], "beyond")
    sorted_ones, _, new = printed(capsys).partition("Not sorted yet")
    assert "  beyond " in new and "  beyond " not in sorted_ones


def test_what_is_neither_a_benchmark_nor_a_result_is_refused():
    with pytest.raises(SystemExit, match="goal is neither"):
        DOOR.main(["goal"])
    with pytest.raises(SystemExit, match="no result 'goal'"):
        DOOR.main(["show", "goal"])
