"""Encodings by data (2601.23169, Table 1), and by the number of names."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from hf_alpha.evaluation import Rates
from hf_alpha.tasks import get_task

from . import measures
from .models import Model
from .results import Results
from .sizes import Size
from .table import SEVERAL, TASKS, Block, Column, Row, Table, percent, ranked

LOGIC = ("propositional", "ltl")
ENCODINGS = {
    "learned": "learned",
    "alpha_renaming": "alpha-renaming",
    "canonical": "canonical",
    "dual_part": "dual-part",
    "streams": "streams",
    "relational": "relational",
}
PER_SAMPLE = "dual_part_per_sample"
FROM = {
    "relational": ("learned", ("num_symbols=10", "model.symbol_encoding=relational")),
    PER_SAMPLE: ("dual_part", ("model.symbol_renaming=random",)),
}
"""Encodings without recipes of their own: the encoding whose recipe they change, and how."""
FULL = "full_vocabulary"
NO_DATA = "none"
MORE = "correct more names"
DATA: tuple[Literal["normal", "renamed", "reduced"], ...] = ("normal", "renamed", "reduced")


def model(task: str, encoding: str, data: Literal["normal", "renamed", "reduced"]) -> Model:
    """The model of an encoding."""
    recipe, changes = FROM.get(encoding, (encoding, ()))
    return Model(f"{task}-{encoding}-{data}", f"{task}/{recipe}", changes, data)


class Encodings(Table):
    """Each encoding, trained on data as it is, with names in a fixed order, and on less of it."""

    name = "encodings"
    title = "Encodings and data"
    summary = "each encoding trained on normal, renamed and reduced data (2601.23169, Table 1)"
    heads: ClassVar[tuple[str, ...]] = ("training data", "model")

    def rows(self, size: Size) -> list[Row]:
        all_rows = []
        for task in LOGIC:
            for data in DATA:
                labels = dict(ENCODINGS)
                if data == "normal":
                    labels[FULL] = f"full vocabulary ({size.most_names} names)"
                if data == "renamed":
                    labels[PER_SAMPLE] = "dual-part, a draw for each sample"
                all_rows += [
                    Row(f"{task}-{key}-{data}", task, (data, label), model(task, key, data))
                    for key, label in labels.items()
                ]
            all_rows.append(Row(f"{task}-random", task, (NO_DATA, get_task(task).random_name)))
        return all_rows

    def tested(self, size: Size) -> dict[str, Any]:
        test = "test split, problems by number of names, all renamings within the training's"
        return size.tested(test, "samples", "per_names", "most_names", "length", "covariance")

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        split = measures.in_distribution(row.task, size)
        problems = measures.by_names(row.task, size, runs)
        report = measures.answers(folder, row.task, problems, "names", runs)
        values = measures.rates(measures.answers(folder, row.task, split, "split", runs).overall)
        for names, group in report.by_num_symbols.items():
            values |= measures.rates(group, f" {names}")
        more = [record for record in report.records if record.num_symbols > size.names]
        values |= measures.rates(report.overall, " by names")
        values |= measures.rates(Rates.of(more), " more names")
        if folder is None:
            return values
        for names in _covariance_names(size):
            some = [row for row in split if row["num_symbols"] == names][: size.covariance]
            score = measures.covariance(folder, row.task, some, size.names)
            values[f"covariance {names}"] = score.mean
            values[f"covariance samples {names}"] = score.used
            values[f"constant {names}"] = score.constant
        return values

    def blocks(self, size: Size) -> tuple[Block, ...]:
        scores = tuple(
            Column(f"alpha-cov. {names}", f"covariance {names}")
            for names in _covariance_names(size)
        )
        numbers = tuple(
            Column(str(names), f"correct {names}") for names in range(1, size.most_names + 1)
        )
        return (
            Block(
                "test split of the training data, %",
                (Column("correct", "correct"), Column("exact", "exact"), *scores),
                "encodings",
            ),
            Block(
                "correct answers by number of names, %",
                (*numbers, Column("all", "correct by names"), Column("exact", "exact by names")),
            ),
        )

    def text(self, size: Size) -> str:
        steps = "steps" if size.reduced_steps == 1 else "epochs"
        return (
            "The same model with each way to tell names apart. `renamed`: in the answers of the "
            "training data, and only there, names occur in a fixed order. A model may memorise "
            f"that order. `reduced`: {100 * size.reduced:g} % of the training data, for the same "
            f"number of {steps}. The test problems are unchanged. No test problem equals a "
            "training problem, even after renaming names and reordering operands. `exact`: the "
            "answer equals that of the data. Alpha-covariance is measured over all renamings "
            f"within {size.names} names, for up to {size.covariance:,} test problems with as many "
            "names as the column says; 100 means the same answer whatever the names. `full "
            "vocabulary` was trained on problems with all numbers of names. `a draw for each "
            "sample`: dual-part with `symbol_renaming: random`; else the samples of a step share "
            "one draw, and a name in a fixed place has the same random part in all of them. A dash "
            "means outside the vocabulary, or not measured."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for task in LOGIC:
            rows = [row for row in self.rows(size) if row.task == task and FULL not in row.name]
            models = [row for row in rows if row.model is not None]
            order = ranked(models, results, MORE)
            chance = results.values(f"{task}-random", MORE)
            if order and chance:
                above = sum(share > chance[0] for _, share in order)
                best = "".join(
                    f" The best is {row.cells[1]} on {row.cells[0]} data with {percent(share)} %."
                    for row, share in ranked(models, results, MORE, SEVERAL)[:1]
                )
                sentences.append(
                    f"{TASKS[task]}, more names than in training (up to {size.most_names}): of the "
                    f"models trained on at most {size.names} names that can take so many, {above} "
                    f"of {len(order)} are better than random answers "
                    f"({percent(chance[0])} %).{best}"
                )
        return sentences


def _covariance_names(size: Size) -> range:
    return range(3, size.names + 1)


__all__ = ["ENCODINGS", "LOGIC", "Encodings", "model"]
