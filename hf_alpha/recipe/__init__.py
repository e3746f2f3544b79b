"""Recipes: YAML files that say what is trained, on which data, and how.

This package reads, checks, compares and writes them; `hf_alpha.train` runs them.
"""

from hf_alpha.io.settings import RecipeError

from .beside_model import named_code, recipe_beside, recipe_for, recipe_of, rules_of, writes_answers
from .describe import describe_settings, recipe_schema
from .schema import DEFAULT_MODEL_TYPE, Data, Recipe
from .yaml import (
    HUB_TOKEN,
    RECIPE_FILE,
    check_shareable,
    differences,
    leaves,
    parse_recipe,
    read_recipe,
    write_recipe,
)

__all__ = [
    "DEFAULT_MODEL_TYPE", "HUB_TOKEN", "RECIPE_FILE", "Data", "Recipe", "RecipeError",
    "check_shareable", "describe_settings", "differences", "leaves", "named_code",
    "parse_recipe", "read_recipe", "recipe_beside", "recipe_for", "recipe_of", "recipe_schema",
    "rules_of", "write_recipe", "writes_answers",
]  # fmt: skip
