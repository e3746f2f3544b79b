"""`hf-alpha quickstart`: a tour of some minutes."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.options import Seed


def quickstart(
    task: Annotated[
        str,
        typer.Option(help="What is solved: text, or another task that has a tour."),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for model, table and picture; quickstart or quickstart-TASK."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Training steps; by default as many as fit into two minutes."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Problems for each number of names in the evaluation."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """See in minutes what it is about: models on more names than they were trained on.

    text: three encodings of names, trained on pairs for the same time. propositional, ltl: a
    vanilla model is converted and tuned, and a solver checks every answer.
    """
    from hf_alpha.tours import DEFAULT_TOUR, run_tour

    folder = "quickstart" if task == DEFAULT_TOUR else f"quickstart-{task}"
    run_tour(output or Path(folder), task, steps=steps, samples=samples, seed=seed)


__all__ = ["quickstart"]
