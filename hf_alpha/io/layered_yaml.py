"""YAML files that extend one another: what a recipe says with all of them and with overrides."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

from hf_alpha.resources import recipe_file

from .inside import inside
from .plain_yaml import parse_yaml, read_yaml
from .settings import RecipeError

Part: TypeAlias = tuple[Path, dict[str, Any]]
"""A file, and what it says itself."""


def compose(
    path: str | Path, overrides: list[str] | None = None, within: Path | None = None
) -> tuple[list[Part], dict[str, Any]]:
    """Return the files of a recipe, itself first, and what it says in all; nothing is checked.

    The arguments are those of `hf_alpha.recipe.read_recipe`.

    Raises:
        FileNotFoundError: there is no such recipe.
        OutsideError: it extends one outside of `within`.
        RecipeError: a file is no mapping, or recipes extend each other in a circle.
    """
    file = recipe_file(path) if within is None else Path(path)
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
    return parts, content


def _with_parents(file: Path, children: tuple[Path, ...], within: Path | None) -> list[Part]:
    """Return the files of a recipe and of those that it extends, in turn, and what each says.

    Args:
        children: the recipes that extend it, the first one first.
        within: see `read_recipe`.
    """
    chain = (*children, file.resolve())
    if chain[-1] in children:
        raise RecipeError(f"recipes extend each other in a circle: {_shown(chain)}")
    content = read_mapping(file)
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


def read_mapping(file: Path) -> dict[str, Any]:
    """Return what a file of a recipe says itself.

    Raises:
        RecipeError: it is no mapping.
    """
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise RecipeError(f"{file}: a recipe is a mapping of keys to values")
    return content


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
