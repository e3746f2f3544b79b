"""Groups of options of `evaluate`."""

import shlex
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hf_alpha.cli.common import own_test_rows
from hf_alpha.cli.options import (
    Device,
    Exclude,
    Hard,
    Hardness,
    Quiet,
    Seed,
    integers,
    renamings,
)

if TYPE_CHECKING:
    import torch

    from hf_alpha.evaluation.heatmap import Region
    from hf_alpha.recipe import Recipe
    from hf_alpha.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Problems:
    """The problems that models are tested on: of a dataset, or drawn.

    Raises:
        ValueError: an option for drawn formulas stands beside a dataset.
    """

    PANEL: ClassVar[str] = "Problems"
    data: Annotated[
        str | None,
        typer.Option(
            help="Dataset to use; by default formulas are drawn, and of your own pairs the "
            "recipe's data.test is taken."
        ),
    ] = None
    split: Annotated[
        str | None, typer.Option(help="Its split; by default test, or the only one.")
    ] = None
    symbols: Annotated[
        str | None,
        typer.Option(help="Numbers of symbols, 1-8 of formulas that are drawn; of data, all."),
    ] = None
    sizes: Annotated[
        str | None, typer.Option(help="Sizes, 1-15 of formulas that are drawn; of data, all.")
    ] = None
    samples: Annotated[
        int | None,
        typer.Option(
            min=1, help="Problems for each number of symbols, 100 if they are drawn; of data, all."
        ),
    ] = None
    hard: Hard = 0.0
    hardness: Hardness = 1
    exclude: Exclude = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        if self.data is not None and self.hard:
            raise ValueError("--hard is for formulas that are drawn: leave it out with --data")
        if self.hardness > 1 and not self.hard:
            raise ValueError("--hardness says what --hard asks for: give a share, as in --hard 0.5")

    def folder(self, models: list[str], recipe: "Recipe | None") -> Path:
        """Return the folder of a report without --out; its name has the choices of given data."""
        is_drawn = self.data is None and _own_recipe(recipe) is None
        return report_folder(
            models, self.data, *([] if is_drawn else [self.symbols, self.sizes, self.samples])
        )

    def rows(
        self, task: "Task", recipe: "Recipe | None", out: Path, progress: bool
    ) -> list[dict[str, Any]]:
        """Return the problems.

        Args:
            task: what is solved.
            recipe: the model's, if there is one; it says where pairs of the user's own are.
            out: folder of the report, which keeps formulas that are drawn.
            progress: show a progress bar while they are drawn.

        Raises:
            ValueError: there are no such problems, or an option would have no effect on them.
        """
        if (own_recipe := _own_recipe(recipe)) is not None:
            return self._of_own(own_recipe)
        if self.data is not None:
            return self._of_data(task, self.data)
        if self.split is not None:
            raise ValueError("--split is for --data, and formulas are drawn: leave it out")
        from hf_alpha.evaluation.compare import draw_problems

        numbers, sizes = integers(self.symbols or "1-8"), integers(self.sizes or "1-15")
        return draw_problems(
            task, out / "problems", numbers, sizes, self.samples or 100, self.seed, self.hard,
            self.hardness, self._excluded(), progress=progress,
        )  # fmt: skip

    def _of_own(self, recipe: "Recipe") -> list[dict[str, Any]]:
        """Return the chosen rows of the user's own pairs."""
        if self.hard or self.exclude:
            option = "--hard" if self.hard else "--exclude"
            raise ValueError(f"{option} is for formulas: leave it out with pairs of your own")
        return self._chosen(own_test_rows(recipe, self.data, self.split))

    def _of_data(self, task: "Task", data: str) -> list[dict[str, Any]]:
        """Return the chosen rows of a dataset, without those of `exclude`."""
        from hf_alpha.data.read import leave_out, load

        dataset = load(data, self.split, task, preferred_split="test")
        excluded = self._excluded()
        return self._chosen(list(leave_out(dataset, excluded, task) if excluded else dataset))

    def _excluded(self) -> list[str]:
        """Return the problems of training that are to be left out."""
        from hf_alpha.data.read import training_problems

        return [problem for data in self.exclude or () for problem in training_problems(data)]

    def _chosen(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        from hf_alpha.evaluation.compare import choose_rows

        numbers, sizes = (
            None if text is None else integers(text) for text in (self.symbols, self.sizes)
        )
        return choose_rows(rows, numbers, sizes, self.samples, self.seed)


def _own_recipe(recipe: "Recipe | None") -> "Recipe | None":
    """Return the recipe if it is for the user's own pairs, else None."""
    from hf_alpha.tasks import DrawnTask

    if recipe is None or not recipe.has_own_data or isinstance(recipe.solved, DrawnTask):
        return None
    return recipe


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


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What is outlined in the picture.

    Raises:
        ValueError: half of it is given, or no numbers.
    """

    PANEL: ClassVar[str] = "The picture"
    trained_symbols: Annotated[
        str | None, typer.Option(help="Symbols seen in training, 3 (at most) or 1-5.")
    ] = None
    trained_size: Annotated[
        str | None, typer.Option(help="Sizes seen in training, 15 (at most) or 3-20.")
    ] = None

    def __post_init__(self) -> None:
        if (self.trained_symbols is None) != (self.trained_size is None):
            raise ValueError("--trained-symbols and --trained-size outline a region together")

    @property
    def region(self) -> "Region | None":
        """Smallest and largest number of symbols, and size, seen in training."""
        if self.trained_symbols is None or self.trained_size is None:
            return None
        return _bounds(self.trained_symbols, 0), _bounds(self.trained_size, 1)


def _bounds(text: str, smallest: int) -> tuple[int, int]:
    numbers = integers(text)
    return (numbers[0] if len(numbers) > 1 else smallest), numbers[-1]


@dataclass(frozen=True, kw_only=True)
class Covariance:
    """How alpha-covariance is measured."""

    PANEL: ClassVar[str] = "Alpha-covariance"
    covariance: Annotated[
        int, typer.Option(min=0, help="Formulas for each number of symbols; 0 for none.")
    ] = 10
    max_renamings: Annotated[
        str, typer.Option("--renamings", help="Most renamings of a formula, or all.")
    ] = "24"

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `compare` for alpha-covariance.

        Raises:
            ValueError: the most renamings are no number.
        """
        return {"covariance": self.covariance, "max_renamings": renamings(self.max_renamings)}


@dataclass(frozen=True, kw_only=True)
class Work:
    """How the work is done; nothing but `timeout` changes what comes out."""

    PANEL: ClassVar[str] = "The work"
    batch_size: Annotated[int, typer.Option(min=1, help="Problems in a batch.")] = 64
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that check; 0 checks between batches.")
    ] = 0
    timeout: Annotated[float, typer.Option(min=0, help="Seconds for a call of a solver.")] = 10.0
    device: Device = "auto"
    quiet: Quiet = False

    def begin(self) -> "torch.device":
        """Return the device, and switch off bars that nobody wants.

        Raises:
            ValueError: there is no such device.
        """
        from datasets import disable_progress_bars

        from hf_alpha.processes import choose_device

        if self.quiet:
            disable_progress_bars()
        return choose_device(self.device)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `compare`."""
        return {
            "batch_size": self.batch_size,
            "num_workers": self.workers,
            "timeout": self.timeout,
            "progress": not self.quiet,
        }


@dataclass(frozen=True, kw_only=True)
class Card:
    """The card that is written beside each model.

    Raises:
        ValueError: a licence is given without a card.
    """

    PANEL: ClassVar[str] = "Cards"
    card: Annotated[
        bool,
        typer.Option(
            "--card",
            help="Write each model's README.md from the results, and from the NOTES.md in its "
            "folder, if there is one.",
        ),
    ] = False
    license: Annotated[
        str | None, typer.Option(help="For --card: the model's, such as cc-by-nc-4.0.")
    ] = None

    def __post_init__(self) -> None:
        if self.license is not None and not self.card:
            raise ValueError("--license is what a card says: give --card too")

    def check(self, models: list[str]) -> None:
        """Refuse to write beside models that are elsewhere.

        Raises:
            ValueError: a card is wanted of a model that is in no folder here.
        """
        if self.card and (elsewhere := [model for model in models if not Path(model).is_dir()]):
            raise ValueError(f"--card writes beside a model, and {elsewhere[0]} is no folder here")

    @property
    def facts(self) -> dict[str, Any]:
        """The card's command, date and licence."""
        return {
            "command": shlex.join(["hf-alpha", *sys.argv[1:]]),
            "date": f"{date.today()}",
            "license": self.license,
        }


__all__ = ["Card", "Covariance", "Picture", "Problems", "Work", "report_folder"]
