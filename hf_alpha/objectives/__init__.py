"""What models are trained for: one module for each objective.

The rest of training, from the output folder to resuming, is that of `hf_alpha.train`.
"""

from collections.abc import Mapping
from typing import Any

from hf_alpha.io.settings import model_of

from .answer import AnswerObjective, AnswerPairs, AnswerProblems
from .base import RowsObjective
from .causal import Causal
from .classes import Classes
from .masked import Masked
from .objective import Examples, Objective
from .spans import Spans
from .tokens import Tokens

ANSWER = AnswerObjective.name
OBJECTIVES: dict[str, type[RowsObjective]] = {
    each.name: each for each in (Masked, Classes, Tokens, Spans, Causal)
}
"""Objectives of models that do not answer with text."""


def make_objective(choice: str | Mapping[str, Any]) -> RowsObjective:
    """Make the objective of rows that a recipe names.

    Args:
        choice: a name, or a mapping with `name` and the settings of that objective.

    Raises:
        ValueError: there is no such objective, or it has no such setting or value.
    """
    settings = {"name": choice} if isinstance(choice, str) else dict(choice)
    name = settings.pop("name", None)
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise ValueError(f"no objective {name!r}; known: {', '.join([ANSWER, *OBJECTIVES])}")
    objective_class = OBJECTIVES[name]
    model_of(objective_class).read(settings)
    return objective_class(**settings)


__all__ = [
    "ANSWER",
    "OBJECTIVES",
    "AnswerPairs",
    "AnswerProblems",
    "Examples",
    "Objective",
    "RowsObjective",
    "make_objective",
]
