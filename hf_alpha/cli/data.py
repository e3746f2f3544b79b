"""`hf-alpha generate-data` and `perturb`: formulas with answers, and changed copies of data."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.options import (
    Exclude,
    Hard,
    Quiet,
    Seed,
    Task,
    Workers,
    fraction,
    integers,
    refuse,
)
from hf_alpha.tasks.registry import DEFAULT_TASK

OF_TRAINING = ("samples", "alpha", "constants", "few_symbols", "many_symbols", "up_to_symbols")
"""Options that say nothing of a grid."""


def generate_data(
    command: typer.Context,
    out: Annotated[Path, typer.Argument(help="Folder to make; a killed run there continues.")],
    task: Task = DEFAULT_TASK,
    samples: Annotated[int, typer.Option(min=1, help="Formulas in all splits together.")] = 10_000,
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes in tokens, e.g. 1-35; by default the papers', with --grid 1-50."),
    ] = None,
    symbols: Annotated[
        str | None,
        typer.Option(help="Symbols to draw from, by default 5; with --grid a range, 0-10."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="How far sizes may depart from uniform where small ones run out."),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="How answers are computed; by default as short as can be. Other ways are the "
            "task's own, such as the papers'; a wrong name lists them."
        ),
    ] = None,
    constants: Annotated[
        float | None, typer.Option(help="Weight of the leaves 0 and 1 beside a symbol's 1.")
    ] = None,
    few_symbols: Annotated[
        int, typer.Option(min=0, help="So many more training formulas with at most one symbol.")
    ] = 0,
    many_symbols: Annotated[
        int,
        typer.Option(min=0, help="So many more training formulas with more symbols than that."),
    ] = 0,
    up_to_symbols: Annotated[
        int, typer.Option(min=0, help="With --many-symbols: most symbols of those.")
    ] = 0,
    hard: Hard = 0.0,
    equivalence: Annotated[
        str,
        typer.Option(
            help="What may differ between formulas that count as one: commuting (names, and the "
            "order of operands of commutative operators), or renaming (names only, as the papers)."
        ),
    ] = "commuting",
    grid: Annotated[
        bool, typer.Option("--grid", help="A heatmap's test set: each (symbols, size) alike.")
    ] = False,
    per_cell: Annotated[int, typer.Option(min=1, help="With --grid: formulas in a cell.")] = 100,
    exclude: Exclude = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="3/16: do a sixteenth of the work, for a dataset that the same command without "
            "--shard then makes. Counted from 1."
        ),
    ] = None,
    workers: Workers = 1,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Generate a dataset of formulas and answers; equivalent formulas are in one split."""
    from hf_alpha.data.generate import generate, generate_grid
    from hf_alpha.data.read import training_problems
    from hf_alpha.tasks import drawn_task

    smallest, largest = (1, 50) if grid else drawn_task(task).sizes
    numbers = integers(sizes or f"{smallest}-{largest}")
    counts = integers(symbols or ("0-10" if grid else "5"))
    if not grid and len(numbers) != numbers[-1] - numbers[0] + 1:
        raise ValueError(f"--sizes {sizes}: without --grid sizes are one range, e.g. 1-35")
    shared = {
        "seed": seed,
        "targets": targets,
        "hard": hard,
        "equivalence": equivalence,
        "shard": None if shard is None else fraction(shard),
        "num_workers": workers,
        "progress": not quiet,
    }
    if grid:
        refuse(command, OF_TRAINING, "is for training data, and --grid makes test data")
        known = [problem for data in exclude or () for problem in training_problems(data)]
        made = generate_grid(
            task,
            out,
            counts,
            numbers,
            per_cell,
            exclude=known,
            **shared,  # type: ignore[arg-type]
        )
    else:
        refuse(command, ["exclude", "per_cell"], "is for test data, which --grid makes")
        made = generate(
            task,
            out,
            samples,
            (numbers[0], numbers[-1]),
            max(counts),
            alpha,
            constant_priority=constants,
            few_symbols=few_symbols,
            many_symbols=many_symbols,
            up_to_symbols=up_to_symbols,
            **shared,  # type: ignore[arg-type]
        )
    if shard is None or made:
        say(f"{out}: {_rows(made)}")
    else:
        say(f"{out}: shard {shard} has ended; when all have, the same command without it")


def perturb(
    command: typer.Context,
    data: Annotated[Path, typer.Argument(help="A dataset.")],
    out: Annotated[Path, typer.Argument(help="Folder to make.")],
    kind: Annotated[
        str,
        typer.Option(
            help="renamed (names in order of first occurrence in the answer), or reduced (fewer "
            "training rows)."
        ),
    ],
    samples: Annotated[int, typer.Option(min=1, help="Rows that reduced keeps.")] = 80_000,
    task: Annotated[
        str | None, typer.Option(help="What is solved, if the dataset does not say.")
    ] = None,
) -> None:
    """Make a perturbed copy of a dataset: its training data, the rest stays as it is."""
    from datasets import disable_progress_bars

    from hf_alpha.data.perturb import perturb as run

    if kind != "reduced":
        refuse(command, ["samples"], "is for --kind reduced")
    disable_progress_bars()
    say(f"{out}: {_rows(run(data, out, kind, task, samples))}")


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in counts.items())


__all__ = ["generate_data", "perturb"]
