"""The scripts of benchmarks/, imported and run as from there."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.append(str(FOLDER))  # as for a script that is started there
from studies import store  # noqa: E402


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept(name: str = "out") -> dict[str, Any]:
    """What `--out` put into a store in the current folder."""
    return store.read(name, Path.cwd())


def prints_and_stores(name: str, arguments: str, capsys: Any) -> None:
    """Whether a script prints a table and stores it, in the current folder."""
    load(name).main([*arguments.split(), f"--out={Path.cwd() / 'out'}"])
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if line.startswith("| ")]
    found = kept()
    assert len(lines) >= 3 and all(line in found["text"] for line in lines)
    assert found["data"]
    assert not re.search(r"\bnan\b|[1-9]\d* disagreement", printed)
