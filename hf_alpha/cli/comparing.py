"""`hf-alpha compare` and `quickstart`: a recipe becomes a model of each encoding."""

from pathlib import Path

from hf_alpha.cli.common import say, user_test_rows
from hf_alpha.cli.looking import look_at_recipe
from hf_alpha.cli.options import Overrides, Quiet, Seed, argument, option


def compare(
    recipe: str = argument("A recipe for your own pairs."),
    overrides: Overrides = None,
    encodings: str = option(
        "learned, renaming, canonical, dual_part, streams, relational; plain, where the "
        "recipe has the checkpoint of a plain model.",
        "relational,streams,canonical,learned",
    ),
    out: Path = option("Folder for models, table and pictures.", Path("comparison")),
    seeds: int = option("Train each so often, with seeds that follow one another.", 1, min=1),
    tune: int = option(
        "Look for each encoding's learning rate first: three of them, each tried for so "
        "many steps, such as 300. 0 takes the recipe's.",
        0,
        min=0,
    ),
    data: str | None = option("Pairs to test on; by default the recipe's data.test."),
    split: str | None = option("Their split; by default test."),
    covariance: int = option("Problems for each number of names; 0 for none.", 10, min=0),
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
    output: Path = option("Folder for models, table and picture.", Path("quickstart")),
    steps: int = option("Training steps of each encoding.", 600, min=1),
    samples: int = option("Problems for each number of names in the evaluation.", 50, min=1),
    seed: Seed = 0,
) -> None:
    """See in minutes what it is about: models on more names than they were trained on.

    Three encodings of names, trained on pairs of texts for the same steps.
    """
    say(f"A tour of about a minute; what it makes lies in {output}. PyTorch is loaded first.")
    from hf_alpha.train.quickstart import quickstart as tour

    tour(output, steps, samples, seed, say)
