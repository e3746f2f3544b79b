"""What a comparison found: what each run cost, what it learned, and what it makes of test data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from hf_alpha.evaluation.compare import MOST_COLUMNS
from hf_alpha.evaluation.covariance import AlphaCovariance
from hf_alpha.evaluation.report import Report, lengths_table, table, warning_lines
from hf_alpha.plain_text import aligned

from .runs import Run

LEARNED = 0.9
"""With so many right answers to rows like those of training, a run has learned its task."""


@dataclass(frozen=True)
class Result:
    """A run, and its answers.

    Attributes:
        run: what was trained.
        test: its answers to test data.
        held_out: its answers to rows like those of training, which it was not trained on.
    """

    run: Run
    test: Report
    held_out: Report

    @property
    def warning(self) -> str | None:
        """Say that the loss stands still and the task is not learned, if that is so."""
        still = self.run.standstill
        if still is None or self.held_out.overall.correct >= LEARNED:
            return None
        before, last = still
        return (
            f"{self.test.model}: its loss stands still, {before:.3g} in the second quarter of "
            f"training and {last:.3g} in the last, and {self.held_out.overall.correct:.0%} of "
            "held-out rows are right: try another learning rate (--tune 300)"
        )


def by_encoding(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Yield each encoding with its results, one for each seed."""
    for name in dict.fromkeys(result.run.encoding for result in results):
        yield name, [result for result in results if result.run.encoding == name]


def warnings(results: Sequence[Result]) -> list[str]:
    """Return what there is to doubt about a comparison, a line for each run."""
    still = [f"? {result.warning}" for result in results if result.warning is not None]
    return [*warning_lines([result.test for result in results]), *still]


def pooled(results: Sequence[Result]) -> list[Report]:
    """Return a report for each encoding, with the answers of all its seeds.

    So its rates are means over the seeds.
    """
    return [_pooled(name, [one.test for one in seeds]) for name, seeds in by_encoding(results)]


def _pooled(name: str, reports: Sequence[Report]) -> Report:
    covariances = [r.alpha_covariance for r in reports if r.alpha_covariance is not None]
    covariance = None
    if covariances:
        first = covariances[0]
        samples = tuple(sample for one in covariances for sample in one.samples)
        covariance = AlphaCovariance(samples, first.skipped, first.max_renamings, first.seed)
    records = [record for report in reports for record in report.records]
    return Report(name, reports[0].settings, records, covariance)


def describe(results: Sequence[Result], reports: Sequence[Report], measure: str) -> str:
    """Return the table: what each run cost and learned, then rates by names, and by length too.

    Args:
        results: one of each run.
        reports: one of each encoding, and of the baseline.
        measure: that of the task.
    """
    *of_encodings, _ = reports
    held_out, test = len(results[0].held_out.records), len(results[0].test.records)
    seeds = len(results) // len(of_encodings)
    notes = [
        "steps of the optimiser; seconds of the processor in these steps alone; last loss of "
        "training;",
        f"% right of {held_out} held-out rows like those of training, and of {test} test rows",
        *([f"below, {seeds} seeds count together, as do their samples"] if seeds > 1 else []),
    ]
    blocks = [
        "\n".join([*warnings(results), _runs_table(results), *notes]),
        table(reports, measure=measure, most_columns=MOST_COLUMNS),
        lengths_table(of_encodings, "correct"),
    ]
    return "\n\n".join(filter(None, blocks))


def details(results: Sequence[Result]) -> dict[str, str]:
    """Return what a legend says of each encoding: cost, loss, and what it learned."""
    texts = {}
    for name, seeds in by_encoding(results):
        runs = [one.run for one in seeds]
        held_out = fmean(one.held_out.overall.correct for one in seeds)
        texts[name] = (
            f": {fmean(run.steps for run in runs):,.0f} steps, "
            f"{fmean(run.seconds for run in runs):,.0f} s, "
            f"loss {fmean(run.loss for run in runs):.2g}; {held_out:.0%} of held-out rows right"
        )
    return texts


def _runs_table(results: Sequence[Result]) -> str:
    """Return a row for each run; of several seeds, their mean and range of right answers too."""
    heads = ["steps", "seconds", "learning rate", "loss", "held out", "test"]
    rows = [["%", "trained:", *heads]]
    for name, seeds in by_encoding(results):
        rows += [_row(result) for result in seeds]
        if len(seeds) > 1:
            rates = [
                [100 * report.overall.correct for report in reports]
                for reports in ([one.held_out for one in seeds], [one.test for one in seeds])
            ]
            for title, value in (("mean", fmean), ("lowest", min), ("highest", max)):
                cells = [f"{value(numbers):.1f}" for numbers in rates]
                rows.append(["", f"{name}, {title}", "", "", "", "", *cells])
    return aligned(rows)


def _row(result: Result) -> list[str]:
    run = result.run
    return [
        "", result.test.model, f"{run.steps:,}", f"{run.seconds:.0f}", f"{run.learning_rate:g}",
        f"{run.loss:.4g}", f"{100 * result.held_out.overall.correct:.1f}",
        f"{100 * result.test.overall.correct:.1f}",
    ]  # fmt: skip


__all__ = ["Result", "by_encoding", "describe", "details", "pooled", "warnings"]
