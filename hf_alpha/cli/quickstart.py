"""`hf-alpha quickstart`: a tour of some minutes."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.options import Seed


def quickstart(
    output: Annotated[Path, typer.Option(help="Folder for models, table and picture.")] = Path(
        "quickstart"
    ),
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each encoding.")] = 800,
    samples: Annotated[
        int, typer.Option(min=1, help="Problems for each number of names in the evaluation.")
    ] = 50,
    seed: Seed = 0,
) -> None:
    """See in minutes what it is about: models on more names than they were trained on.

    Three encodings of names, trained on pairs of texts for the same steps.
    """
    from hf_alpha.quickstart import quickstart as tour

    tour(output, steps, samples, seed)


__all__ = ["quickstart"]
