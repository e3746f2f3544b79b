"""Recipes as YAML files: read with those that they extend and with overrides, and written."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from hf_alpha.io.folders import replacing
from hf_alpha.io.inside import inside
from hf_alpha.io.plain_yaml import parse_yaml, read_yaml, write_yaml
from hf_alpha.io.settings import RecipeError
from hf_alpha.objectives import ANSWER
from hf_alpha.resources import recipe_file

from .schema import Recipe

RECIPE_FILE = "recipe.yaml"
HUB_TOKEN = re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}")
"""What a token of the Hub looks like, wherever it stands."""


def read_recipe(
    path: str | Path, overrides: list[str] | None = None, within: Path | None = None
) -> Recipe:
    """Read a recipe, with those that it extends, and apply overrides: `training.max_steps=10`.

    Args:
        path: a file, or the name of a shipped recipe such as `propositional/debug`.
        overrides: in the order in which they hold.
        within: the folder of others that it lies in, and all that it extends too.

    Raises:
        FileNotFoundError: there is no such recipe.
        OutsideError: it extends one outside of that folder.
        RecipeError: an unknown key, or a value of the wrong kind; or recipes that
            extend each other in a circle.
    """
    file = recipe_file(path)
    parts = _with_parents(file, (), within)
    content = deepcopy(parts[-1][1])  # what each file says is asked again if there is a fault
    for _, changes in reversed(parts[:-1]):
        if isinstance(content.get("training"), dict):
            content["training"].pop("output_dir", None)  # two runs do not share a folder
        _replace_model(content, changes)
        content = _merged(content, changes)
    changed: dict[str, Any] = {}
    for override in overrides or []:
        _override(content, override)
        _override(changed, override)
    _replace_model(content, changed)
    try:
        return parse_recipe(content, str(file))
    except RecipeError as error:
        raise _with_origin(error, parts) from error


def parse_recipe(content: dict[str, Any], place: str = "recipe") -> Recipe:
    """Check a recipe's keys and values; see [`read_recipe`]."""
    _check_private(content, place)
    return Recipe.read(content, place)


def _with_origin(error: RecipeError, parts: list[tuple[Path, dict[str, Any]]]) -> RecipeError:
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


def _origin(key: str, parts: list[tuple[Path, dict[str, Any]]]) -> Path:
    """Return the file in which a dotted key stands, the last one to say it."""
    for file, content in parts:
        if any(name == key or name.startswith(f"{key}.") for name, _ in leaves(content)):
            return file
    return parts[0][0]  # an override


def _with_parents(
    file: Path, children: tuple[Path, ...], within: Path | None
) -> list[tuple[Path, dict[str, Any]]]:
    """Return the files of a recipe and of those that it extends, in turn, and what each says.

    Args:
        children: the recipes that extend it, the first one first.
        within: see `read_recipe`.
    """
    chain = (*children, file.resolve())
    if chain[-1] in children:
        raise RecipeError(f"recipes extend each other in a circle: {_shown(chain)}")
    content = _read(file)
    parent = content.pop("extends", None)
    if parent is None:
        return [(file, content)]
    if not isinstance(parent, str):
        raise RecipeError(f"{_shown(chain)}: 'extends' must be the name of one recipe")
    try:
        parent_file = _find_parent(parent, file.parent, within)
    except (RecipeError, FileNotFoundError) as error:
        raise RecipeError(f"{_shown(chain)} -> {parent!r}: {error}") from error
    return [(file, content), *_with_parents(parent_file, chain, within)]


def _replace_model(content: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Remove the model where changes name a checkpoint, which brings its own."""
    if changes.get("checkpoint") is not None and "model" not in changes:
        content.pop("model", None)


def _shown(chain: Iterable[Path]) -> str:
    return " -> ".join(map(str, chain))


def _find_parent(name: str, folder: Path, within: Path | None) -> Path:
    """Return the file of a recipe that one in `folder` extends."""
    for candidate in (f"{name}.yaml", name):
        file = folder / candidate if within is None else inside(folder, candidate, within)
        if file.is_file():
            return file
    if within is not None:
        raise RecipeError(f"there is no such recipe in {within}")
    return recipe_file(name)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key; what is null in `changes` is left out, lists are replaced."""
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _read(file: Path) -> dict[str, Any]:
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise RecipeError(f"{file}: a recipe is a mapping of keys to values")
    return content


def check_shareable(file: Path) -> None:
    """Check that a recipe's file may be shared.

    Raises:
        RecipeError: there is a secret in it, or it is no recipe.
    """
    _check_private(_read(file), str(file))


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


def _override(content: dict[str, Any], override: str) -> None:
    """Apply one `a.b=value`; the value is read as YAML."""
    path, sign, text = override.partition("=")
    keys = path.removeprefix("--").split(".")
    if not sign or not all(keys):
        raise RecipeError(
            f"override {override!r}: write it as key=value, e.g. training.max_steps=10"
        )
    for parent in keys[:-1]:
        content = content.setdefault(parent, {})
        if not isinstance(content, dict):
            raise RecipeError(f"override {override!r}: {parent!r} is not a mapping")
    value = parse_yaml(text, f"override {override!r}")
    if value is None:
        content.pop(keys[-1], None)
    else:
        content[keys[-1]] = value


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
    settings = recipe.settings()
    _check_private(settings, "recipe")
    content = _without_silent({**settings, "data": _without_silent(settings["data"])})
    if recipe.checkpoint is not None and "tokenizer" not in recipe.model_fields_set:
        content.pop("tokenizer", None)  # the checkpoint has one
    content = {key: value for key, value in content.items() if value not in (ANSWER, "")}
    lines = "".join(f"{note}\n" for note in notes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write_text(lines + write_yaml(content), encoding="utf-8")


def _without_silent(content: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out values that say nothing: null, false and empty mappings; numbers stay."""
    silent = (type(None), bool, dict)
    return {key: value for key, value in content.items() if value or not isinstance(value, silent)}
