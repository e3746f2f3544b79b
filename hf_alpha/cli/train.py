"""`hf-alpha train`: a recipe becomes a model."""

import json
from typing import Annotated

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.looking import look_at_recipe
from hf_alpha.cli.options import Overrides, TrustRemoteCode
from hf_alpha.tasks.registry import DEFAULT_TASK
from hf_alpha.trust import trusting


def _print_settings(value: bool) -> None:
    if value:
        from hf_alpha.recipe import describe_settings

        say(describe_settings())
        raise typer.Exit


def _print_schema(value: bool) -> None:
    if value:
        from hf_alpha.recipe import recipe_schema

        say(json.dumps(recipe_schema(), indent=1))
        raise typer.Exit


def train(
    recipe: Annotated[str, typer.Argument(help=f"A YAML file, or a name: {DEFAULT_TASK}/debug.")],
    overrides: Overrides = None,
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Resume with other settings than the run so far."),
    ] = False,
    trust_remote_code: TrustRemoteCode = False,
    help_recipe: Annotated[
        bool,
        typer.Option(
            "--help-recipe",
            is_eager=True,
            callback=_print_settings,
            help="Print every key of a recipe: its type, default and meaning.",
        ),
    ] = False,
    recipe_schema: Annotated[
        bool,
        typer.Option(
            "--recipe-schema",
            is_eager=True,
            callback=_print_schema,
            help="Print the JSON schema of recipes, for editors.",
        ),
    ] = False,
) -> None:
    """Train as a recipe says; a run that was killed, or stopped by Ctrl-C, is resumed.

    On several GPUs: accelerate launch -m hf_alpha train RECIPE

    In several processes on CPUs: torchrun --nproc-per-node 2 -m hf_alpha train RECIPE
    """
    look_at_recipe(recipe, overrides, ("train", "validation"))
    from hf_alpha.recipe import read_recipe
    from hf_alpha.train import Interrupted
    from hf_alpha.train import train as run

    try:
        training_recipe = read_recipe(recipe, overrides)
        with trusting(*training_recipe.sources() * trust_remote_code):
            trainer = run(training_recipe, allow_changes, say)
    except Interrupted as stop:
        say(str(stop), err=True)
        raise typer.Exit(130) from None
    if trainer.is_world_process_zero():
        say(f"the trained model is in {trainer.args.output_dir}")
