"""Metrics of trained models that do not answer with text."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, Trainer, TrainingArguments

from hf_alpha.io.folders import check_own, write_text
from hf_alpha.io.plain_text import aligned
from hf_alpha.io.records import read_json
from hf_alpha.loading import load_checkpoint
from hf_alpha.names.unknown_words import unknown_id
from hf_alpha.tasks.base import warn_once

from .base import Finder, Predictions, Record, RowsObjective
from .names import finder_of, name_columns
from .rows import DataSource, check_cell

ALL = "all"
BATCH, SEED = 64, 0
METRICS_FILE = "metrics.json"
PREDICTIONS_FILE = "predictions.jsonl"
NUMBERS = ("loss", "perplexity")
"""Metrics that are no shares, and shown as they are."""


@dataclass
class Scores:
    """Metrics of a model.

    Attributes:
        metrics: group -> metric -> value; the group `all` is the last one.
        samples: group -> number of rows.
        records: the prediction for each row, and the target.
    """

    metrics: dict[str, dict[str, float]]
    samples: dict[str, int]
    records: list[Record]

    def save(self, folder: Path) -> None:
        """Write `metrics.json` and `predictions.jsonl`, over those of an earlier evaluation.

        Raises:
            ValueError, FileExistsError: files of these names are others.
        """
        folder.mkdir(parents=True, exist_ok=True)
        check_own(folder, (PREDICTIONS_FILE,), METRICS_FILE)
        if (folder / METRICS_FILE).is_file():
            read_json(folder / METRICS_FILE, "metrics", "samples")
        numbers = {"metrics": self.metrics, "samples": self.samples}
        write_text(folder / METRICS_FILE, json.dumps(numbers, indent=1) + "\n")
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in self.records)
        write_text(folder / PREDICTIONS_FILE, "".join(lines))


def evaluate_model(
    objective: RowsObjective,
    model: PreTrainedModel,
    tokenizer: Any,
    rows: Dataset,
    data: DataSource,
    *,
    by: str | None = None,
    progress: bool = True,
) -> Scores:
    """Evaluate a model on rows; which tokens are masked is the same each time.

    Args:
        rows: by `Objective.read`.
        by: a column of the rows; each of its values is a group with metrics of its own.

    Raises:
        ValueError: rows cannot be grouped by that column.
    """
    values = None if by is None else _groups(objective, rows, by)
    config = model.config
    features = objective.features(rows, data, tokenizer, config, seed=SEED, training=False)
    unknown = unknown_id(tokenizer)
    if count := sum(unknown in ids for ids in features["input_ids"]):
        warn_once(f"{count:,} of {len(features):,} texts have words that the model does not know, "
                  "and that are no names by its rules")  # fmt: skip
    with TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            scratch, per_device_eval_batch_size=BATCH, report_to="none",
            use_cpu=model.device.type == "cpu", disable_tqdm=not progress,
            remove_unused_columns=False,
            dataloader_pin_memory=model.device.type != "cpu",
        )  # fmt: skip
        trainer = Trainer(
            model, arguments, data_collator=objective.collator(tokenizer, model, SEED),
            processing_class=tokenizer, preprocess_logits_for_metrics=objective.reduce,
        )  # fmt: skip
        # Those of one batch are alike in length, so that little is padded.
        order = np.argsort([len(ids) for ids in features["input_ids"]], kind="stable")
        output = trainer.predict(features.select(order))
    outputs, labels = (
        _rows_at(part, np.argsort(order)) for part in (output.predictions, output.label_ids)
    )
    records = objective.records(Predictions(outputs, labels, rows, features, data, config))
    groups: dict[str, list[Record]] = {}
    if by is not None and values is not None:
        for value, record in zip(values, records, strict=True):
            record.setdefault(by, value)  # it may be the column of what is right
            groups.setdefault(value, []).append(record)
    ordered = {f"{name}": groups[name] for name in sorted(groups)} | {ALL: records}
    return Scores(
        {name: objective.score(members, config) for name, members in ordered.items()},
        {name: len(members) for name, members in ordered.items()},
        records,
    )


def _groups(objective: RowsObjective, rows: Dataset, by: str) -> list[Any]:
    """Return the value of each row in a column that metrics are grouped by."""
    if not objective.has_record_per_row:
        raise ValueError(f"the objective {objective.name!r} has metrics of sequences, not of rows")
    values = list(rows[by])
    wanted = f"a text or a number that names a group, and not {ALL!r}, which all rows are called"
    for row, value in enumerate(values):
        is_name = isinstance(value, str | int | float) and value != ALL
        check_cell(is_name, row, by, value, wanted)
    return values


def _rows_at(values: Any, order: np.ndarray) -> Any:
    """Return the rows of arrays, or of tuples of them, in another order."""
    if isinstance(values, tuple | list):
        return tuple(_rows_at(part, order) for part in values)
    return values[order]


def reader_of_rows(
    objective: RowsObjective, data: DataSource, where: Any, split: str | None, by: str | None
) -> Callable[[Finder], Dataset]:
    """Return what gives test rows with the columns in which a finder's names are, read once."""

    @cache
    def read(*columns: str) -> Dataset:
        return objective.read(data, where, "test", split, columns)

    return lambda finder: read(*([by] if by else []), *name_columns(finder))


def evaluate_checkpoint(
    folder: str | Path,
    objective: RowsObjective,
    data: DataSource,
    read: Callable[[Finder], Dataset],
    *,
    by: str | None = None,
    device: str | torch.device = "cpu",
) -> Scores:
    """Load a model and evaluate it on test data; see `evaluate_model`.

    Args:
        folder: of the model, or its Hub name.
        read: as of `reader_of_rows`.
    """
    model, tokenizer = load_checkpoint(folder, answers=False)
    rows = read(finder_of(tokenizer))
    model.to(device)
    return evaluate_model(objective, model, tokenizer, rows, data, by=by, progress=False)


def table(scores: Mapping[str, Scores], by: str | None = None) -> str:
    """Return metrics as a text: a block for each metric, a line for each model; shares times 100.

    Args:
        scores: model -> its metrics; all of the same rows.
        by: the column that the groups are values of.
    """
    first_scores = next(iter(scores.values()))
    groups = list(first_scores.metrics)
    width = max(6, *map(len, groups))
    unit = "" if set(first_scores.metrics[ALL]) <= set(NUMBERS) else "x100"
    rows = [[unit, f"{by}:" if by else "", *(group.rjust(width) for group in groups)]]
    for name in first_scores.metrics[ALL]:
        label = name
        for model, of_model in scores.items():
            values = (of_model.metrics[group][name] for group in groups)
            rows.append([label, model, *(_shown(name, value) for value in values)])
            label = ""
    rows.append(["samples", "", *(f"{first_scores.samples[group]}" for group in groups)])
    return aligned(rows)


def _shown(metric: str, value: float) -> str:
    return f"{value:.3f}" if metric in NUMBERS else f"{100 * value:.1f}"
