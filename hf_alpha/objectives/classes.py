"""One text, or a pair of texts, to a class or to a number."""

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc
from datasets import ClassLabel, Dataset, Value
from transformers import PreTrainedConfig

from hf_alpha.modeling.choices import check_choice, check_unique

from .base import Batch, Finder, Predictions, Record, Row, RowsObjective
from .metrics import OF_CLASSES, OF_NUMBERS
from .objective import setting
from .rows import DataSource, check_cell, text_in

logger = logging.getLogger(__name__)


class Labelled(RowsObjective):
    """An objective whose rows have labels by name, which the model's configuration numbers.

    Attributes:
        label_word: what messages call a label.
    """

    labels: list[str]
    label_word: ClassVar[str]

    @abstractmethod
    def names_in(self, target: Any, declared: Sequence[str]) -> list[Any]:
        """Return the names of the labels of a row.

        Args:
            target: what the row's target column holds.
            declared: the names that the data declares; numbers are their places.
        """

    def targets(self, rows: Dataset, data: DataSource) -> list[list[Any]]:
        """Return the names of the labels of each row."""
        declared = declared_names(rows, data)
        return [self.names_in(target, declared) for target in rows[data.target]]

    def config_settings(self, parts: Sequence[Dataset], data: DataSource) -> dict[str, Any]:
        names = self.labels or declared_names(parts[0], data)
        if not names:
            in_data = {name for rows in parts for some in self.targets(rows, data) for name in some}
            names = sorted(in_data, key=_order)
        if len(names) < 2:
            raise ValueError(
                f"the column {data.target!r} has one {self.label_word} only: {names[0]!r}"
            )
        return {
            "id2label": dict(enumerate(names)),
            "label2id": {name: index for index, name in enumerate(names)},
        }

    def labeller(
        self, rows: Dataset, data: DataSource, config: PreTrainedConfig, training: bool
    ) -> Callable[[Row], Any]:
        """Return a function from a row to the numbers of its labels.

        Raises:
            ValueError: the model has no such label, in training; else that is a warning.
        """
        ids = {str(name): index for index, name in config.id2label.items()}
        targets, declared = self.targets(rows, data), declared_names(rows, data)
        unknown = [(row, x) for row, names in enumerate(targets) for x in names if x not in ids]
        if unknown:
            row, name = unknown[0]
            fault = (
                f"row {row}: the column {data.target!r} holds {name!r}, which is no "
                f"{self.label_word} of the model: {', '.join(ids)}"
            )
            if training:
                raise ValueError(fault)
            logger.warning(
                "%s; so it is with %s of %s: they count as wrong, and the loss takes them for the "
                "first one", fault, f"{len(unknown):,}", f"{sum(map(len, targets)):,}",
            )  # fmt: skip
        return lambda row: [ids.get(x, 0) for x in self.names_in(row[data.target], declared)]


@dataclass
class Classes(Labelled):
    """`data.source`, and `data.pair` if there is one, are the texts, `data.target` the class.

    With symbols, the names of a row are those of both texts.
    """

    name: ClassVar[str] = "class"
    pipeline: ClassVar[str] = "text-classification"
    auto_model: ClassVar[str] = "AutoModelForSequenceClassification"
    label_word: ClassVar[str] = "class"

    regression: bool = setting(False, "class: the target is a number, not a class")
    labels: list[str] = setting(
        [],
        "class: the classes in order (F1 is that of the second one); by default those of the "
        "training and validation data, sorted",
    )
    metrics: list[str] = setting(
        [],
        "class: accuracy (the default), f1 and matthews, or with `regression` pearson and spearman "
        "(the default: both)",
    )

    def __post_init__(self) -> None:
        metrics = OF_NUMBERS if self.regression else OF_CLASSES
        self.metrics = self.metrics or (list(metrics) if self.regression else ["accuracy"])
        for name in self.metrics:
            check_choice("metrics", name, tuple(metrics))
        if self.regression and self.labels:
            raise ValueError("labels are for classes: leave them out with regression")
        check_unique("labels", self.labels)

    def check_training(self, training: Mapping[str, Any]) -> None:
        if self.regression:
            super().check_training(training)

    def columns(self, data: DataSource) -> list[str]:
        return [*_text_columns(data), data.target]

    def has_pairs(self, data: DataSource) -> bool:
        return len(_text_columns(data)) == 2

    def plain_texts(self, row: Row, place: int, data: DataSource) -> list[str]:
        return [text_in(row[column], column, place) for column in _text_columns(data)]

    def check_rows(self, rows: Dataset, data: DataSource) -> None:
        super().check_rows(rows, data)
        count = len(declared_names(rows, data))
        wanted = f"one class, numbered below {count}" if count else "one class"
        for row, value in enumerate(rows[data.target]):
            if self.regression:
                check_cell(_number(value) is not None, row, data.target, value, "a finite number")
                continue
            is_class = value not in (None, "") and not isinstance(value, list | dict)
            is_known = is_class and (not count or 0 <= value < count)
            check_cell(is_known, row, data.target, value, wanted)

    def names_in(self, target: Any, declared: Sequence[str]) -> list[Any]:
        return [declared[target] if declared else str(target)]

    def config_settings(self, parts: Sequence[Dataset], data: DataSource) -> dict[str, Any]:
        if self.regression:
            return {"num_labels": 1, "problem_type": "regression"}
        settings = super().config_settings(parts, data)
        return {**settings, "problem_type": "single_label_classification"}

    def kinds(self, tokenizer: Any, training: bool) -> dict[str, Any]:
        label = Value("float32" if self.regression else "int64")
        return {**super().kinds(tokenizer, training), "labels": label}

    def labeller(
        self, rows: Dataset, data: DataSource, config: PreTrainedConfig, training: bool
    ) -> Callable[[Row], Any]:
        if self.regression:
            return lambda row: [_number(row[data.target])]
        return super().labeller(rows, data, config, training)

    def encode(self, batch: Batch, label: Callable[[Row], Any]) -> Mapping[str, list[Any]]:
        encoding = batch.encoded(truncation=True, max_length=self.max_length)
        return {**encoding, "labels": [label(row)[0] for row in batch.rows]}

    def summary(self, rows: Dataset, features: Dataset, data: DataSource, finder: Finder) -> str:
        lengths = pc.list_value_length(features.with_format("arrow")[:]["input_ids"])
        full = pc.sum(pc.equal(lengths, self.max_length), min_count=0).as_py()
        cut = f"; {full:,} fill max_length ({self.max_length}): their ends may be cut off"
        return super().summary(rows, features, data, finder) + cut * bool(full)

    def records(self, made: Predictions) -> list[Record]:
        scores = np.asarray(made.outputs)
        if self.regression:
            numbers = zip(scores.reshape(-1), made.labels, strict=True)
            return [{"prediction": float(one), "target": float(two)} for one, two in numbers]
        pairs = zip(scores.argmax(-1).tolist(), self.targets(made.rows, made.data), strict=True)
        names = made.config.id2label
        return [{"prediction": names[i], "target": name} for i, (name,) in pairs]

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        metrics = OF_NUMBERS if self.regression else OF_CLASSES
        ids = None if self.regression else {name: i for i, name in config.id2label.items()}
        predicted, right = (
            [record[side] if ids is None else ids.get(record[side], len(ids)) for record in records]
            for side in ("prediction", "target")
        )
        return {name: metrics[name](predicted, right) for name in self.metrics}


def declared_names(rows: Dataset, data: DataSource) -> list[str]:
    """Return the names of labels that the data itself declares; [] if it declares none."""
    kind = rows.features[data.target]
    kind = getattr(kind, "feature", kind)  # of a list's elements
    return list(kind.names) if isinstance(kind, ClassLabel) else []


def _text_columns(data: DataSource) -> list[str]:
    return [data.source, *([data.pair] if data.pair else [])]


def _order(name: str) -> tuple[int, str]:
    """Return a sort key: numbers by their value, other names by the alphabet."""
    return (int(name), "") if name.isdecimal() else (0, name)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
