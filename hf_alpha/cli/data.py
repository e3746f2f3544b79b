"""`hf-alpha generate-data`: formulas with answers, and changed copies of data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.options import (
    TASKS,
    Exclude,
    Hard,
    Hardness,
    Quiet,
    Seed,
    Workers,
    fraction,
    grouped,
    integers,
    names_of,
    refuse,
)
from hf_alpha.tasks.registry import DEFAULT_TASK


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """What formulas are drawn, of training data and of test data."""

    PANEL: ClassVar[str] = "Formulas"
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes in tokens, e.g. 1-35; by default the papers', with --grid 1-50."),
    ] = None
    symbols: Annotated[
        str | None,
        typer.Option(help="Symbols to draw from, by default 5; with --grid a range, 0-10."),
    ] = None
    targets: Annotated[
        str | None,
        typer.Option(
            help="How answers are computed; by default as short as can be. Other ways are the "
            "task's own, such as the papers'; a wrong name lists them."
        ),
    ] = None
    hard: Hard = 0.0
    hardness: Hardness = 1
    equivalence: Annotated[
        str,
        typer.Option(
            help="What may differ between formulas that count as one: commuting (names, and the "
            "order of operands of commutative operators), or renaming (names only, as the papers)."
        ),
    ] = "commuting"
    seed: Seed = 0


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """What is for training data alone."""

    PANEL: ClassVar[str] = "Training data"
    alpha: Annotated[
        float | None,
        typer.Option(help="How far sizes may depart from uniform where small ones run out."),
    ] = None
    constants: Annotated[
        float | None, typer.Option(help="Weight of the leaves 0 and 1 beside a symbol's 1.")
    ] = None
    few_symbols: Annotated[
        int, typer.Option(min=0, help="So many more training formulas with at most one symbol.")
    ] = 0
    many_symbols: Annotated[
        int,
        typer.Option(min=0, help="So many more training formulas with more symbols than that."),
    ] = 0
    up_to_symbols: Annotated[
        int, typer.Option(min=0, help="With --many-symbols: most symbols of those.")
    ] = 0
    walk: Annotated[
        int,
        typer.Option(
            min=0,
            help="With --hard: try so many formulas more after each hard one, each with one part "
            "of the last hard one drawn anew: faster where they are rare.",
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class TestData:
    """What is for the test data of a heatmap alone."""

    PANEL: ClassVar[str] = "Test data"
    grid: Annotated[
        bool, typer.Option("--grid", help="A heatmap's test set: each (symbols, size) alike.")
    ] = False
    per_cell: Annotated[int, typer.Option(min=1, help="With --grid: formulas in a cell.")] = 100
    exclude: Exclude = None


@dataclass(frozen=True, kw_only=True)
class ChangedCopy:
    """A changed copy of data that is there.

    Raises:
        ValueError: half of it is given.
    """

    PANEL: ClassVar[str] = "A changed copy"
    copy_of: Annotated[
        Path | None, typer.Option(help="Copy this dataset and change its training data.")
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            help="How: renamed (names in order of first occurrence in the answer), or reduced (to "
            "the first --samples rows)."
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.copy_of is None) != (self.kind is None):
            raise ValueError("--copy-of and --kind make a changed copy together")


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """How the work is shared."""

    PANEL: ClassVar[str] = "The work"
    shard: Annotated[
        str | None,
        typer.Option(
            help="3/16: do a sixteenth of the work, for a dataset that the same command without "
            "--shard then makes. Counted from 1."
        ),
    ] = None
    workers: Workers = 1
    quiet: Quiet = False


@grouped
def generate_data(
    command: typer.Context,
    out: Annotated[Path, typer.Argument(help="Folder to make; a killed run there continues.")],
    *,
    task: Annotated[
        str | None,
        typer.Option(
            help=f"What is solved: {TASKS}, or package.module:Class of your own; by default "
            f"{DEFAULT_TASK}, or what the copied data says."
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Formulas in all splits together, 10,000; of a copy, 80,000."),
    ] = None,
    formulas: Formulas,
    training: TrainingData,
    test: TestData,
    changed_copy: ChangedCopy,
    sharing: Sharing,
) -> None:
    """Generate a dataset of formulas and answers; equivalent formulas are in one split.

    hf-alpha generate-data OUT --task ltl --samples 100000

    With --grid: the test set of a heatmap.

    With --copy-of: the papers' perturbations of training data.
    """
    if changed_copy.copy_of is not None:
        drawing_groups = (Formulas, TrainingData, TestData, Sharing)
        refuse(command, names_of(*drawing_groups), "is for data that is drawn, not for a copy")
        if changed_copy.kind != "reduced":
            refuse(command, ["samples"], "is for --kind reduced")
        say(f"{out}: {_rows(_copy(changed_copy.copy_of, changed_copy.kind, out, task, samples))}")
        return
    if test.grid:
        names = ["samples", *names_of(TrainingData)]
        refuse(command, names, "is for training data, and --grid makes test data")
        rows = _generate_grid(task or DEFAULT_TASK, out, formulas, test, sharing)
    else:
        refuse(command, ["exclude", "per_cell"], "is for test data, which --grid makes")
        rows = _generate(task or DEFAULT_TASK, out, samples or 10_000, formulas, training, sharing)
    if sharing.shard is None or rows:
        say(f"{out}: {_rows(rows)}")
    else:
        say(f"{out}: shard {sharing.shard} has ended; when all have, the same command without it")


def _generate(
    task: str, out: Path, samples: int, formulas: Formulas, training: TrainingData, sharing: Sharing
) -> dict[str, int]:
    """Make training data; returns the rows of each split."""
    from hf_alpha.data.generate import generate
    from hf_alpha.tasks import drawn_task

    smallest, largest = drawn_task(task).sizes
    sizes = integers(formulas.sizes or f"{smallest}-{largest}")
    if len(sizes) != sizes[-1] - sizes[0] + 1:
        raise ValueError(f"--sizes {formulas.sizes}: without --grid sizes are one range, e.g. 1-35")
    return generate(
        task, out, samples, (sizes[0], sizes[-1]), max(integers(formulas.symbols or "5")),
        alpha=training.alpha, constant_priority=training.constants,
        few_symbols=training.few_symbols, many_symbols=training.many_symbols,
        up_to_symbols=training.up_to_symbols, walk=training.walk,
        **_shared(formulas, sharing),
    )  # fmt: skip


def _generate_grid(
    task: str, out: Path, formulas: Formulas, test: TestData, sharing: Sharing
) -> dict[str, int]:
    """Make the test data of a heatmap; returns the rows of its split."""
    from hf_alpha.data.generate import generate_grid
    from hf_alpha.data.read import training_problems

    excluded = [problem for data in test.exclude or () for problem in training_problems(data)]
    symbols, sizes = integers(formulas.symbols or "0-10"), integers(formulas.sizes or "1-50")
    return generate_grid(
        task, out, symbols, sizes, test.per_cell, exclude=excluded, **_shared(formulas, sharing)
    )


def _shared(formulas: Formulas, sharing: Sharing) -> dict[str, Any]:
    """Return arguments of both functions that generate."""
    return {
        "seed": formulas.seed,
        "targets": formulas.targets,
        "hard": formulas.hard,
        "hardness": formulas.hardness,
        "equivalence": formulas.equivalence,
        "shard": None if sharing.shard is None else fraction(sharing.shard),
        "num_workers": sharing.workers,
        "progress": not sharing.quiet,
    }


def _copy(
    data: Path, kind: str | None, out: Path, task: str | None, samples: int | None
) -> dict[str, int]:
    """Make a changed copy of a dataset; returns the rows of each split."""
    from datasets import disable_progress_bars

    from hf_alpha.data.perturb import REDUCED, perturb

    disable_progress_bars()
    return perturb(data, out, f"{kind}", task, samples or REDUCED)


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {split}" for split, count in counts.items())


__all__ = ["generate_data"]
