"""`hf-alpha evaluate`: metrics of trained models, beside one another."""

import shlex
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from hf_alpha.checkpoints.places import checkpoint_place
from hf_alpha.cli.common import say, test_data, user_test_rows
from hf_alpha.cli.looking import look_at_data
from hf_alpha.cli.options import (
    Beams,
    ModelsTask,
    argument,
    flag,
    grouped,
    integers,
    may_trust,
    names_of,
    option,
    refuse_options,
)
from hf_alpha.processes import is_first

if TYPE_CHECKING:
    import torch

    from hf_alpha.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Problems:
    """The problems that models are tested on: of a dataset, or drawn."""

    PANEL: ClassVar[str] = "Problems"
    data: str | None = option(
        "Dataset to use; by default formulas are drawn, and of your own pairs the "
        "recipe's data.test is taken."
    )
    split: str | None = option("Its split; by default test, or the only one.")
    source: str | None = option("Its column of problems; by default the recipe says it.")
    target: str | None = option("Its column of right answers; likewise.")
    symbols: str | None = option("Only with so many symbols; of formulas that are drawn, 1-8.")
    sizes: str | None = option("Only with so many tokens; of formulas that are drawn, 1-15.")
    samples: int | None = option(
        "Problems for each number of symbols, 100 if they are drawn; of data, all.", min=1
    )

    def folder(self, models: list[str], recipe: "Recipe") -> Path:
        """Return the folder of a report without --out; its name has the choices of given data."""
        choices = [] if self.are_drawn(recipe) else [self.symbols, self.sizes, self.samples]
        return report_folder(models, self.data, *choices)

    def are_drawn(self, recipe: "Recipe") -> bool:
        """Return whether the problems are made for the report."""
        return self.data is None and not recipe.has_pairs

    def rows(self, recipe: "Recipe", out: Path, progress: bool) -> list[dict[str, Any]]:
        """Return the problems.

        Args:
            recipe: says what is solved, and where pairs of the user's own are.
            out: folder of the report, which keeps formulas that are drawn.

        Raises:
            ValueError: there are no such problems, or an option would have no effect on them.
        """
        from hf_alpha.data.rows import choose_rows, described, load
        from hf_alpha.evaluation.compare import draw_problems

        numbers, sizes = (
            None if text is None else integers(text) for text in (self.symbols, self.sizes)
        )
        has_pairs, task = recipe.has_pairs, recipe.configured_task
        if has_pairs:
            rows = user_test_rows(recipe, self.data, self.split, self.source, self.target)
        elif self.data is not None:
            rows = load(
                self.data, self.split, preferred_split="test",
                source=self.source or "problem", target=self.target or "answer",
            )  # fmt: skip
            rows = described(task, rows, self.data)
        elif any((self.split, self.source, self.target)):
            raise ValueError(
                "--split, --source and --target are for --data, and formulas are drawn: leave them "
                "out"
            )
        else:
            return draw_problems(
                task, out / "problems", numbers or range(1, 9), sizes or range(1, 16),
                self.samples or 100, progress=progress,
            )  # fmt: skip
        return choose_rows(rows, numbers, sizes, self.samples)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """How models answer, and what is measured."""

    PANEL: ClassVar[str] = "Models that answer"
    task: ModelsTask = None
    beams: Beams = None
    top_n: int = option("Also: is one of N answers correct?", 1, min=1)
    covariance: int = option(
        "Problems for each number of symbols, for alpha-covariance; 0 for none.", 10, min=0
    )
    renamed: int = option(
        "Ask every row again so many times under other names, by its rules: how many "
        "answers are right, and how many change?",
        0,
        min=0,
    )


@dataclass(frozen=True, kw_only=True)
class Card:
    """The card that is written beside each model."""

    PANEL: ClassVar[str] = "Cards"
    card: bool = flag(
        "--card",
        "Write each model's README.md from the results, and from the NOTES.md in its "
        "folder, if there is one.",
    )
    license: str | None = option("For --card: the model's, such as cc-by-nc-4.0.")

    def check(self, models: list[str]) -> None:
        """Refuse to write beside models that are elsewhere.

        Raises:
            ValueError: a card is wanted of a model that is in no folder here.
        """
        if self.card and (elsewhere := [model for model in models if not Path(model).is_dir()]):
            raise ValueError(f"--card writes beside a model, and {elsewhere[0]} is no folder here")
        if self.card:
            from hf_alpha.hub.card import check_own_card

            for model in models:
                check_own_card(Path(model))

    @property
    def facts(self) -> dict[str, Any]:
        """The card's command, date and licence."""
        return {
            "command": shlex.join(["hf-alpha", *sys.argv[1:]]),
            "date": f"{date.today()}",
            "license": self.license,
        }


OF_OBJECTIVES = {"data", "split", "source", "target"}
"""Options of problems that are for models that do not answer with text too."""


@grouped
@may_trust("models")
def evaluate(
    command: typer.Context,
    models: list[str] = argument("Folders or Hub names, one row for each."),
    *,
    out: Path | None = option(
        "Folder for the report, where a killed run continues; of one model, by default "
        "`evaluation` in the folder of its training run, else runs/evaluation/NAME."
    ),
    by: str | None = option("Models that do not answer: a column; metrics for each of its values."),
    problems: Problems,
    answers: Answers,
    card: Card,
) -> None:
    """Measure correctness, exactness, edit distance and alpha-covariance beside random answers.

    Models of Transformers as they are may stand beside converted ones, on your own pairs:

    hf-alpha evaluate t5-small converted tuned --data test.jsonl --out before-and-after

    Of models that do not answer with text: the metrics of their recipe's objective.

    On several GPUs, a share of the rows each: accelerate launch -m hf_alpha evaluate MODEL
    """
    card.check(models)
    if not card.card:
        refuse_options(command, ["license"], "is what a card says, and there is no --card")
    for place in models:
        checkpoint_place(place)
    if problems.data is not None:
        look_at_data(models, problems.data, problems.source, problems.target)
    from hf_alpha.processes import choose_device
    from hf_alpha.recipe import writes_answers

    device, progress = choose_device(), is_first() and sys.stderr.isatty()
    writing = [model for model in models if writes_answers(model)]
    others = [model for model in models if model not in writing]
    if writing and others:
        raise ValueError(f"{writing[0]} writes answers, {others[0]} does not: evaluate them apart")
    if writing:
        refuse_options(command, ["by"], "is for models that do not answer with text")
        _evaluate_answers(models, out, device, progress, problems, answers, card)
    else:
        answer_options = {*names_of(Problems, Answers)} - OF_OBJECTIVES
        refuse_options(command, sorted(answer_options), "is for models that write answers")
        _evaluate_objective(models, out, device, problems, by, card)


def _evaluate_answers(
    models: list[str],
    out: Path | None,
    device: "torch.device",
    progress: bool,
    problems: Problems,
    answers: Answers,
    card: Card,
) -> None:
    """Measure models that write answers, which are checked."""
    from hf_alpha.answer.base import Search
    from hf_alpha.answer.models import load_answerer
    from hf_alpha.data.pairs import look_first, trained_rows
    from hf_alpha.evaluation.compare import compare, trained_region
    from hf_alpha.loading import load_config, spells_names
    from hf_alpha.names.first_look import seen_in_training

    by_name = dict(zip(row_names(models), models, strict=True))
    with_symbols = [model for model in models if hasattr(load_config(model), "symbol_classes")]
    named = [model for model in models if model in with_symbols or spells_names(model)]
    recipe = _recipe_of(models, named, answers.task)
    if card.card and len(with_symbols) < len(models):
        raise ValueError("--card is for models with symbols: leave out the others")
    search = Search(num_beams=answers.beams, top_n=answers.top_n)
    folder = out or problems.folder(models, recipe)
    # Data are looked at before models, whose loading takes long; what is drawn is written.
    rows = [] if problems.are_drawn(recipe) else problems.rows(recipe, folder, progress)
    answerers = [load_answerer(name, model, device, search) for name, model in by_name.items()]
    rows = rows or problems.rows(recipe, folder, progress)
    tokenizers = {one.name: (by_name[one.name], one.tokenizer) for one in answerers}
    seen = trained_rows(recipe, rows, by_name)
    looks = look_first(recipe, rows, tokenizers, seen)
    for look in list(looks.values())[:1]:
        say(f"{look}\n")
    warnings = {name: seen_in_training(some, len(rows)) for name, some in seen.items() if some}
    region = trained_region(recipe)
    table, (*of_models, chance) = compare(
        answerers, recipe.configured_task, rows, folder, region=region,
        warnings=warnings | {name: look.warnings for name, look in looks.items()},
        covariance=answers.covariance, renamed=answers.renamed, progress=progress,
    )  # fmt: skip
    if card.card and is_first():
        from hf_alpha.hub.card import write_card

        facts = {"region": region, "rows": rows, "data": problems.data, **card.facts}
        for model, report in zip(models, of_models, strict=True):
            write_card(Path(model), report, chance, **facts)
    say(f"{table}\nreport and pictures are in {folder}")


def row_names(models: list[str]) -> list[str]:
    """Call each model by the last part of its name, or by all of it where that says too little.

    Raises:
        ValueError: a model is given twice.
    """
    from hf_alpha.modeling.choices import check_unique

    check_unique("models", models)
    names = [Path(model).expanduser().resolve().name for model in models]
    return names if len(set(names)) == len(names) else models


def _recipe_of(models: list[str], with_symbols: list[str], task: str | None) -> "Recipe":
    """Return what says how data is read and where names are: a recipe, or a tokenizer's rules.

    That of the first model with symbols that has a recipe beside it counts, else that of the first
    model with symbols.
    """
    from hf_alpha.recipe import recipe_for, recipe_of

    if with_symbols:
        with_recipe = [model for model in with_symbols if recipe_of(model) is not None]
        return recipe_for([*with_recipe, *with_symbols][0], task)
    recipe = recipe_of(models[0])
    if recipe is None or not recipe.has_user_data:
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
) -> None:
    """Score models that do not answer with text by the first one's recipe."""
    from hf_alpha.evaluation.compare import evaluate_objective, rows_recipe
    from hf_alpha.objectives import make_objective
    from hf_alpha.objectives.evaluate import reader_of_rows

    recipe = rows_recipe(models)
    given = {"source": problems.source, "target": problems.target}
    columns = {key: name for key, name in given.items() if name}
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update=columns)})
    folder, data = out or report_folder(models, problems.data), test_data(recipe, problems.data)
    by_name = dict(zip(row_names(models), models, strict=True))
    objective = make_objective(recipe.objective)
    read = reader_of_rows(objective, recipe.data, data, problems.split, by)
    table, scores = evaluate_objective(by_name, recipe, read, folder, by=by, device=device)
    if card.card and is_first():
        from hf_alpha.hub.card import write_score_card

        for name, model in by_name.items():
            write_score_card(
                Path(model), objective, scores[name], read, recipe.data, by=by, **card.facts
            )
    say(f"{table}\nmetrics and predictions are in {folder}")


def report_folder(models: list[str], data: str | None, *choices: object) -> Path:
    """Return `evaluation` in a training run's folder, or a folder named by data and choices.

    Of other models it is under `runs`: what was released or converted stays as it is.

    Raises:
        ValueError: there are several models.
    """
    from hf_alpha.train import TRAINER_STATE

    if len(models) != 1:
        raise ValueError("name a folder for the report with --out")
    dataset = [] if data is None else [Path(data).name.partition(".")[0]]
    parts = ["evaluation", *dataset, *(str(choice) for choice in choices if choice is not None)]
    name, folder = "-".join(parts), Path(models[0])
    if (folder / TRAINER_STATE).is_file():
        return folder / name
    return Path("runs") / name / "-".join(part for part in folder.parts if part.strip("./"))
