"""What an answer costs by the number of names (2601.23169, Figure 17)."""

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from hf_alpha.generation import extend_vocabulary, generate_answers
from hf_alpha.loading import load_checkpoint
from hf_alpha.processes import choose_device
from hf_alpha.tasks import get_task

from . import measures
from .encodings import ENCODINGS, model
from .results import Results
from .sizes import Size
from .table import Block, Column, Row, Table

TASK = "propositional"
MEASURED = ("alpha_renaming", "relational", "streams")
"""A vanilla model has no vector for more names: the one of alpha-renaming computes the same."""
ROUNDS = 3


def milliseconds(value: float) -> str:
    """Write a time."""
    return f"{value:.1f}"


class Cost(Table):
    """Time of an answer: of a vanilla model, of relations, and of a stream for each name."""

    name = "cost"
    title = "Time of an answer by the number of names"
    summary = "milliseconds per answer by number of names (2601.23169, Figure 17)"

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(f"{TASK}-{key}", TASK, (ENCODINGS[key],), model(TASK, key, "normal"))
            for key in MEASURED
        ]

    def tested(self, size: Size) -> dict[str, Any]:
        test = "problems by number of names"
        return size.tested(test, "per_names", "most_names", "length", rounds=ROUNDS)

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        assert folder is not None
        task = get_task(row.task)
        trained, tokenizer = load_checkpoint(folder)
        trained = trained.eval().to(choose_device())
        extend_vocabulary(trained, tokenizer, size.most_names)
        groups: dict[int, list[str]] = {}
        for problem in measures.by_names(row.task, size, runs):
            groups.setdefault(problem["num_symbols"], []).append(problem["problem"])
        seconds: dict[int, list[float]] = {names: [] for names in groups}
        for turn in range(ROUNDS + 1):
            for names, problems in groups.items():
                start = perf_counter()
                generate_answers(
                    trained, tokenizer, problems, num_beams=task.num_beams, progress=False
                )
                if turn:  # the first one warms up
                    seconds[names].append((perf_counter() - start) / len(problems))
        return {f"ms {names}": 1e3 * median(times) for names, times in seconds.items()}

    def blocks(self, size: Size) -> tuple[Block, ...]:
        columns = tuple(
            Column(str(names), f"ms {names}", milliseconds)
            for names in range(1, size.most_names + 1)
        )
        return (Block("milliseconds for an answer, by number of names", columns, "cost"),)

    def text(self, size: Size) -> str:
        return (
            f"Trained models answer by beam search with {get_task(TASK).num_beams} beams, in "
            f"batches of 64. Times are medians of {ROUNDS} rounds. Answers also get longer with "
            "more names. Alpha-renaming stands for a vanilla model, which has no vectors "
            "for more names. Other work on the machine affects these times. [What an encoding "
            "costs](#what-an-encoding-costs) has times of models that took turns, for training "
            "too."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for row in self.rows(size):
            one, most = (results.values(row.name, f"ms {names}") for names in (1, size.most_names))
            if one and most:
                times = sum(most) / sum(one)
                sentences.append(
                    f"{row.cells[0]}: an answer with {size.most_names} names takes {times:.1f} "
                    "times as long as one with 1."
                )
        return sentences


__all__ = ["Cost"]
