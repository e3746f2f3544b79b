"""`hf-alpha compare`: a recipe trained once with each encoding."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.common import own_test_rows, say
from hf_alpha.cli.options import Quiet


def compare(
    recipe: Annotated[str, typer.Argument(help="A recipe for your own pairs.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Changes: training.max_steps=100 model.d_model=64")
    ] = None,
    encodings: Annotated[
        str, typer.Option(help="learned, renaming, canonical, dual_part, streams, relational")
    ] = "relational,streams,canonical,learned",
    out: Annotated[Path, typer.Option(help="Folder for models, table and pictures.")] = Path(
        "comparison"
    ),
    minutes: Annotated[
        float | None,
        typer.Option(min=0.01, help="Train each for so long; by default for the recipe's steps."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Pairs to test on; by default the recipe's data.test.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Their split; by default test.")] = None,
    covariance: Annotated[
        int, typer.Option(min=0, help="Problems for each number of names; 0 for none.")
    ] = 10,
    quiet: Quiet = False,
) -> None:
    """Train a recipe once with each encoding, and draw all of them side by side."""
    from hf_alpha.recipe import PairsRecipe, read_recipe
    from hf_alpha.side_by_side import CURVES_FILE, compare_encodings

    settings = read_recipe(recipe, overrides)
    if not isinstance(settings, PairsRecipe):
        raise ValueError(f"{recipe} is no recipe for pairs of your own, named as 'data.train'")
    names = [name.strip() for name in encodings.split(",") if name.strip()]
    table, _ = compare_encodings(
        settings,
        names,
        own_test_rows(settings, data, split),
        out,
        seconds=None if minutes is None else 60 * minutes,
        covariance=covariance,
        say=say,
        progress=not quiet,
    )
    say(f"\n{table}\n\npicture: {out / CURVES_FILE}")


__all__ = ["compare"]
