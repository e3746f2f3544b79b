"""The folder of a dataset: made by chunks, which lie there until it is finished."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from huggingface_hub import DatasetCard, DatasetCardData

from hf_alpha.data.files import PARTS, SETTINGS
from hf_alpha.data.keys import SPLITS, split_of
from hf_alpha.io.folders import remove_leftovers, temporary_name, write_text
from hf_alpha.io.records import check_settings, read_json
from hf_alpha.tasks import DrawnTask

from .chunk import Chunk, Make, Maker, MissingChunks, try_one, write_table

TEMPLATE_FILE = Path(__file__).with_name("dataset_card.md.jinja")


def make_dataset(
    folder: Path,
    settings: dict[str, Any],
    first: Sequence[Chunk],
    draw: Callable[[Make], pa.Table],
    make: Maker,
    split: str | None = None,
) -> dict[str, int]:
    """Make a dataset, unless it is there; return the number of rows of each split.

    Where other shards have not made theirs, return the numbers of parts that are `made` here, and
    `missing`.

    Args:
        first: the first chunks that are needed.
        draw: returns the rows, by a function that makes chunks.
        make: into `PARTS` of the folder.
        split: the only one; None for several.
    """
    try:
        if counts := _finished(folder, settings):
            return counts
        _start(folder, settings, first)
        return _finish(folder, first[0].task, settings, draw(make), split)
    except MissingChunks:
        return {"made": make.num_made, "missing": make.num_missing}
    except FileNotFoundError:  # another process finished, and removed the parts
        if counts := _finished(folder, settings):
            return counts
        raise


def _finished(folder: Path, settings: dict[str, Any]) -> dict[str, int] | None:
    """Return the number of rows of each split of a finished dataset; None for any other."""
    if not (folder / SETTINGS).exists():
        return None
    record = read_json(folder / SETTINGS, "settings", "rows")
    check_settings(folder, record["settings"], settings)
    _clean(folder)
    return record["rows"]


def _start(folder: Path, settings: dict[str, Any], first: Sequence[Chunk]) -> None:
    """Record the settings, unless another process has done so."""
    parts = folder / PARTS
    if folder.is_file():
        raise FileExistsError(f"{folder} is a file: name a folder")
    if not parts.exists():
        if folder.exists() and any(PARTS not in path.name for path in folder.iterdir()):
            raise ValueError(f"{folder} is not empty and holds no generated data: choose another")
        try_one(first)
        own = temporary_name(parts)
        own.mkdir(parents=True)
        write_text(own / SETTINGS, json.dumps(settings, indent=2) + "\n")
        with suppress(OSError):  # another process was first: what it wrote is not empty
            own.rename(parts)
    check_settings(folder, read_json(parts / SETTINGS), settings)


def _finish(
    folder: Path, task: DrawnTask, settings: dict[str, Any], table: pa.Table, only: str | None
) -> dict[str, int]:
    """Write one file a split, the card and the record; the parts are then removed.

    Keys decide about splits, unless there is `only` one. An empty split gets no file, because
    `datasets` cannot load one.
    """
    if not len(table):
        raise ValueError("there is no problem with an answer with these settings")
    keys = table["key"].to_pylist()
    rows: dict[str, list[int]] = {split: [] for split in SPLITS}
    # Keys are hashes: their order is a shuffle that depends on nothing else.
    for index in sorted(range(len(keys)), key=keys.__getitem__):
        rows[only or split_of(keys[index])].append(index)
    rows = {split: indices for split, indices in rows.items() if indices}
    (folder / "data").mkdir(exist_ok=True)
    for split, indices in rows.items():
        part = table.drop_columns("key").take(pa.array(indices, pa.int64()))
        write_table(part, folder / "data" / f"{split}-00000-of-00001.parquet")
    counts = {split: len(indices) for split, indices in rows.items()}
    _write_records(folder, task, settings, counts, table["num_symbols"].to_pylist())
    _clean(folder)
    return counts


def _clean(folder: Path) -> None:
    """Remove what a finished dataset needs no more, and what killed runs left.

    The parts lose their name first: other processes are then told that there are none.
    """
    with suppress(FileNotFoundError):
        (folder / PARTS).rename(temporary_name(folder / PARTS))
    for place in (folder, folder / "data"):
        remove_leftovers(place)


def _write_records(
    folder: Path,
    task: DrawnTask,
    settings: Mapping[str, Any],
    counts: Mapping[str, int],
    num_symbols: Iterable[int],
) -> None:
    """Write what says how a dataset was made: the README.md that the Hub shows, and a record.

    The README.md names no data files, `load_dataset` finds them: if it did, `datasets` 5.2 would
    take two local folders of the same name for the same data and serve the first from its cache.

    Args:
        counts: split -> number of rows.
    """
    card = DatasetCard.from_template(
        DatasetCardData(
            pretty_name=f"{task.name} ({settings['kind']})", tags=["hf_alpha", "logic"]
        ),
        template_path=str(TEMPLATE_FILE),
        task=task,
        settings=settings,
        counts=counts,
        num_symbols=sorted(Counter(num_symbols).items()),
        listed=[(name, f"`{json.dumps(value)}`") for name, value in settings.items()],
    )
    write_text(folder / "README.md", str(card))
    record = {"settings": settings, "rows": counts}
    write_text(folder / SETTINGS, json.dumps(record, indent=2) + "\n")
