"""A right answer among N (2601.23169, Appendix I)."""

from pathlib import Path
from statistics import fmean
from typing import Any

from . import encodings, measures
from .results import Results
from .sizes import Size
from .table import TASKS, Block, Column, Row, Table, percent

COUNTS = (1, 10, 25)
ENCODINGS = ("streams", "relational")


class TopN(Table):
    """Answers of the heatmap's problems, found with as many beams as there are answers."""

    name = "top-n"
    title = "A right answer among several"
    summary = "problems with a correct answer among those of N beams (2601.23169, Appendix I)"

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(f"{task}-{key}-normal", task, (key,), encodings.model(task, key, "normal"))
            for task in encodings.LOGIC
            for key in ENCODINGS
        ]

    def tested(self, size: Size) -> dict[str, Any]:
        return size.tested("grid", "most_names", "grid_lengths", "per_cell", counts=COUNTS)

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        problems = measures.grid(row.task, size, runs)
        values: dict[str, Any] = {}
        for count in COUNTS:
            test = "grid" if count == 1 else f"grid-top-{count}"
            report = measures.answers(folder, row.task, problems, test, runs, top_n=count)
            values |= measures.rates(report.overall, f" {count}")
            values[f"top {count}"] = round(report.overall.top_n, measures.DIGITS)
        return values

    def blocks(self, size: Size) -> tuple[Block, ...]:
        columns = [Column(f"top-{count}", f"top {count}") for count in COUNTS]
        first = [Column(f"first of {count} beams", f"correct {count}") for count in COUNTS[1:]]
        return (Block("problems with a right answer, %", (*columns, *first), "top-n"),)

    def text(self, size: Size) -> str:
        return (
            "The problems are those of the heatmaps. `top-1` is the answer of the usual search "
            "with 3 beams. For top-N, the search has N beams, and one of their N answers has to be "
            "correct. If answers can be checked, as by a solver, the first correct one can be "
            "used. `first of N beams`: the answer that the wider search ranks first."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for row in self.rows(size):
            rates = [results.values(row.name, f"top {count}") for count in COUNTS]
            if all(rates):
                first, middle, last = (percent(fmean(values)) for values in rates)
                sentences.append(
                    f"{TASKS[row.task]}, {row.cells[0]}: {first} % of problems have a correct "
                    f"answer with the usual search, {middle} % among {COUNTS[1]} answers, {last} % "
                    f"among {COUNTS[2]}."
                )
        return sentences


__all__ = ["TopN"]
