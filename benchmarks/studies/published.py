"""Released models on problems drawn as the papers draw theirs, beside the papers' right answers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from hf_alpha.data.rows import load
from hf_alpha.evaluation.compare import trained_region
from hf_alpha.logic.drawing.generate import generate
from hf_alpha.recipe import RECIPE_FILE, read_recipe
from hf_alpha.resources import released_models
from hf_alpha.tasks import get_task

from . import encodings, measures
from .results import Results
from .sizes import Size
from .specifications import DWYER, patterns
from .table import NONE, TASKS, Block, Column, Row, Table, number, percent, ranked

KINDS = ("relational", "relational-five", "converted")
NAMES = (5, 10)
LENGTHS = (10, 35)
ALPHA = {"propositional": 0.095, "ltl": 0.112}
"""How far sizes may depart from uniform, as DeepLTL has it."""
SAMPLES = 15_000
"""Problems drawn for each number of names; a tenth of them is the test split."""
MOST_NAMES, GRID_LENGTHS, PER_CELL = 10, 50, 5
"""Of the heatmap."""
CONJUNCTIONS = 300
PATTERN_NAMES = 5
PATTERN_LENGTHS = (36, 126)


class Published(Table):
    """What the papers test their best models with, asked of ours."""

    name = "published"
    title = "Test data as in the papers"
    summary = "released models on problems drawn as in the papers (2601.23169, Tables 2 to 4)"
    heads: ClassVar[tuple[str, ...]] = ("model", "trained on")

    def rows(self, size: Size) -> list[Row]:
        rows, folders = [], released_models()
        for task in encodings.LOGIC:
            for name in (f"{task}-{kind}" for kind in KINDS):
                if name in folders:
                    cells = (name, trained_on(folders[name]))
                    rows.append(Row(name, task, cells, released=folders[name]))
            rows.append(Row(f"{task}-random", task, (get_task(task).random_name, NONE)))
        return rows

    def tested(self, size: Size) -> dict[str, Any]:
        return {
            "test": "problems with at most so many names, grid, conjunctions of patterns",
            "names": NAMES,
            "lengths": LENGTHS,
            "samples": SAMPLES,
            "per_cell": PER_CELL,
            "conjunctions": CONJUNCTIONS,
        }

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        problems = {f"at most {names}": drawn(row.task, names, runs) for names in NAMES}
        heatmap = replace(size, most_names=MOST_NAMES, grid_lengths=GRID_LENGTHS, per_cell=PER_CELL)
        problems["grid"] = measures.grid(row.task, heatmap, runs / self.name)
        if row.task == "ltl":
            problems["conjunctions"] = [{"problem": formula} for formula in conjunctions()]
        values: dict[str, Any] = {}
        for test, rows in problems.items():
            name = f"{self.name}-{test.replace(' ', '-')}"
            report = measures.answers(row.released, row.task, rows, name, runs)
            values |= measures.rates(report.overall, f" {test}")
        if row.released is not None:
            values["parameters"] = measures.parameters(row.released)
        return values

    def blocks(self, size: Size) -> tuple[Block, ...]:
        drawn = tuple(Column(f"{names} names", f"correct at most {names}") for names in NAMES)
        return (
            Block(
                "correct answers, %",
                (
                    *drawn,
                    Column("heatmap", "correct grid"),
                    Column("parameters", "parameters", number),
                ),
                "published",
            ),
            Block(
                "conjunctions of patterns, correct answers, %",
                (Column(f"{CONJUNCTIONS} conjunctions", "correct conjunctions"),),
            ),
        )

    def text(self, size: Size) -> str:
        smallest, largest = LENGTHS
        return (
            f"`5 names`, `10 names`: formulas of {smallest} to {largest} tokens with at most so "
            "many names, their operators weighted as by DeepLTL (Hahn et al. 2021) and their sizes "
            f"uniform; {SAMPLES // 10:,} of each. `heatmap`: {PER_CELL} formulas for each number "
            f"of names from 0 to {MOST_NAMES} and each length to {GRID_LENGTHS}, where "
            "there are so many. The papers' models were trained with at most 5 names and 35 "
            "tokens, as was `ltl-relational-five`; `10 names` and `heatmap` ask how they "
            "generalise. Those that end in `-converted` have seen fewer tokens, those that end in "
            "`-relational` more names, so the latter's numbers there say how good a model is, not "
            "how it generalises. Our formulas have no part that Spot simplifies away at once (such "
            "as a double negation), and no test formula equals a training formula even after "
            "renaming names and reordering operands. The paper's numbers beside `relational` are "
            "the best ones of its models from scratch, those beside `converted` of its "
            "conversions; they are of 3 million parameters, trained on GPUs. DeepLTL's "
            "Transformer, with 5 names, has 98.5 % of LTL and 96.5 % of propositional logic. "
            "`conjunctions`: of the patterns of Dwyer, Avrunin "
            f"and Corbett, with names drawn from {PATTERN_NAMES}, {PATTERN_LENGTHS[0]} to "
            f"{PATTERN_LENGTHS[1]} tokens, satisfiable; such are DeepLTL's LTLPattern126. No model "
            "here was trained on any."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for task in encodings.LOGIC:
            rows = [row for row in self.rows(size) if row.task == task and row.released]
            for row, rate in ranked(rows, results, f"correct at most {NAMES[0]}")[:1]:
                sentences.append(
                    f"{TASKS[task]}: with at most {NAMES[0]} names and {LENGTHS[1]} tokens, "
                    f"{row.name} answers most of these models, each trained once, "
                    f"{percent(rate)} %."
                )
        return sentences


def trained_on(folder: Path) -> str:
    """How many names and tokens were in the last training of a released model, by its recipe."""
    region = trained_region(read_recipe(folder / RECIPE_FILE))
    assert region is not None  # all of them were trained on formulas that were drawn
    (_, names), (_, tokens) = region
    return f"at most {names} names, {tokens} tokens"


def drawn(task: str, names: int, runs: Path) -> list[dict[str, Any]]:
    """The test split of formulas with at most so many names."""
    out = runs / "problems" / f"{task}-published-{names}"
    generate(
        task, out, SAMPLES, sizes=LENGTHS, num_symbols=names, alpha=ALPHA[task],
        constant_priority=1.0, progress=False,
    )  # fmt: skip
    return list(load(out, "test"))


def conjunctions() -> list[str]:
    """Satisfiable conjunctions of patterns of Dwyer et al., in prefix notation.

    Patterns are added while they fit into a length that is drawn for each conjunction.
    """
    task, rng = get_task("ltl"), Random(0)
    parsed = [
        task.parse(pattern["formula"]) for pattern in patterns() if pattern["family"] == DWYER
    ]
    some = [tokens for tokens in parsed if len(task.symbols_in(tokens)) <= PATTERN_NAMES]
    formulas: list[str] = []
    while len(formulas) < CONJUNCTIONS:
        longest = rng.randint(*PATTERN_LENGTHS)
        tokens = _renamed(rng.choice(some), rng)
        while len(tokens) + len(pattern := _renamed(rng.choice(some), rng)) < longest:
            tokens = ["&", *tokens, *pattern]
        formula = " ".join(tokens)
        if len(tokens) >= PATTERN_LENGTHS[0] and task.has_answer(formula):
            formulas.append(formula)
    return formulas


def _renamed(tokens: Sequence[str], rng: Random) -> list[str]:
    """A pattern with other names."""
    task = get_task("ltl")
    old = task.symbols_in(tokens)
    new = rng.sample(task.default_symbols(PATTERN_NAMES), len(old))
    names = dict(zip(old, new, strict=True))
    return [names.get(token, token) for token in tokens]


__all__ = ["CONJUNCTIONS", "Published", "conjunctions", "drawn", "trained_on"]
