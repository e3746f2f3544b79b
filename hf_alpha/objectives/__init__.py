"""What models that do not answer with text are trained for: one module for each objective.

The rest of training, from the output folder to resuming, is that of `hf_alpha.train`.
"""

from collections.abc import Mapping
from typing import Any

from hf_alpha.settings import RecipeError, Setting, check_settings, settings_of

from .base import Objective
from .classes import Classes
from .masked import Masked
from .spans import Spans
from .tokens import Tokens

ANSWER = "answer"
"""The objective of models that answer with text, which `hf_alpha.train` trains by itself."""
OBJECTIVES: dict[str, type[Objective]] = {
    each.name: each for each in (Masked, Classes, Tokens, Spans)
}


def objective_of(said: str | Mapping[str, Any], where: str = "recipe") -> Objective | None:
    """Return the objective that a recipe names; None for `answer`.

    Args:
        said: a name, or a mapping with `name` and the settings of that objective.
        where: named in an error.

    Raises:
        RecipeError: there is no such objective, or it has no such setting or value.
    """
    settings = {"name": said} if isinstance(said, str) else dict(said)
    name = settings.pop("name", None)
    where = f"{where}: objective"
    if name == ANSWER and not settings:
        return None
    if name not in OBJECTIVES:
        known = ", ".join([ANSWER, *OBJECTIVES])
        what = f"{ANSWER!r} has no settings" if name == ANSWER else f"no objective {name!r}"
        raise RecipeError(f"{where}: {what}; known: {known}")
    chosen = OBJECTIVES[name]
    check_settings(settings, settings_of(chosen), where)
    try:
        return chosen(**settings)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from error


def objective_settings() -> dict[str, Setting]:
    """Return the settings of all objectives, by name."""
    found: dict[str, Setting] = {}
    for chosen in OBJECTIVES.values():
        found = {**settings_of(chosen), **found}
    return found


__all__ = ["ANSWER", "OBJECTIVES", "Objective", "objective_of", "objective_settings"]
