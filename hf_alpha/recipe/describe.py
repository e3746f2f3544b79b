"""What a recipe may say, as a text and as a JSON schema."""

import json
import textwrap
from collections.abc import Iterable
from typing import Any

from transformers import CONFIG_MAPPING

from hf_alpha.auto import MODEL_TYPES
from hf_alpha.io.settings import Keys, json_schema, model_of
from hf_alpha.objectives import ANSWER, OBJECTIVES

from .schema import Recipe, model_keys

Schema = dict[str, Any]
EXTENDS = {
    "type": "string",
    "description": (
        "the recipe that this one starts from: a name in the same folder (learned), task/name, or "
        "a path. Mappings are merged key by key, null removes a key, training.output_dir is not "
        "taken over."
    ),
}
NAME = {"type": "string", "default": ANSWER, "description": "of the objective"}
NULL = {"type": "null"}
ANOTHER_MODEL = {
    "type": "object",
    "properties": {"model_type": {"type": "string", "not": {"enum": list(MODEL_TYPES)}}},
    "required": ["model_type"],
}
"""A model without symbols: its keys are not known here."""


def describe_settings() -> str:
    """Return a text with every key of a recipe: its kind, default and meaning."""
    recipe, models = _recipe(), _models()
    keys = recipe["properties"]
    data = keys["data"]["properties"]
    sections = {
        "": recipe, "data.": keys["data"], "data.generate.": data["generate"],
        "data.draw.": data["draw"], "objective.": _objectives(), "model.": models,
        "training.": keys["training"],
    }  # fmt: skip
    paragraphs = [
        _paragraph(f"{prefix}{key}", entry, key in section.get("required", ()))
        for prefix, section in sections.items()
        for key, entry in section["properties"].items()
    ]
    return "\n".join(["A recipe is a YAML file.", *paragraphs])


def _paragraph(name: str, schema: Schema, is_required: bool) -> str:
    """Return a key's paragraph: name, kind, default and meaning."""
    head, default = f"{name}: {_kinds(schema)}", schema.get("default")
    if is_required:
        head += ", required"
    elif default not in (None, {}, ""):
        head += f", default {default if isinstance(default, str) else json.dumps(default)}"
    lines = [(head, ""), (schema.get("description", ""), "    ")]
    return "\n".join(
        textwrap.fill(text, 96, initial_indent=indent, subsequent_indent="    ")
        for text, indent in lines
        if text
    )


def _kinds(schema: Schema) -> str:
    """Return what a value may be, as JSON calls it."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    kinds = dict.fromkeys(map(_kinds, filter(NULL.__ne__, schema.get("anyOf", ()))))
    return " or ".join(kinds) or schema.get("type", "any value")


def recipe_schema() -> Schema:
    """Return the JSON schema of a recipe's file, before those that it extends are merged in."""
    recipe, models = _recipe(), _models()
    properties = recipe["properties"]
    properties["objective"]["anyOf"] = [{"type": "string"}, _objectives()]
    schema = _partial(recipe)
    names = {"properties": {key: {} for key in models["properties"]}, "additionalProperties": False}
    schema["properties"]["model"] |= {
        "properties": _partial(models)["properties"],
        "anyOf": [NULL, {"type": "object", **names}, ANOTHER_MODEL],
    }
    alternatives = [{"required": ["extends"]}, {"required": recipe["required"]}]
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **schema, "anyOf": alternatives}


def _recipe() -> Schema:
    recipe = json_schema(Recipe)
    return {**recipe, "properties": {"extends": EXTENDS, **recipe["properties"]}}


def _objectives() -> Schema:
    objectives = _merged(model_of(objective) for objective in OBJECTIVES.values())
    return {**objectives, "properties": {"name": NAME, **objectives["properties"]}}


def _models() -> Schema:
    return _merged(model_keys(CONFIG_MAPPING[kind]) for kind in MODEL_TYPES)


def _merged(models: Iterable[type[Keys]]) -> Schema:
    """Return a schema with the keys of all, none of which is required."""
    properties: Schema = {}
    for model in models:
        schemas = json_schema(model)["properties"]
        properties |= {key: value for key, value in schemas.items() if key not in properties}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _partial(schema: Schema) -> Schema:
    """Return the schema of an extending file: nothing is required, null removes a key."""
    partial = {key: value for key, value in schema.items() if key != "required"}
    if "properties" in schema:
        partial["properties"] = {k: _or_null(_partial(v)) for k, v in schema["properties"].items()}
    if "anyOf" in schema:
        partial["anyOf"] = [_partial(kind) for kind in schema["anyOf"]]
    return partial


def _or_null(schema: Schema) -> Schema:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    kinds = schema.get("anyOf", [NULL])  # without kinds, it takes anything
    return schema if NULL in kinds else {**schema, "anyOf": [*kinds, NULL]}
