"""`hf-alpha generate-data`: formulas with answers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.options import (
    TASKS,
    Quiet,
    Seed,
    argument,
    flag,
    grouped,
    integers,
    option,
    refuse_options,
)
from hf_alpha.tasks.registry import DEFAULT_TASK


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """What formulas are drawn, of training data and of test data."""

    PANEL: ClassVar[str] = "Formulas"
    sizes: str | None = option(
        "Sizes in tokens, e.g. 1-35; by default the papers', with --grid 1-50."
    )
    symbols: str | None = option("Symbols to draw from, by default 5; with --grid a range, 0-10.")
    targets: str | None = option(
        "How answers are computed; by default as short as can be. Other ways are the "
        "task's own, such as the papers'; a wrong name lists them."
    )
    hard: float = option(
        "Least share of hard formulas; the data's README.md says what is hard.", 0.0, min=0, max=1
    )
    hardness: int = option(
        "What counts as hard: the larger, the harder; see README.md too.", 1, min=1
    )
    equivalence: str = option(
        "What may differ between formulas that count as one: commuting (names, and the "
        "order of operands of commutative operators), or renaming (names only, as the papers).",
        "commuting",
    )
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class TestData:
    """What is for the test data of a heatmap alone."""

    PANEL: ClassVar[str] = "Test data"
    grid: bool = flag("--grid", "A heatmap's test set: each (symbols, size) alike.")
    per_cell: int = option("With --grid: formulas in a cell.", 100, min=1)
    exclude: list[str] | None = option(
        "Training data of a model: no formula tested is equivalent to one of its rows, "
        "those of a split called test left aside. For models trained on data of another "
        "version; may be repeated."
    )


@grouped
def generate_data(
    command: typer.Context,
    out: Path = argument("Folder to make; a run there that was killed goes on."),
    *,
    task: str = option(
        f"What is solved: {TASKS}, or package.module:Class of your own.", DEFAULT_TASK
    ),
    samples: int = option("Formulas in all splits together.", 10_000, min=1),
    formulas: Formulas,
    test: TestData,
    workers: int = option("Processes; they do not change the result.", 1, min=1),
    shard: str = option(
        "3/16 makes the third of sixteen shares of the work, in a folder that all share.", "1/1"
    ),
    quiet: Quiet = False,
) -> None:
    """Generate a dataset of formulas and answers; equivalent formulas are in one split.

    hf-alpha generate-data OUT --task ltl --samples 100000

    With --grid: the test set of a heatmap.

    `data.generate` of a recipe, and `generate` of `hf_alpha.logic.drawing.generate`, have further
    settings.
    """
    shared = {
        "seed": formulas.seed, "targets": formulas.targets, "hard": formulas.hard,
        "hardness": formulas.hardness, "equivalence": formulas.equivalence,
        "num_workers": workers, "progress": not quiet, "shard": _pair(shard),
    }  # fmt: skip
    if test.grid:
        refuse_options(command, ["samples"], "is for training data, and --grid makes test data")
        rows = _generate_grid(task, out, formulas, test, shared)
    else:
        refuse_options(command, ["exclude", "per_cell"], "is for test data, which --grid makes")
        rows = _generate(task, out, samples, formulas, shared)
    if "missing" in rows:
        say(
            f"{out}: {rows['made']:,} parts made, {rows['missing']:,} are missing; when all shards "
            "have ended, start all of them again"
        )
    else:
        say(f"{out}: {', '.join(f'{count:,} {split}' for split, count in rows.items())}")


def _pair(shard: str) -> tuple[int, int]:
    """Read which share of how many is asked for."""
    number, _, count = shard.partition("/")
    if not (number.isdecimal() and count.isdecimal()):
        raise ValueError(f"--shard {shard}: give the number of a share and of all, such as 3/16")
    return int(number), int(count)


def _generate(
    task: str, out: Path, samples: int, formulas: Formulas, shared: dict[str, Any]
) -> dict[str, int]:
    """Make training data; returns the rows of each split."""
    from hf_alpha.logic.drawing.generate import generate
    from hf_alpha.tasks import drawn_task

    smallest, largest = drawn_task(task).sizes
    sizes = integers(formulas.sizes or f"{smallest}-{largest}")
    if len(sizes) != sizes[-1] - sizes[0] + 1:
        raise ValueError(f"--sizes {formulas.sizes}: without --grid sizes are one range, e.g. 1-35")
    num_symbols = max(integers(formulas.symbols or "5"))
    return generate(task, out, samples, (sizes[0], sizes[-1]), num_symbols, **shared)


def _generate_grid(
    task: str, out: Path, formulas: Formulas, test: TestData, shared: dict[str, Any]
) -> dict[str, int]:
    """Make the test data of a heatmap; returns the rows of its split."""
    from hf_alpha.data.rows import training_problems
    from hf_alpha.logic.drawing.generate import generate_grid

    excluded = [problem for data in test.exclude or () for problem in training_problems(data)]
    symbols, sizes = integers(formulas.symbols or "0-10"), integers(formulas.sizes or "1-50")
    return generate_grid(task, out, symbols, sizes, test.per_cell, exclude=excluded, **shared)
