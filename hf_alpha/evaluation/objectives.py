"""Models that do not answer with text, beside one another, by the objective of their recipe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from hf_alpha.folders import alone_in, write_text
from hf_alpha.loading import auto_class, load_config
from hf_alpha.objectives import make_objective
from hf_alpha.objectives.evaluate import Scores, evaluate_checkpoint, table
from hf_alpha.recipe import Recipe, recipe_of


def rows_recipe(models: Sequence[str]) -> Recipe:
    """Return the recipe that models are measured by: the first one's.

    Args:
        models: folders or Hub names.

    Raises:
        ValueError: it has none for rows, or another model is of another kind.
    """
    recipe = recipe_of(models[0])
    if recipe is None or recipe.kind != "rows":
        raise ValueError(f"{models[0]} has no recipe.yaml that says what it is trained for")
    first, *other_kinds = (auto_class(load_config(model)).__name__ for model in models)
    for model, kind in zip(models[1:], other_kinds, strict=True):
        if kind != first:
            raise ValueError(
                f"{model} is a model for {kind}, {models[0]} one for {first}: evaluate them apart"
            )
    return recipe


@alone_in("out")
def evaluate_objective(
    models: Mapping[str, str],
    recipe: Recipe,
    data: Any,
    out: Path,
    *,
    split: str | None = None,
    by: str | None = None,
    batch_size: int = 64,
    device: str | torch.device = "cpu",
) -> tuple[str, dict[str, Scores]]:
    """Score models on the same rows; `out` gets the metrics and predictions of each, and the table.

    Args:
        models: what a row of the table is called -> folder or Hub name.
        recipe: says the objective, and how rows are read.
        data: where the test data is.
        out: folder of the report.
        split: of that data.
        by: a column of the rows; each of its values has metrics of its own.
        batch_size: rows in a batch.
        device: where the models run.

    Returns:
        The table, and name -> metrics.

    Raises:
        ValueError: a model or the data cannot be read, or another process writes in `out`.
    """
    objective, scores = make_objective(recipe.objective), {}
    for name, model in models.items():
        scores[name] = evaluate_checkpoint(
            model, objective, recipe.data, data, split=split, by=by, batch_size=batch_size,
            device=device,
        )  # fmt: skip
        parts = [part for part in Path(name).parts if part not in ("/", "..")]
        scores[name].save(out.joinpath(*parts) if len(models) > 1 else out)
    text = table(scores, by)
    write_text(out / "report.txt", f"{text}\n")
    return text, scores


__all__ = ["evaluate_objective", "rows_recipe"]
