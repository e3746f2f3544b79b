"""YAML as people mean it, and files of it that extend one another, as recipes do.

What is read is anybody's: nothing of it lets a small file stand for a huge or an endless one.
"""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK
from yaml.composer import ComposerError

from hf_alpha.resources import recipe_file

from .inside import inside
from .records import DEEPEST
from .settings import RecipeError

Part: TypeAlias = tuple[Path, dict[str, Any]]
"""A file of a recipe, and what it says itself."""
LONGEST = 2**20
"""Characters of a text; PyYAML takes seconds for so many."""
LONGEST_NUMBER = 1000
"""Characters of a number: one in base 60 (`1:30`) takes time that grows with their square."""


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number and `no` as text, as YAML 1.2 has it and everybody means it.

    Refuses aliases, a key that a mapping has twice, what is nested more than `DEEPEST` deep, and
    long numbers.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):
            alias = f"*{self.peek_event().anchor}"
            raise ComposerError(None, None, f"{alias} is an alias: write out what it is for", mark)
        if self._depth == DEEPEST:
            raise ComposerError(None, None, f"more than {DEEPEST} levels in each other", mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if node.tag.endswith((":int", ":float")) and len(node.value) > LONGEST_NUMBER:
            what = f"a number of {len(node.value):,} characters, the limit is {LONGEST_NUMBER:,}"
            raise ComposerError(None, None, what, node.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys:
                raise ComposerError(
                    None, None, f"the key {key.value!r} is there twice", key.start_mark
                )
            keys.add((key.tag, f"{key.value}"))
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(true|True|false|False)$"), list("tTfF")
)


class _Dumper(yaml.SafeDumper):
    """Puts a text such as 1e3, which `_Loader` would read as a number, in quotes; no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write out whatever stands in two places."""
        return True


_Dumper.add_multi_representer(str, _Dumper.represent_str)
_POWER_OF_TEN = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _POWER_OF_TEN, list("-+0123456789"))


def read_yaml(file: Path) -> Any:
    """Read a file of anybody, or the header of a card (*.md), if it has one; see `parse_yaml`."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(f"{file}: no UTF-8 text: {error}") from error
    if file.suffix == ".md":
        header = REGEX_YAML_BLOCK.search(text)
        text = header[2] if header else ""
    return parse_yaml(text, f"{file}")


def parse_yaml(text: str, place: str) -> Any:
    """Read YAML of anybody, without aliases.

    Raises:
        RecipeError: it is none, longer than `LONGEST`, or holds what `_Loader` refuses.
    """
    if len(text) > LONGEST:
        raise RecipeError(f"{place}: {len(text):,} characters of YAML, the limit is {LONGEST:,}")
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise RecipeError(f"{place}: not valid YAML: {line}{error.problem}") from error
    except Exception as error:  # a value that its tag does not allow, such as the date 2026-13-01
        reason = " ".join(str(error).split())
        raise RecipeError(f"{place}: not valid YAML: {reason}") from error


def write_yaml(content: Any) -> str:
    """Return plain data in YAML that `parse_yaml` reads."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False)


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
