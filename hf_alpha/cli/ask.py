"""`hf-alpha ask`: models that follow instructions, asked by a prompt."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from hf_alpha.cli.common import check_places, say
from hf_alpha.cli.evaluate import Out
from hf_alpha.cli.groups import Covariance, Picture, Problems, Work
from hf_alpha.cli.options import Beams, ModelsTask, grouped, json_object, may_trust, row_names
from hf_alpha.tasks.registry import DEFAULT_TASK

if TYPE_CHECKING:
    import torch

    from hf_alpha.evaluation.compare import Entrant
    from hf_alpha.recipe import Recipe

SERVED = re.compile(r"(.+)@(https?://.*)")
"""A model behind an address: its name there, and the address."""


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How models are asked."""

    PANEL: ClassVar[str] = "How models are asked"
    generation: Annotated[
        str | None,
        typer.Option(
            help="As JSON, arguments of generate, or fields of a request: "
            """'{"max_new_tokens": 512}', '{"max_tokens": 512}'.""",
        ),
    ] = None
    key_from: Annotated[
        str | None, typer.Option(help="Environment variable that holds the service's key.")
    ] = None
    parallel: Annotated[
        int | None,
        typer.Option(min=1, help="Requests to the service at a time; by default 4."),
    ] = None

    def check(self, services: Sequence[str], hosts: Sequence[str]) -> None:
        """Refuse options that would do nothing, or would be for two kinds of models.

        Args:
            services: models behind an address.
            hosts: models here that are asked by a prompt.

        Raises:
            ValueError: there is such an option.
        """
        options = {"--key-from": self.key_from, "--parallel": self.parallel}
        given_options = [option for option, value in options.items() if value is not None]
        if given_options and not services:
            raise ValueError(
                f"{given_options[0]} is for a service: name it as NAME@ADDRESS, or leave it out"
            )
        if self.generation is not None and bool(services) == bool(hosts):
            raise ValueError(
                "--generation is for models here or for a service, and "
                + ("both are asked: ask one of them" if services else "none is asked: leave it out")
            )

    def service(self, name: str, address: str) -> "Entrant":
        """Return a model behind an address, which calls it so.

        Raises:
            ValueError: there is no key, or the address is none.
        """
        from hf_alpha.evaluation.instructed import AskedModel
        from hf_alpha.evaluation.service import Service

        if self.key_from is not None and not os.environ.get(self.key_from):
            raise ValueError(
                f"there is no environment variable {self.key_from}, which --key-from names"
            )
        key = None if self.key_from is None else os.environ[self.key_from]
        request = json_object("--generation", self.generation)
        return AskedModel(name, Service(address, name, key, request, self.parallel or 4))


@may_trust("models")
@grouped
def ask(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Folders or Hub names; or NAME@ADDRESS, of a service that speaks OpenAI's "
            "protocol and calls its model NAME: problems are sent there, and nowhere else."
        ),
    ],
    *,
    out: Out = None,
    task: ModelsTask = None,
    beams: Beams = None,
    asking: Asking,
    problems: Problems,
    covariance: Covariance,
    picture: Picture,
    work: Work,
) -> None:
    """Ask models that follow instructions by the task's prompt, and measure them as evaluate does.

    hf-alpha ask Qwen/Qwen3-0.6B --task ltl

    hf-alpha ask some-model@http://localhost:8000/v1 --key-from MY_KEY --task ltl --out there

    Any language model of Transformers is asked.

    Models with symbols may stand beside: they answer as for evaluate.
    """
    services = [model for model in models if SERVED.fullmatch(model)]
    loaded_models = [model for model in models if model not in services]
    check_places(*loaded_models)
    from hf_alpha.evaluation.compare import compare
    from hf_alpha.loading import load_config
    from hf_alpha.tasks import get_task

    if out is None and services:
        raise ValueError("name a folder for the report with --out")
    settings = {**covariance.settings, **work.settings}
    device = work.begin()
    hosts = [model for model in loaded_models if not hasattr(load_config(model), "symbol_classes")]
    asking.check(services, hosts)
    entrants = _entrants(models, loaded_models, hosts, asking, device, problems.seed)
    recipe = _recipe_of(loaded_models, hosts, task)
    solved = get_task(task or DEFAULT_TASK) if recipe is None else recipe.solved
    folder = out or problems.folder(models, recipe)
    rows = problems.rows(solved, recipe, folder, progress=not work.quiet)
    table, _ = compare(
        entrants, solved, rows, folder, region=picture.region, seed=problems.seed,
        num_beams=beams, **settings,
    )  # fmt: skip
    say(f"{table}\nreport and pictures are in {folder}")


def _entrants(
    models: Sequence[str],
    loaded_models: list[str],
    hosts: Sequence[str],
    asking: Asking,
    device: "torch.device",
    seed: int,
) -> "list[Entrant]":
    """Return the models, in their order, ready to be measured.

    Args:
        models: all of them.
        loaded_models: those that are loaded.
        hosts: those of them that are asked by a prompt; the others have symbols.
        asking: how they are asked.
        device: where they run.
        seed: of replies that are drawn.
    """
    from hf_alpha.evaluation.entrants import asked_model, trained_model

    names = dict(zip(loaded_models, row_names(loaded_models), strict=True))
    rows = [*names.values(), *(served[1] for model in models if (served := SERVED.match(model)))]
    if twice := [name for name in rows if rows.count(name) > 1]:
        raise ValueError(f"two models are called {twice[0]!r} in the table: ask one of them")
    generation = json_object("--generation", asking.generation)
    entrants: list[Entrant] = []
    for model in models:
        if served := SERVED.fullmatch(model):
            entrants.append(asking.service(served[1], served[2]))
        elif model in hosts:
            entrants.append(asked_model(names[model], model, device, generation, seed))
        else:
            entrants.append(trained_model(names[model], model, device))
    return entrants


def _recipe_of(loaded_models: list[str], hosts: Sequence[str], task: str | None) -> "Recipe | None":
    """Return a model's recipe, by which it says its task; None where none is needed."""
    from hf_alpha.recipe import recipe_for, recipe_of

    if trained_models := [model for model in loaded_models if model not in hosts]:
        return recipe_for(trained_models[0], task)
    return recipe_of(loaded_models[0]) if loaded_models and task is None else None


__all__ = ["ask"]
