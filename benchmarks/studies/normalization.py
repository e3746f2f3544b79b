"""Norms of rows and features, and the scale of the logits (2410.17161, A.3.1)."""

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from hf_alpha.evaluation.report import Rates
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.configuration_symbols import FIXED_SCALE, SymbolModelConfig

from . import encodings, measures
from .copying import TASK as COPYING_TASK
from .copying import Copying, distance
from .models import Model
from .results import Results
from .sizes import Size
from .table import TASKS, Block, Column, Row, Table, number

COPYING = Copying()
PARTS, ROWS = "f_bn", "f_fn"
FIXED, ADACOS, UNSCALED = "fixed", "AdaCos", "none"
"""What logits are multiplied by."""


class Norms(NamedTuple):
    """What is divided by its norm, and what logits are multiplied by.

    Attributes:
        norms: of `PARTS` (the learned and the random part of a name each) and `ROWS` (every row of
            the embedding, and the features).
        scale: `FIXED`, `ADACOS` or `UNSCALED`.
    """

    norms: tuple[str, ...]
    scale: str

    def changes(self, adacos: bool | str) -> tuple[str, ...]:
        """To a recipe; `adacos` is how a scale is adapted."""
        switches = {
            "normalize_parts": PARTS in self.norms,
            "normalize_embeddings": ROWS in self.norms,
            "normalize_features": ROWS in self.norms,
            "adacos": adacos if self.scale == ADACOS else False,
        }
        switched = (f"model.{key}={str(value).lower()}" for key, value in switches.items())
        return (*switched, "model.logit_scale=null")  # the default of each

    @property
    def slug(self) -> str:
        """In names of rows."""
        return "-".join([*(norm.removeprefix("f_") for norm in self.norms), self.scale.lower()])

    def __str__(self) -> str:
        return " ".join([*self.norms, self.scale])


VARIANTS = {
    "dual_part": (
        Norms((PARTS, ROWS), ADACOS),
        Norms((PARTS, ROWS), FIXED),
        Norms((ROWS,), ADACOS),
        Norms((ROWS,), FIXED),
        Norms((PARTS,), UNSCALED),
        Norms((), UNSCALED),
    ),
    "relational": (Norms((ROWS,), ADACOS), Norms((ROWS,), FIXED), Norms((), UNSCALED)),
}
"""Symbol encoding -> what is compared. The first two have all norms, as the recipes have."""


def model(task: str, encoding: str, norms: Norms, size: Size) -> Model:
    """The model of a task with these norms; that of the table of encodings where it has them."""
    usual = encodings.model(task, encoding, "normal")
    settings = size.recipe(usual.recipe, usual.changes).model
    adacos = settings.get("adacos", SymbolModelConfig.adacos)
    if norms == VARIANTS[encoding][0 if adacos else 1]:
        return usual
    name = f"{task}-{encoding}-norms-{norms.slug}"
    # Where the recipe has a fixed scale, by the mean, as when the table was made.
    return Model(name, usual.recipe, (*usual.changes, *norms.changes(adacos or True)))


class Normalization(Table):
    """Models with and without each norm, and with a scale that is fixed or adapted."""

    name = "normalization"
    title = "Norms and the scale of logits"
    summary = "models with and without f_bn, f_fn and AdaCos (2410.17161, A.3.1)"
    heads: ClassVar[tuple[str, ...]] = ("model", "norms", "scale")

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(
                f"{task}-{encoding}-{norms.slug}",
                task,
                (encodings.ENCODINGS[encoding], " ".join(norms.norms) or "none", norms.scale),
                model(task, encoding, norms, size),
            )
            for task in (COPYING_TASK, *encodings.LOGIC)
            for encoding, variants in VARIANTS.items()
            for norms in variants
        ]

    def tested(self, size: Size) -> dict[str, Any]:
        test, copying = "problems by number of names, grid of strings", COPYING.tested(size)
        return size.tested(test, "per_names", "most_names", "length", copying=copying)

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        assert folder is not None
        model, _ = load_checkpoint(folder)
        measured = _copies if row.task == COPYING_TASK else _answers
        scale = round(float(model.logit_scale.scale), measures.DIGITS)
        extra_values = {"scale": scale, "columns": model.config.vocab_size}
        return {**measured(row, folder, size, runs), **extra_values}

    def blocks(self, size: Size) -> tuple[Block, ...]:
        columns = (
            Column("names of training", "correct known names"),
            Column("more names", "correct more names"),
            Column("all", "correct by names"),
            Column("edit distance", "distance", distance),
            Column("scale at the end", "scale", _two_digits),
            Column("columns", "columns", number),
        )
        return (Block("correct answers, %", columns, self.name),)

    def text(self, size: Size) -> str:
        return (
            "`f_bn` divides the learned and the random part of a name by their norms. `f_fn` "
            "divides every row of the embedding by its norm, and also the features that are "
            "compared with the rows, so that logits are cosines. Cosines are multiplied by a "
            f"scale: {FIXED_SCALE:g} (`fixed`), or a number that AdaCos adapts in training (by the "
            "mean over positions, or as the recipe says). The AdaCos scale starts at "
            "sqrt(2) ln(C - 1) for the C `columns` of logits in training. Products that are not "
            "cosines are not scaled. Logic: the test has the same number of problems for each "
            f"number of names from 1 to {size.most_names}, with at most {size.length} tokens. "
            "Copying: the test has the strings of the table above. `more names` covers those that "
            "are no longer than in training. `edit distance` is the mean over all strings. In the "
            "paper, the results of the 277 copying models vary a lot. Over all of these, f_fn and "
            "AdaCos go with smaller distances and f_bn with slightly larger ones. In logic, the "
            "paper's models fall from 91 to 30 % (LTL) and from 78 to 14 % (propositional logic) "
            "without f_bn."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for task in dict.fromkeys(row.task for row in self.rows(size)):
            for encoding, variants in VARIANTS.items():
                names = {f"{task}-{encoding}-{norms.slug}": norms for norms in variants}
                if not all(results.values(name, "correct by names") for name in names):
                    continue
                adaptive = [name for name, norms in names.items() if norms.scale == ADACOS]
                ends = [end for name in adaptive for end in results.values(name, "scale")]
                (columns, *_) = results.values(adaptive[0], "columns")
                least, most = _two_digits(min(ends)), _two_digits(max(ends))
                end = f"at {least}" if least == most else f"between {least} and {most}"
                sentences.append(
                    f"{TASKS[task]}, {encodings.ENCODINGS[encoding]}: with {number(columns)} "
                    f"columns, the AdaCos scale ends {end}."
                )
        return sentences


def _answers(row: Row, folder: Path, size: Size, runs: Path) -> dict[str, Any]:
    """Rates of problems with as many names as in training, with more, and of all."""
    problems = measures.by_names(row.task, size, runs)
    report = measures.answers(folder, row.task, problems, "names", runs)
    many_names = [record for record in report.records if record.num_symbols > size.names]
    few_names = [record for record in report.records if record.num_symbols <= size.names]
    return {
        **measures.rates(Rates.of(few_names), " known names"),
        **measures.rates(Rates.of(many_names), " more names"),
        **measures.rates(report.overall, " by names"),
    }


def _copies(row: Row, folder: Path, size: Size, runs: Path) -> dict[str, Any]:
    """The same of copied strings no longer than in training; of all strings, the distance too."""
    values = COPYING.measure(row, folder, size, runs)
    parts = {"as in training": "known names", "more characters": "more names", "all": "by names"}
    shares = {f"correct {own}": values.get(f"correct {theirs}") for theirs, own in parts.items()}
    return {**shares, "distance": values["distance all"]}


def _two_digits(value: float) -> str:
    return f"{value:.2f}"


__all__ = ["VARIANTS", "Normalization", "model"]
