"""How much the answers of a `dual_part` model depend on the draw of its random parts."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from hf_alpha.evaluation import evaluate
from hf_alpha.evaluation.report import EDIT_DISTANCE
from hf_alpha.generation import AnyTokenizer
from hf_alpha.io.folders import write_text
from hf_alpha.tasks import Task, get_task

from .random_parts import TEN, draw_losses, median_seed, other_draws

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


__all__ = ["Spread", "sensitivity"]
