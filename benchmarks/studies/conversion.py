"""A vanilla model converted into `streams` and trained on (2601.23169, Table 4)."""

from pathlib import Path
from typing import Any

from . import ablation, encodings, measures
from .models import Model
from .results import Results
from .sizes import Size
from .table import SEVERAL, TASKS, Block, Row, Table, percent, ranked

ADDED = {
    "propositional": "streams, aggregated attention in encoder and decoder",
    "ltl": "streams, aggregated attention in encoder",
}
"""Task -> the conversion that adds the blocks of the paper's best model."""
TUNED = (
    "training.learning_rate=1.0e-3",
    "training.warmup_steps=50",
)


def converted(task: str, conversion: str, share: float, name: str) -> Model:
    """The vanilla model of a task, converted and trained for a share of the steps."""
    start = encodings.model(task, "learned", "normal")
    return Model(
        f"{task}-{name}", f"{task}/learned", TUNED, share=share, start=start, conversion=conversion
    )


class Conversion(Table):
    """What a vanilla model is worth as a start, without and with added blocks."""

    name = "conversion"
    title = "Conversion of a vanilla model"
    summary = "a vanilla model converted to streams and trained further (2601.23169, Table 4)"

    def rows(self, size: Size) -> list[Row]:
        short, long = (f"{100 * share:g} % of the steps" for share in size.tuning)
        all_rows = []
        for task in encodings.LOGIC:
            models = {
                ("vanilla", "vanilla"): encodings.model(task, "learned", "normal"),
                ("converted-short", f"converted, {short}"): self._plain(task, size, 0),
                ("converted-long", f"converted, {long}"): self._plain(task, size, 1),
                ("added-short", f"converted with silent blocks, {short}"): self._added(
                    task, size, 0
                ),
                ("added-long", f"converted with silent blocks, {long}"): self._added(task, size, 1),
                ("scratch", "EP DP CP from scratch"): ablation.model(task, "EP DP CP"),
                ("scratch-added", f"{ablation.VARIANTS[task][0]} from scratch"): encodings.model(
                    task, "streams", "normal"
                ),
            }
            all_rows += [
                Row(f"{task}-{name}", task, (label,), model)
                for (name, label), model in models.items()
            ]
        return all_rows

    def _plain(self, task: str, size: Size, index: int) -> Model:
        return converted(task, "streams", size.tuning[index], f"converted-{index}")

    def _added(self, task: str, size: Size, index: int) -> Model:
        return converted(task, ADDED[task], size.tuning[index], f"converted-added-{index}")

    def tested(self, size: Size) -> dict[str, Any]:
        return measures.three_tests_settings(size)

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        return measures.three_tests(row, folder, size, runs)

    def blocks(self, size: Size) -> tuple[Block, ...]:
        return (Block("correct answers, %", ablation.COLUMNS, "conversion"),)

    def text(self, size: Size) -> str:
        return (
            "The vanilla model has a vector for each name of its training and cannot take other "
            "names. Converted to `streams` (EP DP CP), it keeps all of its weights. It is then "
            "trained further on its own training data. The hours of converted models do not "
            "include the training of the vanilla model. `silent blocks`: aggregated attention is "
            "added too, in a form that has no effect at first. The paper does not try this. The "
            "blocks are those of the paper's best model for the task. "
            + measures.three_tests_text(size)
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for task in encodings.LOGIC:
            rows = [
                row for row in self.rows(size) if row.task == task and row.cells[0] != "vanilla"
            ]
            order = ranked(rows, results, "correct heatmap", SEVERAL)
            if order:
                shares = "; ".join(f"{row.cells[0]} ({percent(share)} %)" for row, share in order)
                sentences.append(f"{TASKS[task]}, heatmap, from best to worst: {shares}.")
        return sentences


__all__ = ["Conversion", "converted"]
