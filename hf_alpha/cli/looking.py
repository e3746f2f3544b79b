"""What commands look at before they load torch: files of data, and whether they have the columns.

A look is no check of the whole: what it does not see, reading says later.
"""

import codecs
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hf_alpha.checkpoints.places import may_be_on_hub
from hf_alpha.cli.common import contents_of
from hf_alpha.data.formats import kind_of
from hf_alpha.io.settings import section
from hf_alpha.io.yaml_files import compose
from hf_alpha.wings import TASKS


def look_at_recipe(recipe: str, overrides: list[str] | None, splits: Iterable[str]) -> None:
    """Look at the files of pairs that a recipe names.

    Args:
        splits: `train`, `validation` or `test`, for keys of its data.

    Raises:
        FileNotFoundError: there is no such recipe.
        RecipeError: it extends no recipe, or a file of its data is missing, or lacks a column.
    """
    _, content = compose(recipe, overrides)
    data = _pairs(content)
    for split in splits:
        if isinstance(place := data.get(split), str | dict):
            with section("data"):
                # A row that lacks a text is dropped, and the first one may be such a row.
                columns = {} if data.get("drop_bad") else _columns({**content, "data": data})
                look(place, columns, data.get("encoding"))


def look_at_data(
    models: list[str], place: str, source: str | None = None, target: str | None = None
) -> None:
    """Look at data on which models are asked, whose columns options or the first recipe name."""
    content: dict[str, Any] = next(filter(None, map(_beside, models)), {})
    if _has_format(content):
        return
    if _is_drawn(content):
        look(place, {source or "problem": "--source", target or "answer": "--target"})
        return
    data, given = _pairs(content), {"source": source, "target": target}
    named = {**data, **{key: name for key, name in given.items() if name}}
    look(place, _columns({**content, "data": named}), data.get("encoding"))


def look_at_rows(file: Path, source: str | None, model: str | None) -> None:
    """Look at rows that a model is asked, whose column an option or the model's recipe names.

    Texts in place of a row of JSON are fine.
    """
    content = _beside(model) if model is not None else {}
    if _has_format(content):
        return
    data = _pairs(content)
    usual = "problem" if model is None or _is_drawn(content) else None
    if column := source or data.get("source", usual):
        look(f"{file}", {column: "--source"}, data.get("encoding"))


def look(
    place: str | Mapping[str, Any], columns: Mapping[str, str], encoding: str | None = None
) -> None:
    """Look at the first row of data, unless it is on the Hub or in a folder.

    Raises:
        FileNotFoundError: there is nothing there.
        ValueError: a file lacks a column.
    """
    file = Path(place if isinstance(place, str) else f"{place.get('path', '')}")
    try:
        codecs.lookup(encoding or "utf-8")
    except (LookupError, TypeError):
        return  # which reading says
    if not file.exists() and not may_be_on_hub(f"{file}"):
        from hf_alpha.data.rows import read_dataset

        read_dataset(place, columns)  # says what is missing
    kind = kind_of(file) if file.is_file() else None
    if kind == "json":
        _, first = next(contents_of(file, columns, encoding), (None, None))
        if isinstance(first, Mapping):
            from hf_alpha.data.files import check_columns

            check_columns(file, list(first), columns)
    elif kind in ("csv", "tsv"):
        from hf_alpha.data.files import check_header

        check_header(file, columns, encoding)


def _beside(model: str) -> dict[str, Any]:
    """Return what the recipe in a folder of a model says; nothing where there is none."""
    file = Path(model).expanduser() / "recipe.yaml"
    return compose(file, within=file.parent)[1] if file.is_file() else {}


def _is_drawn(content: Mapping[str, Any]) -> bool:
    """Whether a recipe is for problems of a built-in task, which are drawn."""
    return content.get("task") in TASKS


def _has_format(content: Mapping[str, Any]) -> bool:
    """Whether a recipe's data are in a format whose columns its reader makes."""
    data = content.get("data")
    return isinstance(data, dict) and bool(data.get("format"))


def _pairs(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a recipe for pairs that are answered; nothing of any other."""
    data = content.get("data")
    if not isinstance(data, dict) or not data.get("train") or _has_format(content):
        return {}
    return {} if content.get("objective") else {"source": "source", "target": "target", **data}


def _columns(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns that a recipe names -> the key that names each."""
    data, rules = content["data"], content.get("symbols")
    named = {f"data.{key}": data.get(key) for key in ("source", "target")}
    for name, rule in rules.items() if isinstance(rules, dict) else ():
        named[f"symbols.{name}.column"] = rule.get("column") if isinstance(rule, dict) else None
    return {column: key for key, column in named.items() if isinstance(column, str)}
