"""Test data of the user's own, looked at before models answer: is it like their training data?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_alpha.data.own import FEW, own_rows, read_own
from hf_alpha.data.pairs import renamings
from hf_alpha.data.unlike_training import LookAtTests, TrainingFacts, look_at_tests
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.recipe import Generated, OwnRecipe, Recipe

from .evaluate import Row
from .heatmap import Region


def look_first(
    recipe: Recipe, rows: Sequence[Row], tokenizers: Mapping[str, tuple[str, Any]]
) -> dict[str, LookAtTests]:
    """Return what test rows are like for each model that finds names in texts.

    Args:
        recipe: says where the training data is; where that is not here, nobody knows which rows are
            renamings of it.
        rows: as evaluation takes them.
        tokenizers: what a model is called -> its folder or Hub name, and its tokenizer.
    """
    finding = {
        name: pair for name, pair in tokenizers.items() if isinstance(pair[1], TextTokenizer)
    }
    finder = getattr(recipe.solved, "finder", None)
    if not finding or finder is None:
        return {}
    renamed = _renamed(recipe, rows, finder)
    return {
        name: look_at_tests(rows, finder, tokenizer, TrainingFacts.beside(place), renamed)
        for name, (place, tokenizer) in finding.items()
    }


def trained_region(recipe: Recipe) -> Region | None:
    """Return fewest and most symbols, and sizes, of the training data; None where nothing says it.

    Of pairs of the user's own they are those of the first pairs, where these are here.
    """
    if isinstance(recipe.data, Generated):
        data = recipe.data.generate
        if not {"num_symbols", "sizes"} <= data.keys():
            return None
        return (0, max(data["num_symbols"], data.get("up_to_symbols", 0))), (1, data["sizes"][1])
    finder = getattr(recipe.solved, "finder", None)
    pairs = None if finder is None else _training_pairs(recipe, finder)
    if pairs is None:
        return None
    rows = own_rows(pairs, recipe.solved, FEW)
    symbols, sizes = ([row[key] for row in rows] for key in ("num_symbols", "size"))
    return (min(symbols), max(symbols)), (min(sizes), max(sizes))


def _renamed(recipe: Recipe, rows: Sequence[Row], finder: Any) -> int | None:
    """Return how many rows are renamings of training's; None where its data is not here."""
    train = _training_pairs(recipe, finder)
    if train is None or len(train) > FEW:
        return None
    return renamings(train, [row["problem"] for row in rows], finder)


def _training_pairs(recipe: Recipe, finder: Any) -> Dataset | None:
    """Read training data of the user's own; None where it is not here."""
    place = getattr(recipe.data, "train", None)
    if not isinstance(recipe, OwnRecipe) or place is None:
        return None
    if not Path(place["path"] if isinstance(place, Mapping) else place).exists():
        return None
    train = read_own(recipe.data, place, finder, "train", streaming=False)
    return train if isinstance(train, Dataset) else None


__all__ = ["look_first", "trained_region"]
