"""Recipes as YAML files: read with those that they extend and with overrides, and written."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from hf_alpha.io.folders import write_text
from hf_alpha.io.settings import RecipeError
from hf_alpha.io.yaml_files import Part, compose, read_mapping, write_yaml
from hf_alpha.objectives import ANSWER

from .schema import Recipe

RECIPE_FILE = "recipe.yaml"
HUB_TOKEN = re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}")
"""What a token of the Hub looks like, wherever it stands."""


def read_recipe(
    path: str | Path, overrides: list[str] | None = None, within: Path | None = None
) -> Recipe:
    """Read a recipe, with those that it extends, and apply overrides: `training.max_steps=10`.

    Args:
        path: a file, or without `within` the name of a shipped recipe: `propositional/debug`.
        overrides: in the order in which they hold.
        within: the folder of others that it lies in, and all that it extends too.

    Raises:
        FileNotFoundError: there is no such recipe.
        OutsideError: it extends one outside of that folder.
        RecipeError: an unknown key, or a value of the wrong kind; or recipes that
            extend each other in a circle.
    """
    parts, content = compose(path, overrides, within)
    try:
        return parse_recipe(content, str(parts[0][0]))
    except RecipeError as error:
        raise _with_origin(error, parts) from error


def parse_recipe(content: dict[str, Any], place: str = "recipe") -> Recipe:
    """Check a recipe's keys and values; see [`read_recipe`]."""
    _check_private(content, place)
    return Recipe.read(content, place)


def _with_origin(error: RecipeError, parts: list[Part]) -> RecipeError:
    """Return the error; for an unknown key from an extended recipe, one that names that recipe."""
    section = error.where[1:]
    origins = {key: _origin(".".join([*section, key]), parts) for key in error.unknown}
    key, origin = next(iter(origins.items()), ("", parts[0][0]))
    if origin == parts[0][0]:
        return error
    nulls = ", ".join(f"{key}: null" for key, place in origins.items() if place != parts[0][0])
    model = ", or name a 'checkpoint' in place of the model" if section == ("model",) else ""
    return RecipeError(
        f"unknown key {key!r}, taken over from {origin}: leave out what does not fit by "
        f"{{{nulls}}}{model}",
        error.where,
    )


def _origin(key: str, parts: list[Part]) -> Path:
    """Return the file in which a dotted key stands, the last one to say it."""
    for file, content in parts:
        if any(name == key or name.startswith(f"{key}.") for name, _ in leaves(content)):
            return file
    return parts[0][0]  # an override


def check_shareable(file: Path) -> None:
    """Check that a recipe's file may be shared.

    Raises:
        RecipeError: there is a secret in it, or it is no recipe.
    """
    _check_private(read_mapping(file), str(file))


def _check_private(content: Mapping[str, Any], place: str) -> None:
    """Check that nothing is in a recipe, and nothing uploaded by it, that is for nobody else.

    It comes before all checks that quote values, and once more before a recipe is written.
    """
    for key, value in leaves(content):
        section, _, name = key.partition(".")
        if (section == "training" and name.endswith("token")) or HUB_TOKEN.search(value):
            raise RecipeError(
                f"{place}: {key!r} is a secret, and recipes are shared: leave it out, and log in "
                "with hf auth login, or set HF_TOKEN in the environment"
            )
        if key == "training.push_to_hub" and value == "true":
            raise RecipeError(
                f"{place}: {key!r} would upload all that lies in the output folder: leave it out, "
                "and share the trained model with hf-alpha push"
            )


def differences(old: Recipe, new: Recipe) -> dict[str, tuple[str, str]]:
    """Return what differs: key, as in an override -> both values, `null` if not set.

    A different output folder is not reported.
    """
    before, after = (dict(leaves(recipe.settings())) for recipe in (old, new))
    return {
        key: (before.get(key, "null"), after.get(key, "null"))
        for key in {**before, **after}
        if key != "training.output_dir" and before.get(key, "null") != after.get(key, "null")
    }


def leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted keys and their values as text."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)


def write_recipe(recipe: Recipe, path: Path, notes: Iterable[str] = ()) -> None:
    """Write a recipe, complete and with overrides, so that `hf-alpha train` can read it again.

    Args:
        path: of the file; its folder is made.

    Raises:
        RecipeError: there is a secret in it; nothing is written.
    """
    content = recipe.settings()
    _check_private(content, "recipe")
    for keys in (content["data"], content):
        # What says nothing is left out: null, false and empty mappings; numbers stay.
        for key in [k for k, v in keys.items() if not v and isinstance(v, NoneType | bool | dict)]:
            del keys[key]
    if recipe.checkpoint is not None and "tokenizer" not in recipe.model_fields_set:
        content.pop("tokenizer", None)  # the checkpoint has one
    content = {key: value for key, value in content.items() if value not in (ANSWER, "")}
    lines = "".join(f"{note}\n" for note in notes)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, lines + write_yaml(content))
