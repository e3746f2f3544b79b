"""One text, or a pair of texts, to a class or to a number."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc
import torch
from datasets import ClassLabel, Dataset, Features, Value
from transformers import PreTrainedConfig, PreTrainedModel

from hf_alpha.data.files import filling_cache
from hf_alpha.modeling.choices import check_unique
from hf_alpha.modeling.names_in_text import NameFinder
from hf_alpha.settings import meaning

from .base import Record, RowsObjective, accepted, kinds_of, rows_of
from .metrics import OF_CLASSES, OF_NUMBERS
from .names import encoded, finder_of, marked
from .objective import Collator
from .rows import DataSource, text_in
from .tokenizers import check_pairs, check_room

logger = logging.getLogger(__name__)


@dataclass
class Classes(RowsObjective):
    """`data.source`, and `data.pair` if there is one, are the texts, `data.target` the class.

    With symbols, the names of a row are those of both texts.
    """

    name: ClassVar[str] = "class"
    pipeline: ClassVar[str] = "text-classification"

    regression: bool = field(
        default=False, metadata=meaning("class: the target is a number, not a class")
    )
    labels: list[str] = field(
        default_factory=list,
        metadata=meaning(
            "class: the classes in order (F1 is that of the second one); by default those of the "
            "training and validation data, sorted"
        ),
    )
    metrics: list[str] = field(
        default_factory=list,
        metadata=meaning(
            "class: accuracy (the default), f1 and matthews, or with `regression` pearson and "
            "spearman (the default: both)"
        ),
    )

    def __post_init__(self) -> None:
        metrics = OF_NUMBERS if self.regression else OF_CLASSES
        self.metrics = self.metrics or (list(metrics) if self.regression else ["accuracy"])
        if unknown := [name for name in self.metrics if name not in metrics]:
            raise ValueError(
                f"metrics: {unknown[0]!r} is none of "
                f"{'numbers' if self.regression else 'classes'}: choose {', '.join(metrics)}"
            )
        if self.regression and self.labels:
            raise ValueError("labels are for classes: leave them out with regression")
        check_unique("labels", self.labels)

    @property
    def auto_name(self) -> str:
        return "AutoModelForSequenceClassification"

    def check_training(self, training: Mapping[str, Any]) -> None:
        if self.regression:
            super().check_training(training)

    def columns(self, settings: DataSource) -> list[str]:
        return [*_text_columns(settings), settings.target]

    def check_rows(self, rows: Dataset, settings: DataSource) -> None:
        for column in _text_columns(settings):
            for row, value in enumerate(rows[column]):
                text_in(value, column, row)
        class_names = _class_names(rows, settings.target)
        for row, value in enumerate(rows[settings.target]):
            fault = None
            if value is None or value == "":
                fault = "holds nothing"
            elif isinstance(value, list | dict):
                fault = f"holds {value!r}, which is no single class or number"
            elif self.regression and _number(value) is None:
                fault = f"holds {value!r}, which is no finite number"
            elif class_names and not 0 <= value < len(class_names):
                fault = f"holds {value!r}: it is out of range, there are {len(class_names)} classes"
            if fault:
                raise ValueError(f"row {row}: the column {settings.target!r} {fault}")

    def texts_of(
        self, row: Mapping[str, Any], place: int, settings: DataSource, finder: NameFinder | None
    ) -> list[str]:
        texts = [text_in(row[column], column, place) for column in _text_columns(settings)]
        return marked(texts, row, place, finder)

    def config_settings(self, parts: Sequence[Dataset], settings: DataSource) -> dict[str, Any]:
        if self.regression:
            return {"num_labels": 1, "problem_type": "regression"}
        class_names = self.labels or _class_names(parts[0], settings.target)
        names = class_names or sorted(
            {name for rows in parts for name in _targets(rows, settings.target)}, key=_order
        )
        if len(names) < 2:
            raise ValueError(f"the column {settings.target!r} has one class only: {names[0]!r}")
        return {
            "id2label": dict(enumerate(names)),
            "label2id": {name: index for index, name in enumerate(names)},
            "problem_type": "single_label_classification",
        }

    @filling_cache()
    def features(
        self,
        rows: Dataset,
        settings: DataSource,
        tokenizer: Any,
        config: PreTrainedConfig,
        *,
        seed: int = 0,
        training: bool = True,
    ) -> Dataset:
        paired = len(_text_columns(settings)) == 2
        if paired:
            check_pairs(tokenizer, config)
        check_room(tokenizer, self.max_length, paired)
        finder = finder_of(tokenizer)
        labels = self._label_ids(rows, settings, config, training)
        kinds = kinds_of(tokenizer)
        label = Value("float32" if self.regression else "int64")

        def encode(batch: dict[str, list[Any]], places: list[int]) -> dict[str, list[Any]]:
            pairs = zip(rows_of(batch), places, strict=True)
            texts = [self.texts_of(row, place, settings, finder) for row, place in pairs]
            encoding = encoded(
                tokenizer,
                *map(list, zip(*texts, strict=True)),
                place=f"rows from {places[0]} on",
                truncation=True,
                max_length=self.max_length,
            )
            return {
                **{name: encoding[name] for name in kinds},
                "labels": [labels[i] for i in places],
            }

        return rows.map(
            encode, batched=True, with_indices=True, remove_columns=rows.column_names,
            features=Features({**kinds, "labels": label}), load_from_cache_file=False,
            desc="tokenizing",
        )  # fmt: skip

    def _label_ids(
        self, rows: Dataset, settings: DataSource, config: PreTrainedConfig, training: bool
    ) -> list[Any]:
        """Return the number of each row's class; a class unknown to the model fails in training."""
        if self.regression:
            return [_number(value) for value in rows[settings.target]]
        names = _targets(rows, settings.target)
        ids = {str(name): index for index, name in config.id2label.items()}
        unknown = [row for row, name in enumerate(names) if name not in ids]
        if unknown:
            fault = (
                f"row {unknown[0]}: the column {settings.target!r} holds {names[unknown[0]]!r}, "
                f"which is no class of the model: {', '.join(ids)}"
            )
            if training:
                raise ValueError(fault)
            logger.warning(
                "%s; so it is in %s of %s rows: they count as wrong, and the loss takes them for "
                "the first class", fault, f"{len(unknown):,}", f"{len(names):,}",
            )  # fmt: skip
        return [ids.get(name, 0) for name in names]

    def summary(
        self,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        finder: NameFinder | None,
    ) -> str:
        lengths = pc.list_value_length(features.with_format("arrow")[:]["input_ids"])
        full = pc.sum(pc.equal(lengths, self.max_length), min_count=0).as_py()
        cut = f"; {full:,} fill max_length ({self.max_length}): their ends may be cut off"
        return super().summary(rows, features, settings, finder) + cut * bool(full)

    def collator(self, tokenizer: Any, model: PreTrainedModel, seed: int) -> Collator:
        kind = torch.float32 if self.regression else torch.int64

        def collate(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
            inputs = [{k: v for k, v in row.items() if k != "labels"} for row in rows]
            batch = dict(tokenizer.pad(inputs, return_tensors="pt"))
            batch["labels"] = torch.tensor([row["labels"] for row in rows], dtype=kind)
            return accepted(batch, model)

        return collate

    def records(
        self,
        outputs: Any,
        labels: Any,
        rows: Dataset,
        features: Dataset,
        settings: DataSource,
        config: PreTrainedConfig,
    ) -> list[Record]:
        scores = np.asarray(outputs)
        if self.regression:
            numbers = zip(scores.reshape(-1), labels, strict=True)
            return [{"prediction": float(one), "target": float(two)} for one, two in numbers]
        names = config.id2label
        pairs = zip(scores.argmax(-1), _targets(rows, settings.target), strict=True)
        return [{"prediction": names[int(i)], "target": target} for i, target in pairs]

    def score(self, records: Sequence[Record], config: PreTrainedConfig) -> dict[str, float]:
        metrics = OF_NUMBERS if self.regression else OF_CLASSES
        ids = None if self.regression else {name: i for i, name in config.id2label.items()}
        predicted, right = (
            [record[side] if ids is None else ids.get(record[side], len(ids)) for record in records]
            for side in ("prediction", "target")
        )
        return {name: metrics[name](predicted, right) for name in self.metrics}


def _text_columns(settings: DataSource) -> list[str]:
    return [settings.source, *([settings.pair] if settings.pair else [])]


def _class_names(rows: Dataset, column: str) -> list[str]:
    """Return the names of classes that the data itself declares; [] if it declares none."""
    kind = rows.features[column]
    return list(kind.names) if isinstance(kind, ClassLabel) else []


def _targets(rows: Dataset, column: str) -> list[str]:
    """Return the name of each row's class."""
    class_names = _class_names(rows, column)
    return [class_names[value] if class_names else str(value) for value in rows[column]]


def _order(name: str) -> tuple[int, str]:
    """Return a sort key: numbers by their value, other names by the alphabet."""
    return (int(name), "") if name.isdecimal() else (0, name)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


__all__ = ["Classes"]
