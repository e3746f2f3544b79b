"""What the benchmarks share: times of sides that take turns, ratios, tables, result files.

A ratio compares two times of one round, so that what slows the machine slows both; it is printed
as minimum / median / maximum over the rounds. With `--out NAME` a script writes what it printed and
all its times to benchmarks/results/NAME.md and .json, with the versions, the date and the command.
"""

import argparse
import datetime
import json
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("torch", "transformers", "spottl", "python-sat", "py-aiger-sat")


def in_turns(
    sides: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu"
) -> dict[str, list[float]]:
    """Seconds of each side in each round: A B C, C B A, ...; each side runs once before."""
    for step in sides.values():
        step()
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in list(sides) if number % 2 == 0 else list(reversed(sides)):
            seconds[side].append(timed(sides[side], device))
    return seconds


def timed(step: Callable[[], object], device: str = "cpu") -> float:
    """Seconds of one call, with what it started on a GPU."""
    synchronise(device)
    start = time.perf_counter()
    step()
    synchronise(device)
    return time.perf_counter() - start


def synchronise(device: str) -> None:
    """Wait for a GPU."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(device)


def ratios(one: Sequence[float], two: Sequence[float]) -> list[float]:
    """One side's times by another's, round by round."""
    return [a / b for a, b in zip(one, two, strict=True)]


def three(values: Sequence[float], digits: int = 2, unit: str = "") -> str:
    """Minimum, median and maximum."""
    found = (min(values), statistics.median(values), max(values))
    return " / ".join(f"{value:,.{digits}f}{unit}" for value in found)


def table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Cells as a Markdown table, the first column to the left."""
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, rule, *lines))


def conditions(device: str = "cpu") -> dict[str, str]:
    """Where and with what something was measured."""
    found = {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["machine"] = platform.machine()
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        found["threads"] = str(torch.get_num_threads())
        if device.startswith("cuda"):
            found["machine"] = torch.cuda.get_device_name(device)
    return found


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of a model, by default of the papers' LTL size, and of where it runs."""
    for name, size in {"d-model": 64, "layers": 8, "heads": 4, "ffn": 1024}.items():
        parser.add_argument(f"--{name}", type=int, default=size, help=f"({size})")
    parser.add_argument("--threads", type=int, help="CPU threads of torch")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add the option that `finish` reads."""
    parser.add_argument(
        "--out", metavar="NAME", help="write benchmarks/results/NAME.md and NAME.json"
    )


def finish(
    text: str, data: Any, out: str | None, argv: Sequence[str] | None = None, device: str = "cpu"
) -> None:
    """Print what was measured, and keep it where `out` says so.

    Args:
        text: for people, Markdown.
        data: all times and settings, as JSON takes them.
        out: name of the result, or a path without ending; None keeps nothing.
        argv: arguments of the script, where they are not those of the process.
    """
    print(text)
    if out is None:
        return
    where = conditions(device)
    script = Path(sys.argv[0]).name
    command = shlex.join(
        ["python", f"benchmarks/{script}", *(sys.argv[1:] if argv is None else argv)]
    )
    head = f"`{command}`\n\n{', '.join(f'{name} {value}' for name, value in where.items())}\n\n"
    path = RESULTS / out
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(head + text + "\n", encoding="utf-8")
    stored = json.dumps({"command": command, **where, "data": data}, indent=1)
    path.with_suffix(".json").write_text(stored + "\n", encoding="utf-8")
