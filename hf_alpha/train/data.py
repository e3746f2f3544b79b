"""Training and validation data of a recipe, generated first if need be, and tokenised."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow.compute as pc
from datasets import Dataset, IterableDataset

from hf_alpha.data.collate import tokenize
from hf_alpha.data.drawn import DrawnProblems
from hf_alpha.data.generate import generate
from hf_alpha.data.own import OwnPairs, own_rows
from hf_alpha.data.read import load
from hf_alpha.modeling.tokenization_alpha import AnyTokenizer
from hf_alpha.recipe import (
    Drawn,
    Folder,
    FormulaRecipe,
    PairsRecipe,
    Recipe,
    RecipeError,
)
from hf_alpha.tasks import get_task

from .arguments import section

TrainingData: TypeAlias = Dataset | IterableDataset | DrawnProblems
SHUFFLED = 10_000
"""Rows of a stream that are shuffled at a time."""
TRIED = 5
"""Targets about which a check of the user's own is asked before training."""


def longest_answer(dataset: TrainingData) -> int:
    """Tokens of the longest answer; 0 where that is not known, as of a stream."""
    if not isinstance(dataset, Dataset):
        return 0
    lengths = pc.list_value_length(dataset.with_format("arrow")[:]["labels"])
    return pc.max(lengths).as_py() or 0


def prepare_data(
    recipe: Recipe, tokenizer: AnyTokenizer, own: OwnPairs | None = None
) -> tuple[TrainingData, TrainingData | None]:
    """Training and validation data of a recipe, generated first if need be, tokenised.

    Args:
        recipe: the recipe.
        tokenizer: that of the model.
        own: the user's own pairs, if the recipe names some; see `own_pairs`.

    Raises:
        RecipeError: the data cannot be made or read as the recipe says.
    """
    if isinstance(recipe, PairsRecipe):
        assert own is not None
        return _own_data(recipe, tokenizer, own)
    assert isinstance(recipe, FormulaRecipe)
    train = _training_data(recipe, tokenizer)  # generates both splits
    return train, _validation_data(recipe, tokenizer)


def own_pairs(recipe: Recipe, say: Callable[[str], object] = print) -> OwnPairs | None:
    """The user's own pairs, read as the recipe says; None if it names none.

    Raises:
        RecipeError: they cannot be read, or used.
    """
    if not isinstance(recipe, PairsRecipe):
        return None
    task: Any = recipe.solved
    finder = getattr(task, "finder", None)
    if finder is None:
        raise RecipeError("the key 'symbols' is missing: say which words are names")
    with section("data"):
        pairs = OwnPairs(
            recipe.data,
            finder,
            recipe.training.get("seed", 42),
            say,
            same=task.same,
            has_check=task.has_check,
        )
    if pairs.validation is None and recipe.training.get("eval_strategy", "no") != "no":
        raise RecipeError(
            "training: eval_strategy needs data.validation: give a share of the pairs (0.05) or a "
            "file, or set eval_strategy to 'no'"
        )
    with section("check"):
        _try_check(task, pairs, say)
    with section("measures"):
        _try_measures(task, pairs)
    return pairs


def _try_check(task: Any, pairs: OwnPairs, say: Callable[[str], object]) -> None:
    """Ask the user's own check, if there is one, about targets: before hours of training."""
    if not task.has_check:
        return
    task.forget_checks()
    for row, pair in enumerate(own_rows(pairs.train, task, TRIED)):
        place = f"{task.own_check}, training pair {row} with its target as the answer"
        try:
            verdict = task.ask(pair["problem"], pair["answer"], pair["answer"])
        except (TimeoutError, RuntimeError, ValueError) as error:
            raise ValueError(f"{place}: {error}") from error
        if not verdict.is_correct:
            say(f"check: {place}: {verdict}")


def _try_measures(task: Any, pairs: OwnPairs) -> None:
    """Ask the user's own measures, if there are some, about targets: before hours of training."""
    if not task.own_measures:
        return
    targets = [pair["answer"] for pair in own_rows(pairs.train, task, TRIED)]
    task.measured(targets, targets)


def _own_data(
    recipe: PairsRecipe, tokenizer: AnyTokenizer, own: OwnPairs
) -> tuple[TrainingData, TrainingData | None]:
    settings = recipe.data
    with section("data"):
        own.look(tokenizer)
        rows = own.train
        if isinstance(rows, IterableDataset):
            rows = rows.shuffle(seed=recipe.training.get("seed", 42), buffer_size=SHUFFLED)
        train = _tokenized(rows, settings.max_train_samples, tokenizer, recipe)
        if own.validation is None:
            return train, None
        return train, _tokenized(own.validation, settings.max_eval_samples, tokenizer, recipe)


def _training_data(recipe: FormulaRecipe, tokenizer: AnyTokenizer) -> TrainingData:
    data = recipe.data
    if isinstance(data, Drawn):
        with section("data: draw"):
            drawn = DrawnProblems(recipe.task, tokenizer, **data.draw)
        drawn.keys = drawn.keys[: data.max_train_samples]
        return drawn
    with section("data"):
        rows = _generated(recipe, data, "train")
        return _tokenized(rows, data.max_train_samples, tokenizer, recipe)


def _validation_data(recipe: FormulaRecipe, tokenizer: AnyTokenizer) -> TrainingData:
    data, most = recipe.data, recipe.data.max_eval_samples
    if data.validation is not None:
        with section("data: validation"):
            rows = _generated(recipe, data.validation, "validation")
            return _tokenized(rows, most, tokenizer, recipe)
    if isinstance(data, Drawn):
        few = {**data.draw, "num_samples": most}
        with section("data: draw"):
            return DrawnProblems(recipe.task, tokenizer, split="validation", **few)
    with section("data"):
        return _tokenized(load(data.path, "validation"), most, tokenizer, recipe)


def _generated(recipe: Recipe, folder: Folder, split: str) -> Dataset:
    """A split of a dataset, which is generated first if the recipe says how.

    That returns at once where the same data has been made, and refuses where other data has.
    """
    if folder.generate:
        workers = recipe.data.num_workers
        generate(get_task(recipe.task), folder.path, num_workers=workers, **folder.generate)
    return load(folder.path, split)


def _tokenized(rows: Any, most: int | None, tokenizer: AnyTokenizer, recipe: Recipe) -> Any:
    if isinstance(rows, IterableDataset):
        few = rows if most is None else rows.take(most)
    else:
        few = rows if most is None else rows.select(range(min(most, len(rows))))
    return tokenize(few, tokenizer, recipe.data.num_workers)


__all__ = ["SHUFFLED", "TRIED", "TrainingData", "longest_answer", "own_pairs", "prepare_data"]
