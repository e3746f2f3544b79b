"""`hf-alpha evaluate`: metrics of models, beside one another."""

import os
import shlex
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hf_alpha.cli.common import check_places, own_test_rows, say, test_data
from hf_alpha.cli.options import (
    Beams,
    Device,
    Exclude,
    Hard,
    ModelsTask,
    Quiet,
    Seed,
    integers,
    json_object,
    may_trust,
    refuse,
    renamings,
    row_names,
)
from hf_alpha.folders import alone_in
from hf_alpha.tasks.registry import DEFAULT_TASK

if TYPE_CHECKING:
    from hf_alpha.evaluation.compare import Entrant
    from hf_alpha.evaluation.heatmap import Region
    from hf_alpha.evaluation.report import Report
    from hf_alpha.recipe import OwnRecipe, Recipe
    from hf_alpha.tasks import Task


ASKED = "Models that follow instructions"  # a panel of options
OF_ANSWERS = (
    *("task", "symbols", "sizes", "samples", "hard", "exclude", "trained_symbols", "trained_size"),
    *("beams", "top_n", "covariance", "max_renamings", "draws", "workers", "timeout", "seed"),
)
"""Options that say nothing of models that do not write answers."""


@may_trust("models")
def evaluate(
    command: typer.Context,
    models: Annotated[
        list[str] | None, typer.Argument(help="Folders or Hub names, one row for each.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report, where a killed run continues; of one model, by default "
            "`evaluation` in the folder of its training run, else runs/evaluation/NAME."
        ),
    ] = None,
    task: ModelsTask = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Dataset to use; by default formulas are drawn, and of your own pairs the "
            "recipe's data.test is taken."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Its split; by default test, or the only one.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Models that do not answer: a column; metrics for each of its values."),
    ] = None,
    symbols: Annotated[
        str | None,
        typer.Option(help="Numbers of symbols, 1-8 of formulas that are drawn; of data, all."),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Sizes, 1-15 of formulas that are drawn; of data, all.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1, help="Problems for each number of symbols, 100 if they are drawn; of data, all."
        ),
    ] = None,
    hard: Hard = 0.0,
    exclude: Exclude = None,
    trained_symbols: Annotated[
        str | None,
        typer.Option(help="For the picture: symbols seen in training, 3 (at most) or 1-5."),
    ] = None,
    trained_size: Annotated[
        str | None,
        typer.Option(help="For the picture: sizes seen in training, 15 (at most) or 3-20."),
    ] = None,
    beams: Beams = None,
    top_n: Annotated[int, typer.Option(min=1, help="Also: is one of N answers correct?")] = 1,
    covariance: Annotated[
        int, typer.Option(min=0, help="Formulas for each number of symbols; 0 for none.")
    ] = 10,
    max_renamings: Annotated[
        str, typer.Option("--renamings", help="For alpha-covariance: most of a formula, or all.")
    ] = "24",
    draws: Annotated[
        int, typer.Option(min=0, help="Of the random parts of dual_part models; shows the spread.")
    ] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Formulas in a batch.")] = 64,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that check; 0 checks between batches.")
    ] = 0,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds for a call of a solver.")] = 10.0,
    device: Device = "auto",
    card: Annotated[
        bool,
        typer.Option(
            "--card",
            help="Write each model's README.md from the results, and from the NOTES.md in its "
            "folder, if there is one.",
        ),
    ] = False,
    license: Annotated[
        str | None, typer.Option(help="For --card: the model's, such as cc-by-nc-4.0.")
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    few_shot: Annotated[
        bool,
        typer.Option(
            "--few-shot",
            help="Ask models without symbols by the task's prompt: any of Transformers.",
            rich_help_panel=ASKED,
        ),
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(
            help="Ask a service that speaks OpenAI's protocol: http://localhost:8000/v1. Problems "
            "are sent there, and nowhere else.",
            rich_help_panel=ASKED,
        ),
    ] = None,
    served: Annotated[
        str | None,
        typer.Option(help="What the service calls its model.", rich_help_panel=ASKED),
    ] = None,
    key_from: Annotated[
        str | None,
        typer.Option(
            help="Environment variable that holds the service's key.", rich_help_panel=ASKED
        ),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1, help="Requests to the service at a time; by default 4.", rich_help_panel=ASKED
        ),
    ] = None,
    generation: Annotated[
        str | None,
        typer.Option(
            help="As JSON, arguments of generate, or fields of a request: "
            """'{"max_new_tokens": 512}', '{"max_tokens": 512}'.""",
            rich_help_panel=ASKED,
        ),
    ] = None,
) -> None:
    """Measure correctness, exactness, edit distance and alpha-covariance beside random answers.

    Of models that do not answer with text: the metrics of their recipe's objective. Models that
    follow instructions are asked by a prompt: docs/instructed.md.
    """
    models = models or []
    check_places(*models)
    from datasets import disable_progress_bars

    from hf_alpha.evaluation.compare import compare
    from hf_alpha.processes import choose_device
    from hf_alpha.recipe import OwnRecipe, writes_answers
    from hf_alpha.tasks import DrawnTask, get_task

    if not models and address is None:
        raise ValueError("name a model: a folder, a name on the Hub, or --address and --served")
    if (trained_symbols is None) != (trained_size is None):
        raise ValueError("--trained-symbols and --trained-size outline a region together")
    if data is not None and hard:
        raise ValueError("--hard is for formulas that are drawn: leave it out with --data")
    if card and (few_shot or address):
        raise ValueError("--card is for trained models: leave it out with --few-shot and --address")
    if card and (elsewhere := [model for model in models if not Path(model).is_dir()]):
        raise ValueError(f"--card writes beside a model, and {elsewhere[0]} is no folder here")
    if license is not None and not card:
        raise ValueError("--license is what a card says: give --card too")
    _check_asked(few_shot, address, served, key_from, parallel, generation)
    limit, where = renamings(max_renamings), choose_device(device)
    if quiet:
        disable_progress_bars()
    if models and not writes_answers(models[0]):
        if few_shot or address is not None:
            option = "--few-shot" if address is None else "--address"
            raise ValueError(f"{models[0]} does not write answers: leave out {option}")
        refuse(command, OF_ANSWERS, "is for models that write answers")
        out = out or _beside(models, data)
        written = _evaluate_objective(
            models, data, split, by, out, batch_size, device, card, license
        )
        say(written)
        return
    if by is not None:
        raise ValueError("--by is for models that do not answer with text: leave it out")
    told = json_object("--generation", generation)
    loaded = _entrants(models, told if few_shot else None, where, seed)
    if address is not None:
        loaded.append(_service(address, served, key_from, told, parallel))
    if draws and not any(_is_drawn(one) for one in loaded):
        raise ValueError("--draws is for models with random parts, and there is none: leave it out")
    recipe = _recipe_of(models, task, few_shot)
    solved = recipe.solved if recipe is not None else get_task(task or DEFAULT_TASK)
    if out is None and address is not None:
        raise ValueError("name a folder for the report with --out")
    problems = _Problems(symbols, sizes, samples, hard, exclude or [], seed)
    if isinstance(recipe, OwnRecipe) and not isinstance(solved, DrawnTask):
        out = out or _beside(models, data, symbols, sizes, samples)
        rows = problems.of_own(recipe, data, split)
    elif data is not None:
        out = out or _beside(models, data, symbols, sizes, samples)
        rows = problems.of_data(solved, data, split)
    else:
        refuse(command, ["split"], "is for --data, and formulas are drawn")
        out = out or _beside(models, data)
        rows = problems.drawn(solved, out / "problems", progress=not quiet)
    region = _region(trained_symbols, trained_size)
    table, reports = compare(
        loaded,
        solved,
        rows,
        out,
        region=region,
        num_beams=beams,
        top_n=top_n,
        covariance=covariance,
        max_renamings=limit,
        draws=draws,
        batch_size=batch_size,
        timeout=timeout,
        num_workers=workers,
        seed=seed,
        progress=not quiet,
    )
    if card:
        _write_cards(models, reports, license, region)
    say(table)
    say(f"report and pictures are in {out}")


@dataclass(frozen=True)
class _Problems:
    """Which problems are tested, as the options of the same names say."""

    symbols: str | None
    sizes: str | None
    samples: int | None
    hard: float
    exclude: list[str]
    seed: int

    def drawn(self, task: "Task", folder: Path, progress: bool) -> list[dict[str, Any]]:
        """New ones, which `folder` keeps."""
        from hf_alpha.evaluation.compare import draw_problems

        numbers, sizes = integers(self.symbols or "1-8"), integers(self.sizes or "1-15")
        return draw_problems(
            task, folder, numbers, sizes, self.samples or 100, self.seed, self.hard, self._known(),
            progress=progress,
        )  # fmt: skip

    def of_data(self, task: "Task", data: str, split: str | None) -> list[dict[str, Any]]:
        """Those of a dataset."""
        from hf_alpha.data.read import leave_out, load

        dataset, known = load(data, split, task, preferred_split="test"), self._known()
        return self._chosen(list(leave_out(dataset, known, task) if known else dataset))

    def of_own(
        self, recipe: "OwnRecipe", data: str | None, split: str | None
    ) -> list[dict[str, Any]]:
        """Those of the user's own pairs."""
        if self.hard or self.exclude:
            option = "--hard" if self.hard else "--exclude"
            raise ValueError(f"{option} is for formulas: leave it out with pairs of your own")
        return self._chosen(own_test_rows(recipe, data, split))

    def _known(self) -> list[str]:
        """Problems of training, to be left out."""
        from hf_alpha.data.read import training_problems

        return [problem for each in self.exclude for problem in training_problems(each)]

    def _chosen(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        from hf_alpha.evaluation.compare import choose_rows

        many, long = (None if x is None else integers(x) for x in (self.symbols, self.sizes))
        return choose_rows(rows, many, long, self.samples, self.seed)


def _recipe_of(models: list[str], task: str | None, few_shot: bool) -> "Recipe | None":
    """What the first model says of its task; None where it says nothing, and may."""
    from hf_alpha.recipe import recipe_for, recipe_of

    if not models or (few_shot and task is not None):
        return None
    return recipe_of(models[0]) if few_shot else recipe_for(models[0], task)


def _entrants(
    models: list[str], generation: dict[str, Any] | None, where: Any, seed: int
) -> "list[Entrant]":
    """Load models to be measured.

    Args:
        generation: how models without symbols generate; None where there shall be none.
        where: the device.
        seed: of what is drawn.
    """
    from hf_alpha.evaluation.compare import EvaluatedModel
    from hf_alpha.evaluation.instructed import AskedModel, LocalModel
    from hf_alpha.loading import auto_class, load_checkpoint, load_config, load_host

    loaded: list[Entrant] = []
    for name, folder in zip(row_names(models), models, strict=True):
        config = load_config(folder)
        if generation is None or hasattr(config, "symbol_classes"):
            model, tokenizer = load_checkpoint(folder)
            loaded.append(EvaluatedModel(name, model.to(where), tokenizer))
        else:
            model, tokenizer = load_host(folder, auto_class(config))
            asked = LocalModel(model.to(where), tokenizer, generation, seed)
            loaded.append(AskedModel(name, asked))
    return loaded


def _is_drawn(entrant: "Entrant") -> bool:
    """Whether a model's symbols have random parts."""
    from hf_alpha.evaluation.compare import EvaluatedModel

    return isinstance(entrant, EvaluatedModel) and entrant.model.config.encoding.random_parts


def _check_asked(
    few_shot: bool,
    address: str | None,
    served: str | None,
    key_from: str | None,
    parallel: int | None,
    generation: str | None,
) -> None:
    """Raise ValueError for an option that would do nothing, or would be for two kinds of models."""
    if generation is not None and few_shot and address is not None:
        raise ValueError("--generation is for models here or for a service: ask one of them")
    if generation is not None and not few_shot and address is None:
        raise ValueError("--generation is for models that are asked: add --few-shot or --address")
    options = {"--served": served, "--key-from": key_from, "--parallel": parallel}
    given = [option for option, value in options.items() if value is not None]
    if given and address is None:
        raise ValueError(f"{given[0]} is for a service: name it with --address, or leave it out")


def _service(
    address: str,
    served: str | None,
    key_from: str | None,
    request: dict[str, Any],
    parallel: int | None,
) -> "Entrant":
    """A model behind an address."""
    from hf_alpha.evaluation.instructed import AskedModel
    from hf_alpha.evaluation.service import Service

    if served is None:
        raise ValueError("say with --served what the service at --address calls its model")
    if key_from is not None and not os.environ.get(key_from):
        raise ValueError(f"there is no environment variable {key_from}, which --key-from names")
    key = None if key_from is None else os.environ[key_from]
    return AskedModel(served, Service(address, served, key, request, parallel or 4))


def _beside(models: list[str], data: str | None, *chosen: object) -> Path:
    """The folder `evaluation` in that of a training run; of data and choices, one of their own.

    Of other models it is under `runs`: what was released or converted stays as it is.
    """
    from hf_alpha.train import TRAINER_STATE

    if len(models) > 1:
        raise ValueError("name a folder for the report with --out")
    given = [] if data is None else [Path(data).name.partition(".")[0]]
    name = "-".join(["evaluation", *given, *(str(x) for x in chosen if x is not None)])
    folder = Path(models[0])
    if (folder / TRAINER_STATE).is_file():
        return folder / name
    return Path("runs") / name / "-".join(part for part in folder.parts if part.strip("./"))


@alone_in("out")
def _evaluate_objective(
    models: list[str],
    data: str | None,
    split: str | None,
    by: str | None,
    out: Path,
    batch_size: int,
    device: str,
    card: bool,
    license: str | None,
) -> str:
    """Score models that do not answer with text by the first one's recipe; returns the table."""
    from hf_alpha.folders import write_text
    from hf_alpha.loading import auto_class, load_config
    from hf_alpha.objectives.evaluate import evaluate_checkpoint, table
    from hf_alpha.processes import choose_device
    from hf_alpha.recipe import RowsRecipe, recipe_of

    scores = {}
    recipe = recipe_of(models[0])
    if not isinstance(recipe, RowsRecipe):
        raise ValueError(f"{models[0]} has no recipe.yaml that says what it is trained for")
    first, *others = (auto_class(load_config(model)).__name__ for model in models)
    for model, kind in zip(models[1:], others, strict=True):
        if kind != first:
            raise ValueError(
                f"{model} is a model for {kind}, {models[0]} one for {first}: evaluate them apart"
            )
    where = test_data(recipe, data)
    for name, folder in zip(row_names(models), models, strict=True):
        found = evaluate_checkpoint(
            folder, recipe.aim, recipe.data, where, split=split, by=by, batch_size=batch_size,
            device=choose_device(device),
        )  # fmt: skip
        parts = [part for part in Path(name).parts if part not in ("/", "..")]
        found.save(out.joinpath(*parts) if len(models) > 1 else out)
        scores[name] = found
    written = table(scores, by)
    write_text(out / "report.txt", f"{written}\n")
    if card:
        from hf_alpha.score_card import write_score_card

        rows = recipe.aim.read(recipe.data, where, "test", split)
        for folder, found in zip(models, scores.values(), strict=True):
            write_score_card(
                Path(folder), recipe.aim, found, rows, recipe.data, by=by,
                command=_this_command(), date=f"{date.today()}", license=license,
            )  # fmt: skip
    return f"{written}\nmetrics and predictions are in {out}"


def _region(symbols: str | None, size: str | None) -> "Region | None":
    """Smallest and largest number of symbols, and size, seen in training; None if not given."""
    if symbols is None or size is None:
        return None
    return _bounds(symbols, 0), _bounds(size, 1)


def _bounds(text: str, smallest: int) -> tuple[int, int]:
    numbers = integers(text)
    return (numbers[0] if len(numbers) > 1 else smallest), numbers[-1]


def _write_cards(
    models: list[str], reports: "list[Report]", license: str | None, region: "Region | None"
) -> None:
    from hf_alpha.card import write_card

    made = _this_command(), f"{date.today()}"
    for folder, report in zip(models, reports, strict=False):
        write_card(Path(folder), report, reports[-1], *made, license, region)


def _this_command() -> str:
    return shlex.join(["hf-alpha", *sys.argv[1:]])


__all__ = ["evaluate"]
