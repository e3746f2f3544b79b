"""Rules: regular expressions over the words and segments of a text."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from hf_alpha.plain_yaml import read_yaml
from hf_alpha.settings import model_of


class RuleError(ValueError):
    """A rule that cannot be compiled; the message has its number, its text and the column."""


@dataclass(frozen=True)
class Rule:
    """A regular expression over words and segments, and the label of what it finds.

    Its items are separated by spaces:

    | item | what it matches |
    |---|---|
    | `march` | this word; split like a text, so `don't` is three words |
    | `"U.S."` | the words of a text in double quotes; `.` and other signs stand for themselves |
    | `/[0-9]{4}/` | a word, as the text writes it, that Python's `re` matches from end to end |
    | `.` | any word |
    | `<MONTH>` | a segment with this label, of the lexicon or of a rule before this one |
    | `( )`, `a | b`, `?`, `*`, `+`, `{2}`, `{2,4}`, `{2,}` | groups, choices, repetitions |

    Args:
        pattern: the expression.
        label: of the segments that it finds.
    """

    pattern: str
    label: str


def read_rules(path: str | PathLike[str]) -> list[Rule]:
    """Read a YAML file: a list of rules, each with `pattern` and `label`.

    Raises:
        ValueError: the file holds something else; the message has the line if it is no YAML.
        OSError: it cannot be read.
    """
    return rules_of(read_yaml(Path(path)), f"{path}")


def rules_of(content: Any, place: str) -> list[Rule]:
    """Make rules of plain data; see `read_rules`.

    Raises:
        ValueError: it is no list of mappings with a pattern and a label.
    """
    if not isinstance(content, list):
        raise ValueError(f"{place}: write a list of rules, each with 'pattern' and 'label'")
    for number, entry in enumerate(content, start=1):
        at = f"{place}: rule {number}"
        if not isinstance(entry, dict) or not entry.keys() >= {"pattern", "label"}:
            raise ValueError(f"{at} has no 'pattern' and 'label': {entry!r}")
        model_of(Rule).read(entry, at)
    return [Rule(**entry) for entry in content]


__all__ = ["Rule", "RuleError", "read_rules", "rules_of"]
