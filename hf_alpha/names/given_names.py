"""Names that a user lists beside texts, where a rule reads them from a column of the data."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any


def by_class(text: str) -> dict[str, str]:
    """Read `name=a b,number=1` as class -> text; a text without classes as that of the class ''.

    Raises:
        ValueError: a class is named twice.
    """
    from hf_alpha.modeling.name_rules import CLASS_NAME

    parts = re.split(rf",(?={CLASS_NAME}=)", text)
    matches = [re.fullmatch(rf"({CLASS_NAME})=(.+)", part, re.DOTALL) for part in parts]
    pairs = [(match[1], match[2]) for match in matches if match]
    if len(pairs) < len(parts):
        return {"": text}
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"{text}: a class is named twice")
    return dict(pairs)


def read_rule(text: str) -> dict[str, Any]:
    """Read a rule for names: a regular expression, or `{rule: python}` as in a recipe."""
    from hf_alpha.io.yaml_files import parse_yaml

    is_mapping = text.startswith("{") and text.endswith("}")
    return dict(parse_yaml(text, "--names")) if is_mapping else {"pattern": text}


def patterns_of(names: list[str]) -> dict[str, str]:
    """Return class -> regular expression of its names; the class is "" where none is named."""
    patterns: dict[str, str] = {}
    for text in names:
        by_name = by_class(text)
        if twice := patterns.keys() & by_name.keys():
            raise ValueError(f"--names is given twice for {min(twice) or 'no class'}: {text}")
        patterns |= by_name
    return patterns


def read_rules(names: Iterable[str]) -> dict[str, Any]:
    """Return class -> rule, of options such as `{rule: tools}` or `person=[A-Z][a-z]+`.

    A class that is not named is called as its ready-made rule, or `name`.

    Raises:
        ValueError: a class is named twice, or a rule is no YAML.
    """
    rules = {kind: read_rule(text) for kind, text in patterns_of(list(names)).items()}
    return {kind or str(rule.get("rule", "name")): rule for kind, rule in rules.items()}


def classes_by_row(part: Any) -> list[str]:
    """Return the classes of a task or tokenizer whose names are known row by row only."""
    return list(getattr(getattr(part, "finder", None), "columns", ()))


def read_names(given: Iterable[str], task: Any) -> dict[str, list[str]]:
    """Read `zoe,max` or `person=zoe,max`, once or more for each class, as class -> names.

    Raises:
        ValueError: the task finds no names by rules, or it is not clear of which class names are.
    """
    rules: Mapping[str, Any] = getattr(getattr(task, "finder", None), "rules", {})
    if not rules:
        raise ValueError(f"names are for texts with rules for names: {task.name!r} has none")
    classes = classes_by_row(task) or list(rules)
    names_of: dict[str, list[str]] = {}
    for text in given:
        for kind, listed in by_class(text).items():
            if kind not in rules and (kind or len(classes) > 1):
                known = ", ".join(rules)
                raise ValueError(
                    f"names {text}: write {classes[0]}=..., with one of the classes {known}"
                )
            names = filter(None, map(str.strip, listed.split(",")))
            names_of.setdefault(kind or classes[0], []).extend(names)
    return names_of


def mark_names(texts: Iterable[str], names_of: Mapping[str, list[str]], task: Any) -> list[str]:
    """Mark names in texts, as the column of a rule does for a row.

    Raises:
        ValueError: a name stands in no text.
    """
    from hf_alpha.modeling.spans import check_marked

    # What cannot be read from a file has no names.
    marked = [
        text if getattr(text, "error", None) else task.finder.mark(text, names_of) for text in texts
    ]
    check_marked(chain.from_iterable(names_of.values()), marked)
    return marked
