"""Alpha-covariance of a vanilla model of Transformers beside ours, trained on the same task."""

from pathlib import Path
from typing import Any

from . import encodings, measures
from .models import Model
from .results import Results
from .sizes import Size
from .table import Block, Column, Row, Table, number, percent, ranked

TASK = "propositional"
VANILLA = {
    name: Model(
        f"{TASK}-{key}",
        f"{TASK}/{key}",
        # Sizes stand in `backbone_config`: a size's changes to the other models are none of theirs.
        tuple(f"model.{key}=null" for key in ("d_model", "encoder_layers", "decoder_layers")),
    )
    for name, key in (("T5", "t5"), ("GPT-2", "gpt2"))
}
BESIDE = ("learned", "alpha_renaming", "canonical", "dual_part", "streams", "relational")


class Covariance(Table):
    """A T5 and a GPT-2 from scratch, and the models of the table `encodings`."""

    name = "covariance"
    title = "Alpha-covariance of a T5 and a GPT-2"
    summary = (
        "alpha-covariance of a vanilla T5 and a GPT-2 trained on the same task, beside our models"
    )

    def rows(self, size: Size) -> list[Row]:
        vanilla = [Row(model.name, TASK, (name,), model) for name, model in VANILLA.items()]
        ours = [
            Row(
                f"{TASK}-{key}-normal",
                TASK,
                (encodings.ENCODINGS[key],),
                encodings.model(TASK, key, "normal"),
            )
            for key in BESIDE
        ]
        return [*vanilla, *ours]

    def tested(self, size: Size) -> dict[str, Any]:
        test = "test split, all renamings within the training's names"
        return size.tested(test, "samples", "covariance")

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        assert folder is not None
        split = measures.in_distribution(row.task, size)
        values = measures.rates(measures.answers(folder, row.task, split, "split", runs).overall)
        for names in _names(size):
            some = [problem for problem in split if problem["num_symbols"] == names]
            score = measures.covariance(folder, row.task, some[: size.covariance], size.names)
            values[f"covariance {names}"] = score.mean
            values[f"covariance samples {names}"] = score.used
            values[f"constant {names}"] = score.constant
        return {**values, "parameters": measures.parameters(folder)}

    def blocks(self, size: Size) -> tuple[Block, ...]:
        scores = tuple(Column(f"alpha-cov. {n}", f"covariance {n}") for n in _names(size))
        same = tuple(Column(f"same answer {n}", f"constant {n}", number) for n in _names(size))
        rates = (Column("correct", "correct"), Column("exact", "exact"))
        return (Block("test split of the training data, %", (*rates, *scores, *same)),)

    def text(self, size: Size) -> str:
        return (
            "A T5 and a GPT-2 with about as many parameters are trained from scratch on the same "
            "data, for the same number of steps. They have a vector for each name, as language "
            "models have one for every word. The GPT-2 reads problem and answer as one text, and "
            "its loss is that of the answer. Alpha-covariance is measured over all renamings "
            f"within {size.names} names, for up to {size.covariance:,} test problems with each "
            f"number of names from 1 to {size.names}. `same answer`: the number of problems with "
            "the same answer, letter by letter, to all renamings; the score says nothing about "
            "these. `alpha_covariance` measures any other encoder-decoder or decoder."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        key = f"covariance {size.names}"
        scores = ranked(self.rows(size), results, key)
        entries = [f"{row.cells[0]} {percent(score)}" for row, score in scores]
        if not entries:
            return []
        return [f"Alpha-covariance with {size.names} names, %: {', '.join(entries)}."]


def _names(size: Size) -> range:
    return range(1, size.names + 1)


__all__ = ["Covariance"]
