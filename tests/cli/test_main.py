"""The command line as a whole: help, completion, versions, endings."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import own_process
import pytest
import typer.main
from commands import hf_alpha, study

import hf_alpha as hf_alpha_package
from hf_alpha.cli import OLD_NAMES, app

COMMANDS = {
    name: command
    for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    if not command.hidden
}


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_everything_within_80_columns(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    done = hf_alpha(*([command] if command else []), "--help")
    assert done.code == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", done.out)
    assert max(map(len, text.splitlines())) <= 80
    if command is None:
        words = set(COMMANDS)
        assert words == {
            *("generate-data", "train", "convert", "evaluate", "solve", "release", "push"),
            *("perturb", "quickstart", "env", "info", "compare", "convert-folnet"),
            *("transduce", "convert-geometric"),
        }
    else:
        words = {max(parameter.opts, key=len) for parameter in COMMANDS[command].params}
        assert all(getattr(parameter, "help", "") for parameter in COMMANDS[command].params)
    assert all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)


@pytest.mark.parametrize("name", OLD_NAMES)
def test_old_names_say_the_new_one_whatever_follows(name):
    assert name not in COMMANDS and name not in hf_alpha("--help").out
    for rest in ([], ["--help"], ["ltl", "--only", "x", "--steps=3"]):
        said = f"error: `hf-alpha {name}` is no command any more: write {OLD_NAMES[name]}"
        assert hf_alpha(name, *rest).error == said
    command, _ = OLD_NAMES[name].split(" (")
    helped = study(command.removeprefix("python -m benchmarks."), "--help")
    assert helped.code == 0 and f"Usage: {command} [OPTIONS]" in helped.out


def test_short_option_for_help_and_the_version():
    assert hf_alpha("-h").out == hf_alpha("--help").out
    assert hf_alpha("solve", "-h").out == hf_alpha("solve", "--help").out
    assert hf_alpha("--version").out == f"hf_alpha {metadata.version('hf_alpha')}\n"


def test_commands_print_what_terminals_do_not_obey(tmp_path):
    folder = tmp_path / "\x1b]0;title\x07"
    folder.mkdir()
    assert r"/\x1b]0;title\x07 is neither a model" in hf_alpha("push", folder, "me/it").error
    for file in Path(hf_alpha_package.__file__).parent.joinpath("cli").glob("*.py"):
        assert ("typer.echo" in file.read_text()) == (file.name == "common.py"), "by `say` alone"


def test_python_m_runs_the_command_line():
    command = [sys.executable, "-m", "hf_alpha", "solve", "a & "]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stdout == "a & \n" and "error: " in done.stderr


def test_bash_completes_commands_and_options():
    """The script that --show-completion prints, in a bash that it is read by."""
    script = """
        eval "$(hf-alpha --show-completion)"
        last() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hf_alpha_completion hf-alpha; }
        last hf-alpha qui; echo "${COMPREPLY[@]}"
        last hf-alpha evaluate --tr; echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    options = "--trained-symbols --trained-size --trust-remote-code"
    assert done.stdout == f"quickstart\n{options}\n", done.stderr


MISTYPED = """
import sys, hf_alpha.cli
for line in sys.stdin.read().splitlines():
    sys.argv[1:] = line.split()
    try:
        hf_alpha.cli.main()
    except SystemExit as stop:
        print(stop.code, "torch" in sys.modules)
"""


def test_a_mistyped_folder_is_told_before_torch_is_loaded(tmp_path):
    commands = ["train no", "push no a/b", "info no", "evaluate no", "convert no x",
                "solve --model no a", "solve --model runs/no a"]  # fmt: skip
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "config.json").touch()  # so runs/no is no name on the Hub
    done = subprocess.run(
        [sys.executable, "-c", MISTYPED], input="\n".join(commands), capture_output=True,
        text=True, timeout=120, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["2 False"] * len(commands), done.stderr


def test_the_installed_command_ends_with_these_codes(tmp_path):
    done = own_process.run("-m", "hf_alpha.cli", "solve", "--model", tmp_path / "absent", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: no checkpoint folder '{tmp_path / 'absent'}'\n"
