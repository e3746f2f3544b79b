"""`hf-alpha compare` and `quickstart`: a recipe becomes a model of each encoding."""

from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.common import say, user_test_rows
from hf_alpha.cli.looking import look_at_recipe
from hf_alpha.cli.options import Overrides, Quiet, Seed


def compare(
    recipe: Annotated[str, typer.Argument(help="A recipe for your own pairs.")],
    overrides: Overrides = None,
    encodings: Annotated[
        str,
        typer.Option(
            help="learned, renaming, canonical, dual_part, streams, relational; plain, where the "
            "recipe has the checkpoint of a plain model."
        ),
    ] = "relational,streams,canonical,learned",
    out: Annotated[Path, typer.Option(help="Folder for models, table and pictures.")] = Path(
        "comparison"
    ),
    seeds: Annotated[
        int, typer.Option(min=1, help="Train each so often, with seeds that follow one another.")
    ] = 1,
    tune: Annotated[
        int,
        typer.Option(
            min=0,
            help="Look for each encoding's learning rate first: three of them, each tried for so "
            "many steps, such as 300. 0 takes the recipe's.",
        ),
    ] = 0,
    data: Annotated[
        str | None, typer.Option(help="Pairs to test on; by default the recipe's data.test.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Their split; by default test.")] = None,
    covariance: Annotated[
        int, typer.Option(min=0, help="Problems for each number of names; 0 for none.")
    ] = 10,
    quiet: Quiet = False,
) -> None:
    """Train a recipe with each encoding, and show all of them side by side.

    All have the same optimiser steps. The table says whether each run has learned rows like those
    of training, too: what has not cannot generalise either.
    """
    tested = [] if data is None else [f"data.test={data}"]
    look_at_recipe(recipe, [*(overrides or []), *tested], ("train", "validation", "test"))
    from hf_alpha.recipe import read_recipe
    from hf_alpha.train.side_by_side import CURVES_FILE, compare_encodings

    settings = read_recipe(recipe, overrides)
    if settings.kind != "pairs":
        raise ValueError(f"{recipe} is no recipe for pairs of your own, named as 'data.train'")
    names = [name.strip() for name in encodings.split(",") if name.strip()]
    table, _ = compare_encodings(
        settings,
        names,
        user_test_rows(settings, data, split),
        out,
        seeds=seeds,
        tuning_steps=tune,
        covariance=covariance,
        say=say,
        progress=not quiet,
    )
    say(f"\n{table}\n\npicture: {out / CURVES_FILE}")


def quickstart(
    output: Annotated[Path, typer.Option(help="Folder for models, table and picture.")] = Path(
        "quickstart"
    ),
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each encoding.")] = 600,
    samples: Annotated[
        int, typer.Option(min=1, help="Problems for each number of names in the evaluation.")
    ] = 50,
    seed: Seed = 0,
) -> None:
    """See in minutes what it is about: models on more names than they were trained on.

    Three encodings of names, trained on pairs of texts for the same steps.
    """
    say(f"A tour of about a minute; what it makes lies in {output}. PyTorch is loaded first.")
    from hf_alpha.train.quickstart import quickstart as tour

    tour(output, steps, samples, seed, say)
