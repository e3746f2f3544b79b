"""Copying strings with more characters than in training (2410.17161, Section 5.1)."""

from pathlib import Path
from typing import Any

from hf_alpha.data.rows import load
from hf_alpha.evaluation.report import Rates, Record
from hf_alpha.logic.drawing.generate import generate_grid
from hf_alpha.tasks import get_task

from . import measures
from .encodings import ENCODINGS, FULL, model
from .results import Results
from .sizes import Size
from .table import Block, Column, Row, Table, ranked

TASK = "copying"
SHORTEST = 3  # as in the paper, of strings and of sets of characters


def distance(value: float) -> str:
    """Write an edit distance."""
    return f"{value:.2f}"


class Copying(Table):
    """Edit distance of copies, with characters that no model saw in training."""

    name = "copying"
    title = "Copying with new characters"
    summary = "edit distance of copied strings (2410.17161, Section 5.1)"

    def rows(self, size: Size) -> list[Row]:
        labels = {**ENCODINGS, FULL: f"full vocabulary ({_most(size)} characters)"}
        all_rows = [
            Row(f"{TASK}-{key}", TASK, (label,), model(TASK, key, "normal"))
            for key, label in labels.items()
        ]
        return [*all_rows, Row(f"{TASK}-random", TASK, (get_task(TASK).random_name,))]

    def tested(self, size: Size) -> dict[str, Any]:
        return {
            "test": "grid of strings",
            "characters": _most(size),
            "lengths": size.copy_lengths,
            "per_cell": size.per_cell,
        }

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        out = runs / "problems" / TASK
        characters = range(SHORTEST, _most(size) + 1)
        lengths = range(SHORTEST, size.copy_lengths + 1)
        generate_grid(TASK, out, characters, lengths, size.per_cell, progress=False)
        report = measures.answers(folder, TASK, list(load(out, "test")), "copying", runs)
        num_symbols, longest = _trained(size)
        values: dict[str, Any] = {}
        for name, records in _parts(report.records, num_symbols, longest).items():
            if records:
                rates = Rates.of(records)
                values |= measures.rates(rates, f" {name}")
                is_inside = not rates.is_outside
                values[f"distance {name}"] = rates.edit_distance if is_inside else None
        return values

    def blocks(self, size: Size) -> tuple[Block, ...]:
        columns = tuple(Column(name, f"distance {name}", distance) for name in _parts([], 0, 0))
        exact = Column("correct copies, %", "correct all")
        return (Block("mean edit distance, 0 is best", (*columns, exact), "copying"),)

    def text(self, size: Size) -> str:
        num_symbols, longest = _trained(size)
        return (
            f"In training, strings have up to {longest} characters, at most {num_symbols} of them "
            f"different. In the test, they have up to {size.copy_lengths} characters, up to "
            f"{_most(size)} of them different, with {size.per_cell} strings for each combination. "
            "The search is greedy. A string with characters outside the vocabulary counts as an "
            "empty copy, so its distance is its length. A dash means that all strings are outside "
            "it."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        order = ranked(self.rows(size), results, "distance all")
        flawless = [row.cells[0] for row, mean in order if mean == 0]
        return [f"Without a single error: {', '.join(flawless) or 'none'}."] if order else []


def _trained(size: Size) -> tuple[int, int]:
    """Most different characters, and the longest string, of the training data."""
    drawn = _drawn(size, "learned")
    return drawn["num_symbols"], drawn["sizes"][1]


def _most(size: Size) -> int:
    """Most different characters of the test: those of the full vocabulary."""
    most: int = _drawn(size, FULL)["num_symbols"]
    return most


def _drawn(size: Size, name: str) -> dict[str, Any]:
    """How the training data of a recipe is drawn."""
    return size.recipe(f"{TASK}/{name}").data.draw


def _parts(records: list[Record], num_symbols: int, longest: int) -> dict[str, list[Record]]:
    """Part of the test -> its records."""
    old, new = (
        [r for r in records if (r.num_symbols <= num_symbols) == is_old] for is_old in (True, False)
    )
    return {
        "as in training": [r for r in old if r.size <= longest],
        "more characters": [r for r in new if r.size <= longest],
        "longer": [r for r in records if r.size > longest],
        "all": records,
    }


__all__ = ["Copying"]
