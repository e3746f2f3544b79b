"""What the benchmarks share: times of sides that take turns, ratios, tables, kept results.

A ratio compares two times of one round, so that what slows the machine slows both; it is printed
as minimum / median / maximum over the rounds. With `--out NAME` a script puts what it printed and
all its times into the store (benchmarks/results), with the command, the date, the versions, the
processor, the machine's load and, where torch is at work, the speed of its two matrix libraries.
"""

import argparse
import datetime
import gzip
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from studies import store

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
PACKAGES = (
    "torch",
    "transformers",
    "spottl",
    "python-sat",
    "py-aiger-sat",
    "pyahocorasick",
    "pynini",
    "flashtext2",
)
FLAGS = re.compile("avx|fma|amx|asimd|sve")  # of a processor: what float32 products can use
PRODUCTS = ((4096, 64, 1024), (4096, 1024, 64), (4096, 64, 256), (4096, 64, 64))
"""Rows, width and new width of linear layers: those of models with d 64, FFN 1024 or 256."""
LOAD_BEFORE = os.getloadavg()
CALL = """
import importlib, json, sys
folder, script, name, args = sys.argv[1:]
sys.path.insert(0, folder)
print(json.dumps(getattr(importlib.import_module(script), name)(*json.loads(args))))
"""
"""What a fresh process runs."""


def in_turns(
    sides: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu"
) -> dict[str, list[float]]:
    """Seconds of each side in each round: A B C, C B A, ...; each side runs once before."""
    return clocked_in_turns(sides, rounds, device)[0]


def clocked_in_turns(
    sides: Mapping[str, Callable[[], object]], rounds: int, device: str = "cpu"
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds as of `in_turns`, and the processor's seconds, of all threads of this process."""
    settle_memory()
    for step in sides.values():
        step()
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    processor: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in list(sides) if number % 2 == 0 else list(reversed(sides)):
            start = time.process_time()
            seconds[side].append(timed(sides[side], device))
            processor[side].append(time.process_time() - start)
    return seconds, processor


def settle_memory() -> None:
    """Have the C library keep what a step frees for the next one, as where data has been read.

    Before anything large was freed, a process gives it back to the system after each step: up to a
    tenth of the time of a training step, by chance of one side more than of another.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].empty(8_000_000)


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
    numbers = (min(values), statistics.median(values), max(values))
    return " / ".join(f"{value:,.{digits}f}{unit}" for value in numbers)


def mean_and_spread(values: Sequence[float]) -> str:
    """The mean, and half the distance between the largest and the smallest."""
    spread = f" ± {(max(values) - min(values)) / 2:.1f}" if len(values) > 1 else ""
    return f"{sum(values) / len(values):.1f}{spread}"


def share_and_spread(shares: Sequence[float]) -> str:
    """The same of shares, written in per cent."""
    text = f"{100 * statistics.fmean(shares):.1f}"
    return text if len(shares) == 1 else f"{text} ± {50 * (max(shares) - min(shares)):.1f}"


def table(columns: Sequence[str], lines: Sequence[Sequence[str]], words: Sequence[str] = ()) -> str:
    """Cells as a Markdown table, the first column and those of words to the left."""
    rule = ["---" if name in (columns[0], *words) else "---:" for name in columns]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, rule, *lines))


def held(quantity: str = "VmRSS") -> float:
    """Megabytes that this process holds now, or with `VmHWM` the most that it ever held."""
    # Not getrusage: its maximum begins with what the process held that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(rf"^{quantity}:\s*(\d+) kB$", status, re.MULTILINE)[0]) * 1024 / 1e6


def in_own_process(function: Callable[..., Any], *args: Any) -> Any:
    """What a function of a script returns in a fresh process; all of it is plain data, as JSON."""
    script = Path(function.__code__.co_filename)
    told = [str(script.parent), script.stem, function.__name__, json.dumps(args)]
    command = [sys.executable, "-c", CALL, *told]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{' '.join(told)} failed:\n{process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def conditions(device: str = "cpu") -> dict[str, Any]:
    """Where and with what something was measured; the load is the average of the last minute."""
    machine: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            machine[package] = version(package)
        except PackageNotFoundError:
            continue
    machine |= processor()
    machine["load before"], machine["load after"] = LOAD_BEFORE[0], os.getloadavg()[0]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        machine["threads"] = torch.get_num_threads()
        machine["GFLOP/s"] = library_speeds()
        if device.startswith("cuda"):
            machine["gpu"] = torch.cuda.get_device_name(device)
    return machine


def processor() -> dict[str, Any]:
    """The CPU as /proc/cpuinfo has it: its name and numbers, the flags that matter, its cores."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", text, re.MULTILINE))
    numbers = [f"{name} {fields[name]}" for name in ("cpu family", "model") if name in fields]
    flags = fields.get("flags", fields.get("Features", "")).split()
    return {
        "processor": ", ".join([fields.get("model name", platform.machine()), *numbers]),
        "flags": " ".join(sorted(flag for flag in flags if FLAGS.match(flag))),
        "cores": len(os.sched_getaffinity(0)),
    }


@cache
def library_speeds(repeats: int = 10) -> dict[str, dict[str, float]]:
    """GFLOP/s of linear layers by oneDNN, as the package calls it, and by `F.linear`.

    Of each, the best of so many calls that take turns: what the library reaches, not what the load
    leaves of it.
    """
    import torch
    from torch.nn import functional as F

    from hf_alpha.modeling import cpu

    libraries: dict[str, Callable[..., object]] = {"F.linear": F.linear}
    if cpu.has_onednn():
        libraries = {"oneDNN": cpu.multiply, **libraries}
    speeds: dict[str, dict[str, float]] = {}
    for rows, width, new in PRODUCTS:
        factors = torch.randn(rows, width), torch.randn(new, width), torch.randn(new)
        with torch.no_grad():
            seconds = in_turns(
                {name: lambda f=f, x=factors: f(*x) for name, f in libraries.items()}, repeats
            )
        flops = 2 * rows * width * new
        speeds[f"{rows} x {width} x {new}"] = {
            name: round(flops / min(times) / 1e9, 1) for name, times in seconds.items()
        }
    return speeds


def describe(facts: Mapping[str, Any]) -> str:
    """What `conditions` found, as lines of Markdown; nothing where it was not kept."""
    machine = ("processor", "flags", "cores", "threads", "gpu", "load before", "load after")
    speeds = facts.get("GFLOP/s", {})
    lines = [
        [f"{name} {value}" for name, value in facts.items() if name not in (*machine, "GFLOP/s")],
        [f"{name} {facts[name]}" for name in machine if name in facts],
        [
            f"{product}: " + " / ".join(f"{name} {speed:g}" for name, speed in sides.items())
            for product, sides in speeds.items()
        ],
    ]
    versions, machine_line, speed_line = (", ".join(line) for line in lines)
    if not machine_line:
        return versions
    if speed_line:
        machine_line += f"\n\nGFLOP/s of linear layers: {speed_line}"
    return f"{versions}\n\n{machine_line}"


def clear_caches() -> None:
    """Empty the caches of all functions of the package, as in a process that has just started."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "hf_alpha":
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def lines_of(file: Path) -> list[Any]:
    """The rows of a compressed file of JSON lines."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with what a script says of itself, and the option that `finish` reads."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=formatter)
    parser.add_argument(
        "--out", metavar="NAME", help="keep the result under this name in benchmarks/results"
    )
    return parser


def run(main: Callable[[], None]) -> None:
    """Run a script: a file or folder that is not there is said in one line."""
    try:
        main()
    except OSError as error:
        raise SystemExit(f"error: {error}") from error


def finish(
    text: str, data: Any, out: str | None, argv: Sequence[str] | None = None, device: str = "cpu"
) -> None:
    """Print what was measured, and keep it where `out` says so.

    Args:
        text: for people, Markdown.
        data: all times and settings, as JSON takes them.
        out: name of the result, in another store behind a path to it; None keeps nothing.
        argv: arguments of the script, where they are not those of the process.
    """
    print(text)
    keep(text, data, out, argv, device)


def keep(
    text: str, data: Any, out: str | None, argv: Sequence[str] | None = None, device: str = "cpu"
) -> None:
    """Keep what was measured, without printing it."""
    if out is None:
        return
    machine = conditions(device)
    script = os.path.relpath(Path(sys.argv[0]).resolve(), ROOT)
    command = shlex.join(["python", script, *(sys.argv[1:] if argv is None else argv)])
    folder, name = place(out)
    store.write(name, command, data, text, machine, folder)


def place(out: str) -> tuple[Path, str]:
    """The store and the name of a result that `--out` asks for."""
    path = store.RESULTS / out
    return path.parent, path.name


def kept(out: str) -> Any:
    """The data of an earlier result; None where there is none."""
    folder, name = place(out)
    return store.read(name, folder)["data"] if name in store.commands(folder) else None


def picture(out: str) -> Path:
    """The file of a result's picture: in docs/pictures, or beside another store."""
    folder, name = place(out)
    return (PICTURES if folder == store.RESULTS else folder) / f"{name}.png"
