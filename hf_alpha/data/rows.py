"""The reader of rows, of files, folders and datasets of the Hub, with their splits and columns.

A row is a problem, perhaps an answer, and where its names are: the columns `problem`, `answer` and,
where a rule for names needs it, `names`. Generated data, pairs of the user's own, and single rows
are read by `load` and `RowReader`; rows of other columns by `read_dataset`.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from datasets import (
    Dataset,
    DatasetDict,
    Features,
    List,
    Value,
    load_dataset,
    load_from_disk,
)
from huggingface_hub import hf_hub_download
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import EntryNotFoundError
from tqdm import tqdm

from hf_alpha.checkpoints.places import may_be_on_hub, similar_names
from hf_alpha.io.inside import OutsideError, check_links, inside
from hf_alpha.io.records import parse_json, read_json
from hf_alpha.modeling.choices import check_list, refuse
from hf_alpha.modeling.grammar import FormulaError
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.modeling.spans import MarkedText, Span
from hf_alpha.modeling.words import name_pattern
from hf_alpha.tasks import Task

from .files import (
    CARDS,
    AnyDataset,
    check_card,
    check_columns,
    check_rows,
    check_text,
    check_whole,
    column_names,
    read_files,
    read_named,
)

Where: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A file, a folder or a dataset of the Hub; or a mapping with `path`, and `config` and `split`."""

BATCH = 1000
"""Rows that are in memory at a time."""
_TEXT = Value("string")
_NAMES = List(
    {"start": Value("int64"), "stop": Value("int64"), "symbol_class": _TEXT, "binding": _TEXT}
)


def load(
    place: Where,
    split: str | None = None,
    *,
    source: str = "problem",
    target: str = "answer",
    finder: NameFinder | None = None,
    dropped: Counter[str] | None = None,
    way_out: str = "",
    **options: Any,
) -> AnyDataset:
    """Read a dataset with the columns `problem` and `answer`.

    Where a rule of the finder is a column or a function, there is a column `names` too, of lists
    of {start, stop, symbol_class, binding}: `problems` makes the tokenizer's texts of both.

    Args:
        place: a folder made by `generate`, or whatever `read_splits` reads.
        split: which split; may be left out if there is only one, or `place` names one.
        finder: of texts: the rules by which names are found, with their functions. A rule's column
            has in each row a list of names, a list of their [start, stop] in the source, one name,
            or several with commas between. All else that the rows have is left out. Without it,
            problems are a task's: an answer may be empty.
        dropped: rows with nothing in a column are left out, and counted here by their reason (of a
            stream, not counted); without it, they are an error.
        way_out: what that error says can be done beside giving a text.
        **options: `preferred_split`, `streaming`, `encoding`, `read_file` of `read_dataset`. With
            `streaming`, errors of a row come when it is read.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: it cannot be read, is empty, lacks a column or the split, leaves the choice of a
            split open, or a row has no text in a column, no names in the column of a rule, or names
            that its source lacks. The message names the file and the row; rows count from 0.
            Or a rule needs a function that `import_functions` has not set.
    """
    reader = RowReader(path_of(place), source, target, finder, way_out)
    rows = read_dataset(place, reader.columns, split=split, **options)
    return reader.read(rows if dropped is None else reader.with_texts(rows, dropped))


def load_splits(path: str | os.PathLike[str]) -> DatasetDict:
    """Read all splits of a task's problems, as `load`; what has no split is called "train"."""
    reader = RowReader(str(path), "problem", "answer")
    data = read_splits(path, reader.columns)
    splits = data if isinstance(data, DatasetDict) else {"train": data}
    for rows in splits.values():
        check_rows(rows, path, reader.columns)
    return DatasetDict({name: reader.read(rows) for name, rows in splits.items()})


def training_problems(path: str | os.PathLike[str]) -> list[str]:
    """Return what a model has seen of a dataset: the problems of all splits but "test".

    Errors are those of `load`.
    """
    splits = load_splits(path)
    return [problem for name in splits if name != "test" for problem in splits[name]["problem"]]


@dataclass(frozen=True)
class RowReader:
    """Makes columns `problem`, `answer` and `names` of what rows have, and refuses bad rows.

    Attributes:
        place: where they are from; for the others see `load`.
    """

    place: str
    source: str
    target: str
    finder: NameFinder | None = None
    way_out: str = ""

    def __post_init__(self) -> None:
        if self.finder is not None:
            self.finder.require_functions()

    @property
    def _by_column(self) -> dict[str, str]:
        """Class of names -> the column that lists them, where its rule is a column."""
        return {} if self.finder is None else self.finder.columns

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are read -> the key of a recipe that names each; "" if none does."""
        keys = ("", "") if self.finder is None else ("data.source", "data.target")
        listing = {column: f"symbols.{name}.column" for name, column in self._by_column.items()}
        targets = {self.target: keys[1]} if self.target != self.source else {}
        return {self.source: keys[0], **targets, **listing}

    @property
    def _marks(self) -> tuple[str, ...]:
        """The column of names, where a rule needs one."""
        rules = self.finder.rules.values() if self.finder is not None else ()
        return ("names",) if any(rule.column or rule.function for rule in rules) else ()

    def with_texts(self, dataset: AnyDataset, dropped: Counter[str]) -> AnyDataset:
        """Leave out rows with nothing in a column, and count them by their reason."""
        columns = [*dict.fromkeys([self.source, self.target])]
        if not isinstance(dataset, Dataset):
            return dataset.filter(lambda row: not any(_is_empty(row[x]) for x in columns))
        kept, first = [], 0
        for batch in batches(dataset.select_columns(columns), "looking for empty rows"):
            for number, row in enumerate(zip(*map(batch.get, columns), strict=True), first):
                empty = [x for x, cell in zip(columns, row, strict=True) if _is_empty(cell)]
                if empty:
                    dropped[f"the column {empty[0]!r} holds nothing"] += 1
                else:
                    kept.append(number)
            first += len(batch[columns[0]])
        return dataset.select(kept) if len(kept) < len(dataset) else dataset

    def read(self, dataset: AnyDataset) -> AnyDataset:
        """Return the rows; stored ones as they are on disk, each checked."""
        if self._marks or not isinstance(dataset, Dataset):
            columns = {"problem": _TEXT, "answer": _TEXT} | dict.fromkeys(self._marks, _NAMES)
            options = {"load_from_cache_file": False, "desc": "names"}
            return dataset.map(
                self, batched=True, batch_size=BATCH, with_indices=True,
                remove_columns=column_names(dataset), features=Features(columns),
                **(options if isinstance(dataset, Dataset) else {}),
            )  # fmt: skip
        texts, first = dataset.select_columns([self.source, self.target]), 0
        for batch in batches(texts, "reading"):
            count = len(batch[self.source])
            self(batch, range(first, first + count))
            first += count
        if self.finder is None:  # what the task knows of its problems is kept
            texts = dataset.remove_columns([x for x in dataset.column_names if x == "names"])
        return texts.rename_columns({self.source: "problem", self.target: "answer"})

    def __call__(self, batch: Mapping[str, list[Any]], rows: Sequence[int]) -> dict[str, list[Any]]:
        """Return our columns of a batch of rows with these numbers."""
        for column in (self.source, self.target):
            may_be_empty = self.finder is None and column != self.source
            for row, text in zip(rows, batch[column], strict=True):
                is_text = isinstance(text, str) and text.strip()  # first, since it is fast
                if not is_text and not (text == "" and may_be_empty):
                    check_text(text, column, f"{self.place}, row {row}", self.way_out)
        columns = {"problem": batch[self.source], "answer": batch[self.target]}
        if self._marks:
            listing = {column: batch[column] for column in self._by_column.values()}
            columns["names"] = [
                [span._asdict() for span in self._names(row, text, cells)]
                for number, (row, text) in enumerate(zip(rows, batch[self.source], strict=True))
                for cells in [{column: listed[number] for column, listed in listing.items()}]
            ]
        return columns

    def problem_of(self, row: Mapping[str, Any], number: int) -> str:
        """Return the problem of one row, as `problems` does; its number is for errors.

        Raises:
            ValueError: as `load`.
        """
        check_columns(f"{self.place}, row {number}", list(row), self.columns)
        return problems(self({column: [row[column]] for column in self.columns}, [number]))[0]

    def _names(self, row: int, text: str, cells: Mapping[str, Any]) -> tuple[Span, ...]:
        assert self.finder is not None
        try:
            return self.finder.mark(text, names_of_row(cells, self._by_column, [text])).spans
        except Exception as error:  # of a function, whichever it raises
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise ValueError(f"{self.place}, row {row}: {kind}{error}") from error


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def names_of_row(
    row: Mapping[str, Any],
    columns: Mapping[str, str],
    texts: Sequence[str],
    allow_absent: bool = False,
) -> dict[str, list[str | Sequence[int]]]:
    """Return class -> names that a row lists, or their places.

    Args:
        row: a cell may be a mapping from the classes of its column to what `listed_names` takes;
            both may be written as JSON.
        columns: class -> the column that its rule names.
        texts, allow_absent: as for `listed_names`.

    Raises:
        ValueError: as `listed_names`, or a mapping has a class that its column is not for.
    """
    names = {}
    for kind, column in columns.items():
        cell = row[column]
        if isinstance(cell, str) and cell.startswith(('["', "[[", "[]", "{")):
            with suppress(ValueError):  # of a table, as `hf-alpha solve --out` writes it
                cell = parse_json(cell, column)
        if isinstance(cell, Mapping):
            known = [name for name, other in columns.items() if other == column]
            if others := [name for name, listed in cell.items() if listed and name not in known]:
                raise ValueError(
                    f"the column {column!r} lists names of the class {others[0]!r}: it is the "
                    f"column of {', '.join(known)}"
                )
            cell = cell.get(kind) or []
        names[kind] = listed_names(column, cell, texts, allow_absent)
    return names


def listed_names(
    column: str, value: Any, texts: Sequence[str], allow_absent: bool = False
) -> list[str | Sequence[int]]:
    """Return the names in a cell of a rule's column, or their places.

    A text is one name, or if it is none in the source, several with commas between: CSV has no
    lists.

    Args:
        texts: of the row; the names of two may stand in either.
        allow_absent: whether some of the names may stand in none; else each has to.

    Raises:
        ValueError: there is no such list, or a name is no word of a text.
    """

    def is_word(name: str) -> bool:
        pattern = name_pattern((name,))
        return any(pattern.search(text) for text in texts)

    names = value
    if isinstance(value, str):
        is_one = "," not in value or is_word(value)
        names = [*filter(None, [value] if is_one else map(str.strip, value.split(",")))]
    has_places = len(texts) == 1
    if not isinstance(names, list) or not all(
        isinstance(x, str) or (has_places and isinstance(x, list) and [*map(type, x)] == [int, int])
        for x in names
    ):
        places = "a list of their [start, stop] in the source, " * has_places
        raise ValueError(
            f"the column {column!r} holds {'nothing' if value is None else repr(value)}: give a "
            f"list of names, {places}one name, several with commas between, or a mapping from "
            "classes to these"
        )
    for name in names:
        if isinstance(name, str) and not allow_absent and not is_word(name):
            raise ValueError(
                f"the column {column!r} has the name {name!r}, which is no word of the source "
                f"{texts[0]!r}"
            )
    return names


def problems(batch: Mapping[str, Sequence[Any]], first_row: int = 0) -> list[str]:
    """Return the problems of a batch as a tokenizer takes them.

    Where the batch has `names`, they are `MarkedText`, so that these are not looked for again.

    Args:
        batch: columns of `load`, each a list with an entry for each row.

    Raises:
        ValueError: a name is empty, lies outside its text or overlaps another one, with the row.
    """
    if "names" not in batch:
        return list(batch["problem"])
    marked: list[str] = []
    pairs = zip(batch["problem"], batch["names"], strict=True)
    for row, (text, names) in enumerate(pairs, first_row):
        try:
            marked.append(MarkedText(text, [Span(**name) for name in names or ()]))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None
    return marked


def batches(dataset: AnyDataset, what: str) -> Iterator[dict[str, list[Any]]]:
    """Yield the rows in batches of columns; what takes long shows a bar, on a terminal."""
    total = len(dataset) if isinstance(dataset, Dataset) else None
    with tqdm(total=total, desc=what, unit=" rows", delay=2, disable=None) as bar:
        for batch in dataset.iter(batch_size=BATCH):
            yield batch
            bar.update(len(next(iter(batch.values()))))


def problems_in(dataset: AnyDataset, what: str) -> Iterator[str]:
    """Yield the problem of each row; for the arguments see `batches`."""
    return (text for batch in batches(dataset, what) for text in problems(batch))


def pairs_of(dataset: AnyDataset, what: str = "reading") -> Iterator[tuple[str, str]]:
    """Yield problem and answer of each row; for the arguments see `batches`."""
    for batch in batches(dataset, what):
        yield from zip(problems(batch), batch["answer"], strict=True)


def described(
    task: Task, rows: Iterable[Mapping[str, Any]], place: str = ""
) -> list[dict[str, Any]]:
    """Return rows as evaluation takes them: `problem`, `answer`, `num_symbols`, `size` and facts.

    What rows do not say, the task finds out.

    Args:
        task: that reads the problems; `Task.facts` are columns too.
        rows: with `problem` (or `source`) and, if there is a target, `answer` (or `target`).

    Raises:
        FormulaError: a problem cannot be read; the message has its row.
        ValueError: a row is none, or has no `problem` and no `source`.
    """
    check_list("dataset", rows, "rows")
    described_rows, columns = [], ("num_symbols", "size", *task.facts)
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(
                f"row {index} is {row!r}: give rows such as {{'problem': ..., 'answer': ...}}"
            )
        problem = row.get("problem", row.get("source"))
        if problem is None:
            raise ValueError(f"row {index} has no `problem` or `source`: it has {', '.join(row)}")
        facts = {name: row[name] for name in columns if name in row}
        if len(facts) < len(columns) or None in (facts["num_symbols"], facts["size"]):
            try:
                facts = _facts(task, problem, getattr(problem, "spans", ()))
            except FormulaError as error:
                what = f"{place}, row {index}" if place else f"problem {index}"
                raise FormulaError(f"{what}: {error}", error.position) from None
        answer = row.get("answer", row.get("target"))
        described_rows.append({"problem": problem, "answer": answer, **facts})
    return described_rows


@lru_cache(maxsize=2**16)  # compared models meet the same problems, and facts may take a search
def _facts(task: Task, problem: str, _names: Sequence[Span]) -> dict[str, int | None]:
    tokens = task.parse(problem)
    counts = {"num_symbols": len(task.symbols_in(tokens)), "size": len(tokens)}
    return counts | task.facts_of(tokens)


def choose_rows(
    rows: Iterable[dict[str, Any]],
    symbols: Container[int] | None = None,
    sizes: Container[int] | None = None,
    samples: int | None = None,
) -> list[dict[str, Any]]:
    """Return the rows with such numbers of symbols and sizes, in their order.

    Args:
        symbols: numbers of symbols; None for all.
        sizes: likewise.
        samples: most rows of each number of symbols, drawn at random; None for all.

    Raises:
        ValueError: no row is left.
    """
    by_symbols: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for place, row in enumerate(rows):
        in_range = symbols is None or row["num_symbols"] in symbols
        if in_range and (sizes is None or row["size"] in sizes):
            by_symbols.setdefault(row["num_symbols"], []).append((place, row))
    if not by_symbols:
        raise ValueError("no row of the data has as many symbols and that size")
    rng = random.Random(0)
    numbered_rows = [
        pair
        for _, pairs in sorted(by_symbols.items())
        for pair in (pairs if samples is None else rng.sample(pairs, min(samples, len(pairs))))
    ]
    return [row for _, row in sorted(numbered_rows, key=itemgetter(0))]


def read_dataset(
    place: Where,
    columns: Mapping[str, str],
    *,
    split: str | None = None,
    preferred_split: str | None = None,
    **options: Any,
) -> AnyDataset:
    """Read a dataset that has some columns.

    Args:
        place: a file, a folder or a dataset of the Hub, as for `read_splits`.
        columns: those that the rows must have; with the key of a recipe that names each, which is
            empty where the name is fixed.
        split: which split; may be left out if there is only one, or `place` names one.
        preferred_split: taken where none is named and the data has it.
        **options: of `read_splits`.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: it cannot be read, is empty, lacks a column or the split, or leaves the choice
            of a split open.
    """
    parts = _parts(place)
    path, data = parts["path"], read_splits(parts, columns, **options)
    rows, split = data, split or parts.get("split")
    if isinstance(data, dict):
        if split is None:
            split = next(iter(data)) if len(data) == 1 else preferred_split
            split = split if split in data else None
        if split not in data:
            problem = "choose a split of" if split is None else f"no split {split!r} in"
            raise ValueError(f"{problem} {path}: it has {', '.join(data)}")
        rows = data[split]
    check_rows(rows, path, columns)
    return rows


def read_splits(
    place: Where,
    columns: Mapping[str, str],
    *,
    streaming: bool = False,
    encoding: str | None = None,
    lines: str | None = None,
    others: bool = False,
    read_file: Callable[[str], Iterable[Mapping[str, Any]]] | None = None,
) -> Any:
    """Read all splits: a mapping of them, or a dataset that has none.

    Args:
        place: a file (*.jsonl, *.ndjson, *.json, *.csv, *.tsv, with .gz or .zst too, *.parquet,
            *.arrow), a folder of such files of one kind, a folder of `save_to_disk`, or the name of
            a dataset on the Hub (`owner/name`).
        columns: as for `read_dataset`.
        encoding: of text files, by default UTF-8; a byte order mark does not matter.
        lines: the column of the lines of plain texts; without it, they are an error.
        others: rows of streamed tables keep their other columns.
        read_file: reads the rows of a file that has another format than these.

    Raises:
        FileNotFoundError: there is nothing there.
        OutsideError: a folder links to, or names, files outside of it.
        ValueError: it cannot be read, or is empty; the message names the file and the line.
    """
    parts = _parts(place)
    path, config = Path(parts["path"]), parts.get("config")
    check_links(path)
    if read_file is not None:
        rows = Dataset.from_list(list(read_file(str(path))))
        return rows.to_iterable_dataset() if streaming else rows
    if not path.exists():
        return _read_from_hub(str(parts["path"]), config, streaming)
    refuse(config, f"{path} is no dataset of the Hub: it has no configuration {config!r}")
    check_whole(path)
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        _check_saved(path)
        data = read_named(load_from_disk, path, str(path))
        if not streaming:
            return data
        if not isinstance(data, dict):
            return data.to_iterable_dataset()
        return {name: rows.to_iterable_dataset() for name, rows in data.items()}
    return read_files(path, columns, streaming, encoding, lines, others)


def path_of(place: Where) -> str:
    """Return the path or Hub name in a recipe's entry for rows."""
    return str(_parts(place)["path"])


def _parts(place: Where) -> Mapping[str, Any]:
    return {"path": place} if isinstance(place, str | os.PathLike) else place


def _check_saved(path: Path) -> None:
    """Refuse files elsewhere that a folder of `save_to_disk` names."""
    splits = path / "dataset_dict.json"
    names = read_json(splits, "splits")["splits"] if splits.is_file() else ["."]
    for part in [inside(path, name) for name in names]:
        if (state := part / "state.json").is_file():
            for file in read_json(state, "_data_files")["_data_files"]:
                inside(part, file["filename"], path)


def _read_from_hub(name: str, config: str | None, streaming: bool) -> Any:
    """Load all splits of a dataset of the Hub; the name may be that of a missing file."""
    if not may_be_on_hub(name):
        raise FileNotFoundError(
            f"no file or folder {name}{similar_names(Path(name))}; a dataset of the Hub is named "
            "owner/name (with no folder of that owner here), and formulas are made by `hf-alpha "
            "generate-data`"
        )
    try:
        for card in CARDS:
            with suppress(EntryNotFoundError):
                check_card(Path(hf_hub_download(name, card, repo_type="dataset")).parent)
        return load_dataset(name, config, streaming=streaming)
    except OutsideError:
        raise
    except Exception as error:
        raise FileNotFoundError(
            f"{name} is neither a file or folder here nor a dataset that the Hub at {ENDPOINT} "
            f"gives: {error}"
        ) from error
