"""Random parts of a `dual_part` model: which draw to use, and how much hangs on it."""

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from hf_alpha.data.collate import AlphaCollator
from hf_alpha.evaluation.evaluate import evaluate
from hf_alpha.evaluation.report import EDIT_DISTANCE
from hf_alpha.folders import write_text
from hf_alpha.generation import evaluation_mode
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.tasks import Task, get_task

TEN = tuple(range(10))
DRAWS_FILE = "draws.json"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Spread:
    """One measure over several draws, as 2410.17161, Section 5.1.3, reports it.

    Attributes:
        values: seed -> value.
        deviation: sample standard deviation; None for a single draw.
        median_rule: value of the draw that the median rule chose, where it was asked.
    """

    values: dict[int, float]
    minimum: float
    mean: float
    maximum: float
    deviation: float | None
    median_rule: float | None = None

    @classmethod
    def of(cls, values: dict[int, float], median_rule: float | None = None) -> "Spread":
        """Return smallest, mean and largest value, and the standard deviation of several."""
        results = list(values.values())
        return cls(
            values,
            min(results),
            statistics.fmean(results),
            max(results),
            statistics.stdev(results) if len(results) > 1 else None,
            median_rule,
        )

    def __str__(self) -> str:
        deviation = "-" if self.deviation is None else f"{self.deviation:.4f}"
        rule = "" if self.median_rule is None else f", median rule {self.median_rule:.4f}"
        return (
            f"min {self.minimum:.4f}, mean {self.mean:.4f}, max {self.maximum:.4f}, "
            f"deviation {deviation} ({len(self.values)} draws){rule}"
        )


def _batches(
    model: PreTrainedModel, tokenizer: AnyTokenizer, rows: Iterable[Row], batch_size: int
) -> list[dict[str, torch.Tensor]]:
    encoded = [
        tokenizer.encode_pair(row["problem"], row["answer"])
        for row in rows
        if row.get("answer") is not None
    ]
    if not encoded:
        raise ValueError("the loss needs labels: no row has an answer")
    encoded.sort(key=lambda features: (len(features["stream_ids"]), len(features["input_ids"])))
    collate = AlphaCollator(tokenizer, for_decoder=not model.config.is_encoder_decoder)
    return [
        collate(encoded[start : start + batch_size]) for start in range(0, len(encoded), batch_size)
    ]


def _loss(model: PreTrainedModel, batches: Sequence[dict[str, torch.Tensor]]) -> float:
    total, count = 0.0, 0
    for batch in batches:
        batch = {name: value.to(model.device) for name, value in batch.items()}
        logits, labels = model(**batch).logits.float(), batch["labels"]
        if not model.config.is_encoder_decoder:  # its labels are those of the next position
            logits, labels = logits[:, :-1], labels[:, 1:]
        total += float(F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum"))
        count += int((labels != -100).sum())
    return total / count


def use_median_draw(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    rows: Iterable[Row],
    *,
    seeds: Sequence[int] = TEN,
    batch_size: int = 64,
    progress: bool = True,
) -> dict[int, float]:
    """Give a `dual_part` model the draw of median loss (2410.17161, Section 5.1.3).

    The rule needs labels: use validation data, not what is tested on. Save the model afterwards to
    keep the draw.

    Args:
        rows: validation data, with `problem` and `answer`.
        seeds: of the draws; the paper takes ten.

    Returns:
        The loss of each draw, as `draw_losses`; the chosen one is `model.config.symbol_seed`.

    Raises:
        ValueError: the model has no random parts, or no row has an answer.
    """
    losses = draw_losses(
        model, tokenizer, rows, seeds=seeds, batch_size=batch_size, progress=progress
    )
    model.redraw_symbols(median_seed(losses))
    return losses


def median_seed(losses: Mapping[int, float]) -> int:
    """Return the seed of median loss; of two in the middle that of the larger loss."""
    return sorted(losses, key=lambda seed: (losses[seed], seed))[len(losses) // 2]


def draw_losses(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    rows: Iterable[Row],
    *,
    seeds: Sequence[int] = TEN,
    batch_size: int = 64,
    progress: bool = True,
) -> dict[int, float]:
    """Return the loss of each draw; the model keeps its own.

    A loss is the mean cross-entropy of the answers' tokens, each counted once. Rows without an
    answer are passed over.

    Raises:
        ValueError: the model has no random parts, no row has an answer, or seeds do not differ.
    """
    _check_seeds(seeds)
    losses = {}
    with other_draws(model), evaluation_mode(model), torch.inference_mode():
        batches = _batches(model, tokenizer, rows, batch_size)
        for seed in tqdm(seeds, desc="draws", disable=not progress):
            model.redraw_symbols(seed)
            losses[seed] = _loss(model, batches)
    return losses


def sensitivity(
    model: PreTrainedModel,
    tokenizer: AnyTokenizer,
    task: Task | str,
    rows: Sequence[Row],
    validation: Iterable[Row] | None = None,
    *,
    seeds: Sequence[int] = TEN,
    folder: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> dict[str, Spread]:
    """Measure how much the answers of a `dual_part` model depend on the draw.

    Args:
        rows: problems to answer.
        validation: where given, the median rule is applied to it, and what it would have reported
            stands beside the mean.
        seeds: of the draws.
        folder: keeps a report of each draw and `draws.json`; a run that was stopped continues.
        settings: of `evaluate`.

    Returns:
        The spread of `correct` and `exact` (shares), and of `edit_distance` where the task has it.

    Raises:
        ValueError: the model has no random parts.
    """
    _check_seeds(seeds)
    task = get_task(task) if isinstance(task, str) else task
    median = None
    if validation is not None:
        losses = draw_losses(model, tokenizer, validation, seeds=seeds, progress=progress)
        median = median_seed(losses)
    values: dict[str, dict[int, float]] = {}
    with other_draws(model):
        for seed in seeds:
            model.redraw_symbols(seed)
            report = evaluate(
                model,
                tokenizer,
                task,
                rows,
                name=f"draw {seed}",
                folder=None if folder is None else Path(folder) / f"draw-{seed}",
                progress=progress,
                **settings,
            )
            for name in ("correct", "exact", EDIT_DISTANCE):
                if name != EDIT_DISTANCE or report.overall.edit_distance is not None:
                    values.setdefault(name, {})[seed] = report.overall.rate(name)
    spreads = {
        name: Spread.of(by_seed, None if median is None else by_seed[median])
        for name, by_seed in values.items()
    }
    if folder is not None:
        data = {name: asdict(spread) for name, spread in spreads.items()}
        write_text(Path(folder) / DRAWS_FILE, json.dumps(data, indent=1) + "\n")
    return spreads


@contextmanager
def other_draws(model: PreTrainedModel) -> Iterator[None]:
    """Let a model be redrawn meanwhile, and give it its own random parts back.

    Raises:
        ValueError: the model has no random parts.
    """
    seed = model.config.symbol_seed
    draws = model.symbol_layer.draws
    if draws is None or not draws.has_parts:
        model.redraw_symbols(seed)  # says what is wrong
        raise AssertionError
    parts = draws.random_parts
    try:
        yield
    finally:
        model.redraw_symbols(seed)
        draws.random_parts = parts


def _check_seeds(seeds: Sequence[int]) -> None:
    if not seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds of draws must be given and differ, not {list(seeds)}")


__all__ = [
    "Spread",
    "draw_losses",
    "median_seed",
    "other_draws",
    "sensitivity",
    "use_median_draw",
]
