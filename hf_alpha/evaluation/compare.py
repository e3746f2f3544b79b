"""Models side by side on the same problems: reports, one table, one picture."""

import math
import random
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from transformers import PreTrainedModel

from hf_alpha.data.generate import generate_grid
from hf_alpha.data.read import load
from hf_alpha.evaluation.covariance import AlphaCovariance, alpha_covariance
from hf_alpha.evaluation.evaluate import Exam, Row, answer_limit, evaluate, evaluate_random
from hf_alpha.evaluation.heatmap import Heatmap, Region, draw
from hf_alpha.evaluation.random_parts import sensitivity
from hf_alpha.evaluation.report import Report, table, warning_lines
from hf_alpha.folders import alone_in, write_text
from hf_alpha.generation import extend_vocabulary
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.tasks import DrawnTask, Task, drawn_task
from hf_alpha.tasks.base import EQUIVALENCES

TABLE_FILE, HEATMAP_FILE = "table.txt", "heatmap.png"
MOST_COLUMNS = 12
"""Numbers of names, of the user's own texts, that have a column each; more share columns."""


class Entrant(Protocol):
    """A model that `compare` measures: one with symbols, or one of Transformers as it is."""

    name: str

    def settings(
        self, task: Task, rows: Sequence[Row], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make it ready for problems; return those settings that are for this kind of model."""

    def evaluate(self, exam: Exam) -> Report:
        """Answer the problems, and check the answers."""

    def covariance(
        self, exam: Exam, problems: Sequence[str], max_renamings: int | None, seed: int
    ) -> AlphaCovariance | None:
        """Measure its alpha-covariance on problems, which need not be those of the exam.

        None where it cannot be measured, which `notes` explains.
        """

    def notes(self, exam: Exam, draws: int) -> list[str]:
        """Return lines that stand below the table."""


@dataclass
class EvaluatedModel:
    """A model with symbols to be measured, and what its row is called."""

    name: str
    model: PreTrainedModel
    tokenizer: AnyTokenizer

    def settings(
        self, task: Task, rows: Sequence[Row], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Extend the vocabulary as far as the problems need it."""
        task.prepare(self.tokenizer)
        symbol_counts = task.needed_symbols([row["problem"] for row in rows])
        extend_vocabulary(self.model, self.tokenizer, symbol_counts)
        limit = settings["max_new_tokens"] or answer_limit(task, self.tokenizer, rows)
        return {**settings, "max_new_tokens": limit}

    def evaluate(self, exam: Exam) -> Report:
        """Answer the problems, and check the answers."""
        return evaluate(
            self.model,
            self.tokenizer,
            exam.task,
            exam.rows,
            name=self.name,
            folder=exam.folder,
            **exam.settings,
        )

    def covariance(
        self,
        exam: Exam,
        problems: Sequence[str],
        max_renamings: int | None = 24,
        seed: int = 0,
    ) -> AlphaCovariance:
        """Measure alpha-covariance with the search of the evaluation."""
        settings = exam.settings
        return alpha_covariance(
            self.model,
            self.tokenizer,
            problems,
            max_renamings=max_renamings,
            seed=seed,
            generate_kwargs={name: settings[name] for name in ("num_beams", "max_new_tokens")},
            batch_size=settings["batch_size"],
            progress=settings["progress"],
        )

    def notes(self, exam: Exam, draws: int) -> list[str]:
        """Say how much hangs on the draw of random parts."""
        if not draws or not self.model.config.encoding.random_parts:
            return []
        spreads = sensitivity(
            self.model,
            self.tokenizer,
            exam.task,
            exam.rows,
            seeds=range(draws),
            folder=exam.folder,
            **exam.settings,
        )
        return [f"{self.name}, {measure}: {spread}" for measure, spread in spreads.items()]


def draw_problems(
    task: Task,
    out: Path,
    symbols: Iterable[int],
    sizes: Iterable[int],
    samples: int,
    seed: int = 0,
    hard: float = 0.0,
    hardness: int = 1,
    exclude: Iterable[str] = (),
    equivalence: str = EQUIVALENCES[0],
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Draw `samples` problems for each number of symbols, spread evenly over the sizes.

    They come from the test split: none is equivalent to one of a training set made by this version
    with the same `equivalence`, nor to one of `exclude` (see `generate_grid`). `out` keeps the data
    they are taken from. With `hard` this share of them is hard (`hardness` says what is), for each
    number of symbols of which there are so many, and those too are spread evenly over the sizes
    that have any.
    """
    generate_grid(
        task, out, symbols, sizes, samples, seed, hard=hard, hardness=hardness, exclude=exclude,
        equivalence=equivalence, progress=progress,
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
        if hard:
            max_hard = math.ceil(round(hard * samples, 6))
            rounds = _hard_first(drawn_task(task), rounds, max_hard, hardness)
        chosen_rows += rounds[:samples]
    return chosen_rows


def _hard_first(
    task: DrawnTask, rows: list[dict[str, Any]], max_hard: int, hardness: int
) -> list[dict[str, Any]]:
    """Put the first hard rows, `max_hard` of them, before all others."""
    hard: list[dict[str, Any]] = []
    easy: list[dict[str, Any]] = []
    for row in rows:
        is_chosen = len(hard) < max_hard and task.is_hard(task.parse(row["problem"]), hardness)
        (hard if is_chosen else easy).append(row)
    return hard + easy


def choose_rows(
    rows: Iterable[dict[str, Any]],
    symbols: Container[int] | None = None,
    sizes: Container[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Return the rows with such numbers of symbols and sizes, in their order.

    Args:
        rows: of data that is there.
        symbols: numbers of symbols; None for all.
        sizes: likewise.
        samples: most rows of each number of symbols, drawn at random; None for all.
        seed: of what is drawn.

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
    rng = random.Random(seed)
    numbered_rows = [
        pair
        for _, pairs in sorted(by_symbols.items())
        for pair in (pairs if samples is None else rng.sample(pairs, min(samples, len(pairs))))
    ]
    return [row for _, row in sorted(numbered_rows, key=itemgetter(0))]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How `compare` measures models.

    Attributes:
        num_beams: number of beams, for alpha-covariance too; by default the papers'.
        max_new_tokens: limit of an answer's length; by default 128, and for pairs of the user's own
            half as much again as the longest target.
        top_n: candidates that are checked.
        covariance: problems for each number of symbols whose alpha-covariance is measured.
        max_renamings: of each of these problems; None for all.
        draws: of the random parts of `dual_part` models, whose spread then stands below the table.
        batch_size: problems in a batch.
        solver: as in the task's `check`.
        timeout: seconds for a call into a solver.
        num_workers: processes that check answers; 0 checks them between batches.
        seed: of random answers, and of the choice of problems and renamings for alpha-covariance.
        progress: show progress bars.
    """

    num_beams: int | None = None
    max_new_tokens: int | None = None
    top_n: int = 1
    covariance: int = 10
    max_renamings: int | None = 24
    draws: int = 0
    batch_size: int = 64
    solver: str = "auto"
    timeout: float = 10.0
    num_workers: int = 0
    seed: int = 0
    progress: bool = True

    def of_evaluation(self, task: Task) -> dict[str, Any]:
        """Return keyword arguments of `evaluate`, for `Entrant.settings`."""
        return {
            "num_beams": self.num_beams or task.num_beams,
            "max_new_tokens": self.max_new_tokens,
            "top_n": self.top_n,
            "batch_size": self.batch_size,
            "solver": self.solver,
            "timeout": self.timeout,
            "num_workers": self.num_workers,
            "progress": self.progress,
        }


@alone_in("out")
def compare(
    models: Sequence[Entrant],
    task: Task,
    rows: Sequence[Row],
    out: Path,
    *,
    region: Region | None = None,
    caption: str | None = None,
    warnings: Mapping[str, Sequence[str]] | None = None,
    **options: Any,
) -> tuple[str, list[Report]]:
    """Evaluate models and random answers on the same problems.

    `out` gets a folder with the report of each, `table.txt` and `heatmap.png`; a run that was
    stopped continues there.

    Args:
        region: symbols and sizes of the training data, outlined in the picture.
        caption: what the picture means, written below it.
        warnings: model -> what there is to doubt about the problems for it, as `FirstLook` finds
            it; lines above the table, and in the reports.
        options: attributes of `Options`.

    Returns:
        The table and the reports, that of the random answers last.

    Raises:
        TypeError: there is no such option.
        ValueError: another process writes in `out`.
    """
    setup = Options(**options)
    plan = _CovariancePlan(
        _probes(rows, setup.covariance, setup.seed), setup.max_renamings, setup.seed
    )
    reports, notes = [], []
    *folders, chance_folder = _folders(out, [*(each.name for each in models), task.random_name])
    for entrant, folder in zip(models, folders, strict=True):
        exam = Exam(task, rows, folder, entrant.settings(task, rows, setup.of_evaluation(task)))
        report, lines = _examine(entrant, exam, plan if plan.problems else None, setup.draws)
        own_warnings = list((warnings or {}).get(entrant.name, ()))
        if report.warnings != own_warnings:
            report.warnings = own_warnings
            report.save(folder)
        reports.append(report)
        notes += lines
    _draw_heatmaps(reports, task.measure, region, out, folders, caption)
    chance = evaluate_random(
        task, rows, seed=setup.seed, top_n=setup.top_n, solver=setup.solver, timeout=setup.timeout
    )
    chance.save(chance_folder)
    doubts = warning_lines(reports)
    reports.append(chance)
    columns = None if isinstance(task, DrawnTask) else MOST_COLUMNS
    rates = table(reports, measure=task.measure, most_columns=columns)
    text = "\n".join([*doubts, rates, *([""] if notes else []), *notes])
    write_text(out / TABLE_FILE, text + "\n")
    return text, reports


@dataclass(frozen=True)
class _CovariancePlan:
    """What alpha-covariance is measured on: problems, and a seeded choice of their renamings."""

    problems: list[str]
    max_renamings: int | None
    seed: int

    def is_done(self, report: Report) -> bool:
        """Whether a report, of an earlier start perhaps, has this alpha-covariance."""
        covariance = report.alpha_covariance
        return covariance is not None and (
            len(self.problems),
            self.max_renamings,
            self.seed,
        ) == (
            covariance.used + len(covariance.skipped),
            covariance.max_renamings,
            covariance.seed,
        )


def _examine(
    entrant: Entrant, exam: Exam, plan: _CovariancePlan | None, draws: int
) -> tuple[Report, list[str]]:
    """Measure one model; return its report, and the lines for below the table."""
    report = entrant.evaluate(exam)
    if plan is not None and not plan.is_done(report):
        report.alpha_covariance = entrant.covariance(
            exam, plan.problems, plan.max_renamings, plan.seed
        )
        assert exam.folder is not None
        report.save(exam.folder)
    measures = _measures(exam.task, report)
    notes = [f"{entrant.name}: {measures}"] if measures else []
    return report, notes + entrant.notes(exam, draws)


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


def _draw_heatmaps(
    reports: Sequence[Report],
    measure: str,
    region: Region | None,
    out: Path,
    folders: Sequence[Path],
    caption: str | None,
) -> None:
    """Write one picture of all reports, and the numbers of each beside its report."""
    pictures = [Heatmap.of(report, measure, region) for report in reports]
    draw(pictures, out / HEATMAP_FILE, caption=caption)
    for picture, folder in zip(pictures, folders, strict=True):
        picture.save(folder / "heatmap.json")


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


__all__ = [
    "MOST_COLUMNS",
    "TABLE_FILE",
    "EvaluatedModel",
    "Options",
    "choose_rows",
    "compare",
    "draw_problems",
]
