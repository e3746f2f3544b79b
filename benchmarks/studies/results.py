"""What was measured: a result of the store for each table and size, written after each row."""

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
from hf_alpha.processes import choose_device

from . import store

PACKAGES = ("hf_alpha", "torch", "transformers")
Entry = dict[str, Any]


@dataclass
class Results:
    """The results of a table at a size.

    Attributes:
        folder: the store.
        table, size: their names.
        rows: row -> seed -> what is known of it: `settings`, `measured` (numbers), and how it was
            made.
    """

    folder: Path
    table: str
    size: str
    rows: dict[str, dict[int, Entry]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, table: str, size: str) -> "Results":
        """Read the result of a table, if there is one."""
        results = cls(folder, table, size)
        if results.name in store.commands(folder):
            data = store.read(results.name, folder)["data"]
            results.rows = {
                row: {int(seed): _whole(entry, data["settings"]) for seed, entry in seeds.items()}
                for row, seeds in data["rows"].items()
            }
        return results

    @property
    def name(self) -> str:
        """What the store calls it."""
        return f"studies/{self.table}-{self.size}"

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
                f"{self.name} has row {row!r}, seed {seed}, measured with other settings: "
                f"{listing}; name another --out and --runs, or remove that row from {self.folder}, "
                f"and from the folder of runs its model ({self.size}/models/NAME-{seed}) and that "
                f"model's reports ({self.size}/reports/*/NAME-{seed})"
            )
        return True

    def put(self, row: str, seed: int, entry: Entry) -> None:
        """Add a row of a seed, and write it in one step; what others wrote stays."""
        self.rows = Results.of(self.folder, self.table, self.size).rows
        self.rows.setdefault(row, {})[seed] = _as_json(entry)
        entries = [entry for seeds in self.rows.values() for entry in seeds.values()]
        first, *others = (entry["settings"] for entry in entries)
        shared = {k: v for k, v in first.items() if all(k in x and x[k] == v for x in others)}
        rows = {
            row: {str(seed): _apart(entry, shared) for seed, entry in sorted(seeds.items())}
            for row, seeds in sorted(self.rows.items())
        }
        command = f"python -m benchmarks.studies {self.table} --size {self.size}"
        store.write(self.name, command, {"settings": shared, "rows": rows}, folder=self.folder)

    def measured(self, row: str) -> list[dict[str, Any]]:
        """What was measured of a row, seed by seed."""
        return [entry["measured"] for _, entry in sorted(self.rows.get(row, {}).items())]

    def values(self, row: str, key: str) -> list[float]:
        """A number of a row, seed by seed, where it was measured."""
        return [
            row_values[key] for row_values in self.measured(row) if row_values.get(key) is not None
        ]


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


def _apart(entry: Entry, shared: Mapping[str, Any]) -> Entry:
    """An entry without the settings that all have."""
    own = {key: value for key, value in entry["settings"].items() if key not in shared}
    return {**entry, "settings": own}


def _whole(entry: Entry, shared: Mapping[str, Any]) -> Entry:
    return {**entry, "settings": {**shared, **entry["settings"]}}


__all__ = ["Entry", "Results", "conditions"]
