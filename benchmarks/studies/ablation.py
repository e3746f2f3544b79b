"""Attention blocks of `streams`, with and without (2601.23169, Tables 2, 3 and 6)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import encodings, measures
from .models import Model
from .results import Results
from .sizes import Size
from .table import (
    SEVERAL,
    TASKS,
    Block,
    Column,
    Row,
    Table,
    number,
    papers,
    percent,
    ranked,
)

BLOCKS = {
    "EP": "encoder_per_stream_attention",
    "DP": "decoder_per_stream_attention",
    "EA": "encoder_aggregated_attention",
    "DA": "decoder_aggregated_attention",
}
CROSS = {"CP": "per_stream", "CA": "aggregated"}
VARIANTS = {
    "propositional": (
        "EP DP EA DA CP",
        "EP DP EA DA CP CA",
        "EP DP EA CP",
        "EP DP CP",
        "DP EA DA CP",
        "EP EA DA CP",
        "EP DP EA DA CA",
    ),
    "ltl": (
        "EP DP EA CP",
        "EP DP EA CP CA",
        "EP DP EA DA CP",
        "EP DP CP",
        "DP EA CP",
        "EP EA DA CP",
        "EP DP EA DA CA",
    ),
}
"""Task -> blocks of attention; the best ones of the paper, those of the recipe, come first."""
COLUMNS = (
    Column("test split", "correct"),
    Column("by names", "correct by names"),
    Column("heatmap", "correct heatmap"),
    Column("exact, test split", "exact"),
)


def model(task: str, blocks: str) -> Model:
    """The `streams` model with these blocks of attention."""
    if blocks == VARIANTS[task][0]:
        return encodings.model(task, "streams", "normal")
    return Model(f"{task}-{_slug(blocks)}", f"{task}/streams", _switches(blocks.split()))


def _switches(blocks: Sequence[str]) -> tuple[str, ...]:
    own = [f"model.{key}={str(name in blocks).lower()}" for name, key in BLOCKS.items()]
    cross = ", ".join(mode for name, mode in CROSS.items() if name in blocks)
    return (*own, f"model.cross_attention=[{cross}]")


def _slug(blocks: str) -> str:
    return blocks.replace(" ", "-")


class Ablation(Table):
    """`streams` with and without each kind of attention."""

    name = "ablation"
    title = "Attention blocks"
    summary = "`streams` with and without each kind of attention (2601.23169, Table 6)"
    heads = ("attention",)

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(f"{task}-{_slug(blocks)}", task, (blocks,), model(task, blocks))
            for task, variants in VARIANTS.items()
            for blocks in variants
        ]

    def tested(self, size: Size) -> dict[str, Any]:
        return measures.three_tests_settings(size)

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        assert folder is not None
        values = measures.three_tests(row, folder, size, runs)
        return {**values, "parameters": measures.parameters(folder)}

    def blocks(self, size: Size) -> tuple[Block, ...]:
        columns = (*COLUMNS, Column("parameters", "parameters", number))
        return (Block("correct answers, %", columns, "ablation"),)

    def text(self, size: Size) -> str:
        return (
            "Self-attention is within each stream (EP in the encoder, DP in the decoder) or to the "
            "mean of the streams (EA, DA). The decoder's attention to the encoder is within each "
            "stream (CP) or to the mean (CA). The first row of a task is the paper's best. "
            + measures.three_tests_text(size)
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for task in VARIANTS:
            rows = [row for row in self.rows(size) if row.task == task]
            order = ranked(rows, results, "correct heatmap", SEVERAL)
            if len(order) == len(rows):
                (best, most), (worst, least) = order[0], order[-1]
                theirs = papers()["ablation"]["rows"]
                rank = sorted(rows, key=lambda row: -float(theirs[row.name][2]))
                sentences.append(
                    f"{TASKS[task]}, heatmap: the best is {best.cells[0]} with {percent(most)} % "
                    f"(in the paper: {rank[0].cells[0]}), the worst is {worst.cells[0]} with "
                    f"{percent(least)} % (in the paper: {rank[-1].cells[0]})."
                )
        return sentences


__all__ = ["COLUMNS", "Ablation", "model"]
