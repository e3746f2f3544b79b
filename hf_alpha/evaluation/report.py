"""The result of an evaluation: a record of each sample, rates by cell, files and a text table."""

import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from hf_alpha.evaluation.covariance import AlphaCovariance, covariance_notes
from hf_alpha.io.folders import write_text
from hf_alpha.io.plain_text import aligned
from hf_alpha.io.records import parse_json, read_json
from hf_alpha.modeling.choices import check_known
from hf_alpha.tasks import DrawnTask, Task, Verdict

OUTSIDE = "outside_vocabulary"
OUTCOMES = (*(verdict.value for verdict in Verdict), OUTSIDE)
OUTSIDE_MARK = "\N{EN DASH}"
EDIT_DISTANCE = "edit_distance"
COVARIANCE = "alpha_covariance"
POOL = 3
"""A table has one column for all values of a fact from here on."""
UNKNOWN = -1
REPORT_FILE = "report.json"
RECORDS_FILE = "records.jsonl"

MOST_COLUMNS = 12
"""Numbers of names, of the user's own texts, that have a column each; more share columns."""

Key = TypeVar("Key", bound=Hashable)
Groups = Callable[["Report"], Mapping[int, "Rates"]]


@dataclass(frozen=True)
class Bins:
    """Ranges of whole numbers, one behind the other.

    Attributes:
        ranges: first and last number of each.
    """

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, numbers: Iterable[int], most: int | None = None) -> "Bins":
        """Cut numbers into at most `most` ranges that hold about as many of them.

        Args:
            numbers: one of each sample, in any order.
            most: None for a range for each different number.
        """
        counts = sorted(Counter(numbers).items())
        if most is None or len(counts) <= most:
            return cls(tuple((number, number) for number, _ in counts))
        total, seen = sum(count for _, count in counts), 0
        groups: list[list[int]] = [[] for _ in range(most)]
        for number, count in counts:  # by where the middle of its samples lies among all
            groups[int(most * (seen + count / 2) / total)].append(number)
            seen += count
        return cls(tuple((group[0], group[-1]) for group in groups if group))

    def first(self, number: int) -> int:
        """Return the first number of the range that a number of the data lies in."""
        return self.ranges[bisect_right([first for first, _ in self.ranges], number) - 1][0]

    @property
    def labels(self) -> dict[int, str]:
        """First number of each range -> the range as text: `7`, or `7-12`."""
        return {
            first: f"{first}" if first == last else f"{first}-{last}" for first, last in self.ranges
        }


@dataclass(frozen=True)
class Record:
    """One sample.

    Attributes:
        target: the answer to compare with, None if there is none.
        num_symbols: distinct symbols of the problem.
        size: tokens of the problem.
        answers: the model's, best first; None if the problem is outside its vocabulary.
        verdicts: of the answers; `(OUTSIDE,)` without answers.
        distance: of the first answer, or of none, from the right one; None where the task has no
            such measure.
        facts: what else the task knows of the problem; None where it could not be found out.
        reason: why there is no answer, of a model that was asked and did not give one.
    """

    index: int
    problem: str
    target: str | None
    num_symbols: int
    size: int
    answers: tuple[str, ...] | None
    verdicts: tuple[str, ...]
    distance: int | None = None
    facts: Mapping[str, int | None] = field(default_factory=dict)
    reason: str | None = None

    @property
    def outcome(self) -> str:
        """The verdict on the first answer."""
        return self.verdicts[0]

    @property
    def any_correct(self) -> bool:
        """Whether one of the answers is right."""
        return any(v in (Verdict.exact, Verdict.correct) for v in self.verdicts)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Record":
        """Undo `dataclasses.asdict`, also after JSON made lists of the tuples."""
        answers = data["answers"]
        return cls(**{
            **data,
            "answers": None if answers is None else tuple(answers),
            "verdicts": tuple(data["verdicts"]),
        })  # fmt: skip


@dataclass(frozen=True)
class Rates:
    """How often each outcome occurs in a set of samples.

    Attributes:
        outcomes: outcome -> how many; they add up to `count`.
        any_correct: samples with a correct answer among all candidates.
        edit_distance: mean over the samples, those outside the vocabulary included; None where the
            task has no such measure, or without samples.
    """

    count: int
    outcomes: Mapping[str, int]
    any_correct: int
    edit_distance: float | None = None

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Rates":
        """Count the outcomes of records."""
        rows = list(records)
        counts = Counter(record.outcome for record in rows)
        outcomes = {name: counts[name] for name in OUTCOMES}
        distances = [record.distance for record in rows if record.distance is not None]
        mean = fmean(distances) if distances else None
        return cls(len(rows), outcomes, sum(record.any_correct for record in rows), mean)

    def rate(self, name: str) -> float:
        """Return the share of an outcome of all samples, or their mean `edit_distance`.

        `correct` includes `exact`, so that it and the other outcomes add up to 1. `top_n` is the
        share of samples with a correct answer among all candidates. Timeouts, undecided checks and
        samples outside the vocabulary are not correct. Without samples every rate is nan.

        Raises:
            ValueError: no such rate.
        """
        check_known("rate", name, (*OUTCOMES, "top_n", EDIT_DISTANCE))
        if name == EDIT_DISTANCE:
            return float("nan") if self.edit_distance is None else self.edit_distance
        right = self.outcomes["exact"] + self.outcomes["correct"]
        part = {**self.outcomes, "correct": right, "top_n": self.any_correct}[name]
        return part / self.count if self.count else float("nan")

    @property
    def correct(self) -> float:
        """The share of exact and otherwise correct answers."""
        return self.rate("correct")

    @property
    def exact(self) -> float:
        """The share of answers equal to the target."""
        return self.rate("exact")

    @property
    def top_n(self) -> float:
        """The share of samples with a correct answer among the candidates."""
        return self.rate("top_n")

    @property
    def is_outside(self) -> bool:
        """Whether all samples are outside the model's vocabulary."""
        return self.count > 0 and self.outcomes[OUTSIDE] == self.count

    def to_dict(self) -> dict[str, Any]:
        """Return the count and all rates."""
        rates = {name: self.rate(name) if self.count else None for name in (*OUTCOMES, "top_n")}
        distance = {} if self.edit_distance is None else {EDIT_DISTANCE: self.edit_distance}
        return {"count": self.count, **rates, **distance}


@dataclass
class Report:
    """The result of evaluating one model on one set of problems.

    Attributes:
        settings: how it was found; a run that resumes has to have the same.
        alpha_covariance: set by the caller, to be shown next to correctness.
        warnings: what there is to doubt about the problems; set by the caller likewise.
    """

    model: str
    settings: dict[str, Any]
    records: list[Record]
    alpha_covariance: AlphaCovariance | None = field(default=None)
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def overall(self) -> Rates:
        """Rates of all samples."""
        return Rates.of(self.records)

    @cached_property
    def by_num_symbols(self) -> dict[int, Rates]:
        """Rates by number of symbols."""
        return self._group(lambda record: record.num_symbols)

    @cached_property
    def by_size(self) -> dict[int, Rates]:
        """Rates by length of the problem."""
        return self._group(lambda record: record.size)

    @cached_property
    def by_cell(self) -> dict[tuple[int, int], Rates]:
        """Rates by (number of symbols, length)."""
        return self._group(lambda record: (record.num_symbols, record.size))

    @cached_property
    def facts(self) -> list[str]:
        """What the task found out about problems beside symbols and size."""
        pairs = (pair for record in self.records for pair in record.facts.items())
        return list(dict.fromkeys(name for name, value in pairs if value is not None))

    def by_names(self, bins: Bins) -> dict[int, Rates]:
        """Rates by ranges of numbers of symbols, each by its first number."""
        return self._group(lambda record: bins.first(record.num_symbols))

    def by_fact(self, name: str, pool: int | None = None) -> dict[int, Rates]:
        """Return rates by a known fact, such as `witness_length`; from `pool` on together."""
        groups = self._group(lambda record: _fact(record, name, pool))
        return {value: rates for value, rates in groups.items() if value != UNKNOWN}

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Why there is no answer -> to how many problems, the most frequent reason first."""
        counts = Counter(record.reason for record in self.records if record.reason is not None)
        return dict(counts.most_common())

    def _group(self, key: Callable[[Record], Key]) -> dict[Key, Rates]:
        groups: dict[Any, list[Record]] = {}
        for record in self.records:
            groups.setdefault(key(record), []).append(record)
        return {name: Rates.of(groups[name]) for name in sorted(groups)}

    def to_dict(self, records: bool = True) -> dict[str, Any]:
        """Return everything as JSON-able data; the rates in it are derived from the records."""
        covariance = self.alpha_covariance
        data: dict[str, Any] = {
            "model": self.model,
            "settings": self.settings,
            "overall": self.overall.to_dict(),
            "by_num_symbols": _rows(self.by_num_symbols, lambda k: {"num_symbols": k}),
            "by_size": _rows(self.by_size, lambda k: {"size": k}),
            "by_cell": _rows(self.by_cell, lambda k: {"num_symbols": k[0], "size": k[1]}),
            "alpha_covariance": None if covariance is None else covariance.to_dict(),
        }
        if self.reasons:
            data["no_answer"] = self.reasons
        if self.warnings:
            data["warnings"] = self.warnings
        for fact in self.facts:
            data[f"by_{fact}"] = [
                {fact: value} | rates.to_dict() for value, rates in self.by_fact(fact).items()
            ]
        return data | ({"records": [asdict(r) for r in self.records]} if records else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Report":
        """Undo `to_dict` with records."""
        covariance = data["alpha_covariance"]
        return cls(
            data["model"],
            data["settings"],
            [Record.from_dict(record) for record in data["records"]],
            None if covariance is None else AlphaCovariance.from_dict(covariance),
            list(data.get("warnings", ())),
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write report.json and records.jsonl; each replaces an old one in one step."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(asdict(record)) + "\n" for record in self.records)
        write_text(path / RECORDS_FILE, "".join(lines))
        record = self.to_dict(records=False)
        content = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(path / REPORT_FILE, content + "\n")
        return path

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Report":
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: the folder holds no finished report.
            ValueError: a file is damaged.
        """
        path = Path(folder) / REPORT_FILE
        if not path.is_file():
            raise FileNotFoundError(f"{folder} holds no {REPORT_FILE}: is its run finished?")
        data = read_json(path, "model", "settings", "alpha_covariance")
        records = path.with_name(RECORDS_FILE)
        lines = records.read_text(encoding="utf-8").splitlines()
        rows = [parse_json(line, records) for line in lines]
        try:
            return cls.from_dict({**data, "records": rows})
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} or {RECORDS_FILE} is damaged: {error!r}") from error


def rates_table(reports: Sequence[Report], task: Task) -> str:
    """Write the table of models on problems of a task, as it is printed and stands in cards."""
    columns = None if isinstance(task, DrawnTask) else MOST_COLUMNS
    return table(reports, measure=task.measure, most_columns=columns)


def table(
    reports: Sequence[Report],
    metrics: Sequence[str] | None = None,
    measure: str = EDIT_DISTANCE,
    most_columns: int | None = None,
) -> str:
    """Write a text table: rows by metric and model, columns by number of symbols, in percent.

    Args:
        metrics: names for `Rates.rate`, and `alpha_covariance`. By default edit_distance where it
            is measured, correct, exact where there are targets that it may differ from, top_n where
            there are several answers, alpha_covariance where known.
        measure: the one that comes first if it is among those by default.
        most_columns: where there are more numbers of symbols, ranges of them share a column.

    A cell outside a model's vocabulary is a dash and counts as not correct, and as an empty answer,
    in the column `all`. A metric that was not measured there is an empty cell. Below the table a
    line says how alpha-covariance was measured, and one to how many problems a model gave the same
    answer whatever the names (see `AlphaCovariance`), where it did. A line says why a model gave no
    answer to so many problems, where that is known. Facts of the problems, such as
    the length of the shortest witness, have a block of their own.
    """
    metrics = _known_metrics(reports, measure) if metrics is None else metrics
    reasons, bins = [*map(_reasons_note, reports)], names_bins(reports, most_columns)
    blocks = [_block(reports, metrics, "symbols:", lambda report: report.by_names(bins), bins)]
    for fact in dict.fromkeys(name for report in reports for name in report.facts):
        rate_names = [metric for metric in metrics if metric != COVARIANCE]
        by_fact = partial(Report.by_fact, name=fact, pool=POOL)
        blocks.append(_block(reports, rate_names, f"{fact.replace('_', ' ')}:", by_fact, pool=POOL))
    measured = [(r.model, r.alpha_covariance) for r in reports if r.alpha_covariance is not None]
    notes = [*(covariance_notes(measured) if COVARIANCE in metrics else []), *filter(None, reasons)]
    if EDIT_DISTANCE in metrics:
        notes.insert(0, f"{EDIT_DISTANCE}: mean number of tokens, less is better; the rest in %")
    return "\n\n".join(["\n".join([blocks[0], *notes]), *blocks[1:]])


def warning_lines(reports: Sequence[Report]) -> list[str]:
    """Return what there is to doubt, a line each; with the models for which it is, if not all."""
    models_of: dict[str, list[str]] = {}
    for report in reports:
        for warning in report.warnings:
            models_of.setdefault(warning, []).append(report.model)
    return [
        f"? {text}" if len(models) == len(reports) else f"? {', '.join(models)}: {text}"
        for text, models in models_of.items()
    ]


def _block(
    reports: Sequence[Report],
    metrics: Sequence[str],
    title: str,
    groups_of: Groups,
    bins: Bins | None = None,
    pool: int | None = None,
) -> str:
    """Return one table: a column for each group, or range of `bins`, and one for all samples."""
    labels = {} if bins is None else bins.labels
    groups = [groups_of(report) for report in reports]
    columns = sorted({column for rates in groups for column in rates})
    rows = [
        ["%", title, *(f"{c}+" if c == pool else labels.get(c, f"{c}") for c in columns), "all"]
    ]
    for metric in metrics:
        label = metric
        for report, rates in zip(reports, groups, strict=True):
            if metric != COVARIANCE or report.alpha_covariance is not None:
                cells = [_cell(report, metric, rates.get(c), bins, c) for c in columns]
                rows.append([label, report.model, *cells, _cell(report, metric, report.overall)])
                label = ""
    samples = [_most(rates[c].count for rates in groups if c in rates) for c in columns]
    rows.append(["samples", "", *samples, _most(report.overall.count for report in reports)])
    return aligned(rows)


def _reasons_note(report: Report) -> str:
    """Say why a model gave no answer; an empty text where it always did."""
    if not report.reasons:
        return ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in report.reasons.items())
    count, total = sum(report.reasons.values()), len(report.records)
    return f"no answer of {report.model} to {count} of {total} problems: {reasons}"


def _most(counts: Iterable[int]) -> str:
    return str(max(counts, default=0))


def _known_metrics(reports: Sequence[Report], measure: str) -> list[str]:
    records = [record for report in reports for record in report.records]
    distance = any(record.distance is not None for record in records)
    metrics = [EDIT_DISTANCE, "correct"] if distance else ["correct"]
    # Where distance counts, there is one right answer, unless a check has found another one:
    # correct and exact are the same.
    several_answers = not distance or any(Verdict.correct in record.verdicts for record in records)
    if several_answers and any(record.target is not None for record in records):
        metrics.append("exact")
    if any(len(record.verdicts) > 1 for record in records):
        metrics.append("top_n")
    if any(report.alpha_covariance is not None for report in reports):
        metrics.append(COVARIANCE)
    return sorted(metrics, key=lambda metric: metric != measure)


def cell_of(rates: Rates | None, metric: str) -> str:
    """Return a cell: an edit distance, or a rate in percent; empty where nothing was measured."""
    if rates is None:
        return ""
    if rates.is_outside:
        return OUTSIDE_MARK
    if metric == EDIT_DISTANCE:
        return "" if rates.edit_distance is None else f"{rates.edit_distance:.2f}"
    return f"{100 * rates.rate(metric):.1f}"


def _cell(
    report: Report,
    metric: str,
    rates: Rates | None,
    bins: Bins | None = None,
    first: int | None = None,
) -> str:
    """Return a cell of a report: of the range of names that begins with `first`, or of all."""
    if metric != COVARIANCE or rates is None or rates.is_outside:
        return cell_of(rates, metric)
    scores = [
        sample.score
        for sample in (report.alpha_covariance.samples if report.alpha_covariance else ())
        if bins is None or bins.first(sample.num_symbols) == first
    ]
    return f"{100 * fmean(scores):.1f}" if scores else ""


def names_bins(reports: Sequence[Report], most: int | None) -> Bins:
    """Return ranges of numbers of symbols that problems of reports have."""
    return Bins.of((record.num_symbols for r in reports for record in r.records), most)


def lengths_table(reports: Sequence[Report], metric: str, columns: int = 6, rows: int = 3) -> str:
    """Write a table by length and number of symbols, which often grow together; "" if one is fixed.

    Args:
        metric: a rate, or edit_distance.
        columns: most ranges of lengths.
        rows: most ranges of numbers of symbols, each a row of every model.
    """
    lengths = Bins.of((record.size for r in reports for record in r.records), columns)
    names = names_bins(reports, rows)
    if len(lengths.ranges) < 2 or len(names.ranges) < 2:
        return ""
    table_rows = [[metric, "tokens:", *lengths.labels.values(), "all"]]
    for report in reports:
        for first, label in names.labels.items():
            records = [r for r in report.records if names.first(r.num_symbols) == first]
            groups = Report(report.model, {}, records)._group(lambda r: lengths.first(r.size))
            cells = [cell_of(groups.get(length), metric) for length in lengths.labels]
            name = report.model if first == names.ranges[0][0] else ""
            table_rows.append([name, f"{label} names", *cells, cell_of(Rates.of(records), metric)])
    return aligned(table_rows)


def _fact(record: Record, name: str, pool: int | None) -> int:
    value = record.facts.get(name)
    if value is None:
        return UNKNOWN
    return value if pool is None else min(value, pool)


def _rows(
    groups: Mapping[Key, Rates], name: Callable[[Key], dict[str, int]]
) -> list[dict[str, Any]]:
    return [name(key) | rates.to_dict() for key, rates in groups.items()]
