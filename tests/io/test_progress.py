"""What training prints, in a terminal and elsewhere; runs are those of the debug recipe."""

import json
import os
import pty
import re
import termios
from pathlib import Path

import own_process
import pytest
from commands import hf_alpha

LINE = re.compile(r"step (\d+)/6  loss (\S+)  lr (\S+)  \S+ steps/s  eta \d\d:\d\d")
EVALUATION = re.compile(r"step (\d+)/6  eval_loss (\S+)")


COMMAND = ["train", "copying/debug", "training.eval_strategy=steps", "training.eval_steps=3",
           "training.save_strategy=no"]  # fmt: skip


def test_a_line_for_each_log_says_what_the_state_holds(tmp_path):
    done = hf_alpha(*COMMAND, f"training.output_dir={tmp_path}", "training.max_steps=6")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    steps, evaluations = ([row for row in history if name in row] for name in ("loss", "eval_loss"))
    found = [match.groups() for line in lines if (match := LINE.fullmatch(line))]
    assert [int(step) for step, *_ in found] == [row["step"] for row in steps] == [*range(1, 7)]
    for (_, loss, rate), row in zip(found, steps, strict=True):
        assert float(loss) == pytest.approx(row["loss"], rel=1e-3)
        assert float(rate) == pytest.approx(row["learning_rate"], rel=0.05)
    found = [match.groups() for line in lines if (match := EVALUATION.fullmatch(line))]
    assert [int(step) for step, _ in found] == [3, 6]
    for (_, loss), row in zip(found, evaluations, strict=True):
        assert float(loss) == pytest.approx(row["eval_loss"], rel=1e-3)
    assert re.fullmatch(r"trained 6 steps in \d\d:\d\d", lines[-2])
    assert len(lines) == 10 and "{" not in done.out


def test_a_resumed_run_counts_its_own_steps(tmp_path):
    places = [*COMMAND[:-1], "training.save_steps=3", f"training.output_dir={tmp_path}"]
    assert hf_alpha(*places, "training.max_steps=4").code == 0
    done = hf_alpha(*places, "training.max_steps=6", "--allow-changes")
    assert LINE.search(done.out)[1] == "5" and "trained 2 steps in " in done.out, done.out


@pytest.mark.slow
def test_a_terminal_shows_a_bar_unless_it_is_switched_off(tmp_path):
    kinds = ("bar", "lines")
    texts = in_a_terminal([
        [*COMMAND, f"training.output_dir={tmp_path / kind}", "training.max_steps=6",
         f"training.disable_tqdm={kind == 'lines'}"] for kind in kinds
    ])  # fmt: skip
    for kind, text in zip(kinds, texts, strict=True):
        bars = re.findall(r"(\d)/6 \[[^\]\n]*step.*loss=([\d.]+), lr=[\d.e-]+", text)
        losses = [match[2] for match in LINE.finditer(text)]
        state = json.loads((tmp_path / kind / "trainer_state.json").read_text())["log_history"]
        last = f"{[row['loss'] for row in state if 'loss' in row][-1]:#.4g}"
        assert [step for step, _ in EVALUATION.findall(text)] == ["3", "6"] and "{" not in text
        assert "trained 6 steps in " in text
        if kind == "bar":
            assert ("6", last) in bars and not losses and "eval_loss=" in text
        else:
            assert not bars and losses[-1] == last and len(losses) == 6


SEVERAL = """
import json, sys
from hf_alpha.cli import main

for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
    print("\\f", flush=True)
"""


def in_a_terminal(commands: list[list[str]]) -> list[str]:
    """What each `hf-alpha ARGUMENTS` shows in a terminal of 120 columns, bars over each other."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    process = own_process.Process(
        "-c", SEVERAL, json.dumps(commands), cwd=Path(__file__).parents[1], output=theirs
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    text = b"".join(parts).decode()
    assert process.wait(timeout=60) == 0, text
    return text.replace("\r\n", "\n").split("\f\n")[:-1]
