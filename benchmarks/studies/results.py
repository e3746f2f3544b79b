"""What was measured: one JSON file for each table and size, written after each row."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hf_alpha.environment import processor
from hf_alpha.io.folders import write_text
from hf_alpha.io.records import read_json
from hf_alpha.processes import choose_device

PACKAGES = ("hf_alpha", "torch", "transformers")
Entry = dict[str, Any]


@dataclass
class Results:
    """The results of a table at a size.

    Attributes:
        path: the file.
        table, size: their names.
        rows: row -> seed -> what is known of it: `settings`, `measured` (numbers), and how it was
            made.
    """

    path: Path
    table: str
    size: str
    rows: dict[str, dict[int, Entry]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, table: str, size: str) -> "Results":
        """Read the file of a table, if there is one.

        Raises:
            ValueError: it is damaged.
        """
        path = folder / f"{table}-{size}.json"
        stored = read_json(path, "rows")["rows"] if path.is_file() else {}
        rows = {row: {int(s): e for s, e in seeds.items()} for row, seeds in stored.items()}
        return cls(path, table, size, rows)

    def has(self, row: str, seed: int, settings: Mapping[str, Any]) -> bool:
        """Whether a row of a seed has been measured with these settings.

        Raises:
            ValueError: it has been, with others; the message says what differs and what to do.
        """
        entry = self.rows.get(row, {}).get(seed)
        if entry is None:
            return False
        old, new = entry["settings"], _as_json(settings)
        differing = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        if differing:
            listing = ", ".join(f"{key}: {old.get(key)} -> {new.get(key)}" for key in differing)
            raise ValueError(
                f"{self.path} has row {row!r}, seed {seed}, measured with other settings: "
                f"{listing}; name another --out and --runs, or remove that row from the file, and "
                f"from the folder of runs its model ({self.size}/models/NAME-{seed}) and that "
                f"model's reports ({self.size}/reports/*/NAME-{seed})"
            )
        return True

    def put(self, row: str, seed: int, entry: Entry) -> None:
        """Add a row of a seed, and write the file in one step; what others wrote stays."""
        self.rows = Results.of(self.path.parent, self.table, self.size).rows
        self.rows.setdefault(row, {})[seed] = _as_json(entry)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, self._text())

    def measured(self, row: str) -> list[dict[str, Any]]:
        """What was measured of a row, seed by seed."""
        return [entry["measured"] for _, entry in sorted(self.rows.get(row, {}).items())]

    def values(self, row: str, key: str) -> list[float]:
        """A number of a row, seed by seed, where it was measured."""
        return [
            row_values[key] for row_values in self.measured(row) if row_values.get(key) is not None
        ]

    def _text(self) -> str:
        """A line for each row and seed, so that differences can be read."""
        rows = ",\n".join(
            f'  "{row}": {{\n'
            + ",\n".join(f'   "{seed}": {_line(entry)}' for seed, entry in sorted(seeds.items()))
            + "\n  }"
            for row, seeds in sorted(self.rows.items())
        )
        head = f' "table": "{self.table}",\n "size": "{self.size}",\n "rows": {{\n'
        return f"{{\n{head}{rows}\n }}\n}}\n"


def conditions() -> dict[str, Any]:
    """Where and with what something is measured; no names of machines or folders."""
    import torch

    device = choose_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return {
        "hardware": name,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "date": f"{date.today()}",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
    }


def _as_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


def _line(entry: Entry) -> str:
    return json.dumps(entry, ensure_ascii=False, allow_nan=False)


__all__ = ["Entry", "Results", "conditions"]
