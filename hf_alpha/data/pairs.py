"""Pairs of texts from a user's files: read, and held out up to the renaming of names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from datasets import Dataset, Features, IterableDataset, List, Value
from tqdm import tqdm

from hf_alpha.modeling.names_in_text import MarkedText, NameFinder, Span, name_pattern, parts

from .cache import filling_cache
from .files import check_columns, check_text
from .keys import key_of, positions_of
from .rows import AnyDataset, Where, column_names, path_of, read_dataset

BATCH = 1000
"""Rows that are in memory at a time."""

_TEXT = Value("string")
_SPANS = List({"start": Value("int64"), "stop": Value("int64"), "symbol_class": _TEXT})


@filling_cache()
def read_pairs(
    place: Where,
    *,
    source: str = "source",
    target: str = "target",
    finder: NameFinder,
    **options: Any,
) -> AnyDataset:
    """Read a dataset with the columns `problem` and `answer`.

    Where a rule of the finder is a column or a function, there is a column `spans` too, of lists
    of {start, stop, symbol_class}: `problems` makes the tokenizer's texts of both. All else that
    the rows have is left out. Functions are imported and set in `finder.functions`.

    Args:
        place: a file, a folder or a dataset of the Hub, as for `read_dataset`.
        source: the column of the problems.
        target: the column of the answers.
        finder: the rules by which names are found. A rule's column has in each row a list of names,
            a list of their [start, stop] in the source, or one name.
        **options: of `read_dataset`. With `streaming`, errors of a row come when it is read.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: it cannot be read, is empty, lacks a column or the split, leaves the choice of a
            split open, or a row has no text in a column, no names in the column of a rule, or names
            that its source lacks. The message names the file and the row; rows count from 0.
            Or a rule needs a function that `import_functions` has not set.
    """
    finder.require_functions()
    by_column = _by_column(finder)
    columns = {source: "data.source", target: "data.target"} | _listing(by_column)
    dataset = read_dataset(place, columns, **options)
    rows = _Rows(path_of(place), source, target, finder, by_column)
    marked = bool(by_column) or any(rule.function for rule in finder.rules.values())
    if not marked and isinstance(dataset, Dataset):
        return _checked(dataset, rows)
    features = Features({"problem": _TEXT, "answer": _TEXT} | ({"spans": _SPANS} if marked else {}))
    options = {"load_from_cache_file": False, "desc": "names"}
    return dataset.map(
        partial(rows, marked=marked), batched=True, batch_size=BATCH, with_indices=True,
        remove_columns=column_names(dataset), features=features,
        **(options if isinstance(dataset, Dataset) else {}),
    )  # fmt: skip


def _checked(dataset: Dataset, rows: "_Rows") -> Dataset:
    """Return the columns `problem` and `answer` as they are on disk, each row checked."""
    dataset = dataset.select_columns([rows.source, rows.target])
    first = 0
    for batch in batches(dataset, "reading"):
        count = len(batch[rows.source])
        rows(batch, range(first, first + count), marked=False)
        first += count
    return dataset.rename_columns({rows.source: "problem", rows.target: "answer"})


def problems(batch: Mapping[str, Sequence[Any]], first_row: int = 0) -> list[str]:
    """Return the problems of a batch as a tokenizer takes them.

    Where the batch has `spans`, they are `MarkedText`, so that the names are not looked for again.

    Args:
        batch: columns of `read_pairs`, each a list with an entry for each row.
        first_row: number of the first row, for error messages.

    Raises:
        ValueError: a span is empty, lies outside its text or overlaps another one, with the row.
    """
    if "spans" not in batch:
        return list(batch["problem"])
    marked: list[str] = []
    pairs = zip(batch["problem"], batch["spans"], strict=True)
    for row, (text, spans) in enumerate(pairs, first_row):
        try:
            listed = [(s["start"], s["stop"], s["symbol_class"]) for s in spans or ()]
            marked.append(MarkedText(text, listed))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None
    return marked


def problem_of(
    row: Mapping[str, Any], source: str, finder: NameFinder, place: str, number: int
) -> str:
    """Return the problem of one row of the user's data, as `problems` does.

    Args:
        row: the row.
        source: the column of the problem.
        finder: the rules by which names are found; a rule's column is one of the row.
        place: what the row is from, and its `number`, for errors.

    Raises:
        ValueError: as `read_pairs`.
    """
    by_column = _by_column(finder)
    columns = {source: "data.source"} | _listing(by_column)
    check_columns(f"{place}, row {number}", list(row), columns)
    rows = _Rows(place, source, source, finder, by_column)
    batch = {column: [row[column]] for column in columns}
    return problems(rows(batch, [number], marked=bool(by_column)))[0]


def _by_column(finder: NameFinder) -> dict[str, str]:
    """Return class of names -> the column that lists them, where its rule is a column."""
    return {name: r.column for name, r in finder.rules.items() if r.column is not None}


def _listing(by_column: Mapping[str, str]) -> dict[str, str]:
    """Return column that lists names -> the key of a recipe that names it."""
    return {column: f"symbols.{name}.column" for name, column in by_column.items()}


def batches(dataset: AnyDataset, what: str) -> Iterator[dict[str, list[Any]]]:
    """Yield the rows in batches of columns; what takes long shows a bar, on a terminal."""
    total = len(dataset) if isinstance(dataset, Dataset) else None
    with tqdm(total=total, desc=what, unit=" rows", delay=2, disable=None) as bar:
        for batch in dataset.iter(batch_size=BATCH):
            yield batch
            bar.update(len(next(iter(batch.values()))))


def pairs_of(dataset: AnyDataset, what: str = "reading") -> Iterator[tuple[str, str]]:
    """Yield problem and answer of each row; for the arguments see `batches`."""
    for batch in batches(dataset, what):
        yield from zip(problems(batch), batch["answer"], strict=True)


def canonical_text(text: str, finder: NameFinder) -> str:
    """Return a text with its names replaced by their class and order of first occurrence.

    Two texts are equal up to a renaming within the classes if and only if theirs are equal: a name
    becomes NUL, its class and number, and `;`; a NUL of the text becomes two.
    """
    numbers: dict[str, int] = {}
    canonical = ""
    for part, span in parts(text, finder.find(text)):
        canonical += part.replace("\0", "\0\0")
        if span is not None:
            number = numbers.setdefault(text[span.start : span.stop], len(numbers))
            canonical += f"\0{span.symbol_class} {number};"
    return canonical


def pair_key(problem: str, finder: NameFinder) -> bytes:
    """Return a hash of 8 bytes: problems that are equal up to renaming have the same one."""
    return key_of(canonical_text(problem, finder))[:8]


def hold_out(
    dataset: AnyDataset, share: float, finder: NameFinder, seed: int = 0
) -> tuple[AnyDataset, AnyDataset]:
    """Return the rows to train on and those to validate with.

    Rows whose problems are equal up to renaming are on the same side. A hash of the problem and the
    seed says on which one: neither other rows nor their order matter.

    Args:
        dataset: of `read_pairs`.
        share: of the problems that are held out, between 0 and 1.

    Raises:
        ValueError: the share is none, or one side is empty (of a streaming dataset, that is not
            noticed).
    """
    if not 0 < share < 1:
        raise ValueError(f"the share to hold out is {share}: give a number between 0 and 1")
    if isinstance(dataset, IterableDataset):
        sides = [
            partial(_on_side, finder=finder, share=share, seed=seed, held_out=held_out)
            for held_out in (False, True)
        ]
        train, validation = (dataset.filter(side, batched=True, batch_size=BATCH) for side in sides)
        return train, validation
    parts = [_positions(batch, finder, seed) for batch in batches(dataset, "holding out")]
    positions = np.concatenate([np.zeros(0), *parts])
    is_held = positions < share
    if is_held.all() or not is_held.any():
        raise ValueError(_why_one_side_is_empty(positions, is_held, share))
    return dataset.select(np.flatnonzero(~is_held)), dataset.select(np.flatnonzero(is_held))


def _why_one_side_is_empty(positions: np.ndarray, is_held: np.ndarray, share: float) -> str:
    """Say what a share has done to places of rows between 0 and 1, and which share would do."""
    lowest, highest = positions.min(initial=1), positions.max(initial=0)
    steps = lowest * 100 + 1 if not is_held.any() else highest * 100
    better = np.floor(steps) / 100
    way = f"a share of {better:g}, " if lowest < better <= highest else ""
    return (
        f"{is_held.sum():,} of {len(is_held):,} rows are held out by a share of {share}: up to "
        f"renaming, they have only {len(np.unique(positions)):,} different problems; give {way}"
        "more problems, or a file to validate with"
    )


def overlap(train: AnyDataset, validation: AnyDataset, finder: NameFinder) -> int:
    """Return how many rows of `validation` have a problem of `train`, up to renaming."""
    texts = (text for batch in batches(validation, "validation") for text in problems(batch))
    return renamings(train, texts, finder)


def renamings(train: AnyDataset, texts: Iterable[str], finder: NameFinder) -> int:
    """Return how many texts are problems of `train`, up to renaming."""
    counts = Counter(pair_key(text, finder) for text in texts)
    common = 0
    for batch in batches(train, "overlap"):
        common += sum(counts.pop(pair_key(problem, finder), 0) for problem in problems(batch))
    return common


def _positions(batch: Mapping[str, Sequence[Any]], finder: NameFinder, seed: int) -> np.ndarray:
    """Return where each problem stands between 0 and 1, by chance but equal up to renaming."""
    return positions_of((canonical_text(text, finder) for text in problems(batch)), seed)


def _on_side(
    batch: Mapping[str, Sequence[Any]], finder: NameFinder, share: float, seed: int, held_out: bool
) -> list[bool]:
    return ((_positions(batch, finder, seed) < share) == held_out).tolist()


@dataclass
class _Rows:
    """Turns rows of the user's data into ours, and refuses those that are none."""

    place: str
    source: str
    target: str
    finder: NameFinder
    by_column: Mapping[str, str]

    def __call__(
        self, batch: Mapping[str, list[Any]], rows: Sequence[int], marked: bool
    ) -> dict[str, list[Any]]:
        for column in (self.source, self.target):
            for row, text in zip(rows, batch[column], strict=True):
                check_text(text, column, f"{self.place}, row {row}")
        columns = {"problem": batch[self.source], "answer": batch[self.target]}
        if marked:
            lists = [batch[column] for column in self.by_column.values()]
            columns["spans"] = [
                [span._asdict() for span in self._spans(row, text, values)]
                for row, text, *values in zip(rows, batch[self.source], *lists, strict=True)
            ]
        return columns

    def _spans(self, row: int, text: str, values: Sequence[Any]) -> tuple[Span, ...]:
        names = {
            name: self._listed(row, column, value, text)
            for (name, column), value in zip(self.by_column.items(), values, strict=True)
        }
        try:
            return self.finder.mark(text, names).spans
        except Exception as error:  # of a function, whichever it raises
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise ValueError(f"{self.place}, row {row}: {kind}{error}") from error

    def _listed(self, row: int, column: str, value: Any, text: str) -> list[str | Sequence[int]]:
        names = [value] if isinstance(value, str) and value else [] if value == "" else value
        if not isinstance(names, list) or not all(isinstance(x, str) or _is_pair(x) for x in names):
            content = "nothing" if value is None else repr(value)
            raise ValueError(
                f"{self.place}, row {row}: the column {column!r} holds {content}: give a list of "
                "names, a list of their [start, stop] in the source, or one name"
            )
        for name in names:
            if isinstance(name, str) and not name_pattern((name,)).search(text):
                raise ValueError(
                    f"{self.place}, row {row}: the column {column!r} has the name {name!r}, which "
                    f"is no word of the source {text!r}"
                )
        return names


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(place) for place in value] == [int, int]


__all__ = [
    "BATCH",
    "AnyDataset",
    "batches",
    "canonical_text",
    "hold_out",
    "overlap",
    "pair_key",
    "pairs_of",
    "problem_of",
    "problems",
    "read_pairs",
    "renamings",
]
