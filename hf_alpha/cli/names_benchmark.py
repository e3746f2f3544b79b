"""`hf-alpha names-benchmark`: how much any model cares about names."""

import shlex
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from hf_alpha.cli.ask import SERVED, Asking
from hf_alpha.cli.common import check_places, say
from hf_alpha.cli.options import Device, Quiet, Seed, grouped, json_object, may_trust, row_names

if TYPE_CHECKING:
    import torch

    from hf_alpha.evaluation.instructed import Asked
    from hf_alpha.names_benchmark.run import Plan

SUITES = "propositional, ltl, proofs, kinship, programs, sql, tools, people"


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What models are asked."""

    PANEL: ClassVar[str] = "Questions"
    suites: Annotated[
        str, typer.Option(help=f"Suites with commas between, of {SUITES}; or all.")
    ] = "all"
    questions: Annotated[int, typer.Option(min=1, help="Questions of each suite.")] = 20
    difficulty: Annotated[
        int, typer.Option(min=1, help="From 1 on: more names, formulas, rules, steps.")
    ] = 2
    namings: Annotated[
        int, typer.Option(min=1, help="How often each is asked with names of each of four kinds.")
    ] = 2
    examples: Annotated[
        int,
        typer.Option(
            min=0,
            help="Answered questions in a prompt; with 0, a model without a chat template gets the "
            "question alone, as for one that was trained on such questions.",
        ),
    ] = 3
    seed: Seed = 0

    @property
    def plan(self) -> "Plan":
        """What is asked.

        Raises:
            ValueError: there is no such suite, or it has no such difficulty.
        """
        from hf_alpha.names_benchmark.run import Plan
        from hf_alpha.names_benchmark.suites import SUITES as known

        names = tuple(known) if self.suites == "all" else tuple(self.suites.split(","))
        return Plan(
            tuple(dict.fromkeys(name.strip() for name in names)),
            self.questions, self.difficulty, self.namings, self.examples, self.seed,
        )  # fmt: skip


@may_trust("models")
@grouped
def names_benchmark(
    models: Annotated[
        list[str],
        typer.Argument(
            help="Folders or Hub names of any language models; or NAME@ADDRESS, of a service that "
            "speaks OpenAI's protocol and calls its model NAME: questions are sent there, and "
            "nowhere else."
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(help="Folder for replies, report, picture and card; a stopped run goes on."),
    ] = Path("runs/names-benchmark"),
    asking: Asking,
    questions: Questions,
    batch_size: Annotated[int, typer.Option(min=1, help="Prompts in a batch.")] = 32,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Ask questions in which some words are only names, again and again with other names.

    hf-alpha names-benchmark Qwen/Qwen3-0.6B

    hf-alpha names-benchmark some-model@http://localhost:8000/v1 --key-from MY_KEY

    Prints right answers by kind of names, and how many renamings change the answer.
    """
    services = [model for model in models if SERVED.fullmatch(model)]
    loaded_models = [model for model in models if model not in services]
    check_places(*loaded_models)
    from hf_alpha.loading import load_config
    from hf_alpha.names_benchmark.run import names_benchmark as run
    from hf_alpha.processes import choose_device

    plan = questions.plan
    asking.check(services, loaded_models)
    names = dict(zip(loaded_models, row_names(loaded_models), strict=True))
    asked: dict[str, Asked] = {}
    for model in models:
        served = SERVED.fullmatch(model)
        name = served[1] if served else names[model]
        if name in asked:
            raise ValueError(f"two models are called {name!r} in the table: ask one of them")
        if served:
            asked[name] = asking.service(served[1], served[2]).asked  # type: ignore[attr-defined]
        else:
            has_symbols = hasattr(load_config(model), "symbol_classes")
            asked[name] = _loaded(name, model, has_symbols, asking, choose_device(device))
    text, _ = run(
        asked, plan, out, command=shlex.join(["hf-alpha", *sys.argv[1:]]), date=f"{date.today()}",
        batch_size=batch_size, progress=not quiet,
    )  # fmt: skip
    say(f"{text}\n\nreport, picture and card are in {out}")


def _loaded(
    name: str, model: str, has_symbols: bool, asking: Asking, device: "torch.device"
) -> "Asked":
    """Load a model of Transformers, or one with symbols, whose prompts say where names stand."""
    from hf_alpha.evaluation.entrants import asked_model
    from hf_alpha.loading import load_checkpoint
    from hf_alpha.names_benchmark.models import SymbolModel

    generation = json_object("--generation", asking.generation)
    if not has_symbols:
        return asked_model(name, model, device, generation).asked
    pretrained, tokenizer = load_checkpoint(model)
    return SymbolModel(pretrained.to(device), tokenizer, generation)


__all__ = ["names_benchmark"]
