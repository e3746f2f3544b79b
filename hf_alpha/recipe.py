"""Recipes: YAML files that say what is trained, on which data, and how.

This module reads, checks, compares and writes them; `hf_alpha.train` runs them.
"""

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from transformers import CONFIG_MAPPING, PreTrainedConfig, Seq2SeqTrainingArguments

from hf_alpha.auto import MODEL_TYPES
from hf_alpha.data.drawn import DrawnProblems
from hf_alpha.data.generate import generate
from hf_alpha.folders import replacing
from hf_alpha.resources import resource_path
from hf_alpha.settings import (
    RecipeError,
    Setting,
    check_keys,
    check_settings,
    meaning,
    object_schema,
    settings_of,
)

RECIPE_FILE = "recipe.yaml"
DEFAULT_MODEL_TYPE = "alpha"
REQUIRED_KEYS = ("task", "data", "training")
# What a recipe may not say because it follows from something else.
FROM_TOKENIZER = ("vocab_size", "num_base_tokens", "symbol_classes", "symbol_ranges")
FROM_RECIPE = ("task", "out_dir", "num_workers", "tokenizer", "split")
EXTENDS = Setting(
    "extends",
    str,
    None,
    "the recipe that this one starts from: a name in the same folder (learned), task/name, or a "
    "path. Mappings are merged key by key, null removes a key, training.output_dir is not taken "
    "over.",
)


@dataclass
class DataSettings:
    """Where the data lies, and how it is generated if it is not there yet; or how it is drawn."""

    path: str | None = field(
        default=None, metadata=meaning("folder of a dataset; made by `generate` when absent")
    )
    generate: dict[str, Any] = field(
        default_factory=dict, metadata=meaning("how the dataset is generated")
    )
    draw: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "in place of a folder: problems are drawn when they are needed, those for validation "
            "from other seeds"
        ),
    )
    validation: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "`path`, and `generate` or not, of another dataset whose validation problems give the "
            "loss during training: with more names than training has, say, to choose a checkpoint "
            "by (`training.load_best_model_at_end`)"
        ),
    )
    max_train_samples: int | None = field(
        default=None,
        metadata=meaning("use only the first so many (the papers' `reduced`: 80,000)", least=1),
    )
    max_eval_samples: int = field(
        default=2000, metadata=meaning("validation samples for the loss during training", least=0)
    )
    num_workers: int = field(
        default=1, metadata=meaning("processes that generate and tokenise", least=1)
    )


@dataclass
class Recipe:
    """One trained model."""

    task: str = field(metadata=meaning("name of the task"))
    data: DataSettings = field(metadata=meaning("where the data comes from"))
    training: dict[str, Any] = field(
        metadata=meaning("fields of `Seq2SeqTrainingArguments`; `output_dir` is required")
    )
    num_symbols: int | None = field(
        default=None,
        metadata=meaning(
            "symbols of each class in the vocabulary; by default the tokenizer's 10", least=1
        ),
    )
    model: dict[str, Any] = field(
        default_factory=dict,
        metadata=meaning(
            "`model_type` and fields of its configuration, for a new model; vocabulary fields "
            "come from the tokenizer"
        ),
    )
    checkpoint: str | None = field(
        default=None,
        metadata=meaning("folder or Hub name of a model to go on from, in place of `model`"),
    )


def read_recipe(path: str | Path, overrides: list[str] | None = None) -> Recipe:
    """Read a recipe, with those that it extends, and apply overrides: `training.max_steps=10`.

    `path` is a file, or the name of a shipped recipe such as `propositional/debug`.

    Raises:
        RecipeError: no such recipe, an unknown key, or a value of the wrong kind; or recipes that
            extend each other in a circle.
    """
    file = _find(path)
    content = _flattened(file, ())
    for override in overrides or []:
        _override(content, override)
    return parse_recipe(content, str(file))


def _find(path: str | Path) -> Path:
    """Return the file of a recipe, given as a path or by its name among those shipped."""
    file = Path(path)
    if file.is_file():
        return file
    name = f"{path}" if str(path).endswith(".yaml") else f"{path}.yaml"
    try:
        return resource_path("training", *Path(name).parts)
    except FileNotFoundError as error:
        raise RecipeError(f"no recipe {str(path)!r}: {error}") from error


def _flattened(file: Path, children: tuple[Path, ...]) -> dict[str, Any]:
    """Return a recipe's content with everything that it takes over from others.

    Args:
        file: of the recipe.
        children: the recipes that extend it, the first one first.
    """
    chain = (*children, file.resolve())
    if chain[-1] in children:
        raise RecipeError(f"recipes extend each other in a circle: {_shown(chain)}")
    content = _read(file)
    parent = content.pop("extends", None)
    if parent is None:
        return content
    if not isinstance(parent, str):
        raise RecipeError(f"{_shown(chain)}: 'extends' must be the name of one recipe")
    try:
        parent_file = _find_parent(parent, file.parent)
    except RecipeError as error:
        raise RecipeError(f"{_shown(chain)} -> {parent!r}: {error}") from error
    base = _flattened(parent_file, chain)
    if isinstance(base.get("training"), dict):
        base["training"].pop("output_dir", None)  # two runs do not share a folder
    return _merged(base, content)


def _shown(chain: Iterable[Path]) -> str:
    return " -> ".join(map(str, chain))


def _find_parent(name: str, folder: Path) -> Path:
    """Return the file of a recipe that one in `folder` extends."""
    for candidate in (folder / f"{name}.yaml", folder / name):
        if candidate.is_file():
            return candidate
    return _find(name)


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
    try:
        content = _parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise RecipeError(f"{file}: no UTF-8 text: {error}") from error
    if not isinstance(content, dict):
        raise RecipeError(f"{file}: a recipe is a mapping of keys to values")
    return content


def parse_recipe(content: dict[str, Any], where: str = "recipe") -> Recipe:
    """Check a recipe's keys and kinds of values; see [`read_recipe`]."""
    check_keys(content, settings_of(Recipe), where)
    for key in REQUIRED_KEYS:
        if key not in content:
            raise RecipeError(f"{where}: the key {key!r} is missing")
    check_settings(content, settings_of(Recipe), where)
    data, training = content["data"], content["training"]
    check_settings(data, settings_of(DataSettings), f"{where}: data")
    _check_source(data, f"{where}: data")
    check_settings(training, settings_of(Seq2SeqTrainingArguments), f"{where}: training")
    if "output_dir" not in training:
        raise RecipeError(f"{where}: training: the key 'output_dir' is missing")
    _check_model(content, where)
    return Recipe(**{**content, "data": DataSettings(**data)})


def _check_source(data: dict[str, Any], where: str) -> None:
    """Check that data comes from one place, and the arguments of what makes it."""
    if data.get("path") is None and not data.get("draw"):
        raise RecipeError(f"{where}: the key 'path' is missing, or 'draw' in its place")
    if data.get("draw") and (data.get("path") is not None or data.get("generate")):
        raise RecipeError(f"{where}: give either 'draw' or 'path' with 'generate', not both")
    _check_generation(data.get("generate", {}), f"{where}: generate")
    check_keys(data.get("draw", {}), _drawing_settings(), f"{where}: draw")
    if validation := data.get("validation"):
        place = f"{where}: validation"
        check_settings(validation, _validation_settings(), place)
        if validation.get("path") is None:
            raise RecipeError(f"{place}: the key 'path' is missing")
        _check_generation(validation.get("generate", {}), f"{place}: generate")


def _check_generation(generate: dict[str, Any], where: str) -> None:
    check_settings(generate, _generation_settings(), where)
    sizes = generate.get("sizes", [1, 1])
    if not isinstance(sizes, list) or [type(size) for size in sizes] != [int, int]:
        raise RecipeError(f"{where}: 'sizes' must be [smallest, largest], not {sizes!r}")


def _check_model(content: dict[str, Any], where: str) -> None:
    """Check the keys of the model's configuration; the class itself checks the values."""
    model = content.get("model", {})
    for key in FROM_TOKENIZER:
        if key in model:
            raise RecipeError(
                f"{where}: model: {key!r} follows from the key 'num_symbols'; drop it"
            )
    model_type = model.get("model_type", DEFAULT_MODEL_TYPE)
    check_keys(model, _model_settings(model_type, where), f"{where}: model")
    if model and content.get("checkpoint") is not None:
        raise RecipeError(f"{where}: give either 'checkpoint' or 'model', not both")


def _generation_settings() -> dict[str, Setting]:
    return settings_of(generate, without=FROM_RECIPE)


def _validation_settings() -> dict[str, Setting]:
    return {name: settings_of(DataSettings)[name] for name in ("path", "generate")}


def _drawing_settings() -> dict[str, Setting]:
    return settings_of(DrawnProblems, without=FROM_RECIPE)


def _model_settings(model_type: str, where: str = "recipe") -> dict[str, Setting]:
    """Return the settings of a type of model, those left out that come from the tokenizer."""
    config_class = _config_class(model_type, where)
    kind = Setting("model_type", str, DEFAULT_MODEL_TYPE, "type of the model")
    return {"model_type": kind, **settings_of(config_class, without=FROM_TOKENIZER)}


def _config_class(model_type: str, where: str) -> type[PreTrainedConfig]:
    known = model_type in CONFIG_MAPPING if isinstance(model_type, str) else False
    if not known or "symbol_classes" not in settings_of(CONFIG_MAPPING[model_type]):
        raise RecipeError(
            f"{where}: model: no model with symbols is of 'model_type' {model_type!r}; known: "
            f"{', '.join(MODEL_TYPES)}"
        )
    return CONFIG_MAPPING[model_type]


def describe_settings() -> str:
    """Return a text with every key of a recipe: its type, default and meaning."""
    sections = {
        "": _recipe_settings(),
        "data": settings_of(DataSettings).values(),
        "data.generate": _generation_settings().values(),
        "data.draw": _drawing_settings().values(),
        "model": _model_settings(DEFAULT_MODEL_TYPE).values(),
        "training": settings_of(Seq2SeqTrainingArguments).values(),
    }
    parts = []
    for name, settings in sections.items():
        title, prefix = (name, f"{name}.") if name else ("A recipe is a YAML file", "")
        entries = [prefix + entry.describe() for entry in settings]
        parts.append("\n".join([title, "=" * len(title), *entries]))
    return "\n\n".join(parts)


def recipe_schema() -> dict[str, Any]:
    """Return the JSON schema of a recipe's file, before those that it extends are merged in."""
    needed = [{"required": ["extends"]}, {"required": list(REQUIRED_KEYS)}]
    schema = object_schema(_recipe_settings(), anyOf=needed)
    sections = schema["properties"]
    data = sections["data"]["properties"]
    for section, settings in (
        (sections["model"], _model_settings(DEFAULT_MODEL_TYPE)),
        (sections["training"], settings_of(Seq2SeqTrainingArguments)),
        (data["generate"], _generation_settings()),
        (data["draw"], _drawing_settings()),
        (data["validation"], _validation_settings()),
    ):
        keys = object_schema(settings.values())
        section |= {name: keys[name] for name in ("properties", "additionalProperties")}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _recipe_settings() -> list[Setting]:
    return [EXTENDS, *settings_of(Recipe).values()]


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
    content[keys[-1]] = _parse_yaml(text, f"override {override!r}")


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number and `no` as text, as YAML 1.2 has it and everybody means it."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(true|True|false|False)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _parse_yaml(text: str, where: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise RecipeError(f"{where}: not valid YAML: {error}") from error


def differences(old: Recipe, new: Recipe) -> dict[str, tuple[str, str]]:
    """Settings that are not the same: key, as in an override -> both values, `null` if not set.

    A different output folder is not reported.
    """
    before, after = (dict(_leaves(dataclasses.asdict(recipe))) for recipe in (old, new))
    return {
        key: (before.get(key, "null"), after.get(key, "null"))
        for key in {**before, **after}
        if key != "training.output_dir" and before.get(key, "null") != after.get(key, "null")
    }


def _leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys and their values as text."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)


def write_recipe(recipe: Recipe, path: Path, notes: Iterable[str] = ()) -> None:
    """Write a recipe, complete and with overrides, so that `hf-alpha train` can read it again.

    Args:
        recipe: what to write.
        path: of the file; its folder is made.
        notes: comments for its first lines.
    """
    content = {key: value for key, value in dataclasses.asdict(recipe).items() if value}
    data = content["data"].items()
    content["data"] = {key: value for key, value in data if value not in (None, {})}
    lines = "".join(f"{note}\n" for note in notes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write_text(lines + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


__all__ = [
    "RECIPE_FILE",
    "DataSettings",
    "Recipe",
    "RecipeError",
    "describe_settings",
    "differences",
    "parse_recipe",
    "read_recipe",
    "recipe_schema",
    "write_recipe",
]
