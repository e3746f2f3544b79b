"""The comparison: all encodings trained alike, measured alike, in one table and one picture."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_alpha.data.own import own_rows
from hf_alpha.data.pairs import renamings
from hf_alpha.data.unlike_training import LookAtTests, TrainingFacts, look_at_tests
from hf_alpha.evaluation.compare import (
    MOST_COLUMNS,
    TABLE_FILE,
    EvaluatedModel,
    Options,
    compare,
)
from hf_alpha.evaluation.curves import draw_curves
from hf_alpha.evaluation.evaluate import Exam
from hf_alpha.evaluation.report import Report
from hf_alpha.folders import alone_in, write_text
from hf_alpha.loading import load_checkpoint
from hf_alpha.processes import choose_device
from hf_alpha.recipe import Recipe

from .results import Result, by_encoding, describe, details, pooled
from .runs import ALONE, ENCODINGS, Run, Runner, Say, with_encoding
from .tuning import tuned_rate

CURVES_FILE = "curves.png"
HELD_OUT = 0.05
"""Share of the training data that is held out where the recipe holds out none."""
LOGS = 20
"""Losses of training that are logged at least, where the number of steps is known."""
HELD_OUT_ROWS = 200
"""Held-out rows that are answered."""


@alone_in("out")
def compare_encodings(
    recipe: Recipe,
    encodings: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    seconds: float | None = None,
    seeds: int = 1,
    tuning_steps: int = 0,
    trained: tuple[int, int] | None = None,
    covariance: int = 0,
    title: str | None = None,
    caption: str | None = None,
    say: Say = print,
    progress: bool = True,
    **settings: Any,
) -> tuple[str, list[Report]]:
    """Train a recipe with each encoding, and evaluate all models on the same problems.

    All have the same optimiser steps, or with `seconds` the same processor time. `out` gets a
    folder for each model, `table.txt`, the curves by number of names, and `evaluation` with the
    reports and the picture by length. What an earlier start has trained there is not trained again.

    Args:
        recipe: what to train; its `symbol_encoding`, `symbol_renaming` and `output_dir` are
            replaced. Where it holds out no rows for validation, `HELD_OUT` of them are.
        encodings: keys of `ENCODINGS`.
        rows: what to test on, as evaluation takes them.
        out: a folder.
        seconds: train each for so long, by the processor, in optimiser steps alone, with a learning
            rate that falls to zero until then; None for the recipe's steps.
        seeds: how often each is trained, with the recipe's seed and those that follow it.
        tuning_steps: of each trial of a search for a learning rate, one for each encoding; 0 for
            the recipe's rate.
        trained: fewest and most names of the training data, for the picture.
        covariance: problems for each number of names whose alpha-covariance is measured.
        title: above the curves.
        caption: below them.
        say: is told what is done.
        progress: show how training and evaluation go on.
        **settings: of `compare`.

    Returns:
        The table and the reports, one of each encoding, with the records of all its seeds; that of
        the baseline last.

    Raises:
        ValueError: there is no such encoding, the recipe goes on from a checkpoint, or `out` has
            models of other settings, or another process writes there.
    """
    _check(recipe, encodings)
    recipe = _with_held_out(recipe)
    examples = recipe.aim.examples(recipe, say)
    runner = Runner(examples, seconds, say, progress)
    runs = [
        run for name in encodings for run in _runs(recipe, name, out, seeds, tuning_steps, runner)
    ]
    held_out = own_rows(examples.validation, recipe.solved, HELD_OUT_ROWS)
    look = _look(recipe, examples, rows, runs[0].folder)
    say(f"{look}\n")
    options = {**settings, "covariance": covariance, "progress": progress}
    options["warnings"] = {run.folder.name: look.warnings for run in runs}
    results, baseline = _measure(recipe, runs, rows, held_out, out / "evaluation", options)
    reports = [*pooled(results), baseline]
    text = describe(results, reports, recipe.solved.measure)
    write_text(out / TABLE_FILE, text + "\n")
    draw_curves(
        reports[:-1], out / CURVES_FILE, metric=recipe.solved.measure, trained=trained,
        baseline=baseline, title=title, caption=caption, details=details(results),
        spread={name: [one.test for one in seeds] for name, seeds in by_encoding(results)},
        most_points=MOST_COLUMNS,
    )  # fmt: skip
    return text, reports


def _check(recipe: Recipe, encodings: Sequence[str]) -> None:
    """Refuse what cannot be compared.

    Raises:
        ValueError: there is no such encoding, one is given twice, or the recipe goes on from a
            checkpoint.
    """
    if recipe.checkpoint is not None:
        raise ValueError(
            "models are compared from scratch: leave out 'checkpoint'. Of trained models, hf-alpha "
            "evaluate MODEL MODEL --out DIR makes the table"
        )
    if len(set(encodings)) < len(encodings):
        raise ValueError(f"an encoding is given twice: {', '.join(encodings)}")
    if unknown := [name for name in encodings if name not in ENCODINGS]:
        raise ValueError(f"no encoding {unknown[0]!r}: choose from {', '.join(ENCODINGS)}")


def _with_held_out(recipe: Recipe) -> Recipe:
    """Return a recipe that holds out rows: what is learned shows on rows like those of training."""
    if recipe.data.validation:
        return recipe
    data = recipe.data.model_copy(update={"validation": HELD_OUT})
    return recipe.model_copy(update={"data": data})


def _runs(
    recipe: Recipe, name: str, out: Path, seeds: int, tuning_steps: int, runner: Runner
) -> list[Run]:
    """Train a recipe with one encoding: with a learning rate of its own, if it is looked for."""
    changes = _log_often(recipe.training) if runner.seconds is None else dict(ALONE)
    if tuning_steps:
        rate = tuned_rate(recipe, name, out / "tuning", tuning_steps, runner)
        changes["learning_rate"] = rate
    if seeds == 1:
        return [runner.train(with_encoding(recipe, name, out / name, **changes), name)]
    return [
        runner.train(
            with_encoding(recipe, name, out / f"{name}-seed-{seed}", **changes, seed=seed), name
        )
        for seed in range(recipe.seed, recipe.seed + seeds)
    ]


def _log_often(training: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with enough losses on the way to see whether they still fall."""
    steps = training.get("max_steps", -1)
    every = training.get("logging_steps", math.inf)
    return {"logging_steps": int(max(1, min(every, steps // LOGS)))} if steps > 0 else {}


def _measure(
    recipe: Recipe,
    runs: Sequence[Run],
    rows: Sequence[Mapping[str, Any]],
    held_out: Sequence[Mapping[str, Any]],
    folder: Path,
    options: Mapping[str, Any],
) -> tuple[list[Result], Report]:
    """Return how good each run is on test data and on held-out rows, and the baseline on tests."""
    task = recipe.solved
    models = [_loaded(run) for run in runs]
    _, (*reports, baseline) = compare(models, task, rows, folder, **options)
    fields = Options.__dataclass_fields__
    measuring = Options(**{key: value for key, value in options.items() if key in fields})
    results = []
    for run, model, report in zip(runs, models, reports, strict=True):
        settings = model.settings(task, held_out, measuring.of_evaluation(task))
        exam = Exam(task, held_out, folder / "held-out" / model.name, settings)
        results.append(Result(run, report, model.evaluate(exam)))
    return results, baseline


def _look(
    recipe: Recipe, examples: Any, rows: Sequence[Mapping[str, Any]], model: Path
) -> LookAtTests:
    """Look at test data, beside the training data of a model."""
    renamed = None
    if isinstance(examples.train, Dataset):
        renamed = renamings(examples.train, (row["problem"] for row in rows), examples.finder)
    tokenizer = examples.new_tokenizer(recipe.tokenizer)  # type: ignore[attr-defined]
    facts = TrainingFacts.beside(str(model))
    return look_at_tests(rows, examples.finder, tokenizer, facts, renamed)


def _loaded(run: Run) -> EvaluatedModel:
    model, tokenizer = load_checkpoint(run.folder)
    return EvaluatedModel(run.folder.name, model.eval().to(choose_device()), tokenizer)


__all__ = ["CURVES_FILE", "TABLE_FILE", "compare_encodings"]
