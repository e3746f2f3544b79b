"""`hf-alpha train`: a recipe becomes a model."""

import json

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.looking import look_at_recipe
from hf_alpha.cli.options import Overrides, TrustRemoteCode, argument, flag
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
    recipe: str = argument(f"A YAML file, or a name: {DEFAULT_TASK}/debug."),
    overrides: Overrides = None,
    allow_changes: bool = flag(
        "--allow-changes", "Resume with other settings than the run so far."
    ),
    trust_remote_code: TrustRemoteCode = False,
    help_recipe: bool = flag(
        "--help-recipe",
        "Print every key of a recipe: its type, default and meaning.",
        is_eager=True,
        callback=_print_settings,
    ),
    recipe_schema: bool = flag(
        "--recipe-schema",
        "Print the JSON schema of recipes, for editors.",
        is_eager=True,
        callback=_print_schema,
    ),
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
