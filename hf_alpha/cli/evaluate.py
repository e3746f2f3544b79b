"""`hf-alpha evaluate`: metrics of trained models, beside one another."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from hf_alpha.cli.common import check_places, say, test_data
from hf_alpha.cli.groups import Card, Covariance, Picture, Problems, Work, report_folder
from hf_alpha.cli.options import Beams, ModelsTask, grouped, may_trust, names_of, refuse, row_names

if TYPE_CHECKING:
    import torch

    from hf_alpha.recipe import Recipe

Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the report, where a killed run continues; of one model, by default "
        "`evaluation` in the folder of its training run, else runs/evaluation/NAME."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """How models answer."""

    PANEL: ClassVar[str] = "Models that answer"
    task: ModelsTask = None
    beams: Beams = None
    top_n: Annotated[int, typer.Option(min=1, help="Also: is one of N answers correct?")] = 1
    draws: Annotated[
        int, typer.Option(min=0, help="Of the random parts of dual_part models; shows the spread.")
    ] = 0


OF_OBJECTIVES = {"data", "split"}
"""Options of problems that are for models that do not answer with text too."""


@may_trust("models")
@grouped
def evaluate(
    command: typer.Context,
    models: Annotated[list[str], typer.Argument(help="Folders or Hub names, one row for each.")],
    *,
    out: Out = None,
    by: Annotated[
        str | None,
        typer.Option(help="Models that do not answer: a column; metrics for each of its values."),
    ] = None,
    problems: Problems,
    answers: Answers,
    covariance: Covariance,
    picture: Picture,
    card: Card,
    work: Work,
) -> None:
    """Measure correctness, exactness, edit distance and alpha-covariance beside random answers.

    Models of Transformers as they are may stand beside converted ones, on your own pairs:

    hf-alpha evaluate t5-small converted tuned --data test.jsonl --out before-and-after

    Of models that do not answer with text: the metrics of their recipe's objective.
    """
    check_places(*models)
    from hf_alpha.recipe import writes_answers

    card.check(models)
    device = work.begin()
    writing = [model for model in models if writes_answers(model)]
    others = [model for model in models if model not in writing]
    if writing and others:
        raise ValueError(f"{writing[0]} writes answers, {others[0]} does not: evaluate them apart")
    if writing:
        refuse(command, ["by"], "is for models that do not answer with text")
        _evaluate_answers(models, out, device, problems, answers, covariance, picture, card, work)
    else:
        answer_options = {*names_of(Problems, Answers, Covariance, Picture), "workers", "timeout"}
        refuse(command, sorted(answer_options - OF_OBJECTIVES), "is for models that write answers")
        _evaluate_objective(models, out, device, problems, by, card, work.batch_size)


def _evaluate_answers(
    models: list[str],
    out: Path | None,
    device: "torch.device",
    problems: Problems,
    answers: Answers,
    covariance: Covariance,
    picture: Picture,
    card: Card,
    work: Work,
) -> None:
    """Measure models that write answers, which are checked."""
    from hf_alpha.card import write_card
    from hf_alpha.data.own import look_first
    from hf_alpha.evaluation.compare import compare
    from hf_alpha.evaluation.entrants import answering_model, has_symbols

    settings = {**covariance.settings, **work.settings}
    with_symbols = [model for model in models if has_symbols(model)]
    recipe = _recipe_of(models, with_symbols, answers.task)
    if card.card and len(with_symbols) < len(models):
        raise ValueError("--card is for models with symbols: leave out the others")
    names = row_names(models)
    entrants = [answering_model(*pair, device) for pair in zip(names, models, strict=True)]
    encodings = [getattr(one.model.config, "encoding", None) for one in entrants]
    if answers.draws and not any(one is not None and one.random_parts for one in encodings):
        raise ValueError("--draws is for models with random parts, and there is none: leave it out")
    folder = out or problems.folder(models, recipe)
    rows = problems.rows(recipe.solved, recipe, folder, progress=not work.quiet)
    looks = look_first(recipe, rows, {
        entrant.name: (model, entrant.tokenizer)
        for entrant, model in zip(entrants, models, strict=True)
    })  # fmt: skip
    for look in list(looks.values())[:1]:
        say(f"{look}\n")
    table, reports = compare(
        entrants, recipe.solved, rows, folder, region=picture.region, seed=problems.seed,
        num_beams=answers.beams, top_n=answers.top_n, draws=answers.draws,
        warnings={name: look.warnings for name, look in looks.items()}, **settings,
    )  # fmt: skip
    if card.card:
        *of_models, chance = reports
        for model, report in zip(models, of_models, strict=True):
            write_card(Path(model), report, chance, region=picture.region, **card.facts)
    say(f"{table}\nreport and pictures are in {folder}")


def _recipe_of(models: list[str], with_symbols: list[str], task: str | None) -> "Recipe":
    """Return what says how data is read and where names are: a recipe, or a tokenizer's rules.

    That of the first model with symbols that has a recipe beside it counts, else that of the first
    model with symbols.

    Raises:
        ValueError: no model has symbols, or a recipe for pairs of texts.
    """
    from hf_alpha.recipe import recipe_for, recipe_of

    if with_symbols:
        told = [model for model in with_symbols if recipe_of(model) is not None]
        return recipe_for([*told, *with_symbols][0], task)
    recipe = recipe_of(models[0])
    if recipe is None or not recipe.has_own_data:
        raise ValueError(
            f"{models[0]} has no symbols, and no recipe says what its problems are: name a "
            "converted model beside it (hf-alpha convert), or ask it by prompts with "
            "lm-evaluation-harness (docs/names-benchmark.md)"
        )
    return recipe


def _evaluate_objective(
    models: list[str],
    out: Path | None,
    device: "torch.device",
    problems: Problems,
    by: str | None,
    card: Card,
    batch_size: int,
) -> None:
    """Score models that do not answer with text by the first one's recipe."""
    from hf_alpha.evaluation.objectives import evaluate_objective, rows_recipe
    from hf_alpha.objectives import make_objective
    from hf_alpha.score_card import write_score_card

    recipe = rows_recipe(models)
    folder, data = out or report_folder(models, problems.data), test_data(recipe, problems.data)
    by_name = dict(zip(row_names(models), models, strict=True))
    table, scores = evaluate_objective(
        by_name, recipe, data, folder, split=problems.split, by=by, batch_size=batch_size,
        device=device,
    )  # fmt: skip
    if card.card:
        objective = make_objective(recipe.objective)
        rows = objective.read(recipe.data, data, "test", problems.split)
        for name, model in by_name.items():
            write_score_card(
                Path(model), objective, scores[name], rows, recipe.data, by=by, **card.facts
            )
    say(f"{table}\nmetrics and predictions are in {folder}")


__all__ = ["Out", "evaluate"]
