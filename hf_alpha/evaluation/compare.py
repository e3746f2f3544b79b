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
from hf_alpha.evaluation.evaluate import answer_limit, evaluate, evaluate_random
from hf_alpha.evaluation.heatmap import Heatmap, Region, draw
from hf_alpha.evaluation.random_parts import sensitivity
from hf_alpha.evaluation.report import Report, table
from hf_alpha.folders import alone_in, write_text
from hf_alpha.generation import extend_vocabulary
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.tasks import Task
from hf_alpha.tasks.base import EQUIVALENCES

TABLE_FILE, HEATMAP_FILE = "table.txt", "heatmap.png"


class Entrant(Protocol):
    """Whoever is measured: a model with symbols, or one that is asked by a prompt."""

    name: str

    def settings(
        self, task: Task, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make it ready for problems; return the settings of `evaluate` that are for it."""

    def evaluate(
        self,
        task: Task,
        rows: Sequence[Mapping[str, Any]],
        folder: Path,
        settings: Mapping[str, Any],
    ) -> Report:
        """Let it answer problems, and check its answers."""

    def check_covariance(self) -> None:
        """Raise ValueError if its alpha-covariance cannot be measured."""

    def covariance(
        self,
        task: Task,
        problems: Sequence[str],
        folder: Path,
        settings: Mapping[str, Any],
        max_renamings: int | None,
        seed: int,
    ) -> AlphaCovariance:
        """Measure its alpha-covariance."""

    def notes(
        self,
        task: Task,
        rows: Sequence[Mapping[str, Any]],
        folder: Path,
        settings: Mapping[str, Any],
        draws: int,
    ) -> list[str]:
        """Say more of it below the table."""


@dataclass
class EvaluatedModel:
    """A model with symbols to be measured, and what its row is called."""

    name: str
    model: PreTrainedModel
    tokenizer: AnyTokenizer

    def settings(
        self, task: Task, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Extend the vocabulary as far as the problems need it."""
        task.prepare(self.tokenizer)
        needed = task.needed_symbols([row["problem"] for row in rows])
        extend_vocabulary(self.model, self.tokenizer, needed)
        limit = settings["max_new_tokens"] or answer_limit(task, self.tokenizer, rows)
        return {**settings, "max_new_tokens": limit}

    def evaluate(
        self,
        task: Task,
        rows: Sequence[Mapping[str, Any]],
        folder: Path,
        settings: Mapping[str, Any],
    ) -> Report:
        """Let the model answer problems, and check its answers."""
        return evaluate(
            self.model, self.tokenizer, task, rows, name=self.name, folder=folder, **settings
        )

    def check_covariance(self) -> None:
        """Raise nothing: its search always finds the same answers."""

    def covariance(
        self,
        task: Task,
        problems: Sequence[str],
        folder: Path,
        settings: Mapping[str, Any],
        max_renamings: int | None = 24,
        seed: int = 0,
    ) -> AlphaCovariance:
        """Measure alpha-covariance with the search of the evaluation."""
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

    def notes(
        self,
        task: Task,
        rows: Sequence[Mapping[str, Any]],
        folder: Path,
        settings: Mapping[str, Any],
        draws: int,
    ) -> list[str]:
        """Say how much hangs on the draw of random parts."""
        if not draws or not self.model.config.encoding.random_parts:
            return []
        seeds = range(draws)
        found = sensitivity(
            self.model, self.tokenizer, task, rows, seeds=seeds, folder=folder, **settings
        )
        return [f"{self.name}, {name}: {spread}" for name, spread in found.items()]


def draw_problems(
    task: Task,
    out: Path,
    symbols: Iterable[int],
    sizes: Iterable[int],
    samples: int,
    seed: int = 0,
    hard: float = 0.0,
    exclude: Iterable[str] = (),
    equivalence: str = EQUIVALENCES[0],
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Draw `samples` problems for each number of symbols, spread evenly over the sizes.

    They come from the test split: none is equivalent to one of a training set made by this version
    with the same `equivalence`, nor to one of `exclude` (see `generate_grid`). `out` keeps the data
    they are taken from. With `hard` this share of them is hard, for each number of symbols of which
    there are so many, and those too are spread evenly over the sizes that have any.
    """
    generate_grid(
        task, out, symbols, sizes, samples, seed, hard=hard, exclude=exclude,
        equivalence=equivalence, progress=progress,
    )  # fmt: skip
    cells: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for row in load(out, "test"):
        cells.setdefault(row["num_symbols"], {}).setdefault(row["size"], []).append(row)
    chosen: list[dict[str, Any]] = []
    for by_size in cells.values():
        # Round after round, one of each size: small sizes run out of formulas first.
        rounds = [
            rows[turn] for turn in range(samples) for rows in by_size.values() if turn < len(rows)
        ]
        if hard:
            first: list[dict[str, Any]] = []
            rest: list[dict[str, Any]] = []
            wanted = math.ceil(round(hard * samples, 6))
            for row in rounds:
                is_first = len(first) < wanted and task.is_hard(task.parse(row["problem"]))
                (first if is_first else rest).append(row)
            rounds = first + rest
        chosen += rounds[:samples]
    return chosen


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
    found: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for place, row in enumerate(rows):
        fits = symbols is None or row["num_symbols"] in symbols
        if fits and (sizes is None or row["size"] in sizes):
            found.setdefault(row["num_symbols"], []).append((place, row))
    if not found:
        raise ValueError("no row of the data has as many symbols and that size")
    rng = random.Random(seed)
    chosen = [
        pair
        for _, some in sorted(found.items())
        for pair in (some if samples is None else rng.sample(some, min(samples, len(some))))
    ]
    return [row for _, row in sorted(chosen, key=itemgetter(0))]


@alone_in("out")
def compare(
    models: Sequence[Entrant],
    task: Task,
    rows: Sequence[Mapping[str, Any]],
    out: Path,
    *,
    region: Region | None = None,
    caption: str | None = None,
    num_beams: int | None = None,
    max_new_tokens: int | None = None,
    top_n: int = 1,
    covariance: int = 10,
    max_renamings: int | None = 24,
    draws: int = 0,
    batch_size: int = 64,
    solver: str = "auto",
    timeout: float = 10.0,
    num_workers: int = 0,
    seed: int = 0,
    progress: bool = True,
) -> tuple[str, list[Report]]:
    """Evaluate models and random answers on the same problems.

    `out` gets a folder with the report of each, `table.txt` and `heatmap.png`; a run that was
    stopped continues there.

    Args:
        region: symbols and sizes of the training data, outlined in the picture.
        caption: what the picture means, written below it.
        num_beams: number of beams, for alpha-covariance too; by default the papers'.
        max_new_tokens: limit of an answer's length; by default 128, and for pairs of the user's own
            half as much again as the longest target.
        covariance: problems for each number of symbols whose alpha-covariance is measured.
        max_renamings: of each of these problems; None for all.
        draws: of the random parts of `dual_part` models, whose spread then stands below the table.
        batch_size: problems in a batch.
        timeout: seconds for a call into a solver.
        num_workers: processes that check answers; 0 checks them between batches.

    Returns:
        The table and the reports, that of the random answers last.

    Raises:
        ValueError: alpha-covariance is wanted of a model whose answers are drawn, or another
            process writes in `out`.
    """
    if covariance:  # before the first answer: answers may cost money
        for entry in models:
            entry.check_covariance()
    probes = _probes(rows, covariance, seed)
    wanted: dict[str, Any] = {
        "num_beams": num_beams or task.num_beams,
        "max_new_tokens": max_new_tokens,
        "top_n": top_n,
        "batch_size": batch_size,
        "solver": solver,
        "timeout": timeout,
        "num_workers": num_workers,
        "progress": progress,
    }
    reports, notes = [], []
    folders = _folders(out, [*(entry.name for entry in models), task.random_name])
    for entry, folder in zip(models, folders, strict=False):
        settings = entry.settings(task, rows, wanted)
        report = entry.evaluate(task, rows, folder, settings)
        if covariance and not _is_measured(report, len(probes), max_renamings, seed):
            report.alpha_covariance = entry.covariance(
                task, probes, folder, settings, max_renamings, seed
            )
            report.save(folder)
        reports.append(report)
        if measured := _measured(task, report):
            notes.append(f"{entry.name}: {measured}")
        notes += entry.notes(task, rows, folder, settings, draws)
    _draw_heatmaps(reports, task.measure, region, out, folders, caption)
    chance = evaluate_random(task, rows, seed=seed, top_n=top_n, solver=solver, timeout=timeout)
    chance.save(folders[-1])
    reports.append(chance)
    text = "\n".join([table(reports, measure=task.measure), *([""] if notes else []), *notes])
    write_text(out / TABLE_FILE, text + "\n")
    return text, reports


def _measured(task: Task, report: Report) -> str:
    """What the task measures of all answers together, as text; an empty answer where none is."""
    known = [record for record in report.records if record.target is not None]
    found = task.measured(
        [record.answers[0] if record.answers else "" for record in known],
        [f"{record.target}" for record in known],
    )
    return ", ".join(f"{name} {value:.4g}" for name, value in found.items())


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
    for picture, folder in zip(pictures, folders, strict=False):
        picture.save(folder / "heatmap.json")


def _probes(rows: Sequence[Mapping[str, Any]], count: int, seed: int) -> list[str]:
    """A few problems of each number of symbols, for alpha-covariance."""
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


def _is_measured(report: Report, problems: int, max_renamings: int | None, seed: int) -> bool:
    """Whether a report, of an earlier start perhaps, has the alpha-covariance asked for."""
    found = report.alpha_covariance
    return found is not None and (problems, max_renamings, seed) == (
        found.used + len(found.skipped),
        found.max_renamings,
        found.seed,
    )


def _folders(out: Path, names: Sequence[str]) -> list[Path]:
    """A folder for each name; of names that differ in case and signs only, later ones get a number.

    The order of the names decides, so that the same command finds its folders again.
    """
    found: list[str] = []
    for name in names:
        slug = re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "model"
        ways = (slug if number == 1 else f"{slug}-{number}" for number in count(1))
        found.append(next(way for way in ways if way not in found))
    return [out / name for name in found]


__all__ = ["EvaluatedModel", "choose_rows", "compare", "draw_problems"]
