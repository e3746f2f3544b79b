"""How large the runs of a table are: which recipes, how many steps, and how much is tested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hf_alpha.recipe import Recipe, read_recipe


@dataclass(frozen=True)
class Size:
    """A size at which tables are measured.

    Attributes:
        name: what `--size` says.
        text: what the document says of it.
        suffix: of the names of the recipes that models start from.
        names: different names in a problem of the training data, at most.
        length: tokens of such a problem, at most.
        most_names: names of the problems of the hardest test.
        grid_lengths: tokens of the problems of a heatmap, at most.
        copy_lengths: likewise, where strings are copied.
        steps: task -> training steps; a task that is not there has those of its recipe.
        reduced: share of the training data that `reduced` keeps.
        reduced_steps: share of the steps of a model with reduced data.
        tuning: shares of the steps for which converted models are trained: a short, a long run.
        samples: problems of the test split.
        per_names: problems for each number of names.
        per_cell: problems in a cell of a heatmap.
        covariance: problems for each number of names whose alpha-covariance is measured.
        pace: symbol encoding -> training steps in a second, to estimate hours; "" is any other.
        changes: task -> changes to all of its recipes, as `hf-alpha train` takes them.
    """

    name: str
    text: str
    suffix: str
    names: int
    length: int
    most_names: int
    grid_lengths: int
    copy_lengths: int
    samples: int
    per_names: int
    per_cell: int
    covariance: int
    tuning: tuple[float, float]
    reduced: float = 0.1
    reduced_steps: float = 1.0
    steps: Mapping[str, int] = field(default_factory=dict)
    pace: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def tested(self, test: str, *names: str, **more: Any) -> dict[str, Any]:
        """Every setting of a test: attributes of these names, and what only its table sets."""
        return {"test": test, **{name: getattr(self, name) for name in names}, **more}

    def recipe(self, name: str, changes: Sequence[str] = ()) -> Recipe:
        """A shipped recipe of this size, such as `ltl/learned`, with changes."""
        ours = self.changes.get(name.partition("/")[0], ())
        return _shipped(f"{name}{self.suffix}", (*ours, *changes)).model_copy(deep=True)


@cache  # tables ask for each recipe many times, to say what is left to do
def _shipped(name: str, changes: tuple[str, ...]) -> Recipe:
    return read_recipe(name, list(changes))


CPU = Size(
    name="cpu",
    text=(
        "Models are trained by the recipes `*-small` (d 64, 4 + 3 layers; LTL 3 + 2, copying "
        "2 + 2), on problems with at most 3 names and 15 tokens. All rows of a task get the same "
        "few thousand steps. This takes minutes to half an hour on one thread; the papers' models "
        "took a GPU. These models are under-trained: the tables show which ones learn most from so "
        "little, not what can be reached."
    ),
    suffix="-small",
    names=3,
    length=15,
    most_names=8,
    grid_lengths=20,
    copy_lengths=30,
    samples=1000,
    per_names=200,
    per_cell=10,
    covariance=200,
    tuning=(0.1, 0.5),
    steps={"propositional": 3000, "ltl": 3000, "copying": 2000},
    # One thread of a machine with other work on it (docs/results.md).
    pace={"streams": 2.0, "": 8.0},
)
FULL = Size(
    name="full",
    text="The recipes with the papers' sizes and settings, for a GPU.",
    suffix="",
    names=5,
    length=35,
    most_names=10,
    grid_lengths=50,
    copy_lengths=30,
    samples=100_000,
    per_names=1000,
    per_cell=100,
    covariance=1000,
    tuning=(0.02, 0.1),  # 1 and 5 of 50 epochs
    reduced_steps=0.1,  # the number of epochs stays
)
SIZES = {size.name: size for size in (CPU, FULL)}

__all__ = ["CPU", "FULL", "SIZES", "Size"]
