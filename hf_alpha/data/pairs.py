"""Pairs of texts from a user's files: read, and held out up to the renaming of names."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from datasets import Dataset, Features, IterableDataset, List, Value
from tqdm import tqdm

from hf_alpha.modeling.names_in_text import MarkedText, NameFinder, Span, name_pattern, parts

from .cache import filling_cache
from .keys import key_of
from .pair_files import load_files, missing_columns
from .read import choose_split

BATCH = 1000
"""Rows that are in memory at a time."""

_TEXT = Value("string")
_SPANS = List({"start": Value("int64"), "stop": Value("int64"), "symbol_class": _TEXT})

AnyDataset: TypeAlias = Dataset | IterableDataset


@filling_cache()
def read_pairs(
    where: str | os.PathLike[str],
    *,
    source: str = "source",
    target: str = "target",
    finder: NameFinder,
    split: str | None = None,
    preferred_split: str | None = None,
    config: str | None = None,
    streaming: bool = False,
    encoding: str | None = None,
) -> AnyDataset:
    """Read a dataset with the columns `problem` and `answer`.

    Where a rule of the finder is a column or a function, there is a column `spans` too, of lists
    of {start, stop, symbol_class}: `problems` makes the tokenizer's texts of both. All else that
    the rows have is left out. Functions are imported and set in `finder.functions`.

    Args:
        where: a file (*.jsonl, *.json, *.csv, *.tsv, *.parquet, and the first four with .gz), a
            folder of such files of one kind, a folder of `save_to_disk`, or the name of a dataset
            on the Hub (`owner/name`).
        source: the column of the problems.
        target: the column of the answers.
        finder: the rules by which names are found. A rule's column has in each row a list of names,
            a list of their [start, stop] in the source, or one name.
        split: which split; may be left out if there is only one.
        preferred_split: taken where `split` is left out and the data has it.
        config: which configuration of a dataset on the Hub.
        streaming: read rows when they are asked for. Errors of a row then come when it is read.
        encoding: of text files, by default UTF-8; a byte order mark does not matter.

    Raises:
        FileNotFoundError: there is nothing at `where`.
        ValueError: it cannot be read, is empty, lacks a column or the split, leaves the choice of a
            split open, or a row has no text in a column, no names in the column of a rule, or names
            that its source lacks. The message names the file and the row; rows count from 0.
            Or a rule needs a function that `import_functions` has not set.
    """
    finder.require_functions()
    by_column = _by_column(finder)
    wanted = {source: "data.source", target: "data.target"} | _listing(by_column)
    data = load_files(where, wanted, config, streaming, encoding)
    dataset = choose_split(data, split, where, preferred_split)
    if missing := [column for column in wanted if column not in (has := _columns(dataset, where))]:
        raise ValueError(missing_columns(where, missing, has, wanted))
    rows = _Rows(str(where), source, target, finder, by_column)
    marked = bool(by_column) or any(rule.function for rule in finder.rules.values())
    if marked or streaming:
        features = Features(
            {"problem": _TEXT, "answer": _TEXT} | ({"spans": _SPANS} if marked else {})
        )
        kept = {} if streaming else {"load_from_cache_file": False, "desc": "names"}
        return dataset.map(
            partial(rows, marked=marked), batched=True, batch_size=BATCH, with_indices=True,
            remove_columns=_columns(dataset, where), features=features, **kept,
        )  # fmt: skip
    row = 0
    for batch in batches(dataset.select_columns([source, target]), "reading"):
        count = len(batch[source])
        rows(batch, range(row, row + count), marked=False)
        row += count
    if not row:
        raise ValueError(f"{where} holds no pair")
    return dataset.select_columns([source, target]).rename_columns(
        {source: "problem", target: "answer"}
    )


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
    row: Mapping[str, Any], source: str, finder: NameFinder, where: str, number: int
) -> str:
    """Return the problem of one row of the user's data, as `problems` does.

    Args:
        row: the row.
        source: the column of the problem.
        finder: the rules by which names are found; a rule's column is one of the row.
        where: what the row is from, and its `number`, for errors.

    Raises:
        ValueError: as `read_pairs`.
    """
    by_column = _by_column(finder)
    wanted = {source: "data.source"} | _listing(by_column)
    if missing := [column for column in wanted if column not in row]:
        raise ValueError(missing_columns(f"{where}, row {number}", missing, list(row), wanted))
    rows = _Rows(where, source, source, finder, by_column)
    batch = {column: [row[column]] for column in wanted}
    return problems(rows(batch, [number], marked=bool(by_column)))[0]


def _by_column(finder: NameFinder) -> dict[str, str]:
    """Class of names -> the column that lists them, where its rule is a column."""
    return {name: r.column for name, r in finder.rules.items() if r.column is not None}


def _listing(by_column: Mapping[str, str]) -> dict[str, str]:
    """Column that lists names -> the key of a recipe that names it."""
    return {column: f"symbols.{name}.column" for name, column in by_column.items()}


def batches(dataset: AnyDataset, what: str) -> Iterator[dict[str, list[Any]]]:
    """Yield the rows in batches of columns; what takes long shows a bar, on a terminal."""
    total = len(dataset) if isinstance(dataset, Dataset) else None
    with tqdm(total=total, desc=what, unit=" rows", delay=2, disable=None) as bar:
        for batch in dataset.iter(batch_size=BATCH):
            yield batch
            bar.update(len(next(iter(batch.values()))))


def canonical_text(text: str, finder: NameFinder) -> str:
    """Return a text with its names replaced by their class and order of first occurrence.

    Two texts are equal up to a renaming within the classes if and only if theirs are equal: a name
    becomes NUL, its class and number, and `;`; a NUL of the text becomes two.
    """
    numbers: dict[str, int] = {}
    written = ""
    for part, span in parts(text, finder.find(text)):
        written += part.replace("\0", "\0\0")
        if span is not None:
            number = numbers.setdefault(text[span.start : span.stop], len(numbers))
            written += f"\0{span.symbol_class} {number};"
    return written


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
            partial(_on_side, finder=finder, share=share, seed=seed, held=held)
            for held in (False, True)
        ]
        train, validation = (dataset.filter(side, batched=True, batch_size=BATCH) for side in sides)
        return train, validation
    found = [_positions(batch, finder, seed) for batch in batches(dataset, "holding out")]
    positions = np.concatenate(found) if found else np.zeros(0)
    held = positions < share
    if held.all() or not held.any():
        raise ValueError(
            f"{held.sum():,} of {len(held):,} rows are held out: up to renaming, they have "
            f"{len(np.unique(positions)):,} different problems, too few to hold out {share} of "
            "them; give another share, more problems, or a file to validate with"
        )
    return dataset.select(np.flatnonzero(~held)), dataset.select(np.flatnonzero(held))


def overlap(train: AnyDataset, validation: AnyDataset, finder: NameFinder) -> int:
    """Return how many rows of `validation` have a problem of `train`, up to renaming."""
    counts = Counter(
        pair_key(problem, finder)
        for batch in batches(validation, "validation")
        for problem in problems(batch)
    )
    found = 0
    for batch in batches(train, "overlap"):
        for problem in problems(batch):
            found += counts.pop(pair_key(problem, finder), 0)
    return found


def _positions(batch: Mapping[str, Sequence[Any]], finder: NameFinder, seed: int) -> np.ndarray:
    """Return where each problem stands between 0 and 1, by chance but equal up to renaming."""
    keys = b"".join(
        key_of(f"{seed} {canonical_text(text, finder)}")[:8] for text in problems(batch)
    )
    return np.frombuffer(keys, dtype=">u8") / 2.0**64


def _on_side(
    batch: Mapping[str, Sequence[Any]], finder: NameFinder, share: float, seed: int, held: bool
) -> list[bool]:
    return ((_positions(batch, finder, seed) < share) == held).tolist()


@dataclass
class _Rows:
    """Turns rows of the user's data into ours, and refuses those that are none."""

    where: str
    source: str
    target: str
    finder: NameFinder
    by_column: Mapping[str, str]

    def __call__(
        self, batch: Mapping[str, list[Any]], rows: Sequence[int], marked: bool
    ) -> dict[str, list[Any]]:
        for column in (self.source, self.target):
            for row, text in zip(rows, batch[column], strict=True):
                if not isinstance(text, str) or not text.strip():
                    raise ValueError(self._at(row, column, text) + ": give a text in each row")
        found = {"problem": batch[self.source], "answer": batch[self.target]}
        if marked:
            lists = [batch[column] for column in self.by_column.values()]
            found["spans"] = [
                [span._asdict() for span in self._spans(row, text, values)]
                for row, text, *values in zip(rows, batch[self.source], *lists, strict=True)
            ]
        return found

    def _at(self, row: int, column: str, value: Any) -> str:
        held = "nothing" if value is None or value == "" else repr(value)
        kind = ", which is no text" if held != "nothing" and not isinstance(value, str) else ""
        return f"{self.where}, row {row}: the column {column!r} holds {held}{kind}"

    def _spans(self, row: int, text: str, values: Sequence[Any]) -> tuple[Span, ...]:
        names = {
            name: self._listed(row, column, value, text)
            for (name, column), value in zip(self.by_column.items(), values, strict=True)
        }
        try:
            return self.finder.mark(text, names).spans
        except Exception as error:  # of a function, whichever it raises
            said = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"{self.where}, row {row}: {said}") from error

    def _listed(self, row: int, column: str, value: Any, text: str) -> list[str | Sequence[int]]:
        names = [value] if isinstance(value, str) and value else [] if value == "" else value
        if not isinstance(names, list) or not all(isinstance(x, str) or _is_pair(x) for x in names):
            held = "nothing" if value is None else repr(value)
            raise ValueError(
                f"{self.where}, row {row}: the column {column!r} holds {held}: give a list of "
                "names, a list of their [start, stop] in the source, or one name"
            )
        for name in names:
            if isinstance(name, str) and not name_pattern((name,)).search(text):
                raise ValueError(
                    f"{self.where}, row {row}: the column {column!r} has the name {name!r}, which "
                    f"is no word of the source {text!r}"
                )
        return names


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(place) for place in value] == [int, int]


def _columns(dataset: AnyDataset, where: str | os.PathLike[str]) -> list[str]:
    if dataset.column_names is not None:
        return list(dataset.column_names)
    for row in dataset.take(1):
        return list(row)
    raise ValueError(f"{where} holds no pair")


__all__ = [
    "BATCH",
    "AnyDataset",
    "batches",
    "canonical_text",
    "hold_out",
    "overlap",
    "pair_key",
    "problem_of",
    "problems",
    "read_pairs",
]
