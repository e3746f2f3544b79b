"""Models side by side: on the same problems, or by the objective of their recipe."""

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from hf_alpha import wings
from hf_alpha.answer.base import Random
from hf_alpha.answer.models import Model
from hf_alpha.data.formats import Row
from hf_alpha.data.keys import forms_seen, keys_beside
from hf_alpha.data.pairs import FEW, evaluation_rows, training_pairs
from hf_alpha.data.rows import described, load
from hf_alpha.evaluation.covariance import AlphaCovariance, alpha_covariance, by_rules
from hf_alpha.evaluation.evaluate import run
from hf_alpha.evaluation.heatmap import Heatmap, Region, draw
from hf_alpha.evaluation.renamed import Followed, namings_of
from hf_alpha.evaluation.report import REPORT_FILE, Report, rates_table, warning_lines
from hf_alpha.io.folders import check_own, lock_folder, locks_folder, write_text
from hf_alpha.loading import auto_class, load_config
from hf_alpha.modeling.choices import refuse
from hf_alpha.names.first_look import seen_in_training
from hf_alpha.objectives import OBJECTIVES, make_objective
from hf_alpha.objectives.base import Finder, RowsObjective
from hf_alpha.objectives.evaluate import METRICS_FILE, Scores, evaluate_checkpoint
from hf_alpha.objectives.evaluate import table as scores_table
from hf_alpha.objectives.names import find_names
from hf_alpha.processes import first_before_others, is_first
from hf_alpha.recipe import Data, Recipe, recipe_of
from hf_alpha.tasks import Task
from hf_alpha.tasks.base import EQUIVALENCES

TABLE_FILE, HEATMAP_FILE, SCORES_FILE = "table.txt", "heatmap.png", "report.txt"


def draw_problems(
    task: Task,
    out: Path,
    symbols: Iterable[int],
    sizes: Iterable[int],
    samples: int,
    seed: int = 0,
    equivalence: str = EQUIVALENCES[0],
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Draw `samples` problems for each number of symbols, spread evenly over the sizes.

    They come from the test split: none is equivalent to one of a training set made by this version
    with the same `equivalence`. `out` keeps the data they are taken from.
    """
    with first_before_others():
        wings.wing("generation").generate_grid(
            task, out, symbols, sizes, samples,
            seed=seed, equivalence=equivalence, progress=progress,
        )  # fmt: skip
    cells: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for row in load(out, "test"):
        cells.setdefault(row["num_symbols"], {}).setdefault(row["size"], []).append(row)
    chosen_rows: list[dict[str, Any]] = []
    for by_size in cells.values():
        # Round after round, one of each size: small sizes run out of formulas first.
        rounds = [
            rows[turn] for turn in range(samples) for rows in by_size.values() if turn < len(rows)
        ]
        chosen_rows += rounds[:samples]
    return chosen_rows


def trained_region(recipe: Recipe) -> Region | None:
    """Return fewest and most symbols, and sizes, of the training data; None where nothing says it.

    Of datasets that are generated they are the most of all. Of pairs of the user's own they are
    those of the first pairs, where these are here.
    """
    folders = (recipe.data, *(recipe.data.more or ()))
    settings = [folder.generate for folder in folders]
    generated = [of for of in settings if {"num_symbols", "sizes"} <= of.keys()]
    if generated:
        symbols = max(max(of["num_symbols"], of.get("up_to_symbols", 0)) for of in generated)
        return (0, symbols), (1, max(of["sizes"][1] for of in generated))
    finder = getattr(recipe.configured_task, "finder", None)
    pairs = None if finder is None else training_pairs(recipe.data, finder)
    if pairs is None:
        return None
    rows = evaluation_rows(pairs, recipe.configured_task, FEW)
    symbols, sizes = ([row[key] for row in rows] for key in ("num_symbols", "size"))
    return (min(symbols), max(symbols)), (min(sizes), max(sizes))


def compare(
    models: Sequence[Model],
    task: Task,
    rows: Sequence[Row],
    out: Path,
    *,
    region: Region | None = None,
    warnings: Mapping[str, Sequence[str]] | None = None,
    covariance: int = 10,
    max_renamings: int | None = 24,
    renamed: int = 0,
    seed: int = 0,
    progress: bool = True,
    **checking: Any,
) -> tuple[str, list[Report]]:
    """Evaluate models and random answers on the same problems.

    `out` gets a folder with the report of each, `table.txt` and `heatmap.png`; a run that was
    stopped continues there. In several processes (accelerate) each answers a share of the rows.

    Args:
        models: whose vocabularies are extended as far as the problems need it.
        rows: as `run` takes them.
        region: symbols and sizes of the training data, outlined in the picture.
        warnings: model -> what there is to doubt about the problems for it, as `FirstLook` finds
            it; lines above the table, and in the reports.
        covariance: problems for each number of symbols whose alpha-covariance is measured.
        max_renamings: of each of these problems; None for all.
        renamed: so many times, models are asked each row again under other names.
        seed: of random answers, and of the choice of problems and renamings.
        checking: `solver` and `timeout` of `run`.

    Returns:
        The table and the reports, that of the random answers last.

    Raises:
        ValueError: another process writes in `out`.
    """
    with lock_folder(out):
        check_own(out, (TABLE_FILE, HEATMAP_FILE), f"**/{REPORT_FILE}")
        rows = described(task, rows)
        probes, reports, notes = _probes(rows, covariance, seed), [], []
        top_n = max((each.search.top_n for each in models), default=1)
        chance = Random(task.random_name, seed, top_n)
        namings = namings_of(task, rows, renamed, seed) if renamed else []
        refuse(renamed and not namings, "no row has a name that could have another one: --renamed")
        other_rows = [naming.row for naming in namings]
        *folders, chance_folder = _folders(out, [*(each.name for each in models), chance.name])
        for model, folder in zip(models, folders, strict=True):
            model.extend(task, [row["problem"] for row in (*rows, *other_rows)])
            report = run(model, task, rows, folder, progress=progress, **checking)
            before = report.warnings, report.alpha_covariance
            report.warnings = list((warnings or {}).get(model.name, ()))
            if probes and not _is_measured(report.alpha_covariance, probes, max_renamings, seed):
                try:
                    report.alpha_covariance = _covariance(
                        model, task, probes, report, max_renamings, seed, progress
                    )
                except ValueError as error:
                    notes.append(f"{model.name}: alpha-covariance was not measured: {error}")
            if is_first() and (report.warnings, report.alpha_covariance) != before:
                report.save(folder)
            if measures := _measures(task, report):
                notes.append(f"{model.name}: {measures}")
            if namings:
                again = run(
                    model, task, other_rows, folder / "renamed", progress=progress, **checking
                )
                followed = Followed.of(task, namings, report.records, again.records)
                notes.append(f"{model.name}: {followed}")
            reports.append(report)
        reports.append(run(chance, task, rows, progress=False, **checking))
        lines = [*warning_lines(reports[:-1]), rates_table(reports, task)]
        text = "\n".join([*lines, *([""] if notes else []), *notes])
        if is_first():
            heatmaps = [Heatmap.of(one, task.measure, region) for one in reports[:-1]]
            draw(heatmaps, out / HEATMAP_FILE)
            reports[-1].save(chance_folder)
            write_text(out / TABLE_FILE, text + "\n")
    return text, reports


def _is_measured(
    covariance: AlphaCovariance | None, probes: Sequence[str], max_renamings: int | None, seed: int
) -> bool:
    """Whether a report, of an earlier start perhaps, has this alpha-covariance."""
    if covariance is None:
        return False
    count = covariance.used + len(covariance.skipped)
    wanted = (len(probes), max_renamings, seed)
    return (count, covariance.max_renamings, covariance.seed) == wanted


def _covariance(
    model: Model,
    task: Task,
    problems: Sequence[str],
    report: Report,
    max_renamings: int | None,
    seed: int,
    progress: bool,
) -> AlphaCovariance:
    """Measure alpha-covariance with the search of a report."""
    symbols = by_rules(model.tokenizer, task, problems)
    search = {name: report.settings[name] for name in ("num_beams", "max_new_tokens")}
    return alpha_covariance(
        model.model, model.tokenizer, problems, symbols, max_renamings, seed, search,
        model.search.batch_size, progress,
    )  # fmt: skip


def _measures(task: Task, report: Report) -> str:
    """Return what the task measures of all answers together, as text; "" where it does not.

    Without an answer the empty one counts.
    """
    records = [record for record in report.records if record.target is not None]
    measures = task.measured(
        [record.answers[0] if record.answers else "" for record in records],
        [f"{record.target}" for record in records],
    )
    return ", ".join(f"{name} {value:.4g}" for name, value in measures.items())


def _probes(rows: Sequence[Row], count: int, seed: int) -> list[str]:
    """Choose a few problems of each number of symbols, for alpha-covariance."""
    groups: dict[int, list[str]] = {}
    for row in rows:
        groups.setdefault(row["num_symbols"], []).append(row["problem"])
    rng = random.Random(seed)
    return [
        problem
        for symbols, problems in sorted(groups.items())
        if symbols
        for problem in rng.sample(problems, min(count, len(problems)))
    ]


def _folders(out: Path, names: Sequence[str]) -> list[Path]:
    """Return a folder for each name; of names that differ in signs only later ones get a number.

    The order of the names decides, so that the same command finds its folders again.
    """
    slugs: list[str] = []
    for name in names:
        slug = re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "model"
        numbered = (slug if number == 1 else f"{slug}-{number}" for number in count(1))
        slugs.append(next(candidate for candidate in numbered if candidate not in slugs))
    return [out / slug for slug in slugs]


def rows_recipe(models: Sequence[str]) -> Recipe:
    """Return the recipe that models are measured by: the first one's, or what its head says.

    Args:
        models: folders or Hub names.

    Raises:
        ValueError: neither says what is measured, or another model is of another kind.
    """
    recipe = recipe_of(models[0]) or _recipe_by_head(models[0])
    if recipe is None or recipe.kind != "rows":
        raise ValueError(f"{models[0]} has no recipe.yaml that says what it is trained for")
    first, *other_kinds = (auto_class(load_config(model)).__name__ for model in models)
    for model, kind in zip(models[1:], other_kinds, strict=True):
        if kind != first:
            raise ValueError(
                f"{model} is a model for {kind}, {models[0]} one for {first}: evaluate them apart"
            )
    return recipe


def _recipe_by_head(model: str) -> Recipe | None:
    """Return a recipe for a model without one; None for a head that no objective trains."""
    config = load_config(model)
    settings: dict[str, dict[str, Any]] = {
        "masked": {"sentences": "none"},
        "class": {"regression": True} if config.num_labels == 1 else {},
    }
    for name in OBJECTIVES:
        objective = {"name": name, **settings.get(name, {})}
        if make_objective(objective).auto_name == auto_class(config).__name__:
            data = Data.model_construct()
            return Recipe.model_construct(task="text", objective=objective, data=data)
    return None


@locks_folder("out")
def evaluate_objective(
    models: Mapping[str, str],
    recipe: Recipe,
    read: Callable[[Finder], Dataset],
    out: Path,
    *,
    by: str | None = None,
    device: str | torch.device = "cpu",
) -> tuple[str, dict[str, Scores]]:
    """Score models on the same rows; `out` gets the metrics and predictions of each, and the table.

    Args:
        models: what a row of the table is called -> folder or Hub name.
        recipe: says the objective, and which columns rows have.
        read: gives the rows, as of `reader_of_rows`.
        by: a column of the rows; each of its values has metrics of its own.

    Returns:
        The table, and name -> metrics.

    Raises:
        ValueError: a model or the data cannot be read, or another process writes in `out`.
    """
    check_own(out, (SCORES_FILE,), f"**/{METRICS_FILE}")
    objective, scores = make_objective(recipe.objective), {}
    for name, model in models.items():
        scores[name] = evaluate_checkpoint(
            model, objective, recipe.data, read, by=by, device=device
        )
        parts = [part for part in Path(name).parts if part not in ("/", "..")]
        if is_first():
            scores[name].save(out.joinpath(*parts) if len(models) > 1 else out)
    seen = _rows_trained_on(models, objective, recipe, read)
    text = "\n".join([*seen, *[""] * bool(seen), scores_table(scores, by)])
    if is_first():
        write_text(out / SCORES_FILE, f"{text}\n")
    return text, scores


def _rows_trained_on(
    models: Mapping[str, str],
    objective: RowsObjective,
    recipe: Recipe,
    read: Callable[[Finder], Dataset],
) -> list[str]:
    """Say of each model which test rows, or renamings of them, it was trained on."""
    known = {name: keys_beside(model) for name, model in models.items()}
    if not any(keys is not None for keys in known.values()):
        return []
    finder = find_names(recipe.symbols)
    forms = [*objective.keys(read(finder), recipe.data, finder)]
    return [
        f"? {name}: {warning}"
        for name, keys in known.items()
        if keys is not None
        for warning in seen_in_training(forms_seen(forms, keys), len(forms))
    ]
