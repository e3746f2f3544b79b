"""What the table of a comparison says of runs, by made-up reports."""

from dataclasses import replace
from pathlib import Path

import pytest

from hf_alpha.evaluation.covariance import AlphaCovariance, CovarianceSample
from hf_alpha.evaluation.report import Record, Report, lengths_table
from hf_alpha.side_by_side.results import Result, describe, pooled, warnings
from hf_alpha.side_by_side.runs import Run


def report(name: str, rights: list[bool], covariance: float | None = None) -> Report:
    """With 1, 2, ... names in 10, 20, ... tokens."""
    records = [
        Record(i, "x", "y", i + 1, 10 * (i + 1), ("y",), ("exact" if right else "wrong",))
        for i, right in enumerate(rights)
    ]
    samples = (CovarianceSample(0, 1, 2, 2, 2 - int(covariance or 0)),)
    measured = None if covariance is None else AlphaCovariance(samples, {}, 24, 0)
    return Report(name, {}, records, measured)


def result(name: str, seed: int, losses: list[float], held_out: list[bool], test: list[bool]):
    run = Run(name, seed, Path(f"{name}-{seed}"), 0.003, 100, 12.3, tuple(losses), None)
    return Result(run, report(f"{name}-{seed}", test, 1.0), report(f"{name}-{seed}", held_out))


def test_a_loss_that_stands_still_is_told_where_the_task_is_not_learned():
    falling = [3.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.1, 0.1]
    flat = [3.0, 2.0, 0.9, 0.7, 0.79, 0.79, 0.76, 0.8]
    for losses, held_out, warned in (
        (flat, [False, False], True),
        (flat, [True, True], False),
        (falling, [False, False], False),
        (flat[:7], [False, False], False),
    ):
        one = result("canonical", 0, losses, held_out, [True])
        assert bool(warnings([one])) == warned
    (line,) = warnings([result("canonical", 0, flat, [True, False], [True])])
    assert line.startswith("? canonical-0: its loss stands still, 0.8 in the second quarter")
    assert "0.78 in the last, and 50% of held-out rows" in line


def test_seeds_count_together_and_their_range_is_shown():
    results = [
        result("one", 0, [1.0], [True, True], [True, False, True, False]),
        result("one", 1, [0.5], [True, False], [True, True, True, False]),
        result("two", 0, [0.5], [True, False], [False] * 4),
        result("two", 1, [0.5], [True, False], [False] * 4),
    ]
    reports = [*pooled(results), report("copy", [False] * 4)]
    assert [one.model for one in reports] == ["one", "two", "copy"]
    assert reports[0].overall.correct == pytest.approx(5 / 8)
    assert reports[0].alpha_covariance.used == 2
    text = describe(results, reports, "correct")
    cells = {line.strip().split("  ")[0]: line.split()[-2:] for line in text.splitlines() if line}
    assert cells["one-0"] == ["100.0", "50.0"] and cells["one-1"] == ["50.0", "75.0"]
    assert cells["one, mean"] == ["75.0", "62.5"]
    assert cells["one, lowest"] == ["50.0", "50.0"] and cells["one, highest"] == ["100.0", "75.0"]


def test_rates_by_length_and_names_are_told_apart():
    """Long rows are wrong whatever their names, and the table says so."""
    records = [
        Record(0, "x", "y", names, size, ("y",), ("exact" if size == 10 else "wrong",))
        for names in (2, 3, 9)
        for size in (10, 50)
    ]
    table = lengths_table([Report("one", {}, records)], "correct", columns=2, rows=2)
    rows = [line.split() for line in table.splitlines()]
    assert rows[0] == ["correct", "tokens:", "10", "50", "all"]
    assert rows[2] == ["one", "2", "names", "100.0", "0.0", "50.0"]
    assert rows[3] == ["3-9", "names", "100.0", "0.0", "50.0"]
    same = [replace(record, size=10) for record in records]
    assert lengths_table([Report("one", {}, same)], "correct") == ""
