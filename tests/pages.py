"""Runs the blocks of a page, as printed and in their order, as a reader of a checkout would.

They run in a folder that has the checkout's files, in one process for all Python of a page. What
a block prints is what the page shows behind it.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHECKOUT = ("benchmarks", "constraints.txt", "examples", "hf_alpha", "model_cards", "tests",
            "pyproject.toml", "tokenizer", "training")  # fmt: skip
"""What blocks read; they write beside it."""
SERVERS = {"hf-alpha serve": 8000, "transformers serve": 8001, "hf-alpha demo": 7860}
"""Beginning of a command that goes on until it is stopped -> the port that it listens at."""
DONE = ("pip install", "pip download", "python3 -m venv")
"""What is there already, as there is no package index."""
NAMED = re.compile(r"# (\S+\.ya?ml)\n")
SECONDS = re.compile(r"\d+\.\d{3} s\b")
DRIVER = """
import json, socket, subprocess, sys, time

def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0

names, servers = {"__name__": "__main__"}, []
try:
    for number, (kind, text, port) in enumerate(json.loads(sys.argv[1])):
        print(f"\\0{number}\\0", flush=True)
        if kind == "python":
            exec(compile(text, f"block {number}", "exec"), names)
            sys.stdout.flush()
        elif kind == "server":
            servers.append(subprocess.Popen(["bash", "-c", f"exec {text}"]))
            while not listens(port):
                if servers[-1].poll() is not None:
                    sys.exit(f"it ended: {text}")
                time.sleep(0.2)
        else:
            subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], check=True)
finally:
    for server in servers:
        server.terminate()
        server.wait()
"""


class Block(NamedTuple):
    """A block of code, the text that the page shows behind it, and where it is."""

    language: str
    code: str
    said: str | None

    @property
    def first(self) -> str:
        """Its first line, which names it."""
        return self.code.partition("\n")[0].strip()


@dataclass(frozen=True)
class Page:
    """How a page is run.

    Attributes:
        not_run: the beginning of a line of commands, or of a block of another kind -> why not.
        files: the first line of a block -> the file that the page says it is.
        before: the first line of a block -> Python that makes what a reader has by then.
        needs: of packages, and makes of the Hub's models: small ones in folders of their names.
        loose: first lines of blocks whose output depends on weights that are not here.
    """

    not_run: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    needs: Callable[[Path], None] = lambda _: None
    loose: tuple[str, ...] = ()


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page that are in a language, each with what it is said to print."""
    found = [(one.start(), one.end(), *one.groups()) for one in BLOCK.finditer(text)]
    blocks = []
    for index, (_, end, language, code) in enumerate(found):
        if language in ("", "text"):
            continue
        said = None
        if index + 1 < len(found):
            start, _, following, shown = found[index + 1]
            said = shown if following in ("", "text") and not text[end:start].strip() else None
        blocks.append(Block(language, code, said))
    return blocks


def commands_of(code: str) -> list[str]:
    """The commands of a block, each with its lines that go on, and documents in it."""
    commands: list[str] = []
    end = quote = None
    for line in code.splitlines():
        goes_on = bool(commands) and (commands[-1].endswith("\\") or end or quote)
        commands = [*commands[:-1], f"{commands[-1]}\n{line}"] if goes_on else [*commands, line]
        if end is not None:
            end = None if line == end else end
        elif match := re.search(r"<< '?(\w+)'?", line):
            end = match[1]
        quote = end is None and commands[-1].count('"') % 2 == 1
    return [one for one in commands if one.strip()]


def steps_of(page: str, plan: Page) -> tuple[list[tuple[str, str, int]], list[tuple[int, Block]]]:
    """What is done in turn, and which of these steps end a block that says what it prints."""
    text = (ROOT / page).read_text(encoding="utf-8")
    steps: list[tuple[str, str, int]] = []
    says: list[tuple[int, Block]] = []
    left = dict(plan.not_run)
    for block in blocks_of(text):
        name = plan.files.get(block.first) or (NAMED.match(block.code) or ["", ""])[1]
        if prelude := plan.before.get(block.first):
            steps.append(("python", prelude, 0))
        if reason := next((key for key in plan.not_run if block.code.startswith(key)), None):
            left.pop(reason, None)
            if block.language != "bash":
                continue
        begin = len(steps)
        if name:
            write = f"from pathlib import Path\nPath({name!r}).write_text({block.code!r})"
            steps.append(("python", write, 0))
        elif block.language == "python":
            steps.append(("python", block.code, 0))
        elif block.language == "bash":
            for command in commands_of(block.code):
                rest = [part for part in command.split(" && ") if not part.startswith(DONE)]
                command = " && ".join(rest)
                if key := next((key for key in plan.not_run if command.startswith(key)), None):
                    left.pop(key, None)
                    continue
                port = next((p for key, p in SERVERS.items() if command.startswith(key)), 0)
                if command:
                    steps.append(("server" if port else "bash", command, port))
        else:
            assert block.first in plan.not_run, f"{page}: what becomes of {block.first!r}?"
        if block.said is not None and len(steps) > begin and block.first not in plan.loose:
            says.append((begin, block))
    assert not left, f"{page} has no such blocks: {left}"
    return steps, says


def run_page(page: str, plan: Page, folder: Path) -> None:
    """Run a page in a folder, and compare what it prints with what it shows."""
    steps, says = steps_of(page, plan)
    if not steps:
        return
    for _, _, port in steps:
        with socket.socket() as one:
            if port and one.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port}, which the page names, is taken on this machine")
    for name in CHECKOUT:
        (folder / name).symlink_to(ROOT / name)
    plan.needs(folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "0"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(steps)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=3600,
    )  # fmt: skip
    parts = re.split(r"\0(\d+)\0\n", done.stdout)[1:]
    printed = {int(number): text for number, text in zip(parts[::2], parts[1::2], strict=True)}
    reached = steps[max(printed, default=0)][1]
    assert done.returncode == 0, (
        f"{page}, at\n{reached}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
    )
    for begin, block in says:
        ends = [number for number in printed if number >= begin]
        text = "".join(printed[number] for number in ends[: len(commands_of(block.code))])
        if block.language != "bash":
            text = printed[begin]
        assert SECONDS.sub("s", text).endswith(SECONDS.sub("s", block.said or "")), (page, text)
