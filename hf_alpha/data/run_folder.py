"""The folder in which a dataset is made: its records, its shards, and the files of its splits."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from hf_alpha.folders import locked, read_json, remove_leftovers, write_text

from .chunk import write_table
from .dataset_card import SETTINGS, write_records
from .keys import SPLITS, split_of
from .settings import GenerationSettings

PARTS = ".parts"


@contextmanager
def run_folder(
    folder: Path, settings: GenerationSettings, shard: tuple[int, int] | None
) -> Iterator["RunFolder"]:
    """Give a run its folder for itself; shards share it with each other.

    Raises:
        ValueError: another process is at work there, or what `RunFolder` says.
    """
    with locked(folder, shared=shard is not None) as is_locked:
        if not is_locked and not (folder / SETTINGS).exists():
            raise ValueError(
                f"another process makes data in {folder}: wait until it has ended, or choose "
                "another folder"
            )
        run = RunFolder(folder, settings, shard)
        if is_locked and run.counts is not None:
            run.clean()
        yield run


class RunFolder:
    """A folder in which a run with given settings is made, continued or found finished.

    Each shard has a record there from its start, which says whether it has ended.

    Attributes:
        parts: folder of the chunks.
        counts: split -> number of rows of a dataset that is finished; None for any other.

    Raises:
        ValueError: the folder holds something else, a run with other settings or in another number
            of shards, or shards that have not ended; or there is no such shard.
    """

    def __init__(
        self, folder: Path, settings: GenerationSettings, shard: tuple[int, int] | None = None
    ):
        _check_shard(shard)
        self.folder, self.parts = folder, folder / PARTS
        self._task, self._settings = settings.task, settings.record()
        self.counts: dict[str, int] | None = None
        finished, started = folder / SETTINGS, self.parts / SETTINGS
        if finished.exists():
            record = read_json(finished, "settings", "rows")
            self._compare(record["settings"])
            self.counts = record["rows"]
        elif started.exists():
            self._compare(read_json(started))
        elif folder.exists() and any(path.name != PARTS for path in folder.iterdir()):
            raise ValueError(f"{folder} is not empty and holds no generated data: choose another")
        else:
            settings.try_target()
            self.parts.mkdir(parents=True, exist_ok=True)
            write_text(started, json.dumps(self._settings, indent=2) + "\n")
        if self.counts is None:
            self._shard_record = self._start_shard(shard)

    def end_shard(self) -> dict[str, int]:
        """Record that the shard has ended."""
        assert self._shard_record is not None
        self._write_shard(self._shard_record, True)
        return {}

    def finish(self, table: pa.Table, only: str | None = None) -> dict[str, int]:
        """Write one file a split, the card and the record; the parts are then deleted.

        Keys decide about splits, unless there is `only` one. An empty split gets no file, because
        `datasets` cannot load one.

        Raises:
            ValueError: the table is empty.
        """
        if not len(table):
            raise ValueError("there is no problem with an answer with these settings")
        keys = table["key"].to_pylist()
        # Keys are hashes: their order is a shuffle that depends on nothing else.
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows: dict[str, list[int]] = {split: [] for split in SPLITS}
        for index in order:
            rows[only or split_of(keys[index])].append(index)
        rows = {split: indices for split, indices in rows.items() if indices}
        (self.folder / "data").mkdir(exist_ok=True)
        for split, indices in rows.items():
            part = table.drop_columns("key").take(pa.array(indices, pa.int64()))
            write_table(part, self.folder / "data" / f"{split}-00000-of-00001.parquet")
        counts = {split: len(indices) for split, indices in rows.items()}
        num_symbols = table["num_symbols"].to_pylist()
        write_records(self.folder, self._task, self._settings, counts, num_symbols)
        self.clean()
        return counts

    def clean(self) -> None:
        """Remove what a finished dataset needs no more, and what runs killed on the way left."""
        shutil.rmtree(self.parts, ignore_errors=True)
        for folder in (self.folder, self.folder / "data"):
            remove_leftovers(folder)

    def _start_shard(self, shard: tuple[int, int] | None) -> Path | None:
        """Start a shard's record; without a shard make sure that those there are have ended."""
        count, shard_ended = self._shards(shard)
        if shard is not None:
            record = self.parts / f"shard-{shard[0]}-of-{shard[1]}.json"
            self._write_shard(record, shard_ended.get(shard[0], False))
            return record
        if missing := [number for number in range(1, count + 1) if not shard_ended.get(number)]:
            raise ValueError(
                f"{len(missing)} of {count} shards of {self.folder} have not ended: "
                f"{', '.join(map(str, missing))}; wait for them, or start them (again), here "
                f"if you like, with --shard {missing[0]}/{count}"
            )
        return None

    def _shards(self, shard: tuple[int, int] | None) -> tuple[int, dict[int, bool]]:
        """Return how many shards there are, and which of those that have a record have ended."""
        shard_ended: dict[int, bool] = {}
        counts = {shard[1]} if shard else set()
        for path in self.parts.glob("shard-*.json"):
            number, count = map(int, re.findall(r"\d+", path.name))
            shard_record = read_json(path, "settings", "ended")
            self._compare(shard_record["settings"])
            counts.add(count)
            shard_ended[number] = shard_record["ended"]
        if len(counts) > 1:
            raise ValueError(
                f"{self.folder} is made in {min(counts)} shards, and in {max(counts)} too: choose "
                f"one number, or delete {self.parts}/shard-*.json (what is made stays)"
            )
        return max(counts, default=0), shard_ended

    def _write_shard(self, record: Path, shard_ended: bool) -> None:
        content = {"settings": self._settings, "ended": shard_ended}
        write_text(record, json.dumps(content, indent=2) + "\n")

    def _compare(self, recorded: dict[str, Any]) -> None:
        settings = self._settings
        names = [
            name for name in {**recorded, **settings} if recorded.get(name) != settings.get(name)
        ]
        if names:
            differences = ", ".join(
                f"{name} is {recorded.get(name)!r} there and {settings.get(name)!r} here"
                for name in names
            )
            raise ValueError(
                f"{self.folder} holds a run with other settings: {differences}; "
                "choose another folder, or delete that one"
            )


def _check_shard(shard: tuple[int, int] | None) -> None:
    if shard is not None and shard[1] < 1:
        raise ValueError(f"there are no {shard[1]} shards: write 1/4 to 4/4 for four")
    if shard is not None and not 1 <= shard[0] <= shard[1]:
        raise ValueError(
            f"there is no shard {shard[0]}/{shard[1]}: they are counted from 1/{shard[1]} to "
            f"{shard[1]}/{shard[1]}, with SLURM --array=1-{shard[1]}"
        )


__all__ = ["PARTS", "SETTINGS", "RunFolder", "run_folder"]
