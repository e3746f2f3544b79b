"""Measure the rows of a table that have not been measured yet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import file_digest
from pathlib import Path
from typing import Any

from transformers.utils import SAFE_WEIGHTS_NAME

from hf_alpha.io.folders import lock_folder

from .models import Model, training_of
from .results import Results, conditions
from .sizes import Size
from .table import Row, Table


def reproduce(
    table: Table,
    size: Size,
    seeds: Sequence[int],
    only: Sequence[str],
    runs: Path,
    out: Path,
    say: Callable[[str], object] = print,
) -> Results:
    """Train and measure what is missing of a table.

    After each row its numbers are in the file. A run that was killed goes on where it stopped.

    Args:
        table: which one.
        size: at which size.
        seeds: of weights and batches. A row without a model has one seed.
        only: names of rows, or patterns such as `ltl-*`; none for all rows.
        runs: folder of models, problems and reports.
        out: folder of the results.
        say: is told what is done.

    Raises:
        ValueError: no row has such a name, a row was measured with other settings, or another
            process measures this table.
    """
    results, folder = Results.of(out, table.name, size.name), runs / size.name
    todo = missing(table, size, seeds, only, results)
    with lock_folder(folder / "tables" / table.name):
        for number, (row, seed) in enumerate(todo, start=1):
            say(f"{table.name}, {number} of {len(todo)}: {row.name}, seed {seed}")
            results.put(row.name, seed, _measured(table, row, seed, size, folder, say))
    return results


def missing(
    table: Table, size: Size, seeds: Sequence[int], only: Sequence[str], results: Results
) -> list[tuple[Row, int]]:
    """Rows and seeds that have not been measured, seed by seed.

    Errors are those of `reproduce`.
    """
    return [
        (row, seed)
        for row, seed in _wanted(_chosen(table.rows(size), only), seeds)
        if not results.has(row.name, seed, settings_of(table, row, seed, size))
    ]


def overview(
    tables: Iterable[Table], size: Size, seeds: Sequence[int], runs: Path, out: Path
) -> str:
    """A line for each table: what it is, how much is done, and the hours of what is missing.

    Models that are trained already, for another table perhaps, take no hours any more; those that
    several tables lack are counted for each.
    """
    lines, tables = [], list(tables)
    width = max((len(table.name) for table in tables), default=0)
    for table in tables:
        results = Results.of(out, table.name, size.name)
        planned = _wanted(table.rows(size), seeds)
        missing = [
            (row, seed) for row, seed in planned if seed not in results.rows.get(row.name, {})
        ]
        hours = _hours(missing, size, runs / size.name)
        time = f", about {hours:.1f} h of training missing" if hours else ""
        progress = f"{len(planned) - len(missing)} of {len(planned)} done"
        lines.append(f"{table.name:<{width}} {table.summary}: {progress}{time}")
    return "\n".join(lines)


def _wanted(rows: Iterable[Row], seeds: Sequence[int]) -> list[tuple[Row, int]]:
    pairs = [(row, seed) for row in rows for seed in row.seeds(seeds)]
    return sorted(pairs, key=lambda pair: pair[1])


def _hours(missing: Iterable[tuple[Row, int]], size: Size, runs: Path) -> float:
    models = {
        (model, seed)
        for row, seed in missing
        for model in _chain(row.model)
        if not model.is_trained(seed, runs)
    }
    return sum(model.hours(size) for model, _ in models)


def _chain(model: Model | None) -> Iterator[Model]:
    """A model and all that it starts from."""
    while model is not None:
        yield model
        model = model.start


def _measured(
    table: Table, row: Row, seed: int, size: Size, folder: Path, say: Callable[[str], object]
) -> dict[str, Any]:
    model = None if row.model is None else row.model.train(size, seed, folder, say)
    return {
        "settings": settings_of(table, row, seed, size),
        "measured": table.measure(row, model, size, folder),
        "training": {} if model is None else training_of(model),
        "command": f"python -m benchmarks.studies {table.name} --size {size.name} "
        f"--seeds {seed} --only {row.name}",
        **conditions(),
    }


def settings_of(table: Table, row: Row, seed: int, size: Size) -> dict[str, Any]:
    """All that the numbers of a row depend on, but for versions."""
    model = {} if row.model is None else row.model.settings(size, seed)
    if row.released is not None:
        with (row.released / SAFE_WEIGHTS_NAME).open("rb") as file:
            model["weights"] = file_digest(file, "sha256").hexdigest()
    return {**table.tested(size), **model}


def _chosen(rows: Sequence[Row], only: Sequence[str]) -> list[Row]:
    for pattern in only:
        if not any(fnmatchcase(row.name, pattern) for row in rows):
            row_names = ", ".join(row.name for row in rows)
            raise ValueError(f"no row is called {pattern!r}: choose from {row_names}")
    return [row for row in rows if not only or any(fnmatchcase(row.name, p) for p in only)]


__all__ = ["missing", "overview", "reproduce", "settings_of"]
