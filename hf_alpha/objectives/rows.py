"""The rows that an objective is trained on: read as a recipe says, chosen and held out."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from datasets import Dataset, IterableDataset

from hf_alpha.data.files import check_text
from hf_alpha.data.formats import reader_of
from hf_alpha.data.rows import Where, path_of, read_dataset
from hf_alpha.io.settings import RecipeError


class DataSource(Protocol):
    """What a recipe says of data; see `hf_alpha.recipe.Data`."""

    source: str
    format: str | None
    where: dict[str, Any]
    encoding: str | None
    train: Any
    validation: Any
    test: Any
    pair: str | None
    target: str
    num_workers: int
    max_train_samples: int | None
    max_eval_samples: int


def read_rows(
    settings: DataSource,
    place: Where,
    columns: Sequence[str],
    preferred: str,
    split: str | None = None,
) -> Dataset:
    """Read a dataset and keep the rows that `settings.where` asks for.

    Args:
        place: a file, a folder or a dataset of the Hub; or a mapping with `path`, and `config` and
            `split`. Plain texts (*.txt, *.md) have one column, `source`, and a row for each line.
        preferred: the split that is taken where none is named and the data has it.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: it cannot be read, lacks a column, or no row is left.
    """
    rows: Any = read_dataset(
        place,
        _keys(columns, settings),
        split=split,
        preferred_split=preferred,
        encoding=settings.encoding,
        lines=settings.source,
        read_file=reader_of(settings.format),
    )
    rows = kept(rows, settings.where)
    if not len(rows):
        raise ValueError(f"{path_of(place)} holds no row with {settings.where}")
    return rows


def _keys(columns: Sequence[str], settings: DataSource) -> dict[str, str]:
    """Return column -> the recipe's key that names it; "" where the objective fixes the name."""
    fields = ("source", "pair", "target")
    keys = {getattr(settings, field, None): f"data.{field}" for field in fields}
    return {column: keys.get(column, "") for column in columns} | dict.fromkeys(
        settings.where, "data.where"
    )


def kept(rows: Dataset, where: Mapping[str, Any]) -> Dataset:
    """Return the rows that have one of the given values in each of the given columns."""
    matches = np.ones(len(rows), dtype=bool)
    for column, values in where.items():
        nested = next((value for value in rows[column] if isinstance(value, list | dict)), None)
        if nested is not None:
            raise ValueError(
                f"where: the column {column!r} holds {nested!r}: it takes single values"
            )
        accepted = set(values) if isinstance(values, list) else {values}
        matches &= np.array([value in accepted for value in rows[column]], dtype=bool)
    return rows if matches.all() else rows.select(np.flatnonzero(matches))


def check_validation(recipe: Any, validation: Any) -> None:
    """Refuse a recipe that asks for validation and has no rows for it.

    Raises:
        RecipeError: naming both keys.
    """
    if validation is None and recipe.training.get("eval_strategy", "no") != "no":
        raise RecipeError(
            "training: eval_strategy needs data.validation: give a share of the rows (0.05) or a "
            "file, or set eval_strategy to 'no'"
        )


def first(rows: Any, limit: int | None) -> Any:
    """Return the first rows of a dataset or stream, as many as a recipe asks for."""
    if limit is None:
        return rows
    return (
        rows.take(limit) if isinstance(rows, IterableDataset) else rows.take(min(limit, len(rows)))
    )


def check_cell(is_right: bool, row: int, column: str, value: Any, wanted: str) -> None:
    """Refuse what a row holds in a column.

    Raises:
        ValueError: it is not right; the message says what is wanted.
    """
    if not is_right:
        content = "nothing" if value is None else repr(value)
        raise ValueError(f"row {row}: the column {column!r} holds {content}: give {wanted}")


def text_in(value: Any, column: str, row: int) -> str:
    """Return the text of a cell; a list of texts is joined by spaces.

    Raises:
        ValueError: it is none, or empty.
    """
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    check_text(value, column, f"row {row}")
    return value
