"""How much hangs on the random parts of `dual_part` (2410.17161, Sections 5.1.3 and A.3.1)."""

from pathlib import Path
from typing import Any

from hf_alpha.data.rows import load
from hf_alpha.evaluation.compare import draw_problems
from hf_alpha.generation import extend_vocabulary
from hf_alpha.loading import load_checkpoint
from hf_alpha.modeling.random_numbers import RANDOM_METHODS
from hf_alpha.processes import choose_device
from hf_alpha.tasks import get_task

from . import encodings, measures
from .copying import distance
from .models import Model, generated
from .random_parts import TEN
from .results import Results
from .sizes import Size
from .spread import Spread, sensitivity
from .table import TASKS as TITLES
from .table import Block, Column, Row, Table, percent

TASKS = ("copying", *encodings.LOGIC)
OF_RECIPES = "hypercube_vertices"
VALIDATION = 500
"""Rows of the validation data to which the median rule is applied, at most."""
ENDS = ("minimum", "maximum")
SHOWN = {"minimum": "min", "mean": "mean", "maximum": "max", "median_rule": "median rule"}


def model(task: str, method: str) -> Model:
    """The `dual_part` model of a task with random parts of this kind."""
    normal = encodings.model(task, "dual_part", "normal")
    if method == OF_RECIPES:
        return normal
    changes = (f"model.random_method={method}",)
    return Model(f"{task}-dual_part-parts-{method}", normal.recipe, changes)


class Draws(Table):
    """Models with each kind of random parts, tested with ten draws of them."""

    name = "draws"
    title = "Draws of random parts"
    summary = "dual-part models with ten draws each, by random method (2410.17161, 5.1.3 and A.3.1)"
    heads = ("random parts",)

    def rows(self, size: Size) -> list[Row]:
        return [
            Row(f"{task}-{method}", task, (method.replace("_", " "),), model(task, method))
            for task in TASKS
            for method in RANDOM_METHODS
        ]

    def tested(self, size: Size) -> dict[str, Any]:
        test = "problems by number of names"
        return size.tested(test, "per_names", "most_names", "length", draws=len(TEN))

    def measure(self, row: Row, folder: Path | None, size: Size, runs: Path) -> dict[str, Any]:
        assert folder is not None
        task = get_task(row.task)
        model, tokenizer = load_checkpoint(folder)
        network = model.eval().to(choose_device())
        problems = measures.by_names(row.task, size, runs)
        symbol_counts = task.needed_symbols([problem["problem"] for problem in problems])
        extend_vocabulary(network, tokenizer, symbol_counts)
        validation = _validation(row.task, size, runs)
        spreads = sensitivity(
            network,
            tokenizer,
            task,
            problems,
            validation,
            folder=runs / "reports" / "draws" / folder.name,
            progress=False,
        )
        values: dict[str, Any] = {"samples": len(problems)}
        for name, spread in spreads.items():
            values |= _numbers(name, spread)
        return values

    def blocks(self, size: Size) -> tuple[Block, ...]:
        return (
            Block("correct answers, %", _columns("correct", percent)),
            Block("mean edit distance, 0 is best", _columns("edit_distance", distance), "draws"),
        )

    def text(self, size: Size) -> str:
        return (
            "A dual-part model gets a random part for each name, drawn anew in every training "
            f"step. Here, a model is tested with {len(TEN)} draws, on the same number of problems "
            f"for each number of names from 1 to {size.most_names}. `deviation` is the sample "
            "standard deviation. `median rule`: the result with the draw whose loss on validation "
            "data is the median; the paper reports it instead of the mean. The paper's numbers are "
            "those of its best copying model. The paper does not find any method to be better for "
            "certain."
        )

    def findings(self, results: Results, size: Size) -> list[str]:
        sentences = []
        for row in self.rows(size):
            name, show = ("correct", percent)
            if results.values(row.name, "edit_distance mean"):
                name, show = ("edit_distance", distance)
            low, high = (results.values(row.name, f"{name} {end}") for end in ENDS)
            if low and high:
                measure = "in edit distance" if name == "edit_distance" else "points"
                widest = max(b - a for a, b in zip(low, high, strict=True))
                sentences.append(
                    f"{TITLES[row.task]}, {row.cells[0]}: the draws of a model differ by up to "
                    f"{show(widest)} {measure}."
                )
        return sentences


def _validation(name: str, size: Size, runs: Path) -> list[dict[str, Any]]:
    """Problems for the median rule: validation data, or drawn where the training data is drawn."""
    recipe = size.recipe(f"{name}/learned")
    if recipe.data.path:
        rows = load(generated(recipe), "validation")
        return list(rows.select(range(min(VALIDATION, len(rows)))))
    out = runs / "problems" / f"{name}-validation"
    names, sizes = range(1, size.names + 1), range(1, size.length + 1)
    return draw_problems(get_task(name), out, names, sizes, size.per_names, seed=1, progress=False)[
        :VALIDATION
    ]


def _numbers(name: str, spread: Spread) -> dict[str, Any]:
    values = {key: getattr(spread, key) for key in (*SHOWN, "deviation")}
    numbers = {k: None if x is None else round(x, measures.DIGITS) for k, x in values.items()}
    return {f"{name} {key}": value for key, value in numbers.items()}


def _columns(name: str, show: Any) -> tuple[Column, ...]:
    columns = [Column(title, f"{name} {key}", show) for key, title in SHOWN.items()]
    return (*columns[:3], Column("deviation", f"{name} deviation", show), columns[3])


__all__ = ["Draws", "model"]
