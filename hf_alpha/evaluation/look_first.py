"""Test data of the user's own, looked at before models answer: is it like their training data?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hf_alpha.data.own import FEW, read_own
from hf_alpha.data.pairs import renamings
from hf_alpha.data.unlike_training import LookAtTests, TrainingFacts, look_at_tests
from hf_alpha.modeling.tokenization_text import TextTokenizer
from hf_alpha.recipe import Recipe

from .evaluate import Row


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


def _renamed(recipe: Recipe, rows: Sequence[Row], finder: Any) -> int | None:
    """Return how many rows are renamings of training's; None where its data is not here."""
    place = recipe.data.train
    if not place:
        return None
    if not Path(place["path"] if isinstance(place, Mapping) else place).exists():
        return None
    train = read_own(recipe.data, place, finder, "train", streaming=False)
    if not isinstance(train, Dataset) or len(train) > FEW:
        return None
    return renamings(train, [row["problem"] for row in rows], finder)


__all__ = ["look_first"]
