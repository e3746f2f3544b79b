"""Encodings side by side: a recipe trained with each for the same steps, one table, one picture."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import Dataset

from hf_alpha.answer.models import digest, load_answerer
from hf_alpha.data.keys import rows_seen
from hf_alpha.data.pairs import evaluation_rows
from hf_alpha.evaluation.compare import TABLE_FILE, compare
from hf_alpha.evaluation.covariance import AlphaCovariance
from hf_alpha.evaluation.curves import draw_curves
from hf_alpha.evaluation.evaluate import run
from hf_alpha.evaluation.report import (
    MOST_COLUMNS,
    REPORT_FILE,
    Report,
    lengths_table,
    table,
    warning_lines,
)
from hf_alpha.io.folders import check_own, locks_folder, write_text
from hf_alpha.io.plain_text import aligned
from hf_alpha.io.progress import TrainingProgress
from hf_alpha.io.records import read_json
from hf_alpha.loading import answering_parts, is_plain
from hf_alpha.modeling.choices import check_known, check_unique
from hf_alpha.names.first_look import FirstLook, TrainingFacts, look_at_tests
from hf_alpha.processes import choose_device
from hf_alpha.recipe import Recipe
from hf_alpha.train import TRAINER_STATE, AlphaTrainer, NotFiniteError, train
from hf_alpha.wings import wing

ENCODINGS: Mapping[str, Mapping[str, Any]] = {
    "learned": {"symbol_encoding": "learned"},
    "renaming": {"symbol_encoding": "learned", "symbol_renaming": "random"},
    "canonical": {"symbol_encoding": "learned", "symbol_renaming": "first_occurrence"},
    "dual_part": {"symbol_encoding": "dual_part"},
    "streams": {"symbol_encoding": "streams"},
    "relational": {"symbol_encoding": "relational"},
}
"""What a comparison calls an encoding -> settings of the model."""
PLAIN, CANONICAL = "plain", "canonical"
"""A model of Transformers as it is, and with its names spelled canonically."""
CONVERTED = "converted"
"""Folder of the models that training begins with, where the recipe names a plain one."""
LEAST_SYMBOLS = 10
"""Of each class that a plain model gets."""
CURVES_FILE = "curves.png"
HELD_OUT, HELD_OUT_ROWS = 0.05, 200
"""Share of the training data that is held out where the recipe holds out none; rows answered."""
FACTORS = (1 / 3, 1.0, 3.0)
"""Of the recipe's learning rate: those that a search tries."""
LEARNING_RATE = 5e-5
"""That of Transformers, where a recipe has none."""
Learn = partial[Any]
"""`train` with the data that all runs share."""


@dataclass(frozen=True)
class Run:
    """A model that was trained: its encoding, its recipe, and its answers.

    Attributes:
        recipe: with `training.output_dir`, where the model is.
        held_out: its answers to rows like those of training, which it was not trained on.
    """

    encoding: str
    recipe: Recipe
    test: Report
    held_out: Report

    @property
    def cells(self) -> list[str]:
        """Steps, learning rate, last loss of training, % right of held-out and of test rows."""
        state = read_json(Path(self.recipe.training["output_dir"]) / TRAINER_STATE)
        log = state["log_history"]
        losses = [row[key] for key in ("train_loss", "loss") for row in log if key in row]
        rights = (f"{100 * one.overall.correct:.1f}" for one in (self.held_out, self.test))
        return [
            f"{state['global_step']:,}", f"{_learning_rate(self.recipe):g}", f"{losses[-1]:.4g}",
            *rights,
        ]  # fmt: skip


@locks_folder("out")
def compare_encodings(
    recipe: Recipe,
    encodings: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    seeds: int = 1,
    tuning_steps: int = 0,
    trained: tuple[int, int] | None = None,
    covariance: int = 0,
    title: str | None = None,
    caption: str | None = None,
    say: Callable[[str], object] = print,
    progress: bool = True,
    **settings: Any,
) -> tuple[str, list[Report]]:
    """Train a recipe with each encoding, and evaluate all models on the same problems.

    All have the same optimiser steps. `out` gets a folder for each model, `table.txt`, the curves
    by number of names, and `evaluation` with the reports and the picture by length. What an earlier
    start has trained there is not trained again.

    Args:
        recipe: what to train; its `symbol_encoding`, `symbol_renaming` and `output_dir` are
            replaced. Where it holds out no rows for validation, `HELD_OUT` of them are. With the
            `checkpoint` of a plain model, that is converted for each encoding.
        encodings: keys of `ENCODINGS`, and of a plain model `plain`, which leaves it as it is.
        rows: what to test on, as evaluation takes them.
        seeds: how often each is trained, with the recipe's seed and those that follow it.
        tuning_steps: of each trial of a search for a learning rate, one for each encoding; 0 for
            the recipe's rate.
        trained: fewest and most names of the training data, for the picture.
        covariance: problems for each number of names whose alpha-covariance is measured.

    Returns:
        The table and the reports, one of each encoding, with the records of all its seeds; that of
        the baseline last.

    Raises:
        ValueError: there is no such encoding, the recipe goes on from a checkpoint that is no plain
            model, or `out` has models of other settings, or another process writes there.
    """
    _check(recipe, encodings)
    check_own(out, (TABLE_FILE, CURVES_FILE), f"**/{REPORT_FILE}")
    if not recipe.data.validation:
        data = recipe.data.model_copy(update={"validation": HELD_OUT})
        recipe = recipe.model_copy(update={"data": data})
    examples = recipe.aim.examples(recipe, say)
    make_trainer = AlphaTrainer if progress else _quiet_trainer
    learn = partial(train, say=say, examples=examples, make_trainer=make_trainer)
    recipes = [
        (name, one)
        for name in encodings
        for start in [_started(recipe, name, out, examples, say)]
        for one in _recipes(start, name, out, seeds, tuning_steps, learn)
    ]
    folders = [Path(one.training["output_dir"]) for _, one in recipes]
    for (_, one), folder in zip(recipes, folders, strict=True):
        say(f"{folder.name}: training")
        learn(one)
    look = _look(recipe, examples, rows, folders[0])
    say(f"{look}\n")
    warnings = {folder.name: look.warnings for folder in folders}
    say(f"answering {len(rows):,} rows")
    bars = progress and sys.stderr.isatty()
    models = [load_answerer(folder.name, str(folder), choose_device()) for folder in folders]
    _, (*tests, baseline) = compare(
        models, recipe.configured_task, rows, out / "evaluation", warnings=warnings,
        covariance=covariance, progress=bars, **settings,
    )  # fmt: skip
    held_out = evaluation_rows(examples.validation, recipe.configured_task, HELD_OUT_ROWS)
    runs = []
    for (name, one), model, test in zip(recipes, models, tests, strict=True):
        model.extend(recipe.configured_task, [row["problem"] for row in held_out])
        folder = out / "evaluation" / "held-out" / model.name
        answers = run(model, recipe.configured_task, held_out, folder, progress=bars)
        runs.append(Run(name, one, test, answers))
    reports = [
        *(pooled(name, [r.test for r in same]) for name, same in by_encoding(runs)),
        baseline,
    ]
    text = describe(runs, reports, recipe.configured_task.measure)
    write_text(out / TABLE_FILE, text + "\n")
    draw_curves(
        reports[:-1], out / CURVES_FILE, metric=recipe.configured_task.measure, trained=trained,
        baseline=baseline, title=title, caption=caption,
        spread={name: [run.test for run in same] for name, same in by_encoding(runs)},
        most_points=MOST_COLUMNS,
    )  # fmt: skip
    return text, reports


def _quiet_trainer(**arguments: Any) -> AlphaTrainer:
    trainer = AlphaTrainer(**arguments)
    trainer.remove_callback(TrainingProgress)
    return trainer


def _check(recipe: Recipe, encodings: Sequence[str]) -> None:
    """Refuse what cannot be compared."""
    if recipe.checkpoint is not None and not is_plain(recipe.checkpoint):
        raise ValueError(
            f"models are compared from scratch or from a plain model, and {recipe.checkpoint} is "
            "none: leave out 'checkpoint'. Of trained models, hf-alpha evaluate MODEL MODEL --out "
            "DIR makes the table"
        )
    check_unique("encodings", list(encodings))
    known = ENCODINGS if recipe.checkpoint is None else (PLAIN, *ENCODINGS)
    for name in encodings:
        if name == PLAIN and recipe.checkpoint is None:
            raise ValueError("plain is a model of Transformers as it is: name one as 'checkpoint'")
        check_known("encoding", name, known)


def with_encoding(recipe: Recipe, name: str, folder: Path, **training: Any) -> Recipe:
    """Return a recipe with another encoding, output folder and other settings of training."""
    replaced = ("symbol_encoding", "symbol_renaming")
    model = {key: value for key, value in recipe.model.items() if key not in replaced}
    changes = {} if recipe.checkpoint else {"model": {**model, **ENCODINGS[name]}}
    changes["training"] = {**recipe.training, **training, "output_dir": str(folder)}
    return recipe.model_copy(update=changes, deep=True)


def _started(
    recipe: Recipe, name: str, out: Path, examples: Any, say: Callable[[str], object]
) -> Recipe:
    """Return a recipe that begins with its plain model as an encoding has it, if it has one.

    What an earlier start has converted is taken as it is.
    """
    if recipe.checkpoint is None or name == PLAIN:
        return recipe
    # By another model or other rules it would be another one.
    made_of = [str(Path(recipe.checkpoint).expanduser().resolve()), recipe.symbols]
    place = out / CONVERTED / f"{name}-{digest(made_of)[:8]}"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        if name == CANONICAL:
            convert_to_canonical = wing("spelling").convert_to_canonical
            convert_to_canonical(recipe.checkpoint, place, recipe.symbols, say)
        else:
            symbols = _symbols_for(name, examples)
            wing("conversion").convert_host(recipe.checkpoint, place, symbols, say)
    return recipe.model_copy(update={"checkpoint": str(place)})


def _symbols_for(name: str, examples: Any) -> Any:
    """Return what a plain model gets: symbols for all names of a row, and new ones if need be."""
    rules = examples.finder.to_dict()
    counts = examples.lacking(dict.fromkeys(rules, 0), training=True)
    settings = ENCODINGS[name]
    return wing("conversion").SymbolConfig(
        encoding=settings["symbol_encoding"],
        symbols={
            kind: {**rule, "count": max(counts[kind], LEAST_SYMBOLS)}
            for kind, rule in rules.items()
        },
        renaming=settings.get("symbol_renaming", "none"),
        settings={"new_symbols": name != "streams" and examples.has_new_names()},
    )


def _recipes(
    recipe: Recipe, name: str, out: Path, seeds: int, tuning_steps: int, learn: Learn
) -> Iterator[Recipe]:
    """Give the recipe of each seed: with a learning rate of its own, if it is looked for."""
    changes = {}
    if tuning_steps:
        changes["learning_rate"] = _tuned_rate(recipe, name, out, tuning_steps, learn)
    if seeds == 1:
        yield with_encoding(recipe, name, out / name, **changes)
        return
    for seed in range(recipe.seed, recipe.seed + seeds):
        yield with_encoding(recipe, name, out / f"{name}-seed-{seed}", **changes, seed=seed)


def _tuned_rate(recipe: Recipe, name: str, out: Path, steps: int, learn: Learn) -> float:
    """Return the learning rate, of three, with the lowest loss on held-out rows after a few steps.

    Each trial is a whole run of so many steps, its schedule included.
    """
    losses: dict[float, float] = {}
    for factor in FACTORS:
        rate = float(f"{factor * _learning_rate(recipe):.2g}")
        trial = with_encoding(
            recipe, name, out / "tuning" / f"{name}-{rate:g}",
            learning_rate=rate, max_steps=steps, eval_strategy="steps", eval_steps=steps,
            warmup_steps=min(recipe.training.get("warmup_steps", 0), steps // 10),
            save_strategy="no", load_best_model_at_end=False,
        )  # fmt: skip
        data = trial.data.model_copy(update={"max_answer_samples": 0})
        trial = trial.model_copy(update={"data": data})
        try:
            learn(trial)
        except NotFiniteError:
            losses[rate] = math.inf
            continue
        log = read_json(Path(trial.training["output_dir"]) / TRAINER_STATE)["log_history"]
        losses[rate] = next(row["eval_loss"] for row in reversed(log) if "eval_loss" in row)
    best = min(losses, key=lambda rate: losses[rate])
    tried = ", ".join(f"{loss:.4g} with {rate:g}" for rate, loss in losses.items())
    ends = {min(losses): "smallest", max(losses): "largest"}
    hint = f", the {ends[best]} of them: another search may go on there" if best in ends else ""
    learn.keywords["say"](f"{name}: held-out loss {tried}; the learning rate is {best:g}{hint}")
    return best


def _learning_rate(recipe: Recipe) -> float:
    return float(recipe.training.get("learning_rate", LEARNING_RATE))


def _look(
    recipe: Recipe, examples: Any, rows: Sequence[Mapping[str, Any]], model: Path
) -> FirstLook:
    """Look at test data, beside the training data of a model."""
    renamed = None
    if isinstance(examples.train, Dataset):
        renamed = rows_seen([row["problem"] for row in rows], examples.finder, examples.keys)
    if recipe.checkpoint is None:
        tokenizer = examples.new_tokenizer(recipe.tokenizer)
    else:
        _, tokenizer = answering_parts(model)
    facts = TrainingFacts.beside(str(model))
    return look_at_tests(rows, examples.finder, tokenizer, facts, renamed)


def by_encoding(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """Yield each encoding with its runs, one for each seed."""
    for name in dict.fromkeys(one.encoding for one in runs):
        yield name, [one for one in runs if one.encoding == name]


def pooled(name: str, reports: Sequence[Report]) -> Report:
    """Return one report with the answers of all seeds: its rates are means over them."""
    covariances = [one.alpha_covariance for one in reports if one.alpha_covariance is not None]
    covariance = None
    if covariances:
        first = covariances[0]
        samples = tuple(sample for one in covariances for sample in one.samples)
        covariance = AlphaCovariance(samples, first.skipped, first.max_renamings, first.seed)
    records = [record for report in reports for record in report.records]
    return Report(name, reports[0].settings, records, covariance)


def describe(runs: Sequence[Run], reports: Sequence[Report], measure: str) -> str:
    """Return the table: what each run learned, then rates by names, and by length too.

    Args:
        runs: one for each encoding and seed.
        reports: one of each encoding, and of the baseline.
    """
    rows = [["%", "trained:", "steps", "learning rate", "loss", "held out", "test"]]
    for name, same in by_encoding(runs):
        rows += [["", run.test.model, *run.cells] for run in same]
        if len(same) > 1:
            rates = [[float(run.cells[place]) for run in same] for place in (-2, -1)]
            for title, value in (("mean", fmean), ("lowest", min), ("highest", max)):
                cells = [f"{value(numbers):.1f}" for numbers in rates]
                rows.append(["", f"{name}, {title}", "", "", "", *cells])
    held_out, test = len(runs[0].held_out.records), len(runs[0].test.records)
    note = f"% right of {held_out} held-out rows like those of training, and of {test} test rows"
    blocks = [
        "\n".join([*warning_lines([run.test for run in runs]), aligned(rows), note]),
        table(reports, measure=measure, most_columns=MOST_COLUMNS),
        lengths_table(reports[:-1], "correct"),
    ]
    return "\n\n".join(filter(None, blocks))
